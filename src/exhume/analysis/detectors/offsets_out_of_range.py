"""Find committed offsets outside their topic partition: recreated topics, offsets before the data, and lost leader epochs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from exhume.analysis.detectors.cases import GroupCase, LogContext, TopicCase
from exhume.analysis.detectors.commit_loops.columns import CommitColumn, KeyColumn
from exhume.analysis.detectors.commit_rows import ChangeColumn, ChangeTable
from exhume.analysis.detectors.commits import GROUP_PHASES, Change
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.keys import KeyHistory
from exhume.analysis.detectors.owner_history import Handover
from exhume.analysis.detectors.registry import Detector
from exhume.analysis.detectors.report import counted, finding, next_step, some, span, undecidable
from exhume.analysis.detectors.steps import handover_before, named
from exhume.analysis.detectors.truncated import find_truncated
from exhume.analysis.number_columns import NONE, Flags
from exhume.findings import Confidence, Finding, Severity

#: An offset collapses if it is at most `_NEAR_ZERO`, and the offset before was over `_COLLAPSE` times as high, and over 1000.
_NEAR_ZERO, _COLLAPSE, _COLLAPSED_FROM = 1000, 10, 100
#: All partitions of a recreated topic collapse within this time.
_MINUTES_MS = 15 * 60_000


@dataclass(frozen=True, slots=True)
class _Sign:
    """A change of a key that suggests a recreated topic."""

    group: str
    partition: int
    log_context: LogContext
    change: Change


@dataclass(frozen=True, slots=True)
class _Signs:
    """Such changes of the keys of one group and one topic, in columns, with the partitions of the keys."""

    group: str
    partitions: Sequence[int]
    log_context: LogContext
    changes: ChangeTable

    def listed(self) -> Iterator[_Sign]:
        """Yield the changes as objects."""
        for partition, change in zip(self.partitions, self.changes.changes(), strict=True):
            yield _Sign(self.group, partition, self.log_context, change)


#: The signs of each topic.
_ByTopic = defaultdict[str, list[_Signs]]


def find_recreated_topics(case: TopicCase, inputs: Inputs) -> Iterator[Finding]:
    """Committed offsets beyond the end of their topic partition, and signs of a recreated topic.

    With `--end-offsets`: a committed offset is higher than the end offset, by more than one usual rise. Without: (a) the topic id in the
    commits of a key changes, so the topic was recreated; (b) the leader epoch in them decreases; (c) the offsets of all partitions of a
    topic fall to near 0, in all groups, within minutes. (b) and (c) together make it likely. (b) alone may also be an unclean leader
    election.

    Also one partition whose offsets go back when the leader epoch rises, or in two groups within minutes while the other partitions of the
    topic do not: an unclean leader election may have truncated it.
    """
    yield from find_truncated(case)
    by_id, by_epoch, collapses = _ByTopic(list), _ByTopic(list), _ByTopic(list)
    for group in case.groups():
        for key in group.keys if inputs.end_offsets is not None else ():
            yield from _beyond_end(group, key, inputs)
        changes = group.keys.changed("topic_id", "leader_epoch", "rewind")
        if len(changes):
            _take(by_id, group, changes.where(changes.has("topic_id")))
            _take(by_epoch, group, changes.where(changes.has("leader_epoch")))
            _take(collapses, group, changes.where(_are_collapses(changes)))
        group.forget()
    topics = {*by_id, *by_epoch, *collapses}
    keys_of = Counter(key.topic for group in case.groups() for key in group.keys if key.topic in topics and key.commits) if topics else {}
    for topic in sorted(topics):
        yield from _recreated(topic, by_id[topic], by_epoch[topic], collapses[topic], keys_of[topic])
    if inputs.end_offsets is None:
        reason = "committed offsets beyond the end of their topic partition show only with end offsets, and none were given"
        yield undecidable("IC-07", reason, remedy="Add --end-offsets FILE, the output of kafka-get-offsets.sh --time latest")


def _beyond_end(group: GroupCase, key: KeyHistory, inputs: Inputs) -> Iterator[Finding]:
    end = (inputs.end_offsets or {}).get((key.topic, key.partition))
    if end is None or key.holds is None or key.holds.committed_offset <= end:
        return
    beyond = key.holds.committed_offset - end
    if beyond <= (key.usual_rise or 0):
        return
    yield finding(
        "IC-07",
        f"the committed offset is {key.holds.committed_offset}, and the topic partition ends at {end}: a negative lag of {beyond}",
        key,
        log_context=group.log_context,
        severity="incident",
        evidence=[key.holds],
        not_excluded=["end offsets that were read long before the commit", "an untranslated offset of another cluster (IC-33)"],
        remedy=next_step(
            "Check if the topic was recreated or truncated, and see the earlier commits",
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


def _take(signs: _ByTopic, group: GroupCase, changes: ChangeTable) -> None:
    """Add these changes of keys of this group to the signs of their topics."""
    by_topic: defaultdict[str, list[int]] = defaultdict(list)
    names, places = group.keys.names, changes.places.tolist()
    for number, place in enumerate(places):
        by_topic[names[place][0]].append(number)
    for topic, numbers in by_topic.items():
        partitions = [names[places[number]][1] for number in numbers]
        signs[topic].append(_Signs(group.group, partitions, group.log_context, changes.at(np.array(numbers, np.int64))))


def _are_collapses(changes: ChangeTable) -> Flags:
    """Return True for each change to an offset near 0 from one far above it."""
    before, now = changes.before(CommitColumn.VALUE), changes.commit(CommitColumn.VALUE)
    is_low = (now <= _NEAR_ZERO) & (before > _COLLAPSE * np.clip(now, _COLLAPSED_FROM, _NEAR_ZERO))
    is_judged = (changes.change(ChangeColumn.HAS_BEFORE) != 0) & (changes.commit(CommitColumn.PHASE) != GROUP_PHASES.index("empty"))
    flags: Flags = is_low & is_judged
    return flags


def _recreated(
    topic: str, by_id: Sequence[_Signs], by_epoch: Sequence[_Signs], collapses: Sequence[_Signs], keys: int
) -> Iterator[Finding]:
    if by_id:
        signs = _listed(by_id)
        change = signs[0].change
        sentence = f"topic {topic} was recreated: its topic id changed from {change.known_topic_id} to {change.commit.topic_id}"
        yield _sign_finding(topic, signs, sentence, ("incident", "proof"))
        return
    times = [time for each in collapses for time in each.changes.commit(CommitColumn.TIME).tolist() if time != NONE]
    fell_together = bool(times) and max(times) - min(times) <= _MINUTES_MS
    fallen = {(each.group, partition, each.log_context.replica) for each in collapses for partition in each.partitions}
    is_whole = fell_together and len(fallen) == keys and keys > 1
    if by_epoch and (is_whole or (keys == 1 and collapses)):
        signs = _listed([*by_epoch, *collapses])
        different = {(sign.group, sign.partition, sign.log_context.origin, sign.change.commit): sign for sign in signs}
        sentence = f"topic {topic} was probably recreated: the leader epochs in its commits decrease, and all its offsets fall to near 0"
        yield _sign_finding(topic, [*different.values()], sentence, ("incident", "likely"))
    elif by_epoch:
        signs = _listed(by_epoch)
        change = signs[0].change
        epochs = f"from {change.known_leader_epoch} to {change.commit.leader_epoch}"
        sentence = (
            f"the leader epoch in commits of topic {topic} fell {epochs}: an unclean leader election may have truncated the topic,"
            " or it was recreated"
        )
        yield _sign_finding(topic, signs, sentence, ("warn", "possible"))
    elif is_whole:
        sentence = f"all offsets of topic {topic} fell to near 0 within {span(max(times) - min(times))}: it may have been recreated"
        yield _sign_finding(
            topic, _listed(collapses), sentence, ("warn", "possible"), not_excluded=["an application that reads the whole topic again"]
        )


def _listed(signs: Iterable[_Signs]) -> list[_Sign]:
    return [sign for each in signs for sign in each.listed()]


def _sign_finding(
    topic: str, signs: Sequence[_Sign], sentence: str, how: tuple[Severity, Confidence], *, not_excluded: Sequence[str] = ()
) -> Finding:
    groups = sorted({sign.group for sign in signs})
    partitions = sorted({sign.partition for sign in signs})
    moves = [
        f"{sign.group} {topic}-{sign.partition} {sign.change.before.committed_offset} → {sign.change.commit.committed_offset}"
        for sign in signs
        if sign.change.before is not None
    ]
    log_context = signs[0].log_context
    return finding(
        "IC-07",
        f"{sentence}; {counted(len(groups), 'group')}, {counted(len(partitions), 'partition')}: {some(moves)}",
        log_context,
        severity=how[0],
        confidence=how[1],
        group=groups[0] if len(groups) == 1 else None,
        topic=topic,
        partition=partitions[0] if len(partitions) == 1 else None,
        evidence=[sign.change for sign in signs if sign.log_context is log_context],
        not_excluded=not_excluded,
        remedy="Reset the groups to the start of the new topic: the old offsets mean nothing in it",
    )


def find_positions_before_the_data(case: TopicCase, inputs: Inputs) -> Iterator[Finding]:
    """Committed offsets below the start of their topic partition.

    The lag that monitors compute from them is too high: the records below the start offset are deleted, and the group cannot read them.
    """
    if inputs.start_offsets is None:
        reason = "committed offsets below the start of their topic partition show only with start offsets, and none were given"
        yield undecidable("IC-29", reason, remedy="Add --start-offsets FILE, the output of kafka-get-offsets.sh --time earliest")
        return
    for group in case.groups():
        for key in group.keys:
            start = inputs.start_offsets.get((key.topic, key.partition))
            if start is None or key.holds is None or key.holds.committed_offset >= start:
                continue
            gone = start - key.holds.committed_offset
            end = (inputs.end_offsets or {}).get((key.topic, key.partition))
            lag = (
                f"; its lag seems to be {end - key.holds.committed_offset}, but at most {end - start} are left to read"
                if end is not None
                else ""
            )
            yield finding(
                "IC-29",
                f"the committed offset is {key.holds.committed_offset}, and the topic partition starts at {start}:"
                f" {gone} offsets are deleted{lag}",
                key,
                log_context=group.log_context,
                confidence="proof",
                evidence=[key.holds],
                not_excluded=["start offsets that were read long after the last commit: an active group has moved on since"],
            )
        group.forget()


def handover_out_of_range(group: GroupCase, key: KeyHistory, change: Change) -> Handover | None:
    """Return the change of owner between a commit without a leader epoch and this commit.

    This commit must jump, or go back to an offset that may be the log start offset: below all earlier offsets of the key, or below the
    offset where the previous owner started. Otherwise, and if the key never has a leader epoch, returns None.
    """
    if change.before is None or change.before.leader_epoch != -1 or key.highest_leader_epoch < 0 or change.phase != "active":
        return None
    is_back = "rewind" in change.reasons and (change.commit.committed_offset == key.lowest or not change.could_be_in_memory)
    if not is_back and "jump" not in change.reasons:
        return None
    handover = handover_before(group, key, change.commit.record_offset)
    return handover if handover is not None and handover.step.record_offset >= change.before.record_offset else None


def find_lost_leader_epochs(group: GroupCase, inputs: Inputs) -> Iterator[Finding]:  # noqa: ARG001
    """A key with leader epochs was committed once without one, and the next owner started at another offset.

    Without the leader epoch a consumer cannot notice that the topic partition was truncated, and its position is out of range. The first
    commit of the next owner jumps, or goes back below all earlier offsets of the key, or below the offset where the previous owner started.
    A commit without a leader epoch alone is no finding.
    """
    changes = group.keys.changed("rewind", "jump")
    if not len(changes):
        return
    lost = (changes.before(CommitColumn.LEADER_EPOCH) == NONE) & (group.keys.numbers(KeyColumn.HIGHEST_LEADER_EPOCH)[changes.places] >= 0)
    for key in group.keys.at(changes.where(lost).places):
        for change in key.of("rewind", "jump"):
            handover = handover_out_of_range(group, key, change)
            if handover is None or change.before is None:
                continue
            low, high = change.before.committed_offset, change.commit.committed_offset
            sentence = (
                f"offset {low} was committed without a leader epoch; the partition moved from {named(handover.previous)}"
                f" to {named(handover.owner)}, and the next commit is {high} ({high - low:+d})"
            )
            traps = ["a client that never sends leader epochs", "Kafka Streams with exactly_once, which may omit the leader epoch"]
            yield finding(
                "IC-38",
                sentence,
                key,
                log_context=group.log_context,
                severity="incident",
                confidence="possible",
                evidence=[handover.step, change],
                not_excluded=traps,
                remedy="Check the start and end offsets of the topic partition at that time, and auto.offset.reset of the clients",
            )


DETECTORS = (
    Detector(
        code="IC-07",
        title="Committed offset beyond the end of its topic partition, or topic recreated",
        section="Offsets moved",
        in_topic=find_recreated_topics,
        traps=(
            "End offsets and commits are read at different times: up to one usual rise beyond the end means nothing",
            "A commit without a topic id or leader epoch shows no change of either",
            "Replication may write untranslated offsets of another cluster (IC-33)",
        ),
        needs=("--end-offsets",),
    ),
    Detector(
        code="IC-29",
        title="Committed offset below the start of its topic partition",
        section="Offsets moved",
        in_topic=find_positions_before_the_data,
        traps=("Start offsets may have been read after the commit", "The group may be healthy: its clients reset when they fetch"),
        needs=("--start-offsets",),
        better_with=("--end-offsets",),
    ),
)
LOST_LEADER_EPOCHS = (
    Detector(
        code="IC-38",
        title="Committed without leader epoch, then out of range",
        section="Offsets moved",
        in_group=find_lost_leader_epochs,
        traps=(
            "Some clients never send leader epochs",
            "An operator's reset contains no leader epoch; it happens while the group is Empty",
            "Kafka Streams with exactly_once may omit the leader epoch",
        ),
    ),
)
