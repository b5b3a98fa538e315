"""The local runner: every offsets partition of the evidence into one state, in this process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from exhume.arrow_rows import of_log
from exhume.codecs.log_directory import LogDirectory, PartitionDirectory
from exhume.findings import Findings
from exhume.replay import load_findings
from exhume.replay.broker_log import Stop, StrictLog
from exhume.replay.broker_start import open_strictly, start_problem, stop_of
from exhume.replay.moment import cut_log
from exhume.replay.offset_fetch import fetch_error
from exhume.replay.partition_load import LoadOptions, PartitionLoad, load_fold_result, load_log, refused_load
from exhume.replay.state import CoordinatorState
from exhume.replay.state_builder import StateTables
from exhume.replay.topic_names import TopicNames

if TYPE_CHECKING:
    from exhume.replay.fold.folded_log import FoldedLog


#: The log that was folded, and its load with the topic names in it; None if it must be loaded record by record.
_Folded = tuple[StrictLog | None, tuple[PartitionLoad, TopicNames] | None]


def load_state(directories: Sequence[LogDirectory], options: LoadOptions, names: TopicNames) -> CoordinatorState:
    """The state that a coordinator has after loading every offsets partition of these log directories.

    `names` are the topic names known so far; the load adds those from the logs.
    """
    return state_of_loads(load_partitions(directories, options, names), options, names)


def state_of_loads(loads: Sequence[PartitionLoad], options: LoadOptions, names: TopicNames) -> CoordinatorState:
    """The state from these loads, made with these `options`. Topics that `names` do not know have no name."""
    findings = Findings()
    state_of = StateTables(names)
    for load in loads:
        origin = of_log(load.partition.replica, load.partition.offsets_partition)
        findings.extend(load.findings)
        state_of.add(origin, load.partition_state, load.row | {"offset_fetch_error": fetch_error(load.outcome, options.profile)})
        shown, held = load.snapshots or (load.partition_state, load.partition_state)
        state_of.add_fetches(origin, shown, held, options.profile)
    findings.extend(load_findings.groups([(load.partition, load.partition_state) for load in loads], options.profile))
    findings.extend(state_of.findings)
    return CoordinatorState(options.profile.release, options.mode, state_of.tables(), findings)


def load_partitions(directories: Sequence[LogDirectory], options: LoadOptions, names: TopicNames) -> list[PartitionLoad]:
    """The load of every offsets partition of these log directories, one by one; `load_state` makes its tables from them."""
    loads = _load_directories(directories, options, names)
    if options.groups is not None and _needs_skipped_offsets(loads):
        loads = _load_directories(directories, replace(options, groups=None), names)
    return loads


def _needs_skipped_offsets(loads: Sequence[PartitionLoad]) -> bool:
    """True if a skipped group might exist in a second partition; only its skipped offsets would show it."""
    unsure = [load.skipped_groups - load.partition_state.groups.keys() for load in loads]
    if not any(unsure):
        return False
    named = Counter((load.partition.replica, name) for load in loads for name in {*load.skipped_groups, *load.partition_state.groups})
    return any(named[load.partition.replica, name] > 1 for load, names in zip(loads, unsure, strict=True) for name in names)


def _load_directories(directories: Sequence[LogDirectory], options: LoadOptions, names: TopicNames) -> list[PartitionLoad]:
    loads: list[PartitionLoad] = []
    for directory in directories:
        partitions = [partition for partition in directory.partitions if partition.read_segments]
        loads += _load_directory(partitions, options, stop_of(directory, options.stop), names)
    return loads


def _load_directory(partitions: Sequence[PartitionDirectory], options: LoadOptions, stop: Stop, names: TopicNames) -> list[PartitionLoad]:
    profile, is_lenient = options.profile, options.mode == "lenient"
    done = _load_folded(partitions, options, stop)
    logs = [
        log if log and load else cut_log(open_strictly(partition, stop, options.inputs.load_buffer_bytes), options.at, lenient=is_lenient)
        for partition, (log, load) in zip(partitions, done, strict=True)
    ]
    refused = next((log.refused for log in logs if log.refused), None)
    if refused is None and not is_lenient:
        problems = (start_problem(each, profile, stop, log) for each, log in zip(partitions, logs, strict=True))
        refused = next(filter(None, problems), None)
    if refused is not None and not is_lenient:
        return [refused_load(log, profile, refused) for log in logs]
    loads = []
    for log, (_, in_columns) in zip(logs, done, strict=True):
        if in_columns is None:
            loads.append(load_log(log, options, names))
            continue
        load, learned = in_columns
        # In the order of partitions: the last name of a topic id counts.
        names.take(learned)
        loads.append(load)
    return loads


def _load_folded(partitions: Sequence[PartitionDirectory], options: LoadOptions, stop: Stop) -> list[_Folded]:
    """Log and load of each folded partition, with the groups on which the wanted groups depend."""
    done: list[_Folded] = [
        (folded.log, _load_in_columns(folded, options)) if folded else (None, None)
        for folded in _fold_in_columns(partitions, stop, options)
    ]
    if options.groups is None:
        return done
    more = [loaded[0].dependent_groups if loaded else frozenset() for _, loaded in done]
    again = [number for number, names in enumerate(more) if names]
    if again:
        wanted = replace(options, groups=frozenset(options.groups).union(*more))
        for number, redone in zip(again, _load_folded([partitions[number] for number in again], wanted, stop), strict=True):
            done[number] = redone
    return done


def _fold_in_columns(partitions: Sequence[PartitionDirectory], stop: Stop, options: LoadOptions) -> list[FoldedLog | None]:
    """The fold of each log; None for a log that must be loaded record by record."""
    fast, profile = options.fast, options.profile
    if fast is None or profile.depends_on_chunks:
        return [None] * len(partitions)

    def fold(partition: PartitionDirectory, threads: int) -> FoldedLog | None:
        if sum(file.size_bytes for file in partition.segments) < fast.least_bytes:
            return None
        from exhume.replay.fold.log import fold_partition

        # A start after an unclean stop verifies checksums, and so does salvage, also without `verify`.
        read = fast.read.of_fold(verify=stop != "clean" or options.mode == "lenient")
        own = replace(fast, read=read, threads=threads)
        return fold_partition(partition, stop, own, options)

    # Fold many partitions in parallel, or the segments of a few.
    if fast.threads > 1 and len(partitions) > 2 * fast.threads:
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(fast.threads) as pool:
            try:
                return list(pool.map(lambda partition: fold(partition, 1), partitions))
            except BaseException:
                fast.is_stopped.set()
                raise
    return [fold(partition, fast.threads) for partition in partitions]


def _load_in_columns(folded: FoldedLog, options: LoadOptions) -> tuple[PartitionLoad, TopicNames] | None:
    loaded = load_fold_result(folded, options)
    if loaded is not None and loaded[0].outcome != "aborted":
        assert options.fast is not None
        options.fast.verified_segments.update(
            segment.file.path
            for number, segment in enumerate(folded.log.segments)
            # Findings must cover the bytes that a broker does not serve.
            if number not in folded.result.careful_segments and segment.end == len(segment.buffer)
        )
        if options.fast.relevant_batches is not None and folded.has_notes:
            options.fast.relevant_batches |= folded.noted()
    return loaded
