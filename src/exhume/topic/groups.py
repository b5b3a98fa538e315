"""Groups over time: members, owned partitions, and assignments.

Functions import the modules that take long to import.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from exhume.analysis.completeness import missing_findings, past_findings
from exhume.analysis.grading import MembershipGrading
from exhume.analysis.group_timeline import group_record_names, group_timeline
from exhume.analysis.log_extent import ExtentReaders
from exhume.analysis.memberships import Membership, is_before_cut, up_to
from exhume.analysis.ownership import owners as owners_of
from exhume.analysis.rebalance_rows import storm_findings
from exhume.analysis.rebalances import rebalances as rebalances_of
from exhume.arrow_rows import Origin
from exhume.codecs.columns.blocks import Block
from exhume.codecs.columns.following import Following
from exhume.codecs.columns.noted_batches import NotedBatches
from exhume.codecs.columns.record_blocks import RecordBlock
from exhume.codecs.columns.record_columns import record_column
from exhume.codecs.columns.selection import Selection
from exhume.codecs.decoded_tables import decode_table
from exhume.codecs.kernels import records
from exhume.codecs.log_directory import PartitionDirectory
from exhume.codecs.log_pass import Beside, Collector, LogCollector, SelectedRecords
from exhume.codecs.record_filter import RecordFilter
from exhume.codecs.record_types import decode_record, number_of
from exhume.codecs.uris import PathOrUri
from exhume.errors import RequestError, near_by
from exhume.findings import Finding, Findings
from exhume.replay.append_order import AppendOrders
from exhume.replay.learned_names import NameReader
from exhume.replay.moment import ClockOrder, Moment, moment_findings
from exhume.replay.releases import is_release
from exhume.replay.topic_names import TopicNames, captured_topics, read_topics_file
from exhume.topic.logs import TopicLogs, is_exact

if TYPE_CHECKING:
    from exhume.analysis.assignment.verdicts import AssignmentTables

#: The bytes of the longest name that Kafka accepts. Of a longer name only its beginning is searched for.
_MOST_NAME_BYTES = 249
_VALUE = pa.field("value", pa.binary())


def memberships(logs: TopicLogs, groups: Collection[str] | None) -> Iterator[Membership]:
    """Yield the steps of these groups, in the order of the log."""
    names = logs.topic_names()
    logs.read(NameReader(names))
    return group_timeline(_group_records(logs, groups), names)


def _known_memberships(logs: TopicLogs, groups: Collection[str] | None, names: TopicNames) -> Iterator[Membership]:
    """Yield the steps of these groups, with topic names from `names`.

    Raises:
        RequestError: no group record of one of these groups; lists similar names.
    """
    missing = set(groups or ())
    for step in group_timeline(_group_records(logs, groups), names):
        missing.discard(step.group)
        yield step
    if missing:
        known = {step.group for step in group_timeline(_group_records(logs, None))}
        group = min(missing)
        raise RequestError(f"no group record of {group!r} is here", remedy=near_by(group, known))


def _group_records(logs: TopicLogs, groups: Collection[str] | None) -> pa.RecordBatchReader:
    return logs.records(RecordFilter(types=group_record_names(), groups=groups))


def rebalances(logs: TopicLogs, groups: Collection[str] | None) -> pa.Table:
    """The generations and epochs of these groups, as `rebalances.REBALANCES`; storms and missing records are added to `findings`."""
    names, readers = logs.topic_names(), ExtentReaders()
    logs.read(NameReader(names), readers)
    extents = readers.extents(logs.evidence.partitions)
    answer = rebalances_of(_known_memberships(logs, groups, names), extents)
    logs.findings.extend(storm_findings(answer))
    logs.findings.extend(missing_findings(extents, _origins(answer)))
    return answer


def owners(logs: TopicLogs, groups: Collection[str] | None, topic: str | None, partition: int | None, at: Moment | None) -> pa.Table:
    """Return the owner of each partition over time, as `ownership.OWNERS`; with a moment, only the owners at that moment.

    Raises:
        RequestError: no group record of one of these groups, or no member ever owned such a partition; lists similar names.
    """
    known: set[tuple[str, int]] = set()

    def is_wanted(name: str, number: int) -> bool:
        known.add((name, number))
        return topic in (None, name) and partition in (None, number)

    names, readers, grading = logs.topic_names(), ExtentReaders(), None if at is None else MembershipGrading(at)
    # A moment is judged by the records of all groups.
    having = None if topic is None or groups is not None or at is not None else _GroupsOfTopic(topic)
    with Following(logs.options.most_threads) as following:
        beside = Beside(following, [NameReader(names), *([] if having is None else [having])])
        ends = _read_with_ends(logs, at, beside, readers, *([] if grading is None else [grading]))
    known_steps = _known_memberships(logs, groups, names) if having is None else having.memberships(logs, names)
    extents, read = readers.extents(logs.evidence.partitions), _noting(grading, known_steps, ends)
    steps = _noting_late(read, ends, groups, logs.findings)
    answer = owners_of(steps, extents, wanted=is_wanted, ends=None if at is None else ends)
    is_named = topic is not None or partition is not None
    if is_named and not any(is_wanted(*topic_partition) for topic_partition in [*known]):
        if having is not None:
            owners_of(_known_memberships(logs, None, names), extents, wanted=is_wanted)
        _refuse_unowned(topic, partition, known)
    if grading is None:
        logs.findings.extend(missing_findings(extents, _origins(answer)))
    else:
        logs.findings.extend(past_findings(grading.table(ends), groups))
    return answer


class _GroupsOfTopic(LogCollector):
    """Collect the groups that may have owned a partition of this topic, and note the batches of all groups.

    The topic's name, or a topic id, is in one of the records of such a group.
    """

    def __init__(self, topic: str) -> None:
        # The name of a topic that is not UTF-8 has other bytes than its text.
        name = topic.encode() if is_exact(topic) else b""
        self._name = re.escape(name[:_MOST_NAME_BYTES])
        self._selection = Selection(RecordFilter(types=group_record_names()))
        self._notes = NotedBatches()
        self._keys: set[bytes] = set()

    def of(self, partition: PartitionDirectory) -> Iterable[LogCollector]:  # noqa: ARG002
        """Return this collector: it reads every log."""
        return [self]

    def add_block(self, block: Block) -> None:
        self._notes.add_block(block)

    def add_records(self, block: RecordBlock) -> None:
        selected = self._selection.of(block)
        if len(selected):
            keys = self._notes.note(selected)
            has_ids = pa.array(selected.records[records.RECORD_TYPE] != number_of("classic", "group"))
            # The search for a pattern is several times as fast as that for a text, if the pattern is short.
            has_name = pc.match_substring_regex(record_column(selected, _VALUE), self._name)
            self._keys.update(pc.unique(keys.filter(pc.or_kleene(has_ids, has_name))).to_pylist())

    def memberships(self, logs: TopicLogs, names: TopicNames) -> Iterator[Membership]:
        """Yield the steps of these groups, with topic names from `names`."""
        groups = {str(key["group"]) for key in (decode_record(each, None).key for each in self._keys) if "group" in key}
        wanted = RecordFilter(types=group_record_names(), groups=groups)
        noted = self._notes.spans(lambda key: key in self._keys or wanted.accepts_key(decode_record(key, None)))
        return group_timeline(logs.records(wanted, noted), names)


def _refuse_unowned(topic: str | None, partition: int | None, known: Collection[tuple[str, int]]) -> None:
    place = " ".join(str(part) for part in (topic, partition) if part is not None)
    topics = {name for name, _ in known}
    near = sorted(f"{name} {number}" for name, number in known if name == topic) or get_close_matches(topic or "", topics, n=5)
    remedy = f"Near by: {', '.join((near or sorted(topics))[:10])}" if topics else "The logs have no group with known owners"
    raise RequestError(f"no member ever owned {place} in these logs", remedy=remedy)


def assignments(
    logs: TopicLogs,
    groups: Collection[str] | None,
    at: Moment | None,
    *,
    expected: str,
    release: str | None,
    topics_file: PathOrUri | None,
    every: bool,
) -> AssignmentTables:
    """Compare assignments with the results of assignors: every assignment, or the last one of each group.

    Raises:
        RequestError: no such assignor or release, or no group record of one of these groups.
    """
    from exhume.analysis.assignment.history import FactsOverTime, check_every, check_latest, topic_records
    from exhume.analysis.assignment.runs import Expectation
    from exhume.analysis.assignment.verdicts import tables_of

    _refuse_unknown(expected, release)
    names, records = logs.topic_names(topics_file), SelectedRecords(RecordFilter(types=topic_records(), groups=groups))
    topics = read_topics_file(topics_file) if topics_file is not None else captured_topics(logs.evidence.log_directories) or []
    grading = None if at is None else MembershipGrading(at)
    ends = _read_with_ends(logs, at, NameReader(names), records, *(() if grading is None else (grading,)))
    rows = [row for name in topic_records() for table in records.tables for row in decode_table(name, table).to_pylist()]
    facts = FactsOverTime(topics, rows, names)
    read = _noting(grading, _known_memberships(logs, groups, names), ends)
    steps = up_to(_noting_late(read, ends, groups, logs.findings), ends)
    wish = Expectation(expected, release)
    answer = tables_of(check_every(steps, facts, wish) if every else check_latest(steps, facts, wish, with_empty=groups is not None))
    if grading is not None:
        logs.findings.extend(past_findings(grading.table(ends), groups))
    return answer


def _noting(grading: MembershipGrading | None, steps: Iterable[Membership], ends: Mapping[Origin, int]) -> Iterator[Membership]:
    """Yield these steps, and give them to the grading of a moment."""
    for step in steps:
        if grading is not None:
            grading.take(step, ends)
        yield step


def _origins(rows: pa.Table) -> set[Origin]:
    """Return the logs that these rows are from."""
    return {(row["replica"], row["offsets_partition"]) for row in rows.select(["replica", "offsets_partition"]).to_pylist()}


def _refuse_unknown(expected: str, release: str | None) -> None:
    from exhume.analysis.assignors import VARIANTS

    known = sorted({variant.assignor for variant in VARIANTS})
    if expected != "auto" and expected not in known:
        raise RequestError(f"no assignor {expected!r} is known", remedy=f"Choose auto, or one of {', '.join(known)}")
    if release is not None and not is_release(release):
        raise RequestError(f"no release {release!r}", remedy="Write a release such as 2.8.2 or 4.3")


def _read_with_ends(logs: TopicLogs, at: Moment | None, *collectors: Collector) -> dict[Origin, int]:
    """Read the logs once for these collectors, and return the first record offset after this moment of logs that go on after it.

    Findings about a doubtful moment are added to `findings`.

    Returns:
        The record offsets by replica and offsets partition; none without a moment.
    """
    orders: Mapping[Origin, ClockOrder] = {}
    if at is None or at.time_ms is None:
        logs.read(*collectors)
    else:
        append_orders = AppendOrders(at.time_ms)
        logs.read(append_orders, *collectors)
        orders = append_orders.by_log
    return {} if at is None else _ends_at(logs, at, orders)


def _ends_at(logs: TopicLogs, at: Moment, orders: Mapping[Origin, ClockOrder]) -> dict[Origin, int]:
    ends: dict[Origin, int] = {}
    for directory in logs.evidence.partitions:
        if not directory.read_segments:
            continue
        origin = directory.replica, directory.offsets_partition
        order, last_offset = orders.get(origin), at.last_offsets.get(directory.offsets_partition)
        if order is not None and order.first_later is not None:
            ends[origin] = order.first_later[0]
        elif last_offset is not None:
            ends[origin] = last_offset + 1
        if order is not None or at.time_ms is None:
            logs.findings.extend(moment_findings(directory, at, order))
    return ends


def _noting_late(
    steps: Iterable[Membership], ends: Mapping[Origin, int], groups: Collection[str] | None, findings: Findings
) -> Iterator[Membership]:
    """Yield the steps of these groups. If all steps come after these ends, add a finding that the moment is too early."""
    first: Membership | None = None
    is_late = True
    for step in steps:
        first = step if first is None else first
        is_late = is_late and not is_before_cut(step, ends)
        yield step
    if first is not None and is_late:
        finding = Finding(
            code="moment_too_early",
            sentence=f"{'no group' if groups is None else 'none of these groups'} has a record before this moment",
            replica=first.replica,
            offsets_partition=first.offsets_partition,
            group=first.group if groups is not None and len(groups) == 1 else None,
            path=first.path,
            byte_position=first.byte_position,
            first_record_offset=first.record_offset,
            first_timestamp_ms=first.timestamp_ms,
        )
        findings.add(finding)
