"""Records after a moment: the first one of each group, and end markers of transactions that may have begun before it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from exhume.analysis.log_gaps import LogGaps
from exhume.codecs.columns.arrow import texts
from exhume.codecs.columns.record_blocks import RecordBlock
from exhume.codecs.kernels import keys, scan
from exhume.codecs.kernels import records as fields
from exhume.codecs.log_pass import LogCollector
from exhume.codecs.record_types import RECORD_TYPES, decode_record

_KNOWN_TYPES: npt.NDArray[np.int64] = np.array(sorted(RECORD_TYPES), np.int64)


class LaterRecords(LogCollector):
    """Read the records of one log after a moment.

    `moment_offset` is the last record offset up to the moment; None for the end of the log. A broker starts to read at `start_offset`.
    """

    def __init__(self, start_offset: int, moment_offset: int | None) -> None:
        #: The first record of each group after the moment.
        self.first_of_group: dict[str, int] = {}
        self._start_offset, self._moment_offset = start_offset, moment_offset
        #: Producer id and record offset of each control record, in the order of the log.
        self._markers: list[tuple[int, int]] = []

    def add_records(self, block: RecordBlock) -> None:
        """Add these records."""
        moment_offset = self._moment_offset
        if moment_offset is None:
            return
        batches, offsets = block.records[fields.BATCH], block.records[fields.OFFSET]
        is_control = block.batches.columns[scan.ATTRIBUTES][batches] & scan.CONTROL != 0
        is_in_log = offsets >= self._start_offset
        markers = np.flatnonzero(is_control & is_in_log)
        if len(markers):
            producers = block.batches.columns[scan.PRODUCER_ID][batches[markers]]
            self._markers += zip(producers.tolist(), offsets[markers].tolist(), strict=True)
        is_later = ~is_control & is_in_log & (offsets > moment_offset)
        if is_later.any():
            self._note_groups(block if is_later.all() else block.only(np.flatnonzero(is_later)))

    def _note_groups(self, later: RecordBlock) -> None:
        found = np.empty((keys.COLUMNS, len(later)), np.int64)
        keys.read_keys(later.data, later.records, found)
        is_read = (found[keys.IS_READ] != 0) & np.isin(later.records[fields.RECORD_TYPE], _KNOWN_TYPES)
        named = [(number, _group_of(later.key_and_value(number)[0])) for number in np.flatnonzero(~is_read).tolist()]
        numbers = np.flatnonzero(is_read)
        if len(numbers):
            names = texts(later.data, found[keys.GROUP_START][numbers], found[keys.GROUP_SIZE][numbers], pa.string()).dictionary_encode()
            _, firsts = np.unique(names.indices.to_numpy(), return_index=True)
            named += zip(numbers[firsts].tolist(), names.dictionary.to_pylist(), strict=True)
        for number, group in sorted(named, key=lambda each: each[0]):
            self._note_group(group, int(later.records[fields.OFFSET, number]))

    def _note_group(self, group: str | None, record_offset: int) -> None:
        if group is not None:
            self.first_of_group.setdefault(group, record_offset)

    def first_marker(self, gaps: LogGaps) -> int | None:
        """Return the first end marker after the moment whose transaction may lack records before the moment; None if there is none."""
        if self._moment_offset is None:
            return None
        last: dict[int, int] = {}
        for producer_id, record_offset in self._markers:
            begin = last.get(producer_id, self._start_offset - 1) + 1
            last[producer_id] = record_offset
            if record_offset > self._moment_offset and gaps.has_any(begin, self._moment_offset):
                return record_offset
        return None


def _group_of(key: bytes | None) -> str | None:
    """Return the group that this key names; None if it names no group."""
    group = decode_record(key, None).key.get("group")
    return group if isinstance(group, str) else None
