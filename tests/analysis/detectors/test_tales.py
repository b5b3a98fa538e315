"""Incidents that no rule was written for are found, and healthy groups have no warning."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from exhume.analysis.detectors import Inputs
from exhume.durations import parse_duration
from exhume.findings import Finding
from exhume.replay.topic_names import read_topics_file

from . import tales_of_days, tales_of_groups, tales_of_offsets, tales_of_production, tales_of_shifts
from .story import Story, topic_id
from .tales import TALES, Told

#: Tales that no rule finds: the log shows too little of them.
MISSED: frozenset[str] = frozenset()
TOLD_IN = (tales_of_days, tales_of_groups, tales_of_offsets, tales_of_production, tales_of_shifts)


def _warned(told: Told, directory: Path) -> list[Finding]:
    """Return the decided findings of this tale at `warn` or above."""
    topics = None
    if told.topics:
        file = directory / "topics.csv"
        lines = (f"{topic},{topic_id(topic)},{count}\n" for topic, count in told.topics.items())
        file.write_text("topic,topic_id,partitions\n" + "".join(lines), encoding="utf-8")
        topics = read_topics_file(file)
    inputs = Inputs(
        end_offsets=told.ends,
        start_offsets=told.starts,
        topics=topics,
        retention_ms=None if told.retention is None else parse_duration(told.retention),
    )
    found = Story(told.text).findings(directory / "data", inputs)
    return [each for each in found if each.severity != "info" and each.confidence != "undecidable"]


def _is_found(found: Collection[Finding], expected: Collection[str]) -> bool:
    codes = {each.code for each in found}
    return any(code == each or (code.startswith(each) and code[len(each) :].isalpha()) for code in codes for each in expected)


def test_there_are_more_than_a_hundred_tales() -> None:
    assert len(TALES) > 100
    assert {*TALES} > MISSED
    assert len(TOLD_IN) == len([*Path(__file__).parent.glob("tales_of_*.py")])


@pytest.mark.one_of(6)
@pytest.mark.parametrize("name", TALES)
def test_a_tale_is_found_or_silent(name: str, tmp_path: Path) -> None:
    told = TALES[name]()

    found = _warned(told, tmp_path)

    if told.expected:
        assert _is_found(found, told.expected) == (name not in MISSED), [(each.code, each.sentence) for each in found]
    else:
        assert not found, [(each.code, each.sentence) for each in found]
