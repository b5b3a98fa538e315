"""Detectors: functions from a condensed log to findings. docs/detectors.md has their rules.

    case = condense(reader)                one pass over the log; the result is a `TopicCase` of `cases`
    diagnose(case, Inputs())               the findings of all detectors, the worst first

To add one: write `find_…(case, inputs) -> Iterator[Finding]` in the module of its section, with its rule as the docstring, and a row in the
`DETECTORS` of that module. `catalogue` joins them.
"""

from __future__ import annotations

from exhume.analysis.detectors.cases import GroupCase, PartitionCase, TopicCase
from exhume.analysis.detectors.condense import condense
from exhume.analysis.detectors.diagnose import diagnose
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.keys import KeyHistory
from exhume.analysis.detectors.log_files import LogFiles
from exhume.analysis.detectors.registry import Detector

__all__ = ["Detector", "GroupCase", "Inputs", "KeyHistory", "LogFiles", "PartitionCase", "TopicCase", "condense", "diagnose"]
