"""Joining the folds of two stretches that follow one another: what is behind outdoes what is in front.

    fold(A ++ B) == join(fold(A), fold(B))

so segments can be folded side by side. A marker decides over commits in front of it, wherever they lie: the first one of each producer
ends what the stretch in front left open. Such a commit lies in front of everything behind, so what was written behind outdoes it, and a
tombstone behind takes it away, unless the marker comes after that and the release lets what waits survive a tombstone.
"""

from __future__ import annotations

import numpy as np

from exhume.codecs.kernels import kernel
from exhume.codecs.kernels.primitives import hash_of
from exhume.codecs.kernels.types import Int64s, Number, Rows
from exhume.replay.survivors import tables as columns
from exhume.replay.survivors.keys import GROUP, PARTITION, TOPIC, fetch_slot, hash_of_key
from exhume.replay.survivors.names import SIZE, START, Names, add_name, enter_producer, find_name, find_producer
from exhume.replay.survivors.numbering import key_of
from exhume.replay.survivors.passing import pass_commit, pass_group
from exhume.replay.survivors.tables import Tables, with_room
from exhume.replay.survivors.transactions import free_place, install, let_go

#: So many keys ahead the processor is told where to look.
_KEYS_AHEAD = 16


def joined(front: Tables, behind: Tables, seed: int) -> Tables | None:
    """`front` with what `behind` says; None where record offsets go back between them, or leader epochs within a segment."""
    used, more = front.counts, behind.counts
    if more[columns.FIRST_BASE_OFFSET] <= used[columns.LAST_OFFSET_SEEN]:
        return None
    if more[columns.BEGINS_WITHIN] and more[columns.FIRST_LEADER_EPOCH] < used[columns.LEADER_EPOCH_SEEN]:
        return None
    used[[columns.LAST_OFFSET_SEEN, columns.LEADER_EPOCH_SEEN]] = more[[columns.LAST_OFFSET_SEEN, columns.LEADER_EPOCH_SEEN]]
    used[columns.IS_CUT] |= more[columns.IS_CUT]
    if more[columns.FIRST_OFFSET] < 0:
        return front
    if more[columns.FIRST_OFFSET] < used[columns.NEXT_OFFSET]:
        return None
    of_rows = (columns.KEYS, columns.GROUPS, columns.TOPICS, columns.PASSED, columns.TOPIC_IDS, columns.STAGED)
    rows = int(max(more[list(of_rows)]) + more[columns.GROUPS])
    size = int(max(more[[columns.GROUP_BYTES, columns.TOPIC_BYTES, columns.METADATA_BYTES]]))
    front = with_room(front, rows, size, int(more[columns.PRODUCERS]))
    _join(front, behind, seed)
    return front


