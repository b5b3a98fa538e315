"""Findings of the detectors about these logs, and the growth of the topic.

Functions import the modules that take long to import.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from exhume.analysis.growth import Growth, GrowthBy, growth_of
from exhume.arrow_rows import Origin
from exhume.codecs.one_log import logs_of
from exhume.codecs.record_chunks import record_sizes
from exhume.codecs.uris import PathOrUri
from exhume.errors import RequestError, near_by
from exhume.findings import Findings
from exhume.processes import ProcessEnded
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
    from exhume.analysis.detectors.distributed import DiagnosisRequest
    from exhume.topic.diagnosis_in_processes import diagnose_in_processes, process_count

    inputs, names = _complete(inputs or Inputs(), logs), logs.topic_names(topics_file)
    parts = logs_of(logs.evidence, logs.options)
    count = process_count(parts, logs.options.most_threads)
    if count > 1:
        request = DiagnosisRequest(inputs, codes, groups)
        # Where processes cannot work, this one still can.
        with suppress(ProcessEnded):
            return diagnose_in_processes(logs, parts, names, request, count)
    return findings_in(condense(logs.reader(), names), logs, inputs, codes=codes, groups=groups)


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
    inputs = _complete(inputs, logs)
    refuse_unknown(groups, (group.group for group in case.groups()), inputs)
    return Findings(detect(case, inputs, codes=codes, groups=groups))


def _complete(inputs: Inputs, logs: TopicLogs) -> Inputs:
    """Return these inputs with those of captured files, and with the paths of the logs."""
    return inputs.with_captured(logs.evidence.log_directories).with_paths(logs.evidence.paths)


def refuse_unknown(groups: Collection[str] | None, names: Iterable[str], inputs: Inputs) -> None:
    """Raise RequestError for a group that is not among these names of the logs, and has no line of live offsets."""
    if not groups:
        return
    known = {*names} | {line.group for line in inputs.live or ()}
    for group in sorted({*groups} - known):
        raise RequestError(f"no record of group {group!r} is here", remedy=near_by(group, known))


def growth(logs: TopicLogs, by: GrowthBy, now_ms: int) -> Growth:
    """Return the bytes of the topic by one of four measures, and the bytes that compaction would free at this time."""
    state = logs.load(LoadOptions(profile_for(None), "lenient", fast=logs.fast_load()), TopicNames())
    first: dict[Origin, int] = {}
    for row in state.open_transactions.to_pylist():
        origin = (row["replica"], row["offsets_partition"])
        first[origin] = min(row["first_record_offset"], first.get(origin, row["first_record_offset"]))
    return growth_of(record_sizes(logs.reader()), logs.evidence.partitions, first, by=by, now_ms=now_ms)
