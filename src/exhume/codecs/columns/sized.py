"""The bytes on disk of the records of a piece, as Arrow."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from exhume.codecs.columns.arrow import flags, numbers
from exhume.codecs.columns.pieces import Piece
from exhume.codecs.columns.record_columns import record_column
from exhume.codecs.kernels import records, scan
from exhume.codecs.record_sizes import RECORD_OVERHEAD_BYTES, RECORD_SIZES


def sized(piece: Piece) -> pa.RecordBatch:
    """Return these records as rows of `RECORD_SIZES`."""
    return pa.RecordBatch.from_arrays([_column(piece, field) for field in RECORD_SIZES], schema=RECORD_SIZES)


def _column(piece: Piece, field: pa.Field) -> pa.Array:
    match field.name:
        case "is_tombstone":
            return flags(piece.records[records.VALUE_SIZE] < 0)
        case "size_bytes":
            return numbers(sizes_of(piece), field.type)
    return record_column(piece, field)


def sizes_of(piece: Piece) -> npt.NDArray[np.float64]:
    """Return the bytes on disk of each of these records. They must be all records that a piece has of their batches."""
    batches = piece.records[records.BATCH]
    keys, values = np.maximum(piece.records[records.KEY_SIZE], 0), np.maximum(piece.records[records.VALUE_SIZE], 0)
    weights = keys + values + RECORD_OVERHEAD_BYTES
    local, span = batches - batches[0], slice(batches[0], batches[-1] + 1)
    # A large batch may be spread over several pieces: each piece divides its share. A batch without records has no share.
    here = np.bincount(local) / np.maximum(piece.run.columns[scan.RECORD_COUNT, span], 1)
    per_byte = here * piece.run.columns[scan.SIZE, span] / np.maximum(np.bincount(local, weights), 1)
    shares: npt.NDArray[np.float64] = weights * per_byte[local]
    return shares
