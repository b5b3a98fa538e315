"""Records that a reader cannot decode (IC-09)."""

from __future__ import annotations

from pathlib import Path

from tests.judges import corpus

from .files import decided
from .incidents import hit, near_miss


def test_records_that_cannot_be_decoded_are_counted_by_reason_with_a_sample(tmp_path: Path) -> None:
    found = {finding.sentence.partition(":")[0]: finding for finding in hit("IC-09", tmp_path)}

    assert found["1 record of record type 999, value version 0"].severity == "info"
    assert found["2 records of offset_commit, value version 9"].severity == "warn"
    assert found["1 record of group_metadata, value version 3"].first_record_offset == 2
    assert found["1 record of unknown type"].severity == "warn"
    evidence = found["1 record of record type 999, value version 0"].evidence
    assert isinstance(evidence, list)
    assert evidence[0]["key"] == "03e70000"


def test_all_versions_that_brokers_wrote_can_be_decoded(tmp_path: Path) -> None:
    assert not near_miss("IC-09", tmp_path, "all versions that brokers wrote")


def test_logs_of_upgraded_clusters_have_none() -> None:
    case = next(case for case in corpus.cases() if case.name == "2.8.2-upgrade")

    for directory in case.data_directories.values():
        assert not decided(directory, "IC-09")
