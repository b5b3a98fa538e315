"""Handovers of the owner history, compared with a search back through all steps."""

from __future__ import annotations

import random

import numpy as np
import pytest

from exhume.analysis.detectors.owner_history import Handover, OwnerHistory
from exhume.analysis.memberships import Member, Membership, TopicPartition

_PARTITIONS = [("orders", number) for number in range(4)]


def _step(rng: random.Random, offset: int) -> Membership:
    members = {}
    for name in rng.sample("abc", rng.randint(0, 3)):
        owned = tuple(rng.sample(_PARTITIONS, rng.randint(0, 3)))
        members[name] = Member(name, client_id=str(offset), assigned=owned)
    return Membership(None, 0, "g", "classic", offset, offset, offset, "0.log", 0, members)


def _owner(step: Membership, partition: TopicPartition) -> Member | None:
    owners = step.owners().get(partition, [])
    return owners[0] if len(owners) == 1 else None


def _walk_back(steps: list[Membership], partition: TopicPartition) -> Handover | None:
    owner, since = _owner(steps[-1], partition), steps[-1]
    for step in reversed(steps[:-1]):
        earlier = _owner(step, partition)
        if earlier is not None and (owner is None or earlier.member_id != owner.member_id):
            return Handover(since, owner, earlier, step)
        if earlier is not None or owner is None:
            since = step
    return None


@pytest.mark.parametrize("seed", range(30))
def test_handovers_equal_those_of_a_search_back_through_the_steps(seed: int) -> None:
    rng = random.Random(seed)
    steps = [_step(rng, offset) for offset in range(25)]
    history = OwnerHistory(steps)

    for number in range(len(steps)):
        for partition in _PARTITIONS:
            walked = _walk_back(steps[: number + 1], partition)
            at = int(history.steps_of_handovers([partition], np.array([0]), np.array([number]))[0])
            assert history.handover(partition, number) == walked
            assert (steps[at] if at >= 0 else None) == (walked and walked.step)


def test_a_partition_without_a_step_has_no_owner() -> None:
    assert OwnerHistory([]).handover(("orders", 0), 3) is None
    assert OwnerHistory([]).steps_of_handovers([("orders", 0)], np.array([0]), np.array([3])).tolist() == [-1]
