"""The causes of a removal, the thresholds that tell them apart, and the judgement that names one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from exhume.durations import DAY_MS, HOUR_MS, MINUTE_MS
from exhume.findings import Confidence

#: Who removed an offset or a group:
#:
#:     expired           the expiry task, since it was due
#:     group_deleted     a request to delete the group
#:     offsets_deleted   a request to delete offsets of the group
#:     topic_deleted     the deletion of the topic, which takes its offsets from every group
#:     last_member_left  releases to 0.10.0, which remove a group then
#:     removed           the log does not say who
Cause = Literal["expired", "group_deleted", "offsets_deleted", "topic_deleted", "last_member_left", "removed"]

#: Why an offset that expired was due:
#:
#:     idle           the group was Empty, or never had members
#:     unsubscribed   no member subscribed to its topic
#:     just_emptied   it was old long before, and the last member of a group of the new protocol had just left
#:     rebalancing    as unsubscribed, and generations follow that left no record
#:     subscribed     it was not due, since members subscribed to its topic; and yet it went right when it was old enough
#:     never_expires  its value says that it never expires, and a broker took that for a time (KAFKA-8069)
ExpiryKind = Literal["idle", "unsubscribed", "just_emptied", "rebalancing", "subscribed", "never_expires"]

#: A record: replica, offsets partition, record offset.
RecordPlace = tuple[str | None, int | None, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalWindows:
    """The thresholds of every judgement about a removal, in milliseconds."""

    #: A coordinator writes the tombstones of one act within this time, of many groups as of one.
    together_ms: int = 1000
    #: Every broker learns of the deletion of a topic from the controller within this time, and their clocks differ by no more.
    topic_deletion_ms: int = 10_000
    #: The expiry task runs every ten minutes by default, and takes up to a minute; the clocks of two brokers may differ.
    next_pass_ms: int = 11 * MINUTE_MS
    #: A new leader loads the log, and may remove what it takes for old, within this time.
    new_leader_ms: int = 30 * MINUTE_MS
    #: Brokers count their retention in whole minutes: nothing younger is ever due by it.
    least_retention_ms: int = MINUTE_MS
    #: The default retention since 2.0, and before.
    default_retentions_ms: tuple[int, ...] = (7 * DAY_MS, DAY_MS)
    #: A retention that was set by hand is a whole number of days, so many at most.
    most_retention_days: int = 366
    #: What is removed sooner than that is not reported as expired too early.
    least_early_ms: int = HOUR_MS


WINDOWS = RemovalWindows()


@dataclass(frozen=True, slots=True)
class KnownRetention:
    """What is known of `offsets.retention.minutes`: what was given, or else what other removals in the logs point to."""

    given_ms: int | None = None
    likely_ms: int | None = None

    @property
    def known_ms(self) -> int | None:
        return self.likely_ms if self.given_ms is None else self.given_ms

    @property
    def expected_ms(self) -> int:
        """The one that is known, or the default."""
        return WINDOWS.default_retentions_ms[0] if self.known_ms is None else self.known_ms

    def late_ms(self, age_ms: int) -> int | None:
        """By how much an offset of this age is past due; None where it is not due, or that is not known.

        Where no retention is known, an age right after a default points to that default.
        """
        if self.known_ms is not None:
            return age_ms - self.known_ms if age_ms >= self.known_ms else None
        defaults_ms = WINDOWS.default_retentions_ms
        near = next((each for each in defaults_ms if each <= age_ms <= each + WINDOWS.next_pass_ms), None)
        if near is not None:
            return age_ms - near
        return age_ms - defaults_ms[0] if age_ms >= defaults_ms[0] else None


@dataclass(frozen=True, slots=True)
class Age:
    """How old an offset was when its tombstone was written, as the expiry task counts.

    `late_ms` says for how long it had been old enough; None where it was not, or that is not known.
    """

    age_ms: int
    counted_from: str
    late_ms: int | None


@dataclass(frozen=True, slots=True)
class Judgement:
    """Who removed an offset or a group.

    `reason` is a clause without a subject; `records` are the record offsets that it names besides the tombstone and what that removed.
    `expiry` is there where the cause is `expired` and an offset went.
    """

    cause: Cause
    confidence: Confidence
    reason: str
    records: tuple[int, ...] = ()
    not_excluded: tuple[str, ...] = ()
    expiry: ExpiryKind | None = None
    age: Age | None = None
    #: The tombstone of the group, where that went with the offset before it was due.
    group_record_offset: int | None = None
    #: What was removed is not in the log: the judgement rests on what went with it.
    is_value_missing: bool = False
