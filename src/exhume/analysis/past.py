"""Missing records in a log, and records after a moment: one pass, which gives the completeness of the past."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from exhume.arrow_rows import Origin
from exhume.codecs.log_directory import PartitionDirectory, SegmentFile
from exhume.codecs.record_types import decode_record
from exhume.codecs.salvage import Hole
from exhume.codecs.segment_reader import SegmentBatch, SegmentReader
from exhume.replay.state_tables import LoadRow


@dataclass(slots=True)
class Past:
    """The result of one pass over an offsets partition: the time up to a moment, and the records after it.

    `first_after` is the first record of each group after the moment.
    """

    partition: PartitionDirectory
    #: The last record offset of the moment; None for the end.
    moment_offset: int | None
    start_offset: int
    next_offset: int
    #: First and last offset of each range of offsets without a record.
    gaps: list[tuple[int, int]] = field(default_factory=list)
    first_damage: int | None = None
    first_marker_after: int | None = None
    first_after: dict[str, int] = field(default_factory=dict)
    _last_marker: dict[int, int] = field(default_factory=dict)

    @property
    def last_offset(self) -> int:
        """Return the last record offset of the moment, or of the log."""
        end = self.next_offset - 1
        return end if self.moment_offset is None else min(self.moment_offset, end)

    def take(self, item: SegmentBatch | Hole) -> None:
        """Take the next batch or hole."""
        if isinstance(item, Hole):
            self.note_damage()
        else:
            self._read(item)

    def _read(self, batch: SegmentBatch) -> None:
        records = batch.records()
        expected = batch.batch.record_count
        if batch.found.crc_status in ("mismatch", "unreadable") or (not records if expected is None else len(records) < expected):
            self.note_damage()
        for record in records:
            if record.record_offset < self.start_offset:
                continue
            self._expect(record.record_offset)
            if batch.batch.is_control:
                self.note_marker(batch.batch.producer_id, record.record_offset)
            elif self.is_after(record.record_offset):
                group = decode_record(record.key, None).key.get("group")
                if group is not None:
                    self.first_after.setdefault(group, record.record_offset)
            self.next_offset = max(self.next_offset, record.record_offset + 1)
        self._expect(batch.batch.next_offset)
        self.next_offset = max(self.next_offset, batch.batch.next_offset)

    def note_damage(self) -> None:
        """Note damage at this place."""
        if self.first_damage is None:
            self.first_damage = self.next_offset

    def _expect(self, record_offset: int) -> None:
        if record_offset > self.next_offset:
            self.gaps.append((self.next_offset, record_offset - 1))

    def is_after(self, record_offset: int) -> bool:
        """True if the record is after the moment."""
        return self.moment_offset is not None and record_offset > self.moment_offset

    def note_marker(self, producer_id: int, record_offset: int) -> None:
        """Note an end marker. After the moment, check whether records of its transaction can be missing up to the moment."""
        begin = self._last_marker.get(producer_id, self.start_offset - 1) + 1
        self._last_marker[producer_id] = record_offset
        moment_offset = self.moment_offset
        if self.first_marker_after is not None or moment_offset is None or record_offset <= moment_offset:
            return
        if any(first <= moment_offset and last >= begin for first, last in self.gaps):
            self.first_marker_after = record_offset

    def cleaned_up_to(self) -> int:
        """Return the offset before which compaction may have removed records."""
        cleaner_offset = self.partition.cleaner_offset
        if cleaner_offset is None or any(last >= cleaner_offset for _, last in self.gaps):
            return self.next_offset
        return cleaner_offset


def read_pasts(
    reader: SegmentReader, loads: Mapping[Origin, LoadRow], moment_of: Callable[[LoadRow, int], int | None]
) -> dict[Origin, Past]:
    """Return the past of every loaded offsets partition.

    `moment_of` gives the last record offset that counts in a load of a log that starts at this offset; None for its end.
    """
    read_segment = _segment_reader(reader)
    pasts: dict[Origin, Past] = {}
    for partition, segment, next_base in reader.segments():
        origin = (partition.replica, partition.offsets_partition)
        if origin not in loads:
            continue
        if origin not in pasts:
            start = max(segment.base_offset, partition.log_start_offset or 0)
            pasts[origin] = Past(partition, moment_of(loads[origin], start), start, start)
        read_segment(pasts[origin], partition, segment, next_base)
    return pasts


_ReadSegment = Callable[[Past, PartitionDirectory, SegmentFile, int | None], None]


def _segment_reader(reader: SegmentReader) -> _ReadSegment:
    if reader.is_worth_compiling:
        from exhume.analysis.past_columns import PastColumns

        return PastColumns(reader).read

    def read(past: Past, partition: PartitionDirectory, segment: SegmentFile, next_base: int | None) -> None:
        for item in reader.items(partition, segment, next_base):
            past.take(item)

    return read
