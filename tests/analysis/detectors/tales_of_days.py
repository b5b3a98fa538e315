"""More tales: other sizes, times and kinds of group, and what happens around them."""

from __future__ import annotations

from .tales import DAY, HOUR, MINUTE, Offsets, Tale, Told, given, joined, names, shared, tale


@tale("IC-02")
def an_eager_rebalance_repeats_the_work_of_minutes(log: Tale) -> None:
    at: Offsets = dict.fromkeys(range(16), 400_000)
    log.classic(0, "settle", 300, shared("fills", 16, names("se", 8)))
    log.work("settle", "fills", at, 20, 5 * HOUR, every=120, rise=900)
    log.classic(5 * HOUR + 10, "settle", 301, shared("fills", 16, names("se", 7)))
    log.commit(5 * HOUR + 70, "settle", "fills", {number: at[number] - 2_600 for number in (3, 7, 11)})
    log.work("settle", "fills", at, 5 * HOUR + 200, 7 * HOUR, every=120, rise=900)


@tale("IC-05b", "IC-02", "IC-16")
def an_operator_skips_forward_past_bad_records(log: Tale) -> None:
    at: Offsets = {0: 6_000, 1: 6_100, 2: 6_200}
    log.classic(0, "parser", 3, shared("xml", 3, names("px", 1)))
    log.work("parser", "xml", at, 5, 2 * HOUR, every=30, rise=4)
    log.classic(2 * HOUR, "parser", 4, [])
    at = {number: offset + 52_000 for number, offset in at.items()}
    log.commit(2 * HOUR + 90, "parser", "xml", at)
    log.classic(2 * HOUR + 300, "parser", 5, shared("xml", 3, names("py", 1)))
    log.work("parser", "xml", at, 2 * HOUR + 330, 4 * HOUR, every=30, rise=4)


@tale("IC-39", "IC-20b", "IC-18")
def three_of_twenty_partitions_stand_still_for_a_night(log: Tale) -> None:
    log.classic(0, "gps", 70, shared("fixes", 20, names("gp", 5)))
    moving: Offsets = {number: 10_000 for number in range(20) if number not in (4, 9, 14)}
    still: Offsets = dict.fromkeys((4, 9, 14), 10_000)
    log.work("gps", "fixes", moving, 5, 9 * HOUR, every=60, rise=100)
    log.work("gps", "fixes", still, 6, 2 * HOUR, every=60, rise=100)
    for second in range(2 * HOUR, 9 * HOUR, 60):
        log.commit(second, "gps", "fixes", still)


@tale("IC-40", "IC-04")
def one_of_ten_members_times_out_again_and_again(log: Tale) -> None:
    at = dict.fromkeys(range(20), 100)
    generation = 900
    for number, start in enumerate(range(0, 5 * HOUR, 420)):
        log.classic(start, "labels", generation, shared("faces", 20, [*names("la", 9), f"la-x{number}"], host="10.11.0."))
        log.work("labels", "faces", at, start + 30, start + 290, every=60, rise=9)
        log.classic(start + 310, "labels", generation + 1, shared("faces", 20, names("la", 9), host="10.11.0."))
        generation += 2


@tale("IC-40", "IC-04")
def a_kip_848_group_loses_and_gets_a_member_every_ten_minutes(log: Tale) -> None:
    log.say(0, "CG5 dsp a {bids} | CG7 dsp a {bids:[0,1]} | CG8 dsp a epoch=1 own{bids:[0,1]}")
    at = dict.fromkeys(range(4), 100)
    epoch = 1
    for number, start in enumerate(range(0, 5 * HOUR, 600)):
        member = f"m{number}"
        log.say(
            start,
            joined(
                f"CG5 dsp {member} {{bids}}",
                f"CG3 dsp epoch={epoch + 1}",
                f"CG6 dsp target-epoch={epoch + 1}",
                f"CG7 dsp {member} {{bids:[2,3]}}",
                f"CG8 dsp {member} epoch={epoch + 1} own{{bids:[2,3]}}",
                f"CG8 dsp a epoch={epoch + 1} own{{bids:[0,1]}}",
            ),
        )
        log.work("dsp", "bids", at, start + 5, start + 290, every=15, rise=5)
        gone = joined(f"CG8 dsp {member} = X", f"CG7 dsp {member} = X", f"CG5 dsp {member} = X")
        log.say(
            start + 300,
            f"{gone} | CG3 dsp epoch={epoch + 2} | CG6 dsp target-epoch={epoch + 2} | CG8 dsp a epoch={epoch + 2} own{{bids:[0,1]}}",
        )
        epoch += 2


