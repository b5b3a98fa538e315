"""Fold commits of transactions, and the markers that end them: kernels."""

from __future__ import annotations

import numpy as np

from exhume.codecs.batch_format import NO_PRODUCER_ID
from exhume.codecs.kernels import inlined, kernel, scan
from exhume.codecs.kernels.primitives import int16
from exhume.codecs.kernels.records import read_fields
from exhume.codecs.kernels.types import Bytes, Int64s, Number, Rows
from exhume.replay.fold import tables as columns
from exhume.replay.fold.kernels.for_loader import pass_record
from exhume.replay.fold.kernels.names import enter_producer, find_producer
from exhume.replay.fold.rules import DONE, IS_PART, LAST_COUNTED_OFFSET, MARKER_DECIDES, NOT_PLAIN, NOT_PLAIN_MARKER, SEED
from exhume.replay.fold.tables import Tables

_COMMIT_MARKER = 1


@inlined
def producer_of(rows: Rows, number: Number, rules: Int64s, tables: Tables) -> Number:
    """Return the row of the producer of this batch, known or new."""
    producer_id = rows[number, scan.PRODUCER_ID]
    row = find_producer(tables.producers, tables.producer_index, producer_id, rules[SEED])
    if row < 0:
        row = tables.counts[columns.PRODUCERS]
        tables.counts[columns.PRODUCERS] += 1
        tables.producers[row, columns.TXN_PRODUCER_ID] = producer_id
        tables.producers[row, columns.TXN_IS_OPEN] = 0
        tables.producers[row, columns.TXN_IS_PASSED_ON] = 0
        tables.producers[row, columns.TXN_IS_NOTED] = 0
        tables.producers[row, columns.TXN_FIRST_MARKER] = columns.NOTHING
        enter_producer(tables.producers, row, tables.producer_index, rules[SEED])
    return row


@inlined
def free_place(tables: Tables) -> Number:
    """Return a free row of `staged`."""
    place = tables.counts[columns.FREE_STAGED]
    if place >= 0:
        tables.counts[columns.FREE_STAGED] = tables.staged[place, columns.NEXT]
    else:
        place = tables.counts[columns.STAGED]
        tables.counts[columns.STAGED] += 1
    return place


@inlined
def install(place: Number, tables: Tables) -> None:
    """Make the commit in this row of `staged` the commit of its key."""
    key = tables.staged[place, columns.STAGED_KEY]
    for column in range(columns.COMMIT_COLUMNS):
        tables.commits[key, column] = tables.staged[place, column]
    tables.key_topic_ids[key, 0] = tables.staged_topic_ids[place, 0]
    tables.key_topic_ids[key, 1] = tables.staged_topic_ids[place, 1]


@inlined
def let_go(place: Number, tables: Tables) -> Number:
    """Free this row of `staged`; return the next row of its transaction."""
    following = tables.staged[place, columns.NEXT]
    tables.staged[place, columns.NEXT] = tables.counts[columns.FREE_STAGED]
    tables.staged[place, columns.METADATA] = 0
    tables.counts[columns.FREE_STAGED] = place
    return following


@inlined
def stage(
    rows: Rows, number: Number, key: Number, record_offset: Number, timestamp: Number, rules: Int64s, tables: Tables
) -> tuple[Number, Number]:
    """Return the row of the producer of this batch, and a new row of `staged` for a commit of its transaction."""
    producers, staged = tables.producers, tables.staged
    row = producer_of(rows, number, rules, tables)
    place = free_place(tables)
    staged[place, columns.STAGED_KEY] = key
    staged[place, columns.NEXT] = -1
    if producers[row, columns.TXN_IS_OPEN]:
        staged[producers[row, columns.TXN_LAST_STAGED], columns.NEXT] = place
    else:
        producers[row, columns.TXN_IS_OPEN] = 1
        producers[row, columns.TXN_FIRST_OFFSET] = record_offset
        producers[row, columns.TXN_FIRST_TIMESTAMP] = timestamp
        producers[row, columns.TXN_FIRST_STAGED] = place
    producers[row, columns.TXN_LAST_STAGED] = place
    producers[row, columns.TXN_LAST_OFFSET] = record_offset
    producers[row, columns.TXN_LAST_TIMESTAMP] = timestamp
    producers[row, columns.TXN_EPOCH] = rows[number, scan.PRODUCER_EPOCH]
    return row, place


