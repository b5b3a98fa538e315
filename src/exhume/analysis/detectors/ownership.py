"""The owner of a partition at a commit, and the last change of owner before it."""

from __future__ import annotations

from collections.abc import Sequence

from exhume.analysis.detectors.cases import GroupCase
from exhume.analysis.detectors.commits import Change
from exhume.analysis.detectors.keys import KeyHistory
from exhume.analysis.detectors.owner_history import Handover
from exhume.analysis.member_columns import is_opaque
from exhume.analysis.memberships import Member, Membership

#: The longest time after a change of owner in which the previous owner may still commit.
LONGEST_WINDOW_MS = 5 * 60_000


def handover_before(group: GroupCase, key: KeyHistory, record_offset: int) -> Handover | None:
    """Return the last change of owner of this key before a record; None if the log has none, or no previous owner."""
    number = group.steps_before(record_offset) - 1
    if number < 0 or is_opaque(group.memberships[number]):
        return None
    return group.owners.handover((key.topic, key.partition), number)


def since_ms(handover: Handover, change: Change) -> int | None:
    """Return the time from a change of owner to this commit."""
    if handover.step.timestamp_ms is None or change.commit.timestamp_ms is None:
        return None
    return change.commit.timestamp_ms - handover.step.timestamp_ms


def window_ms(step: Membership) -> int:
    """Return the time in which a previous owner may still commit: five minutes, or the longest rebalance timeout if that is less."""
    timeouts: Sequence[int] = [member.rebalance_timeout_ms for member in step.members.values() if member.rebalance_timeout_ms]
    return min(LONGEST_WINDOW_MS, max(timeouts, default=LONGEST_WINDOW_MS))


def named(member: Member | None) -> str:
    """Format a member: its id, its client id and its host."""
    if member is None:
        return "no member"
    place = f" ({member.client_id} on {member.client_host})" if member.client_id is not None and member.client_host is not None else ""
    return f"{member.member_id}{place}"
