"""Commits into lives of keys: numbers for each key, brought forward block by block, and the changes that stand out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from exhume.analysis.detectors.changes import BITS, NEVER, Changes
from exhume.analysis.detectors.commit_rows import NONE, Column, Flags, Int64s, Names, or_none
from exhume.analysis.detectors.commits import (
    JUMP_FLOOR,
    JUMP_RATIO,
    MOST_CHANGES,
    MOST_PAUSES,
    PAUSE_MS,
    PAUSE_RATIO,
    REASONS,
    STANDINGS,
    Dropped,
    Pause,
    Removal,
)
from exhume.analysis.detectors.recent import Recent

MINUTE_MS = 60_000
#: Commits in a minute that make it a hot one.
_HOT = 60
_EMPTY = STANDINGS.index("empty")

#: Numbers that are kept for each key, with what they begin as.
_BEGIN = {
    "has_value": 0,
    "is_removed": 0,
    "commits": 0,
    "first_offset": NONE,
    "first_time": NONE,
    "first_value": NONE,
    "has_first_value": 0,
    "lowest": np.iinfo(np.int64).max,
    "highest": NEVER,
    "repeats": 0,
    "bytes": 0,
    "metadata": 0,
    "largest_metadata": 0,
    "staged": 0,
    "without_leader_epoch": 0,
    "highest_leader_epoch": NONE,
    "was_rewound": 0,
    "steps": 0,
    "value_at_step": NEVER,
    "value_at_step_before": NEVER,
    "newest_offset": NONE,
    "minute": NONE,
    "in_minute": 0,
    "hot_run": 0,
    "hot_from": NONE,
    "hot_last": NONE,
    "hottest_run": 0,
    "hottest_from": NONE,
    "hottest_last": NONE,
}


class KeyLives:
    """The lives of all keys of one log, so far."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self._room = 0
        self.last = np.zeros((len(Column), 0), np.int64)
        self.numbers = {name: np.zeros(0, np.int64) for name in _BEGIN}
        self.counts = np.zeros((len(REASONS), 0), np.int64)
        self.rises, self.intervals = Recent(), Recent()
        self.changes = Changes(names)
        self.pauses: defaultdict[int, list[Pause]] = defaultdict(list)
        self.removals: defaultdict[int, list[Removal]] = defaultdict(list)
        self.dropped: defaultdict[int, list[Dropped]] = defaultdict(list)

    def _make_room(self) -> None:
        count = self.names.key_count
        self.rises.make_room(count)
        self.intervals.make_room(count)
        if count <= self._room:
            return
        more = max(count, 2 * self._room) - self._room
        self._room += more
        self.last = np.concatenate([self.last, np.zeros((len(Column), more), np.int64)], axis=1)
        self.counts = np.concatenate([self.counts, np.zeros((len(REASONS), more), np.int64)], axis=1)
        for name, begin in _BEGIN.items():
            self.numbers[name] = np.concatenate([self.numbers[name], np.full(more, begin, np.int64)])

    def drop(self, rows: Int64s, marker_offsets: Iterable[int], marker_times: Iterable[int]) -> None:
        """Note commits of transactions that were aborted, by these markers, or are open at the end."""
        self._make_room()
        for number, (offset, time) in enumerate(zip(marker_offsets, marker_times, strict=True)):
            key = int(rows[Column.KEY, number])
            kept = self.dropped[key]
            if len(kept) < MOST_CHANGES:
                commit = self.names.commit(rows[:, number].tolist())
                kept.append(Dropped(commit, "open", None, None) if offset == NONE else Dropped(commit, "ABORT", offset, or_none(time)))

    def take(self, rows: Int64s) -> None:
        """Add these commits, in the order in which they came to count. Nothing of them was staged in front of what was added before."""
        if not rows.shape[1]:
            return
        self._make_room()
        order = _by_key(rows[Column.KEY], self.names.key_count)
        if rows[Column.IS_STAGED].any():
            order = self._that_count(rows, order)
        _Block(self, rows, order).take()

    def _that_count(self, rows: Int64s, order: Int64s) -> Int64s:
        """Those that come later in the log than whatever counted already when they came to count."""
        keys, offsets = rows[Column.KEY][order], rows[Column.OFFSET][order]
        is_first = _changes_at(keys)
        span = int(offsets.max()) + 2
        before = self.numbers["newest_offset"][keys]
        joined = np.cumsum(is_first) * span + np.maximum(offsets, before)
        newest = np.maximum.accumulate(joined) - np.cumsum(is_first) * span
        previous = np.where(is_first, before, np.concatenate([[NONE], newest[:-1]]))
        counting: Int64s = order[offsets > previous]
        return counting


