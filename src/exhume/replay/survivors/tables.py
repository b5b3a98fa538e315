"""The memory of a fold: arrays that kernels fill, and how they grow.

A row of `commits` belongs to a key of committed offsets, a row of `groups` to a group, a row of `staged` is a commit that waits for its
transaction's marker. A name is kept once, as bytes, and found by its hash; its number is its row in all arrays that belong to it.
"""

from __future__ import annotations

import math
import mmap as maps
from contextlib import suppress
from mmap import ACCESS_COPY, mmap
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from exhume.codecs.kernels import kernel, scan
from exhume.codecs.kernels.records import LEAST_BYTES
from exhume.codecs.kernels.types import Bytes, Int32s, Int64s, Number, Rows, Words
from exhume.replay.survivors import keys
from exhume.replay.survivors.keys import Keys
from exhume.replay.survivors.names import NAME_COLUMNS, Names, index_producers, move_entries

# A commit: a row of `commits`, and the first columns of one of `staged`.
COMMITTED_OFFSET, RECORD_OFFSET, COMMIT_TIMESTAMP, EXPIRE_TIMESTAMP, LEADER_EPOCH, VERSION, METADATA, PRODUCER = range(8)
COMMIT_COLUMNS = 8
#: What `RECORD_OFFSET` holds where nothing is committed.
NOTHING = -1
#: `METADATA` is place and size of the text, `PRODUCER` number and epoch of the producer, packed; both 0 for none.
SIZE_BITS = EPOCH_BITS = 16

#: Behind the commit of a staged row: the key it is for, and the next one of its transaction, or of the free rows; -1 for none.
STAGED_KEY, NEXT = 8, 9
STAGED_COLUMNS = 10

#: What the last record that says what a group is was, its record offset, and where it lies: segment, byte position of the batch, place
#: within its records (unfolded, where they are compressed).
KIND, KIND_OFFSET, KIND_SEGMENT, KIND_BATCH, KIND_PLACE = range(5)
NO_KIND, VALUE, TOMBSTONE = 0, 1, 2
#: The first tombstone since the last value, -1 for none. The first commit since the group may not be there, -1 where it is still to
#: come; any record offset where the group is there.
FIRST_TOMBSTONE, FIRST_COMMIT = 5, 6
#: 1 where the loader is given every record that says what the group is.
IS_PASSED_ON = 7
#: Where the value begins in its segment, -1 where it lies there compressed or in a message; and its size.
VALUE_POSITION, VALUE_BYTES = 8, 9
#: 1 where some record had a value; 1 for a group that has only been named so far, while two folds are joined.
HAS_VALUE, IS_NEW = 10, 11
#: 1 where commits of the group may have been left out, since nobody asks for it.
LEFT_OUT = 12
GROUP_COLUMNS = 13

TXN_PRODUCER_ID, TXN_EPOCH, TXN_FIRST_OFFSET, TXN_LAST_OFFSET, TXN_FIRST_TIMESTAMP, TXN_LAST_TIMESTAMP = range(6)
TXN_FIRST_STAGED, TXN_LAST_STAGED, TXN_IS_OPEN, TXN_IS_PASSED_ON = range(6, 10)
#: Of a stretch that is folded by itself: record offset of the producer's first marker, `NOTHING` where there is none, and whether it was a
#: COMMIT; what the producer is called in the fold that the stretch is joined to.
TXN_FIRST_MARKER, TXN_FIRST_IS_COMMIT, TXN_NUMBER = range(10, 13)
#: 1 where a batch of the open transaction was noted, and so its marker is to be, too.
TXN_IS_NOTED = 13
TXN_COLUMNS = 14

#: The second column of `void_below`: the record offset of the key's last tombstone, 0 for none.
LAST_TOMBSTONE = 1

#: A row of `passed`: where a record lies, as above, and its record offset; -1 for the group. Or all of that is -1 but the offset, and the
#: loader is told that a commit of this group lies there.
PASSED_SEGMENT, PASSED_BATCH, PASSED_PLACE, PASSED_OFFSET, PASSED_GROUP = range(5)
PASSED_COLUMNS = 5

