"""Find groups and offsets that requests or the deletion of a topic removed, and offsets topics that are new."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise, zip_longest
from statistics import median

from exhume.analysis.detectors.cases import GroupCase, GroupRecord, PartitionCase, TopicCase
from exhume.analysis.detectors.commit_loops.columns import KeyColumn
from exhume.analysis.detectors.commits import Change
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.keys import KeyHistory
from exhume.analysis.detectors.registry import Detector
from exhume.analysis.detectors.removal_evidence import (
    JudgedOffset,
    JudgedRemoval,
    confidence_of,
    judged_removals,
    other_causes,
    spelt_offsets,
    subscribed_topics,
)
from exhume.analysis.detectors.report import Proof, counted, finding, some, span, undecidable
from exhume.analysis.memberships import Membership
from exhume.analysis.removals.causes import WINDOWS, Cause
from exhume.durations import DAY_MS, HOUR_MS
from exhume.findings import Confidence, Finding
from exhume.moments import show_time

#: This many groups that begin within this time began together.
_BEGINNING_MS = 5 * 60_000
_MANY_GROUPS = 10
#: A group that lost its offsets went on elsewhere if it skipped this many times as many records as it usually reads, or went back.
_ELSEWHERE_RISES = 3
#: Groups of a new cluster commit lower offsets than this.
_NEAR_ZERO = 10_000
#: A group of a new cluster has read all records before its first commit in less than this time, at its usual speed.
_NEW_DATA_MS = HOUR_MS


def find_generation_restarts(group: GroupCase, inputs: Inputs) -> Iterator[Finding]:  # noqa: ARG001
    """A classic group became Empty without a committed offset, and the next run of the expiry task removed it.

    Its next members begin at generation 1: an application that uses generations as fencing tokens sees them decrease. Also a generation
    that is lower than the one before it, without a tombstone between the two.
    """
    # Generations of most groups only increase, and no tombstone follows: their members need not be read.
    generations = [record.epoch for record in group.records if record.epoch is not None]
    if all(record.value is not None for record in group.records) and all(earlier <= later for earlier, later in pairwise(generations)):
        return
    restarts = _restarts(group)
    if not restarts.reasons:
        return
    created = counted(len(restarts.highest), "time")
    highest = some([str(generation) for generation in restarts.highest])
    not_excluded = ["tombstones that compaction removed", "replicas that diverged"] if restarts.is_without_tombstone else []
    if not group.log_context.is_complete_at(group.records[0].record_offset):
        not_excluded.append("offsets that compaction removed together with their tombstones")
    is_again = len(restarts.highest) > 1
    yield finding(
        "IC-27",
        f"{some(restarts.reasons)}; it was created {created} in this log, and reached generation {highest}",
        group,
        severity="warn" if is_again else "info",
        evidence=restarts.evidence,
        not_excluded=not_excluded,
        remedy="Do not compare generations across a removal of the group; commit an offset to keep it" if is_again else None,
    )


@dataclass(slots=True)
class _Restarts:
    """The highest generation after each creation of a group, and the reasons why it was created again."""

    highest: list[int] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    evidence: list[Proof] = field(default_factory=list)
    is_without_tombstone: bool = False

    def add(self, reason: str, *steps: Membership) -> None:
        self.reasons.append(reason)
        self.evidence += steps


def _restarts(group: GroupCase) -> _Restarts:
    found = _Restarts()
    last: Membership | None = None
    for step, following in zip_longest(group.memberships, group.memberships[1:]):
        if step.is_tombstone or step.generation is None:
            last = None if step.is_tombstone else last
            continue
        if last is None or (last.generation or 0) > step.generation:
            if last is not None and not step.is_placeholder:
                found.add(f"generation {last.generation} was followed by {step.generation} without a tombstone", last, step)
                found.is_without_tombstone = True
            found.highest.append(step.generation)
        found.highest[-1] = max(found.highest[-1], step.generation)
        last = step
        if following is not None and following.is_tombstone and _is_swept_without_offsets(group, step, following):
            later = span((following.timestamp_ms or 0) - (step.timestamp_ms or 0))
            empty = f"the group became Empty at generation {step.generation} without an offset"
            found.add(f"{empty}, and was removed {later} later", step, following)
    return found


def _is_swept_without_offsets(group: GroupCase, empty: Membership, tombstone: Membership) -> bool:
    if not empty.is_empty or empty.is_placeholder or empty.timestamp_ms is None or tombstone.timestamp_ms is None:
        return False
    if tombstone.timestamp_ms - empty.timestamp_ms > WINDOWS.next_pass_ms:
        return False
    return not any(key.held_at(empty.last_record_offset + 1) for key in group.keys)


@dataclass(frozen=True, slots=True)
class _Deletion:
    """Offsets of a group that one act removed, not the expiry task. `record` is the tombstone of the group, if it was removed as well."""

    group: GroupCase
    timestamp_ms: int
    removed: Sequence[JudgedOffset]
    record: GroupRecord | None
    is_subscribed: bool
    #: The first commits of these keys after the removal, if the group went on elsewhere within a day.
    came_back: Sequence[Change] = ()

    @property
    def topics(self) -> list[str]:
        return sorted({each.key.topic for each in self.removed})

    @property
    def offsets(self) -> str:
        return spelt_offsets(self.removed)

    @property
    def age(self) -> str:
        """Return the time from the oldest commit to the first tombstone."""
        values = [each.removal.value for each in self.removed if each.removal.value is not None]
        return span(max((self.timestamp_ms - value.commit_timestamp_ms for value in values), default=0))

    @property
    def confidence(self) -> Confidence:
        return confidence_of(self.removed)

    @property
    def not_excluded(self) -> list[str]:
        return other_causes(self.removed)

    @property
    def moves(self) -> list[str]:
        """Each removed offset, and the first commit after it."""
        return [
            f"{each.key.topic}-{each.key.partition} {change.before.committed_offset} → {change.commit.committed_offset} ({change.delta:+d})"
            for each, change in zip(self.removed, self.came_back, strict=False)
            if change.before is not None
        ]

    @property
    def evidence(self) -> list[Proof]:
        return [*(each.removal for each in self.removed), *([self.record] if self.record is not None else []), *self.came_back]


def find_deletions(case: TopicCase, inputs: Inputs) -> Iterator[Finding]:
    """Offsets were removed before they were due. The other removals at that moment show the cause.

    Several groups lost offsets of one topic within ten seconds: the topic was deleted. A group lost all of its offsets, and its own
    tombstone followed or it never had a record of its own: the group was deleted. A group lost some of its offsets: a request deleted them;
    for a topic that members subscribe to, brokers refuse such a request, so the topic was deleted. It is `warn` if the group committed
    again within a day, at lower offsets or much higher ones. Several groups lost offsets of several
    topics at one moment, not younger than a minute: they may have expired by a shorter retention, so nothing is decided. Three such groups
    or more are one finding of IC-28.
    """
    of_topics: dict[str, list[_Deletion]] = {}
    for group in (group for partition in case.partitions for group in partition.groups):
        if group.keys.with_removals():
            for together in judged_removals(group, inputs):
                yield from _requests(together)
                with_topic = _of_cause(together, "topic_deleted")
                for topic in sorted(together.evidence.topics):
                    for deletion in _deletion(together, [each for each in with_topic if each.key.topic == topic]):
                        of_topics.setdefault(topic, []).append(deletion)
        group.forget()
    for _, deletions in sorted(of_topics.items()):
        for of_topic in _of_one_topic(sorted(deletions, key=lambda each: each.timestamp_ms)):
            yield _topic_deletion(of_topic)


def _of_cause(together: JudgedRemoval, cause: Cause) -> list[JudgedOffset]:
    return [each for each in together.offsets if each.judgement.cause == cause]


def _undecided(together: JudgedRemoval) -> list[JudgedOffset]:
    """Return the offsets whose cause no record shows; those of several groups at one moment are not among them."""
    return [each for each in _of_cause(together, "removed") if not each.judgement.is_value_missing and not each.judgement.is_swept]


def _deletion(together: JudgedRemoval, removed: Sequence[JudgedOffset]) -> Iterator[_Deletion]:
    """Yield these offsets, if there are any and their tombstones have times."""
    time_ms, step = together.timestamp_ms, together.step
    if removed and time_ms is not None:
        subscribed = None if step is None or step.is_empty else subscribed_topics(step)
        is_subscribed = bool(subscribed and subscribed.intersection(each.key.topic for each in removed))
        yield _Deletion(together.group, time_ms, removed, together.group_record, is_subscribed, _came_back(together, removed))


def _requests(together: JudgedRemoval) -> Iterator[Finding]:
    """Yield the requests that removed offsets of a group, and the removals that may have been requests."""
    for deletion in _deletion(together, _of_cause(together, "group_deleted")):
        sentence = f"the group was deleted with {deletion.offsets}, {deletion.age} after the last commit"
        yield _request(deletion, sentence)
    for deletion in _deletion(together, _of_cause(together, "offsets_deleted")):
        sentence = f"a request deleted {deletion.offsets}, {deletion.age} after the commit; the group stayed"
        yield _request(deletion, sentence)
    for deletion in _deletion(together, _undecided(together)):
        reason = f"{deletion.offsets} disappeared {deletion.age} after the commit, by one of these: {some(deletion.not_excluded)}"
        yield undecidable("IC-05a", reason, together.group, evidence=deletion.evidence)


def _came_back(together: JudgedRemoval, removed: Sequence[JudgedOffset]) -> list[Change]:
    """Return the first commits of these keys after the removal, if one came within a day and is not near the removed offset."""
    found = [(each.key, change) for each in removed if (change := together.first_after(each.key)) is not None]
    time_ms = together.timestamp_ms
    for key, change in found:
        back_ms = change.commit.timestamp_ms
        is_soon = time_ms is not None and back_ms is not None and back_ms - time_ms <= DAY_MS
        if is_soon and _is_elsewhere(key, change):
            return [change for _, change in found]
    return []


def _is_elsewhere(key: KeyHistory, change: Change) -> bool:
    """Return True if this commit went back, or further than the group usually comes in that time."""
    before, commit = change.before, change.commit
    if before is None or change.delta < 0 or not key.usual_rise or not key.usual_interval_ms:
        return before is not None and change.delta < 0
    passed_ms = (commit.timestamp_ms or 0) - (before.timestamp_ms or 0)
    return change.delta > _ELSEWHERE_RISES * key.usual_rise * max(passed_ms / key.usual_interval_ms, 1)


def _request(deletion: _Deletion, sentence: str) -> Finding:
    moves = deletion.moves
    if moves:
        sentence += f"; then the group committed again: {some(moves)}"
    return finding(
        "IC-05a",
        sentence,
        deletion.group,
        severity="warn" if moves else "info",
        confidence=deletion.confidence,
        topic=deletion.topics[0] if len(deletion.topics) == 1 else None,
        evidence=deletion.evidence,
        not_excluded=deletion.not_excluded,
    )


def _of_one_topic(deletions: Sequence[_Deletion]) -> Iterator[list[_Deletion]]:
    """Split these deletions, in the order of time, into those of one deletion of the topic."""
    together: list[_Deletion] = []
    for each in deletions:
        if together and each.timestamp_ms - together[-1].timestamp_ms > WINDOWS.topic_deletion_ms:
            yield together
            together = []
        together.append(each)
    yield together


def _topic_deletion(together: Sequence[_Deletion]) -> Finding:
    topic = together[0].topics[0]
    groups = sorted({each.group.group for each in together})
    first = together[0]
    took = f"topic {topic} was deleted at {show_time(first.timestamp_ms)}: {counted(len(groups), 'group')} lost offsets of it"
    refused = "; members subscribe to it, so a request would have been refused" if any(each.is_subscribed for each in together) else ""
    moves = [move for each in together for move in each.moves]
    again = f"; then {'it' if len(groups) == 1 else 'they'} committed again: {some(moves)}" if moves else ""
    about = first.group if len(groups) == 1 else first.group.log_context
    within = span(max(together[-1].timestamp_ms - first.timestamp_ms, WINDOWS.together_ms))
    return finding(
        "IC-05a",
        f"{took} within {within}: {some(groups)}{refused}{again}",
        about,
        severity="warn" if moves else "info",
        confidence="possible" if all(each.confidence == "possible" for each in together) else "likely",
        topic=topic,
        evidence=[proof for each in together if each.group.log_context is first.group.log_context for proof in each.evidence],
        not_excluded=dict.fromkeys(chain.from_iterable(each.not_excluded for each in together)),
    )


def find_new_offsets_topic(case: TopicCase, inputs: Inputs) -> Iterator[Finding]:  # noqa: ARG001
    """The offsets topic is newer than the data: it was wiped, recreated or replaced.

    Different topic ids in the partition directories of one replica prove it. A partition that begins at offset 0 more than a day after the
    others makes it likely, if many groups begin there together, or their first offsets are too high for new topics; otherwise it is only
    `info`, as in a new cluster. So do many groups that begin at generation 1 within minutes of the first record, and commit offsets too
    high for new topics: 10,000 or more, and more than an hour of records at the speed of the group (`info` up to a day). A log that does
    not begin at offset 0 has lost whole segments, which compaction alone never removes.
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
        ids = "; ".join(f"{topic_id} in {some([str(number) for number in sorted(numbers)])}" for topic_id, numbers in sorted(by_id.items()))
        sentence = f"the partitions of the offsets topic have {len(by_id)} different topic ids: {ids}"
        yield finding("IC-35", sentence, partitions[0].log_context, severity="incident", confidence="proof")


