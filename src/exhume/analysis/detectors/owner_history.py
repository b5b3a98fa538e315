"""The owner of each partition of a group, step by step. Built once, searched often."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from exhume.analysis.member_columns import owned_sets_of
from exhume.analysis.memberships import Member, Membership, TopicPartition
from exhume.analysis.number_columns import NONE, Flags, Int64s


@dataclass(frozen=True, slots=True)
class Handover:
    """The last change of a partition's owner before a record: the step of the change, the new owner, the previous owner."""

    step: Membership
    owner: Member | None
    previous: Member
    previous_step: Membership


class OwnerHistory:
    """The owners of all partitions over these steps, in columns. Memory holds the changes only.

    A run is a sequence of successive steps in which one member alone owns a partition. Runs are sorted by partition, then by step.
    """

    def __init__(self, steps: Sequence[Membership]) -> None:
        self._steps = steps
        self._partitions: dict[TopicPartition, int] = {}
        self._member_ids: list[str] = []
        partition, step, owner = self._sole_owners()
        goes_on = _is_as_before(partition) & _is_as_before(owner) & (np.diff(step, prepend=NONE) == 1)
        begins = np.flatnonzero(~goes_on)
        self._last = step[np.append(begins[1:], len(step)) - 1] if len(step) else step
        partition, step, self._owner = partition[begins], step[begins], owner[begins]
        #: The first step of each run: partition and step as one number.
        self._begin = partition * len(steps) + step
        # The owner is the same as in the run before. Between the two runs the partition had no owner, or several.
        is_back = _is_as_before(partition) & _is_as_before(self._owner)
        first = np.maximum.accumulate(np.where(is_back, 0, np.arange(len(step))))
        self._since = step[first]
        #: The run before, of another owner, or none.
        self._previous = np.where((first > 0) & _is_as_before(partition)[first], first - 1, NONE)

    def _sole_owners(self) -> tuple[Int64s, Int64s, Int64s]:
        """Return the numbers of partition, step and member for each partition with one owner: by partition, then by step."""
        numbers: dict[str, int] = {}
        sets: dict[frozenset[TopicPartition], int] = {}
        counts: list[int] = []
        members: list[int] = []
        owned: list[int] = []
        for taken in self._steps:
            of_step = owned_sets_of(taken)
            counts.append(len(of_step))
            members += [numbers.setdefault(member_id, len(numbers)) for member_id in taken.members]
            owned += [sets.setdefault(each, len(sets)) for each in of_step]
        self._member_ids = [*numbers]
        listed = [self._partitions.setdefault(partition, len(self._partitions)) for each in sets for partition in each]
        sizes = np.array([len(each) for each in sets], np.int64)
        lengths = sizes[owned]
        ends = np.cumsum(lengths)
        of_member = np.repeat(np.arange(len(lengths)), lengths)
        at = np.arange(len(of_member)) + np.repeat((np.cumsum(sizes) - sizes)[owned] - ends + lengths, lengths)
        partition = np.array(listed, np.int64)[at]
        step_of_member = np.repeat(np.arange(len(counts)), counts)
        order = np.argsort(partition, kind="stable")
        partition, step = partition[order], step_of_member[of_member[order]] if len(order) else order
        owner = np.array(members, np.int64)[of_member[order]]
        is_with_others = _is_as_before(partition) & _is_as_before(step)
        is_with_others[:-1] |= is_with_others[1:]
        return partition[~is_with_others], step[~is_with_others], owner[~is_with_others]

    def handover(self, partition: TopicPartition, number: int) -> Handover | None:
        """Return the last change of owner of this partition up to step `number`; None if there is none, or no previous owner."""
        if not 0 <= number < len(self._steps):
            return None
        run, is_owned = (int(column[0]) for column in self._runs([partition], np.array([0]), np.array([number])))
        previous = run if not is_owned else int(self._previous[run])
        if NONE in (run, previous):
            return None
        step = self._steps[self._since[run] if is_owned else self._last[run] + 1]
        previous_step = self._steps[self._last[previous]]
        owner = self._steps[number].members[self._member_ids[self._owner[run]]] if is_owned else None
        return Handover(step, owner, previous_step.members[self._member_ids[self._owner[previous]]], previous_step)

    def steps_of_handovers(self, partitions: Sequence[TopicPartition], places: Int64s, numbers: Int64s) -> Int64s:
        """Return the step number of `handover` for the partition at each place and each step number; below 0 for none."""
        run, is_owned = self._runs(partitions, places, numbers)
        if not len(self._last):
            return run
        has_one = (run != NONE) & (~is_owned | (self._previous[run] != NONE))
        steps: Int64s = np.where(has_one, np.where(is_owned, self._since[run], self._last[run] + 1), NONE)
        return steps

    def _runs(self, partitions: Sequence[TopicPartition], places: Int64s, numbers: Int64s) -> tuple[Int64s, Flags]:
        """Return the last run that began by each step, for the partition at each place, and True if the run includes the step."""
        partition = np.array([self._partitions.get(each, NONE) for each in partitions], np.int64)[places]
        count = max(len(self._steps), 1)
        run = np.searchsorted(self._begin, partition * count + numbers, side="right") - 1
        is_known = (run >= 0) & (partition >= 0) & (numbers >= 0)
        if len(self._begin):
            is_known &= self._begin[run] // count == partition
        run = np.where(is_known, run, NONE)
        return run, is_known & (numbers <= self._last[run]) if len(self._last) else is_known


def _is_as_before(values: Int64s) -> Flags:
    """Return True for each value that equals the one before it."""
    flags = np.zeros(len(values), np.bool_)
    flags[1:] = values[1:] == values[:-1]
    return flags
