"""Tombstones of a group that were written together, and what each offset was removed by, as far as the log tells."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Literal

from exhume.analysis.detectors.cases import Epoch, GroupCase, GroupRecord
from exhume.analysis.detectors.commits import Change, Removal
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.keys import KeyHistory
from exhume.analysis.detectors.retention import CHECK_MS, DEFAULTS_MS, age_of
from exhume.analysis.member_columns import subscriptions_of
from exhume.analysis.memberships import Membership
from exhume.codecs.record_types import number_of, role_of

#: What is written so soon after one another belongs together.
TOGETHER_MS = 1000
#: Tombstones of other groups that may have the same cause.
NEARBY_MS = 60_000
#: How soon after a change of leader a removal is laid to its load.
_SOON_MS = 30 * 60_000

#: Why an offset went:
#:
#:     expired        it was due, and a pass may remove it
#:     unsubscribed   it was due, and only because its topic was subscribed to by none of the members that there were
#:     forbidden      it was due by its age, and no pass may remove it: members subscribe to its topic
#:     rebalancing    as unsubscribed, but generations that the log does not have lie around it
#:     just_emptied   it was due long before, and kept from a pass only by members of a KIP-848 group, the last of which had just left
#:     no_expiry      its value says that it never expires by itself, and the partition had just got another leader
#:     early          it was not due
#:     unknown        nobody knows whether it was due
Verdict = Literal["expired", "unsubscribed", "forbidden", "rebalancing", "just_emptied", "no_expiry", "early", "unknown"]


@dataclass(frozen=True, slots=True)
class Removed:
    """One offset that went. `age_ms` is how old it was and `counted_from` from when, as an expiry pass counts."""

    key: KeyHistory
    removal: Removal
    verdict: Verdict
    age_ms: int | None
    counted_from: str
    #: How far behind the moment when it was due; None where it was not, or nobody knows.
    late_ms: int | None


@dataclass
class Sweep:
    """Tombstones of one group that were written together."""

    group: GroupCase
    removed: list[Removed]

    @property
    def record_offset(self) -> int:
        return self.removed[0].removal.record_offset

    @property
    def timestamp_ms(self) -> int | None:
        return self.removed[0].removal.timestamp_ms

    @cached_property
    def step(self) -> Membership | None:
        """What the group was in front of it."""
        return self.group.membership_before(self.record_offset)

    @cached_property
    def group_record(self) -> GroupRecord | None:
        """The tombstone of the group itself that went with it."""
        last = self.removed[-1].removal
        for record in self.group.records:
            is_near = record.byte_position == last.byte_position or (
                record.timestamp_ms is not None
                and last.timestamp_ms is not None
                and 0 <= record.timestamp_ms - last.timestamp_ms <= TOGETHER_MS
            )
            if record.value is None and role_of(record.record_type) == "group" and record.record_offset > self.record_offset and is_near:
                return record
        return None

    @property
    def topics(self) -> set[str]:
        return {removed.key.topic for removed in self.removed}

    def kept(self) -> list[KeyHistory]:
        """Keys of the group that had a value and kept it."""
        went = {(removed.key.topic, removed.key.partition) for removed in self.removed}
        return [key for key in self.group.keys if (key.topic, key.partition) not in went and key.held_at(self.record_offset)]

    def nearby(self) -> list[tuple[int, str, str]]:
        """Tombstones of other groups at about the same time: (time, group, topic)."""
        if self.timestamp_ms is None:
            return []
        sweeps = self.group.log_context.sweeps
        first = bisect_left(sweeps, (self.timestamp_ms - NEARBY_MS, "", ""))
        found = []
        for sweep in sweeps[first:]:
            if sweep[0] > self.timestamp_ms + NEARBY_MS:
                break
            if sweep[1] != self.group.group:
                found.append(sweep)
        return found

    def first_after(self, key: KeyHistory) -> Change | None:
        """The first commit to this key behind it."""
        return next((change for change in key.of("back") if change.commit.settled_offset > self.record_offset), None)

    def is_deletion_of(self, topic: str) -> bool:
        """Whether what was due went with its topic: younger offsets of it went too, or those of other groups."""
        has_younger = any(removed.key.topic == topic and removed.verdict == "early" for removed in self.removed)
        return has_younger or self.is_shared(topic)

    def is_shared(self, topic: str) -> bool:
        """Whether other groups lost offsets of this topic at about the same time, and nobody any of another: so it is when a topic goes."""
        others = {topic for _, _, topic in self.nearby()}
        return bool(others) and others | self.topics == {topic}

    def is_wide(self) -> bool:
        """Whether several topics of several groups went at about the same time: one request for one topic or group does not do that."""
        others = self.nearby()
        return bool(others) and len(self.topics | {topic for _, _, topic in others}) > 1


def sweeps(group: GroupCase, inputs: Inputs) -> Iterator[Sweep]:
    """Every sweep of this group's offsets, in order. Tombstones that removed nothing the log knows of are in it too."""
    gone = ((key, removal) for key in group.keys.with_removals() for removal in key.removals)
    tombstones = sorted(gone, key=lambda each: each[1].record_offset)
    sweep: Sweep | None = None
    for key, removal in tombstones:
        if sweep is None or not _belongs(sweep.removed[-1].removal, removal):
            if sweep is not None:
                yield sweep
            sweep = Sweep(group, [])
        sweep.removed.append(_removed(group, key, removal, inputs))
    if sweep is not None:
        yield sweep


