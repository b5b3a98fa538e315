"""Tales of memberships, of the log itself, and of groups in good health."""

from __future__ import annotations

from .tales import DAY, HOUR, MINUTE, Offsets, Tale, Told, given, joined, names, shared, tale


@tale("IC-40", "IC-04")
def a_member_is_evicted_every_five_minutes(log: Tale) -> None:
    generation, at = 10, dict.fromkeys(range(4), 1_000)
    for number, start in enumerate(range(0, 4 * HOUR, 330)):
        members = ["s1", f"s2-{number}"]
        log.classic(start, "scoring", generation, shared("loans", 4, members))
        log.work("scoring", "loans", at, start + 5, start + 295, every=30, rise=10)
        log.classic(start + 300, "scoring", generation + 1, shared("loans", 4, ["s1"]))
        generation += 2


@tale("IC-40", "IC-04")
def an_autoscaler_swings_between_three_and_six(log: Tale) -> None:
    at = dict.fromkeys(range(12), 30_000)
    for step, start in enumerate(range(0, 9 * HOUR, 9 * MINUTE)):
        log.classic(start, "resize", 200 + step, shared("pics", 12, names("rz", 3 if step % 2 else 6), host="10.9.4."))
        log.work("resize", "pics", at, start + 10, start + 9 * MINUTE - 5, every=60, rise=40)


@tale("IC-40", "IC-04")
def a_crash_loop_with_back_off_and_a_new_address_each_time(log: Tale) -> None:
    at = {0: 10, 1: 10}
    start, wait, generation = 0.0, 10.0, 1
    for life in range(45):
        log.classic(start, "notify", generation, [f"n-{life}@10.2.{life // 200}.{life % 200 + 1}/notify: sms → sms-0,1"])
        log.work("notify", "sms", at, start + 4, start + 20, every=5, rise=2)
        log.classic(start + 45, "notify", generation + 1, [])
        generation += 2
        start, wait = start + 45 + wait, min(wait * 2, 300)


@tale("IC-04", "IC-40")
def a_storm_of_rebalances(log: Tale) -> None:
    for step in range(90):
        log.classic(step * 8, "chat", 900 + step, shared("rooms", 10, names(f"c{step}", 5)))
        log.commit(step * 8 + 3, "chat", "rooms", dict.fromkeys(range(10), 100 + step))


@tale("IC-40", "IC-18", "IC-39", "IC-20")
def a_rebalance_stands_still_for_forty_minutes(log: Tale) -> None:
    at = dict.fromkeys(range(6), 1_000)
    log.classic(0, "planner", 4, shared("trips", 6, names("pl", 3)))
    log.work("planner", "trips", at, 10, 2 * HOUR, every=10, rise=10)
    other = dict.fromkeys(range(6), 1_000)
    log.classic(1, "planner-audit", 4, shared("trips", 6, ["pa"], client="pa"))
    log.work("planner-audit", "trips", other, 10, 5 * HOUR, every=10, rise=10)
    log.classic(2 * HOUR + 40 * MINUTE, "planner", 5, shared("trips", 6, names("pl", 4)))
    log.work("planner", "trips", at, 2 * HOUR + 40 * MINUTE + 10, 5 * HOUR, every=10, rise=14)


@tale("IC-19", "IC-04", "IC-40")
def two_pods_have_one_instance_id(log: Tale) -> None:
    for step in range(60):
        host = "10.7.0.3" if step % 2 else "10.7.0.8"
        log.classic(
            step * 20,
            "ingest",
            30 + step,
            [f"i-{step}@{host}/ingest#ingest-0: feed → feed-0,1", "k@10.7.0.5/ingest#ingest-1: feed → feed-2"],
        )
        log.commit(step * 20 + 9, "ingest", "feed", {0: 10 * step + 10, 1: 9 * step + 10, 2: 8 * step + 10})


@tale("IC-30", "IC-18")
def a_kip_848_member_does_not_give_up_partitions(log: Tale) -> None:
    log.say(
        0,
        joined(
            "CG3 pay848 epoch=5",
            "CG5 pay848 a {tx} timeout=300000",
            "CG6 pay848 target-epoch=5",
            "CG7 pay848 a {tx:[0,1,2,3]}",
            "CG8 pay848 a epoch=5 own{tx:[0,1,2,3]}",
        ),
    )
    at = dict.fromkeys(range(4), 100)
    log.work("pay848", "tx", at, 5, HOUR, every=10, rise=10)
    log.say(HOUR, "CG5 pay848 b {tx} | CG3 pay848 epoch=6 | CG6 pay848 target-epoch=6 | CG7 pay848 a {tx:[0,1]} | CG7 pay848 b {tx:[2,3]}")
    log.say(HOUR + 1, "CG8 pay848 a epoch=5 prev=5 state=1 own{tx:[0,1]} revoke{tx:[2,3]} | CG8 pay848 b epoch=6 prev=0 state=2 own{}")
    log.work("pay848", "tx", {0: at[0], 1: at[1]}, HOUR + 5, 4 * HOUR, every=10, rise=10)


