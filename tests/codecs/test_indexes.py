"""The three indexes: what their entries mean, where they end, what no broker writes."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhume.codecs.indexes import (
    AbortedTransaction,
    OffsetIndexEntry,
    TimeIndexEntry,
    decode_offset_index,
    decode_time_index,
    decode_transaction_index,
    find_index_problems,
    read_offset_index,
    read_time_index,
    read_transaction_index,
)
from exhume.codecs.log_directory import PartitionDirectory, discover

BASE = 1000
TIME = 1600000000000
GOLDEN_TRANSACTION = bytes.fromhex("000000000000000003e8000000000000000f00000000000000100000000000000011")


def offset_index(*entries: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">ii", relative, position) for relative, position in entries)


def time_index(*entries: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">qi", timestamp, relative) for timestamp, relative in entries)


def aborted(producer_id: int, first: int, last: int, stable: int, version: int = 0) -> bytes:
    return struct.pack(">hqqqq", version, producer_id, first, last, stable)


def partition_with(tmp_path: Path, **files: bytes) -> PartitionDirectory:
    directory = tmp_path / "__consumer_offsets-0"
    directory.mkdir()
    for kind, content in files.items():
        (directory / f"{BASE:020d}.{kind}").write_bytes(content)
    return discover([directory]).partitions[0]


@pytest.mark.parametrize(
    "entries",
    [
        [(10, 4200), (21, 8500)],
        [(57, 4200), (113, 9000)],
        [(10, 4196), (19, 8400), (33, 12700)],
    ],
    ids=[
        "first offset of the append, to 1.1",
        "last offset of the append with its first position, 2.0 to 3.9",
        "last offset of the batch, 4.0",
    ],
)
def test_an_offset_index_gives_record_offsets_and_byte_positions(entries: list[tuple[int, int]]) -> None:
    index = decode_offset_index(offset_index(*entries), BASE)

    assert index.entries == [OffsetIndexEntry(BASE + relative, position) for relative, position in entries]
    assert index.problems == []


@pytest.mark.parametrize("tail", [8, 4096, 10485760 - 16])
def test_preallocated_zeros_end_an_offset_index(tail: int) -> None:
    index = decode_offset_index(offset_index((10, 4200), (21, 8500)) + bytes(tail), BASE)

    assert [entry.record_offset for entry in index.entries] == [1010, 1021]
    assert index.problems == []


def test_a_first_entry_at_the_base_offset_counts_and_a_second_ends_the_index() -> None:
    index = decode_offset_index(offset_index((0, 4200), (0, 8500), (5, 9000)), BASE)

    assert index.entries == [OffsetIndexEntry(1000, 4200)]


@pytest.mark.parametrize("size", [0, 8, 10485760])
def test_an_offset_index_of_zeros_only_has_no_entries(size: int) -> None:
    assert decode_offset_index(bytes(size), BASE).entries == []


def test_an_offset_index_of_13_bytes_has_one_entry_and_a_problem_at_byte_8() -> None:
    index = decode_offset_index(offset_index((10, 4200)) + b"\0\0\0\1\0", BASE)

    assert len(index.entries) == 1
    assert [(problem.code, problem.byte_position) for problem in index.problems] == [("index_partial_entry", 8)]


@pytest.mark.parametrize(
    ("entries", "code", "byte_position"),
    [
        ([(10, 4200), (10, 8500)], "index_backwards", 8),
        ([(10, 4200), (11, 8500), (9, 9000)], "index_backwards", 16),
        ([(10, 4200), (11, 4100)], "index_backwards", 8),
        ([(-1, 4200)], "index_negative", 0),
        ([(1, -4200)], "index_negative", 0),
    ],
    ids=["offset twice", "offset back", "position back", "offset below the base", "negative position"],
)
def test_what_no_broker_writes_into_an_offset_index_is_a_problem(entries: list[tuple[int, int]], code: str, byte_position: int) -> None:
    problems = decode_offset_index(offset_index(*entries), BASE).problems

    assert (code, byte_position) in [(problem.code, problem.byte_position) for problem in problems]


def test_a_time_index_gives_timestamps_and_record_offsets() -> None:
    index = decode_time_index(time_index((TIME, 10), (TIME, 10), (TIME + 5, 21)) + bytes(1200), BASE)

    assert index.entries == [TimeIndexEntry(TIME, 1010), TimeIndexEntry(TIME, 1010), TimeIndexEntry(TIME + 5, 1021)]
    assert index.problems == []


@pytest.mark.parametrize("entries", [[(TIME, 10), (TIME - 1, 21)], [(TIME, 10), (TIME + 1, 9)]], ids=["timestamp", "offset"])
def test_a_time_index_that_goes_back_is_a_problem(entries: list[tuple[int, int]]) -> None:
    problems = decode_time_index(time_index(*entries), BASE).problems

    assert [(problem.code, problem.byte_position) for problem in problems] == [("index_backwards", 12)]


def test_the_golden_transaction_index_names_producer_and_offsets() -> None:
    index = decode_transaction_index(GOLDEN_TRANSACTION)

    assert index.entries == [AbortedTransaction(producer_id=1000, first_offset=15, last_offset=16, last_stable_offset=17)]
    assert index.problems == []


def test_a_partial_entry_at_the_end_of_a_transaction_index_costs_nothing_but_itself() -> None:
    index = decode_transaction_index(GOLDEN_TRANSACTION + GOLDEN_TRANSACTION[:33])

    assert len(index.entries) == 1
    assert [problem.code for problem in index.problems] == ["index_partial_entry"]


def test_an_unknown_version_in_a_transaction_index_is_left_out_and_named() -> None:
    index = decode_transaction_index(aborted(1, 2, 3, 4) + aborted(5, 6, 7, 8, version=256) + aborted(9, 10, 11, 12))

    assert [entry.producer_id for entry in index.entries] == [1, 9]
    assert [(problem.code, problem.byte_position) for problem in index.problems] == [("index_unknown_version", 34)]


def test_aborted_transactions_out_of_order_are_a_problem() -> None:
    problems = decode_transaction_index(aborted(1, 2, 9, 9) + aborted(1, 4, 5, 9)).problems

    assert [problem.code for problem in problems] == ["index_backwards"]


def test_the_indexes_beside_a_segment_are_read_with_its_base_offset(tmp_path: Path) -> None:
    partition = partition_with(
        tmp_path, log=bytes(9000), index=offset_index((10, 4200)), timeindex=time_index((TIME, 10)), txnindex=GOLDEN_TRANSACTION
    )

    segment = partition.segments[0]
    assert read_offset_index(segment) == [OffsetIndexEntry(1010, 4200)]
    assert read_time_index(segment) == [TimeIndexEntry(TIME, 1010)]
    assert read_transaction_index(segment)[0].producer_id == 1000


def test_a_segment_without_indexes_has_no_entries(tmp_path: Path) -> None:
    segment = partition_with(tmp_path, log=b"").segments[0]

    assert (read_offset_index(segment), read_time_index(segment), read_transaction_index(segment)) == ([], [], [])


def test_an_index_that_points_behind_its_segment_is_a_finding(tmp_path: Path) -> None:
    partition = partition_with(tmp_path, log=bytes(5000), index=offset_index((10, 4200), (21, 8500)))

    findings = list(find_index_problems(partition))

    assert [(finding.code, finding.byte_position, finding.offsets_partition) for finding in findings] == [("index_beyond_segment", 8, 0)]
    assert findings[0].path == str(tmp_path / "__consumer_offsets-0" / f"{BASE:020d}.index")


def test_healthy_indexes_give_no_findings(tmp_path: Path) -> None:
    partition = partition_with(tmp_path, log=bytes(9000), index=offset_index((10, 4200)) + bytes(800), timeindex=bytes(1200))

    assert list(find_index_problems(partition)) == []


@given(data=st.binary(max_size=300), base_offset=st.integers(0, 2**63 - 1))
def test_any_bytes_are_an_index_with_or_without_problems(data: bytes, base_offset: int) -> None:
    assert len(decode_offset_index(data, base_offset).entries) <= len(data) // 8
    assert len(decode_time_index(data, base_offset).entries) <= len(data) // 12
    assert len(decode_transaction_index(data).entries) <= len(data) // 34
