"""Tables made of the records of each group, on Spark: rebalances and owners."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from exhume.analysis.group_timeline import group_record_names, group_timeline
from exhume.analysis.log_spans import LogSpans, joined, log_spans
from exhume.analysis.ownership import OWNERS
from exhume.analysis.ownership import owners as owners_of
from exhume.analysis.rebalances import REBALANCES
from exhume.analysis.rebalances import rebalances as rebalances_of
from exhume.codecs.compression import DEFAULT_CAP_BYTES
from exhume.codecs.log_directory import Evidence
from exhume.codecs.record_filter import RecordFilter
from exhume.codecs.record_types import MODERN_FAMILIES
from exhume.errors import RequestError
from exhume.findings import Findings
from exhume.replay.reading import LoadInputs
from exhume.replay.releases import profile_for
from exhume.replay.spark.group_records import GroupRecords, RecordTable
from exhume.replay.spark.loads import WORTH_STRETCHES_BYTES, Request, load_logs
from exhume.replay.spark.source_options import SourceOptions
from exhume.replay.spark.state import StateFrames
from exhume.replay.topic_names import TopicNames, names_beside
from exhume.spark.places import Place, found

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def _rebalances(records: Iterable[pa.RecordBatch], names: TopicNames, spans: LogSpans) -> pa.Table:
    return rebalances_of(group_timeline(records, names), spans)


def _owners(records: Iterable[pa.RecordBatch], names: TopicNames, spans: LogSpans) -> pa.Table:
    return owners_of(group_timeline(records, names), spans)


#: Tables that `write_tables` knows besides: made of the group records of each group, over the whole of a log. Others can be added.
RECORD_TABLES: dict[str, RecordTable] = {
    "rebalances": RecordTable(REBALANCES, _rebalances),
    "owners": RecordTable(OWNERS, _owners),
}


def rebalances(spark: SparkSession, places: Place | Sequence[Place], **options: Any) -> DataFrame:
    """The generations and epochs of groups, with the rows of `rebalances.REBALANCES`, in no order: a `record_table`, with its options."""
    return record_table(spark, "rebalances", places, **options)


def owners(spark: SparkSession, places: Place | Sequence[Place], **options: Any) -> DataFrame:
    """Who had which partition when, with the rows of `ownership.OWNERS`, in no order: a `record_table`, with its options."""
    return record_table(spark, "owners", places, **options)


def record_table(
    spark: SparkSession,
    name: str,
    places: Place | Sequence[Place],
    *,
    groups: Collection[str] | None = None,
    include: Collection[str] = (),
    verify: bool = True,
    cap_bytes: int = DEFAULT_CAP_BYTES,
    filesystem_options: Mapping[str, str] | None = None,
) -> DataFrame:
    """The rows of this one of `RECORD_TABLES` about these groups (default: all), in no order.

    Raises:
        RequestError: there is no such table.
        EvidenceError: nothing of the offsets topic is there, or it cannot be read.
    """
    if name not in RECORD_TABLES:
        raise RequestError(f"no table {name!r} of records", remedy=f"Choose of {', '.join(RECORD_TABLES)}")
    return group_records(spark, found(places, include, filesystem_options), groups, verify, cap_bytes).table(RECORD_TABLES[name])


def group_records(spark: SparkSession, evidence: Evidence, groups: Collection[str] | None, verify: bool, cap_bytes: int) -> GroupRecords:
    """The records of these groups (None: all), to make tables of."""

    def names() -> TopicNames:
        """As `OffsetsTopic` learns them: by a load that goes on over everything."""
        request = Request(
            release=profile_for(None).release,
            mode="lenient",
            stop=None,
            view="committed",
            inputs=LoadInputs(),
            moments=[None],
            # Names of topics come with it.
            tables=["assignments"],
            verify=verify,
            cap_bytes=cap_bytes,
            least_bytes=WORTH_STRETCHES_BYTES,
            stretch_bytes=None,
        )
        loaded = load_logs(spark, evidence.log_directories, request)
        with StateFrames(spark, loaded, request, names=names_beside(evidence.log_directories), findings=Findings()) as state:
            return state.topic_names

    options = SourceOptions(
        kind="records", of="records", places=(), wanted=RecordFilter(groups=groups), filesystem_options={}, verify=verify
    )
    return GroupRecords(
        spark,
        evidence,
        options,
        cap_bytes,
        group_record_names(),
        group_record_names(MODERN_FAMILIES),
        log_spans,
        joined,
        names,
    )
