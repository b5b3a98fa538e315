"""Groups and offsets that somebody removed, or that went with their topic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from statistics import median

from exhume.analysis.detectors.cases import GroupCase, GroupRecord, PartitionCase, TopicCase
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.registry import Detector
from exhume.analysis.detectors.report import Proof, counted, finding, partitions_of, some, span, undecidable
from exhume.analysis.detectors.retention import CHECK_MS
from exhume.analysis.detectors.sweeps import NEARBY_MS, TOGETHER_MS, Removed, Sweep, subscribed_topics, sweeps
from exhume.analysis.memberships import Membership
from exhume.analysis.times import show_time
from exhume.durations import DAY_MS
from exhume.findings import Finding

#: A sweep comes ten minutes after the last at most, and takes its time.
_NEXT_SWEEP_MS = CHECK_MS + 60_000
#: First generations so close together, of so many groups, are of one beginning.
_BEGINNING_MS = 5 * 60_000
_MANY_GROUPS = 10
#: Where data topics begin when they are new: groups of a new cluster commit below that.
_NEAR_ZERO = 10_000


def find_generation_restarts(group: GroupCase, inputs: Inputs) -> Iterator[Finding]:  # noqa: ARG001
    """Classic groups that became Empty without a committed offset and were removed by the next sweep.

    Such a group is gone within one check interval, and its next members begin at generation 1; who uses generations as fencing tokens sees
    them go back. Also generations that decrease while the log shows no tombstone between them.
    """
    # Most groups only ever go up, and are never removed: that is seen without their members.
    generations = [record.epoch for record in group.records if record.epoch is not None]
    if all(record.value is not None for record in group.records) and all(earlier <= later for earlier, later in pairwise(generations)):
        return
    histories: list[int] = []
    reasons: list[str] = []
    evidence: list[Proof] = []
    last: Membership | None = None
    for step, following in zip_longest(group.memberships, group.memberships[1:]):
        if step.is_tombstone or step.generation is None:
            last = None if step.is_tombstone else last
            continue
        if last is None or (last.generation or 0) > step.generation:
            if last is not None and not step.is_placeholder:
                reasons.append(f"generation {last.generation} was followed by {step.generation} without a tombstone")
                evidence += [last, step]
            histories.append(step.generation)
        histories[-1] = max(histories[-1], step.generation)
        last = step
        if following is not None and following.is_tombstone and _is_swept_without_offsets(group, step, following):
            assert following.timestamp_ms is not None
            assert step.timestamp_ms is not None
            later = span(following.timestamp_ms - step.timestamp_ms)
            reasons.append(f"it became Empty at generation {step.generation} without an offset and was removed {later} later")
            evidence += [step, following]
    if not reasons:
        return
    told = f"; {counted(len(histories), 'life', 'lives')} so far, up to generation {some([str(highest) for highest in histories])}"
    not_excluded = ["tombstones that compaction took", "replicas that diverged"] if "followed by" in " ".join(reasons) else []
    if not group.log_context.is_complete_at(group.records[0].record_offset):
        not_excluded.append("offsets that compaction took together with their tombstones")
    yield finding(
        "IC-27",
        some(reasons) + told,
        group,
        severity="warn" if len(histories) > 1 else "info",
        evidence=evidence,
        not_excluded=not_excluded,
        remedy="Do not compare generations over the lives of a group; commit an offset to keep it" if len(histories) > 1 else None,
    )


def _is_swept_without_offsets(group: GroupCase, empty: Membership, tombstone: Membership) -> bool:
    if not empty.is_empty or empty.is_placeholder or empty.timestamp_ms is None or tombstone.timestamp_ms is None:
        return False
    if tombstone.timestamp_ms - empty.timestamp_ms > _NEXT_SWEEP_MS:
        return False
    return not any(key.held_at(empty.last_record_offset + 1) for key in group.keys)


@dataclass(frozen=True, slots=True)
class _Deletion:
    """Tombstones of a group that no expiry pass accounts for."""

    group: GroupCase
    topics: frozenset[str]
    partitions: str
    timestamp_ms: int
    is_subscribed: bool
    has_kept: bool
    is_wide: bool
    has_group_tombstone: bool
    age: str
    evidence: tuple[Proof, ...]


def find_deletions(case: TopicCase, inputs: Inputs) -> Iterator[Finding]:
    """Tombstones of offsets that were not due, told apart by what went together.

    One topic of several groups within a minute, and of no other topic: the topic was deleted. All offsets of a group, with the group's own
    tombstone: the group was deleted. Some offsets of a group: these were deleted; where members subscribe to their topic, requests are
    refused, and it was the topic.
    """
    found = sorted(
        (deletion for partition in case.partitions for group in partition.groups for deletion in _deletions(group, inputs)),
        key=lambda deletion: deletion.timestamp_ms,
    )
    of_topics: list[list[_Deletion]] = []
    for deletion in found:
        if deletion.is_wide or len(deletion.topics) > 1 or (deletion.has_kept and _keeps_topic(deletion)):
            yield _request(deletion)
            continue
        last = next((each for each in reversed(of_topics) if each[-1].topics == deletion.topics), None)
        if last is not None and deletion.timestamp_ms - last[-1].timestamp_ms <= NEARBY_MS:
            last.append(deletion)
        else:
            of_topics.append([deletion])
    for together in of_topics:
        if len({each.group.group for each in together}) > 1 or any(each.is_subscribed for each in together):
            yield _topic_deletion(together)
        else:
            yield from map(_request, together)


def _deletions(group: GroupCase, inputs: Inputs) -> Iterator[_Deletion]:
    if not group.keys.with_removals():
        group.forget()
        return
    for sweep in sweeps(group, inputs):
        removed = [each for each in sweep.removed if each.removal.value is not None and _is_on_purpose(sweep, each)]
        if not removed or sweep.timestamp_ms is None:
            continue
        by_topic = {topic: [each.key.partition for each in removed if each.key.topic == topic] for topic in sorted(sweep.topics)}
        own_ages = [
            each.removal.timestamp_ms - each.removal.value.commit_timestamp_ms
            for each in removed
            if each.removal.value is not None and each.removal.timestamp_ms is not None
        ]
        subscribed = None if sweep.step is None or sweep.step.is_empty else subscribed_topics(sweep.step)
        yield _Deletion(
            group=group,
            topics=frozenset(sweep.topics),
            partitions=some([partitions_of(topic, numbers) for topic, numbers in by_topic.items() if numbers]),
            timestamp_ms=sweep.timestamp_ms,
            is_subscribed=bool(subscribed and sweep.topics & subscribed),
            has_kept=bool(sweep.kept()),
            is_wide=sweep.is_wide(),
            has_group_tombstone=_removes_group(sweep),
            age=span(max(own_ages, default=0)),
            evidence=(*(each.removal for each in removed), *([sweep.group_record] if sweep.group_record else [])),
        )
    group.forget()


def _is_on_purpose(sweep: Sweep, removed: Removed) -> bool:
    """Whether no pass removed this: it was not due, as far as that is known, or no pass may, and it went with its topic."""
    return removed.verdict in ("early", "unknown") or (removed.verdict == "forbidden" and sweep.is_deletion_of(removed.key.topic))


def _removes_group(sweep: Sweep) -> bool:
    """Whether the group itself went with its offsets: its own tombstone, or no group there ever was and nothing left."""
    return sweep.group_record is not None or (not sweep.group.records and not sweep.kept())


def _keeps_topic(deletion: _Deletion) -> bool:
    """Whether the group kept another offset of a topic of which one went."""
    went = {(proof.record_offset) for proof in deletion.evidence if hasattr(proof, "record_offset")}
    return any(
        key.topic in deletion.topics and key.holds is not None and not any(removal.record_offset in went for removal in key.removals)
        for key in deletion.group.keys
    )


def _request(deletion: _Deletion) -> Finding:
    expiry = "expiry, if the brokers' retention was shorter than thought"
    if deletion.has_group_tombstone:
        sentence = f"the group was deleted with {deletion.partitions}, {deletion.age} after the last commit"
        not_excluded = [expiry, *(["the deletion of the topic of its last offsets"] if len(deletion.topics) == 1 else [])]
    else:
        sentence = f"{deletion.partitions} deleted, {deletion.age} after the commit; the group stayed"
        not_excluded = [expiry, *(["the deletion of the topic"] if len(deletion.topics) == 1 else ["the deletion of several topics"])]
    return finding(
        "IC-05a",
        sentence,
        deletion.group,
        severity="info",
        confidence="possible" if deletion.is_wide else "likely",
        topic=next(iter(deletion.topics)) if len(deletion.topics) == 1 else None,
        evidence=deletion.evidence,
        not_excluded=not_excluded,
    )


def _topic_deletion(together: Sequence[_Deletion]) -> Finding:
    topic = next(iter(together[0].topics))
    groups = sorted({each.group.group for each in together})
    first = together[0]
    took = f"topic {topic} was deleted at {show_time(first.timestamp_ms)}: {counted(len(groups), 'group')} lost offsets of it"
    refused = "; members subscribe to it, so a request would have been refused" if any(each.is_subscribed for each in together) else ""
    about = first.group if len(groups) == 1 else first.group.log_context
    return finding(
        "IC-05a",
        f"{took} within {span(max(together[-1].timestamp_ms - first.timestamp_ms, TOGETHER_MS))}: {some(groups)}{refused}",
        about,
        severity="info",
        topic=topic,
        evidence=[proof for each in together if each.group.log_context is first.group.log_context for proof in each.evidence],
        not_excluded=["requests for each of these groups"] if len(groups) > 1 else [],
    )


def find_new_offsets_topic(case: TopicCase, inputs: Inputs) -> Iterator[Finding]:  # noqa: ARG001
    """An offsets topic that began anew: wiped, recreated or replaced.

    Partitions of one replica whose directories carry different topic ids are a proof. A partition that begins at offset 0 more than a day
    after its siblings began is likely one. So are many groups that all begin at generation 1 within minutes of the first record, while
    they commit offsets that no new topic has. A log that begins above 0 has lost whole segments, which compaction alone never takes.
    """
    by_replica: dict[str | None, list[PartitionCase]] = {}
    for partition in case.partitions:
        by_replica.setdefault(partition.log_context.replica, []).append(partition)
    for partitions in by_replica.values():
        yield from _different_ids(partitions)
        yield from _younger_partitions(partitions)
        yield from _common_beginning(partitions)
        yield from _lost_segments(partitions)


def _different_ids(partitions: Sequence[PartitionCase]) -> Iterator[Finding]:
    by_id: dict[str, list[int]] = {}
    for partition in partitions:
        log_context = partition.log_context
        if log_context.topic_id is not None and log_context.offsets_partition is not None:
            by_id.setdefault(log_context.topic_id, []).append(log_context.offsets_partition)
    if len(by_id) > 1:
        told = "; ".join(
            f"{topic_id} in {some([str(number) for number in sorted(numbers)])}" for topic_id, numbers in sorted(by_id.items())
        )
        sentence = f"partitions of the offsets topic carry {len(by_id)} topic ids: {told}"
        yield finding("IC-35", sentence, partitions[0].log_context, severity="incident", confidence="proof")


def _younger_partitions(partitions: Sequence[PartitionCase]) -> Iterator[Finding]:
    begun = [(each.log_context.first_timestamp_ms, each) for each in partitions if each.log_context.first_timestamp_ms is not None]
    if len(begun) < 2:
        return
    others_ms = median(time for time, _ in begun)
    for time, partition in begun:
        is_from_start = partition.log_context.start_offset == 0
        if is_from_start and time - others_ms > DAY_MS and len(_first_generations(partition)) > 1:
            sentence = f"this partition begins at offset 0, {span(time - others_ms)} after its siblings, with groups at generation 1"
            traps = ["a partition that was added", "a hash that gave it no group before"]
            yield finding(
                "IC-35", sentence, partition.log_context, severity="warn", evidence=_first_generations(partition), not_excluded=traps
            )


def _first_generations(partition: PartitionCase) -> list[GroupRecord]:
    """The first records of groups that begin at 1 within minutes of the first record of this log."""
    first_ms = partition.log_context.first_timestamp_ms
    found = []
    for group in partition.groups:
        # In front of it may be a placeholder, and of a consumer group its first member.
        record = next((record for record in group.records if record.epoch), None)
        if record is None or record.timestamp_ms is None or first_ms is None or record.timestamp_ms - first_ms > _BEGINNING_MS:
            continue
        if record.epoch == 1:
            found.append(record)
    return found


def _common_beginning(partitions: Sequence[PartitionCase]) -> Iterator[Finding]:
    begun = [each.log_context.first_timestamp_ms for each in partitions if each.log_context.first_timestamp_ms is not None]
    if not begun or any(each.log_context.start_offset for each in partitions) or max(begun) - min(begun) > _BEGINNING_MS:
        return
    firsts = {partition.log_context.offsets_partition: _first_generations(partition) for partition in partitions}
    count = sum(map(len, firsts.values()))
    if count < _MANY_GROUPS:
        return
    committed = []
    for group in (group for partition in partitions for group in partition.groups):
        committed += group.keys.first_committed_offsets()
        group.forget()
    about = next(partition.log_context for partition in partitions if firsts[partition.log_context.offsets_partition])
    if not committed:
        reason = f"{count} groups begin at generation 1 within minutes of the first record, as in a new cluster too, and none has committed"
        yield undecidable("IC-35", reason, about, evidence=firsts[about.offsets_partition])
        return
    if median(committed) < _NEAR_ZERO:
        return
    sentence = (
        f"all logs begin at {show_time(min(begun))} with offset 0, and {count} groups at generation 1 within minutes, while half of the"
        f" first committed offsets are {int(median(committed))} or more: the data is older than the offsets topic"
    )
    yield finding(
        "IC-35",
        sentence,
        about,
        severity="incident",
        evidence=firsts[about.offsets_partition],
        not_excluded=["a new cluster whose topics were mirrored from another"],
        remedy="Find an older copy of the offsets topic; exhume reset-plan plans the return to its offsets",
    )


def _lost_segments(partitions: Sequence[PartitionCase]) -> Iterator[Finding]:
    for partition in partitions:
        first = partition.log_context.first_segment_offset
        if first:
            sentence = (
                f"the log begins with a segment at offset {first}: whole segments in front of it are gone, which compaction never takes"
            )
            traps = ["segments that were not copied", "records deleted by request"]
            remedy = "Look at cleanup.policy of __consumer_offsets: it has to be compact"
            yield finding("IC-35", sentence, partition.log_context, confidence="possible", not_excluded=traps, remedy=remedy)


DETECTORS = (
    Detector(
        code="IC-27",
        title="Group without committed offsets removed at the next sweep; its generation restarts",
        section="Offsets disappeared",
        in_group=find_generation_restarts,
        by_time=True,
        traps=(
            "A record with generation 0 and no members is a placeholder: a new life only behind a tombstone or a higher generation",
            "Where generations decrease and no tombstone lies between, it may have been compacted away, or replicas diverged",
        ),
    ),
    Detector(
        code="IC-05a",
        title="Group or offsets deleted on purpose",
        section="Offsets disappeared",
        in_topic=find_deletions,
        by_time=True,
        traps=(
            "An expiry pass after an outage hits many groups at one time as well, but many topics too",
            "Where one offsets partition only was copied, the deletion of a topic may show one group only",
        ),
        better_with=("--retention",),
    ),
    Detector(
        code="IC-35",
        title="Offsets topic wiped, recreated or replaced",
        section="Offsets disappeared",
        in_topic=find_new_offsets_topic,
        by_time=True,
        traps=(
            "In a new cluster all groups begin at generation 1 as well, and commit small offsets",
            "Partitions that were added begin later than the others",
            "A topic whose cleanup.policy is delete loses whole segments, and with them offsets that nothing superseded",
        ),
    ),
)
