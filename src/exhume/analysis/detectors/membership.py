"""The section "Membership and assignment" of the catalogue, in its order."""

from __future__ import annotations

from exhume.analysis.detectors import conversions, double_owners, identities, stopped, unread, unrest
from exhume.analysis.detectors.registry import Detector

DETECTORS: tuple[Detector, ...] = (
    *unrest.DETECTORS,
    *double_owners.DETECTORS,
    *unread.DETECTORS,
    *stopped.DETECTORS,
    *identities.DETECTORS,
    *stopped.UNRECONCILED,
    *conversions.DETECTORS,
    *unread.LOPSIDED,
)
