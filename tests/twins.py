"""A log that compiled kernels read, against the same log that plain code reads: tables and findings must be equal.

Kernels share their work between threads. Comparisons of states take the numbers of `THREADS` in turn: a log that is loaded for several
releases and modes is loaded with each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from exhume.codecs import schemas
from exhume.codecs.columns import blocks
from exhume.codecs.columns.record_blocks import record_blocks
from exhume.codecs.kernels import scan
from exhume.codecs.log_directory import discover
from exhume.codecs.record_chunks import RecordChunk, chunk_of
from exhume.codecs.record_filter import RecordFilter
from exhume.codecs.segment_reader import ReadOptions, SegmentReader
from exhume.findings import Findings
from exhume.replay import local
from exhume.replay.partition_load import Mode
from exhume.replay.state import CoordinatorState
from exhume.topic import OffsetsTopic
from tests.naive import tables
from tests.written_batches import Written, encode_log, first_offset_of

#: Values of `least_compiled_bytes` by which kernels read every log, or none.
COMPILED, PLAIN = 0, 1 << 60
#: Both coordinators, and every rule that the fold takes from a profile.
RELEASES = ("0.11.0.3", "2.0.0", "2.1.1", "2.8.2", "3.7.2-new", "3.8.1-new", "4.0.0", "4.3.0")
MODES: tuple[Mode, ...] = ("strict", "lenient")
THREADS = (1, 2, 8)

Answer = dict[str, Any]
Readers = dict[str, Callable[[OffsetsTopic], pa.RecordBatchReader]]
Rows = dict[str, Callable[[SegmentReader], pa.Table]]


class CompiledLoads:
    """Counts the partitions that kernels loaded."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        original = local._load_in_columns

        def spy(*arguments: Any) -> Any:
            load = original(*arguments)
            self.count += load is not None
            return load

        monkeypatch.setattr(local, "_load_in_columns", spy)


