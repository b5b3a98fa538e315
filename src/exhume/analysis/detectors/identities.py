"""Find static identities that two clients use, and group ids that several applications use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from exhume.analysis.detectors.cases import GroupCase
from exhume.analysis.detectors.commits import CommitRow
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.name_endings import without_number
from exhume.analysis.detectors.registry import Detector
from exhume.analysis.detectors.removal_evidence import subscribed_topics
from exhume.analysis.detectors.report import NAMED, counted, finding, span
from exhume.analysis.detectors.resets import find_replicated_positions
from exhume.analysis.detectors.steps import judged, step_runs, who
from exhume.analysis.member_columns import (
    all_owned,
    client_ids_of,
    disjoint_subscriptions_of,
    has_static_members,
    name_at,
    subscriptions_of,
)
from exhume.analysis.memberships import Member, Membership, TopicPartition
from exhume.analysis.number_columns import NONE
from exhume.findings import Finding

#: A fight is at least this many changes in this time.
FIGHT_CHANGES, FIGHT_MS = 3, 10 * 60_000
#: Commits without members are a habit if they have at least this many different times, over at least this time.
HABIT_MOMENTS, HABIT_MS = 3, 60_000
#: The least number of changes back and forth between two values.
ALTERNATIONS = 3


@dataclass(frozen=True, slots=True)
class _Turn:
    """A static identity moves to another member id."""

    step: Membership
    before: Member
    after: Member


def find_identity_fights(group: GroupCase, inputs: Inputs) -> Iterator[Finding]:  # noqa: ARG001
    """A static identity (group.instance.id) moves to another member id three times in ten minutes, back and forth between two hosts.

    Two processes use the same one, and each fences the other. The generation may stay the same.
    """
    turns: dict[str, list[_Turn]] = {}
    holders: dict[str, Member] = {}
    for step in group.memberships:
        for member in step.members.values() if has_static_members(step) else ():
            instance = member.group_instance_id
            if instance is None:
                continue
            before = holders.get(instance)
            if before is not None and before.member_id != member.member_id:
                turns.setdefault(instance, []).append(_Turn(step, before, member))
            holders[instance] = member
    for instance, of_instance in turns.items():
        fight = _longest_fight(of_instance)
        if fight:
            yield _fight(group, instance, fight)


def _longest_fight(turns: Sequence[_Turn]) -> Sequence[_Turn]:
    """Return the longest run of turns that alternate between two hosts, with three of them in ten minutes."""
    best: Sequence[_Turn] = ()
    first = 0
    for last, turn in enumerate(turns):
        if last > first:
            hosts = [turns[last - 1].before.client_host, turn.before.client_host, turn.after.client_host]
            if hosts[0] != hosts[2] or hosts[1] == hosts[2]:
                first = last
        if turn.before.client_host == turn.after.client_host:
            first = last + 1
        run = turns[first : last + 1]
        if len(run) > len(best) and _is_quick(run):
            best = run
    return best


def _is_quick(turns: Sequence[_Turn]) -> bool:
    times = [turn.step.timestamp_ms for turn in turns]
    windows = zip(times, times[FIGHT_CHANGES - 1 :], strict=False)
    return any(begin is not None and end is not None and end - begin <= FIGHT_MS for begin, end in windows)


def _fight(group: GroupCase, instance: str, turns: Sequence[_Turn]) -> Finding:
    first, last = turns[0].step.timestamp_ms or 0, turns[-1].step.timestamp_ms or 0
    hosts = " and ".join(sorted({str(turns[0].before.client_host), str(turns[0].after.client_host)}))
    hourly = f", {len(turns) * 3_600_000 / (last - first):.0f} an hour" if last > first else ""
    sentence = f"group.instance.id {instance} moved {len(turns)} times in {span(last - first)}{hourly}, back and forth between {hosts}"
    return finding(
        "IC-19",
        sentence,
        group,
        confidence="likely",
        evidence=[turn.step for turn in turns],
        member_id=turns[-1].after.member_id,
        not_excluded=("one client that is restarted on two hosts in turn",),
        remedy="Give each process its own group.instance.id",
    )


def find_shared_ids(group: GroupCase, inputs: Inputs) -> Iterator[Finding]:
    """Several applications use one group id, or one application uses it in several ways.

    IC-24a: members of one generation subscribe to sets of topics without a common topic, and no member subscribes to topics of both sets.
    IC-24b: commits for a topic that no member subscribes to, while the group has members; it is `info` unless such commits come three times
    or more, over a minute or longer. IC-24c: the protocol, or the set of client ids, changes back and forth between two. IC-24d: commits
    again and again while the group has no members, and it has members at other times, as from a consumer with assign(). Commits that
    replication likely wrote do not count.
    """
    steps = judged(group)
    yield from _disjoint_subscriptions(group, steps)
    yield from _foreign_commits(group)
    yield from _back_and_forth(group, steps)
    replicated = (found for found in find_replicated_positions(group, inputs) if found.confidence == "likely")
    if any(step.members for step in steps) and next(replicated, None) is None:
        yield from _commits_while_empty(group)


def _disjoint_subscriptions(group: GroupCase, steps: Sequence[Membership]) -> Iterator[Finding]:
    for stretch in step_runs(group, steps, lambda step: step.kind != "streams" and disjoint_subscriptions_of(step) is not None):
        apart = disjoint_subscriptions_of(stretch.first) or ()
        one, other = (name_at(stretch.first, subscriptions_of(stretch.first).index(topics)) for topics in apart)
        topics = [*map(_topics, apart)]
        is_same_client = without_number(one.client_id or "") == without_number(other.client_id or "")
        yield finding(
            "IC-24a",
            f"{who(one)} subscribes to {topics[0]}, and {who(other)} subscribes to {topics[1]}: no topic in common",
            group,
            confidence="possible" if is_same_client else "likely",
            severity="info" if is_same_client else "warn",
            evidence=stretch.steps[:2],
            not_excluded=("subscriptions that differ on purpose",),
            remedy="Give each application its own group id",
        )


def _topics(subscribed: Sequence[str]) -> str:
    topics = sorted(subscribed)
    return ", ".join(topics[:NAMED]) + (f" and {len(topics) - NAMED} more" if len(topics) > NAMED else "")


def _foreign_commits(group: GroupCase) -> Iterator[Finding]:
    found: dict[str, list[tuple[Membership, int, CommitRow]]] = {}
    #: The subscriptions before a commit, by the number of steps before it.
    before: dict[int, _Wanted | None] = {}
    offsets = group.keys.last_record_offsets
    steps_before = group.count_steps_before(np.array(offsets, np.int64)).tolist()
    for place, ((topic, partition), record_offset, steps) in enumerate(zip(group.keys.names, offsets, steps_before, strict=True)):
        if record_offset == NONE:
            continue
        if steps not in before:
            before[steps] = _wanted(group, steps)
        wanted = before[steps]
        if wanted is None or topic in wanted.topics or (topic, partition) in wanted.owned:
            continue
        last = group.keys.last(place)
        if last is None or last.producer_id is not None:
            continue
        after = group.membership_after(record_offset)
        if after is None or after.generation is None or after.generation <= (wanted.step.generation or 0) + 1:
            found.setdefault(topic, []).append((wanted.step, partition, last))
    for topic, listed in found.items():
        partitions = sorted(partition for _, partition, _ in listed)
        is_habit = any(_is_habit(group, topic, partition) for partition in partitions)
        members = listed[0][0].members
        some = ", ".join(str(partition) for partition in partitions[:NAMED]) + (" …" if len(partitions) > NAMED else "")
        yield finding(
            "IC-24b",
            f"the group committed offsets of {topic} ({counted(len(partitions), 'partition')}: {some}) while it had"
            f" {counted(len(members), 'member')}, and none of them subscribed to it",
            group,
            severity="warn" if is_habit else "info",
            confidence="likely" if is_habit else "possible",
            evidence=[listed[0][0], *(last for _, _, last in listed)],
            topic=topic,
            partition=partitions[0] if len(partitions) == 1 else None,
            not_excluded=("offsets that were copied from another cluster", "a subscription that had just changed"),
        )


def _is_habit(group: GroupCase, topic: str, partition: int) -> bool:
    """Return True if this partition was committed several times, over a minute or longer: not once, by a tool or on purpose."""
    key = group.keys.find(topic, partition)
    if key is None or key.last is None or key.last.timestamp_ms is None or key.first_timestamp_ms is None:
        return False
    return key.commits >= HABIT_MOMENTS and key.last.timestamp_ms - key.first_timestamp_ms >= HABIT_MS


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The topics that the members of a step subscribe to, and the partitions that they own."""

    step: Membership
    topics: set[str]
    owned: frozenset[TopicPartition]


