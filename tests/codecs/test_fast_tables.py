"""Tables by kernels against the plain reading: every row, every finding, in order."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhume.codecs.batch_writer import NewRecord, encode_batch
from exhume.codecs.columns import tables as columns_tables
from exhume.codecs.columns.arrow import ROWS
from exhume.codecs.columns.record_blocks import record_blocks
from exhume.codecs.log_directory import discover
from exhume.codecs.record_filter import RecordFilter
from exhume.codecs.segment_reader import ReadOptions, SegmentReader
from exhume.findings import Findings
from exhume.fixtures.log_writer import PartitionWriter, offset_commit
from exhume.topic import OffsetsTopic
from tests import strategies
from tests.compared import Compared
from tests.judges import corpus
from tests.naive import tables
from tests.twins import READERS, THREADS, CompiledBatches, assert_same_tables, table_of, write_segments
from tests.written_batches import KeyValue, Written


@pytest.fixture
def compiled_batches(monkeypatch: pytest.MonkeyPatch) -> CompiledBatches:
    return CompiledBatches(monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("share", range(8))
def test_every_bundled_log(share: int, compiled_batches: CompiledBatches, compared: Compared) -> None:
    for turn, directory in enumerate(corpus.data_directories(share=share), share):
        assert_same_tables(directory, threads=[THREADS[turn % len(THREADS)]])

    assert compiled_batches.count > 600
    compared["batches by kernels", "the plain reading"] += compiled_batches.count


_ANY_LOG = strategies.any_logs()


@strategies.examples(60)
@given(batches=_ANY_LOG, cut=st.integers(1, 12), verify=st.booleans())
def test_a_generated_log(batches: list[Written], cut: int, verify: bool, tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("log")
    write_segments(directory, batches, cut)

    with pytest.MonkeyPatch.context() as patch:
        # Some batches are work for a thread: even these logs are decoded in many parts.
        patch.setattr(columns_tables, "RECORD_BLOCK_BYTES", 300)
        assert_same_tables(directory, verify=verify, threads=(1, 3))


@strategies.examples(100)
@given(data=st.data(), batches=_ANY_LOG, cut=st.integers(1, 12), verify=st.booleans())
def test_a_generated_log_that_is_damaged(
    data: st.DataObject, batches: list[Written], cut: int, verify: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("log")
    segments = write_segments(directory, batches, cut)
    segment = data.draw(st.sampled_from(segments))
    content = bytearray(segment.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    segment.write_bytes(content[: data.draw(st.sampled_from((len(content), len(content), len(content) - 5)))])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns_tables, "RECORD_BLOCK_BYTES", 300)
        assert_same_tables(directory, verify=verify, threads=(3,))


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


@strategies.examples(150)
@given(batches=_ANY_LOG, wanted=_FILTERS)
def test_filters(batches: list[Written], wanted: RecordFilter, tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("log")
    write_segments(directory, batches, 4)

    assert_same_tables(
        directory,
        readers={"records": lambda topic: topic.records(**asdict(wanted))},
        rows={"records": lambda reader: tables.records(reader, wanted)},
    )


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


@strategies.examples(150)
@given(contents=st.lists(_bent(), min_size=1, max_size=12), codec=st.integers(0, 4))
def test_keys_and_values_that_are_odd(contents: list[KeyValue], codec: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("log")
    write_segments(directory, [Written(tuple(enumerate(contents)), len(contents), codec=codec)], 1)

    assert_same_tables(directory)


def test_records_with_headers_and_odd_streams_are_read_by_plain_code(tmp_path: Path, compiled_batches: CompiledBatches) -> None:
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

    assert_same_tables(tmp_path)
    assert compiled_batches.count == 2 * len(READERS) * 6


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

    assert_same_tables(tmp_path)
    reader = SegmentReader(discover([str(tmp_path)]), ReadOptions(), Findings())
    assert [(len(each), each.batches.careful is None) for each in record_blocks(reader)] == [(3, True), (1, False), (5, True)]


@pytest.mark.one_of(5)
@pytest.mark.parametrize("codec", range(5))
def test_a_large_batch_is_handed_out_in_tables_of_bounded_size(codec: int, tmp_path: Path) -> None:
    count = 2 * ROWS + 5
    with PartitionWriter(tmp_path, 0) as log:
        log.append([offset_commit("g", "t", 0, number, commit_timestamp_ms=1) for number in range(count)], timestamp_ms=1, codec=codec)

    with OffsetsTopic(discover([str(tmp_path)]), ReadOptions()) as topic:
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

    assert_same_tables(tmp_path)
    with OffsetsTopic(discover([str(tmp_path)]), ReadOptions(threads=1)) as topic:
        assert len(list(topic.records())) == tables + (2 if plain_bytes else 0)


def test_names_of_every_kind_come_out_of_the_dump(tmp_path: Path) -> None:
    names = ("plain", "支付", "größe", 'a"b', "a\\b", "a\tb", "\x1f", "\x7f", "a\ufffdb", "\u2028", "")
    with PartitionWriter(tmp_path, 0) as log:
        for version in range(5):
            for name in names:
                log.append([offset_commit(name, name[::-1], 0, 1, commit_timestamp_ms=1, metadata=name, version=version)], timestamp_ms=1)

    assert_same_tables(tmp_path)


def test_progress_ends_with_the_last_byte(tmp_path: Path) -> None:
    write_segments(tmp_path, strategies.race(["s7", "s8", "v", "c8", "c7"]), 3)
    told: list[tuple[int, int]] = []
    options = ReadOptions(progress=lambda done, total: told.append((done, total)))
    with OffsetsTopic(discover([str(tmp_path)]), options) as topic:
        topic.offset_commits().read_all()

    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1][0] == told[-1][1] > 0
