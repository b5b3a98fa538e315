"""Transactions on the offsets topic: open and finished ones, the bytes that they hold up, and the last stable offset of the log.

While a transaction is open, its commits are pending. The coordinator refuses a fetch of stable offsets for their keys. Neither a reader of
committed records nor the cleaner goes past its first record. `transaction_outcomes` says what a transaction is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from exhume.analysis.number_columns import rows_where
from exhume.analysis.transaction_outcomes import EndMarkers, Marker, Transaction, TransactionReader, is_late
from exhume.arrow_rows import Origin, table_of
from exhume.codecs.log_directory import PartitionDirectory
from exhume.codecs.record_types import OFFSET_COMMIT_TYPES, decode_record
from exhume.durations import DEFAULT_MAX_TIMEOUT_MS

#: One row per transaction, open ones first, then in log order. `outcome` is open, COMMIT or ABORT. `duration_ms` is the time from the first
#: record to the marker; for an open one, to the newest record of the partition. `idle_ms` is the time from the last record to there.
#: `is_late`: an open one has been idle for longer than the maximum timeout and five minutes, so its producer no longer ends it; a finished
#: one took longer than that timeout. `staged` are the offsets that it commits; while it is open they are not stable. `held_up_bytes` are
#: between its first record and the end of the log.
TRANSACTIONS = pa.schema(
    [
        ("replica", pa.string()),
        ("offsets_partition", pa.int32()),
        ("producer_id", pa.int64()),
        ("producer_epoch", pa.int16()),
        ("outcome", pa.string()),
        ("is_late", pa.bool_()),
        ("duration_ms", pa.int64()),
        ("idle_ms", pa.int64()),
        ("first_record_offset", pa.int64()),
        ("last_record_offset", pa.int64()),
        ("records", pa.int64()),
        ("first_timestamp_ms", pa.int64()),
        ("last_timestamp_ms", pa.int64()),
        ("marker_record_offset", pa.int64()),
        ("marker_timestamp_ms", pa.int64()),
        ("marker_coordinator_epoch", pa.int32()),
        ("groups", pa.list_(pa.string())),
        ("staged", pa.list_(pa.struct([("group", pa.string()), ("topic", pa.string()), ("partition", pa.int32())]))),
        ("held_up_bytes", pa.int64()),
    ]
)

#: One row per offsets partition. `last_stable_offset` is the first record of the oldest open transaction; without one, `end_offset`, the
#: offset after the last record. `held_up_bytes` are after it.
STABLE_OFFSETS = pa.schema(
    [
        ("replica", pa.string()),
        ("offsets_partition", pa.int32()),
        ("last_stable_offset", pa.int64()),
        ("end_offset", pa.int64()),
        ("open_transactions", pa.int64()),
        ("late_transactions", pa.int64()),
        ("finished_transactions", pa.int64()),
        ("held_up_bytes", pa.int64()),
        ("newest_timestamp_ms", pa.int64()),
    ]
)

_Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Transactions:
    """The transactions of a log as `TRANSACTIONS`, and the last stable offset of each partition as `STABLE_OFFSETS`."""

    table: pa.Table
    partitions: pa.Table


class _Log:
    """The transactions of one offsets partition, part by part."""

    def __init__(self, *, with_finished: bool) -> None:
        self.end_offset = 0
        self.newest_ms: int | None = None
        self.transactions = TransactionReader(keeps_ended=with_finished)

    def take(self, part: pa.RecordBatch) -> None:
        """Add the next records."""
        last = pc.max(part["record_offset"]).as_py()
        self.end_offset = max(self.end_offset, -1 if last is None else last + 1)
        newest = pc.max(part["timestamp_ms"]).as_py()
        if newest is not None:
            self.newest_ms = newest if self.newest_ms is None else max(self.newest_ms, newest)
        if pc.any(pc.or_(part["is_transactional"], part["is_control"])).as_py():
            places = np.arange(part.num_rows)
            self.transactions.take(part, places, EndMarkers.of(*rows_where(part["is_control"], part, places), every_type_ends=True))


def transactions_of(
    records: Iterable[pa.RecordBatch],
    directories: Sequence[PartitionDirectory],
    *,
    max_timeout_ms: int = DEFAULT_MAX_TIMEOUT_MS,
    with_finished: bool = False,
) -> Transactions:
    """Return the transactions of these records: the open ones, and with `with_finished` the finished ones.

    Args:
        records: rows of `schemas.RECORDS`, all of them, in log order.
        directories: the partition directories of the records.
        max_timeout_ms: the broker's `transaction.max.timeout.ms`.
        with_finished: add finished transactions.
    """
    logs: dict[Origin, _Log] = {(each.replica, each.offsets_partition): _Log(with_finished=with_finished) for each in directories}
    for batch in records:
        for origin, part in _parts(batch):
            if origin not in logs:
                logs[origin] = _Log(with_finished=with_finished)
            logs[origin].take(part)
    rows: list[_Row] = []
    partitions: list[_Row] = []
    for origin, log in logs.items():
        place = {"replica": origin[0], "offsets_partition": origin[1]}
        here = [each for each in directories if (each.replica, each.offsets_partition) == origin]
        ours = [place | _open_row(each, log, here, max_timeout_ms) for each in log.transactions.open.values()]
        finished = ((each, each.marker) for each in log.transactions.ended)
        rows += ours + [place | _finished_row(each, marker, max_timeout_ms) for each, marker in finished if marker is not None]
        partitions.append(place | _partition_row(log, ours))
    rows.sort(key=lambda row: (row["outcome"] != "open", row["replica"], row["offsets_partition"] or 0, row["first_record_offset"]))
    return Transactions(table_of(TRANSACTIONS, rows), table_of(STABLE_OFFSETS, partitions))


def transactions_sentence(found: Transactions) -> str:
    """Return the number of open and late transactions, and the bytes that they hold up, as one sentence."""
    rows = found.partitions.to_pylist()
    opened, late, held_up = (sum(row[name] for row in rows) for name in ("open_transactions", "late_transactions", "held_up_bytes"))
    places = sum(row["open_transactions"] > 0 for row in rows)
    if not opened:
        return f"no transaction is open in {len(rows)} partitions"
    transactions = "transaction is" if opened == 1 else "transactions are"
    return f"{opened} {transactions} open, {late} of them late; they hold up {held_up} bytes in {places} of {len(rows)} partitions"


def _parts(batch: pa.RecordBatch) -> Iterator[tuple[Origin, pa.RecordBatch]]:
    """Yield the rows of each partition, which follow each other."""
    start = 0
    while start < batch.num_rows:
        origin = (batch["replica"][start].as_py(), batch["offsets_partition"][start].as_py())
        rest = batch.slice(start)
        same = pc.equal(rest["replica"], origin[0])
        if origin[1] is not None:
            same = pc.and_(same, pc.fill_null(pc.equal(rest["offsets_partition"], origin[1]), fill_value=False))
        other = pc.index(same, value=False).as_py()
        part = rest if other < 0 else rest.slice(0, other)
        yield origin, part
        start += part.num_rows


def _common(found: Transaction) -> _Row:
    keys = [key for key in map(_offset_key, found.keys) if key is not None]
    return {
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "outcome": "open" if found.marker is None else found.marker.ending,
        "first_record_offset": found.first_record_offset,
        "last_record_offset": found.last_record_offset,
        "records": found.record_count,
        "first_timestamp_ms": found.first_timestamp_ms,
        "last_timestamp_ms": found.last_timestamp_ms,
        "groups": sorted({key["group"] for key in keys}),
        "staged": keys,
    }


def _open_row(found: Transaction, log: _Log, directories: Sequence[PartitionDirectory], max_timeout_ms: int) -> _Row:
    idle_ms = _between(found.last_timestamp_ms, log.newest_ms)
    return _common(found) | {
        "is_late": is_late(idle_ms, max_timeout_ms),
        "duration_ms": _between(found.first_timestamp_ms, log.newest_ms),
        "idle_ms": idle_ms,
        "held_up_bytes": found.held_up_bytes(directories),
    }


def _finished_row(found: Transaction, marker: Marker, max_timeout_ms: int) -> _Row:
    duration_ms = _between(found.first_timestamp_ms, marker.timestamp_ms)
    return _common(found) | {
        "is_late": duration_ms is not None and duration_ms > max_timeout_ms,
        "duration_ms": duration_ms,
        "marker_record_offset": marker.record_offset,
        "marker_timestamp_ms": marker.timestamp_ms,
        "marker_coordinator_epoch": marker.coordinator_epoch,
    }


def _partition_row(log: _Log, rows: Sequence[_Row]) -> _Row:
    return {
        "last_stable_offset": min((row["first_record_offset"] for row in rows), default=log.end_offset),
        "end_offset": log.end_offset,
        "open_transactions": len(rows),
        "late_transactions": sum(row["is_late"] for row in rows),
        "finished_transactions": log.transactions.ended_count,
        "held_up_bytes": max((row["held_up_bytes"] for row in rows), default=0),
        "newest_timestamp_ms": log.newest_ms,
    }


def _between(first_ms: int | None, last_ms: int | None) -> int | None:
    return None if first_ms is None or last_ms is None else max(last_ms - first_ms, 0)


@lru_cache(maxsize=1 << 16)
def _offset_key(key: bytes | None) -> _Row | None:
    """Return group, topic and partition of the key of an offset commit; None for other records."""
    decoded = decode_record(key, None)
    return decoded.key if decoded.number in OFFSET_COMMIT_TYPES and "partition" in decoded.key else None
