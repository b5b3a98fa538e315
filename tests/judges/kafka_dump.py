"""Kafka's own reading of a segment: the text of `DumpLogSegments --offsets-decoder`, of any release, as plain values.

Every release prints one line per record, and from 2.2 one per batch in front of them. A line is a run of `name: value` pairs, and ends
in `key: K payload: P`. Names and shapes changed five times:

    era    releases       batch line  record line
    0.9    0.9-0.10.0     no          offset position isvalid payloadsize magic compresscodec crc keysize
    0.10   0.10.1-0.10.2  no          + CreateTime (and the other timestamp types)
    0.11   0.11-2.1       no          keysize valuesize, producerId producerEpoch sequence isTransactional headerKeys
    2.2    2.2-2.7, 3.0+  yes         | offset CreateTime keysize valuesize sequence headerKeys (keySize valueSize from 3.0)
    2.8    2.8            yes         | offset isValid crc keySize valueSize CreateTime, and the fields of the batch again

Keys and payloads are text before 3.8 and JSON from then on; the text prints names raw, so that a line feed in a group id or in the metadata
of a commit breaks the line. What begins like no line continues the one before. A value that an era does not print is None.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from .kafka_dump_text import TextKey, TextPayload, UnknownKey, read_key_and_payload

Era = Literal["0.9", "0.10", "0.11", "2.2", "2.8"]

CODECS = {"NoCompressionCodec": "none", "GZIPCompressionCodec": "gzip", "SnappyCompressionCodec": "snappy", "LZ4CompressionCodec": "lz4"}
TIMESTAMP_TYPES = ("NoTimestampType", "CreateTime", "LogAppendTime")


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpedBatch:
    """One batch line. Formats 0 and 1 have no more than the fields with no default."""

    last_offset: int
    position: int
    timestamp_type: str
    timestamp_ms: int
    size: int
    magic: int
    codec: str
    crc: int
    is_valid: bool
    base_offset: int | None = None
    count: int | None = None
    base_sequence: int | None = None
    last_sequence: int | None = None
    producer_id: int | None = None
    producer_epoch: int | None = None
    partition_leader_epoch: int | None = None
    is_transactional: bool | None = None
    is_control: bool | None = None
    #: None: not printed (before 3.2), or printed as empty.
    delete_horizon_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpedRecord:
    """One record line. `key` and `payload` are dicts where Kafka printed JSON (3.8+), else what the text can be taken apart into.

    `control` is COMMIT, ABORT or another name, with `coordinator_epoch`; such records have no key and payload. `refusal` is what
    Kafka printed in place of a key that it could not decode (3.8+).
    """

    era: Era
    offset: int
    key_size: int
    value_size: int
    timestamp_type: str | None = None
    timestamp_ms: int | None = None
    sequence: int | None = None
    header_keys: tuple[str, ...] | None = None
    crc: int | None = None
    is_valid: bool | None = None
    position: int | None = None
    magic: int | None = None
    codec: str | None = None
    producer_id: int | None = None
    producer_epoch: int | None = None
    is_transactional: bool | None = None
    base_offset: int | None = None
    last_offset: int | None = None
    base_sequence: int | None = None
    last_sequence: int | None = None
    partition_leader_epoch: int | None = None
    batch_size: int | None = None
    control: str | None = None
    coordinator_epoch: int | None = None
    key: TextKey | dict[str, Any] | None = None
    payload: TextPayload | dict[str, Any] | None = None
    refusal: str | None = None

    @property
    def is_tombstone(self) -> bool:
        """True for a null value; the sizes say so in every era."""
        return self.value_size == -1

    @property
    def is_decoded(self) -> bool:
        """True when Kafka's tool took the record apart: the key, and the value unless there is none."""
        return self.key is not None and not isinstance(self.key, UnknownKey)


@dataclass(frozen=True, slots=True)
class Stop:
    """Where the tool died of its own exception: everything from this record on is missing."""

    record_offset: int | None
    exception: str


@dataclass(slots=True)
class DumpedSegment:
    """One text. `gaps` are the pairs (a, b) of "a is followed by b"; `stop` is None where the tool came to the end."""

    segment: str = ""
    starting_offset: int | None = None
    batches: list[DumpedBatch] = field(default_factory=list)
    records: list[DumpedRecord] = field(default_factory=list)
    gaps: list[tuple[int, int]] = field(default_factory=list)
    invalid_bytes: int = 0
    stop: Stop | None = None


