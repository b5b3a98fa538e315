"""Make columns out of the tables of a fold: kernels."""

from __future__ import annotations

import numpy as np

from exhume.codecs.kernels import inlined, kernel
from exhume.codecs.kernels.instructions import fetch
from exhume.codecs.kernels.primitives import copy_bytes
from exhume.codecs.kernels.types import Bytes, Int16s, Int32Rows, Int32s, Int64s, Number, Rows
from exhume.replay.fold.kernels.keys import COLUMNS, GROUP, PARTITION, TOPIC
from exhume.replay.fold.tables import (
    COMMIT_COLUMNS,
    COMMIT_TIMESTAMP,
    COMMITTED_OFFSET,
    LEADER_EPOCH,
    METADATA,
    NOTHING,
    RECORD_OFFSET,
    SIZE_BITS,
    VERSION,
)

#: A run of keys: its first key, the number of keys, a number that orders their group and topic, the partition of the first key.
FIRST_KEY, RUN_SIZE, BY_TOPIC, FIRST_PARTITION = range(4)
RUN_COLUMNS = 4


#: The bits of a value of the column METADATA that are the size.
SIZE_MASK = (1 << SIZE_BITS) - 1

#: Runs and texts are scattered in memory: the kernel asks the processor to fetch each one so many places before it needs it.
_RUNS_AHEAD, _TEXTS_AHEAD = 4, 64
#: The number of keys whose rows fill one cache line.
_IN_LINE = 4


@kernel
def span_offsets(count: Number, rows: Int32Rows, commits: Rows, lowest: Int64s, highest: Int64s) -> None:
    """Fill the lowest and the highest record offset of each group's commits, from the first `count` keys.

    Before the call, `lowest` holds the largest number and `highest` holds -1.
    """
    for key in range(count):
        record_offset = commits[key, RECORD_OFFSET]
        if record_offset != NOTHING:
            group = rows[key, GROUP]
            lowest[group] = min(lowest[group], record_offset)
            highest[group] = max(highest[group], record_offset)


@kernel
def find_runs(
    count: Number, rows: Int32Rows, commits: Rows, group_ranks: Int64s, topic_ranks: Int64s, longest: Number, runs: Rows
) -> tuple[Number, Number]:
    """Find runs among those of the first `count` keys that have a committed offset. A run is a column of `runs`.

    A run has at most `longest` keys with consecutive numbers, of one group and topic, in the order of their partitions: most keys come so.
    Returns the number of runs, and the number of keys that have a committed offset.
    """
    found, committed, next_key = np.int64(0), np.int64(0), np.int64(-1)
    for key in range(count):
        if commits[key, RECORD_OFFSET] == NOTHING:
            continue
        group, topic, partition = rows[key, GROUP], rows[key, TOPIC], rows[key, PARTITION]
        committed += 1
        if key == next_key and runs[RUN_SIZE, found - 1] < longest:
            before = rows[key - 1]
            if before[GROUP] == group and before[TOPIC] == topic and before[PARTITION] < partition:
                runs[RUN_SIZE, found - 1] += 1
                next_key = np.int64(key + 1)
                continue
        runs[FIRST_KEY, found] = key
        runs[RUN_SIZE, found] = 1
        runs[BY_TOPIC, found] = group_ranks[group] * len(topic_ranks) + topic_ranks[topic]
        runs[FIRST_PARTITION, found] = partition
        found += 1
        next_key = np.int64(key + 1)
    return found, committed


@kernel
def do_rise(runs: Rows, rows: Int32Rows) -> Number:
    """True if the partitions of each group and topic increase also from run to run."""
    for run in range(1, runs.shape[1]):
        last_key = runs[FIRST_KEY, run - 1] + runs[RUN_SIZE, run - 1] - 1
        if runs[BY_TOPIC, run - 1] == runs[BY_TOPIC, run] and rows[last_key, PARTITION] >= runs[FIRST_PARTITION, run]:
            return False
    return True


@kernel
def list_keys(runs: Rows, keys: Int64s) -> None:
    """Fill `keys` with the keys of these runs."""
    place = np.int64(0)
    for run in range(runs.shape[1]):
        for key in range(runs[FIRST_KEY, run], runs[FIRST_KEY, run] + runs[RUN_SIZE, run]):
            keys[place] = key
            place += 1


@kernel
def gather_commits(
    runs: Rows,
    rows: Int32Rows,
    commits: Rows,
    partitions: Int32s,
    committed_offsets: Int64s,
    record_offsets: Int64s,
    commit_timestamps: Int64s,
    leader_epochs: Int32s,
    versions: Int16s,
    metadata: Int64s,
) -> Number:
    """Fill an array for each column with the partitions and commits of these keys; columns that are mostly empty are not here.

    Returns the size of all metadata in bytes.
    """
    place, metadata_bytes = np.int64(0), np.int64(0)
    for run in range(runs.shape[1]):
        _fetch_run(runs, run + _RUNS_AHEAD, rows, commits)
        for key in range(runs[FIRST_KEY, run], runs[FIRST_KEY, run] + runs[RUN_SIZE, run]):
            commit = commits[key]
            partitions[place] = rows[key, PARTITION]
            committed_offsets[place] = commit[COMMITTED_OFFSET]
            record_offsets[place] = commit[RECORD_OFFSET]
            commit_timestamps[place] = commit[COMMIT_TIMESTAMP]
            leader_epochs[place] = commit[LEADER_EPOCH]
            versions[place] = commit[VERSION]
            metadata[place] = commit[METADATA]
            metadata_bytes += commit[METADATA] & SIZE_MASK
            place += 1
    return metadata_bytes


@inlined
def _fetch_run(runs: Rows, run: Number, rows: Int32Rows, commits: Rows) -> None:
    if run < runs.shape[1]:
        first, end = runs[FIRST_KEY, run], runs[FIRST_KEY, run] + runs[RUN_SIZE, run]
        for key in range(first, end):
            fetch(commits, key * COMMIT_COLUMNS)
        for key in range(first, end, _IN_LINE):
            fetch(rows, key * COLUMNS)


@kernel
def gather_column(keys: Int64s, commits: Rows, column: Number, values: Int64s) -> None:
    """Fill `values` with one column of the commits of these keys."""
    for place in range(len(keys)):
        values[place] = commits[keys[place], column]


@kernel
def repeat_sizes(sizes: Int32s, times: Int64s, ends: Int32s) -> None:
    """Fill `ends` with the ends of texts that follow one another, each repeated as often as `times` says."""
    place, end = np.int64(0), np.int64(0)
    for number in range(len(sizes)):
        for repetition in range(times[number]):
            ends[place + repetition] = end + (repetition + 1) * sizes[number]
        place += times[number]
        end += times[number] * sizes[number]


@kernel
def gather_texts(packed: Int64s, content: Bytes, ends: Int32s, texts: Bytes) -> None:
    """Copy these texts into `texts`, one after the other, and fill `ends` with their ends; `packed` is a column METADATA."""
    end = np.int64(0)
    for place in range(len(packed)):
        if place + _TEXTS_AHEAD < len(packed) and packed[place + _TEXTS_AHEAD]:
            fetch(content, packed[place + _TEXTS_AHEAD] >> SIZE_BITS)
        size = packed[place] & SIZE_MASK
        if size:
            copy_bytes(content, packed[place] >> SIZE_BITS, size, texts, end)
            end += size
        ends[place] = end
