"""Who had a partition when it was committed, and when that had last changed."""

from __future__ import annotations

from collections.abc import Sequence

from exhume.analysis.detectors.cases import GroupCase
from exhume.analysis.detectors.commits import Change
from exhume.analysis.detectors.keys import KeyHistory
from exhume.analysis.detectors.owner_history import Handover
from exhume.analysis.member_columns import is_opaque
from exhume.analysis.memberships import Member, Membership

#: How long after a change of owner the previous one may still commit, unless members say less.
LONGEST_WINDOW_MS = 5 * 60_000


def handover_before(group: GroupCase, key: KeyHistory, record_offset: int) -> Handover | None:
    """The last change of owner of this key in front of a record; None where the log has none, or nobody before."""
    number = group.steps_before(record_offset) - 1
    if number < 0 or is_opaque(group.memberships[number]):
        return None
    return group.owners.handover((key.topic, key.partition), number)


def since_ms(handover: Handover, change: Change) -> int | None:
    """How long after a handover this commit was written."""
    if handover.step.timestamp_ms is None or change.commit.timestamp_ms is None:
        return None
    return change.commit.timestamp_ms - handover.step.timestamp_ms


def window_ms(step: Membership) -> int:
    """How long a previous owner may still commit: five minutes, or the longest rebalance timeout of the members if that is less."""
    timeouts: Sequence[int] = [member.rebalance_timeout_ms for member in step.members.values() if member.rebalance_timeout_ms]
    return min(LONGEST_WINDOW_MS, max(timeouts, default=LONGEST_WINDOW_MS))


def named(member: Member | None) -> str:
    """A member for people: its id, and where it runs."""
    if member is None:
        return "nobody"
    place = f" ({member.client_id} on {member.client_host})" if member.client_id is not None and member.client_host is not None else ""
    return f"{member.member_id}{place}"
