"""Findings of the detectors about these logs, and the growth of the topic.

Functions import the modules that take long to import.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from exhume.analysis.growth import Growth, GrowthBy, growth_of
from exhume.analysis.removals.causes import Judgement, RecordPlace
from exhume.arrow_rows import Origin
from exhume.codecs.record_sizes import record_sizes
from exhume.codecs.uris import PathOrUri
from exhume.errors import RequestError, near_by
from exhume.findings import Finding, Findings
from exhume.replay.partition_load import LoadOptions
from exhume.replay.releases import profile_for
from exhume.replay.topic_names import TopicNames
from exhume.topic.logs import TopicLogs
from exhume.topic.retention import Retention

if TYPE_CHECKING:
    from exhume.analysis.detectors import Inputs, TopicCase


def diagnose(
    logs: TopicLogs, inputs: Inputs | None, codes: Collection[str] | None, groups: Collection[str] | None, topics_file: PathOrUri | None
) -> Findings:
    """Return the findings of the detectors of these codes (default: all) about these groups (default: all), the worst first.

    Raises:
        RequestError: no such code, or no record of one of these groups.
    """
    from exhume.analysis.detectors import Inputs, LogFiles, condense
    from exhume.analysis.detectors import diagnose as findings_of

    case = condense(logs.reader(), logs.topic_names(topics_file))
    case.files = LogFiles(logs.evidence, logs.reader, logs.fast_load, logs.findings)
    inputs = (inputs or Inputs()).with_paths(logs.evidence.paths)
    known = {group.group for group in case.groups()} | {line.group for line in inputs.live or ()}
    for group in sorted({*(groups or ())} - known):
        raise RequestError(f"no record of group {group!r} is here", remedy=near_by(group, known))
    return Findings(findings_of(case, inputs, codes=codes, groups=groups))


def condense_for(logs: TopicLogs, group: str, names: TopicNames, retention: Retention, *, with_removals: bool) -> GroupDiagnosis:
    """Condense the logs for answers about one group.

    Commits of other groups are left out, unless offsets of the group were removed: the offsets that other groups kept and lost then show
    who removed them.
    """
    from exhume.analysis.detectors import Inputs, condense
    from exhume.analysis.detectors.retention import learn_retention

    inputs = Inputs(retention_ms=retention.given_ms, release=retention.release)
    commits_of = None if with_removals else [group]
    case = condense(logs.reader(), names, commits_of=commits_of)
    learn_retention(case, inputs)
    return GroupDiagnosis(case, inputs, group)


@dataclass(frozen=True, slots=True)
class GroupDiagnosis:
    """One group in condensed logs, with the other inputs of detectors."""

    case: TopicCase
    inputs: Inputs
    group: str

    def findings(self) -> list[Finding]:
        """The findings of the detectors that read one group alone."""
        from exhume.analysis.detectors.catalogue import DETECTORS
        from exhume.analysis.detectors.diagnose import diagnose_group

        own = (each for each in self.case.groups() if each.group == self.group)
        return [finding for each in own for finding in diagnose_group(each, self.inputs, DETECTORS)]

    def judgements(self) -> dict[RecordPlace, Judgement]:
        """The writer of each tombstone of the group and of its offsets."""
        from exhume.analysis.detectors.removal_evidence import judgements_of

        return judgements_of(self.case, self.group, self.inputs)


def growth(logs: TopicLogs, by: GrowthBy, now_ms: int) -> Growth:
    """Return the bytes of the topic by one of four measures, and the bytes that compaction would free at this time."""
    state = logs.load(LoadOptions(profile_for(None), "lenient", fast=logs.fast_load()), TopicNames())
    first: dict[Origin, int] = {}
    for row in state.open_transactions.to_pylist():
        origin = (row["replica"], row["offsets_partition"])
        first[origin] = min(row["first_record_offset"], first.get(origin, row["first_record_offset"]))
    return growth_of(record_sizes(logs.reader()), logs.evidence.partitions, first, by=by, now_ms=now_ms)
