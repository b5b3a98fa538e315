"""The outcomes of a load, and the exception that ends it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from exhume.replay.load_problems import LoadProblem, ProblemKind

#: loaded            everything was read and installed
#: loaded_with_error everything was installed, and the broker logged an error after it
#: aborted           the load stopped at a record; what it held then is gone or half
#: not_shown         loaded, but requests are answered from an older snapshot until the next write (Java coordinator)
#: stalled           the load never ends: the partition stays loading
#: refused           the broker does not start on this log directory
Outcome = Literal["loaded", "loaded_with_error", "aborted", "not_shown", "stalled", "refused"]
#: The load reached its end, and requests see all of it.
LOADED: frozenset[Outcome] = frozenset({"loaded", "loaded_with_error"})
#: The load reached its end: all of it is in memory.
LOADED_IN_MEMORY: frozenset[Outcome] = LOADED | {"not_shown"}

#: Every other kind aborts the load.
_OUTCOMES: Mapping[ProblemKind, Outcome] = {
    ProblemKind.START_NAME_MALFORMED: "refused",
    ProblemKind.START_BATCH_TOO_SMALL: "refused",
    ProblemKind.START_CONTROL_TYPE_UNKNOWN: "refused",
    ProblemKind.START_INDEX_GOES_BACK: "refused",
    ProblemKind.START_BATCH_BELOW_SEGMENT: "refused",
    ProblemKind.START_BATCH_UNREADABLE: "refused",
    ProblemKind.EMPTY_READ_STALLS: "stalled",
    ProblemKind.BATCH_BEYOND_BUFFER: "stalled",
    ProblemKind.GAP_AT_END: "not_shown",
    ProblemKind.RECORDS_AFTER_END: "not_shown",
    ProblemKind.ACTIVE_GROUP_UNLOADED: "loaded_with_error",
}
#: The evidence is damaged; every other kind is about records that the release refuses.
_DAMAGE = frozenset(
    {ProblemKind.BATCH_UNREADABLE, ProblemKind.BATCH_TOO_SMALL, ProblemKind.BATCH_SIZE_OVERFLOWS, ProblemKind.MAGIC_UNKNOWN}
)


def outcome_of(problem: LoadProblem | None) -> Outcome:
    """The outcome of a load that meets this problem; None: it meets none."""
    return "loaded" if problem is None else _OUTCOMES.get(problem.kind, "aborted")


class LoadAborted(Exception):
    """The load of this release stops here, or goes on for ever. `path` and `byte_position` are those of the batch, as far as known."""

    def __init__(self, problem: LoadProblem, *, path: str | None = None, byte_position: int | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.path = path
        self.byte_position = byte_position

    @property
    def is_damage(self) -> bool:
        """True for bytes that no release reads."""
        return self.problem.kind in _DAMAGE


@dataclass(frozen=True, slots=True)
class Tolerated:
    """A problem that ends the load of the release; lenient mode reads on."""

    problem: LoadProblem
    path: str | None = None
    byte_position: int | None = None
