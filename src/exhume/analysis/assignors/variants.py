"""Every version of every assignor: its side, its releases, and the input that decides its result.

Kafka's own classes give different results in different versions. `asked` lists the releases whose classes were run. Other releases between
two versions (3.4.0, 3.5.0 and 3.5.1 of the sticky assignors) count as the version before them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from exhume.analysis.assignors import sticky as versions
from exhume.analysis.assignors.group import GroupAssignment, GroupSpec
from exhume.analysis.assignors.range_and_roundrobin import (
    range_by_member_id,
    range_of_coordinator,
    range_rack_aware,
    range_static_first,
    range_sticky,
    round_robin_by_member_id,
    round_robin_static_first,
)
from exhume.analysis.assignors.share import simple_3_9, simple_4_1, simple_4_2
from exhume.analysis.assignors.sticky import sticky
from exhume.analysis.assignors.sticky_claims import StickyVersion
from exhume.analysis.assignors.streams import StreamsAssignment, StreamsGroup, sticky_4_2, sticky_4_2_2, sticky_4_4
from exhume.analysis.assignors.streams_4_1 import sticky_4_1
from exhume.analysis.assignors.uniform import uniform_3_7, uniform_3_8, uniform_4_0, uniform_4_1

#: The side that computes assignments: the leader of a classic group, or the coordinator of a consumer or a share group.
Side = Literal["client", "consumer", "share"]
Need = Literal["instance ids", "racks", "owned partitions", "generations", "topic ids"]


@dataclass(frozen=True, slots=True)
class Variant:
    """A version of an assignor.

    Attributes:
        assignor: its name, as groups and members state it.
        side: the side that runs it.
        first: the first release.
        last: the last release; None: the newest ones.
        asked: the releases whose own classes were run.
        needs: the input that decides the result, besides subscriptions and partition counts.
        run: computes a result; raises `AssignorThrows` where Kafka's class throws.
    """

    assignor: str
    side: Side
    first: str
    last: str | None
    asked: tuple[str, ...]
    needs: tuple[Need, ...]
    run: Callable[[GroupSpec], GroupAssignment]

    @property
    def releases(self) -> str:
        """Return the releases in words: `2.4-3.4`, `3.5 and later`."""
        return spelt_span(self.first, self.last)

    @property
    def title(self) -> str:
        """Return the title in words: `range of Java clients 2.4-3.4`."""
        who = {"client": "Java clients", "consumer": "the coordinator", "share": "the coordinator"}[self.side]
        return f"{self.assignor} of {who} {self.releases}"


_EARLY = ("0.10.2.2", "0.11.0.3", "1.1.1", "2.1.1", "2.3.1")
_MIDDLE = ("2.4.1", "2.5.1", "2.6.3", "2.8.0", "2.8.2", "3.0.2", "3.3.2", "3.4.1")
_LATE = ("3.5.2", "3.6.2", "3.7.0", "3.7.2", "3.8.1", "3.9.1", "4.0.0", "4.1.1", "4.2.1", "4.3.0")
_NEWEST = _LATE[3:]

_STICKY: tuple[tuple[str, str | None, tuple[str, ...], StickyVersion], ...] = (
    ("0.11", "2.2", ("0.11.0.3", "1.1.1", "2.1.1"), versions.ERA_0_11),
    ("2.3", "2.3", ("2.3.1",), versions.ERA_2_3),
    ("2.4.0", "2.5.0", ("2.4.1",), versions.ERA_2_4),
    ("2.5.1", "2.8.0", ("2.5.1", "2.6.3", "2.8.0"), versions.ERA_2_5),
    ("2.8.1", "2.8.2", ("2.8.2",), versions.ERA_2_8),
    ("3.0.0", "3.3.2", ("3.0.2", "3.3.2"), versions.ERA_3_0),
    ("3.4.1", "3.4.1", ("3.4.1",), versions.ERA_3_4),
    ("3.5.2", "3.7.0", ("3.5.2", "3.6.2", "3.7.0"), versions.ERA_3_5),
    ("3.7.1", None, _NEWEST, versions.ERA_3_7),
)


def _sticky(name: str, *, cooperative: bool) -> tuple[Variant, ...]:
    variants = []
    for first, last, asked, version in _STICKY:
        if cooperative and version in (versions.ERA_0_11, versions.ERA_2_3):
            continue
        needs: list[Need] = ["owned partitions"]
        if version.knows_generations and (not cooperative or version.reads_cooperative_user_data):
            needs.append("generations")
        if version.is_rack_aware:
            needs.append("racks")
        run = partial(sticky, version=version, cooperative=cooperative)
        variants.append(Variant(name, "client", first, last, asked, tuple(needs), run))
    return tuple(variants)


VARIANTS: list[Variant] = [
    Variant("range", "client", "0.10", "2.3", _EARLY, (), range_by_member_id),
    Variant("range", "client", "2.4", "3.4", _MIDDLE, ("instance ids",), range_static_first),
    Variant("range", "client", "3.5", None, _LATE, ("instance ids", "racks"), range_rack_aware),
    Variant("roundrobin", "client", "0.10", "2.3", _EARLY, (), round_robin_by_member_id),
    Variant("roundrobin", "client", "2.4", None, (*_MIDDLE, *_LATE), ("instance ids",), round_robin_static_first),
    *_sticky("sticky", cooperative=False),
    *_sticky("cooperative-sticky", cooperative=True),
    Variant("range", "consumer", "3.7", "3.8", ("3.7.2", "3.8.1"), ("owned partitions",), range_sticky),
    Variant("range", "consumer", "3.9", None, _NEWEST[2:], ("instance ids",), range_of_coordinator),
    Variant("uniform", "consumer", "3.7", "3.7", ("3.7.2",), ("owned partitions", "racks", "topic ids"), uniform_3_7),
    Variant("uniform", "consumer", "3.8", "3.9", ("3.8.1", "3.9.1"), ("owned partitions", "topic ids"), uniform_3_8),
    Variant("uniform", "consumer", "4.0", "4.0", ("4.0.0",), ("owned partitions", "topic ids"), uniform_4_0),
    Variant("uniform", "consumer", "4.1", None, ("4.1.1", "4.2.1", "4.3.0"), ("owned partitions", "topic ids"), uniform_4_1),
    Variant("simple", "share", "3.9", "4.0", ("3.9.1", "4.0.0"), (), simple_3_9),
    Variant("simple", "share", "4.1", "4.1", ("4.1.1",), ("owned partitions", "topic ids"), simple_4_1),
    Variant("simple", "share", "4.2", None, ("4.2.1", "4.3.0"), ("owned partitions", "topic ids"), simple_4_2),
]


@dataclass(frozen=True, slots=True)
class StreamsVariant:
    """A version of the `sticky` assignor that the coordinator runs for streams groups; attributes as of `Variant`.

    Attributes:
        run: computes a result for a group. The assignment that the group has decides where the class lets chance decide.
        is_by_target: True if it starts from the target before; False: from the tasks that members run.
        is_by_chance: True if chance decides ties.
    """

    first: str
    last: str | None
    asked: tuple[str, ...]
    needs: tuple[str, ...]
    run: Callable[[StreamsGroup, StreamsAssignment], StreamsAssignment]
    is_by_target: bool = True
    is_by_chance: bool = False

    @property
    def releases(self) -> str:
        """Return the releases in words."""
        return spelt_span(self.first, self.last)


_STREAMS_NEEDS = ("topology", "processes", "standby replicas", "target before")

STREAMS_VARIANTS: tuple[StreamsVariant, ...] = (
    StreamsVariant("4.1", "4.1", ("4.1.0", "4.1.1", "4.1.2"), (*_STREAMS_NEEDS, "chance"), sticky_4_1, is_by_chance=True),
    StreamsVariant("4.2.0", "4.2.1", ("4.2.0", "4.2.1"), _STREAMS_NEEDS, lambda group, _: sticky_4_2(group)),
    StreamsVariant("4.2.2", "4.2.2", ("4.2.2",), _STREAMS_NEEDS, lambda group, _: sticky_4_2_2(group)),
    StreamsVariant("4.3", "4.3", ("4.3.0", "4.3.1"), _STREAMS_NEEDS, lambda group, _: sticky_4_2(group)),
    StreamsVariant(
        "4.4",
        None,
        ("4.4.0",),
        (*_STREAMS_NEEDS[:3], "running tasks", "task offsets"),
        lambda group, _: sticky_4_4(group),
        is_by_target=False,
    ),
)


def streams_variants(release: str | None = None) -> tuple[StreamsVariant, ...]:
    """Return the versions of `sticky` for streams groups, oldest first; with a release, the one that it has."""
    if release is None:
        return STREAMS_VARIANTS
    wanted = _as_numbers(release)
    return tuple(variant for variant in STREAMS_VARIANTS if _as_numbers(variant.first) <= wanted)[-1:]


def spelt_span(first: str, last: str | None) -> str:
    """Return a span of releases in words; `last` None is the newest release."""
    if last is None:
        return f"{first} and later"
    return first if first == last else f"{first}-{last}"


def variants_of(side: Side, assignor: str | None = None) -> list[Variant]:
    """Return the versions of this side, oldest first; with `assignor`, of that one only."""
    return [variant for variant in VARIANTS if variant.side == side and assignor in (None, variant.assignor)]


def variant_for(side: Side, assignor: str, release: str) -> Variant | None:
    """Return the version that this release has; None if the release has no such assignor."""
    wanted = _as_numbers(release)
    fitting = [variant for variant in variants_of(side, assignor) if _as_numbers(variant.first) <= wanted]
    return fitting[-1] if fitting else None


def _as_numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", release.split("-", maxsplit=1)[0])))
