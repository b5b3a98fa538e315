"""Every detector there is, in the order of the catalogue."""

from __future__ import annotations

from exhume.analysis.detectors import cleaning, copies, expired, loading, placement, removed, staged, undecodable, volume
from exhume.analysis.detectors.registry import Detector

DETECTORS: tuple[Detector, ...] = (
    *expired.DETECTORS,
    *removed.DETECTORS,
    *staged.DETECTORS,
    *cleaning.DETECTORS,
    *loading.DETECTORS,
    *placement.DETECTORS,
    *copies.DETECTORS,
    *volume.DETECTORS,
    *undecodable.DETECTORS,
)

#: Entries that no detector answers, and what does.
WITHOUT_DETECTOR = {"IC-10": "Restoring positions is what exhume reset-plan does"}
