"""The state of every log against what real brokers said after loading it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from tests.conftest import Compared
from tests.judges import corpus
from tests.judges.state_comparison import Comparison, compare_state

import exhume

#: What must have been compared at least once, by release and coordinator.
MUST_BE_COMPARED = {
    "2.8.2": {(table, "classic") for table in ("groups", "members", "assignments", "offsets", "pending_offsets")},
    "4.3.0": {
        *((table, "classic") for table in ("groups", "members", "assignments", "offsets", "pending_offsets")),
        *((table, "consumer") for table in ("groups", "members", "assignments", "offsets")),
        *((table, "share") for table in ("groups", "members", "assignments", "share_partitions")),
        *((table, "streams") for table in ("groups", "members", "assignments", "offsets", "streams_topologies")),
    },
}


@pytest.mark.parametrize("release", sorted(MUST_BE_COMPARED))
def test_state_is_what_brokers_of_the_release_said(release: str, tmp_path: Path, compared: Compared) -> None:
    total = _compare(_answers(release, corpus.BUNDLED), release, tmp_path)

    assert not total.differences, "\n".join(total.differences[:20])
    assert MUST_BE_COMPARED[release] <= {pair for pair, rows in total.counts.items() if rows}
    _tell(total, release, compared)


@pytest.mark.corpus
@pytest.mark.skipif(corpus.WHOLE is None, reason="EXHUME_CORPUS does not name a larger set of logs")
@pytest.mark.parametrize("release", sorted(MUST_BE_COMPARED))
def test_state_of_the_whole_corpus_is_what_brokers_of_the_release_said(release: str, tmp_path: Path, compared: Compared) -> None:
    assert corpus.WHOLE is not None
    total = _compare(_answers(release, corpus.WHOLE), release, tmp_path)

    assert not total.differences, "\n".join(total.differences[:20])
    _tell(total, f"{release}, whole corpus", compared)


def test_the_judge_objects_to_a_state_that_is_wrong(tmp_path: Path) -> None:
    """A judge that finds nothing must be able to: the same answers against the state of another release."""
    total = Comparison()
    for answer in _answers("4.3.0", corpus.BUNDLED):
        if answer.case.name == "facts/txn-tombstone":
            _judge(total, answer, "2.8.2", "4.3.0", tmp_path)

    assert any("refunds" in difference for difference in total.differences)


def _answers(release: str, root: Path) -> Iterable[corpus.AnswerFile]:
    """What brokers of this release said right after a load; what they said after an expiry pass is another question."""
    for answer in corpus.answer_files(release, root=root):
        if not answer.label.startswith("before") and not answer.is_after_expiry and answer.data.is_dir():
            yield answer


def _compare(answers: Iterable[corpus.AnswerFile], release: str, tmp_path: Path) -> Comparison:
    total = Comparison()
    for answer in answers:
        _judge(total, answer, release, release, tmp_path)
    return total


def _judge(total: Comparison, answer: corpus.AnswerFile, loaded_with: str, said_by: str, tmp_path: Path) -> None:
    topics = tmp_path / "topics.csv"
    topics.write_text(
        "topic,topic_id,partitions\n" + "".join(f"{topic},{topic_id},\n" for topic, topic_id in answer.case.topic_ids.items())
    )
    with exhume.open(answer.data) as topic:
        state = topic.state(release=loaded_with, stop="clean" if answer.case.is_clean_stop else "unclean", topics_file=topics)
    tables = {name: table.to_pylist() for name, table in state.tables.items()}
    comparison = compare_state(answer.expectation, tables, release=said_by)
    total.counts.update(comparison.counts)
    total.differences += [f"{answer.id}: {difference}" for difference in comparison.differences]
    total.not_shown += comparison.not_shown


def _tell(total: Comparison, with_what: str, compared: Compared) -> None:
    compared.update({(f"{table} ({group_type})", f"broker {with_what}"): rows for (table, group_type), rows in total.counts.items()})
    reasons = Counter(reason.rpartition(": ")[2].split(",")[0] for reason in total.not_shown)
    compared.update({(f"not shown: {reason}"[:34], f"broker {with_what}"): count for reason, count in reasons.items()})
