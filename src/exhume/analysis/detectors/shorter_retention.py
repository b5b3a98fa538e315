"""Find offsets of several groups that expired at one moment, by a retention that had become shorter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from exhume.analysis.detectors.cases import LogContext, TopicCase
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.registry import Detector
from exhume.analysis.detectors.removal_evidence import JudgedOffset, judged_removals
from exhume.analysis.detectors.report import ADD_RETENTION, counted, finding, some, span, undecidable
from exhume.analysis.removals.sweeps import Sweep
from exhume.findings import Finding
from exhume.moments import show_time


def find_shorter_retention(case: TopicCase, inputs: Inputs) -> Iterator[Finding]:
    """Three groups or more lost offsets of several topics at one moment, before they were due.

    A new, shorter retention removes the offsets of all groups without members that are older; requests leave some. Offsets of different
    ages decide that without `--retention`; those of one age do not.
    """
    removed: dict[int, list[JudgedOffset]] = {}
    contexts: dict[int, LogContext] = {}
    for group in case.groups():
        if group.keys.with_removals():
            for together in judged_removals(group, inputs):
                sweep = together.evidence.sweep
                offsets = [each for each in together.offsets if each.judgement.is_swept]
                if sweep is not None and offsets and contexts.setdefault(sweep.first_ms, group.log_context) is group.log_context:
                    removed.setdefault(sweep.first_ms, []).extend(offsets)
        group.forget()
    for first_ms, log_context in sorted(contexts.items(), key=lambda each: each[0]):
        sweep = next(each for each in log_context.sweeps.all if each.first_ms == first_ms)
        yield _swept(sweep, log_context, removed[first_ms], inputs)


def _swept(sweep: Sweep, log_context: LogContext, here: Sequence[JudgedOffset], inputs: Inputs) -> Finding:
    """Report one sweep over several groups, with the offsets of this log as evidence."""
    evidence = [each.removal for each in here]
    counts = f"{counted(len(sweep.groups), 'group')} ({some(sorted(sweep.groups))}) lost {counted(sweep.offsets, 'offset')}"
    ages = span(sweep.most_age_ms) if sweep.is_of_one_age else f"{span(sweep.least_age_ms)} to {span(sweep.most_age_ms)}"
    since = f"{ages} after they became Empty or were committed"
    if not sweep.is_decided and not sweep.kept:
        reason = f"{counts} of several topics at one moment, {since}, and the retention is not known"
        return undecidable("IC-28c", reason, log_context, remedy=ADD_RETENTION, evidence=evidence)
    known_ms = inputs.retention_ms
    retention = "" if known_ms is None else f"; the retention is {span(known_ms)}"
    sentence = f"{counts} at one moment, {show_time(sweep.first_ms)}, {since}{retention}"
    cause = f": the expiry task removed them by a retention of at most {span(sweep.least_age_ms)}, shorter than before"
    if sweep.kept:
        stayed = f"{counted(len(sweep.kept), 'group')} with older offsets stayed ({some(sweep.kept)})"
        cause = f": requests, or a shorter retention, though {stayed}"
    return finding(
        "IC-28c",
        sentence + cause,
        log_context,
        severity="info" if sweep.kept else "warn",
        confidence="possible" if sweep.kept or known_ms is not None else "likely",
        evidence=evidence,
        not_excluded=["requests to delete several groups at one time", "an expiry task that had not run for a long time"],
        remedy="Compare offsets.retention.minutes of the brokers with its earlier value",
    )


DETECTORS = (
    Detector(
        code="IC-28c",
        title="Offsets of several groups expired at one moment, by a shorter retention",
        section="Offsets disappeared",
        in_topic=find_shorter_retention,
        by_time=True,
        traps=(
            "A job that deletes groups removes several at one moment as well, but leaves others that are older",
            "After an outage, the expiry task removes offsets of many groups at one moment, but only those that are due",
        ),
        better_with=("--retention",),
    ),
)