def _younger_partitions(partitions: Sequence[PartitionCase]) -> Iterator[Finding]:
    begun = [(each.log_context.first_timestamp_ms, each) for each in partitions if each.log_context.first_timestamp_ms is not None]
    if len(begun) < 2:
        return
    others_ms = median(time for time, _ in begun)
    for time, partition in begun:
        is_from_start = partition.log_context.start_offset == 0
        begun_together = _first_generations(partition)
        if is_from_start and time - others_ms > DAY_MS and len(begun_together) > 1:
            sentence = f"this partition begins at offset 0, {span(time - others_ms)} after the others, with groups at generation 1"
            traps = ["a partition that was added later", "a partition that no group belonged to before"]
            # In a new cluster, too, a partition begins with its first groups: a few, which commit low offsets.
            is_old_data = len(begun_together) >= _MANY_GROUPS or _is_older_than_log(_first_commits([partition]))
            yield finding(
                "IC-35",
                sentence,
                partition.log_context,
                severity="warn" if is_old_data else "info",
                confidence="likely" if is_old_data else "possible",
                evidence=begun_together,
                not_excluded=traps,
            )


def _first_generations(partition: PartitionCase) -> list[GroupRecord]:
    """Return the first records of the groups that begin at generation 1 within minutes of the first record of this log."""
    first_ms = partition.log_context.first_timestamp_ms
    found = []
    for group in partition.groups:
        # A placeholder may come before it, and the first member of a consumer group.
        record = next((record for record in group.records if record.epoch), None)
        if record is None or record.timestamp_ms is None or first_ms is None or record.timestamp_ms - first_ms > _BEGINNING_MS:
            continue
        if record.epoch == 1:
            found.append(record)
    return found


