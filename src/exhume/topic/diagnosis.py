"""Findings of the detectors about these logs, and the growth of the topic.

Functions import the modules that take long to import.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from exhume.analysis.growth import Growth, GrowthBy, growth_of
from exhume.arrow_rows import Origin
from exhume.codecs.record_chunks import record_sizes
from exhume.codecs.uris import PathOrUri
from exhume.errors import RequestError, near_by
from exhume.findings import Findings
from exhume.replay.partition_load import LoadOptions
from exhume.replay.releases import profile_for
from exhume.replay.topic_names import TopicNames
from exhume.topic.logs import TopicLogs

if TYPE_CHECKING:
    from exhume.analysis.detectors import Inputs, TopicCase


def diagnose(
    logs: TopicLogs, inputs: Inputs | None, codes: Collection[str] | None, groups: Collection[str] | None, topics_file: PathOrUri | None
) -> Findings:
    """Return the findings of the detectors of these codes (default: all) about these groups (default: all), the worst first.

    Raises:
        RequestError: no such code, or no record of one of these groups.
    """
    from exhume.analysis.detectors import Inputs, condense

    case = condense(logs.reader(), logs.topic_names(topics_file))
    return findings_in(case, logs, inputs or Inputs(), codes=codes, groups=groups)


def findings_in(
    case: TopicCase, logs: TopicLogs, inputs: Inputs, *, codes: Collection[str] | None = None, groups: Collection[str] | None = None
) -> Findings:
    """Return the findings of `diagnose` in the case of these logs.

    Raises:
        RequestError: as `diagnose`.
    """
    from exhume.analysis.detectors import LogFiles
    from exhume.analysis.detectors import diagnose as detect

    case.files = LogFiles(logs.evidence, logs.reader, logs.fast_load, logs.findings)
    inputs = inputs.with_captured(logs.evidence.log_directories).with_paths(logs.evidence.paths)
    known = {group.group for group in case.groups()} | {line.group for line in inputs.live or ()}
    for group in sorted({*(groups or ())} - known):
        raise RequestError(f"no record of group {group!r} is here", remedy=near_by(group, known))
    return Findings(detect(case, inputs, codes=codes, groups=groups))


def growth(logs: TopicLogs, by: GrowthBy, now_ms: int) -> Growth:
    """Return the bytes of the topic by one of four measures, and the bytes that compaction would free at this time."""
    state = logs.load(LoadOptions(profile_for(None), "lenient", fast=logs.fast_load()), TopicNames())
    first: dict[Origin, int] = {}
    for row in state.open_transactions.to_pylist():
        origin = (row["replica"], row["offsets_partition"])
        first[origin] = min(row["first_record_offset"], first.get(origin, row["first_record_offset"]))
    return growth_of(record_sizes(logs.reader()), logs.evidence.partitions, first, by=by, now_ms=now_ms)
