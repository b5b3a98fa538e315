"""The library's front door."""

from __future__ import annotations

import json
import shutil
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import exhume
from exhume.cli.demo import DEMO_LOG
from exhume.codecs import schemas
from exhume.codecs.annotation import ANNOTATION
from exhume.codecs.decoded_tables import DUMP
from exhume.codecs.log_directory import discover
from exhume.codecs.record_filter import RecordFilter
from exhume.codecs.record_types import ABORT
from exhume.codecs.segment_reader import ReadOptions
from exhume.errors import RequestError
from exhume.fixtures.log_writer import PartitionWriter, group_metadata, offset_commit, tombstone
from exhume.replay.state_tables import SCHEMAS
from exhume.topic import OffsetsTopic
from exhume.topic.states import GradedState

TIME_MS = 1_700_000_000_000


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Partition 3, two segments: commits of two groups, a tombstone, a group, an aborted transaction."""
    with PartitionWriter(tmp_path / "data", 3) as partition:
        partition.append([offset_commit("a", "t", n, n, commit_timestamp_ms=TIME_MS) for n in range(2)], timestamp_ms=TIME_MS, codec=4)
        partition.append([tombstone(offset_commit("a", "t", 0, 0, commit_timestamp_ms=0))], timestamp_ms=TIME_MS + 1)
        partition.roll()
        partition.append([group_metadata("b", {"protocol_type": "consumer", "generation": 2})], timestamp_ms=TIME_MS + 2)
        partition.append(
            [offset_commit("b", "t", 0, 9, commit_timestamp_ms=TIME_MS)], producer_id=1, producer_epoch=0, is_transactional=True
        )
        partition.append_marker(ABORT, producer_id=1, producer_epoch=0, timestamp_ms=TIME_MS + 4)
    return tmp_path / "data"


def offsets_of(reader: pa.RecordBatchReader) -> list[int]:
    found: list[int] = reader.read_all()["record_offset"].to_pylist()
    return found


@pytest.mark.parametrize("form", ["data directory", "partition directory", "text", "list of segments", "archive"])
def test_one_log_opens_in_every_form_that_it_comes_in(log: Path, tmp_path: Path, form: str) -> None:
    partition = log / "__consumer_offsets-3"
    with tarfile.open(tmp_path / "log.tar.gz", "w:gz") as archive:
        archive.add(log, "data")
    places: dict[str, Path | str | list[Path]] = {
        "data directory": log,
        "partition directory": partition,
        "text": str(log),
        "list of segments": sorted(partition.glob("*.log")),
        "archive": tmp_path / "log.tar.gz",
    }
    with exhume.open(places[form]) as topic:
        assert offsets_of(topic.records()) == [0, 1, 2, 3, 4, 5]


def test_several_data_directories_are_replicas(log: Path, tmp_path: Path) -> None:
    shutil.copytree(log, tmp_path / "copy")
    with exhume.open([log, tmp_path / "copy"]) as topic:
        assert set(topic.state(release="4.3").offsets["replica"].to_pylist()) == {"data", "copy"}


def test_every_table_comes_with_its_schema(log: Path) -> None:
    with exhume.open(log) as topic:
        assert topic.segments().schema == schemas.SEGMENTS
        assert topic.batches().schema == schemas.BATCHES
        assert topic.records().schema == schemas.RECORDS
        assert topic.dump().schema == DUMP
        assert topic.annotate().schema == ANNOTATION
        assert topic.offset_commits().schema == schemas.decoded()["offset_commit"]
        assert topic.group_metadata().schema == schemas.decoded()["group_metadata"]
        assert topic.end_txn_markers().schema == schemas.END_TXN_MARKERS


def test_every_record_type_has_a_reader(log: Path) -> None:
    with exhume.open(log) as topic:
        counts = {name: topic.decoded(name).read_all().num_rows for name in schemas.decoded()}

    assert {name: count for name, count in counts.items() if count} == {"offset_commit": 4, "group_metadata": 1}


def test_an_unknown_table_lists_those_there_are(log: Path) -> None:
    with exhume.open(log) as topic, pytest.raises(exhume.RequestError, match="share_group_metadata"):
        topic.decoded("nonsense")


def test_records_meet_every_condition(log: Path) -> None:
    with exhume.open(log) as topic:
        assert offsets_of(topic.records(groups=["a"])) == [0, 1, 2]
        assert offsets_of(topic.records(groups=["a"], partitions=[1])) == [1]
        assert offsets_of(topic.records(types=["end_txn_marker"])) == [5]
        assert offsets_of(topic.records(from_offset=2, to_time_ms=TIME_MS + 2)) == [2, 3, 4]
        assert offsets_of(topic.records(offsets_partitions=[4])) == []
        assert offsets_of(topic.offset_commits(groups=["b"])) == [4]


def test_one_name_in_place_of_several_is_refused(log: Path) -> None:
    with exhume.open(log) as topic, pytest.raises(exhume.RequestError, match=r"groups=\['billing'\]"):
        topic.records(groups="billing")


def test_readers_read_as_they_are_asked(log: Path) -> None:
    """The second segment is hurt after the reader was made: a reader that had read ahead would not know."""
    with exhume.open(log) as topic:
        reader = topic.records()
        assert len(topic.findings) == 1
        second = log / "__consumer_offsets-3" / "00000000000000000003.log"
        content = bytearray(second.read_bytes())
        content[70] ^= 1
        second.write_bytes(content)
        reader.read_all()

        assert "crc_mismatch" in {finding.code for finding in topic.findings}


def test_a_reader_can_be_asked_for_twice(log: Path) -> None:
    with exhume.open(log) as topic:
        assert offsets_of(topic.records()) == offsets_of(topic.records())


def test_the_same_damage_met_twice_is_one_finding(log: Path) -> None:
    segment = log / "__consumer_offsets-3" / "00000000000000000003.log"
    segment.write_bytes(segment.read_bytes()[:-5])
    with exhume.open(log) as topic:
        topic.records().read_all()
        topic.batches().read_all()
        topic.inspect()
        codes = [finding.code for finding in topic.findings]

    assert codes.count("cut_tail") == 1


def test_batches_say_where_they_lie_and_how_they_were_written(log: Path) -> None:
    with exhume.open(log) as topic:
        rows = topic.batches().read_all().to_pylist()

    assert [(row["base_offset"], row["last_offset"], row["codec"], row["record_count"]) for row in rows] == [
        (0, 1, "zstd", 2),
        (2, 2, "none", 1),
        (3, 3, "none", 1),
        (4, 4, "none", 1),
        (5, 5, "none", 1),
    ]
    assert [(row["is_transactional"], row["is_control"], row["producer_id"]) for row in rows[2:]] == [
        (False, False, None),
        (True, False, 1),
        (True, True, 1),
    ]
    for row in rows:
        content = Path(row["path"]).read_bytes()[row["byte_position"] :][: row["size_bytes"]]
        assert int.from_bytes(content[:8]) == row["base_offset"]
        assert int.from_bytes(content[17:21]) == row["crc"]


def test_a_record_joins_with_its_batch(log: Path) -> None:
    with exhume.open(log) as topic:
        places = {(row["path"], row["byte_position"]) for row in topic.batches().read_all().to_pylist()}
        records = topic.records().read_all().to_pylist()

    assert {(row["path"], row["byte_position"]) for row in records} == places


def test_the_dump_keeps_raw_bytes_on_request(log: Path) -> None:
    with exhume.open(log) as topic:
        wanted = RecordFilter(types=["group_metadata"])
        [plain], [raw] = topic.dump(wanted).read_all().to_pylist(), topic.dump(wanted, raw=True).read_all().to_pylist()
        [record] = topic.records(types=["group_metadata"]).read_all().to_pylist()

    assert (plain["raw_key"], plain["raw_value"]) == (None, None)
    assert (raw["raw_key"], raw["raw_value"]) == (record["key"], record["value"])
    assert json.loads(plain["value"])["generation"] == 2


def test_a_state_has_every_table_and_groups_as_objects(log: Path) -> None:
    with exhume.open(log) as topic:
        state = topic.state(release="4.3")

    assert {name: table.schema for name, table in state.tables.items()} == dict(SCHEMAS)
    assert state.groups["group"].to_pylist() == ["a", "b"]
    assert [row["committed_offset"] for row in state.group("a").offsets] == [1]
    assert (state.group("b").group or {})["generation"] == 2
    assert state.group("b").offsets == []


def test_a_state_of_some_groups_holds_nothing_of_others(log: Path) -> None:
    with exhume.open(log) as topic:
        state = topic.state(release="4.3", groups=["a"])

    assert set(state.groups["group"].to_pylist()) | set(state.offsets["group"].to_pylist()) == {"a"}
    assert state.loads.num_rows == 1


def test_an_unknown_group_names_those_near_by(log: Path) -> None:
    with exhume.open(log) as topic, pytest.raises(exhume.RequestError, match="The 2 names are: a, b"):
        topic.state(release="4.3").group("nobody")


def test_an_unknown_release_names_those_there_are(log: Path) -> None:
    with exhume.open(log) as topic, pytest.raises(exhume.RequestError, match=r"4\.4"):
        topic.state(release="0.1")


def test_a_state_tells_of_checksums_that_no_load_looks_at(log: Path) -> None:
    segment = log / "__consumer_offsets-3" / "00000000000000000000.log"
    content = bytearray(segment.read_bytes())
    content[20] ^= 1
    segment.write_bytes(content)
    with exhume.open(log) as topic:
        state = topic.state(release="4.3")

    assert state.loads["outcome"].to_pylist() == ["loaded"]
    assert topic.findings.has_damage


def test_a_place_without_evidence_is_an_evidence_error(tmp_path: Path) -> None:
    with pytest.raises(exhume.EvidenceError) as raised:
        exhume.open(tmp_path)

    assert raised.value.path == str(tmp_path)
    assert raised.value.remedy


def test_an_unknown_leftover_is_a_request_error() -> None:
    with pytest.raises(exhume.RequestError, match="Known are cleaned, delete, deleted"):
        exhume.open(DEMO_LOG, include=["everything"])


def test_the_cap_on_what_a_batch_may_unfold_to_can_be_set(log: Path) -> None:
    with exhume.open(log, cap_bytes=50) as topic:
        assert offsets_of(topic.records()) == [2, 3, 4, 5]
        assert "decompression_bomb" in {finding.code for finding in topic.findings}


def test_checksums_are_left_alone_on_request(log: Path) -> None:
    with exhume.open(log, verify=False) as topic:
        assert set(topic.records().read_all()["crc_status"].to_pylist()) == {"not_checked"}


def test_progress_is_told_up_to_the_last_byte(log: Path) -> None:
    told: list[tuple[int, int]] = []
    with exhume.open(log, progress=lambda done, total: told.append((done, total))) as topic:
        topic.records().read_all()
    size_bytes = sum(path.stat().st_size for path in log.glob("*/*.log"))

    assert told[-1] == (size_bytes, size_bytes)
    assert told == sorted(told)


def test_buffers_outlive_the_topic(log: Path) -> None:
    with exhume.open(log) as topic:
        table = topic.records().read_all()

    assert table["key"].to_pylist()[0]


def test_the_front_door_is_all_that_is_exported() -> None:
    for name in exhume.__all__:
        assert getattr(exhume, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'closed'"):
        exhume.closed  # noqa: B018


def test_the_package_lists_its_public_names_and_no_others() -> None:
    assert sorted(dir(exhume)) == sorted(exhume.__all__)
    assert {"open", "OffsetsTopic", "CoordinatorState", "RequestError"} <= set(dir(exhume))
    assert all(getattr(exhume, name) is not None for name in dir(exhume))


def states_of(log: Path, **options: Any) -> Iterator[GradedState]:
    """The graded state that plain code and kernels give."""
    for least_bytes in (sys.maxsize, 0):
        with OffsetsTopic(discover([log]), ReadOptions(least_compiled_bytes=least_bytes)) as topic:
            yield topic.graded_state(**options)


@pytest.mark.parametrize("moment", [{}, {"at_offset": 3}, {"at_time_ms": TIME_MS + 1}], ids=["end", "offset", "time"])
def test_a_graded_state_of_some_groups_is_that_part_of_the_whole(log: Path, moment: dict[str, int]) -> None:
    wanted = {"grade_end": True, **moment}
    for groups in (["a"], ["a", "b"] if not moment else ["a"]):
        for whole, part in zip(states_of(log, **wanted), states_of(log, groups=groups, **wanted), strict=True):
            assert list(part) == [*SCHEMAS, "findings", "completeness"]
            expected = whole.state.only(groups)
            for name in SCHEMAS:
                assert part[name].equals(expected.tables[name]), name
            assert whole.completeness is not None
            grades = [row for row in whole.completeness.to_pylist() if row["group"] in groups]
            assert part["completeness"].to_pylist() == grades
            assert part["findings"].equals(whole["findings"])


def test_a_graded_state_refuses_a_group_that_cannot_have_been_there(log: Path) -> None:
    with exhume.open(log) as topic:
        with pytest.raises(RequestError, match="no group 'c' in this state") as refused:
            topic.graded_state(groups=["c"])
        # Group b has a record after the moment only, and the log is whole: it was not there.
        with pytest.raises(RequestError, match="group 'b' is not in this state"):
            topic.graded_state(groups=["b"], at_offset=1)
    assert refused.value.remedy == "The 2 names are: a, b"


def test_a_group_that_may_have_been_there_is_an_answer(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 0, first_offset=5) as partition:
        partition.append([offset_commit("a", "t", 0, 0, commit_timestamp_ms=TIME_MS)], timestamp_ms=TIME_MS)
        partition.append([offset_commit("b", "t", 0, 0, commit_timestamp_ms=TIME_MS)], timestamp_ms=TIME_MS + 1)
    with exhume.open(tmp_path) as topic:
        answer = topic.graded_state(groups=["b"], at_offset=5)
    assert answer["offsets"].num_rows == 0
    assert answer["completeness"]["grade"].to_pylist() == ["unknown"]


def test_the_state_is_graded_for_a_moment_only_unless_asked_for(log: Path) -> None:
    with exhume.open(log) as topic:
        assert "completeness" not in topic.graded_state()
        assert "completeness" in topic.graded_state(at_offset=2)
        with pytest.raises(KeyError):
            topic.graded_state()["completeness"]


def test_two_copies_differ_in_what_one_has_more(log: Path, tmp_path: Path) -> None:
    shutil.copytree(log, tmp_path / "copy")
    with exhume.open(log) as topic, exhume.open(tmp_path / "copy") as other:
        assert topic.diff_with(other).num_rows == 0
        with pytest.raises(RequestError, match="no group 'c' in these states"):
            topic.diff_with(other, groups=["c"])
