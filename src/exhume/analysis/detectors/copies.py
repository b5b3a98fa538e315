"""Find differences between replicas, damage, and a partition without records while others had some."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from exhume.analysis.detectors.cases import Epoch, PartitionCase, TopicCase
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.log_files import LogFiles
from exhume.analysis.detectors.outages import find_all_silent, find_leader_changes
from exhume.analysis.detectors.registry import Detector
from exhume.analysis.detectors.report import MORE_NAMED, EvidenceRow, Proof, counted, finding, next_step, span, undecidable
from exhume.codecs.record_types import OFFSET_COMMIT_TYPES, decode_record
from exhume.codecs.schemas import RecordRow
from exhume.findings import Finding

_COMPARED = ("partition_leader_epoch", "key", "value")
_COLUMNS = ["record_offset", "timestamp_ms", *_COMPARED]
#: The results of a checksum that make a record useless as evidence.
_DAMAGED = pa.array(["mismatch", "unreadable"])
#: The largest number of differences in the evidence.
_MOST_DIFFERENCES = 25
#: The least time without records before a new leader.
_SILENT_MS = 10 * 60_000
_LEAST_GROUPS = 2


def find_replicas_diverge(case: TopicCase, inputs: Inputs) -> Iterator[Finding]:
    """Two replicas have different records at the same offset.

    Leader epoch, key and value are compared, record by record: batches may differ after compaction. A record that only one replica has is
    no difference, since each replica is compacted on its own. Differences at or above a high watermark are a tail that a replica has not
    truncated yet. The evidence has every key with lost commits: its last lost value, and its last value on the other replica.
    """
    by_number: defaultdict[int | None, list[PartitionCase]] = defaultdict(list)
    for partition in case.partitions:
        by_number[partition.log_context.offsets_partition].append(partition)
    several = [partitions for partitions in by_number.values() if len(partitions) > 1]
    if not several or case.files is None:
        yield undecidable("IC-23", "only one copy of each offsets partition was given", remedy="Add the data directory of a second replica")
        return
    for partitions in several:
        for one, other in combinations(partitions, 2):
            found = _differences(case.files, one, other)
            if found.count:
                yield _diverged(case.files, one, other, found, inputs=inputs)


@dataclass(slots=True)
class _Differences:
    """The records of two replicas that differ at the same offset: the first ones, the number of all, and the last of each key and side."""

    first: list[tuple[RecordRow, RecordRow]] = field(default_factory=list)
    count: int = 0
    lasts: tuple[dict[bytes, RecordRow], dict[bytes, RecordRow]] = field(default_factory=lambda: ({}, {}))

    def add(self, left: Sequence[RecordRow], right: Sequence[RecordRow]) -> None:
        self.first += [*zip(left, right, strict=True)][: _MOST_DIFFERENCES - len(self.first)]
        self.count += len(left)
        for known, rows in zip(self.lasts, (left, right), strict=True):
            known.update((row["key"], row) for row in rows if row["key"] is not None)


def _undamaged_records(files: LogFiles, partition: PartitionCase) -> Iterator[pa.RecordBatch]:
    """Yield the records of a replica without those of batches with a wrong checksum, or that are cut."""
    for batch in files.records(partition.log_context.origin):
        yield batch.filter(pc.invert(pc.is_in(batch["crc_status"], value_set=_DAMAGED))).select(_COLUMNS)


def _differences(files: LogFiles, one: PartitionCase, other: PartitionCase) -> _Differences:
    found = _Differences()
    sides = [_undamaged_records(files, each) for each in (one, other)]
    for left, right in _side_by_side(*sides):
        differs = pa.array([False] * left.num_rows)
        for name in _COMPARED:
            same = pc.fill_null(pc.equal(left[name], right[name]), fill_value=False)
            both_null = pc.and_(pc.is_null(left[name]), pc.is_null(right[name]))
            differs = pc.or_(differs, pc.invert(pc.or_(same, both_null)))
        if pc.any(differs).as_py():
            found.add(*(table.filter(differs).to_pylist() for table in (left, right)))
    return found


def _side_by_side(left: Iterator[pa.RecordBatch], right: Iterator[pa.RecordBatch]) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Yield tables of the records that both sides have, with the same offsets in the same rows."""
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
    files: LogFiles,
    one: PartitionCase,
    other: PartitionCase,
    differences: _Differences,
    *,
    inputs: Inputs,
) -> Finding:
    first = differences.first[0]
    offset = first[0]["record_offset"]
    # Formats 0 and 1 have no leader epoch.
    epochs = [-1 if row["partition_leader_epoch"] is None else row["partition_leader_epoch"] for row in first]
    # The followers take the records of the later leader.
    loser, winner = (0, 1) if epochs[0] <= epochs[1] else (1, 0)
    names = [each.log_context.replica for each in (one, other)]
    sides = one, other
    lost = _lost_commits(files, sides[winner], differences.lasts[loser], offset)
    watermarks = [
        directory.high_watermark
        for each in (one, other)
        if (directory := files.directory(each.log_context.origin)) is not None and directory.high_watermark is not None
    ]
    is_tail = bool(watermarks) and offset >= min(watermarks)
    rows: list[EvidenceRow] = [
        {"record_offset": row["record_offset"], "timestamp_ms": row["timestamp_ms"], "what": f"replica {names[side]}: {_text(row)}"}
        for pair in differences.first
        for side, row in enumerate(pair)
    ]
    rows += [each.row for each in lost]
    keys = counted(len(lost), "key")
    listed = ", ".join(each.sentence for each in lost[:MORE_NAMED]) + (
        f" and {len(lost) - MORE_NAMED} more" if len(lost) > MORE_NAMED else ""
    )
    return finding(
        "IC-23",
        f"replicas {names[0]} and {names[1]} have different records at {counted(differences.count, 'offset')}, from record {offset} on"
        f" (leader epochs {epochs[0]} and {epochs[1]}); the records of replica {names[loser]} are lost"
        f"{f', with commits of {keys}: {listed}' if lost else ''}",
        one.log_context,
        severity="info" if is_tail else "incident",
        confidence="possible" if is_tail else "proof",
        evidence=rows,
        most_evidence=len(rows),
        not_excluded=["a tail above the high watermark, which a replica truncates when it follows the leader"] if is_tail else [],
        remedy=next_step("Compare the committed offsets by replica", inputs, "state", "--table", "offsets"),
    )


