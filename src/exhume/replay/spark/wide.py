"""One schema for the rows of all tables: a column for each table, a struct of its columns, null in the rows of other tables.

So a job that makes several tables in one pass has one kind of rows, and each table is a selection of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import pyarrow as pa

from exhume.arrow_rows import BATCH_BYTES
from exhume.findings import SCHEMA as FINDINGS
from exhume.replay.state_tables import SCHEMAS

#: The result of a log: `loaded`, or the reason why it is not: `not_folded`, `not_reducible`, `refused`. `damage` counts findings that make
#: an answer partial.
VERDICT = pa.schema([("outcome", pa.string()), ("damage", pa.int32())])
#: A `LoadProblem`, pickled: of a load, or why a broker does not start on a log.
PROBLEMS = pa.schema([("problem", pa.binary())])
#: Names of topics that a load learned: see `topic_names.SOURCES`.
NAMES = pa.schema([("source", pa.string()), ("topic_id", pa.string()), ("topic", pa.string())])

TABLES: Mapping[str, pa.Schema] = {**SCHEMAS, "findings": FINDINGS, "verdict": VERDICT, "problems": PROBLEMS, "names": NAMES}
#: The first columns: the number of the log in the job, that of the moment, and the table.
UNIT, MOMENT, TABLE = "unit", "moment", "table"

_ROWS = 4096


def plain(data_type: pa.DataType) -> pa.DataType:
    """This type in Spark: JSON is text."""
    return pa.string() if isinstance(data_type, pa.JsonType) else data_type


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """These columns with types of Spark, all nullable."""
    return pa.schema([(field.name, plain(field.type)) for field in schema])


@cache
def wide_schema() -> pa.Schema:
    """The schema of these rows."""
    tables = [(name, pa.struct(list(plain_schema(schema)))) for name, schema in TABLES.items()]
    return pa.schema([(UNIT, pa.int32()), (MOMENT, pa.int32()), (TABLE, pa.string()), *tables])


def wide_batches(unit: int, moment: int, name: str, table: pa.Table) -> Iterator[pa.RecordBatch]:
    """The rows of a table as such rows."""
    schema = wide_schema()
    most_rows = max(1, min(_ROWS, table.num_rows * BATCH_BYTES // max(1, table.nbytes)))
    for batch in table.cast(plain_schema(TABLES[name])).to_batches(max_chunksize=most_rows):
        count = batch.num_rows
        if not count:
            continue
        same = {UNIT: unit, MOMENT: moment, TABLE: name}
        columns = [
            pa.repeat(pa.scalar(same[field.name], field.type), count)
            if field.name in same
            else batch.to_struct_array().cast(field.type)
            if field.name == name
            else pa.nulls(count, field.type)
            for field in schema
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def wide_rows(unit: int, moment: int, name: str, rows: Sequence[Mapping[str, object]]) -> Iterator[pa.RecordBatch]:
    """Plain rows as such rows."""
    return wide_batches(unit, moment, name, pa.Table.from_pylist(list(rows), schema=plain_schema(TABLES[name])))
