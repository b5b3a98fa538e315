"""What the records of a piece take up on disk, as Arrow."""

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
    """These records as rows of `RECORD_SIZES`."""
    return pa.RecordBatch.from_arrays([_column(piece, field) for field in RECORD_SIZES], schema=RECORD_SIZES)


def _column(piece: Piece, field: pa.Field) -> pa.Array:
    match field.name:
        case "is_tombstone":
            return flags(piece.records[records.VALUE_SIZE] < 0)
        case "size_bytes":
            return numbers(sizes_of(piece), field.type)
    return record_column(piece, field)


def sizes_of(piece: Piece) -> npt.NDArray[np.float64]:
    """The bytes of each of these records, which are whole batches or what a piece has of them."""
    batches = piece.records[records.BATCH]
    keys, values = np.maximum(piece.records[records.KEY_SIZE], 0), np.maximum(piece.records[records.VALUE_SIZE], 0)
    weights = keys + values + RECORD_OVERHEAD_BYTES
    local, span = batches - batches[0], slice(batches[0], batches[-1] + 1)
    # A large batch may be spread over several pieces; those without records have no share to give.
    here = np.bincount(local) / np.maximum(piece.run.columns[scan.RECORD_COUNT, span], 1)
    per_byte = here * piece.run.columns[scan.SIZE, span] / np.maximum(np.bincount(local, weights), 1)
    shares: npt.NDArray[np.float64] = weights * per_byte[local]
    return shares