@dataclass(frozen=True, slots=True)
class _LostCommit:
    """The last lost commit of a key."""

    record: RecordRow
    #: The key in words, the lost value, and the last value on the other replica.
    sentence: str

    @property
    def row(self) -> EvidenceRow:
        return {
            "record_offset": self.record["record_offset"],
            "timestamp_ms": self.record["timestamp_ms"],
            "what": f"lost commit: {self.sentence}",
        }


def _lost_commits(files: LogFiles, winner: PartitionCase, lost: Mapping[bytes, RecordRow], from_offset: int) -> list[_LostCommit]:
    """Return the last lost commit of each key, with the last value of the key on the replica that keeps its records."""
    wanted = pa.array([key for key in lost if decode_record(key, None).number in OFFSET_COMMIT_TYPES], pa.binary())
    #: The record offset and value of the last record of each key.
    now: dict[bytes, tuple[int, bytes | None]] = {}
    for batch in _undamaged_records(files, winner) if len(wanted) else ():
        own = batch.select(["record_offset", "key", "value"]).filter(pc.is_in(batch["key"], value_set=wanted))
        now.update((key, (offset, value)) for offset, key, value in zip(*(column.to_pylist() for column in own.columns), strict=True))
    found = []
    for key in wanted.to_pylist():
        record = lost[key]
        decoded = decode_record(key, record["value"])
        value = "a tombstone" if decoded.value is None else decoded.value.get("committed_offset")
        offset, kept = now.get(key, (-1, None))
        kept_value = (decode_record(key, kept).value or {}).get("committed_offset")
        # A key without a record after the first difference has its earlier value.
        since = "" if offset >= from_offset else " as before"
        there = f"now {kept_value}{since}" if kept_value is not None else "now none"
        place = f"{decoded.key.get('group')} {decoded.key.get('topic')}-{decoded.key.get('partition')}"
        found.append(_LostCommit(record, f"{place} = {value} ({there})"))
    return found


