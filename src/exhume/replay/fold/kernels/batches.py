"""The fold itself, compiled: enter every record of a run of batches into `Tables`.

The fold does the work of the loaders for the records that all loaders read alike: commits and their tombstones, commits of transactions
and their markers, classic groups and their tombstones. It keeps the last commit of a key in columns, and of a group only the place of its
last record. It passes other records on to the loader, in `passed`. If a group has such a record, its group records are passed on too.

The status is not `DONE` for a batch that the kernel does not take; `careful_batches` may take it.
"""

from __future__ import annotations

import numpy as np

from exhume.codecs.kernels import inlined, kernel, scan
from exhume.codecs.kernels.keys import LEAST_COMMIT_KEY_BYTES, PARTITION_BYTES
from exhume.codecs.kernels.primitives import (
    NO_POSITION,
    NOT_EXACT,
    copy_bytes,
    hash_of,
    int16,
    int32,
    int64,
    is_same,
    kind_of_text,
    unsigned_varint,
)
from exhume.codecs.kernels.types import Bytes, Int64s, Number, Rows
from exhume.codecs.kernels.values import MOST_STRING_BYTES, NEWEST_VERSION
from exhume.codecs.layouts.offsets import COMMIT_FLEXIBLE_SINCE
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

#: A common commit value: the version that has a leader epoch but no topic id; its size without metadata, and the place of the metadata.
COMMON_VERSION = 3
COMMON_BYTES, COMMON_METADATA_AT = 24, 16


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


