"""Who had each partition of a group, from one step of its life to the next: made once, asked often."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from exhume.analysis.memberships import Member, Membership, TopicPartition
from exhume.analysis.rosters import owned_of

_NONE = -1


@dataclass(frozen=True, slots=True)
class Handover:
    """The last change of a partition's owner in front of a record: the step that brought it, who has it since, who had it before."""

    step: Membership
    owner: Member | None
    previous: Member
    previous_step: Membership


@dataclass(frozen=True, slots=True)
class _Tenure:
    """From step `first` on one member alone has a partition, or None: nobody, or more than one.

    The owner had it since step `since`, but for steps in which it was nobody's; `previous` is the last step in which another one had it.
    """

    first: int
    member_id: str | None
    since: int
    previous: int


class OwnerHistory:
    """The owners of all partitions over these steps. In memory are the changes, not the steps."""

    def __init__(self, steps: Sequence[Membership]) -> None:
        self._steps = steps
        self._tenures: dict[TopicPartition, list[_Tenure]] = {}
        owners: dict[TopicPartition, str] = {}
        for number, step in enumerate(steps):
            before, owners = owners, _sole_owners(step)
            for partition, member_id in owners.items():
                if before.get(partition) != member_id:
                    self._begin(partition, number, member_id)
            for partition in before.keys() - owners.keys():
                self._begin(partition, number, None)

    def _begin(self, partition: TopicPartition, number: int, member_id: str | None) -> None:
        tenures = self._tenures.setdefault(partition, [])
        last_owned = next((tenure for tenure in reversed(tenures[-2:]) if tenure.member_id is not None), None)
        if last_owned is None:
            tenures.append(_Tenure(number, member_id, number, _NONE))
        elif last_owned.member_id == member_id:
            tenures.append(_Tenure(number, member_id, last_owned.since, last_owned.previous))
        else:
            ended = number if tenures[-1] is last_owned else tenures[-1].first
            tenures.append(_Tenure(number, member_id, number, ended - 1))

    def handover(self, partition: TopicPartition, number: int) -> Handover | None:
        """The last change of owner of this partition up to step `number`; None where there is none, or nobody before."""
        tenures = self._tenures.get(partition, [])
        place = bisect_right(tenures, number, key=lambda tenure: tenure.first) - 1
        if place < 0 or tenures[place].previous == _NONE:
            return None
        tenure = tenures[place]
        before = tenures[bisect_right(tenures, tenure.previous, key=lambda each: each.first) - 1]
        assert before.member_id is not None
        previous_step = self._steps[tenure.previous]
        owner = None if tenure.member_id is None else self._steps[number].members[tenure.member_id]
        return Handover(self._steps[tenure.since], owner, previous_step.members[before.member_id], previous_step)


def _sole_owners(step: Membership) -> dict[TopicPartition, str]:
    """The member id of the one owner of each partition that has one."""
    owners: dict[TopicPartition, str] = {}
    shared: set[TopicPartition] = set()
    for member_id, owned in zip(step.members, owned_of(step), strict=True):
        for partition in owned:
            if owners.setdefault(partition, member_id) != member_id:
                shared.add(partition)
    for partition in shared:
        del owners[partition]
    return owners