def _text(row: RecordRow) -> str:
    decoded = decode_record(row["key"], row["value"])
    named = " ".join(str(part) for part in decoded.key.values())
    value = "tombstone" if row["value"] is None else (decoded.value or {}).get("committed_offset", "")
    return f"leader epoch {row['partition_leader_epoch']}, {decoded.name} {named} {value}".strip()


def find_damaged_segments(case: TopicCase, inputs: Inputs) -> Iterator[Finding]:  # noqa: ARG001
    """Batches with a wrong checksum, lengths beyond the end of the file, bytes that are no batch, records that cannot be decompressed.

    exhume continues at the next sound batch. Damage at the end of the newest segment is a cut tail, which is normal for a copy of a running
    broker. All other damage is a hole. Zero bytes of a preallocated file are no damage.
    """
    if case.files is None:
        yield undecidable("IC-36", "damage shows only in the files of the log, and they are not available")
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
            not_excluded="a copy made while the broker was writing" if is_tail else None,
            remedy=damage.remedy,
            evidence=[{"record_offset": damage.first_record_offset, "timestamp_ms": None, "what": damage.code}] if partition else None,
        )


def find_silence(case: TopicCase, inputs: Inputs) -> Iterator[Finding]:  # noqa: ARG001
    """An offsets partition has no record for ten minutes or longer before a new leader, while other partitions continue.

    At least two of its groups committed before and after that time, and a group of another partition of the same replica committed during
    it. The log does not show why the partition had no coordinator: it had no leader, or its load failed.

    Also all groups, three or more, that committed often and then nothing for ten minutes or longer, from and to the same time. It is `info`
    unless a new leader began then, half of the groups began a new generation then, or half of them also commit unchanged offsets, and so
    would have committed on idle topics. And a partition with ten new leaders or more within an hour.
    """
    yield from find_all_silent(case)
    yield from find_leader_changes(case)
    for partition in case.partitions:
        epochs = partition.log_context.epochs
        for before, epoch in pairwise(epochs):
            # A batch of an old format has no leader epoch, and ends the one before.
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
        f"this offsets partition got no record for {span(length_ms)}, until leader epoch {epoch.leader_epoch} (after {before}) began at"
        f" record {epoch.first_record_offset}; {counted(len(stopped), 'group')} stopped, and {counted(len(went_on), 'group')} of other"
        " partitions continued",
        log_context,
        severity="incident",
        confidence="possible",
        evidence=rows,
        not_excluded=("groups of this partition that had nothing to commit",),
        remedy="The log does not show the cause: check the broker logs of that time for a partition without a leader, or for a failed load",
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
            "Batches of two healthy replicas may differ after compaction; records at the same offset may not",
            "A tail above the high watermark may differ",
            "A single copy shows no rewind for the lost commits",
        ),
        needs=("a second replica",),
    ),
    Detector(
        code="IC-36",
        title="Damaged segments",
        section="The coordinator cannot read its log",
        in_topic=find_damaged_segments,
        traps=("A copy of a running broker may end inside a batch", "A preallocated file ends in zero bytes"),
    ),
    Detector(
        code="IC-37",
        title="A partition without a coordinator, or all groups silent at once",
        section="The coordinator cannot read its log",
        in_topic=find_silence,
        traps=("A partition with one group may have no commits for a time", "The copy of a removed replica ends early"),
    ),
)
