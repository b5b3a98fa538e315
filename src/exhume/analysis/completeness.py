"""The completeness of a log at a past moment: a grade for every group.

Compaction removes a record when a later one of its key exists, anywhere in the log. At the end of the log that loses nothing. At an earlier
moment, the record that counted then may be gone. A record that is left is right: while a record of a key exists, compaction has not removed
a later one of the same key. But a key may be missing completely. The grades are

    certain    the state is complete
    at_least   every offset, member and assignment in the state existed; there may have been more; without the group's own record its
               epochs and its state are those of a group that never had one, and a member may lack its epoch or its subscription
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

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from exhume.analysis.log_extent import LogExtent, LogExtents
from exhume.analysis.log_gaps import LogGaps
from exhume.analysis.past_records import LaterRecords
from exhume.arrow_rows import OfLog, Origin, schema_of
from exhume.codecs.log_directory import PartitionDirectory
from exhume.findings import Finding
from exhume.replay.state import CoordinatorState
from exhume.replay.state_tables import LoadRow
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
#: The producer id and the record offset of a pending commit.
PendingCommit = tuple[int, int]
_DOUBTS: Mapping[Grade, str] = {"at_least": "it may have had more than the log shows", "unknown": "the log does not show its state"}
_DOUBTS_OF_SOME: Mapping[Grade, str] = {
    "at_least": "may have had more than the log shows",
    "unknown": "may have had a state that the log does not show",
}
_SUPERSEDED = "every missing record was superseded or removed before this moment"


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


def past_findings(
    completeness: pa.Table, groups: Collection[str] | None = None, *, moment: str = "at this moment", is_damage: bool = False
) -> list[Finding]:
    """Return findings about the groups that `COMPLETENESS` makes uncertain: one for each of these groups, or one for each log.

    `is_damage`: such an answer is partial.
    """
    rows: list[CompletenessRow] = [row for row in completeness.to_pylist() if row["grade"] != "certain"]
    if groups is not None:
        named = [row for row in rows if row["group"] in groups]
        return [_past_finding(row, f"group {row['group']!r}: {moment} {_DOUBTS[row['grade']]}", is_damage=is_damage) for row in named]
    by_log: dict[Origin, list[CompletenessRow]] = {}
    for row in rows:
        by_log.setdefault((row["replica"], row["offsets_partition"]), []).append(row)
    return [_past_finding(own[0], f"{moment}, {_counted(own)}", is_damage=is_damage, of_log=True) for own in by_log.values()]


def _counted(rows: Sequence[CompletenessRow]) -> str:
    grades = [row["grade"] for row in rows if row["group"] is not None]
    of_grades = ((grades.count(grade), words) for grade, words in _DOUBTS_OF_SOME.items())
    counts = [f"{count} {'group' if count == 1 else 'groups'} {words}" for count, words in of_grades if count]
    if len(grades) < len(rows):
        counts.append("groups that left no record may have existed")
    return ", ".join(counts)


def _past_finding(row: CompletenessRow, doubt: str, *, is_damage: bool, of_log: bool = False) -> Finding:
    return Finding(
        code="past_is_incomplete",
        sentence=f"{doubt}: {row['reason']}",
        confidence="possible",
        replica=row["replica"],
        offsets_partition=row["offsets_partition"],
        group=None if of_log else row["group"],
        last_record_offset=row["last_record_offset"],
        is_damage=is_damage,
    )


def missing_finding(origin: Origin, missing: int, start_offset: int, complete_from: int | None = None) -> Finding | None:
    """Return a finding about the records that an answer over time lacks; None if the log has every record.

    `missing` counts the record offsets from `start_offset` on without a record; `complete_from` is the offset after the last one, if known.
    """
    where = "" if complete_from is None else f" before record {complete_from}"
    parts = [_begins_late(start_offset)] if start_offset else []
    parts += [f"{missing} record offsets{where} have no record: compaction removed superseded records"] if missing else []
    if not parts:
        return None
    return Finding(
        code="records_are_missing",
        sentence=f"{'; '.join(parts)}. The answer may lack earlier records of a group",
        confidence="possible",
        replica=origin[0],
        offsets_partition=origin[1],
        last_record_offset=None if complete_from is None else complete_from - 1,
    )


def missing_of_loads(state: CoordinatorState, records: pa.Table, start_offsets: Mapping[Origin, int]) -> list[Finding]:
    """Return the findings of `missing_finding` about the logs of these records.

    `state` is that of a lenient load of whole logs, `start_offsets` are the offsets at which brokers start to read them.
    """
    origins = {(row["replica"], row["offsets_partition"]) for row in records.select(["replica", "offsets_partition"]).to_pylist()}
    loads: list[LoadRow] = state.loads.to_pylist()
    found = []
    for load in loads:
        origin = (load["replica"], load["offsets_partition"])
        start_offset = start_offsets.get(origin, 0)
        finding = missing_finding(origin, max(load["end_offset"] - start_offset - load["records_read"], 0), start_offset)
        if origin in origins and finding is not None:
            found.append(finding)
    return found


def missing_findings(extents: LogExtents, origins: Collection[Origin]) -> list[Finding]:
    """Return the findings of `missing_finding` about these logs."""
    found = []
    for origin, extent in extents.items():
        missing = max(extent.missing_after_start - extent.damaged_offsets, 0)
        finding = missing_finding(origin, missing, extent.start_offset, extent.complete_from_offset)
        if origin in origins and finding is not None:
            found.append(finding)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """The records of one log up to a moment and after it, as far as they decide its grades.

    Attributes:
        last_offset: the last record offset that is up to the moment for certain.
        last_possible_offset: the last one whose record may be up to the moment. It differs for a time: records that are missing before the
            next record may be before the time or after it.
        cleaned_before: the cleaner cannot have reached this offset.
        not_loaded: why the load has no answer; None if it has.
        keeps_empty_groups: True for a coordinator that keeps a group after tombstones removed everything of it.
        is_time_doubtful: True if the times of the log go back, and a missing record before the last one that counts may be later than the
            moment.
    """

    partition: PartitionDirectory
    gaps: LogGaps
    last_offset: int
    last_possible_offset: int
    later: LaterRecords
    cleaned_before: int
    not_loaded: str | None = None
    keeps_empty_groups: bool = False
    is_time_doubtful: bool = False

    @property
    def extent(self) -> LogExtent:
        return self.gaps.extent

    def rows(
        self, shown: Collection[str], pending: Mapping[str, Sequence[PendingCommit]], *, also: Collection[str] = ()
    ) -> Iterator[CompletenessRow]:
        """Yield the rows of `COMPLETENESS` about this log.

        `shown` are the groups of the state, `pending` their pending commits. `also` are groups with a record that may not be in the state.
        """
        before = self.gaps.between(0, self.last_possible_offset)
        last_record = min(self.last_offset, self.extent.next_offset - 1)
        for group in [*sorted({*shown, *self.later.first_of_group, *also}), None]:
            own = () if group is None else pending.get(group, ())
            grade, reason = self._grade(before.missing_offsets, group, own, is_shown=group in shown)
            if grade == "certain" and group not in shown:
                continue
            yield {
                "replica": self.partition.replica,
                "offsets_partition": self.partition.offsets_partition,
                "group": group,
                "grade": grade,
                "reason": reason,
                "last_record_offset": last_record if last_record >= self.extent.start_offset else None,
                "missing_offsets": before.missing_offsets,
                "first_gap_offset": int(before.first[0]) if len(before) else None,
                "last_gap_offset": int(before.last[-1]) if len(before) else None,
                "next_record_offset": self.later.first_of_group.get(group) if group is not None else None,
                "first_dirty_offset": self.extent.cleaner_offset,
            }

    def _grade(self, missing: int, group: str | None, pending: Sequence[PendingCommit], *, is_shown: bool) -> tuple[Grade, str]:
        """Return the grade of a group, and the reason; no group stands for groups without a record."""
        doubtful: Grade = "at_least" if is_shown else "unknown"
        if self.not_loaded is not None:
            return "unknown", self.not_loaded
        damage = self.gaps.first_damage_offset
        if damage is not None and damage <= self.last_possible_offset:
            return "unknown", f"damage from record offset {damage} on may have destroyed records"
        are_missing = f"{missing} record offsets are missing"
        if self.is_time_doubtful and self.gaps.has_any(0, self.last_offset):
            return "unknown", f"{are_missing}, and the times of the log go back: this may be the state of a later time"
        if self.extent.start_offset > 0:
            return doubtful, _begins_late(self.extent.start_offset)
        if not missing:
            return "certain", f"the log has every record up to {min(self.last_offset, self.extent.next_offset - 1)}"
        suspect = self._suspect(group, pending)
        if suspect is not None:
            return doubtful, f"{are_missing}, and {suspect}"
        if group is None and self.keeps_empty_groups:
            return (
                "unknown",
                f"{missing} record offsets are missing: a group with no other record may have been Empty then, without offsets",
            )
        return "certain", _SUPERSEDED

    def _suspect(self, group: str | None, pending: Sequence[PendingCommit]) -> str | None:
        """Return which later records may have replaced records of this group that counted at the moment; None if none.

        No group stands for any group.
        """
        if _lacks_end(self.extent):
            return _cleaned_further(self.extent)
        for marker, _, begin in self.later.transactions:
            if self.gaps.has_any(begin, self.last_possible_offset):
                return f"some may be commits that were pending until end marker {marker}"
        producers = {producer_id for _, producer_id, _ in self.later.transactions}
        if any(producer_id in producers and record_offset < self.cleaned_before for producer_id, record_offset in pending):
            return "a pending commit may have superseded the valid one"
        own = None if group is None else self.later.first_of_group.get(group)
        if own is not None and own < self.cleaned_before:
            return f"a later record of the group, {own}, may have superseded some of them"
        gap = self.gaps.first_after(self.last_offset)
        if gap is None:
            return None
        if gap <= self.last_possible_offset:
            return f"{gap} to {self.last_possible_offset} may be before the moment or after it"
        return f"so is {gap} after the moment, which may have superseded some of them"


def _lacks_end(extent: LogExtent) -> bool:
    """Return True if the cleaner went further than this log: the copy lacks its last segments."""
    return extent.cleaner_offset is not None and extent.cleaner_offset > extent.end_offset


def _cleaned_further(extent: LogExtent) -> str:
    return f"the cleaner reached offset {extent.cleaner_offset}, after the end of the log: its last segments are missing"


def _begins_late(start_offset: int) -> str:
    return f"the log begins at {start_offset}: earlier records are gone, superseded or not"
