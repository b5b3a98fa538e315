"""Follow the phase of each group along the log: unrecorded, empty, active or removed."""

from __future__ import annotations

import struct

import numpy as np

from exhume.analysis.detectors.commits import GROUP_PHASES, GroupPhase
from exhume.analysis.member_tables import MemberTable
from exhume.analysis.number_columns import NONE, Int64s
from exhume.codecs.layouts.classic_group import GROUP_FLEXIBLE_SINCE, STATE_TIMESTAMP_SINCE
from exhume.codecs.record_types import GROUP_METADATA, decode_record, role_of

_FIXED_VERSIONS = range(GROUP_FLEXIBLE_SINCE)
_SHORT, _INT = struct.Struct(">h"), struct.Struct(">i")


def rank_offsets(series: int, *offsets: Int64s) -> tuple[int, list[Int64s]]:
    """Return a factor, and the record offsets counted from the lowest of all (at least one is given).

    `series_number * factor + offset` orders by series, then by record offset, for series numbers below `series`. Ranks replace the record
    offsets if such a number would not fit into 64 bits.
    """
    some = [each for each in offsets if len(each)]
    lowest, highest = min(int(each.min()) for each in some), max(int(each.max()) for each in some)
    span = highest - lowest + 2
    if span * max(series, 1) < 2**63:
        return span, [each - lowest for each in offsets]
    known = np.unique(np.concatenate(some))
    return len(known) + 1, [np.searchsorted(known, each) for each in offsets]


class GroupPhases:
    """The phase of each group, by its number, and the number of its group records so far."""

    def __init__(self) -> None:
        self._phase = np.zeros(0, np.int64)
        self._steps = np.zeros(0, np.int64)
        self._members: dict[int, set[bytes]] = {}
        #: Changes since the last call of `of`: group, record offset, phase from there on.
        self._news: list[tuple[int, int, int]] = []

    def take(
        self, group: int, record_offset: int, key: bytes, value: bytes | None, member_table: MemberTable | None = None
    ) -> tuple[GroupPhase, int | None]:
        """Add a record of the group or of a member, with its `member_table` if known.

        Returns:
            The phase of the group from this record on; its generation or group epoch, None if the record contains none.
        """
        epoch: int | None = None
        record_type = int.from_bytes(key[:2], "big", signed=True)
        members = self._members.setdefault(group, set())
        role = role_of(record_type)
        if role == "member":
            (members.discard if value is None else members.add)(key)
        phase: GroupPhase = "active" if members else "empty"
        if record_type == GROUP_METADATA:
            members.clear()
            if member_table is not None:
                epoch, has_members = member_table.header["generation"], len(member_table) > 0
            else:
                epoch, has_members = (None, False) if value is None else _front_of(key, value)
            phase = "removed" if value is None else "active" if has_members else "empty"
        elif role == "group" and value is None:
            members.clear()
            phase = "removed"
        elif role == "group":
            epoch = (decode_record(key, value).value or {}).get("group_epoch")
        self._news.append((group, record_offset, GROUP_PHASES.index(phase)))
        return phase, epoch

    def of(self, groups: Int64s, offsets: Int64s, count: int) -> tuple[Int64s, Int64s]:
        """Return the phases of these groups at these record offsets, and the numbers of group records before.

        The offsets are in order, and later than those of all earlier calls. The group numbers are below `count`.
        """
        if count > len(self._phase):
            more = max(count, 2 * len(self._phase)) - len(self._phase)
            self._phase = np.append(self._phase, np.zeros(more, np.int64))
            self._steps = np.append(self._steps, np.zeros(more, np.int64))
        phase, steps = self._phase[groups], self._steps[groups]
        if not self._news:
            return phase, steps
        news = np.array(self._news, np.int64)
        self._news.clear()
        span, (news_rank, wanted_rank) = rank_offsets(len(self._phase), news[:, 1], offsets)
        order = np.argsort(news[:, 0] * span + news_rank, kind="stable")
        news, at = news[order], (news[:, 0] * span + news_rank)[order]
        last = np.flatnonzero(np.append(news[1:, 0] != news[:-1, 0], True))
        # The first row of each group in `news`.
        first = np.full(len(self._phase), NONE, np.int64)
        first[news[last, 0]] = np.append(0, last[:-1] + 1)
        with_news = np.flatnonzero(first[groups] != NONE)
        next_row = np.searchsorted(at, groups[with_news] * span + wanted_rank[with_news])
        already = next_row - first[groups[with_news]]
        has_news = already > 0
        phase[with_news[has_news]] = news[next_row[has_news] - 1, 2]
        steps[with_news] += already
        self._phase[news[last, 0]] = news[last, 2]
        np.add.at(self._steps, news[:, 0], 1)
        return phase, steps


def _front_of(key: bytes, value: bytes) -> tuple[int | None, bool]:
    """Return the generation of this group metadata value, and True if it has members; None and False if it cannot be decoded."""
    try:
        version = _SHORT.unpack_from(value)[0]
        if version in _FIXED_VERSIONS:
            position = 4 + max(_SHORT.unpack_from(value, 2)[0], 0)
            generation: int = _INT.unpack_from(value, position)[0]
            position += 4
            for _ in ("protocol", "leader"):
                position += 2 + max(_SHORT.unpack_from(value, position)[0], 0)
            if version >= STATE_TIMESTAMP_SINCE:
                position += 8
            return generation, bool(_INT.unpack_from(value, position)[0] > 0)
    except struct.error:
        return None, False
    fields = decode_record(key, value).value or {}
    return fields.get("generation"), bool(fields.get("members"))
