"""Orders of records that coordinators are known to give up, told apart by the reason that a load ends with."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from exhume.analysis.detectors.cases import GroupCase

_QUOTED = r"('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
_NAME = re.compile(_QUOTED)
_GROUP = re.compile(rf"\bgroup {_QUOTED}")
#: Refusals of a record for what it is, not for where it stands; and of damage, which has a class of its own.
_NOT_ABOUT_ORDER = re.compile(
    r"record type \S+ is not known|this release has no|version|decoded|checksum|batch|key is null|magic|reads? on|empty read|gap|zero",
    re.IGNORECASE,
)
_NAMED = 10


@dataclass(frozen=True, slots=True)
class KnownOrder:
    """A case of IC-06: how it is told, and the issue of Kafka that it is known by. `reason` matches what a load says, without names."""

    code: str
    told: str
    issue: str | None
    reason: re.Pattern[str]


_ORDERS = (
    KnownOrder("IC-06a", "commits of a group that was removed", "KAFKA-4704", re.compile("unexpected unload of active group")),
    KnownOrder("IC-06b", "records of a group or member that is not there", "KAFKA-17306", re.compile("there is no (group|member)")),
    KnownOrder(
        "IC-06c",
        "commits in front of the first record of the group itself",
        "KAFKA-17306 and KAFKA-20254",
        re.compile("group {} is a simple group, record type"),
    ),
    KnownOrder(
        "IC-06d",
        "two owners of a partition, since the record that took it from the first is not there",
        "KAFKA-19862",
        re.compile("which is (still )?owned at epoch|takes task"),
    ),
    KnownOrder(
        "IC-06e",
        "records of two types of group, since the tombstone between them is not there",
        "KAFKA-21117",
        re.compile(r"group {} is a (classic|consumer|share|streams) group, record type"),
    ),
)
_OTHER = KnownOrder("IC-06", "records that do not go together", None, re.compile(""))


def order_of(reason: str) -> KnownOrder | None:
    """Which order a load was given up for; None where it was not for the order of records. Names in the reason do not matter."""
    bare = _NAME.sub("{}", reason)
    known = next((order for order in _ORDERS if order.reason.search(bare)), None)
    return known or (None if _NOT_ABOUT_ORDER.search(bare) else _OTHER)


def group_of(reason: str) -> str | None:
    """The group that the reason speaks of."""
    match = _GROUP.search(reason)
    return None if match is None else str(ast.literal_eval(match[1]))


def owners_at_end(group: GroupCase) -> str:
    """Who owns what where a load does not stop, but reads on to the end."""
    if not group.memberships:
        return "nobody owns anything"
    owners = sorted(group.memberships[-1].owners().items())
    told = [f"{topic}-{partition} of {' and '.join(member.member_id for member in those)}" for (topic, partition), those in owners[:_NAMED]]
    return ", ".join(told) + (" …" if len(owners) > _NAMED else "") if told else "nobody owns anything"
