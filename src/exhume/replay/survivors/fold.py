"""The fold itself, compiled: every record of a run of batches, into `Tables`.

What the loaders do is done here for the records that all of them read alike: plain commits and their tombstones, commits of
transactions and their markers, classic groups and theirs. The last commit of a key is kept in columns; of a group only the place of its
last record. Other records, and what says what a group is that has such records, are passed on to the loader, in `passed`.

A log that this is not enough for gives a status other than `DONE`, and is loaded record by record.
"""

from __future__ import annotations

import numpy as np

from exhume.codecs.kernels import inlined, kernel, scan
from exhume.codecs.kernels.primitives import (
    NO_POSITION,
    NOT_EXACT,
    Bytes,
    Int64s,
    Number,
    Words,
    hash_of,
    int16,
    int32,
    int64,
    kind_of_text,
    unsigned_varint,
    varint,
    varlong,
)
from exhume.codecs.kernels.records import LEAST_BYTES
from exhume.replay.survivors import tables as columns
from exhume.replay.survivors.group_values import is_plain_group
from exhume.replay.survivors.names import add_name, enter_producer, find_name, find_producer
from exhume.replay.survivors.tables import Tables

(
    DONE,
    NOT_SOUND,
    OFFSETS_GO_BACK,
    BAD_RECORD,
    ODD_BATCH,
    ODD_MARKER,
    ODD_KEY,
    ODD_VALUE,
    TRANSACTIONAL_TOMBSTONE,
    TRANSACTIONAL,
) = range(10)

#: Entries of `rules`: a seed for hashes, the log start, a bit for each accepted value version of types 0, 1 and 2, yes or no.
SEED, START_OFFSET, ACCEPTED_0, ACCEPTED_1, ACCEPTED_2, MARKER_DECIDES, TOMBSTONE_VOIDS, TAKES_NULL_PROTOCOL = range(8)
#: What the segment may hold: offsets from the lowest on, below the one beyond. What the release can read: a bit for each codec it cannot,
#: the largest batch.
LOWEST_OFFSET, BEYOND_OFFSET, REFUSED_CODECS, MOST_BATCH_BYTES = range(8, 12)
#: 1 where a stretch is folded by itself, and joined to what lies in front of it.
IS_PART = 12
RULES = 13

_COMMIT_MARKER = 1
_FLEXIBLE_SINCE = 4
_MOST_STRING_BYTES = 0x7FFF
_PASSED_ON = -2
_ODD = -3
_NO_PRODUCER_ID = -1
_HALF = np.uint64(32)
#: No index has so many names.
_IMPOSSIBLE = np.uint64(0xFFFFFFFFFFFFFFFF)


@kernel
def fold(rows: Int64s, first: Number, count: Number, data: Bytes, bodies: Int64s, segment: Number, rules: Int64s, tables: Tables) -> Number:
    """Fold batches `first` to `count` of `rows`, whose records lie in `data` from `bodies[:, 0]` to `bodies[:, 1]`.

    Gives the number of batches done; where that is less than `count`, `counts[STATUS]` says why. `tables` must have room.
    """
    counts = tables.counts
    for number in range(first, count):
        status = _checked(rows, number, rules, counts)
        if status == DONE and rows[number, scan.LAST_OFFSET] < rules[START_OFFSET]:
            # Nobody loads it; what follows in this segment has to lie behind it all the same.
            rules[LOWEST_OFFSET] = rows[number, scan.LAST_OFFSET] + 1
            is_marker = rows[number, scan.ATTRIBUTES] & scan.CONTROL != 0
            if not is_marker or _read_marker(rows, number, data, bodies[number, 0], bodies[number, 1])[0] != _ODD:
                continue
            # A start after an unclean stop looks at it.
            status = ODD_MARKER
        elif status == DONE:
            if rows[number, scan.ATTRIBUTES] & scan.CONTROL:
                status = _fold_marker(rows, number, data, bodies[number, 0], bodies[number, 1], segment, rules, tables)
            else:
                status = _fold_records(rows, number, data, bodies[number, 0], bodies[number, 1], segment, rules, tables)
        if status != DONE:
            counts[columns.STATUS] = status
            return number
        counts[columns.NEXT_OFFSET] = rows[number, scan.LAST_OFFSET] + 1
        counts[columns.BATCH_BYTES] += rows[number, scan.SIZE]
        if counts[columns.FIRST_OFFSET] < 0:
            counts[columns.FIRST_OFFSET] = rows[number, scan.BASE_OFFSET]
        counts[columns.RECORDS] += rows[number, scan.RECORD_COUNT]
    return count


