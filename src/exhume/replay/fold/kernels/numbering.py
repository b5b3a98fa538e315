"""Numbers for the groups, topics and keys of a log: kernels."""

from __future__ import annotations

import numpy as np

from exhume.codecs.kernels import inlined, kernel
from exhume.codecs.kernels.primitives import NOT_EXACT, hash_of, kind_of_text
from exhume.codecs.kernels.types import Bytes, Int64s, Number, Rows
from exhume.replay.fold import tables as columns
from exhume.replay.fold.kernels.for_loader import pass_group
from exhume.replay.fold.kernels.keys import IN_LINE, Keys, add_key, fetch_slot, find_key, hash_of_key
from exhume.replay.fold.kernels.names import add_name, find_name
from exhume.replay.fold.rules import PASSED_ON
from exhume.replay.fold.tables import Tables


@inlined
def key_of(group: Number, topic: Number, partition: Number, seed: Number, keys: Keys, counts: Int64s, commits: Rows) -> Number:
    """Return the number of this key, known or new."""
    key_hash = hash_of_key(group, topic, partition, seed)
    key, slot = find_key(keys, group, topic, partition, key_hash)
    if key < 0:
        key = counts[columns.KEYS]
        add_key(keys, key, slot, group, topic, partition, key_hash)
        # If a key is new, the keys of the next line of the index are mostly new too.
        fetch_slot(keys, hash_of_key(group, topic, partition + IN_LINE, seed))
        commits[key, columns.RECORD_OFFSET] = columns.NOTHING
        counts[columns.KEYS] += 1
    return key


@kernel
def new_names(
    data: Bytes, group_start: Number, group_size: Number, topic_start: Number, topic_size: Number, seed: Number, tables: Tables
) -> tuple[Number, Number]:
    """Return the numbers of a group and a topic, of which at least one is new.

    Returns `PASSED_ON` for both if one of the names is not exact UTF-8.
    """
    passed_on = (np.int64(PASSED_ON), np.int64(PASSED_ON))
    if kind_of_text(data, group_start, group_size) == NOT_EXACT:
        return passed_on
    if kind_of_text(data, topic_start, topic_size) == NOT_EXACT:
        # The loader gets a commit of this group, and a commit can create the group.
        pass_group(group_of(data, group_start, group_size, seed, tables), tables)
        return passed_on
    counts = tables.counts
    topic_hash = hash_of(data, topic_start, topic_size, seed)
    topic = find_name(tables.topic_names, data, topic_start, topic_size, topic_hash)
    if topic < 0:
        topic = counts[columns.TOPICS]
        add_name(tables.topic_names, topic, counts[columns.TOPIC_BYTES], data, topic_start, topic_size, topic_hash)
        counts[columns.TOPICS] += 1
        counts[columns.TOPIC_BYTES] += topic_size
    return group_of(data, group_start, group_size, seed, tables), topic


@kernel
def group_of(data: Bytes, start: Number, size: Number, seed: Number, tables: Tables) -> Number:
    """Return the number of this group, known or new."""
    counts, names = tables.counts, tables.group_names
    group_hash = hash_of(data, start, size, seed)
    group = find_name(names, data, start, size, group_hash)
    if group < 0:
        group = counts[columns.GROUPS]
        add_name(names, group, counts[columns.GROUP_BYTES], data, start, size, group_hash)
        counts[columns.GROUPS] += 1
        counts[columns.GROUP_BYTES] += size
        tables.groups[group, columns.KIND] = columns.NO_KIND
        tables.groups[group, columns.FIRST_TOMBSTONE] = -1
        tables.groups[group, columns.FIRST_COMMIT] = -1
        tables.groups[group, columns.IS_PASSED_ON] = 0
        tables.groups[group, columns.HAS_VALUE] = 0
        tables.groups[group, columns.IS_NEW] = 0
        tables.groups[group, columns.LEFT_OUT] = 0
    return group
