"""The numbers of groups and of keys that a log names: kernels."""

from __future__ import annotations

import numpy as np

from exhume.codecs.kernels import kernel
from exhume.codecs.kernels.primitives import NOT_EXACT, Bytes, Number, hash_of, int16, int32, kind_of_text
from exhume.replay.survivors import tables as columns
from exhume.replay.survivors.names import add_name, find_name
from exhume.replay.survivors.passing import pass_group
from exhume.replay.survivors.rules import ODD, PASSED_ON
from exhume.replay.survivors.tables import Tables


@kernel
def new_key(data: Bytes, start: Number, size: Number, key_hash: np.uint64, seed: Number, tables: Tables) -> Number:
    """The number of a key that was not there: group, topic and partition. `ODD` for what is no such key, `PASSED_ON` for odd names."""
    if size < 2:
        return ODD
    group_size = int16(data, start)
    group_start = start + 2
    if group_size < 0 or group_size > size - 8:
        return ODD
    topic_size = int16(data, group_start + group_size)
    topic_start = group_start + group_size + 2
    if topic_size < 0 or group_size + topic_size + 8 != size:
        return ODD
    if kind_of_text(data, group_start, group_size) == NOT_EXACT:
        return PASSED_ON
    if kind_of_text(data, topic_start, topic_size) == NOT_EXACT:
        # The loader is given a commit of this group, which can make it exist.
        pass_group(group_of(data, group_start, group_size, seed, tables), tables)
        return PASSED_ON
    counts = tables.counts
    topic_hash = hash_of(data, topic_start, topic_size, seed)
    topic = find_name(tables.topic_names, data, topic_start, topic_size, topic_hash)
    if topic < 0:
        topic = counts[columns.TOPICS]
        add_name(tables.topic_names, topic, counts[columns.TOPIC_BYTES], data, topic_start, topic_size, topic_hash)
        counts[columns.TOPICS] += 1
        counts[columns.TOPIC_BYTES] += topic_size
    key = counts[columns.KEYS]
    add_name(tables.keys, key, counts[columns.KEY_BYTES], data, start, size, key_hash)
    tables.keys.places[key, columns.KEY_GROUP] = group_of(data, group_start, group_size, seed, tables)
    tables.keys.places[key, columns.KEY_TOPIC] = topic
    tables.keys.places[key, columns.KEY_PARTITION] = int32(data, topic_start + topic_size)
    tables.commits[key, columns.RECORD_OFFSET] = columns.NOTHING
    counts[columns.KEYS] += 1
    counts[columns.KEY_BYTES] += size
    return key


@kernel
def group_of(data: Bytes, start: Number, size: Number, seed: Number, tables: Tables) -> Number:
    """The number of this group, known or new."""
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
