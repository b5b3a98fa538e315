"""The table of rebalances."""

from __future__ import annotations

from exhume.arrow_rows import Int32, OfLog, schema_of


class RebalanceRow(OfLog):
    """One row per stored generation of a classic group, one per epoch of another group, and one for each other event of a group.

    `event` is rebalance, emptied (the last member left), static_replacement (a static member returned under another member id, and no
    partition moved), static_away (it left for now), rewritten (the same generation again), created (a record without members), converted
    (to this group type), or removed.

    `causes` are, as far as two records show: group_began, first_seen (the log has nothing from before), member_joined, member_left,
    member_restarted (the same client and host, or instance, under another member id), subscription_changed, protocol_changed,
    leader_changed, cooperative_follow_up (partitions released in the generation before get new owners), topics_changed, topology_changed,
    partitions_initialized (more partitions of a share group became assignable), converted, unknown. `skipped` is the number of generations
    or epochs between this row and the one before. If `is_complete`, no record between them is missing: those rebalances never got an
    assignment.

    `joined` and `left` are member ids; their clients are `#instance`, or client id and host. `partitions` are assigned, or in the target;
    `partitions_moved` have another owner than before, `partitions_lost` have none any more.

    `no_assignment_ms` is the time in which no partition was assigned: `exactly`, since the group became Empty; `at_least`, since the choice
    of the leader (the log does not show the time of the joins before). `reconciliation_ms` is the time from the epoch to the batch in which
    every member had reached its target. If that did not happen, `waiting` are the members without their target, at the next epoch or at the
    end. A row is part of a storm if generations increased by one a minute or faster for ten minutes, and one client joined and left again
    and again, or most generations changed no member.
    """

    record_offset: int
    last_record_offset: int
    timestamp_ms: int | None
    group: str
    group_type: str
    event: str
    causes: list[str]
    generation: Int32 | None
    group_epoch: Int32 | None
    skipped: int | None
    is_complete: bool
    protocol: str | None
    leader: str | None
    members: Int32
    joined: list[str] | None
    left: list[str] | None
    joined_clients: list[str] | None
    left_clients: list[str] | None
    partitions: Int32 | None
    partitions_moved: Int32 | None
    partitions_lost: Int32 | None
    no_assignment_ms: int | None
    no_assignment_is: str | None
    target_epoch: Int32 | None
    target_record_offset: int | None
    reconciled_record_offset: int | None
    reconciliation_ms: int | None
    waiting: list[str] | None
    is_storm: bool
    path: str
    byte_position: int


REBALANCES = schema_of(RebalanceRow)
