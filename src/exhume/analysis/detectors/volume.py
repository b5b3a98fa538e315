"""Find groups that write too much, are too many, or are too large."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median

from exhume.analysis.detectors.cases import GroupCase, PartitionCase, TopicCase
from exhume.analysis.detectors.commit_loops.columns import KeyColumn
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.keys import KeyHistory
from exhume.analysis.detectors.name_patterns import by_pattern
from exhume.analysis.detectors.registry import Detector
from exhume.analysis.detectors.report import EvidenceRow, counted, finding, next_step, span, undecidable
from exhume.analysis.number_columns import NONE
from exhume.durations import DAY_MS, HOUR_MS
from exhume.findings import Finding

_HOT_MINUTES = 10
_MOST_SHARE, _LEAST_SHARE_BYTES = 0.5, 10 * 1024 * 1024
_MOST_IDS, _SHORT_LIFE_MS = 100, HOUR_MS
#: The number of groups of a pattern whose members are read.
_SAMPLED = 20
#: The defaults of `message.max.bytes` and `offset.metadata.max.bytes`.
_MAX_MESSAGE_BYTES, _MAX_METADATA_BYTES = 1_048_588, 4096
_NEARLY = 0.8


def find_commit_flood(partition: PartitionCase, inputs: Inputs) -> Iterator[Finding]:
    """A key is committed more than once a second in each of ten or more successive minutes; or one group wrote most of the commit bytes.

    The rates are those of the records in the log: compaction can hide a flood, and cannot make one. Most means more than half, and more
    than 10 MiB, in a partition of several groups. That is only `info`: large groups write much.
    """
    sizes: Counter[str] = Counter()
    for group in partition.groups:
        hot = sorted(group.keys.with_at_least(_HOT_MINUTES, KeyColumn.HOTTEST_RUN), key=lambda key: -key.hot_minutes)
        sizes[group.group] = group.keys.total(KeyColumn.BYTES)
        if hot:
            yield _flood(group, hot)
        group.forget()
    total = sum(sizes.values())
    for name, size in sizes.most_common(1):
        if len(sizes) > 1 and size > _LEAST_SHARE_BYTES and size > _MOST_SHARE * total:
            group = next(each for each in partition.groups if each.group == name)
            yield finding(
                "IC-12",
                f"this group wrote {size / total:.0%} of the {total} bytes of commits in this offsets partition of {len(sizes)} groups",
                group,
                severity="info",
                confidence="possible",
                not_excluded=("a group that is so large: it writes members × partitions / interval",),
                remedy=next_step("See the bytes of each group", inputs, "growth", "--by", "group"),
            )


def _flood(group: GroupCase, hot: Sequence[KeyHistory]) -> Finding:
    hottest = hot[0]
    length_ms = (hottest.hot_to_ms or 0) - (hottest.hot_from_ms or 0)
    rate = "" if not hottest.usual_interval_ms else f"; its usual interval at the end of the log is {span(hottest.usual_interval_ms)}"
    last = [hottest.last] if hottest.last is not None else []
    return finding(
        "IC-12",
        f"{hottest.topic}-{hottest.partition} was committed more than once a second for {span(length_ms)};"
        f" {hottest.repeats / max(hottest.commits, 1):.0%} of its {hottest.commits} commits repeat the previous offset{rate};"
        f" {counted(len(hot), 'partition')} with such a rate, {sum(key.commit_bytes for key in hot)} bytes of commits",
        group,
        topic=hottest.topic,
        partition=hottest.partition,
        evidence=[
            {"record_offset": hottest.first_record_offset or 0, "timestamp_ms": hottest.first_timestamp_ms, "what": "the first commit"},
            *last,
        ],
        not_excluded=("earlier floods, whose commits compaction removed",),
        remedy="Check the clients for a commit after each record, or for a very short auto.commit.interval.ms",
    )


def find_group_explosion(case: TopicCase, inputs: Inputs) -> Iterator[Finding]:  # noqa: ARG001
    """More than a hundred groups whose ids differ only in UUIDs, hexadecimal digits, dates or numbers, and that exist for a short time.

    The median group exists for less than an hour, and none has more than one member. The time counts from the first to the last record of
    the group, if the log is complete there. Expired groups left no record, so only the others are counted. Members are read in twenty
    groups of each pattern.
    """
    for replica in dict.fromkeys(partition.log_context.replica for partition in case.partitions):
        groups = [group for partition in case.partitions if partition.log_context.replica == replica for group in partition.groups]
        for pattern, alike in by_pattern(groups, [group.group for group in groups]).items():
            if len(alike) > _MOST_IDS:
                yield from _explosion(pattern, alike)


def _explosion(pattern: str, groups: Sequence[GroupCase]) -> Iterator[Finding]:
    times = [first_and_last for group in groups if (first_and_last := _first_and_last_ms(group)) is not None]
    if len(times) <= len(groups) / 2:
        reason = f"the ids of {len(groups)} groups match {pattern!r}, but compaction removed the records that show how long they existed"
        yield undecidable("IC-14", reason, groups[0].log_context)
        return
    sampled = groups[:: max(len(groups) // _SAMPLED, 1)][:_SAMPLED]
    sizes = [len(step.members) for group in sampled for step in group.memberships]
    if median(last - first for first, last in times) < _SHORT_LIFE_MS and max(sizes, default=0) <= 1:
        yield _short_lived(pattern, groups, sampled, times)
    else:
        for group in sampled:
            group.forget()


def _short_lived(pattern: str, groups: Sequence[GroupCase], sampled: Sequence[GroupCase], times: Sequence[tuple[int, int]]) -> Finding:
    """Report groups whose ids match one pattern, with the times of their first and last records. Forgets their members."""
    hosts = sorted({member.client_host or "" for group in sampled for step in group.memberships for member in step.members.values()} - {""})
    keys = sum(group.keys.held_count() for group in groups)
    topics = sorted({key.topic for group in sampled for key in group.keys})
    for group in groups:
        group.forget()
    begun = [first for first, _ in times]
    days = max((max(begun) - min(begun)) / DAY_MS, 1 / 24)
    length_ms = median(last - first for first, last in times)
    clients = f", from {', '.join(hosts[:3])}" if hosts else ""
    newest = max(groups, key=lambda group: group.last_commit_ms or 0)
    rows: list[EvidenceRow] = [
        {"record_offset": record.record_offset, "timestamp_ms": record.timestamp_ms, "what": group.group}
        for group in sampled
        for record in group.records[:1]
    ]
    return finding(
        "IC-14",
        f"the ids of {len(groups)} groups match {pattern!r}; {len(times) / days:.0f} new ones a day, and the median group exists for"
        f" {span(length_ms)}; they hold {counted(keys, 'offset')} of {', '.join(topics[:3]) or 'no topic'}{clients}",
        newest.log_context,
        evidence=rows,
        not_excluded=("more such groups, which expired and left no record",),
        remedy="Give these clients one fixed group id, or none (assign() without commits)",
    )


def _first_and_last_ms(group: GroupCase) -> tuple[int, int] | None:
    """Return the times of the first and the last record of the group; None if compaction may have removed the first."""
    offsets = [record.record_offset for record in group.records[:1]]
    firsts = group.keys.numbers(KeyColumn.FIRST_OFFSET)
    offsets += firsts[firsts != NONE].tolist()
    times = [record.timestamp_ms for record in group.records if record.timestamp_ms is not None]
    times += [time for time in (group.first_commit_ms, group.last_commit_ms) if time is not None]
    if not times or not offsets or not group.log_context.is_complete_at(min(offsets)):
        return None
    return min(times), max(times)


def find_oversized(group: GroupCase, inputs: Inputs) -> Iterator[Finding]:  # noqa: ARG001
    """A group record, or the metadata of a commit, has 80 % of its limit or more.

    The limits are Kafka's defaults: `message.max.bytes` 1048588, `offset.metadata.max.bytes` 4096. A refused record leaves no trace: a
    group above the limit rebalances for ever, and writes no record. Sizes are those before compression.
    """
    records = [record for record in group.records if record.value_bytes >= _NEARLY * _MAX_MESSAGE_BYTES]
    if records:
        largest = max(records, key=lambda record: record.value_bytes)
        is_last = largest is group.records[-1]
        size = largest.value_bytes
        yield finding(
            "IC-32",
            f"the largest group record has {size} bytes; {counted(len(records), 'group record')} of {_NEARLY:.0%} or more of the default"
            f" message.max.bytes{'; the largest is the last one: the broker may have refused a larger one since' if is_last else ''}",
            group,
            severity="incident" if is_last and size >= _MAX_MESSAGE_BYTES * 0.95 else "warn",
            evidence=records,
            not_excluded=("a message.max.bytes above the default",),
            remedy="Use fewer members, shorter subscriptions, an assignor without user data, or a larger max.message.bytes",
        )
    large = group.keys.with_at_least(_NEARLY * _MAX_METADATA_BYTES, KeyColumn.LARGEST_METADATA)
    if large:
        largest_key = max(large, key=lambda key: key.largest_metadata_bytes)
        total = sum(key.commit_bytes for key in group.keys)
        share = sum(key.metadata_bytes for key in group.keys) / max(total, 1)
        yield finding(
            "IC-32",
            f"the largest commit metadata has {largest_key.largest_metadata_bytes} bytes ({largest_key.topic}-{largest_key.partition});"
            f" {counted(len(large), 'partition')} of {_NEARLY:.0%} or more of the default offset.metadata.max.bytes;"
            f" metadata is {share:.0%} of all commit bytes of the group",
            group,
            topic=largest_key.topic,
            partition=largest_key.partition,
            severity="warn" if largest_key.largest_metadata_bytes < _MAX_METADATA_BYTES else "info",
            evidence=[key.last for key in large if key.last is not None],
            not_excluded=("an offset.metadata.max.bytes above the default",),
            remedy="Store this data elsewhere: the broker refuses a commit whose metadata exceeds the limit",
        )


DETECTORS = (
    Detector(
        code="IC-12",
        title="A flood of commits",
        section="Volume and shape",
        in_partition=find_commit_flood,
        traps=("Rates in the compacted part of a log mean nothing", "Large groups write members × partitions / interval"),
    ),
    Detector(
        code="IC-14",
        title="An explosion of groups",
        section="Volume and shape",
        in_topic=find_group_explosion,
        traps=("Groups of tenants exist for a long time", "Expired groups left no record: only the other ones are counted"),
    ),
    Detector(
        code="IC-32",
        title="Oversized group records or commit metadata",
        section="Volume and shape",
        in_group=find_oversized,
        traps=("Sizes are those before compression", "Metadata may be any bytes, not only text"),
    ),
)
