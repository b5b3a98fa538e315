"""Find groups in a wrong offsets partition, and differences between a live coordinator and the log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np

from exhume.analysis.detectors.cases import GroupCase, LogContext, PartitionCase, TopicCase
from exhume.analysis.detectors.inputs import Inputs, LiveOffset
from exhume.analysis.detectors.keys import KeyHistory
from exhume.analysis.detectors.registry import Detector
from exhume.analysis.detectors.report import NAMED, Proof, finding, next_step, some, undecidable
from exhume.analysis.number_columns import Flags, Int64s
from exhume.codecs.offsets_topic import DEFAULT_PARTITION_COUNT, hash_of_group, offsets_partition_of
from exhume.codecs.wire import REPLACEMENT
from exhume.findings import Finding

#: The highest partition count that is tried if none is given.
_MOST_PARTITIONS = 1000


def find_partition_count_changed(case: TopicCase, inputs: Inputs) -> Iterator[Finding]:
    """A group is in an offsets partition where its coordinator does not look.

    The right partition is the Java hash of the group id, modulo the number of offsets partitions: the given number, otherwise 50 if that
    fits all groups, otherwise any number that does. If none fits all groups, the number was changed: two numbers together explain all
    groups. The group loses its offsets in the partition that its coordinator no longer reads.
    """
    groups = [
        (partition, group)
        for partition in case.partitions
        if partition.log_context.offsets_partition is not None
        for group in partition.groups
        # A name with replaced bytes has another hash than the original.
        if REPLACEMENT not in group.group
    ]
    if not groups:
        return
    placed = _Placed.of((group.group, partition.log_context.offsets_partition or 0) for partition, group in groups)
    counts = _counts(placed, inputs.offsets_partitions)
    if counts is None:
        return
    now, other = counts
    misplaced = list(compress(groups, placed.is_misplaced(now)))
    by_group: defaultdict[tuple[str | None, str], list[GroupCase]] = defaultdict(list)
    for partition, group in groups:
        by_group[partition.log_context.replica, group.group].append(group)
    for partition, group in misplaced:
        yield _misplaced(partition, group, by_group[partition.log_context.replica, group.group], now, other, inputs=inputs)


@dataclass(frozen=True, slots=True)
class _Placed:
    """The hashes of group ids, and the offsets partition in which the records of each group are."""

    hashes: Int64s
    partitions: Int64s

    @classmethod
    def of(cls, places: Iterable[tuple[str, int]]) -> _Placed:
        groups, partitions = zip(*places, strict=True)
        return cls(np.array([hash_of_group(group) for group in groups], np.int64), np.array(partitions, np.int64))

    def is_misplaced(self, count: int) -> Flags:
        """Return for each group if a topic of this many partitions has it elsewhere."""
        elsewhere: Flags = self.hashes % count != self.partitions
        return elsewhere

    def misplaced(self, count: int) -> _Placed:
        rows = self.is_misplaced(count)
        return _Placed(self.hashes[rows], self.partitions[rows])


def _counts(placed: _Placed, given: int | None) -> tuple[int, int | None] | None:
    """Return the present count and a count that explains the other groups (None if none does); None if all groups are in place."""
    least = int(placed.partitions.max()) + 1
    candidates = [DEFAULT_PARTITION_COUNT, *range(least, _MOST_PARTITIONS + 1)]
    if given is not None:
        rest = placed.misplaced(given)
        return None if not len(rest.hashes) else (given, _fitting(rest, candidates))
    if _fitting(placed, [count for count in candidates if count >= least]) is not None:
        return None
    fits = {count: int(np.count_nonzero(~placed.is_misplaced(count))) for count in candidates}
    best = sorted(fits, key=lambda count: (-fits[count], count))[:20]
    for count in best:
        other = _fitting(placed.misplaced(count), candidates)
        if other is not None:
            return max(count, other), min(count, other)
    return (best[0], None) if fits[best[0]] > len(placed.hashes) / 2 else None


def _fitting(placed: _Placed, candidates: Sequence[int]) -> int | None:
    return next((count for count in candidates if not placed.is_misplaced(count).any()), None)


def _misplaced(
    partition: PartitionCase, group: GroupCase, everywhere: Sequence[GroupCase], now: int, other: int | None, *, inputs: Inputs
) -> Finding:
    own = partition.log_context.offsets_partition
    expected = offsets_partition_of(group.group, now)
    sentence = f"the group's records are in offsets partition {own}; with {now} offsets partitions its coordinator looks in {expected}"
    if other is not None:
        sentence += f"; with {other} offsets partitions it would look in {own}"
    others = [each for each in everywhere if each.log_context.offsets_partition != own]
    if others:
        sentence += f"; the group also has records in {', '.join(str(each.log_context.offsets_partition) for each in others)}"
        moves = [
            f"{key.topic}-{key.partition} {key.holds.committed_offset} → {new.holds.committed_offset}"
            for key in group.keys
            for each in others
            if key.holds is not None and (new := each.keys.find(key.topic, key.partition)) is not None and new.holds is not None
        ]
        if moves:
            sentence += f", where it started again: {', '.join(moves[:NAMED])}"
    return finding(
        "IC-21",
        sentence,
        group,
        severity="incident" if others else "warn",
        confidence="likely" if other is not None else "possible",
        evidence=_last_words(group),
        not_excluded=[
            *(
                ["a wrong partition count: exhume inferred it, since --offsets-partitions was not given"]
                if inputs.offsets_partitions is None
                else []
            ),
            "a directory that was renamed, or copied from another cluster",
        ],
        remedy=next_step("See its offsets by offsets partition", inputs, "state", "--group", group.group, "--table", "offsets"),
    )


def _last_words(group: GroupCase) -> list[Proof]:
    last = [key.last for key in group.keys if key.last is not None]
    return [*sorted(last, key=lambda commit: commit.record_offset)[-NAMED:], *group.records[-1:]]


def find_live_differs(case: TopicCase, inputs: Inputs) -> Iterator[Finding]:
    """A live coordinator shows other offsets than the log.

    The listing is the output of `kafka-consumer-groups.sh`, made when the log was copied. A higher offset than in the log may have been
    committed later, and a lower one by at most the usual rise a moment before: neither counts. The other differences count: an older
    offset, an offset that the log does not have, or one that the coordinator does not show. A group that the log does not have counts only
    if its offsets partition is complete. A coordinator that orders transactional commits by their markers makes such errors.
    """
    if inputs.live is None:
        reason = "the offsets of the live coordinator were not given"
        yield undecidable("IC-22", reason, remedy="Add --live FILE, the output of kafka-consumer-groups.sh --describe --all-groups")
        return
    listed: defaultdict[str, dict[tuple[str, int], LiveOffset]] = defaultdict(dict)
    for line in inputs.live:
        listed[line.group][line.topic, line.partition] = line
    for partition in case.partitions:
        for group in partition.groups:
            if group.group in listed:
                yield from _live_differs(group, listed[group.group], inputs.listed_topics, has_transactions=partition.markers > 0)
                group.forget()
    yield from _not_in_the_log(case, inputs, listed)


def _not_in_the_log(case: TopicCase, inputs: Inputs, listed: Mapping[str, Mapping[tuple[str, int], LiveOffset]]) -> Iterator[Finding]:
    """Find groups that the coordinator shows, and that have no record in their offsets partition, if that is complete."""
    count = inputs.offsets_partitions or DEFAULT_PARTITION_COUNT
    places = {(group.group, partition.log_context.offsets_partition) for partition in case.partitions for group in partition.groups}
    if any(offsets_partition_of(name, count) != number for name, number in places):
        return
    logs = {
        partition.log_context.offsets_partition: partition.log_context
        for partition in case.partitions
        if partition.log_context.is_complete_at(partition.log_context.start_offset)
    }
    for name in sorted(listed.keys() - {name for name, _ in places}):
        log_context = logs.get(offsets_partition_of(name, count))
        shown = [
            f"{topic}-{number} {line.committed_offset}"
            for (topic, number), line in listed[name].items()
            if line.committed_offset is not None
        ]
        if log_context is not None and shown:
            yield _differs(log_context, f"the coordinator shows {some(shown)}, and the log has no record of the group", group=name)


def _live_differs(
    group: GroupCase, live: Mapping[tuple[str, int], LiveOffset], listed_topics: frozenset[str] | None, *, has_transactions: bool
) -> Iterator[Finding]:
    for place, shown in live.items():
        key = group.keys.find(*place)
        if shown.committed_offset is None:
            continue
        if key is None:
            if group.log_context.is_complete_at(group.log_context.start_offset):
                sentence = f"the coordinator shows {shown.committed_offset}, and the log has no commit for this partition"
                yield _differs(group, sentence, topic=place[0], partition=place[1])
        elif key.holds is None:
            gone = key.removals[-1] if key.removals else None
            since = f"record {gone.record_offset} removed it" if gone is not None else "no commit took effect"
            sentence = f"the coordinator shows {shown.committed_offset}, and in the log {since}"
            yield _differs(group, sentence, key, [gone] if gone is not None else [])
        elif shown.committed_offset < key.holds.committed_offset - (key.usual_rise or 0):
            how = "it has an older value" + (", or it orders transactional commits by their markers" if has_transactions else "")
            sentence = f"the coordinator shows {shown.committed_offset}, and the log has {key.holds.committed_offset}: {how}"
            yield _differs(group, sentence, key, [key.holds])
    for key in group.keys:
        line = live.get((key.topic, key.partition))
        # A broker does not show the offsets of a topic that its client may not see.
        is_shown = (line is not None and line.committed_offset is not None) or (
            listed_topics is not None and key.topic not in listed_topics
        )
        if key.holds is not None and not is_shown and not any(each.outcome == "open" for each in key.dropped):
            yield _differs(group, f"the coordinator shows no offset, and the log has {key.holds.committed_offset}", key, [key.holds])


def _differs(
    about: GroupCase | LogContext,
    sentence: str,
    key: KeyHistory | None = None,
    evidence: Sequence[Proof] = (),
    *,
    group: str | None = None,
    topic: str | None = None,
    partition: int | None = None,
) -> Finding:
    return finding(
        "IC-22",
        sentence,
        about,
        group=group,
        topic=topic if key is None else key.topic,
        partition=partition if key is None else key.partition,
        evidence=evidence,
        not_excluded=("a listing from another time than the copy of the log", "commits between the listing and the copy"),
        remedy="Make the listing and the copy again, close together; a coordinator that reloads the log shows the offsets of the log",
    )


DETECTORS = (
    Detector(
        code="IC-21",
        title="The number of offsets partitions changed",
        section="The coordinator cannot read its log",
        in_topic=find_partition_count_changed,
        traps=(
            "A directory may have been renamed, or copied from another cluster",
            "The highest directory does not show the partition count: a broker has only some of the partitions",
            "A character beyond 16 bits in a group id counts as two in the hash",
        ),
        better_with=("--offsets-partitions",),
    ),
    Detector(
        code="IC-22",
        title="The live coordinator and the log disagree",
        section="The coordinator cannot read its log",
        in_topic=find_live_differs,
        traps=("The listing and the copy may be of different times", "A listing does not show keys with pending commits"),
        needs=("--live",),
    ),
)
