"""Directories diagnosed as `exhume diagnose` does it: for detectors that look at the files themselves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import exhume
from exhume.analysis.detectors import Inputs
from exhume.findings import Finding


def diagnosed(places: Path | Sequence[Path], code: str, inputs: Inputs | None = None) -> list[Finding]:
    """What one detector finds, what it could not decide too."""
    listed = [places] if isinstance(places, Path) else [*places]
    with exhume.open(listed) as topic:
        return [*topic.diagnose(inputs, codes=[code])]


def decided(places: Path | Sequence[Path], code: str, inputs: Inputs | None = None) -> list[Finding]:
    """What one detector finds."""
    return [finding for finding in diagnosed(places, code, inputs) if finding.confidence != "undecidable"]
