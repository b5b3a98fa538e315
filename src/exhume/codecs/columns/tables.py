"""Make the tables of all segments on several threads; batches that are in no run, or that kernels cannot read, are read by Python code.

Each thread scans the batches of one segment at a time. For records, one thread finds the runs, and the others decode parts of them. Only
the thread of the reader reads the rest of a segment, from the first batch on that is not sound or not in order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pyarrow as pa

from exhume.codecs.columns.arrow import ROWS
from exhume.codecs.columns.batch_columns import batch_tables_of
from exhume.codecs.columns.pieces import PIECE_BYTES, Piece, pieces_of
from exhume.codecs.columns.runs import OpenSegment, Run, Scratch, group_batches
from exhume.codecs.columns.selection import Selection
from exhume.codecs.columns.side_by_side import PAUSE, Made, in_turn, side_by_side
from exhume.codecs.kernels import scan
from exhume.codecs.record_filter import RecordFilter
from exhume.codecs.salvage import Hole
from exhume.codecs.segment_reader import SegmentBatch, SegmentReader

#: Memory to use again: this is faster than new memory. It holds a few megabytes.
_spare: list[Scratch] = []

#: A function that makes the tables of single batches without kernels.
WithoutKernels = Callable[[Iterator[SegmentBatch]], Iterable[pa.RecordBatch]]


def tables_of_batches(reader: SegmentReader, without_kernels: WithoutKernels) -> Iterator[pa.RecordBatch]:
    """Return rows of `schemas.BATCHES` for every batch."""
    return _made(reader, (_scanned(opened, without_kernels) for opened in _segments(reader)))


def tables_of_records(
    reader: SegmentReader, wanted: RecordFilter, of_piece: Callable[[Piece], pa.RecordBatch], without_kernels: WithoutKernels
) -> Iterator[pa.RecordBatch]:
    """Return the tables that `of_piece` makes of the wanted records of every piece."""
    return _made(reader, _decoded(reader, wanted, of_piece, without_kernels))


def _made(reader: SegmentReader, works: Iterable[Made]) -> Iterator[pa.RecordBatch]:
    threads = reader.options.most_threads
    return in_turn(works) if threads == 1 else side_by_side(works, threads)


def _segments(reader: SegmentReader, offsets_partitions: Collection[int] | None = None) -> Iterator[OpenSegment]:
    for partition, segment, next_base_offset in reader.segments(offsets_partitions):
        yield OpenSegment(reader, partition, segment, next_base_offset, segment.open())


def _scanned(opened: OpenSegment, without_kernels: WithoutKernels) -> Made:
    with _spare_scratch() as scratch:
        for run in opened.runs(scratch):
            yield from batch_tables_of(run)
    yield from _rest(opened, batch_tables_of, without_kernels)


def _decoded(
    reader: SegmentReader, wanted: RecordFilter, of_piece: Callable[[Piece], pa.RecordBatch], without_kernels: WithoutKernels
) -> Iterator[Made]:
    selection = Selection(wanted)

    def decoded(part: Run) -> Made:
        for found in group_batches(pieces_of(part)):
            if not isinstance(found, Piece):
                yield PAUSE
                yield from without_kernels(found)
            elif len(piece := selection.of(found)):
                yield of_piece(piece)
        yield PAUSE
        reader.advance(int(part.columns[scan.POSITION, -1] + part.columns[scan.SIZE, -1]))

    with _spare_scratch() as scratch:
        for opened in _segments(reader, wanted.offsets_partitions):
            for run in opened.runs(scratch):
                for part in _parts(run):
                    yield decoded(part)
            yield _rest(opened, decoded, without_kernels)


def _rest(opened: OpenSegment, made_of: Callable[[Run], Made], without_kernels: WithoutKernels) -> Made:
    yield PAUSE
    # Not the scratch memory of the runs: it may already hold a run of a later segment.
    with _spare_scratch() as scratch:
        for found in group_batches(item for item in opened.rest(scratch) if not isinstance(item, Hole)):
            yield from made_of(found) if isinstance(found, Run) else without_kernels(found)


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


def _parts(run: Run) -> Iterator[Run]:
    """Yield copies of parts of this run, each of about one piece."""
    records = np.maximum(run.columns[scan.RECORD_COUNT], 0).cumsum()
    first = 0
    while first < len(run):
        before = records[first - 1] if first else 0
        within = np.searchsorted(records, before + ROWS, side="right")
        beyond = run.columns[scan.POSITION, first] + PIECE_BYTES
        last = max(first + 1, min(int(within), int(np.searchsorted(run.columns[scan.POSITION], beyond))))
        yield replace(run, rows=run.rows[first:last].copy(), columns=run.columns[:, first:last].copy())
        first = last
