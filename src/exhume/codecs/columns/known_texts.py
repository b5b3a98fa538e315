"""Numbers for the texts of many Arrow arrays. Most texts of an array were in an earlier one: their strings are not made again."""

from __future__ import annotations

from sys import intern

import numpy as np
import pyarrow as pa

from exhume.codecs.columns.arrow import flags, numbers
from exhume.codecs.columns.blocks import readable
from exhume.codecs.kernels.texts import TextTable, enter_known_texts, number_known_texts
from exhume.codecs.kernels.types import Int32s
from exhume.int64 import random_number

_FREE = -1
#: With more bytes than these, all texts are forgotten. Each text takes some bytes in addition.
_MOST_BYTES, _BYTES_OF_EACH = 12 * 1024 * 1024, 32


class KnownTexts:
    """The different texts of the arrays so far."""

    def __init__(self) -> None:
        #: The text with each number. Equal texts are one object everywhere.
        self._strings: list[str] = []
        self._seed = random_number()
        self._table = TextTable(np.empty(0, np.uint8), np.zeros(1, np.int64), np.full(1, _FREE, np.int32))

    def encode(self, column: pa.StringArray) -> tuple[list[str], pa.Int32Array]:
        """Return the different texts of this array, in the order of their first occurrence, and the place of each row among them."""
        if column.null_count:
            different, places = self.encode(column.drop_null())
            is_null = column.is_null().to_numpy(zero_copy_only=False)
            rows = np.cumsum(~is_null) - 1
            return different, places.take(pa.array(rows, mask=is_null))
        known = self._numbers(column)
        encoded = numbers(known, pa.int32()).dictionary_encode()
        return [*map(self._strings.__getitem__, encoded.dictionary.to_pylist())], encoded.indices

    def _numbers(self, column: pa.StringArray) -> Int32s:
        """Return the number of each text; none is null."""
        found = np.empty(len(column), np.int32)
        if not len(column):
            return found
        _, offsets, content = column.buffers()
        ends = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
        self._make_room(len(column), int(ends[-1] - ends[0]))
        count = len(self._strings)
        number_known_texts(self._table, count, self._seed, ends, readable(content or b""), found)
        is_new = found >= count
        # The new texts have numbers in the order of their first rows.
        for number, text in zip(found[is_new].tolist(), column.filter(flags(is_new)).to_pylist(), strict=True):
            if number == len(self._strings):
                self._strings.append(intern(text))
        return found

    def _make_room(self, more: int, more_bytes: int) -> None:
        """Make room for so many texts with so many bytes."""
        count = len(self._strings)
        used = int(self._table.ends[count])
        if used + _BYTES_OF_EACH * count > _MOST_BYTES:
            self._strings, count, used = [], 0, 0
            self._table.slots.fill(_FREE)
        content, ends, slots = self._table
        if used + more_bytes > len(content):
            content = np.concatenate([content[:used], np.empty(used + more_bytes, np.uint8)])
        if count + more >= len(ends):
            ends = np.concatenate([ends[: count + 1], np.empty(count + more, np.int64)])
        is_full = 2 * (count + more) > len(slots)
        if is_full:
            slots = np.full(2 << (2 * (count + more)).bit_length(), _FREE, np.int32)
        self._table = TextTable(content, ends, slots)
        if is_full:
            enter_known_texts(self._table, count, self._seed)
