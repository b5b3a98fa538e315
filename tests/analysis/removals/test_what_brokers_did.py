"""Who removed an offset, where it is known: real brokers got requests to delete something, or had a retention of a minute."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from exhume.analysis.detectors import Inputs, condense
from exhume.analysis.detectors.removal_evidence import judged_removals
from exhume.analysis.detectors.removal_facts import learn_removals
from exhume.analysis.removals.causes import Cause, Judgement
from exhume.codecs.log_directory import discover
from exhume.codecs.segment_reader import ReadOptions, SegmentReader
from exhume.findings import Findings
from tests.judges import corpus

STORIES = [case for case in corpus.cases(corpus.BUNDLED) if not case.is_fact and not case.is_random]
EXPIRY = ("expiry", "old-ibp")
#: Of stories that delete: 7 tombstones of topics and 4 of groups, whose values compaction removed or a transaction had not committed.
MOST_UNKNOWN = 11


def release_of(case: corpus.Case) -> str:
    """The release of the broker that wrote the log."""
    return case.name.partition("-")[0] + ("-new" if case.name.endswith("-new") else "")


def inputs_of(case: corpus.Case) -> Inputs:
    """What is known besides the log: the release, and the retention where that is no default."""
    return Inputs(release=release_of(case), retention_ms=60_000 if case.name.endswith(EXPIRY) or "-expiry-" in case.name else None)


def _done(case: corpus.Case) -> dict[tuple[Cause, str], None]:
    """What the broker was told to delete: by topic or group."""
    done: dict[tuple[Cause, str], None] = {}
    for each in case.scenario.get("steps", ()):
        step, result = each["step"], each.get("result")
        for pattern in (r"topic (\S+) deleted", r"topics deleted: (.*)"):
            if match := re.fullmatch(pattern, step):
                done |= dict.fromkeys(("topic_deleted", topic) for topic in match[1].split(", "))
        if "DeleteGroups" in step and isinstance(result, dict):
            errors: dict[str, Any] = result.get("result") or result.get("errors") or {}
            done |= dict.fromkeys(("group_deleted", group) for group, error in errors.items() if error == "none")
        if match := re.match(r"(.*): OffsetDelete|OffsetDelete on (\S+)", step):
            done["offsets_deleted", match[1] or match[2]] = None
    return done


def judged(case: corpus.Case, inputs: Inputs) -> Iterator[tuple[str, str, Judgement]]:
    """Group, topic and judgement of every removed offset."""
    for directory in case.data_directories.values():
        with discover([directory]) as evidence:
            condensed = condense(SegmentReader(evidence, ReadOptions(), Findings()))
            learn_removals(condensed, inputs)
            for group in condensed.groups():
                for together in judged_removals(group, inputs):
                    yield from ((group.group, each.key.topic, each.judgement) for each in together.offsets)


@pytest.mark.parametrize("case", [case for case in STORIES if inputs_of(case).retention_ms is not None], ids=lambda case: case.name)
def test_where_the_retention_was_a_minute_every_offset_expired(case: corpus.Case) -> None:
    found = [(group, topic, judgement.cause, judgement.confidence) for group, topic, judgement in judged(case, inputs_of(case))]

    assert {each[2:] for each in found} <= {("expired", "likely")}, found


def test_what_was_deleted_on_request_or_with_its_topic_is_told_apart() -> None:
    told, unknown = 0, 0
    for case in STORIES:
        done = _done(case)
        for group, topic, judgement in judged(case, inputs_of(case)):
            causes = {cause for cause, name in done if name == (topic if cause == "topic_deleted" else group)}
            if not causes:
                continue
            if judgement.cause == "removed":
                unknown += 1
            else:
                assert judgement.cause in causes, (case.name, group, topic, judgement)
                told += 1
    assert told > 150
    assert unknown <= MOST_UNKNOWN
