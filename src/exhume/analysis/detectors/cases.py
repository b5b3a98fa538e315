"""What a detector sees: an offsets topic condensed to lives of keys and groups, and to the changes that somebody may want to look at.

    TopicCase        all logs that were read
    └ PartitionCase  one offsets partition of one replica
      └ GroupCase    one group: its keys, its records, when it was silent
        └ KeyHistory    one (group, topic, partition): the numbers of all of its commits, and the few that stand out, as `Change`s

Commits are taken in the order in which they came to count: a plain one when it was appended, one of a transaction when its COMMIT marker
was, and never in front of a later commit that counted already. Times are append times, that of the commit where a message format has
none; None where there is neither. All of this is bounded by the number of keys and group records, not by that of commits.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from exhume.analysis.detectors.commit_loops.columns import Int64s
from exhume.analysis.detectors.commits import GroupPhase
from exhume.analysis.detectors.keys import GroupKeys
from exhume.analysis.detectors.log_files import LogFiles
from exhume.analysis.detectors.owner_history import OwnerHistory
from exhume.analysis.detectors.superseded import Uncleaned
from exhume.analysis.detectors.transactions import LateMarker, OpenTransaction
from exhume.analysis.detectors.undecodable_records import UndecodableRecord
from exhume.analysis.group_timeline import decoded_key, steps_of_member_tables, steps_of_records
from exhume.analysis.member_tables import MemberTable
from exhume.analysis.memberships import Membership
from exhume.arrow_rows import Origin
from exhume.codecs.record_types import GROUP_METADATA, Decoded, decode_record
from exhume.replay.topic_names import TopicNames

#: What a `GroupCase` keeps of its memberships, until it forgets them.
_MADE_OF_STEPS = ("memberships", "owners", "_lowest_from", "_highest_up_to")


class GroupRecord(NamedTuple):
    """A record of the group itself or of a member: types 2 and 3 to 23. `decoded` reads key and value when asked."""

    record_offset: int
    timestamp_ms: int | None
    byte_position: int
    partition_leader_epoch: int
    path: str
    key: bytes
    value: bytes | None
    #: What the group is from here on.
    phase: GroupPhase
    #: The generation, or the group epoch, where the record says one.
    epoch: int | None = None
    #: Of a record of a classic group; None where its members have to be decoded one by one.
    member_table: MemberTable | None = None

    @property
    def decoded(self) -> Decoded:
        return decode_record(self.key, self.value)

    @property
    def record_type(self) -> int:
        return int.from_bytes(self.key[:2], "big", signed=True)

    def row(self, replica: str | None, offsets_partition: int | None) -> dict[str, Any]:
        """As a row of `schemas.RECORDS`, as far as it is known here."""
        return {
            "replica": replica,
            "offsets_partition": offsets_partition,
            "path": self.path,
            "byte_position": self.byte_position,
            "record_offset": self.record_offset,
            "timestamp_ms": self.timestamp_ms,
            "partition_leader_epoch": self.partition_leader_epoch,
            "is_control": False,
            "record_type": self.record_type,
            "key": self.key,
            "value": self.value,
        }


@dataclass(frozen=True, slots=True)
class Silence:
    """A time without any commit of a group that is much longer than usual: between two commits, in log order."""

    from_record_offset: int
    from_timestamp_ms: int
    to_record_offset: int
    to_timestamp_ms: int
    usual_interval_ms: float

    @property
    def length_ms(self) -> int:
        return self.to_timestamp_ms - self.from_timestamp_ms


@dataclass(frozen=True, slots=True)
class Epoch:
    """From `first_record_offset` on another leader appended to the offsets partition; `silent_since_ms` is the last time before it."""

    leader_epoch: int
    first_record_offset: int
    first_timestamp_ms: int | None
    silent_since_ms: int | None


@dataclass(slots=True)
class LogContext:
    """What is known about the log that a group lives in, and around it.

    History is complete from `complete_from_offset` on: every offset from there to the end has its record. In front of it compaction has
    been, and rules that need every record must say undecidable.
    """

    replica: str | None
    offsets_partition: int | None
    start_offset: int
    next_offset: int
    complete_from_offset: int
    first_timestamp_ms: int | None
    last_timestamp_ms: int | None
    records: int
    #: Those that have no time: of message format 0.
    without_time: int = 0
    epochs: list[Epoch] = field(default_factory=list)
    #: When tombstones of offsets were written, (time, group, topic), of all groups of all logs.
    sweeps: list[tuple[int, str, str]] = field(default_factory=list)
    #: The retention that most removals speak for, where it was not given; None: nothing does.
    likely_retention_ms: int | None = None
    #: Where the first segment begins, and the topic id of the partition's directory, where they are known.
    first_segment_offset: int | None = None
    topic_id: str | None = None
    #: Names of topic ids.
    names: TopicNames = field(default_factory=TopicNames, repr=False)

    @property
    def origin(self) -> Origin:
        """Replica and offsets partition."""
        return self.replica, self.offsets_partition

    def is_complete_at(self, record_offset: int) -> bool:
        """True where no record from this one on was removed."""
        return record_offset >= self.complete_from_offset


@dataclass
class GroupCase:
    """One group in one offsets partition of one replica."""

    group: str
    log_context: LogContext
    #: Its keys, in the order in which the log met them.
    keys: GroupKeys = field(repr=False)
    #: The records of the group and its members, in order.
    records: list[GroupRecord]
    #: Append times of its first and last commit; None where it never committed.
    first_commit_ms: int | None
    last_commit_ms: int | None
    #: The last intervals between commits of different times, `USUAL` at most, and their median; None before two.
    last_intervals_ms: list[int]
    usual_interval_ms: float | None
    silences: list[Silence]
    #: Whether what is made of `keys` is kept by `forget`.
    is_kept: bool = False

    @cached_property
    def memberships(self) -> list[Membership]:
        """The steps of the group's life: who was in it, and who had what, from one record to the next."""
        return self._steps_of(self.records)

    def _steps_of(self, records: Sequence[GroupRecord]) -> list[Membership]:
        log_context = self.log_context
        if _is_plainly_classic(records):
            rows = ((each.record_offset, each.timestamp_ms, each.path, each.byte_position, each.member_table) for each in records)
            return steps_of_member_tables(self.group, log_context.origin, rows)
        in_hand = (
            (
                (log_context.replica, log_context.offsets_partition, record.path, record.byte_position),
                record.record_offset,
                record.timestamp_ms,
                record.key,
                record.value,
                record.member_table,
            )
            for record in records
        )
        return list(steps_of_records(in_hand, log_context.names))

    def edges(self) -> list[Membership]:
        """The first and the last step with members, without making the others where that can be: where all records are classic."""
        if any(record.record_type != GROUP_METADATA for record in self.records):
            steps = [step for step in self.memberships if step.members]
            return [steps[0], steps[-1]] if steps else []
        active = [record for record in self.records if record.phase == "active"]
        return self._steps_of(active[:1] + active[-1:])

    def forget(self) -> None:
        """Let go of what can be made again."""
        if not self.is_kept:
            self.keys.forget()
        for name in _MADE_OF_STEPS:
            self.__dict__.pop(name, None)

    @cached_property
    def owners(self) -> OwnerHistory:
        """Who had each partition, from step to step."""
        return OwnerHistory(self.memberships)

    @cached_property
    def _lowest_from(self) -> list[int]:
        """The lowest record offset of each step and all behind it: those of the steps, unless the log goes back."""
        return [*accumulate((step.record_offset for step in reversed(self.memberships)), min)][::-1]

    @cached_property
    def _highest_up_to(self) -> list[int]:
        """The highest record offset of each step and all in front of it."""
        return [*accumulate((step.record_offset for step in self.memberships), max)]

    def steps_before(self, record_offset: int) -> int:
        """How many steps there are up to the last one in front of this record."""
        return bisect_left(self._lowest_from, record_offset)

    def count_steps_before(self, record_offsets: Int64s) -> Int64s:
        """`steps_before` of each of these."""
        counts: Int64s = np.searchsorted(np.array(self._lowest_from, np.int64), record_offsets)
        return counts

    def membership_before(self, record_offset: int) -> Membership | None:
        """The last step in front of this record."""
        count = self.steps_before(record_offset)
        return self.memberships[count - 1] if count else None

    def membership_after(self, record_offset: int) -> Membership | None:
        """The first step behind this record."""
        count = bisect_right(self._highest_up_to, record_offset)
        return self.memberships[count] if count < len(self.memberships) else None

    @property
    def phase(self) -> GroupPhase:
        """What the group is at the end of the log."""
        return self.records[-1].phase if self.records else "unrecorded"


