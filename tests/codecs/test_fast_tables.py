"""Tables by kernels against the plain reading: every row, every finding, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import crc32c
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import exhume
from exhume.codecs.batch_writer import NewRecord, encode_batch
from exhume.codecs.columns import tables as columns_tables
from exhume.codecs.columns.arrow import ROWS
from exhume.codecs.columns.pieces import Piece, pieces
from exhume.codecs.kernels import scan
from exhume.codecs.log_directory import discover
from exhume.codecs.record_filter import RecordFilter
from exhume.codecs.segment_reader import ReadOptions, SegmentReader
from exhume.findings import Findings
from exhume.fixtures.log_writer import PartitionWriter, offset_commit
from exhume.topic import OffsetsTopic
from tests import strategies
from tests.conftest import Compared
from tests.judges import corpus
from tests.written_batches import KeyValue, Written, encode_log, first_offset_of

Readers = dict[str, Callable[[OffsetsTopic], pa.RecordBatchReader]]

_NEVER = 1 << 60
THREADS = (1, 2)


class _Taken:
    """Counts the batches that went through kernels."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        original = scan.in_order

        def spy(*arguments: Any) -> int:
            count = int(original(*arguments))
            self.count += count
            return count

        monkeypatch.setattr(scan, "in_order", spy)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> _Taken:
    return _Taken(monkeypatch)


def table_of(reader: pa.RecordBatchReader) -> pa.Table:
    """All that this reader gives, its arrays checked to the last byte."""
    table = reader.read_all()
    table.validate(full=True)
    return table


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


def tables(directory: Path, *, least_bytes: int, verify: bool = True, readers: Readers = READERS, threads: int = 2) -> dict[str, Any]:
    """Every table, and what was found while it was read."""
    found: dict[str, Any] = {}
    for name, read in readers.items():
        with OffsetsTopic(
            discover([str(directory)]), ReadOptions(verify=verify, least_compiled_bytes=least_bytes, threads=threads)
        ) as topic:
            table = table_of(read(topic))
            found[name] = (table.schema, table.to_pylist())
            found[f"findings of {name}"] = [repr(finding) for finding in topic.findings]
    return found


def assert_same(directory: Path, *, verify: bool = True, readers: Readers = READERS, threads: Sequence[int] = THREADS) -> None:
    plainly = tables(directory, least_bytes=_NEVER, verify=verify, readers=readers)
    for number in threads:
        by_kernels = tables(directory, least_bytes=0, verify=verify, readers=readers, threads=number)
        for name, table in plainly.items():
            assert by_kernels[name] == table, (name, number)


def _logs(root: Path) -> Iterator[Path]:
    return (answer for answer in sorted({answer.data for case in corpus.cases(root) for answer in case.answers() if answer.data.is_dir()}))


def test_every_bundled_log(taken: _Taken, compared: Compared) -> None:
    for directory in _logs(corpus.BUNDLED):
        assert_same(directory, threads=(1, 2, 8))

    assert taken.count > 15_000
    compared["batches by kernels", "the plain reading"] += taken.count


def write(directory: Path, batches: Sequence[Written], cut: int) -> list[Path]:
    """These batches as two segments."""
    content, headers = encode_log(batches)
    partition = directory / "__consumer_offsets-0"
    partition.mkdir(parents=True)
    cut = min(cut, len(headers) - 1)
    places = [(0, 0)] if cut < 1 else [(0, 0), (first_offset_of(content, headers[cut]), headers[cut].byte_position)]
    ends = [position for _, position in places[1:]] + [len(content)]
    written = []
    for (base_offset, position), end in zip(places, ends, strict=True):
        written.append(partition / f"{base_offset:020d}.log")
        written[-1].write_bytes(content[position:end])
    return written


_SETTINGS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
_ANY_LOG = strategies.any_logs()


