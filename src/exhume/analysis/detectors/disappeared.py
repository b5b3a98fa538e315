"""Offsets that disappeared: expired, deleted, or never counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from exhume.analysis.detectors.cases import Change, GroupCase, KeyLife
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.registry import Detector
from exhume.analysis.detectors.report import counted, finding, span
from exhume.analysis.detectors.retention import CHECK_MS
from exhume.analysis.detectors.sweeps import Removed, Sweep, sweeps
from exhume.findings import Finding

_NAMED = 5


def find_expired_while_idle(group: GroupCase, inputs: Inputs) -> Iterator[Finding]:
    """Tombstones of offsets whose age fits the retention.

    The age counts from when the group became Empty, for groups without members of their own and KIP-848 groups from the commit. Without
    `--retention`, what most removals of all groups speak for is taken, or a default of Kafka: 7 days, 1 day before 2.0. It is an incident
    where the group commits to one of the keys again: it began anew, from wherever its clients begin.
    """
    for sweep in sweeps(group, inputs):
        for topic in sorted(sweep.topics):
            expired = [removed for removed in sweep.removed if removed.key.topic == topic and removed.verdict == "expired"]
            expired = [removed for removed in expired if removed.removal.value is not None or removed.age_ms is not None]
            if expired:
                yield _expired(sweep, topic, expired, inputs)


def _expired(sweep: Sweep, topic: str, expired: Sequence[Removed], inputs: Inputs) -> Finding:
    age_ms, counted_from = max((removed.age_ms or 0, removed.counted_from) for removed in expired)
    came_back = [(removed, change) for removed in expired if (change := _first_after(removed.key, removed.removal.record_offset))]
    sentence = f"{_partitions(topic, expired)} expired {span(age_ms)} after {counted_from}"
    if came_back:
        moves = [
            f"{topic}-{removed.key.partition} {before.committed_offset} → {change.commit.committed_offset}"
            f" ({change.commit.committed_offset - before.committed_offset:+d})"
            for removed, change in came_back
            if (before := removed.removal.value) is not None
        ]
        sentence += f", and the group committed again: {_some(moves) or 'what was there before is not known'}"
    is_reset = any(
        removed.removal.value is not None and change.commit.committed_offset != removed.removal.value.committed_offset
        for removed, change in came_back
    )
    late_ms = max(removed.late_ms or 0 for removed in expired)
    not_excluded = []
    if inputs.retention_ms is None and expired[0].counted_from in ("the group became Empty", "the commit"):
        not_excluded.append("another retention: none was given")
    if late_ms > CHECK_MS:
        not_excluded.append(f"a request to delete it: it was due {span(late_ms)} before, and passes come every ten minutes")
    elif not sweep.nearby():
        not_excluded.append("a request to delete it when it was due anyway: nothing else was removed at that time")
    if not sweep.group.around.is_complete_at(sweep.record_offset):
        not_excluded.append(f"commits and group records in front of record {sweep.group.around.complete_from_offset} that compaction took")
    return finding(
        "IC-01",
        sentence,
        sweep.group,
        severity="incident" if is_reset else "warn" if came_back else "info",
        confidence="possible" if late_ms > CHECK_MS else "likely",
        topic=topic,
        partition=expired[0].key.partition if len(expired) == 1 else None,
        evidence=[*(removed.removal for removed in expired), *(change for _, change in came_back)],
        not_excluded=not_excluded,
        remedy="Raise offsets.retention.minutes above the longest pause; exhume reset-plan --lost restores what went" if is_reset else None,
    )


def _first_after(key: KeyLife, record_offset: int) -> Change | None:
    """The first commit to this key behind a tombstone."""
    return next((change for change in key.of("back") if change.commit.settled_offset > record_offset), None)


def _partitions(topic: str, removed: Sequence[Removed]) -> str:
    """These offsets for people: `the offset of orders-0`, `2 offsets of orders (0, 1)`."""
    if len(removed) == 1:
        return f"the offset of {topic}-{removed[0].key.partition}"
    return f"{counted(len(removed), 'offset')} of {topic} ({_some([str(each.key.partition) for each in removed])})"


def _some(texts: Sequence[str]) -> str:
    """The first few, and how many more there are."""
    more = f" and {len(texts) - _NAMED} more" if len(texts) > _NAMED else ""
    return ", ".join(texts[:_NAMED]) + more


DETECTORS = (
    Detector(
        code="IC-01",
        title="Offsets expired while the group was idle or empty",
        section="Offsets disappeared",
        in_group=find_expired_while_idle,
        traps=(
            "A request to delete a group looks alike, but its age fits no retention, and no other group is swept at that time",
            "The deletion of a topic takes that topic from every group at once",
            "Compaction may have taken the record that says when the group became Empty: the age is then not known",
            "A leader change between the two moments means two clocks",
        ),
        better_with=("--retention",),
    ),
)
