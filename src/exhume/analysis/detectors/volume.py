"""Groups that write too much, are too many, or are too large."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from statistics import median

from exhume.analysis.detectors.cases import GroupCase, PartitionCase, TopicCase
from exhume.analysis.detectors.commit_loops.columns import KeyColumn
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.keys import KeyHistory
from exhume.analysis.detectors.registry import Detector
from exhume.analysis.detectors.report import counted, finding, span, undecidable
from exhume.findings import Finding

_HOT_MINUTES = 10
_MOST_SHARE, _LEAST_SHARE_BYTES = 0.5, 10 * 1024 * 1024
_MOST_IDS, _SHORT_LIFE_MS, _DAY_MS = 100, 3_600_000, 86_400_000
_VARYING = (
    (re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"), "<uuid>"),
    (re.compile(r"(?=[0-9a-fA-F]*[0-9])(?=[0-9a-fA-F]*[a-fA-F])[0-9a-fA-F]{8,}"), "<hex>"),
    (re.compile(r"[0-9]+"), "<n>"),
)
#: Groups of a pattern whose members are looked at.
_SAMPLED = 20
#: `message.max.bytes` and `offset.metadata.max.bytes` unless somebody set them.
_MAX_MESSAGE_BYTES, _MAX_METADATA_BYTES = 1_048_588, 4096
_NEARLY = 0.8


def find_commit_flood(partition: PartitionCase, inputs: Inputs) -> Iterator[Finding]:  # noqa: ARG001
    """A key that is committed more than once a second in each of ten minutes or more; a group with most of the bytes of all commits.

    The rates are those of the records that are left: compaction can hide a flood and make none. Most is more than half, in partitions of
    several groups and from 10 MiB on, and worth knowing only: large groups write much.
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
                f"{size / total:.0%} of the {total} bytes of commits in the partition are of this group, of {len(sizes)}",
                group,
                severity="info",
                confidence="possible",
                not_excluded=("a group that is that large: members × partitions / interval",),
                remedy="exhume growth shows what each group takes up",
            )


def _flood(group: GroupCase, hot: Sequence[KeyHistory]) -> Finding:
    hottest = hot[0]
    length_ms = (hottest.hot_to_ms or 0) - (hottest.hot_from_ms or 0)
    rate = "" if not hottest.usual_interval_ms else f", every {span(hottest.usual_interval_ms)} lately"
    last = [hottest.last] if hottest.last is not None else []
    return finding(
        "IC-12",
        f"{counted(len(hot), 'key')} committed more than once a second; {hottest.topic}-{hottest.partition} for {span(length_ms)}, "
        f"{hottest.commits} commits in all{rate}, {hottest.repeats / max(hottest.commits, 1):.0%} of them repeat what was committed; "
        f"{sum(key.commit_bytes for key in hot)} bytes",
        group,
        topic=hottest.topic,
        partition=hottest.partition,
        evidence=[
            {"record_offset": hottest.first_record_offset or 0, "timestamp_ms": hottest.first_timestamp_ms, "what": "the first commit"},
            *last,
        ],
        not_excluded=("compaction, which hides floods further back",),
        remedy="Look for a commit after each record, or an auto.commit.interval.ms of next to nothing, in its clients",
    )


def find_group_explosion(case: TopicCase, inputs: Inputs) -> Iterator[Finding]:  # noqa: ARG001
    """More than a hundred groups whose ids differ in a UUID, in hexadecimal or in digits only, and that are short of life and members.

    They live for less than an hour in the median and have one member at most. A life counts from the first to the last record of the group,
    where history is complete. Groups that expired have vanished: what is counted is what is left. Members are looked at in twenty groups of
    a pattern.
    """
    by_pattern: defaultdict[str, list[GroupCase]] = defaultdict(list)
    for replica in dict.fromkeys(partition.log_context.replica for partition in case.partitions):
        for partition in case.partitions:
            if partition.log_context.replica == replica:
                for group in partition.groups:
                    by_pattern[_pattern(group.group)].append(group)
        for pattern, groups in by_pattern.items():
            if len(groups) > _MOST_IDS:
                yield from _explosion(pattern, groups)
        by_pattern.clear()


def _pattern(name: str) -> str:
    for varying, placeholder in _VARYING:
        name = varying.sub(placeholder, name)
    return name