#: A row of `records`, for the batch at hand: where a record lies within the batch's records, its key and value in the bytes at hand (sizes
#: below 0 for null), its record offset, and the difference of its timestamp.
PLACE, KEY_START, KEY_SIZE, VALUE_START, VALUE_SIZE, OFFSET, TIMESTAMP_DELTA = range(7)
RECORD_COLUMNS = 7

#: Entries of `counts`: rows or bytes in use, and where the fold is.
KEYS, GROUPS, GROUP_BYTES, TOPICS, TOPIC_BYTES, METADATA_BYTES, PRODUCERS = range(7)
STAGED, FREE_STAGED, PASSED, TOPIC_IDS, GROUP_RECORDS, STATUS = range(7, 13)
RECORDS, BATCH_BYTES, FIRST_OFFSET, NEXT_OFFSET, LEADER_EPOCH_SEEN, MOST_METADATA_BYTES = range(13, 19)
#: And the seed of hashes, and 1 behind the last record that counts.
SEED, IS_CUT = 19, 20
#: Of a stretch that begins within a segment, 1; and its first batch: base offset and leader epoch. The last offset of its last batch.
BEGINS_WITHIN, FIRST_BASE_OFFSET, FIRST_LEADER_EPOCH, LAST_OFFSET_SEEN = range(21, 25)
#: How many batches were noted; how many records of the last batch were folded before one that could not be.
NOTED, RECORDS_DONE = 25, 26
#: The byte position of the last batch that was folded ahead.
LAST_BATCH = 27
COUNTS = 28

#: A row of `noted`: the segment, and behind it the row of the batch as `kernels.scan` has it.
NOTED_SEGMENT, NOTED_BATCH = range(2)
NOTED_COLUMNS = NOTED_BATCH + scan.COLUMNS

_SIZE_MASK = (1 << SIZE_BITS) - 1
_METADATA_WORTH_MOVING = 4 << 20
_MAPPED_BYTES = 64 << 10
_LARGE_PAGES = getattr(maps, "MADV_HUGEPAGE", None)
_LARGE_PAGES_BYTES = 2 << 20
#: A small array becomes larger by so much at a time.
_FIRST_TIMES, _FEW_BYTES = 8, 64 << 20
#: So many keys are made room for before they are there, at most: 64 MB of the index, all of which is used.
_MOST_EXPECTED = 1 << 22

#: A group record with more members than this is passed on.
MOST_MEMBERS = 1 << 14


_Array = TypeVar("_Array", Int64s, Int32s, Bytes, Words)


class Tables(NamedTuple):
    """All that a fold remembers; see the columns above.

    `key_topic_ids`, `staged_topic_ids` and `topic_topic_ids` are two words for each row, 0 for none: the topic id in a commit of version 4
    or later, the last one of a topic. `topic_ids` are (topic, word, word) in the order in which commits said so. Commits of a key that
    were staged below `void_below` were dropped by a tombstone. `noted` are batches to be read again. `scratch` is for names in one record,
    `group_numbers`, `topic_numbers` and `key_numbers` for what these are called in the fold that this one is joined to.
    """

    counts: Int64s
    keys: Keys
    group_names: Names
    topic_names: Names
    commits: Rows
    key_topic_ids: Rows
    void_below: Rows
    groups: Rows
    metadata: Bytes
    producers: Rows
    producer_index: Int64s
    staged: Rows
    staged_topic_ids: Rows
    passed: Rows
    topic_ids: Rows
    topic_topic_ids: Rows
    noted: Rows
    records: Rows
    scratch: Rows
    group_numbers: Rows
    topic_numbers: Rows
    key_numbers: Rows


