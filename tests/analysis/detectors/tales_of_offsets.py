"""Tales of offsets that moved, disappeared or stood still."""

from __future__ import annotations

from .tales import DAY, HOUR, MINUTE, Offsets, Tale, Told, given, joined, names, shared, tale


@tale("IC-16")
def retention_passed_a_group_that_was_down_nine_days(log: Tale) -> None:
    at: Offsets = dict.fromkeys(range(6), 120_000)
    log.classic(0, "geo-index", 41, shared("positions", 6, names("gi", 3)))
    log.work("geo-index", "positions", at, 5, 6 * HOUR, every=60, rise=300)
    log.classic(6 * HOUR, "geo-index", 42, [])
    back = 6 * HOUR + 6 * DAY
    log.classic(back, "geo-index", 43, shared("positions", 6, names("gj", 3)))
    at = {number: offset + 1_900_000 + 7 * number for number, offset in at.items()}
    log.work("geo-index", "positions", at, back + 20, back + 3 * HOUR, every=60, rise=300)


@tale("IC-16")
def a_kip_848_group_comes_back_after_the_log_start(log: Tale) -> Told:
    log.say(
        0,
        joined(
            "CG3 lake epoch=7",
            "CG5 lake w1 {events}",
            "CG6 lake target-epoch=7",
            "CG7 lake w1 {events:[0,1]}",
            "CG8 lake w1 epoch=7 own{events:[0,1]}",
        ),
    )
    at: Offsets = {0: 5_000, 1: 6_000}
    log.work("lake", "events", at, 10, 3 * HOUR, every=30, rise=40)
    log.say(3 * HOUR, "CG8 lake w1 = X | CG7 lake w1 = X | CG5 lake w1 = X | CG3 lake epoch=8")
    back = 4 * DAY
    log.say(
        back,
        joined(
            "CG5 lake w2 {events}",
            "CG3 lake epoch=9",
            "CG6 lake target-epoch=9",
            "CG7 lake w2 {events:[0,1]}",
            "CG8 lake w2 epoch=9 own{events:[0,1]}",
        ),
    )
    at = {0: 400_000, 1: 410_000}
    log.work("lake", "events", at, back + 15, back + HOUR, every=30, rise=40)
    return given(starts={("events", 0): 399_500, ("events", 1): 409_400}, ends={("events", 0): 406_000, ("events", 1): 416_000})


@tale("IC-16", "IC-05a")
def latest_skips_half_a_day_in_one_partition(log: Tale) -> None:
    log.classic(0, "mailer", 9, ["m@10.3.0.4/mailer: mails → mails-0"])
    at: Offsets = {0: 77_000}
    log.work("mailer", "mails", at, 4, 5 * HOUR, every=20, rise=12)
    log.classic(5 * HOUR, "mailer", 10, [])
    log.say(12 * HOUR, "OC mailer mails-0 = X | GM mailer = X")
    log.classic(17 * HOUR, "mailer", 1, ["n@10.3.0.4/mailer: mails → mails-0"])
    at[0] += 250_000
    log.work("mailer", "mails", at, 17 * HOUR + 5, 20 * HOUR, every=20, rise=12)


@tale("IC-16")
def a_nightly_batch_is_four_days_late(log: Tale) -> None:
    at: Offsets = dict.fromkeys(range(4), 1_000_000)
    generation = 100
    for night in (0, 1, 2, 3, 8, 9):
        start = night * DAY + 2 * HOUR
        if night == 8:
            at = {number: offset + 3_000_000 for number, offset in at.items()}
        log.classic(start, "nightly-ledger", generation, shared("ledger", 4, ["job"]))
        log.work("nightly-ledger", "ledger", at, start + 5, start + 20 * MINUTE, every=10, rise=4_000)
        log.classic(start + 21 * MINUTE, "nightly-ledger", generation + 1, [])
        generation += 2