@inlined
def _fold_records(
    rows: Rows, number: Number, data: Bytes, position: Number, end: Number, segment: Number, rules: Int64s, tables: Tables
) -> Number:
    counts, keys, groups, commits, records = tables.counts, tables.keys, tables.groups, tables.commits, tables.records
    group_names, topic_names = tables.group_names, tables.topic_names
    status = split(rows, number, data, position, end, records)
    if status != DONE:
        return status
    is_transactional = rows[number, scan.ATTRIBUTES] & scan.TRANSACTIONAL != 0
    # The key of the record before, without its partition: the same bytes need no second look.
    known_start, known_size = np.int64(0), np.int64(-1)
    group, topic, key, accepted = np.int64(-1), np.int64(-1), np.int64(-1), np.int64(0)
    is_plain = False
    index, count = np.int64(-1), _counted(rows, number, rules, records)
    while True:
        index += 1
        if is_plain:
            index, key = _fold_alike(records, index, count, data, known_start, known_size, group, topic, key, tables)
        if index >= count:
            return DONE
        is_plain = False
        record = records[index]
        counts[columns.RECORDS_DONE] = index
        record_offset = record[columns.OFFSET]
        key_start, key_size = record[columns.KEY_START], record[columns.KEY_SIZE]
        value_start, value_size = record[columns.VALUE_START], record[columns.VALUE_SIZE]
        record_type = int16(data, key_start) if key_size >= 2 else -1
        if record_type != OFFSET_COMMIT and record_type != LEGACY_OFFSET_COMMIT:
            place = record[columns.PLACE]
            status = fold_other(
                record_type,
                rows,
                number,
                position,
                place,
                record_offset,
                data,
                key_start,
                key_size,
                value_start,
                value_size,
                segment,
                rules,
                tables,
            )
            if status != DONE:
                return status
            continue

        # A commit: types 0 and 1 have the same keys.
        if key_size != known_size or not is_same(data, known_start, data, key_start, key_size - PARTITION_BYTES):
            group_size = int16(data, key_start + 2) if key_size >= LEAST_COMMIT_KEY_BYTES else -1
            if group_size < 0 or group_size > key_size - LEAST_COMMIT_KEY_BYTES:
                return NOT_PLAIN_KEY
            group_start, topic_start = key_start + 4, key_start + 6 + group_size
            topic_size = int16(data, topic_start - 2)
            if topic_size < 0 or group_size + topic_size + LEAST_COMMIT_KEY_BYTES != key_size:
                return NOT_PLAIN_KEY
            group = find_name(group_names, data, group_start, group_size, hash_of(data, group_start, group_size, rules[SEED]))
            topic = find_name(topic_names, data, topic_start, topic_size, hash_of(data, topic_start, topic_size, rules[SEED]))
            if group < 0 or topic < 0:
                group, topic = new_names(data, key_start + 2, group_size, topic_size, rules[SEED], tables)
            known_start, known_size = key_start, key_size
            accepted = rules[ACCEPTED_1]
            if record_type == LEGACY_OFFSET_COMMIT:
                accepted = rules[ACCEPTED_0]
                counts[columns.HAS_LEGACY_COMMITS] = 1
        if group == PASSED_ON:
            pass_record(rows, number, record[columns.PLACE], record_offset, segment, tables)
            if is_transactional:
                if rules[IS_PART]:
                    return TRANSACTIONAL
                tables.producers[producer_of(rows, number, rules, tables), columns.TXN_IS_PASSED_ON] = 1
            continue
        partition = int32(data, key_start + key_size - PARTITION_BYTES)
        previous = key
        key = np.int64(keys.rows[previous, NEXT]) if previous >= 0 else np.int64(-1)
        if key < 0 or not is_key(keys.rows, key, group, topic, partition):
            key = key_of(group, topic, partition, rules[SEED], keys, counts, commits)
            if previous >= 0:
                keys.rows[previous, NEXT] = key
        if value_size < 0:
            if is_transactional:
                return TRANSACTIONAL_TOMBSTONE
            commits[key, columns.RECORD_OFFSET] = columns.NOTHING
            tables.void_below[key, columns.LAST_TOMBSTONE] = record_offset
            if rules[TOMBSTONE_VOIDS]:
                tables.void_below[key, 0] = record_offset
            continue
        value_end = value_start + value_size
        if value_size < 20:
            return NOT_PLAIN_VALUE
        version = int16(data, value_start)
        if version < 0 or version > NEWEST_VERSION or not accepted >> version & 1:
            return NOT_PLAIN_VALUE
        committed_offset = int64(data, value_start + 2)
        at = value_start + 10
        leader_epoch = -1
        if version >= 3:
            leader_epoch = int32(data, at)
            at += 4
        if version >= COMMIT_FLEXIBLE_SINCE:
            metadata_size, at = unsigned_varint(data, at, value_end)
            if at == NO_POSITION:
                return NOT_PLAIN_VALUE
            metadata_size -= 1
        else:
            metadata_size = int16(data, at)
            at += 2
        if metadata_size < 0 or metadata_size > MOST_STRING_BYTES or metadata_size > value_end - at - 8:
            return NOT_PLAIN_VALUE
        metadata = np.int64(0)
        if metadata_size:
            metadata = _keep_metadata(data, at, metadata_size, tables)
            if metadata == NOT_PLAIN:
                return NOT_PLAIN_VALUE
            at += metadata_size
        commit_timestamp = int64(data, at)
        at += 8
        expire_timestamp = np.int64(-1)
        if version == 1:
            if value_end - at < 8:
                return NOT_PLAIN_VALUE
            expire_timestamp = int64(data, at)
        first_word = second_word = np.int64(0)
        if version >= COMMIT_FLEXIBLE_SINCE:
            tag = _topic_id_position(data, at, value_end)
            if tag == NOT_PLAIN:
                return NOT_PLAIN_VALUE
            if tag >= 0:
                first_word, second_word = int64(data, tag), int64(data, tag + 8)
                _learn_topic_id(topic, first_word, second_word, tables)

        if groups[group, columns.FIRST_COMMIT] < 0:
            groups[group, columns.FIRST_COMMIT] = record_offset
            if groups[group, columns.IS_PASSED_ON]:
                pass_commit(group, record_offset, tables)
        if is_transactional:
            timestamp = rows[number, scan.MAX_TIMESTAMP]
            if not rows[number, scan.ATTRIBUTES] & scan.LOG_APPEND_TIME:
                timestamp = rows[number, scan.BASE_TIMESTAMP] + record[columns.TIMESTAMP_DELTA]
            row, target = stage(rows, number, key, record_offset, timestamp, rules, tables)
            commit, topic_ids = tables.staged[target], tables.staged_topic_ids[target]
            commit[columns.PRODUCER] = (row + 1) << columns.EPOCH_BITS | rows[number, scan.PRODUCER_EPOCH] & 0xFFFF
        else:
            commit, topic_ids = commits[key], tables.key_topic_ids[key]
            commit[columns.PRODUCER] = 0
        commit[columns.COMMITTED_OFFSET] = committed_offset
        commit[columns.RECORD_OFFSET] = record_offset
        commit[columns.COMMIT_TIMESTAMP] = commit_timestamp
        commit[columns.EXPIRE_TIMESTAMP] = expire_timestamp
        commit[columns.LEADER_EPOCH] = leader_epoch
        commit[columns.VERSION] = version
        commit[columns.METADATA] = metadata
        if version >= COMMIT_FLEXIBLE_SINCE:
            topic_ids[0], topic_ids[1] = first_word, second_word
        is_plain = not is_transactional and accepted >> COMMON_VERSION & 1 != 0


