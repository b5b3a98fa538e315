"""The input of detectors: an offsets topic condensed to the histories of its keys and groups.

    TopicCase        all logs that were read
    └ PartitionCase  one offsets partition of one replica
      └ GroupCase    one group: its keys, its records, its pauses
        └ KeyHistory    one (group, topic, partition): numbers over all of its commits, and the few that stand out, as `Change`s

Commits are in the order in which they took effect: a plain commit when it was appended, a transactional one when its COMMIT marker was
appended, and never before a later commit that already had effect. A time is the append time; the commit time if the message format has no
append time; None if there is neither. The size of all this depends on the number of keys and group records, not on the number of commits.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from exhume.analysis.detectors.chunk_tallies import LateMarker, TransactionCase, Uncleaned, UndecodableRecord
from exhume.analysis.detectors.commits import GroupPhase
from exhume.analysis.detectors.keys import GroupKeys
from exhume.analysis.detectors.log_files import LogFiles
from exhume.analysis.detectors.owner_history import OwnerHistory
from exhume.analysis.detectors.partition_sightings import PartitionSightings, Times
from exhume.analysis.group_timeline import decoded_key, steps_of_member_tables, steps_of_records
from exhume.analysis.log_extent import LogExtent
from exhume.analysis.member_tables import MemberTable
from exhume.analysis.memberships import Membership
from exhume.analysis.number_columns import Int64s
from exhume.analysis.removals.evidence import KeptOffset
from exhume.analysis.removals.sweeps import Sweeps
from exhume.analysis.removals.tombstones import OffsetTombstone, OffsetTombstones
from exhume.arrow_rows import Origin
from exhume.codecs.record_types import GROUP_METADATA, Decoded, Role, decode_record, role_of
from exhume.replay.topic_names import TopicNames

#: The attributes that a `GroupCase` derives from its memberships. `forget` drops them.
_MADE_OF_STEPS = ("memberships", "owners", "_lowest_from", "_highest_up_to")


class GroupRecord(NamedTuple):
    """A record of a group or a member: types 2 and 3 to 23.

    `decoded` decodes key and value on each call; of a record with a `member_table` it lacks the value.
    """

    record_offset: int
    timestamp_ms: int | None
    byte_position: int
    partition_leader_epoch: int
    path: str
    record_type: int
    key: bytes
    #: None for a tombstone; empty if `member_table` has its fields, to save memory.
    value: bytes | None
    #: The size of the value; 0 for a tombstone.
    value_bytes: int
    #: The phase of the group from this record on.
    phase: GroupPhase
    #: The generation or the group epoch; None if the record contains none.
    epoch: int | None = None
    #: The members of a classic group record; None if they must be decoded one by one.
    member_table: MemberTable | None = None

    @property
    def decoded(self) -> Decoded:
        return decode_record(self.key, self.value)


#: A group is silent when nothing comes for so many times its usual interval, and for so long.
SILENT_RATIO, SILENT_MS = 5, 60_000


@dataclass(frozen=True, slots=True)
class Silence:
    """An interval between two commits of a group that is much longer than usual, in log order."""

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
    """A leader epoch of the offsets partition, from `first_record_offset` on. `silent_since_ms` is the time of the record before it."""

    leader_epoch: int
    first_record_offset: int
    first_timestamp_ms: int | None
    silent_since_ms: int | None


@dataclass(slots=True)
class LogContext:
    """Facts about the log that contains a group.

    The log is complete from `complete_from_offset` on: each offset from there to the end has its record. Compaction removed records before
    it, and a rule that needs each record cannot decide there.
    """

    replica: str | None
    offsets_partition: int | None
    #: The offsets that the log has, and those that it lacks.
    extent: LogExtent
    first_timestamp_ms: int | None = None
    last_timestamp_ms: int | None = None
    records: int = 0
    #: The number of records of message format 0, which have no time.
    without_time: int = 0
    epochs: list[Epoch] = field(default_factory=list)
    #: When offsets were removed, of all groups of all logs.
    tombstones: OffsetTombstones = field(default_factory=OffsetTombstones, repr=False)
    #: Of each topic with a tombstone in this log, the oldest offset that stayed, and the oldest of another group.
    survivors: dict[str, list[KeptOffset]] = field(default_factory=dict, repr=False)
    #: The retention that most removals point to, where it was not given; None: nothing does.
    likely_retention_ms: int | None = None
    #: Removals of several groups at one moment, before they were due.
    sweeps: Sweeps = field(default_factory=Sweeps, repr=False)
    #: The base offset of the first segment, and the topic id in the partition's directory, if known.
    first_segment_offset: int | None = None
    topic_id: str | None = None
    #: Names of topic ids.
    names: TopicNames = field(default_factory=TopicNames, repr=False)
    #: The partitions that commits named, of all groups of all logs.
    sightings: PartitionSightings = field(default_factory=PartitionSightings, repr=False)

    @property
    def origin(self) -> Origin:
        """The replica and the offsets partition."""
        return self.replica, self.offsets_partition

    @property
    def complete_from_offset(self) -> int:
        """The first offset after all missing offsets and damaged batches."""
        return self.extent.complete_from_offset

    @property
    def next_offset(self) -> int:
        """The offset after the last batch."""
        return self.extent.next_offset

    @property
    def start_offset(self) -> int:
        """The offset of the first record."""
        return self.extent.next_offset if self.extent.first_offset is None else self.extent.first_offset

    def is_complete_at(self, record_offset: int) -> bool:
        """Return True if compaction removed no record from this offset on."""
        return self.extent.is_complete_after(record_offset)


@dataclass
class GroupCase:
    """One group in one offsets partition of one replica."""

    group: str
    log_context: LogContext
    #: Its keys, in the order of their first records.
    keys: GroupKeys = field(repr=False)
    #: The records of the group and its members, in order.
    records: list[GroupRecord]
    #: The append times of its first and last commit; None if it never committed.
    first_commit_ms: int | None
    last_commit_ms: int | None
    #: The last intervals between commits of different times (at most `USUAL`), and their median; None if there are fewer than two.
    last_intervals_ms: list[int]
    usual_interval_ms: float | None
    silences: list[Silence]
    #: True if `forget` keeps what was derived from `keys`.
    is_kept: bool = False

    @cached_property
    def memberships(self) -> list[Membership]:
        """The steps of the group: its members and their assignments, from one group record to the next."""
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

    @cached_property
    def record_types(self) -> frozenset[int]:
        """The types of its records."""
        return frozenset(record.record_type for record in self.records)

    def records_with(self, role: Role) -> list[GroupRecord]:
        """Return its records of the types with this role."""
        types = {number for number in self.record_types if role_of(number) == role}
        return [record for record in self.records if record.record_type in types] if types else []

    def edges(self) -> list[Membership]:
        """Return the first and the last step with members. If all records are classic, no other step is made."""
        if not self.record_types <= {GROUP_METADATA}:
            steps = [step for step in self.memberships if step.members]
            return [steps[0], steps[-1]] if steps else []
        active = [record for record in self.records if record.phase == "active"]
        return self._steps_of(active[:1] + active[-1:])

    def forget(self) -> None:
        """Drop everything that can be derived again."""
        if not self.is_kept:
            self.keys.forget()
        for name in _MADE_OF_STEPS:
            self.__dict__.pop(name, None)

    @cached_property
    def owners(self) -> OwnerHistory:
        """The owner of each partition, step by step."""
        return OwnerHistory(self.memberships)

    @cached_property
    def _lowest_from(self) -> list[int]:
        """The lowest record offset of each step and all later steps: the step's own, unless record offsets go back."""
        return [*accumulate((step.record_offset for step in reversed(self.memberships)), min)][::-1]

    @cached_property
    def _highest_up_to(self) -> list[int]:
        """The highest record offset of each step and all earlier steps."""
        return [*accumulate((step.record_offset for step in self.memberships), max)]

    def steps_before(self, record_offset: int) -> int:
        """Return the number of steps before this record."""
        return bisect_left(self._lowest_from, record_offset)

    def count_steps_before(self, record_offsets: Int64s) -> Int64s:
        """Return `steps_before` of each of these offsets."""
        counts: Int64s = np.searchsorted(np.array(self._lowest_from, np.int64), record_offsets)
        return counts

    def membership_before(self, record_offset: int) -> Membership | None:
        """Return the last step before this record."""
        count = self.steps_before(record_offset)
        return self.memberships[count - 1] if count else None

    def membership_after(self, record_offset: int) -> Membership | None:
        """Return the first step after this record."""
        count = bisect_right(self._highest_up_to, record_offset)
        return self.memberships[count] if count < len(self.memberships) else None

    @property
    def phase(self) -> GroupPhase:
        """The phase of the group at the end of the log."""
        return self.records[-1].phase if self.records else "unrecorded"


