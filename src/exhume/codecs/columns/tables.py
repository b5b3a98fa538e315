"""The tables of batches, of records, of each record type and of the dump, for all segments of a reader.

Threads scan the batches of several segments, and decode parts of blocks. Only the thread of the reader reads the rest of a segment, from
the first batch on that is not sound or not in order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import groupby

import numpy as np
import pyarrow as pa

from exhume.codecs import schemas
from exhume.codecs.columns import typed
from exhume.codecs.columns.arrow import ROWS
from exhume.codecs.columns.batch_columns import batch_tables_of
from exhume.codecs.columns.blocks import Block, OpenSegment, Scratch, blocks
from exhume.codecs.columns.dumped import dumped
from exhume.codecs.columns.noted_batches import Spans, blocks_at
from exhume.codecs.columns.record_blocks import RECORD_BLOCK_BYTES, RecordBlock, records_of
from exhume.codecs.columns.record_columns import record_table
from exhume.codecs.columns.selection import Selection
from exhume.codecs.columns.side_by_side import Result, Work, in_turn, side_by_side
from exhume.codecs.decoded_tables import decode_table
from exhume.codecs.kernels import records, scan
from exhume.codecs.record_filter import RecordFilter
from exhume.codecs.record_types import decode_control_record, decode_record
from exhume.codecs.records import Record
from exhume.codecs.salvage import Hole
from exhume.codecs.segment_reader import SegmentBatch, SegmentReader
from exhume.findings import Findings

#: Memory to use again: this is faster than new memory. It holds a few megabytes.
_spare: list[Scratch] = []

_TYPED = {"offset_commit": typed.commit_table, "group_metadata": typed.group_table}


def batch_tables(reader: SegmentReader) -> Iterator[pa.RecordBatch]:
    """Yield a row of `schemas.BATCHES` for each batch."""
    return _tables(reader, (work for opened in _segments(reader) for work in _scanned(opened)))


def record_batches(reader: SegmentReader, wanted: RecordFilter, noted: Spans | None = None) -> Iterator[pa.RecordBatch]:
    """Yield a row of `schemas.RECORDS` for each wanted record.

    Of the segments in `noted`, only these batches are read: a pass before has found them sound and in order, with all wanted records.
    """
    return _tables(reader, _decoded(reader, wanted, record_table, noted))


def decoded_batches(
    name: str, reader: SegmentReader, wanted: RecordFilter | None = None, columns: Collection[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the typed table of a record type, or `end_txn_markers`, of the wanted records (default: of all).

    With `columns`, others may be left out: those of commits take time to make.
    """
    wanted = replace(wanted or RecordFilter(), types=["end_txn_marker" if name == "end_txn_markers" else name])
    if name == "offset_commit" and columns is not None:
        schema = pa.schema([field for field in schemas.decoded()[name] if field.name in columns])
        return tables_of_records(reader, wanted, partial(typed.commit_table, schema=schema))
    return tables_of_records(reader, wanted, _TYPED.get(name) or (lambda found: decode_table(name, record_table(found))))


def dump_batches(reader: SegmentReader, wanted: RecordFilter, *, raw: bool = False) -> Iterator[pa.RecordBatch]:
    """Yield the dump of the wanted records as rows of `decoded_tables.DUMP`; with `raw`, every row keeps its raw bytes."""
    return tables_of_records(reader, wanted, partial(dumped, raw=raw))


def matching_records(reader: SegmentReader, wanted: RecordFilter) -> Iterator[tuple[SegmentBatch, Record]]:
    """Yield each wanted record with its batch, one by one."""
    selection = Selection(wanted)
    for block in blocks(reader, wanted.offsets_partitions, with_records=True):
        chosen = (selection.of(found) for found in records_of(block))
        batches = ((found.batches, number) for found in chosen for number in found.records[records.BATCH].tolist())
        for (owner, number), _ in groupby(batches, key=lambda each: (each[0], each[1])):
            batch = owner.batch(number)
            decode = decode_control_record if batch.batch.is_control else decode_record
            for record in batch.records():
                is_placed = wanted.accepts_position(record.record_offset, record.timestamp_ms)
                if is_placed and (not wanted.needs_key or wanted.accepts_key(decode(record.key, None))):
                    yield batch, record


