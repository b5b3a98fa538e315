"""Commits, and what stands out among them: the vocabulary of detectors that look at keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

#: Why a commit stands out:
#:
#:     rewind          it is lower than the one that held before
#:     after_rewind    it is the next other value behind a rewind
#:     jump            it is higher by much more than the commits before it used to rise: see `JUMP_FLOOR`, `JUMP_RATIO`
#:     while_empty     nobody was in the group, which has members at other times
#:     back            the first one behind a tombstone
#:     topic_id        it names another topic id than the last one that named any
#:     leader_epoch    its leader epoch is lower than that of the last one that had any
Reason = Literal["rewind", "after_rewind", "jump", "while_empty", "back", "topic_id", "leader_epoch"]
REASONS: tuple[Reason, ...] = ("rewind", "after_rewind", "jump", "while_empty", "back", "topic_id", "leader_epoch")
#: Of each key, changes of so many are kept for each reason, the first ones; all are counted.
MOST_CHANGES = 200
#: A jump is a rise by more than both: so many offsets, and so many times the median of the last `USUAL` rises, two at least.
JUMP_FLOOR, JUMP_RATIO = 10_000, 50
#: A pause is an interval that is longer than both: so many milliseconds, and so many times the median of the last `USUAL`, two at least.
PAUSE_MS, PAUSE_RATIO = 60_000, 10
#: Of each key so many pauses are kept, the longest.
MOST_PAUSES = 20

#: What the log says about a group at a record: it has no record (yet); nobody is in it; it has members; its tombstone was the last word.
GroupPhase = Literal["unrecorded", "empty", "active", "removed"]
GROUP_PHASES: tuple[GroupPhase, ...] = ("unrecorded", "empty", "active", "removed")


class CommitRow(NamedTuple):
    """A committed value. `settled_offset` is the record that made it count: itself, or the COMMIT marker of its transaction."""

    record_offset: int
    timestamp_ms: int | None
    committed_offset: int
    leader_epoch: int
    metadata_bytes: int
    commit_timestamp_ms: int
    expire_timestamp_ms: int | None
    value_version: int
    topic_id: str | None
    #: None for a plain commit.
    producer_id: int | None
    settled_offset: int
    #: Where its batch lies in its segment: commits of one append share it.
    byte_position: int


@dataclass(frozen=True, slots=True)
class Change:
    """A commit that stands out, and what it took the place of: None where the log has nothing before it.

    `phase` is that of the group then. `group_steps` counts the group's own records in front of it. `value_at_last_step` is what the key
    held when the last of them came, `value_at_step_before` when the one before did that brought a new value with it: what the present owner
    began with, and the one before him. `known_leader_epoch` and `known_topic_id` are of the last commit before it that had any, -1 and None
    for none. `usual_rise` is the median of the rises before it, None before two.
    """

    reasons: frozenset[Reason]
    commit: CommitRow
    before: CommitRow | None
    phase: GroupPhase
    group_steps: int
    value_at_last_step: int | None = None
    value_at_step_before: int | None = None
    known_leader_epoch: int = -1
    known_topic_id: str | None = None
    usual_rise: float | None = None

    @property
    def delta(self) -> int:
        """By how much it is higher than what it took the place of; 0 where there is nothing."""
        return 0 if self.before is None else self.commit.committed_offset - self.before.committed_offset


@dataclass(frozen=True, slots=True)
class CommitPause:
    """A time without a commit of a key that is much longer than usual, and the commits on both sides of it."""

    before: CommitRow
    after: CommitRow
    usual_interval_ms: float

    @property
    def from_ms(self) -> int:
        return self.before.timestamp_ms or 0

    @property
    def to_ms(self) -> int:
        return self.after.timestamp_ms or 0

    @property
    def length_ms(self) -> int:
        return self.to_ms - self.from_ms


@dataclass(frozen=True, slots=True)
class Removal:
    """A tombstone of a key, and the value that it removed: None where the log has none before it."""

    record_offset: int
    timestamp_ms: int | None
    byte_position: int
    phase: GroupPhase
    group_steps: int
    value: CommitRow | None


@dataclass(frozen=True, slots=True)
class Dropped:
    """A commit of a transaction that never counted. `outcome` is ABORT, or open where no marker ended the transaction."""

    commit: CommitRow
    outcome: Literal["ABORT", "open"]
    marker_offset: int | None
    marker_timestamp_ms: int | None
