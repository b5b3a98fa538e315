"""The small text files beside the segments: checkpoints, `meta.properties`, `partition.metadata`, `.kafka_cleanshutdown`.

    *-offset-checkpoint          version 0 | number of entries | `topic partition offset` each
    leader-epoch-checkpoint      version 0 | number of entries | `epoch start_offset` each
    partition.metadata           `version: 0` | `topic_id: <22 characters>`
    meta.properties              Java properties; version 0: broker.id, cluster.id; version 1: node.id, cluster.id, directory.id
    .kafka_cleanshutdown         empty, or from 3.7 JSON with brokerEpoch

One line per part, fields split at runs of white space. The readers accept the files that Kafka accepts. If Kafka refuses a file, they
raise `DecodeError` with the line: half a checkpoint is worse than none.

Source: CheckpointFile, LeaderEpochCheckpointFile, PartitionMetadataFile, MetaProperties, CleanShutdownFileHandler of Kafka 3.8.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from exhume.codecs.wire import Buffer, parse_uuid
from exhume.errors import DecodeError, EncodeError

#: More than a broker of 200,000 partitions writes; a larger file is not a checkpoint.
MAX_TEXT_BYTES = 16 * 1024 * 1024

_REMEDY = "A broker refuses this file too; give a copy from another time, or continue without it"
_LINE_END = re.compile(rb"\r\n|\r|\n")
_NUMBER = re.compile(r"[+-]?[0-9]+")
_TOPIC_ID = re.compile(r"[A-Za-z0-9_-]{22}(==)?")
_ZERO_TOPIC_ID = "A" * 22


class LeaderEpoch(NamedTuple):
    """A leader epoch and the record offset that it began with."""

    epoch: int
    start_offset: int


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """The fields of `meta.properties`; None for a field that is missing. Ids in Kafka's spelling."""

    version: int
    broker_id: int | None
    cluster_id: str | None
    directory_id: str | None


class _Line(NamedTuple):
    number: int
    byte_position: int
    text: str

    def refuse(self, why: str) -> DecodeError:
        return DecodeError(f"line {self.number}, {self.text[:80]!r}: {why}", byte_position=self.byte_position, remedy=_REMEDY)


def read_offset_checkpoint(data: Buffer) -> dict[tuple[str, int], int]:
    """The record offset of each (topic, partition); empty for an empty file.

    Raises:
        DecodeError: another version, a line without exactly three fields, or a number of entries that is not the announced one.
    """
    entries = {}
    for line, (topic, partition, offset) in _entries(data, "topic partition offset"):
        entries[topic, _int32(line, partition)] = _int64(line, offset)
    return entries


def read_leader_epochs(data: Buffer) -> list[LeaderEpoch]:
    """The leader epochs in the order of the file; empty for an empty file. Raises `DecodeError` as `read_offset_checkpoint` does."""
    return [LeaderEpoch(_int32(line, epoch), _int64(line, offset)) for line, (epoch, offset) in _entries(data, "epoch start_offset")]


def read_partition_metadata(data: Buffer) -> str:
    """The topic id, 22 characters.

    Raises:
        DecodeError: a line is missing or malformed, the version is negative, or the id is all zeros.
    """
    lines = _lines(data)
    version_line, version = _colon_value(next(lines, None))
    if _int32(version_line, version) < 0:
        raise version_line.refuse("no such version exists")
    line, topic_id = _colon_value(next(lines, None))
    if _TOPIC_ID.fullmatch(topic_id) is None:
        raise line.refuse("this is no topic id")
    topic_id = topic_id.removesuffix("==")
    if topic_id == _ZERO_TOPIC_ID:
        raise line.refuse("an id of zeros stands for no topic")
    try:
        parse_uuid(topic_id)
    except EncodeError as error:
        raise line.refuse("this is no topic id") from error
    return topic_id


def read_meta_properties(data: Buffer) -> MetaProperties:
    """The identity of the broker and of the directory.

    Raises:
        DecodeError: an unknown version, an id that is no number, or version 1 without node.id or cluster.id.
    """
    properties = read_properties(data)

    def number(key: str) -> int | None:
        line = properties.get(key)
        return None if line is None else _int32(line, line.text)

    version = number("version") or 0
    if version not in (0, 1):
        raise properties["version"].refuse("versions 0 and 1 are known")
    cluster_id, directory_id = (properties[key].text if key in properties else None for key in ("cluster.id", "directory.id"))
    broker_id = number("node.id" if version == 1 else "broker.id")
    if version == 1 and (broker_id is None or cluster_id is None):
        raise DecodeError(f"version 1 needs {'node.id' if broker_id is None else 'cluster.id'}", remedy=_REMEDY)
    return MetaProperties(version, broker_id, cluster_id, directory_id)


