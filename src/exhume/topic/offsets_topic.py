"""`OffsetsTopic`: a method for each question that these logs can answer."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

import pyarrow as pa

from exhume.analysis.completeness import grade_groups
from exhume.analysis.explanation.commands import moment_arguments
from exhume.analysis.forecast import Expiry
from exhume.analysis.growth import Growth, GrowthBy
from exhume.analysis.inspection import Inspection, inspect
from exhume.analysis.memberships import Membership
from exhume.analysis.reset_plan import ResetPlan, TakenBack
from exhume.analysis.transactions import DEFAULT_MAX_TIMEOUT_MS, Transactions, transactions_of
from exhume.codecs.log_directory import Evidence
from exhume.codecs.record_filter import RecordConditions, RecordFilter
from exhume.codecs.segment_reader import ReadOptions
from exhume.codecs.uris import PathOrUri
from exhume.errors import RequestError
from exhume.findings import Findings
from exhume.gc_control import infrequent_gc
from exhume.replay.broker_log import Stop
from exhume.replay.load_request import LoadKeywords, LoadRequest
from exhume.replay.moment import Clock, refuse_lone_clock
from exhume.replay.releases import profile_for
from exhume.replay.state import CoordinatorState
from exhume.topic import diagnosis, explaining, history, reset_plans, states, tables
from exhume.topic import groups as groups_over_time
from exhume.topic.logs import AtOffset, TopicLogs
from exhume.topic.retention import now_or_given_ms, retention_of
from exhume.topic.states import GradedState

if TYPE_CHECKING:
    from exhume.analysis.assignment.verdicts import AssignmentTables
    from exhume.analysis.detectors.inputs import Inputs


class OffsetsTopic:
    """An offsets topic: some or all of its partitions, from one broker or several.

    Tables come back as `pyarrow.Table` or, where they can be large, as `pyarrow.RecordBatchReader`s, which read while they are consumed.
    `findings` has what was wrong with the logs, or worth a look; it grows while readers are consumed. Close the topic, or use it in a
    `with` statement, to release its files.
    """

    def __init__(self, evidence: Evidence, options: ReadOptions, places: Sequence[str] = ()) -> None:
        self.findings = Findings(evidence.findings)
        self._logs = TopicLogs(evidence, options, self.findings)
        self._places = tuple(places)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Release every file."""
        self._logs.evidence.close()

    # What the files hold

    def segments(self) -> pa.Table:
        """One row per segment file, leftovers among them, of `schemas.SEGMENTS`. Reads every segment that is part of the answer."""
        return self.inspect().segments

    def inspect(self) -> Inspection:
        """What is here, what it holds and what it lacks. Adds its findings to `findings`."""
        inspection = inspect(self._logs.evidence, self._logs.options)
        self.findings.extend(inspection.findings)
        return inspection

    def batches(self) -> pa.RecordBatchReader:
        """One row per batch, of `schemas.BATCHES`, in the order of the files."""
        return self._logs.batches()

    def records(self, **conditions: Unpack[RecordConditions]) -> pa.RecordBatchReader:
        """One row per record, of `schemas.RECORDS`: those that meet every condition, both ends of a range included.

        `conditions` are the fields of `RecordFilter`: `groups`, `topics`, `partitions`, `types`, `offsets_partitions`, `from_offset`,
        `to_offset`, `from_time_ms`, `to_time_ms`. Those on group, topic or partition leave out records that have none, end-transaction
        markers among them. `types` are names or numbers of record types, or `end_txn_marker`.
        """
        return self._logs.records(RecordFilter(**conditions))

    def dump(self, wanted: RecordFilter | None = None, *, raw: bool = False) -> pa.RecordBatchReader:
        """Every record decoded to the last field, one row each, of `decoded_tables.DUMP`; with `raw`, key and value bytes beside it."""
        return tables.dump(self._logs, wanted or RecordFilter(), raw=raw)

    def annotate(self, wanted: RecordFilter | None = None) -> pa.RecordBatchReader:
        """A byte-by-byte reading of these records: every field with its bytes, one row each, of `annotation.ANNOTATION`."""
        return tables.annotate(self._logs, wanted or RecordFilter())

    def decoded(self, name: str, *, groups: Collection[str] | None = None) -> pa.RecordBatchReader:
        """The typed table of one record type: `schemas.decoded()[name]`, or `schemas.END_TXN_MARKERS`.

        Raises:
            RequestError: no record type has this name; lists those there are.
        """
        return tables.decoded(self._logs, name, RecordFilter(groups=groups))

    def offset_commits(self, *, groups: Collection[str] | None = None) -> pa.RecordBatchReader:
        """Offset commits and their tombstones (record types 0 and 1)."""
        return self.decoded("offset_commit", groups=groups)

    def group_metadata(self, *, groups: Collection[str] | None = None) -> pa.RecordBatchReader:
        """Classic group records and their tombstones (record type 2)."""
        return self.decoded("group_metadata", groups=groups)

    def end_txn_markers(self) -> pa.RecordBatchReader:
        """End-transaction markers."""
        return self.decoded("end_txn_markers")

    def growth(self, by: GrowthBy = "group", *, now_ms: int | None = None) -> Growth:
        """What fills the topic by group, topic, record type or hour, and what compaction would free now, in each partition.

        `now_ms` (default: this moment) is what delete horizons of tombstones are compared with.
        """
        return diagnosis.growth(self._logs, by, now_or_given_ms(now_ms))

    def transactions(self, *, max_timeout_ms: int = DEFAULT_MAX_TIMEOUT_MS, with_finished: bool = False) -> Transactions:
        """Open transactions, and finished ones where they are wanted, with what they hold up; the last stable offset of each partition.

        `max_timeout_ms` is the brokers' `transaction.max.timeout.ms`: a transaction that is idle for longer is late.
        """
        read = [directory for directory in self._logs.evidence.partitions if directory.read_segments]
        return transactions_of(self.records(), read, max_timeout_ms=max_timeout_ms, with_finished=with_finished)

    # What a coordinator holds after loading them

    def state(
        self,
        *,
        at_offset: AtOffset | None = None,
        at_time_ms: int | None = None,
        clock: Clock | None = None,
        **options: Unpack[LoadKeywords],
    ) -> CoordinatorState:
        """What a coordinator holds after loading these logs.

        `options` are the fields of `LoadRequest`: `release`, `mode`, `stop`, `view`, `groups`, `topics_file`, `inputs`. Findings of the
        load are added to `findings`, and those of a look at every checksum: a broker loads damage unseen, the reader should know.

        `at_offset` is the last record offset that counts, by offsets partition, or bare where there is one partition only; partitions
        without one are taken to their end. `at_time_ms` instead of it is a time on `clock` (default: append). `replay.moment` says what
        that means, `loads` what came of it, and `completeness` how much of the past compaction has left.

        Raises:
            RequestError: no such release, or a moment that this log cannot have.
        """
        return states.load(self._logs, LoadRequest(**options), self._logs.moment(at_offset, at_time_ms, clock))

    def graded_state(
        self,
        *,
        at_offset: AtOffset | None = None,
        at_time_ms: int | None = None,
        clock: Clock | None = None,
        grade_end: bool = False,
        **options: Unpack[LoadKeywords],
    ) -> GradedState:
        """The same, with `completeness` for a moment (with `grade_end` for the end, too), as tables by name; `findings` is one of them.

        Raises:
            RequestError: as `state`; or one of `groups` is not there, and cannot have been: lists what is near by.
        """
        at = self._logs.moment(at_offset, at_time_ms, clock)
        return states.load_graded(self._logs, LoadRequest(**options), at, grade_end=grade_end)

    def completeness(self, state: CoordinatorState) -> pa.Table:
        """How much the log still knows of the moment of this state, which was loaded from it: a grade for each group, of
        `completeness.COMPLETENESS`.
        """
        return grade_groups(self._logs.reader(), state)

    def diff(
        self,
        *,
        from_offset: AtOffset | None = None,
        from_time_ms: int | None = None,
        to_offset: AtOffset | None = None,
        to_time_ms: int | None = None,
        clock: Clock | None = None,
        **options: Unpack[LoadKeywords],
    ) -> pa.Table:
        """What differs between two moments of these logs, as `diff.DIFF`; the later moment is the end where it is left out.

        Moments and `options` are as for `state`.

        Raises:
            RequestError: no earlier moment, one that this log cannot have or that comes after the later one, or a group of neither moment.
        """
        earlier = self._logs.moment(from_offset, from_time_ms, None if from_time_ms is None else clock)
        later = self._logs.moment(to_offset, to_time_ms, None if to_time_ms is None else clock)
        refuse_lone_clock(clock, from_time_ms, to_time_ms)
        return states.diff(self._logs, earlier, later, LoadRequest(**options))

    def diff_with(self, other: OffsetsTopic, **options: Unpack[LoadKeywords]) -> pa.Table:
        """What another copy has at its end that these logs have not, and the other way round, as `diff.DIFF`; gets the findings of both.

        Raises:
            RequestError: no such release, or a group that neither of the two has.
        """
        return states.diff_with(self._logs, other._logs, LoadRequest(**options))

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
        return states.expiry(self._logs, retention_of(profile_for(release), retention_ms), now_or_given_ms(now_ms), groups)

    def load_check(self, releases: Collection[str] | None = None, *, stop: Stop | None = None) -> pa.Table:
        """What each of these releases (default: the newest of every span) would make of these logs, as `load_check.LOAD_CHECK`."""
        return states.load_check(self._logs, releases, stop)

    # Groups over time

    def history(self, group: str, *, topic: str | None = None, partition: int | None = None, release: str | None = None) -> pa.Table:
        """Every record of a group in the order of the log, or every commit of one of its keys, as `history.HISTORY`.

        `release` decides which records count as transactional and what is left at the end.

        Raises:
            RequestError: no record of this group, or of this key; lists what is near by.
        """
        return history.history(self._logs, group, (topic, partition), self._logs.profile(release))

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
        retention = retention_of(self._logs.profile(release), retention_ms, release)
        return history.why(self._logs, group, (topic, partition), retention, now_or_given_ms(now_ms))

    def memberships(self, groups: Collection[str] | None = None) -> Iterator[Membership]:
        """The steps in the lives of these groups (default: all), in the order of the log, one at a time.

        Topics that records name by id have their names where these logs know them anywhere, commits included.
        """
        return groups_over_time.memberships(self._logs, groups)

    def rebalances(self, groups: Collection[str] | None = None) -> pa.Table:
        """The generations and epochs of these groups (default: all): when, why, who came and went, what moved, as `rebalances.REBALANCES`.

        Storms are added to `findings`.

        Raises:
            RequestError: no group record of one of these groups; lists what is near by.
        """
        return groups_over_time.rebalances(self._logs, groups)

    def owners(
        self,
        *,
        groups: Collection[str] | None = None,
        topic: str | None = None,
        partition: int | None = None,
        at_offset: AtOffset | None = None,
        at_time_ms: int | None = None,
    ) -> pa.Table:
        """Who owned which partition when, as `ownership.OWNERS`; with a moment only what held then.

        `at_offset` is the last record offset that counts, by offsets partition or bare; `at_time_ms` a time of appends. `findings` gets
        what makes the moment doubtful, and that it comes too early for an answer.

        Raises:
            RequestError: no group record of one of these groups, or no member ever owned a partition of this topic, which lists what is
                near by; or a moment that this log cannot have.
        """
        return groups_over_time.owners(self._logs, groups, topic, partition, self._logs.moment(at_offset, at_time_ms))

    def assignments(
        self,
        *,
        groups: Collection[str] | None = None,
        at_offset: AtOffset | None = None,
        at_time_ms: int | None = None,
        expected: str = "auto",
        release: str | None = None,
        topics_file: PathOrUri | None = None,
        every: bool = False,
    ) -> AssignmentTables:
        """Who was assigned what, who should have been, and which assignor explains it, for these groups (default: all with a member).

        `expected` is the name of an assignor, or `auto` for every one; `release` that of the Java client that leads a classic group, or of
        the coordinator of another. `topics_file` says how many partitions topics have, and their racks. `every` judges every assignment
        that the log holds, not only the last one. Moments are as for `state`, of the append clock.

        `findings` gets what makes the moment doubtful, and that it comes too early for an answer.

        Raises:
            RequestError: no such assignor, release or group, or a moment that this log cannot have.
        """
        at = self._logs.moment(at_offset, at_time_ms)
        return groups_over_time.assignments(
            self._logs, groups, at, expected=expected, release=release, topics_file=topics_file, every=every
        )

    # What an investigator asks

    @infrequent_gc()
    def diagnose(
        self,
        inputs: Inputs | None = None,
        *,
        codes: Collection[str] | None = None,
        groups: Collection[str] | None = None,
        topics_file: PathOrUri | None = None,
    ) -> Findings:
        """What the detectors of these codes (default: all) find in these logs, the worst first.

        `inputs` are what is known besides the logs. A detector that cannot decide says so, with confidence `undecidable`: no finding means
        that the detector looked and found nothing. What is damaged is in `findings` of this topic.

        Raises:
            RequestError: no such code, or no record of one of these groups, which lists what is near by.
        """
        return diagnosis.diagnose(self._logs, inputs, codes, groups, topics_file)

    def explain(
        self,
        group: str,
        *,
        at_offset: AtOffset | None = None,
        at_time_ms: int | None = None,
        clock: Clock | None = None,
        retention_ms: int | None = None,
        release: str | None = None,
        topics_file: PathOrUri | None = None,
    ) -> pa.Table:
        """A group in plain sentences, as `explanation.page.EXPLANATION`: what it is, its state, members, rebalances and commits, findings,
        what is missing, and what to look at next; each with the records that it rests on and how sure it is.

        The moment is that of `state`; default: the end. `retention_ms` is as for `expiry`.

        Raises:
            RequestError: no such release or moment; no record of this group, which lists what is near by.
        """
        retention = retention_of(self._logs.profile(release), retention_ms, release)
        names, at = self._logs.topic_names(topics_file), self._logs.moment(at_offset, at_time_ms, clock)
        arguments = moment_arguments(at_offset, at_time_ms, clock)
        asked = explaining.ExplanationRequest(group, at, arguments, retention)
        return explaining.explain(self._logs, asked, names, self._places or ("PATH",))

    def reset_plan(
        self,
        groups: Sequence[str],
        *,
        at_offset: AtOffset | None = None,
        at_time_ms: int | None = None,
        clock: Clock | None = None,
        taken_back: TakenBack | None = None,
        include_pending: bool = False,
        now_ms: int | None = None,
        release: str | None = None,
    ) -> ResetPlan:
        """The plan that takes these groups back to where they were: at a moment, before a commit set their offsets back (`before_rewind`),
        or before these were removed (`lost`), also where they began anew since. Its text is what
        `kafka-consumer-groups.sh --reset-offsets --from-file` takes.

        `now_ms` is the commit timestamp of the plan's records (default: this moment). `reset_plan.plan_reset` says the rest.

        Raises:
            RequestError: no group, or one that the log does not know; no moment, or more than one way to name it; no such release.
        """
        if not groups or [at_offset, at_time_ms, taken_back].count(None) != 2:
            raise RequestError("a plan takes groups back to one moment", remedy="Name groups, and a time, an offset, a rewind or a loss")
        profile, to = self._logs.profile(release), self._logs.moment(at_offset, at_time_ms, clock) or taken_back
        assert to is not None
        return reset_plans.plan(self._logs, groups, to, profile, include_pending=include_pending, now_ms=now_or_given_ms(now_ms))
