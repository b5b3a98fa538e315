"""Find groups whose lag grows until the end of the log: without members, or slower than the records come."""

from __future__ import annotations

from collections.abc import Iterator

from exhume.analysis.detectors.cases import GroupCase
from exhume.analysis.detectors.commit_loops.columns import USUAL
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.keys import KeyHistory
from exhume.analysis.detectors.lags import lag_of
from exhume.analysis.detectors.report import counted, finding, next_step, partition_list, some, span
from exhume.analysis.memberships import Membership
from exhume.durations import HOUR_MS, MINUTE_MS
from exhume.findings import Confidence, Finding

#: A group without members is no restart after this time, and no job between two runs after so many times its longest earlier pause.
_WITHOUT_MS, _PAUSES = 15 * MINUTE_MS, 2
#: It was at work for at least this time before.
_AT_WORK_MS = HOUR_MS
#: A group is slow if its speed is at most this share of its own average, and of that of the records.
_SLOW = 0.5
#: Its lag is large if it is the records of this time. A key is judged after this time, and if it still commits so often.
_LARGE_LAG_MS, _LEAST_MS, _OFTEN_MS = HOUR_MS, HOUR_MS, 10 * MINUTE_MS
#: A key still commits if its last commit is at most so many intervals before the end of the log.
_STILL = 5


def find_growing_lag(group: GroupCase, inputs: Inputs) -> Iterator[Finding]:
    """Find a group whose lag grows until the end of the log: see `find_stopped`."""
    if group.phase == "empty":
        yield from _without_members(group, inputs)
    else:
        yield from _too_slow(group, inputs)


def _confidence(inputs: Inputs) -> Confidence:
    return "likely" if inputs.end_offsets is not None else "possible"


def _without_members(group: GroupCase, inputs: Inputs) -> Iterator[Finding]:
    steps, end_ms = group.memberships, group.log_context.last_timestamp_ms
    places = [place for place, step in enumerate(steps) if step.members]
    if not places or places[-1] + 1 >= len(steps) or end_ms is None:
        return
    last, empty = steps[places[-1]], steps[places[-1] + 1]
    since_ms = empty.timestamp_ms
    if since_ms is None or end_ms - since_ms < max(_WITHOUT_MS, _PAUSES * _longest_pause_ms(steps[: places[-1] + 1])):
        return
    if since_ms - _began_ms(steps[: places[-1] + 1], since_ms) < _AT_WORK_MS:
        return
    lags = {
        (key.topic, key.partition): lag
        for key in group.keys
        if key.last is not None and (key.last.timestamp_ms or 0) <= since_ms and (lag := lag_of(group, key, inputs, since_ms))
    }
    if not lags:
        return
    named = some([f"{topic}-{partition} {lag}" for (topic, partition), lag in sorted(lags.items())])
    yield finding(
        "IC-18",
        f"the group has had no members for {span(end_ms - since_ms)}, until the end of the log, and {counted(len(lags), 'partition')} got"
        f" records after its offsets: {named}",
        group,
        severity="warn",
        confidence=_confidence(inputs),
        evidence=[last, empty],
        not_excluded=("an application that was switched off on purpose", "a job between two runs"),
        remedy="Start the application again before its offsets expire, or delete the group if it is not needed",
    )


def _longest_pause_ms(steps: list[Membership]) -> int:
    """Return the longest time without members among these steps."""
    pauses_ms = [0]
    since_ms: int | None = None
    for step in steps:
        if step.members and since_ms is not None and step.timestamp_ms is not None:
            pauses_ms.append(step.timestamp_ms - since_ms)
        since_ms = None if step.members else step.timestamp_ms if since_ms is None else since_ms
    return max(pauses_ms)


def _began_ms(steps: list[Membership], until_ms: int) -> int:
    """Return the time of the first of the last steps that have members; pauses shorter than a restart do not count."""
    began_ms, empty_until_ms = until_ms, until_ms
    for step in reversed(steps):
        if step.timestamp_ms is None:
            continue
        if step.members:
            began_ms = empty_until_ms = step.timestamp_ms
        elif empty_until_ms - step.timestamp_ms >= _WITHOUT_MS:
            break
    return began_ms


def _too_slow(group: GroupCase, inputs: Inputs) -> Iterator[Finding]:
    slow: dict[str, list[tuple[KeyHistory, int, float]]] = {}
    for key in group.keys.unbroken(2 * USUAL, _LEAST_MS):
        judged = _lag_and_share(group, key, inputs)
        if judged is not None:
            slow.setdefault(key.topic, []).append((key, *judged))
    for topic, listed in sorted(slow.items()):
        named = some([f"{key.topic}-{key.partition} {lag}" for key, lag, _ in listed])
        share = sum(share for _, _, share in listed) / len(listed)
        yield finding(
            "IC-18",
            f"the lag of the group grows in {partition_list([(topic, key.partition) for key, _, _ in listed])}: it reads {share:.0%}"
            f" as fast as records come, and slower than before; its lag is {named}",
            group,
            severity="warn",
            confidence=_confidence(inputs),
            topic=topic,
            partition=listed[0][0].partition if len(listed) == 1 else None,
            evidence=[key.last for key, _, _ in listed if key.last is not None],
            not_excluded=("a group that began with a large lag",),
            remedy=next_step(
                "Search the cause in the application: slow processing, or too few members; see its commits",
                inputs,
                "history",
                "--group",
                group.group,
                "--topic",
                topic,
            ),
        )


def _lag_and_share(group: GroupCase, key: KeyHistory, inputs: Inputs) -> tuple[int, float] | None:
    """Return the lag of a key whose lag grows, and its speed as a share of that of the records; None if it does not grow."""
    last, first, first_ms, end_ms = key.last, key.first_committed_offset, key.first_timestamp_ms, group.log_context.last_timestamp_ms
    rise, interval_ms = key.usual_rise, key.usual_interval_ms
    if last is None or last.timestamp_ms is None or first is None or first_ms is None or end_ms is None or not rise or not interval_ms:
        return None
    length_ms = last.timestamp_ms - first_ms
    if interval_ms > _OFTEN_MS or end_ms - last.timestamp_ms > _STILL * interval_ms:
        return None
    lag = lag_of(group, key, inputs, last.timestamp_ms - int(_STILL * interval_ms))
    own, coming = (last.committed_offset - first) / length_ms, (last.committed_offset + lag - first) / length_ms
    speed = rise / interval_ms
    if lag < _LARGE_LAG_MS * coming or speed > _SLOW * own or speed > _SLOW * coming:
        return None
    return lag, speed / coming
