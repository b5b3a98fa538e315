"""Tales of night shifts: other sizes and times of what operators saw, and of what only looked like it."""

from __future__ import annotations

from .tales import DAY, HOUR, MINUTE, Offsets, Tale, Told, given, names, shared, tale


@tale("IC-18")
def the_consumers_were_scaled_to_zero_on_friday(log: Tale) -> Told:
    at: Offsets = dict.fromkeys(range(12), 90_000)
    log.classic(0, "loyalty", 70, shared("points", 12, names("ly", 4), client="loyalty"))
    log.work("loyalty", "points", at, 20, 7 * HOUR, every=30, rise=25)
    log.classic(7 * HOUR, "loyalty", 71, shared("points", 12, names("ly", 2), client="loyalty"))
    log.classic(7 * HOUR + 30, "loyalty", 72, [])
    log.work("rest", "r", {0: 1}, 0, 2 * DAY, every=600, rise=2)
    return given(ends={("points", number): at[number] + 120_000 for number in range(12)})


@tale("IC-18", "IC-39", "IC-20b")
def a_database_slows_one_application_down(log: Tale) -> None:
    quick: Offsets = dict.fromkeys(range(2), 1_000)
    slow: Offsets = dict.fromkeys(range(2), 1_000)
    log.classic(0, "cache", 3, shared("stock", 2, ["c1"], client="cache"))
    log.classic(1, "dbwriter", 3, shared("stock", 2, ["w1"], client="dbwriter"))
    log.work("cache", "stock", quick, 10, 12 * HOUR, every=10, rise=40)
    log.work("dbwriter", "stock", slow, 11, 4 * HOUR, every=10, rise=40)
    log.work("dbwriter", "stock", slow, 4 * HOUR + 11, 12 * HOUR, every=10, rise=9)


@tale("IC-18")
def a_deadlock_holds_a_group_for_an_hour(log: Tale) -> None:
    at: Offsets = dict.fromkeys(range(3), 1_000)
    other: Offsets = dict.fromkeys(range(3), 1_000)
    log.classic(0, "tax", 4, shared("inv", 3, names("tx", 3), client="tax"))
    log.classic(1, "fraud", 4, shared("inv", 3, ["f"], client="fraud"))
    log.work("tax", "inv", at, 10, 3 * HOUR, every=15, rise=10)
    log.work("fraud", "inv", other, 12, 7 * HOUR, every=15, rise=10)
    log.work("tax", "inv", at, 4 * HOUR + 10, 7 * HOUR, every=15, rise=13)


@tale("IC-37")
def a_full_disk_stops_six_groups(log: Tale) -> None:
    for place in range(6):
        group = f"dept-{chr(97 + place)}-app"
        at: Offsets = dict.fromkeys(range(2), 300)
        log.classic(place, group, 9, shared(f"in-{place}", 2, [f"{group}-m"], client=group))
        for start, end in ((5, 2 * HOUR), (2 * HOUR + 40 * MINUTE, 4 * HOUR)):
            log.work(group, f"in-{place}", at, start + place, end, every=15, rise=3)
            log.commit(end + place, group, f"in-{place}", at)
    log.say(2 * HOUR + 40 * MINUTE - 1, "[e=9] OC dept-a-app in-0-0 = 9000")


@tale("IC-05b", "IC-02")
def a_savepoint_of_last_week_is_restored(log: Tale) -> None:
    at: Offsets = dict.fromkeys(range(10), 4_000_000)
    log.work("flink-risk", "trades", at, 0, 6 * HOUR, every=120, rise=900)
    at = {number: offset - 2_000_000 for number, offset in at.items()}
    log.work("flink-risk", "trades", at, 6 * HOUR + 900, 9 * HOUR, every=120, rise=5_000)


@tale("IC-05b", "IC-02")
def a_release_seeks_back_one_day(log: Tale) -> None:
    at: Offsets = dict.fromkeys(range(4), 500_000)
    log.classic(0, "scorer", 4, shared("bids", 4, ["s1"], client="scorer"))
    log.work("scorer", "bids", at, 10, 3 * HOUR, every=10, rise=20)
    at = {number: offset - 80_000 for number, offset in at.items()}
    log.work("scorer", "bids", at, 3 * HOUR + 30, 5 * HOUR, every=10, rise=60)


@tale("IC-05a", "IC-07")
def a_topic_is_dropped_and_made_again_by_terraform(log: Tale) -> None:
    for place, group in enumerate(("ter-a", "ter-b")):
        at: Offsets = dict.fromkeys(range(3), 44_000)
        log.classic(place, group, 3, shared("infra", 3, [group], client=group))
        log.work(group, "infra", at, 10 + place, 2 * HOUR, every=60, rise=4)
        log.say(2 * HOUR + 30, " | ".join(f"OC {group} infra-{number} = X" for number in range(3)))
        log.work(group, "infra", dict.fromkeys(range(3), 1), 2 * HOUR + 300 + place, 4 * HOUR, every=60, rise=4)


