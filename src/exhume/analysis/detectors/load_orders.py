"""Orders of records that coordinators are known to give up, told apart by the kind of the problem that a load meets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from exhume.analysis.detectors.cases import GroupCase
from exhume.replay.load_problems import ProblemKind

_NAMED = 10


@dataclass(frozen=True, slots=True)
class KnownOrder:
    """A case of IC-06: how it is told, and the issue of Kafka that it is known by."""

    code: str
    told: str
    issue: str | None


_COMMITS_OF_REMOVED = KnownOrder("IC-06a", "commits of a group that was removed", "KAFKA-4704")
_OF_NOTHING = KnownOrder("IC-06b", "records of a group or member that is not there", "KAFKA-17306")
_COMMITS_FIRST = KnownOrder("IC-06c", "commits in front of the first record of the group itself", "KAFKA-17306 and KAFKA-20254")
_TWO_OWNERS = KnownOrder("IC-06d", "two owners of a partition, since the record that took it from the first is not there", "KAFKA-19862")
_TWO_TYPES = KnownOrder("IC-06e", "records of two types of group, since the tombstone between them is not there", "KAFKA-21117")
_OTHER = KnownOrder("IC-06", "records that do not go together", None)

#: Every other kind is about a record for what it is, not for where it stands; or about damage, which has a class of its own.
_ORDERS: Mapping[ProblemKind, KnownOrder] = {
    ProblemKind.ACTIVE_GROUP_UNLOADED: _COMMITS_OF_REMOVED,
    ProblemKind.ACTIVE_GROUP_UNLOADED_MIDWAY: _COMMITS_OF_REMOVED,
    ProblemKind.GROUP_MISSING: _OF_NOTHING,
    ProblemKind.MEMBER_MISSING: _OF_NOTHING,
    ProblemKind.GROUP_IS_SIMPLE: _COMMITS_FIRST,
    ProblemKind.PARTITION_TAKEN_OVER: _TWO_OWNERS,
    ProblemKind.PARTITION_STILL_OWNED: _TWO_OWNERS,
    ProblemKind.TASK_STILL_OWNED: _TWO_OWNERS,
    ProblemKind.GROUP_OF_OTHER_TYPE: _TWO_TYPES,
} | dict.fromkeys(
    (
        ProblemKind.FORMAT_0_IN_FORMAT_1,
        ProblemKind.PROTOCOL_OR_LEADER_NULL,
        ProblemKind.INSTANCE_ID_TWICE,
        ProblemKind.MEMBER_ID_TWICE,
        ProblemKind.SUBSCRIPTION_UNPARSABLE,
        ProblemKind.GROUP_NOT_EMPTY,
        ProblemKind.TARGET_NOT_EMPTY,
        ProblemKind.MEMBER_WITH_ASSIGNMENT,
        ProblemKind.MEMBER_WITH_TARGET,
        ProblemKind.ASSIGNMENT_EPOCH_NEGATIVE,
        ProblemKind.TOPOLOGY_EPOCH_NEGATIVE,
        ProblemKind.REBALANCE_TIMEOUT_MISSING,
    ),
    _OTHER,
)


def order_of(kind: ProblemKind) -> KnownOrder | None:
    """The order that a load was given up for; None where it was not for the order of records."""
    return _ORDERS.get(kind)


def owners_at_end(group: GroupCase) -> str:
    """Who owns what where a load does not stop, but reads on to the end."""
    if not group.memberships:
        return "nobody owns anything"
    owners = sorted(group.memberships[-1].owners().items())
    told = [f"{topic}-{partition} of {' and '.join(member.member_id for member in those)}" for (topic, partition), those in owners[:_NAMED]]
    return ", ".join(told) + (" …" if len(owners) > _NAMED else "") if told else "nobody owns anything"
