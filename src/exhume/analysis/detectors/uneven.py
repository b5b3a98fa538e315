"""Find members with many more partitions than others with the same subscription."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain

from exhume.analysis.detectors.cases import GroupCase
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.registry import Detector
from exhume.analysis.detectors.report import counted, finding
from exhume.analysis.detectors.steps import EAGER, judged, step_runs, who
from exhume.analysis.member_columns import difference_of
from exhume.analysis.memberships import Member, Membership, TopicPartition
from exhume.findings import Finding


def find_uneven(group: GroupCase, inputs: Inputs) -> Iterator[Finding]:  # noqa: ARG001
    """One member has at least two partitions more than another member with the same subscription.

    The range assignor assigns each topic on its own, so a member may have one partition more for each topic. Up to that number it is
    `info`, above it `warn`. For a consumer group the target assignment counts, for a classic group a stored assignment that lasts.
    """
    steps = [step for step in judged(group) if step.kind in ("classic", "consumer") and step.protocol != "stream"]
    for stretch in step_runs(group, steps, lambda step: _uneven(step) is not None):
        uneven = _uneven(stretch.first)
        if uneven is None or not (stretch.lasts or (stretch.first.kind == "classic" and stretch.first.protocol in EAGER)):
            continue
        most, least, topics = uneven
        difference = len(_plan(most)) - len(_plan(least))
        assignor = stretch.first.protocol or most.server_assignor or "the default assignor"
        by_range = assignor == "range" and difference <= topics
        sentence = (
            f"{who(most)} got {counted(len(_plan(most)), 'partition')} and {who(least)} got {len(_plan(least))} from {assignor}, for the"
            f" same subscription to {counted(topics, 'topic')}"
        )
        if by_range:
            sentence += ": range assigns topics with few partitions this way"
        not_excluded = ["an assignment by racks"] if most.rack_id is not None else []
        if assignor not in (*EAGER, "cooperative-sticky", "uniform"):
            not_excluded.append(f"an assignor ({assignor}) that assigns this way on purpose")
        yield finding(
            "IC-34",
            sentence,
            group,
            severity="info" if by_range else "warn",
            confidence="proof",
            evidence=stretch.steps[:2],
            not_excluded=not_excluded,
            remedy="Use another assignor, for example cooperative-sticky: it assigns all topics at once" if assignor == "range" else None,
        )


def _plan(member: Member) -> tuple[TopicPartition, ...]:
    return (member.assigned if member.is_classic or member.target is None else member.target) or ()


def _uneven(step: Membership) -> tuple[Member, Member, int] | None:
    """Return the members with most and least partitions of one subscription, and its number of topics; None if all is even."""
    by_topics: dict[frozenset[str], list[Member]] = {}
    if step.kind == "consumer" and step.target_epoch != step.group_epoch:
        return None
    if step.kind == "classic" and difference_of(step) <= 1:
        return None
    for member in step.members.values():
        if member.subscribed_topics and not (member.assigned is None and member.target is None):
            by_topics.setdefault(frozenset(member.subscribed_topics), []).append(member)
    subscribed = Counter(chain.from_iterable(by_topics))
    for topics, members in by_topics.items():
        # A member that subscribes to fewer topics leaves more of the other topics to the rest.
        if any(subscribed[topic] > 1 for topic in topics):
            continue
        most, least = max(members, key=lambda member: len(_plan(member))), min(members, key=lambda member: len(_plan(member)))
        if len(_plan(most)) - len(_plan(least)) > 1:
            return most, least, len(topics)
    return None


DETECTORS = (
    Detector(
        code="IC-34",
        title="Uneven assignment",
        section="Membership and assignment",
        in_group=find_uneven,
        traps=(
            "Members with different subscriptions that share topics are not compared",
            "The range assignor is uneven for topics with few partitions, by design",
            "A cooperative rebalance in progress is uneven for a time",
        ),
        better_with=("--topics",),
    ),
)
