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
    from exhume.replay.state import CoordinatorState, GroupState
    from exhume.topic import OffsetsTopic
    from exhume.topic import open_topic as open  # noqa: A004  # users write exhume.open("data/")

__all__ = [
    "CoordinatorState",
    "CrcMismatch",
    "DecodeError",
    "DecompressionError",
    "EncodeError",
    "EvidenceError",
    "ExhumeError",
    "GroupState",
    "OffsetsTopic",
    "RequestError",
    "__version__",
    "open",
]

_HOMES = {
    "open": ("exhume.topic", "open_topic"),
    "OffsetsTopic": ("exhume.topic", "OffsetsTopic"),
    "CoordinatorState": ("exhume.replay.state", "CoordinatorState"),
    "GroupState": ("exhume.replay.state", "GroupState"),
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
