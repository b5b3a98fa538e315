"""Lines of JSON and CSV made cell by cell, and tables with cells that need care."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.types as pat

from exhume.cli.arrow_json import dump, is_json, json_column
from exhume.escape import printable
from tests.cli.hostile_names import NAMES

TEXTS = [
    *NAMES,
    "a",
    "orders-0000000000000000",
    "x" * 40 + '"' + "y" * 40,
    "eight by",
    'eight by"',
    '"eight by',
    "\\",
    "\x7f",
    "'",
    "\t=1",
    "\r",
    "a,b",
    "a\nb",
    "= 1",
    "ü" * 9,
    "\U0001f600",
    "\u2028",
]
JSON_TEXTS = [
    "{}",
    "[]",
    '{"a":1,"b":[true,false,null,{"c":"d"}],"e":{}}',
    '"text"',
    '"\\"\\\\\\n\\b\\f\\r\\t"',
    '"\\u001f\\/\\u0041"',
    '"\\ud800"',
    '"größe"',
    '"\u202e"',
    '"\x7f"',
    "-0",
    "-1",
    "0",
    "01",
    "9223372036854775808",
    "1.5",
    "1e999",
    "1E5",
    "NaN",
    "[-Infinity]",
    "[1, 2]",
    " 1",
    "1 ",
    "",
    "not JSON",
    "tru",
    "nulll",
    '{"a":1',
    '{"a":1}}',
    '{"a"}',
    '{"a":1,}',
    "[1,]",
    "[1}",
    '{"a":1]',
    '"open',
    '"open\\',
    "[" * 59 + "]" * 59,
    "[" * 70 + "]" * 70,
    "[" * 70,
    "1" * 700,
]
INTEGERS = {
    pa.int8(): (-128, -1, 0, 127),
    pa.int16(): (-32768, 32767, 10_000),
    pa.int32(): (-(1 << 31), (1 << 31) - 1, 0),
    pa.int64(): (-(1 << 63), (1 << 63) - 1, 0, -1, 10**8 - 1, 10**8, 10**16 - 1, 10**16, 1_760_000_000_010),
    pa.uint8(): (0, 255),
    pa.uint16(): (0, 65535),
    pa.uint32(): (0, (1 << 32) - 1),
    pa.uint64(): (0, (1 << 64) - 1),
}

_COLUMNS: list[tuple[Sequence[Any], pa.DataType]] = [
    (TEXTS, pa.string()),
    (TEXTS, pa.string()),
    (["a", "b,c", 'd"e', "-"], pa.string()),
    (["orders", "payments-0000"], pa.string()),
    (TEXTS, pa.large_string()),
    (JSON_TEXTS, pa.json_()),
    (["{}", '{"a":[1,"b"]}'], pa.json_()),
    *((list(values), data_type) for data_type, values in INTEGERS.items()),
    ([True, False], pa.bool_()),
    ([1.5, float("nan"), float("-inf"), -0.0], pa.float64()),
    ([b"", b"\xff\0", b"x" * 20, b"\xfb\xff\xbf", b"abc"], pa.binary()),
    ([b"\xfb\xef\xbe", b"k" * 3, b"k"], pa.binary()),
    ([b"ab", b"\0\0"], pa.large_binary()),
    ([[], [1], [1, None]], pa.list_(pa.int64())),
    ([[]], pa.list_(pa.string())),
    ([{"a": "=1", "b": [b"x"]}, {"a": None, "b": []}], pa.struct({"a": pa.string(), "b": pa.list_(pa.binary())})),
]


def hostile_batch(draw: Random, row_count: int) -> pa.RecordBatch:
    """Return a batch with a few columns of any type: a slice of a larger one, with nulls, long texts, or one value in all rows."""
    columns: dict[str, pa.Array] = {}
    before = draw.randrange(3)
    for number in range(draw.choice((0, 1, 1, 2, 5))):
        choices, data_type = draw.choice(_COLUMNS)
        choices = draw.sample(choices, min(len(choices), draw.choice((1, 2, 100))))
        nulls = [None] * draw.choice((0, 0, 1, 10 * len(choices)))
        values = draw.choices([*choices, *nulls], k=before + row_count + draw.randrange(3))
        storage = data_type.storage_type if is_json(data_type) else data_type
        columns[f"{draw.choice(TEXTS)}{number}"] = pa.array(values, storage).cast(data_type).slice(before, row_count)
    if not columns:
        return pa.record_batch([pa.nulls(row_count)], ["none"]).select([])
    return pa.record_batch(list(columns.values()), list(columns))


def json_rows(batch: pa.RecordBatch, before: str, after: str) -> bytes:
    """Return the rows as objects of JSON."""
    columns = [json_column(column) for column in batch.columns]
    rows = zip(*columns, strict=True) if columns else [()] * batch.num_rows
    objects = (dump(dict(zip(batch.schema.names, row, strict=True))) for row in rows)
    return "".join(f"{before}{each}{after}" for each in objects).encode()


def csv_rows(batch: pa.RecordBatch, *, raw: bool) -> bytes:
    """Return the names of the columns and the rows as CSV."""
    names = [_csv_text(name, raw=raw) for name in batch.schema.names]
    columns = [_csv_cells(column, raw=raw) for column in batch.columns]
    rows = [names, *map(list, zip(*columns, strict=True))] if columns else []
    return "".join(",".join(_quoted(cell, is_alone=len(row) == 1) for cell in row) + "\n" for row in rows).encode()


def _csv_cells(column: pa.Array, *, raw: bool) -> list[str]:
    data_type, values = column.type, zip(json_column(column), column.is_valid().to_pylist(), strict=True)
    if is_json(data_type) or pat.is_nested(data_type) or pat.is_boolean(data_type) or pat.is_integer(data_type):
        return [dump(value) if is_valid else "" for value, is_valid in values]
    if pat.is_floating(data_type):
        return [str(value) if is_valid else "" for value, is_valid in values]
    return [_csv_text(str(value), raw=raw) if is_valid else "" for value, is_valid in values]


def _csv_text(text: str, *, raw: bool) -> str:
    if raw:
        return text
    return ("'" if text.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) else "") + printable(text)


def _quoted(cell: str, *, is_alone: bool) -> str:
    needs_quotes = any(character in cell for character in '",\r\n') or (is_alone and not cell)
    return f'"{cell.replace(chr(34), chr(34) * 2)}"' if needs_quotes else cell
