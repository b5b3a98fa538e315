"""What a coordinator holds after loading these logs, then and now."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Literal

import pyarrow as pa

from exhume.analysis.completeness import grade_groups
from exhume.analysis.coverage import coverage_of
from exhume.analysis.diff import diff_states
from exhume.analysis.forecast import Expiry, forecast, forecast_expiry, forecast_removals
from exhume.analysis.history import HISTORY, group_history
from exhume.analysis.load_check import check_loads
from exhume.analysis.log_spans import LogSpans, log_spans
from exhume.analysis.removals import neighbours_of
from exhume.analysis.why import explain as answer_why
from exhume.codecs import kernel_cache
from exhume.codecs.segment_reader import SegmentBatch
from exhume.errors import RequestError, near_by
from exhume.replay.broker_log import Stop
from exhume.replay.local import load_partitions, load_state
from exhume.replay.moment import Clock, moment, refuse_lone_clock, refuse_wrong_order
from exhume.replay.partition_load import LoadOptions, Mode, PartitionLoad
from exhume.replay.profiles import BrokerProfile
from exhume.replay.reading import CompiledLoad, LoadInputs
from exhume.replay.release_table import newest_of_each_line
from exhume.replay.releases import newer_release_findings, profile_for
from exhume.replay.state import CoordinatorState, refuse_unknown_groups
from exhume.replay.topic_names import TopicNames, names_beside
from exhume.topic.tables import Place, TopicTables

MS_PER_MINUTE = 60_000
#: The record types that removals of offsets are looked for in.
OFFSET_COMMITS = ("offset_commit",)


class TopicStates(TopicTables):
    """States of coordinators, and what follows from them."""

    def state(
        self,
        *,
        release: str | None = None,
        mode: Mode = "strict",
        stop: Stop | None = None,
        view: Literal["committed", "in_memory"] = "committed",
        groups: Collection[str] | None = None,
        topics_file: Place | None = None,
        inputs: LoadInputs | None = None,
        at_offset: int | Mapping[int, int] | None = None,
        at_time_ms: int | None = None,
        clock: Clock | None = None,
    ) -> CoordinatorState:
        """What a coordinator of this release (default: the newest known) holds after loading these logs.

        `strict` does as the release does, aborted loads included; `lenient` never stops and notes what it went on over. `LoadOptions` says
        what `stop` and `view` mean. Findings of the load are added to `findings`, and those of a look at every checksum: a broker
        loads damage unseen, the reader of its state should know.

        `at_offset` is the last record offset that counts, by offsets partition, or bare where there is one partition only; partitions
        without one are taken to their end. `at_time_ms` instead of it is a time on `clock` (default: append). `replay.moment` says what
        that means, `loads` what came of it, and `completeness` how much of the past compaction has left.

        Raises:
            RequestError: no such release, or a moment that this log cannot have.
        """
        at = moment(self._evidence.offsets_partitions, at_offset=at_offset, at_time_ms=at_time_ms, clock=clock)
        options = LoadOptions(profile_for(release), mode, stop, view, inputs or LoadInputs(), at, groups=selectable_groups(groups))
        self._note_unknown_releases(release)
        options = replace(options, fast=self._fast_load())
        state = load_state(self._evidence.log_directories, options, self._topic_names(topics_file))
        self._look_for_damage(mode, options.fast)
        if options.fast is not None and options.fast.verified_segments:
            kernel_cache.mark_warm()
        self.findings.extend(state.findings)
        return state.only(groups) if groups is not None else state

    def completeness(self, state: CoordinatorState) -> pa.Table:
        """How much the log still knows of the moment of this state, which it was loaded into: a grade for each group, of
        `completeness.COMPLETENESS`.
        """
        return grade_groups(self._reader(), state)

    def diff(
        self,
        *,
        from_offset: int | Mapping[int, int] | None = None,
        from_time_ms: int | None = None,
        to_offset: int | Mapping[int, int] | None = None,
        to_time_ms: int | None = None,
        clock: Clock | None = None,
        release: str | None = None,
        mode: Mode = "strict",
        stop: Stop | None = None,
        groups: Collection[str] | None = None,
        topics_file: Place | None = None,
    ) -> pa.Table:
        """What differs between two moments of these logs, as `diff.DIFF`; the later moment is the end where it is left out.

        Raises:
            RequestError: no earlier moment, one that this log cannot have or that lies behind the later one, or a group of neither moment.
        """
        known, profile, names = self._evidence.offsets_partitions, profile_for(release), self._topic_names(topics_file)
        earlier = moment(known, at_offset=from_offset, at_time_ms=from_time_ms, clock=None if from_time_ms is None else clock)
        later = moment(known, at_offset=to_offset, at_time_ms=to_time_ms, clock=None if to_time_ms is None else clock)
        refuse_lone_clock(clock, from_time_ms, to_time_ms)
        self._note_unknown_releases(release)
        if earlier is None:
            raise RequestError("a difference from which moment on?", remedy="Name a record offset or a time to begin with")
        refuse_wrong_order(earlier, later)
        fast = self._fast_load()
        # The later one first: it knows every topic name that the earlier one knows, and a name that is learned is no difference.
        after, before = (
            load_state(self._evidence.log_directories, LoadOptions(profile, mode, stop, at=at, fast=fast), names) for at in (later, earlier)
        )
        self._look_for_damage(mode, fast)
        self.findings.extend([*before.findings, *after.findings])
        if groups is not None:
            refuse_unknown_groups(groups, before, after)
        return diff_states(*(state if groups is None else state.only(groups) for state in (before, after)))

    def history(self, group: str, *, topic: str | None = None, partition: int | None = None, release: str | None = None) -> pa.Table:
        """Every record of a group in the order of the log, or every commit of one of its keys, as `history.HISTORY`.

        `release` decides which records count as transactional and what is left at the end.

        Raises:
            RequestError: no record of this group, or of this key; lists what is near by.
        """
        self._note_unknown_releases(release)
        try:
            return self._history(group, (topic, partition), release, selectable_groups([group]))
        except RequestError:
            # What is near by is known to a load of all groups.
            return self._history(group, (topic, partition), release, None)

    def _history(self, group: str, key: tuple[str | None, int | None], release: str | None, groups: Collection[str] | None) -> pa.Table:
        # Loaded as far as it goes: what a damaged record hides is no reason to call the others dead.
        names, fast = self._topic_names(None), replace(self._fast_load(), relevant_batches={})
        options = LoadOptions(profile_for(release), "lenient", fast=fast, groups=groups)
        state = load_state(self._evidence.log_directories, options, names)
        return group_history(self._batches_about(group, fast, key), state, names, group, self._spans, topic=key[0], partition=key[1])

    def expiry(
        self,
        *,
        now_ms: int | None = None,
        retention_ms: int | None = None,
        release: str | None = None,
        groups: Collection[str] | None = None,
    ) -> Expiry:
        """Which offsets and groups the expiry passes of this release remove, and when, if nothing else happens after these logs end.

        `now_ms` is the time of the next pass (default: this moment), `retention_ms` what `offsets.retention.minutes` says (default: that of
        the release). Rules are applied to all that is in memory after a strict load.

        Raises:
            RequestError: no such release; a retention that is no number of minutes; no such group.
        """
        profile = profile_for(release)
        now_ms, retention_ms = now_or_given_ms(now_ms), retention_of_ms(retention_ms, profile)
        fast = self._fast_load()
        options = LoadOptions(profile, view="in_memory", inputs=LoadInputs(retention_minutes=retention_ms // MS_PER_MINUTE), fast=fast)
        loads = load_partitions(self._evidence.log_directories, options, self._topic_names(None))
        self._look_for_damage("strict", fast)
        for load in loads:
            self.findings.extend(load.findings)
        expiry = forecast_expiry(loads, profile, now_ms, retention_ms, groups=groups)
        if groups is not None and all(load.outcome in ("loaded", "loaded_with_error") for load in loads):
            _refuse_unknown(groups, expiry.forecast, loads)
        self.findings.extend(expiry.findings)
        return expiry

    def why(
        self,
        group: str,
        *,
        topic: str | None = None,
        partition: int | None = None,
        now_ms: int | None = None,
        retention_ms: int | None = None,
        release: str | None = None,
    ) -> pa.Table:
        """Why this group and its offsets are there, or are not, as `why.WHY`: of the group and of each offset that the log speaks of; with
        a topic only of its offsets, with a partition only of that one.

        `release` and `retention_ms` are those of the broker that wrote the log, as far as known: they decide what it had expired.

        Raises:
            RequestError: no such release; a retention that is no number of minutes; a partition without its topic.
        """
        if partition is not None and topic is None:
            raise RequestError(f"partition {partition} of which topic?", remedy="Name the topic too")
        profile = profile_for(release)
        now_ms, retention_ms = now_or_given_ms(now_ms), retention_of_ms(retention_ms, profile)
        inputs = LoadInputs(retention_minutes=retention_ms // MS_PER_MINUTE)
        state = self.state(release=release, inputs=inputs)
        names = self._topic_names(None)
        fast = self._fast_load()
        noting = replace(self._fast_load(), relevant_batches={})
        options = LoadOptions(profile, "lenient", inputs=inputs, fast=noting, groups=selectable_groups([group]))
        lenient = load_state(self._evidence.log_directories, options, names)
        try:
            history = group_history(self._batches_about(group, noting), lenient, names, group, self._spans)
        except RequestError:
            # That nothing is here is an answer, too.
            history = HISTORY.empty_table()

        options = LoadOptions(profile, view="in_memory", inputs=inputs, fast=fast, groups=selectable_groups([group]))
        loads = load_partitions(self._evidence.log_directories, options, names)
        now = forecast(loads, profile, now_ms, retention_ms, groups=[group])
        return answer_why(
            group,
            history,
            state,
            profile,
            now=now,
            before=forecast_removals(self._evidence.log_directories, history, profile, inputs, retention_ms),
            neighbours=neighbours_of(self.records(types=OFFSET_COMMITS), group, history),
            coverage=coverage_of(self.batches().read_all()),
            topic=topic,
            partition=partition,
        )

    def _spans(self) -> LogSpans:
        """How far these logs reach; reads the headers of all batches."""
        return log_spans(self.batches())

    def load_check(self, releases: Collection[str] | None = None, *, stop: Stop | None = None) -> pa.Table:
        """What each of these releases (default: the newest of every span) would make of these logs, as `load_check.LOAD_CHECK`."""
        self._note_unknown_releases(*(releases or ()))
        return check_loads(self._evidence.log_directories, list(releases or newest_of_each_line()), stop=stop, fast=self._fast_load())

    def _batches_about(self, group: str, fast: CompiledLoad, key: tuple[str | None, int | None] = (None, None)) -> Iterator[SegmentBatch]:
        """Every batch that has to do with this group, or could; a name that is not exact could stand for others.

        Commits of other keys than this one may be left out.
        """
        reader = self._reader()
        if not fast.verified_segments or "\ufffd" in group:
            return reader.batches()
        from exhume.codecs.columns.mentions import batches_about

        return batches_about(reader, group, fast.verified_segments, noted=fast.relevant_batches, key=key)

    def _note_unknown_releases(self, *releases: str | None) -> None:
        self.findings.extend(newer_release_findings(releases))

    def _fast_load(self) -> CompiledLoad:
        options = self._options
        least_bytes = options.least_kernel_bytes(self._reader().total_bytes)
        return CompiledLoad(options.verify, options.cap_bytes, self._count_bytes(), least_bytes, options.most_threads)

    def _count_bytes(self) -> Callable[[int], None]:
        """Tells the progress of bytes that threads have done."""
        progress, total_bytes = self._options.progress, self._reader().total_bytes
        lock = Lock()
        done = 0

        def advance(size_bytes: int) -> None:
            nonlocal done
            with lock:
                done += size_bytes
                if progress is not None:
                    progress(done, total_bytes)

        return advance

    def _look_for_damage(self, mode: Mode, fast: CompiledLoad | None = None) -> None:
        """Put what a look at every checksum finds into `findings`; a lenient load reads every record, so those are looked at too.

        Segments that a fast load has read whole are left out: it has verified them, and found nothing to say.
        """
        reader, besides = self._reader(), fast.verified_segments if fast else frozenset[str]()
        if reader.is_worth_compiling:
            from exhume.codecs.columns.looking import look

            look(reader, besides, at_records=mode == "lenient")
            return
        for found in reader.batches(besides=besides):
            if mode == "lenient":
                found.records()

    def _topic_names(self, topics_file: Place | None) -> TopicNames:
        return names_beside(self._evidence.log_directories, None if topics_file is None else Path(topics_file))


def selectable_groups(groups: Collection[str] | None) -> Collection[str] | None:
    """These groups, for a load that has to do with no others; None where a name of them is not exact: it could stand for several."""
    return None if groups is None or any("\ufffd" in group for group in groups) else groups


def now_or_given_ms(now_ms: int | None) -> int:
    """This moment, unless one is given."""
    return time.time_ns() // 1_000_000 if now_ms is None else now_ms


def retention_of_ms(retention_ms: int | None, profile: BrokerProfile) -> int:
    """The retention given, or the default of the release; brokers count it in minutes."""
    if retention_ms is None:
        return profile.default_retention_minutes * MS_PER_MINUTE
    if retention_ms < MS_PER_MINUTE or retention_ms % MS_PER_MINUTE:
        raise RequestError(f"a retention of {retention_ms} ms", remedy="Brokers count the retention in whole minutes, one at least")
    return retention_ms


def _refuse_unknown(groups: Collection[str], forecast: pa.Table, loads: Sequence[PartitionLoad]) -> None:
    for group in sorted(set(groups) - set(forecast["group"].to_pylist())):
        held = [load.partition_state.whole() for load in loads]
        known = {name for partition_state in held for name in (*partition_state.groups, *(key[0] for key in partition_state.offsets))}
        raise RequestError(f"no group {group!r} in this state", remedy=near_by(group, known))
