"""Find partitions that their owner did not commit for a time, while it committed others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from exhume.analysis.detectors.cases import GroupCase
from exhume.analysis.detectors.commits import MOST_PAUSES, PAUSE_RATIO, CommitPause
from exhume.analysis.detectors.keys import KeyHistory
from exhume.analysis.detectors.report import counted, finding, span, undecidable
from exhume.analysis.detectors.steps import who
from exhume.analysis.memberships import Member
from exhume.findings import Finding

#: At least this many other partitions of the member are committed in the same time.
LEAST_OTHERS = 2
#: A client that also commits unchanged offsets repeats at least one of this many commits.
_HABIT = 10


@dataclass(frozen=True, slots=True)
class _Found:
    pause: CommitPause
    member: Member
    others: int
    rose_by: int


def find_paused(group: GroupCase) -> Iterator[Finding]:
    """Find the pauses of each key that the other partitions of its owner did not share: see `find_unconsumed`."""
    hidden: _Found | None = None
    for history in group.keys.with_pauses():
        is_habit = history.repeats * _HABIT >= history.commits
        found = [each for pause in history.pauses if (each := _of_one_partition(group, history, pause, is_habit=is_habit)) is not None]
        seen = [each for each in found if group.log_context.is_complete_at(each.pause.before.record_offset)]
        if seen:
            yield _finding(group, history, max(seen, key=lambda each: each.pause.length_ms), len(seen) - 1, is_habit=is_habit)
        elif found:
            hidden = found[0]
    if hidden is not None:
        reason = (
            f"compaction removed records before record {group.log_context.complete_from_offset}, so commits may be missing in pauses there"
        )
        yield undecidable("IC-20b", reason, group, evidence=[hidden.pause.before, hidden.pause.after])


def _of_one_partition(group: GroupCase, history: KeyHistory, pause: CommitPause, *, is_habit: bool) -> _Found | None:
    rose_by = pause.after.committed_offset - pause.before.committed_offset
    usual_rise = history.usual_rise
    if not is_habit and (usual_rise is None or rose_by <= PAUSE_RATIO * max(usual_rise, 1)):
        return None
    first = group.steps_before(pause.before.record_offset)
    steps = group.memberships[max(first - 1, 0) : group.steps_before(pause.after.record_offset)]
    # If record offsets go back in the log, there may be no step in between.
    if not first or not steps or steps[0].kind == "share":
        return None
    owners = [step.owners().get((history.topic, history.partition), []) for step in steps]
    if any(len(each) != 1 or each[0].member_id != owners[0][0].member_id for each in owners):
        return None
    member = owners[0][0]
    kept = set(member.owned).intersection(*(each[0].owned for each in owners)) - {(history.topic, history.partition)}
    others = sum((other := group.keys.find(*owned)) is not None and _went_on(other, pause) for owned in kept)
    return _Found(pause, member, others, rose_by) if others >= LEAST_OTHERS else None


def _went_on(other: KeyHistory, pause: CommitPause) -> bool:
    """Return True if this key was committed before, during and after the pause, at its usual pace and without such a pause."""
    last, usual_ms = other.last, other.usual_interval_ms
    if last is None or last.timestamp_ms is None or other.first_timestamp_ms is None or usual_ms is None:
        return False
    half_ms = pause.length_ms / 2
    is_there = other.first_timestamp_ms <= pause.from_ms and last.timestamp_ms >= pause.to_ms and other.highest != other.lowest
    if not is_there or PAUSE_RATIO * usual_ms > pause.length_ms:
        return False
    if len(other.pauses) >= MOST_PAUSES and min(own.length_ms for own in other.pauses) > half_ms:
        return False
    return all(min(own.to_ms, pause.to_ms) - max(own.from_ms, pause.from_ms) <= half_ms for own in other.pauses)


def _finding(group: GroupCase, history: KeyHistory, found: _Found, more: int, *, is_habit: bool) -> Finding:
    pause, epochs = found.pause, group.log_context.epochs
    sentence = (
        f"the owner {who(found.member)} committed no offset of this partition for {span(pause.length_ms)}"
        f" ({pause.length_ms / pause.usual_interval_ms:.0f} times the usual interval), and committed offsets of"
        f" {counted(found.others, 'other partition')} in that time"
    )
    if not is_habit:
        sentence += f"; then the offset rose by {found.rose_by} in one commit (usual rise {history.usual_rise:g})"
    began = [each.leader_epoch for each in epochs[1:] if pause.before.record_offset < each.first_record_offset <= pause.after.record_offset]
    sentence += f"; leader epoch {began[0]} of the offsets partition began in that time" if began else ""
    sentence += f"; {counted(more, 'more such pause')}" if more else ""
    not_excluded = ["a group that was as slow at that time: the usual interval is that at the end of the log"]
    if not is_habit:
        not_excluded.insert(0, "a partition that had no records for that time, and then many at once")
    if began:
        not_excluded.append("different clocks of the two brokers")
    return finding(
        "IC-20b",
        sentence,
        history,
        log_context=group.log_context,
        severity="warn" if is_habit else "info",
        confidence="likely" if is_habit else "possible",
        evidence=[pause.before, pause.after],
        member_id=found.member.member_id,
        not_excluded=not_excluded,
        remedy="Check that client at that time, not the coordinator: did it fetch this partition?",
    )