@kernel
def fold_marker(
    rows: Rows, number: Number, data: Bytes, position: Number, end: Number, segment: Number, rules: Int64s, tables: Tables
) -> Number:
    """Fold the marker that ends a transaction."""
    outcome, record_offset = read_marker(rows, number, data, position, end)
    if outcome == NOT_PLAIN:
        return NOT_PLAIN_MARKER
    # The count of records reads the record offset here, as for every batch.
    tables.records[0, columns.OFFSET] = record_offset
    if record_offset > rules[LAST_COUNTED_OFFSET]:
        return DONE
    row = find_producer(tables.producers, tables.producer_index, rows[number, scan.PRODUCER_ID], rules[SEED])
    if rules[IS_PART] and (row < 0 or tables.producers[row, columns.TXN_FIRST_MARKER] == columns.NOTHING):
        # The marker also ends a transaction that began before this part.
        row = producer_of(rows, number, rules, tables)
        tables.producers[row, columns.TXN_FIRST_MARKER] = record_offset
        tables.producers[row, columns.TXN_FIRST_IS_COMMIT] = outcome == _COMMIT_MARKER
    if row >= 0:
        if tables.producers[row, columns.TXN_IS_PASSED_ON]:
            tables.producers[row, columns.TXN_IS_PASSED_ON] = 0
            pass_record(rows, number, 0, record_offset, segment, tables)
        if tables.producers[row, columns.TXN_IS_OPEN]:
            tables.producers[row, columns.TXN_IS_OPEN] = 0
            _end_transaction(row, outcome == _COMMIT_MARKER, rules[MARKER_DECIDES] != 0, tables)
    return DONE


@kernel
def read_marker(rows: Rows, number: Number, data: Bytes, position: Number, end: Number) -> tuple[Number, Number]:
    """Return outcome and record offset of the one record, whose key is version and outcome; `NOT_PLAIN` for another batch."""
    not_plain = (np.int64(NOT_PLAIN), np.int64(-1))
    if rows[number, scan.RECORD_COUNT] != 1 or rows[number, scan.PRODUCER_ID] == NO_PRODUCER_ID:
        return not_plain
    record_end, _, offset_delta, key_start, key_size, _, _ = read_fields(data, position, end)
    if record_end != end or key_size != 4:
        return not_plain
    version, outcome = int16(data, key_start), int16(data, key_start + 2)
    record_offset = rows[number, scan.BASE_OFFSET] + offset_delta
    is_in_batch = rows[number, scan.BASE_OFFSET] <= record_offset <= rows[number, scan.LAST_OFFSET]
    if version < 0 or outcome < 0 or outcome > _COMMIT_MARKER or not is_in_batch:
        return not_plain
    return outcome, record_offset


@kernel
def _end_transaction(row: Number, is_commit: bool, marker_decides: bool, tables: Tables) -> None:
    """Install the staged commits, or drop them. A staged commit does not replace a commit after it, except where the marker decides."""
    staged = tables.staged
    place = tables.producers[row, columns.TXN_FIRST_STAGED]
    while place >= 0:
        key, record_offset = staged[place, columns.STAGED_KEY], staged[place, columns.RECORD_OFFSET]
        present = tables.commits[key, columns.RECORD_OFFSET]
        is_void = record_offset < tables.void_below[key, 0]
        if is_commit and not is_void and (marker_decides or present == columns.NOTHING or present < record_offset):
            install(place, tables)
        place = let_go(place, tables)
