"""Tales that operators tell after an outage, and quiet days that resemble one."""

from __future__ import annotations

from .tales import DAY, HOUR, MINUTE, Offsets, Tale, Told, given, joined, names, shared, tale


@tale("IC-42", "IC-18")
def all_members_died_in_the_night(log: Tale) -> Told:
    at: Offsets = dict.fromkeys(range(4), 7_000)
    log.classic(0, "invoicing", 12, shared("bills", 4, names("iv", 2), client="invoicing"))
    log.work("invoicing", "bills", at, 10, 5 * HOUR, every=20, rise=30)
    log.classic(5 * HOUR, "invoicing", 13, [])
    other: Offsets = {0: 10}
    log.work("other", "else", other, 3, 15 * HOUR, every=60, rise=3)
    return given(ends={("bills", number): at[number] + 54_000 for number in range(4)})


@tale("IC-42", "IC-18")
def a_kip_848_group_has_lost_its_only_member(log: Tale) -> Told:
    log.say(0, "CG3 vat epoch=1 | CG5 vat a {tax} | CG6 vat target-epoch=1 | CG7 vat a {tax:[0,1]} | CG8 vat a epoch=1 own{tax:[0,1]}")
    at: Offsets = {0: 70, 1: 90}
    log.work("vat", "tax", at, 5, 2 * HOUR, every=5, rise=20)
    log.say(2 * HOUR, "CG8 vat a = X | CG7 vat a = X | CG5 vat a = X | CG3 vat epoch=2")
    audit: Offsets = {0: 70, 1: 90}
    log.classic(0, "tax-audit", 2, shared("tax", 2, ["ta"], client="ta"))
    log.work("tax-audit", "tax", audit, 6, 9 * HOUR, every=5, rise=20)
    return given()


@tale("IC-20")
def a_group_lost_the_right_to_describe_its_topic(log: Tale) -> None:
    at: Offsets = dict.fromkeys(range(6), 900)
    log.classic(0, "shipping", 21, shared("parcels", 6, names("sh", 3), client="shipping"))
    log.work("shipping", "parcels", at, 10, 3 * HOUR, every=15, rise=9)
    log.classic(3 * HOUR, "shipping", 22, [f"sh-{n}@10.0.0.1{n}/shipping: parcels →" for n in (1, 2, 3)])
    log.work("clock", "ticks", {0: 0}, 7, 8 * HOUR, every=30, rise=2)


@tale("IC-43", "IC-18", "IC-39")
def a_group_falls_further_and_further_behind(log: Tale) -> Told:
    fast: Offsets = dict.fromkeys(range(3), 20_000)
    slow: Offsets = dict.fromkeys(range(3), 20_000)
    log.classic(0, "dash", 4, shared("metrics", 3, ["d1"], client="dash"))
    log.classic(1, "store", 4, shared("metrics", 3, ["s1"], client="store"))
    log.work("dash", "metrics", fast, 10, 9 * HOUR, every=30, rise=100)
    log.work("store", "metrics", slow, 11, HOUR, every=30, rise=100)
    log.work("store", "metrics", slow, HOUR + 11, 9 * HOUR, every=30, rise=6)
    return given(ends={("metrics", number): fast[number] + 60 for number in range(3)})


@tale("IC-26")
def an_exactly_once_application_crashes_before_each_commit(log: Tale) -> None:
    for number in range(60):
        start = number * 120
        log.say(start, f"[T pid=88 ep={number}] OC pricing quotes-0 = 5000 | OC pricing quotes-1 = 6000")
        log.say(start + 61, f"[T pid=88 ep={number + 1}] MARK pid=88 ep={number + 1} ABORT")


@tale("IC-40", "IC-04")
def all_members_time_out_together_every_quarter_hour(log: Tale) -> None:
    at = dict.fromkeys(range(8), 300)
    for life in range(30):
        start = life * 15 * MINUTE
        members = [f"gc{number}-{life}@10.0.8.{number}/model: feats → feats-{number},{number + 4}" for number in range(4)]
        log.classic(start, "model", 50 + 2 * life, members)
        log.work("model", "feats", at, start + 5, start + 13 * MINUTE, every=20, rise=5)
        log.classic(start + 14 * MINUTE, "model", 51 + 2 * life, [])


