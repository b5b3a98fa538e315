"""Find members of another application in a group: their client id, address, subscription or assignor differ from those of the others."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from exhume.analysis.detectors.cases import GroupCase
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.registry import Detector
from exhume.analysis.detectors.report import counted, finding, partition_list, span
from exhume.analysis.detectors.steps import StepRun, judged, who
from exhume.analysis.member_columns import disjoint_subscriptions_of, kinds_of
from exhume.analysis.member_tables import union
from exhume.analysis.memberships import Member, Membership, TopicPartition
from exhume.durations import HOUR_MS, MINUTE_MS
from exhume.findings import Finding

#: A client id or an address belongs to the group if it was there for at least this share of the time of the most frequent one.
_NATIVE_SHARE = 0.5
#: Strangers that do not leave again stay for this time at least, longer than a deployment takes.
_STAY_MS = 30 * MINUTE_MS
#: A new group starts within this time, its members one after the other.
_START_MS = 10 * MINUTE_MS
#: Members of another address range are strangers if the group had one range alone for this time.
_ALONE_MS = HOUR_MS
#: The first words of the client ids of tools.
_TOOLS = frozenset({"console", "kcat", "kafkacat", "kafkactl", "kaf"})
_WORD = re.compile(r"[A-Za-z]+")
#: The parts of an address that a range has in common.
_RANGE_PARTS = 2


@dataclass(frozen=True, slots=True)
class _Difference:
    """The differences of a member from the members of the group."""

    client_id: bool
    address: bool
    subscription: bool
    assignor: bool

    @property
    def words(self) -> list[str]:
        names = {"client id": self.client_id, "address": self.address, "subscription": self.subscription, "assignor": self.assignor}
        return [name for name, differs in names.items() if differs]


@dataclass(frozen=True, slots=True)
class _Natives:
    """The first words of client ids, and the address ranges, that belong to a group; and how long it had one range alone.

    `has_other_words` is True if other client ids were in the group too.
    """

    words: frozenset[str]
    ranges: frozenset[str]
    alone_until_ms: int | None
    has_other_words: bool

    def has(self, member: Member) -> bool:
        return not _has_other_client_id(member, self) and not _has_other_address(member, self)

    def of(self, step: Membership) -> list[bool]:
        """Return for each member of a step whether it belongs to the group. Uses columns only."""
        words, ranges = self.words, self.ranges
        return [word in words and own in ranges for word, own in zip(_words_of(step), _ranges_of(step), strict=True)]


def find_strangers(group: GroupCase, inputs: Inputs) -> Iterator[Finding]:  # noqa: ARG001
    """Members of another application, a tool or another data centre take partitions of a group.

    The first word of their client id, or the first two parts of their address, differ from those that the group had most of the time;
    their subscription, assignor or user data may differ, too. They leave again while the others stay, or stay for half an hour or longer:
    in a deployment all others leave. If only the address differs, the group had one address range for an hour before. Members whose topics
    have nothing in common are IC-24a.
    """
    steps = [step for step in judged(group) if step.kind in ("classic", "consumer")]
    alone_until_ms = _alone_until_ms(steps)
    had_one_range = _had_one_range(group, alone_until_ms, alone_until_ms)
    if not had_one_range and len(union(map(_words_of, steps))) < 2:
        return
    natives = _natives(steps, alone_until_ms)
    if natives is None or not (had_one_range or natives.has_other_words):
        return
    run: list[Membership] = []
    for step in steps:
        belong = natives.of(step)
        if _are_some(belong):
            run.append(step)
            continue
        if run and any(belong):
            yield from _found(group, StepRun(run, step, step.timestamp_ms), natives)
        elif run and not belong and len(run) > 1:
            yield from _found(group, StepRun(run, step, step.timestamp_ms), natives, is_over=False)
        run = []
    if run and _is_later(run[0], steps[0]):
        yield from _found(group, StepRun(run, None, group.log_context.last_timestamp_ms), natives, is_over=False)


def _is_later(step: Membership, first: Membership) -> bool:
    """Return True if the group was alone before this step for longer than a new group takes to start."""
    return step.timestamp_ms is not None and first.timestamp_ms is not None and step.timestamp_ms - first.timestamp_ms >= _START_MS


def _alone_until_ms(steps: Sequence[Membership]) -> int | None:
    """Return the time at which the group got members of a second address range; None if it never did."""
    ranges: set[str] = set()
    for step in steps:
        ranges.update(_ranges_of(step))
        if len(ranges) > 1 and step.timestamp_ms is not None:
            return step.timestamp_ms
    return None


def _natives(steps: Sequence[Membership], alone_until_ms: int | None) -> _Natives | None:
    """Return the client ids and addresses that belong to the group; None if all members have the same. Uses columns only."""
    words: Counter[str] = Counter()
    ranges: Counter[str] = Counter()
    for place, step in enumerate(steps):
        later = steps[place + 1].timestamp_ms if place + 1 < len(steps) else None
        length_ms = 1 if later is None or step.timestamp_ms is None else max(later - step.timestamp_ms, 1)
        for word in {*_words_of(step)}:
            words[word] += length_ms
        for address_range in {*_ranges_of(step)}:
            ranges[address_range] += length_ms
    if len(words) < 2 and len(ranges) < 2:
        return None
    own_words = _most(words)
    return _Natives(own_words, _most(ranges), alone_until_ms, len(own_words) < len(words))


def _most(times: Mapping[str, int]) -> frozenset[str]:
    longest_ms = max(times.values(), default=0)
    return frozenset(name for name, length_ms in times.items() if length_ms >= _NATIVE_SHARE * longest_ms)


@lru_cache(maxsize=4096)
def _first_word(client_id: str | None) -> str:
    """Return the first word of a client id, which names the application: random parts follow it."""
    found = _WORD.search(client_id or "")
    return "" if found is None else found[0].lower()


@lru_cache(maxsize=4096)
def _range_of(host: str | None) -> str:
    """Return the range of an address: the first parts of an IPv4 address; empty for any other, such as a name."""
    parts = (host or "").removeprefix("/").split(".")
    is_address = len(parts) == 4 and all(part.isdigit() for part in parts)
    return ".".join(parts[:_RANGE_PARTS]) if is_address else ""


def _words_of(step: Membership) -> list[str]:
    return kinds_of(step, "client_id", _first_word)


def _ranges_of(step: Membership) -> list[str]:
    return kinds_of(step, "client_host", _range_of)


def _are_some(belong: Sequence[bool]) -> bool:
    """Return True if some members belong to the group, and others do not."""
    return any(belong) and not all(belong)


def _strangers(step: Membership, natives: _Natives) -> list[Member]:
    """Return the members that do not belong to the group."""
    return [member for member in step.members.values() if not natives.has(member)]


def _has_other_client_id(member: Member, natives: _Natives) -> bool:
    return _first_word(member.client_id) not in natives.words


def _has_other_address(member: Member, natives: _Natives) -> bool:
    return _range_of(member.client_host) not in natives.ranges


def _difference(member: Member, step: Membership, natives: _Natives) -> _Difference:
    own = [other for other in step.members.values() if natives.has(other)]
    return _Difference(
        client_id=_has_other_client_id(member, natives),
        address=_has_other_address(member, natives),
        subscription={*(member.subscribed_topics or ())} not in [{*(other.subscribed_topics or ())} for other in own],
        assignor=_assignor(member) not in {_assignor(other) for other in own},
    )


def _assignor(member: Member) -> tuple[object, ...]:
    """Return the choices of the client that show its library: assignor, version of the subscription, and whether it has user data."""
    if member.subscription is None:
        return (member.server_assignor,)
    return member.subscription.version, bool(member.subscription.value.get("user_data"))


def _found(group: GroupCase, run: StepRun, natives: _Natives, *, is_over: bool = True) -> Iterator[Finding]:
    """Yield the finding about the strangers of these steps, if they took partitions and are no deployment."""
    if (not is_over and run.length_ms < _STAY_MS) or disjoint_subscriptions_of(run.first) is not None:
        return
    first = run.first.members[[*run.first.members][natives.of(run.first).index(False)]]
    was_alone = _had_one_range(group, natives.alone_until_ms, run.first.timestamp_ms)
    if not _has_other_client_id(first, natives) and not (_has_other_address(first, natives) and run.length_ms >= _STAY_MS and was_alone):
        return
    taken: dict[TopicPartition, None] = {}
    members: dict[str, Member] = {}
    for step in run.steps:
        for member in _strangers(step, natives):
            members[member.member_id] = member
            taken.update(dict.fromkeys(member.owned))
    if not taken:
        return
    difference = _difference(first, run.first, natives)
    tools = {_first_word(member.client_id) for member in members.values()} & _TOOLS
    is_sure = len(difference.words) > 1 or bool(tools)
    sentence = (
        f"{counted(len(members), 'member')} of another kind ({_named(members.values())}) took {partition_list([*taken])} for"
        f" {span(run.length_ms)}{'' if run.is_over else ', until the end of the log'}: another {' and another '.join(difference.words)}"
        f" than the other members ({_named(other for other in run.first.members.values() if natives.has(other))})"
    )
    yield finding(
        "IC-41",
        sentence,
        group,
        severity="warn",
        confidence="likely" if is_sure else "possible",
        evidence=[run.first, run.steps[-1], *([run.next] if run.next is not None else [])],
        member_id=first.member_id if len(members) == 1 else None,
        not_excluded=["a deployment that was rolled back", "an application whose instances have different client ids or addresses"],
        remedy="Give the other application or the tool its own group id; check if its records were processed",
    )


def _had_one_range(group: GroupCase, alone_until_ms: int | None, began_ms: int | None) -> bool:
    """Return True if the members had one address range for an hour before this time."""
    first_ms = next((step.timestamp_ms for step in group.memberships if step.members), None)
    if first_ms is None or began_ms is None or alone_until_ms is None:
        return False
    return alone_until_ms >= began_ms and began_ms - first_ms >= _ALONE_MS


def _named(members: Iterable[Member]) -> str:
    """Name the first few clients, and the number of the others."""
    clients = [*dict.fromkeys(who(member) for member in members)]
    return ", ".join(clients[:2]) + (f" and {len(clients) - 2} more" if len(clients) > 2 else "")


DETECTORS = (
    Detector(
        code="IC-41",
        title="Strangers in a group",
        section="Membership and assignment",
        in_group=find_strangers,
        by_time=True,
        traps=(
            "In a deployment all former members leave",
            "The instances of one application may have client ids that begin with different words",
            "Members in several zones may have different address ranges from the beginning",
        ),
    ),
)