def _is_plainly_classic(records: Sequence[GroupRecord]) -> bool:
    """Return True if each record has the same key of a classic group, and is a whole group in a batch of its own, or a tombstone."""
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
    #: When offsets were removed.
    tombstones: list[OffsetTombstone] = field(default_factory=list, repr=False)
    open_transactions: list[TransactionCase] = field(default_factory=list)
    markers: int = 0
    #: Markers of transaction coordinators that a newer one had replaced.
    late_markers: list[LateMarker] = field(default_factory=list)
    #: Records that cannot be decoded, or only in part.
    undecodable_records: list[UndecodableRecord] = field(default_factory=list)
    #: The names of topic ids that commits contain.
    topics_by_id: dict[str, str] = field(default_factory=dict)
    #: The superseded bytes that the cleaner left; None if not counted.
    uncleaned: Uncleaned | None = None
    #: The times at which commits named each partition.
    sightings: Times = field(default_factory=dict, repr=False)

    def forget_members(self) -> None:
        """Drop what was derived from the member tables, which all groups share; `GroupCase.forget` drops the rest."""
        for group in self.groups:
            for record in () if group.is_kept else group.records:
                if record.member_table is not None:
                    record.member_table.forget()


@dataclass(slots=True)
class TopicCase:
    """All logs that were read."""

    partitions: list[PartitionCase]
    #: The files that were read; None if they are no longer available.
    files: LogFiles | None = None

    def groups(self) -> Iterator[GroupCase]:
        """Yield each group of each partition and replica."""
        return (group for partition in self.partitions for group in partition.groups)
