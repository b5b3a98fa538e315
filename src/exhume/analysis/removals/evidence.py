"""The facts that the log and the release give about tombstones of a group that were written together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from exhume.analysis.removals.sweeps import Sweep
from exhume.analysis.removals.tombstones import OffsetTombstones
from exhume.replay.expiry import ExpiryStart, GroupForExpiry
from exhume.replay.profiles import BrokerProfile, JavaProfile, Removal, ScalaProfile
from exhume.replay.releases import profile_for


@dataclass(frozen=True, slots=True)
class RemovedOffset:
    """An offset and its tombstone.

    `written_ms` is the time of the removed record, `commit_timestamp_ms` and `expire_timestamp_ms` are in its value; None if the log does
    not have them. `start` says when its age begins to count; None if the log does not show it.
    """

    topic: str
    partition: int
    record_offset: int
    timestamp_ms: int | None
    byte_position: int
    start: ExpiryStart | None
    written_ms: int | None = None
    commit_timestamp_ms: int | None = None
    expire_timestamp_ms: int | None = None
    #: The value is of the version that can have an expire timestamp, and has none.
    never_expires: bool = False

    @property
    def may_expire_by_age(self) -> bool:
        """True if the expiry task removes it when it is older than the retention, and by no time of its own."""
        start = self.start
        has_own_time = self.expire_timestamp_ms is not None and self.expire_timestamp_ms > 0
        return start is not None and start.rule is not None and start.adds_retention and not has_own_time


@dataclass(frozen=True, slots=True)
class GroupBefore:
    """The group before the tombstones, as its records have it.

    `group` is None without a record of it, or if its own tombstone was the last. `eligible_since_ms` is the earliest time at which the
    expiry task could have removed its offsets; `empty_since_ms` is when it became Empty. None if the log does not show it.
    """

    group: GroupForExpiry | None = None
    has_records: bool = False
    eligible_since_ms: int | None = None
    empty_since_ms: int | None = None
    #: The last member of a group of the new protocol left within the last interval of the expiry task.
    is_just_emptied: bool = False
    #: Generations without a record follow: their members may have subscribed to other topics.
    has_hidden_generations: bool = False


@dataclass(frozen=True, slots=True)
class GroupTombstone:
    """The tombstone of the group itself."""

    record_offset: int
    timestamp_ms: int | None
    record_type: int


@dataclass(frozen=True, slots=True)
class KeptOffset:
    """An offset that was not removed, with its record if the log has it, and its group."""

    group: str
    topic: str
    partition: int | None
    record_offset: int | None


@dataclass(frozen=True)
class RemovalEvidence:
    """Tombstones of one group that were written together, and the facts of the logs about that moment.

    `find_kept` finds the offsets that the group kept. `tombstones` are those of offsets of all groups of all logs. `survivors` are the
    oldest offsets of a removed topic that another group of this log still has.
    """

    group: str
    offsets_partition: int | None
    removed: Sequence[RemovedOffset]
    before: GroupBefore
    group_tombstone: GroupTombstone | None = None
    find_kept: Callable[[], Sequence[KeptOffset]] = tuple
    tombstones: OffsetTombstones = field(default_factory=OffsetTombstones)
    survivors: Mapping[str, KeptOffset] = field(default_factory=dict)
    #: The same moment took offsets of several groups.
    sweep: Sweep | None = None
    #: Another leader began to append shortly before.
    is_after_new_leader: bool = False
    #: Compaction has removed records before this record offset.
    complete_from_offset: int = 0

    @cached_property
    def kept(self) -> Sequence[KeptOffset]:
        return self.find_kept()

    @cached_property
    def topics(self) -> frozenset[str]:
        return frozenset(each.topic for each in self.removed)

    @property
    def is_whole_simple_group(self) -> bool:
        """True if nothing is left of a group that never wrote a record of its own."""
        return not self.before.has_records and self.group_tombstone is None and not self.kept


@dataclass(frozen=True, slots=True)
class RemovalRules:
    """The ways in which the release that wrote a log removes offsets and groups.

    Without a given release, any release may have written it.
    """

    profile: BrokerProfile
    is_given: bool

    @classmethod
    def of(cls, release: str | None) -> RemovalRules:
        """Return the rules of this release; without one, those of the newest, used only where all releases agree."""
        return cls(profile_for(release), release is not None)

    def can(self, how: Removal) -> bool:
        return how in self.profile.removed_by

    @property
    def only_expires(self) -> bool:
        """True if only the expiry task removes offsets."""
        return not self.profile.removed_by

    @property
    def last_member_removes_group(self) -> bool:
        return self.profile.expiry == "expire_timestamp_any_group"

    @property
    def topic_deletion_takes_group(self) -> bool:
        """True if a group is removed with the topic of its last offsets: only the Scala coordinator does that."""
        return self.can("topic_deletion") and (isinstance(self.profile, ScalaProfile) or not self.is_given)

    @property
    def deletes_simple_groups_without_a_trace(self) -> bool:
        """True if a request deletes a group without members and writes no tombstone of the group: the Scala coordinator does so."""
        return self.can("group_deletion") and (isinstance(self.profile, ScalaProfile) or not self.is_given)

    @property
    def may_take_minus_one_for_a_time(self) -> bool:
        """True if the release may take an expire timestamp of -1 for a passed one (KAFKA-8069)."""
        return not self.is_given or self.takes_minus_one_for_a_time

    @property
    def takes_minus_one_for_a_time(self) -> bool:
        return isinstance(self.profile, ScalaProfile) and self.profile.missing_expire_timestamp == "literal"

    @property
    def expires_share_groups(self) -> bool:
        return isinstance(self.profile, JavaProfile) and self.profile.share_groups_expire
