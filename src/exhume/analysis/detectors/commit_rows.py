"""Commits as columns of 64-bit numbers, for arithmetic over millions of them."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from exhume.analysis.detectors.commit_loops import loops
from exhume.analysis.detectors.commit_loops.columns import COMMIT_COLUMNS, CommitColumn
from exhume.analysis.detectors.commits import CommitRow
from exhume.analysis.number_columns import NONE, Int64s, numbers_of, or_none

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
        loops.look_up(codes, self.codes, self._slots, numbers)
        return numbers

    def _add(self, new: Int64s) -> None:
        """Number these new codes."""
        count = len(self.codes)
        self.codes = np.append(self.codes, new)
        if len(self._slots) < _SLOTS * len(self.codes):
            count, room = 0, 2 * _SLOTS * len(self.codes)
            # A random size: the author of a log must not be able to choose codes that collide.
            self._slots = np.full(room + secrets.randbelow(room), NONE, np.int64)
        loops.enter(self.codes, count, self._slots)


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
