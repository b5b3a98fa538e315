r"""Arrow values as JSON, without loss and without control characters.

integers, booleans         unchanged, int64 in full
text                       as text; invisible characters as `\uXXXX`, which a JSON reader decodes unchanged
bytes                      base64
arrow.json                 the JSON value itself, not a string that holds it
lists, structs, maps       arrays, objects, arrays of {"key", "value"}
NaN, infinities            "NaN", "Infinity", "-Infinity": JSON has no such numbers
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from exhume.cli.escape import is_visible
from exhume.cli.text_arrays import bytes_of

#: A flat JSON object, compact and visible ASCII without escapes or floating-point numbers: `dump` gives it the same text.
_PAIR = r'"[A-Za-z0-9_]+":(?:null|true|false|-?(?:0|[1-9][0-9]{0,18})|"[ !#-\[\]-~]*")'
_READY = rf"^\{{(?:{_PAIR}(?:,{_PAIR})*)?\}}$"
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def json_rows(batch: pa.RecordBatch, end: str) -> bytes:
    """Return the rows of this batch as JSON objects with every column, each followed by `end`."""
    if not batch.num_columns or not batch.num_rows:
        empty = f"{{}}{end}".encode()
        return b"".join([empty] * batch.num_rows)
    parts: list[pa.Array | pa.Scalar] = []
    for number, (name, column) in enumerate(zip(batch.schema.names, batch.columns, strict=True)):
        parts += [pa.scalar(f"{',' if number else '{'}{dump(name)}:"), json_texts(column)]
    rows = pc.binary_join_element_wise(*parts, pa.scalar(f"}}{end}"), "")
    return bytes_of(rows)


def json_texts(column: pa.Array) -> pa.StringArray:
    """Return the JSON text of each value, as `dump` gives it."""
    if pat.is_integer(column.type) or pat.is_boolean(column.type):
        return column.cast(pa.string()).fill_null("null")
    if _is_text(column.type):
        found = column.dictionary_encode()
        texts = pa.array([dump(value) for value in found.dictionary.to_pylist()], pa.string())
        return texts.take(found.indices).fill_null("null")
    if is_json(column.type):
        texts = column.storage
        is_other = pc.invert(pc.match_substring_regex(texts, _READY))
    elif is_list(column.type):
        texts = pc.if_else(column.is_valid(), pa.scalar("[]"), None)
        is_other = pc.greater(pc.list_value_length(column), 0)
    else:
        texts, is_other = pa.nulls(len(column), pa.string()), column.is_valid()
    is_other = is_other.fill_null(False)
    others = pa.array([dump(value) for value in json_column(column.filter(is_other))], pa.string())
    return pc.replace_with_mask(texts, is_other, others).fill_null("null")


def json_column(column: pa.Array) -> list[Any]:
    """The values of this column as `dump` takes them, null as None."""
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
    if pat.is_integer(arrow_type) or pat.is_boolean(arrow_type) or pat.is_null(arrow_type) or _is_text(arrow_type):
        return None
    return str


def _is_text(arrow_type: pa.DataType) -> bool:
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
