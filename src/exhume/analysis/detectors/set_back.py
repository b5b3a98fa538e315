"""Find offsets of a group that went far back together: by a tool, an old checkpoint, or a seek of the application."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from exhume.analysis.detectors.cases import GroupCase
from exhume.analysis.detectors.commits import Change
from exhume.analysis.detectors.keys import KeyHistory
from exhume.analysis.detectors.report import counted, finding, some
from exhume.analysis.detectors.steps import handover_before, since_ms, window_ms
from exhume.durations import MINUTE_MS
from exhume.findings import Finding

#: Offsets that fall within this time fall together: a client commits all of its partitions, or one after the other.
_TOGETHER_MS = MINUTE_MS
#: A fall is far if it is this many times the usual rise, and this many offsets: clients that start again repeat a few commits.
_FAR_RISES, _FAR_OFFSETS = 20, 100
#: At least this share of the partitions of the topic fall.
_SHARE = 0.8
#: A group that goes back more often does so on purpose.
_MOST_TIMES = 3

_Fall = tuple[KeyHistory, Change]


def find_set_back(group: GroupCase) -> Iterator[Finding]:
    """Find the times at which offsets of one topic went far back together: see `find_operator_resets`."""
    times = [*_together(_falls(group))]
    for falls in times:
        topic = falls[0][0].topic
        keys = [key for key in group.keys if key.topic == topic and _was_at_work(key, falls[0][1])]
        fell = {key.partition for key, _ in falls}
        if len(times) <= _MOST_TIMES and len(fell) >= _SHARE * len(keys):
            yield _set_back(group, topic, falls, len(keys))


def _falls(group: GroupCase) -> list[_Fall]:
    """Return the far falls that neither a change of owner nor another topic explains, and that no later commit undoes; in log order."""
    rewinds = group.keys.changed("rewind")
    is_rare = group.keys.counts_of("rewind")[rewinds.places] <= _MOST_TIMES
    found = []
    for key in group.keys.at(rewinds.places[is_rare]):
        changes = [*key.of("rewind", "after_rewind")]
        for number, change in enumerate(changes):
            after = changes[number + 1] if number + 1 < len(changes) else None
            if "rewind" not in change.reasons or not _is_far(key, change) or _is_undone(change, after):
                continue
            if not _is_at_handover(group, key, change):
                found.append((key, change))
    return sorted(found, key=lambda fall: fall[1].commit.record_offset)


def _is_far(key: KeyHistory, change: Change) -> bool:
    if key.usual_rise is None or change.commit.timestamp_ms is None or change.commit.producer_id is not None:
        return False
    is_of_topic = not change.reasons.isdisjoint(("leader_epoch", "topic_id"))
    return change.phase in ("active", "unrecorded") and not is_of_topic and -change.delta >= max(_FAR_RISES * key.usual_rise, _FAR_OFFSETS)


def _is_undone(change: Change, after: Change | None) -> bool:
    is_next = after is not None and "after_rewind" in after.reasons
    return is_next and after is not None and change.before is not None and after.commit.committed_offset >= change.before.committed_offset


def _is_at_handover(group: GroupCase, key: KeyHistory, change: Change) -> bool:
    """Return True if the partition got another owner just before: that is IC-02."""
    handover = handover_before(group, key, change.commit.record_offset) if change.could_be_in_memory else None
    after_ms = None if handover is None else since_ms(handover, change)
    return handover is not None and after_ms is not None and 0 <= after_ms <= window_ms(handover.step)


def _together(falls: Sequence[_Fall]) -> Iterator[list[_Fall]]:
    """Yield the falls of one topic that come within `_TOGETHER_MS`."""
    by_topic: dict[str, list[_Fall]] = {}
    for fall in falls:
        by_topic.setdefault(fall[0].topic, []).append(fall)
    for listed in by_topic.values():
        together: list[_Fall] = []
        for fall in listed:
            if together and (fall[1].commit.timestamp_ms or 0) - (together[0][1].commit.timestamp_ms or 0) > _TOGETHER_MS:
                yield together
                together = []
            together.append(fall)
        yield together


def _was_at_work(key: KeyHistory, fall: Change) -> bool:
    """Return True if this key was committed before the fall, and about then or later."""
    last, first = key.last, key.first_record_offset
    if last is None or last.timestamp_ms is None or first is None or first >= fall.commit.record_offset:
        return False
    return last.timestamp_ms >= (fall.commit.timestamp_ms or 0) - _TOGETHER_MS


def _set_back(group: GroupCase, topic: str, falls: Sequence[_Fall], keys: int) -> Finding:
    moves = [f"{topic}-{key.partition} {_before(change)} → {change.commit.committed_offset} ({change.delta:+d})" for key, change in falls]
    step = group.membership_before(falls[0][1].commit.record_offset)
    if step is None or not step.members:
        by = "a tool may have reset them, or its application started from an earlier position"
    else:
        by = f"the group had {counted(len(step.members), 'member')}, so no tool could reset them: the application may have gone back itself"
    return finding(
        "IC-05b",
        f"{counted(len(falls), 'offset')} of {counted(keys, 'partition')} of {topic} went back together, without another owner:"
        f" {some(moves)}; {by}",
        group,
        severity="warn",
        confidence="possible",
        topic=topic,
        partition=falls[0][0].partition if len(falls) == 1 else None,
        evidence=[*(change for _, change in falls), *([step] if step is not None else [])],
        not_excluded=("a topic that was created again (IC-07)", "an application that reads the topic again on purpose"),
        remedy="Check the log of the application at that time: a seek, an older checkpoint or savepoint, or a reset",
    )


def _before(change: Change) -> int | None:
    return None if change.before is None else change.before.committed_offset