@kernel
def _checked(rows: Int64s, number: Number, rules: Int64s, counts: Int64s) -> Number:
    """`DONE` for a batch that nobody has anything to say about."""
    if not rows[number, scan.IS_SOUND]:
        return NOT_SOUND
    base_offset, last_offset = rows[number, scan.BASE_OFFSET], rows[number, scan.LAST_OFFSET]
    if base_offset < counts[columns.NEXT_OFFSET] or last_offset < base_offset:
        return OFFSETS_GO_BACK
    if base_offset < rules[LOWEST_OFFSET] or last_offset >= rules[BEYOND_OFFSET]:
        return OFFSETS_GO_BACK
    if rows[number, scan.LEADER_EPOCH] < counts[columns.LEADER_EPOCH_SEEN]:
        return OFFSETS_GO_BACK
    counts[columns.LEADER_EPOCH_SEEN] = rows[number, scan.LEADER_EPOCH]
    if rows[number, scan.RECORD_COUNT] < 0:
        return BAD_RECORD
    attributes = rows[number, scan.ATTRIBUTES]
    if rules[REFUSED_CODECS] >> (attributes & scan.CODEC) & 1 or rows[number, scan.SIZE] > rules[MOST_BATCH_BYTES]:
        return ODD_BATCH
    # One coordinator goes by the bit, the other by the producer id.
    is_transactional = attributes & scan.TRANSACTIONAL != 0
    if rules[IS_PART] and rules[MARKER_DECIDES] and (is_transactional or attributes & scan.CONTROL):
        # A marker takes back what lies behind its commits: that needs the order of all that happened.
        return TRANSACTIONAL
    return DONE if is_transactional == (rows[number, scan.PRODUCER_ID] != _NO_PRODUCER_ID) else ODD_BATCH


@inlined
def _fold_records(
    rows: Int64s, number: Number, data: Bytes, position: Number, end: Number, segment: Number, rules: Int64s, tables: Tables
) -> Number:
    keys, groups, commits, records = tables.keys, tables.groups, tables.commits, tables.records
    status = _split(rows, number, data, position, end, rules[SEED], keys.slots, records)
    if status != DONE:
        return status
    is_transactional = rows[number, scan.ATTRIBUTES] & scan.TRANSACTIONAL != 0
    for index in range(rows[number, scan.RECORD_COUNT]):
        record = records[index]
        record_offset = record[columns.OFFSET]
        key_start, key_size = record[columns.KEY_START], record[columns.KEY_SIZE]
        value_start, value_size = record[columns.VALUE_START], record[columns.VALUE_SIZE]
        record_type = int16(data, key_start) if key_size >= 2 else -1
        if record_type != 0 and record_type != 1:
            place = record[columns.PLACE]
            status = _fold_other(
                record_type, rows, number, place, record_offset, data, key_start, key_size, value_start, value_size, segment, rules, tables
            )
            if status != DONE:
                return status
            continue

        # A commit: type 0 and 1 have the same keys.
        key_hash = np.uint64(record[columns.HASH])
        key = find_name(keys, data, key_start + 2, key_size - 2, key_hash)
        if key < 0:
            key = _new_key(data, key_start + 2, key_size - 2, key_hash, rules[SEED], tables)
            if key == _ODD:
                return ODD_KEY
            if key == _PASSED_ON:
                _pass_record(rows, number, record[columns.PLACE], record_offset, segment, tables)
                if is_transactional:
                    if rules[IS_PART]:
                        return TRANSACTIONAL
                    tables.producers[_producer(rows, number, rules, tables), columns.TXN_IS_PASSED_ON] = 1
                continue
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
            return ODD_VALUE
        version = int16(data, value_start)
        accepted = rules[ACCEPTED_1] if record_type == 1 else rules[ACCEPTED_0]
        if version < 0 or version > _FLEXIBLE_SINCE or not accepted >> version & 1:
            return ODD_VALUE
        committed_offset = int64(data, value_start + 2)
        at = value_start + 10
        leader_epoch = -1
        if version >= 3:
            leader_epoch = int32(data, at)
            at += 4
        if version >= _FLEXIBLE_SINCE:
            metadata_size, at = unsigned_varint(data, at, value_end)
            if at == NO_POSITION:
                return ODD_VALUE
            metadata_size -= 1
        else:
            metadata_size = int16(data, at)
            at += 2
        if metadata_size < 0 or metadata_size > _MOST_STRING_BYTES or metadata_size > value_end - at - 8:
            return ODD_VALUE
        metadata = np.int64(0)
        if metadata_size:
            metadata = _keep_metadata(data, at, metadata_size, tables)
            if metadata == _ODD:
                return ODD_VALUE
            at += metadata_size
        commit_timestamp = int64(data, at)
        at += 8
        expire_timestamp = np.int64(-1)
        if version == 1:
            if value_end - at < 8:
                return ODD_VALUE
            expire_timestamp = int64(data, at)
        first_word = second_word = np.int64(0)
        if version >= _FLEXIBLE_SINCE:
            tag = _topic_id_position(data, at, value_end)
            if tag == _ODD:
                return ODD_VALUE
            if tag >= 0:
                first_word, second_word = int64(data, tag), int64(data, tag + 8)
                _learn_topic_id(keys.places[key, columns.KEY_TOPIC], first_word, second_word, tables)

        group = keys.places[key, columns.KEY_GROUP]
        if groups[group, columns.FIRST_COMMIT] < 0:
            groups[group, columns.FIRST_COMMIT] = record_offset
            if groups[group, columns.IS_PASSED_ON]:
                pass_commit(group, record_offset, tables)
        if is_transactional:
            timestamp = rows[number, scan.MAX_TIMESTAMP]
            if not rows[number, scan.ATTRIBUTES] & scan.LOG_APPEND_TIME:
                timestamp = rows[number, scan.BASE_TIMESTAMP] + record[columns.TIMESTAMP_DELTA]
            row, target = _stage(rows, number, key, record_offset, timestamp, rules, tables)
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
        if version >= _FLEXIBLE_SINCE:
            topic_ids[0], topic_ids[1] = first_word, second_word
    return DONE


