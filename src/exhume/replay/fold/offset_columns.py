"""Make the `offsets` table from the committed offsets of a fold, column by column."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from exhume.arrow_rows import OfLog, of_log
from exhume.codecs.columns.arrow import flags, numbers
from exhume.codecs.kernels.types import Bytes, Int16s, Int32s, Int64s
from exhume.codecs.wire import format_uuid
from exhume.replay.commits import CommitRules
from exhume.replay.fold import tables as columns
from exhume.replay.fold.folded_log import FoldedLog
from exhume.replay.fold.kernels.gathering import (
    BY_TOPIC,
    FIRST_PARTITION,
    RUN_COLUMNS,
    RUN_SIZE,
    SIZE_MASK,
    do_rise,
    find_runs,
    gather_column,
    gather_commits,
    gather_texts,
    list_keys,
    repeat_sizes,
)
from exhume.replay.fold.kernels.names import texts_of
from exhume.replay.partition_state import Commit, OffsetKey
from exhume.replay.state_tables import SCHEMAS

_SCHEMA = SCHEMAS["offsets"]
#: A rank is above the 32 bits of a partition in one number.
_MOST_RANKS = 1 << 31
#: The most bytes of the texts in one Arrow array.
_MOST_TEXT_BYTES = 0x7FFFFFFF
_LONGEST_RUN = 1 << 15


@dataclass(frozen=True, slots=True)
class FoldedOffsets:
    """The committed offsets of a fold, under the rules of a release: `partition_state.OffsetColumns`."""

    folded: FoldedLog
    rules: CommitRules

    def table(self, origin: OfLog) -> pa.Table:
        return _table(self.folded, self.rules, origin)

    def commits(self, groups: Collection[str] | None = None) -> Mapping[OffsetKey, Commit]:
        table = self.table(of_log(None, None))
        if groups is not None:
            table = table.filter(pc.is_in(table["group"], value_set=pa.array(sorted(groups), pa.string())))
        names = [each.name for each in fields(Commit) if each.name != "batch_first_offset"]
        return {
            (row["group"], row["topic"], row["partition"]): Commit(
                batch_first_offset=row["record_offset"], **{name: row[name] for name in names}
            )
            for row in table.to_pylist()
        }

    def spans(self) -> Mapping[str, tuple[int, int]]:
        return self.folded.spans()


def _table(folded: FoldedLog, rules: CommitRules, origin: OfLog) -> pa.Table:
    tables = folded.tables
    groups, group_ranks = _in_order(texts_of(tables.group_names, int(tables.counts[columns.GROUPS])))
    topics, topic_ranks = _in_order(texts_of(tables.topic_names, int(tables.counts[columns.TOPICS])))
    live = _live_keys(tables, group_ranks, topic_ranks)
    count = live.count
    partitions, epochs, versions = (columns.zeros((count,), kind) for kind in (np.int32, np.int32, np.int16))
    committed_offsets, record_offsets, timestamps, metadata = (columns.zeros((count,), np.int64) for _ in range(4))
    metadata_bytes = gather_commits(
        live.runs, tables.keys.rows, tables.commits, partitions, committed_offsets, record_offsets, timestamps, epochs, versions, metadata
    )
    rows = pa.table(
        {
            "record_offset": numbers(record_offsets, pa.int64()),
            "group": _names(live.runs, live.runs[BY_TOPIC] // max(len(topics), 1), groups),
            "topic": _names(live.runs, live.runs[BY_TOPIC] % max(len(topics), 1), topics),
            "topic_id": _topic_ids(live, versions),
            "partition": numbers(partitions, pa.int32()),
            "committed_offset": numbers(committed_offsets, pa.int64()),
            "leader_epoch": _leader_epochs(epochs, rules),
            "metadata": _metadata(metadata, metadata_bytes, tables.metadata),
            "commit_timestamp_ms": numbers(timestamps, pa.int64()),
            "expire_timestamp_ms": _expire_timestamps(live, versions, timestamps, rules),
            "value_version": numbers(versions, pa.int16()),
            "is_stable": _is_stable(live, folded),
            **_producers(live),
        }
    )
    same = {name: _same(value, _SCHEMA.field(name).type, count) for name, value in origin.items()}
    return pa.table([same[name] if name in same else rows[name] for name in _SCHEMA.names], schema=_SCHEMA)


@dataclass(slots=True)
class _LiveKeys:
    """The keys that have a committed offset, by group, topic and partition: runs of `gathering`, and their count."""

    tables: columns.Tables
    runs: Int64s
    count: int
    _keys: Int64s | None = None

    @property
    def keys(self) -> Int64s:
        if self._keys is None:
            self._keys = np.empty(self.count, np.int64)
            list_keys(self.runs, self._keys)
        return self._keys

    def column(self, column: int) -> Int64s:
        """Return a column of their commits."""
        values = np.empty(self.count, np.int64)
        gather_column(self.keys, self.tables.commits, column, values)
        return values


def _live_keys(tables: columns.Tables, group_ranks: Int64s, topic_ranks: Int64s) -> _LiveKeys:
    count = int(tables.counts[columns.KEYS])
    # Sort whole runs, unless the partitions of one run are between those of another.
    for longest in (_LONGEST_RUN, 1):
        runs = np.empty((RUN_COLUMNS, count), np.int64)
        found, committed = find_runs(count, tables.keys.rows, tables.commits, group_ranks, topic_ranks, longest, runs)
        by_topic, partitions = runs[BY_TOPIC, :found], runs[FIRST_PARTITION, :found]
        if len(group_ranks) * len(topic_ranks) > _MOST_RANKS:
            by_topic = np.unique(by_topic, return_inverse=True)[1]
        runs = np.take(runs, np.argsort(by_topic << 32 | partitions + (1 << 31)), axis=1)
        if do_rise(runs, tables.keys.rows):
            break
    return _LiveKeys(tables, runs, committed)


def _names(runs: Int64s, ranks: Int64s, names: pa.StringArray) -> pa.Array | pa.ChunkedArray:
    """Return the name of each key of these runs. A rank is a place in `names`; runs of one rank are taken together."""
    firsts = np.flatnonzero(np.diff(ranks, prepend=-1))
    return _repeated(names.take(numbers(ranks[firsts], pa.int64())), np.add.reduceat(runs[RUN_SIZE], firsts) if len(firsts) else firsts)


def _repeated(texts: pa.StringArray, times: Int64s) -> pa.Array | pa.ChunkedArray:
    """Repeat each of these texts so many times."""
    sizes, count = pc.binary_length(texts).to_numpy(), int(times.sum())
    size = int((sizes * times).sum())
    if size > _MOST_TEXT_BYTES and count > 1:
        half = len(texts) // 2
        parts = ((texts[:half], times[:half]), (texts[half:], times[half:])) if half else ((texts, times // 2), (texts, times - times // 2))
        return _joined(_repeated(*part) for part in parts)
    ends = columns.zeros((count + 1,), np.int32)
    repeat_sizes(sizes, times, ends[1:])
    return pa.StringArray.from_buffers(count, pa.py_buffer(ends), pc.binary_repeat(texts, numbers(times, pa.int64())).buffers()[2])


def _same(value: Any, data_type: pa.DataType, count: int) -> pa.Array | pa.ChunkedArray:
    if isinstance(value, str):
        return _repeated(pa.array([value], data_type), np.array([count]))
    return pa.repeat(pa.scalar(value, data_type), count)


def _joined(parts: Iterable[pa.Array | pa.ChunkedArray]) -> pa.ChunkedArray:
    return pa.chunked_array([chunk for each in parts for chunk in (each.chunks if isinstance(each, pa.ChunkedArray) else [each])])


def _in_order(texts: list[str]) -> tuple[pa.StringArray, Int64s]:
    """Return these texts in sorted order, and the rank of each text."""
    order = np.array(sorted(range(len(texts)), key=texts.__getitem__), dtype=np.int64)
    ranks = np.empty(len(texts), np.int64)
    ranks[order] = np.arange(len(texts))
    return pa.array(texts, pa.string()).take(numbers(order, pa.int64())), ranks


def _topic_ids(live: _LiveKeys, versions: Int16s) -> pa.Array:
    has_id = versions >= 4
    words = live.tables.key_topic_ids
    if has_id.any():
        words = words[live.keys]
        has_id &= (words != 0).any(axis=1)
    if not has_id.any():
        return pa.nulls(live.count, pa.string())
    distinct, places = np.unique(words, axis=0, return_inverse=True)
    texts = pa.array([format_uuid(pair.astype(">i8").tobytes()) for pair in distinct], pa.string())
    return texts.take(numbers(places.ravel(), pa.int64(), has_id))


def _leader_epochs(epochs: Int32s, rules: CommitRules) -> pa.Array:
    is_absent = epochs == -1 if rules.keeps_leader_epoch_below_minus_one else epochs < 0
    return numbers(epochs, pa.int32(), ~is_absent)


def _metadata(packed: Int64s, size: int, content: Bytes) -> pa.Array | pa.ChunkedArray:
    if size > _MOST_TEXT_BYTES and len(packed) > 1:
        half = len(packed) // 2
        return _joined(_metadata(part, int((part & SIZE_MASK).sum()), content) for part in (packed[:half], packed[half:]))
    ends, texts = columns.zeros((len(packed) + 1,), np.int32), columns.zeros((size,), np.uint8)
    gather_texts(packed, content, ends[1:], texts)
    return pa.StringArray.from_buffers(len(packed), pa.py_buffer(ends), pa.py_buffer(texts))


def _expire_timestamps(live: _LiveKeys, versions: Int16s, timestamps: Int64s, rules: CommitRules) -> pa.Array:
    has_field = versions == 1
    if not has_field.any() and rules.missing_expire_timestamp != "retention":
        return pa.nulls(live.count, pa.int64())
    written = live.column(columns.EXPIRE_TIMESTAMP)
    is_missing = ~has_field | (written == -1)
    if rules.missing_expire_timestamp == "retention":
        written[is_missing] = timestamps[is_missing] + rules.retention_ms
        return numbers(written, pa.int64())
    return numbers(written, pa.int64(), has_field if rules.missing_expire_timestamp == "literal" else ~is_missing)


def _is_stable(live: _LiveKeys, folded: FoldedLog) -> pa.Array:
    pending = _pending_keys(folded)
    return flags(~np.isin(live.keys, pending)) if len(pending) else pa.repeat(pa.scalar(True), live.count)


def _pending_keys(folded: FoldedLog) -> Int64s:
    """Return the keys with a commit that waits for its marker."""
    tables = folded.tables
    pending: list[int] = []
    producers = tables.producers[: tables.counts[columns.PRODUCERS]]
    for row in producers[producers[:, columns.TXN_IS_OPEN] == 1]:
        place = row[columns.TXN_FIRST_STAGED]
        while place >= 0:
            key = tables.staged[place, columns.STAGED_KEY]
            if tables.staged[place, columns.RECORD_OFFSET] >= tables.void_below[key, 0]:
                pending.append(int(key))
            place = tables.staged[place, columns.NEXT]
    return np.array(pending, np.int64)


def _producers(live: _LiveKeys) -> dict[str, pa.Array]:
    tables = live.tables
    packed = live.column(columns.PRODUCER) if tables.counts[columns.PRODUCERS] else np.zeros(0, np.int64)
    is_transactional = packed != 0
    if not is_transactional.any():
        return {"producer_id": pa.nulls(live.count, pa.int64()), "producer_epoch": pa.nulls(live.count, pa.int16())}
    producers = np.maximum((packed >> columns.EPOCH_BITS) - 1, 0)
    epochs = (packed & (1 << columns.EPOCH_BITS) - 1).astype(np.uint16).astype(np.int16)
    return {
        "producer_id": numbers(tables.producers[producers, columns.TXN_PRODUCER_ID], pa.int64(), is_transactional),
        "producer_epoch": numbers(epochs, pa.int16(), is_transactional),
    }
