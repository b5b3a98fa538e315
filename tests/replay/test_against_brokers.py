"""The state of every log against what real brokers said after loading it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

import exhume
from exhume.replay.broker_log import Stop
from exhume.replay.reading import LoadInputs
from exhume.replay.releases import profile_for, release_numbers
from tests.conftest import Compared
from tests.judges import corpus
from tests.judges.broker_answers import Coordinator
from tests.judges.fetch_comparison import compare_fetches
from tests.judges.state_comparison import Comparison, compare_state

#: What must have been compared at least once, where the release can show it.
_CLASSIC = ("groups", "members", "assignments", "offsets")
_MODERN = {
    "consumer": ((3, 7), ("groups", "members", "assignments", "offsets")),
    "share": ((4, 1), ("groups", "members", "assignments")),
    "streams": ((4, 2), ("groups", "members", "assignments", "streams_topologies")),
}

#: The answers of 3.3.2 about these logs list nothing at all, one a group of another story: that broker never loaded them.
_UNTRUSTWORTHY = {
    f"facts/{fact}-clean/after-3.3.2"
    for fact in ("count-wrong", "crc-flip", "magic-5", "offset-back-big", "offset-dup", "size-up", "tail-cut", "tail-zero")
}

RELEASES = sorted(
    {(answer.release, answer.expectation.coordinator) for case in corpus.cases() for answer in case.answers() if answer.data.is_dir()},
    key=lambda pair: (release_numbers(pair[0]), pair[1]),
)


@pytest.mark.parametrize(("release", "coordinator"), RELEASES, ids=lambda part: part)
def test_state_is_what_brokers_of_the_release_said(release: str, coordinator: Coordinator, tmp_path: Path, compared: Compared) -> None:
    total = _compare(_answers(release, coordinator, corpus.BUNDLED), tmp_path)

    assert not total.differences, "\n".join(total.differences[:20])
    assert _must_be_compared(release, coordinator) <= {pair for pair, rows in total.counts.items() if rows}
    _tell(total, f"{release} {coordinator}", compared)


def test_every_release_of_the_bundled_answers_has_rules_of_its_own_span() -> None:
    for release, coordinator in RELEASES:
        profile = profile_for(_asked(release, coordinator))
        assert profile.coordinator == coordinator
        assert release_numbers(profile.first) <= release_numbers(release) <= release_numbers(profile.last)


def _must_be_compared(release: str, coordinator: Coordinator) -> set[tuple[str, str]]:
    if len([answer for answer in _answers(release, coordinator, corpus.BUNDLED) if not answer.case.is_fact]) < 5:
        return {("groups", "classic")}
    wanted = {(table, "classic") for table in _CLASSIC}
    wanted |= {("fetched_offsets", answer) for answer in ("plain", "errors")}
    if release_numbers(release) >= (2, 5):
        wanted.add(("fetched_offsets", "require_stable"))
    for group_type, (since, tables) in _MODERN.items():
        if (
            coordinator == "java"
            and release_numbers(release) >= since
            and any(answer.case.name.startswith(f"random/{group_type}") for answer in _answers(release, coordinator, corpus.BUNDLED))
        ):
            wanted |= {(table, group_type) for table in tables}
    return wanted


@pytest.mark.corpus
@pytest.mark.skipif(corpus.WHOLE is None, reason="EXHUME_CORPUS does not name a larger set of logs")
@pytest.mark.parametrize(("release", "coordinator"), RELEASES, ids=lambda part: part)
def test_state_of_the_whole_corpus_is_what_brokers_of_the_release_said(
    release: str, coordinator: Coordinator, tmp_path: Path, compared: Compared
) -> None:
    assert corpus.WHOLE is not None
    total = _compare(_answers(release, coordinator, corpus.WHOLE), tmp_path)

    assert not total.differences, "\n".join(total.differences[:20])
    _tell(total, f"{release} {coordinator}, whole corpus", compared)


def test_the_judge_objects_to_a_state_that_is_wrong(tmp_path: Path) -> None:
    """A judge that finds nothing must be able to: the same answers against the state of another release."""
    total = Comparison()
    for answer in _answers("4.3.0", "java", corpus.BUNDLED):
        if answer.case.name == "facts/txn-tombstone":
            _judge(total, answer, "2.8.2", tmp_path)

    assert any("refunds" in difference for difference in total.differences)


def test_answers_that_are_not_trusted_say_that_the_broker_never_had_the_log(tmp_path: Path) -> None:
    """They stay out of the comparison above, and this keeps the list honest: our state has groups, the answers list none of them."""
    for case in corpus.cases():
        for answer in case.answers():
            if answer.id in _UNTRUSTWORTHY:
                assert not any(group.listed for name, group in answer.expectation.groups.items() if name.startswith(case.directory.name))


def _answers(release: str, coordinator: Coordinator, root: Path) -> Iterable[corpus.AnswerFile]:
    """What brokers of this release said right after a load; what they said after an expiry pass is another question."""
    for answer in corpus.answer_files(release, coordinator, root=root):
        is_load = not answer.label.startswith("before") and not answer.is_after_expiry and answer.data.is_dir()
        if is_load and answer.id not in _UNTRUSTWORTHY:
            yield answer


def _asked(release: str, coordinator: Coordinator) -> str:
    """The release as a user asks for it: 3.7 to 3.9 have both coordinators."""
    return f"{release}-new" if coordinator == "java" and release.startswith("3.") else release


def _compare(answers: Iterable[corpus.AnswerFile], tmp_path: Path) -> Comparison:
    total = Comparison()
    for answer in answers:
        _judge(total, answer, _asked(answer.release, answer.expectation.coordinator), tmp_path)
    return total


def _judge(total: Comparison, answer: corpus.AnswerFile, loaded_with: str, tmp_path: Path) -> None:
    topics = tmp_path / "topics.csv"
    topics.write_text(
        "topic,topic_id,partitions\n" + "".join(f"{topic},{topic_id},\n" for topic, topic_id in answer.case.topic_ids.items())
    )
    buffer_bytes = re.search(r"-buffer-(\d+)", answer.label)
    inputs = LoadInputs(load_buffer_bytes=int(buffer_bytes[1])) if buffer_bytes else None
    with exhume.open(answer.data) as topic:
        stop: Stop = "clean" if answer.case.is_clean_stop else "unclean"
        state = topic.state(release=loaded_with, stop=stop, topics_file=topics, inputs=inputs)
    tables = {name: table.to_pylist() for name, table in state.tables.items()}
    comparison = compare_state(answer.expectation, tables, release=answer.release)
    compare_fetches(answer.expectation, tables, comparison)
    total.counts.update(comparison.counts)
    total.differences += [f"{answer.id}: {difference}" for difference in comparison.differences]
    total.not_shown += comparison.not_shown


def _tell(total: Comparison, with_what: str, compared: Compared) -> None:
    compared.update({(f"{table} ({group_type})", f"broker {with_what}"): rows for (table, group_type), rows in total.counts.items()})
    reasons = Counter(reason.rpartition(": ")[2].split(",")[0] for reason in total.not_shown)
    compared.update({(f"not shown: {reason}"[:34], f"broker {with_what}"): count for reason, count in reasons.items()})