@tale("IC-05b", "IC-05a", "IC-02", "IC-07")
def the_streams_reset_tool_ran_on_the_wrong_application(log: Tale) -> None:
    at: Offsets = dict.fromkeys(range(5), 660_000)
    log.classic(0, "ks-orders", 30, shared("orders", 5, names("ks", 2), client="ks-orders-StreamThread"))
    log.work("ks-orders", "orders", at, 10, 6 * HOUR, every=30, rise=70)
    log.classic(6 * HOUR, "ks-orders", 31, [])
    zero: Offsets = dict.fromkeys(range(5), 0)
    log.commit(6 * HOUR + 75, "ks-orders", "orders", zero)
    log.classic(6 * HOUR + 300, "ks-orders", 32, shared("orders", 5, names("kt", 2), client="ks-orders-StreamThread"))
    log.work("ks-orders", "orders", zero, 6 * HOUR + 330, 8 * HOUR, every=30, rise=4_000)


@tale("IC-25")
def a_connector_was_renamed(log: Tale) -> None:
    at: Offsets = dict.fromkeys(range(4), 310_000)
    log.classic(
        0, "connect-s3-orders", 9, shared("orders", 4, names("connector-consumer-s3-orders", 2), client="connector-consumer-s3-orders")
    )
    log.work("connect-s3-orders", "orders", at, 60, 5 * HOUR, every=60, rise=40)
    log.classic(5 * HOUR, "connect-s3-orders", 10, [])
    again: Offsets = dict.fromkeys(range(4), 0)
    log.classic(
        5 * HOUR + 600,
        "connect-orders-to-s3",
        1,
        shared("orders", 4, names("connector-consumer-orders", 2), client="connector-consumer-orders-to-s3"),
    )
    log.work("connect-orders-to-s3", "orders", again, 5 * HOUR + 660, 7 * HOUR, every=60, rise=8_000)


@tale("IC-02", "IC-07", "IC-05b", "IC-44")
def an_application_seeks_to_the_beginning(log: Tale) -> None:
    at: Offsets = dict.fromkeys(range(3), 180_000)
    log.classic(0, "kyc", 7, shared("people", 3, ["k1"], client="kyc"))
    log.work("kyc", "people", at, 10, 4 * HOUR, every=10, rise=20)
    log.work("kyc", "people", dict.fromkeys(range(3), 40), 4 * HOUR + 5, 5 * HOUR, every=10, rise=2_000)
    keep: Offsets = dict.fromkeys(range(3), 180_000)
    log.classic(2, "kyc-audit", 7, shared("people", 3, ["ka"], client="ka"))
    log.work("kyc-audit", "people", keep, 12, 5 * HOUR, every=10, rise=20)


@tale("IC-37")
def clients_lost_all_brokers_for_a_quarter_hour(log: Tale) -> None:
    for place, group in enumerate(("north", "south", "east", "west")):
        at: Offsets = dict.fromkeys(range(2), 5_000)
        log.classic(place, group, 4, shared(f"{group}-in", 2, [f"{group}-1"], client=group))
        log.work(group, f"{group}-in", at, 5 + place, 3 * HOUR, every=5, rise=3)
        log.classic(3 * HOUR + 15 * MINUTE + place, group, 6, shared(f"{group}-in", 2, [f"{group}-2"], client=group))
        log.work(group, f"{group}-in", at, 3 * HOUR + 15 * MINUTE + 5 + place, 5 * HOUR, every=5, rise=3)


@tale("IC-18")
def a_large_group_cannot_finish_its_rebalance(log: Tale) -> None:
    at: Offsets = dict.fromkeys(range(12), 100)
    log.classic(0, "fleet", 80, shared("pos", 12, names("fl", 6), client="fleet"))
    log.work("fleet", "pos", at, 10, 2 * HOUR, every=10, rise=8)
    log.work("noise", "n", {0: 1}, 3, 6 * HOUR, every=30, rise=2)
    log.classic(3 * HOUR, "fleet", 97, shared("pos", 12, names("fm", 6), client="fleet"))
    log.work("fleet", "pos", at, 3 * HOUR + 10, 6 * HOUR, every=10, rise=8)


