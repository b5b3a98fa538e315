"""Join the folds of two parts that follow one another: the later part overrides the earlier one.

    fold(A ++ B) == join(fold(A), fold(B))

So segments can be folded side by side. A marker ends the commits before it, also those of the earlier part: the first marker of each
producer in the later part ends the transaction that the earlier part left open. Its commits come before all records of the later
part. So a commit of the later part overrides them, and a tombstone of the later part removes them. One exception: the marker comes
after the tombstone, and in this release pending commits survive a tombstone.
"""

from __future__ import annotations

import numpy as np

from exhume.codecs.kernels import kernel
from exhume.codecs.kernels.primitives import hash_of
from exhume.codecs.kernels.types import Int64s, Number, Rows
from exhume.replay.fold import tables as columns
from exhume.replay.fold.kernels.for_loader import pass_commit, pass_group
from exhume.replay.fold.kernels.keys import GROUP, PARTITION, TOPIC, fetch_slot, hash_of_key
from exhume.replay.fold.kernels.names import SIZE, START, Names, add_name, enter_producer, find_name, find_producer
from exhume.replay.fold.kernels.numbering import key_of
from exhume.replay.fold.kernels.transactions import free_place, install, let_go
from exhume.replay.fold.tables import Tables, with_room

#: The kernel asks the processor to fetch the slot of a key so many keys before it needs it.
_KEYS_AHEAD = 16


def joined(earlier: Tables, later: Tables, seed: int) -> Tables | None:
    """Join `later` to `earlier` and return it; None if record offsets decrease between them, or leader epochs within a segment."""
    used, more = earlier.counts, later.counts
    if more[columns.FIRST_BASE_OFFSET] <= used[columns.LAST_OFFSET_SEEN]:
        return None
    if more[columns.BEGINS_WITHIN] and more[columns.FIRST_LEADER_EPOCH] < used[columns.LEADER_EPOCH_SEEN]:
        return None
    if used[columns.FIRST_BASE_OFFSET] < 0:
        begin = [columns.FIRST_BASE_OFFSET, columns.FIRST_LEADER_EPOCH, columns.BEGINS_WITHIN]
        used[begin] = more[begin]
    used[[columns.LAST_OFFSET_SEEN, columns.LEADER_EPOCH_SEEN]] = more[[columns.LAST_OFFSET_SEEN, columns.LEADER_EPOCH_SEEN]]
    used[columns.IS_CUT] |= more[columns.IS_CUT]
    if more[columns.FIRST_OFFSET] < 0:
        return earlier
    if more[columns.FIRST_OFFSET] < used[columns.NEXT_OFFSET]:
        return None
    of_rows = (columns.KEYS, columns.GROUPS, columns.TOPICS, columns.PASSED, columns.TOPIC_IDS, columns.STAGED)
    rows = int(max(more[list(of_rows)]) + more[columns.GROUPS])
    size = int(max(more[[columns.GROUP_BYTES, columns.TOPIC_BYTES, columns.METADATA_BYTES]]))
    earlier = with_room(earlier, rows, size, int(more[columns.PRODUCERS]))
    _join(earlier, later, seed)
    return earlier


