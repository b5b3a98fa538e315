"""Find commits that went back while the group had members."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from exhume.analysis.detectors.cases import GroupCase
from exhume.analysis.detectors.commit_loops.columns import CommitColumn
from exhume.analysis.detectors.commit_rows import ChangeColumn, ChangeTable
from exhume.analysis.detectors.commits import GROUP_PHASES, Change, CommitRow
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.keys import KeyHistory
from exhume.analysis.detectors.offsets_out_of_range import handover_out_of_range
from exhume.analysis.detectors.owner_history import Handover
from exhume.analysis.detectors.registry import Detector
from exhume.analysis.detectors.report import finding, next_step, some, span, undecidable
from exhume.analysis.detectors.steps import LONGEST_WINDOW_MS, handover_before, named, since_ms, window_ms
from exhume.analysis.number_columns import NONE, Flags
from exhume.findings import Finding

#: A sawtooth has at least this many rewinds in this time.
_SAWTOOTH_MS = 3_600_000
_TEETH = 3
_ACTIVE = GROUP_PHASES.index("active")


def find_rewinds_at_rebalances(group: GroupCase, inputs: Inputs) -> Iterator[Finding]:
    """A lower offset replaced a higher one soon after the partition got another owner.

    Soon means within five minutes, or within the longest rebalance timeout if that is less. The lower offset is not below the committed
    offset at which the previous owner started, so that owner could have had it in memory. The finding is likely if the lower offset was
    committed before, or if the next commit is above the higher one again; otherwise possible. It is `info` if compaction removed the
    commits at which the previous owner started, and the lower offset is below all that are left.
    """
    rewinds = group.keys.changed("rewind")
    if not len(rewinds):
        return
    # As `Change.could_be_in_memory`: `NEVER`, for no value, is lower than any value.
    is_known = rewinds.commit(CommitColumn.VALUE) >= rewinds.change(ChangeColumn.AT_STEP_BEFORE)
    rewinds = rewinds.where((rewinds.commit(CommitColumn.PHASE) == _ACTIVE) & is_known)
    for key in group.keys.at(rewinds.where(_may_be_after_handovers(group, rewinds)).places):
        if is_sawtooth(key):
            continue
        for change in key.of("rewind"):
            if change.phase != "active" or not change.reasons.isdisjoint(("leader_epoch", "topic_id")):
                continue
            handover = handover_before(group, key, change.commit.record_offset) if change.could_be_in_memory else None
            if handover is None or handover_out_of_range(group, key, change) is not None:
                continue
            after_ms = since_ms(handover, change)
            if after_ms is not None and 0 <= after_ms <= window_ms(handover.step):
                yield _rewind(group, key, change, handover, inputs)


def _may_be_after_handovers(group: GroupCase, changes: ChangeTable) -> Flags:
    """Return True for each change within `LONGEST_WINDOW_MS` after a change of owner. Uses columns only."""
    if not len(changes):
        return np.zeros(0, np.bool_)
    numbers = group.count_steps_before(changes.commit(CommitColumn.OFFSET)) - 1
    steps = group.owners.steps_of_handovers(group.keys.names, changes.places, numbers)
    times = np.array([NONE if step.timestamp_ms is None else step.timestamp_ms for step in group.memberships] or [NONE], np.int64)
    began, written = times[steps], changes.commit(CommitColumn.TIME)
    after_ms = written - began
    flags: Flags = (steps >= 0) & (began != NONE) & (written != NONE) & (after_ms >= 0) & (after_ms <= LONGEST_WINDOW_MS)
    return flags


def _rewind(group: GroupCase, key: KeyHistory, change: Change, handover: Handover, inputs: Inputs) -> Finding:
    assert change.before is not None
    high, low = change.before.committed_offset, change.commit.committed_offset
    following = next((after for rewind, after in _rewinds(key) if rewind == change), None)
    is_above_again = following is not None and following.commit.committed_offset >= high
    was_committed = low in (change.value_at_last_step, change.value_at_step_before)
    not_excluded = []
    if _others_went_back(group, key, change, handover):
        not_excluded.append("a deliberate seek: other partitions of the same owner, which did not move, went back too")
    if not group.log_context.is_complete_at(change.before.record_offset):
        not_excluded.append(
            f"commits in between that compaction removed: the log is complete from record {group.log_context.complete_from_offset} on"
        )
    is_unknown = _is_start_unknown(group, key, change, handover)
    if is_unknown:
        not_excluded.append("an offset that the previous owner never had: compaction removed the commits at which it started")
    is_sure = (is_above_again or was_committed) and not not_excluded
    is_recovered = key.holds is not None and key.holds.committed_offset >= high
    again = f"; it has reached {high} again" if is_recovered else ""
    sentence = (
        f"the committed offset went back from {high} to {low} ({low - high:+d}), {span(since_ms(handover, change) or 0)} after the"
        f" partition moved from {named(handover.previous)} to {named(handover.owner)}{again}"
    )
    return finding(
        "IC-02",
        sentence,
        key,
        log_context=group.log_context,
        severity="info" if is_unknown else "warn" if is_recovered else "incident",
        confidence="likely" if is_sure else "possible",
        member_id=handover.owner.member_id if handover.owner is not None else None,
        evidence=[handover.previous_step, handover.step, change, *([following] if following is not None else [])],
        not_excluded=not_excluded,
        remedy=None
        if is_recovered
        else next_step("Plan the return to the higher offset", inputs, "reset-plan", "--group", group.group, "--before-rewind"),
    )


def _is_start_unknown(group: GroupCase, key: KeyHistory, change: Change, handover: Handover) -> bool:
    """Return True if nothing in the log shows that the previous owner started at this offset, or below it."""
    assert change.before is not None
    if change.value_at_step_before is not None or group.log_context.is_complete_at(handover.previous_step.record_offset):
        return False
    first = key.first_committed_offset
    return change.commit.committed_offset < min(change.before.committed_offset, change.before.committed_offset if first is None else first)


def _others_went_back(group: GroupCase, key: KeyHistory, change: Change, handover: Handover) -> bool:
    """Return True if other keys of the same owner, which did not move, went back with this one."""
    stayed = set(handover.owner.owned if handover.owner is not None else ())
    for other in group.keys.with_changes("rewind"):
        if other != key and (other.topic, other.partition) in stayed:
            near = [each for each in other.of("rewind") if each.commit.byte_position == change.commit.byte_position]
            if near and handover_before(group, other, change.commit.record_offset) is None:
                return True
    return False


def is_sawtooth(key: KeyHistory) -> bool:
    """Return True if the rewinds of this key look like two writers, not like a rebalance: many, and each is undone soon."""
    return bool(_teeth(key, 0))


def find_sawteeth(group: GroupCase, inputs: Inputs) -> Iterator[Finding]:
    """Two writers alternate on one key: three rewinds within an hour, each undone by the next different commit.

    The values split into two rising chains of three or more. A chain that never changes is a zombie: it commits the offset in its memory.
    """
    complete_from = group.log_context.complete_from_offset
    for key in _with_teeth(group):
        teeth = _teeth(key, complete_from)
        if not teeth:
            if _teeth(key, 0):
                reason = f"{key.topic}-{key.partition} goes back and forth before record {complete_from}, where compaction removed records"
                yield undecidable("IC-13", reason, group)
            continue
        upper, lower = _chains(key, teeth)
        if len(upper) >= _TEETH and len(lower) >= _TEETH:
            yield _sawtooth(group, key, upper, lower, inputs)


def _with_teeth(group: GroupCase) -> list[KeyHistory]:
    """Return the keys that may have a sawtooth: with enough rewinds that the next different commit undoes. Uses columns only."""
    changes = group.keys.changed("rewind", "after_rewind")
    if not len(changes):
        return []
    is_rewind, places = changes.has("rewind"), changes.places
    is_good = np.zeros(len(changes), np.bool_)
    is_good[:-1] = (
        is_rewind[:-1]
        & changes.has("after_rewind")[1:]
        & (places[1:] == places[:-1])
        & (changes.commit(CommitColumn.VALUE)[1:] >= changes.before(CommitColumn.VALUE)[:-1])
    )
    goods = np.bincount(places[is_good], minlength=len(group.keys))
    return group.keys.at(np.flatnonzero(goods >= _TEETH))


def _teeth(key: KeyHistory, complete_from: int) -> list[Change]:
    """Return the rewinds from this record on that the next different commit undoes; none unless three of them are within an hour."""
    if key.count_of.get("rewind", 0) < _TEETH:
        return []
    teeth = [
        change
        for change, after in _rewinds(key)
        if change.before is not None
        and change.before.settled_offset >= complete_from
        and after is not None
        and after.commit.committed_offset >= change.before.committed_offset
    ]
    times = [change.commit.timestamp_ms for change in teeth]
    for first in range(len(teeth) - _TEETH + 1):
        start, end = times[first], times[first + _TEETH - 1]
        if start is not None and end is not None and end - start <= _SAWTOOTH_MS:
            return teeth
    return []


def _rewinds(key: KeyHistory) -> list[tuple[Change, Change | None]]:
    """Return the rewinds, each with the next different commit after it. A zombie may commit its value several times in a row."""
    found: list[tuple[Change, Change | None]] = []
    for change in key.of("rewind", "after_rewind"):
        if "after_rewind" in change.reasons and found:
            found[-1] = found[-1][0], change
        if "rewind" in change.reasons:
            found.append((change, None))
    return found


def _chains(key: KeyHistory, teeth: Sequence[Change]) -> tuple[list[CommitRow], list[CommitRow]]:
    """Split the commits around these rewinds greedily into two chains that do not decrease: the upper and the lower one."""
    known = {}
    for change in (*teeth, *key.of("after_rewind")):
        for commit in (change.before, change.commit):
            if commit is not None:
                known[commit.settled_offset] = commit
    upper: list[CommitRow] = []
    lower: list[CommitRow] = []
    for _, commit in sorted(known.items()):
        if not upper or commit.committed_offset >= upper[-1].committed_offset:
            upper.append(commit)
        elif not lower or commit.committed_offset >= lower[-1].committed_offset:
            lower.append(commit)
    return upper, lower


def _sawtooth(group: GroupCase, key: KeyHistory, upper: Sequence[CommitRow], lower: Sequence[CommitRow], inputs: Inputs) -> Finding:
    values = [commit.committed_offset for commit in lower]
    is_constant = len(set(values)) == 1
    chains = [f"{some([str(commit.committed_offset) for commit in chain])}{_producers(chain)}" for chain in (upper, lower)]
    sentence = f"two writers alternate: one commits {chains[0]}, and the other commits {chains[1]}"
    if is_constant:
        sentence += f"; the second writer commits {values[0]} again and again: a zombie with an old offset in memory"
    start = (inputs.start_offsets or {}).get((key.topic, key.partition))
    if start is not None and values[-1] < start:
        sentence += f"; the topic partition now starts at {start}, so a consumer that restarts from {values[-1]} is out of range"
    return finding(
        "IC-13",
        sentence,
        key,
        log_context=group.log_context,
        evidence=[*upper, *lower],
        not_excluded=["an application that commits a lower, safe offset again on purpose"],
        remedy="Find the second process with this group id, or with these producer ids, and stop it",
    )


def _producers(chain: Sequence[CommitRow]) -> str:
    producers = sorted({commit.producer_id for commit in chain if commit.producer_id is not None})
    return f" (producer {some([str(producer) for producer in producers])})" if producers else ""


DETECTORS = (
    Detector(
        code="IC-02",
        title="Rewind: a lower offset overwrote a higher one around a rebalance",
        section="Offsets moved",
        in_group=find_rewinds_at_rebalances,
        by_time=True,
        traps=(
            "A deliberate seek back often changes all partitions of its member, not only those that moved",
            "A rewind while the group is Empty is a reset (IC-05b); if the leader epoch fell too, the topic was recreated (IC-07)",
            "Rewinds that alternate with rises come from two writers (IC-13)",
            "Two commits of one member in the wrong order have no change of owner near them",
            "A transactional commit that was written earlier, and took effect later, is no rewind",
        ),
    ),
    Detector(
        code="IC-13",
        title="Sawtooth: two writers alternate on one key",
        section="Offsets moved",
        in_group=find_sawteeth,
        traps=(
            "Some applications commit a lower, safe offset again on purpose",
            "A zombie with a transactional id of its own is not fenced: the sentence shows its producer id",
        ),
        better_with=("--start-offsets",),
    ),
)
