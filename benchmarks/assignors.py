"""exhume's assignors beside Kafka's own classes, warm, on 50,000 partitions and 100 members.

A target of the coordinator has its partitions by topic, in exhume as in Kafka: the time to list them as pairs is not in the table.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.measuring import say
from benchmarks.report import machine, table
from exhume.analysis.assignors import GroupSpec, MemberSpec, TopicPartition, Variant, variants_of

RELEASE = "4.3.0"
_ROOT = Path(__file__).resolve().parents[1]
_DRIVER = Path(__file__).with_name("rivals") / "AssignorTimes.java"
_TOPICS = {f"topic-{number}": 500 for number in range(100)}
#: No member owns a partition; five of 100 members are new; no two neighbours subscribe to the same topics.
QUESTIONS = ("fresh", "again", "unequal")


def run(*, repetitions: int) -> int:
    """Measure, and print the table. The exit status: 1 where Java or the jars of the release are missing."""
    jars = Path(os.environ.get("EXHUME_JARS") or _ROOT / ".jars") / RELEASE
    try:
        command = ["java", "-cp", f"{jars}/*", str(_DRIVER)]
        printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        say(f"Kafka's classes do not run: {error}. They need a JDK of 17 or later, and the jars of: make jars")
        return 1
    theirs = {tuple(words[:3]): float(words[3]) for line in printed.splitlines() if len(words := line.split()) == 4}
    rows = [
        (variant.title, question, f"{ours * 1e3:.1f} ms", f"{kafka * 1e3:.1f} ms", f"{ours / kafka:.1f} ×")
        for variant, question, ours, kafka in _measured(theirs, repetitions)
    ]
    heads = ("assignor", "question", "exhume", f"Kafka {RELEASE}", "exhume against Kafka")
    sys.stdout.write("\n".join([table(heads, rows), "", *machine(), ""]))
    return 0


def _measured(theirs: Mapping[tuple[str, ...], float], repetitions: int) -> Iterator[tuple[Variant, str, float, float]]:
    """Yield the fastest run of each newest version, in processor seconds, beside that of Kafka's class."""
    for side in ("client", "consumer", "share"):
        newest = {variant.assignor: variant for variant in variants_of(side)}
        for variant in newest.values():
            before: Mapping[str, Sequence[TopicPartition]] = {}
            for question in QUESTIONS:
                if (kafka := theirs.get((side, variant.assignor, question))) is None:
                    continue
                spec = _question(question, before)
                times = []
                for _ in range(repetitions):
                    start = time.process_time()
                    plan = variant.run(spec)
                    times.append(time.process_time() - start)
                if question == "fresh":
                    before = plan.assigned
                yield variant, question, min(times), kafka


def _question(question: str, before: Mapping[str, Sequence[TopicPartition]]) -> GroupSpec:
    chance = random.Random(1)
    ids = [str(uuid.UUID(int=chance.getrandbits(128))) for _ in range(105)]
    topic_ids = {topic: chance.getrandbits(128).to_bytes(16, "big") for topic in _TOPICS}
    members: Sequence[str] = ids[5:] if question == "again" else ids[:100]
    return GroupSpec(
        [
            MemberSpec(
                member_id,
                tuple(topic for other, topic in enumerate(_TOPICS) if question != "unequal" or (other + number) % 7),
                owned=tuple(before.get(member_id, ())),
                field_generation=3,
            )
            for number, member_id in enumerate(members)
        ],
        _TOPICS,
        topic_ids=topic_ids,
    )
