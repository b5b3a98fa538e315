"""Find times in which all groups of a broker were silent at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from exhume.analysis.detectors.cases import Epoch, GroupCase, PartitionCase, Silence, TopicCase
from exhume.analysis.detectors.commit_loops.columns import KeyColumn
from exhume.analysis.detectors.report import Proof, counted, finding, some, span
from exhume.durations import HOUR_MS, MINUTE_MS
from exhume.findings import Finding

#: The least length, and the least number of usual intervals in it.
_LEAST_MS, _LEAST_MISSED = 10 * MINUTE_MS, 20
#: Silences of groups that begin and end this close together are one.
_TOGETHER_MS = 2 * MINUTE_MS
#: At least this many groups are silent together.
_LEAST_GROUPS = 3
#: The leader epoch of a partition rises less often within an hour, even if all brokers of a small cluster start again.
_MOST_CHANGES = 10


@dataclass(frozen=True, slots=True)
class _Silent:
    """A group that committed nothing for a time, in which it usually commits many times."""

    partition: PartitionCase
    group: GroupCase
    silence: Silence

    def is_with(self, other: _Silent) -> bool:
        one, two = self.silence, other.silence
        starts, ends = one.from_timestamp_ms - two.from_timestamp_ms, one.to_timestamp_ms - two.to_timestamp_ms
        return abs(starts) <= _TOGETHER_MS and abs(ends) <= _TOGETHER_MS


def find_all_silent(case: TopicCase) -> Iterator[Finding]:
    """Find the times in which all groups of a replica were silent: see `find_silence`."""
    for replica in dict.fromkeys(partition.log_context.replica for partition in case.partitions):
        partitions = [partition for partition in case.partitions if partition.log_context.replica == replica]
        waiting = [
            _Silent(partition, group, silence)
            for partition in partitions
            for group in partition.groups
            for silence in group.silences
            if silence.length_ms >= max(_LEAST_MS, _LEAST_MISSED * silence.usual_interval_ms)
        ]
        waiting.sort(key=lambda each: (each.silence.from_timestamp_ms, -each.silence.length_ms))
        while waiting:
            together = [each for each in waiting if each.is_with(waiting[0])]
            waiting = [each for each in waiting if each not in together]
            if len({each.group.group for each in together}) >= _LEAST_GROUPS and not _is_another_at_work(partitions, together):
                yield from _outage(partitions, together)


def _span_of(together: Sequence[_Silent]) -> tuple[int, int]:
    """Return the time in which all of them were silent."""
    return max(each.silence.from_timestamp_ms for each in together), min(each.silence.to_timestamp_ms for each in together)


def find_leader_changes(case: TopicCase) -> Iterator[Finding]:
    """Find offsets partitions whose leader changed again and again: see `find_silence`."""
    for partition in case.partitions:
        log_context = partition.log_context
        most = max(_hours(_new_leaders(log_context.epochs)), key=len, default=())
        changes = len(most) - 1
        if changes < _MOST_CHANGES:
            continue
        length_ms = (most[-1].first_timestamp_ms or 0) - (most[0].first_timestamp_ms or 0)
        yield finding(
            "IC-37",
            f"this offsets partition got {counted(changes, 'new leader')} within {span(length_ms)}, with leader epochs from"
            f" {most[0].leader_epoch} to {most[-1].leader_epoch}: each new leader loads the partition, and its groups have no"
            " coordinator until then",
            log_context,
            severity="warn",
            confidence="likely",
            evidence=[
                {
                    "record_offset": each.first_record_offset,
                    "timestamp_ms": each.first_timestamp_ms,
                    "what": f"leader epoch {each.leader_epoch}",
                }
                for each in most
            ],
            not_excluded=("a rolling restart of many brokers",),
            remedy="Search the logs of the brokers and of the controller for a broker that comes and goes",
        )


def _new_leaders(epochs: Sequence[Epoch]) -> list[Epoch]:
    """Return the epochs that are higher than all before."""
    found: list[Epoch] = []
    for epoch in epochs:
        if epoch.first_timestamp_ms is not None and epoch.leader_epoch > (found[-1].leader_epoch if found else -1):
            found.append(epoch)
    return found


def _hours(epochs: Sequence[Epoch]) -> Iterator[Sequence[Epoch]]:
    """Yield the epochs within an hour from each one on."""
    last = 0
    for first, begin in enumerate(epochs):
        last = max(last, first)
        while last + 1 < len(epochs) and 0 <= (epochs[last + 1].first_timestamp_ms or 0) - (begin.first_timestamp_ms or 0) <= HOUR_MS:
            last += 1
        yield epochs[first : last + 1]


def _is_another_at_work(partitions: Sequence[PartitionCase], together: Sequence[_Silent]) -> bool:
    """Return True if another group, which usually commits often enough, was at work; or if any group got a record of its own."""
    since_ms, until_ms = _span_of(together)
    silent = {id(each.group) for each in together}
    for partition in partitions:
        for group in partition.groups:
            between = (since_ms < (record.timestamp_ms or 0) < until_ms - _TOGETHER_MS for record in group.records)
            if any(between):
                return True
            if id(group) in silent or group.first_commit_ms is None or group.last_commit_ms is None:
                continue
            is_there = group.first_commit_ms < until_ms and group.last_commit_ms > since_ms
            is_frequent = group.usual_interval_ms is not None and _LEAST_MISSED * group.usual_interval_ms <= until_ms - since_ms
            if is_there and is_frequent and not _covers(group, since_ms, until_ms):
                return True
    return False


def _covers(group: GroupCase, since_ms: int, until_ms: int) -> bool:
    """Return True if this group was silent for the whole time too."""
    return any(each.from_timestamp_ms <= since_ms and each.to_timestamp_ms >= until_ms for each in group.silences)


def _outage(partitions: Sequence[PartitionCase], together: Sequence[_Silent]) -> Iterator[Finding]:
    since_ms, until_ms = _span_of(together)
    epochs = [
        (partition, epoch)
        for partition in partitions
        for epoch in partition.log_context.epochs[1:]
        if epoch.first_timestamp_ms is not None and since_ms <= epoch.first_timestamp_ms <= until_ms + _TOGETHER_MS
    ]
    again = [each for each in together if _has_new_generation(each.group, until_ms)]
    repeating = [each for each in together if each.group.keys.total(KeyColumn.REPEATS)]
    signs = []
    if epochs:
        signs.append(f"{counted(len(epochs), 'offsets partition')} had a new leader then")
    if 2 * len(again) >= len(together):
        signs.append(f"{counted(len(again), 'group')} began a new generation then")
    if 2 * len(repeating) >= len(together):
        signs.append(f"{counted(len(repeating), 'group')} also commit unchanged offsets, so they were not idle")
    where = max(partitions, key=lambda partition: sum(each.partition is partition for each in together)).log_context
    names = some(sorted({each.group.group for each in together}))
    rows: list[Proof] = [
        {"record_offset": each.silence.from_record_offset, "timestamp_ms": each.silence.from_timestamp_ms, "what": "the last commit before"}
        for each in together
        if each.partition.log_context is where
    ]
    yield finding(
        "IC-37",
        f"all {counted(len(together), 'group')} that commit often committed nothing for {span(until_ms - since_ms)}, from and to the same"
        f" time: {names}{''.join(f'; {sign}' for sign in signs)}",
        where,
        severity="warn" if signs else "info",
        confidence="likely" if len(signs) > 1 else "possible",
        evidence=rows,
        not_excluded=("topics that got no records in that time",) if len(signs) < 2 else (),
        remedy="The log does not show the cause: check the brokers, and the network between them and their clients, at that time",
    )


def _has_new_generation(group: GroupCase, until_ms: int) -> bool:
    times_ms = [record.timestamp_ms for record in group.records if record.timestamp_ms is not None and record.epoch is not None]
    return any(abs(time_ms - until_ms) <= _TOGETHER_MS for time_ms in times_ms)