@tale("IC-25")
def a_blue_group_takes_over_in_another_partition(log: Tale) -> Told:
    log.work("rest", "r", {0: 1}, 0, 5 * HOUR, every=300, rise=2)
    at: Offsets = dict.fromkeys(range(2), 2_000_000)
    log.classic(HOUR, "pricing-blue", 1, shared("px", 2, names("p", 2), client="pricing"))
    log.work("pricing-blue", "px", at, HOUR + 20, 5 * HOUR, every=30, rise=50)
    return given(starts={("px", 0): 150_000, ("px", 1): 160_000}, ends={("px", n): at[n] + 30 for n in (0, 1)})


@tale("IC-26")
def a_fenced_streams_application_never_commits_again(log: Tale) -> None:
    for number in range(200):
        log.say(number * 30, f"[T pid=6 ep=0] OC ks s-0 = {100 + number * 7}")
        log.say(number * 30 + 1, "[T pid=6 ep=0] MARK pid=6 ep=0 COMMIT")
    for number in range(40):
        log.say(6_100 + number * 60, f"[T pid=6 ep={number + 1}] OC ks s-0 = 1600")
        log.say(6_110 + number * 60, f"[T pid=6 ep={number + 2}] MARK pid=6 ep={number + 2} ABORT")


@tale("IC-40", "IC-04")
def a_memory_leak_kills_each_pod_after_ten_minutes(log: Tale) -> None:
    at = dict.fromkeys(range(6), 100)
    generation = 40
    for number in range(36):
        start = number * 10 * MINUTE
        log.classic(start, "leaky", generation, shared("docs", 6, [f"lk-{number}", f"lk-{number + 1}", f"lk-{number + 2}"], host="10.6.1."))
        log.work("leaky", "docs", at, start + 10, start + 9 * MINUTE, every=30, rise=5)
        log.classic(
            start + 9 * MINUTE + 20, "leaky", generation + 1, shared("docs", 6, [f"lk-{number + 1}", f"lk-{number + 2}"], host="10.6.1.")
        )
        generation += 2


@tale("IC-07", "IC-02", "IC-05b")
def an_unclean_election_cuts_one_partition_of_a_topic(log: Tale) -> None:
    for place, group in enumerate(("cut-a", "cut-b", "cut-c")):
        at: Offsets = dict.fromkeys(range(6), 50_000)
        log.classic(place, group, 3, shared("orders", 6, [group], client=group))
        log.work(group, "orders", at, 10 + place, 2 * HOUR, every=20, rise=10, details="le=7")
        at[3] -= 3_000
        cut: Offsets = {3: at.pop(3)}
        log.work(group, "orders", at, 2 * HOUR + 10 + place, 4 * HOUR, every=20, rise=10, details="le=7")
        log.work(group, "orders", cut, 2 * HOUR + 40 + place, 4 * HOUR, every=20, rise=10, details="le=8")


@tale("IC-07", "IC-02", "IC-05b")
def a_partition_of_one_group_was_truncated(log: Tale) -> None:
    at: Offsets = dict.fromkeys(range(3), 50_000)
    log.classic(0, "trunc", 3, shared("orders", 3, ["a"], client="a"))
    log.work("trunc", "orders", at, 10, 2 * HOUR, every=20, rise=10, details="le=7")
    cut: Offsets = {1: at.pop(1) - 900}
    log.work("trunc", "orders", at, 2 * HOUR + 10, 4 * HOUR, every=20, rise=10, details="le=7")
    log.work("trunc", "orders", cut, 2 * HOUR + 40, 4 * HOUR, every=20, rise=10, details="le=8")


@tale("IC-37")
def a_flapping_broker_leads_the_partition_every_few_minutes(log: Tale) -> None:
    at: Offsets = dict.fromkeys(range(3), 50)
    log.classic(0, "g1", 3, shared("o", 3, ["a"], client="a"))
    for step in range(40):
        log.say(step * 150 + 3, f"[e={10 + step}] OC g2 x-0 = {step}")
        log.work("g1", "o", at, step * 150 + 10, step * 150 + 100, every=20, rise=10)


# In good health


@tale()
def a_backlog_is_read_slower_and_slower_since_it_shrinks(log: Tale) -> Told:
    at: Offsets = {0: 0}
    log.classic(0, "catcher", 3, shared("big", 1, ["c"], client="catcher"))
    log.work("catcher", "big", at, 5, 2 * HOUR, every=10, rise=900)
    log.work("catcher", "big", at, 2 * HOUR + 5, 6 * HOUR, every=10, rise=30)
    return given(ends={("big", 0): at[0] + 90})


