"""Records that a reader cannot decode (IC-09)."""

from __future__ import annotations

from pathlib import Path

from exhume.codecs.record_types import encode_key
from exhume.fixtures.log_writer import KeyValue, PartitionWriter, group_metadata, offset_commit
from tests.judges import corpus

from .files import decided
from .story import DAY_0_MS


def commit(version: int) -> KeyValue:
    return offset_commit("g", "t", version, 5, commit_timestamp_ms=DAY_0_MS, version=version)


def test_records_that_cannot_be_decoded_are_counted_by_reason_with_a_sample(tmp_path: Path) -> None:
    newer = (encode_key(1, {"group": "g", "topic": "t", "partition": 9}), b"\0\x09" + bytes(30))
    cut = (encode_key(2, {"group": "g"}), b"\0\x03\0\x08con")
    unknown = (b"\x03\xe7\0\0", b"\0\0")
    with PartitionWriter(tmp_path, 0) as log:
        log.append([newer, newer, cut, unknown, (None, b"x")], timestamp_ms=DAY_0_MS)

    found = {finding.sentence.partition(":")[0]: finding for finding in decided(tmp_path, "IC-09")}

    assert found["1 record of record type 999, value version 0"].severity == "info"
    assert found["2 records of offset_commit, value version 9"].severity == "warn"
    assert found["1 record of group_metadata, value version 3"].first_record_offset == 2
    assert found["1 record of no type"].severity == "warn"
    evidence = found["1 record of record type 999, value version 0"].evidence
    assert isinstance(evidence, list)
    assert evidence[0]["key"] == "03e70000"


def test_all_versions_that_brokers_wrote_and_control_records_are_no_strangers(tmp_path: Path) -> None:
    members = [{"member_id": "m", "client_id": "c", "client_host": "/h", "subscription": b"\xff\xfe", "assignment": b""}]
    with PartitionWriter(tmp_path, 0) as log:
        log.append([commit(version) for version in range(5)], timestamp_ms=DAY_0_MS)
        for version in range(5):
            log.append(
                [group_metadata("connect", {"protocol_type": "connect", "members": members}, version=version)], timestamp_ms=DAY_0_MS
            )
        log.append([commit(3)], timestamp_ms=DAY_0_MS, producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
        log.append_marker(producer_id=7, producer_epoch=0, timestamp_ms=DAY_0_MS)

    assert not decided(tmp_path, "IC-09")


def test_logs_of_upgraded_clusters_have_none() -> None:
    case = next(case for case in corpus.cases() if case.name == "2.8.2-upgrade")

    for directory in case.data_directories.values():
        assert not decided(directory, "IC-09")