@tale("IC-16")
def a_bug_commits_offsets_of_another_partition(log: Tale) -> None:
    at: Offsets = {0: 3_000, 1: 900_000}
    log.classic(0, "swap", 3, shared("mixed", 2, ["sw"], client="swap"))
    log.work("swap", "mixed", at, 10, 2 * HOUR, every=10, rise=10)
    log.commit(2 * HOUR, "swap", "mixed", {0: at[1] + 5, 1: at[1] + 10})
    log.work("swap", "mixed", {0: at[1] + 5, 1: at[1] + 10}, 2 * HOUR + 10, 3 * HOUR, every=10, rise=10)


@tale("IC-24", "IC-40", "IC-41")
def two_versions_with_different_assignors_take_turns(log: Tale) -> None:
    at: Offsets = dict.fromkeys(range(4), 100)
    for step in range(12):
        how = "proto=range" if step % 2 else "proto=cooperative-sticky"
        start = step * 20 * MINUTE
        log.classic(start, "duo", 5 + step, shared("acts", 4, names("du" if step % 2 else "dv", 2), client="duo"), how)
        log.work("duo", "acts", at, start + 5, start + 20 * MINUTE - 5, every=15, rise=4)


@tale("IC-41", "IC-24")
def the_staging_environment_joins_production(log: Tale) -> None:
    at: Offsets = dict.fromkeys(range(4), 100)
    own = shared("pay", 4, names("pr", 2), host="10.1.0.", client="payments")
    log.classic(0, "payments", 15, own)
    log.work("payments", "pay", at, 10, 6 * HOUR, every=15, rise=4)
    both = [*shared("pay", 4, [*names("pr", 2), "stg-1", "stg-2"], host="10.1.0.", client="payments")]
    both[2:] = [each.replace("10.1.0.", "10.77.3.").replace("/payments", "/stg-payments") for each in both[2:]]
    log.classic(6 * HOUR, "payments", 16, both)
    log.work("payments", "pay", at, 6 * HOUR + 10, 7 * HOUR, every=15, rise=4)
    log.classic(7 * HOUR, "payments", 17, own)
    log.work("payments", "pay", at, 7 * HOUR + 10, 9 * HOUR, every=15, rise=4)


@tale("IC-01")
def a_weekly_job_comes_after_its_offsets_expired(log: Tale) -> None:
    generation = 1
    for week in range(3):
        start = week * 8 * DAY
        log.classic(start, "weekly", generation, [f"w{week}@10.0.0.4/weekly: sums → sums-0,1"])
        log.work("weekly", "sums", dict.fromkeys(range(2), 0), start + 10, start + HOUR, every=60, rise=900)
        log.classic(start + HOUR, "weekly", generation + 1, [])
        log.say(start + 7 * DAY + HOUR + 500, "OC weekly sums-0 = X | OC weekly sums-1 = X | GM weekly = X")


@tale("IC-05a")
def a_topic_was_deleted_below_three_groups(log: Tale) -> None:
    for place, group in enumerate(("cat-a", "cat-b", "cat-c")):
        at: Offsets = dict.fromkeys(range(2), 9_000)
        log.classic(place, group, 3, shared("cats", 2, [group], client=group))
        log.work(group, "cats", at, 10 + place, 4 * HOUR, every=60, rise=4)
        log.say(4 * HOUR + 30, f"OC {group} cats-0 = X | OC {group} cats-1 = X")
        log.work(group, "cats", {0: 3, 1: 3}, 4 * HOUR + 200 + place, 5 * HOUR, every=60, rise=4)


@tale("IC-34", "IC-20")
def ten_members_share_two_partitions_and_one_does_all(log: Tale) -> None:
    members = [f"x{n}@10.0.0.{n}/x: big → {'big-' + ','.join(map(str, range(24))) if n == 1 else ''}".rstrip() for n in range(1, 7)]
    log.classic(0, "lopsided", 3, members)
    log.work("lopsided", "big", dict.fromkeys(range(24), 50), 5, 6 * HOUR, every=60, rise=5)