@tale()
def a_new_group_reads_a_huge_topic_from_the_beginning(log: Tale) -> Told:
    at: Offsets = dict.fromkeys(range(3), 0)
    log.classic(0, "reindex", 1, shared("all", 3, ["x"], client="reindex"))
    log.work("reindex", "all", at, 5, 5 * HOUR, every=15, rise=500)
    return given(starts={("all", n): 0 for n in range(3)}, ends={("all", n): 90_000_000 for n in range(3)})


@tale()
def a_weekday_service_rests_at_the_weekend(log: Tale) -> Told:
    at = dict.fromkeys(range(2), 1_000)
    for day in (0, 1, 2, 3, 4, 7, 8):
        start = day * DAY + 8 * HOUR
        log.classic(start, "office", 10 + 2 * day, shared("forms", 2, ["o1"], client="office"))
        log.work("office", "forms", at, start + 5, start + 9 * HOUR, every=120, rise=5)
        log.classic(start + 9 * HOUR + 30, "office", 11 + 2 * day, [])
    log.work("rest", "r", {0: 1}, 0, 9 * DAY, every=HOUR, rise=2)
    return given(ends={("forms", n): at[n] + 40 for n in (0, 1)})


@tale()
def three_batch_groups_run_at_the_same_hours(log: Tale) -> None:
    for place, group in enumerate(("b-one", "b-two", "b-three")):
        at: Offsets = {0: 100}
        for run in range(4):
            start = run * 6 * HOUR + place * 10
            log.classic(start, group, 3 + 2 * run, [f"{group}-{run}@10.0.0.{place}/{group}: d{place} → d{place}-0"])
            log.work(group, f"d{place}", at, start + 5, start + 30 * MINUTE, every=10, rise=5)
            log.classic(start + 31 * MINUTE, group, 4 + 2 * run, [])


@tale()
def a_consumer_repeats_some_records_after_a_crash(log: Tale) -> None:
    at: Offsets = dict.fromkeys(range(3), 10_000)
    log.classic(0, "robust", 3, shared("t", 3, ["a"], client="robust"))
    log.work("robust", "t", at, 5, 2 * HOUR, every=30, rise=50)
    log.classic(2 * HOUR + 40, "robust", 4, [])
    log.classic(2 * HOUR + 60, "robust", 5, shared("t", 3, ["b"], client="robust"))
    log.work("robust", "t", at, 2 * HOUR + 70, 4 * HOUR, every=30, rise=50)


@tale()
def a_test_environment_is_stopped_for_lunch(log: Tale) -> None:
    for place, group in enumerate(("ta", "tb", "tc", "td")):
        at: Offsets = {0: 100}
        log.classic(place, group, 3, [f"{group}@10.0.0.{place}/{group}: d{place} → d{place}-0"])
        log.work(group, f"d{place}", at, 5 + place, 2 * HOUR, every=10, rise=5)
        log.work(group, f"d{place}", at, 3 * HOUR + place, 5 * HOUR, every=10, rise=5)


@tale()
def a_mirror_starts_again(log: Tale) -> None:
    at: Offsets = {0: 100, 1: 110}
    for second in range(0, 6 * HOUR, 60):
        at = {number: offset + 7 for number, offset in at.items()}
        if not 3 * HOUR < second < 3 * HOUR + 20 * MINUTE:
            log.commit(second, "mm-app", "src.t", at)


@tale()
def a_group_with_a_date_in_its_id_begins_with_its_topic(log: Tale) -> Told:
    at: Offsets = {0: 0}
    log.classic(0, "import-20240108", 1, ["i@10.0.0.9/import: rows → rows-0"])
    log.work("import-20240108", "rows", at, 5, 2 * HOUR, every=10, rise=50)
    return given(starts={("rows", 0): 0}, ends={("rows", 0): at[0]})


@tale()
def a_rolling_restart_of_the_brokers_moves_the_leader(log: Tale) -> None:
    at: Offsets = dict.fromkeys(range(3), 50)
    log.classic(0, "g1", 3, shared("o", 3, ["a"], client="a"))
    for step in range(5):
        log.say(step * 300 + 3, f"[e={10 + step}] OC g2 x-0 = {step}")
        log.work("g1", "o", at, step * 300 + 10, step * 300 + 250, every=20, rise=10)


@tale()
def a_leader_changes_and_nothing_is_lost(log: Tale) -> None:
    at: Offsets = dict.fromkeys(range(3), 50_000)
    log.classic(0, "calm", 3, shared("orders", 3, ["a"], client="a"))
    log.work("calm", "orders", at, 10, 2 * HOUR, every=20, rise=10, details="le=7")
    log.work("calm", "orders", at, 2 * HOUR + 10, 4 * HOUR, every=20, rise=10, details="le=8")
