"""The state of every log against what real brokers said after loading it, and after their expiry passes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from exhume.replay.releases import profile_for, release_numbers
from tests.compared import Compared
from tests.judges import corpus, fidelity, replays
from tests.judges.broker_answers import Coordinator, Expectation
from tests.judges.state_comparison import Comparison, compare_state

FIDELITY = Path(__file__).resolve().parent.parent.parent / "docs" / "fidelity.md"

#: What must have been compared at least once, where the release can show it.
_CLASSIC = ("groups", "members", "assignments", "offsets")
_MODERN = {
    "consumer": ((3, 7), ("groups", "members", "assignments", "offsets")),
    "share": ((4, 1), ("groups", "members", "assignments")),
    "streams": ((4, 2), ("groups", "members", "assignments", "streams_topologies")),
}

RELEASES = sorted(
    {(answer.release, answer.coordinator) for answer in replays.answers()},
    key=lambda pair: (release_numbers(pair[0]), pair[1]),
)
AFTER_EXPIRY = replays.expiry_answers()

whole_corpus = pytest.mark.skipif(corpus.WHOLE is None, reason="EXHUME_CORPUS does not name a larger set of logs")


@pytest.mark.one_of(9)
@pytest.mark.parametrize(("release", "coordinator"), RELEASES, ids=lambda part: part)
def test_state_is_what_brokers_of_the_release_said(release: str, coordinator: Coordinator, compared: Compared) -> None:
    total = _compare_loads(release, coordinator, corpus.BUNDLED)

    assert not total.differences, "\n".join(total.differences[:20])
    assert _must_be_compared(release, coordinator) <= {pair for pair, rows in total.counts.items() if rows}
    _tell(total, f"broker {release} {coordinator}", compared)


def test_every_release_of_the_bundled_answers_has_rules_of_its_own_span() -> None:
    for release, coordinator in RELEASES:
        profile = profile_for(replays.asked(release, coordinator))
        assert profile.coordinator == coordinator
        assert release_numbers(profile.first) <= release_numbers(release) <= release_numbers(profile.last)


def _must_be_compared(release: str, coordinator: Coordinator) -> set[tuple[str, str]]:
    answers = list(replays.of_release(replays.load_answers(), release, coordinator))
    if len([answer for answer in answers if not answer.case.is_fact]) < 5:
        return {("groups", "classic")}
    wanted = {(table, "classic") for table in _CLASSIC}
    wanted |= {("fetched_offsets", answer) for answer in ("plain", "errors")}
    if release_numbers(release) >= (2, 5):
        wanted.add(("fetched_offsets", "require_stable"))
    for group_type, (since, tables) in _MODERN.items():
        if (
            coordinator == "java"
            and release_numbers(release) >= since
            and any(answer.case.name.startswith(f"random/{group_type}") for answer in answers)
        ):
            wanted |= {(table, group_type) for table in tables}
    return wanted


@pytest.mark.parametrize("answer", corpus.parameters(AFTER_EXPIRY))
def test_passes_leave_what_they_left_at_a_broker(answer: corpus.AnswerFile, compared: Compared) -> None:
    comparison = replays.compare_after_expiry(answer)

    assert not comparison.differences, "\n".join(comparison.differences[:20])
    assert comparison.counts["groups", "classic"] or answer.case.is_fact
    with_what = f"expiry {answer.release} {answer.coordinator}"
    _tell(comparison, with_what, compared)
    compared["tombstones", with_what] += replays.after_passes(answer).tombstone_count


def test_every_release_that_was_asked_after_expiry_is_compared() -> None:
    asked = {(answer.release, answer.coordinator) for answer in AFTER_EXPIRY}

    assert len(asked) >= 14
    assert {("0.11.0.3", "classic"), ("2.1.1", "classic"), ("3.7.2", "java"), ("4.0.0", "java"), ("4.3.0", "java")} <= asked


@pytest.mark.corpus
@whole_corpus
@pytest.mark.parametrize(("release", "coordinator"), RELEASES, ids=lambda part: part)
def test_state_of_the_whole_corpus_is_what_brokers_of_the_release_said(release: str, coordinator: Coordinator, compared: Compared) -> None:
    assert corpus.WHOLE is not None
    total = _compare_loads(release, coordinator, corpus.WHOLE)

    assert not total.differences, "\n".join(total.differences[:20])
    _tell(total, f"broker {release} {coordinator}, whole corpus", compared)


@pytest.mark.corpus
@whole_corpus
def test_passes_leave_what_they_left_at_a_broker_in_the_whole_corpus() -> None:
    assert corpus.WHOLE is not None
    total = Comparison()
    for answer in replays.expiry_answers(corpus.WHOLE):
        total.add(replays.compare_after_expiry(answer), answer.id)

    assert not total.differences, "\n".join(total.differences[:20])


# --- Nothing is left out


def assert_every_answer_is_compared(root: Path) -> None:
    compared = {answer.id for answer in [*replays.load_answers(root), *replays.expiry_answers(root)]}

    assert {answer.id for answer in replays.answers(root)} - compared == replays.UNTRUSTWORTHY
    # Answers about a log that lies nowhere would be passed over.
    asked = {answer.id for case in corpus.cases(root) for answer in case.answers() if answer.kind != "before"}
    assert asked == {answer.id for answer in replays.answers(root)}


def test_every_bundled_answer_but_those_named_is_compared() -> None:
    assert_every_answer_is_compared(corpus.BUNDLED)


@pytest.mark.corpus
@whole_corpus
def test_every_answer_of_the_whole_corpus_but_those_named_is_compared() -> None:
    assert corpus.WHOLE is not None
    assert_every_answer_is_compared(corpus.WHOLE)
    stories = {path.name for path in corpus.WHOLE.iterdir() if (path / "data").exists() or (path / "data-broker1").exists()}
    facts = {f"facts/{path.name}" for path in (corpus.WHOLE / "facts").iterdir()}
    randoms = {f"random/{path.name}" for path in (corpus.WHOLE / "random").iterdir()}

    assert stories | facts | randoms == {answer.case.name for answer in replays.answers(corpus.WHOLE)}
    assert facts == {case.name for case in corpus.cases() if case.is_fact}


def test_answers_that_are_not_trusted_say_that_the_broker_never_had_the_log() -> None:
    """They stay out of the comparison, and this keeps the list honest: our state has groups, the answers list none of them."""
    untrusted = [answer for answer in replays.answers() if answer.id in replays.UNTRUSTWORTHY]

    assert len(untrusted) == len(replays.UNTRUSTWORTHY)
    for answer in untrusted:
        listed = [name for name, group in answer.expectation.groups.items() if group.listed]
        assert not any(name.startswith(answer.case.directory.name) for name in listed)


def test_the_judge_objects_to_a_state_that_is_wrong() -> None:
    """A judge that finds nothing must be able to: the same answers against the state of another release."""
    total = Comparison()
    for answer in replays.of_release(replays.load_answers(), "4.3.0", "java"):
        if answer.case.name == "facts/txn-tombstone":
            total.add(replays.compare_load(answer, "2.8.2"), answer.id)

    assert any("refunds" in difference for difference in total.differences)


def answer_named(name: str) -> corpus.AnswerFile:
    (answer,) = (answer for answer in replays.load_answers() if answer.id == name)
    return answer


def differences(name: str, change: Callable[[Expectation], Expectation]) -> list[str]:
    """What differs from this answer once it was changed; from the answer itself nothing does."""
    answer = answer_named(name)
    assert not replays.compare_load(answer).differences
    return compare_state(change(answer.expectation), replays.loaded_tables(answer), release=answer.release).differences


def with_another_generation(expectation: Expectation) -> Expectation:
    probed = next(name for name, group in expectation.groups.items() if "generation" in group.columns)
    group = expectation.groups[probed]
    changed = replace(group, columns=group.columns | {"generation": group.columns["generation"] + 1})
    return replace(expectation, groups={**expectation.groups, probed: changed})


def without_a_failed_load(expectation: Expectation) -> Expectation:
    return replace(expectation, failed_loads=dict(list(expectation.failed_loads.items())[1:]))


def with_another_failed_load(expectation: Expectation) -> Expectation:
    loaded = next(number for number in range(50) if number not in expectation.failed_loads)
    return replace(expectation, failed_loads={**expectation.failed_loads, loaded: "ERROR"})


def with_another_late_error(expectation: Expectation) -> Expectation:
    loaded = next(number for number in range(50) if number not in {*expectation.failed_loads, *expectation.late_errors})
    return replace(expectation, late_errors={**expectation.late_errors, loaded: "ERROR"})


def with_another_topic_name(expectation: Expectation) -> Expectation:
    known = next(name for name, group in expectation.groups.items() if group.topic_names)
    group = expectation.groups[known]
    changed = replace(group, topic_names=dict.fromkeys(group.topic_names, "elsewhere"))
    return replace(expectation, groups={**expectation.groups, known: changed})


def without_an_assigned_partition(expectation: Expectation) -> Expectation:
    assigned = next(name for name, group in expectation.groups.items() if any((group.assigned or {}).values()))
    group = expectation.groups[assigned]
    changed = replace(group, assigned=dict.fromkeys(group.assigned or {}, frozenset()))
    return replace(expectation, groups={**expectation.groups, assigned: changed})


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("random/hostile-classic-2.3-911/after-3.9.1", with_another_generation, "generation is"),
        ("random/hostile-java-4.0-901/after-4.3.0", with_another_generation, "generation is"),
        ("random/hostile-classic-2.3-911/after-3.9.1", without_a_failed_load, "load came to its end is False"),
        ("random/hostile-classic-2.3-911/after-3.9.1", with_another_failed_load, "the broker says 'aborted'"),
        ("random/hostile-java-4.0-901/after-4.3.0", without_a_failed_load, "load came to its end is False"),
        ("random/hostile-classic-2.3-911/after-3.9.1", with_another_late_error, "load has a late error is False"),
        ("4.3.0-consumer-groups/restarted-4.3.0", with_another_topic_name, "name of topic"),
        ("4.3.0-consumer-groups/restarted-4.3.0", without_an_assigned_partition, "assigned partitions is"),
    ],
)
def test_the_judge_objects_to_an_answer_that_was_changed(name: str, change: Callable[[Expectation], Expectation], words: str) -> None:
    assert any(words in difference for difference in differences(name, change))


@pytest.mark.slow
def test_every_generation_that_a_probe_found_is_compared_or_its_group_could_not_be() -> None:
    for answer in replays.load_answers():
        probed = sum("generation" in group.columns for group in answer.expectation.groups.values())
        comparison = replays.compare_load(answer)
        strays = sum("a stray group" in line for line in comparison.not_shown)
        compared = sum(rows for (table, _), rows in comparison.counts.items() if table == "generations")
        assert probed - strays <= compared <= probed, answer.id


# --- What the page says


@pytest.mark.slow
def test_the_page_has_the_figures_of_the_bundled_logs() -> None:
    assert_page_is_current("bundled", corpus.BUNDLED)


@pytest.mark.corpus
@whole_corpus
def test_the_page_has_the_figures_of_the_whole_corpus() -> None:
    assert corpus.WHOLE is not None
    assert_page_is_current("corpus", corpus.WHOLE)


def assert_page_is_current(name: str, root: Path) -> None:
    page = FIDELITY.read_text(encoding="utf-8")

    assert fidelity.with_block(page, name, fidelity.block(root)) == page, "run python tools/measure_fidelity.py"


@pytest.mark.slow
def test_generations_failed_loads_and_restarts_are_among_what_is_compared() -> None:
    measured = fidelity.measured_loads()

    assert sum(each.rows("generations") for each in measured) > 2_000
    assert sum(each.rows("failed_loads") for each in measured) > 500
    assert sum(each.rows("late_errors") for each in measured) > 10
    assert sum(each.restarted for each in measured) == 33


def _compare_loads(release: str, coordinator: Coordinator, root: Path) -> Comparison:
    total = Comparison()
    for answer in replays.of_release(replays.load_answers(root), release, coordinator):
        total.add(replays.compare_load(answer), answer.id)
    return total


def _tell(total: Comparison, with_what: str, compared: Compared) -> None:
    compared.update({(f"{table} ({group_type})", with_what): rows for (table, group_type), rows in total.counts.items()})
    compared.update(Counter({(f"not shown: {reason}"[:34], with_what): count for reason, count in total.reasons.items()}))
