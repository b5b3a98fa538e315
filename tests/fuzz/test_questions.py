"""Questions to logs that somebody tampered with: an answer or one clear error, whatever lies in the bytes."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

import exhume
from exhume.cli.app import run
from exhume.errors import ExhumeError
from tests.fuzz.mutations import segments_of
from tests.fuzz.runner import write_example
from tests.judges import corpus
from tests.strategies import times

_EXAMPLES = 25
_ASKED = 8
#: The arguments after the place of the log; those in braces depend on the log.
QUESTIONS = [
    "inspect",
    "dump",
    "state --release {release}",
    "state --mode lenient --at-offset {offsets}",
    "state --mode lenient --at-time {time}",
    "load-check",
    "diff --from-offset {offsets} --mode lenient",
    "explain --group {group}",
    "explain --group {group} --at-offset {offsets}",
    "history --group {group}",
    "rebalances",
    "rebalances --group {group}",
    "owners --topic {topic} --partition 0",
    "owners --at-time {time}",
    "owners --at-offset {offsets}",
    "timeline --group {group}",
    "diagnose",
    "diagnose --group {group}",
    "assignments",
    "assignments --every",
    "assignments --at-time {time}",
    "assignments --at-offset {offsets}",
    "expiry --release {release}",
    "why --group {group}",
    "transactions",
    "growth",
    "growth --by hour",
    "reset-plan --group {group} --at-time {time}",
    "reset-plan --group {group} --before-rewind",
    "reset-plan --group {group} --lost",
]
_OUTPUTS = ("table", "json", "jsonl", "csv")
_RELEASES = ("0.9.0.1", "0.11.0.3", "2.8.2", "3.7.0", "3.9.1", "4.0.0", "4.3.0")
_TIMES_MS = (-1, 0, 1_600_000_000_000, 1_750_000_000_000, 2**63 - 1)


@pytest.mark.parametrize("example", range(times(_EXAMPLES)))
def test_every_question_ends_in_an_answer_or_in_one_clear_error(tmp_path: Path, capsys: pytest.CaptureFixture[str], example: int) -> None:
    """EXHUME_RANDOM_SEED makes other logs, EXHUME_EXAMPLES more of them."""
    random = Random((int(os.environ.get("EXHUME_RANDOM_SEED", "0")) << 32) + example)
    write_example(random, segments_of(corpus.BUNDLED), tmp_path)
    numbers = range(3)
    words = {
        "group": _one_of(random, tmp_path, "group"),
        "topic": _one_of(random, tmp_path, "topic"),
        "release": random.choice(_RELEASES),
        "time": str(random.choice(_TIMES_MS)),
        "offsets": ",".join(f"{number}:{random.choice((0, 3, 50, 2**63 - 1))}" for number in numbers),
    }

    for question in random.sample(QUESTIONS, _ASKED):
        name, *options = [word.format(**words) for word in question.split()]
        asked = [name, str(tmp_path), *options, "--output", random.choice(_OUTPUTS)]
        code = run(asked)

        said = capsys.readouterr()
        assert code in (0, 1, 2, 3), asked
        assert said.out or said.err, asked


def _one_of(random: Random, directory: Path, column: str) -> str:
    """A name that some commit there has, or one that none has."""
    try:
        with exhume.open(directory) as topic:
            names = {name for batch in topic.offset_commits() for name in batch[column].to_pylist() if name}
    except ExhumeError:
        names = set()
    return random.choice(sorted(names)) if names else "nobody"
