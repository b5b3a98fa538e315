"""How many bytes of a log are superseded, counted while its records go by: what IC-03 asks of logs that a cleaner may have left alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from exhume.analysis.detectors.commit_loops.columns import NONE, Int64s
from exhume.analysis.detectors.commit_rows import numbers_of
from exhume.analysis.growth_tally import reach_of
from exhume.codecs.log_directory import PartitionDirectory
from exhume.codecs.record_chunks import RecordChunk

_MOST_DIRTY, _LEAST_SEGMENTS = 0.5, 5


def may_be_uncleaned(directory: PartitionDirectory) -> bool:
    """Whether the files alone let it seem so that a cleaner did not get on here."""
    closed = directory.read_segments[:-1]
    if directory.cleaner_offset is None:
        return len(closed) >= _LEAST_SEGMENTS
    dirty = sum(segment.size_bytes for segment in closed if segment.base_offset >= directory.cleaner_offset)
    return dirty > _MOST_DIRTY * sum(segment.size_bytes for segment in closed)


@dataclass(frozen=True, slots=True)
class Uncleaned:
    """The bytes of records whose key a later one has, and the newest time in the first segment that is not clean."""

    superseded_bytes: float
    first_dirty_timestamp_ms: int | None

    def row(self, directory: PartitionDirectory, open_transaction: int | None) -> dict[str, Any]:
        """What IC-03 wants of the row of `growth.COMPACTION` of this log, where this is the first record of an open transaction."""
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
    """The sizes of all data records of a log, and of the last one of each key."""

    def __init__(self, directory: PartitionDirectory) -> None:
        self._directory = directory
        self._reach = reach_of(directory, None)
        self._bytes = 0.0
        #: By the number of the key, and in that by the record type of its commits, 0 or 1: a cleaner tells them apart.
        self._last_commits = np.zeros(0)
        self._last_others: dict[bytes | None, float] = {}
        self._first_dirty_ms = NONE

    def take(self, chunk: RecordChunk, keys: Int64s) -> bool:
        """Add the next records, the keys of whose commits have these numbers; False where these do not tell what their bytes are."""
        commits, others = chunk.commits, chunk.others
        is_told = len(keys) == commits.num_rows and not pc.any(pc.greater(pc.list_value_length(commits["marks"]), 0)).as_py()
        if chunk.sizes is None or chunk.partition is not self._directory or not is_told:
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
            # Of equal places the last assignment stands.
            self._last_commits[slots] = of_commits
        for table in (commits, others):
            self._note_times(numbers_of(table["record_offset"], NONE), numbers_of(table["timestamp_ms"], NONE))
        return True

    def _note_times(self, offsets: Int64s, times: Int64s) -> None:
        is_first_dirty = (offsets >= self._reach.first_dirty) & (offsets < self._reach.first_dirty_end)
        if is_first_dirty.any():
            self._first_dirty_ms = max(self._first_dirty_ms, int(times[is_first_dirty].max()))

    def told(self) -> Uncleaned:
        """What came of it."""
        live = float(self._last_commits.sum()) + sum(self._last_others.values())
        return Uncleaned(self._bytes - live, None if self._first_dirty_ms == NONE else self._first_dirty_ms)
