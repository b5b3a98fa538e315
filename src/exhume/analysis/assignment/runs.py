"""Run the versions of an assignor until one gives the actual assignment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from exhume.analysis.assignment.inputs import STICKY, TopicFacts, assignor_of, group_spec_of, outcome_of, own_counts, stated_counts
from exhume.analysis.assignors import (
    Assigned,
    AssignorThrows,
    GroupAssignment,
    GroupSpec,
    Side,
    StreamsVariant,
    TopicPartition,
    Variant,
    spelt_span,
    variant_for,
    variants_of,
)
from exhume.analysis.memberships import Membership
from exhume.analysis.topic_sizes import TopicSize

Version = TypeVar("Version", Variant, StreamsVariant)


@dataclass(frozen=True, slots=True)
class Expectation:
    """The expected assignor: `auto` or a name, optionally of one release only."""

    assignor: str = "auto"
    release: str | None = None


@dataclass(slots=True)
class AssignorRun:
    """One run of one version of an assignor."""

    variant: Variant
    sizes: Mapping[str, TopicSize]
    plan: GroupAssignment | None
    failure: str | None = None
    is_same: bool = False
    is_same_order: bool = False
    #: True where members count as owners of their last assignment, even if they did not claim it.
    had: bool = False


@dataclass(slots=True)
class Case:
    """One group while its assignment is judged."""

    step: Membership
    before: Membership | None
    facts: TopicFacts
    wanted: Expectation
    latest: Membership
    actual: Assigned = field(init=False)
    assignor: str | None = field(init=False)
    runs: list[AssignorRun] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.actual = outcome_of(self.step)
        self.assignor = assignor_of(self.step)

    @property
    def wanted_assignor(self) -> str | None:
        """The assignor to expect: the wanted one, or the one that the group states."""
        return self.assignor if self.wanted.assignor == "auto" else self.wanted.assignor

    @property
    def nameless_topics(self) -> set[str]:
        """Return the topics of the step that have no name. An id whose name is known does not count."""
        return self.step.nameless_topics.difference(self.facts.names)


def run_assignor_versions(case: Case, side: Side) -> None:
    """Run every version that is possible, with every possible set of partition counts, until one fits."""
    choices = _size_choices(case)
    candidates = _candidates(case, side)
    own_versions = [variant for variant in candidates if variant.assignor == case.assignor]
    others = [variant for variant in candidates if variant not in own_versions]
    can_have_had = case.step.kind == "classic" and case.assignor in STICKY and case.before is not None
    # Other assignors run only if no version of the group's own assignor fits.
    for versions, had in ((own_versions, False), (own_versions if can_have_had else [], True), (others, False)):
        for sizes in choices:
            case.runs += [_trial(case, variant, sizes, had=had) for variant in versions]
            if any(run.is_same for run in case.runs):
                return


def _size_choices(case: Case) -> list[dict[str, TopicSize]]:
    """Return the possible sets of partition counts: the stated counts first, then those that the assignment shows, if they differ."""
    stated, own = stated_counts(case.step, case.facts), own_counts(case.step)
    if case.step.kind != "classic" and case.facts.sizes.covers(case.step.group):
        # The coordinator itself lists the existing topics.
        own = {topic: size for topic, size in own.items() if topic in stated}
    is_contradicted = any(own[topic].partition_count != stated[topic].partition_count for topic in stated.keys() & own.keys())
    choices = [stated | {topic: size for topic, size in own.items() if topic not in stated}]
    return [*choices, stated | own] if is_contradicted else choices


def _trial(case: Case, variant: Variant, sizes: Mapping[str, TopicSize], *, had: bool) -> AssignorRun:
    spec = group_spec_of(case.step, case.before, variant.assignor, sizes, case.facts, had=had)
    run = _run(case, variant, spec, sizes, had=had)
    if not run.is_same:
        # The order of members in one hash bucket is the order in which they joined, which the log does not have.
        reversed_spec = replace(spec, members=spec.members[::-1])
        if reversed_spec.in_hash_order() != spec.in_hash_order():
            run = max(run, _run(case, variant, reversed_spec, sizes, had=had), key=lambda each: each.is_same)
    return run


def _candidates(case: Case, side: Side) -> list[Variant]:
    if case.wanted.assignor == "auto":
        own = variants_of(side, case.assignor) if case.assignor else []
        variants = [*own, *(variant for variant in variants_of(side) if variant not in own)]
    else:
        variants = variants_of(side, case.wanted.assignor)
    if case.wanted.release is None:
        return variants
    return [variant for variant in variants if variant == variant_for(side, variant.assignor, case.wanted.release)]


def _run(case: Case, variant: Variant, spec: GroupSpec, sizes: Mapping[str, TopicSize], *, had: bool) -> AssignorRun:
    try:
        plan = variant.run(spec)
    except AssignorThrows as thrown:
        return AssignorRun(variant, sizes, None, str(thrown), had=had)
    run = AssignorRun(variant, sizes, plan, had=had)
    run.is_same = _as_sets(plan.assigned) == _as_sets(case.actual)
    run.is_same_order = run.is_same and _by_topic(plan.assigned) == _by_topic(case.actual)
    return run


def _as_sets(assigned: Mapping[str, Sequence[TopicPartition]]) -> dict[str, list[TopicPartition]]:
    return {member_id: sorted(partitions) for member_id, partitions in assigned.items() if partitions}


def _by_topic(assigned: Mapping[str, Sequence[TopicPartition]]) -> dict[tuple[str, str], list[int]]:
    listed: dict[tuple[str, str], list[int]] = {}
    for member_id, partitions in assigned.items():
        for topic, partition in partitions:
            listed.setdefault((member_id, topic), []).append(partition)
    return listed


def gap_before(case: Case) -> str | None:
    """Return the reason why the coordinator's starting point is not known, or None if it is known."""
    step, before = case.step, case.before
    if step.kind == "classic" or step.target_epoch is None:
        return None
    if step.group_epoch is not None and step.group_epoch > step.target_epoch:
        return "the group changed again in the batch that has this target"
    if step.target_epoch > 1 and (before is None or (before.target_epoch is None and before.kind == step.kind)):
        return "the log no longer has the target before this one"
    return None


def titles(variants: Iterable[Variant]) -> str:
    """Return versions in words, neighbours joined: `range of Java clients 2.4 and later`."""
    by_assignor: dict[tuple[str, str], list[Variant]] = {}
    for variant in dict.fromkeys(variants):
        by_assignor.setdefault((variant.side, variant.assignor), []).append(variant)
    words = []
    for (side, assignor), fitting in by_assignor.items():
        known = variants_of(fitting[0].side, assignor)
        words.append(f"{assignor} of {'Java clients' if side == 'client' else 'the coordinator'} {spelt_spans(fitting, known)}")
    return "; ".join(words)


def spelt_spans(fitting: Iterable[Version], known: Sequence[Version]) -> str:
    """Return the releases of versions in words, neighbours among the known ones joined: `4.1, 4.3 and later`."""
    spans: list[list[Version]] = []
    for variant in sorted(fitting, key=known.index):
        if spans and known.index(spans[-1][-1]) + 1 == known.index(variant):
            spans[-1].append(variant)
        else:
            spans.append([variant])
    return ", ".join(spelt_span(span[0].first, span[-1].last) for span in spans)
