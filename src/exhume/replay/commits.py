"""Commits and transactions as both coordinators build them from records."""

from __future__ import annotations

from exhume.replay.broker_log import LoadedBatch
from exhume.replay.decode import ReplayRecord
from exhume.replay.holdings import Commit, OpenTransaction


def build_commit(record: ReplayRecord, batch_first_offset: int, transaction: LoadedBatch | None) -> Commit:
    """The commit of an offset record; `transaction` is its batch where a transaction wrote it. -1 becomes None where Kafka means "none"."""
    value = record.value
    assert value is not None
    assert record.value_version is not None
    leader_epoch = value.get("leader_epoch", -1)
    expire_timestamp_ms = value.get("expire_timestamp_ms", -1)
    return Commit(
        committed_offset=value["committed_offset"],
        leader_epoch=None if leader_epoch == -1 else leader_epoch,
        metadata=value["metadata"],
        commit_timestamp_ms=value["commit_timestamp_ms"],
        expire_timestamp_ms=None if expire_timestamp_ms == -1 else expire_timestamp_ms,
        topic_id=value.get("topic_id"),
        value_version=record.value_version,
        record_offset=record.record_offset,
        batch_first_offset=batch_first_offset,
        producer_id=transaction.producer_id if transaction else None,
        producer_epoch=transaction.producer_epoch if transaction else None,
    )


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
