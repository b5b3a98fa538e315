"""The type of a row of the catalogue of incidents: a detector."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from exhume.analysis.detectors.cases import GroupCase, PartitionCase, TopicCase
from exhume.analysis.detectors.inputs import Inputs
from exhume.findings import Finding

Section = Literal[
    "Offsets disappeared",
    "Offsets moved",
    "The coordinator cannot read its log",
    "Membership and assignment",
    "Volume and shape",
    "Reading and writing back",
]
#: The command line option that gives an extra input.
Option = Literal["--end-offsets", "--start-offsets", "--topics", "--live", "--retention", "--offsets-partitions", "a second replica"]

FindInGroup = Callable[[GroupCase, Inputs], Iterator[Finding]]
FindInPartition = Callable[[PartitionCase, Inputs], Iterator[Finding]]
FindInTopic = Callable[[TopicCase, Inputs], Iterator[Finding]]
Begin = Callable[[TopicCase], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Detector:
    """A class of incidents and the function that finds it. The docstring of the function is the rule.

    Exactly one of the three functions is set. A detector `in_group` runs group by group, on any machine that has the records of the group.

    Attributes:
        code: The code of its findings. A class with several cases adds a letter.
        begin: Begins work for `in_topic` on another thread, which goes on while other detectors run.
        traps: Situations that look like this class and are not.
        needs: Inputs without which the detector cannot decide.
        better_with: Inputs that make its answers more certain.
    """

    code: str
    title: str
    section: Section
    in_group: FindInGroup | None = None
    in_partition: FindInPartition | None = None
    in_topic: FindInTopic | None = None
    begin: Begin | None = None
    traps: tuple[str, ...] = ()
    needs: tuple[Option, ...] = ()
    better_with: tuple[Option, ...] = ()
    #: True if the rule needs the times of tombstones or group records. Message format 0 has none.
    by_time: bool = False

    @property
    def rule(self) -> str:
        """The rule, in a few sentences."""
        return inspect.cleandoc((self.in_group or self.in_partition or self.in_topic).__doc__ or "")

    def finds(self, code: str) -> bool:
        """Return True if this detector makes findings with this code."""
        return code == self.code or (code.startswith(self.code) and code[len(self.code) :].isalpha())
