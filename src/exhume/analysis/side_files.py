"""The files beside the segments as tables: checkpoints, leader epochs, indexes, producer snapshots."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypedDict

import pyarrow as pa

from exhume.arrow_rows import Int16, Int32, OfLog, of_log, schema_of, table_of
from exhume.codecs.indexes import find_index_problems, read_offset_index, read_time_index, read_transaction_index
from exhume.codecs.log_directory import Evidence, LogDirectory, PartitionDirectory, SegmentFile
from exhume.codecs.schemas import InFile
from exhume.codecs.snapshots import read_producer_snapshot
from exhume.codecs.volumes import EvidenceFile
from exhume.errors import EvidenceError
from exhume.findings import Finding, Findings


class LogDirectoryRow(TypedDict):
    """One row per log directory. `clean_shutdown` is null if no file shows it."""

    replica: str
    path: str
    is_whole: bool
    clean_shutdown: bool | None
    broker_id: Int32 | None
    cluster_id: str | None
    directory_id: str | None


class CheckpointRow(TypedDict):
    """One row per entry of the four checkpoint files of a log directory.

    `checkpoint` is the file's name without `-offset-checkpoint`.
    """

    replica: str
    checkpoint: str
    topic: str
    partition: Int32
    record_offset: int


class LeaderEpochRow(OfLog):
    """One row per leader epoch, with the record offset that it began at."""

    leader_epoch: Int32
    start_offset: int


class IndexRow(InFile):
    """One row per index file. Offsets and times are those of its first and last entry."""

    kind: str
    size_bytes: int
    entry_count: int
    first_offset: int | None
    last_offset: int | None
    first_timestamp_ms: int | None
    last_timestamp_ms: int | None


class AbortedTransactionRow(InFile):
    """One row per aborted transaction in a transaction index."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class ProducerRow(InFile):
    """One row per producer in a producer snapshot, which covers the record offsets below `snapshot_offset`."""

    snapshot_offset: int
    producer_id: int
    producer_epoch: Int16
    last_sequence: Int32 | None
    last_offset: int | None
    offset_delta: Int32 | None
    timestamp_ms: int
    coordinator_epoch: Int32 | None
    current_txn_first_offset: int | None


TABLES: Mapping[str, pa.Schema] = {
    "log_directories": schema_of(LogDirectoryRow),
    "checkpoints": schema_of(CheckpointRow),
    "leader_epochs": schema_of(LeaderEpochRow),
    "indexes": schema_of(IndexRow),
    "aborted_transactions": schema_of(AbortedTransactionRow),
    "producers": schema_of(ProducerRow),
}


def tables(evidence: Evidence, findings: Findings) -> dict[str, pa.Table]:
    """Return the tables of `TABLES`; unreadable files add to `findings`."""
    partitions = evidence.partitions
    for partition in partitions:
        findings.extend(find_index_problems(partition))
    rows: Mapping[str, Iterable[Mapping[str, Any]]] = {
        "log_directories": [_directory_row(directory) for directory in evidence.log_directories],
        "checkpoints": (row for directory in evidence.log_directories for row in _checkpoint_rows(directory)),
        "leader_epochs": (row for partition in partitions for row in _leader_epochs(partition)),
        "indexes": (row for partition in partitions for segment in partition.segments for row in _index_rows(partition, segment)),
        "aborted_transactions": (row for partition in partitions for row in _aborted_transactions(partition)),
        "producers": (row for partition in partitions for row in _producers(partition, findings)),
    }
    return {name: table_of(schema, rows[name]) for name, schema in TABLES.items()}


def _directory_row(directory: LogDirectory) -> LogDirectoryRow:
    meta = directory.meta
    return {
        "replica": directory.replica,
        "path": directory.path,
        "is_whole": directory.is_whole,
        "clean_shutdown": directory.clean_shutdown,
        "broker_id": meta.broker_id if meta else None,
        "cluster_id": meta.cluster_id if meta else None,
        "directory_id": meta.directory_id if meta else None,
    }


