"""The steps of a group: the reliable ones, and runs of steps with a common property."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from exhume.analysis.detectors.cases import GroupCase
from exhume.analysis.log_extent import LogExtents
from exhume.analysis.member_changes import client_of
from exhume.analysis.memberships import Member, MemberName, Membership

#: A run of this length, or of more than one generation, is not a rebalance in progress.
LASTING_MS = 5 * 60_000


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