class _Block:
    """Some rows key by key: `order` are their places among `rows`."""

    def __init__(self, lives: KeyLives, rows: Int64s, order: Int64s) -> None:
        self.lives, self.rows, self.order = lives, rows, order
        self.keys = rows[Column.KEY][order]
        self.values = rows[Column.VALUE][order]
        self.times = rows[Column.TIME][order]
        self.is_first = _changes_at(self.keys)
        places = np.arange(len(order))
        self.starts = np.maximum.accumulate(np.where(self.is_first, places, 0))
        self.firsts = np.flatnonzero(self.is_first)
        self.is_tombstone = rows[Column.IS_TOMBSTONE][order] != 0
        # The place of the last commit in front of each row, in the same key; below 0: none of this block.
        commits = np.where(self.is_tombstone, -1, places)
        before = np.concatenate([[-1], np.maximum.accumulate(commits)[:-1]])
        self.before = np.where(before >= self.starts, before, -1)
        #: The number of each key of this block, once.
        self.numbers = self.keys[self.firsts]

    def _previous(self, column: Column) -> Int64s:
        """What this column was in the commit before each row: of no meaning where there is none."""
        own = self.values if column is Column.VALUE else self.times if column is Column.TIME else self.rows[column][self.order]
        previous: Int64s = np.where(self.before >= 0, own[self.before], self.lives.last[column][self.keys])
        return previous

    def take(self) -> None:
        state = self.lives.numbers
        has_before = (self.before >= 0) | (state["has_value"][self.keys] != 0)
        was_removed = np.where(self.is_first, state["is_removed"][self.keys] != 0, np.concatenate([[False], self.is_tombstone[:-1]]))
        is_commit = ~self.is_tombstone
        follows = is_commit & has_before & ~was_removed
        deltas = self.values - self._previous(Column.VALUE)
        why = self._reasons(is_commit, has_before, was_removed, follows, deltas)
        is_jump, usual = self._jumps(follows, deltas)
        why[is_jump] |= BITS["jump"]
        self._note_intervals(follows)
        at_step, at_step_before = self._values_at_steps(is_commit & has_before)
        self._keep_changes(why, has_before, at_step, at_step_before, usual)
        self._keep_removals(has_before & ~was_removed)
        self._count(follows & (deltas == 0))
        self._note_hot_minutes()
        self._finish()

    def _reasons(self, is_commit: Flags, has_before: Flags, was_removed: Flags, follows: Flags, deltas: Int64s) -> Int64s:
        rows, order, state = self.rows, self.order, self.lives.numbers
        is_rewind = follows & (deltas < 0)
        was_rewound = np.where(self.is_first, state["was_rewound"][self.keys] != 0, np.concatenate([[False], is_rewind[:-1]]))
        state["was_rewound"][self.numbers] = is_rewind[self._ends()]
        why = np.zeros(len(order), np.int64)
        why[is_rewind] |= BITS["rewind"]
        why[was_rewound & is_commit] |= BITS["after_rewind"]
        why[is_commit & was_removed] |= BITS["back"]
        why[is_commit & (rows[Column.STANDING][order] == _EMPTY)] |= BITS["while_empty"]
        compared = is_commit & has_before
        if rows[Column.TOPIC_ID].any():
            topic_id, before = rows[Column.TOPIC_ID][order], self._previous(Column.TOPIC_ID)
            why[compared & (topic_id != 0) & (before != 0) & (topic_id != before)] |= BITS["topic_id"]
        epoch = rows[Column.LEADER_EPOCH][order]
        why[compared & (epoch >= 0) & (epoch < self._previous(Column.LEADER_EPOCH))] |= BITS["leader_epoch"]
        return why

    def _jumps(self, follows: Flags, deltas: Int64s) -> tuple[Int64s, dict[int, float]]:
        """Places of rises that stand out, and what was usual for each."""
        rising = np.flatnonzero(follows & (deltas > 0))
        keys, rises = self.keys[rising], deltas[rising]
        usual = self.lives.rises.beyond(keys, rises, np.flatnonzero(rises > JUMP_FLOOR), JUMP_RATIO)
        self.lives.rises.take(keys, rises)
        found = {int(rising[place]): median for place, median in usual.items()}
        return np.array(sorted(found), np.int64), found

    def _note_intervals(self, follows: Flags) -> None:
        previous = self._previous(Column.TIME)
        timed = np.flatnonzero(follows & (self.times != NONE) & (previous != NONE))
        keys, intervals = self.keys[timed], np.maximum(self.times[timed] - previous[timed], 0)
        is_long = intervals > PAUSE_MS
        # Behind an interval that was long itself it is no pause.
        is_long[1:] &= (keys[1:] != keys[:-1]) | (intervals[1:] > PAUSE_RATIO * intervals[:-1])
        candidates = np.flatnonzero(is_long)
        if len(candidates):
            usual = self.lives.intervals.beyond(keys, intervals, candidates, PAUSE_RATIO)
            self._keep_pauses(timed[[*usual]], usual.values())
        self.lives.intervals.take(keys, intervals)

    def _keep_pauses(self, places: Int64s, usual_ms: Iterable[float]) -> None:
        commit = self.lives.names.commit
        rows, rows_before = self.rows[:, self.order[places]].T, self._rows_before(places).T
        for key, row, row_before, usual in zip(self.keys[places].tolist(), rows.tolist(), rows_before.tolist(), usual_ms, strict=True):
            kept = self.lives.pauses[key]
            kept.append(Pause(commit(row_before), commit(row), usual))
            if len(kept) > MOST_PAUSES:
                kept.remove(min(kept, key=lambda pause: pause.length_ms))

    def _values_at_steps(self, follows: Flags) -> tuple[Int64s, Int64s]:
        """What the key held when the group's last record came, and when the one before did that brought another value with it."""
        state, steps = self.lives.numbers, self.rows[Column.STEPS][self.order]
        values = self._previous(Column.VALUE)
        before = np.where(self.is_first, state["steps"][self.keys], np.concatenate([[0], steps[:-1]]))
        is_new = follows & (steps != before)
        at_step = self._carried(is_new, values, state["value_at_step"])
        at_step_previously = np.where(self.is_first, state["value_at_step"][self.keys], np.concatenate([[NEVER], at_step[:-1]]))
        at_step_before = self._carried(is_new, at_step_previously, state["value_at_step_before"])
        ends = self._ends()
        state["steps"][self.numbers] = steps[ends]
        state["value_at_step"][self.numbers] = at_step[ends]
        state["value_at_step_before"][self.numbers] = at_step_before[ends]
        return at_step, at_step_before

    def _carried(self, is_new: Flags, values: Int64s, state: Int64s) -> Int64s:
        """The last new value up to each row, of the same key; that of `state` where this block has none."""
        places = np.maximum.accumulate(np.where(is_new, np.arange(len(values)), -1))
        return np.where(places >= self.starts, values[places], state[self.keys])

    def _keep_changes(self, why: Int64s, has_before: Flags, at_step: Int64s, at_step_before: Int64s, usual: dict[int, float]) -> None:
        lives = self.lives
        places = np.flatnonzero(why)
        kept = np.zeros(len(places), np.int64)
        for number, bit in enumerate(BITS.values()):
            has = np.flatnonzero(why[places] & bit)
            if not len(has):
                continue
            keys = self.keys[places[has]]
            firsts = np.flatnonzero(_changes_at(keys))
            ordinal = np.arange(len(keys)) - np.repeat(firsts, np.diff(np.append(firsts, len(keys))))
            kept[has[ordinal + lives.counts[number][keys] < MOST_CHANGES]] |= bit
            np.add.at(lives.counts[number], keys, 1)
        self._append_changes(places[kept != 0], kept[kept != 0], has_before, at_step, at_step_before, usual)

    def _append_changes(  # noqa: PLR0917
        self, places: Int64s, why: Int64s, has_before: Flags, at_step: Int64s, at_step_before: Int64s, usual: dict[int, float]
    ) -> None:
        told = np.stack([self.keys[places], why, has_before[places], at_step[places], at_step_before[places]])
        usual_rises = np.array([usual.get(place, np.nan) for place in places.tolist()]) if usual else np.full(len(places), np.nan)
        self.lives.changes.take(told, self.rows[:, self.order[places]], self._rows_before(places), usual_rises)

    def _rows_before(self, places: Int64s) -> Int64s:
        """What these rows took the place of: of no meaning where there is nothing."""
        before = self.before[places]
        own = self.rows[:, self.order[before]]
        rows: Int64s = np.where(before >= 0, own, self.lives.last[:, self.keys[places]])
        return rows

    def _keep_removals(self, has_value: Flags) -> None:
        places = np.flatnonzero(self.is_tombstone)
        rows, rows_before = self.rows[:, self.order[places]].T, self._rows_before(places).T
        for key, row, row_before, removes in zip(
            self.keys[places].tolist(), rows.tolist(), rows_before.tolist(), has_value[places].tolist(), strict=True
        ):
            removals = self.lives.removals[key]
            if len(removals) >= MOST_CHANGES:
                continue
            removals.append(
                Removal(
                    record_offset=row[Column.OFFSET],
                    timestamp_ms=or_none(row[Column.TIME]),
                    byte_position=row[Column.POSITION],
                    standing=STANDINGS[row[Column.STANDING]],
                    group_steps=row[Column.STEPS],
                    value=self.lives.names.commit(row_before) if removes else None,
                )
            )

    def _count(self, is_repeat: Flags) -> None:
        rows, order, state, firsts = self.rows, self.order, self.lives.numbers, self.firsts
        numbers = self.numbers
        is_new = state["first_offset"][numbers] == NONE
        for name, column in (("first_offset", Column.OFFSET), ("first_time", Column.TIME), ("first_value", Column.VALUE)):
            state[name][numbers[is_new]] = rows[column][order[firsts[is_new]]]
        state["has_first_value"][numbers[is_new]] = ~self.is_tombstone[firsts[is_new]]
        is_commit = (~self.is_tombstone).astype(np.int64)

        def total(values: Int64s) -> Int64s:
            sums: Int64s = np.add.reduceat(values, firsts)
            return sums

        state["commits"][numbers] += total(is_commit)
        state["repeats"][numbers] += total(is_repeat.astype(np.int64))
        state["bytes"][numbers] += total(rows[Column.BYTES][order])
        metadata = rows[Column.METADATA][order]
        state["metadata"][numbers] += total(metadata)
        state["staged"][numbers] += total(rows[Column.IS_STAGED][order] * is_commit)
        epochs = rows[Column.LEADER_EPOCH][order]
        state["without_leader_epoch"][numbers] += total((epochs < 0) * is_commit)
        for name, values in (
            ("highest", np.where(self.is_tombstone, NEVER, self.values)),
            ("largest_metadata", metadata),
            ("highest_leader_epoch", epochs),
            ("newest_offset", rows[Column.OFFSET][order]),
        ):
            state[name][numbers] = np.maximum(state[name][numbers], np.maximum.reduceat(values, firsts))
        lowest = np.minimum.reduceat(np.where(self.is_tombstone, np.iinfo(np.int64).max, self.values), firsts)
        state["lowest"][numbers] = np.minimum(state["lowest"][numbers], lowest)

    def _note_hot_minutes(self) -> None:
        state = self.lives.numbers
        timed = np.flatnonzero(~self.is_tombstone & (self.times != NONE))
        if not len(timed):
            return
        keys, minutes = self.keys[timed], self.times[timed] // MINUTE_MS
        begins = _changes_at(keys)
        begins[1:] |= minutes[1:] != minutes[:-1]
        places = np.flatnonzero(begins)
        counts = np.diff(np.append(places, len(keys)))
        run_keys, run_minutes = keys[places], minutes[places]
        is_first = _changes_at(run_keys)
        counts += np.where(is_first & (state["minute"][run_keys] == run_minutes), state["in_minute"][run_keys], 0)
        for place in np.flatnonzero(counts >= _HOT).tolist():
            self._note_hot(int(run_keys[place]), int(run_minutes[place]))
        ends = np.append(np.flatnonzero(is_first)[1:], len(run_keys)) - 1
        state["minute"][run_keys[ends]], state["in_minute"][run_keys[ends]] = run_minutes[ends], counts[ends]

    def _note_hot(self, key: int, minute: int) -> None:
        state = self.lives.numbers
        last = state["hot_last"][key]
        if last == minute:
            return
        if last == minute - 1:
            state["hot_run"][key] += 1
        else:
            state["hot_run"][key], state["hot_from"][key] = 1, minute
        state["hot_last"][key] = minute
        if state["hot_run"][key] > state["hottest_run"][key]:
            for name in ("run", "from", "last"):
                state[f"hottest_{name}"][key] = state[f"hot_{name}"][key]

    def _ends(self) -> Int64s:
        return np.append(self.firsts[1:], len(self.keys)) - 1

    def _finish(self) -> None:
        """Let the last commit of each key be what the next block begins with."""
        state, ends = self.lives.numbers, self._ends()
        state["is_removed"][self.numbers] = self.is_tombstone[ends]
        last = np.where(self.is_tombstone[ends], self.before[ends], ends)
        has_one = last >= 0
        self.lives.last[:, self.numbers[has_one]] = self.rows[:, self.order[last[has_one]]]
        state["has_value"][self.numbers[has_one]] = 1


def _by_key(keys: Int64s, count: int) -> Int64s:
    """The places of rows key by key, and in their order in each."""
    small = keys.astype(np.uint16) if count <= 1 << 16 else keys
    return np.argsort(small, kind="stable")


def _changes_at(keys: Int64s) -> Flags:
    """True at the first of each stretch of equal keys."""
    is_first = np.ones(len(keys), np.bool_)
    is_first[1:] = keys[1:] != keys[:-1]
    return is_first
