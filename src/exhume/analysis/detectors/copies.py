"""What copies of the log show: replicas that differ, damage, and a partition that was silent while others were not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from exhume.analysis.detectors.cases import Epoch, PartitionCase, TopicCase
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.log_files import LogFiles
from exhume.analysis.detectors.registry import Detector
from exhume.analysis.detectors.report import Proof, counted, finding, span, undecidable
from exhume.codecs.record_types import OFFSET_COMMIT_TYPES, decode_record
from exhume.findings import Finding

_COMPARED = ("partition_leader_epoch", "key", "value")
_COLUMNS = ["record_offset", "timestamp_ms", *_COMPARED]
#: Records that differ are kept as evidence up to so many.
_MOST_DIFFERENCES = 25
#: A partition is silent when nothing comes for so long, in front of a new leader.
_SILENT_MS = 10 * 60_000
_LEAST_GROUPS = 2


def find_replicas_diverge(case: TopicCase, inputs: Inputs) -> Iterator[Finding]:  # noqa: ARG001
    """Records that stand at the same offset of two replicas and are not the same.

    Leader epoch, key and value are compared, record by record: batches may differ after cleaning. What only one of them has is no
    difference, since each is cleaned by itself. Differences at or above a high watermark are a tail that a replica had yet to give up.
    """
    by_number: defaultdict[int | None, list[PartitionCase]] = defaultdict(list)
    for partition in case.partitions:
        by_number[partition.log_context.offsets_partition].append(partition)
    several = [partitions for partitions in by_number.values() if len(partitions) > 1]
    if not several or case.files is None:
        yield undecidable("IC-23", "there is one copy of each partition only", remedy="Give the data directory of a second replica, too")
        return
    for partitions in several:
        for one, other in combinations(partitions, 2):
            differences, count = _differences(case.files, one, other)
            if count:
                yield _diverged(case.files, one, other, differences, count)


def _differences(files: LogFiles, one: PartitionCase, other: PartitionCase) -> tuple[list[tuple[dict[str, Any], dict[str, Any]]], int]:
    """The first records at the same offset that differ, and how many there are."""
    found: list[tuple[dict[str, Any], dict[str, Any]]] = []
    count = 0
    sides = [(batch.select(_COLUMNS) for batch in files.records(each.log_context.origin)) for each in (one, other)]
    for left, right in _side_by_side(*sides):
        differs = pa.array([False] * left.num_rows)
        for name in _COMPARED:
            same = pc.fill_null(pc.equal(left[name], right[name]), fill_value=False)
            both_null = pc.and_(pc.is_null(left[name]), pc.is_null(right[name]))
            differs = pc.or_(differs, pc.invert(pc.or_(same, both_null)))
        count += pc.sum(differs).as_py() or 0
        if len(found) < _MOST_DIFFERENCES:
            pairs = (table.filter(differs).slice(0, _MOST_DIFFERENCES).to_pylist() for table in (left, right))
            found += zip(*pairs, strict=True)
    return found, count


def _side_by_side(left: Iterator[pa.RecordBatch], right: Iterator[pa.RecordBatch]) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Tables of the records that both sides have, row by row at the same offset."""
    one, other = next(left, None), next(right, None)
    while one is not None and other is not None:
        offsets = [batch["record_offset"].to_numpy() for batch in (one, other)]
        _, here, there = np.intersect1d(*offsets, return_indices=True)
        if len(here):
            yield pa.table(one.take(pa.array(here))), pa.table(other.take(pa.array(there)))
        if offsets[0].max(initial=-1) <= offsets[1].max(initial=-1):
            one = next(left, None)
        else:
            other = next(right, None)