def _wanted(group: GroupCase, steps: int) -> _Wanted | None:
    """Return the subscriptions at the last of this many steps; None if they are not known."""
    step = group.memberships[steps - 1] if steps else None
    if step is None or not step.members or step.kind in ("share", "streams"):
        return None
    if step.kind != "classic" and not group.log_context.is_complete_at(step.record_offset):
        return None
    topics = subscribed_topics(step)
    return None if topics is None else _Wanted(step, topics, all_owned(step))


def _listed(client_ids: frozenset[str | None]) -> str:
    return ", ".join(sorted(map(str, client_ids)))


def _back_and_forth(group: GroupCase, steps: Sequence[Membership]) -> Iterator[Finding]:
    stored = [step for step in steps if step.kind == "classic" and step.members]
    protocols = [(step.protocol_type or "", step.protocol or "") for step in stored]
    if best := _alternations(stored, protocols):
        yield _alternated(group, "protocol", best, *(" ".join(filter(None, way)) for way in best[0][1:]))
    clients = [frozenset(client_ids_of(step)) for step in stored]
    if (best_clients := _alternations(stored, clients)) and not best_clients[0][1] & best_clients[0][2]:
        yield _alternated(group, "client ids", best_clients, *map(_listed, best_clients[0][1:]))


_Way = TypeVar("_Way")
#: A step that changed a value, the value before, and the value after.
_Alternation = tuple[Membership, _Way, _Way]