@kernel
def _join(front: Tables, behind: Tables, seed: Number) -> None:
    used, more = front.counts, behind.counts
    groups, topics = behind.group_numbers, behind.topic_numbers
    for number in range(more[columns.GROUPS]):
        known = used[columns.GROUPS]
        groups[number, 0] = _number_of(front.group_names, used, columns.GROUPS, columns.GROUP_BYTES, behind.group_names, number, seed)
        if groups[number, 0] == known:
            front.groups[known, columns.IS_NEW] = 1
    for number in range(more[columns.TOPICS]):
        topics[number, 0] = _number_of(front.topic_names, used, columns.TOPICS, columns.TOPIC_BYTES, behind.topic_names, number, seed)
    for number in range(more[columns.GROUPS]):
        left_out = front.groups[groups[number, 0], columns.LEFT_OUT] | behind.groups[number, columns.LEFT_OUT]
        _join_group(front, groups[number, 0], behind.groups, number)
        front.groups[groups[number, 0], columns.LEFT_OUT] = left_out
    for number in range(more[columns.PASSED]):
        row = used[columns.PASSED]
        for column in range(columns.PASSED_COLUMNS):
            front.passed[row, column] = behind.passed[number, column]
        if front.passed[row, columns.PASSED_GROUP] >= 0:
            front.passed[row, columns.PASSED_GROUP] = groups[front.passed[row, columns.PASSED_GROUP], 0]
        used[columns.PASSED] += 1
    for number in range(more[columns.PRODUCERS]):
        behind.producers[number, columns.TXN_NUMBER] = _producer_of(front, behind.producers[number, columns.TXN_PRODUCER_ID], seed)
    for number in range(more[columns.KEYS]):
        if number + _KEYS_AHEAD < more[columns.KEYS]:
            named = behind.keys.rows[number + _KEYS_AHEAD]
            partition = np.int64(named[PARTITION])
            fetch_slot(front.keys, hash_of_key(groups[named[GROUP], 0], topics[named[TOPIC], 0], partition, seed))
        named = behind.keys.rows[number]
        key = key_of(groups[named[GROUP], 0], topics[named[TOPIC], 0], np.int64(named[PARTITION]), seed, front.keys, used, front.commits)
        behind.key_numbers[number, 0] = key
        front.key_numbers[key, 0] = number + 1
    for number in range(more[columns.PRODUCERS]):
        if behind.producers[number, columns.TXN_FIRST_MARKER] != columns.NOTHING:
            _end_in_front(front, behind, number)
    for number in range(more[columns.KEYS]):
        key = behind.key_numbers[number, 0]
        has_tombstone = behind.void_below[number, columns.LAST_TOMBSTONE] > 0
        is_settled = front.key_numbers[key, 0] < 0
        front.key_numbers[key, 0] = 0
        if not is_settled and (has_tombstone or behind.commits[number, columns.RECORD_OFFSET] != columns.NOTHING):
            _join_commit(front.commits[key], front.key_topic_ids[key], front, behind, behind.commits[number], behind.key_topic_ids[number])
        for column in range(2):
            front.void_below[key, column] = max(front.void_below[key, column], behind.void_below[number, column])
    for number in range(more[columns.PRODUCERS]):
        _join_transaction(front, behind, number)
    for number in range(more[columns.TOPIC_IDS]):
        row = used[columns.TOPIC_IDS]
        front.topic_ids[row, 0] = topics[behind.topic_ids[number, 0], 0]
        front.topic_ids[row, 1] = behind.topic_ids[number, 1]
        front.topic_ids[row, 2] = behind.topic_ids[number, 2]
        used[columns.TOPIC_IDS] += 1
    used[columns.RECORDS] += more[columns.RECORDS]
    used[columns.BATCH_BYTES] += more[columns.BATCH_BYTES]
    used[columns.NEXT_OFFSET] = more[columns.NEXT_OFFSET]
    if used[columns.FIRST_OFFSET] < 0:
        used[columns.FIRST_OFFSET] = more[columns.FIRST_OFFSET]


@kernel
def _number_of(names: Names, counts: Int64s, count: Number, count_bytes: Number, others: Names, other: Number, seed: Number) -> Number:
    """The number here of a name that is known there; a new name gets the next one."""
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
def _join_commit(target: Int64s, topic_ids: Int64s, front: Tables, behind: Tables, commit: Int64s, more_topic_ids: Int64s) -> None:
    """Put a commit of the fold behind, and its topic id, into rows of the one in front."""
    for column in range(columns.COMMIT_COLUMNS):
        target[column] = commit[column]
    topic_ids[0], topic_ids[1] = more_topic_ids[0], more_topic_ids[1]
    if commit[columns.RECORD_OFFSET] == columns.NOTHING:
        return
    packed = commit[columns.METADATA]
    if packed:
        start, size = packed >> columns.SIZE_BITS, packed & (1 << columns.SIZE_BITS) - 1
        place = front.counts[columns.METADATA_BYTES]
        for offset in range(size):
            front.metadata[place + offset] = behind.metadata[start + offset]
        front.counts[columns.METADATA_BYTES] += size
        target[columns.METADATA] = place << columns.SIZE_BITS | size
    producer = commit[columns.PRODUCER]
    if producer:
        row = behind.producers[(producer >> columns.EPOCH_BITS) - 1, columns.TXN_NUMBER]
        target[columns.PRODUCER] = (row + 1) << columns.EPOCH_BITS | producer & (1 << columns.EPOCH_BITS) - 1


# Transactions


@kernel
def _producer_of(front: Tables, producer_id: Number, seed: Number) -> Number:
    """The row of this producer in front, known or new."""
    row = find_producer(front.producers, front.producer_index, producer_id, seed)
    if row < 0:
        row = front.counts[columns.PRODUCERS]
        front.counts[columns.PRODUCERS] += 1
        for column in range(columns.TXN_COLUMNS):
            front.producers[row, column] = 0
        front.producers[row, columns.TXN_PRODUCER_ID] = producer_id
        front.producers[row, columns.TXN_FIRST_MARKER] = columns.NOTHING
        enter_producer(front.producers, row, front.producer_index, seed)
    return row