@tale("IC-39", "IC-18", "IC-20b")
def auto_commit_repeats_one_offset(log: Tale) -> None:
    log.classic(0, "invoice-render", 3, shared("invoices", 4, names("ir", 2)))
    at: Offsets = {0: 900, 1: 800, 3: 950}
    log.work("invoice-render", "invoices", at, 5, 3 * HOUR, every=5, rise=3)
    stuck: Offsets = {2: 700}
    log.work("invoice-render", "invoices", stuck, 5, HOUR, every=5, rise=3)
    for second in range(HOUR, 3 * HOUR, 5):
        log.commit(second, "invoice-render", "invoices", stuck)


@tale("IC-39", "IC-18", "IC-20b")
def a_poison_record_stops_the_only_partition(log: Tale) -> Told:
    log.classic(0, "thumbs", 12, ["t1@172.16.5.9/thumbs: uploads → uploads-0"])
    at: Offsets = {0: 44_000}
    log.work("thumbs", "uploads", at, 5, 2 * HOUR, every=5, rise=6)
    for second in range(2 * HOUR, 4 * HOUR, 5):
        log.commit(second, "thumbs", "uploads", at)
    return given(ends={("uploads", 0): at[0] + 9_000})


@tale("IC-20b", "IC-39", "IC-18")
def one_owner_never_commits_a_partition(log: Tale) -> Told:
    log.classic(0, "search-feed", 5, shared("products", 6, names("sf", 3)))
    at: Offsets = {number: 10_000 for number in range(6) if number != 4}
    log.work("search-feed", "products", at, 10, 5 * HOUR, every=30, rise=50)
    return given(ends={("products", number): 40_000 for number in range(6)})


@tale("IC-18", "IC-39", "IC-20b")
def a_stable_group_stops_to_commit(log: Tale) -> Told:
    log.classic(0, "fraud", 20, shared("payments", 8, names("fr", 4)))
    at: Offsets = dict.fromkeys(range(8), 2_000)
    log.work("fraud", "payments", at, 10, 2 * HOUR, every=15, rise=20)
    other: Offsets = dict.fromkeys(range(8), 2_000)
    log.classic(1, "audit", 3, shared("payments", 8, names("au", 2), client="audit"))
    log.work("audit", "payments", other, 12, 6 * HOUR, every=15, rise=20)
    return given(ends={("payments", number): other[number] + 100 for number in range(8)})


@tale("IC-39", "IC-20b", "IC-18")
def a_kip_848_member_does_not_get_past_a_record(log: Tale) -> Told:
    for member, numbers in (("a", "0,1"), ("b", "2,3")):
        log.say(
            0, f"CG5 enrich {member} {{raw}} | CG7 enrich {member} {{raw:[{numbers}]}} | CG8 enrich {member} epoch=3 own{{raw:[{numbers}]}}"
        )
    log.say(1, "CG3 enrich epoch=3 | CG6 enrich target-epoch=3")
    at: Offsets = {0: 10, 1: 20, 2: 30}
    log.work("enrich", "raw", at, 5, 4 * HOUR, every=10, rise=9)
    stuck: Offsets = {3: 40}
    log.work("enrich", "raw", stuck, 6, 40 * MINUTE, every=10, rise=9)
    for second in range(40 * MINUTE, 4 * HOUR, 10):
        log.commit(second, "enrich", "raw", stuck)
    return given(ends={("raw", number): 30_000 for number in range(4)})


@tale("IC-01", "IC-05a", "IC-28c", "IC-16", "IC-05b", "IC-02")
def a_group_is_deleted_by_mistake_and_reads_everything_again(log: Tale) -> None:
    log.classic(0, "order-mail", 30, shared("orders", 3, names("om", 3)))
    at: Offsets = dict.fromkeys(range(3), 88_000)
    log.work("order-mail", "orders", at, 5, 8 * HOUR, every=30, rise=20)
    log.classic(8 * HOUR, "order-mail", 31, [])
    log.say(8 * HOUR + 50, " | ".join(f"OC order-mail orders-{number} = X" for number in range(3)) + " | GM order-mail = X")
    log.classic(8 * HOUR + 3 * MINUTE, "order-mail", 1, shared("orders", 3, names("on", 3)))
    at = dict.fromkeys(range(3), 200)
    log.work("order-mail", "orders", at, 8 * HOUR + 4 * MINUTE, 10 * HOUR, every=30, rise=900)


