"""A cleaner that stopped (IC-03), and transactions that nobody ends (IC-08)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from exhume.analysis.detectors import condense, diagnose
from exhume.analysis.detectors.inputs import Inputs
from exhume.fixtures.log_writer import KeyValue, PartitionWriter, offset_commit, write_checkpoint

from .files import decided, diagnosed
from .story import DAY_0_MS, DAY_MS, MINUTE_MS, Story, codes_of, evidence_offsets, said


def commit(offset: int, partition: int = 0) -> KeyValue:
    return offset_commit("g", "t", partition, offset, commit_timestamp_ms=DAY_0_MS)


def segments(
    directory: Path, *, closed: int, keys: int = 1, cleaned_to: int | None = None, days: float = 30, transaction: bool = False
) -> Path:
    """So many closed segments of 100 commits each, and an active one, over so many days."""
    step_ms = int(days * DAY_MS / (closed + 1) / 100)
    with PartitionWriter(directory, 24) as log:
        now_ms = DAY_0_MS
        if transaction:
            producer = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
            log.append([commit(1, 999)], timestamp_ms=now_ms, **producer)
        for segment in range(closed + 1):
            for number in range(100):
                log.append([commit(number, log.next_offset % keys)], timestamp_ms=now_ms)
                now_ms += step_ms
            if segment < closed:
                log.roll()
    if cleaned_to is not None:
        write_checkpoint(directory / "cleaner-offset-checkpoint", [("__consumer_offsets", 24, cleaned_to)])
    return directory


def test_a_cleaner_that_stands_still_for_days_is_found_with_how_much_is_not_clean(tmp_path: Path) -> None:
    found = said(decided(segments(tmp_path, closed=12, cleaned_to=0), "IC-03"), "IC-03")

    assert (found.offsets_partition, found.confidence, found.severity) == (24, "likely", "warn")
    assert "stood at offset 0 for 27 d" in found.sentence
    assert "(100%) are not clean" in found.sentence
    assert evidence_offsets(found) == [0]


def test_segments_that_were_never_cleaned_are_found_without_a_checkpoint(tmp_path: Path) -> None:
    found = said(decided(segments(tmp_path, closed=12), "IC-03"), "IC-03")

    assert found.confidence == "possible"
    assert "12 closed segments were never cleaned, and 100% of their bytes are superseded" in found.sentence


def test_an_open_transaction_in_the_way_is_named_as_the_cause(tmp_path: Path) -> None:
    found = said(decided(segments(tmp_path, closed=12, cleaned_to=0, transaction=True), "IC-03"), "IC-03")

    assert found.severity == "incident"
    assert "the transaction that is open since record 0 is in its way" in found.sentence


@pytest.mark.parametrize(
    "log",
    [
        {"closed": 0},
        {"closed": 12, "cleaned_to": 1100},
        {"closed": 12, "cleaned_to": 0, "days": 0.5},
        {"closed": 12, "keys": 2000},
        {"closed": 4},
    ],
    ids=["one active segment", "half of it is clean", "not a day old", "many live keys", "few segments"],
)
def test_a_partition_that_is_only_large_is_not_reported(tmp_path: Path, log: dict[str, Any]) -> None:
    assert not decided(segments(tmp_path, **log), "IC-03")


def test_without_files_it_cannot_be_decided(tmp_path: Path) -> None:
    assert condense([]).files is None
    assert [finding.confidence for finding in diagnose(condense([]), Inputs(), codes=["IC-03"])] == ["undecidable"]
    assert not diagnosed(segments(tmp_path, closed=0), "IC-03")


HANGING = """
500 d0 03:00:00 [T pid=42 ep=3] OC etl in-4 = 88000
501 d0 03:00:01 OC other in-0 = {n}   40 × every 3600 s
"""


def test_a_transaction_without_a_marker_that_is_hours_old_hangs(tmp_path: Path) -> None:
    found = said(Story(HANGING).findings(tmp_path, codes=["IC-08"]), "IC-08")

    assert (found.severity, found.first_record_offset) == ("incident", 500)
    assert "producer 42 has been open since record 500, and idle for 1 d 15 h" in found.sentence
    assert "etl in-4" in found.sentence
    assert "in front of the 41 records" in found.sentence


@pytest.mark.parametrize(
    "text",
    [
        HANGING.replace("40 × every 3600 s", "19 × every 60 s"),
        HANGING.replace("501 d0 03:00:01 OC", "501 d0 03:00:00 MARK pid=42 ep=3 ABORT\n502 d0 03:00:01 OC"),
        "0 d0 03:00 OC etl in-4 = 5\n1 d0 03:01 MARK pid=42 ep=3 COMMIT\n2 d3 03:00 OC etl in-4 = 6",
        HANGING + "541 d1 18:00 [T pid=42 ep=3] OC etl in-4 = 88001",
    ],
    ids=["a copy inside a transaction", "an abort", "a marker alone", "a producer that goes on"],
)
def test_transactions_that_end_or_go_on_do_not_hang(tmp_path: Path, text: str) -> None:
    assert "IC-08" not in codes_of(Story(text).findings(tmp_path))


def test_the_greatest_timeout_and_five_minutes_are_given(tmp_path: Path) -> None:
    text = "0 d0 03:00 [T pid=42 ep=3] OC etl in-4 = 5\n1 d0 03:{} OC other in-0 = 6"

    assert "IC-08" not in codes_of(Story(text.format(20)).findings(tmp_path / "20"))
    assert "IC-08" in codes_of(Story(text.format(21)).findings(tmp_path / "21"))
    assert MINUTE_MS == 60_000
