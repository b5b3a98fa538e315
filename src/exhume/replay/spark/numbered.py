"""Jobs with one numbered task each, and rows with places."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Look = Callable[[int], Iterator[pa.RecordBatch]]


def for_each_number(spark: SparkSession, count: int, look: Look, schema: pa.Schema) -> DataFrame:
    """The rows that `look` makes for each number from 0; at least one number. One task per number."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return spark.range(0, count, 1, count).mapInArrow(partial(_rows, look), from_arrow_schema(schema))


def _rows(look: Look, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from look(number)


def first_of_each(rows: DataFrame, alike: Sequence[str], place: str) -> DataFrame:
    """The row with the lowest place among rows with equal values in these columns, nulls included; without the place column."""
    from pyspark.sql import Window, functions

    turn = functions.row_number().over(Window.partitionBy(*alike).orderBy(place))
    return rows.withColumn("its_turn", turn).where("its_turn = 1").drop(place, "its_turn")
