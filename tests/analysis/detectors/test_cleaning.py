"""A cleaner that stopped (IC-03), and transactions that nobody ends (IC-08)."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

import exhume
from exhume.analysis.detectors import LogFiles, condense, diagnose
from exhume.analysis.detectors.inputs import Inputs
from exhume.fixtures.log_writer import PartitionWriter, offset_commit

from .incidents import hit, near_miss
from .story import codes_of, evidence_offsets, said


def test_a_cleaner_that_stands_still_for_days_is_found_with_how_much_is_not_clean(tmp_path: Path) -> None:
    found = said(hit("IC-03", tmp_path, "twelve segments behind its checkpoint"), "IC-03")

    assert (found.offsets_partition, found.confidence, found.severity) == (24, "likely", "warn")
    assert "stood at offset 0 for 27 d" in found.sentence
    assert "(100%) are not clean" in found.sentence
    assert evidence_offsets(found) == [0]


def test_segments_that_were_never_cleaned_are_found_without_a_checkpoint(tmp_path: Path) -> None:
    found = said(hit("IC-03", tmp_path, "without a checkpoint"), "IC-03")

    assert found.confidence == "possible"
    assert "12 closed segments were never cleaned, and 100% of their bytes are superseded" in found.sentence


@pytest.mark.parametrize(("missing", "looked_at"), [((), [("broker", 3)]), ((40,), [])], ids=["complete", "cleaned"])
def test_what_compaction_would_find_is_asked_only_of_logs_where_it_never_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: tuple[int, ...], looked_at: list[tuple[str, int]]
) -> None:
    asked: list[tuple[str | None, int | None]] = []
    told = LogFiles.compaction

    def noting(files: LogFiles, origins: Collection[tuple[str | None, int | None]], *known: Any) -> Any:
        asked.extend(origins)
        return told(files, origins, *known)

    with PartitionWriter(tmp_path / "broker", 3) as log:
        for number in range(70):
            if number in missing:
                log.next_offset += 1
                continue
            log.append([offset_commit("g", "t", 0, number, commit_timestamp_ms=number)], timestamp_ms=number)
            if number % 10 == 9:
                log.roll()
    with PartitionWriter(tmp_path / "broker", 4) as log:
        log.append([offset_commit("g", "t", 0, 1, commit_timestamp_ms=1)])
    monkeypatch.setattr(LogFiles, "compaction", noting)
    with exhume.open(tmp_path / "broker") as topic:
        found = [finding.code for finding in topic.diagnose(codes=["IC-03"])]

    assert asked == looked_at
    assert found == ["IC-03"] * len(looked_at)


def test_an_open_transaction_in_the_way_is_named_as_the_cause(tmp_path: Path) -> None:
    found = said(hit("IC-03", tmp_path, "an open transaction in its way"), "IC-03")

    assert found.severity == "incident"
    assert "the transaction that is open since record 0 is in its way" in found.sentence


def test_without_files_it_cannot_be_decided(tmp_path: Path) -> None:
    assert condense([]).files is None
    assert [finding.confidence for finding in diagnose(condense([]), Inputs(), codes=["IC-03"])] == ["undecidable"]
    assert not near_miss("IC-03", tmp_path, "one active segment")


def test_a_transaction_without_a_marker_that_is_hours_old_hangs(tmp_path: Path) -> None:
    found = said(hit("IC-08", tmp_path), "IC-08")

    assert (found.severity, found.first_record_offset) == ("incident", 500)
    assert "producer 42 has been open since record 500, and idle for 1 d 15 h" in found.sentence
    assert "etl in-4" in found.sentence
    assert "in front of the 41 records" in found.sentence


def test_the_greatest_timeout_and_five_minutes_are_given(tmp_path: Path) -> None:
    assert "IC-08" not in codes_of(near_miss("IC-08", tmp_path / "20", "for 20 minutes"))
    assert "IC-08" in codes_of(hit("IC-08", tmp_path / "21", "for 21 minutes"))
