"""The library's front door: an offsets topic, wherever its files lie."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Literal, Self

import pyarrow as pa

from exhume.analysis.assignment_rounds import TOPIC_RECORD_TYPES, FactsOverTime, check_every, check_latest
from exhume.analysis.assignment_trials import Expectation
from exhume.analysis.assignments import Assignments, tables_of
from exhume.analysis.assignors import VARIANTS
from exhume.analysis.completeness import grade_groups
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.diff import diff_states
from exhume.analysis.explanation.commands import moment_arguments
from exhume.analysis.explanation.gathering import Gathered, cuts, facts_of, history_until, noting
from exhume.analysis.explanation.page import pages
from exhume.analysis.forecast import Expiry, forecast_expiry, forecast_removals
from exhume.analysis.group_lives import GROUP_RECORD_TYPES, group_lives
from exhume.analysis.growth import Growth, GrowthBy, growth_of
from exhume.analysis.history import HISTORY, group_history
from exhume.analysis.inspection import Inspection, inspect
from exhume.analysis.load_check import check_loads
from exhume.analysis.log_spans import log_spans
from exhume.analysis.memberships import Membership
from exhume.analysis.ownership import owners, owners_at
from exhume.analysis.positions import positions_before_rewinds, positions_lost, positions_of
from exhume.analysis.rebalances import rebalances, storm_findings
from exhume.analysis.removals import neighbours_of
from exhume.analysis.reset_plan import ResetPlan, TakenBack, past_findings, plan_reset
from exhume.analysis.transactions import DEFAULT_MAX_TIMEOUT_MS, Transactions, transactions_of
from exhume.analysis.why import coverage_of
from exhume.analysis.why import explain as answer_why
from exhume.arrow_rows import batches_of
from exhume.codecs import kernel_cache, schemas
from exhume.codecs.annotation import ANNOTATION, annotate
from exhume.codecs.chapters import chapters
from exhume.codecs.compression import DEFAULT_CAP_BYTES
from exhume.codecs.decoded_tables import DUMP, decoded_batches, dump_batches
from exhume.codecs.log_directory import Evidence, discover
from exhume.codecs.record_filter import RecordFilter
from exhume.codecs.record_sizes import record_sizes
from exhume.codecs.records_table import batch_tables, matching_records, record_batches
from exhume.codecs.segment_reader import Progress, ReadOptions, SegmentBatch, SegmentReader
from exhume.errors import RequestError
from exhume.findings import Finding, Findings
from exhume.replay.broker_log import Stop
from exhume.replay.local import LoadOptions, Mode, PartitionLoad, load_partitions, load_state, state_of_loads
from exhume.replay.moment import Clock, moment, refuse_lone_clock
from exhume.replay.profiles import BrokerProfile
from exhume.replay.reading import FastLoad, LoadInputs
from exhume.replay.release_table import newest_of_each_line
from exhume.replay.releases import newer_release_findings, profile_for
from exhume.replay.state import CoordinatorState
from exhume.replay.topic_names import TopicNames, names_beside, read_topics_file

Place = str | PathLike[str]

_MS_PER_MINUTE = 60_000
_OFFSET_COMMITS = ("offset_commit",)


class OffsetsTopic:
    """An offsets topic: some or all of its partitions, from one broker or several.

    Tables come back as `pyarrow.Table` or, where they can be large, as `pyarrow.RecordBatchReader`s that read as they are asked. What was
    odd on the way is in `findings`; it grows while readers are consumed. Close it, or use it in a `with` statement, to let files go.
    """

    def __init__(self, evidence: Evidence, options: ReadOptions, places: Sequence[str] = ()) -> None:
        self._evidence = evidence
        self._options = options
        self._places = tuple(places)
        self.findings = Findings(evidence.findings)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let every file go."""
        self._evidence.close()

    def segments(self) -> pa.Table:
        """One row per segment file, leftovers among them, of `schemas.SEGMENTS`. Reads every segment that is part of the answer."""
        return self.inspect().segments

    def inspect(self) -> Inspection:
        """What is here, what it holds and what it lacks. Adds its findings to `findings`."""
        inspection = inspect(self._evidence, self._options)
        self.findings.extend(inspection.findings)
        return inspection

    def batches(self) -> pa.RecordBatchReader:
        """One row per batch, of `schemas.BATCHES`, in the order of the files."""
        return pa.RecordBatchReader.from_batches(schemas.BATCHES, batch_tables(self._reader()))

    def records(
        self,
        *,
        groups: Collection[str] | None = None,
        topics: Collection[str] | None = None,
        partitions: Collection[int] | None = None,
        types: Collection[str] | None = None,
        from_offset: int | None = None,
        to_offset: int | None = None,
        from_time_ms: int | None = None,
        to_time_ms: int | None = None,
        offsets_partitions: Collection[int] | None = None,
    ) -> pa.RecordBatchReader:
        """One row per record, of `schemas.RECORDS`: those that meet every condition, both ends of a range included.

        Conditions on group, topic or partition leave out records that have none, end-transaction markers among them. `types` are names or
        numbers of record types, or `end_txn_marker`.
        """
        wanted = RecordFilter(
            groups=groups,
            topics=topics,
            partitions=partitions,
            types=types,
            from_offset=from_offset,
            to_offset=to_offset,
            from_time_ms=from_time_ms,
            to_time_ms=to_time_ms,
            offsets_partitions=offsets_partitions,
        )
        return pa.RecordBatchReader.from_batches(schemas.RECORDS, record_batches(self._reader(), wanted))

    def _reader(self) -> SegmentReader:
        return SegmentReader(self._evidence, self._options, self.findings)

    def dump(self, wanted: RecordFilter | None = None, *, raw: bool = False) -> pa.RecordBatchReader:
        """Every record decoded to the last field, one row each, of `decoded_tables.DUMP`; with `raw`, key and value bytes beside it."""
        return pa.RecordBatchReader.from_batches(DUMP, dump_batches(self._reader(), wanted or RecordFilter(), raw=raw))

    def annotate(self, wanted: RecordFilter | None = None) -> pa.RecordBatchReader:
        """A byte-by-byte reading of these records: every field with its bytes, one row each, of `annotation.ANNOTATION`."""
        rows = (
            found.origin | row
            for found, record, _ in matching_records(self._reader(), wanted or RecordFilter())
            for row in annotate(found.buffer, found.batch, record)
        )
        return pa.RecordBatchReader.from_batches(ANNOTATION, batches_of(ANNOTATION, rows))

    def decoded(self, name: str, *, groups: Collection[str] | None = None) -> pa.RecordBatchReader:
        """The typed table of one record type: `schemas.DECODED[name]`, or `schemas.END_TXN_MARKERS`.

        Raises:
            RequestError: no record type has this name; lists those there are.
        """
        schema = schemas.END_TXN_MARKERS if name == "end_txn_markers" else schemas.DECODED.get(name)
        if schema is None:
            raise RequestError(f"no table {name!r}", remedy=f"Choose one of {', '.join([*schemas.DECODED, 'end_txn_markers'])}")
        return pa.RecordBatchReader.from_batches(schema, decoded_batches(name, self._reader(), RecordFilter(groups=groups)))

    def offset_commits(self, *, groups: Collection[str] | None = None) -> pa.RecordBatchReader:
        """Offset commits and their tombstones (record types 0 and 1)."""
        return self.decoded("offset_commit", groups=groups)

    def group_metadata(self, *, groups: Collection[str] | None = None) -> pa.RecordBatchReader:
        """Classic group records and their tombstones (record type 2)."""
        return self.decoded("group_metadata", groups=groups)

    def end_txn_markers(self) -> pa.RecordBatchReader:
        """End-transaction markers."""
        return self.decoded("end_txn_markers")

    def state(
        self,
        *,
        release: str | None = None,
        mode: Mode = "strict",
        stop: Stop | None = None,
        view: Literal["shown", "held"] = "shown",
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
        at = moment(self._offsets_partitions(), at_offset=at_offset, at_time_ms=at_time_ms, clock=clock)
        options = LoadOptions(profile_for(release), mode, stop, view, inputs or LoadInputs(), at)
        self._note_unknown_releases(release)
        options = replace(options, fast=self._fast_load())
        state = load_state(self._evidence.log_directories, options, self._topic_names(topics_file))
        self._look_for_damage(mode, options.fast)
        if options.fast is not None and options.fast.read_whole:
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
            RequestError: no earlier moment, or one that this log cannot have.
        """
        known, profile, names = self._offsets_partitions(), profile_for(release), self._topic_names(topics_file)
        earlier = moment(known, at_offset=from_offset, at_time_ms=from_time_ms, clock=None if from_time_ms is None else clock)
        later = moment(known, at_offset=to_offset, at_time_ms=to_time_ms, clock=None if to_time_ms is None else clock)
        refuse_lone_clock(clock, from_time_ms, to_time_ms)
        self._note_unknown_releases(release)
        if earlier is None:
            raise RequestError("a difference from which moment on?", remedy="Name a record offset or a time to begin with")
        fast = self._fast_load()
        # The later one first: it knows every topic name that the earlier one knows, and a name that is learned is no difference.
        after, before = (
            load_state(self._evidence.log_directories, LoadOptions(profile, mode, stop, at=at, fast=fast), names) for at in (later, earlier)
        )
        self._look_for_damage(mode, fast)
        self.findings.extend([*before.findings, *after.findings])
        return diff_states(*(state if groups is None else state.only(groups) for state in (before, after)))

    def history(self, group: str, *, topic: str | None = None, partition: int | None = None, release: str | None = None) -> pa.Table:
        """Every record of a group in the order of the log, or every commit of one of its keys, as `history.HISTORY`.

        `release` decides which records count as transactional and what is left at the end.

        Raises:
            RequestError: no record of this group, or of this key; lists what is near by.
        """
        self._note_unknown_releases(release)
        names = self._topic_names(None)
        # Loaded as far as it goes: what a damaged record hides is no reason to call the others dead.
        fast = self._fast_load()
        state = load_state(self._evidence.log_directories, LoadOptions(profile_for(release), "lenient", fast=fast), names)
        return group_history(self._batches_about(group, fast), state, names, group, topic=topic, partition=partition)

    def _batches_about(self, group: str, fast: FastLoad) -> Iterator[SegmentBatch]:
        """Every batch that has to do with this group, or could; a name that is not exact could stand for others."""
        reader = self._reader()
        if not fast.read_whole or "\ufffd" in group:
            return reader.batches()
        from exhume.codecs.columns.mentions import batches_about

        return batches_about(reader, group, fast.read_whole)

    def memberships(self, groups: Collection[str] | None = None) -> Iterator[Membership]:
        """The steps in the lives of these groups (default: all), in the order of the log, one at a time.

        Topics that records name by id have their names where these logs know them anywhere, commits included.
        """
        return group_lives(self.records(types=GROUP_RECORD_TYPES, groups=groups), self._learned_names(None))

    def _learned_names(self, topics_file: Place | None) -> TopicNames:
        """Names of topic ids, those that the commits of these logs tell included: they are learned by loading."""
        names = self._topic_names(topics_file)
        # Classic groups have names and no ids: their logs need no load.
        with_ids = [name for name in GROUP_RECORD_TYPES if name != "group_metadata"]
        if any(batch.num_rows for batch in self.records(types=with_ids)):
            load_state(self._evidence.log_directories, LoadOptions(profile_for(None), "lenient", fast=self._fast_load()), names)
        return names

    def assignments(
        self,
        *,
        groups: Collection[str] | None = None,
        at_offset: int | Mapping[int, int] | None = None,
        at_time_ms: int | None = None,
        expected: str = "auto",
        release: str | None = None,
        topics_file: Place | None = None,
        every: bool = False,
    ) -> Assignments:
        """Who was assigned what, who should have been, and which assignor explains it, for these groups (default: all that somebody is in).

        `expected` is the name of an assignor, or `auto` for every one; `release` that of the Java client that leads a classic group, or of
        the coordinator of another. `topics_file` says how many partitions topics have, and their racks. `every` judges every assignment
        that the log holds, not only the last one. Moments are as for `state`; a time is that of the group's own records.

        Raises:
            RequestError: no such assignor, no such group, or a moment that this log cannot have.
        """
        known = sorted({variant.assignor for variant in VARIANTS})
        if expected != "auto" and expected not in known:
            raise RequestError(f"no assignor {expected!r} is known", remedy=f"Choose auto, or one of {', '.join(known)}")
        at = moment(self._offsets_partitions(), at_offset=at_offset, at_time_ms=at_time_ms)
        names = self._learned_names(topics_file)
        topics = read_topics_file(Path(topics_file)) if topics_file is not None else []
        rows = [row for name in TOPIC_RECORD_TYPES for row in self.decoded(name, groups=groups).read_all().to_pylist()]
        facts = FactsOverTime(topics, rows, names)
        steps = self._lives_of(groups, names)
        wanted = Expectation(expected, release)
        checks = check_every(steps, facts, wanted, at) if every else check_latest(steps, facts, wanted, at, with_empty=groups is not None)
        return tables_of(checks)

    def rebalances(self, groups: Collection[str] | None = None) -> pa.Table:
        """The generations and epochs of these groups (default: all): when, why, who came and went, what moved, as `rebalances.REBALANCES`.

        Storms are added to `findings`.

        Raises:
            RequestError: no group record of one of these groups; lists what is near by.
        """
        answer = rebalances(self._lives_of(groups), log_spans(self.batches()))
        self.findings.extend(storm_findings(answer))
        return answer

    def owners(
        self,
        *,
        groups: Collection[str] | None = None,
        topic: str | None = None,
        partition: int | None = None,
        at_offset: int | Mapping[int, int] | None = None,
        at_time_ms: int | None = None,
    ) -> pa.Table:
        """Who owned which partition when, as `ownership.OWNERS`; with a moment only what held then.

        `at_offset` is the last record offset that counts, by offsets partition or bare; `at_time_ms` a time of appends.

        Raises:
            RequestError: no group record of one of these groups, or nobody ever owned a partition of this topic; lists what is near by.
        """
        known: set[tuple[str, int]] = set()

        def is_wanted(name: str, number: int) -> bool:
            known.add((name, number))
            return topic in (None, name) and partition in (None, number)

        answer = owners(self._lives_of(groups), log_spans(self.batches()), wanted=is_wanted)
        if not answer.num_rows and (topic is not None or partition is not None):
            place = " ".join(str(part) for part in (topic, partition) if part is not None)
            topics = {name for name, _ in known}
            near = sorted(f"{name} {number}" for name, number in known if name == topic) or get_close_matches(topic or "", topics, n=5)
            remedy = f"Near by: {', '.join((near or sorted(topics))[:10])}" if topics else "No group here says who owns what"
            raise RequestError(f"nobody ever owned {place} here", remedy=remedy)
        if at_offset is None and at_time_ms is None:
            return answer
        return owners_at(answer, at_offset=at_offset, at_time_ms=at_time_ms)

    def _lives_of(self, groups: Collection[str] | None, names: TopicNames | None = None) -> Iterator[Membership]:
        """The steps of these groups; default for `names`: all that the logs tell.

        Raises:
            RequestError: one of them has none.
        """
        missing = set(groups or ())
        names = self._learned_names(None) if names is None else names
        for step in group_lives(self.records(types=GROUP_RECORD_TYPES, groups=groups), names):
            missing.discard(step.group)
            yield step
        if missing:
            known = {step.group for step in group_lives(self.records(types=GROUP_RECORD_TYPES))}
            group = min(missing)
            near = get_close_matches(group, known, n=5) or sorted(known)[:5]
            raise RequestError(f"no group record of {group!r} is here", remedy=f"Near by: {', '.join(near)}" if near else None)

    def diagnose(
        self,
        inputs: Inputs | None = None,
        *,
        codes: Collection[str] | None = None,
        groups: Collection[str] | None = None,
        topics_file: Place | None = None,
    ) -> Findings:
        """What the detectors of these codes (default: all) find in these logs, the worst first.

        `inputs` are what is known besides the logs. A detector that cannot decide says so, with confidence `undecidable`: where there is no
        finding, somebody has looked and found nothing. What is damaged is in `findings` of this topic.

        Raises:
            RequestError: no such code.
        """
        from exhume.analysis.detectors import LogFiles, condense, diagnose

        case = condense(chapters(self._reader()), self._topic_names(topics_file))
        case.files = LogFiles(self._evidence, self._reader, self._fast_load, self.findings)
        return Findings(diagnose(case, inputs or Inputs(), codes=codes, groups=groups))

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
        now_ms, retention_ms = _now_ms(now_ms), _retention_ms(retention_ms, profile)
        fast = self._fast_load()
        options = LoadOptions(profile, view="held", inputs=LoadInputs(retention_minutes=retention_ms // _MS_PER_MINUTE), fast=fast)
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
        now_ms, retention_ms = _now_ms(now_ms), _retention_ms(retention_ms, profile)
        inputs = LoadInputs(retention_minutes=retention_ms // _MS_PER_MINUTE)
        state = self.state(release=release, inputs=inputs)
        names = self._topic_names(None)
        fast = self._fast_load()
        lenient = load_state(self._evidence.log_directories, LoadOptions(profile, "lenient", inputs=inputs, fast=fast), names)
        try:
            history = group_history(self._batches_about(group, fast), lenient, names, group)
        except RequestError:
            # That nothing is here is an answer, too.
            history = HISTORY.empty_table()

        loads = load_partitions(self._evidence.log_directories, LoadOptions(profile, view="held", inputs=inputs, fast=fast), names)
        now = forecast_expiry(loads, profile, now_ms, retention_ms, groups=[group]).forecast
        return answer_why(
            group,
            history,
            state,
            profile,
            now=now,
            before=forecast_removals(self._evidence.log_directories, history, profile, inputs, retention_ms),
            neighbours=neighbours_of(self.records(types=_OFFSET_COMMITS), group, history),
            coverage=coverage_of(self.batches().read_all()),
            topic=topic,
            partition=partition,
        )

    def explain(
        self,
        group: str,
        *,
        at_offset: int | Mapping[int, int] | None = None,
        at_time_ms: int | None = None,
        clock: Clock | None = None,
        retention_ms: int | None = None,
        release: str | None = None,
        topics_file: Place | None = None,
    ) -> pa.Table:
        """A group in plain sentences, as `explanation.page.EXPLANATION`: what it is, its state, members, rebalances and commits, what is
        odd or missing, and what to look at next; each with the records that it rests on and how sure it is.

        The moment is that of `state`; default: the end. `retention_ms` is as for `expiry`.

        Raises:
            RequestError: no such release or moment; no record of this group, which lists what is near by.
        """
        profile, inputs = profile_for(release), Inputs(retention_ms=retention_ms)
        retention_ms = _retention_ms(retention_ms, profile)
        names, fast = self._topic_names(topics_file), self._fast_load()
        at = moment(self._offsets_partitions(), at_offset=at_offset, at_time_ms=at_time_ms, clock=clock)
        self._note_unknown_releases(release)
        options = LoadOptions(profile, inputs=LoadInputs(retention_minutes=retention_ms // _MS_PER_MINUTE), at=at, fast=fast)
        loads = load_partitions(self._evidence.log_directories, options, names)
        state = state_of_loads(loads, options, names)
        self._look_for_damage("strict", fast)
        self.findings.extend(state.findings)
        is_whole = at is None and not self.findings.has_damage and {load.outcome for load in loads} == {"loaded"}
        # A lenient load of such a log comes to the same.
        whole = state if is_whole else load_state(self._evidence.log_directories, replace(options, mode="lenient", at=None), names)
        records: list[pa.RecordBatch] = []
        history = group_history(noting(self._batches_about(group, fast), group, records), whole, names, group)
        origins = list(dict.fromkeys((row["replica"], row["offsets_partition"]) for row in history.to_pylist()))
        history = history_until(history, state)
        batches = self.batches().read_all()
        spans = log_spans(batches.to_batches())
        ends = {origin: end for origin, end in cuts(state).items() if origin in origins and end is not None and end >= 0}
        end_times_ms = {origin: self._times_of(end, origin[1]).get(str(origin[0])) for origin, end in ends.items()}
        times_ms = (*end_times_ms.values(), *(span.last_timestamp_ms for span in spans.values()))
        newest_ms = max((time_ms for time_ms in times_ms if time_ms is not None), default=0)
        forecast = forecast_expiry([load.of_all_held() for load in loads], profile, newest_ms, retention_ms, groups=[group]).forecast
        coverage = coverage_of(batches)
        why = answer_why(
            group,
            history,
            state,
            profile,
            now=forecast,
            before=forecast_removals(self._evidence.log_directories, history, profile, options.inputs, retention_ms),
            neighbours=neighbours_of(self.records(types=_OFFSET_COMMITS), group, history),
            coverage=coverage,
        )
        gathered = Gathered(
            group=group,
            state=state,
            history=history,
            memberships=[*group_lives(records, names)],
            why=why,
            forecast=forecast,
            completeness=None if at is None else self.completeness(state),
            coverage=coverage,
            spans=spans,
            starts={(each.replica, each.offsets_partition): each.start_offset for each in self._evidence.partitions},
            end_times_ms=end_times_ms,
            findings=self.findings,
            diagnosed=self._diagnosed(group, names, inputs),
            profile=profile,
            retention_ms=retention_ms,
            release=release,
            moment=moment_arguments(at_offset, at_time_ms, clock),
        )
        return pages(facts_of(gathered, origins), self._places or ("PATH",))

    def _diagnosed(self, group: str, names: TopicNames, inputs: Inputs) -> list[Finding]:
        """What those detectors find that look at one group alone."""
        from exhume.analysis.detectors import condense
        from exhume.analysis.detectors.catalogue import DETECTORS
        from exhume.analysis.detectors.diagnose import diagnose_group

        case = condense(chapters(self._reader()), names, commits_of=[group])
        return [finding for each in case.groups() if each.group == group for finding in diagnose_group(each, inputs, DETECTORS)]

    def reset_plan(
        self,
        groups: Sequence[str],
        *,
        at_offset: int | Mapping[int, int] | None = None,
        at_time_ms: int | None = None,
        clock: Clock | None = None,
        taken_back: TakenBack | None = None,
        include_pending: bool = False,
        now_ms: int | None = None,
        release: str | None = None,
    ) -> ResetPlan:
        """The plan that takes these groups back to where they were: at a moment, before their offsets were set back (`before_rewind`), or
        before they were removed (`lost`). Its text is what `kafka-consumer-groups.sh --reset-offsets --from-file` takes.

        `now_ms` is the commit timestamp of the plan's records (default: this moment). `reset_plan.plan_reset` says the rest.

        Raises:
            RequestError: no group, or one that the log does not know; no moment, or more than one way to name it; no such release.
        """
        ways = (at_offset, at_time_ms, taken_back)
        if not groups or sum(way is not None for way in ways) != 1:
            raise RequestError(
                "a plan takes groups back to one moment", remedy="Name groups and a time, a record offset, a rewind or a loss"
            )
        newest = self.state(release=release, groups=groups)
        cuts = None
        if taken_back is None:
            past = self.state(release=release, groups=groups, at_offset=at_offset, at_time_ms=at_time_ms, clock=clock)
            for group in set(groups) - {name for state in (past, newest) for name in _named_in(state)}:
                self.history(group, release=release)
            wanted = positions_of(past, "it was so at the moment")
            cuts = self._cuts(past)
            self.findings.extend(past_findings(groups, self.completeness(past)))
        else:
            refuse_lone_clock(clock, at_time_ms)
            by_producer_id = profile_for(release).coordinator == "java"
            histories = {group: self.history(group, release=release) for group in dict.fromkeys(groups)}
            wanted = [
                position
                for group, history in histories.items()
                for position in (
                    positions_before_rewinds(group, history, by_producer_id=by_producer_id)
                    if taken_back == "before_rewind"
                    else positions_lost(group, history, newest, by_producer_id=by_producer_id)
                )
            ]
        plan = plan_reset(
            groups,
            wanted,
            newest,
            now_ms=_now_ms(now_ms),
            cuts=cuts,
            include_pending=include_pending,
            never_back=taken_back is not None,
        )
        self.findings.extend(plan.findings)
        return plan

    def _cuts(self, past: CoordinatorState) -> dict[tuple[str, int | None], tuple[int | None, int | None]]:
        """The last record that counts in this state, and its time, by replica and offsets partition."""
        cuts: dict[tuple[str, int | None], tuple[int | None, int | None]] = {}
        for load in past.loads.to_pylist():
            last, number = load["last_record_offset"], load["offsets_partition"]
            times = {} if last is None else self._times_of(last, number)
            cuts[load["replica"], number] = (last, times.get(load["replica"]))
        return cuts

    def _times_of(self, record_offset: int, offsets_partition: int | None) -> dict[str, int | None]:
        """The timestamp of a record, by replica."""
        numbers = None if offsets_partition is None else [offsets_partition]
        found = self.records(from_offset=record_offset, to_offset=record_offset, offsets_partitions=numbers)
        return {row["replica"]: row["timestamp_ms"] for row in found.read_all().select(["replica", "timestamp_ms"]).to_pylist()}

    def growth(self, by: GrowthBy = "group", *, now_ms: int | None = None) -> Growth:
        """What fills the topic by group, topic, record type or hour, and what compaction would free now, in each partition.

        `now_ms` (default: this moment) is what delete horizons of tombstones are compared with.
        """
        fast = self._fast_load()
        state = load_state(self._evidence.log_directories, LoadOptions(profile_for(None), "lenient", fast=fast), TopicNames())
        first: dict[tuple[str, int | None], int] = {}
        for row in state.open_transactions.to_pylist():
            origin = (row["replica"], row["offsets_partition"])
            first[origin] = min(row["first_record_offset"], first.get(origin, row["first_record_offset"]))
        return growth_of(record_sizes(self._reader()), self._evidence.partitions, first, by=by, now_ms=_now_ms(now_ms))

    def transactions(self, *, max_timeout_ms: int = DEFAULT_MAX_TIMEOUT_MS, with_finished: bool = False) -> Transactions:
        """Open transactions, and finished ones where they are wanted, with what they hold up; the last stable offset of each partition.

        `max_timeout_ms` is the brokers' `transaction.max.timeout.ms`: what is idle for longer is late.
        """
        read = [directory for directory in self._evidence.partitions if any(file.is_read for file in directory.segments)]
        return transactions_of(self.records(), read, max_timeout_ms=max_timeout_ms, with_finished=with_finished)

    def _offsets_partitions(self) -> list[int | None]:
        return [partition.offsets_partition for partition in self._evidence.partitions if any(file.is_read for file in partition.segments)]

    def _note_unknown_releases(self, *releases: str | None) -> None:
        self.findings.extend(newer_release_findings(releases))

    def _fast_load(self) -> FastLoad:
        options = self._options
        return FastLoad(options.verify, options.cap_bytes, self._count_bytes(), options.least_kernel_bytes, options.threads or _cores())

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

    def _look_for_damage(self, mode: Mode, fast: FastLoad | None = None) -> None:
        """Put what a look at every checksum finds into `findings`; a lenient load reads every record, so those are looked at too.

        Segments that a fast load has read whole are left out: it has verified them, and found nothing to say.
        """
        for found in self._reader().batches(besides=fast.read_whole if fast else ()):
            if mode == "lenient":
                found.records()

    def load_check(self, releases: Collection[str] | None = None, *, stop: Stop | None = None) -> pa.Table:
        """What each of these releases (default: the newest of every span) would make of these logs, as `load_check.LOAD_CHECK`."""
        self._note_unknown_releases(*(releases or ()))
        return check_loads(self._evidence.log_directories, list(releases or newest_of_each_line()), stop=stop, fast=self._fast_load())

    def _topic_names(self, topics_file: Place | None) -> TopicNames:
        return names_beside(self._evidence.log_directories, None if topics_file is None else Path(topics_file))


def _named_in(state: CoordinatorState) -> set[str]:
    return {name for table in (state.groups, state.offsets, state.pending_offsets) for name in table["group"].to_pylist()}


def _cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _now_ms(now_ms: int | None) -> int:
    return time.time_ns() // 1_000_000 if now_ms is None else now_ms


def _retention_ms(retention_ms: int | None, profile: BrokerProfile) -> int:
    if retention_ms is None:
        return profile.default_retention_minutes * _MS_PER_MINUTE
    if retention_ms < _MS_PER_MINUTE or retention_ms % _MS_PER_MINUTE:
        raise RequestError(f"a retention of {retention_ms} ms", remedy="Brokers count the retention in whole minutes, one at least")
    return retention_ms


def _refuse_unknown(groups: Collection[str], forecast: pa.Table, loads: Sequence[PartitionLoad]) -> None:
    for group in sorted(set(groups) - set(forecast["group"].to_pylist())):
        held = [load.holdings.whole() for load in loads]
        known = sorted({name for holdings in held for name in (*holdings.groups, *(key[0] for key in holdings.offsets))})
        near = get_close_matches(group, known, n=5) or known[:5]
        raise RequestError(f"no group {group!r} in this state", remedy=f"Near by: {', '.join(near)}" if near else None)


def open_topic(
    places: Place | Sequence[Place],
    *,
    include: Collection[str] = (),
    verify: bool = True,
    cap_bytes: int = DEFAULT_CAP_BYTES,
    temp_dir: Place | None = None,
    progress: Progress | None = None,
    filesystem_options: Mapping[str, str] | None = None,
) -> OffsetsTopic:
    """Open data directories, partition directories, segment files or archives, one or a list of them. Nothing is written beside them.

    They lie on this machine, or where a URI says: `s3://bucket/prefix`, `gs://…`, `hdfs://…`, `file://…`.

    Args:
        places: what to read. Several data directories count as replicas, told apart by the `replica` column.
        include: leftovers to read too: `deleted`, `swap`, `cleaned` files, `delete`, `future`, `stray` directories.
        verify: check the CRC of every batch.
        cap_bytes: what one compressed batch may unfold to.
        temp_dir: where members of archives are spilled to, and what is fetched from elsewhere.
        progress: told how far reading has come.
        filesystem_options: endpoint, region, credentials and the like for URIs (docs/uris.md), before those that a URI has itself.

    Raises:
        EvidenceError: nothing of the offsets topic is there, or it cannot be read; names path and remedy.
        RequestError: a URI or an option that is not known.
    """
    listed = [places] if isinstance(places, str | PathLike) else list(places)
    evidence = discover(
        [place if isinstance(place, Path) else str(place) for place in listed],
        include=frozenset(include),
        temp_dir=None if temp_dir is None else str(temp_dir),
        filesystem_options=filesystem_options,
    )
    return OffsetsTopic(evidence, ReadOptions(verify=verify, cap_bytes=cap_bytes, progress=progress), [str(place) for place in listed])
