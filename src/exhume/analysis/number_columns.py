"""Arrow columns as arrays of 64-bit numbers without null, and the rows of a table grouped by a key."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from exhume.int64 import LARGEST_INT64, LEAST_INT64

Int64s = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_ALL_ROWS = slice(None)
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


class NarrowTable:
    """Columns of 64-bit numbers that do not change, each in as few bytes as its range needs: the differences from its lowest number."""

    __slots__ = ("_count", "_lowest", "_parts", "_places")

    def __init__(self, columns: Iterable[Int64s]) -> None:
        lowest: list[int] = []
        by_type: dict[np.dtype[Any], tuple[list[int], list[npt.NDArray[Any]]]] = {}
        self._count = 0
        for number, column in enumerate(columns):
            least = column.min(initial=LARGEST_INT64, keepdims=True)
            # A difference may need all 64 bits: it is computed modulo 2**64, as the sums below are.
            differences = (column - least).view(np.uint64)
            least_type = np.min_scalar_type(differences.max(initial=0))
            numbers, same = by_type.setdefault(least_type, ([], []))
            numbers.append(number)
            same.append(differences.astype(least_type))
            lowest.append(int(least[0]))
            self._count = len(column)
        self._lowest = np.array(lowest, np.int64)
        #: The numbers of the columns of each type, and their differences.
        self._parts = [(numbers, np.array(same)) for numbers, same in by_type.values()]
        #: For each column its part, and its row in there.
        self._places = {number: (part, row) for part, (numbers, _) in enumerate(self._parts) for row, number in enumerate(numbers)}

    def __len__(self) -> int:
        return self._count

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self._places)

    def column(self, number: int, rows: Int64s | slice = _ALL_ROWS) -> Int64s:
        """Return these rows of one column."""
        part, row = self._places[number]
        numbers: Int64s = self._parts[part][1][row, rows].astype(np.int64) + self._lowest[number : number + 1]
        return numbers

    def rows(self, rows: Int64s) -> Int64s:
        """Return these rows with all of their columns: a row of the result for each."""
        table = np.empty((len(rows), self.width), np.int64)
        for numbers, differences in self._parts:
            table[:, numbers] = differences[:, rows].T
        return table + self._lowest

    @classmethod
    def joined(cls, tables: Sequence[NarrowTable]) -> NarrowTable:
        """Return the rows of these tables, at least one, as one table."""
        return cls(np.concatenate([table.column(number) for table in tables]) for number in range(tables[0].width))


class RowGroups:
    """The rows of a table by the values of some columns; null is a value.

    Attributes:
        keys: the different keys, in the order of their first rows.
        numbers: for each row the number of its key.
    """

    def __init__(self, table: pa.Table, names: Sequence[str]) -> None:
        self._table = table
        numbers = np.zeros(table.num_rows, np.int64)
        for name in names:
            found = table[name].combine_chunks().dictionary_encode(null_encoding="encode")
            # A number is less than the number of rows: the products fit into 64 bits.
            numbers = _renumbered(numbers * max(len(found.dictionary), 1) + numbers_of(found.indices))
        self.numbers: Int64s = numbers
        first_rows = np.unique(numbers, return_index=True)[1].tolist()
        columns = [table[name].take(pa.array(first_rows, pa.int64())).to_pylist() for name in names]
        self.keys: list[tuple[Any, ...]] = list(zip(*columns, strict=True))

    def counts(self) -> list[int]:
        """Return the number of rows of each key."""
        counted: list[int] = np.bincount(self.numbers, minlength=len(self.keys)).tolist()
        return counted

    def greatest(self, name: str) -> list[int | None]:
        """Return the greatest number in this column for each key; None if all are null."""
        column = self._table[name].combine_chunks()
        is_known = flags_of(pc.is_valid(column))
        most = np.full(len(self.keys), LEAST_INT64)
        np.maximum.at(most, self.numbers[is_known], numbers_of(column)[is_known])
        has_known = np.bincount(self.numbers[is_known], minlength=len(self.keys))
        return [number if count else None for number, count in zip(most.tolist(), has_known.tolist(), strict=True)]


def _renumbered(codes: Int64s) -> Int64s:
    """Return numbers from 0 on for these codes, in the order of their first occurrence."""
    # `pa.array` of an array of numbers imports the masked arrays of numpy.
    column = pa.Array.from_buffers(pa.int64(), len(codes), [None, pa.py_buffer(codes)])
    return numbers_of(column.dictionary_encode().indices)
