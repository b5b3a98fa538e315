"""The Arrow schema of every table that more than one folder uses.

Names follow Kafka, units are part of the name, and one word never has two meanings: `record_offset` is a place in the offsets
topic, `committed_offset` the offset that a group committed, `byte_position` a place in a file, `offsets_partition` a partition of
`__consumer_offsets`. Timestamps are int64 milliseconds since the epoch, as written. Null means "absent", never a magic number.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypedDict

import pyarrow as pa

from exhume.arrow_rows import Int8, Int16, Int32, OfLog, UInt32, schema_of
from exhume.codecs.layout import arrow_fields
from exhume.codecs.record_types import RECORD_TYPES, RecordType
from exhume.derived import derived_from

#: CRC verdicts: `not_checked` if verification was switched off, `unreadable` if the batch is cut.
CrcVerdict = Literal["ok", "mismatch", "not_checked", "unreadable"]


class InFile(OfLog):
    """The log and the file."""

    path: str


class SegmentRow(InFile):
    """One row per segment file. `origin` is log, swap, deleted or cleaned; `is_read`: it is part of the answer."""

    origin: str
    is_read: bool
    base_offset: int
    first_offset: int | None
    last_offset: int | None
    size_bytes: int
    batch_count: int | None
    record_count: int | None
    min_timestamp_ms: int | None
    max_timestamp_ms: int | None
    magics: list[Int8] | None
    codecs: list[str] | None
    damaged_bytes: int | None
    damage: str | None


class BatchRow(InFile):
    """One row per batch (formats 0 and 1: per log entry). Producer fields are null if the format has none or the batch has -1."""

    byte_position: int
    size_bytes: Int32
    base_offset: int | None
    last_offset: int
    magic: Int8
    codec: str
    timestamp_type: str | None
    base_timestamp_ms: int | None
    max_timestamp_ms: int | None
    partition_leader_epoch: Int32 | None
    producer_id: int | None
    producer_epoch: Int16 | None
    base_sequence: Int32 | None
    is_transactional: bool
    is_control: bool
    delete_horizon_ms: int | None
    record_count: Int32
    crc: UInt32
    crc_status: CrcVerdict


class PositionRow(InFile):
    """The place of a record. `byte_position` is that of its batch: the key that joins with BATCHES."""

    byte_position: int
    record_offset: int
    timestamp_ms: int | None
    partition_leader_epoch: Int32 | None
    producer_id: int | None
    producer_epoch: Int16 | None
    is_transactional: bool
    crc_status: CrcVerdict


class UndecodedRow(PositionRow):
    """A record without its content."""

    magic: Int8
    codec: str
    timestamp_type: str | None
    sequence: Int32 | None
    is_control: bool


class Header(TypedDict):
    """A header of a record."""

    key: str
    value: bytes | None


class RecordRow(UndecodedRow):
    """One row per record, control records included. `key` and `value` as on disk; a null value is a tombstone."""

    record_type: Int16 | None
    key: bytes | None
    value: bytes | None
    headers: list[Header]


class DecodedRow(PositionRow):
    """The columns of every typed table. `marks` name deviations (record_types.MARKS); a row with marks keeps raw bytes."""

    record_type: Int16
    value_version: Int16 | None
    is_tombstone: bool
    marks: list[str]
    raw_key: bytes | None
    raw_value: bytes | None


class EndTxnMarkerRow(PositionRow):
    """One row per end-transaction marker. `outcome` is COMMIT or ABORT."""

    outcome: str
    coordinator_epoch: Int32 | None


SEGMENTS = schema_of(SegmentRow)
BATCHES = schema_of(BatchRow)
RECORDS = schema_of(RecordRow)
END_TXN_MARKERS = schema_of(EndTxnMarkerRow)


def decoded_schema(record_type: RecordType) -> pa.Schema:
    """Return the schema of one record type: the place of the record, its key fields, and every field of every layout of its value.

    A field is null if the record's version or layout lacks it, and for tombstones.
    """
    columns = {field.name: field for field in schema_of(DecodedRow)}
    for struct in (record_type.key, *(layout.message.struct for layout in record_type.layouts)):
        for field in arrow_fields(struct):
            columns.setdefault(field.name, field)
    return pa.schema(list(columns.values()))


@derived_from(RECORD_TYPES)
def decoded() -> Mapping[str, pa.Schema]:
    """The table of every record type by the name of the type; types that share a name share a table."""
    return {record_type.name: decoded_schema(record_type) for record_type in RECORD_TYPES.values()}
