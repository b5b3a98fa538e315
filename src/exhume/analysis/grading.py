"""Read logs for the grades of `completeness`: of a state, or of group records at a moment."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from exhume.analysis.completeness import COMPLETENESS, CompletenessRow, Past, PendingCommit
from exhume.analysis.log_extent import ExtentReader
from exhume.analysis.log_gaps import GapReader, LogGaps
from exhume.analysis.memberships import Membership, is_before_cut
from exhume.analysis.past_records import CleanerBound, ClockReader, LaterRecordReader, LaterRecords
from exhume.arrow_rows import Origin, table_of
from exhume.codecs.log_directory import PartitionDirectory
from exhume.codecs.log_pass import LogCollector, collect
from exhume.codecs.segment_reader import SegmentReader
from exhume.replay.moment import Moment
from exhume.replay.state import CoordinatorState
from exhume.replay.state_tables import LoadRow, OffsetRow
from exhume.replay.verdict import LOADED_IN_MEMORY


def grade_groups(reader: SegmentReader, state: CoordinatorState) -> pa.Table:
    """Return the grades of every group of this state, as `COMPLETENESS`, sorted by group. `reader` reads the logs of the state."""
    grading = Grading(state)
    collect(reader, [grading])
    return grading.table()


@dataclass(slots=True)
class _Readers:
    """The readers of one log that do not need to know where the moment is; `clock` is for a time of the append clock."""

    directory: PartitionDirectory
    clock: ClockReader | None
    extent: ExtentReader = field(default_factory=ExtentReader)
    gaps: GapReader = field(default_factory=GapReader)
    bound: CleanerBound = field(default_factory=CleanerBound)

    def collectors(self) -> list[LogCollector]:
        return [self.extent, self.gaps, self.bound, *(() if self.clock is None else (self.clock,))]

    def found(self) -> tuple[LogGaps, int]:
        """Return the gaps of the log, and the offset that the cleaner cannot have reached."""
        gaps = self.gaps.gaps(self.extent.extent(self.directory))
        gaps = gaps.between(gaps.extent.start_offset, gaps.extent.end_offset)
        return gaps, self.bound.before(gaps.extent.end_offset)


class Grading:
    """Collect from each log of a state what its grades need; the moment is that of the load."""

    def __init__(self, state: CoordinatorState) -> None:
        loaded: list[LoadRow] = state.loads.to_pylist()
        self._state = state
        self._loads: dict[Origin, LoadRow] = {(row["replica"], row["offsets_partition"]): row for row in loaded}
        self._read: dict[Origin, tuple[_Readers, LaterRecordReader]] = {}

    def of(self, partition: PartitionDirectory) -> Sequence[LogCollector]:
        """Return the readers for the log in this directory; none if it was not loaded."""
        origin = (partition.replica, partition.offsets_partition)
        if origin not in self._loads:
            return ()
        if origin not in self._read:
            load = self._loads[origin]
            time_ms = load["at_time_ms"] if load["clock"] == "append" else None
            later = LaterRecordReader(partition.start_offset, _moment_offset(load, partition.start_offset))
            self._read[origin] = _Readers(partition, None if time_ms is None else ClockReader(time_ms)), later
        readers, later = self._read[origin]
        return [*readers.collectors(), later]

    def table(self, also: Mapping[Origin, Collection[str]] | None = None) -> pa.Table:
        """Return the grades of every group of the state, as `COMPLETENESS`, sorted by group.

        `also` are groups with a record in a log that may not be in the state: by replica and offsets partition.
        """
        shown: dict[Origin, set[str]] = {origin: set() for origin in self._loads}
        for name in ("groups", "offsets", "pending_offsets"):
            for row in self._state.tables[name].select(["replica", "offsets_partition", "group"]).to_pylist():
                shown[row["replica"], row["offsets_partition"]].add(row["group"])
        pending: dict[Origin, dict[str, list[PendingCommit]]] = {origin: {} for origin in self._loads}
        commits: list[OffsetRow] = self._state.pending_offsets.to_pylist()
        for each in commits:
            if each["producer_id"] is not None:
                own = pending[each["replica"], each["offsets_partition"]].setdefault(each["group"], [])
                own.append((each["producer_id"], each["record_offset"]))
        rows: list[CompletenessRow] = []
        for origin in self._read:
            rows += self._past(origin).rows(shown[origin], pending[origin], also=(also or {}).get(origin, ()))
        return _sorted(rows)

    def _past(self, origin: Origin) -> Past:
        load, (readers, reader) = self._loads[origin], self._read[origin]
        later, start_offset = reader.later(), readers.directory.start_offset
        gaps, cleaned_before = readers.found()
        moment_offset, end_offset = _moment_offset(load, start_offset), gaps.extent.end_offset
        last_offset = last_possible_offset = end_offset - 1
        if load["at_time_ms"] is not None:
            last_offset = start_offset - 1 if later.last is None else later.last
            last_possible_offset = (end_offset if later.first is None else later.first) - 1
        elif moment_offset is not None:
            last_offset = last_possible_offset = min(moment_offset, end_offset - 1)
        # Readers know the times of appends only.
        is_disordered = load["at_time_ms"] is not None and not load["is_ordered_by_clock"]
        return Past(
            partition=readers.directory,
            gaps=gaps,
            last_offset=last_offset,
            last_possible_offset=last_possible_offset,
            later=later,
            cleaned_before=cleaned_before,
            not_loaded=None if load["outcome"] in LOADED_IN_MEMORY else f"the load ended as {load['outcome']}",
            keeps_empty_groups=load["coordinator"] == "java",
            is_time_doubtful=is_disordered and (readers.clock is None or readers.clock.is_doubtful()),
        )


class MembershipGrading:
    """Collect from logs what the grades of group records at a moment need."""

    def __init__(self, at: Moment) -> None:
        self._at = at
        self._read: dict[Origin, _Readers] = {}
        self._shown: dict[Origin, set[str]] = {}
        self._later: dict[Origin, dict[str, int]] = {}

    def of(self, partition: PartitionDirectory) -> Sequence[LogCollector]:
        """Return the readers for the log in this directory."""
        origin = (partition.replica, partition.offsets_partition)
        if origin not in self._read:
            self._read[origin] = _Readers(partition, None if self._at.time_ms is None else ClockReader(self._at.time_ms))
        return self._read[origin].collectors()

    def take(self, step: Membership, ends: Mapping[Origin, int]) -> None:
        """Take a step; `ends` are the first record offsets after the moment, of the logs that go on after it."""
        if is_before_cut(step, ends):
            self._shown.setdefault(step.origin, set()).add(step.group)
        else:
            self._later.setdefault(step.origin, {}).setdefault(step.group, step.record_offset)

    def table(self, ends: Mapping[Origin, int]) -> pa.Table:
        """Return the grades of the groups of the steps, as `COMPLETENESS`, sorted by group. Take all steps of the logs first."""
        rows: list[CompletenessRow] = []
        for origin, readers in self._read.items():
            past = self._past(readers, ends.get(origin), self._later.get(origin, {}))
            rows += past.rows(self._shown.get(origin, set()), {})
        return _sorted(rows)

    def _past(self, readers: _Readers, end: int | None, later: Mapping[str, int]) -> Past:
        gaps, cleaned_before = readers.found()
        last_possible_offset = last_offset = (gaps.extent.end_offset if end is None else min(end, gaps.extent.end_offset)) - 1
        if self._at.time_ms is not None:
            last_offset = gaps.last_present(last_offset)
        return Past(
            partition=readers.directory,
            gaps=gaps,
            last_offset=last_offset,
            last_possible_offset=last_possible_offset,
            later=LaterRecords(None, end, later, ()),
            cleaned_before=cleaned_before,
            is_time_doubtful=readers.clock is not None and readers.clock.is_doubtful(),
        )


def _moment_offset(load: LoadRow, start_offset: int) -> int | None:
    """Return the last record offset up to the moment; None for the end of the log."""
    if load["at_offset"] is not None:
        return load["at_offset"]
    if load["at_time_ms"] is None:
        return None
    return start_offset - 1 if load["last_record_offset"] is None else load["last_record_offset"]


def _sorted(rows: list[CompletenessRow]) -> pa.Table:
    rows.sort(key=lambda row: (row["group"] is None, row["group"], row["replica"]))
    return table_of(COMPLETENESS, rows)