def _alternations(steps: Sequence[Membership], ways: Sequence[_Way]) -> list[_Alternation[_Way]]:
    """Return the longest run of changes that each undo the one before; empty if it is shorter than `ALTERNATIONS`."""
    best: list[_Alternation[_Way]] = []
    run: list[_Alternation[_Way]] = []
    for number, (before, after) in enumerate(pairwise(ways), start=1):
        if before == after:
            continue
        change = (steps[number], before, after)
        if run and run[-1][1:] == (after, before):
            run.append(change)
        else:
            run = [change]
        if len(run) > len(best):
            best = run
    return best if len(best) >= ALTERNATIONS else []


def _alternated(group: GroupCase, what: str, changes: Sequence[_Alternation[Any]], one: str, other: str) -> Finding:
    return finding(
        "IC-24c",
        f"the {what} of the group changed {len(changes)} times, back and forth between {one} and {other}",
        group,
        confidence="possible",
        evidence=[step for step, _, _ in changes],
        not_excluded=("a deployment that was rolled back",),
    )


def _commits_while_empty(group: GroupCase) -> Iterator[Finding]:
    keys = group.keys.with_changes("while_empty")
    changes = sorted((change for key in keys for change in key.of("while_empty")), key=lambda change: change.commit.record_offset)
    times = sorted({change.commit.timestamp_ms for change in changes if change.commit.timestamp_ms is not None})
    if len(times) < HABIT_MOMENTS or times[-1] - times[0] < HABIT_MS:
        return
    topics = sorted({key.topic for key in keys if key.count_of.get("while_empty")})
    count = sum(key.count_of.get("while_empty", 0) for key in keys)
    yield finding(
        "IC-24d",
        f"{counted(count, 'commit')} over {span(times[-1] - times[0])} while the group had no members ({', '.join(topics[:NAMED])})",
        group,
        confidence="likely",
        evidence=[changes[0], changes[-1]],
        not_excluded=("offsets that were copied from another cluster", "an operator who resets offsets again and again"),
        remedy="Give the consumer with assign() its own group id",
    )


DETECTORS = (
    Detector(
        code="IC-19",
        title="One static identity for two clients",
        section="Membership and assignment",
        in_group=find_identity_fights,
        by_time=True,
        traps=(
            "One change for each restart is normal",
            "A pod that restarts has another host, and does not return to the former one",
            "Before 2.8 the coordinator did not write each replacement",
        ),
    ),
    Detector(
        code="IC-24",
        title="One group id for several applications",
        section="Membership and assignment",
        in_group=find_shared_ids,
        traps=(
            "Some applications subscribe to different topics on purpose",
            "A rolling deployment may add a topic",
            "Offsets from another cluster are committed while the group is Empty",
        ),
    ),
)