def read_clean_shutdown(data: Buffer) -> int | None:
    """Return the broker epoch that a clean shutdown wrote; None if the file is empty, as up to 3.6.

    Raises:
        DecodeError: neither empty nor the JSON that a broker writes. The shutdown was clean even so: the file exists.
    """
    if not len(data):
        return None
    _refuse_size(data, _CLEAN_REMEDY)
    try:
        content = json.loads(bytes(data))
    except ValueError as error:
        raise DecodeError(f"the file is not valid JSON: {error}", remedy=_CLEAN_REMEDY) from error
    except RecursionError as error:
        raise DecodeError("the JSON is nested too deeply; no broker writes that", remedy=_CLEAN_REMEDY) from error
    epoch = content.get("brokerEpoch") if isinstance(content, dict) else None
    if not isinstance(epoch, int):
        raise DecodeError("the JSON has no brokerEpoch", remedy=_CLEAN_REMEDY)
    return epoch


_CLEAN_REMEDY = "Nothing to do: the file exists, so the broker stopped cleanly"


def read_properties(data: Buffer) -> dict[str, _Line]:
    """Read a file of Java properties: for each key its last line, with the value as text.

    Source: java.util.Properties.load.
    """
    properties = {}
    parts: list[str] = []
    first: _Line | None = None
    for line in _lines(data, encoding="latin-1"):
        text = line.text.lstrip(" \t\f")
        if first is None and (not text or text[0] in "#!"):
            continue
        first = first or line
        # Two backslashes are one escaped backslash: a single one that is left continues the value on the next line.
        goes_on = (len(text) - len(text.rstrip("\\"))) % 2 == 1
        parts.append(text[:-1] if goes_on else text)
        if not goes_on:
            key, value = _split_property("".join(parts))
            properties[key] = first._replace(text=value)
            parts, first = [], None
    if first is not None:
        key, value = _split_property("".join(parts))
        properties[key] = first._replace(text=value)
    return properties


_PROPERTY = re.compile(r"(?P<key>(?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(?P<value>.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def _split_property(text: str) -> tuple[str, str]:
    match = _PROPERTY.match(text)
    return ("", "") if match is None else (_unescape(match["key"]), _unescape(match["value"]))


def _unescape(text: str) -> str:
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else _CONTROL.get(match[2], match[2]), text)


def _lines(data: Buffer, encoding: str = "utf-8") -> Iterator[_Line]:
    """The lines as Java's BufferedReader returns them: no empty line after the last line end."""
    _refuse_size(data, _REMEDY)
    text = bytes(data)
    position = 0
    number = 1
    while position < len(text):
        match = _LINE_END.search(text, position)
        end, following = (match.start(), match.end()) if match else (len(text), len(text))
        yield _Line(number, position, text[position:end].decode(encoding, "replace"))
        position, number = following, number + 1


def _refuse_size(data: Buffer, remedy: str) -> None:
    if len(data) > MAX_TEXT_BYTES:
        raise DecodeError(f"the file has {len(data)} bytes; no file of this kind is so large", remedy=remedy)


def _entries(data: Buffer, fields: str) -> Iterator[tuple[_Line, list[str]]]:
    """The fields of each entry of a checkpoint of version 0."""
    lines = _lines(data)
    version = next(lines, None)
    if version is None:
        return
    if _int32(version, version.text) != 0:
        raise version.refuse("only version 0 exists")
    announced = next(lines, None)
    if announced is None:
        return
    expected = _int32(announced, announced.text)
    found = 0
    for line in lines:
        # Java removes empty fields at the end of a split, not at its start.
        parts = re.split(r"\s+", line.text.rstrip(" \t\n\v\f\r"), flags=re.ASCII)
        if len(parts) != len(fields.split()):
            raise line.refuse(f"an entry has the fields `{fields}`")
        found += 1
        yield line, parts
    if found != expected:
        raise announced.refuse(f"{expected} entries are announced, {found} are there")


def _colon_value(line: _Line | None) -> tuple[_Line, str]:
    if line is None:
        raise DecodeError("a line is missing: the file must have `version: 0` and `topic_id: …`", remedy=_REMEDY)
    parts = re.split(r":\s+", line.text, flags=re.ASCII)
    if len(parts) != 2:
        raise line.refuse("the form is `name: value`")
    return line, parts[1]


def _int32(line: _Line, text: str) -> int:
    return _integer(line, text, 32)


def _int64(line: _Line, text: str) -> int:
    return _integer(line, text, 64)


def _integer(line: _Line, text: str, bits: int) -> int:
    # The length comes first: Python refuses to read integers of thousands of digits.
    if len(text) > 40 or _NUMBER.fullmatch(text) is None or not -(2 ** (bits - 1)) <= int(text) < 2 ** (bits - 1):
        raise line.refuse(f"{text[:40]!r} is no int{bits}")
    return int(text)
