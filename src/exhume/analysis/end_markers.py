"""End markers, and the marker that ends each record of a transaction.

The next end marker of a producer in the order of the log ends all transactional records that the producer wrote before it. The order of
record offsets does not count. Epochs do not count either: a marker has the epoch of the records or the next epoch. If a marker is lost,
the next marker ends the records of both transactions.

(Source: ProducerAppendInfo, GroupMetadataManager and CoordinatorLoaderImpl of Kafka 3.8.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Literal

import numpy as np
import pyarrow as pa

from exhume.analysis.number_columns import NONE, Int64s, numbers_of
from exhume.codecs.record_types import ABORT, COMMIT, decode_control_record, encode_control_record

#: The outcome of a transaction.
Ending = Literal["COMMIT", "ABORT"]

#: Stands for a coordinator epoch that cannot be decoded; no epoch of 32 bits has this value.
NO_EPOCH = -(1 << 40)

_IS_COMMIT: Mapping[Ending | None, int] = {"COMMIT": 1, "ABORT": 0, None: NONE}
_COMMIT_KEY = encode_control_record(COMMIT, {"coordinator_epoch": 0})[0]


@lru_cache(maxsize=256)
def ending_of(key: bytes | None, *, every_type_ends: bool = False) -> Ending | None:
    """Return how the control record with this key ends a transaction; None if it ends none, or the key cannot be decoded.

    `every_type_ends` is the rule of the Scala coordinator: each type except COMMIT is an ABORT. The other readers ignore unknown types.
    """
    control = decode_control_record(key, None)
    if key is None or control.errors or control.key["version"] < 0:
        return None
    if control.number == COMMIT:
        return "COMMIT"
    return "ABORT" if control.number == ABORT or every_type_ends else None


@dataclass(frozen=True, slots=True)
class EndMarkers:
    """End markers in columns.

    `place` is the place in the log: a record or marker with a higher place comes later. -1 stands for no producer and for no time,
    `NO_EPOCH` for an epoch that cannot be decoded.
    """

    place: Int64s
    producer_id: Int64s
    record_offset: Int64s
    timestamp_ms: Int64s
    is_commit: Int64s
    coordinator_epoch: Int64s

    def __len__(self) -> int:
        return len(self.place)

    def ended(self, producers: Int64s, places: Int64s) -> Int64s:
        """Return the number of the marker that ended each of these records, as `ended_by` does."""
        return ended_by(producers, places, self.producer_id, self.place)

    @classmethod
    def of(cls, controls: pa.RecordBatch, places: Int64s, *, every_type_ends: bool = False) -> EndMarkers:
        """Return the markers among these control records, which are rows of `schemas.RECORDS`; `every_type_ends` as in `ending_of`."""
        is_commit = _of_each(controls["key"], lambda key: _IS_COMMIT[ending_of(key, every_type_ends=every_type_ends)])
        is_end = is_commit != NONE
        if not is_end.all():
            controls, places, is_commit = controls.filter(pa.array(is_end)), places[is_end], is_commit[is_end]
        producers, offsets, times = (numbers_of(controls[name]) for name in ("producer_id", "record_offset", "timestamp_ms"))
        epochs = _of_each(controls["value"], _coordinator_epoch)
        if every_type_ends:
            # The value of an unknown type has no known format.
            epochs[_of_each(controls["key"], lambda key: _IS_COMMIT[ending_of(key)]) == NONE] = NO_EPOCH
        return cls(places, producers, offsets, times, is_commit, epochs)

    @classmethod
    def joined(cls, parts: Sequence[EndMarkers]) -> EndMarkers:
        """Join the markers of these parts of a log, part after part."""
        names, none = [each.name for each in fields(cls)], np.empty(0, np.int64)
        return cls(*(np.concatenate([none, *(getattr(part, name) for part in parts)]) for name in names))


def ended_by(producers: Int64s, places: Int64s, marker_producers: Int64s, marker_places: Int64s) -> Int64s:
    """Return the number of the marker that ended each of these transactional records; -1 if no marker ended it.

    `producers` and `places` are of the records. No record has the place of a marker.
    """
    count = len(marker_places)
    if not count or not len(places):
        return np.full(len(places), NONE, np.int64)
    by_place = np.argsort(marker_places, kind="stable")
    known = np.unique(marker_producers)
    # One number joins the producer and the rank of a marker. The wanted marker is the first one of the producer after the record.
    ranked = np.searchsorted(known, marker_producers[by_place]) * (count + 1) + np.arange(count)
    order = np.argsort(ranked, kind="stable")
    wanted = np.searchsorted(known, producers) * (count + 1) + np.searchsorted(marker_places[by_place], places)
    at = np.searchsorted(ranked[order], wanted)
    found = by_place[order[np.minimum(at, count - 1)]]
    ending: Int64s = np.where((at < count) & (marker_producers[found] == producers), found, NONE)
    return ending


def _of_each(column: pa.Array, number: Callable[[bytes | None], int]) -> Int64s:
    """Return the number of each value; the column has few different values."""
    found = column.dictionary_encode(null_encoding="encode")
    numbers: Int64s = np.array([number(value) for value in found.dictionary.to_pylist()], np.int64)[numbers_of(found.indices)]
    return numbers


def _coordinator_epoch(value: bytes | None) -> int:
    epoch = (decode_control_record(_COMMIT_KEY, value).value or {}).get("coordinator_epoch")
    return epoch if isinstance(epoch, int) else NO_EPOCH
