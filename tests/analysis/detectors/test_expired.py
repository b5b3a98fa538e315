"""Offsets that disappeared: for each class a log that has it, and one that must not be taken for it."""

from __future__ import annotations

from pathlib import Path

from exhume.analysis.detectors import Inputs
from tests.analysis.detectors.story import DAY_MS, Story, codes_of, evidence_offsets, said

_EXPIRED = """
    100 d0 10:00:00  GM pay gen=4 pt=consumer proto=range leader=A st=d0 10:00 {A@h1/pay: orders → orders-0,1}
    101 d0 10:00:05  OC pay orders-0 = 5000 | OC pay orders-1 = 7000
    103 d0 18:00:00  GM pay gen=5 empty st=d0 18:00:00
    104 d7 18:06:12  OC pay orders-0 = X | OC pay orders-1 = X | GM pay = X
"""


def test_an_idle_groups_offsets_expired_and_it_began_anew(tmp_path: Path) -> None:
    again = """
        107 d9 09:00:00  GM pay gen=1 pt=consumer proto=range leader=B st=… {B@h1/pay: orders → orders-0,1}
        108 d9 09:00:05  OC pay orders-0 = 310 | OC pay orders-1 = 290
    """
    found = said(Story(_EXPIRED + again).findings(tmp_path), "IC-01")

    assert (found.severity, found.group, found.topic, found.confidence) == ("incident", "pay", "orders", "likely")
    assert "expired 7 d 6 min after the group became Empty" in found.sentence
    assert "orders-0 5000 → 310 (-4690), orders-1 7000 → 290 (-6710)" in found.sentence
    assert evidence_offsets(found) == [101, 102, 104, 105, 108, 109]


def test_expiry_of_a_group_that_never_came_back_is_no_incident(tmp_path: Path) -> None:
    assert said(Story(_EXPIRED).findings(tmp_path), "IC-01").severity == "info"


def test_a_group_deleted_after_minutes_did_not_expire(tmp_path: Path) -> None:
    deleted = _EXPIRED.replace("104 d7 18:06:12", "104 d0 18:21:00")

    assert "IC-01" not in codes_of(Story(deleted).findings(tmp_path))


def test_the_retention_decides_what_was_due(tmp_path: Path) -> None:
    assert "IC-01" not in codes_of(Story(_EXPIRED).findings(tmp_path, Inputs(retention_ms=14 * DAY_MS)))


_STABLE = """
    10 d0 00:00:00  GM rep gen=9 pt=consumer proto=range leader=A st=… {A@h1/r: slow → slow-0}
    11 d0 00:00:05  OC rep slow-0 = 77 {ct=d0 00:00:05}
"""


def test_an_offset_that_members_subscribe_to_expired(tmp_path: Path) -> None:
    found = said(Story(f"{_STABLE} 12 d7 00:10:30  OC rep slow-0 = X").findings(tmp_path), "IC-28a")

    assert (found.severity, found.group, found.topic, found.partition) == ("incident", "rep", "slow", 0)
    assert "expired 7 d 10 min after the commit, while the group was Stable" in found.sentence
    assert evidence_offsets(found) == [10, 11, 12]


def test_the_deletion_of_a_subscribed_topic_is_no_expiry(tmp_path: Path) -> None:
    deleted = Story(f"""{_STABLE}
        12 d1 00:00:00  OC other slow-0 = 5
        13 d7 00:10:30  OC rep slow-0 = X
        14 d7 00:10:30  OC other slow-0 = X
    """)

    assert not {code for code in codes_of(deleted.findings(tmp_path)) if code.startswith("IC-28")}


def test_an_offset_expired_while_the_group_was_rebalancing(tmp_path: Path) -> None:
    gap = """
        20 d0 00:00  GM g gen=4 {A: new → new-0}
        21 d0 00:00  OC g old-0 = 5
        22 d7 00:05  OC g old-0 = X
        23 d7 00:06  GM g gen={next} {B: new → new-0}
    """
    assert said(Story(gap.replace("{next}", "7")).findings(tmp_path / "gap"), "IC-28b").confidence == "possible"
    # Without a generation in between it is the normal end of a topic that nobody reads.
    assert codes_of(Story(gap.replace("{next}", "5")).findings(tmp_path / "no gap", codes=["IC-01", "IC-17", "IC-28"])) == {"IC-17"}


