"""Members of another application in a group (IC-41)."""

from __future__ import annotations

from pathlib import Path

import pytest

from .incidents import hit
from .story import Story, codes_of, said


def test_a_console_consumer_takes_a_partition(tmp_path: Path) -> None:
    found = said(hit("IC-41", tmp_path), "IC-41")

    assert (found.severity, found.confidence, found.member_id) == ("warn", "likely", "K")
    assert found.sentence == (
        "1 member of another kind (console-consumer@10.9.3.7 (K)) took t-2 for 7 min: another client id and another address than the other"
        " members (billing-0@10.1.0.4 (A), billing-1@10.1.0.5 (B))"
    )


@pytest.mark.parametrize(
    ("which", "words", "confidence"),
    [
        ("another application, with another subscription", "another client id and another subscription than", "likely"),
        ("a second data centre", "another address than", "possible"),
        ("an application with another assignor", "another client id and another assignor than", "likely"),
    ],
)
def test_the_differences_of_strangers(tmp_path: Path, which: str, words: str, confidence: str) -> None:
    found = said(hit("IC-41", tmp_path, which), "IC-41")

    assert words in found.sentence
    assert "for 2 h, until the end of the log" in found.sentence
    assert found.confidence == confidence


def test_instances_with_random_client_ids_are_no_strangers(tmp_path: Path) -> None:
    members = [
        f"M{number}@10.1.0.{number}/billing-5d8f7c9b4-{name}: t → t-{number}" for number, name in enumerate(("xkqpz", "x2k4p", "77aa1"))
    ]
    story = f"0 d0 08:00 GM g gen=1 {{{members[0]}; {members[1]}}}\n1 d0 12:00 GM g gen=2 {{{'; '.join(members)}}}\n2 d0 15:00 OC g t-0 = 1"

    assert "IC-41" not in codes_of(Story(story).findings(tmp_path))
