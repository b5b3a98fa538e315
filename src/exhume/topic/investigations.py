"""What an investigator asks: what is wrong, what it means, what to restore, what fills the topic.

What takes long to import is imported by the question that needs it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from exhume.analysis.coverage import coverage_of
from exhume.analysis.forecast import forecast, forecast_removals
from exhume.analysis.group_timeline import group_timeline
from exhume.analysis.growth import Growth, GrowthBy, growth_of
from exhume.analysis.history import group_history
from exhume.analysis.log_spans import log_spans
from exhume.analysis.positions import positions_before_rewinds, positions_lost, positions_of
from exhume.analysis.removals import neighbours_of
from exhume.analysis.reset_plan import ResetPlan, TakenBack, past_findings, plan_reset
from exhume.analysis.transactions import DEFAULT_MAX_TIMEOUT_MS, Transactions, transactions_of
from exhume.analysis.why import explain as answer_why
from exhume.arrow_rows import Origin
from exhume.codecs.record_chunks import record_chunks
from exhume.codecs.record_sizes import record_sizes
from exhume.errors import RequestError, near_by
from exhume.findings import Finding, Findings
from exhume.gc_control import infrequent_gc
from exhume.replay.local import load_partitions, load_state, state_of_loads
from exhume.replay.moment import Clock, moment, refuse_lone_clock
from exhume.replay.partition_load import LoadOptions
from exhume.replay.reading import LoadInputs
from exhume.replay.releases import profile_for
from exhume.replay.state import CoordinatorState
from exhume.replay.topic_names import TopicNames
from exhume.topic.groups import TopicGroups
from exhume.topic.states import MS_PER_MINUTE, OFFSET_COMMITS, now_or_given_ms, retention_of_ms
from exhume.topic.tables import Place

if TYPE_CHECKING:
    from exhume.analysis.detectors.inputs import Inputs


class TopicInvestigations(TopicGroups):
    """Answers that join all the others."""

    @infrequent_gc()
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
            RequestError: no such code, or no record of one of these groups, which lists what is near by.
        """
        from exhume.analysis.detectors import Inputs, LogFiles, condense, diagnose

        reader = self._reader()
        case = condense(record_chunks(reader), self._topic_names(topics_file), compiled=reader.is_worth_compiling)
        case.files = LogFiles(self._evidence, self._reader, self._fast_load, self.findings)
        inputs = inputs or Inputs()
        known = {group.group for group in case.groups()} | {line.group for line in inputs.live or ()}
        for group in sorted({*(groups or ())} - known):
            raise RequestError(f"no record of group {group!r} is here", remedy=near_by(group, known))
        return Findings(diagnose(case, inputs, codes=codes, groups=groups))

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
        from exhume.analysis.detectors.inputs import Inputs
        from exhume.analysis.explanation.commands import moment_arguments
        from exhume.analysis.explanation.evidence import Gathered, cuts, facts_of, history_until, noting
        from exhume.analysis.explanation.page import pages

        profile, inputs = profile_for(release), Inputs(retention_ms=retention_ms)
        retention_ms = retention_of_ms(retention_ms, profile)
        names, fast = self._topic_names(topics_file), self._fast_load()
        at = moment(self._evidence.offsets_partitions, at_offset=at_offset, at_time_ms=at_time_ms, clock=clock)
        self._note_unknown_releases(release)
        options = LoadOptions(profile, inputs=LoadInputs(retention_minutes=retention_ms // MS_PER_MINUTE), at=at, fast=fast)
        loads = load_partitions(self._evidence.log_directories, options, names)
        state = state_of_loads(loads, options, names)
        self._look_for_damage("strict", fast)
        self.findings.extend(state.findings)
        is_whole = at is None and not self.findings.has_damage and {load.outcome for load in loads} == {"loaded"}
        # A lenient load of such a log comes to the same.
        whole = state if is_whole else load_state(self._evidence.log_directories, replace(options, mode="lenient", at=None), names)
        batches = self.batches().read_all()
        spans = log_spans(batches.to_batches())
        records: list[pa.RecordBatch] = []
        history = group_history(noting(self._batches_about(group, fast), group, records), whole, names, group, lambda: spans)
        origins = list(dict.fromkeys((row["replica"], row["offsets_partition"]) for row in history.to_pylist()))
        is_read_through = at is None or {load.outcome for load in loads} == {"loaded"}
        reach = state if is_read_through else load_state(self._evidence.log_directories, replace(options, mode="lenient"), names)
        ends = cuts(reach)
        history = history_until(history, ends)
        known_ends = {origin: end for origin, end in ends.items() if origin in origins and end is not None and end >= 0}
        end_times_ms = {origin: self._times_of(end, origin[1]).get(str(origin[0])) for origin, end in known_ends.items()}
        times_ms = (*end_times_ms.values(), *(span.last_timestamp_ms for span in spans.values()))
        newest_ms = max((time_ms for time_ms in times_ms if time_ms is not None), default=0)
        expected = forecast([load.with_state_in_memory() for load in loads], profile, newest_ms, retention_ms, groups=[group])
        coverage = coverage_of(batches)
        why = answer_why(
            group,
            history,
            state,
            profile,
            now=expected,
            before=forecast_removals(self._evidence.log_directories, history, profile, options.inputs, retention_ms),
            neighbours=neighbours_of(self.records(types=OFFSET_COMMITS), group, history),
            coverage=coverage,
        )
        gathered = Gathered(
            group=group,
            state=state,
            history=history,
            ends=ends,
            memberships=[*group_timeline(records, names)],
            why=why,
            forecast=expected,
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
        """The plan that takes these groups back to where they were: at a moment, before a commit set their offsets back (`before_rewind`),
        or before these were removed (`lost`), also where they began anew since. Its text is what
        `kafka-consumer-groups.sh --reset-offsets --from-file` takes.

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
            now_ms=now_or_given_ms(now_ms),
            cuts=cuts,
            include_pending=include_pending,
            never_back=taken_back is not None,
        )
        self.findings.extend(plan.findings)
        return plan

    def growth(self, by: GrowthBy = "group", *, now_ms: int | None = None) -> Growth:
        """What fills the topic by group, topic, record type or hour, and what compaction would free now, in each partition.

        `now_ms` (default: this moment) is what delete horizons of tombstones are compared with.
        """
        fast = self._fast_load()
        state = load_state(self._evidence.log_directories, LoadOptions(profile_for(None), "lenient", fast=fast), TopicNames())
        first: dict[Origin, int] = {}
        for row in state.open_transactions.to_pylist():
            origin = (row["replica"], row["offsets_partition"])
            first[origin] = min(row["first_record_offset"], first.get(origin, row["first_record_offset"]))
        return growth_of(record_sizes(self._reader()), self._evidence.partitions, first, by=by, now_ms=now_or_given_ms(now_ms))

    def transactions(self, *, max_timeout_ms: int = DEFAULT_MAX_TIMEOUT_MS, with_finished: bool = False) -> Transactions:
        """Open transactions, and finished ones where they are wanted, with what they hold up; the last stable offset of each partition.

        `max_timeout_ms` is the brokers' `transaction.max.timeout.ms`: what is idle for longer is late.
        """
        read = [directory for directory in self._evidence.partitions if directory.read_segments]
        return transactions_of(self.records(), read, max_timeout_ms=max_timeout_ms, with_finished=with_finished)

    def _diagnosed(self, group: str, names: TopicNames, inputs: Inputs) -> list[Finding]:
        """What those detectors find that look at one group alone."""
        from exhume.analysis.detectors import condense
        from exhume.analysis.detectors.catalogue import DETECTORS
        from exhume.analysis.detectors.diagnose import diagnose_group

        reader = self._reader()
        case = condense(record_chunks(reader), names, commits_of=[group], compiled=reader.is_worth_compiling)
        return [finding for each in case.groups() if each.group == group for finding in diagnose_group(each, inputs, DETECTORS)]

    def _cuts(self, past: CoordinatorState) -> dict[Origin, tuple[int | None, int | None]]:
        """The last record that counts in this state, and its time, by replica and offsets partition."""
        cuts: dict[Origin, tuple[int | None, int | None]] = {}
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


def _named_in(state: CoordinatorState) -> set[str]:
    return {name for table in (state.groups, state.offsets, state.pending_offsets) for name in table["group"].to_pylist()}
