"""Membership and assignment: for each class a log that has it, and one that must not be taken for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from exhume.analysis.detectors import Inputs
from exhume.findings import Finding
from exhume.replay.topic_names import Topic
from tests.analysis.detectors.story import Story, codes_of, evidence_offsets, said, time_ms


def found(directory: Path, story: str, inputs: Inputs | None = None) -> list[Finding]:
    return Story(story).findings(directory, inputs)


def topics(**counts: int) -> Inputs:
    return Inputs(topics=[Topic(topic, None, count, None) for topic, count in counts.items()])


# IC-04


def storm_lines(*, repeats: int = 20, flapper: str = "B{n}@h2/b", step_s: int = 155) -> str:
    lines: list[str] = []
    for number in range(repeats):
        begin_s = 36_000 + number * step_s
        for at_s, generation, with_b in ((0, 0, True), (40, 2, False), (70, 3, True), (115, 5, False)):
            seconds = begin_s + at_s
            clock = f"{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
            b = "; " + flapper.format(n=len(lines)) if with_b else ""
            lines.append(f"{len(lines)} d0 {clock}  GM g gen={100 + 6 * number + generation} {{A@h1/a: t → t-0{b}}}")
    return "\n".join(lines)


def test_a_storm_names_who_comes_and_goes_and_counts_what_was_never_stored(tmp_path: Path) -> None:
    finding = said(found(tmp_path, storm_lines()), "IC-04")

    assert finding.confidence == "proof"
    assert "119 generations in 51 minutes, 2.3 a minute; 40 of them never got an assignment" in finding.sentence
    assert "b@h2 79 times" in finding.sentence


def test_where_the_records_are_gone_the_numbers_tell_of_a_storm(tmp_path: Path) -> None:
    story = """
        0   d0 10:00:00  GM g gen=100 {A@h1/a}
        500 d0 10:40:00  GM g gen=180 {A@h1/a}
    """
    finding = said(found(tmp_path, story), "IC-04")

    assert finding.confidence == "likely"
    assert "79 of them are not in the log" in finding.sentence
    assert "rolling restart" in (finding.not_excluded or "")


@pytest.mark.parametrize(
    "story",
    [
        pytest.param(storm_lines(repeats=6, flapper="B{n}@h{n}/b{n}"), id="everybody comes and goes once"),
        pytest.param(storm_lines(repeats=4), id="nine minutes"),
        pytest.param(storm_lines(step_s=1200), id="once in a while"),
    ],
)
def test_what_is_no_storm(tmp_path: Path, story: str) -> None:
    assert "IC-04" not in codes_of(found(tmp_path, story))


# IC-11


def test_a_partition_in_two_assignments_of_a_generation(tmp_path: Path) -> None:
    story = """
        0 d0 10:00:00  GM g gen=7 pt=consumer {A@h1/a: t → t-0,t-1; B@h2/b: t → t-1,t-2}
        1 d0 10:00:05  OC g t-1 = 5
        2 d0 10:10:00  GM g gen=8 pt=consumer {A@h1/a: t → t-0,t-1; B@h2/b: t → t-2}
    """
    finding = said(found(tmp_path, story), "IC-11")

    assert (finding.severity, finding.confidence, finding.topic, finding.partition) == ("incident", "proof", "t", 1)
    assert "1 partition owned twice from generation 7 on, for 10 min: t-1 by a@h1 (A) and b@h2 (B)" in finding.sentence
    assert evidence_offsets(finding) == [0, 2]


def test_a_member_of_a_consumer_group_that_took_what_another_has_not_given_up(tmp_path: Path) -> None:
    story = """
        0 d0 10:00:00  CG3 g epoch=2 | CG8 g m1 epoch=2 own{t:[0]} revoke{t:[1]}
        1 d0 10:00:05  CG8 g m2 epoch=2 own{t:[1]} revoke{}
    """
    assert said(found(tmp_path, story), "IC-11").partition == 1


def test_inside_a_batch_nothing_is_owned_twice(tmp_path: Path) -> None:
    story = """
        0 d0 10:00:00  CG3 g epoch=2 | CG8 g m1 epoch=2 own{t:[0,1]} revoke{}
        2 d0 10:00:05  CG8 g m2 epoch=2 own{t:[1]} revoke{} | CG8 g m1 epoch=2 own{t:[0]} revoke{}
    """
    assert "IC-11" not in codes_of(found(tmp_path, story))


def test_where_compaction_was_a_consumer_group_is_not_judged(tmp_path: Path) -> None:
    story = """
        0 d0 10:00:00  CG3 g epoch=2 | CG8 g m1 epoch=2 own{t:[0,1]} revoke{}
        9 d0 10:00:05  CG8 g m2 epoch=2 own{t:[1]} revoke{}
        20 d0 10:00:06  CG8 g m1 epoch=3 own{t:[0]} revoke{}
    """
    findings = found(tmp_path, story)

    assert "IC-11" not in codes_of(findings)
    assert said(findings, "IC-11").confidence == "undecidable"


def test_an_assignor_of_ones_own_may_mean_it(tmp_path: Path) -> None:
    finding = said(found(tmp_path, "0 d0 10:00:00  GM g gen=7 proto=broadcast {A@h1/a: t → t-0; B@h2/b: t → t-0}"), "IC-11")

    assert (finding.severity, finding.confidence) == ("info", "possible")


# IC-20


_HOLE = """
    0 d0 09:50:00  GM g gen=4 {A@h1/a: t → t-0,t-1,t-2,t-3}
    1 d0 09:58:00  OC g t-3 = 77
    2 d0 10:00:00  GM g gen=5 {A@h1/a: t → t-0,t-1; B@h2/b: t → t-2}
    3 d0 10:30:00  GM g gen=6 {A@h1/a: t → t-0,t-1; B@h2/b: t → t-2}
    4 d0 10:31:00  OC g t-0 = 10
