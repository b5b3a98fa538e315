"""The assignments of groups in log order, each judged with the facts known when it was made."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from exhume.analysis.assignment.inputs import TopicFacts
from exhume.analysis.assignment.runs import Expectation
from exhume.analysis.assignment.verdicts import Check, check_group, empty_check, is_round
from exhume.analysis.memberships import Membership
from exhume.analysis.topic_sizes import TopicSizes
from exhume.codecs.record_types import RECORD_TYPES, role_of
from exhume.codecs.wire import parse_uuid
from exhume.errors import EncodeError
from exhume.replay.topic_names import Topic, TopicNames, tells_topic_names


def topic_records() -> list[str]:
    """Return the names of the record types that give partition counts of topics, or the partitions that share groups can use."""
    return [row.name for row in RECORD_TYPES.values() if tells_topic_names(row.number)]


@dataclass(slots=True)
class FactsOverTime:
    """The facts about topics at each record of the log.

    Attributes:
        topics: the topics of a topics file.
        rows: the rows of the typed tables of `topic_records`, in any order.
        names: the names of topic ids. They are read late, because reading records adds names.
    """

    topics: Collection[Topic]
    rows: Iterable[Mapping[str, Any]]
    names: TopicNames
    _sizes: dict[tuple[Any, ...], TopicSizes] = field(default_factory=dict)
    _assignable: dict[tuple[Any, ...], Mapping[str, list[int]]] = field(default_factory=dict)
    _waiting: dict[tuple[Any, ...], list[Mapping[str, Any]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for row in sorted(self.rows, key=lambda row: row["record_offset"], reverse=True):
            self._waiting.setdefault((row["replica"], row["offsets_partition"]), []).append(row)

    def at(self, step: Membership) -> TopicFacts:
        """Return the facts at the end of this step. Call with the steps of a partition in log order."""
        sizes = self._sizes.setdefault(step.origin, TopicSizes(self.topics))
        waiting = self._waiting.get(step.origin, [])
        while waiting and waiting[-1]["record_offset"] <= step.last_record_offset:
            self._take(waiting.pop(), sizes)
        ids = self._named_ids() if step.kind != "classic" else {}
        names = frozenset(ids)
        return TopicFacts(sizes, ids | _bare_ids(step, names), names, self._assignable.get((*step.origin, step.group)))

    def _take(self, row: Mapping[str, Any], sizes: TopicSizes) -> None:
        if role_of(row["record_type"]) == "share_state":
            slot = (row["replica"], row["offsets_partition"], row["group"])
            if row["is_tombstone"]:
                self._assignable.pop(slot, None)
            else:
                self._assignable[slot] = {topic["topic"]: topic["partitions"] for topic in row["initialized"] or ()}
        elif row["is_tombstone"] or row["topics"] is not None:
            sizes.learn_record(row["group"], row["topics"], row["record_offset"])

    def _named_ids(self) -> dict[str, bytes]:
        ids = {topic.topic: parse_uuid(topic.topic_id) for topic in self.topics if topic.topic_id is not None}
        return ids | {topic: parse_uuid(topic_id) for topic, topic_id in self.names.ids().items()}


def _bare_ids(step: Membership, names: Collection[str]) -> dict[str, bytes]:
    """Return the ids of topics in targets that have no name: their id serves as their name."""
    ids = {}
    if step.kind != "classic":
        for topic in {topic for member in step.members.values() for topic, _ in member.target or ()}.difference(names):
            with suppress(EncodeError):
                ids[topic] = parse_uuid(topic)
    return ids


def rounds(steps: Iterable[Membership], facts: FactsOverTime) -> Iterator[tuple[Membership, Membership | None, TopicFacts]]:
    """Yield every step that gave a group a new assignment, the step before it, and the facts known then."""
    before: dict[tuple[Any, ...], Membership] = {}
    for step in steps:
        slot = (*step.origin, step.group)
        known = facts.at(step)
        if is_round(step, before.get(slot)):
            yield step, before.get(slot), known
        before[slot] = step


def check_every(steps: Iterable[Membership], facts: FactsOverTime, wanted: Expectation) -> list[Check]:
    """Check every assignment of every group, in log order."""
    return [check_group(step, before, known, wanted) for step, before, known in rounds(steps, facts)]


def check_latest(steps: Iterable[Membership], facts: FactsOverTime, wanted: Expectation, *, with_empty: bool = False) -> list[Check]:
    """Check the last assignment of each group, sorted by group. `with_empty` adds the groups without members."""
    latest: dict[tuple[Any, ...], Membership] = {}

    def noted() -> Iterator[Membership]:
        for step in steps:
            latest[*step.origin, step.group] = step
            yield step

    found = {(*step.origin, step.group): (step, before, known) for step, before, known in rounds(noted(), facts)}
    checks = []
    for slot, step in sorted(latest.items(), key=lambda item: (item[1].group, str(item[0]))):
        if slot in found and step.members and not step.is_tombstone:
            of_round, before, known = found[slot]
            checks.append(check_group(of_round, before, known, wanted, latest=step))
        elif with_empty:
            checks.append(empty_check(step))
    return checks
