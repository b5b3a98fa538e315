"""Every detector there is, in the order of the catalogue."""

from __future__ import annotations

from exhume.analysis.detectors import (
    beyond,
    cleaning,
    copies,
    expired,
    loading,
    membership,
    moves,
    placement,
    removed,
    renamed,
    resets,
    staged,
    undecodable,
    volume,
)
from exhume.analysis.detectors.registry import Detector

DETECTORS: tuple[Detector, ...] = (
    # Offsets disappeared.
    *expired.DETECTORS,
    *removed.DETECTORS,
    *staged.DETECTORS,
    # Offsets moved.
    *moves.DETECTORS,
    *resets.DETECTORS,
    *beyond.DETECTORS,
    *renamed.DETECTORS,
    # The coordinator cannot read its log.
    *cleaning.DETECTORS,
    *loading.DETECTORS,
    *placement.DETECTORS,
    *copies.DETECTORS,
    # Membership and assignment.
    *membership.DETECTORS,
    # Volume and shape.
    *volume.DETECTORS,
    # Reading and writing back.
    *undecodable.DETECTORS,
)

#: Entries that no detector answers, and what does.
WITHOUT_DETECTOR = {"IC-10": "Restoring positions is what exhume reset-plan does"}
