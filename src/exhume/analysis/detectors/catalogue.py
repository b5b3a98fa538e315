"""Every detector there is, in the order of the catalogue."""

from __future__ import annotations

from exhume.analysis.detectors import beyond, expired, membership, moves, removed, renamed, resets, staged
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
    *membership.DETECTORS,
)

#: Entries that no detector answers, and what does.
WITHOUT_DETECTOR = {"IC-10": "Restoring positions is what exhume reset-plan does"}
