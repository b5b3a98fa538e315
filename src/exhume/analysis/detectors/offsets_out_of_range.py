"""Committed offsets that lie outside of the data: topics that were recreated, positions that the data has left behind."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from exhume.analysis.detectors.cases import GroupCase, LogContext, TopicCase
from exhume.analysis.detectors.changes import ChangeTable
from exhume.analysis.detectors.commit_loops.columns import CommitColumn, Int64s
from exhume.analysis.detectors.commits import Change
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.keys import KeyHistory
from exhume.analysis.detectors.registry import Detector
from exhume.analysis.detectors.report import counted, finding, some, span, undecidable
from exhume.findings import Confidence, Finding, Severity

#: What is so near to 0 that a topic may have begun anew: so low, and so much lower than before.
_NEAR_ZERO, _COLLAPSE, _COLLAPSED_FROM = 1000, 10, 100
#: Collapses of all partitions of a topic come within minutes.
_MINUTES_MS = 15 * 60_000


@dataclass(frozen=True, slots=True)
class _Sign:
    """A change of a key that speaks for another incarnation of its topic."""

    group: str
    partition: int
    log_context: LogContext
    change: Change


def find_recreated_topics(case: TopicCase, inputs: Inputs) -> Iterator[Finding]:
    """Committed offsets beyond the end of the data log, and signs that a topic is not the one it was.

    With `--end-offsets`: a committed offset is higher than the end, by more than one usual rise. Without: (a) the topic id in the commits
    of a key changes: the topic was recreated; (b) the leader epoch in them decreases; (c) the offsets of all partitions of a topic collapse
    to near 0, in all groups, within minutes. (b) and (c) together make it likely, (b) alone may also be an unclean election.
    """
    by_id: defaultdict[str, list[_Sign]] = defaultdict(list)
    by_epoch: defaultdict[str, list[_Sign]] = defaultdict(list)
    collapses: defaultdict[str, list[_Sign]] = defaultdict(list)
    for group in case.groups():
        for key in group.keys if inputs.end_offsets is not None else ():
            yield from _beyond_end(group, key, inputs)
        for key in group.keys.at(_signs(group.keys.changed("topic_id", "leader_epoch", "rewind"))):
            for change in key.of("topic_id", "leader_epoch", "rewind"):
                sign = _Sign(group.group, key.partition, group.log_context, change)
                if "topic_id" in change.reasons:
                    by_id[key.topic].append(sign)
                if "leader_epoch" in change.reasons:
                    by_epoch[key.topic].append(sign)
                if _is_collapse(change):
                    collapses[key.topic].append(sign)
        group.forget()
    topics = {*by_id, *by_epoch, *collapses}
    keys_of = Counter(key.topic for group in case.groups() for key in group.keys if key.topic in topics and key.commits) if topics else {}
    for topic in sorted(topics):
        yield from _recreated(topic, by_id[topic], by_epoch[topic], collapses[topic], keys_of[topic])
    if inputs.end_offsets is None:
        reason = "whether committed offsets lie beyond the ends of the data logs depends on these, and they were not given"
        yield undecidable("IC-07", reason, remedy="Give --end-offsets")


def _beyond_end(group: GroupCase, key: KeyHistory, inputs: Inputs) -> Iterator[Finding]:
    end = (inputs.end_offsets or {}).get((key.topic, key.partition))
    if end is None or key.holds is None or key.holds.committed_offset <= end:
        return
    beyond = key.holds.committed_offset - end
    if beyond <= (key.usual_rise or 0):
        return
    yield finding(
        "IC-07",
        f"{key.holds.committed_offset} is committed and the data log ends at {end}: negative lag of {beyond}",
        key,
        log_context=group.log_context,
        severity="incident",
        evidence=[key.holds],
        not_excluded=["ends that were read long before the commit", "a literal offset of another cluster, written by replication (IC-33)"],
        remedy="Look whether the topic was recreated or cut; exhume history shows what was committed to the key before",
    )


def _signs(changes: ChangeTable) -> Int64s:
    """The places of the keys of these changes that have one that may be a sign, told from columns alone."""
    before, now = changes.before(CommitColumn.VALUE), changes.commit(CommitColumn.VALUE)
    may_be_collapse = (now <= _NEAR_ZERO) & (before // _COLLAPSE >= np.maximum(now, _COLLAPSED_FROM))
    return changes.where(may_be_collapse | changes.has("topic_id", "leader_epoch")).places


def _is_collapse(change: Change) -> bool:
    if change.before is None or change.phase == "empty":
        return False
    before, now = change.before.committed_offset, change.commit.committed_offset
    return now <= _NEAR_ZERO and before > _COLLAPSE * max(now, _COLLAPSED_FROM)


def _recreated(topic: str, by_id: Sequence[_Sign], by_epoch: Sequence[_Sign], collapses: Sequence[_Sign], keys: int) -> Iterator[Finding]:
    if by_id:
        change = by_id[0].change
        ids = f"topic id {change.known_topic_id} → {change.commit.topic_id}"
        yield _sign_finding(topic, by_id, f"{topic} was recreated: {ids}", ("incident", "proof"))
        return
    times = [sign.change.commit.timestamp_ms for sign in collapses if sign.change.commit.timestamp_ms is not None]
    fell_together = bool(times) and max(times) - min(times) <= _MINUTES_MS
    is_whole = fell_together and len({(sign.group, sign.partition, sign.log_context.replica) for sign in collapses}) == keys and keys > 1
    if by_epoch and (is_whole or (keys == 1 and collapses)):
        signs = {id(sign.change): sign for sign in (*by_epoch, *collapses)}
        sentence = f"{topic} was recreated, by all appearance: leader epochs of the data decrease, and all offsets collapse to near 0"
        yield _sign_finding(topic, [*signs.values()], sentence, ("incident", "likely"))
    elif by_epoch:
        change = by_epoch[0].change
        epochs = f"leader epoch {change.known_leader_epoch} → {change.commit.leader_epoch}"
        sentence = f"{epochs} in the commits of {topic}: its data may have been cut by an unclean election, or the topic recreated"
        yield _sign_finding(topic, by_epoch, sentence, ("warn", "possible"))
    elif is_whole:
        sentence = f"all offsets of {topic} collapse to near 0 within {span(max(times) - min(times))}: the topic may have been recreated"
        yield _sign_finding(topic, collapses, sentence, ("warn", "possible"), not_excluded=["an application that reads everything again"])


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
        remedy="Reset the groups to the start of the new topic: their positions mean nothing in it",
    )


def find_positions_before_the_data(case: TopicCase, inputs: Inputs) -> Iterator[Finding]:
    """Committed offsets below the start of the data log.

    The lag that monitors compute from them is a phantom as far as the data is gone: what is left to read begins at the start.
    """
    if inputs.start_offsets is None:
        reason = "whether committed offsets lie below the starts of the data logs depends on these, and they were not given"
        yield undecidable("IC-29", reason, remedy="Give --start-offsets")
        return
    for group in case.groups():
        for key in group.keys:
            start = inputs.start_offsets.get((key.topic, key.partition))
            if start is None or key.holds is None or key.holds.committed_offset >= start:
                continue
            gone = start - key.holds.committed_offset
            end = (inputs.end_offsets or {}).get((key.topic, key.partition))
            lag = f"; lag {end - key.holds.committed_offset} by the offsets, {end - start} in truth" if end is not None else ""
            yield finding(
                "IC-29",
                f"{key.holds.committed_offset} is committed and the data log begins at {start}: {gone} offsets are gone{lag}",
                key,
                log_context=group.log_context,
                confidence="proof",
                evidence=[key.holds],
                not_excluded=["starts that were read long after the last commit: a group that is at work has moved on since"],
            )
        group.forget()


DETECTORS = (
    Detector(
        code="IC-07",
        title="Committed offset beyond the end of the data log, topic recreated",
        section="Offsets moved",
        in_topic=find_recreated_topics,
        traps=(
            "Ends and commits are read at different times: less than one usual rise beyond the end says nothing",
            "A commit without a topic id, or without a leader epoch, says nothing about either",
            "Replication may write literal offsets of another cluster (IC-33)",
        ),
        needs=("--end-offsets",),
    ),
    Detector(
        code="IC-29",
        title="Committed offset below the start of the data log",
        section="Offsets moved",
        in_topic=find_positions_before_the_data,
        traps=("Starts may have been read later than the commit", "The group may be fine: its clients reset when they fetch"),
        needs=("--start-offsets",),
        better_with=("--end-offsets",),
    ),
)
