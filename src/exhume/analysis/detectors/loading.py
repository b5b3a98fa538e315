"""Find records that make a coordinator abort its load, or load for a long time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from exhume.analysis.detectors.cases import GroupCase, LogContext, PartitionCase, TopicCase
from exhume.analysis.detectors.commit_loops.columns import KeyColumn
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.registry import Detector
from exhume.analysis.detectors.report import MORE_NAMED, Proof, counted, finding, next_step, undecidable
from exhume.analysis.load_check import FailedLoad
from exhume.analysis.log_extent import ExtentReader
from exhume.codecs.log_directory import PartitionDirectory
from exhume.findings import Finding, Remedy, Severity
from exhume.replay.broker_log import DEFAULT_LOAD_BUFFER_BYTES
from exhume.replay.load_problems import LoadProblem, ProblemKind
from exhume.replay.release_table import newest_of_each_line
from exhume.replay.releases import java_spans, profile_for, release_numbers, scala_spans

#: Only the newest release of each coordinator loads a larger log.
_MOST_BYTES_FOR_ALL = 64 * 1024 * 1024
#: The first release that uses the coordinator of KIP-848 by default. Before, it was a preview.
_OF_TODAY = (4, 0)
#: A large partition has more than so many times the bytes of the other partitions, and more than so many times its own live bytes.
_LARGE_SIBLING = _LARGE_LIVE = 10
#: Its load is slow if it has more bytes than this, or more than this in segments that the cleaner should have cleaned.
_LEAST_LARGE_BYTES, _LEAST_CLOSED_BYTES = 10 * 1024 * 1024, 1024 * 1024


@dataclass(frozen=True, slots=True)
class KnownOrder:
    """A case of IC-06: its code, its description, and its issue in Kafka's tracker."""

    code: str
    sentence: str
    issue: str | None


_COMMITS_OF_REMOVED = KnownOrder("IC-06a", "commits of a removed group", "KAFKA-4704")
_OF_NOTHING = KnownOrder("IC-06b", "records of a missing group or member", "KAFKA-17306")
_COMMITS_FIRST = KnownOrder("IC-06c", "commits before the first record of their group", "KAFKA-17306 and KAFKA-20254")
_TWO_OWNERS = KnownOrder("IC-06d", "two owners of a partition, because the record of the first revocation is missing", "KAFKA-19862")
_TWO_TYPES = KnownOrder("IC-06e", "records of two group types, because the tombstone between them is missing", "KAFKA-21117")
_OTHER = KnownOrder("IC-06", "records that contradict each other", None)

#: The other kinds concern a record alone, without its order, or damage, which has a class of its own.
_ORDERS: Mapping[ProblemKind, KnownOrder] = {
    ProblemKind.ACTIVE_GROUP_UNLOADED: _COMMITS_OF_REMOVED,
    ProblemKind.ACTIVE_GROUP_UNLOADED_MIDWAY: _COMMITS_OF_REMOVED,
    ProblemKind.GROUP_MISSING: _OF_NOTHING,
    ProblemKind.MEMBER_MISSING: _OF_NOTHING,
    ProblemKind.GROUP_IS_SIMPLE: _COMMITS_FIRST,
    ProblemKind.PARTITION_TAKEN_OVER: _TWO_OWNERS,
    ProblemKind.PARTITION_STILL_OWNED: _TWO_OWNERS,
    ProblemKind.TASK_STILL_OWNED: _TWO_OWNERS,
    ProblemKind.TASK_NOT_OWNED: _OF_NOTHING,
    ProblemKind.GROUP_OF_OTHER_TYPE: _TWO_TYPES,
} | dict.fromkeys(
    (
        ProblemKind.FORMAT_0_IN_FORMAT_1,
        ProblemKind.PROTOCOL_OR_LEADER_NULL,
        ProblemKind.INSTANCE_ID_TWICE,
        ProblemKind.MEMBER_ID_TWICE,
        ProblemKind.SUBSCRIPTION_UNPARSABLE,
        ProblemKind.GROUP_NOT_EMPTY,
        ProblemKind.TARGET_NOT_EMPTY,
        ProblemKind.MEMBER_WITH_ASSIGNMENT,
        ProblemKind.MEMBER_WITH_TARGET,
        ProblemKind.ASSIGNMENT_EPOCH_NEGATIVE,
        ProblemKind.TOPOLOGY_EPOCH_NEGATIVE,
        ProblemKind.REBALANCE_TIMEOUT_MISSING,
    ),
    _OTHER,
)