_SWEPT = """
    0 d0 00:00  OC one a-0 = 1 | OC two b-0 = 2 | OC three c-0 = 3
    3 d3 05:00  OC one a-0 = X | OC two b-0 = X | OC three c-0 = X
"""


def test_a_sweep_before_the_retention_is_over(tmp_path: Path) -> None:
    found = [each for each in Story(_SWEPT).findings(tmp_path, Inputs(retention_ms=7 * DAY_MS)) if each.code == "IC-28c"]

    assert [each.group for each in found] == ["one", "three", "two"]
    assert "removed 3 d 5 h after the commit" in found[0].sentence
    assert "the retention is 7 d" in found[0].sentence


def test_whether_a_sweep_was_early_is_undecidable_without_the_retention(tmp_path: Path) -> None:
    found = Story(_SWEPT).findings(tmp_path, codes=["IC-28"])

    assert {(each.code, each.confidence) for each in found} == {("IC-28c", "undecidable")}


def test_the_deletion_of_one_group_is_no_early_expiry(tmp_path: Path) -> None:
    alone = "0 d0 00:00  OC one a-0 = 1\n 1 d3 05:00  OC one a-0 = X"

    assert codes_of(Story(alone).findings(tmp_path, Inputs(retention_ms=7 * DAY_MS))) == {"IC-05a"}


def test_an_offset_that_never_expires_went_after_a_change_of_leader(tmp_path: Path) -> None:
    log = """
        0 d0 00:00  OC g t-0 = 1 {v=1 xt=-1}
        1 d3 05:00  [e=1] OC other t-0 = 1
        2 d3 {time}  OC g t-0 = X
    """
    assert "3 min after leader epoch 1 began" in said(Story(log.replace("{time}", "05:03")).findings(tmp_path / "soon"), "IC-28d").sentence
    assert "IC-28d" not in codes_of(Story(log.replace("{time}", "09:03")).findings(tmp_path / "later"))


_EMPTIED = """
    18 d0 00:00:00  CG3 web epoch=11 | CG5 web m1 {slow}
    20 d0 00:00:00  OC web slow-0 = 77 {ct=d0 00:00:00}
    21 d9 00:00:00  CG8 web m1 = X | CG7 web m1 = X | CG5 web m1 = X | CG3 web epoch=12
"""


def test_offsets_of_a_kip_848_group_expired_as_its_last_member_left(tmp_path: Path) -> None:
    story = Story(f"{_EMPTIED} 25 d9 00:04:00  OC web slow-0 = X")

    found = said(story.findings(tmp_path, Inputs(retention_ms=7 * DAY_MS)), "IC-28")

    assert "as soon as the last member had left, 9 d 4 min after the commit" in found.sentence


def test_offsets_of_a_kip_848_group_that_was_empty_for_long_just_expired(tmp_path: Path) -> None:
    story = Story(f"{_EMPTIED} 25 d10 00:04:00  OC web slow-0 = X")

    assert codes_of(story.findings(tmp_path, Inputs(retention_ms=7 * DAY_MS))) == {"IC-01"}


_UNSUBSCRIBED = """
    0 d0 00:00  GM svc gen=1 pt=consumer {A@h/c: old,new → old-0,new-0}
    1 d0 00:01  OC svc old-0 = 10 | OC svc new-0 = 20
    3 d1 00:00  GM svc gen=2 pt=consumer {A@h/c: new → new-0}
"""


def test_an_offset_of_a_topic_that_nobody_reads_any_more_expired(tmp_path: Path) -> None:
    found = said(Story(f"{_UNSUBSCRIBED} 4 d7 00:03  OC svc old-0 = X").findings(tmp_path), "IC-17")

    assert (found.severity, found.topic, found.partition) == ("info", "old", 0)
    assert "expired 7 d 2 min after the commit" in found.sentence


def test_an_offset_of_a_topic_that_nobody_reads_lingers(tmp_path: Path) -> None:
    lingers = Story(f"{_UNSUBSCRIBED} 4 d3 00:03  OC svc new-0 = 30")

    found = said(lingers.findings(tmp_path), "IC-17")

    assert "the offset of old-0 still there 3 d 2 min after the commit" in found.sentence
    assert "2024-01-15" in found.sentence


def test_a_topic_that_was_left_within_a_day_is_not_abandoned_yet(tmp_path: Path) -> None:
    assert not codes_of(Story(f"{_UNSUBSCRIBED} 4 d1 00:01  OC svc new-0 = 30").findings(tmp_path))