def _diverged(
    files: LogFiles, one: PartitionCase, other: PartitionCase, differences: Sequence[tuple[dict[str, Any], dict[str, Any]]], count: int
) -> Finding:
    first = differences[0]
    offset = first[0]["record_offset"]
    epochs = [row["partition_leader_epoch"] for row in first]
    # Whose leader came later is what the others follow.
    loser, winner = (0, 1) if epochs[0] <= epochs[1] else (1, 0)
    names = [each.log_context.replica for each in (one, other)]
    lost = [text for pair in differences if (text := _lost(pair[loser], pair[winner])) is not None]
    watermarks = [
        directory.high_watermark
        for each in (one, other)
        if (directory := files.directory(each.log_context.origin)) is not None and directory.high_watermark is not None
    ]
    is_tail = bool(watermarks) and offset >= min(watermarks)
    rows = [
        {"record_offset": row["record_offset"], "timestamp_ms": row["timestamp_ms"], "what": f"replica {names[side]}: {_text(row)}"}
        for pair in differences
        for side, row in enumerate(pair)
    ]
    return finding(
        "IC-23",
        f"replicas {names[0]} and {names[1]} have {counted(count, 'record')} at the same offset that are not the same, from {offset} on "
        f"(leader epochs {epochs[0]} and {epochs[1]}); what replica {names[loser]} has there is lost{f': {lost[0]}' if lost else ''}",
        one.log_context,
        severity="info" if is_tail else "incident",
        confidence="possible" if is_tail else "proof",
        evidence=rows,
        not_excluded=["a tail above the high watermark, which a replica gives up when it follows the leader"] if is_tail else [],
        remedy="exhume state on each replica, and exhume diff, show what the groups lose",
    )


def _lost(loser: dict[str, Any], winner: dict[str, Any]) -> str | None:
    """What a commit on the losing side said, and what stands there on the other."""
    decoded = decode_record(loser["key"], loser["value"])
    if decoded.number not in OFFSET_COMMIT_TYPES or decoded.value is None:
        return None
    place = f"{decoded.key.get('group')} {decoded.key.get('topic')}-{decoded.key.get('partition')}"
    stands = decode_record(winner["key"], winner["value"])
    value = (stands.value or {}).get("committed_offset") if stands.key == decoded.key else None
    kept = "" if value is None else f", where {value} stands now"
    return f"{place} = {decoded.value.get('committed_offset')}{kept}"


def _text(row: dict[str, Any]) -> str:
    decoded = decode_record(row["key"], row["value"])
    named = " ".join(str(part) for part in decoded.key.values())
    value = "tombstone" if row["value"] is None else (decoded.value or {}).get("committed_offset", "")
    return f"leader epoch {row['partition_leader_epoch']}, {decoded.name} {named} {value}".strip()


def find_damaged_segments(case: TopicCase, inputs: Inputs) -> Iterator[Finding]:  # noqa: ARG001
    """Batches that fail their checksum, lengths that lead beyond the file, bytes that are no batch, records that cannot be unfolded.

    Reading goes on behind them where the next sound batch begins. Damage at the end of the newest segment is a cut tail, normal for a copy
    of a broker at work; anything else is a hole. Zero bytes of a preallocated file are no damage.
    """
    if case.files is None:
        yield undecidable("IC-36", "damage can only be seen in the files of the log")
        return
    newest = {each.read_segments[-1].path for each in case.files.directories}
    places = {each.log_context.origin: each for each in case.partitions}
    for damage in list(case.files.damage):
        if not damage.is_damage:
            continue
        is_tail = damage.code == "cut_tail" and damage.path in newest
        partition = places.get((damage.replica, damage.offsets_partition))
        what = "a cut tail" if is_tail else "a hole"
        yield Finding(
            code="IC-36",
            sentence=f"{what}: {damage.sentence}",
            severity="info" if is_tail else "incident",
            confidence="proof",
            replica=damage.replica,
            offsets_partition=damage.offsets_partition,
            path=damage.path,
            byte_position=damage.byte_position,
            size_bytes=damage.size_bytes,
            first_record_offset=damage.first_record_offset,
            last_record_offset=damage.last_record_offset,
            not_excluded="a copy that was made while the broker wrote" if is_tail else None,
            remedy=damage.remedy,
            evidence=[{"record_offset": damage.first_record_offset, "timestamp_ms": None, "what": damage.code}] if partition else None,
        )


