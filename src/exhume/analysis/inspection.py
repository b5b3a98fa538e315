"""The answer of `exhume inspect`: the files, their contents, and missing parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
import pyarrow as pa

from exhume import findings as findings_table
from exhume.analysis import side_files
from exhume.analysis.log_extent import CoveredOffsets
from exhume.analysis.number_columns import Int64s
from exhume.arrow_rows import Int16, OfLog, of_log, schema_of, table_of
from exhume.codecs import schemas
from exhume.codecs.columns.blocks import Block
from exhume.codecs.columns.record_blocks import RecordBlock
from exhume.codecs.columns.versions import read_versions
from exhume.codecs.kernels import records as fields
from exhume.codecs.kernels import scan
from exhume.codecs.log_directory import Evidence, PartitionDirectory
from exhume.codecs.log_pass import LogCollector, collect_segment
from exhume.codecs.record_types import RECORD_TYPES as KNOWN_TYPES
from exhume.codecs.record_types import decode_control_record, decode_record
from exhume.codecs.schemas import InFile
from exhume.codecs.segment_reader import ReadOptions, SegmentReader
from exhume.codecs.segment_spans import SegmentSpan, segment_rows
from exhume.findings import Finding, Findings


class PartitionRow(OfLog):
    """One row per partition directory.

    Offsets and times are those of the readable records; checkpoints are null if there are none.
    """

    path: str
    segment_count: int
    size_bytes: int
    batch_count: int
    record_count: int
    tombstone_count: int
    first_offset: int | None
    last_offset: int | None
    missing_offsets: int
    min_timestamp_ms: int | None
    max_timestamp_ms: int | None
    log_start_offset: int | None
    high_watermark: int | None
    recovery_point: int | None
    first_dirty_offset: int | None
    topic_id: str | None
    damaged_bytes: int


PARTITIONS = schema_of(PartitionRow)


class RecordTypeRow(OfLog):
    """One row per partition, record type and value version. `type` and `value_version` as in the dump; control records count too."""

    record_type: Int16 | None
    type: str
    value_version: Int16 | None
    is_tombstone: bool
    is_transactional: bool
    record_count: int
    marked_count: int
    first_offset: int | None
    last_offset: int | None


RECORD_TYPES = schema_of(RecordTypeRow)


class GapRow(OfLog):
    """One row per range of offsets that no batch covers. After compaction gaps are normal: `inspect` names them and does not judge them."""

    first_missing_offset: int
    last_missing_offset: int
    missing_offsets: int
    path: str
    byte_position: int


GAPS = schema_of(GapRow)

INSPECTION_TABLES: Mapping[str, pa.Schema] = {
    "partitions": PARTITIONS,
    "segments": schemas.SEGMENTS,
    "record_types": RECORD_TYPES,
    "gaps": GAPS,
    **side_files.TABLES,
    "findings": findings_table.SCHEMA,
}


@dataclass(frozen=True, slots=True)
class Inspection:
    """The tables of `INSPECTION_TABLES`, by name, and the findings as values."""

    _tables: Mapping[str, pa.Table]
    findings: Findings

    @property
    def segments(self) -> pa.Table:
        """Return one row per segment file, with leftover files."""
        return self._tables["segments"]

    def tables(self) -> dict[str, pa.Table]:
        """Return every table by name, in reading order."""
        return dict(self._tables)


_TypeKey = tuple[int | None, str, int | None, bool, bool]


@dataclass(frozen=True, slots=True)
class _Kind:
    """The kind of a record, by its bytes."""

    record_type: int | None
    name: str
    value_version: int | None
    is_marked: bool


def _kind_of(key: bytes | None, value: bytes | None, *, is_control: bool) -> _Kind:
    decoded = (decode_control_record if is_control else decode_record)(key, value)
    number = None if decoded.control_type is not None else decoded.number
    return _Kind(number, decoded.name, decoded.value_version, bool(decoded.marks))


#: Markers have the same few bytes again and again. Longer ones are not cached.
_kind_of_few_bytes = lru_cache(maxsize=1024)(_kind_of)
_FEW_BYTES = 64


@dataclass(slots=True)
class _TypeCount:
    record_count: int = 0
    marked_count: int = 0
    first_offset: int | None = None
    last_offset: int | None = None

    def add(self, count: int, first: int, last: int) -> None:
        """Count records without a mark, with record offsets from `first` to `last`."""
        self.record_count += count
        self.first_offset = first if self.first_offset is None else min(self.first_offset, first)
        self.last_offset = last if self.last_offset is None else max(self.last_offset, last)


@dataclass(slots=True)
class _PartitionCount(LogCollector):
    """The counts of one partition so far: gaps and record types."""

    partition: PartitionDirectory
    span: SegmentSpan = field(default_factory=SegmentSpan)
    types: dict[_TypeKey, _TypeCount] = field(default_factory=dict)
    gaps: list[GapRow] = field(default_factory=list)
    _covered: CoveredOffsets | None = None

    @property
    def next_offset(self) -> int | None:
        """The offset after the last batch; None where there is no batch."""
        return None if self._covered is None else self._covered.highest + 1

    @property
    def origin(self) -> OfLog:
        return of_log(self.partition.replica, self.partition.offsets_partition)

    def add_block(self, block: Block) -> None:
        # Damaged batches may have any offset.
        before, last = np.maximum(block.first_offsets(), 0) - 1, np.maximum(block.columns[scan.LAST_OFFSET], -1)
        self._cover(before, last, block.segment.path, block.columns[scan.POSITION])

    def _cover(self, before: Int64s, last: Int64s, path: str, positions: Int64s) -> None:
        """Note the gaps between batches. Each batch starts after its offset `before` and ends with its offset `last`."""
        if self._covered is None:
            # Offsets before the first batch are no gap.
            self._covered = CoveredOffsets(int(before[0]))
        for first_missing, last_missing, number in zip(*(each.tolist() for each in self._covered.gaps(before, last)), strict=True):
            self.gaps.append(
                {
                    **self.origin,
                    "first_missing_offset": first_missing,
                    "last_missing_offset": last_missing,
                    "missing_offsets": last_missing - first_missing + 1,
                    "path": path,
                    "byte_position": int(positions[number]),
                }
            )

    def add_records(self, block: RecordBlock) -> None:
        attributes = block.batches.columns[scan.ATTRIBUTES][block.records[fields.BATCH]]
        is_transactional, is_control = attributes & scan.TRANSACTIONAL != 0, attributes & scan.CONTROL != 0
        versions, is_read = read_versions(block)
        offsets, numbers = block.records[fields.OFFSET], block.records[fields.RECORD_TYPE]
        # In readable records, type and version are small; -1 is the version of a tombstone.
        codes = (numbers * 64 + versions + 1) * 2 + is_transactional
        for code in np.unique(codes[is_read]).tolist():
            same = offsets[is_read & (codes == code)]
            number, version = code // 128, code // 2 % 64 - 1
            known = None if version < 0 else version
            count = self._count_of(number, KNOWN_TYPES[number].name, known, known is None, bool(code % 2))
            count.add(len(same), int(same.min()), int(same.max()))
        for at in np.flatnonzero(~is_read).tolist():
            self._count(*block.key_and_value(at), int(offsets[at]), bool(is_control[at]), bool(is_transactional[at]))

    def _count(self, key: bytes | None, value: bytes | None, record_offset: int, is_control: bool, is_transactional: bool) -> None:
        has_few_bytes = len(key or b"") + len(value or b"") <= _FEW_BYTES
        kind = (_kind_of_few_bytes if has_few_bytes else _kind_of)(key, value, is_control=is_control)
        count = self._count_of(kind.record_type, kind.name, kind.value_version, value is None, is_transactional)
        count.add(1, record_offset, record_offset)
        count.marked_count += kind.is_marked

    def _count_of(self, *key: *_TypeKey) -> _TypeCount:
        return self.types.setdefault(key, _TypeCount())


def inspect(evidence: Evidence, options: ReadOptions) -> Inspection:
    """Read every segment that belongs to the answer, and return the tables and findings."""
    findings = Findings(evidence.findings)
    reader = SegmentReader(evidence, options, findings)
    counts = {id(partition): _PartitionCount(partition) for partition in evidence.partitions}
    spans: dict[int, SegmentSpan] = {}
    for partition, segment, next_base in reader.segments():
        count, span = counts[id(partition)], spans.setdefault(id(segment), SegmentSpan())
        collect_segment(reader, partition, segment, next_base, [span, count.span, count])
    for count in counts.values():
        findings.extend(_lacks(count))
    for directory in evidence.log_directories:
        if directory.captured is not None:
            findings.extend(replace(finding, replica=directory.replica) for finding in directory.captured.verify())
    tables = {
        "partitions": table_of(PARTITIONS, [_partition_row(count) for count in counts.values()]),
        "segments": table_of(schemas.SEGMENTS, segment_rows(evidence.partitions, spans, findings)),
        "record_types": table_of(RECORD_TYPES, [row for count in counts.values() for row in _type_rows(count)]),
        "gaps": table_of(GAPS, [row for count in counts.values() for row in count.gaps]),
        **side_files.tables(evidence, findings),
    }
    return Inspection({**tables, "findings": findings.to_table()}, findings)


def _partition_row(count: _PartitionCount) -> PartitionRow:
    partition = count.partition
    return {
        **count.origin,
        "path": partition.path,
        **count.span.columns(),
        "segment_count": len(partition.read_segments),
        "size_bytes": partition.size_bytes,
        "missing_offsets": sum(gap["missing_offsets"] for gap in count.gaps),
        "log_start_offset": partition.log_start_offset,
        "high_watermark": partition.high_watermark,
        "recovery_point": partition.recovery_point,
        "first_dirty_offset": partition.cleaner_offset,
        "topic_id": partition.topic_id,
    }


def _type_rows(count: _PartitionCount) -> Iterable[RecordTypeRow]:
    def order(key: _TypeKey) -> tuple[int, str, int, bool, bool]:
        return (-1 if key[0] is None else key[0], key[1], -1 if key[2] is None else key[2], key[3], key[4])

    for key in sorted(count.types, key=order):
        number, name, version, is_tombstone, is_transactional = key
        seen = count.types[key]
        yield {
            **count.origin,
            "record_type": number,
            "type": name,
            "value_version": version,
            "is_tombstone": is_tombstone,
            "is_transactional": is_transactional,
            "record_count": seen.record_count,
            "marked_count": seen.marked_count,
            "first_offset": seen.first_offset,
            "last_offset": seen.last_offset,
        }


def _lacks(count: _PartitionCount) -> Iterable[Finding]:
    """Yield findings about missing parts of this partition."""
    partition = count.partition
    common: InFile = {**count.origin, "path": partition.path}
    newest = max((segment.base_offset for segment in partition.read_segments), default=None)
    for segment in partition.segments:
        if segment.is_read and segment.size_bytes == 0:
            is_newest = segment.base_offset == newest
            yield Finding(
                code="empty_segment",
                severity="info" if is_newest else "warn",
                confidence="possible",
                sentence="the newest segment is empty" if is_newest else "an earlier segment is empty",
                not_excluded="a new segment without records" if is_newest else "compaction removed all of its records",
                remedy="Compare its size with that of the original file",
                byte_position=0,
                path=segment.path,
                **count.origin,
            )
    high_watermark, end = partition.high_watermark, count.next_offset
    if high_watermark is not None and end is not None and end < high_watermark:
        yield Finding(
            code="log_ends_early",
            severity="warn",
            confidence="likely",
            sentence=f"the log ends at {end}, the high watermark was {high_watermark}",
            not_excluded="compaction removed the end of the log",
            remedy="Copy the newest segment again, or look for it in another replica",
            last_record_offset=end - 1,
            **common,
        )
