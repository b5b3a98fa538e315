"""Known orders of records that abort a load, by the kind of the load problem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from exhume.analysis.detectors.cases import GroupCase
from exhume.analysis.detectors.report import MORE_NAMED
from exhume.replay.load_problems import ProblemKind


@dataclass(frozen=True, slots=True)
class KnownOrder:
    """A case of IC-06: its code, its description, and its issue in Kafka's tracker."""

    code: str
    sentence: str
    issue: str | None


_COMMITS_OF_REMOVED = KnownOrder("IC-06a", "commits of a removed group", "KAFKA-4704")
_OF_NOTHING = KnownOrder("IC-06b", "records of a missing group or member", "KAFKA-17306")
_COMMITS_FIRST = KnownOrder("IC-06c", "commits before the first record of their group", "KAFKA-17306 and KAFKA-20254")
_TWO_OWNERS = KnownOrder("IC-06d", "two owners of a partition, because the record of the first revocation is missing", "KAFKA-19862")
_TWO_TYPES = KnownOrder("IC-06e", "records of two group types, because the tombstone between them is missing", "KAFKA-21117")
_OTHER = KnownOrder("IC-06", "records that contradict each other", None)

#: The other kinds concern a record alone, without its order, or damage, which has a class of its own.
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
    """Return the known order of this kind of problem; None if the problem is not the order of records."""
    return _ORDERS.get(kind)


def owners_at_end(group: GroupCase) -> str:
    """Describe the owners at the end of the log, as after a load that does not stop."""
    owners = sorted(group.memberships[-1].owners().items()) if group.memberships else []
    if not owners:
        return "no member owns a partition"
    owned = [
        f"{topic}-{partition} belongs to {' and '.join(member.member_id for member in those)}"
        for (topic, partition), those in owners[:MORE_NAMED]
    ]
    return ", ".join(owned) + (" …" if len(owners) > MORE_NAMED else "")
