"""Read the batches that concern one group, and of their records only those of the group; kernels skip all others."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import groupby

import numpy as np

from exhume.codecs.columns.arrow import ROWS, SameValues
from exhume.codecs.columns.blocks import Block, Scratch, blocks_of, readable
from exhume.codecs.columns.record_blocks import RECORD_BLOCK_BYTES, RecordBlock, records_of
from exhume.codecs.columns.selection import Selection
from exhume.codecs.kernels import records, scan
from exhume.codecs.kernels.mentions import mark_mentions
from exhume.codecs.kernels.types import Int64s
from exhume.codecs.log_directory import PartitionDirectory, SegmentFile
from exhume.codecs.record_filter import RecordFilter
from exhume.codecs.record_types import OFFSET_COMMIT_TYPES
from exhume.codecs.records import Record
from exhume.codecs.salvage import Hole
from exhume.codecs.segment_reader import SegmentBatch, SegmentReader

#: A topic and a partition; None for any.
TopicPartition = tuple[str | None, int | None]

_ANY_KEY: TopicPartition = (None, None)


@dataclass(slots=True)
class ChosenBatch(SegmentBatch):
    """A sound batch, with some of its records."""

    chosen: list[Record]

    def records(self) -> list[Record]:
        return self.chosen


def batches_about(
    reader: SegmentReader,
    group: str,
    verified_segments: Collection[str],
    *,
    noted: Mapping[str, Int64s] | None = None,
    key: TopicPartition = _ANY_KEY,
) -> Iterator[SegmentBatch]:
    """Yield batches in the order of `reader.batches`, but not all that have no record of this group.

    The records of the segments in `verified_segments` are known to be sound. Of these segments it yields the control batches and the
    batches with a record of the group; of other segments, all batches.

    `noted` has, by path, batches of some of these segments as rows of `kernels.scan`: those that have a record of the group, or end a
    transaction with one. Only these batches of such a segment are read, and they may lack commits of the group with other keys than `key`.
    """
    about = _About(reader, group, key)
    scratch = Scratch()
    for partition, segment, next_base_offset in reader.segments():
        if noted is not None and segment.path in noted:
            yield from about.noted(partition, segment, noted[segment.path])
            reader.finish(segment)
            continue
        for found in blocks_of(reader, partition, segment, next_base_offset, scratch, with_records=False):
            if isinstance(found, Hole):
                continue
            is_verified = found.careful is None and segment.path in verified_segments
            for number in about.marked(found) if is_verified else range(len(found)):
                yield found.batch(number)


class _About:
    """Finds the batches and records that concern one group, and of its commits those of one key."""

    def __init__(self, reader: SegmentReader, group: str, key: TopicPartition) -> None:
        self._reader = reader
        self._name = np.frombuffer(group.encode(), np.uint8)
        self._group = Selection(RecordFilter(groups=[group]))
        topic, partition = key
        self._key = None
        if key != _ANY_KEY:
            topics, partitions = None if topic is None else [topic], None if partition is None else [partition]
            self._key = Selection(RecordFilter(topics=topics, partitions=partitions))

    def marked(self, block: Block) -> list[int]:
        """Return the numbers of the batches of a block that have a record of the group or are control batches."""
        marks = np.ones(len(block), np.uint8)
        sections = block.sections()
        first = 0
        while first < len(block):
            last, data = sections.memory_from(first, len(block), RECORD_BLOCK_BYTES)
            if data is not None:
                mark_mentions(block.rows, first, last, data, sections.bodies, self._name, marks)
            first = last
        return np.flatnonzero(marks).tolist()

    def noted(self, partition: PartitionDirectory, segment: SegmentFile, rows: Int64s) -> Iterator[SegmentBatch]:
        """Yield these batches with the wanted records."""
        if not len(rows):
            return
        columns = np.ascontiguousarray(rows.T)
        buffer = segment.open_part(int(columns[scan.POSITION, 0]), int((columns[scan.POSITION] + columns[scan.SIZE]).max()))
        block = Block(self._reader, partition, segment, buffer, readable(buffer), rows, columns, SameValues())
        last: SegmentBatch | None = None
        for found in records_of(block):
            first = 0 if found.batches.careful is not None else int(found.records[records.BATCH, 0])
            if found.batches.careful is None and block.columns[scan.RECORD_COUNT, first] <= ROWS:
                yield from self._chosen(found)
                continue
            # The records of this batch may be in several record blocks. With the first one, yield the whole batch.
            batch = found.batches.batch(first)
            if last is None or last.batch.byte_position != batch.batch.byte_position:
                yield batch
            last = batch

    def _chosen(self, block: RecordBlock) -> Iterator[SegmentBatch]:
        is_control = block.batches.columns[scan.ATTRIBUTES][block.records[records.BATCH]] & scan.CONTROL != 0
        parts = [block.only(np.flatnonzero(is_control)).records]
        own = self._group.of(block)
        if self._key is None:
            parts.append(own.records)
        else:
            is_commit = np.isin(own.records[records.RECORD_TYPE], OFFSET_COMMIT_TYPES)
            parts += [own.only(np.flatnonzero(~is_commit)).records, self._key.of(own.only(np.flatnonzero(is_commit))).records]
        together = np.concatenate(parts, axis=1)
        chosen = RecordBlock(block.batches, block.data, together[:, np.lexsort((together[records.OFFSET], together[records.BATCH]))])
        numbers = chosen.records[records.BATCH].tolist()
        for number, places in groupby(range(len(chosen)), key=numbers.__getitem__):
            batch = chosen.batches.batch(number)
            same = {each.name: getattr(batch, each.name) for each in fields(SegmentBatch) if each.init}
            yield ChosenBatch(**same, chosen=[_record(chosen, place, batch) for place in places])


def _record(block: RecordBlock, place: int, batch: SegmentBatch) -> Record:
    fields = block.records[:, place].tolist()
    key, value = block.key_and_value(place)
    timestamp_ms, sequence = fields[records.TIMESTAMP], fields[records.SEQUENCE]
    return Record(
        record_offset=fields[records.OFFSET],
        timestamp_ms=None if timestamp_ms == -1 else timestamp_ms,
        timestamp_type=batch.batch.timestamp_type,
        sequence=None if sequence == records.MISSING else sequence,
        key=key,
        value=value,
    )