def new_tables(seed: int) -> Tables:
    """Empty tables, their hashes with this seed; `with_room` makes them large enough for what comes."""
    counts = np.zeros(COUNTS, np.int64)
    counts[[FREE_STAGED, FIRST_OFFSET, LEADER_EPOCH_SEEN, FIRST_BASE_OFFSET, LAST_OFFSET_SEEN]] = -1
    counts[MOST_METADATA_BYTES] = _METADATA_WORTH_MOVING
    counts[SEED] = seed
    return Tables(
        counts=counts,
        keys=Keys(_slots(), np.zeros((0, keys.COLUMNS), np.int32)),
        group_names=_names(),
        topic_names=_names(),
        commits=_rows(COMMIT_COLUMNS),
        key_topic_ids=_rows(2),
        void_below=_rows(2),
        groups=_rows(GROUP_COLUMNS),
        metadata=np.empty(0, np.uint8),
        producers=_rows(TXN_COLUMNS),
        producer_index=np.zeros(64, np.int64),
        staged=_rows(STAGED_COLUMNS),
        staged_topic_ids=_rows(2),
        passed=_rows(PASSED_COLUMNS),
        topic_ids=_rows(3),
        topic_topic_ids=_rows(2),
        noted=_rows(NOTED_COLUMNS),
        records=_rows(RECORD_COLUMNS),
        scratch=np.zeros((8 * MOST_MEMBERS, 4), np.int64),
        group_numbers=_rows(1),
        topic_numbers=_rows(1),
        key_numbers=_rows(1),
    )


def with_room(tables: Tables, records: int, size_bytes: int, batches: int, expected_keys: int = 0) -> Tables:
    """These tables with room for so many more records and batches of so many bytes. What is there keeps its numbers. An index of keys that
    has to become larger becomes so for as many as are expected.
    """
    used = tables.counts.tolist()

    def rows(array: Int64s, entry: int, more: int = records) -> Int64s:
        return _longer(array, used[entry], more)

    return Tables(
        counts=tables.counts,
        keys=Keys(_roomy(tables.keys.slots, used[KEYS], records, expected_keys), _longer(tables.keys.rows, used[KEYS], records)),
        group_names=_more_names(tables.group_names, used[GROUPS], used[GROUP_BYTES], records, size_bytes),
        topic_names=_more_names(tables.topic_names, used[TOPICS], used[TOPIC_BYTES], records, size_bytes),
        commits=rows(tables.commits, KEYS),
        key_topic_ids=rows(tables.key_topic_ids, KEYS),
        void_below=rows(tables.void_below, KEYS),
        groups=rows(tables.groups, GROUPS),
        metadata=_longer(tables.metadata, used[METADATA_BYTES], size_bytes),
        producers=rows(tables.producers, PRODUCERS, batches),
        producer_index=_producer_index(tables, used[PRODUCERS] + batches),
        staged=rows(tables.staged, STAGED),
        staged_topic_ids=rows(tables.staged_topic_ids, STAGED),
        # A record can bring what its group is with it, and the commit before that.
        passed=rows(tables.passed, PASSED, 3 * records + batches),
        topic_ids=rows(tables.topic_ids, TOPIC_IDS),
        topic_topic_ids=rows(tables.topic_topic_ids, TOPICS),
        noted=rows(tables.noted, NOTED, batches),
        records=_longer(tables.records, 0, records),
        scratch=tables.scratch,
        group_numbers=rows(tables.group_numbers, GROUPS),
        topic_numbers=rows(tables.topic_numbers, TOPICS),
        key_numbers=rows(tables.key_numbers, KEYS),
    )


