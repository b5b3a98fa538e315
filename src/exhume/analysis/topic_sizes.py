"""How many partitions a topic has, and on which racks they lie, as far as anybody says.

The offsets topic hardly ever says it outright. Where a count comes from decides what may be concluded from it:

    record        the coordinator's own metadata of the group's topics (record types 4 and 9, written by 3.7 to 4.0): as it was then
    topics_file   what the user says (`--topics`): as it is now
    assignment    a plan that leaves no gap from partition 0 on: the leader's count, unless partitions at the top were given to nobody
    at_least      partitions that somebody spoke of: the topic has these, and maybe more

Racks are known from records and from the topics file only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Literal

from exhume.replay.topic_names import MOST_PARTITIONS, Topic

Basis = Literal["record", "topics_file", "assignment", "at_least"]
#: The racks of every partition's replicas, by partition; an empty set where none is known.
PartitionRacks = tuple[frozenset[str], ...]


@dataclass(frozen=True, slots=True)
class TopicSize:
    """The size of one topic.

    Attributes:
        topic: its name.
        partition_count: how many partitions; the least number where `basis` is at_least.
        basis: who says so.
        seen_count: 1 + the highest partition that a commit or an assignment speaks of, of those that can be; 0 for none. More than
            `partition_count` where a topic was made anew with fewer partitions, or the one who counted is out of date.
        racks: by partition; None where nobody says.
        record_offset: the record that says it, where a record does.
    """

    topic: str
    partition_count: int
    basis: Basis
    seen_count: int = 0
    racks: PartitionRacks | None = None
    record_offset: int | None = None

    @property
    def is_exact(self) -> bool:
        """True where the count is said, not inferred."""
        return self.basis in ("record", "topics_file")

    def sentence(self) -> str:
        """The count and who says it, for people."""
        match self.basis:
            case "record":
                return f"{self.topic} has {self.partition_count} partitions (record offset {self.record_offset})"
            case "topics_file":
                return f"{self.topic} has {self.partition_count} partitions (topics file)"
            case "assignment":
                return f"{self.topic} has {self.partition_count} partitions, if none at the top was left out"
            case "at_least":
                return f"{self.topic} has at least {self.partition_count} partitions"


class TopicSizes:
    """What is known of topic sizes. Later records override earlier ones; `of` says which source wins."""

    def __init__(self, topics: Iterable[Topic] = ()) -> None:
        self._file = {topic.topic: topic for topic in topics if topic.partition_count is not None}
        self._records: dict[str, TopicSize] = {}
        self._by_group: dict[str, dict[str, TopicSize]] = {}
        self._planned: dict[str, int] = {}
        self._seen: dict[str, int] = {}

    def learn_record(self, group: str, topics: Iterable[Mapping[str, Any]] | None, record_offset: int | None) -> None:
        """Take up what a record of type 4 or 9 says: its `topics`, as decoded. None (a tombstone) forgets what was said of this group."""
        if topics is None:
            self._by_group.pop(group, None)
            return
        sizes = {topic["topic"]: _size_of_record(topic, record_offset) for topic in topics if is_plausible(topic["partition_count"])}
        self._by_group[group] = sizes
        self._records.update(sizes)

    def learn_plans(self, plans: Sequence[AbstractSet[tuple[str, int]]]) -> None:
        """Take up plans that leave nothing out, in order: all (topic, partition) pairs that one leader or coordinator gave away at a time.

        Of each topic that plan counts which was the last one to have it.
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
        """Somebody spoke of this partition; a number that no topic reaches says nothing."""
        if partition >= self._seen.get(topic, 0) and is_plausible(partition + 1):
            self._seen[topic] = partition + 1

    def covers(self, group: str) -> bool:
        """True where a record says which of this group's topics exist: those that it leaves out do not."""
        return group in self._by_group

    def is_in_record_of(self, group: str, topic: str) -> bool:
        """True where the latest record of this group has the topic."""
        return topic in self._by_group.get(group, {})

    def of(self, topic: str, group: str | None = None) -> TopicSize | None:
        """The size of this topic; None where nothing is known.

        First the record of this group, then the topics file, a record of any group, a plan, and what was seen.
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
        """Every topic of which something is known, by name."""
        return iter(sorted({*self._file, *self._records, *self._planned, *self._seen}))


def is_plausible(partition_count: int) -> bool:
    """False for more partitions than any topic has: records can name any number, and whoever counts up to it never ends."""
    return partition_count <= MOST_PARTITIONS


def _size_of_record(topic: Mapping[str, Any], record_offset: int | None) -> TopicSize:
    count = topic["partition_count"]
    listed = {entry["partition"]: frozenset(entry["racks"]) for entry in topic["partition_metadata"] or ()}
    racks = tuple(listed.get(partition, frozenset()) for partition in range(count)) if any(listed.values()) else None
    return TopicSize(topic["topic"], count, "record", racks=racks, record_offset=record_offset)