@tale("IC-41", "IC-24")
def a_command_line_tool_reads_with_the_id_of_a_static_group(log: Tale) -> None:
    at = dict.fromkeys(range(6), 100)
    own = [f"r{number}@10.0.1.{number}/rates#rates-{number}: fx → fx-{number},{number + 3}" for number in range(3)]
    log.classic(0, "rates", 8, own)
    log.work("rates", "fx", at, 5, 8 * HOUR, every=60, rise=5)
    log.classic(8 * HOUR, "rates", 9, [own[0], own[1], "r2@10.0.1.2/rates#rates-2: fx → fx-2", "k@172.20.3.3/kcat: fx → fx-5"])
    log.work("rates", "fx", at, 8 * HOUR + 5, 9 * HOUR + 30 * MINUTE, every=60, rise=5)


@tale("IC-07")
def a_topic_falls_back_after_it_was_created_again(log: Tale) -> None:
    at: Offsets = dict.fromkeys(range(4), 250_000)
    log.classic(0, "coupons", 2, shared("codes", 4, names("co", 2)))
    log.work("coupons", "codes", at, 5, 3 * HOUR, every=30, rise=30, details="tid=AAA")
    log.work("coupons", "codes", dict.fromkeys(range(4), 0), 4 * HOUR, 6 * HOUR, every=30, rise=30, details="tid=BBB")


@tale("IC-01", "IC-16")
def a_connector_is_paused_for_two_weeks(log: Tale) -> None:
    at: Offsets = dict.fromkeys(range(10), 1_000)
    log.classic(0, "connect-jdbc-sink", 5, shared("rows", 10, names("connector-consumer", 2), client="connector-consumer-jdbc-0"))
    log.work("connect-jdbc-sink", "rows", at, 30, 20 * HOUR, every=600, rise=500)
    log.classic(20 * HOUR, "connect-jdbc-sink", 6, [])
    log.say(
        7 * DAY + 20 * HOUR + 400,
        " | ".join(f"OC connect-jdbc-sink rows-{number} = X" for number in range(10)) + " | GM connect-jdbc-sink = X",
    )
    log.classic(14 * DAY, "connect-jdbc-sink", 1, shared("rows", 10, names("connector-consumer", 2), client="connector-consumer-jdbc-0"))
    log.work("connect-jdbc-sink", "rows", dict.fromkeys(range(10), 900_000), 14 * DAY + 40, 14 * DAY + HOUR, every=60, rise=500)


@tale("IC-25")
def a_suffix_changes_with_the_deployment(log: Tale) -> None:
    at: Offsets = dict.fromkeys(range(3), 10_000)
    log.classic(0, "ocr-blue", 4, shared("scans", 3, names("ocr", 3), client="ocr"))
    log.work("ocr-blue", "scans", at, 10, 4 * HOUR, every=30, rise=20)
    log.classic(4 * HOUR, "ocr-blue", 5, [])
    log.classic(4 * HOUR + 60, "ocr-green", 1, shared("scans", 3, names("ocr", 3), client="ocr"))
    log.work("ocr-green", "scans", dict.fromkeys(range(3), 0), 4 * HOUR + 80, 6 * HOUR, every=30, rise=800)


@tale("IC-14")
def notebooks_leave_a_group_for_each_run(log: Tale) -> None:
    for number in range(320):
        log.commit(number * 90, f"notebook_{number * 7_919 % 100_003:05d}", "training", {0: 1_000 + number})


@tale("IC-18", "IC-20b", "IC-39")
def a_kip_848_group_is_silent_while_its_topic_grows(log: Tale) -> Told:
    log.say(
        0,
        joined(
            "CG3 quota epoch=2",
            "CG5 quota q {calls}",
            "CG6 quota target-epoch=2",
            "CG7 quota q {calls:[0,1]}",
            "CG8 quota q epoch=2 own{calls:[0,1]}",
        ),
    )
    at: Offsets = {0: 10, 1: 10}
    log.work("quota", "calls", at, 5, 2 * HOUR, every=5, rise=10)
    log.work("metrics", "other", {0: 1}, 7, 6 * HOUR, every=30, rise=2)
    return given(ends={("calls", 0): at[0] + 80_000, ("calls", 1): at[1] + 80_000})


@tale("IC-29")
def a_slow_group_fell_out_of_the_retention(log: Tale) -> Told:
    log.classic(0, "archiver", 2, shared("audit", 4, names("ar", 1)))
    at: Offsets = dict.fromkeys(range(4), 1_000)
    log.work("archiver", "audit", at, 10, 10 * HOUR, every=300, rise=3)
    return given(starts={("audit", number): 500_000 for number in range(4)}, ends={("audit", number): 900_000 for number in range(4)})


