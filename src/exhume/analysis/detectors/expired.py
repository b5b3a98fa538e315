"""Find offsets that expired: in time, too early, or since no member reads their topic."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from exhume.analysis.detectors.cases import GroupCase
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.keys import KeyHistory
from exhume.analysis.detectors.lags import lag_of
from exhume.analysis.detectors.registry import Detector
from exhume.analysis.detectors.removal_evidence import (
    JudgedOffset,
    JudgedRemoval,
    confidence_of,
    judged_removals,
    new_leader,
    other_causes,
    spelt_offsets,
    subscribed_topics,
)
from exhume.analysis.detectors.report import ADD_RETENTION, Proof, counted, finding, next_step, partitions_of, some, span, undecidable
from exhume.analysis.removals.causes import WINDOWS, ExpiryKind
from exhume.durations import DAY_MS
from exhume.findings import Confidence, Finding, Remedy, Severity
from exhume.moments import show_time


def find_expired_while_idle(group: GroupCase, inputs: Inputs) -> Iterator[Finding]:
    """The expiry task removed offsets that were due.

    The age counts from when the group became Empty; for a group that never had members, and for a KIP-848 group, from the commit. Without
    `--retention`, the retention is the one that explains most removals of all groups, or a default of Kafka: 7 days, 1 day before 2.0. The
    finding is an incident if the group committed one of these keys again: it started where its clients start. If compaction removed the
    earlier commits, the age is not known.
    """
    for part in _parts(group, inputs, "idle"):
        yield _expired(part, inputs)
    yield from _of_unknown_age(group, inputs)


def _of_unknown_age(group: GroupCase, inputs: Inputs) -> Iterator[Finding]:
    log_context = group.log_context
    if log_context.start_offset == 0 and log_context.is_complete_at(0):
        return
    removed = [
        each
        for together in judged_removals(group, inputs)
        for each in together.offsets
        if each.judgement.cause == "removed" and each.judgement.is_value_missing and each.removal == each.key.removals[0]
    ]
    if removed:
        reason = (
            f"tombstones removed {spelt_offsets(removed)}, and compaction removed the earlier commits: the age of the offsets is not known"
        )
        yield undecidable("IC-01", reason, group, evidence=[each.removal for each in removed])


@dataclass(frozen=True, slots=True)
class _Part:
    """Offsets of one topic that one act removed for the same reason."""

    together: JudgedRemoval
    topic: str
    removed: list[JudgedOffset]

    @property
    def offsets(self) -> str:
        return partitions_of(self.topic, [each.key.partition for each in self.removed])

    @property
    def were_removed(self) -> str:
        return f"{self.offsets} {'was' if len(self.removed) == 1 else 'were'} removed"

    @property
    def oldest(self) -> JudgedOffset:
        return max(self.removed, key=_age_ms)

    @property
    def age_ms(self) -> int:
        return _age_ms(self.oldest)

    @property
    def age(self) -> str:
        return span(self.age_ms)

    @property
    def counted_from(self) -> str:
        age = self.oldest.judgement.age
        return "the commit" if age is None else age.counted_from

    @property
    def confidence(self) -> Confidence:
        return confidence_of(self.removed)

    @property
    def not_excluded(self) -> list[str]:
        return other_causes(self.removed)

    @property
    def partition(self) -> int | None:
        return self.removed[0].key.partition if len(self.removed) == 1 else None


def _age_ms(removed: JudgedOffset) -> int:
    return 0 if removed.judgement.age is None else removed.judgement.age.age_ms


def _parts(group: GroupCase, inputs: Inputs, *kinds: ExpiryKind) -> Iterator[_Part]:
    """Return the offsets that expired in one of these ways, by act and topic."""
    return _by_topic(group, inputs, lambda each: each.judgement.expiry in kinds)


def _by_topic(group: GroupCase, inputs: Inputs, is_wanted: Callable[[JudgedOffset], bool]) -> Iterator[_Part]:
    for together in judged_removals(group, inputs):
        by_topic: defaultdict[str, list[JudgedOffset]] = defaultdict(list)
        for removed in filter(is_wanted, together.offsets):
            by_topic[removed.key.topic].append(removed)
        for topic, found in sorted(by_topic.items()):
            yield _Part(together, topic, found)


def _expired(part: _Part, inputs: Inputs) -> Finding:
    together, topic = part.together, part.topic
    is_age_known = part.oldest.judgement.age is not None
    sentence = f"{part.offsets} expired {part.age} after {part.counted_from}" if is_age_known else f"{part.offsets} expired"
    came_back = [(removed, change) for removed in part.removed if (change := together.first_after(removed.key)) is not None]
    moves = [
        f"{topic}-{removed.key.partition} {change.before.committed_offset} → {change.commit.committed_offset} ({change.delta:+d})"
        for removed, change in came_back
        if change.before is not None
    ]
    if came_back:
        sentence += f", and the group committed again: {some(moves) or 'the earlier offsets are not known'}"
    is_reset = any(change.delta != 0 for _, change in came_back)
    return finding(
        "IC-01",
        sentence,
        together.group,
        severity="incident" if is_reset else "warn" if came_back else "info",
        confidence=part.confidence,
        topic=topic,
        partition=part.partition,
        evidence=[*(removed.removal for removed in part.removed), *(change for _, change in came_back)],
        not_excluded=part.not_excluded,
        remedy=_restore("Raise offsets.retention.minutes above the longest pause", together.group, inputs) if is_reset else None,
    )


def find_expired_too_early(group: GroupCase, inputs: Inputs) -> Iterator[Finding]:
    """Offsets were removed although the expiry task must not remove them.

    (a) An offset was old enough, but the group was Stable and members subscribed to the topic, so no request could have deleted it either.
    (b) The last stored generation did not subscribe to the topic, but generations without a record follow: the group was rebalancing.
    (c) An offset was younger than `--retention`: several groups lost offsets of several topics at one moment, or one group lost offsets of
    the same age again and again, or it was a single one, which a request explains as well. (d) The value says that the offset never
    expires, and the offsets partition had just got another leader. Without a letter, Kafka allows it: the last member of a KIP-848 group
    had just left, and its offsets count from their commits, not from when the group became empty.
    """
    for part in _parts(group, inputs, "subscribed"):
        sentence = f"{part.offsets} expired {part.age} after the commit, while the group was Stable and subscribed to the topic"
        yield _early("IC-28a", sentence, part, inputs, severity="incident")
    for part in _parts(group, inputs, "rebalancing"):
        sentence = f"{part.offsets} expired, and generations without a record followed: the group may have been rebalancing"
        yield _early("IC-28b", sentence, part, inputs)
    early = [*_by_topic(group, inputs, _is_early)]
    for part in early:
        yield from _younger_than_retention(part, early, inputs)
    for part in _parts(group, inputs, "never_expires"):
        yield _early(
            "IC-28d", f"{part.were_removed}{_after_new_leader(part)}, although the commits say that they never expire", part, inputs
        )
    for part in _parts(group, inputs, "just_emptied"):
        sentence = f"{part.offsets} expired as soon as the last member had left, {part.age} after the commit (KIP-848 empty-group expiry)"
        yield _early("IC-28", sentence, part, inputs)


def _after_new_leader(part: _Part) -> str:
    removal = part.removed[0].removal
    epoch = new_leader(part.together.group, removal)
    if epoch is None or removal.timestamp_ms is None or epoch.first_timestamp_ms is None:
        return ""
    return f" {span(removal.timestamp_ms - epoch.first_timestamp_ms)} after leader epoch {epoch.leader_epoch} began"


def _younger_than_retention(part: _Part, parts: Sequence[_Part], inputs: Inputs) -> Iterator[Finding]:
    """Judge one of these early removals of a group."""
    is_wide, as_old = part.together.is_wide(), _removals_at_that_age(part, parts)
    age = f"{part.age} after {part.counted_from}"
    if inputs.retention_ms is None:
        removed = f"several groups lost offsets of several topics at one moment, {age}" if is_wide else f"{part.were_removed} {age}"
        again = ", at the same age each time" if as_old and not is_wide else ""
        reason = f"{removed}{again}, and the retention is not known"
        evidence = [each.removal for each in part.removed]
        yield undecidable("IC-28c", reason, part.together.group, remedy=ADD_RETENTION, evidence=evidence)
        return
    sentence = f"{part.were_removed} {age}"
    if is_wide:
        sentence += ", when several groups lost offsets of several topics"
        not_excluded = "requests to delete several groups at one time"
    elif as_old:
        sentence += f", as in {counted(as_old, 'other removal')} of the group"
        not_excluded = "a job that deletes offsets of a certain age"
    elif part.age_ms >= WINDOWS.least_early_ms and part.oldest.judgement.cause != "topic_deleted":
        not_excluded = "a request to delete them (IC-05a), or the deletion of the topic"
    else:
        return
    sentence += f"; the retention is {span(inputs.retention_ms)}"
    yield _early("IC-28c", sentence, part, inputs, confidence="possible", not_excluded=[not_excluded])


def _is_early(removed: JudgedOffset) -> bool:
    """Return True if its age decides, and it was younger than the retention, but not younger than any."""
    age, value = removed.judgement.age, removed.removal.value
    is_by_age = value is None or (value.expire_timestamp_ms or 0) <= 0
    is_young = age is not None and age.late_ms is None and age.age_ms >= WINDOWS.least_retention_ms
    return removed.judgement.cause != "expired" and not removed.judgement.is_swept and is_by_age and is_young


def _removals_at_that_age(part: _Part, parts: Sequence[_Part]) -> int:
    """Count the other times at which the group lost offsets of this age: the expiry task waits for an age, a request does not."""
    at_ms = part.together.timestamp_ms
    if at_ms is None or part.age_ms < WINDOWS.least_early_ms:
        return 0
    return len(
        {
            other.together.record_offset
            for other in parts
            if other.together.timestamp_ms is not None
            and abs(other.together.timestamp_ms - at_ms) > WINDOWS.next_pass_ms
            and abs(other.age_ms - part.age_ms) <= WINDOWS.next_pass_ms
        }
    )


def _early(
    code: str,
    sentence: str,
    part: _Part,
    inputs: Inputs,
    *,
    severity: Severity = "warn",
    confidence: Confidence | None = None,
    not_excluded: list[str] | None = None,
) -> Finding:
    """Return a finding with the confidence and the other causes of the judgement, unless others are given."""
    step = part.together.step
    return finding(
        code,
        sentence,
        part.together.group,
        severity=severity,
        confidence=part.confidence if confidence is None else confidence,
        topic=part.topic,
        partition=part.partition,
        evidence=[*(removed.removal for removed in part.removed), *([step] if step is not None else [])],
        not_excluded=part.not_excluded if not_excluded is None else not_excluded,
        remedy=_restore("Search the known bugs of offset expiry for the broker's release", part.together.group, inputs),
    )


def _restore(first: str, group: GroupCase, inputs: Inputs) -> Remedy:
    return next_step(f"{first}. Restore the removed offsets", inputs, "reset-plan", "--group", group.group, "--lost")


def find_unsubscribed_topics(group: GroupCase, inputs: Inputs) -> Iterator[Finding]:
    """A group has, or had, offsets of a topic that no member subscribes to.

    Either they are still there, were committed more than a day before the log ends, and will expire: `warn`, if `--end-offsets` or commits
    of other groups show records after them; or they expired while the group had
    members, as Kafka intends.
    """
    for part in _parts(group, inputs, "unsubscribed"):
        sentence = f"{part.offsets} expired {part.age} after the commit: no member subscribed to the topic"
        found = _unsubscribed(group, sentence, [each.key for each in part.removed], [each.removal for each in part.removed])
        yield replace(found, confidence=part.confidence, not_excluded="; ".join([str(found.not_excluded), *part.not_excluded]))
    now_ms = group.log_context.last_timestamp_ms
    old = group.keys.held_before(now_ms - DAY_MS) if now_ms is not None else []
    if not old or now_ms is None or group.phase != "active":
        return
    subscribed = subscribed_topics(group.memberships[-1]) if group.memberships else None
    abandoned: defaultdict[str, list[KeyHistory]] = defaultdict(list)
    for key in old:
        if subscribed is not None and key.topic not in subscribed:
            abandoned[key.topic].append(key)
    retention_ms = inputs.retention_ms or group.log_context.likely_retention_ms or WINDOWS.default_retentions_ms[0]
    for topic, keys in sorted(abandoned.items()):
        newest_ms = max(key.holds.commit_timestamp_ms for key in keys if key.holds is not None)
        offsets = partitions_of(topic, [key.partition for key in keys])
        due = f"it is due from {show_time(newest_ms + retention_ms)} on, with a retention of {span(retention_ms)}"
        lags = {key.partition: lag for key in keys if (lag := lag_of(group, key, inputs, newest_ms))}
        age = f"{span(now_ms - newest_ms)} after the commit"
        sentence = f"the group still has {offsets} {age}, although no member subscribes to the topic; {due}"
        if lags:
            sentence += f"; {counted(sum(lags.values()), 'record')} came after these offsets"
        found = _unsubscribed(group, sentence, keys, [key.holds for key in keys if key.holds is not None])
        yield replace(found, severity="warn") if lags else found


def _unsubscribed(group: GroupCase, sentence: str, keys: Sequence[KeyHistory], evidence: Sequence[Proof]) -> Finding:
    return finding(
        "IC-17",
        sentence,
        group,
        severity="info",
        topic=keys[0].topic,
        partition=keys[0].partition if len(keys) == 1 else None,
        evidence=[*evidence, *([group.memberships[-1]] if group.memberships else [])],
        not_excluded=["members with different subscriptions for a time, for example while a new version is deployed"],
    )


DETECTORS = (
    Detector(
        code="IC-01",
        title="Offsets expired while the group was idle or empty",
        section="Offsets disappeared",
        in_group=find_expired_while_idle,
        by_time=True,
        traps=(
            "A request to delete a group leaves the same records, but at any age, and no other group loses offsets at that moment",
            "The deletion of a topic removes its offsets from every group at once",
            "Compaction may have removed the record that says when the group became Empty: the age is then not known",
            "If the leader changed in between, the two times come from two clocks",
        ),
        better_with=("--retention",),
    ),
    Detector(
        code="IC-28",
        title="Offsets expired too early",
        section="Offsets disappeared",
        in_group=find_expired_too_early,
        by_time=True,
        traps=(
            "Brokers refuse requests for offsets of subscribed topics, but the deletion of the topic removes them, too: see (a)",
            "Requests can delete all other offsets at any age: (b), (c) and (d) do not exclude them",
            "The log does not show the subscriptions of a generation without a record",
        ),
        needs=("--retention",),
    ),
    Detector(
        code="IC-17",
        title="Offsets of a topic that the group no longer reads",
        section="Offsets disappeared",
        in_group=find_unsubscribed_topics,
        by_time=True,
        traps=(
            "Members may subscribe by a pattern, and Kafka Streams creates internal topics",
            "Members may subscribe to different topics while a new version of the application is deployed",
            "Brokers before 2.4 keep such offsets for as long as the group is active",
        ),
        better_with=("--retention",),
    ),
)