@tale("IC-05b", "IC-02")
def an_operator_resets_twelve_partitions_to_yesterday(log: Tale) -> None:
    log.classic(0, "ranker", 6, shared("clicks", 12, names("rk", 4)))
    at: Offsets = {number: 3_000_000 + number for number in range(12)}
    log.work("ranker", "clicks", at, 10, 4 * HOUR, every=60, rise=600)
    log.classic(4 * HOUR, "ranker", 7, [])
    at = {number: offset - 90_000 - 13 * number for number, offset in at.items()}
    log.commit(4 * HOUR + 400, "ranker", "clicks", at)
    log.classic(4 * HOUR + 800, "ranker", 8, shared("clicks", 12, names("rl", 4)))
    log.work("ranker", "clicks", at, 4 * HOUR + 860, 7 * HOUR, every=60, rise=1_500)


@tale("IC-05b", "IC-02")
def a_simple_group_is_reset_to_the_earliest(log: Tale) -> None:
    at: Offsets = {0: 51_000, 1: 52_000}
    log.work("flink-7781", "sensors", at, 0, 5 * HOUR, every=60, rise=200)
    at = {0: 0, 1: 0}
    log.commit(5 * HOUR + 1_000, "flink-7781", "sensors", at)
    log.work("flink-7781", "sensors", at, 5 * HOUR + 1_100, 7 * HOUR, every=60, rise=2_000)


@tale("IC-07")
def a_topic_is_created_again_below_three_groups(log: Tale) -> None:
    first: dict[str, Offsets] = {group: dict.fromkeys(range(3), 40_000) for group in ("p-sync", "p-index", "p-audit")}
    for place, (group, at) in enumerate(first.items()):
        log.classic(place, group, 2, shared("prices", 3, names(group, 1), client=group))
        log.work(group, "prices", at, 10 + place, 3 * HOUR, every=30, rise=20, details="le=9")
        again = dict.fromkeys(range(3), 0)
        log.work(group, "prices", again, 3 * HOUR + 60 + place, 5 * HOUR, every=30, rise=20, details="le=0")


@tale("IC-28c", "IC-28")
def a_shorter_retention_removes_five_groups(log: Tale) -> None:
    for place, group in enumerate(("ab-test", "heatmap", "ltv", "churn", "reports")):
        log.classic(place * 10 * HOUR, group, 4, [f"{group}-1@10.1.1.{place}/{group}: t{place} → t{place}-0"])
        at: Offsets = {0: 900 * (place + 1)}
        log.work(group, f"t{place}", at, place * 10 * HOUR + 10, place * 10 * HOUR + HOUR, every=300, rise=10)
        log.classic(place * 10 * HOUR + 2 * HOUR, group, 5, [])
        log.say(4 * DAY, f"OC {group} t{place}-0 = X | GM {group} = X")


@tale("IC-01")
def offsets_expire_over_a_long_holiday(log: Tale) -> None:
    log.classic(0, "kiosk", 17, shared("tickets", 5, names("k", 2)))
    at: Offsets = dict.fromkeys(range(5), 61_000)
    log.work("kiosk", "tickets", at, 20, 9 * HOUR, every=120, rise=30)
    log.classic(9 * HOUR, "kiosk", 18, [])
    log.say(7 * DAY + 9 * HOUR + 300, " | ".join(f"OC kiosk tickets-{number} = X" for number in range(5)) + " | GM kiosk = X")
    log.classic(11 * DAY, "kiosk", 1, shared("tickets", 5, names("kk", 2)))
    at = dict.fromkeys(range(5), 3)
    log.work("kiosk", "tickets", at, 11 * DAY + 20, 11 * DAY + HOUR, every=60, rise=900)


