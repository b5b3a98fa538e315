"""The memory of a fold: arrays that kernels fill, and how they grow.

A row of `commits` belongs to a key of committed offsets, a row of `groups` to a group. A row of `staged` is a commit that waits for the
marker of its transaction. A name is kept once, as bytes, and found by its hash. Its number is its row in all arrays for names of its kind.
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
from exhume.replay.fold.kernels import keys
from exhume.replay.fold.kernels.keys import Keys
from exhume.replay.fold.kernels.names import NAME_COLUMNS, Names, index_producers, move_entries

# A commit: a row of `commits`, and the first columns of one of `staged`.
COMMITTED_OFFSET, RECORD_OFFSET, COMMIT_TIMESTAMP, EXPIRE_TIMESTAMP, LEADER_EPOCH, VERSION, METADATA, PRODUCER = range(8)
COMMIT_COLUMNS = 8
#: The value of `RECORD_OFFSET` if nothing is committed.
NOTHING = -1
#: `METADATA` is place and size of the text, `PRODUCER` number and epoch of the producer, packed; both 0 for none.
SIZE_BITS = EPOCH_BITS = 16

#: The columns after the commit of a staged row: its key, and the next row of its transaction, or of the free rows; -1 for none.
STAGED_KEY, NEXT = 8, 9
STAGED_COLUMNS = 10

#: The last group record of a group: its kind, record offset and place. The place is segment, byte position of the batch, and place within
#: its records (decompressed, if they are compressed).
KIND, KIND_OFFSET, KIND_SEGMENT, KIND_BATCH, KIND_PLACE = range(5)
NO_KIND, VALUE, TOMBSTONE = 0, 1, 2
#: The first tombstone since the last value, -1 for none. The first commit since the group may be absent, -1 if there is none yet; any
#: record offset if the group exists.
FIRST_TOMBSTONE, FIRST_COMMIT = 5, 6
#: 1 if every group record of the group is passed on to the loader.
IS_PASSED_ON = 7
#: The first byte of the value in its segment, -1 if the value is compressed or in a message of format 0 or 1; and its size.
VALUE_POSITION, VALUE_BYTES = 8, 9
#: 1 if some record had a value; 1 for a group that was only entered by its name so far, while two folds are joined.
HAS_VALUE, IS_NEW = 10, 11
#: 1 if commits of the group may have been left out, since the group is not chosen.
LEFT_OUT = 12
GROUP_COLUMNS = 13

TXN_PRODUCER_ID, TXN_EPOCH, TXN_FIRST_OFFSET, TXN_LAST_OFFSET, TXN_FIRST_TIMESTAMP, TXN_LAST_TIMESTAMP = range(6)
TXN_FIRST_STAGED, TXN_LAST_STAGED, TXN_IS_OPEN, TXN_IS_PASSED_ON = range(6, 10)
#: For a part that is folded alone: the record offset of the producer's first marker, `NOTHING` for none, and 1 if it is a COMMIT; the
#: number of the producer in the fold that the part is joined to.
TXN_FIRST_MARKER, TXN_FIRST_IS_COMMIT, TXN_NUMBER = range(10, 13)
#: 1 if a batch of the open transaction was noted: then its marker must be noted too.
TXN_IS_NOTED = 13
TXN_COLUMNS = 14

#: The second column of `void_below`: the record offset of the key's last tombstone, 0 for none.
LAST_TOMBSTONE = 1

#: A row of `passed`: the place of a record, as above, its record offset, and -1 for the group. Or a note for the loader that the group has
#: a commit at this record offset: then the place is -1.
PASSED_SEGMENT, PASSED_BATCH, PASSED_PLACE, PASSED_OFFSET, PASSED_GROUP = range(5)
PASSED_COLUMNS = 5

#: A row of `records`, for the current batch: the place of a record within the batch's records, its key and value in the current bytes
#: (sizes below 0 for null), its record offset, and its timestamp delta.
PLACE, KEY_START, KEY_SIZE, VALUE_START, VALUE_SIZE, OFFSET, TIMESTAMP_DELTA = range(7)
RECORD_COLUMNS = 7

#: Entries of `counts`: rows or bytes in use, and the progress of the fold.
KEYS, GROUPS, GROUP_BYTES, TOPICS, TOPIC_BYTES, METADATA_BYTES, PRODUCERS = range(7)
STAGED, FREE_STAGED, PASSED, TOPIC_IDS, GROUP_RECORDS, STATUS = range(7, 13)
RECORDS, BATCH_BYTES, FIRST_OFFSET, NEXT_OFFSET, LEADER_EPOCH_SEEN, MOST_METADATA_BYTES = range(13, 19)
#: The seed of hashes, and 1 after the last record that counts.
SEED, IS_CUT = 19, 20
#: 1 for a part that begins within a segment; base offset and leader epoch of its first batch; last offset of its last batch.
BEGINS_WITHIN, FIRST_BASE_OFFSET, FIRST_LEADER_EPOCH, LAST_OFFSET_SEEN = range(21, 25)
#: The number of noted batches; the number of records of the last batch that were folded before one that could not be.
NOTED, RECORDS_DONE = 25, 26
#: The byte position of the last batch that `scan_and_fold` or a block folded.
LAST_BATCH = 27
#: 1 if a commit is of record type 0.
HAS_LEGACY_COMMITS = 28
COUNTS = 29

#: A row of `noted`: the segment, then the row of the batch as in `kernels.scan`.
NOTED_SEGMENT, NOTED_BATCH = range(2)
NOTED_COLUMNS = NOTED_BATCH + scan.COLUMNS

_SIZE_MASK = (1 << SIZE_BITS) - 1
_METADATA_WORTH_MOVING = 4 << 20
_MAPPED_BYTES = 64 << 10
_LARGE_PAGES = getattr(maps, "MADV_HUGEPAGE", None)
_LARGE_PAGES_BYTES = 2 << 20
#: A small array grows by this factor.
_FIRST_TIMES, _FEW_BYTES = 8, 64 << 20
#: The most keys for which room is made before they come: 64 MB of the index, all of which is used.
_MOST_EXPECTED = 1 << 22

#: A group record with more members than this is passed on.
MOST_MEMBERS = 1 << 14


_Array = TypeVar("_Array", Int64s, Int32s, Bytes, Words)


class Tables(NamedTuple):
    """The memory of a fold; see the columns above.

    `key_topic_ids`, `staged_topic_ids` and `topic_topic_ids` have two words for each row, 0 for none: the topic id in a commit of version 4
    or later, or the last one of a topic. `topic_ids` are (topic, word, word) in the order of the commits. A tombstone dropped the commits
    of a key that were staged below `void_below`. `noted` are batches to be read again. `scratch` is for names in one record.
    `group_numbers`, `topic_numbers` and `key_numbers` are the numbers in the fold that this one is joined to.
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
    """Return empty tables whose hashes have this seed; `with_room` makes them large enough."""
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
    """Return these tables with room for so many more records and batches of so many bytes. Numbers stay the same.

    If the index of keys must grow, it gets room for the expected keys.
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
        # With a record, the last group record of its group can be passed on, and the commit before it.
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
    """Return these tables with room for batches `first` to `last`."""
    sizes = bodies[first:last, 1] - bodies[first:last, 0]
    # A batch whose header states more records than fit into its bytes fails when it is split.
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
    # Moved rows take memory; zeros that no kernel has touched do not.
    times = _FIRST_TIMES if (used + more) * array.strides[0] <= _FEW_BYTES else 2
    longer = zeros((times * (used + more), *array.shape[1:]), array.dtype)
    longer[:used] = array[:used]
    return longer


def zeros(shape: tuple[int, ...], kind: Any) -> npt.NDArray[Any]:
    """Return an array of zeros. A large one has its own pages: on threads, a C library would clear the memory that it returns."""
    size = math.prod(shape) * np.dtype(kind).itemsize
    if size < _MAPPED_BYTES:
        return np.zeros(shape, kind)
    # A private mapping: shared memory is slow to get.
    if _LARGE_PAGES is None or size < _LARGE_PAGES_BYTES:
        memory = mmap(-1, size, access=ACCESS_COPY)
    else:
        # Linux aligns a mapping to large pages if its length is a multiple of them.
        memory = mmap(-1, -(-size // _LARGE_PAGES_BYTES) * _LARGE_PAGES_BYTES, access=ACCESS_COPY)
        # Not every Linux kernel has large pages.
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
    # All of it is used, so memory that was used before is as good for a small index.
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
    """End the fold of these tables for this reason."""
    tables.counts[STATUS] = status
    return tables


def drop_old_metadata(tables: Tables) -> Tables:
    """Drop the metadata of superseded commits once the metadata has twice the bytes that were left last time."""
    counts, commits, staged = tables.counts, tables.commits[: tables.counts[KEYS]], tables.staged[: tables.counts[STAGED]]
    if counts[METADATA_BYTES] < counts[MOST_METADATA_BYTES]:
        return tables
    metadata = np.empty_like(tables.metadata)
    counts[METADATA_BYTES] = move_metadata(staged, tables.metadata, move_metadata(commits, tables.metadata, 0, metadata), metadata)
    counts[MOST_METADATA_BYTES] = 2 * counts[METADATA_BYTES] + _METADATA_WORTH_MOVING
    return tables._replace(metadata=metadata)


@kernel
def move_metadata(commits: Rows, old: Bytes, used: int, new: Bytes) -> Number:
    """Copy the metadata of these commits to `new`, after its first `used` bytes; return the bytes in use after that."""
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
