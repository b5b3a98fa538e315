"""Read the records of blocks: unfold compressed batches, and make each record a column of `kernels.records`."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np

from exhume.codecs.columns.arrow import ROWS
from exhume.codecs.columns.blocks import Block, blocks
from exhume.codecs.columns.careful_batches import CarefulBatch, RecordDetails, record_columns
from exhume.codecs.kernels import records, scan
from exhume.codecs.kernels.types import Bytes, Int64s
from exhume.codecs.segment_reader import SegmentReader
from exhume.findings import Findings

#: The approximate bytes of the records of a record block. It has records of at least one batch.
RECORD_BLOCK_BYTES = 4 * 1024 * 1024


@dataclass(slots=True)
class RecordBlock:
    """At most `ROWS` records of a block; `data` has their keys and values. Use each record block before the next.

    `details` is None if no record has headers, or a magic or timestamp type that differs from those of its batch.
    """

    batches: Block
    data: Bytes
    records: Int64s
    details: RecordDetails | None = None

    def __len__(self) -> int:
        return int(self.records.shape[1])

    def only(self, wanted: Int64s) -> RecordBlock:
        """Return the records with these numbers."""
        details = None if self.details is None else self.details.take(wanted)
        return RecordBlock(self.batches, self.data, np.take(self.records, wanted, axis=1), details)

    def key_and_value(self, number: int) -> tuple[bytes | None, bytes | None]:
        """Return key and value of one record; None for a null."""
        return self._bytes(number, records.KEY_START, records.KEY_SIZE), self._bytes(number, records.VALUE_START, records.VALUE_SIZE)

    def _bytes(self, number: int, start: int, size: int) -> bytes | None:
        first, length = int(self.records[start, number]), int(self.records[size, number])
        return None if length < 0 else self.data[first : first + length].tobytes()


def record_blocks(reader: SegmentReader) -> Iterator[RecordBlock]:
    """Yield every record in order; findings go to the reader."""
    for block in blocks(reader, with_records=True):
        yield from (found for found in records_of(block) if len(found))


def look_for_damage(reader: SegmentReader, known_paths: Collection[str] = (), *, with_records: bool) -> None:
    """Add the findings about all batches to the findings of this reader; `with_records`: also those about records.

    The segments at `known_paths` are not read.
    """
    for block in blocks(reader, besides=known_paths, with_records=with_records):
        for _ in records_of(block) if with_records else ():
            pass


def records_of(block: Block, findings: Findings | None = None) -> Iterator[RecordBlock]:
    """Yield the records of a block in parts of about `RECORD_BLOCK_BYTES`.

    The careful reader reads batches that kernels cannot read; `findings` (default: those of the reader) get the problems. If such a batch
    has no records, the record block is empty.
    """
    if block.careful is not None:
        yield from _carefully(block)
        return
    sections = block.sections()
    counts = np.append(0, np.maximum(block.columns[scan.RECORD_COUNT], 0)).cumsum()
    first = 0
    while first < len(block):
        within = int(np.searchsorted(counts, counts[first] + ROWS, side="right")) - 1
        last, data = sections.memory_from(first, max(first + 1, within), RECORD_BLOCK_BYTES)
        done = first
        if data is not None:
            bodies = sections.bodies
            least_sizes = (bodies[first:last, 1] - bodies[first:last, 0]) // records.LEAST_BYTES
            room = int(np.clip(block.columns[scan.RECORD_COUNT, first:last], 0, least_sizes).sum())
            columns = np.empty((records.COLUMNS, room), np.int64)
            done, count = records.split(block.rows, first, last, data, bodies, columns)
            for start in range(0, count, ROWS):
                yield RecordBlock(block, data, np.ascontiguousarray(columns[:, start : min(start + ROWS, count)]))
        if done < last:
            yield from _carefully(block.of_batches([CarefulBatch(block.batch(done, findings), with_records=True)]))
            done += 1
        first = done


def _carefully(block: Block) -> Iterator[RecordBlock]:
    for data, columns, details in record_columns(block.careful or (), ROWS, RECORD_BLOCK_BYTES):
        yield RecordBlock(block, data, columns, details)
