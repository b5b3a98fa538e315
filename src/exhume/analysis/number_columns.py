"""Arrow columns as arrays of 64-bit numbers without null."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from exhume.int64 import LARGEST_INT64

Int64s = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

#: The number for null in columns of times, record offsets, producers and epochs.
NONE = -1


def numbers_of(column: pa.Array, none: int = NONE) -> npt.NDArray[Any]:
    """Return this column as 64-bit numbers, with `none` for null."""
    if column.null_count:
        column = pc.fill_null(column, pa.scalar(none, column.type))
    numbers: npt.NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return numbers.astype(np.int64, copy=False)


def flags_of(column: pa.Array) -> Flags:
    """Return this column of booleans, which has no null."""
    flags: Flags = column.to_numpy(zero_copy_only=False)
    return flags


def or_none(number: int) -> int | None:
    """Return this number; None for `NONE`."""
    return None if number == NONE else number


def bounded(record_offset: int) -> int:
    """Return this record offset within -1 and the largest 64-bit number: damaged batches may have any offset."""
    return max(-1, min(record_offset, LARGEST_INT64))


def rows_where(wanted: pa.BooleanArray, table: pa.RecordBatch, numbers: Int64s) -> tuple[pa.RecordBatch, Int64s]:
    """Return the wanted rows of this table, and their numbers of these `numbers`."""
    if pc.all(wanted, min_count=0).as_py():
        return table, numbers
    return table.filter(wanted), numbers[flags_of(wanted)]