@tale("IC-12")
def a_loop_commits_after_each_record(log: Tale) -> None:
    offset = 0
    log.classic(0, "each-one", 2, shared("evt", 1, ["eo"], client="eo"))
    for second in range(1_500):
        for _ in range(5):
            offset += 1
            log.commit(second, "each-one", "evt", {0: offset})
    log.work("calm", "c", {0: 1}, 0, 1_500, every=30, rise=2)


@tale("IC-19", "IC-40", "IC-04")
def a_deployment_runs_twice_with_static_ids(log: Tale) -> None:
    for step in range(40):
        host = "10.3.0.9" if step % 2 else "10.4.0.9"
        members = [f"{host}-{step}-{n}@{host}/svc#svc-{n}: jobs → jobs-{n}" for n in range(3)]
        log.classic(step * 45, "svc", 10, members)
        log.commit(step * 45 + 20, "svc", "jobs", dict.fromkeys(range(3), 10 * step))


@tale("IC-30", "IC-18")
def a_kip_848_member_is_blocked_in_its_poll_loop(log: Tale) -> None:
    log.say(
        0,
        joined(
            "CG3 img epoch=3 | CG5 img a {pix} timeout=60000 | CG6 img target-epoch=3",
            "CG7 img a {pix:[0,1]} | CG8 img a epoch=3 own{pix:[0,1]}",
        ),
    )
    log.work("img", "pix", {0: 5, 1: 5}, 5, HOUR, every=10, rise=4)
    log.say(HOUR, "CG5 img b {pix} timeout=60000 | CG3 img epoch=4 | CG6 img target-epoch=4 | CG7 img a {pix:[0]} | CG7 img b {pix:[1]}")
    log.say(HOUR + 1, "CG8 img a epoch=3 prev=3 state=1 own{pix:[0]} revoke{pix:[1]} | CG8 img b epoch=4 prev=0 state=2 own{}")
    log.work("other", "o", {0: 5}, HOUR + 5, 2 * HOUR, every=10, rise=4)


@tale("IC-05b", "IC-02", "IC-16")
def a_simple_group_is_moved_forward_by_a_tool(log: Tale) -> None:
    at: Offsets = {0: 51_000, 1: 52_000, 2: 53_000}
    log.work("flink-audit", "logs", at, 0, 5 * HOUR, every=60, rise=20)
    at = {number: offset + 800_000 + number for number, offset in at.items()}
    log.commit(5 * HOUR + 1_000, "flink-audit", "logs", at)
    log.work("flink-audit", "logs", at, 5 * HOUR + 1_100, 7 * HOUR, every=60, rise=20)


@tale("IC-05b", "IC-02")
def a_spark_job_starts_again_from_an_old_checkpoint(log: Tale) -> None:
    at: Offsets = dict.fromkeys(range(6), 730_000)
    log.work("spark-bids", "bids", at, 0, 9 * HOUR, every=30, rise=50)
    at = {number: offset - 31_000 - 17 * number for number, offset in at.items()}
    log.work("spark-bids", "bids", at, 9 * HOUR + 700, 11 * HOUR, every=30, rise=150)


@tale("IC-39", "IC-20b")
def a_transaction_in_the_topic_holds_one_partition(log: Tale) -> Told:
    log.classic(0, "rc-reader", 5, shared("moves", 5, names("rc", 1), client="rc"))
    at: Offsets = {0: 10, 1: 10, 2: 10, 4: 10}
    log.work("rc-reader", "moves", at, 5, 6 * HOUR, every=5, rise=7)
    held: Offsets = {3: 10}
    log.work("rc-reader", "moves", held, 5, 2 * HOUR, every=5, rise=7)
    for second in range(2 * HOUR, 6 * HOUR, 5):
        log.commit(second, "rc-reader", "moves", held)
    return given(ends={("moves", number): (at | held)[number] + (20_000 if number == 3 else 3) for number in range(5)})


