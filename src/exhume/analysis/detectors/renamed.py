"""Find groups that look like one application with a new group id."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from exhume.analysis.detectors.cases import GroupCase, LogContext, TopicCase
from exhume.analysis.detectors.commits import JUMP_FLOOR, JUMP_RATIO, CommitRow
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.name_endings import has_version, without_instance
from exhume.analysis.detectors.registry import Detector
from exhume.analysis.detectors.report import Proof, finding, next_step, some, span
from exhume.analysis.memberships import Membership, TopicPartition
from exhume.durations import DAY_MS, HOUR_MS
from exhume.findings import Finding

#: A group is new if it begins this long after its log; it is gone if it has written nothing for this long.
_NEW_MS, _GONE_MS = HOUR_MS // 6, HOUR_MS
_ALIKE = 0.8
_LEFT = ("empty", "removed")
#: A group with more successors than this has generated ids (IC-14).
_MOST_SUCCESSORS = 3
_LEAST_PREFIX = 3


@dataclass(frozen=True, slots=True)
class _MemberTraits:
    """The features of members that identify an application: client ids without their endings, subnets and assignors."""

    clients: frozenset[str]
    subnets: frozenset[str]
    assignors: frozenset[str]

    def in_common(self, other: _MemberTraits) -> str | None:
        """Return the name of the strongest feature that both groups have."""
        if self.clients & other.clients:
            return "client ids"
        if self.subnets & other.subnets:
            return "subnets"
        return "assignors" if self.assignors & other.assignors else None


@dataclass(frozen=True, slots=True)
class _Traits:
    """The features of a group that identify an application."""

    group: str
    log_context: LogContext
    first_ms: int
    last_ms: int
    is_new: bool
    is_left: bool
    topics: frozenset[str]
    firsts: Mapping[tuple[str, int], int]
    lasts: Mapping[tuple[str, int], CommitRow]
    members: _MemberTraits
    step: Membership | None = field(repr=False)


def find_renamed_groups(case: TopicCase, inputs: Inputs) -> Iterator[Finding]:
    """A group begins after the last activity of another group, or up to an hour before it, and reads the same topics.

    The other group is not active again: it wrote nothing for an hour, or all its members left. Four fifths of their topics are the same,
    and a client id (without its ending) is the same too; or, within a day, a subnet or the assignor. The new group starts from its own
    offsets, not from those of the old group.

    Also, with `--start-offsets`, a group alone: the end of its id is a version, a date or a colour, the log has its first generation, and
    it began far after the start of its topics. The groups of earlier versions may have their offsets in another offsets partition.
    """
    if inputs.start_offsets is not None:
        for group in case.groups():
            yield from _began_late(group, inputs, inputs.start_offsets)
            group.forget()
    if not _is_taken_up(case):
        return
    seen: dict[str, _Traits] = {}
    for group in case.groups():
        traits = _traits(group)
        if traits is not None and group.group not in seen:
            seen[group.group] = traits
        group.forget()
    by_topic: defaultdict[str, list[_Traits]] = defaultdict(list)
    for traits in seen.values():
        for topic in traits.topics:
            by_topic[topic].append(traits)
    now_ms = max((traits.log_context.last_timestamp_ms or 0 for traits in seen.values()), default=0)
    for new in sorted(seen.values(), key=lambda traits: traits.first_ms):
        if not new.is_new:
            continue
        others = {old.group: old for topic in new.topics for old in by_topic[topic] if old is not new}
        old = [each for each in others.values() if _is_successor(each, new, now_ms)]
        if 0 < len(old) <= _MOST_SUCCESSORS:
            yield _renamed(max(old, key=lambda each: each.last_ms), new, inputs)


def _began_late(group: GroupCase, inputs: Inputs, start_offsets: Mapping[TopicPartition, int]) -> Iterator[Finding]:
    """Find a new version of an application that skipped the records before it."""
    if not has_version(group.group) or not group.records or group.records[0].epoch != 1:
        return
    if not group.log_context.is_complete_at(group.records[0].record_offset):
        return
    skipped: dict[str, int] = {}
    keys = [key for key in group.keys if key.first_committed_offset is not None]
    for key in keys:
        start = start_offsets.get((key.topic, key.partition))
        before = 0 if start is None else (key.first_committed_offset or 0) - start
        if before > max(JUMP_FLOOR, JUMP_RATIO * (key.usual_rise or 0)):
            skipped[f"{key.topic}-{key.partition}"] = before
    if not keys or len(skipped) < _ALIKE * len(keys):
        return
    named = some([f"{name} {count}" for name, count in sorted(skipped.items())])
    yield finding(
        "IC-25",
        f"the group is new, and its id ends as that of a new version; its first commits skipped records of the topics: {named}; the group"
        " of the version before may have read them",
        group,
        severity="warn",
        confidence="possible",
        evidence=[*group.edges()[:1], *(key.last for key in keys if key.last is not None)],
        not_excluded=("a new application that starts at the end on purpose",),
        remedy=next_step("Look for the group of the version before, in all offsets partitions", inputs, "state"),
    )


def _is_taken_up(case: TopicCase) -> bool:
    """Return True if any group begins at about the time when another one ended. Most logs end here, since this reads times only."""
    spans = [(group.log_context, min(times), max(times), group.phase in _LEFT) for group in case.groups() if (times := _times(group))]
    now_ms = max((log_context.last_timestamp_ms or 0 for log_context, *_ in spans), default=0)
    gone_ms = [last_ms for _, _, last_ms, is_left in spans if is_left or now_ms - last_ms >= _GONE_MS]
    new_ms = [first_ms for log_context, first_ms, _, _ in spans if first_ms - (log_context.first_timestamp_ms or 0) >= _NEW_MS]
    return bool(gone_ms and new_ms) and min(gone_ms) <= max(new_ms) + HOUR_MS


def _times(group: GroupCase) -> list[int]:
    """Return the times of the group's activity. The creation of a group (epoch 0) is none."""
    times = [record.timestamp_ms for record in group.records if record.timestamp_ms is not None and record.epoch != 0]
    return times + [time for time in (group.first_commit_ms, group.last_commit_ms) if time is not None]