def with_room_for(tables: Tables, rows: Int64s, first: int, last: int, bodies: Int64s) -> Tables:
    """These tables with room for batches `first` to `last`."""
    sizes = bodies[first:last, 1] - bodies[first:last, 0]
    # Whoever counts more records than there is room for is found out soon.
    records = int(np.clip(rows[first:last, scan.RECORD_COUNT], 0, sizes // LEAST_BYTES).sum())
    return with_room(tables, records, int(sizes.sum()), last - first)


def _rows(columns: int) -> Int64s:
    return np.zeros((0, columns), np.int64)


def _names() -> Names:
    return Names(_slots(), _rows(NAME_COLUMNS), np.empty(0, np.uint8))


def _slots() -> Words:
    return np.zeros(64, np.uint64)


def _longer(array: _Array, used: int, more: int) -> _Array:
    if used + more <= len(array):
        return array
    # Rows that are moved take memory, zeros that nobody has touched do not.
    times = _FIRST_TIMES if (used + more) * array.strides[0] <= _FEW_BYTES else 2
    longer = zeros((times * (used + more), *array.shape[1:]), array.dtype)
    longer[:used] = array[:used]
    return longer


def zeros(shape: tuple[int, ...], kind: Any) -> npt.NDArray[Any]:
    """An array of zeros. A large one is pages of its own: on threads a C library clears what it gives out."""
    size = math.prod(shape) * np.dtype(kind).itemsize
    if size < _MAPPED_BYTES:
        return np.zeros(shape, kind)
    # Its own: memory that could be shared is slow to get.
    if _LARGE_PAGES is None or size < _LARGE_PAGES_BYTES:
        memory = mmap(-1, size, access=ACCESS_COPY)
    else:
        # Linux lets what is as long as some large pages begin with one.
        memory = mmap(-1, -(-size // _LARGE_PAGES_BYTES) * _LARGE_PAGES_BYTES, access=ACCESS_COPY)
        # Not every kernel has them.
        with suppress(OSError):
            memory.madvise(_LARGE_PAGES)
    return np.frombuffer(memory, kind, math.prod(shape)).reshape(shape)


def _more_names(names: Names, count: int, used_bytes: int, more: int, more_bytes: int) -> Names:
    places, content = _longer(names.places, count, more), _longer(names.content, used_bytes, more_bytes)
    return Names(_roomy(names.slots, count, more), places, content)


def _roomy(slots: Words, count: int, more: int, expected: int = 0) -> Words:
    if 2 * (count + more) <= len(slots):
        return slots
    wanted = 1 << (2 * max(count + more, min(expected, _MOST_EXPECTED)) - 1).bit_length()
    # All of it is used: small memory that was used before is as good.
    larger = np.zeros(wanted, np.uint64) if wanted * slots.itemsize < _LARGE_PAGES_BYTES else zeros((wanted,), np.uint64)
    move_entries(slots, larger)
    return larger


def _producer_index(tables: Tables, count: int) -> Int64s:
    index = tables.producer_index
    if 2 * count > len(index):
        index = np.zeros(1 << (4 * count).bit_length(), np.int64)
        index_producers(tables.producers, int(tables.counts[PRODUCERS]), index, int(tables.counts[SEED]))
    return index


def given_up(tables: Tables, status: int) -> Tables:
    """These tables, whose fold ended for this reason."""
    tables.counts[STATUS] = status
    return tables


def drop_old_metadata(tables: Tables) -> Tables:
    """These tables without the texts of commits that were superseded, once there are twice as many bytes as were left last time."""
    counts, commits, staged = tables.counts, tables.commits[: tables.counts[KEYS]], tables.staged[: tables.counts[STAGED]]
    if counts[METADATA_BYTES] < counts[MOST_METADATA_BYTES]:
        return tables
    metadata = np.empty_like(tables.metadata)
    counts[METADATA_BYTES] = move_metadata(staged, tables.metadata, move_metadata(commits, tables.metadata, 0, metadata), metadata)
    counts[MOST_METADATA_BYTES] = 2 * counts[METADATA_BYTES] + _METADATA_WORTH_MOVING
    return tables._replace(metadata=metadata)


@kernel
def move_metadata(commits: Rows, old: Bytes, used: int, new: Bytes) -> Number:
    """Copy the texts of what is committed behind the first `used` bytes of `new`; gives the bytes in use then."""
    for row in range(len(commits)):
        packed = commits[row, METADATA]
        if commits[row, RECORD_OFFSET] == NOTHING or packed == 0:
            commits[row, METADATA] = 0
            continue
        start, size = packed >> SIZE_BITS, packed & _SIZE_MASK
        for offset in range(size):
            new[used + offset] = old[start + offset]
        commits[row, METADATA] = used << SIZE_BITS | size
        used += size
    return used
