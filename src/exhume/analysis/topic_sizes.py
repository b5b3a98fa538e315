"""The partition counts of topics and their racks, as far as a source states or implies them.

The offsets topic hardly ever has a count. The source of a count decides how certain conclusions are:

    record        the coordinator's own metadata of the group's topics (record types 4 and 9, written by 3.7 to 4.0): the count then
    topics_file   the user's file (`--topics`): the count now
    assignment    a plan without a gap from partition 0 on: the leader's count, unless the highest partitions were assigned to no member
    at_least      partitions named by a commit or a plan: the topic has these, and maybe more

Racks are known from records and from the topics file only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Literal

from exhume.replay.topic_names import MOST_PARTITIONS, Topic

Basis = Literal["record", "topics_file", "assignment", "at_least"]
#: The racks of every partition's replicas, by partition; an empty set if none is known.
PartitionRacks = tuple[frozenset[str], ...]


@dataclass(frozen=True, slots=True)
class TopicSize:
    """The size of one topic.

    Attributes:
        topic: its name.
        partition_count: the number of partitions; the least number if `basis` is at_least.
        basis: the source of the count.
        seen_count: 1 + the highest plausible partition of a commit or an assignment; 0 for none. It exceeds `partition_count` if the topic
            was created again with fewer partitions, or if the source is out of date.
        racks: by partition; None if no source has them.
        record_offset: the record that has the count, if a record has it.
    """

    topic: str
    partition_count: int
    basis: Basis
    seen_count: int = 0
    racks: PartitionRacks | None = None
    record_offset: int | None = None

    @property
    def is_exact(self) -> bool:
        """True if a source states the count; False if it is inferred."""
        return self.basis in ("record", "topics_file")

    def sentence(self) -> str:
        """Return the count and its source as a sentence."""
        match self.basis:
            case "record":
                return f"{self.topic} has {self.partition_count} partitions (record offset {self.record_offset})"
            case "topics_file":
                return f"{self.topic} has {self.partition_count} partitions (topics file)"
            case "assignment":
                return f"{self.topic} has {self.partition_count} partitions, unless higher ones are not assigned"
            case "at_least":
                return f"{self.topic} has at least {self.partition_count} partitions"


class TopicSizes:
    """The known topic sizes. Later records override earlier ones; `of` decides which source wins."""

    def __init__(self, topics: Iterable[Topic] = ()) -> None:
        self._file = {topic.topic: topic for topic in topics if topic.partition_count is not None}
        self._records: dict[str, TopicSize] = {}
        self._by_group: dict[str, dict[str, TopicSize]] = {}
        self._planned: dict[str, int] = {}
        self._seen: dict[str, int] = {}

    def learn_record(self, group: str, topics: Iterable[Mapping[str, Any]] | None, record_offset: int | None) -> None:
        """Take the `topics` of a record of type 4 or 9, as decoded. None (a tombstone) forgets the topics of this group."""
        if topics is None:
            self._by_group.pop(group, None)
            return
        sizes = {topic["topic"]: _size_of_record(topic, record_offset) for topic in topics if is_plausible(topic["partition_count"])}
        self._by_group[group] = sizes
        self._records.update(sizes)

    def learn_plans(self, plans: Sequence[AbstractSet[tuple[str, int]]]) -> None:
        """Take plans that assign every partition, in order: all (topic, partition) pairs that one leader or coordinator assigned at a time.

        For each topic the last plan that has it counts.
        """
        left: dict[str, None] = {}
        for topic, partition in frozenset[tuple[str, int]]().union(*plans):
            self.saw(topic, partition)
            left[topic] = None
        for plan in reversed(plans):
            if not left:
                return
            by_topic: dict[str, list[int]] = {}
            for topic, partition in plan:
                if topic in left:
                    by_topic.setdefault(topic, []).append(partition)
            for topic, numbers in by_topic.items():
                del left[topic]
                if max(numbers) == len(numbers) - 1:
                    self._planned[topic] = len(numbers)
                else:
                    self._planned.pop(topic, None)

    def saw(self, topic: str, partition: int) -> None:
        """Note that a record names this partition. A number that no topic reaches is ignored."""
        if partition >= self._seen.get(topic, 0) and is_plausible(partition + 1):
            self._seen[topic] = partition + 1

    def covers(self, group: str) -> bool:
        """True if a record lists the existing topics of this group: topics not in it do not exist."""
        return group in self._by_group

    def is_in_record_of(self, group: str, topic: str) -> bool:
        """True if the latest record of this group has the topic."""
        return topic in self._by_group.get(group, {})

    def of(self, topic: str, group: str | None = None) -> TopicSize | None:
        """Return the size of this topic; None if it is not known.

        The record of this group wins, then the topics file, a record of any group, a plan, and the highest partition seen.
        """
        seen_count = self._seen.get(topic, 0)
        said = self._by_group.get(group or "", {}).get(topic)
        if said is None and topic in self._file:
            entry = self._file[topic]
            assert entry.partition_count is not None
            return TopicSize(topic, entry.partition_count, "topics_file", seen_count, entry.racks)
        said = said or self._records.get(topic)
        if said is not None:
            return TopicSize(topic, said.partition_count, "record", seen_count, said.racks, said.record_offset)
        planned = self._planned.get(topic)
        if planned is not None and planned == seen_count:
            return TopicSize(topic, planned, "assignment", seen_count)
        return TopicSize(topic, seen_count, "at_least", seen_count) if seen_count else None

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the topics with a known size."""
        return iter(sorted({*self._file, *self._records, *self._planned, *self._seen}))


def is_plausible(partition_count: int) -> bool:
    """Return False for more partitions than any topic has. Records can have any number, and a loop up to it would never end."""
    return partition_count <= MOST_PARTITIONS


def _size_of_record(topic: Mapping[str, Any], record_offset: int | None) -> TopicSize:
    count = topic["partition_count"]
    listed = {entry["partition"]: frozenset(entry["racks"]) for entry in topic["partition_metadata"] or ()}
    racks = tuple(listed.get(partition, frozenset()) for partition in range(count)) if any(listed.values()) else None
    return TopicSize(topic["topic"], count, "record", racks=racks, record_offset=record_offset)