@tale("IC-25")
def a_new_group_id_reads_from_the_beginning(log: Tale) -> None:
    log.classic(0, "billing-v3", 8, shared("usage", 6, names("b", 2), client="billing"))
    at: Offsets = dict.fromkeys(range(6), 500_000)
    log.work("billing-v3", "usage", at, 30, 6 * HOUR, every=60, rise=90)
    log.classic(6 * HOUR, "billing-v3", 9, [])
    log.classic(6 * HOUR + 120, "billing-v4", 1, shared("usage", 6, names("c", 2), client="billing"))
    at = dict.fromkeys(range(6), 4)
    log.work("billing-v4", "usage", at, 6 * HOUR + 150, 9 * HOUR, every=60, rise=4_000)


@tale("IC-25")
def a_new_group_id_is_alone_and_starts_at_the_end(log: Tale) -> Told:
    log.classic(0, "recs-20240108", 1, shared("views", 3, names("r", 3), client="recs"))
    at: Offsets = dict.fromkeys(range(3), 800_000)
    log.work("recs-20240108", "views", at, 20, 3 * HOUR, every=60, rise=100)
    return given(starts={("views", number): 0 for number in range(3)}, ends={("views", number): at[number] + 50 for number in range(3)})


@tale("IC-17", "IC-20b", "IC-20a", "IC-18")
def a_topic_is_dropped_from_the_subscription(log: Tale) -> Told:
    members = ["x1@10.4.0.1/etl: a,b → a-0,1,b-0,1", "x2@10.4.0.2/etl: a,b → a-2,b-2"]
    log.classic(0, "etl", 50, members)
    a: Offsets = dict.fromkeys(range(3), 1_000)
    b: Offsets = dict.fromkeys(range(3), 1_000)
    log.work("etl", "a", a, 10, 30 * HOUR, every=300, rise=30)
    log.work("etl", "b", b, 11, 3 * HOUR, every=300, rise=30)
    log.classic(3 * HOUR, "etl", 51, ["x1@10.4.0.1/etl: a → a-0,1", "x2@10.4.0.2/etl: a → a-2"])
    return given(ends={**{("a", n): a[n] + 20 for n in range(3)}, **{("b", n): b[n] + 40_000 for n in range(3)}})


@tale("IC-20a")
def new_partitions_have_no_owner_for_hours(log: Tale) -> Told:
    log.classic(0, "stock", 3, shared("moves", 6, names("st", 3)))
    at: Offsets = dict.fromkeys(range(6), 5_000)
    log.work("stock", "moves", at, 10, 8 * HOUR, every=60, rise=20)
    log.classic(5, "stock-audit", 3, shared("moves", 6, names("sa", 1), client="sa"))
    other: Offsets = dict.fromkeys(range(6), 5_000)
    log.work("stock-audit", "moves", other, 12, 3 * HOUR, every=60, rise=20)
    log.classic(3 * HOUR, "stock-audit", 4, shared("moves", 12, names("sa", 1), client="sa"))
    other |= dict.fromkeys(range(6, 12), 0)
    log.work("stock-audit", "moves", other, 3 * HOUR + 30, 8 * HOUR, every=60, rise=20)
    return given(topics={"moves": 12})


@tale("IC-02")
def a_zombie_overwrites_after_a_rebalance(log: Tale) -> None:
    log.classic(0, "wallet", 7, shared("debits", 2, ["w1", "w2"]))
    at: Offsets = {0: 9_000, 1: 9_100}
    log.work("wallet", "debits", at, 5, 2 * HOUR, every=10, rise=30)
    log.classic(2 * HOUR, "wallet", 8, shared("debits", 2, ["w2"]))
    log.work("wallet", "debits", at, 2 * HOUR + 10, 2 * HOUR + 120, every=10, rise=30)
    log.commit(2 * HOUR + 125, "wallet", "debits", {0: at[0] - 700})
    log.work("wallet", "debits", {0: at[0] - 700, 1: at[1]}, 2 * HOUR + 135, 3 * HOUR, every=10, rise=30)


