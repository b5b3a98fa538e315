"""The local runner: every offsets partition of the evidence into one state, in this process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Literal

from exhume.codecs.compression import DEFAULT_CAP_BYTES
from exhume.codecs.log_directory import LogDirectory, PartitionDirectory
from exhume.findings import Finding, Findings
from exhume.replay import load_findings
from exhume.replay.broker_log import LoadedBatch, Stop, StrictLog, hidden_findings, open_strictly
from exhume.replay.holdings import ClassicGroup, Holdings
from exhume.replay.java.loader import JavaLoad
from exhume.replay.moment import CutLog, Moment, cut_log, lenient_batches
from exhume.replay.offset_fetch import fetch_error
from exhume.replay.profiles import BrokerProfile, JavaProfile, ScalaProfile
from exhume.replay.reading import FastLoad, LoadInputs, read_chunks
from exhume.replay.reduce import why_not_reducible
from exhume.replay.reduce_facts import Passed, ReducedBatch
from exhume.replay.refusals import Refusals
from exhume.replay.scala import ScalaLoad
from exhume.replay.state import CoordinatorState
from exhume.replay.state_builder import StateTables
from exhume.replay.state_tables import Row
from exhume.replay.topic_names import TopicNames
from exhume.replay.verdict import LoadAborted, LoadStalled, Outcome

if TYPE_CHECKING:
    from exhume.replay.survivors.settled import Settled

Mode = Literal["strict", "lenient"]


@dataclass(slots=True)
class PartitionLoad:
    """The load of one offsets partition: what is held, and the row of `loads` that says how it went."""

    partition: PartitionDirectory
    holdings: Holdings
    outcome: Outcome
    row: Row
    findings: list[Finding] = field(default_factory=list)
    #: What requests see, and all that is held, where a gap at the end of the log sets them apart; None: both are `holdings`.
    snapshots: tuple[Holdings, Holdings] | None = None
    #: The groups whose committed offsets may be left out, since they were not asked for.
    left_out: frozenset[str] = frozenset()
    #: Those of them that findings and outcome hang on.
    more_groups: frozenset[str] = frozenset()

    def of_all_held(self) -> PartitionLoad:
        """This load with all that is held for its holdings, whatever requests see."""
        return self if self.snapshots is None else replace(self, holdings=self.snapshots[1])


#: The log that was folded, and its load with the topic names in it; None where it is to be loaded record by record.
_Folded = tuple[StrictLog | None, tuple[PartitionLoad, TopicNames] | None]


@dataclass(slots=True)
class _Progress:
    """What has passed through a load."""

    records: int = 0
    bytes: int = 0
    first_offset: int | None = None
    last_offset: int | None = None

    def pass_over(self, passed: Passed) -> None:
        """Count what was dropped in front of a batch."""
        self.records += passed.records
        self.bytes += passed.bytes
        if self.first_offset is None:
            self.first_offset = passed.first_offset
        if passed.last_offset is not None:
            self.last_offset = passed.last_offset

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
    and those see what is held. `at` cuts the logs off at a moment; None takes them to their end. `groups` are the only ones that are asked
    for: committed offsets of others may be left out, and nothing else.
    """

    profile: BrokerProfile
    mode: Mode = "strict"
    stop: Stop | None = None
    view: Literal["shown", "held"] = "shown"
    inputs: LoadInputs = field(default_factory=LoadInputs)
    at: Moment | None = None
    fast: FastLoad | None = None
    groups: Collection[str] | None = None


def load_state(directories: Sequence[LogDirectory], options: LoadOptions, names: TopicNames) -> CoordinatorState:
    """The state that a coordinator has after loading every offsets partition of these log directories.

    `names` are the topic names known so far; it learns those that the logs themselves know.
    """
    return state_of_loads(load_partitions(directories, options, names), options, names)


