"""The state of a coordinator as DataFrames."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from exhume.errors import EvidenceError
from exhume.findings import SCHEMA as FINDINGS
from exhume.findings import Finding, Findings
from exhume.replay import load_findings
from exhume.replay.releases import profile_for
from exhume.replay.spark.graded import Grading, grade
from exhume.replay.spark.group_tables import GroupTable, apply_to_groups
from exhume.replay.spark.loads import LoadedLogs
from exhume.replay.spark.request import Request
from exhume.replay.spark.wide import MOMENT, TABLE, TABLES, UNIT, plain_schema
from exhume.replay.state_tables import SCHEMAS
from exhume.replay.topic_names import TopicNames

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: The moment of a row, where there are several.
AT_TIME = "at_time_ms"


class StateFrames(Mapping[str, "DataFrame"]):
    """The state tables by name, with the columns of `state_tables.SCHEMAS`, and `findings` with those of `findings.SCHEMA`; JSON is text.

    States at several moments have a first column `at_time_ms`. Rows have no order. Executors keep them until the state is closed: use it in
    a `with` statement, or `close` it. `ways` has the way in which each log was loaded, by its number.
    """

    def __init__(
        self,
        spark: SparkSession,
        loaded: LoadedLogs,
        request: Request,
        *,
        names: TopicNames,
        findings: Findings,
        groups: Collection[str] | None = None,
        has_moments: bool = False,
    ) -> None:
        self.release = profile_for(request.load.release).release
        self.mode = request.load.mode
        self.ways = loaded.ways
        self.spark = spark
        self._loaded = loaded
        self._request = request
        self._names = names
        self._findings = findings
        self._groups = groups
        self._has_moments = has_moments
        self._known: list[TopicNames] | None = None

    def __getitem__(self, name: str) -> DataFrame:
        if name == "findings":
            return self._findings_frame()
        if name not in self._request.tables:
            raise KeyError(name)
        rows = self._rows(name)
        if name == "assignments":
            rows = rows.mapInArrow(partial(_name_topics, self._learned()), rows.schema)
        return self._at_times(self._of_groups(name, rows))

    def __iter__(self) -> Iterator[str]:
        return iter([*self._request.tables, "findings"])

    def __len__(self) -> int:
        return len(self._request.tables) + 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Release the rows that executors keep."""
        self._loaded.unpersist()

    @property
    def has_damage(self) -> bool:
        """Return True if a finding makes the answer partial."""
        return bool(self._loaded.damage) or self._findings.has_damage

    def refuse_damage(self) -> None:
        """Raise `EvidenceError` if a finding makes the answer partial."""
        if self.has_damage:
            raise EvidenceError("the evidence is damaged, and the answer partial", remedy="The table `findings` says where")

    def outcomes(self) -> dict[str, int]:
        """The number of loads by their outcome."""
        return {row["outcome"]: row["count"] for row in self["loads"].groupBy("outcome").count().sort("outcome").collect()}

    def of_groups(self, table: GroupTable) -> DataFrame:
        """A table that is made of each group by itself. The state tables that it needs must be among those of this state."""
        return self._at_times(apply_to_groups(self._loaded.rows, table, self.release, self.mode))

    def graded(self, grading: Grading) -> DataFrame:
        """A table that is made of each log and its state: see `graded.Grading`. The logs are read once more, each by one task."""
        return grade(self._loaded.rows, self._loaded.logs, grading, self.release, self.mode)

    @property
    def topic_names(self) -> TopicNames:
        """The topic names known at the first moment: from files beside the logs, and from the loads."""
        return self._learned()[0]

    @property
    def names_beside(self) -> TopicNames:
        """The topic names from files beside the logs."""
        return self._names

    @property
    def groups(self) -> Collection[str] | None:
        """The wanted groups; None for all."""
        return self._groups

    @property
    def request(self) -> Request:
        """The request of this state."""
        return self._request

    @property
    def moment(self) -> Mapping[str, object] | None:
        """The moment of the state as plain values; None for the end of the logs."""
        at = self._request.moments[0]
        if at is None:
            return None
        return {"at_time_ms": at.time_ms, "clock": at.clock} if at.time_ms is not None else {"at_offset": dict(at.last_offsets)}

    def _rows(self, name: str) -> DataFrame:
        """The rows of a table, with the number of their moment as first column."""
        rows = self._loaded.rows
        return rows.where(rows[TABLE] == name).select(MOMENT, f"{name}.*")

    def _at_times(self, rows: DataFrame) -> DataFrame:
        """These rows with the time of their moment in place of its number, or without it where there is one only."""
        if not self._has_moments or AT_TIME in rows.columns:
            return rows.drop(MOMENT)
        from pyspark.sql import functions

        times = functions.array(*(functions.lit(at.time_ms).cast("long") for at in self._request.moments if at is not None))
        return rows.select(times[rows[MOMENT]].alias(AT_TIME), *(rows[name] for name in rows.columns if name != MOMENT))

    def _of_groups(self, name: str, rows: DataFrame) -> DataFrame:
        if self._groups is None:
            return rows
        from pyspark.sql import functions

        if "group" in SCHEMAS[name].names:
            return rows.where(rows["group"].isin(list(self._groups)))
        if name == "open_transactions":
            wanted = functions.array(*(functions.lit(group) for group in self._groups))
            return rows.where(functions.arrays_overlap(rows["groups"], wanted))
        return rows

    # Topic names

    def _learned(self) -> list[TopicNames]:
        """The names that are known at each moment: the latest name in a log counts, and of several logs that of the last."""
        if self._known is None:
            rows = self._loaded.rows
            found = rows.where(rows[TABLE] == "names").select(MOMENT, UNIT, "names.*").collect()
            found.sort(key=lambda row: (row[MOMENT], row[UNIT]))
            self._known = []
            for moment in range(len(self._request.moments)):
                names = TopicNames()
                names.take(self._names)
                for row in found:
                    if row[MOMENT] == moment:
                        names.add(row["source"], row["topic_id"], row["topic"])
                self._known.append(names)
        return self._known

    # Findings

    def _findings_frame(self) -> DataFrame:
        from pyspark.sql.pandas.types import from_arrow_schema

        schema = from_arrow_schema(_with_moment(plain_schema(FINDINGS)))
        rows = self._rows("findings")
        if "groups" in self._request.tables:
            owned = self._loaded.rows.where(self._loaded.rows[TABLE] == "groups")
            homes = owned.select(MOMENT, UNIT, "groups.replica", "groups.offsets_partition", "groups.group")
            rows = rows.unionAll(_several_homes(homes).mapInArrow(_tell_several_homes, schema))
        elsewhere = _findings_table(range(len(self._request.moments)), self._findings)
        return self._at_times(rows.unionAll(self.spark.createDataFrame(elsewhere, schema)))


