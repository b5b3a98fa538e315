"""Every version of `sticky` for streams groups gives the answers of Kafka's own classes; that of 4.1 gives them as far as chance allows."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from exhume.analysis.assignors import STREAMS_VARIANTS, StreamsAssignment, StreamsGroup, StreamsMember
from exhume.analysis.assignors.streams import Task
from exhume.analysis.assignors.streams_4_1 import can_be_of_4_1
from tests import bundled
from tests.compared import Compared
from tests.judges import corpus

BUNDLED = bundled.PACKED / "assignors"


def questions(directory: Path) -> Iterator[tuple[str, StreamsGroup, list[tuple[frozenset[str], StreamsAssignment]]]]:
    """The name of each question, the group, and the releases with each answer."""
    for path in sorted(directory.glob("server-streams-sticky-*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                asked = json.loads(line)
                answers = [{"releases": asked["same"], "result": asked["result"]}, *asked.get("others", ())]
                yield (
                    f"{path.name} {asked['case']}/{asked['step']}",
                    group_of(asked),
                    [(frozenset(each["releases"]), answer_of(each["result"])) for each in answers],
                )


def group_of(asked: dict[str, Any]) -> StreamsGroup:
    topology = asked["topology"]
    members = [
        StreamsMember(
            each["id"],
            each["process"],
            tasks(each.get("active")),
            tasks(each.get("standby")),
            {(name, int(number)): offset for name, found in each.get("offsets", {}).items() for number, offset in found.items()},
        )
        for each in asked["members"]
    ]
    counts = {name: each["partitions"] for name, each in topology.items()}
    return StreamsGroup(
        members, counts, frozenset(name for name in topology if topology[name]["stateful"]), asked["config"]["num.standby.replicas"]
    )


def answer_of(result: dict[str, Any]) -> StreamsAssignment:
    active, standby = (
        {member_id: sorted(tasks(given.get(role))) for member_id, given in result.items() if given.get(role)}
        for role in ("active", "standby")
    )
    return StreamsAssignment(active, standby)


def tasks(listed: dict[str, list[int]] | None) -> tuple[Task, ...]:
    return tuple((name, number) for name, numbers in (listed or {}).items() for number in numbers)


def run(directory: Path, compared: Compared) -> Counter[str]:
    counts: Counter[str] = Counter()
    for name, group, answers in questions(directory):
        for variant in STREAMS_VARIANTS:
            for releases, answer in answers:
                if releases.intersection(variant.asked):
                    assert variant.run(group, answer) == answer, (variant.releases, name)
                    counts[variant.releases] += 1
                    compared["answers", "streams sticky"] += 1
    return counts


def test_answers_are_those_of_kafkas_own_classes(compared: Compared) -> None:
    assert set(run(BUNDLED, compared)) == {variant.releases for variant in STREAMS_VARIANTS}


@pytest.mark.corpus
@pytest.mark.skipif(corpus.WHOLE is None, reason="EXHUME_CORPUS does not name a larger set of logs")
def test_hundreds_of_answers_are_those_of_kafkas_own_classes(compared: Compared) -> None:
    assert corpus.WHOLE is not None
    assert sum(run(corpus.WHOLE / "assignors", compared).values()) > 1000


def test_chance_does_not_explain_every_assignment() -> None:
    """4.1 cannot give its own answer with two tasks of different members exchanged, where each was kept from before."""
    refused = Counter[bool]()
    for _, group, answers in questions(BUNDLED):
        for releases, answer in answers:
            before = {task: member.member_id for member in group.members for task in member.active}
            kept = [task for member_id, held in answer.active.items() for task in held if before.get(task) == member_id]
            pair = next(((one, other) for one in kept for other in kept if before[one] < before[other]), None)
            if "4.1.2" in releases and pair is not None:
                swap = dict(zip(pair, reversed(pair), strict=True))
                exchanged = {member_id: sorted(swap.get(task, task) for task in held) for member_id, held in answer.active.items()}
                refused[not can_be_of_4_1(group, StreamsAssignment(exchanged, answer.standby))] += 1
    assert refused[True] > 10
    assert not refused[False]