@dataclass(slots=True)
class _FirstCommits:
    """The first committed offsets of keys, and the times in which their groups read so many records, where the speed is known."""

    committed_offsets: list[int] = field(default_factory=list)
    ages_ms: list[float] = field(default_factory=list)


def _first_commits(partitions: Sequence[PartitionCase]) -> _FirstCommits:
    found = _FirstCommits()
    for group in (group for partition in partitions for group in partition.groups):
        keys = group.keys
        numbers = keys.number_list(KeyColumn.FIRST_VALUE), keys.number_list(KeyColumn.HAS_FIRST_VALUE)
        for value, has_value, rise, interval_ms in zip(*numbers, keys.usual_rises, keys.usual_intervals_ms, strict=True):
            if has_value:
                found.committed_offsets.append(value)
                if rise and interval_ms:
                    found.ages_ms.append(value / rise * interval_ms)
        group.forget()
    return found


def _is_older_than_log(committed: _FirstCommits) -> bool:
    """Return True if most of these first commits are too high for topics as new as the log."""
    if not committed.committed_offsets or median(committed.committed_offsets) < _NEAR_ZERO:
        return False
    return not committed.ages_ms or median(committed.ages_ms) > _NEW_DATA_MS


def _common_beginning(partitions: Sequence[PartitionCase]) -> Iterator[Finding]:
    begun = [each.log_context.first_timestamp_ms for each in partitions if each.log_context.first_timestamp_ms is not None]
    if not begun or any(each.log_context.start_offset for each in partitions) or max(begun) - min(begun) > _BEGINNING_MS:
        return
    firsts = {partition.log_context.offsets_partition: _first_generations(partition) for partition in partitions}
    count = sum(map(len, firsts.values()))
    if count < _MANY_GROUPS:
        return
    committed = _first_commits(partitions)
    about = next(partition.log_context for partition in partitions if firsts[partition.log_context.offsets_partition])
    if not committed.committed_offsets:
        reason = f"{count} groups begin at generation 1 within minutes of the first record, as in a new cluster, and none has committed"
        yield undecidable("IC-35", reason, about, evidence=firsts[about.offsets_partition])
        return
    if not _is_older_than_log(committed):
        return
    ages_ms = committed.ages_ms
    age = f", about {span(median(ages_ms))} of records at the usual speed" if ages_ms else ""
    is_old = not ages_ms or median(ages_ms) >= DAY_MS
    sentence = (
        f"all logs begin at {show_time(min(begun))} with offset 0, and {count} groups at generation 1 within minutes, but half of the"
        f" first committed offsets are {int(median(committed.committed_offsets))} or higher{age}: the data is older than"
        " the offsets topic"
    )
    yield finding(
        "IC-35",
        sentence,
        about,
        severity="incident" if is_old else "info",
        confidence="likely" if is_old else "possible",
        evidence=firsts[about.offsets_partition],
        not_excluded=[
            "a new cluster whose topics were mirrored from another",
            *([] if is_old else ["a new cluster whose producers began before its consumers"]),
        ],
        remedy="Find an older copy of the offsets topic; exhume reset-plan plans the return to its offsets",
    )