def state_of_loads(loads: Sequence[PartitionLoad], options: LoadOptions, names: TopicNames) -> CoordinatorState:
    """The state that these loads come to; `options` are those they were made with, and what `names` do not know has no name in it."""
    findings = Findings()
    state_of = StateTables(names)
    for load in loads:
        origin = {"replica": load.partition.replica, "offsets_partition": load.partition.offsets_partition}
        findings.extend(load.findings)
        state_of.add(origin, load.holdings, load.row | {"offset_fetch_error": fetch_error(load.outcome, options.profile)})
        shown, held = load.snapshots or (load.holdings, load.holdings)
        state_of.add_fetches(origin, shown, held, options.profile)
    findings.extend(load_findings.groups([(load.partition, load.holdings) for load in loads], options.profile))
    findings.extend(state_of.findings)
    return CoordinatorState(options.profile.release, options.mode, state_of.tables(), findings)


def load_partitions(directories: Sequence[LogDirectory], options: LoadOptions, names: TopicNames) -> list[PartitionLoad]:
    """The load of every offsets partition of these log directories, one by one: what `load_state` makes its tables of."""
    loads = _load_directories(directories, options, names)
    if options.groups is not None and _has_unsure_homes(loads):
        loads = _load_directories(directories, replace(options, groups=None), names)
    return loads


def _has_unsure_homes(loads: Sequence[PartitionLoad]) -> bool:
    """True where some group may lie in two offsets partitions, and it hangs on offsets that were left out whether it does."""
    unsure = [load.left_out - load.holdings.groups.keys() for load in loads]
    if not any(unsure):
        return False
    named = Counter((load.partition.replica, name) for load in loads for name in {*load.left_out, *load.holdings.groups})
    return any(named[load.partition.replica, name] > 1 for load, names in zip(loads, unsure, strict=True) for name in names)


def _load_directories(directories: Sequence[LogDirectory], options: LoadOptions, names: TopicNames) -> list[PartitionLoad]:
    loads: list[PartitionLoad] = []
    for directory in directories:
        stop: Stop = options.stop or ("unclean" if directory.clean_shutdown is False else "clean")
        partitions = [partition for partition in directory.partitions if any(segment.is_read for segment in partition.segments)]
        loads += _load_directory(partitions, options, stop, names)
    return loads


def _load_directory(partitions: Sequence[PartitionDirectory], options: LoadOptions, stop: Stop, names: TopicNames) -> list[PartitionLoad]:
    profile, is_lenient = options.profile, options.mode == "lenient"
    done = _load_folded(partitions, options, stop)
    logs = [
        log if log and load else cut_log(open_strictly(partition, stop), options.at, lenient=is_lenient)
        for partition, (log, load) in zip(partitions, done, strict=True)
    ]
    refused = next((log for log in logs if log.refused), None)
    if refused is not None and not is_lenient:
        reason = f"a broker of this release does not start on this log directory: {refused.refused}"
        return [refused_load(log, profile, reason) for log in logs]
    loads = []
    for log, (_, in_columns) in zip(logs, done, strict=True):
        if in_columns is None:
            loads.append(load_log(log, options, names))
            continue
        load, learned = in_columns
        # In the order of partitions: the latest word on a topic id counts.
        names.take(learned)
        loads.append(load)
    return loads


def _load_folded(partitions: Sequence[PartitionDirectory], options: LoadOptions, stop: Stop) -> list[_Folded]:
    """Log and load of each partition that was folded, with what else it hangs on besides the groups that are asked for."""
    done: list[_Folded] = [
        (settled.log, _load_in_columns(settled, options)) if settled else (None, None)
        for settled in _fold_in_columns(partitions, stop, options)
    ]
    if options.groups is None:
        return done
    more = [loaded[0].more_groups if loaded else frozenset() for _, loaded in done]
    again = [number for number, names in enumerate(more) if names]
    if again:
        asked = replace(options, groups=frozenset(options.groups).union(*more))
        for number, redone in zip(again, _load_folded([partitions[number] for number in again], asked, stop), strict=True):
            done[number] = redone
    return done


