"""Make Arrow arrays of numbers, and of texts by their places."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from exhume.codecs.kernels.texts import copy_texts, number_texts
from exhume.codecs.kernels.types import Bytes, Int64s
from exhume.int64 import random_number

#: The most rows of a record batch.
ROWS = 32_768

_FEW = 8192
_SHORT = 16
#: The seed of the hashes that find equal texts.
_SEED = random_number()

Flags = npt.NDArray[np.bool_]


def numbers(values: npt.NDArray[Any], data_type: pa.DataType, is_valid: Flags | None = None) -> pa.Array:
    """Return these numbers as an array, null where `is_valid` is False. They must fit into the data type."""
    content = values.astype(data_type.to_pandas_dtype())
    return pa.Array.from_buffers(data_type, len(values), [_validity(is_valid), pa.py_buffer(content)])


def flags(values: Flags) -> pa.Array:
    """Return these values as booleans."""
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, bits(values)])


def texts(data: Bytes, starts: Int64s, sizes: Int64s, data_type: pa.DataType) -> pa.Array:
    """Return the strings (valid UTF-8) or bytes of `data` at `starts`, null where a size is negative. Their sum must be less than 2 GiB."""
    offsets = np.empty(len(starts) + 1, np.int32)
    content = np.empty(int(np.maximum(sizes, 0).sum()), np.uint8)
    copy_texts(data, np.ascontiguousarray(starts), np.ascontiguousarray(sizes), offsets, content)
    is_valid = sizes >= 0
    validity = None if is_valid.all() else bits(is_valid)
    return pa.Array.from_buffers(data_type, len(starts), [validity, pa.py_buffer(offsets), pa.py_buffer(content)])


def numbered_texts(data: Bytes, starts: Int64s, sizes: Int64s) -> pa.DictionaryArray:
    """Return these strings as a dictionary array, which has each different string once. No size is negative."""
    slots = np.full(2 << len(starts).bit_length(), -1, np.int32)
    places, firsts = np.empty(len(starts), np.int32), np.empty(len(starts), np.int64)
    firsts = firsts[: number_texts(data, starts, sizes, _SEED, slots, places, firsts)]
    return pa.DictionaryArray.from_arrays(places, texts(data, starts[firsts], sizes[firsts], pa.string()))


def lists(counts: Int64s, elements: pa.Array, is_valid: Flags) -> pa.Array:
    """Return lists of these elements with these counts, in order; null where `is_valid` is False (such a list has no element)."""
    offsets = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    buffers = [_validity(is_valid), pa.py_buffer(offsets)]
    return pa.Array.from_buffers(pa.list_(elements.type), len(counts), buffers, children=[elements])


def choices(names: list[str], numbers_of: Int64s) -> pa.Array:
    """Return the name of each number."""
    return pa.array(names, pa.string()).take(pa.array(numbers_of))


@lru_cache(maxsize=64)
def _repeated(value: Any, data_type: pa.DataType, size: int) -> pa.Array:
    return pa.nulls(size, data_type) if value is None else pa.repeat(pa.scalar(value, data_type), size)


class SameValues:
    """Makes arrays of one value, up to `ROWS` times, that share their memory. Arrays of long strings are freed with this object."""

    def __init__(self) -> None:
        self._long = lru_cache(maxsize=4)(_repeated.__wrapped__)

    def __call__(self, value: Any, data_type: pa.DataType, count: int) -> pa.Array:
        repeated = self._long if isinstance(value, str) and len(value) > _SHORT else _repeated
        return repeated(value, data_type, ROWS if count > _FEW else _FEW).slice(0, count)


@lru_cache(maxsize=8)
def no_elements(data_type: pa.ListType) -> pa.Array:
    """Return `ROWS` empty lists."""
    return pa.array([[]] * ROWS, data_type)


def _validity(is_valid: Flags | None) -> pa.Buffer | None:
    return None if is_valid is None or is_valid.all() else bits(is_valid)


def bits(values: Flags) -> pa.Buffer:
    """Return these values as an Arrow bitmap."""
    return pa.py_buffer(np.packbits(values, bitorder="little"))