@inlined
def _split(rows: Int64s, number: Number, data: Bytes, position: Number, end: Number, seed: Number, slots: Words, records: Int64s) -> Number:
    """Where key and value of each record lie, and the hash of what may be the key of a commit.

    The place in the index that each hash leads to is read once: so it is on its way while the other records are split.
    """
    base_offset, last_offset = rows[number, scan.BASE_OFFSET], rows[number, scan.LAST_OFFSET]
    next_offset, start = base_offset, position
    if rows[number, scan.RECORD_COUNT] > (end - position) // LEAST_BYTES:
        return BAD_RECORD
    mask = np.uint64(len(slots) - 1)
    touched = np.uint64(0)
    for index in range(rows[number, scan.RECORD_COUNT]):
        # The record: length, attributes, two deltas, key, value, headers.
        record = records[index]
        record[columns.PLACE] = position - start
        size, position = varint(data, position, end)
        if position == NO_POSITION or size < 1 or size > end - position:
            return BAD_RECORD
        record_end = position + size
        record[columns.TIMESTAMP_DELTA], position = varlong(data, position + 1, record_end)
        if position == NO_POSITION:
            return BAD_RECORD
        offset_delta, position = varint(data, position, record_end)
        if position == NO_POSITION:
            return BAD_RECORD
        key_size, position = varint(data, position, record_end)
        if position == NO_POSITION or key_size > record_end - position:
            return BAD_RECORD
        record[columns.KEY_START] = position
        record[columns.KEY_SIZE] = key_size
        if key_size >= 2:
            key_hash = hash_of(data, position + 2, key_size - 2, seed)
            record[columns.HASH] = np.int64(key_hash)
            touched |= slots[key_hash >> _HALF & mask]
        value_size, position = varint(data, position + max(key_size, 0), record_end)
        if position == NO_POSITION or value_size > record_end - position:
            return BAD_RECORD
        record[columns.VALUE_START] = position
        record[columns.VALUE_SIZE] = value_size
        position += max(value_size, 0)
        if record_end - position != 1 or data[np.uint64(position)] != 0:
            return BAD_RECORD
        position = record_end
        record_offset = base_offset + offset_delta
        if record_offset < next_offset or record_offset > last_offset:
            return OFFSETS_GO_BACK
        record[columns.OFFSET] = record_offset
        next_offset = record_offset + 1
    if position != end:
        return BAD_RECORD
    # Compared with what it cannot be, or the compiler would leave the reading out.
    return DONE if touched != _IMPOSSIBLE else BAD_RECORD