@tale("IC-25")
def a_hash_of_the_build_is_in_the_group_id(log: Tale) -> None:
    builds = ("9fe31c", "77ab02", "c01d55")
    for place, build in enumerate(builds):
        start = place * 3 * HOUR
        log.classic(start, f"edge-{build}", 1, shared("req", 3, names(f"e{place}", 2), client="edge"))
        log.work(f"edge-{build}", "req", dict.fromkeys(range(3), 5 + place), start + 30, start + 2 * HOUR, every=30, rise=700)
        log.classic(start + 3 * HOUR - 60, f"edge-{build}", 2, [])


# In good health


@tale()
def a_nightly_job_is_empty_between_its_runs(log: Tale) -> Told:
    at = dict.fromkeys(range(2), 1_000)
    for night in range(5):
        log.classic(night * DAY, "nightly", 3 + 2 * night, [f"n{night}@10.0.0.2/nightly: day → day-0,1"])
        log.work("nightly", "day", at, night * DAY + 5, night * DAY + 40 * MINUTE, every=20, rise=300)
        log.classic(night * DAY + 41 * MINUTE, "nightly", 4 + 2 * night, [])
    log.work("rest", "r", {0: 1}, 0, 4 * DAY + 12 * HOUR, every=HOUR, rise=2)
    return given(ends={("day", number): at[number] + 15_000 for number in range(2)})


@tale()
def a_service_was_shut_down_for_good(log: Tale) -> Told:
    at = dict.fromkeys(range(2), 1_000)
    log.classic(0, "old-service", 3, shared("old", 2, ["o"], client="old"))
    log.work("old-service", "old", at, 5, 2 * HOUR, every=20, rise=3)
    log.classic(2 * HOUR, "old-service", 4, [])
    log.work("rest", "r", {0: 1}, 0, 12 * HOUR, every=60, rise=2)
    return given(ends={("old", number): at[number] for number in range(2)})


@tale()
def a_restart_takes_four_minutes(log: Tale) -> Told:
    at = dict.fromkeys(range(3), 50_000)
    log.classic(0, "slow-start", 3, shared("s", 3, ["a"], client="ss"))
    log.work("slow-start", "s", at, 5, 2 * HOUR, every=10, rise=20)
    log.classic(2 * HOUR, "slow-start", 4, [])
    log.work("rest", "r", {0: 1}, 0, 2 * HOUR + 4 * MINUTE, every=60, rise=2)
    return given(ends={("s", number): at[number] + 400 for number in range(3)})


@tale()
def two_groups_read_a_topic_at_their_own_pace(log: Tale) -> Told:
    one: Offsets = dict.fromkeys(range(3), 20_000)
    log.classic(0, "live", 4, shared("m", 3, ["d1"], client="live"))
    log.classic(1, "hourly", 4, shared("m", 3, ["s1"], client="hourly"))
    other: Offsets = dict(one)
    for hour in range(9):
        log.work("live", "m", one, hour * HOUR + 10, (hour + 1) * HOUR, every=30, rise=10)
        other = dict(one)
        log.commit((hour + 1) * HOUR - 5, "hourly", "m", other)
    return given(ends={("m", number): one[number] + 10 for number in range(3)})


@tale()
def traffic_falls_in_the_evening_for_all(log: Tale) -> None:
    for place, group in enumerate(("web-a", "web-b", "web-c", "web-d")):
        at: Offsets = dict.fromkeys(range(2), 5_000)
        log.classic(place, group, 4, shared(f"{group}-in", 2, [f"{group}-1"], client=group))
        log.work(group, f"{group}-in", at, 5 + place, 3 * HOUR, every=10, rise=30)
        log.work(group, f"{group}-in", at, 3 * HOUR + 20 * MINUTE * place, 9 * HOUR, every=15 * MINUTE, rise=2)
        log.work(group, f"{group}-in", at, 12 * HOUR + 7 * MINUTE * place, 15 * HOUR, every=10, rise=30)


