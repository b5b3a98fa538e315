"""The size of each record on disk: the bytes of its batch, divided among its records by the sizes of keys and values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from exhume.arrow_rows import OfLog, batches_of, schema_of
from exhume.codecs.segment_reader import SegmentBatch, SegmentReader


class RecordSizeRow(OfLog):
    """One row per record, control records included. The sizes of the records of a batch add up to the size of the batch on disk."""

    record_offset: int
    timestamp_ms: int | None
    is_control: bool
    is_tombstone: bool
    delete_horizon_ms: int | None
    key: bytes | None
    size_bytes: float


RECORD_SIZES = schema_of(RecordSizeRow)
#: The bytes of a record besides its key and value: lengths, deltas, attributes.
RECORD_OVERHEAD_BYTES = 8


def record_sizes(reader: SegmentReader) -> Iterator[pa.RecordBatch]:
    """Rows of `RECORD_SIZES` for every record, in the order of the files; each record batch is of one offsets partition."""
    if not reader.is_worth_compiling:
        yield from _sizes_by_partition(reader.batches())
        return
    from exhume.codecs.columns.pieces import Piece, pieces
    from exhume.codecs.columns.runs import group_batches
    from exhume.codecs.columns.sized import sized

    for found in group_batches(pieces(reader)):
        if isinstance(found, Piece):
            yield sized(found)
        else:
            yield from _sizes_by_partition(found)


def _sizes_by_partition(batches: Iterable[SegmentBatch]) -> Iterator[pa.RecordBatch]:
    path: str | None = None
    rows: list[RecordSizeRow] = []
    for found in batches:
        if found.partition.path != path:
            yield from batches_of(RECORD_SIZES, rows)
            path, rows = found.partition.path, []
        rows += _rows(found)
        if len(rows) >= 8192:
            yield from batches_of(RECORD_SIZES, rows)
            rows = []
    yield from batches_of(RECORD_SIZES, rows)


def _rows(found: SegmentBatch) -> Iterator[RecordSizeRow]:
    batch, records = found.batch, found.records()
    weights = [len(record.key or b"") + len(record.value or b"") + RECORD_OVERHEAD_BYTES for record in records]
    for record, weight in zip(records, weights, strict=True):
        yield {
            "replica": found.partition.replica,
            "offsets_partition": found.partition.offsets_partition,
            "record_offset": record.record_offset,
            "timestamp_ms": record.timestamp_ms,
            "is_control": batch.is_control,
            "is_tombstone": record.value is None,
            "delete_horizon_ms": batch.delete_horizon_ms,
            "key": record.key,
            "size_bytes": batch.size_bytes * weight / sum(weights),
        }
