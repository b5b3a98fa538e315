"""Follow the phase of each group along the log: unrecorded, empty, active or removed."""

from __future__ import annotations

import struct

import numpy as np

from exhume.analysis.detectors.commit_loops import loops
from exhume.analysis.detectors.commit_loops.columns import NewsColumn
from exhume.analysis.detectors.commits import GROUP_PHASES, GroupPhase
from exhume.analysis.member_tables import MemberTable
from exhume.analysis.number_columns import Int64s
from exhume.codecs.layouts.classic_group import GROUP_FLEXIBLE_SINCE, STATE_TIMESTAMP_SINCE
from exhume.codecs.record_types import GROUP_METADATA, decode_record, role_of

_FIXED_VERSIONS = range(GROUP_FLEXIBLE_SINCE)
_SHORT, _INT = struct.Struct(">h"), struct.Struct(">i")


class GroupPhases:
    """The phase of each group, by its number, and the number of its group records so far."""

    def __init__(self) -> None:
        self._phase = np.zeros(0, np.int64)
        self._steps = np.zeros(0, np.int64)
        self._members: dict[int, set[bytes]] = {}
        #: Changes since the last call of `of`, as `NewsColumn`.
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
                epoch, has_members = member_table.generation, len(member_table) > 0
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

        Only group records with a lower record offset come before a commit. The group numbers are below `count`.
        """
        if count > len(self._phase):
            more = max(count, 2 * len(self._phase)) - len(self._phase)
            self._phase = np.append(self._phase, np.zeros(more, np.int64))
            self._steps = np.append(self._steps, np.zeros(more, np.int64))
        news = np.array(self._news, np.int64).reshape(-1, len(NewsColumn))
        self._news.clear()
        news = news[np.argsort(news[:, NewsColumn.OFFSET], kind="stable")]
        # The record offsets of a damaged log may be in any order.
        commits = loops.CommitPlaces(groups, offsets, np.argsort(offsets, kind="stable"))
        found = loops.GroupSteps(np.empty(len(groups), np.int64), np.empty(len(groups), np.int64))
        loops.follow_phases(commits, news, loops.GroupSteps(self._phase, self._steps), found)
        return found.phases, found.steps


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
