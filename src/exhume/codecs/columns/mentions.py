"""The batches that have to do with one group; the others are stepped over by a kernel that looks at keys only."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from exhume.codecs.columns.pieces import bodies_of, next_stretch
from exhume.codecs.columns.runs import Run, runs
from exhume.codecs.kernels.mentions import mark_mentions
from exhume.codecs.segment_reader import SegmentBatch, SegmentReader


def batches_about(reader: SegmentReader, group: str, read_whole: Collection[str]) -> Iterator[SegmentBatch]:
    """Batches in the order of `reader.batches`: of the segments in `read_whole`, whose records are known to be in good order, those with a
    record of this group, and control batches; of the others all.
    """
    name = np.frombuffer(group.encode(), np.uint8)
    for found in runs(reader):
        if not isinstance(found, Run):
            yield found
        elif found.segment.path in read_whole:
            yield from (found.batch(number) for number in _about(found, name))
        else:
            yield from (found.batch(number) for number in range(len(found.rows)))


def _about(run: Run, name: np.ndarray[tuple[int], np.dtype[np.uint8]]) -> list[int]:
    marks = np.ones(len(run.rows), np.uint8)
    bodies = bodies_of(run)
    first = 0
    while first < len(run.rows):
        last, data = next_stretch(run, first, bodies)
        if data is not None:
            mark_mentions(run.rows, first, last, data, bodies, name, marks)
        first = last
    return np.flatnonzero(marks).tolist()
