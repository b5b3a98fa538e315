"""The `sticky` assignor of the coordinator for streams groups.

    4.2.0 - 4.2.1, 4.3   keeps the tasks of the target before, up to equal numbers; the rest to the process with the least load
    4.2.2                finds former copies also where the first of them cannot take the task
    4.4 -                so too; keeps what members run now, and ranks copies by the offsets that members report

`streams_4_1` has the version of 4.1, which decides ties by chance.

Source: StickyTaskAssignor and ProcessState, Kafka 4.2 to 4.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

from exhume.analysis.assignors.java_order import called_capacity, capacity_for, grown_capacity, hash_order, sort_key, string_hash
from exhume.analysis.assignors.java_queue import JavaQueue

#: (subtopology id, partition).
Task = tuple[str, int]


@dataclass(frozen=True, slots=True)
class StreamsMember:
    """A member of a streams group as the assignor sees it.

    Attributes:
        member_id: its id.
        process_id: the id of its process, which may run several members.
        active: its active tasks before: of its target to 4.3, those that it runs since 4.4.
        standby: its standby tasks before.
        offsets: since 4.4, the sums of the offsets that it reported for tasks. No record has them.
    """

    member_id: str
    process_id: str
    active: tuple[Task, ...] = ()
    standby: tuple[Task, ...] = ()
    offsets: Mapping[Task, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StreamsGroup:
    """The input of the assignor.

    Attributes:
        members: in the order of the coordinator's table, as far as it is known; ids are unique.
        task_counts: the number of tasks of each subtopology.
        stateful: the subtopologies with state, whose tasks get standby copies.
        standby_replicas: the number of standby copies of a task, `num.standby.replicas`.
    """

    members: Sequence[StreamsMember]
    task_counts: Mapping[str, int]
    stateful: frozenset[str]
    standby_replicas: int

    def in_hash_order(self) -> list[StreamsMember]:
        """Return the members in the order of a HashMap by member id."""
        by_id = {member.member_id: member for member in self.members}
        return [by_id[member_id] for member_id in hash_order(by_id, string_hash)]

    def tasks(self, *, only_stateful: bool = False) -> list[Task]:
        """Return all tasks, or those with state, by subtopology."""
        return [
            (subtopology, number)
            for subtopology in sorted(self.task_counts, key=sort_key)
            if not only_stateful or subtopology in self.stateful
            for number in range(self.task_counts[subtopology])
        ]


@dataclass(frozen=True, slots=True)
class StreamsAssignment:
    """The result of the assignor: active and standby tasks by member, sorted. Members without tasks are not in it."""

    active: Mapping[str, list[Task]]
    standby: Mapping[str, list[Task]]


def sticky_4_2(group: StreamsGroup) -> StreamsAssignment:
    """Assign as `sticky` of the coordinators 4.2.0, 4.2.1 and 4.3."""
    return _Assigning(group, skips_full=False, computes_keys=False).run()


def sticky_4_2_2(group: StreamsGroup) -> StreamsAssignment:
    """Assign as `sticky` of the coordinator 4.2.2."""
    return _Assigning(group, skips_full=True, computes_keys=False).run()


def sticky_4_4(group: StreamsGroup) -> StreamsAssignment:
    """Assign as `sticky` of the coordinator since 4.4."""
    return _Assigning(group, skips_full=True, computes_keys=True).run()


class _Process:
    """The members of a process with the tasks that they have got."""

    __slots__ = ("counts", "load", "queue", "task_count", "tasks")

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.tasks: set[Task] = set()
        self.task_count = 0
        self.load = 0.0
        #: Its members by number of tasks, while no task is given to a certain member.
        self.queue: JavaQueue[str] | None = None

    def add(self, member_id: str, task: Task) -> int:
        """Add a task, and return the number of tasks that the member has then."""
        self.task_count += 1
        self.tasks.add(task)
        self.counts[member_id] += 1
        self.load = self.task_count / len(self.counts)
        return self.counts[member_id]

    def least_loaded(self) -> str:
        """Take the member with the fewest tasks out of the queue."""
        if self.queue is None:
            self.queue = JavaQueue()
            for member_id in hash_order(self.counts, string_hash):
                self.queue.add(self.counts[member_id], member_id)
        return self.queue.poll()


class _Quota:
    """The number of tasks that a member may have; it changes as members become full."""

    __slots__ = ("members", "most", "tasks")

    def __init__(self, tasks: int, members: int) -> None:
        self.tasks, self.members = tasks, members
        self.most = _shared(tasks, members)

    def note(self, count: int) -> None:
        """Note that a member has this number of tasks now."""
        if count == self.most:
            self.members -= 1
            self.tasks -= count
            self.most = _shared(self.tasks, self.members)


def _shared(tasks: int, members: int) -> int:
    if not members:
        return 0
    # As Java divides: towards zero, with a remainder of the sign of the tasks.
    quotient = int(tasks / members)
    return quotient + 1 if tasks - quotient * members > 0 else quotient


class _Assigning:
    """One run of the assignor."""

    def __init__(self, group: StreamsGroup, *, skips_full: bool, computes_keys: bool) -> None:
        self._group = group
        #: True: a former copy whose process has the task is passed over; False: if it is the first one, no copy is found.
        self._skips_full = skips_full
        #: True: computeIfAbsent fills the table of processes; False: putIfAbsent.
        self._computes_keys = computes_keys
        members = group.in_hash_order()
        self._process_of = {member.member_id: member.process_id for member in members}
        self._processes = self._in_order(members)
        for member in members:
            self._processes[member.process_id].counts[member.member_id] = 0
        self._before = {task: member.member_id for member in members for task in member.active}
        self._standbys = self._ranked_standbys(members)
        total = sum(group.task_counts.values())
        copies = sum(count for subtopology, count in group.task_counts.items() if subtopology in group.stateful) * group.standby_replicas
        self._active_quota = _Quota(total, len(members))
        self._quota = _Quota(total + copies, len(members))
        self._active: dict[str, list[Task]] = {}
        self._standby: dict[str, list[Task]] = {}

    def _in_order(self, members: Sequence[StreamsMember]) -> dict[str, _Process]:
        """Return the processes in the order of the assignor's table."""
        start = capacity_for(len(members))
        ids = [member.process_id for member in members]
        if self._computes_keys:
            # computeIfAbsent adds a key before the others of its bucket, and grows the table first.
            capacity, inserted = called_capacity(ids, start), list(dict.fromkeys(ids))[::-1]
        else:
            inserted = list(dict.fromkeys(ids))
            capacity = grown_capacity(len(inserted), start)
        return {process_id: _Process() for process_id in hash_order(inserted, string_hash, capacity)}

    def _ranked_standbys(self, members: Iterable[StreamsMember]) -> dict[Task, list[str]]:
        """Return the members that had a copy of each task: those with a standby task first, then by their offsets."""
        found: dict[Task, list[tuple[bool, int, str]]] = {}
        for member in members:
            for task in member.standby:
                found.setdefault(task, []).append((False, -member.offsets.get(task, 0), member.member_id))
            for task, offset in member.offsets.items():
                if task not in member.standby:
                    found.setdefault(task, []).append((True, -offset, member.member_id))
        return {task: [each[2] for each in sorted(candidates, key=lambda each: each[:2])] for task, candidates in found.items()}

    def run(self) -> StreamsAssignment:
        """Return the assignment."""
        self._assign_active()
        if self._group.standby_replicas > 0:
            self._assign_standby()
        return StreamsAssignment(
            {member_id: sorted(tasks) for member_id, tasks in self._active.items()},
            {member_id: sorted(tasks) for member_id, tasks in self._standby.items()},
        )

    def _assign_active(self) -> None:
        rest = []
        for task in _by_partition(self._group.tasks()):
            before = self._before.get(task)
            if before is None or not self._give_active(before, task):
                rest.append(task)
        last = []
        for task in rest:
            before = self._least_loaded_of(self._standbys.get(task, ()), None)
            if before is None or not self._give_active(before, task):
                last.append(task)
        queue = self._queue()
        for task in self._by_subtopology(last):
            process = queue.poll()
            count = self._give_least_loaded(process, task, self._active)
            self._active_quota.note(count)
            queue.add(process.load, process)

    def _give_active(self, member_id: str, task: Task) -> bool:
        """Give an active task to this member if its quota allows it."""
        process = self._processes[self._process_of[member_id]]
        if process.counts[member_id] >= self._active_quota.most:
            return False
        self._active.setdefault(member_id, []).append(task)
        count = process.add(member_id, task)
        process.queue = None
        self._active_quota.note(count)
        self._quota.note(count)
        return True

    def _give_least_loaded(self, process: _Process, task: Task, given: dict[str, list[Task]]) -> int:
        """Give a task to the member of this process that has the fewest; returns how many it has then."""
        if len(process.counts) == 1:
            (member_id,) = process.counts
            count = process.add(member_id, task)
        else:
            member_id = process.least_loaded()
            count = process.add(member_id, task)
            assert process.queue is not None
            process.queue.add(count, member_id)
        given.setdefault(member_id, []).append(task)
        self._quota.note(count)
        return count

    def _least_loaded_of(self, members: Sequence[str], task: Task | None) -> str | None:
        """Return the member with the least load; with a task, one whose process does not have it."""
        processes = [self._processes[self._process_of[member_id]] for member_id in members]
        best: tuple[str, float, int] | None = None
        for member_id, process in zip(members, processes, strict=True):
            has_it = task is not None and task in process.tasks
            if has_it and (best is not None or self._skips_full):
                continue
            if best is None or (process.load < best[1] and process.counts[member_id] < best[2]):
                best = member_id, process.load, process.counts[member_id]
        if best is None or (not self._skips_full and task is not None and task in processes[0].tasks):
            return None
        return best[0]

    def _assign_standby(self) -> None:
        replicas = self._group.standby_replicas
        rest: dict[Task, int] = {}
        for task in reversed(_by_partition(self._group.tasks(only_stateful=True))):
            for done in range(replicas):
                if not self._give_back(task):
                    rest[task] = replicas - done
                    break
        queue = self._queue()
        for task in reversed(self._by_subtopology(rest)):
            for _ in range(rest[task]):
                if not self._give_standby(queue, task):
                    break

    def _give_back(self, task: Task) -> bool:
        """Give a standby task to the member that had the active one, or to one that had the copy."""
        before = self._before.get(task)
        if before is not None and task not in self._processes[self._process_of[before]].tasks and self._gets_standby(before, task):
            return True
        copied = self._least_loaded_of(self._standbys.get(task, ()), task)
        return copied is not None and self._gets_standby(copied, task)

    def _gets_standby(self, member_id: str, task: Task) -> bool:
        process = self._processes[self._process_of[member_id]]
        if process.counts[member_id] >= self._quota.most:
            return False
        self._standby.setdefault(member_id, []).append(task)
        self._quota.note(process.add(member_id, task))
        process.queue = None
        return True

    def _give_standby(self, queue: JavaQueue[_Process], task: Task) -> bool:
        """Give a standby task to the process with the least load that does not have the task; False if all have it."""
        having: list[_Process] = []
        found = False
        while queue:
            process = queue.poll()
            having.append(process)
            if task not in process.tasks:
                self._give_least_loaded(process, task, self._standby)
                found = True
                break
        # Each goes back into the queue once the search below it has ended.
        for process in reversed(having):
            queue.add(process.load, process)
        return found

    def _by_subtopology(self, tasks: Iterable[Task]) -> list[Task]:
        """Return tasks by subtopology, then by partition."""
        wanted = set(tasks)
        return [task for task in self._group.tasks() if task in wanted]

    def _queue(self) -> JavaQueue[_Process]:
        queue: JavaQueue[_Process] = JavaQueue()
        for process in self._processes.values():
            queue.add(process.load, process)
        return queue


def _by_partition(tasks: list[Task]) -> list[Task]:
    """Return tasks that are sorted by subtopology by partition."""
    return sorted(tasks, key=itemgetter(1))