@tale("IC-41", "IC-24")
def a_console_consumer_takes_half_of_the_partitions(log: Tale) -> None:
    at = dict.fromkeys(range(8), 4_000)
    log.classic(0, "ledger-writer", 60, shared("entries", 8, names("lw", 2), client="ledger"))
    log.work("ledger-writer", "entries", at, 10, 5 * HOUR, every=30, rise=20)
    both = [*shared("entries", 8, [*names("lw", 2), "console-consumer-1"], client="ledger")]
    both[2] = both[2].replace("/ledger", "/console-consumer").replace("10.0.0.13", "192.168.1.77")
    log.classic(5 * HOUR, "ledger-writer", 61, both)
    log.work("ledger-writer", "entries", at, 5 * HOUR + 10, 6 * HOUR, every=30, rise=20)
    log.classic(6 * HOUR, "ledger-writer", 62, shared("entries", 8, names("lw", 2), client="ledger"))
    log.work("ledger-writer", "entries", at, 6 * HOUR + 10, 8 * HOUR, every=30, rise=20)


@tale("IC-41", "IC-24")
def the_second_data_centre_joins(log: Tale) -> None:
    at = dict.fromkeys(range(9), 4_000)
    log.classic(0, "catalog", 2, shared("items", 9, names("east", 3), host="10.20.0.", client="catalog-east"))
    log.work("catalog", "items", at, 10, 6 * HOUR, every=60, rise=20)
    both = [*shared("items", 9, [*names("east", 3), *names("west", 3)], host="10.20.0.", client="catalog-east")]
    both[3:] = [each.replace("10.20.0.", "10.90.0.").replace("catalog-east", "catalog-west") for each in both[3:]]
    log.classic(6 * HOUR, "catalog", 3, both)
    log.work("catalog", "items", at, 6 * HOUR + 10, 9 * HOUR, every=60, rise=20)


@tale("IC-41", "IC-24")
def another_application_uses_the_same_group_id(log: Tale) -> None:
    users: Offsets = dict.fromkeys(range(4), 100)
    log.classic(0, "default", 9, shared("users", 4, names("u", 2), client="user-sync"))
    log.work("default", "users", users, 10, 4 * HOUR, every=30, rise=3)
    log.classic(4 * HOUR, "default", 10, [*shared("users", 4, names("u", 2), client="user-sync"), "z@10.66.0.2/geo: places → places-0,1"])
    log.work("default", "users", users, 4 * HOUR + 10, 8 * HOUR, every=30, rise=3)
    log.work("default", "places", {0: 5, 1: 5}, 4 * HOUR + 12, 8 * HOUR, every=30, rise=3)


@tale("IC-41", "IC-24")
def a_developer_laptop_joins_a_kip_848_group(log: Tale) -> None:
    log.say(0, "CG3 tax epoch=2 | CG6 tax target-epoch=2")
    for member, number in (("t1", 0), ("t2", 1), ("t3", 2)):
        log.say(
            1,
            joined(
                f"CG5 tax {member} {{returns}} client=tax host=/10.5.0.{number}",
                f"CG7 tax {member} {{returns:[{number}]}}",
                f"CG8 tax {member} epoch=2 own{{returns:[{number}]}}",
            ),
        )
    at = dict.fromkeys(range(3), 100)
    log.work("tax", "returns", at, 5, 5 * HOUR, every=20, rise=10)
    log.say(
        5 * HOUR,
        joined(
            "CG5 tax lap {returns} client=intellij host=/192.168.178.20",
            "CG3 tax epoch=3",
            "CG6 tax target-epoch=3",
            "CG7 tax lap {returns:[2]}",
            "CG7 tax t3 {returns:[]}",
            "CG8 tax t3 epoch=3 prev=2 own{}",
            "CG8 tax lap epoch=3 own{returns:[2]}",
        ),
    )
    log.work("tax", "returns", at, 5 * HOUR + 10, 7 * HOUR, every=20, rise=10)


