"""The size of each record on disk: the bytes of its batch, divided among its records by the sizes of keys and values."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from exhume.arrow_rows import OfLog, schema_of
from exhume.codecs.columns.arrow import flags, numbers
from exhume.codecs.columns.record_blocks import RecordBlock, record_blocks
from exhume.codecs.columns.record_columns import record_column
from exhume.codecs.kernels import records, scan
from exhume.codecs.segment_reader import SegmentReader


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
    for block in record_blocks(reader):
        yield pa.RecordBatch.from_arrays([_column(block, field) for field in RECORD_SIZES], schema=RECORD_SIZES)


def _column(block: RecordBlock, field: pa.Field) -> pa.Array:
    match field.name:
        case "is_tombstone":
            return flags(block.records[records.VALUE_SIZE] < 0)
        case "size_bytes":
            return numbers(sizes_of(block), field.type)
    return record_column(block, field)


def sizes_of(block: RecordBlock) -> npt.NDArray[np.float64]:
    """Return the bytes on disk of each of these records. They must be all records that a record block has of their batches."""
    batches = block.records[records.BATCH]
    keys, values = np.maximum(block.records[records.KEY_SIZE], 0), np.maximum(block.records[records.VALUE_SIZE], 0)
    weights = keys + values + RECORD_OVERHEAD_BYTES
    local, span = batches - batches[0], slice(batches[0], batches[-1] + 1)
    # A large batch may be spread over several record blocks: each divides its share. A batch without records has no share.
    here = np.bincount(local) / np.maximum(block.batches.record_counts()[span], 1)
    per_byte = here * block.batches.columns[scan.SIZE, span] / np.maximum(np.bincount(local, weights), 1)
    shares: npt.NDArray[np.float64] = weights * per_byte[local]
    return shares