@kernel
def _join(earlier: Tables, later: Tables, seed: Number) -> None:
    used, more = earlier.counts, later.counts
    groups, topics = later.group_numbers, later.topic_numbers
    for number in range(more[columns.GROUPS]):
        known = used[columns.GROUPS]
        groups[number, 0] = _number_of(earlier.group_names, used, columns.GROUPS, columns.GROUP_BYTES, later.group_names, number, seed)
        if groups[number, 0] == known:
            earlier.groups[known, columns.IS_NEW] = 1
    for number in range(more[columns.TOPICS]):
        topics[number, 0] = _number_of(earlier.topic_names, used, columns.TOPICS, columns.TOPIC_BYTES, later.topic_names, number, seed)
    for number in range(more[columns.GROUPS]):
        left_out = earlier.groups[groups[number, 0], columns.LEFT_OUT] | later.groups[number, columns.LEFT_OUT]
        _join_group(earlier, groups[number, 0], later.groups, number)
        earlier.groups[groups[number, 0], columns.LEFT_OUT] = left_out
    for number in range(more[columns.PASSED]):
        row = used[columns.PASSED]
        for column in range(columns.PASSED_COLUMNS):
            earlier.passed[row, column] = later.passed[number, column]
        if earlier.passed[row, columns.PASSED_GROUP] >= 0:
            earlier.passed[row, columns.PASSED_GROUP] = groups[earlier.passed[row, columns.PASSED_GROUP], 0]
        used[columns.PASSED] += 1
    for number in range(more[columns.PRODUCERS]):
        later.producers[number, columns.TXN_NUMBER] = _producer_of(earlier, later.producers[number, columns.TXN_PRODUCER_ID], seed)
    for number in range(more[columns.KEYS]):
        if number + _KEYS_AHEAD < more[columns.KEYS]:
            named = later.keys.rows[number + _KEYS_AHEAD]
            partition = np.int64(named[PARTITION])
            fetch_slot(earlier.keys, hash_of_key(groups[named[GROUP], 0], topics[named[TOPIC], 0], partition, seed))
        named = later.keys.rows[number]
        key = key_of(
            groups[named[GROUP], 0], topics[named[TOPIC], 0], np.int64(named[PARTITION]), seed, earlier.keys, used, earlier.commits
        )
        later.key_numbers[number, 0] = key
        earlier.key_numbers[key, 0] = number + 1
    for number in range(more[columns.PRODUCERS]):
        if later.producers[number, columns.TXN_FIRST_MARKER] != columns.NOTHING:
            _end_earlier_transaction(earlier, later, number)
    for number in range(more[columns.KEYS]):
        key = later.key_numbers[number, 0]
        has_tombstone = later.void_below[number, columns.LAST_TOMBSTONE] > 0
        is_settled = earlier.key_numbers[key, 0] < 0
        earlier.key_numbers[key, 0] = 0
        if not is_settled and (has_tombstone or later.commits[number, columns.RECORD_OFFSET] != columns.NOTHING):
            _join_commit(
                earlier.commits[key], earlier.key_topic_ids[key], earlier, later, later.commits[number], later.key_topic_ids[number]
            )
        for column in range(2):
            earlier.void_below[key, column] = max(earlier.void_below[key, column], later.void_below[number, column])
    for number in range(more[columns.PRODUCERS]):
        _join_transaction(earlier, later, number)
    for number in range(more[columns.TOPIC_IDS]):
        row = used[columns.TOPIC_IDS]
        earlier.topic_ids[row, 0] = topics[later.topic_ids[number, 0], 0]
        earlier.topic_ids[row, 1] = later.topic_ids[number, 1]
        earlier.topic_ids[row, 2] = later.topic_ids[number, 2]
        used[columns.TOPIC_IDS] += 1
    used[columns.HAS_LEGACY_COMMITS] |= more[columns.HAS_LEGACY_COMMITS]
    used[columns.RECORDS] += more[columns.RECORDS]
    used[columns.BATCH_BYTES] += more[columns.BATCH_BYTES]
    used[columns.NEXT_OFFSET] = more[columns.NEXT_OFFSET]
    if used[columns.FIRST_OFFSET] < 0:
        used[columns.FIRST_OFFSET] = more[columns.FIRST_OFFSET]


@kernel
def _number_of(names: Names, counts: Int64s, count: Number, count_bytes: Number, others: Names, other: Number, seed: Number) -> Number:
    """Return the number in `names` of a name of `others`; a new name gets the next number."""
    start, size = others.places[other, START], others.places[other, SIZE]
    name_hash = hash_of(others.content, start, size, seed)
    number = find_name(names, others.content, start, size, name_hash)
    if number < 0:
        number = counts[count]
        add_name(names, number, counts[count_bytes], others.content, start, size, name_hash)
        counts[count] += 1
        counts[count_bytes] += size
    return number