"""


def test_a_partition_without_an_owner_over_two_generations(tmp_path: Path) -> None:
    finding = said(found(tmp_path, _HOLE, topics(t=4)), "IC-20a")

    assert (finding.severity, finding.confidence, finding.topic, finding.partition) == ("incident", "likely", "t", 3)
    assert "nobody had t-3 from record 2 on, in 2 steps of the group over 31 min, and still so" in finding.sentence
    assert "commits stopped with record 1" in finding.sentence


def test_without_partition_counts_a_hole_is_possible_and_more_is_undecidable(tmp_path: Path) -> None:
    findings = [finding for finding in found(tmp_path, _HOLE) if finding.code == "IC-20a"]

    assert [finding.confidence for finding in findings] == ["possible", "undecidable"]
    assert "t has at least 4 partitions" in findings[1].sentence
    assert findings[1].remedy == "Give --topics"


def test_with_fewer_partitions_nothing_is_missing_and_nothing_undecided(tmp_path: Path) -> None:
    story = "0 d0 10:00:00  GM g gen=5 {A@h1/a: t → t-0; B@h2/b: t}\n1 d0 10:30:00  GM g gen=6 {A@h1/a: t → t-0; B@h2/b: t}"

    assert [finding.code for finding in found(tmp_path, story, topics(t=1)) if finding.code.startswith("IC-20")] == []


def test_a_cooperative_rebalance_leaves_partitions_to_nobody_for_a_moment(tmp_path: Path) -> None:
    story = """
        0 d0 10:00:00  GM g gen=5 proto=cooperative-sticky {A@h1/a: t → t-0,t-1}
        1 d0 10:00:10  GM g gen=6 proto=cooperative-sticky {A@h1/a: t → t-0; B@h2/b: t}
        2 d0 10:00:12  GM g gen=7 proto=cooperative-sticky {A@h1/a: t → t-0; B@h2/b: t → t-1}
        3 d0 11:00:00  OC g t-0 = 1
    """
    assert codes_of(found(tmp_path, story, topics(t=2))) == set()


_SILENT = """
    0 d0 09:55:00  GM g gen=5 {A@h1/a: t → t-0,t-1,t-2}
    1 d0 09:55:05  OC g t-0 = 1{n} | OC g t-1 = 2{n} | OC g t-2 = 3{n}  8 × every 5 s
    25 d0 10:00:00  [e=1] OC g t-0 = 10{n} | OC g t-1 = 20{n}  9 × every 30 s
