"""Decode a record as the coordinator of one release does: a refused record ends the load, an unknown one is skipped.

`record_types.decode_record` reads as many fields as it can. These functions are strict: a record that the release cannot decode raises
`RecordRefused`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from exhume.codecs.layout import Fields
from exhume.codecs.record_types import RECORD_TYPES, Family, Role
from exhume.codecs.wire import Reader
from exhume.errors import DecodeError
from exhume.replay.load_problems import LoadProblem, ProblemKind
from exhume.replay.profiles import BrokerProfile

_ReadT = TypeVar("_ReadT")


class RecordRefused(DecodeError):
    """A record that this release cannot decode."""

    def __init__(self, problem: LoadProblem) -> None:
        super().__init__(str(problem), record_offset=problem.record_offset)
        self.args = (problem,)
        self.problem = problem


class UnknownRecordType(RecordRefused):
    """A record type that this release does not know."""

    @property
    def record_type(self) -> int:
        """The number of the type."""
        assert self.problem.record_type is not None
        return self.problem.record_type


@dataclass(frozen=True, slots=True)
class ReplayRecord:
    """One record as a coordinator sees it. `value` is None for a tombstone; `value_version` too."""

    record_offset: int
    record_type: int
    key: Fields
    value_version: int | None
    value: Fields | None

    @property
    def family(self) -> Family:
        """The group of the record."""
        return RECORD_TYPES[self.record_type].family

    @property
    def role(self) -> Role:
        """The value of the record for its group."""
        return RECORD_TYPES[self.record_type].role


def decode_for(profile: BrokerProfile, record_offset: int, key: bytes | None, value: bytes | None) -> ReplayRecord:
    """Decode this record by the rules of this release.

    Bytes after the last field are ignored, as in all releases.

    Raises:
        UnknownRecordType: the release has no such type; the value is not decoded.
        RecordRefused: the release's own load ends here.
    """
    if key is None:
        raise RecordRefused(LoadProblem(ProblemKind.RECORD_KEY_NULL, record_offset=record_offset))
    reader = Reader(key)
    record_type = _read(reader.int16, ProblemKind.RECORD_TYPE_UNDECODABLE, record_offset)
    if record_type not in profile.values:
        raise UnknownRecordType(LoadProblem(ProblemKind.RECORD_TYPE_UNKNOWN, record_offset=record_offset, record_type=record_type))
    key_message = RECORD_TYPES[record_type].key_message
    fields = _read(lambda: key_message.read(reader, 0), ProblemKind.RECORD_KEY_UNDECODABLE, record_offset)
    if value is None:
        return ReplayRecord(record_offset, record_type, fields, None, None)
    reader = Reader(value)
    version = _read(reader.int16, ProblemKind.VALUE_VERSION_UNDECODABLE, record_offset)
    accepted = profile.value_versions[record_type]
    if accepted is None:
        # 3.7 to 3.9 did not check: they parse an unknown version like the nearest known one.
        known = profile.values[record_type].versions
        version = min(max(version, known.start), known.stop - 1)
    elif version not in accepted:
        raise RecordRefused(
            LoadProblem(
                ProblemKind.VALUE_VERSION_UNKNOWN,
                record_offset=record_offset,
                record_type=record_type,
                value_version=version,
                release=profile.release,
            )
        )
    body = _read(lambda: profile.values[record_type].read(reader, version), ProblemKind.VALUE_UNDECODABLE, record_offset, version)
    return ReplayRecord(record_offset, record_type, fields, version, body)


def _read(read: Callable[[], _ReadT], kind: ProblemKind, record_offset: int, value_version: int | None = None) -> _ReadT:
    try:
        return read()
    except DecodeError as error:
        problem = LoadProblem(kind, record_offset=record_offset, value_version=value_version, detail=error.message)
        raise RecordRefused(problem) from error