def order_of(kind: ProblemKind) -> KnownOrder | None:
    """Return the known order of this kind of problem; None if the problem is not the order of records."""
    return _ORDERS.get(kind)


def owners_at_end(group: GroupCase) -> str:
    """Describe the owners at the end of the log, as after a load that does not stop."""
    owners = sorted(group.memberships[-1].owners().items()) if group.memberships else []
    if not owners:
        return "no member owns a partition"
    owned = [
        f"{topic}-{partition} belongs to {' and '.join(member.member_id for member in those)}"
        for (topic, partition), those in owners[:MORE_NAMED]
    ]
    return ", ".join(owned) + (" …" if len(owners) > MORE_NAMED else "")


def begin_trial_loads(case: TopicCase) -> None:
    """Begin the loads of `find_unloadable_order`."""
    if case.files is not None:
        case.files.begin_given_up(tried_releases(case.files.size_bytes))


def find_unloadable_order(case: TopicCase, inputs: Inputs) -> Iterator[Finding]:
    """Each record is sound, but their order makes a coordinator abort its load of the partition.

    exhume loads the log by the rules of several releases: up to 64 MiB, the newest one of each line that loads alike; above that, the
    newest one of each coordinator. Known orders: (a) a group tombstone and then commits of that group, which is an error after a complete
    load; (b) tombstones and other records of a missing consumer group or member; (c) commits before the first record of a consumer or
    streams group; (d) two owners of a partition, because compaction removed the record of the first revocation; (e) a classic group and
    then records of a consumer group, or the other way round. Any other order is IC-06 without a letter. It is an incident if the newest
    release fails, since the next load fails too; a warning if a release from 4.0 on fails; otherwise `info`.
    """
    if case.files is None:
        yield undecidable("IC-06", "a trial load needs the files of the log, and they are not available")
        return
    newest = profile_for(None).release
    failed = case.files.given_up(tried_releases(case.files.size_bytes))
    places = {each.log_context.origin: each for each in case.partitions}
    alike: dict[tuple[Any, ...], list[FailedLoad]] = {}
    for row in sorted(failed, key=_place):
        alike.setdefault((row["replica"] or None, row["offsets_partition"], row["record_offset"], row["problem"]), []).append(row)
    for (*origin, _, problem), loads in alike.items():
        partition = places.get(tuple(origin))
        order = order_of(problem.kind)
        if partition is not None and order is not None:
            yield _unloadable(partition, order, loads, newest, inputs)
    yield from _not_loaded(case, inputs, failed, newest)


def _not_loaded(case: TopicCase, inputs: Inputs, failed: Sequence[FailedLoad], newest: str) -> Iterator[Finding]:
    """Partitions that the release of the brokers, or else the newest one, gives up at a record that it refuses alone, or at damage.

    `exhume state` has the same finding; an unloadable order has a finding of its own, which says more.
    """
    assert case.files is not None
    release = profile_for(inputs.release).release
    if release != newest:
        failed = case.files.given_up([release])
    places = {each.log_context.origin: each for each in case.partitions}
    for row in sorted(failed, key=_place):
        partition = places.pop((row["replica"] or None, row["offsets_partition"]), None) if row["release"] == release else None
        if partition is None or row["outcome"] != "aborted" or order_of(row["problem"].kind) is not None:
            continue
        names = sorted({each.group for each in partition.groups})
        evidence: Sequence[Proof] = [{"record_offset": row["record_offset"] or 0, "timestamp_ms": None, "what": str(row["problem"])}]
        lost = f"; the groups of this partition are lost: {', '.join(names[:MORE_NAMED])}{' …' if len(names) > MORE_NAMED else ''}"
        yield finding(
            "load_aborted",
            f"a broker of {release} does not load this partition: {row['problem']}{lost if names else ''}",
            partition.log_context,
            severity="incident",
            confidence="proof",
            evidence=evidence if row["record_offset"] is not None else (),
            not_excluded=("other releases load it",),
            remedy=next_step("See the releases that load it", inputs, "load-check"),
        )