@tale("IC-02")
def a_kip_848_group_reads_again_after_a_rolling_deploy(log: Tale) -> None:
    log.say(
        0,
        joined(
            "CG3 cart epoch=4",
            "CG5 cart a {carts}",
            "CG6 cart target-epoch=4",
            "CG7 cart a {carts:[0,1,2]}",
            "CG8 cart a epoch=4 own{carts:[0,1,2]}",
        ),
    )
    at: Offsets = dict.fromkeys(range(3), 70_000)
    log.work("cart", "carts", at, 5, HOUR, every=10, rise=15)
    log.say(HOUR, "CG8 cart a = X | CG7 cart a = X | CG5 cart a = X | CG5 cart b {carts} | CG3 cart epoch=5 | CG6 cart target-epoch=5")
    log.say(HOUR + 1, "CG7 cart b {carts:[0,1,2]} | CG8 cart b epoch=5 own{carts:[0,1,2]}")
    at = {number: offset - 4_000 for number, offset in at.items()}
    log.work("cart", "carts", at, HOUR + 20, 2 * HOUR, every=10, rise=15)


@tale("IC-13", "IC-24", "IC-02")
def two_programs_commit_for_one_partition(log: Tale) -> None:
    fast: Offsets = {0: 50_000}
    slow: Offsets = {0: 20_000}
    for second in range(0, 3 * HOUR, 20):
        fast[0] += 15
        slow[0] += 11
        log.commit(second, "loader", "rows", fast)
        log.commit(second + 9, "loader", "rows", slow)


@tale("IC-35")
def the_offsets_topic_was_wiped(log: Tale) -> None:
    for place in range(14):
        group = f"svc-{chr(97 + place)}"
        log.classic(place, group, 1, shared(f"top{place}", 2, names(group, 1), client=group))
        at: Offsets = dict.fromkeys(range(2), 7_000_000 + 31_000 * place)
        log.work(group, f"top{place}", at, 30 + place, 2 * HOUR, every=60, rise=30)


@tale("IC-29")
def the_committed_offset_is_below_the_log_start(log: Tale) -> Told:
    log.classic(0, "slow-export", 2, shared("facts", 2, ["se"]))
    at: Offsets = {0: 100, 1: 120}
    log.work("slow-export", "facts", at, 10, HOUR, every=60, rise=2)
    return given(starts={("facts", 0): 90_000, ("facts", 1): 91_000}, ends={("facts", 0): 190_000, ("facts", 1): 191_000})


@tale("IC-07")
def the_committed_offset_is_beyond_the_end(log: Tale) -> Told:
    log.classic(0, "replicator", 2, shared("ids", 2, ["re"]))
    at: Offsets = {0: 700_000, 1: 710_000}
    log.work("replicator", "ids", at, 10, HOUR, every=60, rise=2)
    return given(ends={("ids", 0): 1_200, ("ids", 1): 1_100})


@tale("IC-05a", "IC-16", "IC-02", "IC-05b")
def offsets_of_one_topic_are_deleted_and_read_again(log: Tale) -> None:
    log.classic(0, "joiner", 4, ["j@10.0.0.7/joiner: l,r → l-0,r-0"])
    left: Offsets = {0: 4_000}
    right: Offsets = {0: 90_000}
    log.work("joiner", "l", left, 10, 6 * HOUR, every=30, rise=5)
    log.work("joiner", "r", right, 11, 3 * HOUR, every=30, rise=50)
    log.classic(3 * HOUR, "joiner", 5, ["j@10.0.0.7/joiner: l → l-0"])
    log.say(3 * HOUR + 100, "OC joiner r-0 = X")
    log.classic(3 * HOUR + 300, "joiner", 6, ["j@10.0.0.7/joiner: l,r → l-0,r-0"])
    log.work("joiner", "r", {0: 10}, 3 * HOUR + 320, 6 * HOUR, every=30, rise=2_000)