def find_silence(case: TopicCase, inputs: Inputs) -> Iterator[Finding]:  # noqa: ARG001
    """An offsets partition in which nothing was written for ten minutes and longer up to a new leader, while others went on.

    At least two of its groups wrote before and after it, and a group of another partition of the same replica wrote during it.
    Why a partition is without a coordinator is not in the log: no leader, or a load that failed.
    """
    for partition in case.partitions:
        epochs = partition.log_context.epochs
        for before, epoch in pairwise(epochs):
            # Old formats have no leader epoch, and end one.
            if epoch.leader_epoch <= before.leader_epoch or epoch.silent_since_ms is None or epoch.first_timestamp_ms is None:
                continue
            length_ms = epoch.first_timestamp_ms - epoch.silent_since_ms
            if length_ms >= _SILENT_MS:
                found = _silence(case, partition, epoch, before.leader_epoch, length_ms)
                if found is not None:
                    yield found


def _silence(case: TopicCase, partition: PartitionCase, epoch: Epoch, before: int, length_ms: int) -> Finding | None:
    since_ms, until_ms = epoch.silent_since_ms or 0, epoch.first_timestamp_ms or 0
    stopped = [group for group in partition.groups if _spans(group.first_commit_ms, group.last_commit_ms, since_ms, until_ms)]
    went_on = [
        group
        for other in case.partitions
        if other is not partition and other.log_context.replica == partition.log_context.replica
        for group in other.groups
        if _spans(group.first_commit_ms, group.last_commit_ms, since_ms, until_ms)
        and not any(each.from_timestamp_ms <= since_ms + length_ms // 4 and each.to_timestamp_ms >= until_ms for each in group.silences)
    ]
    if len(stopped) < _LEAST_GROUPS or not went_on:
        return None
    log_context = partition.log_context
    what = f"the first record of leader epoch {epoch.leader_epoch}"
    rows: list[Proof] = [{"record_offset": epoch.first_record_offset, "timestamp_ms": until_ms, "what": what}]
    return finding(
        "IC-37",
        f"nothing was written for {span(length_ms)}, until leader epoch {epoch.leader_epoch} (before: {before}) began at record "
        f"{epoch.first_record_offset}; {counted(len(stopped), 'group')} stopped, while {counted(len(went_on), 'group')} of other "
        "partitions went on",
        log_context,
        severity="incident",
        confidence="possible",
        evidence=rows,
        not_excluded=("groups of this partition that had nothing to commit",),
        remedy="The cause is not in the log: look for a partition without a leader, or a load that failed, at that time",
    )


def _spans(first_ms: int | None, last_ms: int | None, since_ms: int, until_ms: int) -> bool:
    return first_ms is not None and last_ms is not None and first_ms <= since_ms and last_ms >= until_ms


DETECTORS = (
    Detector(
        code="IC-23",
        title="Replicas diverge: a tail was lost in an election",
        section="The coordinator cannot read its log",
        in_topic=find_replicas_diverge,
        traps=(
            "Batches of two healthy replicas may differ after cleaning: records at the same offset may not",
            "A tail above the high watermark differs rightly",
            "On a single copy the lost commits are gone without a rewind",
        ),
        needs=("a second replica",),
    ),
    Detector(
        code="IC-36",
        title="Damaged segments",
        section="The coordinator cannot read its log",
        in_topic=find_damaged_segments,
        traps=("A copy of a broker at work may end inside a batch", "Zero bytes at the end of a preallocated file"),
    ),
    Detector(
        code="IC-37",
        title="A partition without a coordinator: the log shows silence",
        section="The coordinator cannot read its log",
        in_topic=find_silence,
        traps=("A quiet partition of one group", "A replica that was removed: its copy ends early"),
    ),
)
