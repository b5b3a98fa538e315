"""Records into the typed tables: one table for each record type, one for end-transaction markers, and the dump of everything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

import pyarrow as pa

from exhume.arrow_rows import batch_of
from exhume.codecs import schemas
from exhume.codecs.embedded import Payload, decode_assignment, decode_subscription
from exhume.codecs.json_values import JsonReady, json_ready, to_json
from exhume.codecs.record_filter import RecordFilter
from exhume.codecs.record_types import ABORT, COMMIT, GROUP_METADATA, Decoded, decode_control_record, decode_record
from exhume.codecs.records_table import record_batches, tables_of_batches
from exhume.codecs.segment_reader import SegmentReader

#: One row per record, whatever its type: where it lies, whose it is, and key and value decoded to the last field as JSON.
DUMP = pa.schema(
    [
        *(field for field in schemas.RECORDS if field.name not in ("record_type", "key", "value", "headers")),
        ("record_type", pa.int16()),
        ("type", pa.string()),
        ("group", pa.string()),
        ("member_id", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("is_tombstone", pa.bool_()),
        ("value_version", pa.int16()),
        ("layout", pa.string()),
        ("key", pa.json_()),
        ("value", pa.json_()),
        ("headers", schemas.RECORDS.field("headers").type),
        ("marks", pa.list_(pa.string())),
        ("raw_key", pa.binary()),
        ("raw_value", pa.binary()),
    ]
)

#: Tables that kernels make where there is much to read.
_BY_KERNELS = ("offset_commit", "group_metadata")

#: What reads a subscription or an assignment, by protocol type and protocol.
PayloadDecoder = Callable[[str | None, str | None, bytes], Payload]
_MOST_REMEMBERED_BYTES = 1024

_POSITION = tuple(name for name in schemas.END_TXN_MARKERS.names if name in schemas.RECORDS.names)


def decoded_batches(name: str, reader: SegmentReader, wanted: RecordFilter | None = None) -> Iterator[pa.RecordBatch]:
    """The typed table of a record type, or `end_txn_markers`, from the records that are wanted (default: all)."""
    wanted = replace(wanted or RecordFilter(), types=["end_txn_marker" if name == "end_txn_markers" else name])
    if name not in _BY_KERNELS or not reader.is_worth_compiling:
        yield from (decode_table(name, records) for records in record_batches(reader, wanted))
        return
    from exhume.codecs.columns import typed
    from exhume.codecs.columns.tables import tables_of_records

    table_of = typed.commit_table if name == "offset_commit" else typed.group_table
    yield from tables_of_records(
        reader, wanted, table_of, lambda batches: (decode_table(name, records) for records in tables_of_batches(batches, wanted))
    )


def decode_table(name: str, records: pa.RecordBatch) -> pa.RecordBatch:
    """The records of this type among `records` (of `schemas.RECORDS`), as rows of its typed table.

    `name` is that of a record type, or `end_txn_markers`. Records of other types are left out; the order is kept.
    """
    if name == "end_txn_markers":
        return batch_of(schemas.END_TXN_MARKERS, list(_marker_rows(records)))
    return batch_of(schemas.decoded()[name], list(_typed_rows(name, records)))


def dump_batches(reader: SegmentReader, wanted: RecordFilter, *, raw: bool = False) -> Iterator[pa.RecordBatch]:
    """The dump of the records that are wanted, as `dump_table`."""
    if not reader.is_worth_compiling:
        yield from (dump_table(records, raw=raw) for records in record_batches(reader, wanted))
        return
    from exhume.codecs.columns.dumped import dumped
    from exhume.codecs.columns.tables import tables_of_records

    yield from tables_of_records(
        reader,
        wanted,
        lambda piece: dumped(piece, raw=raw),
        lambda batches: (dump_table(records, raw=raw) for records in tables_of_batches(batches, wanted)),
    )


def dump_table(records: pa.RecordBatch, *, raw: bool = False) -> pa.RecordBatch:
    """Every one of these records (of `schemas.RECORDS`) decoded, as rows of `DUMP`; with `raw`, every row keeps its raw bytes."""
    return batch_of(DUMP, [_dump_row(row, raw=raw) for row in records.to_pylist()])


def decode_row(row: dict[str, Any]) -> Decoded:
    """Decode one row of `schemas.RECORDS`."""
    return (decode_control_record if row["is_control"] else decode_record)(row["key"], row["value"])


def _typed_rows(name: str, records: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    for row in records.to_pylist():
        if row["is_control"]:
            continue
        decoded = decode_record(row["key"], row["value"])
        if decoded.record_type is None or decoded.record_type.name != name:
            continue
        yield {
            **{column: row[column] for column in _POSITION},
            "record_type": decoded.number,
            "value_version": decoded.value_version,
            "is_tombstone": row["value"] is None,
            "marks": decoded.marks,
            "raw_key": row["key"] if decoded.marks else None,
            "raw_value": row["value"] if decoded.marks else None,
            **(decoded.value or {}),
            # Last, so that a value field never hides whose record it is.
            **decoded.key,
        }


def _marker_rows(records: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    for row in records.to_pylist():
        if not row["is_control"]:
            continue
        decoded = decode_control_record(row["key"], row["value"])
        if decoded.number in (ABORT, COMMIT) and decoded.control_type is not None:
            yield {
                **{column: row[column] for column in _POSITION},
                "outcome": decoded.control_type.name,
                "coordinator_epoch": (decoded.value or {}).get("coordinator_epoch"),
            }


def _dump_row(row: dict[str, Any], *, raw: bool) -> dict[str, Any]:
    decoded = decode_row(row)
    keep_raw = raw or bool(decoded.marks)
    value = decoded.value
    if decoded.control_type is not None:
        value = {"control_type": decoded.control_type.name, **(value or {})}
    elif decoded.number == GROUP_METADATA and value is not None:
        value = _with_payloads(value)
    return {
        **{column: row[column] for column in DUMP.names if column in row},
        # The number of a control record means something else: 1 is COMMIT, not an offset commit.
        "record_type": None if row["is_control"] else decoded.number,
        "type": decoded.name,
        "group": decoded.key.get("group"),
        "member_id": decoded.key.get("member_id"),
        "topic": decoded.key.get("topic"),
        "partition": decoded.key.get("partition"),
        "is_tombstone": row["value"] is None,
        "value_version": decoded.value_version,
        "layout": decoded.layout.releases if decoded.layout else None,
        "key": to_json(decoded.key),
        "value": None if value is None else to_json(value),
        "marks": decoded.marks,
        "raw_key": row["key"] if keep_raw else None,
        "raw_value": row["value"] if keep_raw else None,
    }


def _with_payloads(value: dict[str, Any]) -> dict[str, Any]:
    """A group metadata value with what its members put into their subscription and assignment."""
    protocol_type, protocol = value.get("protocol_type"), value.get("protocol")
    members = [
        {
            **member,
            "subscription": _payload(decode_subscription, protocol_type, protocol, member["subscription"]),
            "assignment": _payload(decode_assignment, protocol_type, protocol, member["assignment"]),
        }
        for member in value.get("members", ())
    ]
    return {**value, "members": members} if "members" in value else value


def payload_text(decode: PayloadDecoder, protocol_type: str | None, protocol: str | None, raw: bytes) -> bytes:
    """What the dump shows of a payload, as JSON text in UTF-8."""
    make: Callable[..., bytes] = _remembered_text if len(raw) <= _MOST_REMEMBERED_BYTES else _remembered_text.__wrapped__
    return make(decode, protocol_type, protocol, raw)


@lru_cache(maxsize=4096)
def _remembered_text(decode: PayloadDecoder, protocol_type: str | None, protocol: str | None, raw: bytes) -> bytes:
    return to_json(payload_as_json(decode(protocol_type, protocol, raw))).encode()


def _payload(decode: PayloadDecoder, protocol_type: str | None, protocol: str | None, raw: bytes) -> dict[str, Any]:
    make = _remembered_payload if len(raw) <= _MOST_REMEMBERED_BYTES else _remembered_payload.__wrapped__
    return make(decode, protocol_type, protocol, raw)


@lru_cache(maxsize=4096)
def _remembered_payload(decode: PayloadDecoder, protocol_type: str | None, protocol: str | None, raw: bytes) -> dict[str, Any]:
    """Members of a group say the same, and say it again with each generation."""
    return JsonReady(json_ready(payload_as_json(decode(protocol_type, protocol, raw))))


def payload_as_json(payload: Payload) -> dict[str, Any]:
    """An embedded payload as a JSON-ready object: its kind, its fields, its decoded user data, and always its bytes."""
    result: dict[str, Any] = {"kind": payload.kind, "version": payload.version, **payload.value}
    if payload.user_data is not None:
        result["user_data_decoded"] = payload_as_json(payload.user_data)
    if payload.marks:
        result["marks"] = payload.marks
    if payload.reason is not None:
        result["reason"] = payload.reason
    return {**result, "raw": payload.raw}
