"""A look at everything, for the sake of its findings: sound batches are verified by kernels."""

from __future__ import annotations

from collections.abc import Collection

from exhume.codecs.columns.pieces import pieces_of
from exhume.codecs.columns.runs import Run, Scratch, runs_of
from exhume.codecs.salvage import Hole
from exhume.codecs.segment_reader import SegmentBatch, SegmentReader


def look(reader: SegmentReader, besides: Collection[str], *, at_records: bool) -> None:
    """Put into the findings of this reader what there is to say about its batches, and about their records where these are asked for;
    besides those of segments at these paths.
    """
    scratch = Scratch()
    for partition, segment, behind in reader.segments():
        if segment.path in besides:
            reader.finish(segment)
            continue
        for found in runs_of(reader, partition, segment, behind, scratch):
            if not at_records or isinstance(found, Hole):
                continue
            for piece in pieces_of(found) if isinstance(found, Run) else (found,):
                if isinstance(piece, SegmentBatch):
                    piece.records()
