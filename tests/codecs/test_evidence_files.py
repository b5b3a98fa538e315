"""The manifest of an evidence directory shows each change of a file, and what a recorder has left out."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

import exhume
from exhume.codecs.batch_writer import NewRecord, encode_batch
from exhume.codecs.evidence_files import END_OFFSETS, LIVE, TOPICS
from exhume.codecs.log_directory import discover
from exhume.errors import EvidenceError
from exhume.fixtures.log_writer import offset_commit
from exhume.replay.topic_names import names_beside

SEGMENT = "__consumer_offsets-0/00000000000000000000.log"
FILES = {
    "meta.properties": b"version=0\ncluster.id=abc\n",
    "replication-offset-checkpoint": b"0\n1\n__consumer_offsets 0 2\n",
    TOPICS: b"topic,topic_id,partitions,racks\norders,Dqkcc4vDRWO5fQfDwrr_9w,1,\n",
    END_OFFSETS: b"orders:0:3\n",
    LIVE: b"GROUP   TOPIC  PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG\nbilling orders 0 40 3 -37\n",
}


def record(record_offset: int, committed_offset: int) -> NewRecord:
    key, value = offset_commit("billing", "orders", 0, committed_offset, commit_timestamp_ms=1_700_000_000_000)
    return NewRecord(record_offset, 1_700_000_000_000, key, value)


def evidence(root: Path, **changes: Any) -> Path:
    records = [record(number, 20 + 20 * number) for number in range(2)]
    (root / "__consumer_offsets-0").mkdir(parents=True)
    files = {**FILES, SEGMENT: encode_batch(records, base_offset=0)}
    for name, data in files.items():
        (root / name).write_bytes(data)
    rows = [{"path": name, "size_bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in files.items()]
    manifest = {
        "exhume_capture": 1,
        "complete": True,
        "offsets_partitions": 50,
        "listing": {"offsets_after": {"0": 2}},
        "partitions": [{"offsets_partition": 0, "removed_below": None}],
        "files": rows,
        **changes,
    }
    (root / "manifest.json").write_text(json.dumps(manifest))
    return root


def codes(root: Path, *, inspects: bool = True) -> list[tuple[str, str | None]]:
    with exhume.open(root) as topic:
        findings = topic.inspect().findings if inspects else topic.findings
        return [(finding.code, finding.path and Path(finding.path).name) for finding in findings if finding.severity != "info"]


def test_an_unchanged_directory_has_no_finding(tmp_path: Path) -> None:
    assert codes(evidence(tmp_path / "evidence")) == []


@pytest.mark.parametrize("name", [SEGMENT, TOPICS, "meta.properties"])
def test_a_changed_or_missing_file_is_found(tmp_path: Path, name: str) -> None:
    root = evidence(tmp_path / "evidence")
    data = (root / name).read_bytes()
    (root / name).write_bytes(data + data[-1:])
    assert ("file_changed", Path(name).name) in codes(root)
    (root / name).unlink()
    assert ("file_missing", Path(name).name) in codes(root)


def test_a_recorder_may_add_to_a_segment_while_it_runs_and_not_change_it(tmp_path: Path) -> None:
    root = evidence(tmp_path / "evidence", complete=False)
    assert codes(root) == [("capture_incomplete", "manifest.json")]
    log = root / SEGMENT
    data = log.read_bytes()
    log.write_bytes(data + encode_batch([record(2, 60)], base_offset=2))
    (root / TOPICS).write_bytes(FILES[TOPICS] + b"bills,,1,\n")
    assert codes(root) == [("capture_incomplete", "manifest.json")]
    log.write_bytes(data[:-1])
    assert ("file_changed", log.name) in codes(root)


def test_removed_records_are_a_warning_of_every_answer(tmp_path: Path) -> None:
    root = evidence(tmp_path / "evidence", partitions=[{"offsets_partition": 0, "removed_below": 1000}])
    assert codes(root, inspects=False) == [("recorder_removed_records", "manifest.json")]


def test_records_that_a_leader_lost_are_a_warning_of_every_answer(tmp_path: Path) -> None:
    root = evidence(tmp_path / "evidence", complete=False, partitions=[{"offsets_partition": 0, "lost_from": 1}])
    assert codes(root, inspects=False) == [("leader_lost_records", "manifest.json")]


def test_a_manifest_names_no_file_outside(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"x")
    rows = [{"path": path, "size_bytes": 1, "sha256": hashlib.sha256(b"x").hexdigest()} for path in ("../secret", f"{tmp_path}/secret")]
    assert codes(evidence(tmp_path / "evidence", files=rows)) == [("file_missing", "secret")] * 2


@pytest.mark.parametrize("manifest", ["[]", '{"other": 1}'])
def test_a_manifest_of_another_program_is_left_alone(tmp_path: Path, manifest: str) -> None:
    root = evidence(tmp_path / "evidence")
    (root / "manifest.json").write_text(manifest)
    assert codes(root) == []


def test_a_damaged_manifest_is_an_error(tmp_path: Path) -> None:
    root = evidence(tmp_path / "evidence")
    (root / "manifest.json").write_text('{"exhume_capture": 1,')
    with pytest.raises(EvidenceError, match=r"manifest\.json: the manifest is not valid JSON"):
        exhume.open(root)


def test_diagnose_finds_its_files_if_the_log_ends_with_the_listing(tmp_path: Path) -> None:
    with exhume.open(evidence(tmp_path / "current")) as topic:
        found = topic.diagnose(codes=["IC-07"])
        assert [finding.code for finding in found if finding.confidence != "undecidable"] == ["IC-07"]
    with exhume.open(evidence(tmp_path / "old", listing={"offsets_after": None})) as topic:
        found = topic.diagnose(codes=["IC-07"])
        assert [finding.confidence for finding in found] == ["undecidable"]


def test_topics_csv_names_topic_ids(tmp_path: Path) -> None:
    with discover([evidence(tmp_path / "evidence")]) as found:
        names = names_beside(found.log_directories).lookup("Dqkcc4vDRWO5fQfDwrr_9w")
    assert names is not None
    assert (names.topic, names.source) == ("orders", "captured")
