"""Where logs are: one place, or several."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from os import PathLike
from pathlib import Path

from exhume.codecs.log_directory import Evidence, discover

Place = str | PathLike[str]


def found(places: Place | Sequence[Place] | Evidence, include: Collection[str], filesystem_options: Mapping[str, str] | None) -> Evidence:
    """What lies at these places: paths of this machine, or URIs; what was found before is given back."""
    if isinstance(places, Evidence):
        return places
    listed = [places] if isinstance(places, str | PathLike) else list(places)
    return discover(
        [place if isinstance(place, Path) else str(place) for place in listed],
        include=frozenset(include),
        filesystem_options=filesystem_options,
    )
