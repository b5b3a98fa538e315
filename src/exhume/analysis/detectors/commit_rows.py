"""Commits as rows of 64-bit numbers, for arithmetic over millions of them; and the rows of commits that stand out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import cache
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from exhume.analysis.detectors.commit_loops import loops
from exhume.analysis.detectors.commit_loops.columns import COMMIT_COLUMNS, COMMIT_WITH_GROUP, NEVER, Bit, CommitColumn, Floats
from exhume.analysis.detectors.commits import GROUP_PHASES, REASONS, Change, CommitRow, Reason
from exhume.analysis.number_columns import NONE, Flags, Int64s, NarrowTable, numbers_of, or_none
from exhume.int64 import random_number

#: The code of (group, topic), and of (that code, partition), each in 63 bits.
_TOPIC_BITS, _PARTITION_BITS = 31, 32
#: The least number of hash slots for each code.
_SLOTS = 2
#: The bytes of a commit without its texts, by value version: lengths, numbers and versions of key and value.
_FIXED_BYTES = np.array([28, 36, 28, 32, 28], np.int64)


class _Numbering:
    """Numbers for 64-bit codes, in the order of their first use. No code is negative."""

    def __init__(self) -> None:
        #: The codes in the order of their numbers.
        self.codes = np.empty(0, np.int64)
        self._slots = np.full(1, NONE, np.int64)
        #: The author of a log must not be able to choose codes that collide.
        self._seed = random_number()

    def of(self, codes: Int64s) -> Int64s:
        """Return the numbers of these codes. New codes get the next numbers, the lowest code first."""
        numbers = self._looked_up(codes)
        is_new = numbers == NONE
        if is_new.any():
            self._add(np.unique(codes[is_new]))
            numbers[is_new] = self._looked_up(codes[is_new])
        return numbers

    def _looked_up(self, codes: Int64s) -> Int64s:
        """Return the numbers of these codes; -1 for a new code."""
        numbers = np.empty(len(codes), np.int64)
        loops.look_up(codes, self.codes, self._slots, self._seed, numbers)
        return numbers

    def _add(self, new: Int64s) -> None:
        """Number these new codes."""
        count = len(self.codes)
        self.codes = np.append(self.codes, new)
        if len(self._slots) < _SLOTS * len(self.codes):
            count = 0
            self._slots = np.full(1 << (2 * _SLOTS * len(self.codes)).bit_length(), NONE, np.int64)
        loops.enter(self.codes, count, self._slots, self._seed)


class NameNumbers:
    """Numbers for groups, keys and topic ids, in the order of their first use."""

    def __init__(self) -> None:
        self.groups: dict[str, int] = {}
        self._topics: dict[str, int] = {}
        self._listed_topics: list[str] = []
        self._pairs, self._keys = _Numbering(), _Numbering()
        self.topic_ids: list[str | None] = [None]
        #: The topic of the first commit with each topic id.
        self.topics_by_id: dict[str, str] = {}
        self._topic_id_numbers: dict[str | None, int] = {None: 0}

    def group(self, name: str) -> int:
        return self.groups.setdefault(name, len(self.groups))

    @property
    def key_count(self) -> int:
        return len(self._keys.codes)

    def groups_of_keys(self) -> Int64s:
        """Return the group number of each key, by key number."""
        groups: Int64s = self._pairs.codes[self._keys.codes >> _PARTITION_BITS] >> _TOPIC_BITS
        return groups

    def topics(self) -> list[str]:
        """Return all topics, in the order of their numbers."""
        if len(self._listed_topics) < len(self._topics):
            self._listed_topics = [*self._topics]
        return self._listed_topics

    def topics_and_partitions(self, keys: Int64s) -> tuple[Int64s, Int64s]:
        """Return the topic numbers and the partitions of these keys."""
        codes = self._keys.codes[keys]
        partitions = codes & (1 << _PARTITION_BITS) - 1
        pairs = self._pairs.codes[codes >> _PARTITION_BITS]
        return pairs & (1 << _TOPIC_BITS) - 1, partitions - (partitions >> _PARTITION_BITS - 1 << _PARTITION_BITS)

    def rows(self, commits: pa.RecordBatch) -> Int64s:
        """Return these commits (of `schemas.decoded()["offset_commit"]`), all `readable`, as columns, in order."""
        rows = np.empty((len(CommitColumn), commits.num_rows), np.int64)
        if not commits.num_rows:
            return rows
        groups, topics = (_encoded(commits[name]) for name in ("group", "topic"))
        rows[CommitColumn.KEY], rows[CommitColumn.GROUP] = self._numbered(groups, topics, numbers_of(commits["partition"], 0))
        for column, name in _PLAIN.items():
            rows[column] = numbers_of(commits[name], NONE)
        rows[CommitColumn.IS_TOMBSTONE] = numbers_of(commits["is_tombstone"].cast(pa.int8()), 0)
        rows[CommitColumn.IS_STAGED] = numbers_of(commits["is_transactional"].cast(pa.int8()), 0)
        rows[CommitColumn.METADATA] = numbers_of(pc.binary_length(commits["metadata"]), 0)
        rows[CommitColumn.TOPIC_ID] = self._topic_ids_of(commits["topic_id"], commits["topic"])
        time = rows[CommitColumn.TIME]
        has_none = time == NONE
        if has_none.any():
            time[has_none] = rows[CommitColumn.COMMITTED_AT][has_none]
        texts = _sizes(groups) + _sizes(topics)
        # A version that is newer than all known ones has the fields of the newest one.
        fixed = _FIXED_BYTES[np.minimum(rows[CommitColumn.VERSION], len(_FIXED_BYTES) - 1)]
        rows[CommitColumn.BYTES] = texts + rows[CommitColumn.METADATA] + np.where(rows[CommitColumn.VERSION] < 0, 10, fixed)
        rows[CommitColumn.SETTLED] = rows[CommitColumn.OFFSET]
        rows[CommitColumn.PHASE] = rows[CommitColumn.STEPS] = 0
        return rows

    def _numbered(self, group_names: pa.DictionaryArray, topic_names: pa.DictionaryArray, partitions: Int64s) -> tuple[Int64s, Int64s]:
        """Return the key numbers and the group numbers."""
        groups = _name_numbers(group_names, self.group)
        topics = _name_numbers(topic_names, lambda name: self._topics.setdefault(name, len(self._topics)))
        pairs = self._pairs.of(groups << _TOPIC_BITS | topics)
        return self._keys.of(pairs << _PARTITION_BITS | partitions & (1 << _PARTITION_BITS) - 1), groups

    def _topic_ids_of(self, column: pa.Array, topics: pa.Array) -> Int64s | int:
        if column.null_count == len(column):
            return 0
        found = column.dictionary_encode()
        numbers = []
        for topic_id in found.dictionary.to_pylist():
            numbers.append(self._topic_id_numbers.setdefault(topic_id, len(self.topic_ids)))
            if numbers[-1] == len(self.topic_ids):
                self.topic_ids.append(topic_id)
                self.topics_by_id[topic_id] = topics[pc.index(column, topic_id).as_py()].as_py()
        places = numbers_of(found.indices, NONE)
        topic_ids: Int64s = np.array([*numbers, 0], np.int64)[places]
        return topic_ids

    def commit(self, values: Sequence[int]) -> CommitRow:
        """Make an object of one commit: its values in the order of `CommitColumn`, up to `POSITION`."""
        offset, time, value, epoch, metadata, committed_at, expires_at, version, producer, is_staged, topic_id, settled, position = values[
            :COMMIT_COLUMNS
        ]
        return CommitRow(
            offset,
            or_none(time),
            value,
            epoch,
            metadata,
            committed_at,
            expires_at if version == 1 else None,
            version,
            self.topic_ids[topic_id],
            producer if is_staged else None,
            settled,
            position,
        )


def readable(commits: pa.RecordBatch) -> pa.BooleanArray:
    """Return True for each of these commits (of `schemas.decoded()["offset_commit"]`) with a group, a topic, a partition and a value."""
    is_named = pc.and_(pc.is_valid(commits["group"]), pc.and_(pc.is_valid(commits["topic"]), pc.is_valid(commits["partition"])))
    return pc.and_(is_named, pc.or_(commits["is_tombstone"], pc.is_valid(commits["committed_offset"])))


_PLAIN = {
    CommitColumn.OFFSET: "record_offset",
    CommitColumn.TIME: "timestamp_ms",
    CommitColumn.VALUE: "committed_offset",
    CommitColumn.LEADER_EPOCH: "leader_epoch",
    CommitColumn.COMMITTED_AT: "commit_timestamp_ms",
    CommitColumn.EXPIRES_AT: "expire_timestamp_ms",
    CommitColumn.VERSION: "value_version",
    CommitColumn.PRODUCER: "producer_id",
    CommitColumn.POSITION: "byte_position",
}


def _encoded(names: pa.Array) -> pa.DictionaryArray:
    """Encode names as a dictionary of the different ones, in the order of their first use."""
    encoded = names.dictionary_encode()
    news = np.diff(np.maximum.accumulate(numbers_of(encoded.indices, 0)), prepend=-1)
    if news.max() <= 1 and news.sum() == len(encoded.dictionary):
        return encoded
    # The dictionary still contains names of rows that were filtered out.
    return encoded.cast(pa.string()).dictionary_encode()


def _name_numbers(names: pa.DictionaryArray, number: Callable[[str], int]) -> Int64s:
    return _by_row(names, np.array([number(name) for name in names.dictionary.to_pylist()], np.int64))


def _sizes(names: pa.DictionaryArray) -> Int64s:
    """Return the bytes of each name."""
    return _by_row(names, numbers_of(pc.binary_length(names.dictionary), 0))


def _by_row(names: pa.DictionaryArray, of_different: Int64s) -> Int64s:
    """Return a number for each row, from one number for each different name."""
    numbers: Int64s = of_different[numbers_of(names.indices, 0)]
    return numbers


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
_COLUMNS = _BEFORE + COMMIT_COLUMNS


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
        return self._kept.join().column(column, self._rows)

    def has(self, *reasons: Reason) -> Flags:
        """Return True for each change that stands out for any of these reasons."""
        flags: Flags = self.change(ChangeColumn.REASONS) & _bits(reasons) != 0
        return flags

    def where(self, wanted: Flags) -> ChangeTable:
        """Return these changes only."""
        return self.at(np.flatnonzero(wanted))

    def at(self, numbers: Int64s) -> ChangeTable:
        """Return the changes with these numbers, counted from 0."""
        return ChangeTable(self._kept, self.places[numbers], self._rows[numbers])

    def changes(self) -> list[Change]:
        """Return all changes as objects."""
        return self._kept.made(self._rows)


class Changes:
    """The changes of all keys of one log, added block by block."""

    def __init__(self, names: NameNumbers) -> None:
        self._names = names
        #: Tables with a column for each row of `take`, and the usual rises.
        self._tables: list[NarrowTable] = []
        self._usual_rises: list[Floats] = []
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
            self._tables.append(NarrowTable(chain(changes, commits, before)))
            self._usual_rises.append(usual_rises)

    def join(self) -> NarrowTable:
        """Make one table of all changes, and return it."""
        if len(self._tables) != 1:
            self._tables = [NarrowTable.joined(self._tables) if self._tables else NarrowTable(np.empty((_COLUMNS, 0), np.int64))]
            self._usual_rises = [np.concatenate([np.empty(0), *self._usual_rises])]
        return self._tables[0]

    def of(self, keys: Int64s) -> ChangeTable:
        """Return the changes of these keys, key by key, each in order. `places` are positions in `keys`."""
        self._sort_by_key()
        starts, ends = (self._starts[np.minimum(keys + more, len(self._starts) - 1)] for more in (0, 1))
        counts = ends - starts
        places = np.repeat(np.arange(len(keys)), counts)
        at = np.arange(len(places)) + np.repeat(starts - np.cumsum(counts) + counts, counts)
        return ChangeTable(self, places, self._by_key[at])

    def _sort_by_key(self) -> None:
        if len(self.join()) == len(self._by_key):
            return
        keys = self.join().column(ChangeColumn.KEY)
        self._by_key = np.argsort(keys, kind="stable")
        keys = keys[self._by_key]
        self._starts = np.searchsorted(keys, np.arange(keys[-1] + 2))

    def made(self, rows: Int64s) -> list[Change]:
        """Return these rows as objects."""
        table = self.join().rows(rows)
        return [*map(self._change, table.tolist(), self._usual_rises[0][rows].tolist())]

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
