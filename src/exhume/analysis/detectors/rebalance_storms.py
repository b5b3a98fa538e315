"""Groups that do not come to rest: rebalance storms."""

from __future__ import annotations

from collections.abc import Iterator

from exhume.analysis.detectors.cases import GroupCase
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.registry import Detector
from exhume.analysis.detectors.report import finding
from exhume.analysis.detectors.steps import log_span
from exhume.analysis.rebalances import rebalances
from exhume.analysis.storms import may_be_storm, storms
from exhume.findings import Finding


def find_storms(group: GroupCase, inputs: Inputs) -> Iterator[Finding]:  # noqa: ARG001
    """The generation, or group epoch, rises by one a minute or faster for ten minutes or more, and one client comes or goes three times, or
    most generations of a classic group come without any change: members that join again and again.

    The number goes on counting whatever compaction takes, so the rate is known where records are gone. Who it was is only known where they
    are not: clients are told apart by instance id, else by client id and host, since every join makes a new member id. Numbers that are
    missing where nothing is missing are rebalances that never came to an end.
    """
    if not may_be_storm([(step.epoch, step.timestamp_ms) for step in group.memberships]):
        return
    rows = rebalances(group.memberships, log_span(group)).to_pylist()
    steps = {step.record_offset: step for step in group.memberships}
    for storm in storms(rows):
        not_excluded = []
        if not storm.flappers:
            is_unchanged = storm.without_change * 2 > storm.generations
            not_excluded.append(
                "partitions that were added again and again: members join anew for them"
                if is_unchanged
                else "a rolling restart: who came and went is not in the log"
            )
        if any("topics_changed" in (row["causes"] or ()) for row in storm.rows):
            not_excluded.append("topics or partitions that were added: they raise the epoch, too")
        yield finding(
            "IC-04",
            storm.sentence,
            group,
            confidence="proof" if storm.flappers else "likely",
            evidence=[steps[row["record_offset"]] for row in storm.rows],
            not_excluded=not_excluded,
            remedy="Look at the logs of the clients named, for max.poll.interval.ms exceeded and sessions that ran out",
        )


DETECTORS = (
    Detector(
        code="IC-04",
        title="Rebalance storm",
        section="Membership and assignment",
        in_group=find_storms,
        by_time=True,
        traps=(
            "In a rolling deployment everybody comes and goes once",
            "The first minutes of a new group are busy",
            "A static member that is replaced does not raise the generation",
            "Epochs of consumer groups rise when topics or partitions are added, too",
        ),
    ),
)
