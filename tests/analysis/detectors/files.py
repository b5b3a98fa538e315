"""Diagnose directories as `exhume diagnose` does, for detectors that read the files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import exhume
from exhume.analysis.detectors import Inputs
from exhume.findings import Finding


def diagnosed(places: Path | Sequence[Path], code: str, inputs: Inputs | None = None) -> list[Finding]:
    """Return the findings of one detector, with the undecidable ones."""
    listed = [places] if isinstance(places, Path) else [*places]
    with exhume.open(listed) as topic:
        return [*topic.diagnose(inputs, codes=[code])]


def decided(places: Path | Sequence[Path], code: str, inputs: Inputs | None = None) -> list[Finding]:
    """Return the findings of one detector."""
    return [finding for finding in diagnosed(places, code, inputs) if finding.confidence != "undecidable"]
