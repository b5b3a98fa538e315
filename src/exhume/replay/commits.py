"""Commits and transactions as both coordinators build them from records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from exhume.codecs.batches import wrap_int64
from exhume.replay.broker_log import LoadedBatch
from exhume.replay.decode import ReplayRecord
from exhume.replay.partition_state import Commit, OpenTransaction


@dataclass(frozen=True, slots=True)
class CommitRules:
    """The rules in which releases differ when they build a commit, as in `ScalaProfile`. The rule `retention` adds `retention_ms`."""

    missing_expire_timestamp: Literal["retention", "literal", "absent"] = "absent"
    retention_ms: int = 0
    keeps_leader_epoch_below_minus_one: bool = True


def build_commit(record: ReplayRecord, batch_first_offset: int, transaction: LoadedBatch | None, rules: CommitRules) -> Commit:
    """The commit of an offset record; `transaction` is its batch if a transaction wrote it. -1 becomes None if Kafka means "none"."""
    value = record.value
    assert value is not None
    assert record.value_version is not None
    leader_epoch = value.get("leader_epoch", -1)
    is_absent = leader_epoch == -1 or (leader_epoch < 0 and not rules.keeps_leader_epoch_below_minus_one)
    return Commit(
        committed_offset=value["committed_offset"],
        leader_epoch=None if is_absent else leader_epoch,
        metadata=value["metadata"],
        commit_timestamp_ms=value["commit_timestamp_ms"],
        expire_timestamp_ms=_expire_timestamp(record, rules),
        topic_id=value.get("topic_id"),
        value_version=record.value_version,
        record_offset=record.record_offset,
        batch_first_offset=batch_first_offset,
        producer_id=transaction.producer_id if transaction else None,
        producer_epoch=transaction.producer_epoch if transaction else None,
    )


def _expire_timestamp(record: ReplayRecord, rules: CommitRules) -> int | None:
    value = record.value
    assert value is not None
    written: int | None = value.get("expire_timestamp_ms")
    if written is not None and written != -1:
        return written
    if rules.missing_expire_timestamp == "retention":
        return wrap_int64(int(value["commit_timestamp_ms"]) + rules.retention_ms)
    return written if rules.missing_expire_timestamp == "literal" else None


def transaction_of(
    transactions: dict[int, OpenTransaction], batch: LoadedBatch, record_offset: int, timestamp_ms: int | None
) -> OpenTransaction:
    """The open transaction of this batch's producer, opened or prolonged by this record."""
    transaction = transactions.get(batch.producer_id)
    if transaction is None:
        transaction = OpenTransaction(batch.producer_id, batch.producer_epoch, record_offset, record_offset, timestamp_ms, timestamp_ms)
        transactions[batch.producer_id] = transaction
    transaction.producer_epoch = batch.producer_epoch
    transaction.last_record_offset = record_offset
    transaction.last_timestamp_ms = timestamp_ms
    return transaction


def joined_transactions(known: Mapping[int, OpenTransaction], others: Iterable[OpenTransaction]) -> dict[int, OpenTransaction]:
    """Merge the open transactions of two readings of one log, in the order of their start. Changes the first reading."""
    joined = dict(known)
    for other in others:
        first = joined.setdefault(other.producer_id, other)
        if first is other:
            continue
        first.groups |= other.groups
        first.offsets |= other.offsets
        if other.first_record_offset < first.first_record_offset:
            first.first_record_offset, first.first_timestamp_ms = other.first_record_offset, other.first_timestamp_ms
        if other.last_record_offset > first.last_record_offset:
            first.last_record_offset, first.last_timestamp_ms = other.last_record_offset, other.last_timestamp_ms
            first.producer_epoch = other.producer_epoch
    return dict(sorted(joined.items(), key=lambda item: item[1].first_record_offset))
