"""The removals of a group in a condensed log, and the judgement of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

from exhume.analysis.detectors.cases import Epoch, GroupCase, GroupRecord, TopicCase
from exhume.analysis.detectors.commits import Change, Removal
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.keys import KeyHistory
from exhume.analysis.detectors.report import partitions_of, some
from exhume.analysis.member_columns import subscriptions_of
from exhume.analysis.memberships import Membership
from exhume.analysis.removals.causes import WINDOWS, Judgement, KnownRetention, RecordPlace
from exhume.analysis.removals.evidence import (
    GroupBefore,
    GroupTombstone,
    KeptOffset,
    RemovalEvidence,
    RemovalRules,
    RemovedOffset,
)
from exhume.analysis.removals.judge import judge
from exhume.analysis.removals.tombstones import RemovalMoment
from exhume.codecs.record_types import number_of, role_of
from exhume.findings import Confidence
from exhume.replay.expiry import SIMPLE_GROUP, ExpiryStart, GroupForExpiry, expiry_start
from exhume.replay.profiles import JavaProfile


@dataclass(frozen=True, slots=True)
class JudgedOffset:
    """A removed offset, its tombstone, and the judgement of its cause."""

    key: KeyHistory
    removal: Removal
    judgement: Judgement


def confidence_of(removed: Iterable[JudgedOffset]) -> Confidence:
    """Return the confidence of a finding about these offsets: that of the least certain judgement."""
    return "possible" if any(each.judgement.confidence == "possible" for each in removed) else "likely"


def other_causes(removed: Iterable[JudgedOffset]) -> list[str]:
    """Return the causes that the judgements of these offsets do not exclude, each once."""
    return [*dict.fromkeys(chain.from_iterable(each.judgement.not_excluded for each in removed))]


def spelt_offsets(removed: Sequence[JudgedOffset]) -> str:
    """Format the partitions of these offsets by topic."""
    topics = sorted({each.key.topic for each in removed})
    return some([partitions_of(topic, [each.key.partition for each in removed if each.key.topic == topic]) for topic in topics])


@dataclass(frozen=True, slots=True)
class JudgedRemoval:
    """Tombstones of one group that were written together: of offsets, of the group itself, or both."""

    group: GroupCase
    evidence: RemovalEvidence
    offsets: Sequence[JudgedOffset]
    group_record: GroupRecord | None
    of_group: Judgement | None
    #: The last step of the group before the removal.
    step: Membership | None

    @property
    def record_offset(self) -> int:
        """The record offset of the first tombstone."""
        if self.offsets:
            return self.offsets[0].removal.record_offset
        return -1 if self.group_record is None else self.group_record.record_offset

    @property
    def timestamp_ms(self) -> int | None:
        if self.offsets:
            return self.offsets[0].removal.timestamp_ms
        return None if self.group_record is None else self.group_record.timestamp_ms

    def is_wide(self) -> bool:
        """Return True if other groups lost offsets of other topics at this moment, as by the expiry task, not by one request or topic."""
        time_ms, evidence = self.timestamp_ms, self.evidence
        if time_ms is None:
            return False
        moments = (RemovalMoment(evidence.group, topic, evidence.offsets_partition, time_ms) for topic in evidence.topics)
        return any(evidence.tombstones.of_other_topics(moment) is not None for moment in moments)

    def first_after(self, key: KeyHistory) -> Change | None:
        """Return the first commit of this key after the removal."""
        return next((change for change in key.of("back") if change.commit.settled_offset > self.record_offset), None)


def judged_removals(group: GroupCase, inputs: Inputs) -> Iterator[JudgedRemoval]:
    """Every removal of offsets of this group or of the group itself, in order. Tombstones that removed nothing known are among them."""
    context = group.log_context
    rules, retention = RemovalRules.of(inputs.release), KnownRetention(inputs.retention_ms, context.likely_retention_ms)
    for removed, record in _together(group):
        record_offset = removed[0][1].record_offset if removed else _first_of_batch(group, record)
        step = group.membership_before(record_offset)
        time_ms = removed[0][1].timestamp_ms if removed else None if record is None else record.timestamp_ms
        evidence = RemovalEvidence(
            group=group.group,
            offsets_partition=context.offsets_partition,
            removed=[_removed_offset(step, key, removal, rules) for key, removal in removed],
            before=_group_before(group, step, record_offset, time_ms, rules, is_alone=not removed),
            group_tombstone=None if record is None else GroupTombstone(record.record_offset, record.timestamp_ms, record.record_type),
            find_kept=partial(_kept, group, [key for key, _ in removed], record_offset),
            tombstones=context.tombstones,
            survivors=_survivors(group, {key.topic for key, _ in removed}),
            sweep=context.sweeps.of(group.group, time_ms),
            is_after_new_leader=bool(removed) and new_leader(group, removed[0][1]) is not None,
            complete_from_offset=context.complete_from_offset,
        )
        offsets, of_group = judge(evidence, rules, retention)
        judged = [JudgedOffset(*each, judgement) for each, judgement in zip(removed, offsets, strict=True)]
        yield JudgedRemoval(group, evidence, judged, record, of_group, step)


def judgements_of(case: TopicCase, group: str, inputs: Inputs) -> dict[RecordPlace, Judgement]:
    """Judge each tombstone of this group, and of its offsets, by the place of its record."""
    found: dict[RecordPlace, Judgement] = {}
    for each in case.groups():
        if each.group != group:
            continue
        origin = each.log_context.origin
        for together in judged_removals(each, inputs):
            found |= {(*origin, offset.removal.record_offset): offset.judgement for offset in together.offsets}
            if together.group_record is not None and together.of_group is not None:
                found[*origin, together.group_record.record_offset] = together.of_group
    return found


def removed_together(group: GroupCase) -> Iterator[list[RemovedOffset]]:
    """Yield the removed offsets of this group by the rules of the newest release, those that were removed together in one list."""
    rules = RemovalRules.of(None)
    for removed, _ in _together(group):
        if removed:
            step = group.membership_before(removed[0][1].record_offset)
            yield [_removed_offset(step, key, removal, rules) for key, removal in removed]


def new_leader(group: GroupCase, removal: Removal) -> Epoch | None:
    """Return the leader epoch that began just before this removal; None if none did."""
    epoch = next((each for each in reversed(group.log_context.epochs[1:]) if each.first_record_offset <= removal.record_offset), None)
    if epoch is None or epoch.first_timestamp_ms is None or removal.timestamp_ms is None:
        return None
    return epoch if removal.timestamp_ms - epoch.first_timestamp_ms <= WINDOWS.new_leader_ms else None


def subscribed_topics(step: Membership) -> set[str] | None:
    """Return the topics that the members subscribe to; None if a subscription is not known."""
    subscriptions = {*subscriptions_of(step)}
    return None if None in subscriptions else {*chain.from_iterable(filter(None, subscriptions))}


# Tombstones that were written together

_Removed = list[tuple[KeyHistory, Removal]]


def _together(group: GroupCase) -> Iterator[tuple[_Removed, GroupRecord | None]]:
    """Yield the tombstones that were written together, in log order: those of offsets, and that of the group if it belongs to them.

    Tombstones of the group alone come last.
    """
    own = _group_tombstones(group)
    gone = ((key, removal) for key in group.keys.with_removals() for removal in key.removals)
    together: _Removed = []
    for each in sorted(gone, key=lambda each: each[1].record_offset):
        if together and not _belongs(together[-1][1], each[1]):
            yield together, _taken(own, together)
            together = []
        together.append(each)
    if together:
        yield together, _taken(own, together)
    for record in own:
        yield [], record


def _group_tombstones(group: GroupCase) -> list[GroupRecord]:
    """Return the tombstones of the group itself, without those of a conversion, whose batch continues with another group type."""
    tombstones = [each for each in group.records if each.value is None and role_of(each.record_type) == "group"]
    if not tombstones:
        return []
    lasts = {(each.path, each.byte_position): each for each in group.records}
    return [each for each in tombstones if lasts[each.path, each.byte_position].value is None]


def _first_of_batch(group: GroupCase, record: GroupRecord | None) -> int:
    """Return the first record of the group in the batch of its tombstone, which also removes its members."""
    own = (each for each in group.records if record is not None and (each.path, each.byte_position) == (record.path, record.byte_position))
    return min((each.record_offset for each in own), default=0)


def _belongs(last: Removal, removal: Removal) -> bool:
    if removal.byte_position == last.byte_position:
        return True
    times_ms = removal.timestamp_ms, last.timestamp_ms
    return None not in times_ms and removal.timestamp_ms - last.timestamp_ms <= WINDOWS.together_ms  # type: ignore[operator]


def _taken(own: list[GroupRecord], together: _Removed) -> GroupRecord | None:
    """Take the tombstone of the group that was written with these from the list `own`; None if there is none."""
    first, last = together[0][1], together[-1][1]
    for place, record in enumerate(own):
        is_near = record.byte_position == last.byte_position or (
            record.timestamp_ms is not None
            and last.timestamp_ms is not None
            and 0 <= record.timestamp_ms - last.timestamp_ms <= WINDOWS.together_ms
        )
        if record.record_offset > first.record_offset and is_near:
            return own.pop(place)
    return None


# What the log has about them


def _removed_offset(step: Membership | None, key: KeyHistory, removal: Removal, rules: RemovalRules) -> RemovedOffset:
    value = removal.value
    group = _for_expiry(step, is_simple=_is_later(removal, step), rules=rules)
    expire_ms = None if value is None or (value.expire_timestamp_ms or 0) <= 0 else value.expire_timestamp_ms
    never_expires = value is not None and value.expire_timestamp_ms is not None and expire_ms is None
    start = None
    if value is not None:
        as_loaded_ms = -1 if never_expires and rules.takes_minus_one_for_a_time else expire_ms
        is_pending = rules.is_given and _is_pending(key, removal)
        start = expiry_start(value.commit_timestamp_ms, as_loaded_ms, group, key.topic, rules.profile, is_pending=is_pending)
    elif _is_pending(key, removal):
        start = ExpiryStart("only a commit of an open transaction was there")
    elif group is not None:
        # All offsets of an Empty classic group are of one age.
        counted = expiry_start(0, None, group, key.topic, rules.profile)
        start = counted if counted.rule == "since_empty" else None
    return RemovedOffset(
        topic=key.topic,
        partition=key.partition,
        record_offset=removal.record_offset,
        timestamp_ms=removal.timestamp_ms,
        byte_position=removal.byte_position,
        start=start,
        written_ms=None if value is None else value.commit_timestamp_ms if value.timestamp_ms is None else value.timestamp_ms,
        commit_timestamp_ms=None if value is None else value.commit_timestamp_ms,
        expire_timestamp_ms=expire_ms,
        never_expires=never_expires,
    )


def _is_later(removal: Removal, step: Membership | None) -> bool:
    """Return True if the removed value came after this step."""
    return step is None or removal.value is None or removal.value.settled_offset > step.last_record_offset


def _is_pending(key: KeyHistory, removal: Removal) -> bool:
    """Return True if an open transaction had a commit for this key."""
    at = removal.record_offset
    if any(each.commit.record_offset < at and (each.marker_offset is None or each.marker_offset > at) for each in key.dropped):
        return True
    return any(change.commit.record_offset < at < change.commit.settled_offset for change in key.of("back"))


def _for_expiry(step: Membership | None, *, is_simple: bool, rules: RemovalRules) -> GroupForExpiry | None:
    """Return the group as the expiry task sees it; None if it was removed and its offsets were not."""
    if step is None:
        return SIMPLE_GROUP
    if step.is_tombstone:
        is_gone = rules.is_given and isinstance(rules.profile, JavaProfile) and not is_simple
        return None if is_gone else SIMPLE_GROUP
    subscribed: frozenset[str] | None
    if step.kind == "classic":
        topics = subscribed_topics(step)
        subscribed = None if topics is None else frozenset(topics)
    else:
        # A regular expression that is not resolved has no topics yet.
        subscribed = frozenset(chain.from_iterable(filter(None, subscriptions_of(step))))
    return GroupForExpiry(
        group_type=step.kind,
        state="Empty" if step.is_empty else "Stable",
        has_members=not step.is_empty,
        protocol_type=step.protocol_type,
        empty_since_ms=step.state_timestamp_ms if step.is_empty else None,
        subscribed_topics=subscribed,
    )


def _group_before(
    group: GroupCase, step: Membership | None, record_offset: int, time_ms: int | None, rules: RemovalRules, *, is_alone: bool
) -> GroupBefore:
    if step is None or step.is_tombstone:
        return GroupBefore(has_records=bool(group.records))
    left_ms = None if step.kind == "classic" or not step.is_empty else _last_member_left_ms(group, record_offset)
    is_just_emptied = left_ms is not None and time_ms is not None and time_ms - left_ms <= WINDOWS.next_pass_ms
    has_gap = step.kind == "classic" and not step.is_empty and _has_gap_after(group, step)
    emptied_ms = _without_offsets_since_ms(group, step, record_offset) if is_alone and step.is_empty else None
    since_ms = left_ms if step.is_empty else step.timestamp_ms
    return GroupBefore(_for_expiry(step, is_simple=False, rules=rules), True, since_ms, emptied_ms, is_just_emptied, has_gap)


def _without_offsets_since_ms(group: GroupCase, step: Membership, record_offset: int) -> int | None:
    """Return the time since which an Empty group had no offsets: that of this step, or of the removal of its last offset."""
    removals = chain.from_iterable(key.removals for key in group.keys.with_removals())
    times_ms = [each.timestamp_ms for each in removals if each.record_offset < record_offset and each.timestamp_ms is not None]
    return max([*times_ms, *([] if step.timestamp_ms is None else [step.timestamp_ms])], default=None)


def _last_member_left_ms(group: GroupCase, record_offset: int) -> int | None:
    """Return the time when the last member left a consumer group; None if no tombstone of a member comes before this record."""
    member = number_of("consumer", "member")
    for record in reversed(group.records):
        if record.record_type == member and record.value is None and record.record_offset < record_offset:
            return record.timestamp_ms
    return None


def _has_gap_after(group: GroupCase, step: Membership) -> bool:
    """Return True if the next step skips generations, which left no record."""
    following = group.membership_after(step.record_offset)
    return (
        following is not None
        and following.generation is not None
        and step.generation is not None
        and following.generation > step.generation + 1
    )


def _kept(group: GroupCase, removed: Sequence[KeyHistory], record_offset: int) -> list[KeptOffset]:
    """Return the offsets that the group had at this record and kept."""
    went = {(key.topic, key.partition) for key in removed}
    return [
        KeptOffset(group.group, key.topic, key.partition, _held_record(key, record_offset))
        for key in group.keys
        if (key.topic, key.partition) not in went and key.held_at(record_offset)
    ]


def _held_record(key: KeyHistory, record_offset: int) -> int | None:
    """Return the record offset of the value that this key had at this record; None if it is not known."""
    after = next((removal for removal in key.removals if removal.record_offset > record_offset), None)
    held = key.last if after is None else after.value
    return held.record_offset if held is not None and held.record_offset < record_offset else None


def _survivors(group: GroupCase, topics: set[str]) -> dict[str, KeptOffset]:
    """Return, for each of these topics, the oldest offset that another group of this log still has."""
    found = group.log_context.survivors
    others = {topic: next((each for each in found.get(topic, ()) if each.group != group.group), None) for topic in topics}
    return {topic: kept for topic, kept in others.items() if kept is not None}
