"""The local runner: every offsets partition of the evidence into one state, in this process."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import pyarrow as pa

from exhume.codecs.log_directory import LogDirectory, PartitionDirectory
from exhume.findings import Finding, Findings
from exhume.replay import load_findings
from exhume.replay.broker_log import LoadedBatch, Stop, StrictLog, hidden_findings, open_strictly
from exhume.replay.holdings import Holdings
from exhume.replay.java.loader import JavaLoad
from exhume.replay.moment import CutLog, Moment, cut_log, lenient_batches
from exhume.replay.profiles import BrokerProfile, JavaProfile, ScalaProfile
from exhume.replay.reading import LoadInputs, read_chunks
from exhume.replay.refusals import Refusals
from exhume.replay.scala import ScalaLoad
from exhume.replay.state import CoordinatorState
from exhume.replay.state_rows import state_rows
from exhume.replay.state_tables import SCHEMAS, Row, table
from exhume.replay.topic_names import TopicNames
from exhume.replay.verdict import LoadAborted, LoadStalled, Outcome

Mode = Literal["strict", "lenient"]


@dataclass(slots=True)
class PartitionLoad:
    """The load of one offsets partition: what is held, and the row of `loads` that says how it went."""

    partition: PartitionDirectory
    holdings: Holdings
    outcome: Outcome
    row: Row
    findings: list[Finding] = field(default_factory=list)


@dataclass(slots=True)
class _Progress:
    """What has passed through a load."""

    records: int = 0
    bytes: int = 0
    first_offset: int | None = None
    last_offset: int | None = None

    def count(self, batch: LoadedBatch) -> None:
        self.bytes += batch.batch.size_bytes
        self.last_offset = batch.last_offset
        if self.first_offset is None:
            self.first_offset = batch.batch.base_offset if batch.batch.base_offset is not None else batch.first_read_offset
        self.records += batch.records_read


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """How to load.

    `stop` says how the broker stopped; by default as each directory says (`LogDirectory.clean_shutdown`), clean where it does not.
    `view` is `shown` for what requests are answered from, `held` for what is in memory: they differ only for the Java coordinator, and
    only where the log ends in a gap; never in open transactions and pending offsets, which show in fetches that require stable offsets,
    and those see what is held. `at` cuts the logs off at a moment; None takes them to their end.
    """

    profile: BrokerProfile
    mode: Mode = "strict"
    stop: Stop | None = None
    view: Literal["shown", "held"] = "shown"
    inputs: LoadInputs = field(default_factory=LoadInputs)
    at: Moment | None = None


def load_state(directories: Sequence[LogDirectory], options: LoadOptions, names: TopicNames) -> CoordinatorState:
    """The state that a coordinator has after loading every offsets partition of these log directories.

    `names` are the topic names known so far; it learns those that the logs themselves know.
    """
    findings = Findings()
    loads = load_partitions(directories, options, names)
    rows: dict[str, list[Row]] = {name: [] for name in SCHEMAS}
    for load in loads:
        origin = {"replica": load.partition.replica, "offsets_partition": load.partition.offsets_partition}
        for name, partition_rows in state_rows(load.holdings, names).items():
            rows[name] += [origin | row for row in partition_rows]
        rows["loads"].append(origin | load.row)
        findings.extend(load.findings)
    findings.extend(load_findings.groups([(load.partition, load.holdings) for load in loads], options.profile))
    for name, table_rows in rows.items():
        findings.extend(load_findings.invalid_utf8(name, table_rows))
    tables: dict[str, pa.Table] = {name: table(name, table_rows) for name, table_rows in rows.items()}
    return CoordinatorState(options.profile.release, options.mode, tables, findings)


def load_partitions(directories: Sequence[LogDirectory], options: LoadOptions, names: TopicNames) -> list[PartitionLoad]:
    """The load of every offsets partition of these log directories, one by one: what `load_state` makes its tables of."""
    loads: list[PartitionLoad] = []
    for directory in directories:
        stop: Stop = options.stop or ("unclean" if directory.clean_shutdown is False else "clean")
        partitions = [partition for partition in directory.partitions if any(segment.is_read for segment in partition.segments)]
        loads += _load_directory(partitions, options, stop, names)
    return loads


def _load_directory(partitions: Sequence[PartitionDirectory], options: LoadOptions, stop: Stop, names: TopicNames) -> list[PartitionLoad]:
    profile = options.profile
    logs = [cut_log(open_strictly(partition, stop), options.at, lenient=options.mode == "lenient") for partition in partitions]
    if options.mode == "lenient":
        return [_load_leniently(log, options, names) for log in logs]
    refused = next((log for log in logs if log.refused), None)
    if refused is not None:
        # One bad partition keeps the broker from starting, so none is loaded.
        reason = f"a broker of this release does not start on this log directory: {refused.refused}"
        return [_not_loaded(log, profile, "refused", reason, _Progress()) for log in logs]
    return [_load_strictly(log, options, names) for log in logs]


def _load_strictly(log: StrictLog, options: LoadOptions, names: TopicNames) -> PartitionLoad:
    profile = options.profile
    progress = _Progress()
    loader = _loader(log, options, Refusals(lenient=False), names)
    try:
        _fold(read_chunks(log, profile, options.inputs), loader, progress)
        holdings, late_error = loader.finish()
    except LoadAborted as aborted:
        is_stalled = isinstance(aborted, LoadStalled)
        load = _not_loaded(log, profile, "stalled" if is_stalled else "aborted", aborted.reason, progress)
        load.holdings = Holdings() if is_stalled else loader.held_after_abort()
        load.row |= {"record_offset": aborted.record_offset, "path": aborted.path, "byte_position": aborted.byte_position}
        load.findings.append(load_findings.aborted(log, profile, aborted))
        return load
    outcome: Outcome = "loaded_with_error" if late_error else "loaded"
    row = _row(log, profile, outcome, late_error, progress)
    findings = [*log.losses, *hidden_findings(log), *_cut_findings(log)]
    if isinstance(loader, JavaLoad):
        row["shown_offset"] = loader.shown_offset
        findings += load_findings.java_load(log, loader)
        if progress.last_offset is not None and loader.shown_offset <= progress.last_offset and options.view == "shown":
            outcome = "not_shown"
            reason = f"the log ends in a gap: {log.end_offset} is its end, {(progress.last_offset or 0) + 1} the end of its last batch"
            row |= {"outcome": outcome, "reason": f"{reason}; requests see the state at {max(loader.shown_offset, 0)} until the next write"}
            shown = JavaLoad(loader.profile, Refusals(lenient=False), names, log.end_offset)
            _fold([[batch for batch in log.batches() if batch.last_offset < loader.shown_offset]], shown, _Progress())
            # Timers are set when a load is over: on all that it read. Fetches that require stable offsets see all of it, too.
            holdings = replace(shown.snapshot(), transactions=holdings.transactions)
            findings.append(load_findings.partition(log, "not_shown", "warn", row["reason"], "Compare with --view held"))
    return PartitionLoad(log.partition, holdings, outcome, row, findings)


def _load_leniently(log: StrictLog, options: LoadOptions, names: TopicNames) -> PartitionLoad:
    profile = options.profile
    progress = _Progress()
    refusals = Refusals(lenient=True)
    loader = _loader(log, options, refusals, names)
    _fold(([batch] for batch in lenient_batches(log)), loader, progress)
    holdings, late_error = loader.finish()
    row = _row(log, profile, "loaded_with_error" if late_error else "loaded", late_error, progress)
    row |= {"mode": "lenient", "tolerated_records": len(refusals.tolerated)}
    findings = [*_cut_findings(log), *load_findings.tolerated_records(log, profile, refusals)]
    if isinstance(loader, JavaLoad):
        row["shown_offset"] = loader.shown_offset
        findings += load_findings.java_load(log, loader)
    return PartitionLoad(log.partition, holdings, "loaded", row, findings)


def _loader(log: StrictLog, options: LoadOptions, refusals: Refusals, names: TopicNames) -> ScalaLoad | JavaLoad:
    profile = options.profile
    if isinstance(profile, ScalaProfile):
        return ScalaLoad(profile, refusals, names, options.inputs)
    assert isinstance(profile, JavaProfile)
    return JavaLoad(profile, refusals, names, log.end_offset)


def _fold(chunks: Iterable[Iterable[LoadedBatch]], loader: ScalaLoad | JavaLoad, progress: _Progress) -> None:
    """Apply these chunks, batch by batch."""
    for chunk in chunks:
        for batch in chunk:
            loader.refusals.path, loader.refusals.byte_position = batch.path, batch.batch.byte_position
            loader.apply(batch)
            progress.count(batch)
        loader.end_chunk()


def _not_loaded(log: StrictLog, profile: BrokerProfile, outcome: Outcome, reason: str, progress: _Progress) -> PartitionLoad:
    load = PartitionLoad(log.partition, Holdings(), outcome, _row(log, profile, outcome, reason, progress))
    load.findings += [*log.losses, *_cut_findings(log)]
    if outcome == "refused":
        load.findings.append(
            load_findings.partition(log, "broker_refuses_to_start", "incident", reason, "Use --mode lenient to see what the log holds")
        )
    return load


def _row(log: StrictLog, profile: BrokerProfile, outcome: Outcome, reason: str | None, progress: _Progress) -> Row:
    return {
        "release": profile.release,
        "coordinator": profile.coordinator,
        "mode": "strict",
        "stop": log.stop,
        "outcome": outcome,
        "reason": reason,
        "records_read": progress.records,
        "bytes_read": progress.bytes,
        "first_record_offset": progress.first_offset,
        "last_record_offset": progress.last_offset,
        "end_offset": log.end_offset,
        **(log.columns if isinstance(log, CutLog) else {}),
    }


def _cut_findings(log: StrictLog) -> list[Finding]:
    return log.findings if isinstance(log, CutLog) else []