class CompiledBatches:
    """Counts the batches that kernels read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        original = scan.in_order

        def spy(*arguments: Any) -> int:
            count = int(original(*arguments))
            self.count += count
            return count

        monkeypatch.setattr(scan, "in_order", spy)


def write_segments(directory: Path, batches: Sequence[Written], cut: int) -> list[Path]:
    """Write these batches to offsets partition 0, so many in each segment."""
    content, headers = encode_log(batches)
    partition = directory / "__consumer_offsets-0"
    partition.mkdir(parents=True)
    places = [(0, 0), *((first_offset_of(content, header), header.byte_position) for header in headers[cut : len(headers) : cut])]
    ends = [position for _, position in places[1:]] + [len(content)]
    segments = [partition / f"{base_offset:020d}.log" for base_offset, _ in places]
    for segment, (_, position), end in zip(segments, places, ends, strict=True):
        segment.write_bytes(content[position:end])
    return segments


# States


def state_of(
    directory: Path,
    *,
    least_bytes: int,
    release: str,
    mode: Mode = "strict",
    threads: int = 1,
    asked: dict[str, Any] | None = None,
    **options: Any,
) -> Answer:
    """All that a load says: tables by name, and findings. `asked` are further options of `state`, `options` of `ReadOptions`."""
    evidence = discover([str(directory)], include=frozenset(), temp_dir=None)
    with OffsetsTopic(evidence, ReadOptions(least_compiled_bytes=least_bytes, threads=threads, **options)) as topic:
        state = topic.state(release=release, mode=mode, **asked or {})
        answer: Answer = dict(state.tables)
        if asked is not None:
            answer["completeness"] = topic.completeness(state)
        return answer | {"findings": sorted(map(repr, topic.findings))}


def assert_same_states(
    directory: Path, releases: Sequence[str] = RELEASES, modes: Sequence[Mode] = MODES, *, turn: int = 0, **options: Any
) -> None:
    """Raises where kernels say something else than plain code. `turn` is the place in `THREADS` to begin with."""
    for number, (release, mode) in enumerate(product(releases, modes), turn):
        threads = THREADS[number % len(THREADS)]
        plainly = state_of(directory, least_bytes=PLAIN, release=release, mode=mode, **options)
        compiled = state_of(directory, least_bytes=COMPILED, release=release, mode=mode, threads=threads, **options)
        assert_equal(compiled, plainly, (release, mode, threads, options))


def assert_equal(found: Answer, expected: Answer, about: object) -> None:
    """Raises where two answers differ, and says by which rows."""
    assert found.keys() == expected.keys()
    for name, table in expected.items():
        if found[name] == table:
            continue
        if isinstance(table, pa.Table):
            assert found[name].schema == table.schema, (name, about)
            assert found[name].to_pylist() == table.to_pylist(), (name, about)
        assert found[name] == table, (name, about)


def groups_of(state: CoordinatorState) -> list[str]:
    """The groups that a state has something of."""
    tables = ("groups", "offsets", "pending_offsets", "share_partitions")
    return sorted({name for table in tables for name in state.tables[table]["group"].to_pylist()})


# Histories


def history_of(directory: Path, group: str, key: tuple[str, int] | None = None, *, release: str, **options: Any) -> list[dict[str, Any]]:
    """The history of a group, or of one of its keys. `options` are those of `ReadOptions`."""
    asked: dict[str, Any] = {} if key is None else {"topic": key[0], "partition": key[1]}
    with OffsetsTopic(discover([str(directory)], include=frozenset(), temp_dir=None), ReadOptions(**options)) as topic:
        rows: list[dict[str, Any]] = topic.history(group, release=release, **asked).to_pylist()
        return rows


def assert_same_histories(directory: Path, groups: Collection[str], release: str, threads: int) -> int:
    """Raises where the history of one of these groups or of its keys is another than by plain code; how many records they have."""
    count = 0
    for number, group in enumerate(groups):
        plainly = history_of(directory, group, release=release, least_compiled_bytes=PLAIN)
        count += len(plainly)
        assert history_of(directory, group, release=release, least_compiled_bytes=COMPILED, threads=threads) == plainly, (directory, group)
        # A key that is cut off names no partition.
        commits = [row for row in plainly if row["record_type"] in {0, 1} and row["partition"] is not None]
        keys = sorted({(row["topic"], row["partition"]) for row in commits})
        for key in keys[number % 2 :: 2][:2]:
            wanted = [row for row in commits if (row["topic"], row["partition"]) == key]
            found = history_of(directory, group, key, release=release, least_compiled_bytes=COMPILED, threads=threads)
            assert found == wanted, (directory, group, key)
    return count


# Tables


READERS: Readers = {
    "batches": OffsetsTopic.batches,
    "records": OffsetsTopic.records,
    "offset commits": OffsetsTopic.offset_commits,
    "offset commits of two groups": lambda topic: topic.offset_commits(groups=["billing", "carts"]),
    "group metadata": OffsetsTopic.group_metadata,
    "group metadata of two groups": lambda topic: topic.group_metadata(groups=["billing", "carts"]),
    "end-transaction markers": OffsetsTopic.end_txn_markers,
    "dump": OffsetsTopic.dump,
    "dump with raw bytes": lambda topic: topic.dump(raw=True),
    "partitions": lambda topic: topic.inspect().tables()["partitions"].to_reader(),
    "segments": lambda topic: topic.inspect().tables()["segments"].to_reader(),
    "record types": lambda topic: topic.inspect().tables()["record_types"].to_reader(),
    "gaps": lambda topic: topic.inspect().tables()["gaps"].to_reader(),
}


_TWO_GROUPS = RecordFilter(groups=["billing", "carts"])
#: The tables of `READERS` by `tests.naive.tables`.
ROWS: Rows = {
    "batches": tables.batches,
    "records": tables.records,
    "offset commits": lambda reader: tables.typed(reader, "offset_commit"),
    "offset commits of two groups": lambda reader: tables.typed(reader, "offset_commit", _TWO_GROUPS),
    "group metadata": lambda reader: tables.typed(reader, "group_metadata"),
    "group metadata of two groups": lambda reader: tables.typed(reader, "group_metadata", _TWO_GROUPS),
    "end-transaction markers": lambda reader: tables.typed(reader, "end_txn_markers"),
    "dump": tables.dump,
    "dump with raw bytes": lambda reader: tables.dump(reader, raw=True),
}


def table_of(reader: pa.RecordBatchReader) -> pa.Table:
    """All that this reader gives, its arrays checked to the last byte."""
    table = reader.read_all()
    table.validate(full=True)
    return table


@contextmanager
def reading(least_bytes: int) -> Iterator[None]:
    """With `PLAIN`, only the careful reader reads batches: kernels scan none."""
    with pytest.MonkeyPatch.context() as patch:
        if least_bytes == PLAIN:
            patch.setattr(blocks, "_scanned", lambda *_: iter(()))
            patch.setattr(blocks, "_leads_on", lambda *_: False)
        yield


def tables_of(directory: Path, *, least_bytes: int, verify: bool = True, readers: Readers = READERS, threads: int = 2) -> Answer:
    """Every table, and the findings while it was read."""
    answer: Answer = {}
    for name, read in readers.items():
        options = ReadOptions(verify=verify, least_compiled_bytes=least_bytes, threads=threads)
        with reading(least_bytes), OffsetsTopic(discover([str(directory)]), options) as topic:
            answer[name] = table_of(read(topic))
            answer[f"findings of {name}"] = [repr(finding) for finding in topic.findings]
    return answer


def rows_of(directory: Path, rows: Rows, *, verify: bool = True) -> Answer:
    """These tables, and the findings while they were read, by the twin that makes rows of single records."""
    answer: Answer = {}
    for name, read in rows.items():
        with discover([str(directory)]) as evidence:
            findings = Findings(evidence.findings)
            answer[name] = read(SegmentReader(evidence, ReadOptions(verify=verify), findings))
            answer[f"findings of {name}"] = [repr(finding) for finding in findings]
    return answer


def assert_same_tables(
    directory: Path, *, verify: bool = True, readers: Readers = READERS, rows: Rows = ROWS, threads: Sequence[int] = (1, 2)
) -> None:
    """Raises where kernels read other tables than plain code."""
    plainly = tables_of(directory, least_bytes=PLAIN, verify=verify, readers=readers)
    by_rows = rows_of(directory, rows, verify=verify)
    assert_equal({name: plainly[name] for name in by_rows}, by_rows, "rows")
    for number in threads:
        compiled = tables_of(directory, least_bytes=COMPILED, verify=verify, readers=readers, threads=number)
        assert_equal(compiled, plainly, number)


def record_chunks(reader: SegmentReader) -> Iterator[RecordChunk]:
    """The chunks that detectors read, in order."""
    return map(chunk_of, record_blocks(reader))


def chunk_rows(directory: Path, least_bytes: int) -> list[list[dict[str, Any]]]:
    """All commits and all other records of the chunks that detectors read, as rows."""
    found: list[list[dict[str, Any]]] = [[], []]
    with reading(least_bytes), discover([str(directory)]) as evidence:
        for chunk in record_chunks(SegmentReader(evidence, ReadOptions(least_compiled_bytes=least_bytes), Findings())):
            found[0] += chunk.commits.cast(schemas.decoded()["offset_commit"]).to_pylist()
            found[1] += chunk.others.to_pylist()
    return found
