"""The Arrow schema of every table that travels between rooms.

Names follow Kafka, units stand in the name, and one word never has two meanings: `record_offset` is a place in the offsets
topic, `committed_offset` what a group committed, `byte_position` a place in a file, `offsets_partition` a partition of
`__consumer_offsets`. Timestamps are int64 milliseconds since the epoch, as written. Null means "not there", never a magic number.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from exhume.codecs.layout import arrow_fields
from exhume.codecs.record_types import RECORD_TYPES, RecordType
from exhume.derived import derived_from

#: CRC verdicts: `ok`, `mismatch`, `not_checked` (verification was switched off), `unreadable` (the batch is cut).
CRC_STATUS = pa.string()

_ORIGIN = (
    pa.field("replica", pa.string()),
    pa.field("offsets_partition", pa.int32()),
)

#: One row per segment file. `origin` is log, swap, deleted or cleaned; `is_read` tells whether it is part of the answer.
SEGMENTS = pa.schema(
    [
        *_ORIGIN,
        ("path", pa.string()),
        ("origin", pa.string()),
        ("is_read", pa.bool_()),
        ("base_offset", pa.int64()),
        ("first_offset", pa.int64()),
        ("last_offset", pa.int64()),
        ("size_bytes", pa.int64()),
        ("batch_count", pa.int64()),
        ("record_count", pa.int64()),
        ("min_timestamp_ms", pa.int64()),
        ("max_timestamp_ms", pa.int64()),
        ("magics", pa.list_(pa.int8())),
        ("codecs", pa.list_(pa.string())),
        ("damaged_bytes", pa.int64()),
        ("damage", pa.string()),
    ]
)

#: One row per batch (formats 0 and 1: per log entry). Producer fields are null where the format has none or the batch says -1.
BATCHES = pa.schema(
    [
        *_ORIGIN,
        ("path", pa.string()),
        ("byte_position", pa.int64()),
        ("size_bytes", pa.int32()),
        ("base_offset", pa.int64()),
        ("last_offset", pa.int64()),
        ("magic", pa.int8()),
        ("codec", pa.string()),
        ("timestamp_type", pa.string()),
        ("base_timestamp_ms", pa.int64()),
        ("max_timestamp_ms", pa.int64()),
        ("partition_leader_epoch", pa.int32()),
        ("producer_id", pa.int64()),
        ("producer_epoch", pa.int16()),
        ("base_sequence", pa.int32()),
        ("is_transactional", pa.bool_()),
        ("is_control", pa.bool_()),
        ("delete_horizon_ms", pa.int64()),
        ("record_count", pa.int32()),
        ("crc", pa.uint32()),
        ("crc_status", CRC_STATUS),
    ]
)

_POSITION = (
    *_ORIGIN,
    pa.field("path", pa.string()),
    # Of the batch that holds the record: the key that joins with BATCHES.
    pa.field("byte_position", pa.int64()),
    pa.field("record_offset", pa.int64()),
    pa.field("timestamp_ms", pa.int64()),
    pa.field("partition_leader_epoch", pa.int32()),
    pa.field("producer_id", pa.int64()),
    pa.field("producer_epoch", pa.int16()),
    pa.field("is_transactional", pa.bool_()),
    pa.field("crc_status", CRC_STATUS),
)

#: One row per record, control records included. `key` and `value` as on disk; a null value is a tombstone.
RECORDS = pa.schema(
    [
        *_POSITION,
        ("magic", pa.int8()),
        ("codec", pa.string()),
        ("timestamp_type", pa.string()),
        ("sequence", pa.int32()),
        ("is_control", pa.bool_()),
        ("record_type", pa.int16()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)

_DECODED = (
    pa.field("record_type", pa.int16()),
    pa.field("value_version", pa.int16()),
    pa.field("is_tombstone", pa.bool_()),
    # What is odd about the record (record_types.MARKS); where something is, the raw bytes are kept beside it.
    pa.field("marks", pa.list_(pa.string())),
    pa.field("raw_key", pa.binary()),
    pa.field("raw_value", pa.binary()),
)

#: One row per end-transaction marker. `outcome` is COMMIT or ABORT.
END_TXN_MARKERS = pa.schema([*_POSITION, ("outcome", pa.string()), ("coordinator_epoch", pa.int32())])


def decoded_schema(record_type: RecordType) -> pa.Schema:
    """The table of one record type: where the record lies, its key fields, and every field of every layout of its value.

    A field is null where the record's version or layout lacks it, and for tombstones.
    """
    columns = {field.name: field for field in (*_POSITION, *_DECODED)}
    for struct in (record_type.key, *(layout.message.struct for layout in record_type.layouts)):
        for field in arrow_fields(struct):
            columns.setdefault(field.name, field)
    return pa.schema(list(columns.values()))


@derived_from(RECORD_TYPES)
def decoded() -> Mapping[str, pa.Schema]:
    """The table of every record type by the name of the type; types that share a name share a table."""
    return {record_type.name: decoded_schema(record_type) for record_type in RECORD_TYPES.values()}
