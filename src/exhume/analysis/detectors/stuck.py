"""Find partitions whose owner makes no progress: it commits one offset again and again, or never commits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from exhume.analysis.detectors.cases import GroupCase
from exhume.analysis.detectors.commit_loops.columns import LEAST_REPEATS, KeyColumn
from exhume.analysis.detectors.commits import SameRun
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.keys import KeyHistory
from exhume.analysis.detectors.lags import LEAST_LAG
from exhume.analysis.detectors.registry import Detector
from exhume.analysis.detectors.report import MORE_NAMED, counted, finding, next_step, span, undecidable
from exhume.analysis.detectors.steps import who
from exhume.analysis.member_columns import is_opaque, member_at, owned_of
from exhume.analysis.memberships import Member, TopicPartition
from exhume.durations import HOUR_MS, MINUTE_MS
from exhume.findings import Confidence, Finding, Severity

#: An owner is stuck after this time at one offset, or after this time without a first commit.
STUCK_MS = 15 * MINUTE_MS
#: An earlier time at one offset is a warning if it lasted so long.
_LONG_AGO_MS = HOUR_MS
#: The owner repeats the offset at least once in this time.
_SLOWEST_REPEAT_MS = 5 * MINUTE_MS
#: A partition that rose all the time before would have risen this often.
_MISSED_RISES = 20
#: At least this many other partitions of the topic rise in the same time.
_RISING_OTHERS = 2


def find_stuck(group: GroupCase, inputs: Inputs) -> Iterator[Finding]:
    """An owner commits the same offset again and again for fifteen minutes or longer, and records come after it.

    The records show in `--end-offsets`, in a higher commit of another group in that time, or in two other partitions of the topic that
    rise, if this one rose steadily before: the last way leaves it possible. Without any of them it is undecidable for a partition that
    rose steadily before, and no finding for any other. An earlier time at one offset counts as well, if other partitions rose in it; below
    an hour it is `info`. Also an owner that never commits a partition for fifteen minutes, while it commits others and the partition has
    records.
    """
    hidden: list[KeyHistory] = []
    for key in group.keys.with_at_least(LEAST_REPEATS, KeyColumn.SAME_COUNT):
        run = key.same
        if run is not None and _is_stuck(run) and _is_owned_at_end(group, key, run):
            evidence = _records_after(group, key, run, inputs)
            if evidence is not None:
                yield _stuck(group, key, run, evidence, inputs)
            elif _is_steady(key, run) and not _has_end(key, inputs):
                hidden.append(key)
    for key in group.keys.with_at_least(1, KeyColumn.LONGEST_COUNT):
        run = key.longest_same
        if run is not None and run.length_ms >= 2 * STUCK_MS and _is_stuck(run) and _is_steady(key, run):
            others = _others_that_rose(group, key, run)
            if len(others) >= _RISING_OTHERS and group.log_context.is_complete_at(run.from_record_offset):
                yield _was_stuck(group, key, run, len(others))
    if hidden:
        names = ", ".join(f"{key.topic}-{key.partition}" for key in hidden[:MORE_NAMED])
        reason = f"the group commits the same offset of {names} again and again, and the log does not show records after it"
        evidence_rows = [key.last for key in hidden[:MORE_NAMED] if key.last is not None]
        remedy = "Add --end-offsets FILE, the output of kafka-get-offsets.sh --time latest"
        yield undecidable("IC-39", reason, group, remedy=remedy, evidence=evidence_rows)
    yield from _never_committed(group, inputs)


@dataclass(frozen=True, slots=True)
class _Evidence:
    """The records after an offset, as the end of a sentence."""

    sentence: str
    severity: Severity
    confidence: Confidence
    not_excluded: tuple[str, ...] = ()


def _is_stuck(run: SameRun) -> bool:
    return run.length_ms >= STUCK_MS and run.length_ms <= run.repeats * _SLOWEST_REPEAT_MS


def _is_owned_at_end(group: GroupCase, key: KeyHistory, run: SameRun) -> bool:
    """Return True if the group has members at the end, and the last repeat is not long before the end of the log."""
    end_ms = group.log_context.last_timestamp_ms
    is_recent = end_ms is not None and end_ms - run.to_ms <= max(2 * _SLOWEST_REPEAT_MS, 3 * run.length_ms / run.repeats)
    return is_recent and group.phase in ("active", "unrecorded") and not key.transactional


def _has_end(key: KeyHistory, inputs: Inputs) -> bool:
    return (key.topic, key.partition) in (inputs.end_offsets or {})


def _is_steady(key: KeyHistory, run: SameRun) -> bool:
    """Return True if most commits of this key outside the run changed the offset, and it would have risen many times in the run."""
    repeats = key.repeats - run.repeats
    rises = key.commits - 1 - key.repeats
    if rises < LEAST_REPEATS or repeats > rises:
        return False
    return run.repeats * rises / (rises + repeats) >= _MISSED_RISES


def _records_after(group: GroupCase, key: KeyHistory, run: SameRun, inputs: Inputs) -> _Evidence | None:
    """Return the evidence of records after the offset; None if nothing shows them."""
    least = max(LEAST_LAG, 2 * (key.usual_rise or 0))
    end = (inputs.end_offsets or {}).get((key.topic, key.partition))
    if end is not None:
        lag = end - run.committed_offset
        if lag <= 0:
            return None
        if lag < least:
            return _Evidence(f"; its lag is {lag}", "info", "possible", ("records that came after the last commit",))
        return _Evidence(f"; its lag is {lag}", "warn", "likely")
    reached = group.log_context.sightings.reached_since(key.topic, key.partition, run.from_ms)
    if reached is not None and reached - run.committed_offset >= least:
        return _Evidence(f"; another group committed {reached} of this partition in that time", "warn", "likely")
    others = _others_that_rose(group, key, run) if _is_steady(key, run) else []
    if len(others) < _RISING_OTHERS:
        return None
    not_excluded = ("a partition without new records: --end-offsets decides",)
    return _Evidence(f"; {counted(len(others), 'other partition')} of the topic rose in that time", "warn", "possible", not_excluded)


def _others_that_rose(group: GroupCase, key: KeyHistory, run: SameRun) -> list[TopicPartition]:
    """Return the other partitions of the topic that the group committed before, in and after this time, without such a run."""
    names = [name for name in group.keys.names if name[0] == key.topic and name[1] != key.partition]
    found = (group.keys.find(*name) for name in names)
    return [(other.topic, other.partition) for other in found if other is not None and _rose_in(other, run)]


def _rose_in(other: KeyHistory, run: SameRun) -> bool:
    last, first_ms, half_ms = other.last, other.first_timestamp_ms, run.length_ms / 2
    if last is None or last.timestamp_ms is None or first_ms is None or other.commits - 1 - other.repeats < LEAST_REPEATS:
        return False
    if first_ms > run.from_ms or last.timestamp_ms < run.to_ms - half_ms:
        return False
    runs = [each for each in (other.same, other.longest_same) if each is not None]
    runs_ms = [min(each.to_ms, run.to_ms) - max(each.from_ms, run.from_ms) for each in runs]
    pauses_ms = [min(each.to_ms, run.to_ms) - max(each.from_ms, run.from_ms) for each in other.pauses]
    return all(each <= half_ms for each in (*runs_ms, *pauses_ms))


def _owner_at_end(group: GroupCase, place: TopicPartition) -> Member | None:
    owners = group.memberships[-1].owners().get(place, []) if group.memberships else []
    return owners[0] if len(owners) == 1 else None


def _stuck(group: GroupCase, key: KeyHistory, run: SameRun, evidence: _Evidence, inputs: Inputs) -> Finding:
    owner = _owner_at_end(group, (key.topic, key.partition))
    by = "the group" if owner is None else f"the owner {who(owner)}"
    not_excluded = [*evidence.not_excluded, "a consumer that pauses the partition on purpose"]
    return finding(
        "IC-39",
        f"{by} has committed {run.committed_offset} again and again for {span(run.length_ms)} ({counted(run.repeats + 1, 'commit')}), until"
        f" the end of the log{evidence.sentence}: the consumer may fail at one record",
        key,
        log_context=group.log_context,
        severity=evidence.severity,
        confidence=evidence.confidence,
        evidence=[
            {"record_offset": run.from_record_offset, "timestamp_ms": run.from_ms, "what": f"the first commit of {run.committed_offset}"},
            *([key.last] if key.last is not None else []),
        ],
        member_id=None if owner is None else owner.member_id,
        not_excluded=not_excluded,
        remedy=next_step(
            f"Search the log of that client for an error at offset {run.committed_offset}; see its commits",
            inputs,
            "history",
            "--group",
            group.group,
            "--topic",
            key.topic,
            "--partition",
            f"{key.partition}",
        ),
    )


def _was_stuck(group: GroupCase, key: KeyHistory, run: SameRun, others: int) -> Finding:
    return finding(
        "IC-39",
        f"the group committed {run.committed_offset} again and again for {span(run.length_ms)} ({counted(run.repeats + 1, 'commit')}),"
        f" while {counted(others, 'other partition')} of the topic rose; then the offset changed again",
        key,
        log_context=group.log_context,
        severity="warn" if run.length_ms >= _LONG_AGO_MS else "info",
        confidence="possible",
        evidence=[
            {"record_offset": run.from_record_offset, "timestamp_ms": run.from_ms, "what": f"the first commit of {run.committed_offset}"}
        ],
        not_excluded=("a partition without new records for that time", "a consumer that paused the partition on purpose"),
        remedy=f"Search the logs of the clients for an error at offset {run.committed_offset}",
    )


def _never_committed(group: GroupCase, inputs: Inputs) -> Iterator[Finding]:
    """Find partitions that their owner at the end of the log never committed, while it committed others."""
    last, end_ms = group.memberships[-1] if group.memberships else None, group.log_context.last_timestamp_ms
    if last is None or last.kind not in ("classic", "consumer") or is_opaque(last) or end_ms is None or not group.keys:
        return
    if not group.log_context.is_complete_at(last.record_offset):
        return
    for place, owned_here in enumerate(owned_of(last)):
        missing = [owned for owned in owned_here if group.keys.find(*owned) is None]
        if not missing:
            continue
        others = [key for owned in owned_here if (key := group.keys.find(*owned)) is not None and key.commits >= LEAST_REPEATS]
        member = member_at(last, place)
        since_ms = _owned_since(group, member) if others else None
        if since_ms is None or end_ms - since_ms < STUCK_MS:
            continue
        if not any(key.last is not None and (key.last.timestamp_ms or 0) - since_ms >= STUCK_MS for key in others):
            continue
        for topic in sorted({topic for topic, _ in missing}):
            partitions = sorted(partition for name, partition in missing if name == topic)
            yield from _without_commit(group, inputs, member, topic, partitions, end_ms - since_ms)


def _owned_since(group: GroupCase, member: Member) -> int | None:
    """Return the time of the first of the last steps in which this member owned the same partitions."""
    since_ms, owned = None, {*member.owned}
    for step in reversed(group.memberships):
        then = step.members.get(member.member_id)
        if then is None or not owned <= {*then.owned}:
            break
        since_ms = step.timestamp_ms
    return since_ms


def _without_commit(  # noqa: PLR0917
    group: GroupCase, inputs: Inputs, member: Member, topic: str, partitions: Sequence[int], length_ms: int
) -> Iterator[Finding]:
    with_records: list[int] = []
    for partition in partitions:
        start = (inputs.start_offsets or {}).get((topic, partition), 0)
        end = (inputs.end_offsets or {}).get((topic, partition))
        reached = group.log_context.sightings.reached_since(topic, partition, 0)
        if (end is not None and end > start) or (end is None and reached is not None and reached > 0):
            with_records.append(partition)
    if not with_records:
        return
    named = ", ".join(map(str, with_records[:MORE_NAMED])) + (" …" if len(with_records) > MORE_NAMED else "")
    yield finding(
        "IC-39",
        f"the owner {who(member)} has never committed {counted(len(with_records), 'partition')} of {topic} ({named}) in {span(length_ms)},"
        " although it commits others, and the log or the end offsets show records there",
        group,
        severity="warn",
        confidence="possible",
        topic=topic,
        partition=with_records[0] if len(with_records) == 1 else None,
        evidence=[group.memberships[-1]],
        member_id=member.member_id,
        not_excluded=("a consumer that starts at the end of the partition, where no record came since",),
        remedy="Check that client: does it fetch this partition, and does it fail at its first record?",
    )


DETECTORS = (
    Detector(
        code="IC-39",
        title="Stuck on one record",
        section="Membership and assignment",
        in_group=find_stuck,
        by_time=True,
        traps=(
            "The Java consumer also commits unchanged offsets of partitions without new records",
            "The end offset of a partition may rise without records for the application: markers of transactions",
            "A client that commits changed offsets only commits nothing when it is stuck: that is IC-20b",
        ),
        better_with=("--end-offsets",),
    ),
)
