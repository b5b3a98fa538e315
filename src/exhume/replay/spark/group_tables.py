"""Tables about one group at a time, made on the executor that has its rows.

A function from a state to a table can run on the state of one group at a time, if its rows depend on that group alone. So groups are
handled in parallel, and no task needs the whole state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from exhume.findings import Findings
from exhume.replay.spark.wide import MOMENT, TABLE, TABLES, plain_schema
from exhume.replay.state import CoordinatorState, LazyTables
from exhume.replay.state_tables import SCHEMAS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_REPLICA, _GROUP = "its_replica", "its_group"


@dataclass(frozen=True, slots=True)
class GroupTable:
    """A table of this schema, made of the state tables named in `needs`; `make` takes the state of one group of one replica."""

    schema: pa.Schema
    needs: tuple[str, ...]
    make: Callable[[CoordinatorState], pa.Table]


def apply_to_groups(rows: DataFrame, table: GroupTable, release: str, mode: str) -> DataFrame:
    """The rows of this table for all groups; `rows` are those of `wide`, the number of the moment stays the first column."""
    from pyspark.sql import functions
    from pyspark.sql.pandas.types import from_arrow_schema

    needed = rows.where(rows[TABLE].isin(list(table.needs)))
    keyed = needed.select(
        functions.coalesce(*(functions.col(f"{name}.replica") for name in table.needs)).alias(_REPLICA),
        functions.coalesce(*(functions.col(f"{name}.group") for name in table.needs)).alias(_GROUP),
        MOMENT,
        TABLE,
        *table.needs,
    )
    schema = from_arrow_schema(pa.schema([(MOMENT, pa.int32()), *plain_schema(table.schema)]))

    # PySpark reads type hints, and a partial function has none.
    def made(its_rows: pa.Table) -> pa.Table:
        return _made(table, release, mode, its_rows)

    return keyed.groupBy(_REPLICA, _GROUP, MOMENT).applyInArrow(made, schema)


def _made(table: GroupTable, release: str, mode: str, rows: pa.Table) -> pa.Table:
    found: dict[str, pa.Table] = {}
    for name in table.needs:
        its = rows.filter(pa.compute.equal(rows[TABLE], name))[name].combine_chunks()
        its = its.chunk(0) if isinstance(its, pa.ChunkedArray) else its
        found[name] = pa.Table.from_arrays(its.flatten(), schema=plain_schema(TABLES[name])).cast(SCHEMAS[name])
    made = table.make(CoordinatorState(release, mode, LazyTables(_makers(found)), Findings())).cast(plain_schema(table.schema))
    moment = pa.repeat(pa.scalar(rows[MOMENT][0].as_py(), pa.int32()), made.num_rows)
    return made.add_column(0, MOMENT, moment)


def _makers(found: Mapping[str, pa.Table]) -> dict[str, Callable[[object], pa.Table]]:
    def maker(name: str) -> Callable[[object], pa.Table]:
        return lambda _: found[name] if name in found else SCHEMAS[name].empty_table()

    return {name: maker(name) for name in SCHEMAS}
