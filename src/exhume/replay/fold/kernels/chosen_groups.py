"""Fold for a few groups only: a batch that has only commits of other groups is checked, and leaves no row.

A load that ends in an error holds nothing of any group. So every record is checked as carefully as in a fold of all groups. A batch is
stepped over only if its records would become rows of keys and nothing more. A tombstone, a transaction, a new name or a new topic id is
folded as usual.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from exhume.codecs.batch_format import NO_PRODUCER_ID
from exhume.codecs.kernels import inlined, kernel, scan
from exhume.codecs.kernels.primitives import NO_POSITION, NOT_EXACT, hash_of, int16, int64, is_same, kind_of_text, word
from exhume.codecs.kernels.readers import (
    COMMON_BYTES,
    COMMON_METADATA_AT,
    COMMON_VERSION,
    PARTITION_BYTES,
    TYPE_BYTES,
    common_metadata_size,
    read_commit,
    read_commit_key,
    read_group_key,
)
from exhume.codecs.kernels.records import LEAST_BYTES, UNLIKE_ANY, Like, end_of, read_fields, read_like
from exhume.codecs.kernels.types import Bytes, Int64s, Number, Rows
from exhume.codecs.record_types import GROUP_METADATA, LEGACY_OFFSET_COMMIT, OFFSET_COMMIT
from exhume.replay.fold import tables as columns
from exhume.replay.fold.kernels.batches import fold
from exhume.replay.fold.kernels.checks import checked
from exhume.replay.fold.kernels.groups import fold_group
from exhume.replay.fold.kernels.names import Names, find_name, find_producer
from exhume.replay.fold.kernels.numbering import group_of
from exhume.replay.fold.kernels.transactions import producer_of
from exhume.replay.fold.rules import (
    ACCEPTED_0,
    ACCEPTED_1,
    CHOSEN_GROUPS,
    DONE,
    IS_PART,
    LAST_COUNTED_OFFSET,
    NOTES_BATCHES,
    SEED,
    START_OFFSET,
)
from exhume.replay.fold.tables import Tables, with_room

#: The most metadata with which the size of a common value is a varint of one byte.
_MOST_SHORT_METADATA = 0x3F - COMMON_BYTES
_UNKNOWN, _NOT_TAKEN = -2, -2

#: Entries of `room`: the numbers of records, bytes and batches that still fit.
RECORDS, BYTES, BATCHES = range(3)


def choose_groups(groups: Sequence[str], tables: Tables, rules: Int64s) -> Tables:
    """Enter the chosen groups into these empty tables, as the first groups."""
    names = [group.encode(errors="replace") for group in groups]
    content = np.frombuffer(b"".join(names) or b"\0", np.uint8)
    sizes = np.array([len(name) for name in names], np.int64)
    tables = with_room(tables, len(names), len(content), 0)
    _number_groups(content, sizes, rules, tables)
    return tables


@kernel
def _number_groups(content: Bytes, sizes: Int64s, rules: Int64s, tables: Tables) -> None:
    start = np.int64(0)
    for number in range(len(sizes)):
        group_of(content, start, sizes[number], rules[SEED], tables)
        start += sizes[number]
    rules[CHOSEN_GROUPS] = tables.counts[columns.GROUPS]


@kernel
def fold_chosen(
    rows: Rows, first: Number, count: Number, data: Bytes, bodies: Rows, segment: Number, rules: Int64s, tables: Tables, room: Int64s
) -> Number:
    """Fold as `fold` does, for the chosen groups only. A batch that is stepped over needs no room in `tables`.

    Ends also before a batch that needs more than `room`; each folded batch takes from `room`.
    """
    number = first
    while True:
        number = _step_over(rows, number, count, data, bodies, segment, rules, tables)
        if number == count or not takes_room(rows, number, bodies, room):
            return number
        if fold(rows, number, number + 1, data, bodies, segment, rules, tables) == number:
            return number
        if rules[NOTES_BATCHES]:
            _note(rows, number, data, segment, rules, tables)
        number += 1


@inlined
def takes_room(rows: Rows, number: Number, bodies: Rows, room: Int64s) -> Number:
    """Take the room that a batch needs, if there is enough."""
    size = bodies[number, 1] - bodies[number, 0]
    # A batch whose header states more records than fit into its bytes fails when it is split.
    records = min(max(rows[number, scan.RECORD_COUNT], 0), size // LEAST_BYTES)
    if room[RECORDS] < records or room[BYTES] < size or room[BATCHES] < 1:
        return False
    room[RECORDS] -= records
    room[BYTES] -= size
    room[BATCHES] -= 1
    return True


@inlined
def _step_over(
    rows: Rows, first: Number, count: Number, data: Bytes, bodies: Rows, segment: Number, rules: Int64s, tables: Tables
) -> Number:
    """Return the first of the batches `first` to `count` of `rows` that must be folded; only count the batches before it."""
    counts, groups = tables.counts, tables.groups
    number = first
    while number < count:
        last_offset = rows[number, scan.LAST_OFFSET]
        if checked(rows, number, rules, counts) != DONE or last_offset < rules[START_OFFSET] or last_offset >= rules[LAST_COUNTED_OFFSET]:
            break
        if rows[number, scan.ATTRIBUTES] & (scan.TRANSACTIONAL | scan.CONTROL):
            break
        start, end = bodies[number, 0], bodies[number, 1]
        names = tables.group_names
        is_of_others = _has_commits_of_others(
            rows, number, data, start, end, rules, counts, groups, names, tables.topic_names, tables.topic_topic_ids
        ) or _is_group_of_others(rows, number, data, start, end, segment, rules, counts, groups, names, tables.scratch)
        if not is_of_others:
            break
        counts[columns.NEXT_OFFSET] = last_offset + 1
        counts[columns.BATCH_BYTES] += rows[number, scan.SIZE]
        if counts[columns.FIRST_OFFSET] < 0:
            counts[columns.FIRST_OFFSET] = rows[number, scan.BASE_OFFSET]
        counts[columns.RECORDS] += rows[number, scan.RECORD_COUNT]
        number += 1
    return number


class _KeyNames(NamedTuple):
    """The names in a commit key of another group: places, and a bit for each value version that is accepted. `size` is -1 for none.

    `start` and `size` are those of the key without its partition.
    """

    start: Number
    size: Number
    group_start: Number
    group_size: Number
    topic_start: Number
    topic_size: Number
    accepted: Number


_NO_NAMES = _KeyNames(0, -1, 0, -1, 0, -1, 0)


@inlined
def _has_commits_of_others(
    rows: Rows,
    number: Number,
    data: Bytes,
    position: Number,
    end: Number,
    rules: Int64s,
    counts: Int64s,
    groups: Rows,
    group_names: Names,
    topic_names: Names,
    topic_topic_ids: Rows,
) -> Number:
    """True for a batch that has only commits of other groups that are known, and that no load refuses or reports."""
    base_offset, last_offset = rows[number, scan.BASE_OFFSET], rows[number, scan.LAST_OFFSET]
    left, next_offset = rows[number, scan.RECORD_COUNT], base_offset
    if left > (end - position) // LEAST_BYTES:
        return False
    names, topic, like = _NO_NAMES, np.int64(_UNKNOWN), UNLIKE_ANY
    while left > 0:
        record_end, _, offset_delta, key_start, key_size, value_start, value_size, like = read_like(data, position, end, like)
        record_offset = base_offset + offset_delta
        if record_end == NO_POSITION or value_size < 0 or record_offset < next_offset or record_offset > last_offset:
            return False
        left, position, next_offset = left - 1, record_end, record_offset + 1
        # The same bytes as in the record before, without its partition, need no second look.
        if key_size - PARTITION_BYTES != names.size or not is_same(data, names.start, data, key_start, names.size):
            names, topic = _names_of_other(data, key_start, key_size, names, rules, counts, groups, group_names), np.int64(_UNKNOWN)
        if names.size < 0:
            return False
        # As in `fold`.
        if names.accepted >> COMMON_VERSION & 1 and _is_exact_common_value(data, value_start, value_size):
            least, most = next_offset - base_offset, last_offset - base_offset
            left, position, least = _pass_alike(data, position, end, left, like, names.start, names.size, least, most)
            next_offset = base_offset + least
            continue
        topic_id = _topic_id_of(data, value_start, value_start + value_size, names.accepted)
        if topic_id == _NOT_TAKEN:
            return False
        if topic_id >= 0:
            if topic == _UNKNOWN:
                topic_hash = hash_of(data, names.topic_start, names.topic_size, rules[SEED])
                topic = find_name(topic_names, data, names.topic_start, names.topic_size, topic_hash)
            if topic < 0 or not _is_known(topic_topic_ids[topic], data, topic_id):
                return False
    return position == end


@inlined
def _topic_id_of(data: Bytes, start: Number, end: Number, accepted: Number) -> Number:
    """Return the place of the topic id in a value, -1 for none; `_NOT_TAKEN` if the value is not accepted."""
    value = read_commit(data, start, end)
    return value.topic_id_start if value.after != NO_POSITION and accepted >> value.version & 1 else np.int64(_NOT_TAKEN)


@inlined
def _names_of_other(
    data: Bytes, start: Number, size: Number, before: _KeyNames, rules: Int64s, counts: Int64s, groups: Rows, group_names: Names
) -> _KeyNames:
    """Return the names in a commit key if its group is known, not chosen, and has a commit; `before` are the names in the last key."""
    record_type = int16(data, start) if size >= TYPE_BYTES else -1
    key = read_commit_key(data, start + TYPE_BYTES, start + size)
    if (record_type != OFFSET_COMMIT and record_type != LEGACY_OFFSET_COMMIT) or key.after != start + size:
        return _NO_NAMES
    if key.group_size != before.group_size or not is_same(data, before.group_start, data, key.group_start, key.group_size):
        group_hash = hash_of(data, key.group_start, key.group_size, rules[SEED])
        group = find_name(group_names, data, key.group_start, key.group_size, group_hash)
        if group < rules[CHOSEN_GROUPS] or groups[group, columns.FIRST_COMMIT] < 0:
            return _NO_NAMES
        groups[group, columns.LEFT_OUT] = 1
    if kind_of_text(data, key.topic_start, key.topic_size) == NOT_EXACT:
        return _NO_NAMES
    accepted = rules[ACCEPTED_1]
    if record_type == LEGACY_OFFSET_COMMIT:
        accepted = rules[ACCEPTED_0]
        counts[columns.HAS_LEGACY_COMMITS] = 1
    return _KeyNames(start, size - PARTITION_BYTES, key.group_start, key.group_size, key.topic_start, key.topic_size, accepted)


@kernel
def _pass_alike(
    data: Bytes,
    position: Number,
    end: Number,
    left: Number,
    like: Like,
    known_start: Number,
    known_size: Number,
    least_delta: Number,
    most_delta: Number,
) -> tuple[Number, Number, Number]:
    """Step over commits that have the form of the commit before them, its group and topic, and a common value.

    Returns the number of records left in the batch, the byte at which they begin, and the least offset delta that may follow.
    """
    mask, head, length_bits, deltas_at, key_at, _, value_at = like
    while left > 0 and value_at + COMMON_BYTES < end - position:
        first, value_start = np.int64(word(data, position)), position + value_at
        metadata_size = int16(data, value_start + COMMON_METADATA_AT - 2)
        record_end = value_start + COMMON_BYTES + metadata_size + 1
        if first & mask != head or metadata_size < 0 or metadata_size > _MOST_SHORT_METADATA:
            break
        if data[np.uint64(value_start - 1)] != 2 * (COMMON_BYTES + metadata_size) or int16(data, value_start) != COMMON_VERSION:
            break
        if record_end != end_of(position, first, length_bits, deltas_at) or record_end > end or data[np.uint64(record_end - 1)] != 0:
            break
        offset_delta = np.int64(data[np.uint64(position + deltas_at + 1)]) >> 1
        if offset_delta < least_delta or offset_delta > most_delta:
            break
        if not is_same(data, known_start, data, position + key_at, known_size):
            break
        if metadata_size and kind_of_text(data, value_start + COMMON_METADATA_AT, metadata_size) == NOT_EXACT:
            break
        left, position, least_delta = left - 1, record_end, offset_delta + 1
    return left, position, least_delta


@inlined
def _is_exact_common_value(data: Bytes, start: Number, size: Number) -> Number:
    """True for a common commit value without metadata, or with metadata that is exact UTF-8."""
    metadata_size = common_metadata_size(data, start, size)
    return metadata_size == 0 or (metadata_size > 0 and kind_of_text(data, start + COMMON_METADATA_AT, metadata_size) != NOT_EXACT)


@inlined
def _is_group_of_others(
    rows: Rows,
    number: Number,
    data: Bytes,
    start: Number,
    end: Number,
    segment: Number,
    rules: Int64s,
    counts: Int64s,
    groups: Rows,
    group_names: Names,
    scratch: Rows,
) -> Number:
    """True for a batch with one record, of a group that is not chosen; that record is folded."""
    if rows[number, scan.RECORD_COUNT] != 1:
        return False
    record_end, _, offset_delta, key_start, key_size, value_start, value_size = read_fields(data, start, end)
    if record_end != end or key_size < TYPE_BYTES or int16(data, key_start) != GROUP_METADATA:
        return False
    key = read_group_key(data, key_start + TYPE_BYTES, key_start + key_size)
    if key.after != key_start + key_size:
        return False
    record_offset = rows[number, scan.BASE_OFFSET] + offset_delta
    if offset_delta < 0 or record_offset > rows[number, scan.LAST_OFFSET]:
        return False
    group_hash = hash_of(data, key.group_start, key.group_size, rules[SEED])
    group = find_name(group_names, data, key.group_start, key.group_size, group_hash)
    if group < rules[CHOSEN_GROUPS]:
        return False
    place = np.int64(0)
    return fold_group(
        rows, number, start, place, record_offset, data, value_start, value_size, segment, group, rules, counts, groups, scratch
    )


@kernel
def _note(rows: Rows, number: Number, data: Bytes, segment: Number, rules: Int64s, tables: Tables) -> None:
    """Note the batch that was folded last if it has a record of a chosen group, or ends a transaction of one."""
    producers, noted, producer_id = tables.producers, tables.noted, rows[number, scan.PRODUCER_ID]
    attributes = rows[number, scan.ATTRIBUTES]
    # A batch before the log start is not split.
    is_certain = rows[number, scan.LAST_OFFSET] >= rules[START_OFFSET]
    if attributes & scan.CONTROL:
        row = find_producer(producers, tables.producer_index, producer_id, rules[SEED])
        is_meant = row >= 0 and producers[row, columns.TXN_IS_NOTED] != 0
        if row >= 0:
            # The marker also ends a transaction that began before this part.
            is_meant |= rules[IS_PART] != 0 and producers[row, columns.TXN_FIRST_MARKER] == tables.records[0, columns.OFFSET]
            producers[row, columns.TXN_IS_NOTED] = 0
        if is_certain and not is_meant:
            return
    elif is_certain and not _names_chosen_group(tables.records, rows[number, scan.RECORD_COUNT], data, rules, tables.group_names):
        return
    elif producer_id != NO_PRODUCER_ID:
        producers[producer_of(rows, number, rules, tables), columns.TXN_IS_NOTED] = 1
    place = tables.counts[columns.NOTED]
    noted[place, columns.NOTED_SEGMENT] = segment
    for column in range(scan.COLUMNS):
        noted[place, columns.NOTED_BATCH + column] = rows[number, column]
    tables.counts[columns.NOTED] += 1


@inlined
def _names_chosen_group(records: Rows, count: Number, data: Bytes, rules: Int64s, group_names: Names) -> Number:
    """True if the key of one of these records names, after the type, a chosen group."""
    known_start, known_size = np.int64(0), np.int64(-1)
    for index in range(count):
        key_start, key_size = records[index, columns.KEY_START], records[index, columns.KEY_SIZE]
        key = read_group_key(data, key_start + TYPE_BYTES, key_start + key_size)
        start, size = key.group_start, key.group_size
        if key.after == NO_POSITION:
            continue
        if size == known_size and is_same(data, known_start, data, start, size):
            continue
        known_start, known_size = start, size
        group = find_name(group_names, data, start, size, hash_of(data, start, size, rules[SEED]))
        if 0 <= group < rules[CHOSEN_GROUPS]:
            return True
    return False


def with_notes(tables: Tables, earlier: Tables, later: Tables) -> Tables:
    """Return these tables with the batches that were noted in both."""
    used, more = int(earlier.counts[columns.NOTED]), int(later.counts[columns.NOTED])
    noted = np.concatenate([earlier.noted[:used], later.noted[:more]])
    tables.counts[columns.NOTED] = len(noted)
    return tables._replace(noted=noted)


@inlined
def _is_known(topic_id: Int64s, data: Bytes, start: Number) -> Number:
    return topic_id[0] == int64(data, start) and topic_id[1] == int64(data, start + 8)
