"""What fills the offsets topic, and what compaction would free.

A record is live if no later one in its partition has its key. The cleaner frees less than what is not live: it never touches the active
segment, nor the segment of the first open transaction, nor what lies behind it, and it keeps a tombstone until the delete horizon that its
batch was given when it was first cleaned (`delete.retention.ms`). What it would free now, given the chance, is `freeable`: records with a
later one of their key among those that it may look at, and tombstones whose horizon has passed. Records of aborted transactions, which it
drops too, and markers are not counted, so it is a lower bound.
(Source: Cleaner, LogCleanerManager.cleanableOffsets and calculateCleanableBytes of Kafka 3.8.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from exhume.analysis.growth_tally import NO_TIME, Tally, measures, reach_of, summed_by_hour
from exhume.arrow_rows import Origin, table_of
from exhume.codecs.log_directory import PartitionDirectory
from exhume.codecs.record_types import decode_record

GrowthBy = Literal["group", "topic", "type", "hour"]

#: One row per group, topic, record type or hour, the largest first. Bytes are those on disk. `live`: no later record has their key;
#: `superseded`: one has; `tombstone`: live tombstones; `freeable`: what compaction would free now. `keys` counts distinct ones, null by
#: hour. What has no group or topic is null there; `type` is that of the dump. `share` is of the bytes of all records here.
GROWTH = pa.schema(
    [
        ("replica", pa.string()),
        ("offsets_partition", pa.int32()),
        ("group", pa.string()),
        ("topic", pa.string()),
        ("type", pa.string()),
        ("hour_at_ms", pa.int64()),
        ("records", pa.int64()),
        ("size_bytes", pa.int64()),
        ("share", pa.float64()),
        ("keys", pa.int64()),
        ("live_records", pa.int64()),
        ("live_bytes", pa.int64()),
        ("superseded_records", pa.int64()),
        ("superseded_bytes", pa.int64()),
        ("tombstone_records", pa.int64()),
        ("tombstone_bytes", pa.int64()),
        ("freeable_records", pa.int64()),
        ("freeable_bytes", pa.int64()),
        ("first_record_offset", pa.int64()),
        ("last_record_offset", pa.int64()),
        ("last_timestamp_ms", pa.int64()),
    ]
)

#: One row per offsets partition: what a cleaner finds there. `first_dirty_offset` is its checkpoint, else the log's begin;
#: `first_uncleanable_offset` the base of the segment where it has to stop, `stopped_by` why: active_segment, or open_transaction, which
#: begins at `open_transaction_offset`. `dirty_bytes` lie between the two, and `dirty_ratio` is what min.cleanable.dirty.ratio (0.5) is
#: compared with; `first_dirty_timestamp_ms` is the newest in the first segment that is not clean. `other_bytes` are in no record: empty
#: batches, damage.
COMPACTION = pa.schema(
    [
        ("replica", pa.string()),
        ("offsets_partition", pa.int32()),
        ("segments", pa.int64()),
        ("size_bytes", pa.int64()),
        ("records", pa.int64()),
        ("keys", pa.int64()),
        ("live_bytes", pa.int64()),
        ("superseded_bytes", pa.int64()),
        ("freeable_records", pa.int64()),
        ("freeable_bytes", pa.int64()),
        ("marker_bytes", pa.int64()),
        ("other_bytes", pa.int64()),
        ("active_segment_bytes", pa.int64()),
        ("first_dirty_offset", pa.int64()),
        ("first_uncleanable_offset", pa.int64()),
        ("stopped_by", pa.string()),
        ("open_transaction_offset", pa.int64()),
        ("dirty_bytes", pa.int64()),
        ("dirty_ratio", pa.float64()),
        ("closed_superseded_share", pa.float64()),
        ("first_dirty_timestamp_ms", pa.int64()),
        ("last_record_offset", pa.int64()),
        ("last_timestamp_ms", pa.int64()),
    ]
)

#: So many records are looked at together: the more, the fewer keys are met anew.
_ROWS_TOGETHER = 1 << 18
_SHARES = ("share", "dirty_ratio", "closed_superseded_share")
_END_TXN_MARKER = "end_txn_marker"
_Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Growth:
    """What fills the topic, as `GROWTH`, and what a cleaner finds in each partition, as `COMPACTION`."""

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
    """What fills these partitions, by one of four measures.

    Args:
        sizes: rows of `record_sizes.RECORD_SIZES`, partition by partition, in log order.
        directories: where they come from.
        open_transactions: the first record offset of the oldest open transaction, by replica and offsets partition.
        by: what to count by; None: only what a cleaner finds is told, and `table` has no rows.
        now_ms: the time that delete horizons are compared with.
    """
    reaches = {_origin_of(directory): reach_of(directory, open_transactions.get(_origin_of(directory))) for directory in directories}
    rows: list[_Row] = []
    partitions: list[_Row] = []
    for origin, chunks in _by_partition(sizes):
        tally = Tally(reaches[origin], now_ms, has_hours=by == "hour")
        for chunk in chunks:
            tally.add(chunk)
        place = {"replica": origin[0], "offsets_partition": origin[1]}
        rows += [place | row for row in _rows(tally, by)] if by is not None else []
        partitions.append(place | _partition_row(tally))
    total = sum(row["size_bytes"] for row in rows) or 1
    rows = [_rounded(row | {"share": round(row["size_bytes"] / total, 4)}) for row in rows]
    rows.sort(key=(lambda row: row["hour_at_ms"] or 0) if by == "hour" else (lambda row: -row["size_bytes"]))
    return Growth(table_of(GROWTH, rows), table_of(COMPACTION, [_rounded(row) for row in partitions]))


def growth_sentence(growth: Growth) -> str:
    """What there is and what compaction would free, in one sentence, for people."""
    rows = growth.partitions.to_pylist()
    size, freeable, live = (sum(row[name] for row in rows) for name in ("size_bytes", "freeable_bytes", "live_bytes"))
    stopped = [row for row in rows if row["stopped_by"] == "open_transaction"]
    held = f"; an open transaction holds the cleaner up in {len(stopped)} of {len(rows)} partitions" if stopped else ""
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


def _rows(tally: Tally, by: GrowthBy) -> Iterator[_Row]:
    columns = {name: column[: len(tally.keys)] for name, column in tally.columns.items()}
    if by == "hour":
        yield from _hour_rows(tally, columns)
    else:
        yield from _key_rows(tally, columns, by)
    if tally.markers is not None and by != "hour":
        first, last, time_ms = tally.markers
        yield {
            **dict.fromkeys(("superseded_records", "superseded_bytes", "tombstone_records", "tombstone_bytes", "freeable_records"), 0),
            "type": _END_TXN_MARKER,
            "records": tally.marker_records,
            "size_bytes": tally.marker_bytes,
            "live_records": tally.marker_records,
            "live_bytes": tally.marker_bytes,
            "freeable_bytes": 0,
            "first_record_offset": first,
            "last_record_offset": last,
            "last_timestamp_ms": None if time_ms == NO_TIME else time_ms,
        }


def _key_rows(tally: Tally, columns: Mapping[str, npt.NDArray[Any]], by: GrowthBy) -> Iterator[_Row]:
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
        yield (
            {by: label, "keys": int(keys[place])}
            | {name: values[place] for name, values in summed.items()}
            | {
                "first_record_offset": int(first[place]),
                "last_record_offset": int(last[place]),
                "last_timestamp_ms": None if newest[place] == NO_TIME else int(newest[place]),
            }
        )


def _hour_rows(tally: Tally, columns: Mapping[str, npt.NDArray[Any]]) -> Iterator[_Row]:
    """Live is what was written last in that hour; what compaction frees is taken from the hours that it was written in."""
    live = summed_by_hour(columns["last_timestamp"], np.ones(len(columns["last_size"])), columns["last_size"])
    dead = summed_by_hour(columns["last_timestamp"], columns["last_is_tombstone"], columns["last_size"] * columns["last_is_tombstone"])
    stays = (columns["cleanable_records"] > 0) & (columns["last_cleanable_is_due"] == 0)
    kept = summed_by_hour(columns["last_cleanable_timestamp"], stays, columns["last_cleanable_size"] * stays)
    for hour in sorted(tally.hours["records"]):
        counted = {name: tally.hours[name][hour] for name in tally.hours}
        live_records, live_bytes = live.get(hour, (0.0, 0.0))
        kept_records, kept_bytes = kept.get(hour, (0.0, 0.0))
        tombstones, tombstone_bytes = dead.get(hour, (0.0, 0.0))
        yield {
            "hour_at_ms": None if hour == NO_TIME else hour,
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
            "first_record_offset": counted["first_offset"],
            "last_record_offset": counted["last_offset"],
        }


def _partition_row(tally: Tally) -> _Row:
    reach = tally.reach
    columns = {name: column[: len(tally.keys)] for name, column in tally.columns.items()}
    summed = {name: float(values.sum()) for name, values in measures(columns).items()}
    clean, dirty = reach.bytes_between(0, reach.first_dirty), reach.bytes_between(reach.first_dirty, reach.first_uncleanable)
    closed = float(columns["cleanable_records"].sum())
    return {
        **{name: summed[name] for name in ("live_bytes", "superseded_bytes", "freeable_records", "freeable_bytes")},
        "segments": len(reach.segments),
        "size_bytes": reach.size_bytes,
        "records": summed["records"] + tally.marker_records,
        "keys": len(tally.keys),
        "marker_bytes": tally.marker_bytes,
        "other_bytes": max(reach.size_bytes - summed["size_bytes"] - tally.marker_bytes, 0),
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


def _rounded(row: _Row) -> _Row:
    """Counts and bytes as whole numbers; shares as they are."""
    return {name: value if name in _SHARES or value is None or isinstance(value, str) else round(value) for name, value in row.items()}
