"""How often a question reads each segment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from exhume.analysis.detectors.loading import tried_releases
from exhume.codecs import places
from exhume.codecs.log_directory import discover
from exhume.codecs.segment_reader import ReadOptions
from exhume.codecs.volumes import LocalVolume, map_file
from exhume.topic import OffsetsTopic
from tests import bundled

Question = Callable[[OffsetsTopic, str], object]

#: A log of a consumer group, whose records name topics by id, and a log of classic groups; each with one of its groups.
LOGS = {"4.3.0-consumer-groups": "orders-enricher", "2.8.2-compaction": "fulfilment"}
NOW_MS = 2_000_000_000_000
#: A time before the end of both logs.
PAST_MS = 1_700_000_000_000

#: A question, and how often it may read a whole segment.
QUESTIONS: dict[str, tuple[int, Question]] = {
    "state": (1, lambda topic, group: topic.graded_state()),
    "state of a group": (1, lambda topic, group: topic.graded_state(groups=[group])),
    "state at a time": (2, lambda topic, group: topic.graded_state(at_time_ms=PAST_MS)),
    "history": (1, lambda topic, group: topic.history(group)),
    "why": (2, lambda topic, group: topic.why(group, now_ms=NOW_MS)),
    # With the detectors, whose trial loads read a small log once for each line of releases.
    "explain": (2 + len(tried_releases(0)), lambda topic, group: topic.explain(group)),
    "explain at a time": (3, lambda topic, group: topic.explain(group, at_time_ms=NOW_MS)),
    "rebalances": (2, lambda topic, group: topic.rebalances()),
    "rebalances of a group": (2, lambda topic, group: topic.rebalances([group])),
    "owners, timeline": (2, lambda topic, group: topic.owners(groups=[group])),
    "owners of a topic": (2, lambda topic, group: topic.owners(topic="orders")),
    "owners at a time": (2, lambda topic, group: topic.owners(groups=[group], at_time_ms=NOW_MS)),
    "assignments": (2, lambda topic, group: topic.assignments()),
    "assignments of a group": (2, lambda topic, group: topic.assignments(groups=[group])),
    "assignments at a time": (2, lambda topic, group: topic.assignments(at_time_ms=NOW_MS)),
    "memberships": (2, lambda topic, group: list(topic.memberships())),
    "reset plan": (3, lambda topic, group: topic.reset_plan([group], at_time_ms=NOW_MS)),
    "transactions": (1, lambda topic, group: topic.transactions()),
}


#: These read the batches of some groups again, which the first pass has found.
ABOUT_SOME_GROUPS = ("history", "why", "explain", "explain at a time", "owners of a topic")


class CountingVolume(LocalVolume):
    """A directory that counts how often each of its segments is read: whole, and in part."""

    def __init__(self, root: Path, whole: Counter[str], parts: Counter[str]) -> None:
        super().__init__(root)
        self.whole, self.parts = whole, parts

    def open(self, path: str) -> memoryview:
        if path.endswith(".log"):
            self.whole[path] += 1
        return super().open(path)

    def open_window(self, path: str, start: int, end: int) -> memoryview:
        self.parts[path] += 1
        return map_file(self.root / path)[:end]

    def read(self, path: str, start: int, size_bytes: int) -> bytes:
        self.parts[path] += 1
        return bytes(map_file(self.root / path)[start : start + size_bytes])


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("log", LOGS)
def test_a_question_reads_no_segment_more_often_than_it_says(monkeypatch: pytest.MonkeyPatch, log: str, question: str) -> None:
    whole, parts = Counter[str](), Counter[str]()
    monkeypatch.setattr(places, "LocalVolume", lambda root: CountingVolume(root, whole, parts))
    most, ask = QUESTIONS[question]
    with OffsetsTopic(discover([str(bundled.unpacked() / log / "data")]), ReadOptions()) as topic:
        for reads in (whole, parts):
            reads.clear()
        ask(topic, LOGS[log])

    assert whole
    assert max(whole.values()) <= most
    in_part = {path: count for path, count in parts.items() if path.endswith(".log")}
    assert set(in_part.values()) <= ({1} if question in ABOUT_SOME_GROUPS else set())
