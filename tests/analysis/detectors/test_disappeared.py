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
