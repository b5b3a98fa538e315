"""Groups that are not where a coordinator looks, and coordinators that do not say what the log says."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from exhume.analysis.detectors.cases import GroupCase, LogContext, PartitionCase, TopicCase
from exhume.analysis.detectors.inputs import Inputs, LiveOffset
from exhume.analysis.detectors.keys import KeyHistory
from exhume.analysis.detectors.registry import Detector
from exhume.analysis.detectors.report import Proof, finding, some, undecidable
from exhume.codecs.offsets_topic import DEFAULT_PARTITION_COUNT, offsets_partition_of
from exhume.findings import Finding

#: Counts that are tried where none is given.
_MOST_PARTITIONS = 1000
_REPLACEMENT = "\ufffd"
_NAMED = 5


def find_partition_count_changed(case: TopicCase, inputs: Inputs) -> Iterator[Finding]:
    """Groups in a partition that a coordinator does not look for them in.

    A group belongs into the partition of its id's Java hash, modulo the number of partitions: the one given, else 50 if that fits all
    groups, else any that does. Where none fits all, the count was changed: the two counts are those that explain every group. What a group
    has in the partition that no coordinator reads any more is lost to it.
    """
    groups = [
        (partition, group)
        for partition in case.partitions
        if partition.log_context.offsets_partition is not None
        for group in partition.groups
        # Bytes that are no text are not what was hashed.
        if _REPLACEMENT not in group.group
    ]
    placed = [(group.group, partition.log_context.offsets_partition or 0) for partition, group in groups]
    counts = _counts(placed, inputs.offsets_partitions)
    if counts is None:
        return
    now, other = counts
    misplaced = [
        (partition, group)
        for partition, group in groups
        if offsets_partition_of(group.group, now) != partition.log_context.offsets_partition
    ]
    by_group: defaultdict[tuple[str | None, str], list[GroupCase]] = defaultdict(list)
    for partition, group in groups:
        by_group[partition.log_context.replica, group.group].append(group)
    for partition, group in misplaced:
        yield _misplaced(
            partition, group, by_group[partition.log_context.replica, group.group], now, other, given=inputs.offsets_partitions
        )


def _counts(placed: Sequence[tuple[str, int]], given: int | None) -> tuple[int, int | None] | None:
    """The count of today and one that explains the rest, None where nothing does; None where all groups are where they belong."""

    def misplaced(count: int) -> list[tuple[str, int]]:
        return [(group, number) for group, number in placed if offsets_partition_of(group, count) != number]

    if not placed:
        return None
    least = max(number for _, number in placed) + 1
    candidates = [DEFAULT_PARTITION_COUNT, *range(least, _MOST_PARTITIONS + 1)]
    if given is not None:
        rest = misplaced(given)
        return None if not rest else (given, _fitting(rest, candidates))
    # A count that fits the first groups is rare, so trying all of them costs little.
    if _fitting(placed, [count for count in candidates if count >= least]) is not None:
        return None
    fits = {count: len(placed) - len(misplaced(count)) for count in {*candidates}}
    best = sorted(fits, key=lambda count: (-fits[count], count))[:20]
    for count in best:
        other = _fitting(misplaced(count), candidates)
        if other is not None:
            return max(count, other), min(count, other)
    return (best[0], None) if fits[best[0]] > len(placed) / 2 else None


def _fitting(placed: Sequence[tuple[str, int]], candidates: Sequence[int]) -> int | None:
    return next((count for count in candidates if all(offsets_partition_of(group, count) == number for group, number in placed)), None)


def _misplaced(
    partition: PartitionCase, group: GroupCase, everywhere: Sequence[GroupCase], now: int, other: int | None, *, given: int | None
) -> Finding:
    own = partition.log_context.offsets_partition
    expected = offsets_partition_of(group.group, now)
    sentence = f"the group is in partition {own}, where a coordinator of {now} partitions looks in {expected}"
    if other is not None:
        sentence += f"; of {other} partitions {own} is right"
    others = [each for each in everywhere if each.log_context.offsets_partition != own]
    if others:
        sentence += f"; it is in partition {', '.join(str(each.log_context.offsets_partition) for each in others)} too"
        moves = [
            f"{key.topic}-{key.partition} {key.holds.committed_offset} → {new.holds.committed_offset}"
            for key in group.keys
            for each in others
            if key.holds is not None and (new := each.keys.find(key.topic, key.partition)) is not None and new.holds is not None
        ]
        if moves:
            sentence += f", where it began anew: {', '.join(moves[:_NAMED])}"
    return finding(
        "IC-21",
        sentence,
        group,
        severity="incident" if others else "warn",
        confidence="likely" if other is not None else "possible",
        evidence=_last_words(group),
        not_excluded=[
            *(["a number of partitions that was guessed: none was given"] if given is None else []),
            "a directory that was renamed, or copied from another cluster",
        ],
        remedy="exhume reset-plan on the directory of the old partition brings its positions back",
    )


def _last_words(group: GroupCase) -> list[Proof]:
    last = [key.last for key in group.keys if key.last is not None]
    return [*sorted(last, key=lambda commit: commit.record_offset)[-_NAMED:], *group.records[-1:]]


def find_live_differs(case: TopicCase, inputs: Inputs) -> Iterator[Finding]:
    """Offsets that a live coordinator shows otherwise than the log has them.

    The listing is one of `kafka-consumer-groups.sh`, made when the log was copied. A value that is higher than the last of the log may have
    been committed since, one that is lower by no more than the usual rise was so a moment before: neither counts. What is left is older
    than the log, or is not in it, or is in it and not shown; a group that is not in it counts where its whole partition is there. Keys with
    commits of transactions are where coordinators that order by markers go wrong.
    """
    if inputs.live is None:
        yield undecidable("IC-22", "nothing says what a live coordinator shows", remedy="Give it with --live")
        return
    listed: defaultdict[str, dict[tuple[str, int], LiveOffset]] = defaultdict(dict)
    for line in inputs.live:
        listed[line.group][line.topic, line.partition] = line
    for partition in case.partitions:
        for group in partition.groups:
            if group.group in listed:
                yield from _live_differs(group, listed[group.group], has_transactions=partition.markers > 0)
                group.forget()
    yield from _not_in_the_log(case, inputs, listed)


def _not_in_the_log(case: TopicCase, inputs: Inputs, listed: Mapping[str, Mapping[tuple[str, int], LiveOffset]]) -> Iterator[Finding]:
    """Groups that are shown and have no record in the log that they belong into, where it is there and whole."""
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
            yield _differs(log_context, f"{some(shown)} shown, and the log has no record of the group", group=name)


def _live_differs(group: GroupCase, live: Mapping[tuple[str, int], LiveOffset], *, has_transactions: bool) -> Iterator[Finding]:
    for place, shown in live.items():
        key = group.keys.find(*place)
        if shown.committed_offset is None:
            continue
        if key is None:
            if group.log_context.is_complete_at(group.log_context.start_offset):
                yield _differs(
                    group, f"{shown.committed_offset} is shown, and the log has no record of it", topic=place[0], partition=place[1]
                )
        elif key.holds is None:
            gone = key.removals[-1] if key.removals else None
            since = f"record {gone.record_offset} removed it" if gone is not None else "nothing that counts was committed"
            yield _differs(group, f"{shown.committed_offset} is shown, and in the log {since}", key, [gone] if gone is not None else [])
        elif shown.committed_offset < key.holds.committed_offset - (key.usual_rise or 0):
            how = "an older value" + (", or a coordinator that orders transactions by their markers" if has_transactions else "")
            sentence = f"{shown.committed_offset} is shown, and the log has {key.holds.committed_offset}: {how}"
            yield _differs(group, sentence, key, [key.holds])
    for key in group.keys:
        line = live.get((key.topic, key.partition))
        is_shown = line is not None and line.committed_offset is not None
        if key.holds is not None and not is_shown and not any(each.outcome == "open" for each in key.dropped):
            yield _differs(group, f"nothing is shown, and the log has {key.holds.committed_offset}", key, [key.holds])


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
        not_excluded=("a listing that was not made when the log was copied", "requests in between"),
        remedy="Make listing and copy anew, close together; a coordinator that loads the log anew shows what the log has",
    )


DETECTORS = (
    Detector(
        code="IC-21",
        title="The number of offsets partitions changed",
        section="The coordinator cannot read its log",
        in_topic=find_partition_count_changed,
        traps=(
            "Directories that were renamed, or come from another cluster",
            "A count that was guessed from the highest directory: a broker has some of the partitions only",
            "Ids with characters beyond 16 bits, which hash as two",
        ),
        better_with=("--offsets-partitions",),
    ),
    Detector(
        code="IC-22",
        title="The live coordinator and the log disagree",
        section="The coordinator cannot read its log",
        in_topic=find_live_differs,
        traps=("Listing and copy that were not made at the same moment", "Listings hide keys with pending commits"),
        needs=("--live",),
    ),
)
