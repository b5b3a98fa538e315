"""The contents of the offsets topic by size, and the bytes that compaction would free.

A record is live if no later one in its partition has its key. The cleaner frees less than the rest. It never cleans the active segment, nor
the segment of the first open transaction, nor any segment after that. It keeps a tombstone until the delete horizon that its batch got at
its first cleaning (`delete.retention.ms`). `freeable` is what it would free now if it ran: records with a later one of their key in the
segments that it may clean, and tombstones after their horizon. It also drops markers and records of aborted transactions, which are not
counted, so the number is a lower bound. (Source: Cleaner, LogCleanerManager.cleanableOffsets and calculateCleanableBytes of Kafka 3.8.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Literal, TypedDict

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from exhume.analysis.growth_tally import NO_TIME, Tally, measures, reach_of, summed_by_hour
from exhume.arrow_rows import OfLog, Origin, of_log, schema_of, table_of
from exhume.codecs.log_directory import PartitionDirectory
from exhume.codecs.record_types import decode_record

GrowthBy = Literal["group", "topic", "type", "hour"]


class GrowthRow(OfLog):
    """One row per group, topic, record type or hour, the largest first.

    Bytes are those on disk. `live`: no later record has their key; `superseded`: one has; `tombstone`: live tombstones; `freeable`:
    compaction would free them now. `keys` counts distinct keys, null by hour. Records without a group or topic have null there; `type` is
    that of the dump. `share` is the part of the bytes of all records here.
    """

    group: str | None
    topic: str | None
    type: str | None
    hour_at_ms: int | None
    records: int
    size_bytes: int
    share: float
    keys: int | None
    live_records: int
    live_bytes: int
    superseded_records: int
    superseded_bytes: int
    tombstone_records: int
    tombstone_bytes: int
    freeable_records: int
    freeable_bytes: int
    first_record_offset: int
    last_record_offset: int
    last_timestamp_ms: int | None


GROWTH = schema_of(GrowthRow)


class CleanerProgress(TypedDict):
    """The columns of `CompactionRow` about the position of a cleaner and the bytes that it left."""

    size_bytes: int
    superseded_bytes: int
    first_dirty_offset: int
    first_dirty_timestamp_ms: int | None
    stopped_by: str
    open_transaction_offset: int | None


class CompactionRow(OfLog):
    """One row per offsets partition: the work that a cleaner finds there.

    `first_dirty_offset` is its checkpoint, else the log start; `first_uncleanable_offset` the base of the segment where it has to stop.
    `stopped_by` says why: active_segment, or open_transaction, which begins at `open_transaction_offset`. `dirty_bytes` are between the two
    offsets; the broker compares `dirty_ratio` with min.cleanable.dirty.ratio (0.5). `first_dirty_timestamp_ms` is the newest time in the
    first dirty segment. `other_bytes` are in no record: empty batches, damage.
    """

    segments: int
    size_bytes: int
    records: int
    keys: int
    live_bytes: int
    superseded_bytes: int
    freeable_records: int
    freeable_bytes: int
    marker_bytes: int
    other_bytes: int
    active_segment_bytes: int
    first_dirty_offset: int
    first_uncleanable_offset: int
    stopped_by: str
    open_transaction_offset: int | None
    dirty_bytes: int
    dirty_ratio: float | None
    closed_superseded_share: float | None
    first_dirty_timestamp_ms: int | None
    last_record_offset: int | None
    last_timestamp_ms: int | None


COMPACTION = schema_of(CompactionRow)

#: The number of records counted together: a larger number looks up fewer keys twice.
_ROWS_TOGETHER = 1 << 18
_END_TXN_MARKER = "end_txn_marker"


@dataclass(frozen=True, slots=True)
class Growth:
    """The contents of the topic as `GROWTH`, and the work of a cleaner in each partition as `COMPACTION`."""

    table: pa.Table
    partitions: pa.Table


def growth_of(
    sizes: Iterable[pa.RecordBatch],
    directories: Sequence[PartitionDirectory],
    open_transactions: Mapping[Origin, int],
    *,
    by: GrowthBy | None,
    now_ms: int,
) -> Growth:
    """Measure the contents of these partitions, by one of four measures.

    Args:
        sizes: rows of `record_sizes.RECORD_SIZES`, partition by partition, in log order.
        directories: the partition directories of `sizes`.
        open_transactions: the first record offset of the oldest open transaction, by replica and offsets partition.
        by: the measure; None: only the work of a cleaner, and `table` has no rows.
        now_ms: the time to compare delete horizons with.
    """
    reaches = {_origin_of(directory): reach_of(directory, open_transactions.get(_origin_of(directory))) for directory in directories}
    lines: list[tuple[OfLog, _Line]] = []
    partitions: list[CompactionRow] = []
    for origin, chunks in _by_partition(sizes):
        tally = Tally(reaches[origin], now_ms, has_hours=by == "hour")
        for chunk in chunks:
            tally.add(chunk)
        log = of_log(*origin)
        lines += [(log, line) for line in _lines(tally, by)] if by is not None else []
        partitions.append(_partition_row(log, tally))
    total = sum(line.measures["size_bytes"] for _, line in lines) or 1
    rows = [_row(log, line, total) for log, line in lines]
    rows.sort(key=(lambda row: row["hour_at_ms"] or 0) if by == "hour" else (lambda row: -row["size_bytes"]))
    return Growth(table_of(GROWTH, rows), table_of(COMPACTION, partitions))


def growth_sentence(growth: Growth) -> str:
    """Return the size, the live bytes and the freeable bytes as one sentence."""
    rows: list[CompactionRow] = growth.partitions.to_pylist()
    size = sum(row["size_bytes"] for row in rows)
    freeable, live = sum(row["freeable_bytes"] for row in rows), sum(row["live_bytes"] for row in rows)
    stopped = [row for row in rows if row["stopped_by"] == "open_transaction"]
    held = f"; an open transaction stops the cleaner in {len(stopped)} of {len(rows)} partitions" if stopped else ""
    share = f" ({freeable / size:.0%})" if size else ""
    return f"{size} bytes, {live} of them live; compaction would free at least {freeable}{share} now{held}"


def _origin_of(directory: PartitionDirectory) -> Origin:
    return directory.replica, directory.offsets_partition


def _by_partition(sizes: Iterable[pa.RecordBatch]) -> Iterator[tuple[Origin, Iterator[pa.Table]]]:
    filled = (batch for batch in sizes if batch.num_rows)
    for origin, batches in groupby(filled, key=lambda batch: (batch["replica"][0].as_py(), batch["offsets_partition"][0].as_py())):
        yield origin, _together(batches)


def _together(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        waiting.append(batch)
        count += batch.num_rows
        if count >= _ROWS_TOGETHER:
            yield pa.Table.from_batches(waiting)
            waiting, count = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)


@dataclass(slots=True)
class _Line:
    """The counts under one label: a group, a topic, a type, or an hour. `measures` are those of `growth_tally.measures`."""

    measures: Mapping[str, float]
    first_offset: float
    last_offset: float
    newest_ms: int | None = None
    keys: int | None = None
    group: str | None = None
    topic: str | None = None
    type: str | None = None
    hour_at_ms: int | None = None


def _row(log: OfLog, line: _Line, total_bytes: float) -> GrowthRow:
    measures = {name: round(value) for name, value in line.measures.items()}
    return {
        **log,
        "group": line.group,
        "topic": line.topic,
        "type": line.type,
        "hour_at_ms": line.hour_at_ms,
        "records": measures["records"],
        "size_bytes": measures["size_bytes"],
        "share": round(line.measures["size_bytes"] / total_bytes, 4),
        "keys": line.keys,
        "live_records": measures["live_records"],
        "live_bytes": measures["live_bytes"],
        "superseded_records": measures["superseded_records"],
        "superseded_bytes": measures["superseded_bytes"],
        "tombstone_records": measures["tombstone_records"],
        "tombstone_bytes": measures["tombstone_bytes"],
        "freeable_records": measures["freeable_records"],
        "freeable_bytes": measures["freeable_bytes"],
        "first_record_offset": round(line.first_offset),
        "last_record_offset": round(line.last_offset),
        "last_timestamp_ms": line.newest_ms,
    }


def _lines(tally: Tally, by: GrowthBy) -> Iterator[_Line]:
    columns = {name: column[: len(tally.keys)] for name, column in tally.columns.items()}
    if by == "hour":
        yield from _hour_lines(tally, columns)
        return
    yield from _key_lines(tally, columns, by)
    if tally.markers is not None:
        first, last, time_ms = tally.markers
        counts = {"records": tally.marker_records, "live_records": tally.marker_records}
        sizes = {"size_bytes": tally.marker_bytes, "live_bytes": tally.marker_bytes}
        nothing = dict.fromkeys(measures(columns), 0)
        yield _Line({**nothing, **counts, **sizes}, first, last, None if time_ms == NO_TIME else time_ms, type=_END_TXN_MARKER)


def _key_lines(tally: Tally, columns: Mapping[str, npt.NDArray[Any]], by: GrowthBy) -> Iterator[_Line]:
    places: dict[Any, int] = {}
    of_keys = np.empty(len(tally.keys), np.int64)
    for number, key in enumerate(tally.keys.to_pylist()):
        decoded = decode_record(key, None)
        label = decoded.name if by == "type" else decoded.key.get(by)
        of_keys[number] = places.setdefault(label, len(places))
    summed = {name: np.bincount(of_keys, values, minlength=len(places)) for name, values in measures(columns).items()}
    keys = np.bincount(of_keys, minlength=len(places))
    first, last, newest = (np.full(len(places), start) for start in (np.iinfo(np.int64).max, NO_TIME, NO_TIME))
    np.minimum.at(first, of_keys, columns["first_offset"])
    np.maximum.at(last, of_keys, columns["last_offset"])
    np.maximum.at(newest, of_keys, columns["last_timestamp"])
    for label, place in places.items():
        newest_ms = None if newest[place] == NO_TIME else int(newest[place])
        line = _Line({name: float(values[place]) for name, values in summed.items()}, int(first[place]), int(last[place]), newest_ms)
        yield replace(line, keys=int(keys[place]), **{by: label})


def _hour_lines(tally: Tally, columns: Mapping[str, npt.NDArray[Any]]) -> Iterator[_Line]:
    """Return lines by hour. Live bytes belong to the hour of the last record, freeable bytes to the hours of their records."""
    live = summed_by_hour(columns["last_timestamp"], np.ones(len(columns["last_size"])), columns["last_size"])
    dead = summed_by_hour(columns["last_timestamp"], columns["last_is_tombstone"], columns["last_size"] * columns["last_is_tombstone"])
    stays = (columns["cleanable_records"] > 0) & (columns["last_cleanable_is_due"] == 0)
    kept = summed_by_hour(columns["last_cleanable_timestamp"], stays, columns["last_cleanable_size"] * stays)
    for hour in sorted(tally.hours["records"]):
        counted = {name: tally.hours[name][hour] for name in tally.hours}
        live_records, live_bytes = live.get(hour, (0.0, 0.0))
        kept_records, kept_bytes = kept.get(hour, (0.0, 0.0))
        tombstones, tombstone_bytes = dead.get(hour, (0.0, 0.0))
        found = {
            "records": counted["records"],
            "size_bytes": counted["size"],
            "live_records": live_records,
            "live_bytes": live_bytes,
            "superseded_records": counted["records"] - live_records,
            "superseded_bytes": counted["size"] - live_bytes,
            "tombstone_records": tombstones,
            "tombstone_bytes": tombstone_bytes,
            "freeable_records": counted["cleanable_records"] - kept_records,
            "freeable_bytes": counted["cleanable_size"] - kept_bytes,
        }
        yield _Line(found, counted["first_offset"], counted["last_offset"], hour_at_ms=None if hour == NO_TIME else hour)


def _partition_row(log: OfLog, tally: Tally) -> CompactionRow:
    reach = tally.reach
    columns = {name: column[: len(tally.keys)] for name, column in tally.columns.items()}
    summed = {name: float(values.sum()) for name, values in measures(columns).items()}
    clean, dirty = reach.bytes_between(0, reach.first_dirty), reach.bytes_between(reach.first_dirty, reach.first_uncleanable)
    closed = float(columns["cleanable_records"].sum())
    return {
        **log,
        "segments": len(reach.segments),
        "size_bytes": reach.size_bytes,
        "records": round(summed["records"] + tally.marker_records),
        "keys": len(tally.keys),
        "live_bytes": round(summed["live_bytes"]),
        "superseded_bytes": round(summed["superseded_bytes"]),
        "freeable_records": round(summed["freeable_records"]),
        "freeable_bytes": round(summed["freeable_bytes"]),
        "marker_bytes": round(tally.marker_bytes),
        "other_bytes": round(max(reach.size_bytes - summed["size_bytes"] - tally.marker_bytes, 0)),
        "active_segment_bytes": reach.segments[-1][1] if reach.segments else 0,
        "first_dirty_offset": reach.first_dirty,
        "first_uncleanable_offset": reach.first_uncleanable,
        "stopped_by": reach.stopped_by,
        "open_transaction_offset": reach.open_transaction,
        "dirty_bytes": dirty,
        "dirty_ratio": round(dirty / (clean + dirty), 4) if clean + dirty else None,
        "closed_superseded_share": round(summed["freeable_records"] / closed, 4) if closed else None,
        "first_dirty_timestamp_ms": tally.first_dirty_ms,
        "last_record_offset": tally.last_offset,
        "last_timestamp_ms": tally.last_timestamp_ms,
    }
