"""Every detector there is, in the order of the catalogue."""

from __future__ import annotations

from exhume.analysis.detectors import conversions, disappeared, double_owners, identities, stopped, unread, unrest
from exhume.analysis.detectors.registry import Detector

DETECTORS: tuple[Detector, ...] = (
    *disappeared.DETECTORS,
    *unrest.DETECTORS,
    *double_owners.DETECTORS,
    *unread.DETECTORS,
    *stopped.DETECTORS,
    *identities.DETECTORS,
    *stopped.UNRECONCILED,
    *conversions.DETECTORS,
    *unread.LOPSIDED,
)

#: Entries that no detector answers, and what does.
WITHOUT_DETECTOR = {"IC-10": "Restoring positions is what exhume reset-plan does"}
