"""One group: its history, the reasons why its offsets exist or not, and its page in plain sentences.

Functions import the modules that take long to import.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from exhume.analysis.completeness import missing_of_loads
from exhume.analysis.forecast import forecast
from exhume.analysis.grading import Grading
from exhume.analysis.history import HISTORY, HistoryReader
from exhume.analysis.log_extent import ExtentReaders, LogExtents
from exhume.analysis.memberships import Membership
from exhume.analysis.removals.causes import Judgement, RecordPlace
from exhume.analysis.why import explain as answer_why
from exhume.arrow_rows import Origin
from exhume.codecs.log_pass import RecordTimes
from exhume.errors import RequestError
from exhume.findings import Finding, Findings
from exhume.gc_control import infrequent_gc
from exhume.replay.local import state_of_loads
from exhume.replay.moment import Moment
from exhume.replay.partition_load import LoadOptions, PartitionLoad
from exhume.replay.profiles import BrokerProfile
from exhume.replay.reading import CompiledLoad
from exhume.replay.state import CoordinatorState
from exhume.replay.topic_names import TopicNames
from exhume.topic.logs import TopicLogs, selectable_groups
from exhume.topic.retention import Retention

if TYPE_CHECKING:
    from exhume.analysis.detectors import TopicCase

#: A topic and a partition of it; None: all.
Key = tuple[str | None, int | None]


def history(logs: TopicLogs, group: str, key: Key, profile: BrokerProfile) -> pa.Table:
    """Every record of a group in the order of the log, or every commit of this key, as `history.HISTORY`.

    Raises:
        RequestError: no record of this group, or of this key; lists similar names.
    """
    options = LoadOptions(profile, "lenient", groups=selectable_groups([group]))
    try:
        return _history(logs, group, key, options)
    except RequestError:
        # Only a load of all groups knows similar names.
        return _history(logs, group, key, replace(options, groups=None))


def _history(logs: TopicLogs, group: str, key: Key, options: LoadOptions) -> pa.Table:
    # A lenient load reads to the end: a damaged record does not make the records after it superseded.
    names, fast = logs.topic_names(), _noting(logs)
    state = logs.load(replace(options, fast=fast), names)
    reader = HistoryReader(state, names, group, only_commits=key != (None, None))
    reader.read_all(logs.batches_about(group, fast, key))
    answer = reader.table(logs.extents, topic=key[0], partition=key[1])
    starts: dict[Origin, int] = {(each.replica, each.offsets_partition): each.start_offset for each in logs.evidence.partitions}
    logs.findings.extend(missing_of_loads(state, answer, starts))
    return answer


def _noting(logs: TopicLogs) -> CompiledLoad:
    """The options of a load that notes the batches of its groups."""
    return replace(logs.fast_load(), relevant_batches={})


def why(logs: TopicLogs, group: str, key: Key, retention: Retention, now_ms: int | None) -> pa.Table:
    """Explain why this group and its offsets exist or not, as `why.WHY`; expiry is judged at `now_ms`, or else at the end of the log.

    Raises:
        RequestError: a partition without its topic.
    """
    if key[1] is not None and key[0] is None:
        raise RequestError(f"partition {key[1]} needs its topic", remedy="Name the topic too")
    profile, names = retention.profile, logs.topic_names()
    loads = _load(logs, group, retention, names, None)
    reader = loads.read_history()
    extents, diagnosis = ExtentReaders(), None
    if any(reader.tombstones):
        diagnosis = GroupDiagnosis(group, names, retention, of_all_groups=True)
    with infrequent_gc():
        logs.read(extents, *(() if diagnosis is None else (diagnosis.condenser,)))
    found = extents.extents(logs.evidence.partitions)
    now_ms = _newest_ms({}, found) if now_ms is None else now_ms
    try:
        records = reader.table(lambda: found)
    except RequestError:
        # "No record" is an answer too.
        records = HISTORY.empty_table()
    return answer_why(
        group,
        records,
        loads.state,
        profile,
        now=forecast(loads.in_memory(), profile, now_ms, retention.retention_ms, groups=[group]),
        judgements={} if diagnosis is None else diagnosis.judgements(found),
        extents=found,
        topic=key[0],
        partition=key[1],
    )


@dataclass(frozen=True, slots=True)
class ExplanationRequest:
    """A group, the moment and the rules to explain it by; `moment` are the arguments of a command that name the same moment."""

    group: str
    at: Moment | None
    moment: tuple[str, ...]
    retention: Retention


def explain(logs: TopicLogs, request: ExplanationRequest, names: TopicNames, places: Sequence[str]) -> pa.Table:
    """The page about a group, as `explanation.page.EXPLANATION`; its commands read `places`.

    Raises:
        RequestError: no record of this group; lists similar names.
    """
    from exhume.analysis.explanation.evidence import Gathered, cuts, facts_of, history_until, is_in
    from exhume.analysis.explanation.page import pages

    group, at, retention = request.group, request.at, request.retention
    loads = _load(logs, group, retention, names, at)
    steps: list[Membership] = []
    reader, ends = loads.read_history(steps.append), cuts(loads.up_to_moment())
    with_removals = any(is_in(record_offset, ends[origin]) for origin, record_offset in reader.tombstones)
    diagnosis = GroupDiagnosis(group, names, retention, of_all_groups=with_removals or at is None)
    extent_readers, grading = ExtentReaders(), None if at is None else Grading(loads.state)
    times = RecordTimes({origin: end for origin, end in ends.items() if end is not None and end >= 0})
    with infrequent_gc():
        logs.read(extent_readers, diagnosis.condenser, times, *(() if grading is None else (grading,)))
    extents = extent_readers.extents(logs.evidence.partitions)
    whole_history = loads.history_table(reader, extents)
    history = history_until(whole_history, ends)
    origins = list(dict.fromkeys((row["replica"], row["offsets_partition"]) for row in whole_history.to_pylist()))
    end_times_ms = {origin: time_ms for origin, time_ms in times.by_log().items() if origin in origins}
    newest_ms = _newest_ms(end_times_ms, extents)
    expected = forecast(loads.in_memory(), retention.profile, newest_ms, retention.retention_ms, groups=[group])
    judgements = diagnosis.judgements(extents)
    gathered = Gathered(
        group=group,
        state=loads.state,
        history=history,
        ends=ends,
        memberships=steps,
        why=answer_why(group, history, loads.state, retention.profile, now=expected, judgements=judgements, extents=extents),
        forecast=expected,
        completeness=None if grading is None else grading.table({origin: [group] for origin in origins}),
        extents=extents,
        end_times_ms=end_times_ms,
        findings=logs.findings,
        diagnosed=diagnosis.findings(extents) if at is not None else diagnosis.findings_of_all(logs, extents),
        profile=retention.profile,
        retention_ms=retention.retention_ms,
        release=retention.release,
        moment=request.moment,
    )
    return pages(facts_of(gathered, origins), places)


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A strict load up to a moment, and loads that go further where it stopped."""

    logs: TopicLogs
    group: str
    options: LoadOptions
    names: TopicNames
    loads: Sequence[PartitionLoad]
    state: CoordinatorState

    @property
    def _is_read_through(self) -> bool:
        return {load.outcome for load in self.loads} == {"loaded"}

    def in_memory(self) -> list[PartitionLoad]:
        """The loads with the states in memory."""
        return [load.with_state_in_memory() for load in self.loads]

    def up_to_moment(self) -> CoordinatorState:
        """The state at the moment, from a load that reached it."""
        if self.options.at is None or self._is_read_through:
            return self.state
        return self.logs.load(replace(self.options, mode="lenient", fast=self.logs.fast_load()), self.names)

    def read_history(self, on_step: Callable[[Membership], None] = lambda _: None) -> HistoryReader:
        """Read the batches of the group, up to the end of the logs."""
        state, fast = self.state, self.options.fast
        # A lenient load of logs without damage gives the same state.
        if self.options.at is not None or not self._is_read_through or self.logs.findings.has_damage:
            fast = _noting(self.logs)
            options = replace(self.options, mode="lenient", at=None, fast=fast, groups=selectable_groups([self.group]))
            state = self.logs.load(options, self.names)
        assert fast is not None
        reader = HistoryReader(state, self.names, self.group, on_step=on_step)
        reader.read_all(self.logs.batches_about(self.group, fast))
        return reader

    def history_table(self, reader: HistoryReader, extents: LogExtents) -> pa.Table:
        """The history that this reader has read.

        Raises:
            RequestError: no record of the group; lists similar names.
        """
        try:
            return reader.table(lambda: extents)
        except RequestError:
            # Only a load of all groups knows similar names.
            return _history(self.logs, self.group, (None, None), LoadOptions(self.options.profile, "lenient"))


