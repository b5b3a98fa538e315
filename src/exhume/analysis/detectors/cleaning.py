"""Causes of a log that does not get shorter: a cleaner that stopped, a transaction that never ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from exhume.analysis.detectors.cases import LogContext, PartitionCase, TopicCase
from exhume.analysis.detectors.chunk_tallies import LateMarker, TransactionCase, may_be_uncleaned
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.registry import Detector
from exhume.analysis.detectors.report import NAMED, Proof, counted, finding, next_step, span, undecidable
from exhume.analysis.growth import CleanerProgress
from exhume.analysis.transaction_outcomes import is_late
from exhume.arrow_rows import Origin
from exhume.codecs.log_directory import PartitionDirectory
from exhume.durations import DAY_MS
from exhume.findings import Finding

_MOST_SUPERSEDED = 0.9


def find_compaction_stopped(case: TopicCase, inputs: Inputs) -> Iterator[Finding]:
    """The cleaner makes no progress in a partition.

    With a checkpoint of the cleaner: the first dirty segment is older than 24 hours, and more than half of the closed bytes are dirty.
    Without one: at least five closed segments miss no offset, the log is longer than 24 hours, and more than 90 % of the bytes are
    superseded. The active segment does not count: it is never compacted. The sentence names the cause, if the log shows it.
    """
    if case.files is None:
        yield undecidable("IC-03", "the progress of the cleaner shows only in the files of the log, and they are not available")
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
            yield from _stopped(partition, suspects[origin], compaction[origin], damaged, inputs)


def may_have_stopped(directory: PartitionDirectory, log_context: LogContext) -> bool:
    """Return True if neither the files nor missing offsets show that the cleaner of this log makes progress."""
    is_whole = log_context.extent.missing_offsets <= log_context.start_offset
    return may_be_uncleaned(directory) and (directory.cleaner_offset is not None or is_whole)


def first_open(case: TopicCase) -> dict[Origin, int]:
    """Return the first record offset of the oldest open transaction, by replica and offsets partition."""
    return {
        partition.log_context.origin: min(each.first_record_offset for each in partition.open_transactions)
        for partition in case.partitions
        if partition.open_transactions
    }


def _stopped(
    partition: PartitionCase, directory: PartitionDirectory, row: CleanerProgress, damaged: set[str | None], inputs: Inputs
) -> Iterator[Finding]:
    log_context = partition.log_context
    closed = directory.read_segments[:-1]
    superseded = row["superseded_bytes"] / max(row["size_bytes"], 1)
    first_ms, last_ms = row["first_dirty_timestamp_ms"], log_context.last_timestamp_ms
    if first_ms is None or last_ms is None or last_ms - first_ms <= DAY_MS:
        return
    if directory.cleaner_offset is None:
        if superseded <= _MOST_SUPERSEDED:
            return
        what = f"{counted(len(closed), 'closed segment')} were never compacted, and {superseded:.0%} of the log is superseded"
    else:
        dirty = [segment for segment in closed if segment.base_offset >= directory.cleaner_offset]
        bytes_dirty, bytes_closed = sum(each.size_bytes for each in dirty), sum(each.size_bytes for each in closed)
        what = (
            f"the cleaner has not moved past offset {directory.cleaner_offset} for {span(last_ms - first_ms)}:"
            f" {bytes_dirty} of {bytes_closed} bytes ({bytes_dirty / bytes_closed:.0%}) in closed segments are dirty,"
            f" and {superseded:.0%} of the log is superseded"
        )
    cause = _cause(row, closed, damaged)
    yield finding(
        "IC-03",
        f"{what}{f'; {cause}' if cause else ''}",
        log_context,
        severity="incident" if cause else "warn",
        confidence="likely" if directory.cleaner_offset is not None else "possible",
        evidence=[
            {"record_offset": row["first_dirty_offset"], "timestamp_ms": row["first_dirty_timestamp_ms"], "what": "the first dirty record"}
        ],
        not_excluded=(
            "a cleaner that is switched off, or min.compaction.lag.ms",
            "other replicas that are compacted: each replica is compacted on its own",
        ),
        remedy=next_step(
            "Search log-cleaner.log of that broker for uncleanable partitions; see the bytes that compaction would free",
            inputs,
            "growth",
            "--by",
            "partition",
        ),
    )


def _cause(row: CleanerProgress, closed: Sequence[Any], damaged: set[str | None]) -> str | None:
    if row["stopped_by"] == "open_transaction":
        return f"the transaction that is open since record {row['open_transaction_offset']} stops the cleaner"
    broken = next((segment.path for segment in closed if segment.path in damaged), None)
    return None if broken is None else f"{broken} is damaged, and the cleaner fails there"


def find_hanging_transaction(partition: PartitionCase, inputs: Inputs) -> Iterator[Finding]:
    """No marker ends a transaction, and its last commit is older than transaction.max.timeout.ms and five minutes.

    The timeout is Kafka's default, 15 minutes; the age counts up to the newest record of the partition. While the transaction is open,
    fetches of stable offsets fail for its keys, and the cleaner cannot go past it. Or a marker has a lower coordinator epoch than an
    earlier marker of the same producer. Epochs of other producers do not matter.
    """
    last_ms = partition.log_context.last_timestamp_ms
    for transaction in partition.open_transactions:
        if last_ms is not None and transaction.last_timestamp_ms is not None:
            idle_ms = last_ms - transaction.last_timestamp_ms
            if is_late(idle_ms):
                yield _hanging(partition, transaction, idle_ms, inputs)
    for _, markers in groupby(sorted(partition.late_markers, key=_producer), key=_producer):
        yield _late(partition, [*markers], inputs)


def _producer(marker: LateMarker) -> int:
    return marker.producer_id


def _hanging(partition: PartitionCase, transaction: TransactionCase, idle_ms: int, inputs: Inputs) -> Finding:
    log_context = partition.log_context
    first, producer = transaction.first_record_offset, transaction.producer_id
    staged = sorted(
        (key.group, key.topic, key.partition)
        for group in partition.groups
        for key in group.keys.with_dropped()
        if any(each.outcome == "open" and each.commit.producer_id == producer for each in key.dropped)
    )
    keys = [f"{group} {topic}-{number}" for group, topic, number in staged]
    named = ", ".join(keys[:NAMED]) + (f" and {len(keys) - NAMED} more" if len(keys) > NAMED else "")
    stable = f"there is no stable offset for {named}, and " if named else ""
    number = log_context.offsets_partition
    which = "" if number is None else f" (--topic __consumer_offsets --partition {number} --start-offset {first})"
    return finding(
        "IC-08",
        f"the transaction of producer {producer} (epoch {transaction.producer_epoch}) is open since record {first}, and idle for"
        f" {span(idle_ms)}: {stable}the cleaner cannot reach the {counted(log_context.next_offset - first, 'record')}"
        f" ({counted(transaction.held_up_bytes, 'byte')}) from there on",
        log_context,
        severity="incident",
        evidence=transaction.staged,
        not_excluded=("a transaction.max.timeout.ms of more than 15 minutes",),
        remedy=next_step(f"Abort it with kafka-transactions.sh abort{which}; see the transaction", inputs, "transactions"),
    )


def _late(partition: PartitionCase, markers: Sequence[LateMarker], inputs: Inputs) -> Finding:
    first = markers[0]
    others = f" ({counted(len(markers) - 1, 'such marker')} after it)" if len(markers) > 1 else ""
    return finding(
        "IC-08",
        f"the {first.outcome} marker at record {first.record_offset} ends a transaction of producer {first.producer_id} with coordinator"
        f" epoch {first.coordinator_epoch}, but record {first.highest_since} already had epoch {first.highest_epoch}{others}:"
        " a replaced transaction coordinator still wrote markers",
        partition.log_context,
        severity="warn",
        confidence="proof",
        evidence=[_proof(marker) for marker in markers],
        remedy=next_step("Compare the transactions that these markers ended with the log of the producer", inputs, "transactions", "--all"),
    )


def _proof(marker: LateMarker) -> Proof:
    what = f"{marker.outcome} marker of coordinator epoch {marker.coordinator_epoch}"
    return {"record_offset": marker.record_offset, "timestamp_ms": marker.timestamp_ms, "what": what}


DETECTORS = (
    Detector(
        code="IC-03",
        title="Compaction stopped, and a partition grows without limit",
        section="The coordinator cannot read its log",
        in_topic=find_compaction_stopped,
        traps=(
            "The active segment is never compacted, however large; it is compacted after it has rolled by size or age",
            "The cleaner does not start below a dirty ratio of 0.5",
            "A partition with many live keys is large, but not superseded",
            "The cleaner may be switched off, or wait for min.compaction.lag.ms",
            "This replica may be healthy although the cleaner of the leader has failed, or the other way round",
        ),
    ),
    Detector(
        code="IC-08",
        title="A transaction that stays open",
        section="The coordinator cannot read its log",
        in_partition=find_hanging_transaction,
        traps=(
            "A copy may end inside a transaction that continues: its age is small",
            "An empty batch that the cleaner keeps for the state of its producer is no transaction",
            "A marker without commits before it is normal: other partitions had them, or compaction removed them",
            "Coordinator epochs of different producers are not comparable: each may have another coordinator",
        ),
    ),
)
