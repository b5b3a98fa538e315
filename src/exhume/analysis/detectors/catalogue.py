"""All detectors, in the order of the catalogue."""

from __future__ import annotations

from exhume.analysis.detectors import (
    cleaning,
    copies,
    expired,
    group_placement,
    loading,
    membership,
    offsets_out_of_range,
    removed,
    renamed,
    resets,
    rewinds_and_jumps,
    uncommitted_transactions,
    undecodable,
    volume,
)
from exhume.analysis.detectors.registry import Detector

DETECTORS: tuple[Detector, ...] = (
    # Offsets disappeared.
    *expired.DETECTORS,
    *removed.DETECTORS,
    *uncommitted_transactions.DETECTORS,
    # Offsets moved.
    *rewinds_and_jumps.DETECTORS,
    *resets.DETECTORS,
    *offsets_out_of_range.DETECTORS,
    *renamed.DETECTORS,
    # The coordinator cannot read its log.
    *cleaning.DETECTORS,
    *loading.DETECTORS,
    *group_placement.DETECTORS,
    *copies.DETECTORS,
    # Membership and assignment.
    *membership.DETECTORS,
    # Volume and shape.
    *volume.DETECTORS,
    # Reading and writing back.
    *undecodable.DETECTORS,
)

#: Entries without a detector, and the command that answers each.
WITHOUT_DETECTOR = {"IC-10": "exhume reset-plan restores committed offsets"}
