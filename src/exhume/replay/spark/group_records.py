"""Tables made of the records of each group: one task gets all records of a group, in the order of the log.

The other inputs (spans of logs, names of topics) are small. The driver collects them first and sends them to every task.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from exhume.codecs import schemas
from exhume.codecs.log_directory import Evidence
from exhume.codecs.record_filter import RecordFilter
from exhume.codecs.record_types import decode_record
from exhume.codecs.segment_reader import SegmentReader
from exhume.replay.spark.kinds import as_spark_carries, for_spark
from exhume.replay.spark.planning import Task, plan
from exhume.replay.spark.pushed_filters import Pushed
from exhume.replay.spark.reading import read_task, readers_of
from exhume.replay.spark.session import collect, prepare_workers
from exhume.replay.spark.source_options import SourceOptions
from exhume.replay.spark.wide import plain_schema
from exhume.replay.topic_names import TopicNames

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: The extents of logs by replica and offsets partition.
Extents = Mapping[tuple[str | None, int | None], Any]

_TASK, _ROW = "its_task", "its_row"
_COLUMNS = ("replica", "offsets_partition", "path", "byte_position", "record_offset", "timestamp_ms", "is_control", "record_type")
_RECORDS = pa.schema([schemas.RECORDS.field(name) for name in (*_COLUMNS, "key", "value")])
_ORDERED = pa.schema([(_TASK, pa.int32()), (_ROW, pa.int64()), ("group", pa.string()), *for_spark(_RECORDS)])
_FACTS = pa.schema([("task", pa.int32()), ("extents", pa.binary()), ("has_topic_ids", pa.bool_())])
_KEY = ("replica", "offsets_partition", "group")


@dataclass(frozen=True, slots=True)
class RecordTable:
    """A table of this schema; `make` takes the records of one group in one log in its order, names of topics, and extents of logs."""

    schema: pa.Schema
    make: Callable[[Iterable[pa.RecordBatch], TopicNames, Extents], pa.Table]


@dataclass(slots=True)
class GroupRecords:
    """The records of these `types` in this evidence; those of `id_types` name topics by id.

    `read_extents` reads the extents of logs in parts of them; `join_extents` joins these, part after part. `names` gives the names of
    topics; it is called only if there are records of `id_types`.
    """

    spark: SparkSession
    evidence: Evidence
    options: SourceOptions
    types: Sequence[str]
    id_types: Sequence[str]
    read_extents: Callable[[Iterable[SegmentReader]], Any]
    join_extents: Callable[[Iterable[Any]], Extents]
    names: Callable[[], TopicNames]
    _facts: tuple[Extents, TopicNames] | None = field(default=None, init=False)
    _tasks: list[Task] = field(init=False)

    def __post_init__(self) -> None:
        # Extents are of whole logs: no condition leaves out a segment.
        prepare_workers(self.spark)
        self._tasks = plan(self.evidence, self.options, Pushed(RecordFilter()))

    def table(self, table: RecordTable) -> DataFrame:
        """The rows of this table for all groups, in no order."""
        from pyspark.sql.pandas.types import from_arrow_schema

        schema = from_arrow_schema(plain_schema(table.schema))
        if not self._tasks:
            return self.spark.createDataFrame([], schema)
        extents, names = self._known()
        wanted = replace(self.options.wanted, types=self.types)
        numbers = self.spark.range(0, len(self._tasks), 1, min(len(self._tasks), 1024))
        rows = numbers.mapInArrow(partial(_records, self._tasks, self.options, wanted), from_arrow_schema(_ORDERED))

        # PySpark reads type hints, and a partial function has none.
        def made(its_rows: pa.Table) -> pa.Table:
            return _made(table, names, extents, its_rows)

        return rows.groupBy(*_KEY).applyInArrow(made, schema)

    def _known(self) -> tuple[Extents, TopicNames]:
        if self._facts is None:
            from pyspark.sql.pandas.types import from_arrow_schema

            wanted = replace(self.options.wanted, types=self.id_types)
            numbers = self.spark.range(0, len(self._tasks), 1, min(len(self._tasks), 1024))
            about = partial(_about, self._tasks, self.options, wanted, self.read_extents)
            found = sorted(collect(numbers.mapInArrow(about, from_arrow_schema(_FACTS))), key=lambda row: row["task"])
            # Tasks of this job wrote these bytes.
            extents = self.join_extents(pickle.loads(row["extents"]) for row in found)  # noqa: S301
            self._facts = extents, self.names() if any(row["has_topic_ids"] for row in found) else TopicNames()
        return self._facts


def _about(
    tasks: Sequence[Task],
    options: SourceOptions,
    with_ids: RecordFilter,
    read_extents: Callable[[Iterable[SegmentReader]], Any],
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    for number in (number for batch in batches for number in batch.column(0).to_pylist()):
        extents = read_extents(readers_of(tasks[number]))
        has_topic_ids = any(batch.num_rows for batch in read_task(tasks[number], options, with_ids))
        row = {"task": number, "extents": pickle.dumps(extents), "has_topic_ids": has_topic_ids}
        yield pa.RecordBatch.from_pylist([row], schema=_FACTS)


def _records(
    tasks: Sequence[Task], options: SourceOptions, wanted: RecordFilter, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The records with the two numbers that restore their order: the task, and the row in it."""
    for number in (number for batch in batches for number in batch.column(0).to_pylist()):
        done = 0
        for found in read_task(tasks[number], options, wanted):
            rows = as_spark_carries(found, for_spark(_RECORDS))
            task_numbers = pa.repeat(pa.scalar(number, pa.int32()), rows.num_rows)
            row_numbers = pa.array(range(done, done + rows.num_rows), pa.int64())
            groups = pa.array([_group_of(key) for key in rows["key"].to_pylist()], pa.string())
            done += rows.num_rows
            ordered = pa.RecordBatch.from_arrays([task_numbers, row_numbers, groups, *rows.columns], schema=_ORDERED)
            yield ordered.filter(groups.is_valid())


@lru_cache(maxsize=16_384)
def _group_of(key: bytes | None) -> str | None:
    """The group that this key names; None if it cannot be read."""
    group = None if key is None else decode_record(key, None).key.get("group")
    return group if isinstance(group, str) else None


def _made(table: RecordTable, names: TopicNames, extents: Extents, rows: pa.Table) -> pa.Table:
    ordered = rows.sort_by([(_TASK, "ascending"), (_ROW, "ascending")]).select(_RECORDS.names).cast(_RECORDS)
    # A maker may learn names from the records of one group; other groups must not see them.
    its_names = TopicNames()
    its_names.take(names)
    return table.make(ordered.to_batches(), its_names, extents).cast(plain_schema(table.schema))
