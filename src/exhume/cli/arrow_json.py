r"""Arrow values as JSON, without loss and without control characters.

integers, booleans         unchanged, int64 in full
text                       as text; invisible characters as `\uXXXX`, which a JSON reader decodes unchanged
bytes                      base64
arrow.json                 the JSON value itself, not a string that holds it
times                      ISO 8601 in UTC, such as "2026-11-21T05:26:29.123Z"
lists, structs, maps       arrays, objects, arrays of {"key", "value"}
NaN, infinities            "NaN", "Infinity", "-Infinity": JSON has no such numbers
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from exhume.cli.moments import format_ms
from exhume.codecs.kernels.plain_json import find_other_json
from exhume.escape import is_visible

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def json_texts(column: pa.Array) -> pa.StringArray:
    """Return the JSON text of each value, as `dump` gives it; null for null."""
    if pat.is_integer(column.type):
        return column.cast(pa.string())
    if is_text(column.type):
        found = column.dictionary_encode()
        texts = pa.array([dump(value) for value in found.dictionary.to_pylist()], pa.string())
        return texts.take(found.indices)
    if is_json(column.type):
        return _plain_json(column)
    if is_list(column.type):
        if not column.null_count and not len(column.flatten()):
            return pa.repeat("[]", len(column))
        texts = pc.if_else(column.is_valid(), pa.scalar("[]"), None)
        is_other = pc.greater(pc.list_value_length(column), 0).fill_null(False)
    else:
        texts, is_other = pa.nulls(len(column), pa.string()), column.is_valid()
    return _with_others(texts, column, is_other)


def _plain_json(column: pa.Array) -> pa.StringArray:
    """Return the texts of a column arrow.json, those unchanged that `dump` would write in the same way."""
    texts = column.storage
    if not pat.is_string(texts.type):
        texts = texts.cast(pa.string())
    _, offsets, content = texts.buffers()
    is_other = np.empty(len(texts), np.uint8)
    content = np.frombuffer(content, np.uint8) if content else np.zeros(1, np.uint8)
    if not find_other_json(np.frombuffer(offsets, np.int32, len(texts) + 1, 4 * texts.offset), content, is_other):
        return texts
    return _with_others(texts, column, pc.and_(pa.array(is_other.view(np.bool_)), column.is_valid()))


def _with_others(texts: pa.StringArray, column: pa.Array, is_other: pa.BooleanArray) -> pa.StringArray:
    """Return these texts, but those that `dump` gives for the values of `column` where `is_other`."""
    others = column.filter(is_other)
    if not len(others):
        return texts
    return pc.replace_with_mask(texts, is_other, pa.array([dump(value) for value in json_column(others)], pa.string()))


def json_column(column: pa.Array) -> list[Any]:
    """The values of this column as `dump` takes them, null as None."""
    if pat.is_timestamp(column.type) and column.type.unit == "ms":
        # Python has no times after the year 9999.
        return [None if value is None else format_ms(value).replace(" ", "T") for value in column.cast(pa.int64()).to_pylist()]
    convert = _converter(column.type)
    values: list[Any] = column.to_pylist()
    return values if convert is None else [None if value is None else convert(value) for value in values]


def dump(value: Any) -> str:
    """This value as JSON on one line. Invisible characters and lone surrogates become escapes."""
    text = _ENCODER.encode(value)
    # JSON outside its strings is visible ASCII, so an invisible character is always inside a string, where an escape is allowed.
    return text if text.isascii() and text.isprintable() else "".join(map(_escaped, text))


def is_json(arrow_type: pa.DataType) -> bool:
    """True for the extension type arrow.json."""
    return isinstance(arrow_type, pa.BaseExtensionType) and arrow_type.extension_name == "arrow.json"


def is_bytes(arrow_type: pa.DataType) -> bool:
    """True for every Arrow type whose values are bytes."""
    return bool(
        pat.is_binary(arrow_type)
        or pat.is_large_binary(arrow_type)
        or pat.is_fixed_size_binary(arrow_type)
        or pat.is_binary_view(arrow_type)
    )


def is_list(arrow_type: pa.DataType) -> bool:
    """True for every Arrow type whose values are lists."""
    return bool(pat.is_list(arrow_type) or pat.is_large_list(arrow_type) or pat.is_fixed_size_list(arrow_type))


def _iso(value: datetime) -> str:
    return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _to_base64(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def _escaped(character: str) -> str:
    if is_visible(character):
        return character
    utf_16 = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{utf_16[at : at + 2].hex()}" for at in range(0, len(utf_16), 2))


def _converter(arrow_type: pa.DataType) -> Callable[[Any], Any] | None:
    """A function that turns a Python value of this type into a JSON value; None if no change is needed."""
    if is_json(arrow_type):
        return _parsed
    if isinstance(arrow_type, pa.BaseExtensionType):
        return _converter(arrow_type.storage_type)
    if is_bytes(arrow_type):
        return _to_base64
    if pat.is_floating(arrow_type):
        return _number
    if is_list(arrow_type):
        return _list_converter(arrow_type.value_type)
    if pat.is_struct(arrow_type):
        return _struct_converter(arrow_type)
    if pat.is_map(arrow_type):
        key, value = _total(arrow_type.key_type), _total(arrow_type.item_type)
        return lambda entries: [{"key": key(entry[0]), "value": value(entry[1])} for entry in entries]
    if pat.is_dictionary(arrow_type):
        return _converter(arrow_type.value_type)
    if pat.is_timestamp(arrow_type):
        return _iso
    if pat.is_integer(arrow_type) or pat.is_boolean(arrow_type) or pat.is_null(arrow_type) or is_text(arrow_type):
        return None
    return str


def is_text(arrow_type: pa.DataType) -> bool:
    """True for every Arrow type whose values are text."""
    return bool(pat.is_string(arrow_type) or pat.is_large_string(arrow_type) or pat.is_string_view(arrow_type))


def _total(arrow_type: pa.DataType) -> Callable[[Any], Any]:
    """A converter for this type that is always a function, and takes None too."""
    convert = _converter(arrow_type)
    if convert is None:
        return lambda value: value
    return lambda value: None if value is None else convert(value)


def _list_converter(element_type: pa.DataType) -> Callable[[Any], Any] | None:
    if _converter(element_type) is None:
        return None
    convert = _total(element_type)
    return lambda values: [convert(value) for value in values]


def _struct_converter(arrow_type: pa.DataType) -> Callable[[Any], Any] | None:
    children = list(arrow_type)
    if all(_converter(child.type) is None for child in children):
        return None
    converters = {child.name: _total(child.type) for child in children}
    return lambda struct: {name: converters[name](value) for name, value in struct.items()}


def _number(value: float) -> float | str:
    if math.isnan(value):
        return "NaN"
    return value if math.isfinite(value) else "Infinity" if value > 0 else "-Infinity"


def _parsed(text: str) -> Any:
    """The value of this JSON text; the text itself if it is not JSON, is nested too deeply, or has too long a number."""
    try:
        return json.loads(text, parse_constant=str, parse_float=_parsed_float)
    except (ValueError, RecursionError):
        return text


def _parsed_float(text: str) -> float | str:
    value = float(text)
    return value if math.isfinite(value) else text
