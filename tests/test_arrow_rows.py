"""Python values as columns."""

from __future__ import annotations

from typing import Literal, TypedDict

import pyarrow as pa
import pytest

from exhume.arrow_rows import BATCH_BYTES, BATCH_ROWS, Int8, Int16, Int32, Json, OfLog, UInt32, batches_of, column, schema_of, table_of

MOST = 2**63 - 1


def test_a_difference_that_does_not_fit_becomes_the_nearest_number_that_does() -> None:
    assert column(pa.int64(), [0, None, MOST - (-MOST), -MOST - MOST, 7]).to_pylist() == [0, None, MOST, -MOST - 1, 7]


def test_a_number_that_a_narrower_type_does_not_hold_is_a_mistake() -> None:
    with pytest.raises((pa.ArrowInvalid, OverflowError)):
        column(pa.int32(), [2**40])


def test_batches_end_at_their_most_rows_or_their_most_bytes() -> None:
    schema = pa.schema([("text", pa.string()), ("number", pa.int64())])
    long = [{"text": "x" * 1_000_000, "number": number} for number in range(20)]
    short = [{"text": "x", "number": number} for number in range(BATCH_ROWS + 1)]

    batches = [*batches_of(schema, iter(long))]

    assert [batch.num_rows for batch in batches] == [9, 9, 2]
    assert all(batch.nbytes < BATCH_BYTES + 1_100_000 for batch in batches)
    assert pa.Table.from_batches(batches)["number"].to_pylist() == [*range(20)]
    assert [batch.num_rows for batch in batches_of(schema, short)] == [BATCH_ROWS, 1]


class Endpoint(TypedDict):
    host: str
    port: Int32 | None


class Row(OfLog):
    """Every type that a column can have."""

    text: str
    outcome: Literal["COMMIT", "ABORT"] | None
    number: int | None
    tiny: Int8
    small: Int16 | None
    unsigned: UInt32
    share: float
    is_late: bool
    content: bytes | None
    document: Json | None
    names: list[str]
    numbers: list[Int32] | None
    endpoint: Endpoint | None
    endpoints: list[Endpoint]


def test_the_type_of_rows_is_the_schema_of_their_table() -> None:
    endpoint = pa.struct([("host", pa.string()), ("port", pa.int32())])
    assert schema_of(Row) == pa.schema(
        [
            ("replica", pa.string()),
            ("offsets_partition", pa.int32()),
            ("text", pa.string()),
            ("outcome", pa.string()),
            ("number", pa.int64()),
            ("tiny", pa.int8()),
            ("small", pa.int16()),
            ("unsigned", pa.uint32()),
            ("share", pa.float64()),
            ("is_late", pa.bool_()),
            ("content", pa.binary()),
            ("document", pa.json_()),
            ("names", pa.list_(pa.string())),
            ("numbers", pa.list_(pa.int32())),
            ("endpoint", endpoint),
            ("endpoints", pa.list_(endpoint)),
        ]
    )


def test_rows_of_a_type_come_back_from_their_table() -> None:
    row: Row = {
        "replica": "a",
        "offsets_partition": 7,
        "text": "t",
        "outcome": "COMMIT",
        "number": None,
        "tiny": 1,
        "small": 2,
        "unsigned": 2**32 - 1,
        "share": 0.5,
        "is_late": True,
        "content": b"c",
        "document": "{}",
        "names": ["n"],
        "numbers": None,
        "endpoint": {"host": "h", "port": 1},
        "endpoints": [],
    }
    assert table_of(schema_of(Row), [row]).to_pylist() == [row]


def test_a_type_that_no_column_holds_is_a_mistake() -> None:
    class Wrong(TypedDict):
        state: set[str]

    with pytest.raises(TypeError, match="no column holds set"):
        schema_of(Wrong)
