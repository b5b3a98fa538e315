"""The offsets and groups that the expiry task of a release removes, when, and its tombstones.

    release             an offset expires                                                          its base
    to 0.10.0.1         after its expire timestamp, with or without members
    0.10.1 to 2.0.1     after its expire timestamp, also in a group with members
    from 2.1            at its expire timestamp if the record has one, else the retention after its base:
                          in an Empty group with a protocol type                                    when it became Empty, else its commit
                          in a group without protocol type (offsets only)                           its commit
    from 2.4              besides: topics that a consumer group with members is not subscribed to   its commit

All other offsets stay: those of subscribed topics, of groups with members of another protocol type, and with unknown subscriptions. The
Java coordinator judges consumer and streams groups by their subscriptions, Empty or not. It keeps an offset with a pending commit (not in
3.7), an offset without its group, and all offsets of share groups. A streams group is subscribed to the sources of its topology after its
members made it ready: after a load that takes a heartbeat.

The expiry task also removes an Empty group without offsets (from 0.10.1) and without an open transaction (from 0.11, Java: 3.8). Commits in
flight protect their offsets, but they are not in the log.

Source: GroupMetadataManager.deleteExpiredOffsets (0.9 to 0.10.0), cleanupGroupMetadata, GroupMetadata.removeExpiredOffsets (to 3.9);
OffsetMetadataManager.cleanupExpiredOffsets, createGroupTombstoneRecords of each group type (3.7 to 4.4).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Literal

from exhume.codecs.layout import Fields
from exhume.codecs.record_types import GROUP_METADATA, OFFSET_COMMIT, Family, Role, encode_key, number_of
from exhume.replay.classic_group import CONSUMER_PROTOCOL_TYPE
from exhume.replay.partition_state import (
    ClassicGroupState,
    ConsumerGroupState,
    Group,
    OffsetKey,
    PartitionState,
    ShareGroupState,
    StreamsGroupState,
)
from exhume.replay.profiles import BrokerProfile, JavaProfile

#: expire_timestamp  an offset: the record has it
#: since_empty       an offset: the retention after its group became Empty
#: since_commit      an offset: the retention after its commit
#: last_offset       a group: with its last offset
#: no_offsets        a group: it has none, so the next run removes it
Rule = Literal["expire_timestamp", "since_empty", "since_commit", "last_offset", "no_offsets"]

_SUBSCRIBED = "the group is subscribed to its topic"
_NOT_SUBSCRIBED = "the group is not subscribed to its topic"

_NEVER_MS = 2**63


@dataclass(frozen=True, slots=True)
class Due:
    """The time at which the expiry task removes an offset or a group, if no record changes it before.

    `expires_at_ms` is the first time of a run that removes it; None: no run does, and `reason` is the reason. `rule` and
    `base_timestamp_ms` are the rule and the start of its age; None without one.
    """

    expires_at_ms: int | None
    reason: str
    rule: Rule | None = None
    base_timestamp_ms: int | None = None

    def is_past(self, now_ms: int) -> bool:
        """Return True if a run at this time removes it."""
        return self.expires_at_ms is not None and now_ms >= self.expires_at_ms


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A tombstone that the expiry task writes. Those with one `append` are one write. `topic` is None for a group's own records."""

    append: int
    record_type: int
    key: bytes
    group: str
    topic: str | None
    partition: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class Expired:
    """The result of one run of the expiry task: the state after it, and its tombstones in log order. `failure` is the reason if it wrote
    none.

    `due_offsets` and `due_groups` have the removal time of each offset and group before the run.
    """

    partition_state: PartitionState
    tombstones: list[Tombstone]
    due_offsets: dict[OffsetKey, Due]
    due_groups: dict[str, Due]
    failure: str | None = None


def due_offsets(partition_state: PartitionState, retention_ms: int, profile: BrokerProfile) -> dict[OffsetKey, Due]:
    """Return the time at which each committed offset expires."""
    pending = _pending_keys(partition_state)
    groups = {name: _for_expiry(group) for name, group in partition_state.groups.items()}
    return {
        key: expiry_start(
            commit.commit_timestamp_ms,
            commit.expire_timestamp_ms,
            groups.get(key[0]),
            key[1],
            profile,
            is_pending=key in pending,
        ).due(retention_ms)
        for key, commit in partition_state.offsets.items()
    }


def due_groups(partition_state: PartitionState, offsets: Mapping[OffsetKey, Due], now_ms: int, profile: BrokerProfile) -> dict[str, Due]:
    """Return the time of removal of each group; `offsets` are the `due_offsets` of the same state. A group without offsets is due now."""
    of_group: dict[str, list[Due]] = {}
    for key, due in offsets.items():
        of_group.setdefault(key[0], []).append(due)
    blocked = _groups_kept_by_transactions(partition_state, profile)
    return {
        name: _group_due(group, of_group.get(name, []), now_ms, profile, is_blocked=name in blocked)
        for name, group in partition_state.groups.items()
    }


