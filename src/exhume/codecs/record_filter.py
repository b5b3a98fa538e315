"""Conditions that select records."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

from exhume.codecs.record_types import RECORD_TYPES, Decoded
from exhume.errors import RequestError, did_you_mean
from exhume.moments import Time, time_ms

_CONTROL_NAMES = ("end_txn_marker", "control")
_OTHER_NAMES = ("unknown",)
_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,4}")


class TimelessConditions(TypedDict, total=False):
    """The fields of `RecordFilter` but its times, as keywords of a function."""

    groups: Collection[str] | None
    topics: Collection[str] | None
    partitions: Collection[int] | None
    types: Collection[str] | None
    from_offset: int | None
    to_offset: int | None
    offsets_partitions: Collection[int] | None


class RecordConditions(TimelessConditions, total=False):
    """The fields of `RecordFilter` as keywords of a function."""

    from_time_ms: int | None
    to_time_ms: int | None


class RecordKeywords(TimelessConditions, total=False):
    """The same as callers of the library write them."""

    from_time_ms: Time | None
    to_time_ms: Time | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFilter:
    """Conditions that a record must all meet; None: no condition.

    Ranges include both ends. `types` are names of the record-type table or their numbers. A condition on group, topic or partition leaves
    out records that have none, control records among them.

    Raises:
        RequestError: an unknown record type, a range that ends before it begins, or one name instead of a collection of names.
    """

    groups: Collection[str] | None = None
    topics: Collection[str] | None = None
    partitions: Collection[int] | None = None
    types: Collection[str] | None = None
    from_offset: int | None = None
    to_offset: int | None = None
    from_time_ms: int | None = None
    to_time_ms: int | None = None
    offsets_partitions: Collection[int] | None = None

    @classmethod
    def of(
        cls, *, from_time_ms: Time | None = None, to_time_ms: Time | None = None, **conditions: Unpack[TimelessConditions]
    ) -> RecordFilter:
        """Return the filter of these conditions; a time may be a `datetime` or text too.

        Raises:
            RequestError: as the class; or text that is not a moment.
        """
        return cls(from_time_ms=time_ms(from_time_ms), to_time_ms=time_ms(to_time_ms), **conditions)

    def __post_init__(self) -> None:
        for condition, names in (("groups", self.groups), ("topics", self.topics), ("types", self.types)):
            if isinstance(names, str):
                raise RequestError(
                    f"{condition} takes a list of names, not the single name {names!r}", remedy=f"Write {condition}=[{names!r}]"
                )
        known = {*(row.name for row in RECORD_TYPES.values()), *_CONTROL_NAMES, *_OTHER_NAMES}
        for name in self.types or ():
            if name not in known and not _NUMBER.fullmatch(name):
                raise RequestError(f"no record type {name!r}", remedy=f"{did_you_mean(name, sorted(known))}, or a number")
        for what, first, last in (("offsets", self.from_offset, self.to_offset), ("times", self.from_time_ms, self.to_time_ms)):
            if first is not None and last is not None and first > last:
                raise RequestError(f"the range of {what} ends at {last}, before it begins at {first}", remedy="Swap the two values")

    @property
    def needs_key(self) -> bool:
        """Return True if the conditions need the decoded key of a record."""
        return any(condition is not None for condition in (self.groups, self.topics, self.partitions, self.types))

    def accepts_position(self, record_offset: int, timestamp_ms: int | None) -> bool:
        """Return True if offset and time meet the conditions; a record without a time is outside every time range."""
        if self.from_offset is not None and record_offset < self.from_offset:
            return False
        if self.to_offset is not None and record_offset > self.to_offset:
            return False
        if self.from_time_ms is not None and (timestamp_ms is None or timestamp_ms < self.from_time_ms):
            return False
        return not (self.to_time_ms is not None and (timestamp_ms is None or timestamp_ms > self.to_time_ms))

    def accepts_key(self, decoded: Decoded) -> bool:
        """Return True if the decoded key meets the conditions."""
        return (
            _meets(self.groups, decoded.key.get("group"))
            and _meets(self.topics, decoded.key.get("topic"))
            and _meets(self.partitions, decoded.key.get("partition"))
            and (self.types is None or decoded.name in self.types or (decoded.control_type is None and str(decoded.number) in self.types))
        )


def _meets(wanted: Collection[Any] | None, value: Any) -> bool:
    return wanted is None or value in wanted
