"""Records of runs, piece by piece: compressed batches unfolded, every record a column of `kernels.records`."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np

from exhume.codecs.columns.arrow import ROWS
from exhume.codecs.columns.runs import Run, runs
from exhume.codecs.compression import decompress
from exhume.codecs.kernels import records, scan
from exhume.codecs.kernels.messages import as_records
from exhume.codecs.kernels.primitives import Bytes, Int64s
from exhume.codecs.segment_reader import SegmentBatch, SegmentReader
from exhume.errors import DecompressionError

#: A piece has about so many bytes of records, and one batch at least.
PIECE_BYTES = 4 * 1024 * 1024
#: What unfolds to more is read batch by batch: Arrow counts bytes in 32 bits.
_MOST_BYTES = 1 << 30


@dataclass(slots=True)
class Piece:
    """Some records of a run, `ROWS` at most, whose keys and values lie in `data`. Valid until the next piece is asked for."""

    run: Run
    data: Bytes
    records: Int64s

    def __len__(self) -> int:
        return int(self.records.shape[1])

    def only(self, wanted: Int64s) -> Piece:
        """The records with these numbers."""
        return Piece(self.run, self.data, np.take(self.records, wanted, axis=1))

    def key_and_value(self, number: int) -> tuple[bytes | None, bytes | None]:
        """The bytes of one record; None for a null."""
        return self._bytes(number, records.KEY_START, records.KEY_SIZE), self._bytes(number, records.VALUE_START, records.VALUE_SIZE)

    def _bytes(self, number: int, start: int, size: int) -> bytes | None:
        first, length = int(self.records[start, number]), int(self.records[size, number])
        return None if length < 0 else self.data[first : first + length].tobytes()


def pieces(reader: SegmentReader, offsets_partitions: Collection[int] | None = None) -> Iterator[Piece | SegmentBatch]:
    """Every record in order: of runs in pieces; batches that are in no run, or hold anything odd, as they are."""
    for found in runs(reader, offsets_partitions):
        if isinstance(found, Run):
            yield from pieces_of(found)
        else:
            yield found


def pieces_of(run: Run, *, most_bytes: int = PIECE_BYTES) -> Iterator[Piece | SegmentBatch]:
    """The records of a run, in pieces that take up about so many bytes of their segment at most."""
    bodies = bodies_of(run)
    first = 0
    while first < len(run):
        last, data = next_stretch(run, first, bodies, most_bytes)
        done = first
        if data is not None:
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


def bodies_of(run: Run) -> Int64s:
    """Where the records of each batch begin and end in the segment."""
    bodies = np.empty((len(run), 2), np.int64)
    bodies[:, 0] = run.columns[scan.POSITION] + scan.HEADER_BYTES
    bodies[:, 1] = run.columns[scan.POSITION] + run.columns[scan.SIZE]
    return bodies


def next_stretch(run: Run, first: int, bodies: Int64s, most_bytes: int = PIECE_BYTES) -> tuple[int, Bytes | None]:
    """Batches to be split together: the number behind the last one, and the bytes that their `bodies` lie in; None where the first one is
    not to be unfolded. Of compressed batches and of messages `bodies` is changed to where their records lie in these bytes.
    """
    is_compressed = (run.columns[scan.ATTRIBUTES, first:] & scan.CODEC != 0) & (run.columns[scan.SIZE, first:] > scan.HEADER_BYTES)
    is_message = run.columns[scan.MAGIC, first:] != 2
    changes = np.flatnonzero((is_compressed != is_compressed[0]) | (is_message != is_message[0]))
    last = first + (int(changes[0]) if len(changes) else len(is_compressed))
    counts = np.maximum(run.columns[scan.RECORD_COUNT, first:last], 0).cumsum()
    last = first + max(1, int(np.searchsorted(counts, ROWS, side="right")))
    if is_compressed[0]:
        return _unfold(run, first, last, bodies)
    ends = run.columns[scan.POSITION, first:last] + run.columns[scan.SIZE, first:last]
    if is_message[0]:
        last = first + max(1, int(np.searchsorted(ends, run.columns[scan.POSITION, first] + PIECE_BYTES, side="right")))
        return last, as_records(run.content, run.rows, first, last, bodies)
    last = first + max(1, int(np.searchsorted(ends, bodies[first, 0] + most_bytes, side="right")))
    return last, run.content


def _unfold(run: Run, first: int, last: int, bodies: Int64s) -> tuple[int, Bytes | None]:
    unfolded: list[bytes] = []
    size, number = 0, first
    while number < last and size < PIECE_BYTES:
        codec = int(run.columns[scan.ATTRIBUTES, number]) & scan.CODEC
        # Not from `bodies`: an earlier stretch may have unfolded this batch already, and ended in front of it.
        start, end = run.columns[scan.POSITION, number], run.columns[scan.POSITION, number] + run.columns[scan.SIZE, number]
        stream = run.content[start + scan.HEADER_BYTES : end].data
        try:
            unfolded.append(decompress(codec, stream, magic=2, cap_bytes=run.reader.options.cap_bytes))
        except DecompressionError:
            break
        if size + len(unfolded[-1]) > _MOST_BYTES:
            unfolded.pop()
            break
        bodies[number] = size, size + len(unfolded[-1])
        size += len(unfolded[-1])
        number += 1
    if number == first:
        return first + 1, None
    return number, np.frombuffer(b"".join(unfolded) or b"\0", np.uint8)
