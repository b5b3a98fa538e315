"""Tables made of the records of each group, on Spark: rebalances and owners."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Unpack

import pyarrow as pa

from exhume.analysis.group_timeline import group_record_names, group_timeline
from exhume.analysis.log_extent import ExtentReaders, LogExtents
from exhume.analysis.ownership import OWNERS
from exhume.analysis.ownership import owners as owners_of
from exhume.analysis.rebalance_rows import REBALANCES
from exhume.analysis.rebalances import rebalances as rebalances_of
from exhume.codecs.log_directory import Evidence
from exhume.codecs.log_pass import collect
from exhume.codecs.record_filter import RecordFilter
from exhume.codecs.record_types import MODERN_FAMILIES
from exhume.codecs.segment_reader import ReadOptions, SegmentReader
from exhume.codecs.uris import PathOrUri
from exhume.errors import RequestError
from exhume.findings import Findings
from exhume.replay.load_request import LoadRequest
from exhume.replay.spark.group_records import GroupRecords, RecordTable
from exhume.replay.spark.loads import load_logs
from exhume.replay.spark.request import Request
from exhume.replay.spark.source_options import SourceOptions
from exhume.replay.spark.state import StateFrames
from exhume.replay.topic_names import TopicNames, names_beside
from exhume.spark.options import EvidenceKeywords, EvidenceOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def _rebalances(records: Iterable[pa.RecordBatch], names: TopicNames, extents: LogExtents) -> pa.Table:
    return rebalances_of(group_timeline(records, names), extents)


def _owners(records: Iterable[pa.RecordBatch], names: TopicNames, extents: LogExtents) -> pa.Table:
    return owners_of(group_timeline(records, names), extents)


def _read_extents(readers: Iterable[SegmentReader]) -> ExtentReaders:
    found = ExtentReaders()
    for reader in readers:
        collect(reader, [found])
    return found


def _join_extents(evidence: Evidence, parts: Iterable[ExtentReaders]) -> LogExtents:
    found = ExtentReaders()
    for part in parts:
        found.join(part)
    return found.extents(evidence.partitions)


#: More tables of `write_tables`, made from all group records of one group at a time. Others can be added.
RECORD_TABLES: dict[str, RecordTable] = {
    "rebalances": RecordTable(REBALANCES, _rebalances),
    "owners": RecordTable(OWNERS, _owners),
}


class RecordKeywords(EvidenceKeywords, total=False):
    """The keywords of `record_table`."""

    groups: Collection[str] | None


def rebalances(spark: SparkSession, places: PathOrUri | Sequence[PathOrUri], **options: Unpack[RecordKeywords]) -> DataFrame:
    """The generations and epochs of groups, with the rows of `rebalances.REBALANCES`, in no order: a `record_table`, with its options."""
    return record_table(spark, "rebalances", places, **options)


def owners(spark: SparkSession, places: PathOrUri | Sequence[PathOrUri], **options: Unpack[RecordKeywords]) -> DataFrame:
    """The owner of each partition over time, with the rows of `ownership.OWNERS`, in no order: a `record_table`, with its options."""
    return record_table(spark, "owners", places, **options)


def record_table(
    spark: SparkSession,
    name: str,
    places: PathOrUri | Sequence[PathOrUri],
    *,
    groups: Collection[str] | None = None,
    **options: Unpack[EvidenceKeywords],
) -> DataFrame:
    """The rows of this one of `RECORD_TABLES` about these groups (default: all), in no order; `options` are those of `EvidenceOptions`.

    Raises:
        RequestError: no such table.
        EvidenceError: the places have no partition of the offsets topic, or it cannot be read.
    """
    if name not in RECORD_TABLES:
        raise RequestError(f"no table {name!r} of records", remedy=f"Choose from {', '.join(RECORD_TABLES)}")
    how = EvidenceOptions(**options)
    return group_records(spark, how.evidence(places), groups, how.read).table(RECORD_TABLES[name])


def group_records(spark: SparkSession, evidence: Evidence, groups: Collection[str] | None, read: ReadOptions) -> GroupRecords:
    """The records of these groups (None: all), to make tables of."""

    def names() -> TopicNames:
        """Learn topic names as `OffsetsTopic` does: by a lenient load."""
        # A load of assignments learns the names of topics.
        request = Request(load=LoadRequest(mode="lenient"), tables=["assignments"], read=read)
        loaded = load_logs(spark, evidence.log_directories, request)
        with StateFrames(spark, loaded, request, names=names_beside(evidence.log_directories), findings=Findings()) as state:
            return state.topic_names

    wanted = RecordFilter(groups=groups)
    options = SourceOptions(kind="records", of="records", places=(), wanted=wanted, filesystem_options={}, read=read)
    return GroupRecords(
        spark,
        evidence,
        options,
        group_record_names(),
        group_record_names(MODERN_FAMILIES),
        _read_extents,
        partial(_join_extents, evidence),
        names,
    )
