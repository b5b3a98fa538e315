"""Commits that stand out, kept as rows of numbers. An object is made only of a commit that a detector reads."""

from __future__ import annotations

from enum import IntEnum
from functools import cache
from typing import Any

import numpy as np

from exhume.analysis.detectors.commit_loops.columns import COMMIT_WITH_GROUP, NEVER, Bit, CommitColumn, Floats
from exhume.analysis.detectors.commit_rows import NameNumbers
from exhume.analysis.detectors.commits import GROUP_PHASES, REASONS, Change, Reason
from exhume.analysis.number_columns import Flags, Int64s


class ChangeColumn(IntEnum):
    """The first columns of a row. The columns of its commit follow, then those of the commit that it replaced (see `HAS_BEFORE`)."""

    KEY = 0
    REASONS = 1
    HAS_BEFORE = 2
    AT_STEP = 3
    AT_STEP_BEFORE = 4
    KNOWN_LEADER_EPOCH = 5
    KNOWN_TOPIC_ID = 6


_COMMIT = len(ChangeColumn)
_BEFORE = _COMMIT + COMMIT_WITH_GROUP


class ChangeTable:
    """Some changes in columns. `places` are the positions of their keys in the list of requested keys."""

    def __init__(self, kept: Changes, places: Int64s, rows: Int64s) -> None:
        self._kept, self.places, self._rows = kept, places, rows

    def __len__(self) -> int:
        return len(self.places)

    def change(self, column: ChangeColumn) -> Int64s:
        """Return a column of the changes themselves."""
        return self._column(column)

    def commit(self, column: CommitColumn) -> Int64s:
        """Return a column of the commits, up to `CommitColumn.STEPS`."""
        return self._column(_COMMIT + column)

    def before(self, column: CommitColumn) -> Int64s:
        """Return a column of the commits that they replaced, up to `CommitColumn.POSITION`."""
        return self._column(_BEFORE + column)

    def _column(self, column: int) -> Int64s:
        values: Int64s = self._kept.column(column)[self._rows]
        return values

    def has(self, *reasons: Reason) -> Flags:
        """Return True for each change that stands out for any of these reasons."""
        flags: Flags = self.change(ChangeColumn.REASONS) & _bits(reasons) != 0
        return flags

    def where(self, wanted: Flags) -> ChangeTable:
        """Return these changes only."""
        at = np.flatnonzero(wanted)
        return ChangeTable(self._kept, self.places[at], self._rows[at])

    def changes(self) -> list[Change]:
        """Return all changes as objects."""
        return self._kept.made(self._rows)


class Changes:
    """The changes of all keys of one log, added block by block."""

    def __init__(self, names: NameNumbers) -> None:
        self._names = names
        #: One row for each column. One table of all blocks would be copied whenever it grows.
        self._blocks: list[Int64s] = []
        self._usual_rises: list[Floats] = []
        #: The first row of each block, and of the next one.
        self._block_starts = [0]
        #: The columns that were requested, concatenated.
        self._columns: dict[int, Int64s] = {}
        #: The rows sorted by key, and the first row of each key among them.
        self._by_key = np.empty(0, np.int64)
        self._starts = np.zeros(1, np.int64)
        #: The table without changes.
        self.none = ChangeTable(self, self._by_key, self._by_key)

    def take(self, changes: Int64s, commits: Int64s, before: Int64s, usual_rises: Floats) -> None:
        """Add changes, those of each key in order.

        Args:
            changes: A row for each column of `ChangeColumn`.
            commits: A row for each column up to `CommitColumn.STEPS`.
            before: The replaced commits, a row for each column up to `CommitColumn.POSITION`.
            usual_rises: The usual rise of each change; NaN for none.
        """
        if len(usual_rises):
            self._blocks.append(np.concatenate([changes, commits, before]))
            self._usual_rises.append(usual_rises)
            self._block_starts.append(self._block_starts[-1] + len(usual_rises))
            self._columns.clear()

    def column(self, column: int) -> Int64s:
        """Return one column of all changes."""
        if column not in self._columns:
            self._columns[column] = np.concatenate([self._by_key[:0], *(block[column] for block in self._blocks)])
        return self._columns[column]

    def of(self, keys: Int64s) -> ChangeTable:
        """Return the changes of these keys, key by key, each in order. `places` are positions in `keys`."""
        self._sort_by_key()
        starts, ends = (self._starts[np.minimum(keys + more, len(self._starts) - 1)] for more in (0, 1))
        counts = ends - starts
        places = np.repeat(np.arange(len(keys)), counts)
        at = np.arange(len(places)) + np.repeat(starts - np.cumsum(counts) + counts, counts)
        return ChangeTable(self, places, self._by_key[at])

    def _sort_by_key(self) -> None:
        keys = self.column(ChangeColumn.KEY)
        if len(keys) == len(self._by_key):
            return
        self._by_key = np.argsort(keys, kind="stable")
        keys = keys[self._by_key]
        self._starts = np.searchsorted(keys, np.arange(keys[-1] + 2))

    def made(self, rows: Int64s) -> list[Change]:
        """Return these rows as objects."""
        blocks = np.searchsorted(self._block_starts, rows, side="right") - 1
        return [
            self._change(self._blocks[block][:, at].tolist(), float(self._usual_rises[block][at]))
            for block, at in zip(blocks.tolist(), (rows - np.array(self._block_starts)[blocks]).tolist(), strict=True)
        ]

    def _change(self, row: list[int], usual_rise: float) -> Change:
        return Change(
            reasons=_reasons_of(row[ChangeColumn.REASONS]),
            commit=self._names.commit(row[_COMMIT:_BEFORE]),
            before=self._names.commit(row[_BEFORE:]) if row[ChangeColumn.HAS_BEFORE] else None,
            phase=GROUP_PHASES[row[_COMMIT + CommitColumn.PHASE]],
            group_steps=row[_COMMIT + CommitColumn.STEPS],
            value_at_last_step=_value_or_none(row[ChangeColumn.AT_STEP]),
            value_at_step_before=_value_or_none(row[ChangeColumn.AT_STEP_BEFORE]),
            known_leader_epoch=row[ChangeColumn.KNOWN_LEADER_EPOCH],
            known_topic_id=self._names.topic_ids[row[ChangeColumn.KNOWN_TOPIC_ID]],
            usual_rise=None if np.isnan(usual_rise) else usual_rise,
        )


def _bits(reasons: tuple[Reason, ...]) -> int:
    return sum(Bit[reason.upper()] for reason in reasons)


@cache
def _reasons_of(bits: int) -> frozenset[Reason]:
    return frozenset(reason for reason in REASONS if bits & Bit[reason.upper()])


def _value_or_none(value: Any) -> int | None:
    return None if value == NEVER else int(value)
