"""The cause of each removal, from the offsets that were due then and the other tombstones of that moment.

The expiry task removes an offset when it is due; a request, or the deletion of a topic, at any time. A request to delete a group removes
all of it. The deletion of a topic removes that topic from every group. The coordinator refuses requests for topics that members subscribe
to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from exhume.analysis.removals.causes import WINDOWS, Age, ExpiryKind, Judgement, KnownRetention
from exhume.analysis.removals.evidence import GroupTombstone, KeptOffset, RemovalEvidence, RemovalRules, RemovedOffset
from exhume.analysis.removals.sweeps import Sweep
from exhume.analysis.removals.tombstones import OffsetTombstone, RemovalMoment
from exhume.codecs.record_types import GROUP_METADATA
from exhume.durations import MINUTE_MS
from exhume.findings import Confidence
from exhume.moments import show_time
from exhume.replay.expiry import ExpiryStart, GroupForExpiry

_SHORTER = "expiry, if the broker had a shorter retention or other rules"
_ANOTHER_RELEASE = "a broker of another release, which has more ways to remove it"
_EVERY_CAUSE = "expiry, a request, and the deletion of the topic"
_ONLY_EXPIRES = "in this release only the expiry task removes offsets"
_KEPT = "the expiry task would not have removed it"


def judge(evidence: RemovalEvidence, rules: RemovalRules, retention: KnownRetention) -> tuple[list[Judgement], Judgement | None]:
    """Return the judgement of each removed offset, in their order, and that of the group; None if the group was not removed."""
    judging = _Judging(evidence, rules, retention)
    offsets = judging.offsets()
    return offsets, None if evidence.group_tombstone is None else judging.group(evidence.group_tombstone, offsets)


def age_of(removed: RemovedOffset, retention: KnownRetention) -> Age | None:
    """Return the age of this offset as the expiry task counts it, or since its commit if the task may not remove it.

    None if the log does not show it.
    """
    start, time_ms = removed.start, removed.timestamp_ms
    if start is None or time_ms is None:
        return None
    from_ms = removed.commit_timestamp_ms if start.rule is None or not start.adds_retention else start.from_ms
    if from_ms is None:
        return None
    age_ms = time_ms - from_ms
    if start.adds_retention:
        counted_from = "the group became Empty" if start.rule == "since_empty" else "the commit"
        return Age(age_ms, counted_from, retention.late_ms(age_ms))
    expires_at_ms = start.due(0).expires_at_ms
    late_ms = None if expires_at_ms is None or time_ms < expires_at_ms else time_ms - expires_at_ms
    return Age(age_ms, "the commit, with an expire timestamp of its own", late_ms)


@dataclass(frozen=True)
class _Judging:
    """The evidence, rules and retention for tombstones that were written together."""

    evidence: RemovalEvidence
    rules: RemovalRules
    retention: KnownRetention

    def offsets(self) -> list[Judgement]:
        """Return the judgement of each offset. An offset whose value is gone gets the judgement of the rest of its append."""
        own = [self._offset(removed) for removed in self.evidence.removed]
        return [
            self._by_append(removed, each, own) if each.is_value_missing else each
            for removed, each in zip(self.evidence.removed, own, strict=True)
        ]

    def _by_append(self, removed: RemovedOffset, own: Judgement, all_own: Sequence[Judgement]) -> Judgement:
        known = [
            (other.topic, each)
            for other, each in zip(self.evidence.removed, all_own, strict=True)
            if other.byte_position == removed.byte_position and not each.is_value_missing
        ]
        causes = {each.cause for _, each in known}
        if len(causes) != 1 or causes == {"removed"}:
            return own
        by_topic = dict(known) if causes == {"topic_deleted"} else dict.fromkeys([removed.topic], known[0][1])
        if removed.topic not in by_topic:
            return own
        like = by_topic[removed.topic]
        return replace(
            like,
            reason=f"{own.reason}; the same append removed offsets with a known cause: {like.reason}",
            is_value_missing=True,
            age=own.age,
        )

    def _offset(self, removed: RemovedOffset) -> Judgement:
        age, start, time_ms = age_of(removed, self.retention), removed.start, removed.timestamp_ms
        if self.rules.only_expires and (time_ms is None or start is None):
            reason = f"{_ONLY_EXPIRES}, and the log does not say when it was due"
            return Judgement("expired", "likely", reason, (), (_ANOTHER_RELEASE,), "idle", age)
        if time_ms is None:
            reason = "the tombstone has no timestamp, so the log does not show whether it was due"
            return Judgement("removed", "undecidable", reason, (), ("any cause of removal",))
        if start is None:
            reason = "the log has no valid earlier commit of it, so its age is not known"
            return Judgement("removed", "undecidable", reason, (), (_EVERY_CAUSE,), is_value_missing=True)
        if start.rule is not None and age is not None and age.late_ms is not None:
            return self._due(removed, start, age, time_ms, age.late_ms)
        not_due = f"{_KEPT}: {self._not_due(start)}"
        expire_ms = removed.expire_timestamp_ms
        if expire_ms is not None and 0 < expire_ms <= time_ms:
            elder = f"its expire timestamp, {show_time(expire_ms)}, had passed; releases to 2.0 use that alone"
            return replace(self._expired(removed, f"{not_due}; but {elder}", time_ms - expire_ms, time_ms, "idle"), age=age)
        if self.rules.only_expires:
            reason = f"{_ONLY_EXPIRES}, though {self._not_due(start)}"
            return Judgement("expired", "possible", reason, (), (_ANOTHER_RELEASE,), "idle", age)
        if removed.never_expires and self.evidence.is_after_new_leader and self.rules.may_take_minus_one_for_a_time:
            reason = f"{not_due}; but a new leader had just loaded it, and its value has no expire timestamp (KAFKA-8069)"
            excluded = ("a request to delete it", "the deletion of the topic")
            return Judgement("expired", "possible", reason, (), excluded, "never_expires", age)
        own = replace(self._not_due_cause(removed, start, age, not_due), age=age)
        sweep = self.evidence.sweep
        is_own_topic = own.cause == "topic_deleted" or not removed.may_expire_by_age
        return own if sweep is None or is_own_topic else self._swept(own, sweep, not_due)

    def _swept(self, own: Judgement, sweep: Sweep, not_due: str) -> Judgement:
        """Judge an offset that was not due, and went with offsets of several groups: by a shorter retention, or by several requests."""
        groups = f"{len(sweep.groups)} groups lost {sweep.offsets} offsets of several topics at that moment"
        requests = "requests to delete several groups at one time"
        if not sweep.is_decided:
            why_not = f", and {len(sweep.kept)} with older offsets stayed" if sweep.kept else ", all of one age"
            causes = ("expiry by a shorter retention", requests, "the deletion of several topics")
            return replace(
                own,
                cause="removed",
                confidence="undecidable",
                reason=f"{not_due}; {groups}{why_not}",
                records=(),
                not_excluded=causes,
                is_swept=True,
            )
        stayed = "no group without members kept an older one, as after a shorter retention"
        confidence: Confidence = "likely" if self.retention.given_ms is None else "possible"
        late = "an expiry task that had not run for a long time"
        return replace(
            own,
            cause="expired",
            confidence=confidence,
            reason=f"{not_due}; but {groups}, and {stayed}",
            records=(),
            not_excluded=(requests, late),
            expiry="shorter",
            is_swept=True,
        )

    def _not_due(self, start: ExpiryStart) -> str:
        due = start.due(self.retention.expected_ms)
        if due.expires_at_ms is None:
            return due.reason
        by = "" if self.retention.known_ms is not None or not start.adds_retention else ", by the default retention"
        return f"it was not due before {show_time(due.expires_at_ms)} ({due.rule}{by})"

    # Offsets that were due

    def _due(self, removed: RemovedOffset, start: ExpiryStart, age: Age, time_ms: int, late_ms: int) -> Judgement:
        kind: ExpiryKind = "idle"
        before, group = self.evidence.before, self.evidence.before.group
        if start.from_ms == -1 and not start.adds_retention:
            kind = "never_expires"
        elif before.is_just_emptied and start.adds_retention:
            kind = "just_emptied"
        elif group is not None and group.has_members and start.rule == "since_commit":
            kind = "rebalancing" if before.has_hidden_generations else "unsubscribed"
        counted = f"counted from {show_time(start.from_ms or 0)}, it was due at {show_time(time_ms - late_ms)}"
        return replace(self._expired(removed, f"{start.reason}: {counted} ({start.rule})", late_ms, time_ms, kind), age=age)

    def _expired(self, removed: RemovedOffset, reason: str, late_ms: int, time_ms: int, kind: ExpiryKind) -> Judgement:
        """Judge an offset that was due. The task is late from the moment at which it could have removed the offset."""
        since_ms = max(time_ms - late_ms, removed.written_ms or 0, self.evidence.before.eligible_since_ms or 0)
        waited_ms = time_ms - since_ms
        excluded = self._other_causes_when_due()
        start = removed.start
        if self.retention.given_ms is None and start is not None and start.adds_retention:
            excluded.append("another retention: none was given")
        if kind == "rebalancing":
            excluded.append("subscriptions of the generations that left no record")
        if self.evidence.removed[0].record_offset < self.evidence.complete_from_offset:
            excluded.append(f"commits and group records before record {self.evidence.complete_from_offset} that compaction removed")
        confidence: Confidence = "possible" if kind == "rebalancing" else "likely"
        if waited_ms > WINDOWS.next_pass_ms:
            confidence = "possible"
            reason = f"{reason}, {waited_ms // MINUTE_MS} minutes before its removal"
            excluded.append("another cause, since the expiry task runs every ten minutes")
        return Judgement("expired", confidence, reason, (), tuple(excluded), kind)

    def _other_causes_when_due(self) -> list[str]:
        others = [
            name
            for how, name in (("group_deletion", "a request"), ("topic_deletion", "the deletion of the topic"))
            if how in self.rules.profile.removed_by
        ]
        return [f"{', or '.join(others)}, although it was due"] if others else []

    # Offsets that were not due

    def _not_due_cause(self, removed: RemovedOffset, start: ExpiryStart, age: Age | None, reason: str) -> Judgement:
        if self.evidence.group_tombstone is not None:
            return self._with_group(removed, self.evidence.group_tombstone, age, reason)
        not_the_topic = self._not_the_topic(removed)
        if start.is_subscribed:
            return self._of_subscribed_topic(removed, age, reason, not_the_topic)
        at_once = self._of_other_topics(removed)
        if at_once is not None and self._may_be_pass(start, age):
            by_whom = ("the expiry task by a shorter retention or other rules", "the deletion of several topics", "requests")
            reason = f"{reason}; {self._other_group(at_once, 'another topic')}"
            return Judgement("removed", "undecidable", reason, self._here(at_once), by_whom)
        if not_the_topic is not None:
            return self._by_request(removed, not_the_topic, reason)
        with_topic = self._of_same_topic(removed)
        if with_topic is not None:
            requests = (_SHORTER, "requests for several groups") if self.rules.can("group_deletion") else (_SHORTER,)
            reason = f"{reason}; {self._other_group(with_topic)}"
            return Judgement("topic_deleted", "likely", reason, self._here(with_topic), requests)
        the_topic = f"the deletion of topic {removed.topic!r}"
        if self._may_be_whole_group:
            others = (_SHORTER, the_topic, *(["a request to delete its offsets"] if self.rules.can("offset_deletion") else []))
            return Judgement("group_deleted", "possible", f"{reason}; the group kept no offset", (), others)
        if self.rules.can("offset_deletion"):
            return Judgement("offsets_deleted", "possible", reason, (), (_SHORTER, the_topic))
        reason = f"{reason}; this release has no request to delete single offsets"
        return Judgement("topic_deleted", "likely", reason, (), (_SHORTER, _ANOTHER_RELEASE))

    def _with_group(self, removed: RemovedOffset, tombstone: GroupTombstone, age: Age | None, reason: str) -> Judgement:
        """Judge an offset that was removed with its group before it was due: by a request, or with the topic of the last offsets."""
        may_be_pass = removed.start is not None and self._may_be_pass(removed.start, age)
        at_once = may_be_pass and self._of_other_topics(removed) is not None
        by_topic = self.rules.topic_deletion_takes_group and len(self.evidence.topics) == 1 and not self._survivor(removed)
        with_topic = self._of_same_topic_for_group(removed) if by_topic and not at_once else None
        record = tombstone.record_offset
        if self.rules.can("group_deletion") and with_topic is None:
            last = (f"the deletion of topic {removed.topic!r}, whose offsets were its last",) if by_topic else ()
            confidence: Confidence = "possible" if at_once else "likely"
            return Judgement("group_deleted", confidence, reason, (), (_SHORTER, *last), group_record_offset=record)
        if by_topic:
            requests = (_SHORTER, "requests for several groups") if self.rules.can("group_deletion") else (_SHORTER,)
            records: tuple[int, ...] = ()
            if with_topic is not None:
                reason, records = f"{reason}; {self._other_group(with_topic)}", self._here(with_topic)
            return Judgement("topic_deleted", "likely", reason, records, requests, group_record_offset=record)
        reason = f"{reason}; this release has no request to delete a group"
        excluded = (_SHORTER, "the deletion of its topics", _ANOTHER_RELEASE)
        return Judgement("removed", "undecidable", reason, (), excluded, group_record_offset=record)

    def _of_subscribed_topic(
        self, removed: RemovedOffset, age: Age | None, reason: str, not_the_topic: tuple[str, tuple[int, ...]] | None
    ) -> Judgement:
        """Judge an offset of a subscribed topic: neither the expiry task nor a request may remove it, the deletion of the topic does."""
        if not_the_topic is not None and len(self._topics_of_append(removed)) == 1:
            why_not, records = not_the_topic
            hidden = "members that subscribed to other topics for a while, in a generation that left no record"
            if self.rules.can("offset_deletion"):
                return Judgement("offsets_deleted", "possible", f"{reason}; {why_not}", records, (_SHORTER, hidden))
            return Judgement("removed", "undecidable", f"{reason}; {why_not}", records, (_SHORTER, hidden, _ANOTHER_RELEASE))
        is_prompt = age is not None and age.late_ms is not None and age.late_ms <= WINDOWS.next_pass_ms
        if is_prompt and not self._went_with_topic(removed):
            excluded = ("the deletion of the topic at the same time",)
            return Judgement("expired", "likely", f"{reason}; but it was removed as soon as it was old enough", (), excluded, "subscribed")
        return Judgement("topic_deleted", "likely", f"{reason}, so the coordinator would have refused any request", (), (_SHORTER,))

    def _by_request(self, removed: RemovedOffset, not_the_topic: tuple[str, tuple[int, ...]], reason: str) -> Judgement:
        """Judge an offset that the deletion of one topic cannot have removed: a request did."""
        why_not, records = not_the_topic
        reason = f"{reason}; {why_not}"
        several = ("the deletion of several topics",) if len(self._topics_of_append(removed)) > 1 else ()
        if self._may_be_whole_group:
            others = (_SHORTER, *several, *(["a request to delete its offsets"] if self.rules.can("offset_deletion") else []))
            return Judgement("group_deleted", "likely", f"{reason}; the group kept no offset", records, others)
        if self.rules.can("offset_deletion"):
            return Judgement("offsets_deleted", "likely", reason, records, (_SHORTER, *several))
        reason = f"{reason}, and this release has no request to delete single offsets"
        return Judgement("removed", "undecidable", reason, records, (_SHORTER, "the deletion of several topics", _ANOTHER_RELEASE))

    @property
    def _may_be_whole_group(self) -> bool:
        return self.evidence.is_whole_simple_group and self.rules.deletes_simple_groups_without_a_trace

    def _may_be_pass(self, start: ExpiryStart, age: Age | None) -> bool:
        """True if the expiry task of a broker with a shorter retention may have removed it."""
        return start.adds_retention and (age is None or age.age_ms >= WINDOWS.least_retention_ms)

    # Other tombstones of that moment

    def _not_the_topic(self, removed: RemovedOffset) -> tuple[str, tuple[int, ...]] | None:
        """Return why the deletion of the topic cannot have removed it, and the records that prove it; None if it can."""
        kept = next((each for each in self.evidence.kept if each.topic == removed.topic), None)
        if kept is not None:
            return f"the group kept {kept.topic}-{kept.partition}, which the deletion of the topic removes too", _records(kept)
        if len(self._topics_of_append(removed)) > 1:
            return "the same append removed offsets of other topics", ()
        survivor = self._survivor(removed)
        if survivor is not None:
            return f"group {survivor.group!r} kept its offset of the topic (record {survivor.record_offset})", _records(survivor)
        return None

    def _topics_of_append(self, removed: RemovedOffset) -> set[str]:
        """Return the topics that the group lost by the same append."""
        return {each.topic for each in self.evidence.removed if each.byte_position == removed.byte_position}

    def _survivor(self, removed: RemovedOffset) -> KeptOffset | None:
        survivor = self.evidence.survivors.get(removed.topic)
        if survivor is None or survivor.record_offset is None or survivor.record_offset >= removed.record_offset:
            return None
        return survivor

    def _went_with_topic(self, removed: RemovedOffset) -> bool:
        """True if younger offsets of the topic were removed too, or those of other groups and no other topic."""
        if self._of_same_topic(removed) is not None and self._of_other_topics(removed) is None:
            return True
        ages = [age_of(each, self.retention) for each in self.evidence.removed if each.topic == removed.topic]
        return any(age is not None and age.late_ms is None for age in ages)

    def _of_same_topic(self, removed: RemovedOffset) -> OffsetTombstone | None:
        """Return an offset of the topic that another group lost at about the same time."""
        return self.evidence.tombstones.of_same_topic(self._moment(removed))

    def _of_same_topic_for_group(self, removed: RemovedOffset) -> OffsetTombstone | None:
        """Return an offset of the topic that another group lost at the same moment; if the release is unknown, a group that was not
        removed.

        A request can delete several groups, and requests for several groups come at about the same time.
        """
        return self.evidence.tombstones.of_same_topic(self._moment(removed), is_one_act=True, has_group_stayed=not self.rules.is_given)

    def _of_other_topics(self, removed: RemovedOffset) -> OffsetTombstone | None:
        """Return an offset of another topic that another group lost at the same moment."""
        return self.evidence.tombstones.of_other_topics(self._moment(removed))

    def _moment(self, removed: RemovedOffset) -> RemovalMoment:
        return RemovalMoment(self.evidence.group, removed.topic, self.evidence.offsets_partition, removed.timestamp_ms or 0)

    def _here(self, other: OffsetTombstone) -> tuple[int, ...]:
        """Return its record offset, if it is in this log."""
        return (other.record_offset,) if other.offsets_partition == self.evidence.offsets_partition else ()

    def _other_group(self, other: OffsetTombstone, what: str = "an offset of the topic") -> str:
        place = "" if self._here(other) else f" of offsets partition {other.offsets_partition}"
        return f"record {other.record_offset}{place} removed {what} from group {other.group!r} at the same time"

    # The group itself

    def group(self, tombstone: GroupTombstone, offsets: Sequence[Judgement]) -> Judgement:
        """Return the cause of the removal of the group: that of its last offsets, if some were removed with it."""
        if self.rules.is_given and self.rules.last_member_removes_group:
            return Judgement("last_member_left", "likely", "this release removes a group when its last member leaves")
        return self._with_offsets(offsets) if offsets else self._without_offsets(tombstone)

    def _with_offsets(self, offsets: Sequence[Judgement]) -> Judgement:
        by_request = next((each for each in offsets if each.cause == "group_deleted"), None)
        if by_request is not None:
            return by_request
        unknown = next((each for each in offsets if each.cause == "removed"), None)
        known = [each for each in offsets if each.cause != "removed"]
        if len({each.cause for each in known}) != 1:
            return offsets[-1] if unknown is None else unknown
        least_sure = min(known, key=lambda each: each.confidence != "possible")
        if least_sure.cause == "expired":
            return replace(least_sure, reason=f"it was removed with its last offsets; {least_sure.reason}")
        return least_sure

    def _without_offsets(self, tombstone: GroupTombstone) -> Judgement:
        before, held = self.evidence.before, len(self.evidence.kept)
        if before.group is None:
            reason = "the log no longer has the record before its tombstone"
            return Judgement("removed", "undecidable", reason, (), ("expiry and a request",))
        why = self._why_group_stays(before.group, held)
        if why is not None:
            if before.group.has_members and before.group.group_type == "classic" and not self.rules.is_given:
                refused = "so the coordinator would have refused any request"
                reason = f"{_KEPT}: {why}, {refused}; releases to 0.10.0 remove a group with its last member"
                return Judgement("last_member_left", "possible", reason, (), ("a request to delete the group, after its members had left",))
            if self.rules.can("group_deletion"):
                return Judgement("group_deleted", "likely", f"{_KEPT}: {why}", (), (_SHORTER,))
            reason = f"{_KEPT}: {why}; this release has no request to delete a group"
            return Judgement("removed", "undecidable", reason, (), (_SHORTER, "the deletion of its topics", _ANOTHER_RELEASE))
        other = "a request to delete the group" + (", or its conversion to another type" if tombstone.record_type == GROUP_METADATA else "")
        reason = "the group was Empty without offsets: the next run of the expiry task removes such a group"
        since_ms, time_ms = before.empty_since_ms, tombstone.timestamp_ms
        if since_ms is None or time_ms is None or time_ms - since_ms <= WINDOWS.next_pass_ms:
            return Judgement("expired", "likely", reason, (), (other,))
        late = f"{reason}, and had been Empty for {(time_ms - since_ms) // MINUTE_MS} minutes"
        return Judgement("expired", "possible", late, (), (other, "another cause, since the expiry task runs every ten minutes"))

    def _why_group_stays(self, group: GroupForExpiry, held: int) -> str | None:
        """Return why the expiry task does not remove this group; None if it does."""
        if group.has_members:
            return "the group has members"
        if held:
            return f"the group had {held} offsets"
        return "the expiry task removes no share group" if group.group_type == "share" and not self.rules.expires_share_groups else None


def _records(kept: KeptOffset) -> tuple[int, ...]:
    return () if kept.record_offset is None else (kept.record_offset,)
