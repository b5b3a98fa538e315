"""Conditions on rows: what they let through, against the same condition in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from exhume.errors import RequestError
from exhume.where import Where

ROWS: list[dict[str, Any]] = [
    {"group": group, "n": n, "is_late": is_late, "timestamp_ms": 1_700_000_000_000 + (n or 0)}
    for group, n, is_late in [("pay", 1, True), ("pay-eu", 2, False), ("", 3, None), (None, None, True), ("o'brien", -4, False)]
]
TABLE = pa.Table.from_pylist(ROWS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n = 1", lambda row: row["n"] == 1),
        ("n == 1 or n == 2", lambda row: row["n"] in (1, 2)),
        ("n <> 1", lambda row: row["n"] is not None and row["n"] != 1),
        ("n >= -4 AND n < 2", lambda row: row["n"] is not None and -4 <= row["n"] < 2),
        ("group = 'o''brien'", lambda row: row["group"] == "o'brien"),
        ('group = "o\'brien"', lambda row: row["group"] == "o'brien"),
        ("group ~ 'pay*'", lambda row: (row["group"] or "").startswith("pay")),
        ("group !~ 'pay*'", lambda row: not (row["group"] or "").startswith("pay")),
        ("group ~ 'ay'", lambda _: False),
        ("group in ('pay', '')", lambda row: row["group"] in ("pay", "")),
        ("group not in ('pay', '')", lambda row: row["group"] not in (None, "pay", "")),
        ("n is null", lambda row: row["n"] is None),
        ("n is not null and not (n > 1)", lambda row: row["n"] is not None and not row["n"] > 1),
        ("not n > 1", lambda row: not (row["n"] is not None and row["n"] > 1)),
        ("is_late", lambda row: row["is_late"] is True),
        ("is_late = false", lambda row: row["is_late"] is False),
        ("timestamp_ms > '2023-11-14T22:13:20.001Z'", lambda row: (row["n"] or 0) > 1),
    ],
)
def test_a_condition_lets_through_what_it_says(text: str, expected: Callable[[dict[str, Any]], bool]) -> None:
    assert Where(text).filter(TABLE).to_pylist() == [row for row in ROWS if expected(row)]
    [batch] = TABLE.to_batches()
    assert Where(text).filter(batch).to_pylist() == [row for row in ROWS if expected(row)]


@pytest.mark.parametrize(
    "text",
    ["", "n =", "n", "1 = 1", "n = group()", "__import__('os')", "n + 1 = 2", "n = 1; n = 2", "group = 'open", "(" * 500, "lambda: 1"],
)
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(RequestError):
        Where(text).filter(TABLE)


@pytest.mark.parametrize(("text", "message"), [("m = 1", "no column 'm'"), ("n = 'a'", "n is int64"), ("n ~ 'a'", "only text has globs")])
def test_a_condition_that_does_not_fit_the_columns_names_the_reason(text: str, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        Where(text).filter(TABLE)


def test_a_time_with_a_zone_is_compared_as_a_moment() -> None:
    rows = pa.table({"at": pa.array([0, 1_700_000_000_000], pa.timestamp("ms", "UTC"))})

    assert Where("at >= '2023-11-14T23:13:20+01:00'").filter(rows).num_rows == 1