@tale()
def a_broker_restart_moves_the_coordinator(log: Tale) -> None:
    at: Offsets = dict.fromkeys(range(3), 5_000)
    for place, group in enumerate(("u", "v", "w")):
        log.classic(place, group, 4, shared(f"{group}-in", 3, [f"{group}-1"], client=group))
        log.work(group, f"{group}-in", dict(at), 5 + place, 2 * HOUR, every=10, rise=3)
    log.say(2 * HOUR + 20, "[e=7] OC u u-in-0 = 9000")
    for place, group in enumerate(("u", "v", "w")):
        log.work(group, f"{group}-in", dict.fromkeys(range(3), 9_001), 2 * HOUR + 25 + place, 4 * HOUR, every=10, rise=3)


@tale()
def a_new_service_starts_at_the_end_of_its_topic(log: Tale) -> Told:
    log.work("rest", "r", {0: 1}, 0, 6 * HOUR, every=60, rise=2)
    log.classic(2 * HOUR, "newcomer", 1, shared("views", 3, names("r", 3), client="newcomer"))
    at: Offsets = dict.fromkeys(range(3), 800_000)
    log.work("newcomer", "views", at, 2 * HOUR + 20, 6 * HOUR, every=60, rise=100)
    return given(starts={("views", number): 0 for number in range(3)}, ends={("views", number): at[number] + 50 for number in range(3)})


@tale()
def a_transaction_is_aborted_once_and_repeated(log: Tale) -> None:
    log.say(0, "[T pid=5 ep=0] OC eos t-0 = 100 | OC eos t-1 = 90")
    log.say(9, "[T pid=5 ep=0] MARK pid=5 ep=0 ABORT")
    for number in range(1, 100):
        log.say(number * 30, f"[T pid=5 ep=0] OC eos t-0 = {100 + number * 7} | OC eos t-1 = {90 + number * 6}")
        log.say(number * 30 + 1, "[T pid=5 ep=0] MARK pid=5 ep=0 COMMIT")


@tale()
def more_members_than_partitions_wait_in_reserve(log: Tale) -> None:
    members = [f"x{n}@10.0.0.{n}/x: few → {f'few-{n}' if n < 3 else ''}".rstrip() for n in range(5)]
    log.classic(0, "reserve", 3, members)
    log.work("reserve", "few", dict.fromkeys(range(3), 50), 5, 6 * HOUR, every=60, rise=5)


@tale()
def a_simple_group_commits_at_its_checkpoints(log: Tale) -> None:
    at: Offsets = dict.fromkeys(range(6), 730_000)
    log.work("flink-clicks", "clicks", at, 0, 9 * HOUR, every=30, rise=50)
    log.work("flink-clicks", "clicks", at, 9 * HOUR + 400, 12 * HOUR, every=30, rise=60)


@tale()
def a_deploy_changes_the_assignor_in_two_steps(log: Tale) -> None:
    at: Offsets = dict.fromkeys(range(4), 100)
    for step, (start, how) in enumerate(((0, "proto=range"), (2 * HOUR, "proto=range"), (3 * HOUR, "proto=cooperative-sticky"))):
        log.classic(start, "move", 5 + step, shared("acts", 4, names(f"m{step}", 2), client="move"), how)
        log.work("move", "acts", at, start + 25, start + HOUR, every=15, rise=4)


@tale()
def an_application_starts_with_its_topic(log: Tale) -> None:
    log.say(
        0,
        joined(
            "CG3 fresh epoch=1",
            "CG5 fresh a {born}",
            "CG6 fresh target-epoch=1",
            "CG7 fresh a {born:[0]}",
            "CG8 fresh a epoch=1 own{born:[0]}",
        ),
    )
    log.work("fresh", "born", {0: 0}, 5, 4 * HOUR, every=10, rise=10)


@tale()
def a_topic_of_a_pattern_disappears_by_plan(log: Tale) -> None:
    at: Offsets = {0: 10}
    gone: Offsets = {0: 10}
    log.classic(0, "pattern", 2, ["p@10.0.0.1/p: p1,p2 → p1-0,p2-0"])
    log.work("pattern", "p1", at, 5, 5 * HOUR, every=30, rise=3)
    log.work("pattern", "p2", gone, 6, 2 * HOUR, every=30, rise=3)
    log.classic(2 * HOUR, "pattern", 3, ["p@10.0.0.1/p: p1 → p1-0"])
    log.say(2 * HOUR + 60, "OC pattern p2-0 = X")
