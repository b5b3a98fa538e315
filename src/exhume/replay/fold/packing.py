"""A fold as bytes, for another process: its rows, and the few records that a load may still read.

Committed offsets are sent in columns. A load also reads the last record of each group, and every record that was passed on. These are sent
too, with the headers of their batches: the process that loads them has no segments.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from exhume.codecs.batches import Batch, read_batch_header
from exhume.codecs.kernels.types import Int64s
from exhume.codecs.records import Record, read_record_at, record_section
from exhume.replay.broker_log import LoadedBatch, StrictLog
from exhume.replay.fold import tables as columns
from exhume.replay.fold.kernels.keys import Keys
from exhume.replay.fold.kernels.names import Names
from exhume.replay.fold.settled import Settled
from exhume.replay.fold.tables import Tables

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
}
_NAMES: Mapping[str, tuple[int, int]] = {
    "group_names": (columns.GROUPS, columns.GROUP_BYTES),
    "topic_names": (columns.TOPICS, columns.TOPIC_BYTES),
}


@dataclass(slots=True)
class KeptRecords:
    """Records by their place, and the headers of their batches."""

    records: dict[RecordPlace, Record]
    batches: dict[BatchPlace, Batch]

    def take(self, other: KeptRecords) -> None:
        """Add the records and headers of the other; if both have a header, the other's counts."""
        self.records.update(other.records)
        self.batches.update(other.batches)

    def copy(self) -> KeptRecords:
        return KeptRecords(dict(self.records), dict(self.batches))

    def keep_only(self, places: list[RecordPlace]) -> None:
        """Drop all records but these."""
        self.records = {place: self.records[place] for place in places}
        self.batches = {place[:2]: self.batches[place[:2]] for place in places}


def places_of(tables: Tables) -> list[RecordPlace]:
    """Return the places of the records that a load may read."""
    groups = tables.groups[: tables.counts[columns.GROUPS]]
    groups = groups[groups[:, columns.KIND] != columns.NO_KIND]
    passed = tables.passed[: tables.counts[columns.PASSED]]
    passed = passed[passed[:, columns.PASSED_SEGMENT] >= 0]
    of_groups = groups[:, [columns.KIND_SEGMENT, columns.KIND_BATCH, columns.KIND_PLACE]]
    of_passed = passed[:, [columns.PASSED_SEGMENT, columns.PASSED_BATCH, columns.PASSED_PLACE]]
    return sorted({(segment, batch, place) for segment, batch, place in np.concatenate([of_groups, of_passed]).tolist()})


def pack(tables: Tables, log: StrictLog, *, shortened: Mapping[BatchPlace, int] | None = None) -> bytes:
    """Return these tables as bytes. `shortened`: the last record offset of each batch that ends earlier than its header says."""
    counts = tables.counts
    arrays: dict[str, object] = {"counts": counts}
    for name, entry in _ROWS.items():
        arrays[name] = np.ascontiguousarray(getattr(tables, name)[: counts[entry]])
    for name, (entry, entry_bytes) in _NAMES.items():
        names: Names = getattr(tables, name)
        arrays[name] = (np.ascontiguousarray(names.places[: counts[entry]]), np.ascontiguousarray(names.content[: counts[entry_bytes]]))
    arrays["keys"] = np.ascontiguousarray(tables.keys.rows[: counts[columns.KEYS]])
    kept = _read(places_of(tables), log)
    for place, last_offset in (shortened or {}).items():
        if place in kept.batches:
            kept.batches[place] = replace(kept.batches[place], last_offset=last_offset)
    return pickle.dumps((arrays, kept), protocol=5)


def _read(places: list[RecordPlace], log: StrictLog) -> KeptRecords:
    kept = KeptRecords({}, {})
    section: object = None
    for segment, position, place in places:
        if (segment, position) not in kept.batches:
            buffer = log.segments[segment].buffer
            kept.batches[segment, position] = read_batch_header(buffer, position)
            section = record_section(buffer, kept.batches[segment, position])
        kept.records[segment, position, place] = read_record_at(section, kept.batches[segment, position], place)  # type: ignore[arg-type]
    return kept


def unpack(content: bytes) -> tuple[Tables, KeptRecords]:
    """Return packed tables and records. They have no indexes: they can only be joined to an earlier fold."""
    arrays, kept = pickle.loads(content)  # noqa: S301  # written by `pack`, a task of the same job
    empty = np.zeros(64, np.uint64)
    for name in _NAMES:
        places, texts = arrays[name]
        arrays[name] = Names(empty, places, texts)
    arrays["keys"] = Keys(empty, arrays["keys"])

    def rows(entry: int) -> Int64s:
        return np.zeros((int(arrays["counts"][entry]), 1), np.int64)

    return (
        Tables(
            **arrays,
            producer_index=np.zeros(64, np.int64),
            topic_topic_ids=np.zeros((0, 2), np.int64),
            # Batches are noted only for chosen groups, and parts are folded for all groups.
            noted=np.zeros((0, columns.NOTED_COLUMNS), np.int64),
            records=np.zeros((0, columns.RECORD_COLUMNS), np.int64),
            scratch=np.zeros((0, 4), np.int64),
            group_numbers=rows(columns.GROUPS),
            topic_numbers=rows(columns.TOPICS),
            key_numbers=rows(columns.KEYS),
        ),
        kept,
    )


@dataclass(slots=True)
class ShippedFold(Settled):
    """The state that a shipped fold settled, with its records, but without segments."""

    kept: KeptRecords | None = None

    def _batch_of(self, segment: int, position: int, records: list[Record]) -> LoadedBatch:
        assert self.kept is not None
        return LoadedBatch(self.log.segments[segment].file.path, self.kept.batches[segment, position], b"", lambda: records)

    def _record(self, segment: int, position: int, place: int) -> Record:
        assert self.kept is not None
        return self.kept.records[segment, position, place]

    def _bytes_of(self, row: list[int]) -> bytes:
        return self._record(row[columns.KIND_SEGMENT], row[columns.KIND_BATCH], row[columns.KIND_PLACE]).value or b""
