"""Partitions that nobody had, though members subscribed to their topics: from which step of a group to which."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from exhume.analysis.memberships import Membership, TopicPartition
from exhume.analysis.rosters import owned_sets_of


def absences(
    steps: Sequence[Membership], subscribed: Sequence[frozenset[str]], counts: Mapping[str, int]
) -> Iterator[tuple[int, int, list[TopicPartition]]]:
    """What was in nobody's assignment over the same steps: from the first one to the one that ended it, by their numbers, and the
    partitions, sorted. What is still so has the number of steps for its end. Those that ended first come first.

    `subscribed` are the topics of each step, `counts` their partitions.
    """
    names = sorted((topic, partition) for topic in frozenset().union(*subscribed) for partition in range(counts.get(topic, 0)))
    places = {name: place for place, name in enumerate(names)}
    expected = {topics: _bits_of((name for name in names if name[0] in topics), places) for topics in {*subscribed}}
    owned: dict[frozenset[TopicPartition], int] = {}
    #: What is missing now, by the number of the step since when.
    since: dict[int, int] = {}
    missing = 0
    for number, (step, topics) in enumerate(zip(steps, subscribed, strict=True)):
        had = 0
        for each in owned_sets_of(step):
            if each not in owned:
                owned[each] = _bits_of(each, places)
            had |= owned[each]
        before, missing = missing, expected[topics] & ~had
        if ended := before & ~missing:
            for first, those in [*since.items()]:
                if gone := those & ended:
                    yield first, number, _names_of(gone, names)
                    since[first] = those & missing
                    if not since[first]:
                        del since[first]
        if new := missing & ~before:
            since[number] = new
    for first, those in since.items():
        yield first, len(steps), _names_of(those, names)


def _bits_of(partitions: Iterable[TopicPartition], places: Mapping[TopicPartition, int]) -> int:
    """These partitions as a number: one bit for each, where its place is."""
    bits = bytearray(len(places) // 8 + 1)
    for partition in partitions:
        if (place := places.get(partition)) is not None:
            bits[place >> 3] |= 1 << (place & 7)
    return int.from_bytes(bits, "little")


def _names_of(bits: int, names: Sequence[TopicPartition]) -> list[TopicPartition]:
    return [name for name, digit in zip(names, reversed(f"{bits:b}"), strict=False) if digit == "1"]
