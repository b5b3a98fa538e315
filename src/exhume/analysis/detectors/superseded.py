"""Count the superseded bytes of a log in the same pass. IC-03 needs them for logs that the cleaner may have left alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from exhume.analysis.growth import CleanerProgress
from exhume.analysis.growth_tally import reach_of
from exhume.analysis.number_columns import NONE, Int64s, numbers_of
from exhume.codecs.log_directory import PartitionDirectory
from exhume.codecs.record_chunks import RecordChunk

_MOST_DIRTY, _LEAST_SEGMENTS = 0.5, 5


def may_be_uncleaned(directory: PartitionDirectory) -> bool:
    """Return True if the files suggest that the cleaner makes no progress here."""
    closed = directory.read_segments[:-1]
    if directory.cleaner_offset is None:
        return len(closed) >= _LEAST_SEGMENTS
    dirty = sum(segment.size_bytes for segment in closed if segment.base_offset >= directory.cleaner_offset)
    return dirty > _MOST_DIRTY * sum(segment.size_bytes for segment in closed)


@dataclass(frozen=True, slots=True)
class Uncleaned:
    """The bytes of superseded records, and the newest time in the first dirty segment."""

    superseded_bytes: float
    first_dirty_timestamp_ms: int | None

    def row(self, directory: PartitionDirectory, open_transaction: int | None) -> CleanerProgress:
        """Return the columns of `growth.COMPACTION` that IC-03 needs. `open_transaction` is the first record of an open transaction."""
        reach = reach_of(directory, open_transaction)
        return {
            "size_bytes": reach.size_bytes,
            "superseded_bytes": round(self.superseded_bytes),
            "first_dirty_offset": reach.first_dirty,
            "first_dirty_timestamp_ms": self.first_dirty_timestamp_ms,
            "stopped_by": reach.stopped_by,
            "open_transaction_offset": reach.open_transaction,
        }


class SupersededBytes:
    """The total size of the data records of a log, and the size of the last record of each key."""

    def __init__(self, directory: PartitionDirectory) -> None:
        self._directory = directory
        self._reach = reach_of(directory, None)
        self._bytes = 0.0
        #: By key number and record type of the commit (0 or 1): for the cleaner these are different keys.
        self._last_commits = np.zeros(0)
        self._last_others: dict[bytes | None, float] = {}
        self._first_dirty_ms = NONE

    def take(self, chunk: RecordChunk, keys: Int64s) -> bool:
        """Add the next records. `keys` are the key numbers of its commits. Returns False if the sizes are not known for certain."""
        commits, others = chunk.commits, chunk.others
        is_known = len(keys) == commits.num_rows and not pc.any(pc.greater(pc.list_value_length(commits["marks"]), 0)).as_py()
        if chunk.partition is not self._directory or not is_known:
            return False
        of_commits, of_others = chunk.sizes()
        is_data = ~others["is_control"].to_numpy(zero_copy_only=False)
        self._bytes += float(of_commits.sum() + of_others[is_data].sum())
        self._last_others.update(zip(others["key"].filter(pa.array(is_data)).to_pylist(), of_others[is_data].tolist(), strict=True))
        if len(keys):
            slots = 2 * keys + numbers_of(commits["record_type"], 0)
            room = int(slots.max()) + 1
            if room > len(self._last_commits):
                self._last_commits = np.append(
                    self._last_commits, np.zeros(max(room, 2 * len(self._last_commits)) - len(self._last_commits))
                )
            # Of equal slots the last assignment wins.
            self._last_commits[slots] = of_commits
        for table in (commits, others):
            self._note_times(numbers_of(table["record_offset"], NONE), numbers_of(table["timestamp_ms"], NONE))
        return True

    def _note_times(self, offsets: Int64s, times: Int64s) -> None:
        is_first_dirty = (offsets >= self._reach.first_dirty) & (offsets < self._reach.first_dirty_end)
        if is_first_dirty.any():
            self._first_dirty_ms = max(self._first_dirty_ms, int(times[is_first_dirty].max()))

    def result(self) -> Uncleaned:
        """Return the superseded bytes of the records so far."""
        live = float(self._last_commits.sum()) + sum(self._last_others.values())
        return Uncleaned(self._bytes - live, None if self._first_dirty_ms == NONE else self._first_dirty_ms)
