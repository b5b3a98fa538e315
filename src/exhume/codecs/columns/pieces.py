"""Read the records of runs in pieces: unfold compressed batches, and make each record a column of `kernels.records`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from exhume.codecs.columns.arrow import ROWS
from exhume.codecs.columns.runs import Run, runs
from exhume.codecs.kernels import records, scan
from exhume.codecs.kernels.types import Bytes, Int64s
from exhume.codecs.segment_reader import SegmentBatch, SegmentReader, Watch

#: The approximate bytes of the records of a piece. A piece has at least one batch.
PIECE_BYTES = 4 * 1024 * 1024


@dataclass(slots=True)
class Piece:
    """At most `ROWS` records of a run; `data` has their keys and values. Use each piece before the next."""

    run: Run
    data: Bytes
    records: Int64s

    def __len__(self) -> int:
        return int(self.records.shape[1])

    def only(self, wanted: Int64s) -> Piece:
        """Return the records with these numbers."""
        return Piece(self.run, self.data, np.take(self.records, wanted, axis=1))

    def key_and_value(self, number: int) -> tuple[bytes | None, bytes | None]:
        """Return key and value of one record; None for a null."""
        return self._bytes(number, records.KEY_START, records.KEY_SIZE), self._bytes(number, records.VALUE_START, records.VALUE_SIZE)

    def _bytes(self, number: int, start: int, size: int) -> bytes | None:
        first, length = int(self.records[start, number]), int(self.records[size, number])
        return None if length < 0 else self.data[first : first + length].tobytes()


def pieces(reader: SegmentReader, *, watch: Watch | None = None) -> Iterator[Piece | SegmentBatch]:
    """Return every record in order: pieces of runs; single batches outside of runs or with unusual content. `watch` is as for `runs`."""
    for found in runs(reader, watch=watch):
        if isinstance(found, Run):
            yield from pieces_of(found)
        else:
            yield found


def pieces_of(run: Run, *, most_bytes: int = PIECE_BYTES) -> Iterator[Piece | SegmentBatch]:
    """Yield the records of a run in pieces of about `most_bytes`, and each batch that kernels cannot read by itself."""
    sections = run.sections()
    counts = np.append(0, np.maximum(run.columns[scan.RECORD_COUNT], 0)).cumsum()
    first = 0
    while first < len(run):
        within = int(np.searchsorted(counts, counts[first] + ROWS, side="right")) - 1
        last, data = sections.memory_from(first, max(first + 1, within), most_bytes)
        done = first
        if data is not None:
            bodies = sections.bodies
            least_sizes = (bodies[first:last, 1] - bodies[first:last, 0]) // records.LEAST_BYTES
            room = int(np.clip(run.columns[scan.RECORD_COUNT, first:last], 0, least_sizes).sum())
            columns = np.empty((records.COLUMNS, room), np.int64)
            done, count = records.split(run.rows, first, last, data, bodies, columns)
            for start in range(0, count, ROWS):
                yield Piece(run, data, np.ascontiguousarray(columns[:, start : min(start + ROWS, count)]))
        if done < last:
            yield run.batch(done)
            done += 1
        first = done