@settings(_SETTINGS, max_examples=60 * strategies.TIMES)
@given(batches=_ANY_LOG, cut=st.integers(0, 12), verify=st.booleans())
def test_a_generated_log(batches: list[Written], cut: int, verify: bool, tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("log")
    write(directory, batches, cut)

    with pytest.MonkeyPatch.context() as patch:
        # Some batches are work for a thread: even these logs are decoded in many parts.
        patch.setattr(columns_tables, "PIECE_BYTES", 300)
        assert_same(directory, verify=verify, threads=(1, 3))


@settings(_SETTINGS, max_examples=100 * strategies.TIMES)
@given(data=st.data(), batches=_ANY_LOG, cut=st.integers(0, 12), verify=st.booleans())
def test_a_generated_log_that_is_damaged(
    data: st.DataObject, batches: list[Written], cut: int, verify: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("log")
    segments = write(directory, batches, cut)
    segment = data.draw(st.sampled_from(segments))
    content = bytearray(segment.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    segment.write_bytes(content[: data.draw(st.sampled_from((len(content), len(content), len(content) - 5)))])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns_tables, "PIECE_BYTES", 300)
        assert_same(directory, verify=verify, threads=(3,))


_NAMES = ("billing", "carts", "refunds", "orders", "a\ufffdb", "\ud800", "")
_FILTERS = st.builds(
    RecordFilter,
    groups=st.none() | st.sets(st.sampled_from(_NAMES), max_size=2),
    topics=st.none() | st.none() | st.sets(st.sampled_from(_NAMES), max_size=2),
    partitions=st.none() | st.none() | st.sets(st.sampled_from((0, 1, -1, 1 << 40)), max_size=2),
    types=st.none()
    | st.sets(st.sampled_from(("offset_commit", "group_metadata", "end_txn_marker", "control", "unknown", "1", "5", "-1", "999", "20000"))),
    from_offset=st.none() | st.integers(0, 12),
    to_offset=st.none() | st.integers(12, 40),
    from_time_ms=st.none() | st.integers(-2, 3_000),
    to_time_ms=st.none() | st.integers(3_000, 9_000),
    offsets_partitions=st.none() | st.none() | st.sets(st.sampled_from((0, 1))),
)


@settings(_SETTINGS, max_examples=150 * strategies.TIMES)
@given(batches=_ANY_LOG, wanted=_FILTERS)
def test_filters(batches: list[Written], wanted: RecordFilter, tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("log")
    write(directory, batches, 4)

    assert_same(directory, readers={"records": lambda topic: topic.records(**asdict(wanted))})


@st.composite
def _bent(draw: st.DrawFn) -> KeyValue:
    """A commit or a group of any version, with a few bytes changed, cut or added."""
    kinds = [(number, version) for number in (0, 1) for version in range(5)]
    content = list(draw(st.one_of(strategies.offset_values(kinds), strategies.classic_groups(), strategies.full_groups())))
    for _ in range(draw(st.integers(0, 2))):
        part = draw(st.sampled_from((0, 1, 1)))
        changed = bytearray(content[part] or b"")
        match draw(st.sampled_from(("change", "change", "cut", "add"))):
            case "change" if changed:
                changed[draw(st.integers(0, len(changed) - 1))] = draw(st.sampled_from((0, 1, 2, 5, 0x7F, 0x80, 0xC3, 0xFF)))
            case "cut":
                del changed[draw(st.integers(0, len(changed))) :]
            case "add":
                changed += draw(st.sampled_from((b"\0", b"\1\0\1x", b"!")))
        content[part] = bytes(changed)
    return content[0], content[1]


@settings(_SETTINGS, max_examples=150 * strategies.TIMES)
@given(contents=st.lists(_bent(), min_size=1, max_size=12), codec=st.integers(0, 4))
def test_keys_and_values_that_are_odd(contents: list[KeyValue], codec: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("log")
    write(directory, [Written(tuple(enumerate(contents)), len(contents), codec=codec)], 0)

    assert_same(directory)


def test_records_with_headers_and_odd_streams_are_read_by_plain_code(tmp_path: Path, taken: _Taken) -> None:
    """Between batches that kernels read: the order stays."""
    content = bytearray()
    sizes = []
    for number in range(6):
        key, value = offset_commit(f"g{number}", "t", 0, number, commit_timestamp_ms=number)
        headers = [("h", b"v")] if number == 2 else []
        content += encode_batch([NewRecord(number, 5, key, value, headers)], base_offset=number, codec=3 if number == 4 else 0)
        sizes.append(len(content))
    # A batch of codec 7, and one that is said to hold two records; their checksums match.
    for start, position, byte in ((sizes[0], 22, 7), (sizes[2], 60, 2)):
        content[start + position] = byte
        size = int.from_bytes(content[start + 8 : start + 12], "big")
        content[start + 17 : start + 21] = crc32c.crc32c(bytes(content[start + 21 : start + 12 + size])).to_bytes(4, "big")
    partition = tmp_path / "__consumer_offsets-0"
    partition.mkdir()
    (partition / f"{0:020d}.log").write_bytes(content)

    assert_same(tmp_path)
    assert taken.count == len(THREADS) * len(READERS) * 6


@pytest.mark.parametrize("codec", range(5))
def test_one_odd_batch_leaves_those_behind_it_to_kernels(codec: int, tmp_path: Path) -> None:
    content = b""
    for number in range(9):
        key, value = offset_commit(f"g{number}", "t", 0, number, commit_timestamp_ms=number)
        headers = [("h", b"v")] if number == 3 else []
        content += encode_batch([NewRecord(number, 5, key, value, headers)], base_offset=number, codec=codec)
    partition = tmp_path / "__consumer_offsets-0"
    partition.mkdir()
    (partition / f"{0:020d}.log").write_bytes(content)

    assert_same(tmp_path)
    reader = SegmentReader(discover([str(tmp_path)]), ReadOptions(least_compiled_bytes=0), Findings())
    found = [len(each) if isinstance(each, Piece) else each.batch.base_offset for each in pieces(reader)]
    assert found == [3, 3, 5]


@pytest.mark.parametrize("codec", range(5))
def test_a_large_batch_is_handed_out_in_tables_of_bounded_size(codec: int, tmp_path: Path) -> None:
    count = 2 * ROWS + 5
    with PartitionWriter(tmp_path, 0) as log:
        log.append([offset_commit("g", "t", 0, number, commit_timestamp_ms=1) for number in range(count)], timestamp_ms=1, codec=codec)

    with OffsetsTopic(discover([str(tmp_path)]), ReadOptions(least_compiled_bytes=0)) as topic:
        sizes = [table.num_rows for table in topic.records()]
        commits = table_of(topic.offset_commits())
    assert sizes == [ROWS, ROWS, 5]
    assert commits["committed_offset"].to_pylist() == list(range(count))


@pytest.mark.parametrize(("codecs", "tables"), [((3,), 2), ((4, 1), 2), ((3, 4, 1), 3)])
@pytest.mark.parametrize("plain_bytes", [0, 70_000])
def test_what_lies_between_compressed_batches_is_put_beside_them(
    plain_bytes: int, codecs: tuple[int, ...], tables: int, tmp_path: Path
) -> None:
    """Markers among compressed batches do not make a table each; what is long is left where it is. A kernel puts lz4 there, up to the first
    batch of another codec.
    """
    with PartitionWriter(tmp_path, 0) as log:
        for number in range(60):
            commits = [offset_commit("billing", "orders", each, number, commit_timestamp_ms=1) for each in range(5)]
            log.append(commits, producer_id=7, producer_epoch=0, is_transactional=True, codec=codecs[number % len(codecs)])
            log.append_marker(1, producer_id=7, producer_epoch=0)
            if number == 30 and plain_bytes:
                log.append([offset_commit("carts", "orders", 0, 1, commit_timestamp_ms=1, metadata="x" * 1000)] * (plain_bytes // 1000))

    assert_same(tmp_path)
    with OffsetsTopic(discover([str(tmp_path)]), ReadOptions(least_compiled_bytes=0, threads=1)) as topic:
        assert len(list(topic.records())) == tables + (2 if plain_bytes else 0)


def test_names_of_every_kind_come_out_of_the_dump(tmp_path: Path) -> None:
    names = ("plain", "支付", "größe", 'a"b', "a\\b", "a\tb", "\x1f", "\x7f", "a\ufffdb", "\u2028", "")
    with PartitionWriter(tmp_path, 0) as log:
        for version in range(5):
            for name in names:
                log.append([offset_commit(name, name[::-1], 0, 1, commit_timestamp_ms=1, metadata=name, version=version)], timestamp_ms=1)

    assert_same(tmp_path)


def test_a_small_log_is_read_by_plain_code(tmp_path: Path, taken: _Taken) -> None:
    with PartitionWriter(tmp_path, 0) as log:
        log.append([offset_commit("g", "t", 0, 1, commit_timestamp_ms=1)], timestamp_ms=1)
    with exhume.open(tmp_path) as topic:
        assert topic.batches().read_all().num_rows == topic.offset_commits().read_all().num_rows == 1

    assert taken.count == 0


def test_progress_ends_with_the_last_byte(tmp_path: Path) -> None:
    write(tmp_path, strategies.race(["s7", "s8", "v", "c8", "c7"]), 3)
    told: list[tuple[int, int]] = []
    options = ReadOptions(least_compiled_bytes=0, progress=lambda done, total: told.append((done, total)))
    with OffsetsTopic(discover([str(tmp_path)]), options) as topic:
        topic.offset_commits().read_all()

    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1][0] == told[-1][1] > 0
