"""Offsets that expired: as they should, earlier than they should, or because nobody reads their topic any more."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from exhume.analysis.detectors.cases import GroupCase
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.keys import KeyHistory
from exhume.analysis.detectors.registry import Detector
from exhume.analysis.detectors.report import Proof, counted, finding, partitions_of, some, span, undecidable
from exhume.analysis.detectors.retention import CHECK_MS, DEFAULTS_MS
from exhume.analysis.detectors.sweeps import Removed, Sweep, Verdict, new_leader, subscribed_topics, sweeps
from exhume.analysis.times import show_time
from exhume.durations import DAY_MS
from exhume.findings import Confidence, Finding, Severity

#: What goes sooner than that went on request: passes come by a retention of hours at least.
_LEAST_AGE_MS = 60 * 60_000


def find_expired_while_idle(group: GroupCase, inputs: Inputs) -> Iterator[Finding]:
    """Tombstones of offsets whose age fits the retention.

    The age counts from when the group became Empty, for groups without members of their own and KIP-848 groups from the commit. Without
    `--retention`, what most removals of all groups speak for is taken, or a default of Kafka: 7 days, 1 day before 2.0. It is an incident
    where the group commits to one of the keys again: it began anew, from wherever its clients begin. Where compaction took what tombstones
    removed, nobody knows how old that was.
    """
    for part in _parts(group, inputs, "expired"):
        yield _expired(part, inputs)
    yield from _of_unknown_age(group, inputs)


def _of_unknown_age(group: GroupCase, inputs: Inputs) -> Iterator[Finding]:
    log_context = group.log_context
    if log_context.start_offset == 0 and log_context.is_complete_at(0):
        return
    removed = [
        each
        for part in _parts(group, inputs, "unknown")
        for each in part.removed
        if each.age_ms is None and each.removal.value is None and each.removal == each.key.removals[0]
    ]
    if removed:
        topics = [
            partitions_of(topic, [each.key.partition for each in removed if each.key.topic == topic])
            for topic in sorted({each.key.topic for each in removed})
        ]
        reason = f"{some(topics)} removed, and compaction took what was there before: how old it was is not known"
        yield undecidable("IC-01", reason, group, evidence=[each.removal for each in removed])


@dataclass(frozen=True, slots=True)
class _Part:
    """Offsets of one topic that went in one sweep, for one of the reasons asked for."""

    sweep: Sweep
    topic: str
    removed: list[Removed]

    @property
    def offsets(self) -> str:
        return partitions_of(self.topic, [each.key.partition for each in self.removed])

    @property
    def oldest(self) -> Removed:
        return max(self.removed, key=lambda removed: removed.age_ms or 0)

    @property
    def age(self) -> str:
        return span(self.oldest.age_ms or 0)

    @property
    def partition(self) -> int | None:
        return self.removed[0].key.partition if len(self.removed) == 1 else None


def _parts(group: GroupCase, inputs: Inputs, *verdicts: Verdict) -> Iterator[_Part]:
    """The offsets that went for one of these reasons, sweep by sweep and topic by topic."""
    for sweep in sweeps(group, inputs):
        by_topic: defaultdict[str, list[Removed]] = defaultdict(list)
        for removed in sweep.removed:
            if removed.verdict in verdicts:
                by_topic[removed.key.topic].append(removed)
        for topic, found in sorted(by_topic.items()):
            yield _Part(sweep, topic, found)


def _expired(part: _Part, inputs: Inputs) -> Finding:
    sweep, topic, oldest = part.sweep, part.topic, part.oldest
    sentence = f"{part.offsets} expired {part.age} after {oldest.counted_from}"
    came_back = [(removed, change) for removed in part.removed if (change := sweep.first_after(removed.key)) is not None]
    moves = [
        f"{topic}-{removed.key.partition} {change.before.committed_offset} → {change.commit.committed_offset} ({change.delta:+d})"
        for removed, change in came_back
        if change.before is not None
    ]
    if came_back:
        sentence += f", and the group committed again: {some(moves) or 'what was there before is not known'}"
    is_reset = any(change.delta != 0 for _, change in came_back)
    late_ms = max(removed.late_ms or 0 for removed in part.removed)
    not_excluded = []
    if inputs.retention_ms is None and oldest.counted_from in ("the group became Empty", "the commit"):
        not_excluded.append("another retention: none was given")
    if late_ms > CHECK_MS:
        not_excluded.append(f"a request to delete it: it was due {span(late_ms)} before, and passes come every ten minutes")
    elif not sweep.nearby():
        not_excluded.append("a request to delete it when it was due anyway: nothing else was removed at that time")
    complete_from = sweep.group.log_context.complete_from_offset
    if sweep.record_offset < complete_from:
        not_excluded.append(f"commits and group records in front of record {complete_from} that compaction took")
    return finding(
        "IC-01",
        sentence,
        sweep.group,
        severity="incident" if is_reset else "warn" if came_back else "info",
        confidence="possible" if late_ms > CHECK_MS else "likely",
        topic=topic,
        partition=part.partition,
        evidence=[*(removed.removal for removed in part.removed), *(change for _, change in came_back)],
        not_excluded=not_excluded,
        remedy="Raise offsets.retention.minutes above the longest pause; exhume reset-plan --lost restores what went" if is_reset else None,
    )


def find_expired_too_early(group: GroupCase, inputs: Inputs) -> Iterator[Finding]:
    """Tombstones of offsets that no expiry pass may remove.

    (a) Old enough, but the group was Stable and members subscribe to the topic. (b) The same of a topic that the last stored generation
    does not subscribe to, while generations that the log does not have lie around it: the group was rebalancing. (c) Younger than
    `--retention`, in a sweep of several topics of several groups, or of one group at the same age again and again, or
    by itself, which a request can have done as well. (d) The value says that it never expires, and the partition had just got another
    leader. And, allowed but a surprise: offsets of a KIP-848 group whose last member had just left, since its offsets count from their
    commits, not from when the group became empty.
    """
    yield from _forbidden(group, inputs)
    for part in _parts(group, inputs, "rebalancing"):
        sentence = f"{part.offsets} expired while the group seems to have been rebalancing: a generation without a record followed"
        yield _early("IC-28b", sentence, part, "possible", ["subscriptions of the generations that left no record"])
    yield from _younger_than_retention(group, inputs)
    for part in _parts(group, inputs, "no_expiry"):
        removal = part.removed[0].removal
        epoch = new_leader(group, removal)
        if epoch is not None:
            since = f"{span((removal.timestamp_ms or 0) - (epoch.first_timestamp_ms or 0))} after leader epoch {epoch.leader_epoch} began"
            sentence = f"{part.offsets} removed {since}, though the commits say that they never expire"
            yield _early("IC-28d", sentence, part, "possible", ["a request to delete them", "the deletion of the topic"])
    for part in _parts(group, inputs, "just_emptied"):
        sentence = f"{part.offsets} expired as soon as the last member had left, {part.age} after the commit (KIP-848 empty-group expiry)"
        yield _early("IC-28", sentence, part, "likely", [])


def _forbidden(group: GroupCase, inputs: Inputs) -> Iterator[Finding]:
    for part in _parts(group, inputs, "forbidden"):
        if not part.sweep.is_deletion_of(part.topic):
            sentence = f"{part.offsets} expired {part.age} after the commit, while the group was Stable and subscribed to the topic"
            yield _early("IC-28a", sentence, part, "likely", ["the deletion of the topic at that very age"], severity="incident")


def _younger_than_retention(group: GroupCase, inputs: Inputs) -> Iterator[Finding]:
    parts = []
    for part in _parts(group, inputs, "early", "unknown"):
        by_rule = [each for each in part.removed if each.removal.value is None or (each.removal.value.expire_timestamp_ms or 0) <= 0]
        if by_rule and max(by_rule, key=lambda removed: removed.age_ms or 0).age_ms is not None:
            parts.append(_Part(part.sweep, part.topic, by_rule))
    for part in parts:
        is_wide, as_old = part.sweep.is_wide(), _sweeps_of_that_age(part, parts)
        if inputs.retention_ms is None:
            who = "several groups lost offsets of several topics at one time" if is_wide else f"{part.offsets} went"
            how = ", at the same age each time" if as_old and not is_wide else ""
            reason = f"{who} {part.age} after {part.oldest.counted_from}{how}, and whether that was too early depends on the retention"
            yield undecidable("IC-28c", reason, group, remedy="Give --retention", evidence=[each.removal for each in part.removed])
            continue
        sentence = f"{part.offsets} removed {part.age} after {part.oldest.counted_from}"
        if is_wide:
            sentence += ", in a sweep of several groups and topics"
            not_excluded = "requests to delete several groups at one time"
        elif as_old:
            sentence += f", as in {counted(as_old, 'other sweep')} of the group"
            not_excluded = "a job that tidies up by a clock of its own"
        elif (part.oldest.age_ms or 0) >= _LEAST_AGE_MS and not part.sweep.is_shared(part.topic):
            not_excluded = "a request to delete them (IC-05a), or the deletion of the topic"
        else:
            continue
        sentence += f"; the retention is {span(inputs.retention_ms)}"
        yield _early("IC-28c", sentence, part, "possible", [not_excluded])


def _sweeps_of_that_age(part: _Part, parts: Sequence[_Part]) -> int:
    """At how many other times offsets of the group went that were as old: a request does not wait for that, a pass does."""
    age_ms, at_ms = part.oldest.age_ms or 0, part.sweep.timestamp_ms
    if at_ms is None or age_ms < _LEAST_AGE_MS:
        return 0
    return len(
        {
            other.sweep.record_offset
            for other in parts
            if other.sweep.timestamp_ms is not None
            and abs(other.sweep.timestamp_ms - at_ms) > CHECK_MS
            and abs((other.oldest.age_ms or 0) - age_ms) <= CHECK_MS
        }
    )


def _early(
    code: str, sentence: str, part: _Part, confidence: Confidence, not_excluded: list[str], *, severity: Severity = "warn"
) -> Finding:
    return finding(
        code,
        sentence,
        part.sweep.group,
        severity=severity,
        confidence=confidence,
        topic=part.topic,
        partition=part.partition,
        evidence=[*(removed.removal for removed in part.removed), *([part.sweep.step] if part.sweep.step is not None else [])],
        not_excluded=not_excluded,
        remedy="exhume reset-plan --lost restores what went; look for the broker's release in the known bugs of offset expiry",
    )


def find_unsubscribed_topics(group: GroupCase, inputs: Inputs) -> Iterator[Finding]:
    """Offsets of topics that no member of a Stable group subscribes to.

    Either they are there still, committed more than a day before the log ends, and will expire; or they expired while the group went on,
    which is the normal end of them.
    """
    for part in _parts(group, inputs, "unsubscribed"):
        sentence = f"{part.offsets} expired {part.age} after the commit: no member subscribed to the topic any more"
        removals = [removed.removal for removed in part.removed]
        yield _unsubscribed(group, sentence, [removed.key for removed in part.removed], removals)
    now_ms = group.log_context.last_timestamp_ms
    old = group.keys.held_before(now_ms - DAY_MS) if now_ms is not None else []
    if not old or now_ms is None or group.phase != "active":
        return
    subscribed = subscribed_topics(group.memberships[-1]) if group.memberships else None
    abandoned: defaultdict[str, list[KeyHistory]] = defaultdict(list)
    for key in old:
        if subscribed is not None and key.topic not in subscribed:
            abandoned[key.topic].append(key)
    retention_ms = inputs.retention_ms or group.log_context.likely_retention_ms or DEFAULTS_MS[0]
    for topic, keys in sorted(abandoned.items()):
        newest_ms = max(key.holds.commit_timestamp_ms for key in keys if key.holds is not None)
        offsets = partitions_of(topic, [key.partition for key in keys])
        due = f"due from {show_time(newest_ms + retention_ms)} on, with a retention of {span(retention_ms)}"
        sentence = f"{offsets} still there {span(now_ms - newest_ms)} after the commit, though no member subscribes to the topic: {due}"
        yield _unsubscribed(group, sentence, keys, [key.holds for key in keys if key.holds is not None])


def _unsubscribed(group: GroupCase, sentence: str, keys: Sequence[KeyHistory], evidence: Sequence[Proof]) -> Finding:
    return finding(
        "IC-17",
        sentence,
        group,
        severity="info",
        topic=keys[0].topic,
        partition=keys[0].partition if len(keys) == 1 else None,
        evidence=[*evidence, *([group.memberships[-1]] if group.memberships else [])],
        not_excluded=["members that take turns in what they subscribe to, as while a new release is rolled out"],
    )


DETECTORS = (
    Detector(
        code="IC-01",
        title="Offsets expired while the group was idle or empty",
        section="Offsets disappeared",
        in_group=find_expired_while_idle,
        by_time=True,
        traps=(
            "A request to delete a group looks alike, but its age fits no retention, and no other group is swept at that time",
            "The deletion of a topic takes that topic from every group at once",
            "Compaction may have taken the record that says when the group became Empty: the age is then not known",
            "A leader change between the two moments means two clocks",
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
            "Requests for offsets of subscribed topics are refused, so (a) is none; the deletion of a topic hits other groups too",
            "Requests can delete anything else at any age: (b), (c) and (d) do not exclude them",
            "What a generation without a record subscribed to is not known",
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
            "Subscriptions by pattern, and topics that Kafka Streams makes for itself",
            "Members that take turns in what they subscribe to while a new release is rolled out",
            "Brokers before 2.4 keep such offsets for as long as the group is active",
        ),
        better_with=("--retention",),
    ),
)
