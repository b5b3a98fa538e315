"""Columns as cells of JSON or CSV, ready for the kernel that writes lines.

A CSV cell that a spreadsheet would run as a formula starts with `'`, and characters that do not show are escapes, unless `raw`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

from exhume.cli.arrow_json import is_json, json_column, json_texts
from exhume.codecs.kernels import lines
from exhume.codecs.kernels.texts import BACKSLASH, DELETE, are_same, are_visible, starts_with, write_base64
from exhume.codecs.kernels.types import Bytes, Int32s
from exhume.escape import printable

# A spreadsheet reads a cell with one of these first characters as a formula.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")
_FORMULA_BYTES = np.frombuffer("".join(_FORMULA_STARTS).encode(), np.uint8)
_NO_BYTES = np.zeros(1, np.uint8)
#: The most bytes of a text to look for in all rows.
_SHORT_BYTES = 4096
#: Arrow counts bytes in 32 bits.
_MOST_BYTES = (1 << 31) - 1

#: Integers of any width, or booleans.
Numbers = npt.NDArray[Any]
#: The start of each text and the end of the last one, and the bytes of all texts.
Texts = tuple[Int32s, Bytes]


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells of one column; at least one.

    Attributes:
        kind: a step of `kernels.lines`.
        null: the cell of a null.
        numbers: the values of a column of numbers or booleans.
        texts: the values of a column of texts.
        bitmap: the bits of values that are not null, from bit `first_bit` on; None if no value is null.
        only: the value of all rows, if they have the same one: a number or a text.
    """

    kind: int
    null: bytes
    numbers: Numbers | None = None
    texts: Texts | None = None
    bitmap: Bytes | None = None
    first_bit: int = 0
    only: int | bytes | None = None


def json_cells(column: pa.Array) -> Cells:
    """Return the cells of a column as JSON."""
    if _is_number(column.type):
        return _numbers(column, b"null")
    texts = _texts_of(column)
    if texts is not None and _is_plain(*texts):
        return _texts(lines.JSON_TEXT, column, texts, b"null")
    return _made(lines.READY, json_texts(column), b"null")


def csv_cells(column: pa.Array, *, raw: bool, is_alone: bool) -> Cells:
    """Return the cells of a column as CSV, an empty one for null; `is_alone` if the table has no other column."""
    kind, null = (lines.CSV_ALONE, b'""') if is_alone else (lines.CSV_TEXT, b"")
    if _is_number(column.type):
        return _numbers(column, null)
    if is_json(column.type) or pat.is_nested(column.type) or pat.is_integer(column.type):
        return _made(kind, json_texts(column), null)
    if pat.is_floating(column.type):
        return _made(kind, pa.array([None if value is None else str(value) for value in json_column(column)], pa.string()), null)
    texts = _texts_of(column)
    if texts is not None and (raw or (_is_plain(*texts, unwanted=BACKSLASH) and not starts_with(*texts, _FORMULA_BYTES))):
        return _texts(kind, column, texts, null)
    found = column.dictionary_encode()
    made = pa.array([_csv_text(str(value), raw=raw) for value in json_column(found.dictionary)], pa.string())
    return _made(kind, made.take(found.indices), null)


def _csv_text(text: str, *, raw: bool) -> str:
    if raw:
        return text
    return ("'" if text.startswith(_FORMULA_STARTS) else "") + printable(text)


def _is_number(data_type: pa.DataType) -> bool:
    return bool(pat.is_boolean(data_type) or (pat.is_integer(data_type) and not pat.is_uint64(data_type)))


def _numbers(column: pa.Array, null: bytes) -> Cells:
    kind = lines.FLAG if pat.is_boolean(column.type) else lines.NUMBER
    if column.null_count == len(column):
        return Cells(lines.READY, null, only=null)
    content = column.buffers()[1]
    if kind == lines.FLAG:
        bits = np.unpackbits(np.frombuffer(content, np.uint8), bitorder="little", count=column.offset + len(column))
        numbers = bits[column.offset :]
    else:
        width = column.type.bit_width // 8
        numbers = np.frombuffer(content, column.type.to_pandas_dtype(), len(column), width * column.offset)
    if not column.null_count and numbers[0] == numbers[-1] and (numbers == numbers[0]).all():
        return Cells(kind, null, only=int(numbers[0]))
    return Cells(kind, null, numbers=numbers, bitmap=_bitmap(column), first_bit=column.offset)


def _made(kind: int, texts: pa.StringArray, null: bytes) -> Cells:
    return _texts(kind, texts, _offsets_and_content(texts), null)


def _texts(kind: int, column: pa.Array, texts: Texts, null: bytes) -> Cells:
    """Return texts as cells; `column` has the nulls."""
    if column.null_count == len(column):
        return Cells(lines.READY, null, only=null)
    offsets, content = texts
    if not column.null_count and offsets[1] - offsets[0] <= _SHORT_BYTES and are_same(offsets, content):
        return Cells(kind, null, only=content[offsets[0] : offsets[1]].tobytes())
    return Cells(kind, null, texts=texts, bitmap=_bitmap(column), first_bit=column.offset)


def _bitmap(column: pa.Array) -> Bytes | None:
    return np.frombuffer(column.buffers()[0], np.uint8) if column.null_count else None


def _texts_of(column: pa.Array) -> Texts | None:
    """Return texts as they are, and bytes as base64; None for columns of other types."""
    if pat.is_string(column.type):
        return _offsets_and_content(column)
    if not pat.is_binary(column.type):
        return None
    offsets, content = _offsets_and_content(column)
    room = int(((np.diff(offsets).astype(np.int64) + 2) // 3).sum()) * 4
    if room > _MOST_BYTES:
        return None
    text_offsets, texts = np.empty_like(offsets), np.empty(room, np.uint8)
    write_base64(offsets, content, text_offsets, texts)
    return text_offsets, texts


def _is_plain(offsets: Int32s, content: Bytes, *, unwanted: int = DELETE) -> bool:
    """Return True if all texts are visible ASCII, without the unwanted character."""
    return bool(are_visible(content, int(offsets[0]), int(offsets[-1]), unwanted))


def _offsets_and_content(texts: pa.Array) -> Texts:
    _, offsets, content = texts.buffers()
    return np.frombuffer(offsets, np.int32, len(texts) + 1, 4 * texts.offset), np.frombuffer(content, np.uint8) if content else _NO_BYTES