def _checkpoint_rows(directory: LogDirectory) -> Iterator[CheckpointRow]:
    for checkpoint, offsets in (
        ("replication", directory.high_watermarks),
        ("recovery-point", directory.recovery_points),
        ("log-start", directory.log_starts),
        ("cleaner", directory.cleaner_offsets),
    ):
        for (topic, number), record_offset in sorted(offsets.items()):
            yield {
                "replica": directory.replica,
                "checkpoint": checkpoint,
                "topic": topic,
                "partition": number,
                "record_offset": record_offset,
            }


def _leader_epochs(partition: PartitionDirectory) -> Iterator[LeaderEpochRow]:
    origin = of_log(partition.replica, partition.offsets_partition)
    for entry in partition.leader_epochs:
        yield {**origin, "leader_epoch": entry.epoch, "start_offset": entry.start_offset}


def _index_rows(partition: PartitionDirectory, segment: SegmentFile) -> Iterator[IndexRow]:
    if segment.index is not None:
        offsets = [entry.record_offset for entry in read_offset_index(segment)]
        yield _index_row(partition, segment.index, "index", offsets)
    if segment.timeindex is not None:
        entries = read_time_index(segment)
        times = [entry.timestamp_ms for entry in entries]
        row = _index_row(partition, segment.timeindex, "timeindex", [entry.record_offset for entry in entries])
        yield row | {"first_timestamp_ms": times[0] if times else None, "last_timestamp_ms": times[-1] if times else None}
    if segment.txnindex is not None:
        yield _index_row(partition, segment.txnindex, "txnindex", [entry.last_offset for entry in read_transaction_index(segment)])


def _index_row(partition: PartitionDirectory, file: EvidenceFile, kind: str, offsets: Sequence[int]) -> IndexRow:
    return {
        **of_log(partition.replica, partition.offsets_partition),
        "path": file.path,
        "kind": kind,
        "size_bytes": file.size_bytes,
        "entry_count": len(offsets),
        "first_offset": offsets[0] if offsets else None,
        "last_offset": offsets[-1] if offsets else None,
        "first_timestamp_ms": None,
        "last_timestamp_ms": None,
    }


def _aborted_transactions(partition: PartitionDirectory) -> Iterator[AbortedTransactionRow]:
    origin = of_log(partition.replica, partition.offsets_partition)
    for segment in partition.segments:
        if segment.txnindex is None:
            continue
        for entry in read_transaction_index(segment):
            yield {
                **origin,
                "path": segment.txnindex.path,
                "producer_id": entry.producer_id,
                "first_offset": entry.first_offset,
                "last_offset": entry.last_offset,
                "last_stable_offset": entry.last_stable_offset,
            }


def _producers(partition: PartitionDirectory, findings: Findings) -> Iterator[ProducerRow]:
    for file in partition.snapshots:
        try:
            with file.open() as data:
                snapshot = read_producer_snapshot(data)
        except EvidenceError as error:
            findings.add(
                Finding(
                    code="snapshot_unreadable",
                    severity="warn",
                    sentence=f"this producer snapshot cannot be read: {error.message}",
                    replica=partition.replica,
                    offsets_partition=partition.offsets_partition,
                    path=file.path,
                    byte_position=error.byte_position,
                    remedy="A broker rebuilds it from the log; exhume does not need it",
                )
            )
            continue
        for producer in snapshot.producers:
            yield {
                **of_log(partition.replica, partition.offsets_partition),
                "path": file.path,
                "snapshot_offset": file.record_offset,
                "producer_id": producer.producer_id,
                "producer_epoch": producer.producer_epoch,
                "last_sequence": producer.last_sequence,
                "last_offset": producer.last_offset,
                "offset_delta": producer.offset_delta,
                "timestamp_ms": producer.timestamp_ms,
                "coordinator_epoch": producer.coordinator_epoch,
                "current_txn_first_offset": producer.current_txn_first_offset,
            }
