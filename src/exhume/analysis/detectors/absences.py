"""Find partitions that no member owned although members subscribed to their topics, step by step of a group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate

from exhume.analysis.member_columns import owned_sets_of
from exhume.analysis.memberships import Membership, TopicPartition


def absences(
    steps: Sequence[Membership], subscribed: Sequence[frozenset[str]], counts: Mapping[str, int]
) -> Iterator[tuple[int, int, Callable[[], dict[str, list[int]]]]]:
    """Yield each absence: the number of its first step, the number of the step that ended it, and a function that returns its partitions.

    An absence is a set of partitions that no assignment contained over the same steps. The function returns partitions by topic, both
    sorted. The end of an absence that still holds is the number of steps. Absences that ended first come first.

    Args:
        steps: The memberships of the group, in order.
        subscribed: The subscribed topics of each step.
        counts: The partition count of each topic.
    """
    bits = _PartitionBits({topic: counts.get(topic, 0) for topic in sorted(frozenset().union(*subscribed))})
    expected = {topics: bits.of_topics(topics) for topics in {*subscribed}}
    owned: dict[frozenset[TopicPartition], int] = {}
    #: The partitions that are missing now, by the number of the step that removed them.
    since: dict[int, int] = {}
    missing = 0
    for number, (step, topics) in enumerate(zip(steps, subscribed, strict=True)):
        had = 0
        for each in owned_sets_of(step):
            if each not in owned:
                owned[each] = bits.of(each)
            had |= owned[each]
        before, missing = missing, expected[topics] & ~had
        if ended := before & ~missing:
            for first, those in [*since.items()]:
                if gone := those & ended:
                    yield first, number, partial(bits.by_topic, gone)
                    since[first] = those & missing
                    if not since[first]:
                        del since[first]
        if new := missing & ~before:
            since[number] = new
    for first, those in since.items():
        yield first, len(steps), partial(bits.by_topic, those)


class _PartitionBits:
    """Sets of partitions as integers: one bit for each partition, in order of topic and partition."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        self._size_bytes = sum(counts.values()) // 8 + 1
        #: The first bit of each topic, and the bit after its last one.
        self._spans = {topic: (end - count, end) for (topic, count), end in zip(counts.items(), accumulate(counts.values()), strict=True)}

    def of_topics(self, topics: Iterable[str]) -> int:
        """Return all partitions of these topics."""
        return sum((1 << end) - (1 << start) for start, end in map(self._spans.__getitem__, topics))

    def of(self, partitions: Iterable[TopicPartition]) -> int:
        """Return these partitions, without those that their topics do not have."""
        bits = bytearray(self._size_bytes)
        for topic, partition in partitions:
            start, end = self._spans.get(topic, (0, 0))
            if 0 <= partition < end - start:
                bit = start + partition
                bits[bit >> 3] |= 1 << (bit & 7)
        return int.from_bytes(bits, "little")

    def by_topic(self, bits: int) -> dict[str, list[int]]:
        """Return the partitions of these bits by topic."""
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
