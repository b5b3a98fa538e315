"""Questions that Kafka's own assignor classes were asked, and their answers."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exhume.analysis.assignors import GroupSpec, MemberSpec, TopicPartition

#: Member -> topic -> partitions; members and topics without any are left out.
ByTopic = dict[str, dict[str, list[int]]]


@dataclass(frozen=True)
class Answer:
    """What these releases answer: partitions, or the name of the exception. `is_ordered`: in the order of the list."""

    releases: frozenset[str]
    assigned: ByTopic | None
    exception: str | None
    is_ordered: bool
    withheld: ByTopic | None = None


@dataclass(frozen=True)
class Vector:
    """A question and every answer to it. `side` and `assignor` as in the table of variants."""

    name: str
    side: str
    assignor: str
    spec: GroupSpec
    answers: list[Answer]


def read_vectors(path: Path) -> Iterator[Vector]:
    """The vectors of one file of the collection."""
    side = "client" if path.name.startswith("client-") else "share" if "-simple-" in path.name else "consumer"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            asked = json.loads(line)
            yield Vector(
                f"{asked['case']}/{asked['step']}", side, asked["assignor"], _question(asked), list(_answers(asked, lists=side == "client"))
            )


def by_topic(assigned: Mapping[str, Sequence[TopicPartition]], *, ordered: bool) -> ByTopic:
    """A plan as the collection writes answers."""
    listed: ByTopic = {}
    for member_id, partitions in assigned.items():
        for topic, partition in partitions:
            listed.setdefault(member_id, {}).setdefault(topic, []).append(partition)
    return listed if ordered else _as_sets(listed)


def _as_sets(listed: ByTopic) -> ByTopic:
    return {member_id: {topic: sorted(numbers) for topic, numbers in topics.items()} for member_id, topics in listed.items()}


def _without_empty(listed: ByTopic) -> ByTopic:
    kept = {member_id: {topic: numbers for topic, numbers in topics.items() if numbers} for member_id, topics in listed.items()}
    return {member_id: topics for member_id, topics in kept.items() if topics}


def _answers(asked: dict[str, Any], *, lists: bool) -> Iterator[Answer]:
    of_driver = {"releases": asked["same"], "result": asked.get("result"), "error": asked.get("error")}
    for number, entry in enumerate([of_driver, *asked.get("others", ())]):
        releases = frozenset(entry["releases"])
        if entry.get("error"):
            yield Answer(releases, None, entry["error"].split(":")[0].rpartition(".")[2], is_ordered=False)
            continue
        assigned = _without_empty(entry["result"])
        withheld = asked.get("withheld") if number == 0 else None
        if number == 0 and lists:
            # The order is that of the driver; others of the same era list alike.
            yield Answer(frozenset([asked["release"]]), assigned, None, is_ordered=True, withheld=_as_sets(withheld) if withheld else None)
        yield Answer(releases, _as_sets(assigned), None, is_ordered=False)


def _question(asked: dict[str, Any]) -> GroupSpec:
    topics = asked["topics"]
    ids = {topic: _uuid(text) for topic, text in asked.get("topic_ids", {}).items()}
    members = [_member(entry, asked["assignor"]) for entry in asked["members"]]
    ids |= {topic: _uuid(topic[3:]) for member in members for topic, _ in member.owned if topic.startswith("id=")}
    return GroupSpec(
        members,
        {topic: size if isinstance(size, int) else len(size) for topic, size in topics.items()},
        {topic: tuple(frozenset(filter(None, racks)) for racks in size) for topic, size in topics.items() if not isinstance(size, int)},
        ids,
        asked.get("assignable"),
    )


def _uuid(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "==")


def _member(entry: dict[str, Any], assignor: str) -> MemberSpec:
    generation = entry.get("generation")
    user_data = bytes.fromhex(entry.get("user_data_hex") or "")
    user_data_generation = entry.get("user_data_generation")
    if assignor == "cooperative-sticky" and user_data:
        user_data_generation = int.from_bytes(user_data[:4], "big", signed=True)
    return MemberSpec(
        entry["id"],
        tuple(entry["topics"]),
        entry["instance"],
        # Racks are in the bytes since version 3 of the subscription.
        entry["rack"] if entry.get("version", 3) >= 3 else None,
        tuple((topic, partition) for topic, partitions in entry.get("owned", {}).items() for partition in partitions),
        generation if generation is not None and generation >= 0 else None,
        user_data_generation,
        bool(user_data),
    )
