"""The request for a load on Spark."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from exhume.codecs.segment_reader import ReadOptions
from exhume.replay.load_request import LoadRequest
from exhume.replay.moment import Moment

MEGABYTE = 1 << 20
#: Smaller logs are loaded whole: a task loads them faster than it gets messages about their parts.
WORTH_PARTS_BYTES = 4 * MEGABYTE


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A load at one moment, or at several in the order of time (None: the end), and the `tables` of the state that are wanted.

    Logs of `least_bytes` and more are loaded in parts of about `stretch_bytes`; None: from the size of the logs and the number of
    cores. `read` goes to executors, so it has no progress function.
    """

    load: LoadRequest = field(default_factory=LoadRequest)
    tables: Collection[str]
    moments: Sequence[Moment | None] = (None,)
    read: ReadOptions = field(default_factory=ReadOptions)
    least_bytes: int = WORTH_PARTS_BYTES
    stretch_bytes: int | None = None