def _explosion(pattern: str, groups: Sequence[GroupCase]) -> Iterator[Finding]:
    histories = [history for group in groups if (history := _life(group)) is not None]
    if len(histories) <= len(groups) / 2:
        reason = f"{len(groups)} groups are named like {pattern!r}, and compaction left too little to say how long they lived"
        yield undecidable("IC-14", reason, groups[0].log_context)
        return
    lengths = [last - first for first, last in histories]
    sampled = groups[:: max(len(groups) // _SAMPLED, 1)][:_SAMPLED]
    members = [len(step.members) for group in sampled for step in group.memberships]
    if median(lengths) >= _SHORT_LIFE_MS or max(members, default=0) > 1:
        for group in sampled:
            group.forget()
        return
    hosts = sorted({member.client_host or "" for group in sampled for step in group.memberships for member in step.members.values()} - {""})
    keys = sum(key.holds is not None for group in groups for key in group.keys)
    topics = sorted({key.topic for group in sampled for key in group.keys})
    for group in groups:
        group.forget()
    days = max((max(first for first, _ in histories) - min(first for first, _ in histories)) / _DAY_MS, 1 / 24)
    newest = max(groups, key=lambda group: group.last_commit_ms or 0)
    rows = [
        {"record_offset": record.record_offset, "timestamp_ms": record.timestamp_ms, "what": group.group}
        for group in sampled
        for record in group.records[:1]
    ]
    yield finding(
        "IC-14",
        f"{len(groups)} groups are named like {pattern!r}, {len(histories) / days:.0f} new ones a day, and live for "
        f"{span(median(lengths))} in the median; they hold {counted(keys, 'offset')} of {', '.join(topics[:3]) or 'no topic'}"
        f"{f', from {chr(44).join(hosts[:3])}' if hosts else ''}",
        newest.log_context,
        evidence=rows,
        not_excluded=("groups that expired and left no record: there were more",),
        remedy="Give such clients a group id that stays, or none (assign and no commits)",
    )


def _life(group: GroupCase) -> tuple[int, int] | None:
    """When the group began and ended; None where compaction may have taken the beginning."""
    offsets = [record.record_offset for record in group.records[:1]]
    offsets += [key.first_record_offset for key in group.keys if key.first_record_offset is not None]
    times = [record.timestamp_ms for record in group.records if record.timestamp_ms is not None]
    times += [time for time in (group.first_commit_ms, group.last_commit_ms) if time is not None]
    if not times or not offsets or not group.log_context.is_complete_at(min(offsets)):
        return None
    return min(times), max(times)


def find_oversized(group: GroupCase, inputs: Inputs) -> Iterator[Finding]:  # noqa: ARG001
    """A group record of 80 % of the largest message and more; commit metadata of 80 % of its limit and more.

    Limits are taken to be Kafka's defaults: `message.max.bytes` 1048588, `offset.metadata.max.bytes` 4096. What is refused leaves no
    record: when a group has grown beyond the limit, it rebalances for ever and the log is silent. Sizes are those before compression.
    """
    records = [record for record in group.records if len(record.value or b"") >= _NEARLY * _MAX_MESSAGE_BYTES]
    if records:
        largest = max(records, key=lambda record: len(record.value or b""))
        is_last = largest is group.records[-1]
        size = len(largest.value or b"")
        yield finding(
            "IC-32",
            f"{counted(len(records), 'group record')} of {_NEARLY:.0%} of the largest message or more, the largest of {size} bytes"
            f"{', which is the last one of the group: a larger one may have been refused since' if is_last else ''}",
            group,
            severity="incident" if is_last and size >= _MAX_MESSAGE_BYTES * 0.95 else "warn",
            evidence=records,
            not_excluded=("a message.max.bytes that somebody raised",),
            remedy="Fewer members or shorter subscriptions, no sticky assignor with user data, or a larger max.message.bytes",
        )
    large = group.keys.with_at_least(_NEARLY * _MAX_METADATA_BYTES, KeyColumn.LARGEST_METADATA)
    if large:
        largest_key = max(large, key=lambda key: key.largest_metadata_bytes)
        total = sum(key.commit_bytes for key in group.keys)
        share = sum(key.metadata_bytes for key in group.keys) / max(total, 1)
        yield finding(
            "IC-32",
            f"{counted(len(large), 'key')} with commit metadata of {_NEARLY:.0%} of the limit or more, the largest of "
            f"{largest_key.largest_metadata_bytes} bytes ({largest_key.topic}-{largest_key.partition}); it is {share:.0%} of all commits",
            group,
            topic=largest_key.topic,
            partition=largest_key.partition,
            severity="warn" if largest_key.largest_metadata_bytes < _MAX_METADATA_BYTES else "info",
            evidence=[key.last for key in large if key.last is not None],
            not_excluded=("an offset.metadata.max.bytes that somebody raised",),
            remedy="Commits with more than the limit are refused: keep such data elsewhere",
        )


DETECTORS = (
    Detector(
        code="IC-12",
        title="A flood of commits",
        section="Volume and shape",
        in_partition=find_commit_flood,
        traps=("Rates in the cleaned part of a log mean nothing", "Large groups write members × partitions / interval"),
    ),
    Detector(
        code="IC-14",
        title="An explosion of groups",
        section="Volume and shape",
        in_topic=find_group_explosion,
        traps=("A group for each tenant, which lives long", "Groups that expired have vanished: only what is left is counted"),
    ),
    Detector(
        code="IC-32",
        title="Oversized group records or commit metadata",
        section="Volume and shape",
        in_group=find_oversized,
        traps=("Compressed batches: sizes are those before compression", "Metadata is bytes, not always text"),
    ),
)