def _belongs(last: Removal, removal: Removal) -> bool:
    if removal.byte_position == last.byte_position:
        return True
    return removal.timestamp_ms is not None and last.timestamp_ms is not None and removal.timestamp_ms - last.timestamp_ms <= TOGETHER_MS


def _removed(group: GroupCase, key: KeyHistory, removal: Removal, inputs: Inputs) -> Removed:
    age = age_of(group, removal)
    value, time_ms = removal.value, removal.timestamp_ms
    if value is not None and value.expire_timestamp_ms is not None and time_ms is not None:
        own_age_ms = time_ms - value.commit_timestamp_ms
        if value.expire_timestamp_ms > 0:
            overdue_ms = time_ms - value.expire_timestamp_ms
            counted = "the commit, with an expire timestamp of its own"
            return Removed(key, removal, "expired" if overdue_ms >= 0 else "early", own_age_ms, counted, overdue_ms)
        if new_leader(group, removal) is not None:
            return Removed(key, removal, "no_expiry", own_age_ms, "the commit", None)
    if age is None:
        return Removed(key, removal, "unknown", None, "", None)
    age_ms, counted = age
    late_ms, verdict = _lateness(group, age_ms, inputs)
    if verdict == "expired":
        verdict = _by_membership(group, key, removal)
    return Removed(key, removal, verdict, age_ms, counted, late_ms)


def new_leader(group: GroupCase, removal: Removal) -> Epoch | None:
    """The leader epoch that had begun just before this removal."""
    epoch = next((each for each in reversed(group.log_context.epochs[1:]) if each.first_record_offset <= removal.record_offset), None)
    if epoch is None or epoch.first_timestamp_ms is None or removal.timestamp_ms is None:
        return None
    return epoch if removal.timestamp_ms - epoch.first_timestamp_ms <= _SOON_MS else None


def _lateness(group: GroupCase, age_ms: int, inputs: Inputs) -> tuple[int | None, Verdict]:
    retention_ms = inputs.retention_ms if inputs.retention_ms is not None else group.log_context.likely_retention_ms
    if retention_ms is not None:
        late_ms = age_ms - retention_ms
        return (late_ms, "expired") if late_ms >= 0 else (None, "early")
    near = next((default for default in DEFAULTS_MS if default <= age_ms <= default + CHECK_MS), None)
    if near is not None:
        return age_ms - near, "expired"
    return (age_ms - DEFAULTS_MS[0], "expired") if age_ms >= DEFAULTS_MS[0] else (None, "unknown")


def _by_membership(group: GroupCase, key: KeyHistory, removal: Removal) -> Verdict:
    """Whether a pass may remove what is due from a group like this: never what its members subscribe to."""
    step = group.membership_before(removal.record_offset)
    if step is None or step.is_empty or step.is_tombstone:
        left_ms = None if step is None or step.kind == "classic" else _last_member_left_ms(group, removal)
        is_sudden = left_ms is not None and removal.timestamp_ms is not None and removal.timestamp_ms - left_ms <= CHECK_MS
        return "just_emptied" if is_sudden else "expired"
    subscribed = subscribed_topics(step)
    if subscribed is None:
        return "unknown"
    if key.topic in subscribed:
        return "forbidden"
    return "rebalancing" if step.kind == "classic" and _has_gap_behind(group, step) else "unsubscribed"


def subscribed_topics(step: Membership) -> set[str] | None:
    """The topics that the members subscribe to; None where it is not known of all of them."""
    subscriptions = {*subscriptions_of(step)}
    return None if None in subscriptions else {*chain.from_iterable(filter(None, subscriptions))}


def _last_member_left_ms(group: GroupCase, removal: Removal) -> int | None:
    """When the last member left a consumer group that is empty at this removal; None where no tombstone of a member is in front of it."""
    member = number_of("consumer", "member")
    for record in reversed(group.records):
        if record.record_type == member and record.value is None and record.record_offset < removal.record_offset:
            return record.timestamp_ms
    return None


def _has_gap_behind(group: GroupCase, step: Membership) -> bool:
    """Whether generations that left no record lie between this step and the next."""
    following = group.membership_after(step.record_offset)
    return (
        following is not None
        and following.generation is not None
        and step.generation is not None
        and following.generation > step.generation + 1
    )
