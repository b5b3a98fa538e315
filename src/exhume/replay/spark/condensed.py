"""The condensed form of each log, kept by the executors for detectors: log by log, and all logs in one task.

Facts about a log are small, and the driver collects them. The rest grows with the live keys of the log; it stays with its executor as
compressed bytes, because Spark takes longer to move and keep bytes than to compress them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from exhume.codecs.one_log import OneLog
from exhume.codecs.segment_reader import SegmentReader
from exhume.findings import Findings
from exhume.processes import packed, unpacked
from exhume.replay.spark.numbered import for_each_number
from exhume.replay.spark.session import collect, prepare_workers
from exhume.replay.spark.tasks import BATCH_CHUNKS, CHUNK_BYTES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: A log by its number, then its facts and its rest, each in chunks. Spark limits the number of rows in a batch, not their bytes.
_ROWS = pa.schema([("unit", pa.int32()), ("part", pa.int32()), ("chunk", pa.int32()), ("content", pa.binary())])
_FACTS, _REST = range(2)

#: Facts and rest of a log; None if the log has none.
Condense = Callable[[SegmentReader], tuple[Any, Any] | None]


@dataclass(slots=True)
class CondensedLogs:
    """The condensed form of each of these logs; `facts` and `damage` are known at once. Close it after use."""

    spark: SparkSession
    logs: Sequence[OneLog]
    condense: Condense
    #: By the number of the log, ascending; logs without facts are left out.
    facts: dict[int, Any] = field(default_factory=dict, init=False)
    #: The findings of reading the logs, log by log.
    damage: Findings = field(default_factory=Findings, init=False)
    _rows: DataFrame | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if not self.logs:
            return
        prepare_workers(self.spark)
        self._rows = for_each_number(self.spark, len(self.logs), partial(_condensed, self.logs, self.condense), _ROWS).persist()
        found = collect(self._rows.where(f"part = {_FACTS}").sort("unit", "chunk"))
        for number, chunks in groupby(found, key=itemgetter("unit")):
            facts, damage = _content(chunk["content"] for chunk in chunks)
            self.damage.extend(damage)
            if facts is not None:
                self.facts[number] = facts

    def each(self, look: Callable[[int, Any], Iterator[pa.RecordBatch]], schema: pa.Schema) -> DataFrame:
        """The rows that `look` makes from the number and the rest of each log."""
        return self._looked(self._rest(), partial(_each, look), schema)

    def together(self, look: Callable[[Iterator[tuple[int, Any]]], Iterator[pa.RecordBatch]], schema: pa.Schema) -> DataFrame:
        """The rows that `look` makes in one task from the numbers and rests of all logs, in order."""
        rows = self._rest()
        return self._looked(
            rows if rows is None else rows.repartition(1).sortWithinPartitions("unit", "chunk"), partial(_all, look), schema
        )

    def close(self) -> None:
        """Release the data that executors keep."""
        if self._rows is not None:
            self._rows.unpersist()

    def _rest(self) -> DataFrame | None:
        return None if self._rows is None else self._rows.where(f"part = {_REST}")

    def _looked(self, rows: DataFrame | None, look: Any, schema: pa.Schema) -> DataFrame:
        from pyspark.sql.pandas.types import from_arrow_schema

        if rows is None:
            # `look` can make rows without any log.
            return self.spark.createDataFrame(pa.Table.from_batches(look(iter(())), schema=schema))
        return rows.mapInArrow(look, from_arrow_schema(schema))


def _condensed(logs: Sequence[OneLog], condense: Condense, number: int) -> Iterator[pa.RecordBatch]:
    damage = Findings()
    facts, rest = condense(logs[number].reader(damage)) or (None, None)
    yield from _chunks(number, _FACTS, (facts, list(damage)))
    if facts is not None:
        yield from _chunks(number, _REST, rest)


def _chunks(unit: int, part: int, content: Any) -> Iterator[pa.RecordBatch]:
    whole = packed(content)
    starts = range(0, len(whole), CHUNK_BYTES)
    for first in range(0, len(starts), BATCH_CHUNKS):
        rows = [
            {"unit": unit, "part": part, "chunk": first + place, "content": whole[start : start + CHUNK_BYTES]}
            for place, start in enumerate(starts[first : first + BATCH_CHUNKS])
        ]
        yield pa.RecordBatch.from_pylist(rows, schema=_ROWS)


def _unpacked(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Any]]:
    rows = (row for batch in batches for row in zip(batch["unit"].to_pylist(), batch["content"].to_pylist(), strict=True))
    for number, chunks in groupby(rows, key=itemgetter(0)):
        yield number, _content(content for _, content in chunks)


def _content(chunks: Iterable[bytes]) -> Any:
    return unpacked(b"".join(chunks))


def _each(look: Callable[[int, Any], Iterator[pa.RecordBatch]], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for number, rest in _unpacked(batches):
        yield from look(number, rest)


def _all(
    look: Callable[[Iterator[tuple[int, Any]]], Iterator[pa.RecordBatch]], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    return look(_unpacked(batches))
