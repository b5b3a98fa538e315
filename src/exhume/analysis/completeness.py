"""The completeness of a log at a past moment: a grade for every group.

Compaction removes a record when a later one of its key exists, anywhere in the log. At the end of the log that loses nothing. At an earlier
moment, the record that counted then may be gone. A record that is left is right: while a record of a key exists, compaction has not removed
a later one of the same key. But a key may be missing completely. The grades are

    certain    the state is complete
    at_least   every offset, member and assignment in the state existed; there may have been more, and without the group's own record its
               epochs and its state are those of a group that never had one
    unknown    the group has records only after the moment, or damage destroyed records before it

Every offset was once given to a record, so missing ones can be counted. They do not matter for a group if only records that were in force
at the moment can have replaced them. That is not certain in these cases: a transaction ended after the moment, and its pending commits may
have been removed as aborted or replaced; the group has a pending commit, which replaces the valid one; and, unless the cleaner has not
reached the moment, the group has a later record, or a gap after the moment may have been one. A row without a group stands for groups
without any record left.

The cleaner's checkpoint shows how far it got, as long as no offset above it is missing. Else the replica copied its gaps from a leader,
whose checkpoint is unknown, and every record up to the log end may have replaced others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from exhume.analysis.log_extent import ExtentReader, LogExtent
from exhume.analysis.log_gaps import GapReader, LogGaps
from exhume.arrow_rows import OfLog, Origin, schema_of, table_of
from exhume.codecs.columns.arrow import texts
from exhume.codecs.columns.record_blocks import RecordBlock
from exhume.codecs.kernels import keys, scan
from exhume.codecs.kernels import records as fields
from exhume.codecs.log_directory import PartitionDirectory
from exhume.codecs.log_pass import LogCollector, collect
from exhume.codecs.record_types import RECORD_TYPES, decode_record
from exhume.codecs.segment_reader import SegmentReader
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

_KNOWN_TYPES = np.array(sorted(RECORD_TYPES), np.int64)
_WORDS: Mapping[str, str] = {
    "certain": "certain",
    "at_least": "at least as shown (the group may have had more)",
    "unknown": "unknown",
}
_SUPERSEDED = "every missing record was superseded or removed before this moment"
_PENDING = "a pending commit may have superseded the valid one"


def grade_groups(reader: SegmentReader, state: CoordinatorState) -> pa.Table:
    """Return the grades of every group of this state, as `COMPLETENESS`, sorted by group. `reader` reads the logs of the state."""
    grading = Grading(state)
    collect(reader, [grading])
    return grading.table()


class Grading:
    """Collect from each log of a state what its grades need; the moment is that of the load."""

    def __init__(self, state: CoordinatorState) -> None:
        loaded: list[LoadRow] = state.loads.to_pylist()
        self._state = state
        self._loads: dict[Origin, LoadRow] = {(row["replica"], row["offsets_partition"]): row for row in loaded}
        self._directories: dict[Origin, PartitionDirectory] = {}
        self._read: dict[Origin, tuple[ExtentReader, GapReader, LaterRecords]] = {}

    def of(self, partition: PartitionDirectory) -> Sequence[LogCollector]:
        """Return the readers for the log in this directory; none if it was not loaded."""
        origin = (partition.replica, partition.offsets_partition)
        if origin not in self._loads:
            return ()
        if origin not in self._read:
            self._directories[origin] = partition
            later = LaterRecords(partition.start_offset, _moment_offset(self._loads[origin], partition.start_offset))
            self._read[origin] = ExtentReader(), GapReader(), later
        return self._read[origin]

    def table(self) -> pa.Table:
        """Return the grades of every group of the state, as `COMPLETENESS`, sorted by group."""
        shown: dict[Origin, set[str]] = {origin: set() for origin in self._loads}
        pending: dict[Origin, set[str]] = {origin: set() for origin in self._loads}
        for name in ("groups", "offsets", "pending_offsets"):
            for row in self._state.tables[name].select(["replica", "offsets_partition", "group"]).to_pylist():
                origin = (row["replica"], row["offsets_partition"])
                shown[origin].add(row["group"])
                if name == "pending_offsets":
                    pending[origin].add(row["group"])
        rows: list[CompletenessRow] = []
        for origin in self._read:
            rows += _rows(self._past(origin), self._loads[origin], shown[origin], pending[origin])
        rows.sort(key=lambda row: (row["group"] is None, row["group"], row["replica"]))
        return table_of(COMPLETENESS, rows)

    def _past(self, origin: Origin) -> _Past:
        directory, (extent, gaps, later) = self._directories[origin], self._read[origin]
        found = gaps.gaps(extent.extent(directory))
        found = found.between(found.extent.start_offset, found.extent.end_offset)
        moment_offset = _moment_offset(self._loads[origin], directory.start_offset)
        return _Past(directory, moment_offset, found, later.first_of_group, later.first_marker(found))


def grade_at_end(load: LoadRow, extent: LogExtent, *, has_damage: bool, is_pending: bool) -> tuple[Grade, str]:
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
    if is_pending:
        return "at_least", f"{extent.missing_after_start} record offsets are missing, and {_PENDING}"
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
    #: The first record of each group after the moment.
    first_later: Mapping[str, int]
    #: The first end marker after the moment whose transaction may lack records before the moment.
    first_marker: int | None

    @property
    def extent(self) -> LogExtent:
        return self.gaps.extent

    @property
    def last_offset(self) -> int:
        """The last record offset up to the moment, or of the log."""
        end = self.extent.end_offset - 1
        return end if self.moment_offset is None else min(self.moment_offset, self.extent.next_offset - 1)


def _moment_offset(load: LoadRow, start_offset: int) -> int | None:
    if load["at_offset"] is not None:
        return load["at_offset"]
    if load["at_time_ms"] is None:
        return None
    return start_offset - 1 if load["last_record_offset"] is None else load["last_record_offset"]


def _rows(past: _Past, load: LoadRow, shown: set[str], pending: set[str]) -> Iterator[CompletenessRow]:
    extent, last_offset = past.extent, past.last_offset
    before = past.gaps.between(0, last_offset)
    missing, last_record = before.missing_offsets, min(last_offset, extent.next_offset - 1)
    for group in [*sorted({*shown, *past.first_later}), None]:
        grade, reason = _grade(past, load, missing, group, is_shown=group in shown, is_pending=group in pending)
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
            "next_record_offset": past.first_later.get(group) if group is not None else None,
            "first_dirty_offset": extent.cleaner_offset,
        }


def _grade(past: _Past, load: LoadRow, missing: int, group: str | None, *, is_shown: bool, is_pending: bool) -> tuple[Grade, str]:
    doubtful: Grade = "at_least" if is_shown else "unknown"
    if load["outcome"] not in LOADED_IN_MEMORY:
        return "unknown", f"the load ended as {load['outcome']}"
    damage = past.gaps.first_damage_offset
    if damage is not None and damage <= past.last_offset:
        return "unknown", f"damage from record offset {damage} on may have destroyed records"
    if past.extent.start_offset > 0:
        return doubtful, _begins_late(past.extent.start_offset)
    if not missing:
        return "certain", f"the log has every record up to {past.last_offset}"
    suspect = _suspect(past, group, is_pending=is_pending)
    if suspect is None:
        return "certain", _SUPERSEDED
    return doubtful, f"{missing} record offsets are missing, and {suspect}"


def _suspect(past: _Past, group: str | None, *, is_pending: bool) -> str | None:
    """Return which later records may have replaced records of this group that counted at the moment; None if none. No group: any group."""
    if past.first_marker is not None:
        return f"some may be commits that were pending until end marker {past.first_marker}"
    if is_pending:
        return _PENDING
    own, cleaned = None if group is None else past.first_later.get(group), past.gaps.cleaned_up_to()
    if own is not None and own < cleaned:
        return f"a later record of the group, {own}, may have superseded some of them"
    gap = past.gaps.first_after(past.last_offset)
    return None if gap is None or gap >= cleaned else f"so is {gap} after the moment, which may have superseded some of them"


def _begins_late(start_offset: int) -> str:
    return f"the log begins at {start_offset}: earlier records are gone, superseded or not"


class LaterRecords(LogCollector):
    """Read the records of one log after a moment.

    `moment_offset` is the last record offset up to the moment; None for the end of the log. A broker starts to read at `start_offset`.
    """

    def __init__(self, start_offset: int, moment_offset: int | None) -> None:
        #: The first record of each group after the moment.
        self.first_of_group: dict[str, int] = {}
        self._start_offset, self._moment_offset = start_offset, moment_offset
        #: Producer id and record offset of each control record, in the order of the log.
        self._markers: list[tuple[int, int]] = []

    def add_records(self, block: RecordBlock) -> None:
        """Add these records."""
        moment_offset = self._moment_offset
        if moment_offset is None:
            return
        batches, offsets = block.records[fields.BATCH], block.records[fields.OFFSET]
        is_control = block.batches.columns[scan.ATTRIBUTES][batches] & scan.CONTROL != 0
        is_in_log = offsets >= self._start_offset
        markers = np.flatnonzero(is_control & is_in_log)
        if len(markers):
            producers = block.batches.columns[scan.PRODUCER_ID][batches[markers]]
            self._markers += zip(producers.tolist(), offsets[markers].tolist(), strict=True)
        is_later = ~is_control & is_in_log & (offsets > moment_offset)
        if is_later.any():
            self._note_groups(block if is_later.all() else block.only(np.flatnonzero(is_later)))

    def _note_groups(self, later: RecordBlock) -> None:
        found = np.empty((keys.COLUMNS, len(later)), np.int64)
        keys.read_keys(later.data, later.records, found)
        is_read = (found[keys.IS_READ] != 0) & np.isin(later.records[fields.RECORD_TYPE], _KNOWN_TYPES)
        named = [(number, _group_of(later.key_and_value(number)[0])) for number in np.flatnonzero(~is_read).tolist()]
        numbers = np.flatnonzero(is_read)
        if len(numbers):
            names = texts(later.data, found[keys.GROUP_START][numbers], found[keys.GROUP_SIZE][numbers], pa.string()).dictionary_encode()
            _, firsts = np.unique(names.indices.to_numpy(), return_index=True)
            named += zip(numbers[firsts].tolist(), names.dictionary.to_pylist(), strict=True)
        for number, group in sorted(named, key=lambda each: each[0]):
            self._note_group(group, int(later.records[fields.OFFSET, number]))

    def _note_group(self, group: str | None, record_offset: int) -> None:
        if group is not None:
            self.first_of_group.setdefault(group, record_offset)

    def first_marker(self, gaps: LogGaps) -> int | None:
        """Return the first end marker after the moment whose transaction may lack records before the moment; None if there is none."""
        if self._moment_offset is None:
            return None
        last: dict[int, int] = {}
        for producer_id, record_offset in self._markers:
            begin = last.get(producer_id, self._start_offset - 1) + 1
            last[producer_id] = record_offset
            if record_offset > self._moment_offset and gaps.has_any(begin, self._moment_offset):
                return record_offset
        return None


def _group_of(key: bytes | None) -> str | None:
    """Return the group that this key names; None if it names no group."""
    group = decode_record(key, None).key.get("group")
    return group if isinstance(group, str) else None
