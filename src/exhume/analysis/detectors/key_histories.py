"""Turn commits into the histories of keys: numbers for each key, updated block by block, and the changes that stand out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from exhume.analysis.detectors.commit_loops import loops
from exhume.analysis.detectors.commit_loops.columns import (
    BEGINS,
    COMMIT_COLUMNS,
    COMMIT_WITH_GROUP,
    USUAL,
    CommitColumn,
    Floats,
    KeyColumn,
    NotedColumn,
)
from exhume.analysis.detectors.commit_rows import Changes, NameNumbers
from exhume.analysis.detectors.commits import (
    GROUP_PHASES,
    JUMP_FLOOR,
    JUMP_RATIO,
    MOST_CHANGES,
    MOST_PAUSES,
    PAUSE_MS,
    PAUSE_RATIO,
    REASONS,
    CommitPause,
    Dropped,
    Removal,
)
from exhume.analysis.number_columns import NONE, Int64s, or_none
from exhume.analysis.removals.evidence import KeptOffset

_UNKNOWN = -1
#: A minute with this many commits of a key is hot: more than one a second.
_HOT = 61
_BEGIN = np.array([BEGINS.get(column, 0) for column in KeyColumn], np.int64)
_CHANGE_COLUMNS = [
    NotedColumn.KEY,
    NotedColumn.WHY,
    NotedColumn.HAS_BEFORE,
    NotedColumn.AT_STEP,
    NotedColumn.AT_STEP_BEFORE,
    NotedColumn.KNOWN_LEADER_EPOCH,
    NotedColumn.KNOWN_TOPIC_ID,
]


class Recent:
    """The last `USUAL` values of each series, by its number. Values are 0 or more."""

    def __init__(self) -> None:
        # Ring buffers. Most series of a log with many keys never have a value, so a series gets its row with its first one. Row 0 is empty.
        self._values = np.full((1, USUAL), _UNKNOWN, np.int64)
        #: The number of values ever added to each row. Modulo `USUAL` it is the next position.
        self._given = np.zeros(1, np.int64)
        self._row_of = np.zeros(0, np.int64)
        self._rows = 1
        self._ordered = np.empty(USUAL, np.int64)

    def make_room(self, count: int) -> None:
        """Make room for this number of series."""
        if count > len(self._row_of):
            more = max(count, 2 * len(self._row_of)) - len(self._row_of)
            self._row_of = np.append(self._row_of, np.zeros(more, np.int64))

    def _add_rows(self, more: int) -> None:
        """Make room for at least this number of new rows."""
        needed = self._rows + more
        if needed > len(self._values):
            more = max(needed, 2 * len(self._values)) - len(self._values)
            self._values = np.concatenate([self._values, np.full((more, USUAL), _UNKNOWN, np.int64)])
            self._given = np.append(self._given, np.zeros(more, np.int64))

    def medians(self, series: Int64s) -> list[float | None]:
        """Return the median of the last values of each series; None if there are fewer than two."""
        values = np.sort(self._values[self._row_of[series]], axis=1)
        known = (values != _UNKNOWN).sum(axis=1)
        rows, first = np.arange(len(values)), USUAL - known
        low, high = values[rows, first + np.maximum(known - 1, 0) // 2 - (known == 0)], values[rows, first + known // 2 - (known == 0)]
        return [median if count > 1 else None for median, count in zip(((low + high) / 2).tolist(), known.tolist(), strict=True)]

    def last(self, series: int) -> list[int]:
        """Return the last values, the newest one last."""
        row = self._row_of[series]
        oldest = int(self._given[row]) % USUAL
        values: list[int] = self._values[row].tolist()
        return [value for value in values[oldest:] + values[:oldest] if value != _UNKNOWN]

    def judge(self, series: Int64s, values: Int64s, floor: int, ratio: float) -> Floats:
        """Add these values in order, and return the median before each value that stands out: see `commit_loops.loops.judge`."""
        self._add_rows(int(np.count_nonzero((values >= 0) & (self._row_of[series] == 0))))
        usual = np.empty(len(series), np.float64)
        self._rows = loops.judge(
            series, values, floor, float(ratio), self._row_of, self._values, self._given, self._rows, self._ordered, usual
        )
        return usual


class KeyHistories:
    """The histories of all keys of one log, so far."""

    def __init__(self, names: NameNumbers) -> None:
        self.names = names
        #: One row for each key: the columns of `KeyColumn`; the last commit; the number of commits that stood out, by `REASONS`.
        self._table = np.empty((0, len(KeyColumn)), np.int64)
        self.last = np.empty((0, COMMIT_COLUMNS), np.int64)
        self.counts = np.empty((0, len(REASONS)), np.int64)
        self.rises, self.intervals = Recent(), Recent()
        self.changes = Changes(names)
        self.pauses: defaultdict[int, list[CommitPause]] = defaultdict(list)
        self.removals: defaultdict[int, list[Removal]] = defaultdict(list)
        self.dropped: defaultdict[int, list[Dropped]] = defaultdict(list)

    def numbers(self, column: KeyColumn, keys: Int64s) -> Int64s:
        """Return this column of these keys."""
        numbers: Int64s = self._table[keys, column]
        return numbers

    def _make_room(self) -> None:
        count = self.names.key_count
        self.rises.make_room(count)
        self.intervals.make_room(count)
        room = len(self._table)
        if count <= room:
            return
        more = max(count, 2 * room) - room
        self._table = np.concatenate([self._table, np.tile(_BEGIN, (more, 1))])
        self.last, self.counts = (np.concatenate([table, np.zeros((more, table.shape[1]), np.int64)]) for table in (self.last, self.counts))

    def cut_room(self) -> None:
        """Give back the room for more keys, at the end of the log."""
        count = self.names.key_count
        self._table, self.last, self.counts = self._table[:count].copy(), self.last[:count].copy(), self.counts[:count].copy()
        self.changes.join()

    def drop(self, rows: Int64s, marker_offsets: Iterable[int], marker_times: Iterable[int]) -> None:
        """Add transactional commits that took no effect: aborted by these markers, or open at the end of the log."""
        self._make_room()
        for number, (offset, time) in enumerate(zip(marker_offsets, marker_times, strict=True)):
            key = int(rows[CommitColumn.KEY, number])
            kept = self.dropped[key]
            # The aborted ones may fill only half of the room: the open ones come last.
            if len(kept) < (2 * MOST_CHANGES if offset == NONE else MOST_CHANGES):
                commit = self.names.commit(rows[:, number].tolist())
                kept.append(Dropped(commit, "open", None, None) if offset == NONE else Dropped(commit, "ABORT", offset, or_none(time)))

    def take(self, rows: Int64s) -> None:
        """Add these commits, in the order in which they took effect.

        None of them was staged before a commit of an earlier call. If some are transactional, a commit takes effect only if it comes later
        in the log than all effective commits of its key.
        """
        self._make_room()
        rows, count = np.ascontiguousarray(rows), rows.shape[1]
        rises, intervals = np.empty(count, np.int64), np.empty(count, np.int64)
        noted, before = np.empty((count, len(NotedColumn)), np.int64), np.empty((count, COMMIT_COLUMNS), np.int64)
        keys, notes = loops.KeyTables(self._table, self.last, self.counts), loops.CommitNotes(rises, intervals, noted, before)
        is_late, floors = bool(rows[CommitColumn.IS_STAGED].any()), (JUMP_FLOOR, PAUSE_MS, PAUSE_RATIO, _HOT)
        met = loops.update_keys(rows, is_late, floors, keys, MOST_CHANGES, notes)
        noted, before = noted[:met], before[:met]
        usual_rises = self.rises.judge(rows[CommitColumn.KEY], rises, JUMP_FLOOR, JUMP_RATIO)
        usual_intervals = self.intervals.judge(rows[CommitColumn.KEY], intervals, PAUSE_MS, PAUSE_RATIO)
        loops.keep(noted, usual_rises, self.counts, MOST_CHANGES)
        self._keep_changes(rows, noted, before, usual_rises)
        self._keep_pauses(rows, noted, before, usual_intervals)
        self._keep_removals(rows, noted, before)

    def _keep_changes(self, rows: Int64s, noted: Int64s, before: Int64s, usual_rises: Floats) -> None:
        kept = np.flatnonzero(noted[:, NotedColumn.WHY])
        at = noted[kept, NotedColumn.ROW]
        self.changes.take(noted[kept][:, _CHANGE_COLUMNS].T, rows[:COMMIT_WITH_GROUP, at], before[kept].T, usual_rises[at])

    def _keep_pauses(self, rows: Int64s, noted: Int64s, before: Int64s, usual_intervals: Floats) -> None:
        usual = usual_intervals[noted[:, NotedColumn.ROW]]
        for place in np.flatnonzero((noted[:, NotedColumn.IS_LONG] != 0) & ~np.isnan(usual)).tolist():
            commit = self.names.commit(rows[:, noted[place, NotedColumn.ROW]].tolist())
            kept = self.pauses[int(noted[place, NotedColumn.KEY])]
            kept.append(CommitPause(self.names.commit(before[place].tolist()), commit, float(usual[place])))
            if len(kept) > MOST_PAUSES:
                kept.remove(min(kept, key=lambda pause: pause.length_ms))

    def _keep_removals(self, rows: Int64s, noted: Int64s, before: Int64s) -> None:
        is_tombstone = rows[CommitColumn.IS_TOMBSTONE, noted[:, NotedColumn.ROW]] != 0
        for place in np.flatnonzero(is_tombstone).tolist():
            removals = self.removals[int(noted[place, NotedColumn.KEY])]
            if len(removals) >= MOST_CHANGES:
                continue
            row = rows[:, noted[place, NotedColumn.ROW]].tolist()
            removals.append(
                Removal(
                    record_offset=row[CommitColumn.OFFSET],
                    timestamp_ms=or_none(row[CommitColumn.TIME]),
                    byte_position=row[CommitColumn.POSITION],
                    phase=GROUP_PHASES[row[CommitColumn.PHASE]],
                    group_steps=row[CommitColumn.STEPS],
                    value=self.names.commit(before[place].tolist()) if noted[place, NotedColumn.REMOVES] else None,
                )
            )


def oldest_survivors(histories: KeyHistories) -> dict[str, list[KeptOffset]]:
    """Return, for each topic with a tombstone, the oldest offset at the end of this log, and the oldest one of another group."""
    names = histories.names
    if not histories.removals:
        return {}
    topic_of, partition_of = names.topics_and_partitions(np.arange(names.key_count))
    group_of = names.groups_of_keys()
    keys = np.arange(names.key_count)
    is_held = (histories.numbers(KeyColumn.HAS_VALUE, keys) != 0) & (histories.numbers(KeyColumn.IS_REMOVED, keys) == 0)
    held = np.flatnonzero(is_held & np.isin(topic_of, topic_of[np.array([*histories.removals], np.int64)]))
    held = held[np.lexsort((histories.last[held, CommitColumn.OFFSET], topic_of[held]))]
    oldest = held[_firsts(topic_of[held])]
    # The group of the oldest offset, by topic.
    group_with_oldest = np.full(len(names.topics()), -1, np.int64)
    group_with_oldest[topic_of[oldest]] = group_of[oldest]
    of_others = held[group_of[held] != group_with_oldest[topic_of[held]]]
    groups, topics = [*names.groups], names.topics()
    found: dict[str, list[KeptOffset]] = {}
    for key in (*oldest.tolist(), *of_others[_firsts(topic_of[of_others])].tolist()):
        topic = topics[int(topic_of[key])]
        kept = KeptOffset(groups[int(group_of[key])], topic, int(partition_of[key]), int(histories.last[key, CommitColumn.OFFSET]))
        found.setdefault(topic, []).append(kept)
    return found


def _firsts(ordered: Int64s) -> npt.NDArray[Any]:
    """Return the first position of each different number in sorted numbers."""
    return np.flatnonzero(np.diff(ordered, prepend=-1))
