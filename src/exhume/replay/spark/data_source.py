"""The data source `offsets-topic`: rows of an offsets topic as DataFrames, segment by segment on the executors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from exhume.errors import RequestError
from exhume.replay.spark.kinds import as_spark_carries, for_spark, kinds
from exhume.replay.spark.planning import Task, find_evidence, plan
from exhume.replay.spark.pushed_filters import Condition, Pushed, push
from exhume.replay.spark.reading import read_task
from exhume.replay.spark.session import prepare_workers
from exhume.replay.spark.source_options import SourceOptions, read_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import Filter

NAME = "offsets-topic"
_PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


class TaskPartition(InputPartition):
    """One task of a job."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.task = task


class OffsetsTopicReader(DataSourceReader):
    """Reads rows of one kind. Filters are those of the options; Spark filters the rows again."""

    def __init__(self, options: SourceOptions, schema: pa.Schema) -> None:
        self._options = options
        self._schema = schema
        self._pushed = Pushed(options.wanted)

    def partitions(self) -> list[InputPartition]:
        with find_evidence(self._options) as evidence:
            tasks = plan(evidence, self._options, self._pushed)
        return [TaskPartition(task) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # Spark makes a partition without a task if there is no file to read.
        if isinstance(partition, TaskPartition):
            for batch in read_task(partition.task, self._options, self._pushed.wanted):
                if batch.num_rows:
                    yield as_spark_carries(batch, self._schema)


class FilteringReader(OffsetsTopicReader):
    """The reader for sessions with filter pushdown: Spark refuses it while pushdown is off."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        for each in filters:
            condition = _condition(each)
            pushed = None if condition is None else push(self._pushed, self._options.kind, condition)
            if pushed is None:
                yield each
            else:
                self._pushed = pushed


class OffsetsTopicSource(DataSource):
    """`spark.read.format("offsets-topic")`, without pushed filters."""

    _reader: type[OffsetsTopicReader] = OffsetsTopicReader

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        return from_arrow_schema(for_spark(kinds()[read_options(self.options).kind]))

    def reader(self, schema: StructType) -> OffsetsTopicReader:
        options = read_options(self.options)
        return self._reader(options, _chosen_columns(options.kind, schema))


class FilteringSource(OffsetsTopicSource):
    """`spark.read.format("offsets-topic")`, with pushed filters."""

    _reader = FilteringReader


def register(spark: SparkSession) -> None:
    """Make the format known to this session; with pushed filters if `spark.sql.python.filterPushdown.enabled` is true now."""
    can_push = hasattr(DataSourceReader, "pushFilters") and str(spark.conf.get(_PUSHDOWN, "false")).lower() == "true"
    prepare_workers(spark)
    spark.dataSource.register(FilteringSource if can_push else OffsetsTopicSource)


def _chosen_columns(kind: str, schema: StructType) -> pa.Schema:
    """The columns to read: all, or those of the user's schema."""
    whole = for_spark(kinds()[kind])
    types = {field.name: field.dataType for field in from_arrow_schema(whole).fields}
    for column in schema.fields:
        if column.name not in types:
            raise RequestError(f"the kind {kind} has no column {column.name!r}", remedy=f"It has {', '.join(types)}")
        if column.dataType != types[column.name]:
            remedy = f"It is {types[column.name].simpleString()}; cast the DataFrame"
            raise RequestError(f"the column {column.name} is no {column.dataType.simpleString()}", remedy=remedy)
    return pa.schema([whole.field(name) for name in schema.fieldNames()])


def _condition(each: Filter) -> Condition | None:
    """Return this filter as a condition, None if the reader cannot use it."""
    from pyspark.sql import datasource

    column: Any = getattr(each, "attribute", None)
    if not isinstance(column, tuple) or len(column) != 1:
        return None
    match each:
        case datasource.EqualTo() | datasource.EqualNullSafe():
            return None if each.value is None else Condition(column[0], "in", (each.value,))
        case datasource.In():
            # A null in a list meets nothing.
            return Condition(column[0], "in", tuple(value for value in each.value if value is not None))
        case datasource.GreaterThan():
            return Condition(column[0], ">", (each.value,))
        case datasource.GreaterThanOrEqual():
            return Condition(column[0], ">=", (each.value,))
        case datasource.LessThan():
            return Condition(column[0], "<", (each.value,))
        case datasource.LessThanOrEqual():
            return Condition(column[0], "<=", (each.value,))
    return None
