"""What can be diagnosed: one row for each entry of the catalogue of incidents."""

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
#: The option that gives an extra input, as the command line has it.
Option = Literal["--end-offsets", "--start-offsets", "--topics", "--live", "--retention", "--offsets-partitions", "a second replica"]

FindInGroup = Callable[[GroupCase, Inputs], Iterator[Finding]]
FindInPartition = Callable[[PartitionCase, Inputs], Iterator[Finding]]
FindInTopic = Callable[[TopicCase, Inputs], Iterator[Finding]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Detector:
    """A class of incidents and who finds it. The docstring of the function is its rule.

    Exactly one of the three functions is there: what a detector looks at decides where it can run. Those of one group run group by group,
    on any machine that has the group's records. Codes of findings are `code`, with a letter behind it where there are cases.
    `traps` are what it must not be confused with; `needs` are inputs without which it is undecidable, `better_with` those that help.
    """

    code: str
    title: str
    section: Section
    in_group: FindInGroup | None = None
    in_partition: FindInPartition | None = None
    in_topic: FindInTopic | None = None
    traps: tuple[str, ...] = ()
    needs: tuple[Option, ...] = ()
    better_with: tuple[Option, ...] = ()
    #: Whether it goes by the times of tombstones or of records of groups, which message format 0 does not have.
    by_time: bool = False

    @property
    def rule(self) -> str:
        """What it looks for, in a few sentences."""
        return inspect.cleandoc((self.in_group or self.in_partition or self.in_topic).__doc__ or "")

    def finds(self, code: str) -> bool:
        """Whether findings with this code are of this detector."""
        return code == self.code or (code.startswith(self.code) and code[len(self.code) :].isalpha())
