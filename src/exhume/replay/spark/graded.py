"""The completeness of a past state: a table about each log, which needs its bytes once more besides its load."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from exhume.codecs.log_directory import Evidence
from exhume.codecs.segment_reader import ReadOptions, SegmentReader
from exhume.findings import Findings
from exhume.replay.spark.tasks import Log
from exhume.replay.spark.wide import TABLE, UNIT, plain_schema
from exhume.replay.state import NAMING_TABLES, CoordinatorState, LazyTables
from exhume.replay.state_tables import SCHEMAS, table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Grading:
    """Rows of this schema, made of the segments of a log and of its state: its loads, and the groups of `NAMING_TABLES`."""

    schema: pa.Schema
    make: Callable[[SegmentReader, CoordinatorState], pa.Table]


def grade(rows: DataFrame, logs: Mapping[int, Log], grading: Grading, release: str, mode: str) -> DataFrame:
    """The rows of this table for all logs; `rows` are those of `wide`, at one moment."""
    from pyspark.sql import functions
    from pyspark.sql.pandas.types import from_arrow_schema

    group = functions.coalesce(*(functions.col(f"{name}.group") for name in NAMING_TABLES)).alias("group")
    needed = rows.where(rows[TABLE].isin([*NAMING_TABLES, "loads"])).select(UNIT, TABLE, group, "loads").distinct()
    together = needed.repartition(max(1, len(logs)), UNIT).sortWithinPartitions(UNIT)
    return together.mapInArrow(partial(_graded, logs, grading, release, mode), from_arrow_schema(plain_schema(grading.schema)))


def _graded(
    logs: Mapping[int, Log], grading: Grading, release: str, mode: str, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    rows = (row for batch in batches for row in batch.to_pylist())
    for number, about in groupby(rows, key=itemgetter(UNIT)):
        log = logs[number]
        reader = SegmentReader(Evidence([log.directory], Findings()), ReadOptions(), Findings())
        state = CoordinatorState(release, mode, _tables(log, list(about)), Findings())
        yield from grading.make(reader, state).cast(plain_schema(grading.schema)).to_batches()


def _tables(log: Log, rows: Sequence[Mapping[str, Any]]) -> LazyTables:
    origin = {"replica": log.partition.replica, "offsets_partition": log.partition.offsets_partition}

    def maker(name: str) -> Callable[[object], pa.Table]:
        found = [row["loads"] if name == "loads" else {**origin, "group": row["group"]} for row in rows if row[TABLE] == name]
        return lambda _: table(name, found)

    return LazyTables({name: maker(name) for name in SCHEMAS})
