"""Committed offsets of a fold as the `offsets` table, column by column."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from exhume.codecs.kernels.primitives import Bytes, Int64s
from exhume.codecs.wire import format_uuid
from exhume.replay.commits import CommitRules
from exhume.replay.holdings import Commit, OffsetKey
from exhume.replay.state_tables import SCHEMAS
from exhume.replay.survivors import tables as columns
from exhume.replay.survivors.gathering import gather_rows, gather_texts, order_keys
from exhume.replay.survivors.keys import GROUP, NAMED_COLUMNS, PARTITION, TOPIC, Int32s
from exhume.replay.survivors.names import SIZE, START, Names
from exhume.replay.survivors.settled import Settled

_SCHEMA = SCHEMAS["offsets"]
#: Above them are the 32 bits of a partition.
_MOST_RANKS = 1 << 31


@dataclass(frozen=True, slots=True)
class SettledOffsets:
    """The committed offsets of a fold, under the rules of a release: `holdings.OffsetColumns`."""

    settled: Settled
    rules: CommitRules

    def table(self, origin: Mapping[str, Any]) -> pa.Table:
        return _table(self.settled, self.rules, origin)

    def commits(self, groups: Collection[str] | None = None) -> Mapping[OffsetKey, Commit]:
        table = self.table({})
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
        return self.settled.spans()


def _table(settled: Settled, rules: CommitRules, origin: Mapping[str, Any]) -> pa.Table:
    tables = settled.tables
    groups, topics = _texts(tables.group_names, columns.GROUPS, tables), _texts(tables.topic_names, columns.TOPICS, tables)
    group_ranks, topic_ranks = _ranks(groups), _ranks(topics)
    keys, by_topic, partitions = _committed(tables, group_ranks, topic_ranks)
    if len(group_ranks) * len(topic_ranks) > _MOST_RANKS:
        by_topic = np.unique(by_topic, return_inverse=True)[1]
    order = np.argsort(by_topic << 32 | partitions.astype(np.int64) + (1 << 31))
    keys = keys[order]
    named = np.empty((NAMED_COLUMNS, len(keys)), np.int32)
    gather_rows(keys, tables.keys.rows, named)
    commits = np.empty((columns.COMMIT_COLUMNS, len(keys)), np.int64)
    gather_rows(keys, tables.commits, commits)
    versions = commits[columns.VERSION]
    is_transactional = commits[columns.PRODUCER] != 0
    rows = pa.table(
        {
            "record_offset": commits[columns.RECORD_OFFSET],
            "group": groups.take(pa.array(named[GROUP])),
            "topic": topics.take(pa.array(named[TOPIC])),
            "topic_id": _topic_ids(tables.key_topic_ids, keys, versions),
            "partition": pa.array(named[PARTITION]),
            "committed_offset": commits[columns.COMMITTED_OFFSET],
            "leader_epoch": _leader_epochs(commits[columns.LEADER_EPOCH], rules),
            "metadata": _metadata(commits[columns.METADATA], tables.metadata),
            "commit_timestamp_ms": commits[columns.COMMIT_TIMESTAMP],
            "expire_timestamp_ms": _expire_timestamps(commits, rules),
            "value_version": versions.astype(np.int16),
            "is_stable": _is_stable(keys, settled),
            **_producers(commits[columns.PRODUCER], is_transactional, tables),
        }
    )
    same = {name: pa.repeat(pa.scalar(origin.get(name), _SCHEMA.field(name).type), len(keys)) for name in ("replica", "offsets_partition")}
    return pa.table([same[name] if name in same else rows[name] for name in _SCHEMA.names], schema=_SCHEMA)


def _committed(tables: columns.Tables, group_ranks: Int64s, topic_ranks: Int64s) -> tuple[Int64s, Int64s, Int32s]:
    """The keys that have a committed offset, a number that orders their groups and topics, and their partitions."""
    count = int(tables.counts[columns.KEYS])
    keys, by_topic, partitions = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int32)
    committed = order_keys(count, tables.keys.rows, tables.commits, group_ranks, topic_ranks, by_topic, partitions, keys)
    return keys[:committed], by_topic[:committed], partitions[:committed]


def _texts(names: Names, count: int, tables: columns.Tables) -> pa.Array:
    places = names.places[: tables.counts[count]]
    return _strings(places[:, START], places[:, SIZE], names.content)


def _strings(starts: Int64s, sizes: Int64s, content: Bytes) -> pa.Array:
    """Texts that lie behind one another in `content`."""
    ends = starts + sizes
    if len(ends) and (starts[0] != 0 or (starts[1:] != ends[:-1]).any()):
        content = np.concatenate([content[start:end] for start, end in zip(starts, ends, strict=True)])
    offsets = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    return pa.StringArray.from_buffers(len(sizes), pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(content[: offsets[-1]])))


def _ranks(texts: pa.Array) -> Int64s:
    """Where each text comes in the order of all."""
    ranks = np.empty(len(texts), np.int64)
    ranks[np.array(sorted(range(len(texts)), key=texts.to_pylist().__getitem__), dtype=np.int64)] = np.arange(len(texts))
    return ranks


def _topic_ids(words: Int64s, keys: Int64s, versions: Int64s) -> pa.Array:
    has_id = versions >= 4
    if has_id.any():
        words = words[keys]
        has_id &= (words != 0).any(axis=1)
    if not has_id.any():
        return pa.nulls(len(keys), pa.string())
    distinct, numbers = np.unique(words, axis=0, return_inverse=True)
    texts = pa.array([format_uuid(pair.astype(">i8").tobytes()) for pair in distinct], pa.string())
    return texts.take(pa.array(numbers.ravel(), mask=~has_id))


def _leader_epochs(epochs: Int64s, rules: CommitRules) -> pa.Array:
    is_absent = epochs == -1 if rules.keeps_leader_epoch_below_minus_one else epochs < 0
    return pa.array(epochs.astype(np.int32), mask=is_absent)


def _metadata(packed: Int64s, content: Bytes) -> pa.Array:
    sizes = packed & (1 << columns.SIZE_BITS) - 1
    if not sizes.any():
        # Empty texts need offsets only.
        return _strings(np.zeros_like(sizes), sizes, content)
    texts = np.empty(int(sizes.sum()), np.uint8)
    gather_texts(packed, content, texts)
    return _strings(np.cumsum(sizes) - sizes, sizes, texts)


def _expire_timestamps(commits: Int64s, rules: CommitRules) -> pa.Array:
    written = commits[columns.EXPIRE_TIMESTAMP].copy()
    has_field = commits[columns.VERSION] == 1
    is_missing = ~has_field | (written == -1)
    if rules.missing_expire_timestamp == "retention":
        written[is_missing] = commits[columns.COMMIT_TIMESTAMP][is_missing] + rules.retention_ms
        return pa.array(written)
    return pa.array(written, mask=~has_field if rules.missing_expire_timestamp == "literal" else is_missing)


def _is_stable(keys: Int64s, settled: Settled) -> npt.NDArray[np.bool_]:
    pending = _pending_keys(settled)
    return ~np.isin(keys, pending) if len(pending) else np.ones(len(keys), np.bool_)


def _pending_keys(settled: Settled) -> Int64s:
    """Keys with a commit that waits for its marker."""
    tables = settled.tables
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


def _producers(packed: Int64s, is_transactional: npt.NDArray[np.bool_], tables: columns.Tables) -> dict[str, pa.Array]:
    if not is_transactional.any():
        return {"producer_id": pa.nulls(len(packed), pa.int64()), "producer_epoch": pa.nulls(len(packed), pa.int16())}
    numbers = np.maximum((packed >> columns.EPOCH_BITS) - 1, 0)
    epochs = (packed & (1 << columns.EPOCH_BITS) - 1).astype(np.uint16).astype(np.int16)
    return {
        "producer_id": pa.array(tables.producers[numbers, columns.TXN_PRODUCER_ID], mask=~is_transactional),
        "producer_epoch": pa.array(epochs, mask=~is_transactional),
    }
