"""Rules for any assignment, for groups whose assignor cannot be run from the log.

Kafka Streams and Kafka Connect decide by data that the offsets topic does not have (topologies, lags, the list of connectors). Other
clients decide in their own way. Only their structure can be checked. The functions `…_faults` yield a sentence for each broken rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from exhume.analysis.memberships import Member, TopicPartition
from exhume.codecs.embedded import Payload

#: (connector, task); task -1 is the connector itself.
Work = tuple[str, int]


def unbalanced_by(members: Sequence[Member], held: Mapping[str, Sequence[TopicPartition]], *, by_topic: bool) -> int | None:
    """Return the largest difference in size between members with the same subscription, less one; 0 if they are as equal as possible.

    `by_topic`: per topic, as `range` promises; else over all topics. None where subscriptions differ: sizes may differ too.
    """
    subscriptions = {frozenset(member.subscribed_topics or ()) for member in members}
    if not members or (len(subscriptions) > 1 and not by_topic):
        return None
    if not by_topic:
        sizes = [len(held.get(member.member_id, ())) for member in members]
        return max(0, max(sizes) - min(sizes) - 1)
    worst = 0
    for topic in set(chain.from_iterable(subscriptions)):
        counts = [
            sum(name == topic for name, _ in held.get(member.member_id, ()))
            for member in members
            if topic in (member.subscribed_topics or ())
        ]
        worst = max(worst, max(counts) - min(counts) - 1)
    return worst


def streams_info(member: Member) -> Mapping[str, Any] | None:
    """Return the Streams data that the leader of a classic group sent to a member; None if its tasks cannot be read."""
    info = None if member.assignment is None else member.assignment.user_data
    is_read = info is not None and info.kind == "streams_assignment_info" and "active_tasks" in info.value
    return info.value if info is not None and is_read else None


def streams_may_follow_up(members: Iterable[Member]) -> bool:
    """True if the leader may have requested a rebalance at once, to assign what a member has to release first.

    Before version 7 the data have no field for that.
    """
    infos = [info for info in map(streams_info, members) if info is not None]
    return any(not info.get("next_rebalance_ms") for info in infos)


def streams_faults(members: Iterable[Member]) -> Iterator[str]:
    """Yield the faults of a classic Streams group: tasks on two members, tasks that do not fit their partitions, errors of the leader."""
    runs: dict[Any, list[str]] = {}
    for member in members:
        info = streams_info(member)
        if info is None:
            continue
        if info.get("error_code"):
            yield f"the leader sent error {info['error_code']} to member {member.member_id}"
        tasks = [(task["subtopology"], task["partition"]) for task in info["active_tasks"]]
        partitions = sorted(member.assigned or ())
        if len(tasks) != len(partitions):
            yield f"member {member.member_id} has {len(tasks)} active tasks for {len(partitions)} partitions"
        elif any(task[1] != partition for task, (_, partition) in zip(tasks, partitions, strict=True)):
            yield f"active tasks of member {member.member_id} have other numbers than its partitions"
        for task in set(tasks):
            runs.setdefault(task, []).append(member.member_id)
    for (subtopology, partition), ids in sorted(runs.items()):
        if len(ids) > 1:
            yield f"task {subtopology}_{partition} is active on {len(ids)} members: {', '.join(ids)}"


def streams_group_faults(members: Iterable[Member]) -> Iterator[str]:
    """Yield the faults of a streams group: tasks that are active twice, and standby or warm-up copies on the member of the active task."""
    active: Counter[tuple[str, int]] = Counter()
    for member in members:
        active.update(member.active_tasks)
        for task in set(member.active_tasks).intersection((*member.standby_tasks, *member.warmup_tasks)):
            yield f"member {member.member_id} has task {task[0]}_{task[1]} both active and as a copy"
    for (subtopology, partition), count in sorted(active.items()):
        if count > 1:
            yield f"task {subtopology}_{partition} is active on {count} members"


def connect_running(member: Member) -> list[Work] | None:
    """Return the work of a Connect worker after this round: its assignment, or since version 1 (allocation - revoked) + assigned.

    None if its bytes cannot be read.
    """
    assignment = member.assignment
    if assignment is None or assignment.kind != "connect_assignment":
        return None
    if not assignment.version:
        return _work(assignment.value["assigned"])
    before = _allocation(member)
    if before is None:
        return None
    revoked = set(_work(assignment.value["revoked"]))
    return list(dict.fromkeys([*(work for work in before if work not in revoked), *_work(assignment.value["assigned"])]))


def _allocation(member: Member) -> list[Work] | None:
    """Return the work that a Connect worker reported when it joined; None if that cannot be read."""
    state = member.subscription
    if state is None or state.kind != "connect_config_state":
        return None
    allocation = state.user_data
    if allocation is None:
        return []
    return _work(allocation.value["assigned"]) if allocation.kind == "connect_assignment" else None


def connect_is_settled(members: Iterable[Member]) -> bool:
    """True if the leader revokes and delays nothing: then workers run about the same number. An eager leader assigns everything at once."""
    values = [member.assignment.value for member in members if member.assignment is not None]
    return not any(value.get("revoked") or value.get("delay_ms") for value in values)


def connect_faults(members: Sequence[Member]) -> Iterator[str]:
    """Yield the faults of a Connect group.

    They are errors, workers that follow different leaders, work that runs on two workers, revocations of work that a worker does not run,
    and unequal numbers of connectors or tasks.
    """
    payloads: list[Payload] = [
        member.assignment for member in members if member.assignment and member.assignment.kind == "connect_assignment"
    ]
    for error in sorted({payload.value["error"] for payload in payloads} - {0}):
        yield f"the leader sent error {error} to the workers: no worker gets work until all have the same configuration"
    leaders = sorted({payload.value["leader_url"] for payload in payloads})
    if len(leaders) > 1:
        yield f"workers follow {len(leaders)} leaders: {', '.join(leaders)}"
    running = [work for member in members if (work := connect_running(member)) is not None]
    counts = Counter(chain.from_iterable(running))
    for (connector, task), count in sorted(counts.items()):
        if count > 1:
            yield f"{_spelt(connector, task)} runs on {count} workers"
    for member in members:
        for connector, task in _revoked_but_not_running(member):
            yield f"worker {member.member_id} has to give up {_spelt(connector, task)}, which it does not run"
    if connect_is_settled(members):
        yield from _unequal_numbers("connectors", [sum(task < 0 for _, task in works) for works in running])
        yield from _unequal_numbers("tasks", [sum(task >= 0 for _, task in works) for works in running])


def _unequal_numbers(kind: str, sizes: Sequence[int]) -> Iterator[str]:
    """Yield a fault if the workers run these numbers of connectors or tasks, and the numbers differ by more than one."""
    least, most = min(sizes, default=0), max(sizes, default=0)
    if most - least > 1:
        yield f"workers run between {least} and {most} {kind}, though nothing is being revoked or delayed"


def _revoked_but_not_running(member: Member) -> list[Work]:
    assignment, before = member.assignment, _allocation(member)
    if assignment is None or assignment.kind != "connect_assignment" or before is None:
        return []
    return sorted(set(_work(assignment.value.get("revoked"))).difference(before))


def connect_delay_ms(members: Iterable[Member]) -> int:
    """Return how long lost work stays unassigned on purpose; 0 if it does not."""
    return max((member.assignment.value.get("delay_ms") or 0 for member in members if member.assignment is not None), default=0)


def _spelt(connector: str, task: int) -> str:
    return f"connector {connector}" if task < 0 else f"task {connector}-{task}"


def _work(entries: Iterable[Mapping[str, Any]] | None) -> list[Work]:
    return [(entry["connector"], task) for entry in entries or () for task in entry["tasks"]]
