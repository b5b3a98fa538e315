"""One application under two group ids."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.analysis.detectors.story import Story, codes_of, said

_RENAMED = """
    0 d0 08:00 OC other x-0 = 1
    1 d0 09:00 GM app-v1 gen=1 {A@10.0.0.1/app-1: t → t-0}
    2 d0 09:01 OC app-v1 t-0 = 900
    3 d0 10:00 GM app-v1 gen=2 empty
    4 d0 10:10 GM app-v2 gen=1 {X@10.0.0.1/app-1: t → t-0}
    5 d0 10:11 OC app-v2 t-0 = 20
    6 d0 14:00 OC other x-0 = 2
"""


def test_an_application_got_another_group_id(tmp_path: Path) -> None:
    found = said(Story(_RENAMED).findings(tmp_path), "IC-25")

    assert (found.severity, found.confidence, found.group) == ("warn", "likely", "app-v2")
    assert "group app-v1 was last active, with the same topics and client ids" in found.sentence
    assert "t-0 900 → 20 (-880)" in found.sentence


@pytest.mark.parametrize(
    "log",
    [
        pytest.param(_RENAMED + "7 d0 14:01 OC app-v1 t-0 = 950", id="both stay active"),
        pytest.param(_RENAMED.replace("OC app-v2 t-0", "OC app-v2 u-0"), id="another topic"),
        pytest.param(_RENAMED.replace("10.0.0.1/app-1: t → t-0}\n    5", "10.9.9.9/batch: t → t-0}\n    5")
                     .replace("GM app-v2 gen=1", "GM app-v2 gen=1 proto=sticky"), id="nothing in common"),
        pytest.param(_RENAMED.replace("6 d0 14:00", "6 d0 10:20"), id="too early to say"),
        pytest.param(_RENAMED.replace("d0 10:1", "d5 10:1").replace("d0 14", "d6 14"), id="days later"),
        pytest.param(_RENAMED.replace("6 d0 14:00", "9 d0 14:00"), id="compaction has been there"),
    ],
)  # fmt: skip
def test_what_is_no_new_name(tmp_path: Path, log: str) -> None:
    assert "IC-25" not in codes_of(Story(log).findings(tmp_path))
