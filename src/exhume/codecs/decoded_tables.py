"""Decode records into typed tables: one for each record type, one for end-transaction markers, and the dump of all records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

import pyarrow as pa

from exhume.arrow_rows import Int16, Int32, Json, batch_of, schema_of
from exhume.codecs import schemas
from exhume.codecs.embedded import Payload, decode_assignment, decode_subscription
from exhume.codecs.json_values import JsonReady, json_ready, to_json
from exhume.codecs.layout import Fields
from exhume.codecs.record_types import ABORT, COMMIT, GROUP_METADATA, Decoded, decode_control_record, decode_record
from exhume.codecs.schemas import EndTxnMarkerRow, Header, PositionRow, RecordRow, UndecodedRow


class DumpRow(UndecodedRow):
    """One row per record of any type: its place, its group, and key and value as JSON with all fields decoded."""

    record_type: Int16 | None
    type: str
    group: str | None
    member_id: str | None
    topic: str | None
    partition: Int32 | None
    is_tombstone: bool
    value_version: Int16 | None
    layout: str | None
    key: Json
    value: Json | None
    headers: list[Header]
    marks: list[str]
    raw_key: bytes | None
    raw_value: bytes | None


DUMP = schema_of(DumpRow)

#: Reads a subscription or an assignment, by protocol type and protocol.
PayloadDecoder = Callable[[str | None, str | None, bytes], Payload]
_MOST_REMEMBERED_BYTES = 1024


def decode_table(name: str, records: pa.RecordBatch) -> pa.RecordBatch:
    """The records of this type among `records` (of `schemas.RECORDS`), as rows of its typed table.

    `name` is that of a record type, or `end_txn_markers`. Records of other types are left out; the order is kept.
    """
    if name == "end_txn_markers":
        return batch_of(schemas.END_TXN_MARKERS, list(_marker_rows(records)))
    return batch_of(schemas.decoded()[name], list(_typed_rows(name, records)))


def dump_table(records: pa.RecordBatch, *, raw: bool = False) -> pa.RecordBatch:
    """Every one of these records (of `schemas.RECORDS`) decoded, as rows of `DUMP`; with `raw`, every row keeps its raw bytes."""
    return batch_of(DUMP, [_dump_row(row, raw=raw) for row in records.to_pylist()])


def decode_row(row: RecordRow) -> Decoded:
    """Decode one row of `schemas.RECORDS`."""
    return (decode_control_record if row["is_control"] else decode_record)(row["key"], row["value"])


def _typed_rows(name: str, records: pa.RecordBatch) -> Iterator[Fields]:
    rows: list[RecordRow] = records.to_pylist()
    for row in rows:
        if row["is_control"]:
            continue
        decoded = decode_record(row["key"], row["value"])
        if decoded.record_type is None or decoded.record_type.name != name:
            continue
        yield {
            **_position(row),
            "record_type": decoded.number,
            "value_version": decoded.value_version,
            "is_tombstone": row["value"] is None,
            "marks": decoded.marks,
            "raw_key": row["key"] if decoded.marks else None,
            "raw_value": row["value"] if decoded.marks else None,
            **(decoded.value or {}),
            # The key comes last, so that a value field never replaces the group of the record.
            **decoded.key,
        }


def _marker_rows(records: pa.RecordBatch) -> Iterator[EndTxnMarkerRow]:
    rows: list[RecordRow] = records.to_pylist()
    for row in rows:
        if not row["is_control"]:
            continue
        decoded = decode_control_record(row["key"], row["value"])
        if decoded.number in (ABORT, COMMIT) and decoded.control_type is not None:
            yield {
                **_position(row),
                "outcome": decoded.control_type.name,
                "coordinator_epoch": (decoded.value or {}).get("coordinator_epoch"),
            }


def _position(row: RecordRow) -> PositionRow:
    return {
        "replica": row["replica"],
        "offsets_partition": row["offsets_partition"],
        "path": row["path"],
        "byte_position": row["byte_position"],
        "record_offset": row["record_offset"],
        "timestamp_ms": row["timestamp_ms"],
        "partition_leader_epoch": row["partition_leader_epoch"],
        "producer_id": row["producer_id"],
        "producer_epoch": row["producer_epoch"],
        "is_transactional": row["is_transactional"],
        "crc_status": row["crc_status"],
    }


def _dump_row(row: RecordRow, *, raw: bool) -> DumpRow:
    decoded = decode_row(row)
    keep_raw = raw or bool(decoded.marks)
    value = decoded.value
    if decoded.control_type is not None:
        value = {"control_type": decoded.control_type.name, **(value or {})}
    elif decoded.number == GROUP_METADATA and value is not None:
        value = _with_payloads(value)
    return {
        **_position(row),
        "magic": row["magic"],
        "codec": row["codec"],
        "timestamp_type": row["timestamp_type"],
        "sequence": row["sequence"],
        "is_control": row["is_control"],
        "headers": row["headers"],
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


def _with_payloads(value: Fields) -> Fields:
    """Decode the subscription and assignment of each member of a group metadata value."""
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
    """Return a payload as the JSON text of the dump, in UTF-8."""
    make: Callable[..., bytes] = _remembered_text if len(raw) <= _MOST_REMEMBERED_BYTES else _remembered_text.__wrapped__
    return make(decode, protocol_type, protocol, raw)


@lru_cache(maxsize=4096)
def _remembered_text(decode: PayloadDecoder, protocol_type: str | None, protocol: str | None, raw: bytes) -> bytes:
    return to_json(payload_as_json(decode(protocol_type, protocol, raw))).encode()


def _payload(decode: PayloadDecoder, protocol_type: str | None, protocol: str | None, raw: bytes) -> Fields:
    make = _remembered_payload if len(raw) <= _MOST_REMEMBERED_BYTES else _remembered_payload.__wrapped__
    return make(decode, protocol_type, protocol, raw)


@lru_cache(maxsize=4096)
def _remembered_payload(decode: PayloadDecoder, protocol_type: str | None, protocol: str | None, raw: bytes) -> Fields:
    """Decode a payload once: the members of a group write the same bytes, in every generation again."""
    return JsonReady(json_ready(payload_as_json(decode(protocol_type, protocol, raw))))


def payload_as_json(payload: Payload) -> Fields:
    """An embedded payload as a JSON-ready object: its kind, its fields, its decoded user data, and always its bytes."""
    result: Fields = {"kind": payload.kind, "version": payload.version, **payload.value}
    if payload.user_data is not None:
        result["user_data_decoded"] = payload_as_json(payload.user_data)
    if payload.marks:
        result["marks"] = payload.marks
    if payload.reason is not None:
        result["reason"] = payload.reason
    return {**result, "raw": payload.raw}
