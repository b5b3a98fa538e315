"""Commits of a key, and the changes, pauses and removals that stand out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

#: The reason why a commit stands out:
#:
#:     rewind          it is lower than the committed offset before it
#:     after_rewind    it is the first different value after a rewind
#:     jump            it rises by much more than the commits before it: see `JUMP_FLOOR`, `JUMP_RATIO`
#:     while_empty     the group had no member at that time, and has members at other times
#:     back            it is the first commit after a tombstone
#:     topic_id        its topic id differs from the last known one of the key
#:     leader_epoch    its leader epoch is lower than the last known one of the key
Reason = Literal["rewind", "after_rewind", "jump", "while_empty", "back", "topic_id", "leader_epoch"]
REASONS: tuple[Reason, ...] = ("rewind", "after_rewind", "jump", "while_empty", "back", "topic_id", "leader_epoch")
#: The number of changes kept of each key for each reason, the first ones. All are counted.
MOST_CHANGES = 200
#: A jump rises by more than this many offsets, and by more than this many times the median of the last `USUAL` rises (at least two).
JUMP_FLOOR, JUMP_RATIO = 10_000, 50
#: A pause is longer than this many milliseconds, and longer than this many times the median of the last `USUAL` intervals (at least two).
PAUSE_MS, PAUSE_RATIO = 60_000, 10
#: The number of pauses kept of each key, the longest ones.
MOST_PAUSES = 20

#: The phase of a group at a record: without a group record so far, without members, with members, or removed by its tombstone.
GroupPhase = Literal["unrecorded", "empty", "active", "removed"]
GROUP_PHASES: tuple[GroupPhase, ...] = ("unrecorded", "empty", "active", "removed")


class CommitRow(NamedTuple):
    """A committed offset. `settled_offset` is the record that made it effective: itself, or the COMMIT marker of its transaction."""

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
    #: The position of its batch in its segment. Commits of one append share it.
    byte_position: int


@dataclass(frozen=True, slots=True)
class Change:
    """A commit that stands out, and the commit that it replaced.

    Attributes:
        before: The replaced commit; None if the log has none.
        phase: The phase of the group at the commit.
        group_steps: The number of group records before the commit.
        value_at_last_step: The committed offset of the key at the last of these group records, where the present owner started.
        value_at_step_before: The same at the last earlier group record that a commit of the key followed, where the previous owner started.
        known_leader_epoch: The leader epoch of the last earlier commit that had one; -1 if none had.
        known_topic_id: The topic id of the last earlier commit that had one; None if none had.
        usual_rise: The median of the rises before the commit; None if there are fewer than two.
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
        """The commit minus the replaced commit; 0 if there is no replaced commit."""
        return 0 if self.before is None else self.commit.committed_offset - self.before.committed_offset

    @property
    def could_be_in_memory(self) -> bool:
        """True if the previous owner could have had this offset in memory: it is not below the offset where that owner started."""
        return self.value_at_step_before is None or self.commit.committed_offset >= self.value_at_step_before


@dataclass(frozen=True, slots=True)
class CommitPause:
    """An interval between two commits of a key that is much longer than usual."""

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
class SameRun:
    """Commits of one value, one after the other: the number of repeats, and the first and last time."""

    committed_offset: int
    repeats: int
    from_ms: int
    to_ms: int
    from_record_offset: int

    @property
    def length_ms(self) -> int:
        return self.to_ms - self.from_ms


@dataclass(frozen=True, slots=True)
class Removal:
    """A tombstone of a key, and the value that it removed (None if the log has none before it)."""

    record_offset: int
    timestamp_ms: int | None
    byte_position: int
    phase: GroupPhase
    group_steps: int
    value: CommitRow | None


@dataclass(frozen=True, slots=True)
class Dropped:
    """A transactional commit that never took effect. `outcome` is `open` if no marker ended the transaction."""

    commit: CommitRow
    outcome: Literal["ABORT", "open"]
    marker_offset: int | None
    marker_timestamp_ms: int | None
