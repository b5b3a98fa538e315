"""Joining the folds of two stretches that follow one another: what is behind outdoes what is in front.

    fold(A ++ B) == join(fold(A), fold(B))      where neither has transactions

so segments can be folded side by side. A marker decides over commits in front of it, wherever they lie: logs with transactions are
folded from their start to their end.
"""

from __future__ import annotations

from exhume.codecs.kernels import kernel
from exhume.codecs.kernels.primitives import Int64s, Number, hash_of
from exhume.replay.survivors import tables as columns
from exhume.replay.survivors.names import SIZE, START, Names, add_name, find_name
from exhume.replay.survivors.passing import pass_commit, pass_group
from exhume.replay.survivors.tables import Tables, with_room


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
    rows = int(max(more[[columns.KEYS, columns.GROUPS, columns.TOPICS, columns.PASSED, columns.TOPIC_IDS]]) + more[columns.GROUPS])
    size = int(max(more[[columns.KEY_BYTES, columns.GROUP_BYTES, columns.TOPIC_BYTES, columns.METADATA_BYTES]]))
    front = with_room(front, rows, size, 0)
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
        _join_group(front, groups[number, 0], behind.groups, number)
    for number in range(more[columns.PASSED]):
        row = used[columns.PASSED]
        for column in range(columns.PASSED_COLUMNS):
            front.passed[row, column] = behind.passed[number, column]
        if front.passed[row, columns.PASSED_GROUP] >= 0:
            front.passed[row, columns.PASSED_GROUP] = groups[front.passed[row, columns.PASSED_GROUP], 0]
        used[columns.PASSED] += 1
    for number in range(more[columns.KEYS]):
        known = used[columns.KEYS]
        key = _number_of(front.keys, used, columns.KEYS, columns.KEY_BYTES, behind.keys, number, seed)
        if key == known:
            front.keys.places[key, columns.KEY_GROUP] = groups[behind.keys.places[number, columns.KEY_GROUP], 0]
            front.keys.places[key, columns.KEY_TOPIC] = topics[behind.keys.places[number, columns.KEY_TOPIC], 0]
            front.keys.places[key, columns.KEY_PARTITION] = behind.keys.places[number, columns.KEY_PARTITION]
        _join_commit(front, key, behind, number)
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
def _join_commit(front: Tables, key: Number, behind: Tables, other: Number) -> None:
    for column in range(columns.COMMIT_COLUMNS):
        front.commits[key, column] = behind.commits[other, column]
    front.key_topic_ids[key, 0], front.key_topic_ids[key, 1] = behind.key_topic_ids[other, 0], behind.key_topic_ids[other, 1]
    packed = behind.commits[other, columns.METADATA]
    if behind.commits[other, columns.RECORD_OFFSET] != columns.NOTHING and packed:
        start, size = packed >> columns.SIZE_BITS, packed & (1 << columns.SIZE_BITS) - 1
        place = front.counts[columns.METADATA_BYTES]
        for offset in range(size):
            front.metadata[place + offset] = behind.metadata[start + offset]
        front.counts[columns.METADATA_BYTES] += size
        front.commits[key, columns.METADATA] = place << columns.SIZE_BITS | size


@kernel
def _join_group(front: Tables, group: Number, others: Int64s, other: Number) -> None:
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