@tale("IC-14")
def previews_with_hexadecimal_names(log: Tale) -> None:
    for number in range(400):
        group = f"preview-{number * 2_654_435_761 % 2**32:08x}-{number * 40_503 % 65_536:04x}-tab"
        log.classic(number * 30, group, 1, [f"m{number}@10.0.0.5/web: pages → pages-0"])
        log.commit(number * 30 + 3, group, "pages", {0: 100 + number})


@tale("IC-14")
def a_group_for_each_job_and_date(log: Tale) -> None:
    for number in range(360):
        group = f"job.export.2024-{number % 12 + 1:02}-{number % 28 + 1:02}.run{number}"
        log.commit(number * 120, group, "exports", {0: 5 * number, 1: 5 * number})


@tale("IC-12")
def a_group_floods_the_log_with_commits(log: Tale) -> None:
    at = dict.fromkeys(range(16), 10)
    log.classic(0, "per-record", 2, shared("ticks", 16, names("pr", 2)))
    for second in range(900):
        at = {number: offset + 1 for number, offset in at.items()}
        for _ in range(4):
            log.commit(second, "per-record", "ticks", at)
    calm: Offsets = dict.fromkeys(range(4), 10)
    log.work("calm", "ticks2", calm, 0, 300, every=60, rise=5)


@tale("IC-08")
def a_transaction_hangs_for_hours(log: Tale) -> None:
    at: Offsets = dict.fromkeys(range(2), 100)
    log.say(0, "[T pid=71 ep=3] OC eos-a moves-0 = 500 | OC eos-a moves-1 = 510")
    log.work("eos-b", "stays", at, 10, 30 * HOUR, every=300, rise=3)


@tale("IC-26")
def the_last_commits_of_a_group_are_aborted(log: Tale) -> None:
    for number in range(30):
        log.say(number * 60, f"[T pid=9 ep=1] OC eos-sum sums-0 = {100 + number} | OC eos-sum sums-1 = {200 + number}")
        log.say(number * 60 + 2, "[T pid=9 ep=1] MARK pid=9 ep=1 ABORT")


@tale("IC-32")
def metadata_of_a_commit_is_huge(log: Tale) -> None:
    at: Offsets = {0: 10}
    log.work("meta-heavy", "docs", at, 0, HOUR, every=60, rise=2, details="md=" + '"' + "x" * 3_900 + '"')


@tale("IC-34")
def one_member_has_nearly_everything(log: Tale) -> None:
    rest = ",".join(map(str, range(2, 32)))
    members = [f"big@10.0.0.1/fan: fan → fan-{rest}", "one@10.0.0.2/fan: fan → fan-0", "two@10.0.0.3/fan: fan → fan-1"]
    log.classic(0, "fan-out", 3, members)
    log.work("fan-out", "fan", dict.fromkeys(range(32), 50), 5, 4 * HOUR, every=60, rise=5)
    log.classic(4 * HOUR, "fan-out", 4, members)


@tale("IC-11")
def two_members_own_one_partition(log: Tale) -> None:
    log.classic(0, "dupes", 2, ["a@10.0.0.1/d: q → q-0,1", "b@10.0.0.2/d: q → q-1,2"])
    log.work("dupes", "q", dict.fromkeys(range(3), 50), 5, 2 * HOUR, every=60, rise=5)


@tale("IC-31")
def a_group_flips_between_the_protocols(log: Tale) -> None:
    for step in range(6):
        start = step * 1_200
        if step % 2 == 0:
            log.classic(start, "flip", 3 + step, ["f@10.0.0.1/f: t → t-0"])
            log.commit(start + 30, "flip", "t", {0: 10 + step})
        else:
            log.say(
                start,
                joined(
                    "GM flip = X",
                    "CG5 flip f {t}",
                    f"CG3 flip epoch={3 + step}",
                    f"CG6 flip target-epoch={3 + step}",
                    "CG7 flip f {t:[0]}",
                    f"CG8 flip f epoch={3 + step} own{{t:[0]}}",
                ),
            )
            log.commit(start + 30, "flip", "t", {0: 10 + step})
            log.say(start + 1_199, "CG8 flip f = X | CG7 flip f = X | CG6 flip = X | CG5 flip f = X | CG3 flip = X")


@tale("IC-27")
def a_group_without_offsets_begins_anew(log: Tale) -> None:
    log.classic(0, "tail-f", 44, ["t@10.0.0.9/tail: logs → logs-0"])
    log.classic(HOUR, "tail-f", 45, [])
    log.say(HOUR + 400, "GM tail-f = X")
    log.classic(8 * DAY, "tail-f", 1, ["u@10.0.0.9/tail: logs → logs-0"])
    log.classic(8 * DAY + HOUR, "tail-f", 2, ["v@10.0.0.9/tail: logs → logs-0"])