def _is_plainly_classic(records: Sequence[GroupRecord]) -> bool:
    """Whether each of these is a classic group whole, in a batch of its own, under one and the same key; or its tombstone."""
    if not records or records[0].record_type != GROUP_METADATA or decoded_key(records[0].key).marks:
        return False
    key, before = records[0].key, None
    for record in records:
        if record.key != key or (record.member_table is None and record.value is not None):
            return False
        if before is not None and (record.byte_position, record.path) == (before.byte_position, before.path):
            return False
        before = record
    return True


@dataclass(slots=True)
class PartitionCase:
    """One offsets partition of one replica."""

    log_context: LogContext
    groups: list[GroupCase]
    #: When tombstones of offsets were written: (time, group, topic).
    sweeps: list[tuple[int, str, str]] = field(default_factory=list, repr=False)
    open_transactions: list[OpenTransaction] = field(default_factory=list)
    markers: int = 0
    #: Those of transaction coordinators that had been succeeded.
    late_markers: list[LateMarker] = field(default_factory=list)
    #: Records that cannot be read, or only in part.
    undecodable_records: list[UndecodableRecord] = field(default_factory=list)
    #: The names of topic ids that commits tell.
    topics_by_id: dict[str, str] = field(default_factory=dict)
    #: What a cleaner left; None where nobody counted it.
    uncleaned: Uncleaned | None = None


@dataclass(slots=True)
class TopicCase:
    """All logs that were read."""

    partitions: list[PartitionCase]
    #: The files that it was read from; None where nobody has them any more.
    files: LogFiles | None = None

    def groups(self) -> Iterator[GroupCase]:
        """Every group of every partition and replica."""
        return (group for partition in self.partitions for group in partition.groups)