def _load(logs: TopicLogs, group: str, retention: Retention, names: TopicNames, at: Moment | None) -> _Loaded:
    """Load the logs strictly for answers about this group. Adds the findings of the load and of all checksums to `findings`."""
    # A state at a moment is graded, which needs all of its groups.
    groups = selectable_groups([group]) if at is None else None
    options = LoadOptions(retention.profile, inputs=retention.inputs, at=at, fast=_noting(logs), groups=groups)
    loads = logs.load_partitions(options, names)
    state = state_of_loads(loads, options, names)
    logs.look_for_damage("strict", options.fast, options.stop)
    logs.findings.extend(state.findings)
    return _Loaded(logs, group, options, names, loads, state)


def _newest_ms(end_times_ms: Mapping[Origin, int | None], extents: LogExtents) -> int:
    times_ms = (*end_times_ms.values(), *(extent.last_timestamp_ms for extent in extents.values()))
    return max((time_ms for time_ms in times_ms if time_ms is not None), default=0)


class GroupDiagnosis:
    """The detectors for one group.

    `condenser` collects the logs. With `of_all_groups` it takes the commits of all groups: the offsets that other groups kept and lost
    show who removed those of this group. Without, it takes only those of this group.
    """

    def __init__(self, group: str, names: TopicNames, retention: Retention, *, of_all_groups: bool) -> None:
        from exhume.analysis.detectors import Inputs
        from exhume.analysis.detectors.condense import Condenser

        self._group = group
        self._inputs = Inputs(retention_ms=retention.given_ms, release=retention.release)
        self._case: TopicCase | None = None
        self.condenser = Condenser(names, commits_of=None if of_all_groups else [group])

    def findings(self, extents: LogExtents) -> list[Finding]:
        """The findings of the detectors that read one group alone. `extents` are those of the logs."""
        from exhume.analysis.detectors.catalogue import DETECTORS
        from exhume.analysis.detectors.diagnose import diagnose_group

        own = (each for each in self._condensed(extents).groups() if each.group == self._group)
        return [finding for each in own for finding in diagnose_group(each, self._inputs, DETECTORS)]

    def findings_of_all(self, logs: TopicLogs, extents: LogExtents) -> Findings:
        """The findings of all detectors that concern the group. `extents` are those of these logs; the commits of all groups are here."""
        from exhume.topic.diagnosis import findings_in

        return findings_in(self._condensed(extents), logs, self._inputs, groups=[self._group])

    def judgements(self, extents: LogExtents) -> dict[RecordPlace, Judgement]:
        """The writer of each tombstone of the group and of its offsets. `extents` are those of the logs."""
        from exhume.analysis.detectors.removal_evidence import judgements_of

        return judgements_of(self._condensed(extents), self._group, self._inputs)

    def _condensed(self, extents: LogExtents) -> TopicCase:
        from exhume.analysis.detectors.removal_facts import learn_removals

        if self._case is None:
            self._case = self.condenser.case(extents)
            learn_removals(self._case, self._inputs)
        return self._case
