"""Columns out of what a fold remembers: kernels."""

from __future__ import annotations

import numpy as np

from exhume.codecs.kernels import kernel
from exhume.codecs.kernels.primitives import Bytes, Int64s, Number
from exhume.replay.survivors.keys import GROUP, PARTITION, TOPIC, Int32s
from exhume.replay.survivors.tables import NOTHING, RECORD_OFFSET, SIZE_BITS

_SIZE_MASK = (1 << SIZE_BITS) - 1


@kernel
def span_offsets(count: Number, rows: Int32s, commits: Int64s, lowest: Int64s, highest: Int64s) -> None:
    """The lowest and the highest record offset of each group's commits, by the first `count` keys; `lowest` begins with the largest number,
    `highest` with -1.
    """
    for key in range(count):
        record_offset = commits[key, RECORD_OFFSET]
        if record_offset != NOTHING:
            group = rows[key, GROUP]
            lowest[group] = min(lowest[group], record_offset)
            highest[group] = max(highest[group], record_offset)


@kernel
def order_keys(
    count: Number,
    rows: Int32s,
    commits: Int64s,
    group_ranks: Int64s,
    topic_ranks: Int64s,
    by_topic: Int64s,
    partitions: Int32s,
    keys: Int64s,
) -> Number:
    """Of those of the first `count` keys that have a committed offset: a number that orders groups and topics, the partition, the key.

    Gives how many there are.
    """
    committed = np.int64(0)
    for key in range(count):
        if commits[key, RECORD_OFFSET] != NOTHING:
            by_topic[committed] = group_ranks[rows[key, GROUP]] * len(topic_ranks) + topic_ranks[rows[key, TOPIC]]
            partitions[committed] = rows[key, PARTITION]
            keys[committed] = key
            committed += 1
    return committed


@kernel
def gather_rows(keys: Int64s, rows: Int64s | Int32s, columns: Int64s | Int32s) -> None:
    """The rows of these keys, from their first entry on; each entry becomes a row of `columns`."""
    for index in range(len(keys)):
        row = rows[keys[index]]
        for column in range(len(columns)):
            columns[column, index] = row[column]


@kernel
def gather_texts(packed: Int64s, content: Bytes, texts: Bytes) -> None:
    """The bytes of these texts, one behind the other; `packed` is a column METADATA."""
    position = 0
    for each in packed:
        start, size = each >> SIZE_BITS, each & _SIZE_MASK
        for offset in range(size):
            texts[position + offset] = content[start + offset]
        position += size
