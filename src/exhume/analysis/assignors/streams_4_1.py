"""The `sticky` assignor of the coordinator 4.1 for streams groups, which decides ties by chance.

Of several processes with the same load, the class takes the first in a set whose order is that of identity hash codes. So the same input
has several results, and `can_be_of_4_1` says whether an assignment is one of them: it follows the class task by task, and where chance
decides, it lets chance decide as in that assignment.

Source: StickyTaskAssignor and ProcessState, Kafka 4.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from exhume.analysis.assignors.java_order import hash_order, string_hash
from exhume.analysis.assignors.streams import StreamsAssignment, StreamsGroup, Task


def sticky_4_1(group: StreamsGroup, actual: StreamsAssignment) -> StreamsAssignment:
    """Assign as `sticky` of the coordinator 4.1, with the chance that leads to `actual` if it can; otherwise nothing is assigned."""
    return actual if can_be_of_4_1(group, actual) else StreamsAssignment({}, {})


def can_be_of_4_1(group: StreamsGroup, actual: StreamsAssignment) -> bool:
    """True if `sticky` of the coordinator 4.1 can give this assignment.

    One case is not followed: a task whose former copies tie, of which one has no room, may go to its member at once or at the end.
    """
    following = _Following(group, actual)
    return following.active() and following.standby()


class _Process:
    __slots__ = ("active", "counts", "process_id", "standby")

    def __init__(self, process_id: str) -> None:
        self.process_id = process_id
        self.counts: dict[str, int] = {}
        self.active: set[Task] = set()
        self.standby: set[Task] = set()

    @property
    def task_count(self) -> int:
        return len(self.active) + len(self.standby)

    @property
    def load(self) -> float:
        return self.task_count / len(self.counts)

    def first_least_loaded(self) -> str:
        return min(self.counts, key=self.counts.__getitem__)


class _Following:
    """One run of the class, led by an assignment."""

    def __init__(self, group: StreamsGroup, actual: StreamsAssignment) -> None:
        self._group = group
        members = group.in_hash_order()
        self._processes = {member.process_id: _Process(member.process_id) for member in members}
        self._process_of = {member.member_id: self._processes[member.process_id] for member in members}
        for process in self._processes.values():
            ids = [member.member_id for member in members if member.process_id == process.process_id]
            process.counts = dict.fromkeys(hash_order(ids, string_hash), 0)
        self._before = {task: member.member_id for member in members for task in member.active}
        self._copied: dict[Task, list[str]] = {}
        for member in members:
            for task in member.standby:
                self._copied.setdefault(task, []).append(member.member_id)
        self._tasks, self._room = sum(group.task_counts.values()), len(members)
        self._all_pairs = self._tasks * (self._tasks - 1) // 2
        self._most = self._shared()
        self._pairs: set[frozenset[Task]] = set()
        self._owner = {task: member_id for member_id, tasks in actual.active.items() for task in tasks}
        self._copies: dict[Task, list[str]] = {}
        for member_id, tasks in actual.standby.items():
            for task in tasks:
                self._copies.setdefault(task, []).append(member_id)

    def active(self) -> bool:
        """Follow the active tasks; False where the class decides otherwise."""
        if set(self._owner) != set(self._group.tasks()):
            return False
        rest = []
        for task in _in_set_order(self._group.tasks()):
            before = self._before.get(task)
            if before is None or not self._has_room(before):
                rest.append(task)
            elif self._owner[task] != before:
                return False
            else:
                self._give(before, task)
        last = []
        for task in rest:
            choices = self._least_loaded(self._copied.get(task, ()), task, same=True)
            if self._owner[task] in choices and self._has_room(self._owner[task]):
                self._give(self._owner[task], task)
            elif not choices or any(not self._has_room(member_id) for member_id in choices):
                last.append(task)
            else:
                return False
        for task in last:
            if self._owner[task] not in self._least_loaded(self._process_of, task, same=False):
                return False
            self._give(self._owner[task], task)
        return True

    def standby(self) -> bool:
        """Follow the standby tasks; False where the class decides otherwise."""
        tasks = self._group.tasks(only_stateful=True) if self._group.standby_replicas > 0 else []
        if not set(self._copies).issubset(tasks):
            return False
        return all(self._copies_of(task, self._copies.get(task, []), self._group.standby_replicas) for task in _in_set_order(tasks))

    def _copies_of(self, task: Task, members: list[str], count: int) -> bool:
        """Follow the copies of a task in every order of its members; the order makes no difference to the tasks after it."""
        free = [process for process in self._processes.values() if task not in process.active and task not in process.standby]
        if not count or not free:
            return not members
        for chosen in self._standbys(task, free):
            if chosen in members:
                pairs = self._give(chosen, task, is_active=False)
                if self._copies_of(task, [each for each in members if each != chosen], count - 1):
                    return True
                self._take_back(chosen, task, pairs)
        return False

    def _standbys(self, task: Task, free: Sequence[_Process]) -> list[str]:
        """Return the members of which chance gives this copy to one."""
        before = self._before.get(task)
        if before is not None and self._process_of[before] in free:
            process = self._process_of[before]
            if self._is_balanced(process) and self._is_new_pair(task, process):
                return [before]
        former = [member_id for member_id in self._copied.get(task, ()) if self._process_of[member_id] in free]
        copied = self._least_loaded(former, task, same=True)
        balanced = [member_id for member_id in copied if self._is_balanced(self._process_of[member_id])]
        if copied and len(balanced) == len(copied):
            return balanced
        everyone = [member_id for process in free for member_id in process.counts]
        return [*balanced, *self._least_loaded(everyone, task, same=False)]

    def _least_loaded(self, members: Iterable[str], task: Task, *, same: bool) -> list[str]:
        """Return the members among which chance decides. `same`: of those with a former copy, one of these itself."""
        members = list(members)
        fitting = [member_id for member_id in members if self._is_new_pair(task, self._process_of[member_id])] or members
        if not fitting:
            return []
        least = min(self._process_of[member_id].load for member_id in fitting)
        processes = {self._process_of[member_id] for member_id in fitting if self._process_of[member_id].load == least}
        if same:
            return [member_id for member_id in members if self._process_of[member_id] in processes]
        return [process.first_least_loaded() for process in processes]

    def _give(self, member_id: str, task: Task, *, is_active: bool = True) -> set[frozenset[Task]]:
        """Give a task to a member; returns the pairs of tasks that are together for the first time."""
        process = self._process_of[member_id]
        (process.active if is_active else process.standby).add(task)
        process.counts[member_id] += 1
        pairs = {frozenset((task, other)) for other in process.active | process.standby if other != task} - self._pairs
        self._pairs |= pairs
        # The class counts the active tasks of the process here, not those of the member.
        if is_active and len(process.active) == self._most:
            self._room -= 1
            self._tasks -= len(process.active)
            self._most = self._shared()
        return pairs

    def _take_back(self, member_id: str, task: Task, pairs: set[frozenset[Task]]) -> None:
        process = self._process_of[member_id]
        process.standby.remove(task)
        process.counts[member_id] -= 1
        self._pairs -= pairs

    def _shared(self) -> int:
        if not self._room:
            return 0
        quotient = int(self._tasks / self._room)
        return quotient + 1 if self._tasks - quotient * self._room > 0 else quotient

    def _has_room(self, member_id: str) -> bool:
        return self._process_of[member_id].counts[member_id] < self._most

    def _is_balanced(self, process: _Process) -> bool:
        return process.task_count < len(process.counts) or all(each.load >= process.load for each in self._processes.values())

    def _is_new_pair(self, task: Task, process: _Process) -> bool:
        if len(self._pairs) == self._all_pairs:
            return False
        given = process.active | process.standby
        return not given or any(frozenset((task, other)) not in self._pairs for other in given)


def _in_set_order(tasks: Iterable[Task]) -> list[Task]:
    """Return tasks in the order of a HashSet."""
    return hash_order(tasks, lambda task: 31 * string_hash(task[0]) + task[1])