def _fold_in_columns(partitions: Sequence[PartitionDirectory], stop: Stop, options: LoadOptions) -> list[Settled | None]:
    """What each log comes to in columns, where it allows that and is worth it; None where it is to be loaded record by record."""
    fast, profile = options.fast, options.profile
    if fast is None or why_not_reducible(profile) is not None:
        return [None] * len(partitions)

    def fold(partition: PartitionDirectory, threads: int) -> Settled | None:
        if sum(file.size_bytes for file in partition.segments) < fast.least_bytes:
            return None
        from exhume.replay.survivors.tries import fold_partition

        # A start after an unclean stop verifies checksums, and so does salvage, whatever this reader was told.
        verify = fast.verify or stop == "unclean" or options.mode == "lenient"
        own = replace(fast, threads=threads, verify=verify, cap_bytes=min(fast.cap_bytes, DEFAULT_CAP_BYTES))
        return fold_partition(partition, stop, own, options)

    # Many partitions side by side, or the segments of a few.
    if fast.threads > 1 and len(partitions) > 2 * fast.threads:
        with ThreadPoolExecutor(fast.threads) as pool:
            try:
                return list(pool.map(lambda partition: fold(partition, 1), partitions))
            except BaseException:
                fast.is_stopped.set()
                raise
    return [fold(partition, fast.threads) for partition in partitions]


def _load_in_columns(settled: Settled, options: LoadOptions) -> tuple[PartitionLoad, TopicNames] | None:
    loaded = load_settled(settled, options)
    if loaded is not None and loaded[0].outcome != "aborted":
        assert options.fast is not None
        options.fast.read_whole.update(
            segment.file.path
            for number, segment in enumerate(settled.log.segments)
            # Of what a broker does not serve, a reader of findings should know.
            if number not in settled.odd_segments and segment.end == len(segment.buffer)
        )
        if options.fast.noted is not None and options.at is None and options.groups and not settled.odd_segments:
            options.fast.noted |= settled.noted()
    return loaded


def load_settled(settled: Settled, options: LoadOptions) -> tuple[PartitionLoad, TopicNames] | None:
    """The load of a log that was folded, and the topic names in it; None where it is to be loaded record by record all the same."""
    from exhume.replay.survivors.offset_columns import SettledOffsets
    from exhume.replay.survivors.settled import CommitSeen

    log, learned = settled.log, TopicNames()
    learned.add_all("commit", settled.topic_ids)
    refusals = Refusals(lenient=options.mode == "lenient")
    loader = new_load(options.profile, refusals, learned, log.end_offset, options.inputs)
    progress = _Progress(settled.records, settled.size_bytes, settled.first_offset, settled.last_offset)
    for passed in settled.passed():
        if isinstance(passed, CommitSeen):
            loader.note_commit(passed)
            continue
        refusals.path, refusals.byte_position = passed.path, passed.batch.byte_position
        try:
            loader.apply(passed)
        except LoadAborted:
            # It ends at this batch already.
            shorter = settled.up_to(settled.place_of(passed)) if settled.up_to is not None else None
            return None if shorter is None else load_settled(shorter, options)
    if settled.ends_at is not None:
        return _load_to_the_error(settled, loader, progress)
    tolerated = len(refusals.tolerated)
    try:
        loader.settle(settled)
        held = loader.finish()
    except LoadAborted:
        return None
    if len(refusals.tolerated) > tolerated or learned.differs_from("commit", settled.topic_ids):
        return None
    held[0].offset_columns = SettledOffsets(settled, loader.commit_rules)
    load = _loaded(log, options, loader, held, progress)
    load.left_out = frozenset(settled.left_out())
    load.more_groups = frozenset(group for group in load.left_out if loader.hangs_on_offsets(group))
    return load, learned


def _load_to_the_error(settled: Settled, loader: ScalaLoad | JavaLoad, progress: _Progress) -> tuple[PartitionLoad, TopicNames] | None:
    """The same where the load ends in an error: at which record of the last batch, and why, can hang on the groups that there are."""
    refusals = loader.refusals
    try:
        loader.settle(settled)
    except LoadAborted:
        return None
    try:
        for batch in islice(settled.last_batches(), 1):
            refusals.path, refusals.byte_position = batch.path, batch.batch.byte_position
            loader.apply(batch)
    except LoadAborted as aborted:
        if not loader.names.differs_from("commit", settled.topic_ids):
            return _aborted(settled.log, loader, aborted, progress), loader.names
    return None


