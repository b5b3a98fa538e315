"""The completeness of a log at a past moment: a grade for every group.

Compaction removes a record when a later one of its key exists, anywhere in the log. At the end of the log that loses nothing. At an earlier
moment, the record that counted then may be gone. A record that is left is right: while a record of a key exists, compaction has not removed
a later one of the same key. But a key may be missing completely. The grades are

    certain    the state is complete
    at_least   every offset, member and assignment in the state existed; there may have been more, and without the group's own record its
               epochs and its state are those of a group that never had one
    unknown    the group has records only after the moment, or damage destroyed records before it

Every offset was once given to a record, so missing ones can be counted. They do not matter for a group if only records up to the moment
can have replaced them. That is not certain in these cases:

- an offset after the moment is missing too: that record may have replaced them, and a tombstone leaves no later record;
- the group has a record after the moment, and the cleaner may have reached it;
- a transaction ended after the moment: its commits were pending then, and the cleaner may have removed them as aborted or replaced;
- the group has a pending commit, which replaces the valid one when its transaction ends.

A time is less exact than an offset: the records between the last one that counts and the next one may be before or after the moment. And if
the times of a log go back, a missing record just before the moment may be later than the moment, which makes the state that of a later one.

A row without a group stands for groups without any record left. The coordinator in Java keeps a group as Empty after tombstones of all its
records, so it has this row if any record is missing. `past_records.CleanerBound` shows how far the cleaner can have come. The checkpoint
of the cleaner does not: a replica may have copied its gaps from a leader whose cleaner went further.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from exhume.analysis.log_extent import ExtentReader, LogExtent
from exhume.analysis.log_gaps import GapReader, LogGaps
from exhume.analysis.past_records import CleanerBound, ClockReader, LaterRecordReader, LaterRecords
from exhume.arrow_rows import OfLog, Origin, schema_of, table_of
from exhume.codecs.log_directory import PartitionDirectory
from exhume.codecs.log_pass import LogCollector, collect
from exhume.codecs.segment_reader import SegmentReader
from exhume.replay.state import CoordinatorState
from exhume.replay.state_tables import LoadRow, OffsetRow
from exhume.replay.verdict import LOADED_IN_MEMORY

Grade = Literal["certain", "at_least", "unknown"]


class CompletenessRow(OfLog):
    """One row per group of the state, per group with records only after the moment that may have existed, and one without a group.

    The row without a group stands for groups that left no record. `last_record_offset` is that of the moment. `missing_offsets` counts the
    missing record offsets up to it, from `first_gap_offset` to `last_gap_offset`; `next_record_offset` is the group's first record after
    it. `first_dirty_offset` is the cleaner's checkpoint, null without one.
    """

    group: str | None
    grade: Grade
    reason: str
    last_record_offset: int | None
    missing_offsets: int
    first_gap_offset: int | None
    last_gap_offset: int | None
    next_record_offset: int | None
    first_dirty_offset: int | None


COMPLETENESS = schema_of(CompletenessRow)

_WORDS: Mapping[str, str] = {
    "certain": "certain",
    "at_least": "at least as shown (the group may have had more)",
    "unknown": "unknown",
}
_SUPERSEDED = "every missing record was superseded or removed before this moment"


def grade_groups(reader: SegmentReader, state: CoordinatorState) -> pa.Table:
    """Return the grades of every group of this state, as `COMPLETENESS`, sorted by group. `reader` reads the logs of the state."""
    grading = Grading(state)
    collect(reader, [grading])
    return grading.table()


@dataclass(slots=True)
class _Readers:
    """The readers of one log; `bound` and `clock` only for a moment, and for a time."""

    directory: PartitionDirectory
    moment_offset: int | None
    extent: ExtentReader
    gaps: GapReader
    later: LaterRecordReader
    bound: CleanerBound
    clock: ClockReader | None

    def collectors(self) -> Sequence[LogCollector]:
        found: list[LogCollector] = [self.extent, self.gaps]
        if self.moment_offset is not None:
            found += [self.later, self.bound]
        return found if self.clock is None else [*found, self.clock]

    def past(self) -> _Past:
        gaps = self.gaps.gaps(self.extent.extent(self.directory))
        gaps = gaps.between(gaps.extent.start_offset, gaps.extent.end_offset)
        return _Past(self.directory, self.moment_offset, gaps, self.later.later(), self.bound.before(gaps.extent.end_offset), self.clock)


class Grading:
    """Collect from each log of a state what its grades need; the moment is that of the load."""

    def __init__(self, state: CoordinatorState) -> None:
        loaded: list[LoadRow] = state.loads.to_pylist()
        self._state = state
        self._loads: dict[Origin, LoadRow] = {(row["replica"], row["offsets_partition"]): row for row in loaded}
        self._read: dict[Origin, _Readers] = {}

    def of(self, partition: PartitionDirectory) -> Sequence[LogCollector]:
        """Return the readers for the log in this directory; none if it was not loaded."""
        origin = (partition.replica, partition.offsets_partition)
        if origin not in self._loads:
            return ()
        if origin not in self._read:
            load = self._loads[origin]
            moment_offset = _moment_offset(load, partition.start_offset)
            later = LaterRecordReader(partition.start_offset, moment_offset)
            clock = ClockReader(moment_offset) if moment_offset is not None and load["at_time_ms"] is not None else None
            self._read[origin] = _Readers(partition, moment_offset, ExtentReader(), GapReader(), later, CleanerBound(), clock)
        return self._read[origin].collectors()

    def table(self) -> pa.Table:
        """Return the grades of every group of the state, as `COMPLETENESS`, sorted by group."""
        shown: dict[Origin, set[str]] = {origin: set() for origin in self._loads}
        pending: dict[Origin, dict[str, list[tuple[int, int]]]] = {origin: {} for origin in self._loads}
        for name in ("groups", "offsets", "pending_offsets"):
            for row in self._state.tables[name].select(["replica", "offsets_partition", "group"]).to_pylist():
                shown[row["replica"], row["offsets_partition"]].add(row["group"])
        pending_offsets: list[OffsetRow] = self._state.pending_offsets.to_pylist()
        for each in pending_offsets:
            if each["producer_id"] is not None:
                own = pending[each["replica"], each["offsets_partition"]].setdefault(each["group"], [])
                own.append((each["producer_id"], each["record_offset"]))
        rows: list[CompletenessRow] = []
        for origin, readers in self._read.items():
            rows += _rows(readers.past(), self._loads[origin], shown[origin], pending[origin])
        rows.sort(key=lambda row: (row["group"] is None, row["group"], row["replica"]))
        return table_of(COMPLETENESS, rows)


def grade_at_end(load: LoadRow, extent: LogExtent, *, has_damage: bool) -> tuple[Grade, str]:
    """Return the grade of a group at the end of a log, and its reason, from facts about the whole log, as `grade_groups` would.

    `has_damage` is for damage that is not part of the extent.
    """
    if load["outcome"] not in LOADED_IN_MEMORY:
        return "unknown", f"the load ended as {load['outcome']}"
    if has_damage or extent.first_damage_offset is not None:
        return "unknown", "part of the log is damaged and may have had more records"
    if extent.start_offset > 0:
        return "at_least", _begins_late(extent.start_offset)
    if not extent.missing_after_start:
        return "certain", f"the log has every record up to {load['last_record_offset']}"
    if _lacks_end(extent):
        return "at_least", f"{extent.missing_after_start} record offsets are missing, and {_cleaned_further(extent)}"
    return "certain", _SUPERSEDED


def completeness_sentence(completeness: pa.Table) -> str:
    """Return the counts of grades as one sentence."""
    rows: list[CompletenessRow] = completeness.to_pylist()
    grades = [row["grade"] for row in rows if row["group"] is not None]
    counts = [f"{grades.count(grade)} {words}" for grade, words in _WORDS.items() if grade in grades]
    traceless = "; there may have been groups that left no record" if len(grades) < len(rows) else ""
    return f"completeness by group: {', '.join(counts) or 'no group'}{traceless}"


@dataclass(frozen=True, slots=True)
class _Past:
    """Records of one log up to a moment and after it. `moment_offset` is None for the end of the log."""

    partition: PartitionDirectory
    moment_offset: int | None
    gaps: LogGaps
    later: LaterRecords
    #: The cleaner cannot have reached this offset.
    cleaned_before: int
    #: Only for a time.
    clock: ClockReader | None

    @property
    def extent(self) -> LogExtent:
        return self.gaps.extent

    @property
    def last_offset(self) -> int:
        """The last record offset up to the moment, or of the log."""
        end = self.extent.end_offset - 1
        return end if self.moment_offset is None else min(self.moment_offset, self.extent.next_offset - 1)

    @property
    def last_possible_offset(self) -> int:
        """The last offset whose record may be up to the moment: of a time, that before the next record in the log."""
        if self.clock is None:
            return self.last_offset
        return (self.extent.end_offset if self.later.first is None else self.later.first) - 1


def _moment_offset(load: LoadRow, start_offset: int) -> int | None:
    if load["at_offset"] is not None:
        return load["at_offset"]
    if load["at_time_ms"] is None:
        return None
    return start_offset - 1 if load["last_record_offset"] is None else load["last_record_offset"]


def _rows(past: _Past, load: LoadRow, shown: set[str], pending: Mapping[str, Sequence[tuple[int, int]]]) -> Iterator[CompletenessRow]:
    extent, last_offset = past.extent, past.last_offset
    before = past.gaps.between(0, past.last_possible_offset)
    missing, last_record = before.missing_offsets, min(last_offset, extent.next_offset - 1)
    for group in [*sorted({*shown, *past.later.first_of_group}), None]:
        pending_commits = () if group is None else pending.get(group, ())
        grade, reason = _grade(past, load, missing, group, is_shown=group in shown, pending_commits=pending_commits)
        if grade == "certain" and group not in shown:
            continue
        yield {
            "replica": past.partition.replica,
            "offsets_partition": past.partition.offsets_partition,
            "group": group,
            "grade": grade,
            "reason": reason,
            "last_record_offset": last_record if last_record >= extent.start_offset else None,
            "missing_offsets": missing,
            "first_gap_offset": int(before.first[0]) if len(before) else None,
            "last_gap_offset": int(before.last[-1]) if len(before) else None,
            "next_record_offset": past.later.first_of_group.get(group) if group is not None else None,
            "first_dirty_offset": extent.cleaner_offset,
        }


def _grade(
    past: _Past,
    load: LoadRow,
    missing: int,
    group: str | None,
    *,
    is_shown: bool,
    pending_commits: Sequence[tuple[int, int]],
) -> tuple[Grade, str]:
    """Return the grade of a group, and the reason; no group stands for groups without a record.

    `pending_commits` have the producer id and the record offset of each pending commit of the group.
    """
    doubtful: Grade = "at_least" if is_shown else "unknown"
    if load["outcome"] not in LOADED_IN_MEMORY:
        return "unknown", f"the load ended as {load['outcome']}"
    damage = past.gaps.first_damage_offset
    if damage is not None and damage <= past.last_possible_offset:
        return "unknown", f"damage from record offset {damage} on may have destroyed records"
    if missing and past.clock is not None and _may_be_later(past, load, past.clock):
        return "unknown", f"{missing} record offsets are missing, and the times of the log go back: the state may be that of a later moment"
    if past.extent.start_offset > 0:
        return doubtful, _begins_late(past.extent.start_offset)
    if not missing:
        return "certain", f"the log has every record up to {past.last_offset}"
    suspect = _suspect(past, group, pending_commits)
    if suspect is None and group is None and load["coordinator"] == "java":
        return "unknown", f"{missing} record offsets are missing: a group with no other record may have been Empty then, without offsets"
    if suspect is None:
        return "certain", _SUPERSEDED
    return doubtful, f"{missing} record offsets are missing, and {suspect}"


def _may_be_later(past: _Past, load: LoadRow, clock: ClockReader) -> bool:
    """Return True if a missing record before the last one that counts may be later than this time.

    The times of this log go back by at most `most_back_ms`. A record so much earlier than the moment comes before all later ones.
    """
    if not past.gaps.has_any(0, past.last_offset):
        return False
    if load["clock"] == "commit":
        return not load["is_ordered_by_clock"]
    least_ms = clock.least_after_gap_ms
    assert load["at_time_ms"] is not None
    return clock.most_back_ms > 0 and (least_ms is None or least_ms > load["at_time_ms"] - clock.most_back_ms)


def _suspect(past: _Past, group: str | None, pending_commits: Sequence[tuple[int, int]]) -> str | None:
    """Return which later records may have replaced records of this group that counted at the moment; None if none. No group: any group."""
    if _lacks_end(past.extent):
        return _cleaned_further(past.extent)
    for marker, _, begin in past.later.transactions:
        if past.gaps.has_any(begin, past.last_possible_offset):
            return f"some may be commits that were pending until end marker {marker}"
    producers = {producer_id for _, producer_id, _ in past.later.transactions}
    if any(producer_id in producers and record_offset < past.cleaned_before for producer_id, record_offset in pending_commits):
        return "a pending commit may have superseded the valid one"
    own = None if group is None else past.later.first_of_group.get(group)
    if own is not None and own < past.cleaned_before:
        return f"a later record of the group, {own}, may have superseded some of them"
    gap = past.gaps.first_after(past.last_offset)
    if gap is None:
        return None
    if gap <= past.last_possible_offset:
        return f"{gap} to {past.last_possible_offset} may be before the moment or after it"
    return f"so is {gap} after the moment, which may have superseded some of them"


def _lacks_end(extent: LogExtent) -> bool:
    """Return True if the cleaner went further than this log: the copy lacks its last segments."""
    return extent.cleaner_offset is not None and extent.cleaner_offset > extent.end_offset


def _cleaned_further(extent: LogExtent) -> str:
    return f"the cleaner reached offset {extent.cleaner_offset}, after the end of the log: its last segments are missing"


def _begins_late(start_offset: int) -> str:
    return f"the log begins at {start_offset}: earlier records are gone, superseded or not"