@kernel
def _join_commit(target: Int64s, topic_ids: Int64s, earlier: Tables, later: Tables, commit: Int64s, more_topic_ids: Int64s) -> None:
    """Copy a commit of the later fold, and its topic id, to rows of the earlier fold."""
    for column in range(columns.COMMIT_COLUMNS):
        target[column] = commit[column]
    topic_ids[0], topic_ids[1] = more_topic_ids[0], more_topic_ids[1]
    if commit[columns.RECORD_OFFSET] == columns.NOTHING:
        return
    packed = commit[columns.METADATA]
    if packed:
        start, size = packed >> columns.SIZE_BITS, packed & (1 << columns.SIZE_BITS) - 1
        place = earlier.counts[columns.METADATA_BYTES]
        for offset in range(size):
            earlier.metadata[place + offset] = later.metadata[start + offset]
        earlier.counts[columns.METADATA_BYTES] += size
        target[columns.METADATA] = place << columns.SIZE_BITS | size
    producer = commit[columns.PRODUCER]
    if producer:
        row = later.producers[(producer >> columns.EPOCH_BITS) - 1, columns.TXN_NUMBER]
        target[columns.PRODUCER] = (row + 1) << columns.EPOCH_BITS | producer & (1 << columns.EPOCH_BITS) - 1


# Transactions


@kernel
def _producer_of(earlier: Tables, producer_id: Number, seed: Number) -> Number:
    """Return the row of this producer in the earlier fold, known or new."""
    row = find_producer(earlier.producers, earlier.producer_index, producer_id, seed)
    if row < 0:
        row = earlier.counts[columns.PRODUCERS]
        earlier.counts[columns.PRODUCERS] += 1
        for column in range(columns.TXN_COLUMNS):
            earlier.producers[row, column] = 0
        earlier.producers[row, columns.TXN_PRODUCER_ID] = producer_id
        earlier.producers[row, columns.TXN_FIRST_MARKER] = columns.NOTHING
        enter_producer(earlier.producers, row, earlier.producer_index, seed)
    return row


@kernel
def _end_earlier_transaction(earlier: Tables, later: Tables, number: Number) -> None:
    """End the open transaction of the earlier fold by the first marker of this producer in the later fold."""
    staged = earlier.staged
    row = later.producers[number, columns.TXN_NUMBER]
    marker_offset = later.producers[number, columns.TXN_FIRST_MARKER]
    if earlier.producers[row, columns.TXN_FIRST_MARKER] == columns.NOTHING:
        earlier.producers[row, columns.TXN_FIRST_MARKER] = marker_offset
        earlier.producers[row, columns.TXN_FIRST_IS_COMMIT] = later.producers[number, columns.TXN_FIRST_IS_COMMIT]
    if not earlier.producers[row, columns.TXN_IS_OPEN]:
        return
    earlier.producers[row, columns.TXN_IS_OPEN] = 0
    place = earlier.producers[row, columns.TXN_FIRST_STAGED]
    while place >= 0:
        key, record_offset = staged[place, columns.STAGED_KEY], staged[place, columns.RECORD_OFFSET]
        other = abs(earlier.key_numbers[key, 0]) - 1
        is_installed = later.producers[number, columns.TXN_FIRST_IS_COMMIT] != 0 and record_offset >= earlier.void_below[key, 0]
        present = earlier.commits[key, columns.RECORD_OFFSET]
        if other >= 0:
            # A commit of the later fold comes after this commit, so it stays. Its tombstone is before or after the marker.
            tombstone = later.void_below[other, columns.LAST_TOMBSTONE]
            if (
                later.commits[other, columns.RECORD_OFFSET] != columns.NOTHING
                or later.void_below[other, 0] > 0
                or marker_offset < tombstone
            ):
                is_installed = False
            elif tombstone > 0 and is_installed:
                if earlier.key_numbers[key, 0] > 0:
                    present = columns.NOTHING
                earlier.key_numbers[key, 0] = -other - 1
        if is_installed and (present == columns.NOTHING or present < record_offset):
            install(place, earlier)
        place = let_go(place, earlier)


