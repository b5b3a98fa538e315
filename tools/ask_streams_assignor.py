#!/usr/bin/env python3
"""Ask Kafka's own StickyTaskAssignor (the streams groups' `sticky`) about invented groups, and write its answers as test vectors.

    tools/ask_streams_assignor.py --class-path 4.4.0='.jars/4.4.0/*' --class-path 4.3.0='.jars/4.3.0/*' --output vectors.jsonl.gz

The first release decides each step: its answer is what the members have in the next step. The others are asked the same questions. Needs a
JDK 17 or later. Each class path needs kafka-group-coordinator, kafka-clients, slf4j-api and jackson-databind.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

Question = dict[str, Any]
Tasks = dict[str, list[int]]

_DRIVER = Path(__file__).with_name("assignors") / "AskSticky.java"


class Release:
    """The assignor of one release, in a Java process of its own."""

    def __init__(self, name: str, class_path: str, stack: ExitStack) -> None:
        self.name = name
        command = ["java", "-cp", class_path, str(_DRIVER)]
        self._java = stack.enter_context(
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8")
        )

    def ask(self, question: Question) -> dict[str, Any]:
        """Return its answer; raises RuntimeError if the process ended."""
        assert self._java.stdin is not None
        assert self._java.stdout is not None
        self._java.stdin.write(json.dumps(question) + "\n")
        self._java.stdin.flush()
        line = self._java.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended at {question.get('case')}")
        answer: dict[str, Any] = json.loads(line)
        return answer


def chains(count: int, seed: int, *, with_offsets: bool) -> Iterator[Iterator[Question]]:
    """Yield groups. Each is a chain of questions; set `answer` of a question before the next one is taken."""
    for number in range(count):
        chance = random.Random(f"{seed} {number}")  # noqa: S311
        yield _chain(f"streams-{number:03}", chance, with_offsets=with_offsets)


def _chain(case: str, chance: random.Random, *, with_offsets: bool) -> Iterator[Question]:
    names = [str(number) for number in range(12)] if chance.random() < 0.8 else ["a", "b-sub", "Ünit", "c" * 20]
    topology = {
        name: {"partitions": chance.choice([1, 2, 3, 4, 6, 8, 12, 20]), "stateful": chance.random() < 0.6}
        for name in chance.sample(names, chance.randint(1, 4))
    }
    processes = [str(_uuid(chance)) for _ in range(chance.randint(1, 9))]
    members = [_member(chance, processes) for _ in range(chance.choice([1, 2, 3, 4, 5, 8, 13, 25]))]
    replicas = chance.choice([0, 0, 1, 1, 2, 3])
    for step in range(chance.randint(2, 7)):
        config = {"num.standby.replicas": replicas}
        question = {"case": case, "step": step, "config": config, "topology": topology, "members": [dict(member) for member in members]}
        yield question
        answer = question.pop("answer")
        for member in members:
            if chance.random() < 0.85:
                # Otherwise it still has what it had before.
                member.update({"active": {}, "standby": {}} | answer.get(member["id"], {}))
            member.pop("offsets", None)
            if with_offsets and chance.random() < 0.5:
                member["offsets"] = _offsets(chance, topology)
        members, replicas = _changed(chance, members, processes, replicas)
        if chance.random() < 0.15:
            name = chance.choice(list(topology))
            topology = topology | {name: topology[name] | {"partitions": chance.choice([1, 2, 5, 9, 16])}}


def _changed(chance: random.Random, members: list[Question], processes: list[str], replicas: int) -> tuple[list[Question], int]:
    event = chance.random()
    if event < 0.4:
        members = [*members, *(_member(chance, processes) for _ in range(chance.randint(1, 3)))]
    elif event < 0.7 and len(members) > 1:
        members = chance.sample(members, len(members) - chance.randint(1, max(1, len(members) // 3)))
    elif event < 0.8:
        replicas = chance.choice([0, 1, 2])
    elif event < 0.9 and len(members) > 1:
        gone = chance.choice(members)["process"]
        members = [member for member in members if member["process"] != gone] or members[:1]
    return members, replicas


def _member(chance: random.Random, processes: list[str]) -> Question:
    if chance.random() < 0.3:
        processes.append(str(_uuid(chance)))
    return {"id": str(_uuid(chance)), "process": chance.choice(processes)}


def _offsets(chance: random.Random, topology: dict[str, Any]) -> dict[str, dict[str, int]]:
    """Return offsets that a member reports: of tasks whose state it has on its disk."""
    found: dict[str, dict[str, int]] = {}
    for name, subtopology in topology.items():
        for number in range(subtopology["partitions"]):
            if subtopology["stateful"] and chance.random() < 0.4:
                found.setdefault(name, {})[str(number)] = chance.choice([0, 5, 100, 100, 2**40])
    return found


def _uuid(chance: random.Random) -> uuid.UUID:
    return uuid.UUID(int=chance.getrandbits(128), version=4)


def write(releases: list[Release], count: int, seed: int, path: Path, *, with_offsets: bool) -> int:
    """Write the questions with the answers of all releases; returns how many."""
    total = 0
    with gzip.GzipFile(path, "wb", mtime=0) as file:
        for chain in chains(count, seed, with_offsets=with_offsets):
            for question in chain:
                answers = {release.name: release.ask(question) for release in releases}
                first = answers[releases[0].name]
                line: Question = {"release": releases[0].name, "assignor": "sticky"} | question
                line["same"] = [name for name, answer in answers.items() if answer == first]
                line["result"] = first
                line["others"] = [{"releases": [name], "result": answer} for name, answer in answers.items() if answer != first]
                file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
                question["answer"] = first
                total += 1
    return total


def main() -> int:
    """Ask, and write what was answered; returns the exit status."""
    parser = argparse.ArgumentParser(description="Ask Kafka's own StickyTaskAssignor about invented streams groups.")
    parser.add_argument(
        "--class-path", action="append", required=True, metavar="RELEASE=PATH", help="the jars of a release; the first decides"
    )
    parser.add_argument("--groups", type=int, default=200, help="the number of groups (default: 200)")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other groups (default: 1)")
    parser.add_argument("--offsets", action="store_true", help="members report task offsets, which 4.4 reads")
    parser.add_argument("--output", type=Path, required=True, help="the file to write, .jsonl.gz")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        releases = [Release(*text.split("=", 1), stack) for text in arguments.class_path]
        total = write(releases, arguments.groups, arguments.seed, arguments.output, with_offsets=arguments.offsets)
    sys.stdout.write(f"{total} questions in {arguments.output}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
