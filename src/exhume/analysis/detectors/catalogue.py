"""All detectors, in the order of the catalogue."""

from __future__ import annotations

from exhume.analysis.detectors import (
    cleaning,
    conversions,
    copies,
    double_owners,
    expired,
    frequent_rebalances,
    group_placement,
    identities,
    jumps,
    loading,
    offsets_out_of_range,
    rebalances,
    removed,
    renamed,
    resets,
    rewinds,
    shorter_retention,
    strangers,
    stuck,
    uncommitted_transactions,
    unconsumed_partitions,
    undecodable,
    uneven,
    volume,
)
from exhume.analysis.detectors.registry import Detector

DETECTORS: tuple[Detector, ...] = (
    # Offsets disappeared.
    *expired.DETECTORS,
    *shorter_retention.DETECTORS,
    *removed.DETECTORS,
    *uncommitted_transactions.DETECTORS,
    # Offsets moved.
    *rewinds.DETECTORS,
    *jumps.DETECTORS,
    *offsets_out_of_range.LOST_LEADER_EPOCHS,
    *resets.DETECTORS,
    *offsets_out_of_range.DETECTORS,
    *renamed.DETECTORS,
    # The coordinator cannot read its log.
    *cleaning.DETECTORS,
    *loading.DETECTORS,
    *group_placement.DETECTORS,
    *copies.DETECTORS,
    # Membership and assignment.
    *rebalances.STORMS,
    *frequent_rebalances.DETECTORS,
    *double_owners.DETECTORS,
    *unconsumed_partitions.DETECTORS,
    *stuck.DETECTORS,
    *rebalances.STOPPED,
    *identities.DETECTORS,
    *strangers.DETECTORS,
    *rebalances.UNRECONCILED,
    *conversions.DETECTORS,
    *uneven.DETECTORS,
    # Volume and shape.
    *volume.DETECTORS,
    # Reading and writing back.
    *undecodable.DETECTORS,
)

#: Entries without a detector, and the command that answers each.
WITHOUT_DETECTOR = {"IC-10": "exhume reset-plan restores committed offsets"}
