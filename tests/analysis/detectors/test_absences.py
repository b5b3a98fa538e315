"""Partitions without an owner, compared with a search of every step."""

from __future__ import annotations

import random

import pytest

from exhume.analysis.detectors.absences import absences
from exhume.analysis.memberships import Member, Membership, TopicPartition

_TOPICS = ("t", "u")
_COUNTS = {"t": 3, "u": 2}


def _step(rng: random.Random, offset: int) -> Membership:
    every = [(topic, partition) for topic in _TOPICS for partition in range(_COUNTS[topic] + 1)]
    members = {name: Member(name, assigned=tuple(rng.sample(every, rng.randint(0, 4)))) for name in ("a", "b")}
    return Membership(None, 0, "g", "classic", offset, offset, offset, "0.log", 0, members)


def _seen(steps: list[Membership], subscribed: list[frozenset[str]]) -> list[tuple[int, int, TopicPartition]]:
    """Return the first step, the step after the last one, and the partition, of each run of steps without it."""
    runs = []
    for topic in _TOPICS:
        for partition in range(_COUNTS[topic]):
            missing = [
                topic in topics and not any((topic, partition) in member.owned for member in step.members.values())
                for step, topics in zip(steps, subscribed, strict=True)
            ]
            bounds = [place for place in range(len(missing) + 1) if [False, *missing, False][place] != [False, *missing, False][place + 1]]
            runs += [(first, end, (topic, partition)) for first, end in zip(bounds[::2], bounds[1::2], strict=True)]
    return sorted(runs, key=lambda run: (run[1], run[0], run[2]))


@pytest.mark.parametrize("seed", range(20))
def test_what_is_missing_is_what_no_member_has(seed: int) -> None:
    rng = random.Random(seed)
    steps = [_step(rng, offset) for offset in range(rng.randint(0, 12))]
    subscribed = [frozenset(rng.sample(_TOPICS, rng.randint(0, 2))) for _ in steps]

    found = [(first, end, missed()) for first, end, missed in absences(steps, subscribed, _COUNTS)]

    told = [(first, end, (topic, each)) for first, end, missed in found for topic, partitions in missed.items() for each in partitions]
    assert told == _seen(steps, subscribed)
    assert len({(first, end) for first, end, _ in found}) == len(found)
