"""Field by field: our batches and records of a segment against Kafka's own dump of it.

Our side is given as rows with the names of `exhume.codecs.schemas.BATCHES` and `RECORDS`, in the order of the file; where those say null
the dump prints -1. Only columns that both sides have are held against each other, and every comparison is counted by its name.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Self

from exhume.codecs.record_types import Decoded, decode_control_record, decode_record

from .kafka_dump import DumpedBatch, DumpedRecord, DumpedSegment
from .kafka_dump_text import GroupMetadataPayload
from .kafka_json import key_to_kafka_json, to_kafka_json, to_text

Row = Mapping[str, Any]


@dataclass(slots=True)
class DumpComparison:
    """What was compared. `decoded` counts the records that Kafka's tool took apart, each of them compared to its last field.

    `refused` are records that the tool tried and could not decode, `undecoded` those it never tries (tombstones before 2.4, and the types
    that 3.4 to 3.7 do not know), `behind_stop` those behind its own exception.
    """

    compared: Counter[str] = field(default_factory=Counter)
    decoded: int = 0
    control: int = 0
    refused: int = 0
    undecoded: int = 0
    behind_stop: int = 0
    differences: list[str] = field(default_factory=list)

    def __iadd__(self, other: DumpComparison) -> Self:
        self.compared += other.compared
        for name in ("decoded", "control", "refused", "undecoded", "behind_stop"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.differences += other.differences
        return self

    def check(self, place: str, what: str, ours: object, kafka: object) -> None:
        """Count one comparison, and keep it where the two differ."""
        self.compared[what] += 1
        if ours != kafka:
            self.differences.append(f"{place}: {what} is {ours!r}, Kafka says {kafka!r}")


def compare_dump(dump: DumpedSegment, batches: Iterable[Row], records: Iterable[Row]) -> DumpComparison:
    """Hold the batches and records that we read from a segment against what Kafka's tool printed for it."""
    comparison = DumpComparison()
    ours, rows = list(batches), list(records)
    if dump.batches:
        comparison.check(dump.segment, "number of batches", len(ours), len(dump.batches))
        for batch, row in zip(dump.batches, ours, strict=False):
            _compare_batch(comparison, f"{dump.segment} byte {batch.position}", batch, row)
    if dump.stop is None:
        comparison.check(dump.segment, "number of records", len(rows), len(dump.records))
        comparison.check(dump.segment, "gaps between records", _gaps(rows), {gap for gap in dump.gaps if gap[0] >= 0})
    else:
        stopped_at = rows[len(dump.records)]["record_offset"] if len(dump.records) < len(rows) else None
        comparison.check(dump.segment, "offset of the record that stopped the tool", stopped_at, dump.stop.record_offset)
        comparison.behind_stop = len(rows) - len(dump.records)
    by_position = {row["byte_position"]: row for row in ours}
    for record, row in zip(dump.records, rows, strict=False):
        place = f"{dump.segment} offset {record.offset}"
        if row["byte_position"] in by_position:
            _compare_record(comparison, place, record, row, by_position[row["byte_position"]])
        else:
            comparison.differences.append(f"{place}: no batch of ours begins at byte {row['byte_position']}")
    return comparison


def _gaps(rows: Sequence[Row]) -> set[tuple[int, int]]:
    """Neighbours that do not follow each other. 4.x also lists a first offset above 0, as following -1."""
    offsets = [row["record_offset"] for row in rows]
    return {(before, after) for before, after in pairwise(offsets) if after != before + 1}


def _or_minus_one(value: int | None) -> int:
    return -1 if value is None else value


def _batch_fields(row: Row) -> dict[str, Any]:
    """What Kafka prints of this batch, by the name of the field in `DumpedBatch`."""
    sequence = row["base_sequence"]
    has_sequence = sequence is not None and sequence >= 0
    return {
        "base_offset": row["base_offset"],
        "last_offset": row["last_offset"],
        "count": row["record_count"],
        "base_sequence": _or_minus_one(sequence),
        "last_sequence": (sequence + row["last_offset"] - row["base_offset"]) & 0x7FFFFFFF if has_sequence else -1,
        "producer_id": _or_minus_one(row["producer_id"]),
        "producer_epoch": _or_minus_one(row["producer_epoch"]),
        "partition_leader_epoch": _or_minus_one(row["partition_leader_epoch"]),
        "is_transactional": row["is_transactional"],
        "is_control": row["is_control"],
        "position": row["byte_position"],
        "timestamp_type": row["timestamp_type"],
        "timestamp_ms": _or_minus_one(row["max_timestamp_ms"]),
        "size": row["size_bytes"],
        "magic": row["magic"],
        "codec": row["codec"],
        "crc": row["crc"],
        "is_valid": row["crc_status"] == "ok",
    }