@inlined
def _keep_metadata(data: Bytes, start: Number, size: Number, tables: Tables) -> Number:
    if kind_of_text(data, start, size) == NOT_EXACT:
        return _ODD
    place = tables.counts[columns.METADATA_BYTES]
    for offset in range(size):
        tables.metadata[place + offset] = data[start + offset]
    tables.counts[columns.METADATA_BYTES] += size
    return place << columns.SIZE_BITS | size


@inlined
def _topic_id_position(data: Bytes, position: Number, end: Number) -> Number:
    """Where the topic id lies in a tagged section, -1 where it has no tags; `_ODD` for anything else."""
    tags, position = unsigned_varint(data, position, end)
    if position == NO_POSITION or tags > 1:
        return _ODD
    if tags == 0:
        return -1
    if end - position < 18 or data[position] != 0 or data[position + 1] != 16:
        return _ODD
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


# Names


@kernel
def _new_key(data: Bytes, start: Number, size: Number, key_hash: np.uint64, seed: Number, tables: Tables) -> Number:
    """The number of a key that was not there: group, topic and partition. `_ODD` for what is no such key, `_PASSED_ON` for odd names."""
    if size < 2:
        return _ODD
    group_size = int16(data, start)
    group_start = start + 2
    if group_size < 0 or group_size > size - 8:
        return _ODD
    topic_size = int16(data, group_start + group_size)
    topic_start = group_start + group_size + 2
    if topic_size < 0 or group_size + topic_size + 8 != size:
        return _ODD
    if kind_of_text(data, group_start, group_size) == NOT_EXACT:
        return _PASSED_ON
    if kind_of_text(data, topic_start, topic_size) == NOT_EXACT:
        # The loader is given a commit of this group, which can make it exist.
        pass_group(_group(data, group_start, group_size, seed, tables), tables)
        return _PASSED_ON
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
    tables.keys.places[key, columns.KEY_GROUP] = _group(data, group_start, group_size, seed, tables)
    tables.keys.places[key, columns.KEY_TOPIC] = topic
    tables.keys.places[key, columns.KEY_PARTITION] = int32(data, topic_start + topic_size)
    tables.commits[key, columns.RECORD_OFFSET] = columns.NOTHING
    counts[columns.KEYS] += 1
    counts[columns.KEY_BYTES] += size
    return key


@kernel
def _group(data: Bytes, start: Number, size: Number, seed: Number, tables: Tables) -> Number:
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
    return group


# What is passed on


@kernel
def _pass_record(rows: Int64s, number: Number, place: Number, record_offset: Number, segment: Number, tables: Tables) -> None:
    _pass(segment, rows[number, scan.POSITION], place, record_offset, tables)


@kernel
def _pass(segment: Number, batch: Number, place: Number, record_offset: Number, tables: Tables) -> None:
    passed = tables.passed
    row = tables.counts[columns.PASSED]
    passed[row, columns.PASSED_SEGMENT] = segment
    passed[row, columns.PASSED_BATCH] = batch
    passed[row, columns.PASSED_PLACE] = place
    passed[row, columns.PASSED_OFFSET] = record_offset
    passed[row, columns.PASSED_GROUP] = -1
    tables.counts[columns.PASSED] += 1


@kernel
def pass_commit(group: Number, record_offset: Number, tables: Tables) -> None:
    """Say that a commit of this group lies here."""
    _pass(-1, -1, -1, record_offset, tables)
    tables.passed[tables.counts[columns.PASSED] - 1, columns.PASSED_GROUP] = group


@kernel
def pass_group(group: Number, tables: Tables) -> None:
    """From here on the loader says what this group is; it is given what was there before."""
    groups = tables.groups
    if not groups[group, columns.IS_PASSED_ON]:
        groups[group, columns.IS_PASSED_ON] = 1
        if groups[group, columns.KIND] != columns.NO_KIND:
            _pass(
                groups[group, columns.KIND_SEGMENT],
                groups[group, columns.KIND_BATCH],
                groups[group, columns.KIND_PLACE],
                groups[group, columns.KIND_OFFSET],
                tables,
            )
        if groups[group, columns.KIND] != columns.VALUE and groups[group, columns.FIRST_COMMIT] >= 0:
            pass_commit(group, groups[group, columns.FIRST_COMMIT], tables)
    groups[group, columns.FIRST_COMMIT] = -1


# Groups


