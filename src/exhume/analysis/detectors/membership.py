"""The section "Membership and assignment" of the catalogue, in catalogue order."""

from __future__ import annotations

from exhume.analysis.detectors import conversions, double_owners, identities, rebalance_storms, stopped, unconsumed_partitions
from exhume.analysis.detectors.registry import Detector

DETECTORS: tuple[Detector, ...] = (
    *rebalance_storms.DETECTORS,
    *double_owners.DETECTORS,
    *unconsumed_partitions.DETECTORS,
    *stopped.DETECTORS,
    *identities.DETECTORS,
    *stopped.UNRECONCILED,
    *conversions.DETECTORS,
    *unconsumed_partitions.UNEVEN,
)