def _compare_batch(comparison: DumpComparison, place: str, batch: DumpedBatch, row: Row) -> None:
    for name, ours in _batch_fields(row).items():
        kafka = getattr(batch, name)
        if kafka is not None:
            comparison.check(place, f"batch {name}", ours, kafka)
    comparison.check(place, "batch delete_horizon_ms", row["delete_horizon_ms"], batch.delete_horizon_ms)


def _compare_record(comparison: DumpComparison, place: str, record: DumpedRecord, row: Row, batch: Row) -> None:
    fields = _batch_fields(batch) | {
        "offset": row["record_offset"],
        "key_size": _size(row["key"]),
        "value_size": _size(row["value"]),
        "timestamp_type": row["timestamp_type"],
        "timestamp_ms": _or_minus_one(row["timestamp_ms"]),
        "sequence": _or_minus_one(row["sequence"]),
        "header_keys": tuple(header["key"] for header in row["headers"] or ()),
        "batch_size": batch["size_bytes"],
        "magic": row["magic"],
    }
    if row["magic"] < 2:
        fields["crc"] = _legacy_crc(row, batch)
    if record.era in ("0.9", "0.10"):
        # There the codec is that of the message itself, and one inside a wrapper has none.
        fields["codec"] = "none"
    for name, ours in fields.items():
        kafka = getattr(record, name, None)
        if kafka is not None:
            comparison.check(place, f"record {name}", ours, kafka)
    if row["is_control"]:
        _compare_control(comparison, place, record, row)
    else:
        _compare_data(comparison, place, record, decode_record(row["key"], row["value"]))


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _legacy_crc(row: Row, batch: Row) -> int:
    """The CRC of a message of format 0 or 1, from what was read of it: it covers all but offset, size and itself."""
    attributes = 8 if row["magic"] == 1 and batch["codec"] == "none" and row["timestamp_type"] == "LogAppendTime" else 0
    body = struct.pack(">bb", row["magic"], attributes)
    if row["magic"] == 1:
        body += struct.pack(">q", row["timestamp_ms"])
    for data in (row["key"], row["value"]):
        body += struct.pack(">i", _size(data)) + (data or b"")
    return zlib.crc32(body)


def _compare_control(comparison: DumpComparison, place: str, record: DumpedRecord, row: Row) -> None:
    decoded = decode_control_record(row["key"], row["value"])
    comparison.control += 1
    comparison.check(place, "control type", decoded.control_type.name if decoded.control_type else None, record.control)
    if record.coordinator_epoch is not None:
        comparison.check(place, "control coordinator_epoch", (decoded.value or {}).get("coordinator_epoch"), record.coordinator_epoch)


def _compare_data(comparison: DumpComparison, place: str, record: DumpedRecord, ours: Decoded) -> None:
    comparison.check(place, "record control", None, record.control)
    if record.refusal is not None:
        comparison.refused += 1
        # Kafka's newest tool refuses what was laid out otherwise under the same version, and what it has no layout for.
        odd = {"early_layout", "undecodable_value", "undecodable_key", "unknown_record_type", "unknown_value_version"}
        comparison.check(place, "reason for the refusal", bool(odd.intersection(ours.marks)), True)
    elif record.key is None:
        comparison.undecoded += 1
        comparison.check(place, "tombstone without a printed key", ours.value, None)
    elif isinstance(record.key, dict):
        comparison.decoded += 1
        assert ours.record_type is not None
        comparison.check(place, "key", _ordered(key_to_kafka_json(ours.record_type, ours.key)), _ordered(record.key))
        comparison.check(place, "payload", _ordered(_payload_json(ours)), _ordered(record.payload))
    else:
        key, payload = to_text(ours, knows_modern_types=record.era == "2.2")
        if _forgets_protocol_type(record) and isinstance(payload, GroupMetadataPayload):
            comparison.compared["payload without its protocol type"] += 1
            payload = replace(payload, protocol_type="")
        comparison.decoded += record.is_decoded
        comparison.undecoded += not record.is_decoded
        comparison.check(place, "key", key, record.key)
        comparison.check(place, "payload", payload, record.payload)


def _forgets_protocol_type(record: DumpedRecord) -> bool:
    """0.10.1 to 1.0.0 print the group as they would load it: its protocol type is that of its first member, and "" without any."""
    payload = record.payload
    return (
        record.era in ("0.10", "0.11") and isinstance(payload, GroupMetadataPayload) and not payload.members and not payload.protocol_type
    )


def _payload_json(ours: Decoded) -> dict[str, Any] | None:
    if ours.value is None:
        return None
    assert ours.record_type is not None
    assert ours.layout is not None
    assert ours.value_version is not None
    return to_kafka_json(ours.record_type, ours.value_version, ours.value, ours.layout)


def _ordered(value: object) -> str:
    """The order of fields is part of what Kafka says, and dicts compare without it."""
    return json.dumps(value, ensure_ascii=False)


def differences(comparisons: Sequence[DumpComparison]) -> list[str]:
    """The differences of all of these."""
    return [difference for comparison in comparisons for difference in comparison.differences]