def _traits(group: GroupCase) -> _Traits | None:
    steps, times = group.edges(), _times(group)
    keys = [key for key in group.keys if key.commits]
    if not times or not keys or not steps:
        return None
    first_offset = min([key.first_record_offset or 0 for key in keys] + [step.record_offset for step in steps[:1]])
    log_context = group.log_context
    return _Traits(
        group=group.group,
        log_context=log_context,
        first_ms=min(times),
        last_ms=max(times),
        # A group from before the start of the log, or from its compacted part, may be older than it looks.
        is_new=log_context.is_complete_at(first_offset) and min(times) - (log_context.first_timestamp_ms or 0) >= _NEW_MS,
        is_left=group.phase in _LEFT,
        topics=frozenset(key.topic for key in keys),
        firsts={(key.topic, key.partition): key.first_committed_offset for key in keys if key.first_committed_offset is not None},
        lasts={(key.topic, key.partition): key.last for key in keys if key.last is not None},
        members=_member_traits((steps[0], steps[-1])),
        step=steps[0],
    )


def _member_traits(steps: Sequence[Membership]) -> _MemberTraits:
    members = [member for step in steps for member in step.members.values()]
    return _MemberTraits(
        clients=frozenset(name for member in members if len(name := without_instance(member.client_id or "")) >= _LEAST_PREFIX),
        subnets=frozenset(host.rpartition(".")[0] for member in members if (host := member.client_host or "").count(".") == 3),
        assignors=frozenset(step.protocol for step in steps if step.protocol is not None),
    )


def _is_successor(old: _Traits, new: _Traits, now_ms: int) -> bool:
    elapsed_ms, silent_ms = new.first_ms - old.last_ms, now_ms - old.last_ms
    if old.first_ms >= new.first_ms or elapsed_ms < -HOUR_MS or (silent_ms < _GONE_MS and not old.is_left):
        return False
    if len(old.topics & new.topics) < _ALIKE * len(old.topics | new.topics):
        return False
    alike = old.members.in_common(new.members)
    # Many applications share a network or an assignor. These count only for a group that begins soon after, in a log that is long enough.
    is_soon = elapsed_ms <= DAY_MS and silent_ms >= _GONE_MS
    return alike == "client ids" or (alike is not None and is_soon)


def _renamed(old: _Traits, new: _Traits, inputs: Inputs) -> Finding:
    common = sorted(old.lasts.keys() & new.firsts.keys())
    lasts = {key: old.lasts[key].committed_offset for key in common}
    distances = {key: new.firsts[key] - lasts[key] for key in common}
    moves = [f"{key[0]}-{key[1]} {lasts[key]} → {new.firsts[key]} ({distances[key]:+d})" for key in common]
    alike = old.members.in_common(new.members)
    elapsed = new.first_ms - old.last_ms
    when = f"{span(elapsed)} after" if elapsed >= 0 else f"{span(-elapsed)} before"
    sentence = f"the group began {when} group {old.group} was last active, with the same topics and {alike}"
    if moves:
        sentence += f"; last commit there → first commit here: {some(moves)}"
    proofs: list[Proof] = [new.step] if new.step is not None else []
    if old.log_context is new.log_context:
        proofs += [old.lasts[key] for key in common]
    return finding(
        "IC-25",
        sentence,
        new.log_context,
        group=new.group,
        severity="warn" if any(distances.values()) else "info",
        confidence="likely" if alike == "client ids" else "possible",
        evidence=proofs,
        not_excluded=["a second application that reads the same topics", "a canary that runs beside the other group"],
        remedy=next_step("See the commits of the other group", inputs, "history", "--group", old.group),
    )


DETECTORS = (
    Detector(
        code="IC-25",
        title="Same application, new group id",
        section="Offsets moved",
        in_topic=find_renamed_groups,
        by_time=True,
        traps=("Of blue-green and canary copies, both stay active", "Generated group ids are IC-14"),
    ),
)