def tried_releases(size_bytes: int) -> list[str]:
    """Return the releases that load logs of this many bytes on trial."""
    return [scala_spans()[-1].last, java_spans()[-1].last] if is_large(size_bytes) else newest_of_each_line()


def is_large(size_bytes: int) -> bool:
    """Return True if the logs are too large to be loaded by every release."""
    return size_bytes > _MOST_BYTES_FOR_ALL


def _place(row: FailedLoad) -> tuple[str, int, int, str]:
    number, record_offset = row["offsets_partition"], row["record_offset"]
    return (row["replica"] or "", -1 if number is None else number, -1 if record_offset is None else record_offset, str(row["problem"]))


def _unloadable(partition: PartitionCase, order: KnownOrder, loads: list[FailedLoad], newest: str, inputs: Inputs) -> Finding:
    record_offset = loads[0].get("record_offset")
    problem: LoadProblem = loads[0]["problem"]
    releases = list(dict.fromkeys(row["release"] for row in loads))
    is_given_up = any(row["outcome"] == "aborted" for row in loads)
    shown = releases[0] if len(releases) == 1 else f"{releases[0]} to {releases[-1]} ({counted(len(releases), 'release')} tried)"
    what = f"aborts its load at record {record_offset}" if is_given_up else "loads the whole partition, and then reports an error"
    sentence = f"{order.sentence}: a coordinator of {shown} {what}: {problem}"
    group = next((each for each in partition.groups if each.group == problem.group), None)
    not_excluded = ["releases between the tried ones: exhume load-check tries all"]
    if is_given_up:
        not_excluded.insert(0, "a copy with compacted and other segments, in an order that no broker had")
    if order.code == "IC-06d" and group is not None:
        sentence += f"; at the end of the log, {owners_at_end(group)}"
        group.forget()
    known = "" if order.issue is None else f" ({order.issue})"
    if is_given_up:
        remedy = next_step(f"Move the partition to a broker whose release loads it{known}; see these releases", inputs, "load-check")
    else:
        remedy = Remedy(f"No data is lost{known}")
    evidence: Sequence[Proof] = [record for record in group.records if record.value is None][-1:] if group else []
    if record_offset is not None:
        evidence = [{"record_offset": record_offset, "timestamp_ms": None, "what": str(problem)}]
    return finding(
        order.code,
        sentence,
        partition.log_context if group is None else group,
        severity=_severity(releases, newest) if is_given_up else "info",
        confidence="proof",
        evidence=evidence,
        not_excluded=not_excluded,
        remedy=remedy,
    )


def _severity(releases: Sequence[str], newest: str) -> Severity:
    """Return the severity of a load that these releases abort: the newest release loads the log next."""
    if not any(release_numbers(release.partition("-")[0]) >= _OF_TODAY for release in releases):
        return "info"
    return "incident" if newest in releases else "warn"


def find_slow_load(case: TopicCase, inputs: Inputs) -> Iterator[Finding]:
    """A load is slow, or never ends in old releases.

    A group record is larger than the load buffer of 5 MiB: releases before 2.1.0 never finish the load. The newest segment is empty and
    begins after a gap: releases before 2.5.0 never finish the load. Or a partition has more than ten times the median of the other
    partitions of the same broker, and more than ten times its live bytes: a cleaner would remove the rest. It is only `info` if the
    partition has less than 10 MiB, and less than 1 MiB or ten times its live bytes before the newest segment, which no cleaner touches.
    """
    for partition in case.partitions:
        for group in partition.groups:
            large = [record for record in group.records if record.value_bytes > DEFAULT_LOAD_BUFFER_BYTES]
            if large:
                yield finding(
                    "IC-15",
                    f"the largest group record has {max(record.value_bytes for record in large)} bytes"
                    f" ({counted(len(large), 'record')} above the load buffer of 5 MiB): releases before 2.1.0 never finish the load",
                    group,
                    confidence="proof",
                    evidence=large,
                    remedy="Raise offsets.load.buffer.size, or upgrade the brokers",
                )
    if case.files is None:
        yield undecidable("IC-15", "sizes and ends of logs show only in their files, and they are not available")
        return
    contexts = {partition.log_context.origin: partition.log_context for partition in case.partitions if partition.log_context.records}
    for directory in case.files.directories:
        yield from _empty_end(directory, contexts.get((directory.replica, directory.offsets_partition)))
    yield from _larger_than_siblings(case, inputs)


