"""Note the batches with records of some keys in one pass over the logs, and read only these batches in the next pass.

The notes take a few bytes for each such batch, and nothing of its records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pyarrow as pa

from exhume.codecs.columns.arrow import SameValues
from exhume.codecs.columns.blocks import Block, readable
from exhume.codecs.columns.record_blocks import RecordBlock
from exhume.codecs.columns.record_columns import record_column
from exhume.codecs.kernels import records, scan
from exhume.codecs.kernels.types import Int32s, Int64s
from exhume.codecs.log_directory import PartitionDirectory, SegmentFile
from exhume.codecs.segment_reader import SegmentReader

#: The most notes, some twenty megabytes. Segments after them are read whole again.
_MOST_NOTES = 1_000_000
_KEY = pa.field("key", pa.binary())


#: By path, the start and the end of batches in the order of the segment.
Spans = Mapping[str, Int64s]


class NotedBatches:
    """The places of batches that have records of some keys."""

    def __init__(self) -> None:
        #: Each key, with the number that stands for it.
        self._key_numbers: dict[bytes, int] = {}
        #: By path: start and end of batches, and for each of them the number of a key that it has.
        self._notes: dict[str, list[tuple[Int64s, Int32s]]] = {}
        self._count = 0
        self._whole: set[str] = set()

    def add_block(self, block: Block) -> None:
        """Take the headers of batches, before their records."""
        if block.careful is not None:
            # Only the careful reader can find them again.
            self._read_whole(block.segment.path)
        elif block.segment.path not in self._whole:
            self._notes.setdefault(block.segment.path, [])

    def note(self, block: RecordBlock) -> pa.DictionaryArray:
        """Note the batches of these records, and return the key of each record."""
        keys = record_column(block, _KEY).dictionary_encode()
        numbers = np.array([self._key_numbers.setdefault(key, len(self._key_numbers)) for key in keys.dictionary.to_pylist()], np.int64)
        path = block.batches.segment.path
        if block.batches.careful is not None or self._count >= _MOST_NOTES:
            self._read_whole(path)
        elif path not in self._whole:
            batches = block.records[records.BATCH]
            key_numbers = numbers[keys.indices.to_numpy()]
            # A batch may have many records of one key.
            is_other = np.append(True, (batches[1:] != batches[:-1]) | (key_numbers[1:] != key_numbers[:-1]))
            starts, sizes = (block.batches.columns[column][batches[is_other]] for column in (scan.POSITION, scan.SIZE))
            spans = np.stack([starts, starts + sizes], axis=1)
            self._notes[path].append((spans, key_numbers[is_other].astype(np.int32)))
            self._count += len(spans)
        return keys

    def _read_whole(self, path: str) -> None:
        self._whole.add(path)
        self._notes.pop(path, None)

    def spans(self, is_wanted: Callable[[bytes], bool]) -> Spans:
        """Return the batches that have records of these keys. Read segments that are not in the result whole."""
        wanted = np.array([is_wanted(key) for key in self._key_numbers], np.bool_)
        found: dict[str, Int64s] = {}
        for path, notes in self._notes.items():
            own = [spans[wanted[key_numbers]] for spans, key_numbers in notes]
            found[path] = np.unique(np.concatenate([np.empty((0, 2), np.int64), *own]), axis=0)
        return found


def blocks_at(
    reader: SegmentReader, partition: PartitionDirectory, segment: SegmentFile, spans: Int64s, same: SameValues
) -> Iterator[Block]:
    """Yield the batches at these places, which a pass before has found sound and in order, as one block. Read nothing else."""
    if not len(spans):
        return
    buffer = segment.open_part(int(spans[0, 0]), int(spans[-1, 1]))
    content = readable(buffer)
    rows = np.empty((len(spans), scan.COLUMNS), np.int64)
    count = 0
    for start, end in spans.tolist():
        # The file may be shorter than it was.
        count += scan.scan(content, start, min(end, len(content)), reader.options.verify, rows[count : count + 1])[0]
    rows = rows[:count]
    yield Block(reader, partition, segment, buffer, content, rows, np.ascontiguousarray(rows.T), same)
