"""Judge actual assignments against the expected ones: owners, expected owners, and the assignor that explains them.

A verdict for each group:

    as_expected     a version of the group's own assignor gives exactly this assignment
    explained       another assignor does, or the group's own if the leader saw other partition counts or forgot older claims
    consistent      the assignor cannot be run from the log (Streams, Connect, other clients), and the assignment breaks no rule
    not_explained   no known assignor gives this assignment
    undecidable     no verdict is possible; the sentence gives the reason
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from exhume.analysis.assignment.differences import ASSIGNMENT_PARTITIONS, COUNTED, AssignedPartitionRow, partition_rows
from exhume.analysis.assignment.inputs import TopicFacts, stated_counts, subscribed_topics
from exhume.analysis.assignment.runs import Case, Expectation, gap_before, run_assignor_versions, titles
from exhume.analysis.assignment.structures import STREAMS_PROTOCOL, judge_structure
from exhume.analysis.assignors import GroupAssignment, Side
from exhume.analysis.assignors.structure import unbalanced_by
from exhume.analysis.memberships import Membership
from exhume.analysis.topic_sizes import TopicSize, TopicSizes
from exhume.arrow_rows import Int32, OfLog, schema_of, table_of

Verdict = Literal["as_expected", "explained", "consistent", "not_explained", "undecidable"]


class VerdictRow(OfLog):
    """One row per group.

    `generation` is that of a classic group, else the epoch of the target assignment. `assignor` is the one that the group states,
    `explained_by` the versions that give this assignment. `count_basis` is the weakest source of a partition count that the verdict uses
    (`topic_sizes`), null where it needs no count. The numbers count partitions by their `differences` in the other table. `unbalanced_by`
    is the difference in size between members with the same subscription, less one; null where sizes may differ. `record_offset` is the
    record judged.
    """

    record_offset: int
    timestamp_ms: int | None
    group: str
    group_type: str
    assignor: str | None
    generation: Int32 | None
    leader: str | None
    members: Int32
    partitions: Int32
    verdict: Verdict
    explained_by: str | None
    count_basis: str | None
    lost: Int32
    doubled: Int32
    moved_needlessly: Int32
    unsubscribed: Int32
    beyond_count: Int32
    withheld: Int32
    unreconciled: Int32
    unbalanced_by: Int32 | None
    sentence: str


ASSIGNMENT_VERDICTS = schema_of(VerdictRow)

_SIDES: Mapping[str, Side] = {"classic": "client", "consumer": "consumer", "share": "share"}
_LEADERS_BY_VERSION = {
    0: "Java clients to 2.3, or other libraries",
    1: "Java clients 2.4-3.3, or other libraries",
    3: "Java clients 3.4 and later",
}


@dataclass(frozen=True, slots=True)
class AssignmentTables:
    """The verdicts on groups (`ASSIGNMENT_VERDICTS`) and their partitions (`ASSIGNMENT_PARTITIONS`)."""

    verdicts: pa.Table
    partitions: pa.Table


@dataclass(slots=True)
class Check:
    """The check of one group: a row of `ASSIGNMENT_VERDICTS` and rows of `ASSIGNMENT_PARTITIONS`."""

    verdict: VerdictRow
    partitions: list[AssignedPartitionRow]


def check_group(
    step: Membership,
    before: Membership | None,
    facts: TopicFacts,
    wanted: Expectation | None = None,
    *,
    latest: Membership | None = None,
) -> Check:
    """Judge one assignment. The result depends on the arguments alone, so any process can judge any group.

    Args:
        step: the step of the group that gave the assignment.
        before: the step before it; None if it is not known.
        facts: the facts that the records of the group do not have.
        wanted: the assignor to expect; default: the one that explains the assignment.
        latest: the step with the present owners; default: `step`.
    """
    case = Case(step, before, facts, wanted or Expectation(), latest or step)
    side = _SIDES.get(step.kind)
    if step.kind == "streams" or step.protocol == STREAMS_PROTOCOL or step.protocol_type == "connect":
        found = judge_structure(case)
        return _finished(case, found.verdict, found.sentence, sizes=found.sizes, plan=found.plan, explained_by=found.explained_by)
    if step.kind == "classic" and (step.protocol_type != "consumer" or step.is_opaque):
        return _finished(case, "undecidable", f"no assignor of protocol type {step.protocol_type!r} is known")
    if any(member.subscribed_topics is None for member in step.members.values()):
        return _finished(case, "undecidable", "the subscription of a member cannot be read")
    if step.kind == "classic" and step.converted_from is not None:
        converted = f"when the {step.converted_from} group became classic"
        sentence = f"undecidable, because the coordinator wrote this assignment {converted}: no leader computed it"
        return _finished(case, "undecidable", sentence)
    assert side is not None
    run_assignor_versions(case, side)
    return _judged(case)


def _judged(case: Case) -> Check:
    same = [run for run in case.runs if run.is_same]
    same = [run for run in same if run.is_same_order] or same
    # A version of the group's own assignor is stronger evidence than another assignor that gives the same.
    own = [run for run in same if run.variant.assignor == case.wanted_assignor]
    if not same or (not own and gap_before(case)):
        return _unexplained(case)
    fitting = own or same
    first = fitting[-1]
    explained_by = titles([run.variant for run in fitting])
    other_count = _other_count(case, first.sizes)
    verdict: Verdict = "as_expected" if own and not other_count and not first.had else "explained"
    claimed = ", if members claimed their last assignment" if first.had else ""
    sentence = f"as {explained_by}{other_count}{_leader_version(case)}{claimed}{_condition(case, first.sizes)}"
    return _finished(case, verdict, sentence, sizes=first.sizes, plan=first.plan, explained_by=explained_by)


def _other_count(case: Case, sizes: Mapping[str, TopicSize]) -> str:
    """Return the first partition count that is not the stated one, as a condition of the verdict; empty if all are."""
    stated = stated_counts(case.step, case.facts)
    for topic, size in sizes.items():
        if topic in stated and size.partition_count != stated[topic].partition_count:
            return f", if the leader saw {size.partition_count} partitions of {topic}, not {stated[topic].partition_count}"
    return ""


def _leader_version(case: Case) -> str:
    """Return what the version of the assignments shows about the leader: Java leaders write their newest version for every member."""
    versions = {
        member.assignment.version for member in case.step.members.values() if member.assignment and member.assignment.version is not None
    }
    if case.step.kind != "classic" or len(versions) != 1:
        return ""
    version = versions.pop()
    if version not in _LEADERS_BY_VERSION:
        return ""
    return f" (assignments of version {version}: {_LEADERS_BY_VERSION[version]})"


def _condition(case: Case, sizes: Mapping[str, TopicSize]) -> str:
    """Return the conditions of the verdict that no record and no topics file states."""
    inferred = sorted(topic for topic, size in sizes.items() if not size.is_exact)
    unknown = sorted(set(subscribed_topics(case.step)).difference(sizes))
    words = ""
    if inferred:
        counts = ", ".join(
            f"{topic} {'' if sizes[topic].basis == 'assignment' else 'at least '}{sizes[topic].partition_count}" for topic in inferred[:3]
        )
        others = f" and {len(inferred) - 3} more topics" if len(inferred) > 3 else ""
        words += f", if topics have as many partitions as the assignment shows: {counts}{others}"
    if unknown:
        words += f"; {', '.join(unknown[:3])}{' and others' if len(unknown) > 3 else ''} counted as missing: no partition count is known"
    return words


def _unexplained(case: Case) -> Check:
    if not case.runs:
        release = f"release {case.wanted.release}" if case.wanted.release else "no known release"
        return _finished(case, "undecidable", f"{release} has no assignor {case.wanted_assignor!r} for a {case.step.kind} group")
    sizes = case.runs[0].sizes
    own = [run for run in case.runs if run.variant.assignor == case.wanted_assignor]
    if own and all(run.failure is not None for run in own):
        sentence = f"{titles([own[-1].variant])} fails here: {own[-1].failure}"
        return _finished(case, "not_explained", sentence, sizes=sizes)
    is_sound = _is_sound(case)
    unknown = _unknown_name(case) or (_unknown_input(case, sizes) if is_sound else None)
    if unknown is not None:
        return _finished(case, "undecidable", f"undecidable, because {unknown}", sizes=sizes)
    if not own and is_sound:
        sentence = f"assignor {case.wanted_assignor!r} is not known; every assigned partition has one owner that subscribes to it"
        return _finished(case, "consistent", sentence, sizes=sizes)
    is_any = case.wanted.assignor == "auto"
    sentence = "no known assignor gives this assignment" if is_any else f"not the result of {titles([run.variant for run in own])}"
    if is_sound and case.step.kind == "classic":
        sentence += "; every assigned partition has one owner that subscribes to it: the leader may not be a Java client"
    expected = next((run.plan for run in reversed(own) if run.plan is not None and not run.had), None)
    return _finished(case, "not_explained", sentence, sizes=sizes, plan=expected)


def _unknown_name(case: Case) -> str | None:
    """Return the reason why the assigned topics are not known."""
    assigned = {topic for partitions in case.actual.values() for topic, _ in partitions}
    nameless = sorted(case.nameless_topics & assigned)
    return f"topic id {nameless[0]} has no known name; give it in a topics file" if nameless else None


def _unknown_input(case: Case, sizes: Mapping[str, TopicSize]) -> str | None:
    """Return the reason why the assignor may have had another input than its runs: another start, other partition counts, or racks."""
    return gap_before(case) or _unknown_sizes(case, sizes) or _unknown_racks(case, sizes)


def _unknown_sizes(case: Case, sizes: Mapping[str, TopicSize]) -> str | None:
    unsure = sorted(topic for topic in subscribed_topics(case.step) if topic not in sizes or not sizes[topic].is_exact)
    return f"the partition counts of {', '.join(unsure[:3])} are not known; give them in a topics file" if unsure else None


def _unknown_racks(case: Case, sizes: Mapping[str, TopicSize]) -> str | None:
    if any(member.rack_id for member in case.step.members.values()) and not any(size.racks for size in sizes.values()):
        return "members have racks, and the racks of the replicas are not known"
    return None


def _is_sound(case: Case) -> bool:
    """True if no partition has two owners (unless it is shared) and every owner subscribes to its topics."""
    held = {member_id: set(partitions) for member_id, partitions in case.actual.items()}
    given = [each for partitions in held.values() for each in partitions]
    if len(given) != len(set(given)) and case.step.kind != "share":
        return False
    topics = {member.member_id: set(member.subscribed_topics or ()) for member in case.step.members.values()}
    return all(topic in topics[member_id] for member_id, partitions in held.items() for topic, _ in partitions)


def _finished(
    case: Case,
    verdict: Verdict,
    sentence: str,
    *,
    sizes: Mapping[str, TopicSize] | None = None,
    plan: GroupAssignment | None = None,
    explained_by: str | None = None,
) -> Check:
    sizes = sizes or {}
    rows = list(partition_rows(case, sizes, plan))
    step = case.step
    name = case.assignor or ""
    counts = {kind: sum(kind in row["differences"] for row in rows) for kind in COUNTED}
    bases = [size.basis for size in sizes.values()]
    listed = list(step.members.values())
    is_plain = step.kind in ("classic", "consumer") and step.protocol_type != "connect" and step.protocol != STREAMS_PROTOCOL
    row: VerdictRow = {
        "replica": step.replica,
        "offsets_partition": step.offsets_partition,
        "record_offset": step.record_offset,
        "timestamp_ms": step.timestamp_ms,
        "group": step.group,
        "group_type": step.kind,
        "assignor": case.assignor,
        "generation": step.generation if step.kind == "classic" else step.target_epoch,
        "leader": step.leader,
        "members": len(listed),
        "partitions": sum(bool(row["actual"]) for row in rows),
        "verdict": verdict,
        "explained_by": explained_by,
        "count_basis": max(bases, key=("record", "topics_file", "assignment", "at_least").index) if bases else None,
        "lost": counts["lost"],
        "doubled": counts["doubled"],
        "moved_needlessly": counts["moved_needlessly"],
        "unsubscribed": counts["unsubscribed"],
        "beyond_count": counts["beyond_count"],
        "withheld": counts["withheld"],
        "unreconciled": counts["unreconciled"],
        "unbalanced_by": unbalanced_by(listed, case.actual, by_topic=name == "range") if is_plain and not counts["withheld"] else None,
        "sentence": sentence,
    }
    return Check(row, rows)


def empty_check(step: Membership) -> Check:
    """Return the check of a group that has no assignment."""
    sentence = (
        "the group was removed"
        if step.is_tombstone
        else "the group has no member"
        if not step.members
        else "the log has no assignment of the group"
    )
    case = Case(step, None, TopicFacts(TopicSizes(), {}), Expectation(), step)
    return Check(_finished(case, "undecidable", sentence).verdict, [])


def is_round(step: Membership, before: Membership | None) -> bool:
    """True for a step with a new assignment: a generation, or a target of a new epoch, of a group that has members."""
    if step.is_tombstone or step.is_placeholder or not step.members:
        return False
    if before is None or before.kind != step.kind or before.is_tombstone:
        return step.kind == "classic" or step.target_epoch is not None
    if step.kind == "classic":
        # The same generation again: a static member came back, and the leader assigned nothing.
        return step.generation != before.generation
    return step.target_epoch is not None and step.target_epoch != before.target_epoch


def tables_of(checks: Sequence[Check]) -> AssignmentTables:
    """Return these checks as tables, in their order."""
    return AssignmentTables(
        table_of(ASSIGNMENT_VERDICTS, [check.verdict for check in checks]),
        table_of(ASSIGNMENT_PARTITIONS, [row for check in checks for row in check.partitions]),
    )


def assignments_sentence(verdicts: pa.Table) -> str:
    """Return the counts of verdicts as one sentence."""
    counts: dict[str, int] = {}
    for verdict in verdicts["verdict"].to_pylist():
        counts[verdict] = counts.get(verdict, 0) + 1
    parts = [
        f"{counts[name]} {name.replace('_', ' ')}"
        for name in ("as_expected", "explained", "consistent", "not_explained", "undecidable")
        if name in counts
    ]
    return f"{verdicts.num_rows} assignment{'' if verdicts.num_rows == 1 else 's'}: {', '.join(parts) or 'no group has one'}"
