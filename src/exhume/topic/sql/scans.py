"""A view as a data set of Arrow: DuckDB asks it for columns and conditions, and each scan is one pass over the evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from exhume.arrow_times import timed_schema, with_times
from exhume.codecs.record_filter import RecordConditions
from exhume.topic.sql.pushdown import Pushed, conditions_of

#: Reads a table: its batches under these conditions, with at least these columns.
Read = Callable[[RecordConditions, Sequence[str]], Iterator[pa.RecordBatch]]


class Scanned(ds.Dataset):  # type: ignore[misc]  # pyarrow has no types
    """A table that is read again by each scan.

    `pushed` names the columns whose conditions the reading takes. `on_error` gets what a scan raises: DuckDB passes on only its text.
    """

    def __init__(self, schema: pa.Schema, read: Read, pushed: dict[str, Pushed], on_error: Callable[[BaseException], None]) -> None:
        self._timed = timed_schema(schema)
        self._read = read
        self._pushed = pushed
        self._on_error = on_error

    @property
    def schema(self) -> pa.Schema:
        """The columns, with times as `timestamp[ms, UTC]`."""
        return self._timed

    def scanner(self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None, **_: Any) -> _Scan:  # noqa: A002
        """Return a scan of these columns under this condition."""
        return _Scan(pa.schema([self._timed.field(name) for name in columns or self._timed.names]), self._rows(columns, filter))

    def _rows(self, columns: Sequence[str] | None, condition: pc.Expression | None) -> Iterator[pa.RecordBatch]:
        columns = columns or self._timed.names
        conditions: RecordConditions = {} if condition is None else conditions_of(condition, self._timed, self._pushed)
        if not _can_be_met(conditions):
            return
        needed = columns if condition is None else self._timed.names
        try:
            for batch in self._read(conditions, needed):
                yield from _selected(with_times(batch), columns, condition)
        except GeneratorExit:
            # The query has all rows that it needs.
            raise
        except BaseException as error:
            self._on_error(error)
            raise


def _can_be_met(conditions: RecordConditions) -> bool:
    """Return False for a range that ends before it begins."""
    offsets = conditions.get("from_offset"), conditions.get("to_offset")
    times = conditions.get("from_time_ms"), conditions.get("to_time_ms")
    return all(first is None or last is None or first <= last for first, last in (offsets, times))


def _selected(batch: pa.RecordBatch, columns: Sequence[str], condition: pc.Expression | None) -> Iterator[pa.RecordBatch]:
    if condition is None:
        yield batch.select(columns)
    else:
        yield from pa.Table.from_batches([batch]).filter(condition).select(columns).to_batches()


class _Scan(ds.Scanner):  # type: ignore[misc]  # pyarrow has no types
    """One scan. The scanner of Arrow itself would read ahead of a query that needs a few rows."""

    def __init__(self, schema: pa.Schema, rows: Iterator[pa.RecordBatch]) -> None:
        self._schema = schema
        self._rows = rows

    @property
    def projected_schema(self) -> pa.Schema:
        """The columns of this scan."""
        return self._schema

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows."""
        return pa.RecordBatchReader.from_batches(self._schema, self._rows)
