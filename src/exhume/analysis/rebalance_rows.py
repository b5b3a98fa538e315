"""The table of rebalances."""

from __future__ import annotations

from exhume.arrow_rows import Int32, OfLog, schema_of


class RebalanceRow(OfLog):
    """One row per generation of a classic group that was stored, one per epoch of another, and one for each other event of its life.

    `event` is rebalance, emptied (the last member went), static_replacement (a static member came back under another member id, nothing was
    shared out anew), static_away (it left for now), rewritten (the same once more), created (a record without anybody), converted (to this
    group type), or removed.

    `causes` are, as far as two records tell: group_began, first_seen (what was before, if anything, is not in the log), member_joined,
    member_left, member_restarted (the same client and host, or instance, under another member id), subscription_changed, protocol_changed,
    leader_changed, cooperative_follow_up (partitions given up in the generation before find their owners), topics_changed,
    topology_changed, partitions_initialized (a share group has more partitions to give), converted, unknown. The number of `skipped`
    generations, or epochs, between this row and the one before: where `is_complete` says that nothing can be missing in between, they are
    rebalances that never got an assignment.

    `joined` and `left` are member ids, beside them their clients: `#instance`, or client id and host. `partitions` are assigned, or in the
    target; `partitions_moved` have another owner than before, `partitions_lost` none any more.

    `no_assignment_ms` is for how long nobody had a partition: `exactly`, from the moment the group became Empty on; `at_least`, from the
    choice of the leader on (what came before it, while members joined, is not in the log). `reconciliation_ms` counts from the epoch to the
    batch in which every member had reached its target; where that never came, `waiting` are the members that had not, at the next epoch or
    at the end. A row is part of a storm where generations rose by one a minute or faster for ten minutes, and somebody came and went, or
    most of them came without any change.
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