def expire(partition_state: PartitionState, now_ms: int, retention_ms: int, profile: BrokerProfile) -> Expired:
    """Run the expiry task at this time over a state, which stays unchanged.

    Tombstones have the order of all releases: the offsets of a group, then its own records. Kafka iterates over groups and offsets in hash
    order; here they are sorted. Before 0.10.1.1 the tombstone of a group was a batch of its own.
    """
    offsets = due_offsets(partition_state, retention_ms, profile)
    expired = {key for key, due in offsets.items() if due.is_past(now_ms)}
    groups = due_groups(partition_state, offsets, now_ms, profile)
    late = _groups_removed_a_pass_later(partition_state, profile)
    removed = {name for name, due in groups.items() if due.is_past(now_ms) and name not in late}
    failure = _failure(partition_state, removed, profile)
    if failure is not None:
        return Expired(partition_state, [], offsets, groups, failure)
    after = PartitionState(
        groups={name: group for name, group in partition_state.groups.items() if name not in removed},
        offsets={key: commit for key, commit in partition_state.offsets.items() if key not in expired},
        transactions=dict(partition_state.transactions),
        share_states={name: state for name, state in partition_state.share_states.items() if name not in removed},
    )
    tombstones = _tombstones(partition_state, {key: offsets[key] for key in expired}, {name: groups[name] for name in removed}, profile)
    return Expired(after, list(tombstones), offsets, groups)


@dataclass(frozen=True, slots=True)
class GroupForExpiry:
    """The fields of a group of any type that decide the expiry of its offsets.

    `empty_since_ms` is the time at which a classic group became Empty; None if it has members, or its record has no time.
    `subscribed_topics` are those of all members; None if unknown.
    """

    group_type: str
    state: str
    has_members: bool
    protocol_type: str | None = None
    empty_since_ms: int | None = None
    subscribed_topics: frozenset[str] | None = frozenset()


#: A group without members that never wrote a record: it has only offsets.
SIMPLE_GROUP = GroupForExpiry("classic", "Empty", has_members=False)


@dataclass(frozen=True, slots=True)
class ExpiryStart:
    """The start of the age of an offset, and the rule. `rule` and `from_ms` are None if no run removes it: see `reason`.

    `adds_retention` is False if the record has the time at which the offset expires. `is_subscribed`: no run removes it
    because its group is subscribed to the topic, and a request to delete it is refused for the same reason.
    """

    reason: str
    rule: Rule | None = None
    from_ms: int | None = None
    adds_retention: bool = True
    #: The release removes offsets that expired before this millisecond, not at it.
    is_strict: bool = False
    is_subscribed: bool = False

    def due(self, retention_ms: int) -> Due:
        """Return the time at which the offset expires, with this retention."""
        if self.rule is None or self.from_ms is None:
            return Due(None, self.reason)
        expires_at_ms = self.from_ms + (retention_ms if self.adds_retention else 0)
        if self.is_strict:
            return _at(expires_at_ms + 1, self.rule, expires_at_ms, self.reason)
        return _at(expires_at_ms, self.rule, self.from_ms, self.reason)


def expiry_start(
    commit_timestamp_ms: int,
    expire_timestamp_ms: int | None,
    group: GroupForExpiry | None,
    topic: str,
    profile: BrokerProfile,
    *,
    is_pending: bool = False,
) -> ExpiryStart:
    """Return the time from which this release counts the age of an offset; `group` is None if it no longer exists.

    `expire_timestamp_ms` is the value after a load by the release. `is_pending`: an open transaction has a commit for it.
    """
    if profile.expiry in ("expire_timestamp_any_group", "expire_timestamp"):
        # These releases give every offset an expire timestamp while they load it, and test it by "<".
        reason, adds_retention = "its expire timestamp decides, in any state of its group", expire_timestamp_ms is None
        from_ms = commit_timestamp_ms if expire_timestamp_ms is None else expire_timestamp_ms
        return ExpiryStart(reason, "expire_timestamp", from_ms, adds_retention, is_strict=True)
    base = _base(group, topic, profile)
    if base.is_kept:
        return ExpiryStart(base.reason, is_subscribed=base.is_subscribed)
    if is_pending and isinstance(profile, JavaProfile) and profile.pending_protects_offset:
        return ExpiryStart("a commit for it is pending in an open transaction")
    if expire_timestamp_ms == -1:
        # Only a release that treats the -1 of the record as a time has it here.
        reason = f"{base.reason}, and its record has no expire timestamp (-1), which counts as a passed one (KAFKA-8069)"
        return ExpiryStart(reason, "expire_timestamp", -1, adds_retention=False)
    if expire_timestamp_ms is not None:
        reason = f"{base.reason}, and it has an expire timestamp"
        return ExpiryStart(reason, "expire_timestamp", expire_timestamp_ms, adds_retention=False)
    if base.empty_since_ms is not None:
        return ExpiryStart(base.reason, "since_empty", base.empty_since_ms)
    return ExpiryStart(base.reason, "since_commit", commit_timestamp_ms)


