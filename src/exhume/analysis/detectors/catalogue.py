"""Every detector there is, in the order of the catalogue."""

from __future__ import annotations

from exhume.analysis.detectors import disappeared
from exhume.analysis.detectors.registry import Detector

DETECTORS: tuple[Detector, ...] = (*disappeared.DETECTORS,)

#: Entries that no detector answers, and what does.
WITHOUT_DETECTOR = {"IC-10": "Restoring positions is what exhume reset-plan does"}