def load_log(log: StrictLog, options: LoadOptions, names: TopicNames) -> PartitionLoad:
    """The load of a log record by record, as the mode says; `names` learns what its records know."""
    return (_load_leniently if options.mode == "lenient" else _load_strictly)(log, options, names)


def refused_load(log: StrictLog, profile: BrokerProfile, reason: str) -> PartitionLoad:
    """What comes of a log in a directory that a broker does not start on: one bad partition keeps it from starting, so none is loaded."""
    return _not_loaded(log, profile, "refused", reason, _Progress())


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
        load.snapshots = _shown(log, loader, load.holdings, names), load.holdings
    if load.snapshots is not None and options.view == "shown":
        reason = f"the log ends in a gap: {log.end_offset} is its end, {(progress.last_offset or 0) + 1} the end of its last batch"
        reason = f"{reason}; requests see the state at {max(load.row['shown_offset'], 0)} until the next write"
        load.holdings = load.snapshots[0]
        load.outcome = "not_shown"
        load.row |= {"outcome": load.outcome, "reason": reason}
        load.findings.append(load_findings.partition(log, "not_shown", "warn", reason, "Compare with --view held"))
    return load


def _aborted(log: StrictLog, loader: ScalaLoad | JavaLoad, aborted: LoadAborted, progress: _Progress) -> PartitionLoad:
    is_stalled = isinstance(aborted, LoadStalled)
    load = _not_loaded(log, loader.profile, "stalled" if is_stalled else "aborted", aborted.reason, progress)
    load.holdings = Holdings() if is_stalled else loader.held_after_abort()
    load.row |= {"record_offset": aborted.record_offset, "path": aborted.path, "byte_position": aborted.byte_position}
    load.findings.append(load_findings.aborted(log, loader.profile, aborted))
    return load


def _shown(log: StrictLog, loader: JavaLoad, held: Holdings, names: TopicNames) -> Holdings:
    """The snapshot that requests see. What the end of the load did is not in there, except to classic groups, which have no snapshots.

    Fetches that require stable offsets see all that is held, so open transactions are the same.
    """
    earlier = JavaLoad(loader.profile, Refusals(lenient=False), names, log.end_offset)
    _fold([[batch for batch in log.batches() if batch.last_offset < loader.shown_offset]], earlier, _Progress())
    shown = earlier.snapshot()
    for name, group in shown.groups.items():
        last = held.groups.get(name)
        if isinstance(group, ClassicGroup) and isinstance(last, ClassicGroup) and group.record_offset == last.record_offset:
            group.rebalanced_at_load = last.rebalanced_at_load
    return replace(shown, transactions=held.transactions)


def _load_leniently(log: StrictLog, options: LoadOptions, names: TopicNames) -> PartitionLoad:
    progress = _Progress()
    refusals = Refusals(lenient=True)
    loader = new_load(options.profile, refusals, names, log.end_offset, options.inputs)
    _fold(([batch] for batch in lenient_batches(log)), loader, progress)
    held = loader.finish()
    return _loaded(log, options, loader, held, progress)


def _loaded(
    log: StrictLog, options: LoadOptions, loader: ScalaLoad | JavaLoad, held: tuple[Holdings, str | None], progress: _Progress
) -> PartitionLoad:
    """The load that came to an end, with what is to be said of it."""
    profile = options.profile
    holdings, late_error = held
    outcome: Outcome = "loaded_with_error" if late_error else "loaded"
    row = _row(log, profile, outcome, late_error, progress)
    if options.mode == "lenient":
        row |= {"mode": "lenient", "tolerated_records": len(loader.refusals.tolerated)}
        findings = [*_cut_findings(log), *load_findings.tolerated_records(log, profile, loader.refusals)]
    else:
        findings = [*log.losses, *hidden_findings(log), *_cut_findings(log)]
    if isinstance(loader, JavaLoad):
        row["shown_offset"] = loader.shown_offset
        findings += load_findings.java_load(log, loader)
    return PartitionLoad(log.partition, holdings, outcome, row, findings)


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
            if isinstance(batch, ReducedBatch):
                progress.pass_over(batch.passed)
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