@inlined
def common_metadata_size(data: Bytes, start: Number, size: Number) -> Number:
    """Return the bytes of metadata of a common value: `COMMON_VERSION`, nothing after its fields. Below 0 for another value."""
    metadata_size = size - COMMON_BYTES
    if metadata_size < 0 or int16(data, start) != COMMON_VERSION or int16(data, start + COMMON_METADATA_AT - 2) != metadata_size:
        return -1
    return metadata_size


@inlined
def _fold_alike(
    records: Rows,
    index: Number,
    count: Number,
    data: Bytes,
    known_start: Number,
    known_size: Number,
    group: Number,
    topic: Number,
    key: Number,
    tables: Tables,
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
        if record[columns.KEY_SIZE] != known_size or metadata_size < 0:
            break
        partition = int32(data, key_start + known_size - PARTITION_BYTES)
        following = np.int64(rows[key, NEXT])
        if following < 0 or not is_key(rows, following, group, topic, partition):
            break
        if not is_same(data, known_start, data, key_start, known_size - PARTITION_BYTES):
            break
        metadata = np.int64(0)
        if metadata_size:
            metadata = _keep_metadata(data, value_start + COMMON_METADATA_AT, metadata_size, tables)
            if metadata == NOT_PLAIN:
                break
        key = following
        commit = commits[key]
        commit[columns.COMMITTED_OFFSET] = int64(data, value_start + 2)
        commit[columns.RECORD_OFFSET] = record[columns.OFFSET]
        commit[columns.COMMIT_TIMESTAMP] = int64(data, value_start + COMMON_METADATA_AT + metadata_size)
        commit[columns.EXPIRE_TIMESTAMP] = -1
        commit[columns.LEADER_EPOCH] = int32(data, value_start + 10)
        commit[columns.VERSION] = COMMON_VERSION
        commit[columns.METADATA] = metadata
        commit[columns.PRODUCER] = 0
        index += 1
    return index, key


@inlined
def _keep_metadata(data: Bytes, start: Number, size: Number, tables: Tables) -> Number:
    if kind_of_text(data, start, size) == NOT_EXACT:
        return NOT_PLAIN
    place = tables.counts[columns.METADATA_BYTES]
    copy_bytes(data, start, size, tables.metadata, place)
    tables.counts[columns.METADATA_BYTES] += size
    return place << columns.SIZE_BITS | size


@inlined
def _topic_id_position(data: Bytes, position: Number, end: Number) -> Number:
    """Return the place of the topic id in a tagged section; -1 if there are no tags, `NOT_PLAIN` for other tags."""
    tags, position = unsigned_varint(data, position, end)
    if position == NO_POSITION or tags > 1:
        return NOT_PLAIN
    if tags == 0:
        return -1
    if end - position < 18 or data[position] != 0 or data[position + 1] != 16:
        return NOT_PLAIN
    return position + 2


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