def tables_of_records(
    reader: SegmentReader, wanted: RecordFilter, table_of: Callable[[RecordBlock], pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the tables that `table_of` makes of the wanted records of every record block."""
    return _tables(reader, _decoded(reader, wanted, table_of))


def _tables(reader: SegmentReader, works: Iterator[Work]) -> Iterator[pa.RecordBatch]:
    threads = reader.options.most_threads
    for result in in_turn(works) if threads == 1 else side_by_side(works, threads):
        reader.findings.extend(result.findings)
        if result.table is not None:
            yield result.table


def _segments(reader: SegmentReader) -> Iterator[OpenSegment]:
    for partition, segment, next_base_offset in reader.segments():
        yield OpenSegment(reader, partition, segment, next_base_offset, segment.open())


def _scanned(opened: OpenSegment) -> Iterator[Work]:
    def sound() -> Iterator[Result]:
        with _spare_scratch() as scratch:
            for block in opened.sound_blocks(scratch):
                yield from map(Result, batch_tables_of(block))

    yield Work(sound())
    yield Work(_rest(opened, lambda block: map(Result, batch_tables_of(block)), with_records=False), is_ahead=False)


def _decoded(
    reader: SegmentReader, wanted: RecordFilter, table_of: Callable[[RecordBlock], pa.RecordBatch], noted: Spans | None = None
) -> Iterator[Work]:
    selection = Selection(wanted)

    def decoded(part: Block) -> Iterator[Result]:
        findings = Findings()
        for found in records_of(part, findings):
            chosen = selection.of(found)
            if len(chosen):
                yield Result(table_of(chosen), tuple(findings))
        if len(findings):
            yield Result(None, tuple(findings))

    with _spare_scratch() as scratch:
        for partition, segment, next_base_offset in reader.segments(wanted.offsets_partitions):
            if noted is not None and segment.path in noted:
                for block in blocks_at(reader, partition, segment, noted[segment.path], scratch.same):
                    yield from (Work(decoded(part)) for part in _parts(block))
                yield Work(iter(()), is_ahead=False, at_end=partial(reader.finish, segment))
                continue
            opened = OpenSegment(reader, partition, segment, next_base_offset, segment.open())
            for block in opened.sound_blocks(scratch):
                for part in _parts(block):
                    end_position = int(part.columns[scan.POSITION, -1] + part.columns[scan.SIZE, -1])
                    yield Work(decoded(part), at_end=partial(reader.advance, end_position))
            yield Work(_rest(opened, decoded, with_records=True), is_ahead=False)


def _rest(opened: OpenSegment, results_of: Callable[[Block], Iterator[Result]], *, with_records: bool) -> Iterator[Result]:
    # Not the scratch memory of the sound blocks: it may already hold a block of a later segment.
    with _spare_scratch() as scratch:
        for found in opened.rest(scratch, with_records=with_records):
            if not isinstance(found, Hole):
                yield from results_of(found)


@contextmanager
def _spare_scratch() -> Iterator[Scratch]:
    """Lend scratch memory to one thread."""
    try:
        scratch = _spare.pop()
    except IndexError:
        scratch = Scratch()
    try:
        yield scratch
    finally:
        _spare.append(scratch)


def _parts(block: Block) -> Iterator[Block]:
    """Yield copies of parts of this block, each of about one record block."""
    counts = np.maximum(block.columns[scan.RECORD_COUNT], 0).cumsum()
    # The sizes, not the positions: noted batches may be far from one another.
    starts = block.columns[scan.SIZE].cumsum() - block.columns[scan.SIZE]
    first = 0
    while first < len(block):
        before = counts[first - 1] if first else 0
        within = np.searchsorted(counts, before + ROWS, side="right")
        last = max(first + 1, min(int(within), int(np.searchsorted(starts, starts[first] + RECORD_BLOCK_BYTES))))
        yield replace(block, rows=block.rows[first:last].copy(), columns=block.columns[:, first:last].copy())
        first = last