"""


def test_an_owner_that_is_silent_on_one_partition(tmp_path: Path) -> None:
    finding = said(found(tmp_path, _SILENT), "IC-20b")

    assert (finding.severity, finding.confidence, finding.partition, finding.member_id) == ("info", "possible", 2, "A")
    assert "2 other partitions went on" in finding.sentence
    assert "without traffic" in (finding.not_excluded or "")


def test_with_end_offsets_a_silent_owner_is_behind(tmp_path: Path) -> None:
    finding = said(found(tmp_path, _SILENT, Inputs(end_offsets={("t", 2): 5037})), "IC-20b")

    assert (finding.severity, finding.confidence) == ("warn", "likely")
    assert "5000 records behind the end" in finding.sentence


def test_at_the_end_of_a_partition_an_owner_may_be_silent(tmp_path: Path) -> None:
    assert "IC-20b" not in codes_of(found(tmp_path, _SILENT, Inputs(end_offsets={("t", 2): 37})))


def test_a_whole_member_that_is_silent_is_another_matter(tmp_path: Path) -> None:
    story = """
        0 d0 09:55:00  GM g gen=5 {A@h1/a: t → t-0,t-1; B@h2/b: t → t-2,t-3}
        1 d0 09:55:05  OC g t-0 = 1{n} | OC g t-1 = 2{n} | OC g t-2 = 3{n} | OC g t-3 = 4{n}  8 × every 5 s
        33 d0 10:00:00  OC g t-2 = 5{n} | OC g t-3 = 6{n}  9 × every 30 s
    """
    assert "IC-20b" not in codes_of(found(tmp_path, story))


# IC-18


def stopped(last: str, *, others: str = "500 d0 11:00:00  OC other u-0 = {n}  5 × every 60 s") -> str:
    return f"""
        0 d0 10:00:00  GM g gen=9 {{A@h1/a: t → t-0; B@h2/b: t → t-1}}
        1 d0 10:00:05  OC g t-0 = {{n}} | OC g t-1 = {{n}}  240 × every 5 s
        {others}
        {last}
    """


def test_a_group_that_committed_nothing_and_came_back_generations_later(tmp_path: Path) -> None:
    finding = said(found(tmp_path, stopped("600 d0 13:05:00  GM g gen=14 {C@h3/c: t → t-0,t-1}")), "IC-18")

    assert (finding.severity, finding.confidence) == ("incident", "likely")
    assert "2 members and no commit for 2 h 45 min, usual are 5 s" in finding.sentence
    assert "generations 9 and 14" in finding.sentence
    assert "none of its members came back" in finding.sentence


def test_a_group_that_went_on_with_the_next_generation_was_idle(tmp_path: Path) -> None:
    last = "600 d0 13:05:00  GM g gen=10 {A@h1/a: t → t-0; B@h2/b: t → t-1; C@h3/c: t}"

    assert "IC-18" not in codes_of(found(tmp_path, stopped(last)))


def test_where_nobody_goes_on_the_broker_stood_still(tmp_path: Path) -> None:
    last = "481 d0 13:05:00  GM g gen=14 {C@h3/c: t → t-0,t-1}"

    assert "IC-18" not in codes_of(found(tmp_path, stopped(last, others="")))


def test_silence_at_the_end_is_undecidable_for_clients_that_commit_only_changes(tmp_path: Path) -> None:
    findings = found(tmp_path, stopped(""))

    assert said(findings, "IC-18").confidence == "undecidable"


def test_silence_at_the_end_is_possibly_stuck_for_clients_that_commit_what_has_not_changed(tmp_path: Path) -> None:
    story = """
        0 d0 10:00:00  GM g gen=9 {A@h1/a: t → t-0}
        1 d0 10:00:05  OC g t-0 = 7  240 × every 5 s
        500 d0 11:00:00  OC other u-0 = {n}  5 × every 60 s
    """
    finding = said(found(tmp_path, story), "IC-18")

    assert finding.confidence == "possible"
    assert "possibly stuck since record 240" in finding.sentence


# IC-19


def test_two_clients_fight_for_an_identity(tmp_path: Path) -> None:
    story = """
        0 d0 10:00:00  GM g gen=4 {m1@h1/c#i1: t → t-0}
        1 d0 10:01:00  GM g gen=4 {m2@h2/c#i1: t → t-0}
        2 d0 10:02:00  GM g gen=4 {m3@h1/c#i1: t → t-0}
        3 d0 10:04:00  GM g gen=4 {m4@h2/c#i1: t → t-0}
    """
    finding = said(found(tmp_path, story), "IC-19")

    assert "instance i1 changed hands 3 times in 3 min, 60 an hour, back and forth between /h1 and /h2" in finding.sentence
    assert evidence_offsets(finding) == [1, 2, 3]


@pytest.mark.parametrize(
    "hosts",
    [
        pytest.param(("h1", "h2", "h3", "h4"), id="pods that start anew"),
        pytest.param(("h1", "h1", "h1", "h1"), id="one process that restarts"),
        pytest.param(("h1", "h2", "h1"), id="twice"),
    ],
)
def test_restarts_are_no_fight(tmp_path: Path, hosts: tuple[str, ...]) -> None:
    lines = [f"{at} d0 10:0{at}:00  GM g gen=4 {{m{at}@{host}/c#i1: t → t-0}}" for at, host in enumerate(hosts)]

    assert "IC-19" not in codes_of(found(tmp_path, "\n".join(lines)))


def test_changes_over_a_day_are_no_fight(tmp_path: Path) -> None:
    lines = [f"{at} d0 {10 + at}:00  GM g gen=4 {{m{at}@h{at % 2}/c#i1: t → t-0}}" for at in range(6)]

    assert "IC-19" not in codes_of(found(tmp_path, "\n".join(lines)))


# IC-24


def test_members_that_have_nothing_in_common(tmp_path: Path) -> None:
    story = """
        0 d0 10:00:00  GM g gen=3 {A@h1/billing: bills → bills-0; B@h2/mail: mails → mails-0}
        1 d0 10:00:05  OC g other-0 = 5
    """
    findings = found(tmp_path, story)

    assert "billing@h1 (A) subscribes to bills, mail@h2 (B) to mails" in said(findings, "IC-24a").sentence
    assert "1 partition of other (0) committed while 2 members had the group" in said(findings, "IC-24b").sentence


def test_a_deployment_that_adds_a_topic_has_something_in_common(tmp_path: Path) -> None:
    story = """
        0 d0 10:00:00  GM g gen=3 {A@h1/billing: bills,fees → bills-0,fees-0; B@h2/mail: bills → bills-1}
        1 d0 10:00:05  OC g fees-0 = 5 | OC g bills-1 = 3
    """
    assert not [code for code in codes_of(found(tmp_path, story)) if code.startswith("IC-24")]


def test_a_commit_behind_a_generation_that_nobody_saw_proves_nothing(tmp_path: Path) -> None:
    story = """
        0 d0 10:00:00  GM g gen=3 {A@h1/billing: bills → bills-0}
        1 d0 10:00:05  OC g other-0 = 5
        2 d0 10:01:00  GM g gen=5 {A@h1/billing: bills → bills-0}
    """
    assert "IC-24b" not in codes_of(found(tmp_path, story))


def test_protocols_that_go_back_and_forth(tmp_path: Path) -> None:
    lines = [f"{at} d0 1{at}:00  GM g gen={at + 1} proto={'range' if at % 2 else 'sticky'} {{A@h1/c: t → t-0}}" for at in range(4)]
    finding = said(found(tmp_path, "\n".join(lines)), "IC-24c")

    assert "protocol went back and forth 3 times between consumer sticky and consumer range" in finding.sentence


def test_a_change_of_protocol_is_none_back_and_forth(tmp_path: Path) -> None:
    lines = [f"{at} d0 1{at}:00  GM g gen={at + 1} proto={'range' if at < 2 else 'sticky'} {{A@h1/c: t → t-0}}" for at in range(4)]

    assert "IC-24c" not in codes_of(found(tmp_path, "\n".join(lines)))


def test_commits_again_and_again_while_nobody_is_in_the_group(tmp_path: Path) -> None:
    story = """
        0 d0 10:00:00  GM g gen=3 {A@h1/c: t → t-0}
        1 d0 10:00:05  OC g t-0 = 5
        2 d0 10:10:00  GM g gen=4 empty
        3 d0 10:20:00  OC g t-0 = 1{n} {le=3}  9 × every 60 s
    """
    assert "9 commits over 8 min while nobody was in the group (t)" in said(found(tmp_path, story), "IC-24d").sentence


def test_what_replication_writes_every_minute_is_no_second_application(tmp_path: Path) -> None:
    story = """
        0 d0 10:00:00  GM g gen=3 {A@h1/c: t → t-0}
        1 d0 10:10:00  GM g gen=4 empty
        2 d0 10:20:00  OC g t-0 = 1{n}  9 × every 60 s
    """
    assert "IC-24d" not in codes_of(found(tmp_path, story))


def test_one_burst_while_the_group_is_empty_is_a_reset(tmp_path: Path) -> None:
    story = """
        0 d0 10:00:00  GM g gen=3 {A@h1/c: t → t-0}
        1 d0 10:00:05  OC g t-0 = 5
        2 d0 10:10:00  GM g gen=4 empty
        3 d0 10:20:00  OC g t-0 = 1 | OC g t-1 = 1 | OC g t-2 = 1
    """
    assert "IC-24d" not in codes_of(found(tmp_path, story))


# IC-30


_STUCK = """
    0 d0 10:00:00  CG3 g epoch=8 | CG6 g target-epoch=8 | CG7 g m1 {t:[0]} | CG7 g m2 {t:[1]}
    4 d0 10:00:01  CG8 g m1 epoch=7 prev=6 state=1 own{t:[0]} revoke{t:[1]}
    5 d0 10:00:02  CG8 g m2 epoch=8 prev=7 state=2 own{} revoke{}
"""


def test_a_member_that_waits_for_another_names_it(tmp_path: Path) -> None:
    findings = [finding for finding in found(tmp_path, _STUCK + "6 d0 10:10:00  OC other u-0 = 1") if finding.code == "IC-30"]

    assert [finding.member_id for finding in findings] == ["m1", "m2"]
    assert "it has to give up t-1 and did not say that it did" in findings[0].sentence
    assert "did not reach target epoch 8 for 9 min, and has not at the end of the log: it waits for" in findings[1].sentence
    assert "(m1) on t-1" in findings[1].sentence


def test_some_seconds_on_the_way_to_a_target_are_normal(tmp_path: Path) -> None:
    done = """
        6 d0 10:00:20  CG8 g m1 epoch=8 prev=7 state=0 own{t:[0]} revoke{}
        7 d0 10:00:21  CG8 g m2 epoch=8 prev=7 state=0 own{t:[1]} revoke{}
        8 d0 12:00:00  OC other u-0 = 1
    """
    assert "IC-30" not in codes_of(found(tmp_path, _STUCK + done))


def test_a_member_that_is_gone_waits_for_nothing(tmp_path: Path) -> None:
    gone = """
        6 d0 10:00:20  CG8 g m1 = X | CG7 g m1 = X | CG5 g m1 = X
        9 d0 10:00:21  CG8 g m2 epoch=8 prev=7 state=0 own{t:[1]} revoke{}
        10 d0 12:00:00  OC other u-0 = 1
    """
    assert "IC-30" not in codes_of(found(tmp_path, _STUCK + gone))


# IC-31


def flips(*times: str) -> str:
    lines = ["0 d0 09:00:00  GM g gen=4 {A@h1/a: t → t-0}"]
    offset = 1
    for number, time in enumerate(times):
        if number % 2 == 0:
            lines.append(f"{offset} {time}  GM g = X | CG3 g epoch={5 + number} | CG8 g m1 epoch=5 own{{t:[0]}} revoke{{}}")
            offset += 3
        else:
            lines.append(f"{offset} {time}  CG8 g m1 = X | CG3 g = X | GM g gen={5 + number} {{A@h1/a: t → t-0}}")
            offset += 3
    return "\n".join(lines)


def test_a_group_that_changes_its_type_three_times_in_a_day(tmp_path: Path) -> None:
    finding = said(found(tmp_path, flips("d0 10:00:00", "d0 10:20:00", "d0 10:40:00")), "IC-31")

    assert (finding.severity, finding.confidence) == ("warn", "proof")
    assert "3 changes of type in 40 min, the last one to consumer" in finding.sentence


def test_a_migration_and_its_return_are_two_changes(tmp_path: Path) -> None:
    assert "IC-31" not in codes_of(found(tmp_path, flips("d0 10:00:00", "d0 10:20:00")))


def test_changes_on_different_days_are_no_back_and_forth(tmp_path: Path) -> None:
    assert "IC-31" not in codes_of(found(tmp_path, flips("d0 10:00:00", "d1 10:20:00", "d2 10:40:00")))


def test_an_offset_that_goes_back_with_the_change_of_type(tmp_path: Path) -> None:
    story = """
        0 d0 09:00:00  GM g gen=4 {A@h1/a: t → t-0}
        1 d0 09:00:05  OC g t-0 = 9000
        2 d0 10:00:00  GM g = X | CG3 g epoch=5 | CG8 g m1 epoch=5 own{t:[0]} revoke{}
        5 d0 10:00:30  OC g t-0 = 100
    """
    assert "t-0 went by -8900 within a minute of the change to consumer" in said(found(tmp_path, story), "IC-31").sentence


# IC-34


def test_range_over_topics_of_one_partition_is_lopsided_by_its_rule(tmp_path: Path) -> None:
    story = "0 d0 10:00:00  GM g gen=2 proto=range {A@h1/a: a,b,c → a-0,b-0,c-0; B@h2/b: a,b,c → }"
    finding = said(found(tmp_path, story), "IC-34")

    assert (finding.severity, finding.confidence) == ("info", "proof")
    assert "a@h1 (A) has 3 partitions and b@h2 (B) 0, subscribed alike to 3 topics, by range: as range shares out" in finding.sentence


def test_more_than_any_rule_gives_is_worth_a_look(tmp_path: Path) -> None:
    story = "0 d0 10:00:00  GM g gen=2 proto=range {A@h1/a: t → t-0,t-1,t-2; B@h2/b: t → t-3}"

    assert said(found(tmp_path, story), "IC-34").severity == "warn"


@pytest.mark.parametrize(
    "story",
    [
        pytest.param("0 d0 10:00:00  GM g gen=2 {A@h1/a: t,u → t-0,t-1,u-0; B@h2/b: t → t-2}", id="other subscriptions"),
        pytest.param("0 d0 10:00:00  GM g gen=2 {A@h1/a: t → t-0,t-1; B@h2/b: t → t-2}", id="one more"),
        pytest.param(
            "0 d0 10:00:00  GM g gen=2 proto=cooperative-sticky {A@h1/a: t → t-0,t-1; B@h2/b: t}\n"
            "1 d0 10:00:03  GM g gen=3 proto=cooperative-sticky {A@h1/a: t → t-0,t-1; B@h2/b: t → t-2,t-3}",
            id="a cooperative rebalance under way",
        ),
    ],
)
def test_what_is_not_lopsided(tmp_path: Path, story: str) -> None:
    assert "IC-34" not in codes_of(found(tmp_path, story))


def test_the_target_of_a_consumer_group_counts(tmp_path: Path) -> None:
    story = """
        0 d0 10:00:00  CG3 g epoch=2 | CG5 g m1 {t} | CG5 g m2 {t} | CG6 g target-epoch=2 | CG7 g m1 {t:[0,1,2]} | CG7 g m2 {t:[]}
        6 d0 10:00:01  CG8 g m1 epoch=2 own{t:[0,1,2]} revoke{} | CG8 g m2 epoch=2 own{} revoke{}
        8 d0 10:30:00  OC g t-0 = 1
    """
    assert said(found(tmp_path, story), "IC-34").first_timestamp_ms == time_ms("d0 10:00:00")
