"""exhume: what Kafka's group coordinator knew, read from the bytes of `__consumer_offsets`.

    import exhume

    with exhume.open("data/") as topic:          # data directory, partition directory, segment files, archive; or a list
        topic.segments()                         # pyarrow.Table: the files
        topic.offset_commits(groups=["billing"]) # pyarrow.RecordBatchReader: every commit, lazily
        state = topic.state(release="4.3")       # the state of a 4.3 coordinator after loading this log
        state.offsets                            # pyarrow.Table
        state.group("billing")                   # one group as an object

The folders, from the bottom up:

    errors, findings   errors, and facts about the evidence that deserve attention
    codecs             bytes and columns: batches, records, keys and values, files and directories
    replay             load records into the state of a coordinator, release by release
    analysis           make answers from state and records
    fixtures           write scenarios as log directories
    capture            record from a running cluster
    topic              the library: `exhume.open` and `OffsetsTopic`
    spark              the library on Apache Spark: `exhume.spark.register`, `reconstruct`, `diagnose`
    cli                the command line
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from exhume._version import __version__
from exhume.errors import CrcMismatch, DecodeError, DecompressionError, EncodeError, EvidenceError, ExhumeError, RequestError

if TYPE_CHECKING:
    from exhume.analysis.assignment.verdicts import AssignmentTables
    from exhume.analysis.detectors.inputs import Inputs, LiveOffset
    from exhume.analysis.forecast import Expiry
    from exhume.analysis.growth import Growth
    from exhume.analysis.inspection import Inspection
    from exhume.analysis.reset_plan import ResetPlan
    from exhume.analysis.transactions import Transactions
    from exhume.codecs.record_filter import RecordFilter
    from exhume.findings import Finding, Findings
    from exhume.frames import to_pandas, with_times
    from exhume.replay.reading import LoadInputs
    from exhume.replay.state import CoordinatorState, GroupState
    from exhume.replay.topic_names import Topic
    from exhume.topic import OffsetsTopic
    from exhume.topic import open_topic as open  # noqa: A004  # users write exhume.open("data/")
    from exhume.topic.sql import SqlDatabase
    from exhume.topic.states import GradedState

__all__ = [
    "AssignmentTables",
    "CoordinatorState",
    "CrcMismatch",
    "DecodeError",
    "DecompressionError",
    "EncodeError",
    "EvidenceError",
    "ExhumeError",
    "Expiry",
    "Finding",
    "Findings",
    "GradedState",
    "GroupState",
    "Growth",
    "Inputs",
    "Inspection",
    "LiveOffset",
    "LoadInputs",
    "OffsetsTopic",
    "RecordFilter",
    "RequestError",
    "ResetPlan",
    "SqlDatabase",
    "Topic",
    "Transactions",
    "__version__",
    "open",
    "to_pandas",
    "with_times",
]

_HOMES = {
    "open": ("exhume.topic", "open_topic"),
    "OffsetsTopic": ("exhume.topic", "OffsetsTopic"),
    "CoordinatorState": ("exhume.replay.state", "CoordinatorState"),
    "GroupState": ("exhume.replay.state", "GroupState"),
    "AssignmentTables": ("exhume.analysis.assignment.verdicts", "AssignmentTables"),
    "Expiry": ("exhume.analysis.forecast", "Expiry"),
    "Finding": ("exhume.findings", "Finding"),
    "Findings": ("exhume.findings", "Findings"),
    "GradedState": ("exhume.topic.states", "GradedState"),
    "Growth": ("exhume.analysis.growth", "Growth"),
    "Inputs": ("exhume.analysis.detectors.inputs", "Inputs"),
    "Inspection": ("exhume.analysis.inspection", "Inspection"),
    "LiveOffset": ("exhume.analysis.detectors.inputs", "LiveOffset"),
    "LoadInputs": ("exhume.replay.reading", "LoadInputs"),
    "RecordFilter": ("exhume.codecs.record_filter", "RecordFilter"),
    "ResetPlan": ("exhume.analysis.reset_plan", "ResetPlan"),
    "SqlDatabase": ("exhume.topic.sql", "SqlDatabase"),
    "Topic": ("exhume.replay.topic_names", "Topic"),
    "Transactions": ("exhume.analysis.transactions", "Transactions"),
    "to_pandas": ("exhume.frames", "to_pandas"),
    "with_times": ("exhume.frames", "with_times"),
}


def __getattr__(name: str) -> Any:
    """Import modules that need Arrow on first use: `exhume --help` does not need them."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module, attribute = _HOMES[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return __all__
