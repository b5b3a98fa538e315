"""The state at a moment is that of a log which ends there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import exhume
from exhume.codecs.batch_writer import NewRecord, encode_batch
from exhume.codecs.batches import BatchWalk
from exhume.codecs.record_types import COMMIT
from exhume.codecs.records import read_records
from exhume.errors import RequestError
from exhume.fixtures.log_writer import KeyValue, PartitionWriter, offset_commit, tombstone
from exhume.replay.state import CoordinatorState
from tests.judges import corpus

NOW_MS = 1_700_000_000_000
TRANSACTION = {"producer_id": 7, "producer_epoch": 1, "base_sequence": 0, "is_transactional": True}


def commit(committed_offset: int, group: str = "billing", *, commit_timestamp_ms: int = NOW_MS) -> KeyValue:
    return offset_commit(group, "orders", 0, committed_offset, commit_timestamp_ms=commit_timestamp_ms)


def write(directory: Path, append: Callable[[PartitionWriter], object], offsets_partition: int = 7) -> Path:
    with PartitionWriter(directory, offsets_partition) as log:
        append(log)
    return directory


def state(directory: Path, **options: Any) -> CoordinatorState:
    with exhume.open(directory) as topic:
        return topic.state(**options)


def committed(answer: CoordinatorState) -> dict[str, int]:
    return {row["group"]: row["committed_offset"] for row in answer.offsets.to_pylist()}


def load_of(answer: CoordinatorState) -> dict[str, Any]:
    (row,) = answer.loads.to_pylist()
    return dict(row)


def codes(answer: CoordinatorState) -> set[str]:
    return {finding.code for finding in answer.findings}


# --- Against a log that was really cut off


def cut_off(partition: Path, last_offset: int, target: Path) -> Path:
    """A copy of this partition that ends behind record `last_offset`: whole batches byte for byte, the last one written anew."""
    copy = target / partition.name
    copy.mkdir(parents=True)
    for segment in sorted(partition.glob("*.log")):
        buffer = segment.read_bytes()
        kept = b""
        is_over = False
        for batch in BatchWalk(buffer):
            is_over = batch.last_offset >= last_offset
            if batch.last_offset <= last_offset:
                kept += buffer[batch.byte_position : batch.end_position]
            else:
                records = [record for record in read_records(buffer, batch) if record.record_offset <= last_offset]
                fields: dict[str, Any] = {}
                if batch.magic == 2:
                    fields = {name: getattr(batch, name) for name in ("producer_id", "producer_epoch", "base_sequence", "is_transactional")}
                new = [NewRecord(record.record_offset, record.timestamp_ms, record.key, record.value) for record in records]
                kept += encode_batch(new, base_offset=new[0].offset, magic=batch.magic, **fields) if new else b""
            if is_over:
                break
        if kept or not any(copy.iterdir()):
            # A segment is begun when its first batch comes: an empty one would be a gap at the end.
            (copy / segment.name).write_bytes(kept)
        if is_over:
            break
    return target


def rows_of(answer: CoordinatorState) -> dict[str, Any]:
    tables = {name: table.to_pylist() for name, table in answer.tables.items() if name != "loads"}
    row = load_of(answer)
    return tables | {
        "load": {name: row[name] for name in ("outcome", "record_offset", "first_record_offset", "last_record_offset", "end_offset")}
    }


CUT_LOGS = [
    pytest.param("random/classic-txn-3.5-103", ("2.8.2", "4.3.0"), marks=pytest.mark.slow),
    ("random/classic-plain-0.9-101", ("0.10.2.2",)),
    ("random/consumer-4.0-105", ("4.3.0",)),
    pytest.param("random/streams-4.3-107", ("4.3.0",), marks=pytest.mark.slow),
    pytest.param("random/share-4.3-108", ("4.3.0",), marks=pytest.mark.slow),
    pytest.param("random/hostile-java-4.0-901", ("4.3.0",), marks=pytest.mark.slow),
    ("facts/mixed-magic", ("2.8.2",)),
    ("facts/wrapper-v1-inner-v0", ("2.8.2",)),
]


@pytest.mark.one_of(4)
@pytest.mark.parametrize(("name", "releases"), CUT_LOGS)
def test_the_state_at_every_record_offset_is_that_of_a_log_cut_off_there(name: str, releases: tuple[str, ...], tmp_path: Path) -> None:
    for partition in small_partitions(corpus.BUNDLED / name / "data"):
        alone = tmp_path / partition.name / "data" / partition.name
        alone.mkdir(parents=True)
        for segment in partition.glob("*.log"):
            (alone / segment.name).write_bytes(segment.read_bytes())
        first, last = offsets_of(partition)

        with exhume.open(alone.parent) as topic:
            for record_offset in range(first, last + 1):
                directory = cut_off(alone, record_offset, tmp_path / partition.name / str(record_offset) / "data")
                for release in releases:
                    ours = topic.state(release=release, stop="clean", at_offset=record_offset)
                    assert rows_of(ours) == rows_of(state(directory, release=release, stop="clean")), (partition, record_offset, release)


@pytest.mark.parametrize(("name", "releases"), CUT_LOGS)
def test_the_state_at_the_last_record_offset_is_the_state_at_the_end(name: str, releases: tuple[str, ...]) -> None:
    for partition in small_partitions(corpus.BUNDLED / name / "data"):
        with exhume.open(partition) as topic:
            for release in releases:
                end = topic.state(release=release, stop="clean")
                assert rows_of(topic.state(release=release, stop="clean", at_offset=offsets_of(partition)[1])) == rows_of(end)


def small_partitions(data: Path, most_offsets: int = 60, most: int = 8) -> list[Path]:
    """The first partitions with few enough offsets to stop at each."""
    partitions = sorted(path for path in data.iterdir() if path.is_dir() and any(path.glob("*.log")))
    return [path for path in partitions if offsets_of(path)[1] < most_offsets][:most]


def offsets_of(partition: Path) -> tuple[int, int]:
    batches = [batch for segment in sorted(partition.glob("*.log")) for batch in BatchWalk(segment.read_bytes())]
    return batches[0].base_offset or 0, batches[-1].last_offset


def test_offsets_at_every_record_are_those_of_a_dictionary_filled_so_far(tmp_path: Path) -> None:
    groups = ["billing", "search", "billing", "billing", "carts", "search"]
    deletes = {3, 5}
    records = [tombstone(commit(0, group)) if number in deletes else commit(number, group) for number, group in enumerate(groups)]

    def append(log: PartitionWriter) -> None:
        log.append(records[:4])
        log.append(records[4:])

    write(tmp_path, append)
    expected: dict[str, int] = {}
    for number, group in enumerate(groups):
        expected |= {group: number}
        if number in deletes:
            del expected[group]
        for release in ("2.4.1", "2.8.2", "4.3.0"):
            assert committed(state(tmp_path, release=release, at_offset=number)) == expected


# --- Where a cut lies


def test_a_cut_in_the_middle_of_a_batch_leaves_its_later_records_out(tmp_path: Path) -> None:
    write(tmp_path, lambda log: log.append([commit(1, "a"), commit(2, "b"), commit(3, "c")]))

    answer = state(tmp_path, at_offset=1)

    assert committed(answer) == {"a": 1, "b": 2}
    row = load_of(answer)
    assert (row["at_offset"], row["end_offset"], row["last_record_offset"], row["records_read"]) == (1, 2, 1, 2)


def test_a_moment_in_the_middle_of_a_transaction_shows_it_pending(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([commit(5)], **TRANSACTION)
        log.append_marker(COMMIT, producer_id=7, producer_epoch=1)

    write(tmp_path, append)

    before, after = (state(tmp_path, at_offset=number) for number in (0, 1))

    assert [row["committed_offset"] for row in before.pending_offsets.to_pylist()] == [5]
    assert (committed(before), committed(after)) == ({}, {"billing": 5})


def test_a_load_that_aborts_behind_the_moment_is_not_aborted(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([commit(1)])
        log.append([(commit(2)[0], b"\0\x09")])

    write(tmp_path, append)

    assert [load_of(state(tmp_path, at_offset=number))["outcome"] for number in (0, 1)] == ["loaded", "aborted"]


def test_bytes_that_no_reader_survives_behind_the_moment_do_not_count(tmp_path: Path) -> None:
    write(tmp_path, lambda log: [log.append([commit(number)]) for number in range(3)])
    segment = next(tmp_path.glob("*/*.log"))
    data = bytearray(segment.read_bytes())
    data[2 * len(data) // 3 + 16] = 9
    segment.write_bytes(data)

    at_1, end = state(tmp_path, stop="clean", at_offset=1), state(tmp_path, stop="clean")

    assert (load_of(at_1)["outcome"], committed(at_1)) == ("loaded", {"billing": 1})
    assert load_of(end)["outcome"] == "aborted"


def test_a_log_that_ends_at_the_moment_has_no_gap_at_its_end(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([commit(1)])
        log.roll(50)

    write(tmp_path, append)

    assert [load_of(state(tmp_path, release="4.3.0", at_offset=number))["outcome"] for number in (0, 49)] == ["loaded", "not_shown"]


def test_a_moment_before_the_first_record_is_an_empty_log_and_no_gap(tmp_path: Path) -> None:
    write(tmp_path, lambda log: log.append([commit(1)], timestamp_ms=100))

    answer = state(tmp_path, release="4.3.0", at_time_ms=99)

    assert (load_of(answer)["outcome"], load_of(answer)["records_read"], committed(answer)) == ("loaded", 0, {})


def test_lenient_mode_is_cut_off_too(tmp_path: Path) -> None:
    write(tmp_path, lambda log: [log.append([commit(1, "a"), commit(2, "b")]), log.append([commit(3, "c")])])

    assert committed(state(tmp_path, mode="lenient", at_offset=0)) == {"a": 1}


def test_partitions_without_an_offset_are_taken_to_their_end_and_the_answer_says_so(tmp_path: Path) -> None:
    for number in (7, 8):
        write(tmp_path, lambda log: log.append([commit(1), commit(2, f"of-{log.directory.name[-1]}")]), number)

    answer = state(tmp_path, at_offset={7: 0})

    assert {row["offsets_partition"]: (row["at_offset"], row["last_record_offset"]) for row in answer.loads.to_pylist()} == {
        7: (0, 0),
        8: (None, 1),
    }
    assert [(finding.code, finding.offsets_partition) for finding in answer.findings if finding.code == "taken_to_its_end"] == [
        ("taken_to_its_end", 8)
    ]


@pytest.mark.parametrize(
    ("moment", "words"),
    [
        ({"at_offset": 3}, "needs an offsets partition"),
        ({"at_offset": {9: 3}}, "9 is not in these logs"),
        ({"at_offset": {7: -1}}, "negative"),
        ({"at_offset": {7: 2**63}}, "64 bits"),
        ({"at_time_ms": 2**63}, "64 bits"),
        ({"at_offset": {7: 1}, "at_time_ms": 5}, "not both"),
        ({"at_offset": {7: 1}, "clock": "commit"}, "clock"),
    ],
)
def test_a_moment_that_the_log_cannot_have_is_a_wrong_request(tmp_path: Path, moment: dict[str, Any], words: str) -> None:
    for number in (7, 8):
        write(tmp_path, lambda log: log.append([commit(1)]), number)

    with pytest.raises(RequestError, match=words):
        state(tmp_path, **moment)


# --- By time


def timed(directory: Path, *times_ms: int | None) -> Path:
    return write(directory, lambda log: [log.append([commit(n)], timestamp_ms=time_ms) for n, time_ms in enumerate(times_ms)])


@pytest.mark.parametrize(("at_time_ms", "last"), [(99, None), (100, 0), (199, 0), (200, 2), (5000, 3)])
def test_a_cut_by_time_includes_every_record_of_that_millisecond(tmp_path: Path, at_time_ms: int, last: int | None) -> None:
    timed(tmp_path, 100, 200, 200, 300)

    row = load_of(state(tmp_path, at_time_ms=at_time_ms))

    assert (row["last_record_offset"], row["clock"], row["is_ordered_by_clock"], row["out_of_order_records"]) == (last, "append", True, 0)


def test_a_record_behind_a_later_one_is_left_out_however_old_it_claims_to_be(tmp_path: Path) -> None:
    timed(tmp_path, 100, 300, 150, 400)

    answer = state(tmp_path, at_time_ms=200)

    assert committed(answer) == {"billing": 0}
    assert (load_of(answer)["is_ordered_by_clock"], load_of(answer)["out_of_order_records"]) == (False, 1)
    (finding,) = [finding for finding in answer.findings if finding.code == "time_goes_back"]
    assert finding.first_record_offset == 1
    assert "1 records after it" in finding.sentence


def test_a_clock_that_went_back_elsewhere_is_no_doubt_about_this_moment(tmp_path: Path) -> None:
    timed(tmp_path, 100, 300, 250, 400)

    answer = state(tmp_path, at_time_ms=150)

    assert not load_of(answer)["is_ordered_by_clock"]
    assert "time_goes_back" not in codes(answer)


def test_the_commit_clock_reads_the_time_inside_commits(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([commit(1, commit_timestamp_ms=100), commit(2, commit_timestamp_ms=900)], timestamp_ms=500)
        log.append([tombstone(commit(0))], timestamp_ms=950)

    write(tmp_path, append)

    by_append, by_commit = (state(tmp_path, at_time_ms=600, clock=clock) for clock in ("append", "commit"))

    assert (committed(by_append), committed(by_commit)) == ({"billing": 2}, {"billing": 1})
    assert load_of(by_commit)["clock"] == "commit"


def test_a_log_without_times_is_taken_to_its_end_with_a_warning(tmp_path: Path) -> None:
    write(tmp_path, lambda log: log.append([commit(1)], timestamp_ms=None, magic=0))

    answer = state(tmp_path, at_time_ms=5)

    assert committed(answer) == {"billing": 1}
    assert load_of(answer)["is_ordered_by_clock"] is None
    assert "no_times" in codes(answer)
