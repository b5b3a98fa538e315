"""Reading a record as the coordinator of one release does: what it refuses ends the load, what it does not know is skipped.

Unlike `record_types.decode_record`, which reads everything as far as it goes, nothing here is tolerant: a record that this release
cannot decode is a `DecodeError`, with the reason in words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from exhume.codecs.record_types import RECORD_TYPES
from exhume.codecs.wire import Reader
from exhume.errors import DecodeError, UnexpectedNull, UnknownVersion
from exhume.replay.profiles import BrokerProfile


class UnknownRecordType(UnknownVersion):
    """A record type that this release does not know. `record_type` is the number."""

    def __init__(self, record_type: int) -> None:
        super().__init__(f"record type {record_type} is not known to this release")
        self.record_type = record_type


@dataclass(frozen=True, slots=True)
class ReplayRecord:
    """One record as a coordinator sees it. `value` is None for a tombstone; `value_version` too."""

    record_offset: int
    record_type: int
    key: dict[str, Any]
    value_version: int | None
    value: dict[str, Any] | None


def decode_for(profile: BrokerProfile, record_offset: int, key: bytes | None, value: bytes | None) -> ReplayRecord:
    """This record under the rules of this release.

    Bytes behind the last field are ignored, as every release does.

    Raises:
        UnknownRecordType: the release has no such type; the value was not looked at.
        DecodeError: the release's own load ends here.
    """
    if key is None:
        raise UnexpectedNull("the record key is null", record_offset=record_offset)
    reader = Reader(key)
    record_type = _read(reader.int16, "the record type", record_offset)
    if record_type not in profile.values:
        raise UnknownRecordType(record_type)
    fields = _read(lambda: RECORD_TYPES[record_type].key_message.read(reader, 0), "the key", record_offset)
    if value is None:
        return ReplayRecord(record_offset, record_type, fields, None, None)
    reader = Reader(value)
    version = _read(reader.int16, "the value version", record_offset)
    accepted = profile.value_versions[record_type]
    if accepted is None:
        # 3.7 to 3.9 never looked: an unknown version is parsed like the nearest known one.
        known = profile.values[record_type].versions
        version = min(max(version, known.start), known.stop - 1)
    elif version not in accepted:
        raise UnknownVersion(
            f"value version {version} of record type {record_type} ({RECORD_TYPES[record_type].name}) is not known to {profile.release}",
            record_offset=record_offset,
        )
    body = _read(lambda: profile.values[record_type].read(reader, version), f"the value (version {version})", record_offset)
    return ReplayRecord(record_offset, record_type, fields, version, body)


def _read(read: Any, what: str, record_offset: int) -> Any:
    try:
        return read()
    except DecodeError as error:
        raise type(error)(f"{what} cannot be decoded: {error.message}", record_offset=record_offset) from error
