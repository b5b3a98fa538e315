"""What coordinators trip over, or take long for, when they load the log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from exhume.analysis.detectors.cases import LogContext, PartitionCase, TopicCase
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.load_orders import KnownOrder, order_of, owners_at_end
from exhume.analysis.detectors.registry import Detector
from exhume.analysis.detectors.report import Proof, counted, finding, undecidable
from exhume.codecs.log_directory import PartitionDirectory
from exhume.findings import Finding, Severity
from exhume.replay.load_problems import LoadProblem
from exhume.replay.reading import DEFAULT_LOAD_BUFFER_BYTES
from exhume.replay.release_table import newest_of_each_line
from exhume.replay.releases import profile_for, release_numbers

#: Larger logs are loaded by the newest release of either coordinator only.
_MOST_BYTES_FOR_ALL = 64 * 1024 * 1024
_EITHER = ("3.9.1", "4.3.0")
#: From here on the coordinator of KIP-848 is the one that is used; those before were for trying it out.
_OF_TODAY = (4, 0)
_LARGE_SIBLING, _LEAST_LARGE_BYTES = 10, 10 * 1024 * 1024


def find_unloadable_order(case: TopicCase, inputs: Inputs) -> Iterator[Finding]:  # noqa: ARG001
    """Records whose order makes a coordinator give up the partition, though each of them is sound.

    Releases load the log by their own rules: of up to 64 MiB the newest of every line that loads alike, of more 3.9.1 and 4.3.0. Known
    orders: (a) a group tombstone and then commits of that group, an error behind a load that is complete; (b) tombstones and other records
    of a consumer group or member that is not there; (c) commits in front of the first record of a consumer or streams group; (d) two owners
    of a partition, where the record that took it from the first was compacted away; (e) a classic group and then records of a consumer
    group, or the other way round. Any other is IC-06 without a letter. It is an incident where the newest release fails: the next load of
    the log will meet it; worth a look where one from 4.0 on does, and else worth knowing.
    """
    if case.files is None:
        yield undecidable("IC-06", "what a release makes of the log can only be tried with its files")
        return
    newest = profile_for(None).release
    failed = case.files.given_up(tried_releases(case.files.size_bytes))
    places = {each.log_context.origin: each for each in case.partitions}
    alike: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in sorted(failed, key=_place):
        alike.setdefault((row["replica"] or None, row["offsets_partition"], row.get("record_offset"), row["problem"]), []).append(row)
    for (*origin, _, problem), loads in alike.items():
        partition = places.get(tuple(origin))
        order = order_of(problem.kind)
        if partition is not None and order is not None:
            yield _unloadable(partition, order, loads, newest)


def tried_releases(size_bytes: int) -> list[str]:
    """The releases that logs of so many bytes are loaded by, to see which of them fail."""
    return list(_EITHER) if is_large(size_bytes) else newest_of_each_line()


def is_large(size_bytes: int) -> bool:
    """Whether there is too much to be loaded by every release."""
    return size_bytes > _MOST_BYTES_FOR_ALL


def _place(row: dict[str, Any]) -> tuple[str, int, int, str]:
    number, record_offset = row["offsets_partition"], row.get("record_offset")
    return (row["replica"] or "", -1 if number is None else number, -1 if record_offset is None else record_offset, str(row["problem"]))


def _unloadable(partition: PartitionCase, order: KnownOrder, loads: list[dict[str, Any]], newest: str) -> Finding:
    record_offset = loads[0].get("record_offset")
    problem: LoadProblem = loads[0]["problem"]
    releases = list(dict.fromkeys(row["release"] for row in loads))
    is_given_up = any(row["outcome"] == "aborted" for row in loads)
    severity: Severity = "info"
    if is_given_up and any(release_numbers(release.partition("-")[0]) >= _OF_TODAY for release in releases):
        severity = "incident" if newest in releases else "warn"
    shown = releases[0] if len(releases) == 1 else f"{releases[0]} to {releases[-1]} ({counted(len(releases), 'release')} that were tried)"
    what = f"gives the partition up at record {record_offset}" if is_given_up else "loads all of it, and then reports an error"
    sentence = f"{order.told}: a coordinator of {shown} {what}: {problem}"
    group = next((each for each in partition.groups if each.group == problem.group), None)
    not_excluded = ["releases between those that were tried: exhume load-check has all"]
    if is_given_up:
        not_excluded.insert(0, "a copy that mixes cleaned segments with others, in which orders appear that no broker had")
    if order.code == "IC-06d" and group is not None:
        sentence += f"; read to the end all the same, {owners_at_end(group)}"
        group.forget()
    known = "" if order.issue is None else f"; known as {order.issue}"
    mended = "Move the partition to a broker of a release that loads it: exhume load-check says which"
    if record_offset is not None:
        evidence: Sequence[Proof] = [{"record_offset": record_offset, "timestamp_ms": None, "what": str(problem)}]
    else:
        evidence = [record for record in group.records if record.value is None][-1:] if group else []
    return finding(
        order.code,
        sentence,
        partition.log_context if group is None else group,
        severity=severity,
        confidence="proof",
        evidence=evidence,
        not_excluded=not_excluded,
        remedy=f"{mended}{known}" if is_given_up else f"Nothing is lost by it{known}",
    )


def find_slow_load(case: TopicCase, inputs: Inputs) -> Iterator[Finding]:  # noqa: ARG001
    """What makes a load slow, or endless in old releases.

    A group record that is larger than the load buffer of 5 MiB: releases in front of 2.1.0 never get past it. A newest segment that begins
    behind a gap and is empty: releases in front of 2.5.0 read on for ever. And a partition of more than 10 MiB and of ten times the median
    of its siblings of the same broker.
    """
    for partition in case.partitions:
        for group in partition.groups:
            large = [record for record in group.records if len(record.value or b"") > DEFAULT_LOAD_BUFFER_BYTES]
            if large:
                yield finding(
                    "IC-15",
                    f"{counted(len(large), 'record')} of the group larger than the load buffer, the largest of "
                    f"{max(len(record.value or b'') for record in large)} bytes: releases in front of 2.1.0 never get past it",
                    group,
                    confidence="proof",
                    evidence=large,
                    remedy="Raise offsets.load.buffer.size, or upgrade",
                )
    if case.files is None:
        yield undecidable("IC-15", "sizes and ends of logs can only be seen in their files")
        return
    arounds = {partition.log_context.origin: partition.log_context for partition in case.partitions if partition.log_context.records}
    for directory in case.files.directories:
        yield from _empty_end(directory, arounds.get((directory.replica, directory.offsets_partition)))
    yield from _larger_than_siblings(case)


def _empty_end(directory: PartitionDirectory, log_context: LogContext | None) -> Iterator[Finding]:
    segments = directory.read_segments
    last = segments[-1]
    if log_context is None:
        if any(segment.size_bytes for segment in segments):
            return
        # Without a record the log begins, and ends, where its first segment does.
        begins = segments[0].base_offset
        log_context = LogContext(directory.replica, directory.offsets_partition, begins, begins, begins, None, None, 0)
    if not last.size_bytes and last.base_offset > log_context.next_offset:
        yield finding(
            "IC-15",
            f"the newest segment is empty and begins at {last.base_offset}, behind a gap that begins at {log_context.next_offset}: "
            "releases in front of 2.5.0 read on for ever",
            log_context,
            severity="info",
            confidence="proof",
            evidence=[{"record_offset": log_context.next_offset, "timestamp_ms": log_context.last_timestamp_ms, "what": "the log ends"}],
            remedy="Upgrade, or have a record written to the partition",
        )


def _larger_than_siblings(case: TopicCase) -> Iterator[Finding]:
    assert case.files is not None
    sizes = {(each.replica, each.offsets_partition): each.size_bytes for each in case.files.directories}
    for partition in case.partitions:
        log_context = partition.log_context
        own = sizes.get((log_context.replica or "", log_context.offsets_partition), 0)
        siblings = [
            size for (replica, number), size in sizes.items() if replica == log_context.replica and number != log_context.offsets_partition
        ]
        usual = median(siblings) if len(siblings) > 1 else own
        if own > _LEAST_LARGE_BYTES and own > _LARGE_SIBLING * usual:
            yield finding(
                "IC-15",
                f"{own} bytes to load, where its {len(siblings)} siblings have {usual:.0f} in the median: {log_context.records} records",
                log_context,
                evidence=[
                    {"record_offset": log_context.start_offset, "timestamp_ms": log_context.first_timestamp_ms, "what": "the log begins"}
                ],
                confidence="possible",
                not_excluded=("many live keys; bytes alone do not tell how long releases of today take",),
                remedy="exhume growth says what fills it, and what compaction would free",
            )


DETECTORS = (
    Detector(
        code="IC-06",
        title="Record orders that make a coordinator fail to load",
        section="The coordinator cannot read its log",
        in_topic=find_unloadable_order,
        traps=(
            "On a live broker a partition that seems to have two owners may have one again at the end of the load",
            "A copy of cleaned and uncleaned segments shows orders that never were on a broker",
            "Record types and versions that a release does not know are no matter of order",
        ),
    ),
    Detector(
        code="IC-15",
        title="A load that is slow, or never ends",
        section="The coordinator cannot read its log",
        in_topic=find_slow_load,
        traps=("Bytes alone do not predict the time that releases of today take", "Size is normal for many live keys"),
    ),
)
