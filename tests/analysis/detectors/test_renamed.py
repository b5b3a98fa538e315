"""One application under two group ids."""

from __future__ import annotations

from pathlib import Path

import pytest

from .incidents import hit
from .story import said


def test_an_application_got_another_group_id(tmp_path: Path) -> None:
    found = said(hit("IC-25", tmp_path), "IC-25")

    assert (found.severity, found.confidence, found.group) == ("warn", "likely", "app-v2")
    assert "group app-v1 was last active, with the same topics and client ids" in found.sentence
    assert "t-0 900 → 20 (-880)" in found.sentence


@pytest.mark.parametrize(
    ("title", "said_when"), [("ten minutes later, at the end of the log", "10 min after"), ("days later", "5 d 10 min after")]
)
def test_an_application_is_recognised_after_its_members_left_and_after_days(title: str, said_when: str, tmp_path: Path) -> None:
    assert said(hit("IC-25", tmp_path, title), "IC-25").sentence.startswith(f"the group began {said_when} group app-v1 was last active")
