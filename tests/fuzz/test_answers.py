"""Some questions have one answer by every way to read a log; `python -m tests.fuzz.answers` asks all questions about all logs."""

from __future__ import annotations

import secrets
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from exhume.replay.releases import all_spans
from tests.fuzz.answers import differences, questions, segment_differences, shown, words_of
from tests.fuzz.mutations import segments_of
from tests.fuzz.runner import write_example
from tests.judges import corpus
from tests.strategies import times

_MOST_BYTES = 50_000
_QUESTIONS = 12


@pytest.mark.one_of(4)
@pytest.mark.parametrize("seed", [1, None], ids=["fixed", "fresh"])
@pytest.mark.parametrize("is_damaged", [False, True], ids=["undamaged", "damaged"])
def test_a_question_has_one_answer(tmp_path: Path, seed: int | None, is_damaged: bool) -> None:
    """EXHUME_EXAMPLES asks about more logs."""
    seed = secrets.randbits(31) if seed is None else seed
    # pytest shows the output of a test that fails.
    sys.stdout.write(f"seed {seed}\n")
    random, counts = Random(seed), Counter[str]()
    logs = [each for each in corpus.data_directories() if sum(path.stat().st_size for path in each.rglob("*.log")) < _MOST_BYTES]
    for number in range(times(1)):
        if is_damaged:
            directory = tmp_path / str(number)
            write_example(random, segments_of(corpus.BUNDLED), directory)
        else:
            directory = random.choice(logs)
        asked = questions(words_of(directory, random), [random.choice(all_spans()).release])
        some = dict(random.sample(sorted(asked.items()), _QUESTIONS))
        found = [*differences(directory, some, counts), *(() if is_damaged else segment_differences(directory, some, counts))]
        assert not [f"{question}, by {way}: {shown(*answers)}" for question, way, *answers in found], directory
    assert counts["kernels"] >= _QUESTIONS