def _empty_end(directory: PartitionDirectory, log_context: LogContext | None) -> Iterator[Finding]:
    segments = directory.read_segments
    last = segments[-1]
    if log_context is None:
        if any(segment.size_bytes for segment in segments):
            return
        # A log without records begins and ends at the base offset of its first segment.
        log_context = LogContext(directory.replica, directory.offsets_partition, ExtentReader().extent(directory))
    if not last.size_bytes and last.base_offset > log_context.next_offset:
        yield finding(
            "IC-15",
            f"the newest segment is empty and begins at {last.base_offset}, after a gap from {log_context.next_offset} on:"
            " releases before 2.5.0 never finish the load",
            log_context,
            severity="info",
            confidence="proof",
            evidence=[{"record_offset": log_context.next_offset, "timestamp_ms": log_context.last_timestamp_ms, "what": "the log ends"}],
            remedy="Upgrade the brokers, or write a record to the partition: the segment is not empty then",
        )


def _larger_than_siblings(case: TopicCase, inputs: Inputs) -> Iterator[Finding]:
    assert case.files is not None
    sizes = {(each.replica, each.offsets_partition): each.size_bytes for each in case.files.directories}
    for partition in case.partitions:
        log_context = partition.log_context
        own = sizes.get((log_context.replica or "", log_context.offsets_partition), 0)
        siblings = [
            size for (replica, number), size in sizes.items() if replica == log_context.replica and number != log_context.offsets_partition
        ]
        usual = median(siblings) if len(siblings) > 1 else own
        if own > _LARGE_SIBLING * usual and own > _LARGE_LIVE * (live := own * _live_share(partition)):
            directory = case.files.directory(log_context.origin)
            newest = directory.read_segments[-1].size_bytes if directory is not None else own
            yield finding(
                "IC-15",
                f"a load reads {own} bytes in {log_context.records} records, and about {live:.0f} bytes of them are live; the median of the"
                f" other {len(siblings)} partitions of this broker is {usual:.0f} bytes",
                log_context,
                severity="warn" if own > _LEAST_LARGE_BYTES or own - newest > max(_LARGE_LIVE * live, _LEAST_CLOSED_BYTES) else "info",
                evidence=[
                    {"record_offset": log_context.start_offset, "timestamp_ms": log_context.first_timestamp_ms, "what": "the log begins"}
                ],
                confidence="possible",
                not_excluded=("a load that is fast all the same: the size alone does not show the load time of present releases",),
                remedy=next_step(
                    "See the groups that fill it, and the bytes that compaction would free", inputs, "growth", "--by", "group"
                ),
            )


def _live_share(partition: PartitionCase) -> float:
    """Return the share of the live bytes among the bytes of all keys and values: about that of the file, which may be compressed."""
    total = live = 0.0
    for group in partition.groups:
        sizes, commits, removed = (
            group.keys.numbers(column).astype(np.float64) for column in (KeyColumn.BYTES, KeyColumn.COMMITS, KeyColumn.IS_REMOVED)
        )
        total += float(sizes.sum())
        live += float((sizes / np.maximum(commits, 1))[removed == 0].sum())
        lasts = {record.key: len(record.key) + record.value_bytes for record in group.records}
        total += sum(len(record.key) + record.value_bytes for record in group.records)
        live += sum(lasts.values())
    return live / total if total else 1


DETECTORS = (
    Detector(
        code="IC-06",
        title="Record orders that make a coordinator fail to load",
        section="The coordinator cannot read its log",
        in_topic=find_unloadable_order,
        begin=begin_trial_loads,
        traps=(
            "On a running broker, a partition with two owners in the log may have one owner again at the end of the load",
            "A copy of compacted and other segments contains orders that no broker had",
            "Record types and versions that a release does not know are not a question of order",
        ),
    ),
    Detector(
        code="IC-15",
        title="A load that is slow, or never ends",
        section="The coordinator cannot read its log",
        in_topic=find_slow_load,
        traps=("The size alone does not show the load time of present releases", "Many live keys need a large log: they are no finding"),
    ),
)