def read_dump(path: Path) -> DumpedSegment:
    """The dump in this file, gzip or plain."""
    raw = path.read_bytes()
    return parse_dump((gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8", "replace"))


def parse_dump(text: str) -> DumpedSegment:
    """The whole text of one segment.

    Raises:
        ValueError: a line begins like one of the known shapes and goes on like none of them.
    """
    dump = DumpedSegment()
    for line in _joined_lines(text):
        line, exception, trace = line.partition('Exception in thread "main" ')
        if line.startswith("Dumping "):
            dump.segment = line.removeprefix("Dumping ")
        elif match := re.fullmatch(r"(?:Log s|S)tarting offset: (\d+)", line):
            dump.starting_offset = int(match[1])
        elif match := re.fullmatch(r"  (-?\d+) is followed by (\d+)", line):
            dump.gaps.append((int(match[1]), int(match[2])))
        elif match := re.match(r"Found (\d+) invalid bytes", line):
            dump.invalid_bytes = int(match[1])
        elif exception:
            offset = re.match(r"(?:\| )?offset: (\d+)", line)
            dump.stop = Stop(int(offset[1]) if offset else None, trace.partition("\n")[0])
        elif line.startswith("baseOffset: ") or _LEGACY_BATCH.match(line):
            dump.batches.append(_batch(line))
        elif line.startswith(("| offset: ", "offset: ")):
            dump.records.append(_record(line))
    return dump


_LEGACY_BATCH = re.compile(r"offset: \d+ position: \d+ \w+: -?\d+ size: ")
_LINE_STARTS = re.compile(
    r"Dumping |(?:Log s|S)tarting offset: |baseOffset: \d+ lastOffset: |\| offset: \d+ |offset: \d+ position: \d+ "
    r"|Non-(?:con)?secutive offsets in |  -?\d+ is followed by \d+$|Found \d+ invalid bytes|Exception in thread "
)


def _joined_lines(text: str) -> Iterator[str]:
    lines: list[str] = []
    for line in text.removesuffix("\n").split("\n"):
        if lines and not _LINE_STARTS.match(line):
            lines.append(line)
            continue
        if lines:
            yield "\n".join(lines)
        lines = [line]
    if lines:
        yield "\n".join(lines)


_PAIR = re.compile(r" ?(\w+): (\[.*?\]|[^ ]*)")


def _pairs(line: str) -> tuple[dict[str, str], str]:
    """The leading `name: value` pairs, up to the key or the control text, and what is left from there."""
    pairs: dict[str, str] = {}
    position = 2 if line.startswith("| ") else 0
    while match := _PAIR.match(line, position):
        if match[1] in ("key", "endTxnMarker", "controlType"):
            break
        # 2.8 prints the CRC of formats 0 and 1 twice, first of the record and then of its batch: the same.
        pairs.setdefault("is_valid" if match[1].lower() == "isvalid" else match[1], match[2].removesuffix("}"))
        position = match.end()
    return pairs, line[position:]


def _batch(line: str) -> DumpedBatch:
    pairs, _ = _pairs(line)
    timestamp_type = next(name for name in TIMESTAMP_TYPES if name in pairs)
    horizon = re.fullmatch(r"OptionalLong\[(\d+)\]", pairs.get("deleteHorizonMs", ""))
    return DumpedBatch(
        last_offset=int(pairs["lastOffset"] if "lastOffset" in pairs else pairs["offset"]),
        position=int(pairs["position"]),
        timestamp_type=timestamp_type,
        timestamp_ms=int(pairs[timestamp_type]),
        size=int(pairs["size"]),
        magic=int(pairs["magic"]),
        codec=_codec(pairs["compresscodec"]),
        crc=int(pairs["crc"]),
        is_valid=pairs["is_valid"] == "true",
        base_offset=_int(pairs, "baseOffset"),
        count=_int(pairs, "count"),
        base_sequence=_int(pairs, "baseSequence"),
        last_sequence=_int(pairs, "lastSequence"),
        producer_id=_int(pairs, "producerId"),
        producer_epoch=_int(pairs, "producerEpoch"),
        partition_leader_epoch=_int(pairs, "partitionLeaderEpoch"),
        is_transactional=_bool(pairs, "isTransactional"),
        is_control=_bool(pairs, "isControl"),
        delete_horizon_ms=int(horizon[1]) if horizon else None,
    )


def _record(line: str) -> DumpedRecord:
    pairs, rest = _pairs(line)
    timestamp_type = next((name for name in TIMESTAMP_TYPES if name in pairs), None)
    key_size = int(pairs.get("keysize", pairs.get("keySize", "-1")))
    codec = pairs.get("compresscodec", pairs.get("compressType"))
    headers = pairs.get("headerKeys")
    return DumpedRecord(
        era=_era(line, pairs),
        offset=int(pairs["offset"]),
        key_size=key_size,
        value_size=int(pairs.get("valuesize", pairs.get("valueSize", pairs.get("payloadsize", "")))),
        timestamp_type=timestamp_type,
        timestamp_ms=int(pairs[timestamp_type]) if timestamp_type else None,
        sequence=_int(pairs, "sequence"),
        header_keys=None if headers is None else tuple(filter(None, headers[1:-1].split(","))),
        crc=None if pairs.get("crc") == "null" else _int(pairs, "crc"),
        is_valid=_bool(pairs, "is_valid"),
        position=_int(pairs, "position"),
        magic=_int(pairs, "magic"),
        codec=None if codec is None else _codec(codec),
        producer_id=_int(pairs, "producerId"),
        producer_epoch=_int(pairs, "producerEpoch"),
        is_transactional=_bool(pairs, "isTransactional"),
        base_offset=_int(pairs, "baseOffset"),
        last_offset=_int(pairs, "lastOffset"),
        base_sequence=_int(pairs, "baseSequence"),
        last_sequence=_int(pairs, "lastSequence"),
        partition_leader_epoch=_int(pairs, "partitionLeaderEpoch"),
        batch_size=_int(pairs, "batchSize"),
        **read_key_and_payload(rest, key_size),
    )


def _era(line: str, pairs: Mapping[str, str]) -> Era:
    if line.startswith("| "):
        return "2.8" if "batchSize" in pairs else "2.2"
    if "payloadsize" not in pairs:
        return "0.11"
    return "0.9" if not any(name in pairs for name in TIMESTAMP_TYPES) else "0.10"


def _codec(text: str) -> str:
    return CODECS.get(text, text.lower())


def _int(pairs: Mapping[str, str], name: str) -> int | None:
    return int(pairs[name]) if name in pairs else None


def _bool(pairs: Mapping[str, str], name: str) -> bool | None:
    return pairs[name] == "true" if name in pairs else None