def _at(expires_at_ms: int, rule: Rule, base_timestamp_ms: int, reason: str) -> Due:
    if expires_at_ms >= _NEVER_MS:
        return Due(None, f"{reason}, but the time is later than any clock can show", rule, base_timestamp_ms)
    return Due(expires_at_ms, reason, rule, base_timestamp_ms)


@dataclass(frozen=True, slots=True)
class _Base:
    """The start of the age of a group's offsets of a topic: `empty_since_ms`, or their commits; or they are kept."""

    reason: str
    empty_since_ms: int | None = None
    is_kept: bool = False
    is_subscribed: bool = False


def _base(group: GroupForExpiry | None, topic: str, profile: BrokerProfile) -> _Base:
    if group is None:
        return _Base("its group does not exist, and the expiry task goes from group to group", is_kept=True)
    if group.group_type == "share":
        return _Base("offsets of share groups do not expire", is_kept=True)
    if group.group_type == "classic":
        return _classic_base(group, topic, profile)
    if topic in (group.subscribed_topics or ()):
        return _Base(_SUBSCRIBED, is_kept=True, is_subscribed=True)
    return _Base(_NOT_SUBSCRIBED if group.has_members else "the group has no members, and is subscribed to nothing")


def _classic_base(group: GroupForExpiry, topic: str, profile: BrokerProfile) -> _Base:
    if group.protocol_type is None:
        return _Base("its group has no protocol type")
    if not group.has_members:
        if group.empty_since_ms is None:
            return _Base("the group is Empty, but its record has no time of that")
        return _Base("the group is Empty", empty_since_ms=group.empty_since_ms)
    if group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        return _Base(f"the group has members, of protocol type {group.protocol_type!r}", is_kept=True)
    if profile.expiry == "since_empty":
        return _Base("the group has members", is_kept=True)
    if group.subscribed_topics is None:
        return _Base("the group has members, but their subscriptions cannot be read", is_kept=True)
    if topic in group.subscribed_topics:
        return _Base(_SUBSCRIBED, is_kept=True, is_subscribed=True)
    if group.state != "Stable" and profile.expiry != "unsubscribed":
        return _Base(f"the group is {group.state}, and subscriptions count while it is Stable", is_kept=True)
    return _Base(_NOT_SUBSCRIBED)


def _for_expiry(group: Group) -> GroupForExpiry:
    """The fields of a loaded group that decide expiry."""
    has_members = bool(group.members)
    if isinstance(group, ClassicGroupState):
        empty_since_ms = None if has_members else group.current_state_timestamp_ms
        return GroupForExpiry("classic", group.state, has_members, group.protocol_type, empty_since_ms, group.subscribed_topics)
    subscribed = frozenset[str]() if isinstance(group, ShareGroupState) else frozenset(_modern_subscription(group))
    return GroupForExpiry(group.group_type, group.state, has_members, subscribed_topics=subscribed)


def _modern_subscription(group: ConsumerGroupState | StreamsGroupState) -> set[str]:
    if isinstance(group, ConsumerGroupState):
        named = {topic for member in group.members.values() for topic in member.subscribed_topics}
        return named.union(*(expression.topics for expression in group.regular_expressions.values()))
    topology = group.topology
    if not group.members or topology is None:
        return set()
    if not group.forgets_validation and topology["topology_epoch"] != group.validated_topology_epoch:
        return set()
    repartitioned = {topic["name"] for part in topology["subtopologies"] for topic in part["repartition_source_topics"]}
    return repartitioned.union(*(part["source_topics"] for part in topology["subtopologies"]))


