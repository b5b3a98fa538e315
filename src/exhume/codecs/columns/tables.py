"""Tables of all segments, on as many threads as may work; what is in no run, or odd, is left to the plain reading.

Batches are scanned segment by segment, side by side. Records are decoded side by side in parts of runs, which one thread finds. What lies
behind the first odd place of a segment is read by the thread of the reader alone.
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
from exhume.codecs.columns.runs import OpenSegment, Run, Scratch, stretches
from exhume.codecs.columns.selection import Selection
from exhume.codecs.columns.side_by_side import PAUSE, Made, in_turn, side_by_side
from exhume.codecs.kernels import scan
from exhume.codecs.record_filter import RecordFilter
from exhume.codecs.salvage import Hole
from exhume.codecs.segment_reader import SegmentBatch, SegmentReader

#: Memory that was filled before is at hand sooner than new one, so a few megabytes of it stay.
_spare: list[Scratch] = []

#: The plain reading: what it makes of batches.
Plainly = Callable[[Iterator[SegmentBatch]], Iterable[pa.RecordBatch]]


def tables_of_batches(reader: SegmentReader, plainly: Plainly) -> Iterator[pa.RecordBatch]:
    """Rows of `schemas.BATCHES` for every batch."""
    return _made(reader, (_scanned(opened, plainly) for opened in _segments(reader)))


def tables_of_records(
    reader: SegmentReader, wanted: RecordFilter, of_piece: Callable[[Piece], pa.RecordBatch], plainly: Plainly
) -> Iterator[pa.RecordBatch]:
    """What `of_piece` makes of the wanted records of every piece."""
    return _made(reader, _decoded(reader, wanted, of_piece, plainly))


def _made(reader: SegmentReader, works: Iterable[Made]) -> Iterator[pa.RecordBatch]:
    threads = reader.options.most_threads
    return in_turn(works) if threads == 1 else side_by_side(works, threads)


def _segments(reader: SegmentReader, offsets_partitions: Collection[int] | None = None) -> Iterator[OpenSegment]:
    for partition, segment, behind in reader.segments(offsets_partitions):
        yield OpenSegment(reader, partition, segment, behind, segment.open())


def _scanned(opened: OpenSegment, plainly: Plainly) -> Made:
    with _spare_scratch() as scratch:
        for run in opened.runs(scratch):
            yield from batch_tables_of(run)
    yield from _rest(opened, batch_tables_of, plainly)


def _decoded(reader: SegmentReader, wanted: RecordFilter, of_piece: Callable[[Piece], pa.RecordBatch], plainly: Plainly) -> Iterator[Made]:
    selection = Selection(wanted)

    def decoded(part: Run) -> Made:
        for found in stretches(pieces_of(part)):
            if not isinstance(found, Piece):
                yield PAUSE
                yield from plainly(found)
            elif len(piece := selection.of(found)):
                yield of_piece(piece)
        yield PAUSE
        reader.advance(int(part.columns[scan.POSITION, -1] + part.columns[scan.SIZE, -1]))

    with _spare_scratch() as scratch:
        for opened in _segments(reader, wanted.offsets_partitions):
            for run in opened.runs(scratch):
                for part in _parts(run):
                    yield decoded(part)
            yield _rest(opened, decoded, plainly)


def _rest(opened: OpenSegment, made_of: Callable[[Run], Made], plainly: Plainly) -> Made:
    yield PAUSE
    # Not what the runs were found with: by now it may hold a run of a later segment.
    with _spare_scratch() as scratch:
        for found in stretches(item for item in opened.rest(scratch) if not isinstance(item, Hole)):
            yield from made_of(found) if isinstance(found, Run) else plainly(found)


@contextmanager
def _spare_scratch() -> Iterator[Scratch]:
    """For whoever fills it, alone: several threads do at a time."""
    try:
        scratch = _spare.pop()
    except IndexError:
        scratch = Scratch()
    try:
        yield scratch
    finally:
        _spare.append(scratch)


def _parts(run: Run) -> Iterator[Run]:
    """This run in parts of about a piece each, which do not change when the run does."""
    records = np.maximum(run.columns[scan.RECORD_COUNT], 0).cumsum()
    first = 0
    while first < len(run):
        before = records[first - 1] if first else 0
        within = np.searchsorted(records, before + ROWS, side="right")
        beyond = run.columns[scan.POSITION, first] + PIECE_BYTES
        last = max(first + 1, min(int(within), int(np.searchsorted(run.columns[scan.POSITION], beyond))))
        yield replace(run, rows=run.rows[first:last].copy(), columns=run.columns[:, first:last].copy())
        first = last