@tale("IC-37")
def no_coordinator_for_half_an_hour(log: Tale) -> None:
    for group in ("alpha", "beta", "gamma", "delta", "epsilon"):
        at: Offsets = dict.fromkeys(range(3), 100)
        log.classic(0, group, 4, shared(f"t-{group}", 3, [group], client=group))
        log.work(group, f"t-{group}", at, 5, HOUR, every=10, rise=3)
        log.work(group, f"t-{group}", at, HOUR + 30 * MINUTE, 3 * HOUR, every=10, rise=3)
    log.say(HOUR + 30 * MINUTE - 1, "[e=4] OC alpha t-alpha-0 = 2000")


@tale("IC-20a")
def a_member_reads_a_topic_that_no_member_is_assigned(log: Tale) -> Told:
    members = ["a@10.0.0.1/s: in,side → in-0,1", "b@10.0.0.2/s: in,side → in-2,3"]
    log.classic(0, "side", 3, members)
    log.work("side", "in", dict.fromkeys(range(4), 10), 5, 4 * HOUR, every=60, rise=5)
    return given(topics={"in": 4, "side": 3}, ends={("side", 0): 900, ("side", 1): 900, ("side", 2): 900})


@tale("IC-40", "IC-04", "IC-19")
def a_static_member_restarts_every_six_minutes(log: Tale) -> None:
    at = dict.fromkeys(range(4), 100)
    for step, start in enumerate(range(0, 5 * HOUR, 6 * MINUTE)):
        members = [f"s{step}@10.0.0.4/st#st-0: h → h-0,1", "z@10.0.0.5/st#st-1: h → h-2,3"]
        log.classic(start, "steady", 12 + step, members)
        log.work("steady", "h", at, start + 5, start + 6 * MINUTE - 30, every=30, rise=3)


@tale("IC-40", "IC-04")
def a_large_group_rolls_for_hours(log: Tale) -> None:
    at = dict.fromkeys(range(40), 100)
    for step, start in enumerate(range(0, 6 * HOUR, 4 * MINUTE)):
        members = [f"g-{number}-{(step + number) // 20}" for number in range(20)]
        log.classic(start, "grid", 100 + step, shared("cells", 40, members, host="10.8.0."))
        log.work("grid", "cells", at, start + 20, start + 4 * MINUTE - 20, every=100, rise=3)


# In good health


@tale()
def a_quiet_group_of_one(log: Tale) -> None:
    log.classic(0, "backup", 1, ["b@10.0.0.1/backup: files → files-0"])
    log.work("backup", "files", {0: 0}, 10, 10 * HOUR, every=600, rise=3)


@tale()
def a_rolling_restart_every_day(log: Tale) -> None:
    at = dict.fromkeys(range(6), 100)
    generation = 5
    for day in range(4):
        start = day * DAY
        for step in range(4):
            members = [f"p{number}-{day + (number < step)}" for number in range(3)]
            log.classic(start + step * 40, "portal", generation, shared("news", 6, members))
            generation += 1
        log.work("portal", "news", at, start + 200, start + DAY - 60, every=900, rise=30)


@tale()
def an_autoscaler_follows_the_day(log: Tale) -> None:
    at = dict.fromkeys(range(12), 100)
    for day in range(3):
        for step, (hour, size) in enumerate(((0, 2), (7, 4), (10, 6), (18, 3))):
            start = day * DAY + hour * HOUR
            log.classic(start, "web-events", 50 + 4 * day + step, shared("hits", 12, names("w", size)))
            log.work("web-events", "hits", at, start + 30, start + 3 * HOUR, every=300, rise=100 * size)


@tale()
def a_nightly_batch_in_time(log: Tale) -> None:
    at = dict.fromkeys(range(3), 1_000)
    for night in range(8):
        start = night * DAY + 3 * HOUR
        log.classic(start, "dwh", 10 + 2 * night, shared("sales", 3, ["dwh-1"]))
        log.work("dwh", "sales", at, start + 5, start + 30 * MINUTE, every=15, rise=800)
        log.classic(start + 31 * MINUTE, "dwh", 11 + 2 * night, [])


