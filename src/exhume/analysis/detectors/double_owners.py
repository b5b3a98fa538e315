"""Find partitions that two members own at the same time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from exhume.analysis.detectors.cases import GroupCase
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.registry import Detector
from exhume.analysis.detectors.report import NAMED, counted, finding, next_step, span, undecidable
from exhume.analysis.detectors.steps import StepRun, judged, step_runs, who
from exhume.analysis.member_columns import claimed_of, is_claimed_twice, is_owned_twice, name_at, owned_of
from exhume.analysis.member_tables import has_duplicates
from exhume.analysis.memberships import Membership
from exhume.findings import Finding

#: Assignors that never give a partition to two members. The intent of other assignors is not known.
EXCLUSIVE_ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky", "stream")

#: (topic or subtopology, partition)
_Owned = tuple[str, int]


def find_double_owners(group: GroupCase, inputs: Inputs) -> Iterator[Finding]:
    """Two members own the same partition, or the same task of a streams group, at the same time.

    In a classic group the assignment of the leader contains both. In a consumer or streams group one member took a partition that another
    had not yet revoked; this is judged after each whole batch, and only if compaction removed no record there. A share group may have
    several owners.

    IC-11b: two members claimed the same partition when they joined. A member that missed a generation claims its former partitions. Sticky
    assignors resolve that by generation; a claim alone makes no member read a partition twice.
    """
    steps = judged(group)
    for stretch in step_runs(group, steps, _is_owned_twice):
        yield _found(group, stretch, "IC-11", _doubled(_owned(stretch.first)), inputs)
    for stretch in step_runs(group, steps, is_claimed_twice):
        yield _found(group, stretch, "IC-11b", _doubled(_claimed(stretch.first)), inputs)
    is_judged = {id(step) for step in steps}
    hidden = [step for step in group.memberships if id(step) not in is_judged and _is_owned_twice(step)]
    if hidden:
        complete_from = group.log_context.complete_from_offset
        reason = f"compaction removed records before record {complete_from}, so partitions with two owners there may never have had them"
        yield undecidable("IC-11", reason, group, evidence=hidden[:1])


def _found(group: GroupCase, stretch: StepRun, code: str, doubled: Mapping[_Owned, Sequence[int]], inputs: Inputs) -> Finding:
    names = sorted(doubled)
    topic = names[0][0] if len({name for name, _ in names}) == 1 else None
    partition = names[0][1] if len(names) == 1 else None
    places = [*dict.fromkeys(chain.from_iterable(doubled.values()))]
    some = ", ".join(f"{topic}-{partition}" for topic, partition in names[:NAMED])
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    which = " and ".join(who(name_at(stretch.first, place)) for place in places[:NAMED])
    lasted = f"for {span(stretch.length_ms)}" + ("" if stretch.is_over else ", until the end of the log")
    if code == "IC-11b":
        sentence = f"{which} claimed the same partitions when they joined: {some}{more}; at least one claim is out of date"
        return finding(
            code, sentence, group, severity="info", confidence="proof", evidence=stretch.steps[:2], topic=topic, partition=partition
        )
    is_exclusive = stretch.first.kind != "classic" or stretch.first.protocol in EXCLUSIVE_ASSIGNORS
    place = f"generation {stretch.first.generation}" if stretch.first.kind == "classic" else f"group epoch {stretch.first.group_epoch}"
    sentence = f"{counted(len(names), 'partition')} had two owners or more from {place} on, {lasted}: {some}{more}, owned by {which}"
    last = group.keys.newest(names)
    if last is not None:
        sentence += f"; their last commit is record {last.record_offset}"
    return finding(
        code,
        sentence,
        group,
        severity="incident" if is_exclusive else "info",
        confidence="proof" if is_exclusive else "possible",
        evidence=[*stretch.steps[:2], *([stretch.next] if stretch.next else [])],
        not_excluded=()
        if is_exclusive
        else (f"an assignor ({stretch.first.protocol}) that gives a partition to several members on purpose",),
        remedy=next_step("Check the assignor of the leader and its version", inputs, "assignments", "--group", group.group)
        if stretch.first.kind == "classic"
        else None,
        topic=topic,
        partition=partition,
    )


#: The partitions or tasks of each member of a step.
_Plans = Sequence[Sequence[_Owned]]


def _is_owned_twice(step: Membership) -> bool:
    match step.kind:
        case "share":
            return False
        case "streams":
            return has_duplicates(_owned(step))
        case _:
            return is_owned_twice(step)


def _owned(step: Membership) -> _Plans:
    if step.kind == "share":
        return ()
    if step.kind == "streams":
        return [member.active_tasks for member in step.members.values()]
    return [owned if len({*owned}) == len(owned) else tuple(dict.fromkeys(owned)) for owned in owned_of(step)]


def _claimed(step: Membership) -> _Plans:
    return [claimed or () for claimed in claimed_of(step)]


def _doubled(plans: _Plans) -> dict[_Owned, list[int]]:
    """Return the partitions with two owners or more, with the positions of these members."""
    places: dict[_Owned, list[int]] = {}
    for place, plan in enumerate(plans):
        for owned in plan:
            places.setdefault(owned, []).append(place)
    return {owned: found for owned, found in places.items() if len(found) > 1}


DETECTORS = (
    Detector(
        code="IC-11",
        title="Partition owned twice",
        section="Membership and assignment",
        in_group=find_double_owners,
        traps=(
            "Only assignments of protocol type consumer can be decoded",
            "A custom assignor may give a partition to several members on purpose",
            "Standby tasks of Kafka Streams do not own partitions: they are in the user data, not in the list of partitions",
            "Inside a batch, and where compaction removed records, the log does not show a consumer group as it was",
            "After a missed generation, the claims of members that join may overlap: that is IC-11b",
        ),
    ),
)
