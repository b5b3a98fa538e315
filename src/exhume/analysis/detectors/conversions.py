"""Find groups that change between the classic and the consumer protocol."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from exhume.analysis.detectors.cases import GroupCase
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.registry import Detector
from exhume.analysis.detectors.report import counted, finding, span
from exhume.analysis.memberships import Membership
from exhume.durations import DAY_MS, MINUTE_MS
from exhume.findings import Finding

#: More conversions than this in a day are too many.
DAILY_CONVERSIONS = 2


def find_type_changes(group: GroupCase, inputs: Inputs) -> Iterator[Finding]:  # noqa: ARG001
    """A group changes its type (classic to consumer, or back) more than twice in a day; or an offset changes with the type.

    A conversion writes the tombstones of one type and the records of the other in one batch, or in two successive ones. It does not change
    offsets. So an offset that jumps or goes back within a minute of it is a finding of its own.
    """
    steps = group.memberships
    flips = [after for before, after in zip([None, *steps], steps, strict=False) if _is_flip(before, after)]
    if not flips:
        return
    for first, last in _busy_days(flips):
        days = flips[first : last + 1]
        length_ms = (days[-1].timestamp_ms or 0) - (days[0].timestamp_ms or 0)
        yield finding(
            "IC-31",
            f"the group changed its type {counted(len(days), 'time')} in {span(length_ms)}, the last time to {days[-1].kind}",
            group,
            confidence="proof",
            evidence=days,
            not_excluded=("records of a conversion that compaction removed",)
            if not group.log_context.is_complete_at(days[0].record_offset)
            else (),
            remedy="Members of both protocols join in turn: finish the migration, or set group.consumer.migration.policy=disabled",
        )
    for key in group.keys.with_changes("rewind", "jump"):
        for change in key.of("rewind", "jump"):
            near = next((flip for flip in flips if _is_near(flip, change.commit.timestamp_ms)), None)
            if near is not None:
                yield finding(
                    "IC-31",
                    f"the committed offset changed by {change.delta:+d} within a minute of the group's change to type {near.kind}",
                    key,
                    log_context=group.log_context,
                    severity="incident",
                    confidence="possible",
                    evidence=[near, change],
                    not_excluded=("a reset at the same time",),
                )


def _is_flip(before: Membership | None, after: Membership) -> bool:
    if after.is_tombstone:
        return False
    if after.converted_from is not None:
        return True
    return before is not None and before.is_tombstone and before.kind != after.kind and before.last_record_offset + 1 == after.record_offset


def _busy_days(flips: Sequence[Membership]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last of each run of conversions with more than two in a day."""
    spans: list[tuple[int, int]] = []
    for last in range(DAILY_CONVERSIONS, len(flips)):
        begin_ms, end_ms = flips[last - DAILY_CONVERSIONS].timestamp_ms, flips[last].timestamp_ms
        if begin_ms is None or end_ms is None or end_ms - begin_ms > DAY_MS:
            continue
        if spans and spans[-1][1] >= last - DAILY_CONVERSIONS:
            spans[-1] = (spans[-1][0], last)
        else:
            spans.append((last - DAILY_CONVERSIONS, last))
    yield from spans


def _is_near(flip: Membership, timestamp_ms: int | None) -> bool:
    return timestamp_ms is not None and flip.timestamp_ms is not None and abs(timestamp_ms - flip.timestamp_ms) <= MINUTE_MS


DETECTORS = (
    Detector(
        code="IC-31",
        title="Group changes its type back and forth",
        section="Membership and assignment",
        in_group=find_type_changes,
        traps=("Compaction may have removed one half of a conversion", "A migration and its rollback are two changes"),
    ),
)
