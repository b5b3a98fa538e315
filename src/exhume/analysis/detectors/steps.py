"""The steps of a group: the reliable ones, runs of steps with a common property, and the change of owner before a commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from exhume.analysis.detectors.cases import GroupCase
from exhume.analysis.detectors.commits import Change
from exhume.analysis.detectors.keys import KeyHistory
from exhume.analysis.detectors.owner_history import Handover
from exhume.analysis.log_extent import LogExtents
from exhume.analysis.member_changes import client_of
from exhume.analysis.member_columns import is_opaque
from exhume.analysis.memberships import Member, MemberName, Membership

#: Assignors that take all partitions away in a rebalance, and assign all of them.
EAGER = ("range", "roundrobin", "sticky")
#: A run of this length, or of more than one generation, is not a rebalance in progress.
LASTING_MS = 5 * 60_000
#: The longest time after a change of owner in which the previous owner may still commit.
LONGEST_WINDOW_MS = 5 * 60_000


@dataclass(frozen=True, slots=True)
class StepRun:
    """Successive steps with the same property. `next` is the step that ended the run; None if it holds at the end of the log."""

    steps: Sequence[Membership]
    next: Membership | None
    end_ms: int | None

    @property
    def first(self) -> Membership:
        return self.steps[0]

    @property
    def is_over(self) -> bool:
        """False if the run holds at the end of the log."""
        return self.next is not None

    @property
    def length_ms(self) -> int:
        """The length of the run; 0 if the log has no times."""
        if self.end_ms is None or self.first.timestamp_ms is None:
            return 0
        return max(self.end_ms - self.first.timestamp_ms, 0)

    @property
    def lasts(self) -> bool:
        """True if the run is longer than a rebalance in progress."""
        if self.length_ms >= LASTING_MS:
            return True
        first = self.first
        return first.kind == "classic" and any(step.epoch != first.epoch for step in self.steps)


def judged(group: GroupCase) -> list[Membership]:
    """Return the steps that show the group as it was.

    One record of a classic group contains the whole group. Any other group is put together from many records, and is wrong if compaction
    removed some of them. So only its steps after the last missing offset count, and its last step.
    """
    steps = group.memberships
    return [step for step in steps if step.kind == "classic" or step is steps[-1] or group.log_context.is_complete_at(step.record_offset)]


def step_runs(group: GroupCase, steps: Sequence[Membership], is_so: Callable[[Membership], bool]) -> Iterator[StepRun]:
    """Yield the runs of these steps for which `is_so` is true."""
    run: list[Membership] = []
    for step in steps:
        if is_so(step):
            run.append(step)
        elif run:
            yield StepRun(run, step, step.timestamp_ms)
            run = []
    if run:
        yield StepRun(run, None, group.log_context.last_timestamp_ms)


def who(member: Member | MemberName) -> str:
    """Format a member: `c@h (member id)`."""
    return f"{client_of(member)} ({member.member_id})"


def log_extents(group: GroupCase) -> LogExtents:
    """Return the extent of this group's log, for `rebalances`."""
    return {group.log_context.origin: group.log_context.extent}


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
