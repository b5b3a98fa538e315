"""The fold itself, compiled: enter every record of a run of batches into `Tables`.

The fold does the work of the loaders for the records that all loaders read alike: commits and their tombstones, commits of transactions
and their markers, classic groups and their tombstones. It keeps the last commit of a key in columns, and of a group only the place of its
last record. It passes other records on to the loader, in `passed`. If a group has such a record, its group records are passed on too.

The status is not `DONE` for a batch that the kernel does not take; `careful_batches` may take it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exhume.codecs.kernels import inlined, kernel, scan
from exhume.codecs.kernels.primitives import NO_POSITION, NOT_EXACT, copy_bytes, hash_of, int16, int32, int64, is_same, kind_of_text
from exhume.codecs.kernels.readers import (
    COMMON_METADATA_AT,
    COMMON_VERSION,
    PARTITION_BYTES,
    TYPE_BYTES,
    Commit,
    common_metadata_size,
    read_commit,
    read_commit_key,
    read_common_commit,
)
from exhume.codecs.kernels.types import Bytes, Int64s, Number, Rows
from exhume.codecs.layouts.offsets import TOPIC_ID_SINCE
from exhume.codecs.record_types import LEGACY_OFFSET_COMMIT, OFFSET_COMMIT
from exhume.replay.fold import tables as columns
from exhume.replay.fold.kernels.checks import checked, split
from exhume.replay.fold.kernels.for_loader import pass_commit, pass_record
from exhume.replay.fold.kernels.groups import fold_other
from exhume.replay.fold.kernels.keys import NEXT, is_key
from exhume.replay.fold.kernels.names import find_name
from exhume.replay.fold.kernels.numbering import key_of, new_names
from exhume.replay.fold.kernels.transactions import fold_marker, producer_of, read_marker, stage
from exhume.replay.fold.rules import (
    ACCEPTED_0,
    ACCEPTED_1,
    DONE,
    IS_PART,
    LAST_COUNTED_OFFSET,
    LOWEST_OFFSET,
    NOT_PLAIN,
    NOT_PLAIN_KEY,
    NOT_PLAIN_MARKER,
    NOT_PLAIN_VALUE,
    PASSED_ON,
    SEED,
    START_OFFSET,
    TOMBSTONE_VOIDS,
    TRANSACTIONAL,
    TRANSACTIONAL_TOMBSTONE,
)
from exhume.replay.fold.tables import Tables


@kernel
def fold(rows: Rows, first: Number, count: Number, data: Bytes, bodies: Rows, segment: Number, rules: Int64s, tables: Tables) -> Number:
    """Fold batches `first` to `count` of `rows`; the bytes of their records in `data` are `bodies[:, 0]` to `bodies[:, 1]`.

    Returns the number of batches done; if that is less than `count`, `counts[STATUS]` has the reason. `tables` must have room.
    """
    counts = tables.counts
    for number in range(first, count):
        counts[columns.RECORDS_DONE] = 0
        status = checked(rows, number, rules, counts)
        last_offset = rows[number, scan.LAST_OFFSET]
        if status == DONE and last_offset < rules[START_OFFSET]:
            # The load leaves this batch out, but later batches of the segment must still come after it.
            rules[LOWEST_OFFSET] = last_offset + 1
            is_marker = rows[number, scan.ATTRIBUTES] & scan.CONTROL != 0
            outcome = NOT_PLAIN
            if is_marker:
                outcome, _ = read_marker(rows, number, data, bodies[number, 0], bodies[number, 1])
            if not is_marker or outcome != NOT_PLAIN:
                continue
            # A broker that starts after an unclean stop reads the marker.
            status = NOT_PLAIN_MARKER
        elif status == DONE:
            if rows[number, scan.ATTRIBUTES] & scan.CONTROL:
                status = fold_marker(rows, number, data, bodies[number, 0], bodies[number, 1], segment, rules, tables)
            else:
                status = _fold_records(rows, number, data, bodies[number, 0], bodies[number, 1], segment, rules, tables)
        if status != DONE:
            counts[columns.STATUS] = status
            return number
        counted, next_offset = rows[number, scan.RECORD_COUNT], last_offset + 1
        if last_offset >= rules[LAST_COUNTED_OFFSET]:
            counts[columns.IS_CUT] = 1
            if last_offset > rules[LAST_COUNTED_OFFSET]:
                rules[LOWEST_OFFSET] = last_offset + 1
                counted = _counted(rows, number, rules, tables.records)
                if counted == 0:
                    continue
                next_offset = tables.records[counted - 1, columns.OFFSET] + 1
        counts[columns.NEXT_OFFSET] = next_offset
        counts[columns.BATCH_BYTES] += rows[number, scan.SIZE]
        if counts[columns.FIRST_OFFSET] < 0:
            counts[columns.FIRST_OFFSET] = rows[number, scan.BASE_OFFSET]
        counts[columns.RECORDS] += counted
    return count


@inlined
def _counted(rows: Rows, number: Number, rules: Int64s, records: Rows) -> Number:
    """Return the number of records of this batch, which was split last, up to the last one that counts."""
    count = rows[number, scan.RECORD_COUNT]
    if rows[number, scan.LAST_OFFSET] > rules[LAST_COUNTED_OFFSET]:
        while count > 0 and records[count - 1, columns.OFFSET] > rules[LAST_COUNTED_OFFSET]:
            count -= 1
    return count


class KeyNames(NamedTuple):
    """Group and topic of a commit key, by their numbers; place and size of the key; a bit for each value version that is accepted.

    `group` is `PASSED_ON` for a key that the loader reads, and `key_size` is -1 for bytes that are not the key of a commit.
    """

    key_start: Number
    key_size: Number
    group: Number
    topic: Number
    accepted: Number


_NO_NAMES = KeyNames(0, -1, -1, -1, 0)


@inlined
def _fold_records(
    rows: Rows, number: Number, data: Bytes, position: Number, end: Number, segment: Number, rules: Int64s, tables: Tables
) -> Number:
    records = tables.records
    status = split(rows, number, data, position, end, records)
    if status != DONE:
        return status
    is_transactional = rows[number, scan.ATTRIBUTES] & scan.TRANSACTIONAL != 0
    names, key, is_plain = _NO_NAMES, np.int64(-1), False
    index, count = np.int64(-1), _counted(rows, number, rules, records)
    while True:
        index += 1
        if is_plain:
            index, key = _fold_alike(records, index, count, data, names, key, tables)
        if index >= count:
            return DONE
        is_plain = False
        record = records[index]
        tables.counts[columns.RECORDS_DONE] = index
        key_start, key_size = record[columns.KEY_START], record[columns.KEY_SIZE]
        record_type = int16(data, key_start) if key_size >= TYPE_BYTES else -1
        if record_type != OFFSET_COMMIT and record_type != LEGACY_OFFSET_COMMIT:
            status = fold_other(record_type, rows, number, position, record, data, segment, rules, tables)
            if status != DONE:
                return status
            continue
        # The same bytes as in the record before, without its partition, need no second look.
        if key_size != names.key_size or not is_same(data, names.key_start, data, key_start, key_size - PARTITION_BYTES):
            names = _names_of(data, record_type, key_start, key_size, rules, tables)
        if names.key_size < 0:
            return NOT_PLAIN_KEY
        if names.group == PASSED_ON:
            status = _pass_on(rows, number, record, segment, rules, tables)
        else:
            key = _key_after(key, names, int32(data, key_start + key_size - PARTITION_BYTES), rules, tables)
            if record[columns.VALUE_SIZE] >= 0:
                status = _fold_commit(rows, number, record, data, key, names, rules, tables)
                is_plain = not is_transactional and int16(data, record[columns.VALUE_START]) == COMMON_VERSION
            else:
                status = TRANSACTIONAL_TOMBSTONE if is_transactional else _fold_tombstone(record, key, rules, tables)
        if status != DONE:
            return status


@inlined
def _names_of(data: Bytes, record_type: Number, start: Number, size: Number, rules: Int64s, tables: Tables) -> KeyNames:
    """Return group and topic of a key of this type, both known or new. Types 0 and 1 have the same keys."""
    key = read_commit_key(data, start + TYPE_BYTES, start + size)
    if key.after != start + size:
        return _NO_NAMES
    group_hash = hash_of(data, key.group_start, key.group_size, rules[SEED])
    topic_hash = hash_of(data, key.topic_start, key.topic_size, rules[SEED])
    group = find_name(tables.group_names, data, key.group_start, key.group_size, group_hash)
    topic = find_name(tables.topic_names, data, key.topic_start, key.topic_size, topic_hash)
    if group < 0 or topic < 0:
        group, topic = new_names(data, key.group_start, key.group_size, key.topic_start, key.topic_size, rules[SEED], tables)
    accepted = rules[ACCEPTED_1]
    if record_type == LEGACY_OFFSET_COMMIT:
        accepted = rules[ACCEPTED_0]
        tables.counts[columns.HAS_LEGACY_COMMITS] = 1
    return KeyNames(start, size, group, topic, accepted)


@inlined
def _pass_on(rows: Rows, number: Number, record: Int64s, segment: Number, rules: Int64s, tables: Tables) -> Number:
    pass_record(rows, number, record[columns.PLACE], record[columns.OFFSET], segment, tables)
    if rows[number, scan.ATTRIBUTES] & scan.TRANSACTIONAL:
        if rules[IS_PART]:
            return TRANSACTIONAL
        tables.producers[producer_of(rows, number, rules, tables), columns.TXN_IS_PASSED_ON] = 1
    return DONE


@inlined
def _key_after(previous: Number, names: KeyNames, partition: Number, rules: Int64s, tables: Tables) -> Number:
    """Return the number of this key, known or new, which comes after the `previous` one; that is -1 for the first key of a batch."""
    keys = tables.keys
    key = np.int64(keys.rows[previous, NEXT]) if previous >= 0 else np.int64(-1)
    if key < 0 or not is_key(keys.rows, key, names.group, names.topic, partition):
        key = key_of(names.group, names.topic, partition, rules[SEED], keys, tables.counts, tables.commits)
        if previous >= 0:
            keys.rows[previous, NEXT] = key
    return key


@inlined
def _fold_tombstone(record: Int64s, key: Number, rules: Int64s, tables: Tables) -> Number:
    tables.commits[key, columns.RECORD_OFFSET] = columns.NOTHING
    tables.void_below[key, columns.LAST_TOMBSTONE] = record[columns.OFFSET]
    if rules[TOMBSTONE_VOIDS]:
        tables.void_below[key, 0] = record[columns.OFFSET]
    return np.int64(DONE)


@inlined
def _fold_commit(
    rows: Rows, number: Number, record: Int64s, data: Bytes, key: Number, names: KeyNames, rules: Int64s, tables: Tables
) -> Number:
    groups, record_offset = tables.groups, record[columns.OFFSET]
    value = read_commit(data, record[columns.VALUE_START], record[columns.VALUE_START] + record[columns.VALUE_SIZE])
    if value.after == NO_POSITION or not names.accepted >> value.version & 1:
        return np.int64(NOT_PLAIN_VALUE)
    metadata = _keep_metadata(data, value.metadata_start, value.metadata_size, tables)
    first_word = second_word = np.int64(0)
    if value.topic_id_start >= 0:
        first_word, second_word = int64(data, value.topic_id_start), int64(data, value.topic_id_start + 8)
        _learn_topic_id(names.topic, first_word, second_word, tables)
    if groups[names.group, columns.FIRST_COMMIT] < 0:
        groups[names.group, columns.FIRST_COMMIT] = record_offset
        if groups[names.group, columns.IS_PASSED_ON]:
            pass_commit(names.group, record_offset, tables)
    if rows[number, scan.ATTRIBUTES] & scan.TRANSACTIONAL:
        timestamp = rows[number, scan.MAX_TIMESTAMP]
        if not rows[number, scan.ATTRIBUTES] & scan.LOG_APPEND_TIME:
            timestamp = rows[number, scan.BASE_TIMESTAMP] + record[columns.TIMESTAMP_DELTA]
        row, target = stage(rows, number, key, record_offset, timestamp, rules, tables)
        commit, topic_ids = tables.staged[target], tables.staged_topic_ids[target]
        commit[columns.PRODUCER] = (row + 1) << columns.EPOCH_BITS | rows[number, scan.PRODUCER_EPOCH] & 0xFFFF
    else:
        commit, topic_ids = tables.commits[key], tables.key_topic_ids[key]
        commit[columns.PRODUCER] = 0
    _put(commit, value, record_offset, metadata)
    if value.version >= TOPIC_ID_SINCE:
        topic_ids[0], topic_ids[1] = first_word, second_word
    return np.int64(DONE)


@inlined
def _put(commit: Int64s, value: Commit, record_offset: Number, metadata: Number) -> None:
    commit[columns.COMMITTED_OFFSET] = value.committed_offset
    commit[columns.RECORD_OFFSET] = record_offset
    commit[columns.COMMIT_TIMESTAMP] = value.commit_timestamp_ms
    commit[columns.EXPIRE_TIMESTAMP] = value.expire_timestamp_ms
    commit[columns.LEADER_EPOCH] = value.leader_epoch
    commit[columns.VERSION] = value.version
    commit[columns.METADATA] = metadata


@inlined
def _fold_alike(
    records: Rows, index: Number, count: Number, data: Bytes, names: KeyNames, key: Number, tables: Tables
) -> tuple[Number, Number]:
    """Fold the next commits that are like the commit before.

    Each has a common value, the same group and topic, and the key that came after its `key` the last time.

    Returns the first record that is no such commit, and the key of the record before it.
    """
    rows, commits = tables.keys.rows, tables.commits
    while index < count:
        record = records[index]
        key_start, value_start = record[columns.KEY_START], record[columns.VALUE_START]
        metadata_size = common_metadata_size(data, value_start, record[columns.VALUE_SIZE])
        if record[columns.KEY_SIZE] != names.key_size or metadata_size < 0:
            break
        partition = int32(data, key_start + names.key_size - PARTITION_BYTES)
        following = np.int64(rows[key, NEXT])
        if following < 0 or not is_key(rows, following, names.group, names.topic, partition):
            break
        if not is_same(data, names.key_start, data, key_start, names.key_size - PARTITION_BYTES):
            break
        metadata_start = value_start + COMMON_METADATA_AT
        if metadata_size and kind_of_text(data, metadata_start, metadata_size) == NOT_EXACT:
            break
        key = following
        commit = commits[key]
        commit[columns.PRODUCER] = 0
        metadata = _keep_metadata(data, metadata_start, metadata_size, tables)
        _put(commit, read_common_commit(data, value_start, metadata_size), record[columns.OFFSET], metadata)
        index += 1
    return index, key


@inlined
def _keep_metadata(data: Bytes, start: Number, size: Number, tables: Tables) -> Number:
    """Copy the metadata of a commit; return its place and its size, packed, and 0 for an empty text."""
    if size == 0:
        return np.int64(0)
    place = tables.counts[columns.METADATA_BYTES]
    copy_bytes(data, start, size, tables.metadata, place)
    tables.counts[columns.METADATA_BYTES] += size
    return place << columns.SIZE_BITS | size


@kernel
def _learn_topic_id(topic: Number, first_word: Number, second_word: Number, tables: Tables) -> None:
    known = tables.topic_topic_ids
    if known[topic, 0] == first_word and known[topic, 1] == second_word:
        return
    known[topic, 0], known[topic, 1] = first_word, second_word
    row = tables.counts[columns.TOPIC_IDS]
    tables.topic_ids[row, 0] = topic
    tables.topic_ids[row, 1] = first_word
    tables.topic_ids[row, 2] = second_word
    tables.counts[columns.TOPIC_IDS] += 1
