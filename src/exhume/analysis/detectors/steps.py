"""The steps of a group's life as detectors judge them: which can be relied on, how long each lasted, whether something lasted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from exhume.analysis.detectors.cases import GroupCase
from exhume.analysis.log_spans import LogSpan, LogSpans
from exhume.analysis.member_changes import client_of
from exhume.analysis.memberships import Member, MemberName, Membership

#: What lasts as long, or over more than one generation, is no rebalance under way.
LASTING_MS = 5 * 60_000


@dataclass(frozen=True, slots=True)
class StepRun:
    """Successive steps of which the same is true. `next` is the step that ended it; None where it holds at the end of the log."""

    steps: Sequence[Membership]
    next: Membership | None
    end_ms: int | None

    @property
    def first(self) -> Membership:
        return self.steps[0]

    @property
    def is_over(self) -> bool:
        """False where it holds at the end of the log."""
        return self.next is not None

    @property
    def length_ms(self) -> int:
        """How long it held; 0 where the log has no times."""
        if self.end_ms is None or self.first.timestamp_ms is None:
            return 0
        return max(self.end_ms - self.first.timestamp_ms, 0)

    @property
    def lasts(self) -> bool:
        """True for what is no passing moment of a rebalance."""
        if self.length_ms >= LASTING_MS:
            return True
        first = self.first
        return first.kind == "classic" and any(step.epoch != first.epoch for step in self.steps)


def judged(group: GroupCase) -> list[Membership]:
    """The steps that show the group as it was.

    A record of a classic group says everything. Another group is put together from many, and where compaction took some it never looked as
    it seems: only its steps behind the last missing offset count, and the last one.
    """
    steps = group.memberships
    return [step for step in steps if step.kind == "classic" or step is steps[-1] or group.log_context.is_complete_at(step.record_offset)]


def step_runs(group: GroupCase, steps: Sequence[Membership], is_so: Callable[[Membership], bool]) -> Iterator[StepRun]:
    """The stretches of these steps of which something is so."""
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
    """A member in a sentence: `c@h (member id)`."""
    return f"{client_of(member)} ({member.member_id})"


def log_span(group: GroupCase) -> LogSpans:
    """The log of this group, as `rebalances` wants it."""
    log_context = group.log_context
    span = LogSpan(log_context.start_offset, log_context.next_offset, log_context.complete_from_offset, log_context.last_timestamp_ms)
    return {log_context.origin: span}
