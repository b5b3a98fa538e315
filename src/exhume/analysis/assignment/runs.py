"""Running every era of an assignor that may be meant, until one gives the assignment that is there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from exhume.analysis.assignment.inputs import STICKY, TopicFacts, assignor_of, group_spec_of, outcome_of, own_counts, said_counts
from exhume.analysis.assignors import (
    Assigned,
    AssignorThrows,
    GroupAssignment,
    GroupSpec,
    Side,
    TopicPartition,
    Variant,
    spelt_span,
    variant_for,
    variants_of,
)
from exhume.analysis.memberships import Membership
from exhume.analysis.topic_sizes import TopicSize


@dataclass(frozen=True, slots=True)
class Expectation:
    """What to expect: `auto` or the name of an assignor; of this release only, where one is given."""

    assignor: str = "auto"
    release: str | None = None


@dataclass(slots=True)
class AssignorRun:
    """An era that was tried."""

    variant: Variant
    sizes: Mapping[str, TopicSize]
    plan: GroupAssignment | None
    failure: str | None = None
    is_same: bool = False
    is_same_order: bool = False
    #: Members counted as owners of what they were assigned before, whatever they claimed themselves.
    had: bool = False


@dataclass(slots=True)
class Case:
    """One group while it is being looked at."""

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
    def nameless_topics(self) -> set[str]:
        """Those of the step; a name in the form of an id is none where it is known."""
        return self.step.nameless_topics.difference(self.facts.names)


def run_assignor_versions(case: Case, side: Side) -> None:
    """Run every era that may be meant, on every set of partition counts that may be right, until one fits."""
    said, own = said_counts(case.step, case.facts), own_counts(case.step)
    if case.step.kind != "classic" and case.facts.sizes.covers(case.step.group):
        # The coordinator itself says which topics there are.
        own = {topic: size for topic, size in own.items() if topic in said}
    choices = [said | {topic: size for topic, size in own.items() if topic not in said}]
    if said.keys() & own.keys() and any(own[topic].partition_count != said[topic].partition_count for topic in said.keys() & own.keys()):
        choices.append(said | own)
    candidates = _candidates(case, side)
    own_eras = [variant for variant in candidates if variant.assignor == case.assignor]
    others = [variant for variant in candidates if variant not in own_eras]
    can_have_had = case.step.kind == "classic" and case.assignor in STICKY and case.before is not None
    # Other assignors are asked where no era of the group's own explains it.
    for eras, had in ((own_eras, False), (own_eras if can_have_had else [], True), (others, False)):
        for sizes in choices:
            case.runs += [_trial(case, variant, sizes, had=had) for variant in eras]
            if any(run.is_same for run in case.runs):
                return


def _trial(case: Case, variant: Variant, sizes: Mapping[str, TopicSize], *, had: bool) -> AssignorRun:
    question = group_spec_of(case.step, case.before, variant.assignor, sizes, case.facts, had=had)
    run = _run(case, variant, question, sizes, had=had)
    if not run.is_same:
        # Members of one hash bucket stand there in the order in which they came, which is not in the log.
        turned = replace(question, members=question.members[::-1])
        if turned.in_hash_order() != question.in_hash_order():
            run = max(run, _run(case, variant, turned, sizes, had=had), key=lambda each: each.is_same)
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


def _run(case: Case, variant: Variant, question: GroupSpec, sizes: Mapping[str, TopicSize], *, had: bool) -> AssignorRun:
    try:
        plan = variant.run(question)
    except AssignorThrows as thrown:
        return AssignorRun(variant, sizes, None, str(thrown), had=had)
    run = AssignorRun(variant, sizes, plan, had=had)
    run.is_same = _as_sets(plan.assigned) == _as_sets(case.actual)
    run.is_same_order = run.is_same and _by_topic(plan.assigned) == _by_topic(case.actual)
    return run


def _as_sets(assigned: Assigned) -> dict[str, list[TopicPartition]]:
    return {member_id: sorted(partitions) for member_id, partitions in assigned.items() if partitions}


def _by_topic(assigned: Assigned) -> dict[tuple[str, str], list[int]]:
    listed: dict[tuple[str, str], list[int]] = {}
    for member_id, partitions in assigned.items():
        for topic, partition in partitions:
            listed.setdefault((member_id, topic), []).append(partition)
    return listed


def titles(variants: Iterable[Variant]) -> str:
    """Eras in words, neighbours drawn together: `range of Java clients 2.4 and later`."""
    by_assignor: dict[tuple[str, str], list[Variant]] = {}
    for variant in dict.fromkeys(variants):
        by_assignor.setdefault((variant.side, variant.assignor), []).append(variant)
    words = []
    for (side, assignor), fitting in by_assignor.items():
        known = variants_of(fitting[0].side, assignor)
        spans: list[list[Variant]] = []
        for variant in sorted(fitting, key=known.index):
            if spans and known.index(spans[-1][-1]) + 1 == known.index(variant):
                spans[-1].append(variant)
            else:
                spans.append([variant])
        releases = ", ".join(spelt_span(span[0].first, span[-1].last) for span in spans)
        words.append(f"{assignor} of {'Java clients' if side == 'client' else 'the coordinator'} {releases}")
    return "; ".join(words)
