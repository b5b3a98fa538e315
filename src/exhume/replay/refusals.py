"""Refusals of a release: strict mode ends the load, lenient mode notes them and reads on."""

from __future__ import annotations

from dataclasses import dataclass, field

from exhume.replay.load_problems import LoadProblem
from exhume.replay.verdict import LoadAborted, Tolerated


@dataclass(slots=True)
class Refusals:
    """The refusals of one load. `path` and `byte_position` are those of the batch that is being applied."""

    lenient: bool
    path: str | None = None
    byte_position: int | None = None
    tolerated: list[Tolerated] = field(default_factory=list)

    def refuse(self, problem: LoadProblem) -> None:
        """End the load here (strict), or note that the release would have (lenient).

        Raises:
            LoadAborted: in strict mode.
        """
        if not self.lenient:
            raise LoadAborted(problem, path=self.path, byte_position=self.byte_position)
        self.tolerated.append(Tolerated(problem, self.path, self.byte_position))
