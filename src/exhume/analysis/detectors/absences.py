"""Partitions that nobody had, though members subscribed to their topics: from which step of a group to which."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate

from exhume.analysis.member_columns import owned_sets_of
from exhume.analysis.memberships import Membership, TopicPartition


def absences(
    steps: Sequence[Membership], subscribed: Sequence[frozenset[str]], counts: Mapping[str, int]
) -> Iterator[tuple[int, int, Callable[[], dict[str, list[int]]]]]:
    """What was in nobody's assignment over the same steps: from the first one to the one that ended it, by their numbers, and what gives
    the partitions by their topics, both sorted. What is still so has the number of steps for its end. Those that ended first come first.

    `subscribed` are the topics of each step, `counts` their partitions.
    """
    places = _Places({topic: counts.get(topic, 0) for topic in sorted(frozenset().union(*subscribed))})
    expected = {topics: places.of_topics(topics) for topics in {*subscribed}}
    owned: dict[frozenset[TopicPartition], int] = {}
    #: What is missing now, by the number of the step since when.
    since: dict[int, int] = {}
    missing = 0
    for number, (step, topics) in enumerate(zip(steps, subscribed, strict=True)):
        had = 0
        for each in owned_sets_of(step):
            if each not in owned:
                owned[each] = places.of(each)
            had |= owned[each]
        before, missing = missing, expected[topics] & ~had
        if ended := before & ~missing:
            for first, those in [*since.items()]:
                if gone := those & ended:
                    yield first, number, partial(places.by_topic, gone)
                    since[first] = those & missing
                    if not since[first]:
                        del since[first]
        if new := missing & ~before:
            since[number] = new
    for first, those in since.items():
        yield first, len(steps), partial(places.by_topic, those)


class _Places:
    """Partitions of topics as numbers: one bit for each, in their order."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        self._size_bytes = sum(counts.values()) // 8 + 1
        #: Where the partitions of each topic begin, and end.
        self._spans = {topic: (end - count, end) for (topic, count), end in zip(counts.items(), accumulate(counts.values()), strict=True)}

    def of_topics(self, topics: Iterable[str]) -> int:
        """All partitions of these."""
        return sum((1 << end) - (1 << start) for start, end in map(self._spans.__getitem__, topics))

    def of(self, partitions: Iterable[TopicPartition]) -> int:
        """These partitions, but for those that their topics do not have."""
        bits = bytearray(self._size_bytes)
        for topic, partition in partitions:
            start, end = self._spans.get(topic, (0, 0))
            if 0 <= partition < end - start:
                place = start + partition
                bits[place >> 3] |= 1 << (place & 7)
        return int.from_bytes(bits, "little")

    def by_topic(self, bits: int) -> dict[str, list[int]]:
        """The partitions again."""
        found = {}
        for topic, (start, end) in self._spans.items():
            if own := bits >> start & (1 << end - start) - 1:
                digits, partitions = f"{own:b}"[::-1], []
                partition = digits.find("1")
                while partition >= 0:
                    partitions.append(partition)
                    partition = digits.find("1", partition + 1)
                found[topic] = partitions
        return found
