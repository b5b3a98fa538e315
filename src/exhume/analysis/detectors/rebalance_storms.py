"""Find rebalance storms: groups that rebalance again and again."""

from __future__ import annotations

from collections.abc import Iterator

from exhume.analysis.detectors.cases import GroupCase
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.registry import Detector
from exhume.analysis.detectors.report import finding
from exhume.analysis.detectors.steps import log_extents
from exhume.analysis.rebalances import rebalances
from exhume.analysis.storms import may_be_storm, storms
from exhume.findings import Finding


def find_storms(group: GroupCase, inputs: Inputs) -> Iterator[Finding]:  # noqa: ARG001
    """The generation, or the group epoch, rises once a minute or faster for ten minutes or more. Besides, one client joins or leaves three
    times, or most generations of a classic group change nothing: its members join again and again.

    Compaction does not change these numbers, so the rate is known even if records were removed. The clients are known only if no record was
    removed. A client is identified by its instance id, otherwise by client id and host, since each join makes a new member id. A number
    that is missing in a complete log is a rebalance that did not finish.
    """
    if not may_be_storm([(step.epoch, step.timestamp_ms) for step in group.memberships]):
        return
    rows = rebalances(group.memberships, log_extents(group)).to_pylist()
    steps = {step.record_offset: step for step in group.memberships}
    for storm in storms(rows):
        not_excluded = []
        if not storm.flappers:
            is_unchanged = storm.without_change * 2 > storm.generations
            not_excluded.append(
                "partitions that were added again and again: members join again for them"
                if is_unchanged
                else "a rolling restart: the log does not show the clients that joined and left"
            )
        if any("topics_changed" in (row["causes"] or ()) for row in storm.rows):
            not_excluded.append("topics or partitions that were added: they also raise the epoch")
        yield finding(
            "IC-04",
            storm.sentence,
            group,
            confidence="proof" if storm.flappers else "likely",
            evidence=[steps[row["record_offset"]] for row in storm.rows],
            not_excluded=not_excluded,
            remedy="Search the logs of these clients for an exceeded max.poll.interval.ms and for session timeouts",
        )


DETECTORS = (
    Detector(
        code="IC-04",
        title="Rebalance storm",
        section="Membership and assignment",
        in_group=find_storms,
        by_time=True,
        traps=(
            "In a rolling deployment each client leaves and joins once",
            "A new group rebalances often in its first minutes",
            "The replacement of a static member does not raise the generation",
            "New topics or partitions also raise the epoch of a consumer group",
        ),
    ),
)
