"""Diagnose large logs in several processes: each condenses some logs, and runs the detectors that need one log.

Detectors are Python code, which threads cannot run at the same time. This process merges the facts of all logs, and runs the detectors
that compare logs. These are the same parts that Spark distributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from exhume.analysis.detectors.cases import TopicCase
from exhume.analysis.detectors.diagnose import chosen, worst_first_once
from exhume.analysis.detectors.distributed import (
    DiagnosisRequest,
    Known,
    LogFacts,
    condense_log,
    diagnose_all,
    diagnose_copies,
    diagnose_log,
    known_of,
    several_copies,
)
from exhume.analysis.detectors.log_files import LogFiles
from exhume.codecs.limits import LIMITS, limit_memory, machine_bytes
from exhume.codecs.one_log import OneLog, largest_first
from exhume.findings import Finding, Findings
from exhume.gc_control import infrequent_gc
from exhume.processes import Advance, Processes, packed, unpacked
from exhume.replay.topic_names import TopicNames
from exhume.topic.diagnosis import refuse_unknown
from exhume.topic.logs import TopicLogs

_Item = TypeVar("_Item")
#: With fewer bytes one process alone is as fast: each process takes about a second to start.
_LEAST_BYTES = 64 << 20
_MOST_PROCESSES = 4
#: The memory of a process without a log, and its share of the bytes of the logs that it holds.
_PROCESS_BYTES, _MEMORY_SHARE = 100 << 20, 0.3


@dataclass(frozen=True, slots=True)
class _CondensedLog:
    """The facts of a log (None: it has no record), the names of its groups, its packed case, and the damage from reading it."""

    facts: LogFacts | None
    groups: Sequence[str]
    case: bytes
    damage: Sequence[Finding]


def process_count(logs: Sequence[OneLog], threads: int) -> int:
    """Return the number of processes that diagnose these logs sooner than one alone, in the memory that exhume may take; 1: none does."""
    sizes = [log.size_bytes for log in logs]
    if sum(sizes) < _LEAST_BYTES or not all(log.is_local for log in logs):
        return 1
    # The largest log takes one process until the end.
    useful = min(threads, _MOST_PROCESSES, len(logs), round(sum(sizes) / max(sizes)))
    memory_bytes = LIMITS.memory_bytes or machine_bytes()
    if memory_bytes is None:
        return useful
    left_bytes = memory_bytes - _PROCESS_BYTES - _MEMORY_SHARE * sum(sizes)
    return max(min(useful, int(left_bytes // (_PROCESS_BYTES + _MEMORY_SHARE * max(sizes)))), 1)


@infrequent_gc()
def diagnose_in_processes(logs: TopicLogs, parts: Sequence[OneLog], names: TopicNames, request: DiagnosisRequest, count: int) -> Findings:
    """Return the findings of `diagnose.diagnose`, made by this number of processes. Adds damage to `logs`.

    Raises:
        ProcessEnded: a process ended before its result. Nothing is added to `logs`.
        RequestError: no such code, or no record of one of these groups.
    """
    order = largest_first(parts)
    files = LogFiles(logs.evidence, logs.reader, logs.fast_load, logs.findings)
    # Each gets a part of the memory that this process may take.
    limit = None if LIMITS.memory_bytes is None else partial(limit_memory, LIMITS.memory_bytes // (count + 1))
    with Processes(count, limit) as processes:
        condensed = _in_order(order, processes.map(_condensed, [parts[number] for number in order], logs.count_bytes()))
    refuse_unknown(request.groups, (group for each in condensed for group in each.groups), request.inputs)
    for detector in chosen(request.codes):
        if detector.begin is not None:
            detector.begin(TopicCase([], files))
    known = known_of((each.facts for each in condensed if each.facts is not None), names, request.inputs)
    tasks = [(condensed[number].case, known, request) for number in order]
    # New processes: the old ones keep memory that condensing took.
    with Processes(count, limit) as processes:
        of_logs = _in_order(order, processes.map(_diagnosed, tasks))
    del tasks
    cases = []
    while condensed:
        log = condensed.pop(0)
        logs.findings.extend(log.damage)
        if log.facts is not None:
            cases.append(unpacked(log.case))
    found = [*diagnose_all(cases, known, files, request.inputs, **request.named())]
    for copies in several_copies(case.log_context for case in cases):
        found += diagnose_copies(copies, files, request.inputs, **request.named())
    for of_log in of_logs:
        found += unpacked(of_log)
    return Findings(worst_first_once(found))


def _in_order(order: Sequence[int], items: Sequence[_Item]) -> list[_Item]:
    """Return these items in the order of their numbers."""
    by_number = dict(zip(order, items, strict=True))
    return [by_number[number] for number in range(len(items))]


# The work of processes


def _condensed(log: OneLog, advance: Advance) -> _CondensedLog:
    damage = Findings()
    done = 0

    def progress(done_bytes: int, total_bytes: int) -> None:  # noqa: ARG001
        nonlocal done
        advance(done_bytes - done)
        done = done_bytes

    found = condense_log(log.reader(damage, progress))
    facts, case = found or (None, None)
    groups = [] if case is None else [group.group for group in case.groups]
    return _CondensedLog(facts, groups, packed(case), [*damage])


def _diagnosed(task: tuple[bytes, Known, DiagnosisRequest], advance: Advance) -> bytes:  # noqa: ARG001
    """Return the packed findings of a log."""
    content, known, request = task
    case = unpacked(content)
    return packed([] if case is None else [*diagnose_log(case, known, request.inputs, **request.named())])