def _lost_segments(partitions: Sequence[PartitionCase]) -> Iterator[Finding]:
    for partition in partitions:
        first = partition.log_context.first_segment_offset
        if first:
            sentence = f"the log begins with a segment at offset {first}: earlier segments are missing, and compaction never removes one"
            traps = ["segments that were not copied", "records deleted by request"]
            remedy = "Check cleanup.policy of __consumer_offsets: it must be compact"
            yield finding("IC-35", sentence, partition.log_context, confidence="possible", not_excluded=traps, remedy=remedy)


DETECTORS = (
    Detector(
        code="IC-27",
        title="Group without committed offsets removed by the expiry task; its generation restarts",
        section="Offsets disappeared",
        in_group=find_generation_restarts,
        by_time=True,
        traps=(
            "A record with generation 0 and no members is a placeholder, unless a tombstone or a higher generation came before",
            "If generations decrease without a tombstone in between, compaction may have removed it, or replicas diverged",
        ),
    ),
    Detector(
        code="IC-05a",
        title="Group or offsets deleted on purpose",
        section="Offsets disappeared",
        in_topic=find_deletions,
        by_time=True,
        traps=(
            "After an outage, the expiry task removes offsets of many groups at one moment as well, but of many topics",
            "If only one offsets partition was copied, the deletion of a topic may show in one group only",
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
            "In a new cluster all groups begin at generation 1 as well, but commit low offsets",
            "Partitions that were added begin later than the others",
            "A topic with cleanup.policy=delete loses whole segments, and with them offsets that are still valid",
        ),
    ),
)
