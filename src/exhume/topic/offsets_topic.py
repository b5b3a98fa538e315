"""`OffsetsTopic`: one method for each answer from these logs.

Each method imports the modules of its answer: a command starts without those of the others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

import pyarrow as pa

from exhume.codecs.log_directory import Evidence
from exhume.codecs.record_filter import RecordFilter, RecordKeywords
from exhume.codecs.segment_reader import ReadOptions
from exhume.codecs.uris import PathOrUri
from exhume.durations import DEFAULT_MAX_TIMEOUT_MS, Duration, duration_ms
from exhume.errors import RequestError
from exhume.escape import printable
from exhume.findings import Findings
from exhume.gc_control import infrequent_gc
from exhume.moments import Clock, Time
from exhume.notebook import html_table
from exhume.replay.broker_log import Stop
from exhume.replay.load_request import LoadKeywords, LoadRequest
from exhume.replay.moment import refuse_lone_clock
from exhume.replay.releases import profile_for
from exhume.replay.state import CoordinatorState
from exhume.topic.logs import AtOffset, TopicLogs
from exhume.topic.retention import now_or_given_ms, retention_of

if TYPE_CHECKING:
    from exhume.analysis.assignment.verdicts import AssignmentTables
    from exhume.analysis.detectors.inputs import Inputs
    from exhume.analysis.forecast import Expiry
    from exhume.analysis.growth import Growth, GrowthBy
    from exhume.analysis.inspection import Inspection
    from exhume.analysis.lag import EndOffsets
    from exhume.analysis.memberships import Membership
    from exhume.analysis.reset_plan import ResetPlan, TakenBack
    from exhume.analysis.transactions import Transactions
    from exhume.topic.sql import SqlDatabase
    from exhume.topic.sql.database import SqlOptions
    from exhume.topic.states import GradedState


class OffsetsTopic:
    """An offsets topic: some or all of its partitions, from one broker or several.

    A time is a `datetime` (UTC without a zone), text such as `2026-11-20T03:00`, or milliseconds since the epoch; a length of time is a
    `timedelta`, text such as `7d`, or milliseconds.

    Methods return `pyarrow.Table` or, for tables that can be large, `pyarrow.RecordBatchReader`, which reads while it is consumed.
    `findings` has the problems of the logs so far; it grows while readers are consumed. Close the topic, or use it in a
    `with` statement, to release its files.
    """

    def __init__(self, evidence: Evidence, options: ReadOptions, places: Sequence[str] = (), *, resources: ExitStack | None = None) -> None:
        self.findings = Findings(evidence.findings)
        self._logs = TopicLogs(evidence, options, self.findings)
        self._places = tuple(places)
        #: Closed with the topic, after its files.
        self._resources = resources or ExitStack()

    def __repr__(self) -> str:
        partitions = self._logs.evidence.partitions
        size_bytes = sum(segment.size_bytes for each in partitions for segment in each.read_segments)
        places = ", ".join(map(printable, self._places))
        return f"<OffsetsTopic {places}: {len(partitions)} partition directories, {size_bytes:,} bytes>"

    def _repr_html_(self) -> str:
        rows = [
            (each.replica, each.offsets_partition, len(each.read_segments), sum(segment.size_bytes for segment in each.read_segments))
            for each in self._logs.evidence.partitions
        ]
        return html_table(repr(self)[1:-1], ("replica", "offsets_partition", "segments", "size_bytes"), rows)

    def show_places_as(self, places: Sequence[str]) -> None:
        """Name these places in the commands of remedies, in the place of those that were opened."""
        self._places = self._logs.evidence.paths = tuple(places)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Release every file, and remove the temporary directory of a capture."""
        with self._resources:
            self._logs.evidence.close()

    # What the files hold

    def segments(self) -> pa.Table:
        """One row per segment file, also for leftovers, of `schemas.SEGMENTS`. Reads every segment of the log."""
        return self.inspect().segments

    def inspect(self) -> Inspection:
        """Return the content of the logs, and what they lack. Adds its findings to `findings`."""
        from exhume.analysis.inspection import inspect

        inspection = inspect(self._logs.evidence, self._logs.options)
        self.findings.extend(inspection.findings)
        return inspection

    def files(self) -> pa.Table:
        """One row per file of the partition directories, with its SHA-256, of `evidence_files.EVIDENCE_FILES`. Reads every byte."""
        from exhume.analysis.evidence_files import evidence_files

        return evidence_files(self._logs.evidence.partitions, self._logs.options.progress)

    def batches(self) -> pa.RecordBatchReader:
        """One row per batch, of `schemas.BATCHES`, in the order of the files."""
        return self._logs.batches()

    def records(self, **conditions: Unpack[RecordKeywords]) -> pa.RecordBatchReader:
        """One row per record, of `schemas.RECORDS`: those that meet every condition, both ends of a range included.

        `conditions` are the fields of `RecordFilter`: `groups`, `topics`, `partitions`, `types`, `offsets_partitions`, `from_offset`,
        `to_offset`, `from_time_ms`, `to_time_ms`. Those on group, topic or partition leave out records that have none, including
        end-transaction markers. `types` are names or numbers of record types, or `end_txn_marker`.
        """
        return self._logs.records(RecordFilter.of(**conditions))

    def group_names(self) -> list[str]:
        """The names of all groups that have a record here, also of those that are gone, sorted. Reads the log."""
        return sorted(self._logs.group_names())

    def dump(self, wanted: RecordFilter | None = None, *, raw: bool = False, **conditions: Unpack[RecordKeywords]) -> pa.RecordBatchReader:
        """Every record decoded to the last field, one row each, of `decoded_tables.DUMP`; with `raw`, key and value bytes beside it.

        The records are those of `wanted`, or of the same conditions as for `records`.
        """
        return self._logs.dump(wanted or RecordFilter.of(**conditions), raw=raw)

    def annotate(self, wanted: RecordFilter | None = None) -> pa.RecordBatchReader:
        """A byte-by-byte reading of these records: every field with its bytes, one row each, of `annotation.ANNOTATION`."""
        return self._logs.annotate(wanted or RecordFilter())

    def decoded(self, name: str, *, groups: Collection[str] | None = None) -> pa.RecordBatchReader:
        """The typed table of one record type: `schemas.decoded()[name]`, or `schemas.END_TXN_MARKERS`.

        Raises:
            RequestError: no record type has this name; lists all names.
        """
        return self._logs.decoded(name, RecordFilter(groups=groups))

    def offset_commits(self, *, groups: Collection[str] | None = None) -> pa.RecordBatchReader:
        """Offset commits and their tombstones (record types 0 and 1)."""
        return self.decoded("offset_commit", groups=groups)

    def group_metadata(self, *, groups: Collection[str] | None = None) -> pa.RecordBatchReader:
        """Classic group records and their tombstones (record type 2)."""
        return self.decoded("group_metadata", groups=groups)

    def end_txn_markers(self) -> pa.RecordBatchReader:
        """End-transaction markers."""
        return self.decoded("end_txn_markers")

    def growth(self, by: GrowthBy = "group", *, now_ms: Time | None = None) -> Growth:
        """Return the bytes of each partition by group, topic, record type or hour, and the bytes that compaction would free now.

        `now_ms` (default: the present) is compared with delete horizons of tombstones.
        """
        from exhume.topic import diagnosis

        return diagnosis.growth(self._logs, by, now_or_given_ms(now_ms))

    def transactions(self, *, max_timeout_ms: Duration = DEFAULT_MAX_TIMEOUT_MS, with_finished: bool = False) -> Transactions:
        """Open transactions, and on request finished ones, with the offsets that they block, and the last stable offset of each partition.

        `max_timeout_ms` is the brokers' `transaction.max.timeout.ms`: a transaction that is idle for longer is late.
        """
        from exhume.analysis.transactions import transactions_of

        read = [directory for directory in self._logs.evidence.partitions if directory.read_segments]
        return transactions_of(self.records(), read, max_timeout_ms=duration_ms(max_timeout_ms), with_finished=with_finished)

    # The state of a coordinator after loading the files

    def state(
        self,
        *,
        at_offset: AtOffset | None = None,
        at_time_ms: Time | None = None,
        clock: Clock | None = None,
        **options: Unpack[LoadKeywords],
    ) -> CoordinatorState:
        """Return the state of a coordinator after loading these logs.

        `options` are the fields of `LoadRequest`: `release`, `mode`, `stop`, `view`, `groups`, `topics_file`, `inputs`. Findings of the
        load are added to `findings`, and those of all checksums: a broker does not notice this damage.

        `at_offset` is the last record offset that counts, by offsets partition, or one number for a log with one partition; partitions
        without one are loaded to their end. `at_time_ms` is a time on `clock` (default: append) instead. See `replay.moment` for the
        meaning, `loads` for the result, and `completeness` for the records that compaction has left.

        Raises:
            RequestError: no such release, or a moment that this log cannot have.
        """
        from exhume.topic import states

        return states.load(self._logs, LoadRequest(**options), self._logs.moment(at_offset, at_time_ms, clock))

    def graded_state(
        self,
        *,
        at_offset: AtOffset | None = None,
        at_time_ms: Time | None = None,
        clock: Clock | None = None,
        grade_end: bool = False,
        end_offsets: EndOffsets | PathOrUri | None = None,
        **options: Unpack[LoadKeywords],
    ) -> GradedState:
        """Return the tables of `state` by name, with `completeness` for a moment (with `grade_end` also for the end) and `findings`.

        With `end_offsets`, as for `lag`, also its table `lag`.

        Raises:
            RequestError: as `state`; or one of `groups` does not exist, and cannot have existed: lists similar names.
        """
        from exhume.topic import states

        at = self._logs.moment(at_offset, at_time_ms, clock)
        if end_offsets is not None:
            return states.with_lag(self._logs, LoadRequest(**options), at, end_offsets, grade_end=grade_end)
        return states.load_graded(self._logs, LoadRequest(**options), at, grade_end=grade_end)

    def lag(
        self,
        end_offsets: EndOffsets | PathOrUri | None = None,
        *,
        at_offset: AtOffset | None = None,
        at_time_ms: Time | None = None,
        clock: Clock | None = None,
        **options: Unpack[LoadKeywords],
    ) -> pa.Table:
        """Return the lag of committed offsets and owned partitions with their consumers, as `lag.LAG`.

        `end_offsets` are the end offsets of data topics by (topic, partition), or a file that `kafka-get-offsets.sh` printed; default: at
        the end those of a capture, else none. The log itself has none: where one is not known, it is null, and so is the lag. End offsets
        that are newer than the moment make the lag larger than it was then. Moments and `options` are as for `state`.

        Raises:
            RequestError: as `graded_state`; or the file cannot be read.
        """
        from exhume.topic import states

        return states.with_lag(self._logs, LoadRequest(**options), self._logs.moment(at_offset, at_time_ms, clock), end_offsets)["lag"]

    def completeness(self, state: CoordinatorState) -> pa.Table:
        """Grade for each group how much of the state at its moment the log still shows, as `completeness.COMPLETENESS`."""
        from exhume.analysis.grading import grade_groups

        return grade_groups(self._logs.reader(), state)

    def diff(
        self,
        *,
        from_offset: AtOffset | None = None,
        from_time_ms: Time | None = None,
        to_offset: AtOffset | None = None,
        to_time_ms: Time | None = None,
        clock: Clock | None = None,
        **options: Unpack[LoadKeywords],
    ) -> pa.Table:
        """Return the differences between two moments of these logs, as `diff.DIFF`; the default later moment is the end.

        Moments and `options` are as for `state`.

        Raises:
            RequestError: no earlier moment, one that this log cannot have or that comes after the later one, or a group of neither moment.
        """
        from exhume.topic import states

        earlier = self._logs.moment(from_offset, from_time_ms, None if from_time_ms is None else clock)
        later = self._logs.moment(to_offset, to_time_ms, None if to_time_ms is None else clock)
        refuse_lone_clock(clock, from_time_ms, to_time_ms)
        return states.diff(self._logs, earlier, later, LoadRequest(**options))

    def diff_with(self, other: OffsetsTopic, **options: Unpack[LoadKeywords]) -> pa.Table:
        """Return the differences between the ends of these logs and of another copy, as `diff.DIFF`. Adds the findings of both.

        Raises:
            RequestError: no such release, or a group that neither copy has.
        """
        from exhume.topic import states

        return states.diff_with(self._logs, other._logs, LoadRequest(**options))

    def expiry(
        self,
        *,
        now_ms: Time | None = None,
        retention_ms: Duration | None = None,
        release: str | None = None,
        groups: Collection[str] | None = None,
    ) -> Expiry:
        """Return the offsets and groups that the expiry task of this release removes, and when, if no record follows the end of the logs.

        `now_ms` is the time of the next run (default: the present), `retention_ms` is `offsets.retention.minutes` (default: that of the
        release). The rules apply to everything in memory after a strict load.

        Raises:
            RequestError: no such release; a retention that is not a number of minutes; no such group.
        """
        from exhume.topic import states

        return states.expiry(self._logs, retention_of(profile_for(release), retention_ms), now_or_given_ms(now_ms), groups)

    def load_check(self, releases: Collection[str] | None = None, *, stop: Stop | None = None) -> pa.Table:
        """Return the result of a load by each of these releases (default: the newest of each span), as `load_check.LOAD_CHECK`."""
        from exhume.topic import states

        return states.load_check(self._logs, releases, stop)

    # Groups over time

    def history(self, group: str, *, topic: str | None = None, partition: int | None = None, release: str | None = None) -> pa.Table:
        """Every record of a group in the order of the log, or every commit of one of its keys, as `history.HISTORY`.

        `release` decides which records count as transactional, and which remain at the end.

        Raises:
            RequestError: no record of this group, or of this key; lists similar names.
        """
        from exhume.topic import one_group

        return one_group.history(self._logs, group, (topic, partition), self._logs.profile(release))

    def why(
        self,
        group: str,
        *,
        topic: str | None = None,
        partition: int | None = None,
        now_ms: Time | None = None,
        retention_ms: Duration | None = None,
        release: str | None = None,
    ) -> pa.Table:
        """Explain why this group and its offsets exist or not, as `why.WHY`.

        The answer covers the group and each offset in the log; with a topic only its offsets, with a partition only that one. `release`
        and `retention_ms` are those of the broker that wrote the log, if known: they decide which offsets it expired. Expiry is judged at
        `now_ms` (default: the end of the log).

        Raises:
            RequestError: no such release; a retention that is not a number of minutes; a partition without its topic.
        """
        from exhume.topic import one_group

        retention = retention_of(self._logs.profile(release), retention_ms, release)
        return one_group.why(self._logs, group, (topic, partition), retention, None if now_ms is None else now_or_given_ms(now_ms))

    def memberships(self, groups: Collection[str] | None = None) -> Iterator[Membership]:
        """Yield the steps of these groups (default: all), in the order of the log.

        Topics that records name by id get their names if any record of these logs has them, also commits.
        """
        from exhume.topic import groups as groups_over_time

        return groups_over_time.memberships(self._logs, groups)

    def rebalances(self, groups: Collection[str] | None = None) -> pa.Table:
        """The generations and epochs of these groups (default: all): time, reason, members that joined and left, moved partitions, as
        `rebalances.REBALANCES`.

        Storms are added to `findings`.

        Raises:
            RequestError: no group record of one of these groups; lists similar names.
        """
        from exhume.topic import groups as groups_over_time

        return groups_over_time.rebalances(self._logs, groups)

    def owners(
        self,
        *,
        groups: Collection[str] | None = None,
        topic: str | None = None,
        partition: int | None = None,
        at_offset: AtOffset | None = None,
        at_time_ms: Time | None = None,
    ) -> pa.Table:
        """Return the owner of each partition over time, as `ownership.OWNERS`; with a moment, only the owners at that moment.

        `at_offset` is the last record offset that counts, by offsets partition or one number; `at_time_ms` is a time of appends. `findings`
        shows if the moment is doubtful, or too early for an answer.

        Raises:
            RequestError: no group record of one of these groups, or no member ever owned a partition of this topic, which lists similar
                names; or a moment that this log cannot have.
        """
        from exhume.topic import groups as groups_over_time

        return groups_over_time.owners(self._logs, groups, topic, partition, self._logs.moment(at_offset, at_time_ms))

    def assignments(
        self,
        *,
        groups: Collection[str] | None = None,
        at_offset: AtOffset | None = None,
        at_time_ms: Time | None = None,
        expected: str = "auto",
        release: str | None = None,
        topics_file: PathOrUri | None = None,
        every: bool = False,
    ) -> AssignmentTables:
        """Compare the assignments of these groups (default: all with a member) with the results of assignors.

        `expected` is the name of an assignor, or `auto` for every one; `release` that of the Java client that leads a classic group, or of
        the coordinator of another. `topics_file` has the partition counts and racks of topics. `every` judges every assignment in
        the log, not only the last one. Moments are as for `state`, of the append clock.

        `findings` shows if the moment is doubtful, or too early for an answer.

        Raises:
            RequestError: no such assignor, release or group, or a moment that this log cannot have.
        """
        from exhume.topic import groups as groups_over_time

        at = self._logs.moment(at_offset, at_time_ms)
        return groups_over_time.assignments(
            self._logs, groups, at, expected=expected, release=release, topics_file=topics_file, every=every
        )

    # Investigation

    @infrequent_gc()
    def diagnose(
        self,
        inputs: Inputs | None = None,
        *,
        codes: Collection[str] | None = None,
        groups: Collection[str] | None = None,
        topics_file: PathOrUri | None = None,
    ) -> Findings:
        """Return the findings of the detectors of these codes (default: all) in these logs, the worst first.

        `inputs` are facts from outside the logs. A detector that cannot decide adds a finding with confidence `undecidable`: no finding
        means that the detector ran and found no problem. Damage is in `findings` of this topic.

        Several local logs of 64 MB or more together are read by up to four other processes, if this one may use several cores.

        Raises:
            RequestError: no such code, or no record of one of these groups, which lists similar names.
        """
        from exhume.topic import diagnosis

        return diagnosis.diagnose(self._logs, inputs, codes, groups, topics_file)

    def explain(
        self,
        group: str,
        *,
        at_offset: AtOffset | None = None,
        at_time_ms: Time | None = None,
        clock: Clock | None = None,
        retention_ms: Duration | None = None,
        release: str | None = None,
        topics_file: PathOrUri | None = None,
    ) -> pa.Table:
        """Explain a group in plain sentences, as `explanation.page.EXPLANATION`.

        The page has its identity, state, members, rebalances, commits, findings, missing records and next commands; each sentence has its
        records as evidence and its confidence.

        The moment is that of `state`; default: the end. `retention_ms` is as for `expiry`.

        Raises:
            RequestError: no such release or moment; no record of this group, which lists similar names.
        """
        from exhume.analysis.explanation.sentences import moment_arguments
        from exhume.topic import one_group

        retention = retention_of(self._logs.profile(release), retention_ms, release)
        names, at = self._logs.topic_names(topics_file), self._logs.moment(at_offset, at_time_ms, clock)
        arguments = moment_arguments(at_offset, at_time_ms, clock)
        request = one_group.ExplanationRequest(group, at, arguments, retention)
        return one_group.explain(self._logs, request, names, self._places or ("PATH",))

    def reset_plan(
        self,
        groups: Sequence[str],
        *,
        at_offset: AtOffset | None = None,
        at_time_ms: Time | None = None,
        clock: Clock | None = None,
        taken_back: TakenBack | None = None,
        include_pending: bool = False,
        now_ms: Time | None = None,
        release: str | None = None,
    ) -> ResetPlan:
        """Return a plan that resets these groups to earlier offsets.

        The target is a moment, or the offsets before a commit set them back (`before_rewind`), or before they were removed (`lost`), even
        if the group has committed again since. Its text is a file for `kafka-consumer-groups.sh --reset-offsets --from-file`.

        `now_ms` is the commit timestamp of the plan's records (default: the present). See also `reset_plan.plan_reset`.

        Raises:
            RequestError: no group, or one that the log does not know; no moment, or more than one way to name it; no such release.
        """
        from exhume.topic import reset_plans

        if not groups or [at_offset, at_time_ms, taken_back].count(None) != 2:
            raise RequestError(
                "a plan needs groups and exactly one target", remedy="Name groups, and a time, an offset, a rewind or a loss"
            )
        profile, to = self._logs.profile(release), self._logs.moment(at_offset, at_time_ms, clock) or taken_back
        assert to is not None
        return reset_plans.plan(self._logs, groups, to, profile, include_pending=include_pending, now_ms=now_or_given_ms(now_ms))

    # Any question

    def to_duckdb(self, **options: Unpack[SqlOptions]) -> SqlDatabase:
        """Return an embedded DuckDB whose views are all tables of docs/tables.md. Needs the extra `sql`.

        `options`: `release` of the state tables, `external_access` for files, network and extensions, `memory_limit`, `temp_dir`. Its
        `connection` is that of DuckDB. Close it before the topic.

        Raises:
            RequestError: DuckDB is not installed, or an option is wrong.
        """
        from exhume.topic.sql import SqlDatabase

        return SqlDatabase(self, self._logs, **options)

    def sql(self, statement: str, **options: Unpack[SqlOptions]) -> pa.Table:
        """Answer a question in SQL over all tables of docs/tables.md, as docs/sql.md shows. Options are those of `to_duckdb`.

        Raises:
            RequestError: DuckDB is not installed, or refuses the statement; has its words.
        """
        with self.to_duckdb(**options) as database:
            return database.query(statement).read_all()
