"""Numbers and places of texts as Arrow arrays."""

from __future__ import annotations

import secrets
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from exhume.codecs.kernels.texts import copy_texts, number_texts
from exhume.codecs.kernels.types import Bytes, Int64s

#: Rows of a record batch at most.
ROWS = 32_768

_FEW = 8192
_SHORT = 16
#: Of the hashes that texts are found by.
_SEED = secrets.randbits(62)

Flags = npt.NDArray[np.bool_]


def numbers(values: npt.NDArray[Any], data_type: pa.DataType, is_there: Flags | None = None) -> pa.Array:
    """These numbers, null where `is_there` is False. They must fit."""
    content = values.astype(data_type.to_pandas_dtype())
    return pa.Array.from_buffers(data_type, len(values), [_validity(is_there), pa.py_buffer(content)])


def flags(values: Flags) -> pa.Array:
    """These values as booleans."""
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, bits(values)])


def texts(data: Bytes, starts: Int64s, sizes: Int64s, data_type: pa.DataType) -> pa.Array:
    """The strings (valid UTF-8) or bytes that lie in `data` from `starts` on, less than 2 GiB together; null where a size is negative."""
    offsets = np.empty(len(starts) + 1, np.int32)
    content = np.empty(int(np.maximum(sizes, 0).sum()), np.uint8)
    copy_texts(data, np.ascontiguousarray(starts), np.ascontiguousarray(sizes), offsets, content)
    is_there = sizes >= 0
    validity = None if is_there.all() else bits(is_there)
    return pa.Array.from_buffers(data_type, len(starts), [validity, pa.py_buffer(offsets), pa.py_buffer(content)])


def numbered_texts(data: Bytes, starts: Int64s, sizes: Int64s) -> pa.DictionaryArray:
    """As `texts`, of strings none of which is null: each different one there once."""
    slots = np.full(2 << len(starts).bit_length(), -1, np.int32)
    places, firsts = np.empty(len(starts), np.int32), np.empty(len(starts), np.int64)
    firsts = firsts[: number_texts(data, starts, sizes, _SEED, slots, places, firsts)]
    return pa.DictionaryArray.from_arrays(places, texts(data, starts[firsts], sizes[firsts], pa.string()))


def lists(counts: Int64s, elements: pa.Array, is_there: Flags) -> pa.Array:
    """Lists of so many elements each, one behind the other; null where `is_there` is False (such a list has no element)."""
    offsets = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    buffers = [_validity(is_there), pa.py_buffer(offsets)]
    return pa.Array.from_buffers(pa.list_(elements.type), len(counts), buffers, children=[elements])


def choices(names: list[str], numbers_of: Int64s) -> pa.Array:
    """The name of each number."""
    return pa.array(names, pa.string()).take(pa.array(numbers_of))


@lru_cache(maxsize=64)
def _repeated(value: Any, data_type: pa.DataType, size: int) -> pa.Array:
    return pa.nulls(size, data_type) if value is None else pa.repeat(pa.scalar(value, data_type), size)


class SameValues:
    """Arrays of one value, up to `ROWS` times, that share their memory. What is long is kept as long as this object is."""

    def __init__(self) -> None:
        self._long = lru_cache(maxsize=4)(_repeated.__wrapped__)

    def __call__(self, value: Any, data_type: pa.DataType, count: int) -> pa.Array:
        repeated = self._long if isinstance(value, str) and len(value) > _SHORT else _repeated
        return repeated(value, data_type, ROWS if count > _FEW else _FEW).slice(0, count)


@lru_cache(maxsize=8)
def no_elements(data_type: pa.ListType) -> pa.Array:
    """`ROWS` empty lists."""
    return pa.array([[]] * ROWS, data_type)


def _validity(is_there: Flags | None) -> pa.Buffer | None:
    return None if is_there is None or is_there.all() else bits(is_there)


def bits(values: Flags) -> pa.Buffer:
    """These values as Arrow packs them."""
    return pa.py_buffer(np.packbits(values, bitorder="little"))