def _group_due(group: Group, offsets: list[Due], now_ms: int, profile: BrokerProfile, *, is_blocked: bool) -> Due:
    if profile.expiry == "expire_timestamp_any_group":
        return Due(None, "this release removes a group when its last member leaves, not by the expiry task")
    if group.members:
        return Due(None, "the group has members")
    if isinstance(group, ShareGroupState) and not (isinstance(profile, JavaProfile) and profile.share_groups_expire):
        return Due(None, "the expiry task of this release does not remove share groups")
    if is_blocked:
        return Due(None, "a commit of the group is pending in an open transaction")
    if not offsets:
        return Due(now_ms, "the group is Empty and has no offsets", "no_offsets")
    times = [due.expires_at_ms for due in offsets if due.expires_at_ms is not None]
    if len(times) < len(offsets):
        return Due(None, f"{len(offsets) - len(times)} of its {len(offsets)} offsets do not expire")
    last_ms = max(times)
    return Due(last_ms, "the group is Empty and is removed with the last of its offsets", "last_offset", last_ms)


def _pending_keys(partition_state: PartitionState) -> frozenset[OffsetKey]:
    return frozenset(key for transaction in partition_state.transactions.values() for key in transaction.offsets)


def _groups_kept_by_transactions(partition_state: PartitionState, profile: BrokerProfile) -> frozenset[str]:
    """Return the groups that are never removed while a transaction is open."""
    if isinstance(profile, JavaProfile) and profile.transaction_keeps_group != "always":
        return frozenset()
    return frozenset(key[0] for key in _pending_keys(partition_state))


def _groups_removed_a_pass_later(partition_state: PartitionState, profile: BrokerProfile) -> frozenset[str]:
    """Groups that an open transaction protects in the run that removes their offsets, but not in the next run."""
    if not isinstance(profile, JavaProfile) or profile.transaction_keeps_group != "with_offsets":
        return frozenset()
    opened = {name for transaction in partition_state.transactions.values() for name in transaction.groups}
    return frozenset(opened & {key[0] for key in partition_state.offsets})


def _failure(partition_state: PartitionState, removed: set[str], profile: BrokerProfile) -> str | None:
    """Return the reason why a run of the expiry task removes nothing; None: it does."""
    if isinstance(profile, JavaProfile) and profile.share_offsets_stop_expiry:
        with_offsets = {key[0] for key in partition_state.offsets}
        for name in sorted(with_offsets):
            if isinstance(partition_state.groups.get(name), ShareGroupState):
                return f"share group {name!r} has committed offsets, at which the expiry task of this release fails"
    return next((reason for name in sorted(removed) if (reason := _refusal(partition_state.groups[name]))), None)


def _refusal(group: Group) -> str | None:
    """Return the reason why the coordinator refuses the tombstones of this Empty group and undoes its whole write; None: it does not."""
    if isinstance(group, ClassicGroupState) or not group.target:
        return None
    return f"group {group.group!r} has no members, but target assignments for {len(group.target)}: its tombstones are refused"


def _tombstones(
    partition_state: PartitionState, offsets: Mapping[OffsetKey, Due], groups: Mapping[str, Due], profile: BrokerProfile
) -> Iterator[Tombstone]:
    # The Java coordinator writes once for each run, the Scala one for each group, up to 0.10.0 for each partition of the topic.
    is_one_append = isinstance(profile, JavaProfile) or profile.expiry == "expire_timestamp_any_group"
    appends = count()
    records: dict[str, list[tuple[int, Fields, str]]] = {}
    for (name, topic, partition), due in sorted(offsets.items()):
        records.setdefault(name, []).append((OFFSET_COMMIT, {"group": name, "topic": topic, "partition": partition}, due.reason))
    for name, due in groups.items():
        records.setdefault(name, []).extend((number, key, due.reason) for number, key in _group_keys(partition_state.groups[name], profile))
    for name, of_group in sorted(records.items()):
        append = 0 if is_one_append or not of_group else next(appends)
        for number, key, reason in of_group:
            yield Tombstone(append, number, encode_key(number, key), name, key.get("topic"), key.get("partition"), reason)


def _group_keys(group: Group, profile: BrokerProfile) -> list[tuple[int, Fields]]:
    """Record type and key of each tombstone of a group without members, in order."""
    own = {"group": group.group}
    match group:
        case ClassicGroupState():
            # To the Scala coordinator, generation 0 means a group that never wrote a record.
            return [(GROUP_METADATA, own)] if isinstance(profile, JavaProfile) or group.generation > 0 else []
        case ConsumerGroupState():
            expression = number_of("consumer", "regular_expression")
            expressions = [(expression, own | {"regular_expression": text}) for text in sorted(group.regular_expressions)]
            return [*_keys(own, "consumer", "target_epoch"), *expressions, *_keys(own, "consumer", "partition_metadata", "group")]
        case ShareGroupState():
            return _keys(own, "share", "target_epoch", "partition_metadata", "group")
        case StreamsGroupState():
            return _keys(own, "streams", "target_epoch", "group", "topology")


def _keys(key: Fields, family: Family, *roles: Role) -> list[tuple[int, Fields]]:
    return [(number_of(family, role), key) for role in roles]