def _with_moment(schema: pa.Schema) -> pa.Schema:
    return pa.schema([(MOMENT, pa.int32()), *schema])


def _findings_table(moments: Iterable[int], findings: Iterable[Finding]) -> pa.Table:
    table = Findings(findings).to_table().cast(plain_schema(FINDINGS))
    copies = [table.add_column(0, MOMENT, pa.repeat(pa.scalar(moment, pa.int32()), table.num_rows)) for moment in moments]
    return pa.concat_tables(copies)


def _several_homes(homes: DataFrame) -> DataFrame:
    """A row for each group in several offsets partitions of a replica, with all of them."""
    from pyspark.sql import functions

    places = functions.collect_list(functions.struct(UNIT, "offsets_partition")).alias("places")
    found = homes.groupBy(MOMENT, "replica", "group").agg(places)
    return found.where(functions.size("places") > 1)


def _tell_several_homes(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for moment, rows in groupby(sorted(batch.to_pylist(), key=lambda row: row[MOMENT]), key=lambda row: row[MOMENT]):
            findings = [finding for row in rows for finding in _homes_of(row)]
            yield from _findings_table([moment], findings).to_batches()


def _homes_of(row: Mapping[str, Any]) -> Iterator[Finding]:
    first, *others = sorted(row["places"], key=lambda place: place[UNIT])
    for other in others:
        if other["offsets_partition"] != first["offsets_partition"]:
            yield load_findings.second_home(row["replica"], row["group"], first["offsets_partition"], other["offsets_partition"])


def _name_topics(known: Sequence[TopicNames], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of `assignments`, with topic names from all logs at their moment: one log alone does not know all names."""
    for batch in batches:
        rows = batch.to_pylist()
        for row in rows:
            if row["topic_id"] is not None:
                name = known[row[MOMENT]].lookup(row["topic_id"])
                row["topic"], row["topic_name_source"] = (name.topic, name.source) if name else (None, None)
        yield pa.RecordBatch.from_pylist(rows, schema=batch.schema)


def all_tables() -> list[str]:
    """The names of the state tables."""
    return [name for name in TABLES if name in SCHEMAS]
