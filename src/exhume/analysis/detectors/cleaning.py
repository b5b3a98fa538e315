"""What keeps the log from getting shorter: a cleaner that stopped, a transaction that nobody ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from exhume.analysis.detectors.cases import LogContext, PartitionCase, TopicCase
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.registry import Detector
from exhume.analysis.detectors.report import NAMED, Proof, counted, finding, span, undecidable
from exhume.analysis.detectors.superseded import may_be_uncleaned
from exhume.analysis.detectors.transactions import LateMarker, OpenTransaction
from exhume.analysis.transactions import DEFAULT_MAX_TIMEOUT_MS, PADDING_MS
from exhume.arrow_rows import Origin
from exhume.codecs.log_directory import PartitionDirectory
from exhume.durations import DAY_MS
from exhume.findings import Finding

#: As of the brokers' metric for late transactions.
_MOST_SUPERSEDED = 0.9


def find_compaction_stopped(case: TopicCase, inputs: Inputs) -> Iterator[Finding]:  # noqa: ARG001
    """A partition whose cleaner does not get on.

    With a checkpoint of the cleaner: the first segment that is not clean is older than 24 hours, and more than half of the closed bytes are
    not clean. Without one: at least five closed segments from which no offset is missing, and more than 90 % of the bytes superseded. The
    active segment counts for nothing: it is never cleaned. The sentence names what stands in the way, as far as the log shows it.
    """
    if case.files is None:
        yield undecidable("IC-03", "how far a cleaner came can only be seen in the files of the log")
        return
    suspects = {}
    for partition in case.partitions:
        directory = case.files.directory(partition.log_context.origin)
        if directory is not None and may_have_stopped(directory, partition.log_context):
            suspects[partition.log_context.origin] = directory
    if not suspects:
        return
    opened = first_open(case)
    compaction = {
        origin: each.uncleaned.row(suspects[origin], opened.get(origin))
        for each in case.partitions
        if (origin := each.log_context.origin) in suspects and each.uncleaned is not None
    }
    newest_ms = max((each.log_context.last_timestamp_ms or 0 for each in case.partitions), default=0)
    if uncounted := suspects.keys() - compaction.keys():
        compaction |= case.files.compaction(uncounted, opened, newest_ms)
    damaged = {found.path for found in case.files.damage if found.is_damage}
    for partition in case.partitions:
        if (origin := partition.log_context.origin) in compaction:
            yield from _stopped(partition, suspects[origin], compaction[origin], damaged)


def may_have_stopped(directory: PartitionDirectory, log_context: LogContext) -> bool:
    """Whether neither the files nor missing offsets say that the cleaner of this log got on."""
    is_whole = log_context.complete_from_offset <= log_context.start_offset
    return may_be_uncleaned(directory) and (directory.cleaner_offset is not None or is_whole)


def first_open(case: TopicCase) -> dict[Origin, int]:
    """The record offset that the oldest open transaction began with, by replica and offsets partition, where there is one."""
    return {
        partition.log_context.origin: min(each.first_record_offset for each in partition.open_transactions)
        for partition in case.partitions
        if partition.open_transactions
    }


def _stopped(partition: PartitionCase, directory: PartitionDirectory, row: dict[str, Any], damaged: set[str | None]) -> Iterator[Finding]:
    log_context = partition.log_context
    closed = directory.read_segments[:-1]
    superseded = row["superseded_bytes"] / max(row["size_bytes"], 1)
    if directory.cleaner_offset is None:
        if superseded <= _MOST_SUPERSEDED:
            return
        what = f"{counted(len(closed), 'closed segment')} were never cleaned, and {superseded:.0%} of their bytes are superseded"
    else:
        first_ms, last_ms = row["first_dirty_timestamp_ms"], log_context.last_timestamp_ms
        if first_ms is None or last_ms is None or last_ms - first_ms <= DAY_MS:
            return
        dirty = [segment for segment in closed if segment.base_offset >= directory.cleaner_offset]
        bytes_dirty, bytes_closed = sum(each.size_bytes for each in dirty), sum(each.size_bytes for each in closed)
        what = (
            f"the cleaner has stood at offset {directory.cleaner_offset} for {span(last_ms - first_ms)}: "
            f"{bytes_dirty} of {bytes_closed} closed bytes ({bytes_dirty / bytes_closed:.0%}) are not clean, {superseded:.0%} superseded"
        )
    cause = _cause(row, closed, damaged)
    yield finding(
        "IC-03",
        f"{what}{f'; {cause}' if cause else ''}",
        log_context,
        severity="incident" if cause else "warn",
        confidence="likely" if directory.cleaner_offset is not None else "possible",
        evidence=[{"record_offset": row["first_dirty_offset"], "timestamp_ms": row["first_dirty_timestamp_ms"], "what": "not clean"}],
        not_excluded=(
            "a cleaner that is switched off, or min.compaction.lag.ms",
            "other replicas may be clean: each is cleaned by itself",
        ),
        remedy="Look for 'uncleanable' partitions in log-cleaner.log of that broker; exhume growth says what would be freed",
    )


def _cause(row: dict[str, Any], closed: Sequence[Any], damaged: set[str | None]) -> str | None:
    if row["stopped_by"] == "open_transaction":
        return f"the transaction that is open since record {row['open_transaction_offset']} is in its way"
    broken = next((segment.path for segment in closed if segment.path in damaged), None)
    return None if broken is None else f"{broken} is damaged, where a cleaner dies"


def find_hanging_transaction(partition: PartitionCase, inputs: Inputs) -> Iterator[Finding]:  # noqa: ARG001
    """A producer with commits that no marker ends, whose last one is older than the greatest timeout of transactions and five minutes.

    The timeout is taken to be 15 minutes, as by default; the age counts up to the newest record of the partition. While the transaction is
    open, fetches of stable offsets are refused for what it staged, and the cleaner stops in front of it. And markers with a lower
    coordinator epoch than an earlier one of the same producer: no other has to do with that epoch.
    """
    last_ms = partition.log_context.last_timestamp_ms
    for transaction in partition.open_transactions:
        if last_ms is not None and transaction.last_timestamp_ms is not None:
            idle_ms = last_ms - transaction.last_timestamp_ms
            if idle_ms > DEFAULT_MAX_TIMEOUT_MS + PADDING_MS:
                yield _hanging(partition, transaction, idle_ms)
    for _, markers in groupby(sorted(partition.late_markers, key=_producer), key=_producer):
        yield _late(partition, [*markers])


def _producer(marker: LateMarker) -> int:
    return marker.producer_id


def _hanging(partition: PartitionCase, transaction: OpenTransaction, idle_ms: int) -> Finding:
    log_context = partition.log_context
    first, producer = transaction.first_record_offset, transaction.producer_id
    keys = [
        f"{key.group} {key.topic}-{key.partition}"
        for group in partition.groups
        for key in group.keys.with_dropped()
        if any(each.outcome == "open" and each.commit.producer_id == producer for each in key.dropped)
    ]
    named = ", ".join(keys[:NAMED]) + (f" and {len(keys) - NAMED} more" if len(keys) > NAMED else "")
    return finding(
        "IC-08",
        f"the transaction of producer {producer} (epoch {transaction.producer_epoch}) has been open since record {first}, and idle for "
        f"{span(idle_ms)}: no stable offset for {named}, and the cleaner stops in front of the "
        f"{counted(log_context.next_offset - first, 'record')} ({counted(transaction.held_up_bytes, 'byte')}) from there on",
        log_context,
        severity="incident",
        evidence=transaction.staged,
        not_excluded=("a transaction.max.timeout.ms of more than 15 minutes",),
        remedy="exhume transactions shows all of it; kafka-transactions.sh abort ends it",
    )


def _late(partition: PartitionCase, markers: Sequence[LateMarker]) -> Finding:
    first = markers[0]
    others = f", and {counted(len(markers) - 1, 'marker')} of it behind that" if len(markers) > 1 else ""
    return finding(
        "IC-08",
        f"the {first.outcome} marker at record {first.record_offset} ends a transaction of producer {first.producer_id} for coordinator "
        f"epoch {first.coordinator_epoch}, where record {first.highest_since} had {first.highest_epoch} already{others}: "
        "a transaction coordinator that had been succeeded went on writing",
        partition.log_context,
        severity="warn",
        confidence="proof",
        evidence=[_proof(marker) for marker in markers],
        remedy="exhume transactions shows what these markers ended; compare it with what the producer was told",
    )


def _proof(marker: LateMarker) -> Proof:
    what = f"{marker.outcome} marker of coordinator epoch {marker.coordinator_epoch}"
    return {"record_offset": marker.record_offset, "timestamp_ms": marker.timestamp_ms, "what": what}


DETECTORS = (
    Detector(
        code="IC-03",
        title="Compaction stopped, and a partition grows without bound",
        section="The coordinator cannot read its log",
        in_topic=find_compaction_stopped,
        traps=(
            "A partition that is one active segment, however large: it rolls by size or age, and is cleaned then",
            "A dirty ratio below 0.5, at which no cleaner begins",
            "Many live keys: large, but not superseded",
            "A cleaner that is switched off, min.compaction.lag.ms",
            "The replica at hand may be healthy while the leader's cleaner is dead, or the other way round",
        ),
    ),
    Detector(
        code="IC-08",
        title="A transaction that nobody ends",
        section="The coordinator cannot read its log",
        in_partition=find_hanging_transaction,
        traps=(
            "A copy that ends inside a transaction that goes on: its age is small",
            "Empty batches that the cleaner keeps for what they say of a producer are no transaction",
            "A marker without commits in front of it is normal: other partitions had them, or they were cleaned",
            "Coordinator epochs of several producers say nothing about one another: each may have another coordinator",
        ),
    ),
)