@kernel
def _fold_other(
    record_type: Number,
    rows: Int64s,
    number: Number,
    place: Number,
    record_offset: Number,
    data: Bytes,
    key_start: Number,
    key_size: Number,
    value_start: Number,
    value_size: Number,
    segment: Number,
    rules: Int64s,
    tables: Tables,
) -> Number:
    """Any record but a commit. All types that a release knows have a group in front."""
    name_size = int16(data, key_start + 2) if key_size >= 4 else -1
    name_start = key_start + 4
    if name_size < 0 or name_size > key_size - 4 or kind_of_text(data, name_start, name_size) == NOT_EXACT:
        _pass_record(rows, number, place, record_offset, segment, tables)
        return DONE
    if record_type == 2 and name_size != key_size - 4:
        return ODD_KEY
    group = _group(data, name_start, name_size, rules[SEED], tables)
    groups = tables.groups
    is_plain = record_type == 2
    if is_plain and value_size >= 0:
        tables.counts[columns.GROUP_RECORDS] += 1
        is_plain = is_plain_group(
            data,
            value_start,
            value_start + value_size,
            rules[ACCEPTED_2],
            columns.MOST_MEMBERS,
            rules[TAKES_NULL_PROTOCOL] != 0,
            tables.scratch,
            tables.counts[columns.GROUP_RECORDS],
        )
    if not is_plain or groups[group, columns.IS_PASSED_ON]:
        pass_group(group, tables)
        _pass_record(rows, number, place, record_offset, segment, tables)
        return DONE
    groups[group, columns.KIND_OFFSET] = record_offset
    groups[group, columns.KIND_SEGMENT] = segment
    groups[group, columns.KIND_BATCH] = rows[number, scan.POSITION]
    groups[group, columns.KIND_PLACE] = place
    if value_size >= 0:
        groups[group, columns.KIND] = columns.VALUE
        groups[group, columns.HAS_VALUE] = 1
        is_compressed = rows[number, scan.ATTRIBUTES] & scan.CODEC != 0
        groups[group, columns.VALUE_POSITION] = -1 if is_compressed else value_start
        groups[group, columns.VALUE_BYTES] = value_size
        groups[group, columns.FIRST_TOMBSTONE] = -1
        groups[group, columns.FIRST_COMMIT] = record_offset
    else:
        groups[group, columns.KIND] = columns.TOMBSTONE
        groups[group, columns.FIRST_COMMIT] = -1
        if groups[group, columns.FIRST_TOMBSTONE] < 0:
            groups[group, columns.FIRST_TOMBSTONE] = record_offset
    return DONE


# Transactions


@inlined
def _producer(rows: Int64s, number: Number, rules: Int64s, tables: Tables) -> Number:
    """The row of the producer of this batch, known or new."""
    producer_id = rows[number, scan.PRODUCER_ID]
    row = find_producer(tables.producers, tables.producer_index, producer_id, rules[SEED])
    if row < 0:
        row = tables.counts[columns.PRODUCERS]
        tables.counts[columns.PRODUCERS] += 1
        tables.producers[row, columns.TXN_PRODUCER_ID] = producer_id
        tables.producers[row, columns.TXN_IS_OPEN] = 0
        tables.producers[row, columns.TXN_IS_PASSED_ON] = 0
        tables.producers[row, columns.TXN_FIRST_MARKER] = columns.NOTHING
        enter_producer(tables.producers, row, tables.producer_index, rules[SEED])
    return row


@inlined
def _stage(
    rows: Int64s, number: Number, key: Number, record_offset: Number, timestamp: Number, rules: Int64s, tables: Tables
) -> tuple[Number, Number]:
    """A row of `staged` for a commit of this batch's transaction, and the row of its producer in front."""
    counts, producers, staged = tables.counts, tables.producers, tables.staged
    row = _producer(rows, number, rules, tables)
    place = counts[columns.FREE_STAGED]
    if place >= 0:
        counts[columns.FREE_STAGED] = staged[place, columns.NEXT]
    else:
        place = counts[columns.STAGED]
        counts[columns.STAGED] += 1
    staged[place, columns.STAGED_KEY] = key
    staged[place, columns.NEXT] = -1
    if producers[row, columns.TXN_IS_OPEN]:
        staged[producers[row, columns.TXN_LAST_STAGED], columns.NEXT] = place
    else:
        producers[row, columns.TXN_IS_OPEN] = 1
        producers[row, columns.TXN_FIRST_OFFSET] = record_offset
        producers[row, columns.TXN_FIRST_TIMESTAMP] = timestamp
        producers[row, columns.TXN_FIRST_STAGED] = place
    producers[row, columns.TXN_LAST_STAGED] = place
    producers[row, columns.TXN_LAST_OFFSET] = record_offset
    producers[row, columns.TXN_LAST_TIMESTAMP] = timestamp
    producers[row, columns.TXN_EPOCH] = rows[number, scan.PRODUCER_EPOCH]
    return row, place