@kernel
def _end_in_front(front: Tables, behind: Tables, number: Number) -> None:
    """The first marker of this producer behind: what it makes of the transaction that is open in front."""
    staged = front.staged
    row = behind.producers[number, columns.TXN_NUMBER]
    marker_offset = behind.producers[number, columns.TXN_FIRST_MARKER]
    if front.producers[row, columns.TXN_FIRST_MARKER] == columns.NOTHING:
        front.producers[row, columns.TXN_FIRST_MARKER] = marker_offset
        front.producers[row, columns.TXN_FIRST_IS_COMMIT] = behind.producers[number, columns.TXN_FIRST_IS_COMMIT]
    if not front.producers[row, columns.TXN_IS_OPEN]:
        return
    front.producers[row, columns.TXN_IS_OPEN] = 0
    place = front.producers[row, columns.TXN_FIRST_STAGED]
    while place >= 0:
        key, record_offset = staged[place, columns.STAGED_KEY], staged[place, columns.RECORD_OFFSET]
        other = abs(front.key_numbers[key, 0]) - 1
        is_installed = behind.producers[number, columns.TXN_FIRST_IS_COMMIT] != 0 and record_offset >= front.void_below[key, 0]
        present = front.commits[key, columns.RECORD_OFFSET]
        if other >= 0:
            # What was written behind lies behind this commit: it stays, and its tombstone came before the marker or after it.
            tombstone = behind.void_below[other, columns.LAST_TOMBSTONE]
            if (
                behind.commits[other, columns.RECORD_OFFSET] != columns.NOTHING
                or behind.void_below[other, 0] > 0
                or marker_offset < tombstone
            ):
                is_installed = False
            elif tombstone > 0 and is_installed:
                if front.key_numbers[key, 0] > 0:
                    present = columns.NOTHING
                front.key_numbers[key, 0] = -other - 1
        if is_installed and (present == columns.NOTHING or present < record_offset):
            install(place, front)
        place = let_go(place, front)


@kernel
def _join_transaction(front: Tables, behind: Tables, number: Number) -> None:
    """What this producer left open behind: the rest of what is open in front, or a transaction of its own."""
    staged = front.staged
    mine, its = front.producers[behind.producers[number, columns.TXN_NUMBER]], behind.producers[number]
    if not its[columns.TXN_IS_OPEN]:
        return
    other = its[columns.TXN_FIRST_STAGED]
    while other >= 0:
        place = free_place(front)
        _join_commit(staged[place], front.staged_topic_ids[place], front, behind, behind.staged[other], behind.staged_topic_ids[other])
        staged[place, columns.STAGED_KEY] = behind.key_numbers[behind.staged[other, columns.STAGED_KEY], 0]
        staged[place, columns.NEXT] = -1
        if mine[columns.TXN_IS_OPEN]:
            staged[mine[columns.TXN_LAST_STAGED], columns.NEXT] = place
        else:
            mine[columns.TXN_IS_OPEN] = 1
            mine[columns.TXN_FIRST_STAGED] = place
            mine[columns.TXN_FIRST_OFFSET] = its[columns.TXN_FIRST_OFFSET]
            mine[columns.TXN_FIRST_TIMESTAMP] = its[columns.TXN_FIRST_TIMESTAMP]
        mine[columns.TXN_LAST_STAGED] = place
        other = behind.staged[other, columns.NEXT]
    mine[columns.TXN_LAST_OFFSET] = its[columns.TXN_LAST_OFFSET]
    mine[columns.TXN_LAST_TIMESTAMP] = its[columns.TXN_LAST_TIMESTAMP]
    mine[columns.TXN_EPOCH] = its[columns.TXN_EPOCH]


@kernel
def _join_group(front: Tables, group: Number, others: Rows, other: Number) -> None:
    """What the group is behind both; what was kept in front is passed on where the loader says what it is behind, and the reverse."""
    groups = front.groups
    kind, first_commit = others[other, columns.KIND], others[other, columns.FIRST_COMMIT]
    is_new = groups[group, columns.IS_NEW]
    groups[group, columns.IS_NEW] = 0
    if is_new:
        for column in range(columns.GROUP_COLUMNS):
            groups[group, column] = others[other, column]
        groups[group, columns.IS_NEW] = 0
        return
    if others[other, columns.IS_PASSED_ON]:
        pass_group(group, front)
        groups[group, columns.FIRST_COMMIT] = first_commit
        return
    if groups[group, columns.IS_PASSED_ON]:
        if kind != columns.NO_KIND:
            row = front.counts[columns.PASSED]
            front.passed[row, columns.PASSED_SEGMENT] = others[other, columns.KIND_SEGMENT]
            front.passed[row, columns.PASSED_BATCH] = others[other, columns.KIND_BATCH]
            front.passed[row, columns.PASSED_PLACE] = others[other, columns.KIND_PLACE]
            front.passed[row, columns.PASSED_OFFSET] = others[other, columns.KIND_OFFSET]
            front.passed[row, columns.PASSED_GROUP] = -1
            front.counts[columns.PASSED] += 1
        if kind != columns.VALUE and first_commit >= 0 and (kind != columns.NO_KIND or groups[group, columns.FIRST_COMMIT] < 0):
            pass_commit(group, first_commit, front)
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
