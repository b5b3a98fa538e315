"""The load of one offsets partition: strictly, as its release does, or leniently; record by record, or from a folded log."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Literal

from exhume.codecs.log_directory import PartitionDirectory
from exhume.findings import Finding
from exhume.replay import load_findings
from exhume.replay.broker_log import LoadedBatch, Stop, StrictLog, hidden_findings
from exhume.replay.java.loader import JavaLoad
from exhume.replay.load_problems import LoadProblem, ProblemKind
from exhume.replay.moment import CutLog, Moment, lenient_batches
from exhume.replay.partition_state import ClassicGroupState, PartitionState
from exhume.replay.profiles import BrokerProfile, JavaProfile, ScalaProfile
from exhume.replay.reading import CompiledLoad, LoadInputs, read_chunks
from exhume.replay.refusals import Refusals
from exhume.replay.scala import ScalaLoad
from exhume.replay.state_tables import LoadRow
from exhume.replay.topic_names import TopicNames
from exhume.replay.verdict import LoadAborted, Outcome, outcome_of

if TYPE_CHECKING:
    from exhume.replay.fold.folded_log import FoldedLog


Mode = Literal["strict", "lenient"]
#: `committed`: the state that requests see; `in_memory`: all loaded records.
View = Literal["committed", "in_memory"]


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """The options of a load.

    `stop` is the last stop of the broker; by default that of each directory (`LogDirectory.clean_shutdown`), else clean. The two `view`s
    differ only for the Java coordinator, and only if the log ends in a gap; never in open transactions and pending offsets, because fetches
    of stable offsets see the state in memory. `at` cuts the logs at a moment; None: their end. `fast` are the options of the compiled load;
    None: each log is loaded record by record. `groups` are the wanted groups: the load may skip committed offsets of others; None: all
    groups.
    """

    profile: BrokerProfile
    mode: Mode = "strict"
    stop: Stop | None = None
    view: View = "committed"
    inputs: LoadInputs = field(default_factory=LoadInputs)
    at: Moment | None = None
    fast: CompiledLoad | None = None
    groups: Collection[str] | None = None


@dataclass(slots=True)
class PartitionLoad:
    """The load of one offsets partition: its state, and its row of `loads`.

    `problem` is the reason if the load did not end as `loaded`.
    """

    partition: PartitionDirectory
    partition_state: PartitionState
    row: LoadRow
    findings: list[Finding] = field(default_factory=list)
    problem: LoadProblem | None = None
    #: The states of requests and in memory, if a gap at the end of the log makes them differ; None: both are `partition_state`.
    snapshots: tuple[PartitionState, PartitionState] | None = None
    #: The groups whose committed offsets may be left out, because the caller does not want them.
    skipped_groups: frozenset[str] = frozenset()
    #: The skipped groups on which findings or the outcome depend.
    dependent_groups: frozenset[str] = frozenset()

    @property
    def outcome(self) -> Outcome:
        """The outcome of the load."""
        return outcome_of(self.problem)

    def with_state_in_memory(self) -> PartitionLoad:
        """This load with the state in memory, also if requests see less."""
        return self if self.snapshots is None else replace(self, partition_state=self.snapshots[1])


@dataclass(slots=True)
class _Progress:
    """The records and bytes that a load has read."""

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


def load_log(log: StrictLog, options: LoadOptions, names: TopicNames) -> PartitionLoad:
    """The load of a log record by record, as the mode says; adds its topic names to `names`."""
    return (_load_leniently if options.mode == "lenient" else _load_strictly)(log, options, names)


def _load_strictly(log: StrictLog, options: LoadOptions, names: TopicNames) -> PartitionLoad:
    profile = options.profile
    progress = _Progress()
    loader = new_load(profile, Refusals(lenient=False), names, log.end_offset, options.inputs)
    try:
        _fold(read_chunks(log, profile, options.inputs), loader, progress)
        held = loader.finish()
    except LoadAborted as aborted:
        return _aborted(log, loader, aborted, progress)
    load = _loaded(log, options, loader, held, progress)
    if isinstance(loader, JavaLoad) and progress.last_offset is not None and loader.shown_offset <= progress.last_offset:
        load.snapshots = _shown(log, loader, load.partition_state, names), load.partition_state
    if load.snapshots is not None and options.view == "committed":
        load.partition_state = load.snapshots[0]
        next_offset = (progress.last_offset or 0) + 1
        load.problem = LoadProblem(
            ProblemKind.GAP_AT_END if next_offset < log.end_offset else ProblemKind.RECORDS_AFTER_END,
            end_offset=log.end_offset,
            next_offset=next_offset,
            shown_offset=max(load.row["shown_offset"] or 0, 0),
        )
        load.row |= _verdict(load.problem)
        load.findings.append(load_findings.partition(log, "not_shown", "warn", str(load.problem), "Compare with --view in_memory"))
    return load


def _shown(log: StrictLog, loader: JavaLoad, held: PartitionState, names: TopicNames) -> PartitionState:
    """The snapshot that requests see. It lacks the changes at the end of the load, except those of classic groups, which have no snapshots.

    Fetches that require stable offsets see the state in memory, so open transactions are the same.
    """
    earlier = JavaLoad(loader.profile, Refusals(lenient=False), names, log.end_offset)
    _fold([[batch for batch in log.batches() if batch.last_offset < loader.shown_offset]], earlier, _Progress())
    shown = earlier.snapshot()
    for name, group in shown.groups.items():
        last = held.groups.get(name)
        if isinstance(group, ClassicGroupState) and isinstance(last, ClassicGroupState) and group.record_offset == last.record_offset:
            group.rebalance_at_load = last.rebalance_at_load
    return replace(shown, transactions=held.transactions)


def _load_leniently(log: StrictLog, options: LoadOptions, names: TopicNames) -> PartitionLoad:
    progress = _Progress()
    refusals = Refusals(lenient=True)
    loader = new_load(options.profile, refusals, names, log.end_offset, options.inputs)
    _fold(([batch] for batch in lenient_batches(log)), loader, progress)
    held = loader.finish()
    return _loaded(log, options, loader, held, progress)


def load_fold_result(folded: FoldedLog, options: LoadOptions) -> tuple[PartitionLoad, TopicNames] | None:
    """The load of a log that was folded, and the topic names in it; None if it must be loaded record by record even so."""
    from exhume.replay.fold.folded_log import CommitSeen
    from exhume.replay.fold.offset_columns import FoldedOffsets

    log, learned = folded.log, TopicNames()
    learned.add_all("commit", folded.topic_ids)
    refusals = Refusals(lenient=options.mode == "lenient")
    loader = new_load(options.profile, refusals, learned, log.end_offset, options.inputs)
    progress = _Progress(folded.records, folded.size_bytes, folded.first_offset, folded.last_offset)
    for passed in folded.passed():
        if isinstance(passed, CommitSeen):
            loader.create_group_for_commit(passed)
            continue
        refusals.path, refusals.byte_position = passed.path, passed.batch.byte_position
        try:
            loader.apply(passed)
        except LoadAborted:
            # The load ends at this batch.
            shorter = folded.up_to(folded.place_of(passed)) if folded.up_to is not None else None
            return None if shorter is None else load_fold_result(shorter, options)
    if folded.result.ends_at is not None:
        return _load_to_the_error(folded, loader, progress)
    tolerated = len(refusals.tolerated)
    try:
        loader.add_fold_result(folded)
        held = loader.finish()
    except LoadAborted:
        return None
    if len(refusals.tolerated) > tolerated or learned.differs_from("commit", folded.topic_ids):
        return None
    held[0].offset_columns = FoldedOffsets(folded, loader.commit_rules)
    load = _loaded(log, options, loader, held, progress)
    load.skipped_groups = frozenset(folded.left_out())
    load.dependent_groups = frozenset(group for group in load.skipped_groups if loader.depends_on_offsets(group))
    return load, learned


def _load_to_the_error(folded: FoldedLog, loader: ScalaLoad | JavaLoad, progress: _Progress) -> tuple[PartitionLoad, TopicNames] | None:
    """Load a folded log that ends in an error: the groups decide which record of the last batch fails, and why."""
    refusals = loader.refusals
    try:
        loader.add_fold_result(folded)
    except LoadAborted:
        return None
    try:
        for batch in islice(folded.last_batches(), 1):
            refusals.path, refusals.byte_position = batch.path, batch.batch.byte_position
            loader.apply(batch)
    except LoadAborted as aborted:
        if not loader.names.differs_from("commit", folded.topic_ids):
            return _aborted(folded.log, loader, aborted, progress), loader.names
    return None


def refused_load(log: StrictLog, profile: BrokerProfile, problem: LoadProblem) -> PartitionLoad:
    """The load of a log in a directory on which a broker does not start: one bad partition keeps all from loading."""
    load = _not_loaded(log, profile, problem, _Progress())
    load.findings.append(
        load_findings.partition(log, "broker_refuses_to_start", "incident", str(problem), "Use --mode lenient to see what the log holds")
    )
    return load


def new_load(profile: BrokerProfile, refusals: Refusals, names: TopicNames, end_offset: int, inputs: LoadInputs) -> ScalaLoad | JavaLoad:
    """A load by the rules of this release that has read nothing yet; `end_offset` is that of the log."""
    if isinstance(profile, ScalaProfile):
        return ScalaLoad(profile, refusals, names, inputs)
    assert isinstance(profile, JavaProfile)
    return JavaLoad(profile, refusals, names, end_offset, inputs)


def _fold(chunks: Iterable[Iterable[LoadedBatch]], loader: ScalaLoad | JavaLoad, progress: _Progress) -> None:
    """Apply these chunks, batch by batch."""
    for chunk in chunks:
        for batch in chunk:
            loader.refusals.path, loader.refusals.byte_position = batch.path, batch.batch.byte_position
            loader.apply(batch)
            progress.count(batch)
        loader.end_chunk()


def _loaded(
    log: StrictLog, options: LoadOptions, loader: ScalaLoad | JavaLoad, held: tuple[PartitionState, LoadProblem | None], progress: _Progress
) -> PartitionLoad:
    """The finished load, with its row and its findings."""
    profile = options.profile
    partition_state, late_error = held
    row = _row(log, profile, late_error, progress)
    if options.mode == "lenient":
        row |= {"mode": "lenient", "tolerated_records": len(loader.refusals.tolerated)}
        findings = [*_cut_findings(log), *load_findings.tolerated_records(log, profile, loader.refusals)]
    else:
        findings = [*log.losses, *hidden_findings(log), *_cut_findings(log)]
    if isinstance(loader, JavaLoad):
        row["shown_offset"] = loader.shown_offset
        findings += load_findings.java_load(log, loader)
    return PartitionLoad(log.partition, partition_state, row, findings, late_error)


def _aborted(log: StrictLog, loader: ScalaLoad | JavaLoad, aborted: LoadAborted, progress: _Progress) -> PartitionLoad:
    load = _not_loaded(log, loader.profile, aborted.problem, progress)
    load.partition_state = PartitionState() if load.outcome == "stalled" else loader.held_after_abort()
    load.row |= {"record_offset": aborted.problem.record_offset, "path": aborted.path, "byte_position": aborted.byte_position}
    load.findings.append(load_findings.aborted(log, loader.profile, aborted))
    return load


def _not_loaded(log: StrictLog, profile: BrokerProfile, problem: LoadProblem, progress: _Progress) -> PartitionLoad:
    findings = [*log.losses, *_cut_findings(log)]
    return PartitionLoad(log.partition, PartitionState(), _row(log, profile, problem, progress), findings, problem)


def _row(log: StrictLog, profile: BrokerProfile, problem: LoadProblem | None, progress: _Progress) -> LoadRow:
    return {
        "release": profile.release,
        "coordinator": profile.coordinator,
        "mode": "strict",
        "stop": log.stop,
        **_verdict(problem),
        "records_read": progress.records,
        "bytes_read": progress.bytes,
        "first_record_offset": progress.first_offset,
        "last_record_offset": progress.last_offset,
        "end_offset": log.end_offset,
        **(log.columns if isinstance(log, CutLog) else {}),
    }


def _verdict(problem: LoadProblem | None) -> LoadRow:
    return {"outcome": outcome_of(problem), "reason": None if problem is None else str(problem)}


def _cut_findings(log: StrictLog) -> list[Finding]:
    return log.findings if isinstance(log, CutLog) else []
