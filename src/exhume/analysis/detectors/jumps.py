"""Find commits that are far ahead of the commit before: records that the consumer may have skipped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from exhume.analysis.detectors.cases import GroupCase
from exhume.analysis.detectors.commit_loops.columns import USUAL
from exhume.analysis.detectors.commits import JUMP_FLOOR, JUMP_RATIO, Change
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.keys import KeyHistory
from exhume.analysis.detectors.offsets_out_of_range import handover_out_of_range
from exhume.analysis.detectors.registry import Detector
from exhume.analysis.detectors.report import before_record, counted, finding, next_step, span, undecidable
from exhume.analysis.detectors.steps import handover_before, named
from exhume.findings import Confidence, Finding, Severity

#: After a pause a group may catch up at this many times its usual speed. That is no jump.
_CATCH_UP = 2
#: A group that catches up rises by at least this share of its first rise in the next commits.
_CONTINUED = 0.1
#: A rise after the group was down is no catching up if it is this many times as large as the least jump.
_FAR = 10
#: Records of one batch or poll: an offset this close to the log start or end is at it. The default of max.poll.records.
_BATCH = 500


def find_jumps(group: GroupCase, inputs: Inputs) -> Iterator[Finding]:
    """A commit is far higher than the commit before: the consumer may have skipped records.

    If the group had members all the time, up to twice its usual speed since the commit before is no jump. If it had none in between, only
    the time since its members joined counts: retention may have passed the committed offset, or auto.offset.reset=latest. A group that
    catches up rises about as fast in its next commits, and is no finding. With `--start-offsets` or `--end-offsets`, a commit within one
    batch of the log start or end is an incident; an earlier offset that the topic partition still has is none after a pause.
    """
    undecided = 0
    for key in group.keys.with_changes("jump"):
        jumps = [*key.of("jump")]
        pause: _Pause | None = None
        for number, change in enumerate(jumps):
            # The jumps after one another after a pause belong to it.
            is_next = number > 0 and change.before is not None and change.before.record_offset == jumps[number - 1].commit.record_offset
            if change.phase == "empty" or change.before is None:
                continue
            pause = _pause_before(group, change) or (pause if is_next else None)
            edge = _edge_of_topic_partition(key, change, inputs)
            is_excused = _is_catch_up(key, change) if pause is None else _continues(jumps, number)
            if is_excused and (edge is None or not edge.is_start):
                continue
            if pause is not None and edge is None and _is_still_there(key, change, inputs):
                continue
            if handover_out_of_range(group, key, change) is not None:
                continue
            if group.log_context.is_complete_at(change.before.record_offset):
                yield _jump(group, key, change, inputs, edge, pause)
            else:
                undecided += 1
    if undecided:
        reason = (
            f"compaction removed commits before record {group.log_context.complete_from_offset}, and may have caused"
            f" {counted(undecided, 'jump')} there"
        )
        yield undecidable("IC-16", reason, group, remedy="Read another replica: each replica is compacted on its own")


@dataclass(frozen=True, slots=True)
class _Pause:
    """A time without members between two commits, and the time from the first member after it to the second commit."""

    length_ms: int | None
    joined_ms: int | None


def _pause_before(group: GroupCase, change: Change) -> _Pause | None:
    """Return the time without members before this commit; None if the group had members since the commit before."""
    assert change.before is not None
    first, last = group.steps_before(change.before.record_offset), group.steps_before(change.commit.record_offset)
    steps = group.memberships[first:last]
    places = [place for place, step in enumerate(steps) if step.is_empty or step.is_tombstone]
    if not places:
        return None
    joined = next((step for step in steps[places[-1] + 1 :] if step.members), None)
    emptied_ms, joined_ms, at_ms = (
        steps[places[0]].timestamp_ms,
        None if joined is None else joined.timestamp_ms,
        change.commit.timestamp_ms,
    )
    length_ms = None if emptied_ms is None or joined_ms is None else joined_ms - emptied_ms
    return _Pause(length_ms, None if joined_ms is None or at_ms is None else at_ms - joined_ms)


def _is_catch_up(key: KeyHistory, change: Change) -> bool:
    """Return True if the key rose about as fast as usual, and only was not committed for a time."""
    before, commit = change.before, change.commit
    if before is None or before.timestamp_ms is None or commit.timestamp_ms is None or not key.usual_interval_ms or not change.usual_rise:
        return False
    intervals = (commit.timestamp_ms - before.timestamp_ms) / key.usual_interval_ms
    return change.delta <= _CATCH_UP * intervals * change.usual_rise


def _continues(jumps: Sequence[Change], number: int) -> bool:
    """Return True if the commit after this jump, or before it, is a jump of about the same size: the group catches up."""
    jump = jumps[number]
    after = jumps[number + 1] if number + 1 < len(jumps) else None
    before = jumps[number - 1] if number else None
    if after is not None and after.before is not None and after.before.record_offset == jump.commit.record_offset:
        return after.delta >= _CONTINUED * jump.delta
    is_next = before is not None and jump.before is not None and before.commit.record_offset == jump.before.record_offset
    return is_next and before is not None and before.delta >= _CONTINUED * jump.delta


def _is_still_there(key: KeyHistory, change: Change, inputs: Inputs) -> bool:
    """Return True if the topic partition still has the record at the offset before the jump: retention did not pass it."""
    start = (inputs.start_offsets or {}).get((key.topic, key.partition))
    return start is not None and change.before is not None and start <= change.before.committed_offset


@dataclass(frozen=True, slots=True)
class _Edge:
    """The log start or the log end of the topic partition, as the end of a sentence about a commit that is at it."""

    sentence: str
    is_start: bool


def _grade(change: Change, edge: _Edge | None, pause: _Pause | None, *, is_moved: bool) -> tuple[Severity, Confidence]:
    is_far = change.delta >= _FAR * max(JUMP_FLOOR, JUMP_RATIO * (change.usual_rise or 0))
    if edge is not None and pause is not None and not edge.is_start and not is_far:
        # A group that was down may read so much in one interval, and reach the end.
        return "warn", "possible"
    if edge is not None:
        return "incident", "likely"
    if pause is not None:
        return ("warn", "possible") if is_far else ("info", "possible")
    return "warn", "likely" if is_moved else "possible"


def _jump(group: GroupCase, key: KeyHistory, change: Change, inputs: Inputs, edge: _Edge | None, pause: _Pause | None) -> Finding:  # noqa: PLR0917
    assert change.before is not None
    low, high = change.before.committed_offset, change.commit.committed_offset
    handover = handover_before(group, key, change.commit.record_offset)
    if handover is not None and handover.step.record_offset <= change.before.record_offset:
        handover = None
    sentence = f"the committed offset rose from {low} to {high} (+{high - low}; usual rise {change.usual_rise or 0:.0f})"
    if change.before.timestamp_ms is not None and change.commit.timestamp_ms is not None:
        sentence += f", {span(change.commit.timestamp_ms - change.before.timestamp_ms)} after the commit before"
    if pause is not None:
        sentence += "; the group had no members" + ("" if pause.length_ms is None else f" for {span(pause.length_ms)}")
        sentence += "" if pause.joined_ms is None else f", and committed {span(pause.joined_ms)} after they joined again"
        sentence += "" if edge is not None else ": retention may have passed the committed offset in that time"
    if handover is not None:
        sentence += f"; the partition moved from {named(handover.previous)} to {named(handover.owner)} in between"
    not_excluded = ["a topic with compaction or transactions: its offsets have gaps", "a group that catches up with large batches"]
    severity, confidence = _grade(change, edge, pause, is_moved=handover is not None)
    return finding(
        "IC-16",
        sentence + (edge.sentence if edge is not None else ""),
        key,
        log_context=group.log_context,
        severity=severity,
        confidence=confidence,
        evidence=[change, *([handover.step] if handover is not None else [])],
        not_excluded=[] if edge is not None and confidence == "likely" else not_excluded,
        remedy=next_step(
            "Plan the return to the offsets before the jump",
            inputs,
            "reset-plan",
            "--group",
            group.group,
            *before_record(group.log_context, change.commit.record_offset),
        ),
    )


def _edge_of_topic_partition(key: KeyHistory, change: Change, inputs: Inputs) -> _Edge | None:
    """Return the log start or the log end of the topic partition if this commit is within a batch of it."""
    place, offset, batch = (key.topic, key.partition), change.commit.committed_offset, max(_BATCH, change.usual_rise or 0)
    start, end = ((offsets or {}).get(place) for offsets in (inputs.start_offsets, inputs.end_offsets))
    if start is not None and change.before is not None and change.before.committed_offset < start and abs(offset - start) <= batch:
        near = "" if offset == start else f" within {abs(offset - start)}"
        return _Edge(f"; {offset} is the log start offset of the topic partition{near}: the position was out of range", is_start=True)
    if end is not None and abs(end - offset) <= batch:
        near = "" if offset == end else f" within {abs(offset - end)}"
        return _Edge(f"; {offset} is the log end offset of the topic partition{near}, as after auto.offset.reset=latest", is_start=False)
    return None


DETECTORS = (
    Detector(
        code="IC-16",
        title="Forward jump: records skipped",
        section="Offsets moved",
        in_group=find_jumps,
        traps=(
            f"A jump is more than {JUMP_FLOOR} offsets, and more than {JUMP_RATIO} times the median of the last {USUAL} rises",
            "A group with members catches up with large batches: up to twice its usual speed since the commit before is no jump",
            "A group that had no members catches up in several large rises, one after the other",
            "The offsets of topics with transactions or compaction have gaps",
            "A jump while the group is Empty is a reset (IC-05b)",
            "Compaction removes commits, and the remaining ones seem to jump",
        ),
        better_with=("--start-offsets", "--end-offsets"),
    ),
)
