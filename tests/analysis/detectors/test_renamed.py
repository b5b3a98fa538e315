"""One application under two group ids."""

from __future__ import annotations

from pathlib import Path

from .incidents import hit
from .story import said


def test_an_application_got_another_group_id(tmp_path: Path) -> None:
    found = said(hit("IC-25", tmp_path), "IC-25")

    assert (found.severity, found.confidence, found.group) == ("warn", "likely", "app-v2")
    assert "group app-v1 was last active, with the same topics and client ids" in found.sentence
    assert "t-0 900 → 20 (-880)" in found.sentence