@kernel
def _join_transaction(earlier: Tables, later: Tables, number: Number) -> None:
    """Add the open transaction of the later fold to the one that the earlier fold left open, or begin a new one."""
    staged = earlier.staged
    mine, its = earlier.producers[later.producers[number, columns.TXN_NUMBER]], later.producers[number]
    if not its[columns.TXN_IS_OPEN]:
        return
    other = its[columns.TXN_FIRST_STAGED]
    while other >= 0:
        place = free_place(earlier)
        _join_commit(staged[place], earlier.staged_topic_ids[place], earlier, later, later.staged[other], later.staged_topic_ids[other])
        staged[place, columns.STAGED_KEY] = later.key_numbers[later.staged[other, columns.STAGED_KEY], 0]
        staged[place, columns.NEXT] = -1
        if mine[columns.TXN_IS_OPEN]:
            staged[mine[columns.TXN_LAST_STAGED], columns.NEXT] = place
        else:
            mine[columns.TXN_IS_OPEN] = 1
            mine[columns.TXN_FIRST_STAGED] = place
            mine[columns.TXN_FIRST_OFFSET] = its[columns.TXN_FIRST_OFFSET]
            mine[columns.TXN_FIRST_TIMESTAMP] = its[columns.TXN_FIRST_TIMESTAMP]
        mine[columns.TXN_LAST_STAGED] = place
        other = later.staged[other, columns.NEXT]
    mine[columns.TXN_LAST_OFFSET] = its[columns.TXN_LAST_OFFSET]
    mine[columns.TXN_LAST_TIMESTAMP] = its[columns.TXN_LAST_TIMESTAMP]
    mine[columns.TXN_EPOCH] = its[columns.TXN_EPOCH]


@kernel
def _join_group(earlier: Tables, group: Number, others: Rows, other: Number) -> None:
    """Join the group of both folds. If one fold passed its records on to the loader, those of the other are passed on too."""
    groups = earlier.groups
    kind, first_commit = others[other, columns.KIND], others[other, columns.FIRST_COMMIT]
    is_new = groups[group, columns.IS_NEW]
    groups[group, columns.IS_NEW] = 0
    if is_new:
        for column in range(columns.GROUP_COLUMNS):
            groups[group, column] = others[other, column]
        groups[group, columns.IS_NEW] = 0
        return
    if others[other, columns.IS_PASSED_ON]:
        pass_group(group, earlier)
        groups[group, columns.FIRST_COMMIT] = first_commit
        return
    if groups[group, columns.IS_PASSED_ON]:
        if kind != columns.NO_KIND:
            row = earlier.counts[columns.PASSED]
            earlier.passed[row, columns.PASSED_SEGMENT] = others[other, columns.KIND_SEGMENT]
            earlier.passed[row, columns.PASSED_BATCH] = others[other, columns.KIND_BATCH]
            earlier.passed[row, columns.PASSED_PLACE] = others[other, columns.KIND_PLACE]
            earlier.passed[row, columns.PASSED_OFFSET] = others[other, columns.KIND_OFFSET]
            earlier.passed[row, columns.PASSED_GROUP] = -1
            earlier.counts[columns.PASSED] += 1
        if kind != columns.VALUE and first_commit >= 0 and (kind != columns.NO_KIND or groups[group, columns.FIRST_COMMIT] < 0):
            pass_commit(group, first_commit, earlier)
        if kind != columns.NO_KIND or groups[group, columns.FIRST_COMMIT] < 0:
            groups[group, columns.FIRST_COMMIT] = -1 if kind == columns.VALUE else first_commit
        return
    if kind == columns.NO_KIND:
        if groups[group, columns.FIRST_COMMIT] < 0:
            groups[group, columns.FIRST_COMMIT] = first_commit
        return
    first_tombstone = groups[group, columns.FIRST_TOMBSTONE]
    has_value = others[other, columns.HAS_VALUE] or groups[group, columns.HAS_VALUE]
    keeps_tombstone = kind == columns.TOMBSTONE and not others[other, columns.HAS_VALUE] and first_tombstone >= 0
    for column in range(columns.GROUP_COLUMNS):
        groups[group, column] = others[other, column]
    groups[group, columns.HAS_VALUE] = has_value
    groups[group, columns.IS_NEW] = 0
    if keeps_tombstone:
        groups[group, columns.FIRST_TOMBSTONE] = first_tombstone
