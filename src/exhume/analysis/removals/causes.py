"""The causes of a removal, the thresholds that tell them apart, and the judgement that names one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from exhume.durations import DAY_MS, HOUR_MS, MINUTE_MS
from exhume.findings import Confidence

#: The cause of the removal of an offset or a group:
#:
#:     expired           the expiry task, because it was due
#:     group_deleted     a request to delete the group
#:     offsets_deleted   a request to delete offsets of the group
#:     topic_deleted     the deletion of the topic, which takes its offsets from every group
#:     last_member_left  releases to 0.10.0 remove a group then
#:     removed           the log does not show the cause
Cause = Literal["expired", "group_deleted", "offsets_deleted", "topic_deleted", "last_member_left", "removed"]

#: The reason why an expired offset was due:
#:
#:     idle           the group was Empty, or never had members
#:     unsubscribed   no member subscribed to its topic
#:     just_emptied   it was old enough long before, and the last member of a group of the new protocol had just left
#:     rebalancing    as unsubscribed, and generations without a record follow
#:     subscribed     it was not due, because members subscribed to its topic; but it was removed as soon as it was old enough
#:     shorter        it was not due, but the offsets of several groups went at one moment, as by a new, shorter retention
#:     never_expires  its expire timestamp is -1, and a broker took that for a passed one (KAFKA-8069)
ExpiryKind = Literal["idle", "unsubscribed", "just_emptied", "rebalancing", "subscribed", "shorter", "never_expires"]

#: A record: replica, offsets partition, record offset.
RecordPlace = tuple[str | None, int | None, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalWindows:
    """The thresholds of every judgement about a removal, in milliseconds."""

    #: A coordinator writes the tombstones of one removal within this time, for one group or many.
    together_ms: int = 1000
    #: Every broker learns of the deletion of a topic from the controller within this time; their clocks differ by less.
    topic_deletion_ms: int = 10_000
    #: The expiry task runs every ten minutes by default, and takes up to a minute; the clocks of two brokers may differ.
    next_pass_ms: int = 11 * MINUTE_MS
    #: A new leader may load the log and remove offsets that it wrongly takes for expired within this time.
    new_leader_ms: int = 30 * MINUTE_MS
    #: Brokers count their retention in whole minutes: no younger offset is ever due by it.
    least_retention_ms: int = MINUTE_MS
    #: The default retention since 2.0, and before.
    default_retentions_ms: tuple[int, ...] = (7 * DAY_MS, DAY_MS)
    #: An operator sets a retention in whole days, and not more than this.
    most_retention_days: int = 366
    #: An offset younger than this at its removal is not reported as expired too early.
    least_early_ms: int = HOUR_MS


WINDOWS = RemovalWindows()


@dataclass(frozen=True, slots=True)
class KnownRetention:
    """The retention `offsets.retention.minutes`: as given, or as other removals in the logs suggest."""

    given_ms: int | None = None
    likely_ms: int | None = None

    @property
    def known_ms(self) -> int | None:
        return self.likely_ms if self.given_ms is None else self.given_ms

    @property
    def expected_ms(self) -> int:
        """Return the known retention, or the default."""
        return WINDOWS.default_retentions_ms[0] if self.known_ms is None else self.known_ms

    def late_ms(self, age_ms: int) -> int | None:
        """Return the time by which an offset of this age is past due; None if it is not due, or unknown.

        Without a known retention, an age just above a default suggests that default.
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
    """The age of an offset when its tombstone was written, as the expiry task counts it.

    `late_ms` is the time since it was old enough; None if it was not, or unknown.
    """

    age_ms: int
    counted_from: str
    late_ms: int | None


@dataclass(frozen=True, slots=True)
class Judgement:
    """The cause of a removal.

    `reason` is a clause without a subject. `records` are the record offsets that it names, besides the tombstone and the removed record.
    `expiry` is set if the cause is `expired` and an offset was removed.
    """

    cause: Cause
    confidence: Confidence
    reason: str
    records: tuple[int, ...] = ()
    not_excluded: tuple[str, ...] = ()
    expiry: ExpiryKind | None = None
    age: Age | None = None
    #: The tombstone of the group, if the group was removed with the offset before that was due.
    group_record_offset: int | None = None
    #: The log does not have the removed value: the judgement follows from the other tombstones of its append.
    is_value_missing: bool = False
    #: It was removed with offsets of several groups, before it was due.
    is_swept: bool = False
