"""Every era of every assignor gives the answers of Kafka's own classes: sets, list order, what is withheld, and exceptions."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from exhume.analysis.assignors import VARIANTS, AssignorThrows, Variant
from tests import bundled
from tests.analysis.assignors.vectors import Answer, Vector, by_topic, read_vectors
from tests.compared import Compared
from tests.judges import corpus

BUNDLED = bundled.PACKED / "assignors"
ASSIGNORS = sorted({(variant.side, variant.assignor) for variant in VARIANTS})


def files(directory: Path, side: str, assignor: str) -> list[Path]:
    prefix = "client" if side == "client" else "server"
    return sorted(directory.glob(f"{prefix}-{assignor}-[0-9]*.jsonl.gz"))


def check(variant: Variant, vector: Vector, answer: Answer) -> str:
    """What was compared."""
    if answer.exception is not None:
        with pytest.raises(AssignorThrows) as thrown:
            variant.run(vector.spec)
        assert thrown.value.exception == answer.exception, (variant.title, vector.name)
        return "exceptions"
    plan = variant.run(vector.spec)
    assert by_topic(plan.assigned, ordered=answer.is_ordered) == answer.assigned, (variant.title, vector.name)
    if answer.withheld is not None:
        withheld = {member_id: list(partitions) for member_id, partitions in plan.withheld.items()}
        assert by_topic(withheld, ordered=False) == answer.withheld, (variant.title, vector.name)
    return "answers in order" if answer.is_ordered else "answers"


def run(directory: Path, side: str, assignor: str, compared: Compared) -> Counter[str]:
    counts: Counter[str] = Counter()
    variants = [variant for variant in VARIANTS if (variant.side, variant.assignor) == (side, assignor)]
    for path in files(directory, side, assignor):
        for vector in read_vectors(path):
            for variant in variants:
                for answer in vector.answers:
                    if answer.releases.intersection(variant.asked):
                        counts[variant.title] += 1
                        compared[check(variant, vector, answer), f"{side} {assignor}"] += 1
    assert set(counts) == {variant.title for variant in variants}, "every era has vectors"
    return counts


@pytest.mark.parametrize(("side", "assignor"), ASSIGNORS)
def test_answers_are_those_of_kafkas_own_classes(side: str, assignor: str, compared: Compared) -> None:
    run(BUNDLED, side, assignor, compared)


@pytest.mark.corpus
@pytest.mark.skipif(corpus.WHOLE is None, reason="EXHUME_CORPUS does not name a larger set of logs")
@pytest.mark.parametrize(("side", "assignor"), ASSIGNORS)
def test_thousands_of_answers_are_those_of_kafkas_own_classes(side: str, assignor: str, compared: Compared) -> None:
    assert corpus.WHOLE is not None
    counts = run(corpus.WHOLE / "assignors", side, assignor, compared)
    assert min(counts.values()) > 1000, counts
