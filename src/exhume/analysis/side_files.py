"""What lies beside the segments: checkpoints, leader epochs, indexes, producer snapshots, as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from exhume.arrow_rows import table_of
from exhume.codecs.indexes import find_index_problems, read_offset_index, read_time_index, read_transaction_index
from exhume.codecs.log_directory import Evidence, PartitionDirectory, SegmentFile
from exhume.codecs.snapshots import read_producer_snapshot
from exhume.errors import EvidenceError
from exhume.findings import Finding, Findings

_ORIGIN = [("replica", pa.string()), ("offsets_partition", pa.int32())]

TABLES: Mapping[str, pa.Schema] = {
    # One row per log directory. `clean_shutdown` is null where nothing tells.
    "log_directories": pa.schema(
        [
            ("replica", pa.string()),
            ("path", pa.string()),
            ("is_whole", pa.bool_()),
            ("clean_shutdown", pa.bool_()),
            ("broker_id", pa.int32()),
            ("cluster_id", pa.string()),
            ("directory_id", pa.string()),
        ]
    ),
    # One row per entry of the four checkpoint files of a log directory; `checkpoint` is the file's name without `-offset-checkpoint`.
    "checkpoints": pa.schema(
        [
            ("replica", pa.string()),
            ("checkpoint", pa.string()),
            ("topic", pa.string()),
            ("partition", pa.int32()),
            ("record_offset", pa.int64()),
        ]
    ),
    "leader_epochs": pa.schema([*_ORIGIN, ("leader_epoch", pa.int32()), ("start_offset", pa.int64())]),
    # One row per index file. Offsets and times are those of its first and last entry.
    "indexes": pa.schema(
        [
            *_ORIGIN,
            ("path", pa.string()),
            ("kind", pa.string()),
            ("size_bytes", pa.int64()),
            ("entry_count", pa.int64()),
            ("first_offset", pa.int64()),
            ("last_offset", pa.int64()),
            ("first_timestamp_ms", pa.int64()),
            ("last_timestamp_ms", pa.int64()),
        ]
    ),
    # One row per aborted transaction in a transaction index.
    "aborted_transactions": pa.schema(
        [
            *_ORIGIN,
            ("path", pa.string()),
            ("producer_id", pa.int64()),
            ("first_offset", pa.int64()),
            ("last_offset", pa.int64()),
            ("last_stable_offset", pa.int64()),
        ]
    ),
    # One row per producer in a producer snapshot, which covers the record offsets below `snapshot_offset`.
    "producers": pa.schema(
        [
            *_ORIGIN,
            ("path", pa.string()),
            ("snapshot_offset", pa.int64()),
            ("producer_id", pa.int64()),
            ("producer_epoch", pa.int16()),
            ("last_sequence", pa.int32()),
            ("last_offset", pa.int64()),
            ("offset_delta", pa.int32()),
            ("timestamp_ms", pa.int64()),
            ("coordinator_epoch", pa.int32()),
            ("current_txn_first_offset", pa.int64()),
        ]
    ),
}

Row = dict[str, Any]


def tables(evidence: Evidence, findings: Findings) -> dict[str, pa.Table]:
    """The tables of `TABLES`; what cannot be read is added to `findings`."""
    rows: dict[str, list[Row]] = {name: [] for name in TABLES}
    for directory in evidence.log_directories:
        meta = directory.meta
        rows["log_directories"].append(
            {
                "replica": directory.replica,
                "path": directory.path,
                "is_whole": directory.is_whole,
                "clean_shutdown": directory.clean_shutdown,
                "broker_id": meta.broker_id if meta else None,
                "cluster_id": meta.cluster_id if meta else None,
                "directory_id": meta.directory_id if meta else None,
            }
        )
        for checkpoint, offsets in (
            ("replication", directory.high_watermarks),
            ("recovery-point", directory.recovery_points),
            ("log-start", directory.log_starts),
            ("cleaner", directory.cleaner_offsets),
        ):
            for (topic, number), record_offset in sorted(offsets.items()):
                row = {"topic": topic, "partition": number, "record_offset": record_offset}
                rows["checkpoints"].append({"replica": directory.replica, "checkpoint": checkpoint, **row})
    for partition in evidence.partitions:
        origin = {"replica": partition.replica, "offsets_partition": partition.offsets_partition}
        findings.extend(find_index_problems(partition))
        for name, partition_rows in (
            ("leader_epochs", _leader_epochs(partition)),
            ("indexes", _indexes(partition)),
            ("aborted_transactions", _aborted_transactions(partition)),
            ("producers", _producers(partition, findings)),
        ):
            rows[name] += [origin | row for row in partition_rows]
    return {name: table_of(schema, rows[name]) for name, schema in TABLES.items()}


def _leader_epochs(partition: PartitionDirectory) -> Iterator[Row]:
    for entry in partition.leader_epochs:
        yield {"leader_epoch": entry.epoch, "start_offset": entry.start_offset}


def _indexes(partition: PartitionDirectory) -> Iterator[Row]:
    for segment in partition.segments:
        yield from _index_rows(segment)


def _index_rows(segment: SegmentFile) -> Iterator[Row]:
    if segment.index is not None:
        offsets = [entry.record_offset for entry in read_offset_index(segment)]
        yield {"path": segment.index.path, "kind": "index", "size_bytes": segment.index.size_bytes, **_ends(offsets)}
    if segment.timeindex is not None:
        entries = read_time_index(segment)
        times = [entry.timestamp_ms for entry in entries]
        yield {
            "path": segment.timeindex.path,
            "kind": "timeindex",
            "size_bytes": segment.timeindex.size_bytes,
            **_ends([entry.record_offset for entry in entries]),
            "first_timestamp_ms": times[0] if times else None,
            "last_timestamp_ms": times[-1] if times else None,
        }
    if segment.txnindex is not None:
        aborted = [entry.last_offset for entry in read_transaction_index(segment)]
        yield {"path": segment.txnindex.path, "kind": "txnindex", "size_bytes": segment.txnindex.size_bytes, **_ends(aborted)}


def _ends(offsets: list[int]) -> Row:
    return {
        "entry_count": len(offsets),
        "first_offset": offsets[0] if offsets else None,
        "last_offset": offsets[-1] if offsets else None,
    }


def _aborted_transactions(partition: PartitionDirectory) -> Iterator[Row]:
    for segment in partition.segments:
        for entry in read_transaction_index(segment):
            yield {"path": segment.txnindex.path if segment.txnindex else None, **entry._asdict()}


def _producers(partition: PartitionDirectory, findings: Findings) -> Iterator[Row]:
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
                    remedy="A broker rebuilds it from the log; nothing that exhume answers needs it",
                )
            )
            continue
        for producer in snapshot.producers:
            row = {name: getattr(producer, name) for name in TABLES["producers"].names if hasattr(producer, name)}
            yield {"path": file.path, "snapshot_offset": file.record_offset, **row}
