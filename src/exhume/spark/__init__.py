"""Offsets topics on Apache Spark, for logs that are too large for one machine: `pip install 'exhume[spark]'`, PySpark 4.0 or later.

    import exhume.spark

    exhume.spark.register(spark)
    commits = spark.read.format("offsets-topic").option("kind", "offset_commit").load("s3://backups/kafka")

    with exhume.spark.reconstruct(spark, "s3://backup/2026-11-21", release="4.3") as state:
        state["offsets"].where("`group` = 'billing'").show()

The rows are those of `exhume.open(…)`; docs/spark.md explains which part runs on executors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from exhume.errors import RequestError
from exhume.replay.spark.group_records import RecordTable
from exhume.replay.spark.group_tables import GroupTable
from exhume.replay.spark.state import StateFrames
from exhume.spark.diagnosis import Diagnosis, diagnose
from exhume.spark.export import GROUP_TABLES, export_tables, write_tables
from exhume.spark.options import EvidenceOptions, StateOptions
from exhume.spark.records import RECORD_TABLES, owners, rebalances, record_table
from exhume.spark.states import completeness, reconstruct, snapshots

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "GROUP_TABLES",
    "RECORD_TABLES",
    "Diagnosis",
    "EvidenceOptions",
    "GroupTable",
    "RecordTable",
    "StateFrames",
    "StateOptions",
    "completeness",
    "diagnose",
    "export_tables",
    "owners",
    "rebalances",
    "reconstruct",
    "record_table",
    "register",
    "snapshots",
    "write_tables",
]


def register(spark: SparkSession) -> None:
    """Make the format `offsets-topic` known to this session. Options, kinds and schemas: docs/spark.md.

    Filters are pushed down if `spark.sql.python.filterPushdown.enabled` is true when this is called (PySpark 4.1 and later).

    Raises:
        RequestError: no installed PySpark supports Python data sources.
    """
    try:
        from exhume.replay.spark import data_source
    except ImportError as error:
        raise RequestError(f"PySpark 4.0 or later is missing: {error}", remedy="Install exhume[spark]") from error
    data_source.register(spark)
