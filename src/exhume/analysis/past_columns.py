"""Missing records in a log, and records after a moment, in columns: the work of `Past` without a call per batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from exhume.analysis.past import Past
from exhume.codecs.columns.arrow import texts
from exhume.codecs.columns.pieces import Piece, pieces_of
from exhume.codecs.columns.runs import Run, Scratch, runs_of
from exhume.codecs.kernels import gaps, keys, records, scan
from exhume.codecs.kernels.primitives import Int64s
from exhume.codecs.log_directory import PartitionDirectory, SegmentFile
from exhume.codecs.record_types import RECORD_TYPES, decode_record
from exhume.codecs.salvage import Hole
from exhume.codecs.segment_reader import SegmentBatch, SegmentReader
from exhume.int64 import LARGEST_INT64

#: Kernels count in 64 bits: offsets near the limit, which only damage has, are read batch by batch.
_FAR = 1 << 62
_NO_RECORDS = np.empty((records.COLUMNS, 0), np.int64)


class PastColumns:
    """Reads segments into pasts."""

    def __init__(self, reader: SegmentReader) -> None:
        self._reader = reader
        self._scratch = Scratch()

    def read(self, past: Past, partition: PartitionDirectory, segment: SegmentFile, next_base: int | None) -> None:
        """Take the whole segment; `next_base` is the base offset of the next one."""
        items: Iterator[Run | SegmentBatch | Hole]
        if max(segment.base_offset, past.next_offset, past.start_offset) < _FAR:
            items = runs_of(self._reader, partition, segment, next_base, self._scratch)
        else:
            items = self._reader.items(partition, segment, next_base)
        for item in items:
            if isinstance(item, Run):
                _take_run(past, item)
            else:
                past.take(item)


def _take_run(past: Past, run: Run) -> None:
    at_batch = 0
    for item in pieces_of(run):
        if isinstance(item, Piece):
            at_batch = _take_piece(past, run, item.records, at_batch, at_batch)
            if past.moment_offset is not None:
                _note_groups(past, item, past.moment_offset)
            continue
        number = int(np.searchsorted(run.columns[scan.POSITION], item.batch.byte_position))
        _take_piece(past, run, _NO_RECORDS, at_batch, number)
        past.take(item)
        at_batch = number + 1
    _take_piece(past, run, _NO_RECORDS, at_batch, len(run))


def _take_piece(past: Past, run: Run, found: Int64s, at_batch: int, until: int) -> int:
    """Take these records and the ends of batches from the current one to `until`. Returns the number of the current one then."""
    # A damaged batch before this one may have ended at the largest offset.
    place = np.array([at_batch, min(past.next_offset, LARGEST_INT64)], np.int64)
    missing = np.empty((found.shape[1] + len(run), gaps.GAP_COLUMNS), np.int64)
    count = gaps.find_gaps(run.columns[scan.LAST_OFFSET], found, until, past.start_offset, place, missing)
    shown = missing[:count].tolist()
    is_control = run.columns[scan.ATTRIBUTES][found[records.BATCH]] & scan.CONTROL != 0
    for marker in np.flatnonzero(is_control & (found[records.OFFSET] >= past.start_offset)).tolist():
        while shown and shown[0][gaps.SHOWN_BY] <= marker:
            first, last, _ = shown.pop(0)
            past.gaps.append((first, last))
        producer_id = run.columns[scan.PRODUCER_ID][found[records.BATCH, marker]]
        past.note_marker(int(producer_id), int(found[records.OFFSET, marker]))
    past.gaps += [(first, last) for first, last, _ in shown]
    past.next_offset = max(past.next_offset, int(place[gaps.NEXT_OFFSET]))
    return int(place[gaps.AT_BATCH])


def _note_groups(past: Past, piece: Piece, moment_offset: int) -> None:
    """Note the first record of each group after the moment; control batches do not count."""
    found = piece.records
    is_control = piece.run.columns[scan.ATTRIBUTES][found[records.BATCH]] & scan.CONTROL != 0
    is_after = ~is_control & (found[records.OFFSET] > moment_offset) & (found[records.OFFSET] >= past.start_offset)
    if not is_after.any():
        return
    later = piece if is_after.all() else piece.only(np.flatnonzero(is_after))
    fields = np.empty((keys.COLUMNS, len(later)), np.int64)
    keys.read_keys(later.data, later.records, fields)
    is_read = (fields[keys.IS_READ] != 0) & np.isin(later.records[records.RECORD_TYPE], list(RECORD_TYPES))
    named = [(number, _group_of(later, number)) for number in np.flatnonzero(~is_read).tolist()]
    numbers = np.flatnonzero(is_read)
    if len(numbers):
        names = texts(later.data, fields[keys.GROUP_START][numbers], fields[keys.GROUP_SIZE][numbers], pa.string()).dictionary_encode()
        _, firsts = np.unique(names.indices.to_numpy(), return_index=True)
        named += zip(numbers[firsts].tolist(), names.dictionary.to_pylist(), strict=True)
    for number, group in sorted((number, group) for number, group in named if group is not None):
        past.first_after.setdefault(group, int(later.records[records.OFFSET, number]))


def _group_of(piece: Piece, number: int) -> Any:
    start, size = (int(piece.records[field, number]) for field in (records.KEY_START, records.KEY_SIZE))
    return decode_record(None if size < 0 else piece.data[start : start + size].tobytes(), None).key.get("group")