@kernel
def _fold_marker(
    rows: Int64s, number: Number, data: Bytes, position: Number, end: Number, segment: Number, rules: Int64s, tables: Tables
) -> Number:
    """The end of a transaction."""
    outcome, record_offset = _read_marker(rows, number, data, position, end)
    if outcome == _ODD:
        return ODD_MARKER
    row = find_producer(tables.producers, tables.producer_index, rows[number, scan.PRODUCER_ID], rules[SEED])
    if rules[IS_PART] and (row < 0 or tables.producers[row, columns.TXN_FIRST_MARKER] == columns.NOTHING):
        # It ends what lies in front of this stretch, too.
        row = _producer(rows, number, rules, tables)
        tables.producers[row, columns.TXN_FIRST_MARKER] = record_offset
        tables.producers[row, columns.TXN_FIRST_IS_COMMIT] = outcome == _COMMIT_MARKER
    if row >= 0:
        if tables.producers[row, columns.TXN_IS_PASSED_ON]:
            tables.producers[row, columns.TXN_IS_PASSED_ON] = 0
            _pass_record(rows, number, 0, record_offset, segment, tables)
        if tables.producers[row, columns.TXN_IS_OPEN]:
            tables.producers[row, columns.TXN_IS_OPEN] = 0
            _end_transaction(row, outcome == _COMMIT_MARKER, rules[MARKER_DECIDES] != 0, tables)
    return DONE


@kernel
def _read_marker(rows: Int64s, number: Number, data: Bytes, position: Number, end: Number) -> tuple[Number, Number]:
    """Outcome, `_ODD` for what is no plain marker, and record offset of the one record, whose key is version and outcome."""
    odd = (np.int64(_ODD), np.int64(-1))
    if rows[number, scan.RECORD_COUNT] != 1 or rows[number, scan.PRODUCER_ID] == _NO_PRODUCER_ID:
        return odd
    size, position = varint(data, position, end)
    if position == NO_POSITION or size < 1 or size != end - position:
        return odd
    _, position = varlong(data, position + 1, end)
    if position == NO_POSITION:
        return odd
    offset_delta, position = varint(data, position, end)
    if position == NO_POSITION:
        return odd
    key_size, position = varint(data, position, end)
    if position == NO_POSITION or key_size != 4 or end - position < 4:
        return odd
    version, outcome = int16(data, position), int16(data, position + 2)
    value_size, position = varint(data, position + 4, end)
    if position == NO_POSITION or value_size > end - position or version < 0 or outcome < 0 or outcome > _COMMIT_MARKER:
        return odd
    position += max(value_size, 0)
    record_offset = rows[number, scan.BASE_OFFSET] + offset_delta
    is_in_batch = rows[number, scan.BASE_OFFSET] <= record_offset <= rows[number, scan.LAST_OFFSET]
    if end - position != 1 or data[position] != 0 or not is_in_batch:
        return odd
    return outcome, record_offset


@kernel
def _end_transaction(row: Number, is_commit: bool, marker_decides: bool, tables: Tables) -> None:
    """Install what is staged, or drop it; a commit gives way to one that lies behind it."""
    counts, staged, commits = tables.counts, tables.staged, tables.commits
    place = tables.producers[row, columns.TXN_FIRST_STAGED]
    while place >= 0:
        key, record_offset = staged[place, columns.STAGED_KEY], staged[place, columns.RECORD_OFFSET]
        present = commits[key, columns.RECORD_OFFSET]
        is_void = record_offset < tables.void_below[key, 0]
        if is_commit and not is_void and (marker_decides or present == columns.NOTHING or present < record_offset):
            for column in range(columns.COMMIT_COLUMNS):
                commits[key, column] = staged[place, column]
            tables.key_topic_ids[key, 0] = tables.staged_topic_ids[place, 0]
            tables.key_topic_ids[key, 1] = tables.staged_topic_ids[place, 1]
        following = staged[place, columns.NEXT]
        staged[place, columns.NEXT] = counts[columns.FREE_STAGED]
        staged[place, columns.METADATA] = 0
        counts[columns.FREE_STAGED] = place
        place = following
