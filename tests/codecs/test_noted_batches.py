"""The second pass over a log reads the noted batches only, and finds the same records as in the whole log."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from exhume.codecs.batch_format import LZ4
from exhume.codecs.columns import noted_batches
from exhume.codecs.columns.blocks import Block
from exhume.codecs.columns.noted_batches import NotedBatches
from exhume.codecs.columns.record_blocks import RecordBlock
from exhume.codecs.columns.selection import Selection
from exhume.codecs.columns.tables import record_batches
from exhume.codecs.log_directory import PartitionDirectory, discover
from exhume.codecs.log_pass import LogCollector, collect
from exhume.codecs.record_filter import RecordFilter
from exhume.codecs.record_types import decode_record
from exhume.codecs.segment_reader import ReadOptions, SegmentReader
from exhume.findings import Findings
from exhume.fixtures.log_writer import PartitionWriter
from tests.analysis.group_records import classic
from tests.judges import corpus

GROUPS = RecordFilter(types=["group_metadata"])
CASES = corpus.sweep((case for case in corpus.cases() if not (case.is_random or case.is_fact)), one_of=8)


class _Noting(LogCollector):
    def __init__(self) -> None:
        self.notes, self._selection, self.keys = NotedBatches(), Selection(GROUPS), set[bytes]()

    def of(self, partition: PartitionDirectory) -> Iterable[LogCollector]:
        return [self]

    def add_block(self, block: Block) -> None:
        self.notes.add_block(block)

    def add_records(self, block: RecordBlock) -> None:
        found = self._selection.of(block)
        if len(found):
            self.keys.update(self.notes.note(found).to_pylist())


def reader_of(directory: Path) -> SegmentReader:
    return SegmentReader(discover([str(directory)]), ReadOptions(), Findings())


def noted(directory: Path) -> _Noting:
    found = _Noting()
    collect(reader_of(directory), [found])
    return found


def rows(directory: Path, wanted: RecordFilter, spans: noted_batches.Spans | None = None) -> list[dict[str, object]]:
    return [row for batch in record_batches(reader_of(directory), wanted, spans) for row in batch.to_pylist()]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("most_notes", [1_000_000, 3])
def test_noted_batches_have_all_records_of_their_groups(monkeypatch: pytest.MonkeyPatch, case: corpus.Case, most_notes: int) -> None:
    monkeypatch.setattr(noted_batches, "_MOST_NOTES", most_notes)
    for directory in case.data_directories.values():
        found = noted(directory)
        for key in sorted(found.keys)[:4]:
            wanted = RecordFilter(types=GROUPS.types, groups=[str(decode_record(key, None).key["group"])])

            assert rows(directory, wanted, found.notes.spans(key.__eq__)) == rows(directory, wanted)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A log of three segments: the second one has a batch that several groups share, and the third one has damage."""
    with PartitionWriter(tmp_path, 7) as log:
        log.append([classic(1, "one", a=[0])])
        log.append([classic(1, "two", b=[0])])
        log.roll()
        log.append([classic(2, "one", a=[1]), classic(2, "two", b=[1]), classic(3, "one", a=[2])], codec=LZ4)
        log.append([classic(3, "two", b=[2])])
        log.roll()
        log.append([classic(4, "one", a=[3])])
        log.append([classic(4, "two", b=[3])])
        damaged = log.append([classic(5, "one", a=[4])])
    [path] = log.directory.glob(f"*{damaged - 2}.log")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    return tmp_path


def test_a_segment_with_damage_is_read_whole(directory: Path) -> None:
    spans = noted(directory).notes.spans(lambda key: b"one" in key)

    assert [(Path(path).name, len(places)) for path, places in sorted(spans.items())] == [
        ("00000000000000000000.log", 1),
        ("00000000000000000002.log", 1),
    ]
    wanted = RecordFilter(groups=["one"])
    assert rows(directory, wanted, spans) == rows(directory, wanted)
    assert len(rows(directory, wanted)) == 4


def test_a_segment_without_a_wanted_batch_is_not_read(monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
    spans = noted(directory).notes.spans(lambda key: b"three" in key)
    monkeypatch.setattr(noted_batches, "readable", None)

    assert [len(places) for places in spans.values()] == [0, 0]
    assert rows(directory, RecordFilter(groups=["three"]), spans) == []


def test_a_segment_that_lost_its_end_since_gives_what_is_left(directory: Path) -> None:
    spans = noted(directory).notes.spans(lambda key: b"two" in key)
    [path] = directory.glob("*/*00000.log")
    path.write_bytes(path.read_bytes()[:-1])

    assert [row["record_offset"] for row in rows(directory, RecordFilter(groups=["two"]), spans)] == [3, 5, 7]