@tale()
def a_partition_without_traffic(log: Tale) -> Told:
    log.classic(0, "alerts", 2, shared("alarms", 3, names("al", 3)))
    at: Offsets = {0: 10, 1: 10}
    log.work("alerts", "alarms", at, 5, 6 * HOUR, every=5 * MINUTE, rise=1)
    for second in range(7, 6 * HOUR, 60):
        log.commit(second, "alerts", "alarms", {2: 400})
    return given(ends={("alarms", 0): at[0], ("alarms", 1): at[1], ("alarms", 2): 400})


@tale()
def a_kip_848_group_scales_out(log: Tale) -> None:
    log.say(0, "CG3 up epoch=1 | CG5 up a {t} | CG6 up target-epoch=1 | CG7 up a {t:[0,1]} | CG8 up a epoch=1 own{t:[0,1]}")
    at = {0: 0, 1: 0}
    log.work("up", "t", at, 5, HOUR, every=10, rise=10)
    log.say(HOUR, "CG5 up b {t} | CG3 up epoch=2 | CG6 up target-epoch=2 | CG7 up a {t:[0]} | CG7 up b {t:[1]}")
    log.say(HOUR + 2, "CG8 up a epoch=2 prev=1 own{t:[0]}")
    log.say(HOUR + 4, "CG8 up b epoch=2 own{t:[1]}")
    log.work("up", "t", at, HOUR + 10, 3 * HOUR, every=10, rise=10)


@tale()
def a_topic_grows_and_its_group_follows(log: Tale) -> Told:
    at = dict.fromkeys(range(3), 100)
    log.classic(0, "grow", 2, shared("g", 3, names("g", 3)))
    log.work("grow", "g", at, 5, HOUR, every=20, rise=5)
    log.classic(HOUR, "grow", 3, shared("g", 6, names("g", 3)))
    at |= dict.fromkeys(range(3, 6), 0)
    log.work("grow", "g", at, HOUR + 15, 3 * HOUR, every=20, rise=5)
    return given(topics={"g": 6})


@tale()
def two_static_members_are_replaced_in_a_deploy(log: Tale) -> None:
    at = dict.fromkeys(range(2), 100)
    log.classic(0, "pairs", 2, ["a@10.0.0.1/p#p-0: x → x-0", "b@10.0.0.2/p#p-1: x → x-1"])
    log.work("pairs", "x", at, 5, HOUR, every=20, rise=5)
    log.classic(HOUR, "pairs", 2, ["a2@10.0.0.8/p#p-0: x → x-0", "b@10.0.0.2/p#p-1: x → x-1"])
    log.classic(HOUR + 30, "pairs", 2, ["a2@10.0.0.8/p#p-0: x → x-0", "b2@10.0.0.9/p#p-1: x → x-1"])
    log.work("pairs", "x", at, HOUR + 40, 3 * HOUR, every=20, rise=5)


@tale()
def a_group_is_deleted_after_its_end(log: Tale) -> None:
    log.classic(0, "one-off", 1, ["o@10.0.0.1/o: t → t-0"])
    log.work("one-off", "t", {0: 0}, 5, HOUR, every=30, rise=90)
    log.classic(HOUR, "one-off", 2, [])
    log.say(2 * HOUR, "OC one-off t-0 = X | GM one-off = X")


@tale()
def transactions_commit_offsets(log: Tale) -> None:
    for number in range(100):
        log.say(number * 30, f"[T pid=5 ep=0] OC eos t-0 = {100 + number * 7} | OC eos t-1 = {90 + number * 6}")
        log.say(number * 30 + 1, "[T pid=5 ep=0] MARK pid=5 ep=0 COMMIT")


@tale()
def a_consumer_catches_up_after_an_outage_of_two_hours(log: Tale) -> None:
    at = dict.fromkeys(range(3), 10_000)
    log.classic(0, "lagger", 4, shared("s", 3, ["l1"]))
    log.work("lagger", "s", at, 10, 3 * HOUR, every=20, rise=20)
    log.classic(3 * HOUR, "lagger", 5, [])
    log.classic(5 * HOUR, "lagger", 6, shared("s", 3, ["l2"]))
    log.work("lagger", "s", at, 5 * HOUR + 10, 5 * HOUR + 20 * MINUTE, every=20, rise=200)
    log.work("lagger", "s", at, 5 * HOUR + 20 * MINUTE, 8 * HOUR, every=20, rise=20)


@tale()
def a_batch_consumer_commits_in_large_steps(log: Tale) -> None:
    at = dict.fromkeys(range(2), 0)
    log.classic(0, "s3-sink", 3, shared("logs", 2, names("s3", 2)))
    log.work("s3-sink", "logs", at, 60, 20 * HOUR, every=15 * MINUTE, rise=50_000)
