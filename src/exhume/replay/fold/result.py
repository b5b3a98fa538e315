"""The result of a fold: its tables, and the few records that a load may still read. It can be pickled for another process.

A load reads the last record of each group, and every record that the fold passed on. In the process of the fold, they are read from the
log. A pickled result has them with the headers of their batches: the process that loads them needs no segments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from exhume.codecs.batches import Batch, read_batch_header
from exhume.codecs.kernels.types import Int64s
from exhume.codecs.records import Record, read_record_at, record_section
from exhume.codecs.wire import Buffer
from exhume.replay.broker_log import ServedSegment
from exhume.replay.fold import tables as columns
from exhume.replay.fold.kernels.keys import Keys
from exhume.replay.fold.kernels.names import Names
from exhume.replay.fold.rules import DONE
from exhume.replay.fold.tables import Tables, new_tables

#: The place of a batch: number of the segment, byte position; the place of a record: these, and its place in the batch.
BatchPlace = tuple[int, int]
RecordPlace = tuple[int, int, int]

#: For each array, the entry of `counts` with the number of rows in use.
_ROWS: Mapping[str, int] = {
    "commits": columns.KEYS,
    "key_topic_ids": columns.KEYS,
    "void_below": columns.KEYS,
    "groups": columns.GROUPS,
    "metadata": columns.METADATA_BYTES,
    "producers": columns.PRODUCERS,
    "staged": columns.STAGED,
    "staged_topic_ids": columns.STAGED,
    "passed": columns.PASSED,
    "topic_ids": columns.TOPIC_IDS,
    "noted": columns.NOTED,
}
_NAMES: Mapping[str, tuple[int, int]] = {
    "group_names": (columns.GROUPS, columns.GROUP_BYTES),
    "topic_names": (columns.TOPICS, columns.TOPIC_BYTES),
}
#: So many records may wait before those that no load reads any more are dropped.
_FEW_RECORDS = 10_000
_FEW_KEYS = 1 << 17


@dataclass(frozen=True, slots=True)
class MendedBatch:
    """A batch that was written anew for the fold. `section` has its records, uncompressed; `refused` are the records that are not in it.

    The refused records are passed on to the loader, with the places -1, -2, and so on.
    """

    batch: Batch
    section: bytes
    refused: list[Record]


def mended_position(position: int) -> int:
    """Return the position that stands for the mended batch at this byte, and the reverse.

    It is not the position of the batch, since the first records of the batch may be folded in their own bytes.
    """
    return -1 - position


@dataclass(slots=True)
class LogRecords:
    """Reads records from the segments of a log, and from the batches that were written anew for the fold."""

    segments: list[ServedSegment]
    mended: dict[BatchPlace, MendedBatch] = field(default_factory=dict)
    #: One batch is enough: its records are read one after the other.
    _last: tuple[BatchPlace, Batch, Buffer] | None = None

    def batch(self, place: BatchPlace) -> Batch:
        """Return the header of this batch."""
        return self._section(place)[0]

    def record(self, place: RecordPlace) -> Record:
        """Return this record."""
        batch_place, number = place[:2], place[2]
        if number < 0:
            return self.mended[batch_place].refused[-number - 1]
        batch, section = self._section(batch_place)
        return read_record_at(section, batch, number)

    def group_value(self, row: list[int]) -> bytes:
        """Return the value of the last record of this row of `groups`."""
        start = row[columns.VALUE_POSITION]
        if start < 0:
            return self.record((row[columns.KIND_SEGMENT], row[columns.KIND_BATCH], row[columns.KIND_PLACE])).value or b""
        return bytes(self.segments[row[columns.KIND_SEGMENT]].buffer[start : start + row[columns.VALUE_BYTES]])

    def kept(self, places: Iterable[RecordPlace]) -> KeptRecords:
        """Return these records by themselves."""
        kept = KeptRecords()
        for place in places:
            kept.records[place], kept.batches[place[:2]] = self.record(place), self.batch(place[:2])
        return kept

    def _section(self, place: BatchPlace) -> tuple[Batch, Buffer]:
        segment, position = place
        if position < 0:
            return self.mended[place].batch, self.mended[place].section
        if self._last is None or self._last[0] != place:
            buffer = self.segments[segment].buffer
            batch = read_batch_header(buffer, position)
            self._last = place, batch, record_section(buffer, batch)
        return self._last[1:]


@dataclass(slots=True)
class KeptRecords:
    """Records by their place, and the headers of their batches."""

    records: dict[RecordPlace, Record] = field(default_factory=dict)
    batches: dict[BatchPlace, Batch] = field(default_factory=dict)
    #: Records above this number are dropped if no load reads them.
    most_records: int = _FEW_RECORDS

    def batch(self, place: BatchPlace) -> Batch:
        """Return the header of this batch."""
        return self.batches[place]

    def record(self, place: RecordPlace) -> Record:
        """Return this record."""
        return self.records[place]

    def group_value(self, row: list[int]) -> bytes:
        """Return the value of the last record of this row of `groups`."""
        return self.record((row[columns.KIND_SEGMENT], row[columns.KIND_BATCH], row[columns.KIND_PLACE])).value or b""

    def kept(self, places: Iterable[RecordPlace]) -> KeptRecords:
        """Return these records by themselves."""
        kept = KeptRecords()
        for place in places:
            kept.records[place], kept.batches[place[:2]] = self.records[place], self.batches[place[:2]]
        return kept

    def copy(self) -> KeptRecords:
        """Return records that additions do not change together with these."""
        return KeptRecords(dict(self.records), dict(self.batches), self.most_records)

    def add(self, later: KeptRecords, tables: Tables) -> KeptRecords:
        """Return these records and the later ones; without those that these tables do not name, if there are many."""
        self.records.update(later.records)
        self.batches.update(later.batches)
        if len(self.records) <= self.most_records:
            return self
        kept = self.kept(places_of(tables))
        kept.most_records = 2 * len(kept.records) + _FEW_RECORDS
        return kept


@dataclass(slots=True, eq=False)
class FoldResult:
    """The fold of consecutive batches of one log.

    Attributes:
        tables: the last commits, the groups and the open transactions. If `is_done` is False, `counts[STATUS]` has the reason.
        records: reads the records that a load may read.
        careful_segments: the segments in which the kernels did not take every batch; a reader of findings must read them.
        ends_at: the segment and byte at which the load ends in an error; None if it does not.
        hidden_from: the places at which a broker stops reading a segment without an error: segment, byte, and True if a batch begins there.
    """

    tables: Tables
    records: LogRecords | KeptRecords
    careful_segments: set[int] = field(default_factory=set)
    ends_at: BatchPlace | None = None
    hidden_from: list[tuple[int, int, bool]] = field(default_factory=list)

    @property
    def is_done(self) -> bool:
        """True if the fold has all its batches."""
        return bool(self.tables.counts[columns.STATUS] == DONE)

    @property
    def is_cut(self) -> bool:
        """True if the fold has a record after the last one that counts."""
        return bool(self.tables.counts[columns.IS_CUT])

    @property
    def is_empty(self) -> bool:
        """True if no batch of the fold counts."""
        return bool(self.tables.counts[columns.FIRST_OFFSET] < 0)

    @property
    def is_indexed(self) -> bool:
        """True if another result can be merged to this one; a pickled result can only be merged to another."""
        return len(self.tables.keys.slots) > 0

    def copy(self) -> FoldResult:
        """Return a result that merges do not change together with this one."""
        arrays: dict[str, Any] = {
            name: type(array)(*(each.copy() for each in array)) if isinstance(array, tuple) else array.copy()
            for name, array in self.tables._asdict().items()
        }
        records = self.records.copy() if isinstance(self.records, KeptRecords) else self.records
        return FoldResult(Tables(**arrays), records, set(self.careful_segments), self.ends_at, list(self.hidden_from))

    def compacted(self) -> FoldResult:
        """Return this result for a load: no other can be merged to it. One with few keys has only the rows in use."""
        # Room for more rows, in large pages, is most of a small fold; to copy a large one takes longer than it saves.
        return self if self.tables.counts[columns.KEYS] > _FEW_KEYS else self._with(self.records)

    def detached(self) -> FoldResult:
        """Return a small result with its own memory: it can be merged to another, and loaded without the segments of the log."""
        return self._with(self.records.kept(places_of(self.tables)))

    def _with(self, records: LogRecords | KeptRecords) -> FoldResult:
        arrays = {
            name: tuple(map(np.copy, array)) if isinstance(array, tuple) else array.copy()
            for name, array in _arrays_of(self.tables).items()
        }
        return _unpickled(arrays, records, self.careful_segments, self.ends_at, self.hidden_from)

    def __reduce__(self) -> tuple[Any, ...]:
        kept = self.records.kept(places_of(self.tables))
        return _unpickled, (_arrays_of(self.tables), kept, self.careful_segments, self.ends_at, self.hidden_from)


def empty_result(seed: int) -> FoldResult:
    """Return the fold of no batch."""
    return FoldResult(new_tables(seed), KeptRecords())


def places_of(tables: Tables) -> list[RecordPlace]:
    """Return the places of the records that a load may read."""
    groups = tables.groups[: tables.counts[columns.GROUPS]]
    groups = groups[groups[:, columns.KIND] != columns.NO_KIND]
    passed = tables.passed[: tables.counts[columns.PASSED]]
    passed = passed[passed[:, columns.PASSED_SEGMENT] >= 0]
    of_groups = groups[:, [columns.KIND_SEGMENT, columns.KIND_BATCH, columns.KIND_PLACE]]
    of_passed = passed[:, [columns.PASSED_SEGMENT, columns.PASSED_BATCH, columns.PASSED_PLACE]]
    return sorted({(segment, batch, place) for segment, batch, place in np.concatenate([of_groups, of_passed]).tolist()})


def _arrays_of(tables: Tables) -> dict[str, Any]:
    """Return the rows in use of each array that another process needs."""
    counts = tables.counts
    arrays: dict[str, Any] = {name: np.ascontiguousarray(getattr(tables, name)[: counts[entry]]) for name, entry in _ROWS.items()}
    for name, (entry, entry_bytes) in _NAMES.items():
        names: Names = getattr(tables, name)
        arrays[name] = np.ascontiguousarray(names.places[: counts[entry]]), np.ascontiguousarray(names.content[: counts[entry_bytes]])
    return arrays | {"counts": counts, "keys": np.ascontiguousarray(tables.keys.rows[: counts[columns.KEYS]])}


def _unpickled(arrays: dict[str, Any], *rest: Any) -> FoldResult:
    """Return a result whose tables are these arrays, without indexes."""
    no_index = np.zeros(0, np.uint64)
    names = {name: Names(no_index, *arrays[name]) for name in _NAMES}

    def rows(entry: int) -> Int64s:
        return np.zeros((int(arrays["counts"][entry]), 1), np.int64)

    tables = Tables(
        **arrays | names | {"keys": Keys(no_index, arrays["keys"])},
        producer_index=np.zeros(64, np.int64),
        topic_topic_ids=np.zeros((0, 2), np.int64),
        records=np.zeros((0, columns.RECORD_COLUMNS), np.int64),
        scratch=np.zeros((0, 4), np.int64),
        group_numbers=rows(columns.GROUPS),
        topic_numbers=rows(columns.TOPICS),
        key_numbers=rows(columns.KEYS),
    )
    return FoldResult(tables, *rest)
