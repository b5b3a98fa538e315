"""The commits of transactions that count, and since when: staged commits against the end markers of their producers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from exhume.analysis.detectors.commit_loops.columns import NONE, CommitColumn, Int64s
from exhume.analysis.detectors.commit_rows import Flags, numbers_of, or_none
from exhume.analysis.detectors.commits import Dropped
from exhume.analysis.detectors.offset_ranks import rank_offsets
from exhume.codecs.log_directory import PartitionDirectory
from exhume.codecs.record_types import ABORT, COMMIT, decode_control_record, encode_control_record

#: So many markers of coordinators that had been succeeded are kept, the first ones.
_MOST_LATE = 200
_COMMIT_KEY = encode_control_record(COMMIT, {"coordinator_epoch": 0})[0]


@dataclass(frozen=True, slots=True)
class LateMarker:
    """An end-transaction marker of a transaction coordinator that had been succeeded: an earlier one of its producer has a higher epoch."""

    record_offset: int
    timestamp_ms: int | None
    producer_id: int
    outcome: Literal["ABORT", "COMMIT"]
    coordinator_epoch: int
    #: The highest epoch before it, and the first marker that had it.
    highest_epoch: int
    highest_since: int


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """Commits of a producer that no marker ended. `last_timestamp_ms` is of the newest commit, None if none has a time.

    `held_up_bytes` are between the batch of its first commit and the end of the log.
    """

    producer_id: int
    producer_epoch: int
    first_record_offset: int
    held_up_bytes: int
    last_timestamp_ms: int | None
    #: The first ones of every key.
    staged: list[Dropped]


@dataclass(frozen=True, slots=True)
class Markers:
    """End-transaction markers in log order, a column for each of their numbers."""

    offset: Int64s
    time: Int64s
    producer: Int64s
    is_commit: Flags


@dataclass(frozen=True, slots=True)
class Ended:
    """Places of staged commits: those that a COMMIT marker ended, those that an ABORT marker did, those that none did.

    `marker` is for each staged commit the place of its marker, of no meaning for open ones.
    """

    committed: Int64s
    aborted: Int64s
    open: Int64s
    marker: Int64s


def settle(rows: Int64s, markers: Markers) -> Ended:
    """Return, for each of these staged commits in log order, the marker that ended it: the first one of its producer after it."""
    producers, offsets = rows[CommitColumn.PRODUCER], rows[CommitColumn.OFFSET]
    if not len(markers.offset):
        none = np.empty(0, np.int64)
        return Ended(none, none, np.arange(len(producers)), np.zeros(len(producers), np.int64))
    _, codes = np.unique(np.concatenate([producers, markers.producer]), return_inverse=True)
    span, (staged, marked) = rank_offsets(len(codes), offsets, markers.offset)
    staged_at, marked_at = codes[: len(producers)] * span + staged, codes[len(producers) :] * span + marked
    order = np.argsort(marked_at, kind="stable")
    places = np.searchsorted(marked_at[order], staged_at)
    found = order[np.minimum(places, len(order) - 1)]
    is_ended = (places < len(order)) & (markers.producer[found] == producers)
    is_committed = is_ended & markers.is_commit[found]
    return Ended(np.flatnonzero(is_committed), np.flatnonzero(is_ended & ~is_committed), np.flatnonzero(~is_ended), found)


class MarkerReader:
    """The markers of a log on their way past. `late` are those of coordinators that had been succeeded."""

    def __init__(self) -> None:
        self.count = 0
        self.late: list[LateMarker] = []
        #: Of each producer the highest coordinator epoch, and the first marker that had it.
        self._highest: dict[int, tuple[int, int]] = {}
        self._waiting: list[Int64s] = []

    def take(self, controls: pa.RecordBatch) -> None:
        """Add the next control records, in log order."""
        outcomes = _of_each(controls["key"], lambda key: decode_control_record(key, None).number)
        is_end = np.array([outcome in (ABORT, COMMIT) for outcome in outcomes], np.bool_)
        if not is_end.any():
            return
        ends = controls.filter(pa.array(is_end))
        offset, time, producer = (numbers_of(ends[name], NONE) for name in ("record_offset", "timestamp_ms", "producer_id"))
        is_commit = np.array([outcome == COMMIT for outcome in outcomes if outcome in (ABORT, COMMIT)], np.int64)
        self._waiting.append(np.stack([offset, time, producer, is_commit]))
        self.count += len(offset)
        epochs = _of_each(ends["value"], _coordinator_epoch)
        for epoch, *marker in zip(epochs, offset.tolist(), time.tolist(), producer.tolist(), is_commit.tolist(), strict=True):
            if epoch is not None:
                self._compare(epoch, *marker)

    def _compare(self, epoch: int, offset: int, time: int, producer: int, is_commit: int) -> None:
        highest, first = self._highest.get(producer, (epoch - 1, offset))
        if epoch > highest:
            self._highest[producer] = epoch, offset
        elif epoch < highest and len(self.late) < _MOST_LATE:
            self.late.append(LateMarker(offset, or_none(time), producer, "COMMIT" if is_commit else "ABORT", epoch, highest, first))

    def taken(self) -> Markers:
        """All markers since the last time."""
        offset, time, producer, is_commit = np.concatenate([np.empty((4, 0), np.int64), *self._waiting], axis=1)
        self._waiting.clear()
        return Markers(offset, time, producer, is_commit != 0)


def _of_each(column: pa.Array, tell: Callable[[bytes | None], int | None]) -> list[int | None]:
    """Map each value, calling the function once per distinct value."""
    found = column.dictionary_encode(null_encoding="encode")
    mapped = [tell(value) for value in found.dictionary.to_pylist()]
    return [mapped[place] for place in found.indices.to_pylist()]


def _coordinator_epoch(value: bytes | None) -> int | None:
    epoch = (decode_control_record(_COMMIT_KEY, value).value or {}).get("coordinator_epoch")
    return epoch if isinstance(epoch, int) else None


class ProducerEpochs:
    """The epochs that producers have, by their last transactional commits."""

    def __init__(self) -> None:
        self._epochs: dict[int, int] = {}

    def take(self, commits: pa.RecordBatch) -> None:
        """Add those of the next commits, in log order."""
        is_staged = commits["is_transactional"].to_numpy(zero_copy_only=False)
        if not is_staged.any():
            return
        producers, epochs = (numbers_of(commits[name], NONE)[is_staged] for name in ("producer_id", "producer_epoch"))
        last = np.flatnonzero(np.append(producers[1:] != producers[:-1], True))
        self._epochs.update(zip(producers[last].tolist(), epochs[last].tolist(), strict=True))

    def of(self, producer: int) -> int:
        """The epoch of this producer, which has staged something."""
        return self._epochs[producer]


def open_transactions(
    rows: Int64s, epochs: ProducerEpochs, dropped: Iterable[Dropped], directory: PartitionDirectory
) -> list[OpenTransaction]:
    """The transactions that hold these staged commits, in log order, by producer. `dropped` has what is kept of them."""
    staged: defaultdict[int, list[Dropped]] = defaultdict(list)
    for each in dropped:
        if each.outcome == "open" and each.commit.producer_id is not None:
            staged[each.commit.producer_id].append(each)
    producers, starts = np.unique(rows[CommitColumn.PRODUCER], return_index=True)
    latest = np.full(len(producers), NONE, np.int64)
    np.maximum.at(latest, np.searchsorted(producers, rows[CommitColumn.PRODUCER]), rows[CommitColumn.TIME])
    firsts, positions = rows[CommitColumn.OFFSET, starts].tolist(), rows[CommitColumn.POSITION, starts].tolist()
    return [
        OpenTransaction(producer, epochs.of(producer), first, _bytes_from(directory, first, position), or_none(time), staged[producer])
        for producer, first, position, time in zip(producers.tolist(), firsts, positions, latest.tolist(), strict=True)
    ]


def _bytes_from(directory: PartitionDirectory, record_offset: int, byte_position: int) -> int:
    """Return the bytes from here to the end of the log; 0 if damage has this offset before all segments that are long enough."""
    read = directory.read_segments
    segments = [segment for segment in read if segment.base_offset <= record_offset and byte_position < segment.size_bytes]
    return directory.bytes_from(segments[-1], byte_position) if segments else 0