@tale("IC-26")
def a_fenced_producer_aborts_for_an_hour(log: Tale) -> None:
    for number in range(200):
        log.say(number * 18, f"[T pid=404 ep={number % 5}] OC eos-geo geo-0 = {100 + number}")
        log.say(number * 18 + 3, f"[T pid=404 ep={number % 5}] MARK pid=404 ep={number % 5} ABORT")


@tale("IC-13", "IC-33", "IC-24", "IC-02")
def a_mirror_writes_over_a_live_group(log: Tale) -> None:
    at: Offsets = {0: 90_000, 1: 91_000}
    log.classic(0, "mirrored", 6, shared("m", 2, ["mm"]))
    for second in range(10, 3 * HOUR, 30):
        at = {number: offset + 25 for number, offset in at.items()}
        log.commit(second, "mirrored", "m", at)
        if second % 60 == 10:
            log.commit(second + 11, "mirrored", "m", {number: offset - 15_000 for number, offset in at.items()})


@tale("IC-05a", "IC-05b", "IC-02", "IC-16")
def a_script_deletes_offsets_of_a_live_simple_group(log: Tale) -> None:
    at: Offsets = {0: 5_000, 1: 5_100}
    log.work("spark-1", "ev", at, 0, 4 * HOUR, every=60, rise=40)
    log.say(4 * HOUR + 10, "OC spark-1 ev-0 = X | OC spark-1 ev-1 = X")
    log.work("spark-1", "ev", {0: 0, 1: 0}, 4 * HOUR + 70, 5 * HOUR, every=60, rise=4_000)


# In good health


@tale()
def a_connect_cluster_with_two_tasks(log: Tale) -> None:
    at = dict.fromkeys(range(4), 100)
    log.classic(0, "connect-es", 3, shared("docs", 4, names("connector-consumer-es", 2), client="connector-consumer-es"))
    log.work("connect-es", "docs", at, 60, 30 * HOUR, every=60, rise=40)


@tale()
def twenty_services_of_one_cluster(log: Tale) -> None:
    for number in range(20):
        group = f"service-{number}"
        at = dict.fromkeys(range(3), 10 * number)
        log.classic(number, group, 3, shared(f"topic-{number}", 3, names(group, 1), client=group))
        log.work(group, f"topic-{number}", at, 30 + number, 3 * HOUR, every=300, rise=20)


@tale()
def a_deploy_of_a_kip_848_group(log: Tale) -> None:
    at = dict.fromkeys(range(2), 10)
    log.say(0, "CG3 dep epoch=1 | CG5 dep a {t} | CG6 dep target-epoch=1 | CG7 dep a {t:[0,1]} | CG8 dep a epoch=1 own{t:[0,1]}")
    log.work("dep", "t", at, 5, HOUR, every=10, rise=10)
    log.say(HOUR, "CG8 dep a = X | CG7 dep a = X | CG5 dep a = X | CG3 dep epoch=2")
    log.say(HOUR + 20, "CG5 dep b {t} | CG3 dep epoch=3 | CG6 dep target-epoch=3 | CG7 dep b {t:[0,1]} | CG8 dep b epoch=3 own{t:[0,1]}")
    log.work("dep", "t", at, HOUR + 25, 3 * HOUR, every=10, rise=10)


@tale()
def a_cron_job_every_quarter_of_an_hour(log: Tale) -> None:
    at = dict.fromkeys(range(2), 10)
    for run in range(40):
        start = run * 15 * MINUTE
        log.classic(start, "cron", 1 + 2 * run, [f"cron-{run}@10.0.3.{run}/cron: mail → mail-0,1"])
        log.work("cron", "mail", at, start + 5, start + 60 + run % 7, every=10, rise=10)
        log.classic(start + 70 + run % 7, "cron", 2 + 2 * run, [])


@tale()
def a_group_is_deleted_and_its_id_begins_where_it_was(log: Tale) -> None:
    at: Offsets = {0: 500}
    log.classic(0, "again", 2, ["a@10.0.0.1/a: t → t-0"])
    log.work("again", "t", at, 5, HOUR, every=30, rise=10)
    log.classic(HOUR, "again", 3, [])
    log.say(HOUR + 60, "OC again t-0 = X | GM again = X")
    log.classic(HOUR + 120, "again", 1, ["b@10.0.0.1/a: t → t-0"])
    log.work("again", "t", at, HOUR + 125, 2 * HOUR, every=30, rise=10)


@tale()
def a_quiet_topic_of_a_java_consumer(log: Tale) -> Told:
    log.classic(0, "rare", 1, ["r@10.0.0.1/rare: seldom → seldom-0"])
    for second in range(5, 4 * HOUR, 5):
        log.commit(second, "rare", "seldom", {0: 12 + second // HOUR})
    return given(ends={("seldom", 0): 15})
