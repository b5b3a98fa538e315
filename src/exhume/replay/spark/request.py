"""What a Spark job loads."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from exhume.codecs.segment_reader import ReadOptions
from exhume.replay.load_request import LoadRequest
from exhume.replay.moment import Moment

MEGABYTE = 1 << 20
#: Smaller logs are loaded whole: a task has them in memory before another one had their messages.
WORTH_STRETCHES_BYTES = 4 * MEGABYTE


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A load at one moment, or at several in the order of time (None: the end), and the `tables` of the state that are wanted.

    Logs of `least_bytes` and more are loaded in stretches of about `stretch_bytes`; None: by what there is to read, and cores to do it.
    `read` travels to executors, so that it has no progress to report to.
    """

    load: LoadRequest = field(default_factory=LoadRequest)
    tables: Collection[str]
    moments: Sequence[Moment | None] = (None,)
    read: ReadOptions = field(default_factory=ReadOptions)
    least_bytes: int = WORTH_STRETCHES_BYTES
    stretch_bytes: int | None = None
