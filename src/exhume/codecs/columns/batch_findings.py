"""Collect the findings about all batches of a reader: kernels verify the sound ones."""

from __future__ import annotations

from collections.abc import Collection

from exhume.codecs.columns.pieces import pieces_of
from exhume.codecs.columns.runs import Run, Scratch, runs_of
from exhume.codecs.salvage import Hole
from exhume.codecs.segment_reader import SegmentBatch, SegmentReader


def collect_findings(reader: SegmentReader, known_paths: Collection[str], *, with_records: bool) -> None:
    """Add the findings about all batches to the findings of this reader; `with_records`: also those about records.

    The segments at `known_paths` are not read.
    """
    scratch = Scratch()
    for partition, segment, next_base_offset in reader.segments():
        if segment.path in known_paths:
            reader.finish(segment)
            continue
        for found in runs_of(reader, partition, segment, next_base_offset, scratch):
            if not with_records or isinstance(found, Hole):
                continue
            for piece in pieces_of(found) if isinstance(found, Run) else (found,):
                if isinstance(piece, SegmentBatch):
                    piece.records()
