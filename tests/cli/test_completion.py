"""The tab key: each shell gets commands and options."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from exhume.cli.demo import DEMO_LOG
from tests.cli.conftest import Ask, command

DEMO = str(DEMO_LOG)

#: What each shell sets before it asks.
ASKED = {
    "bash": lambda words: {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)},
    "zsh": lambda words: {"_TYPER_COMPLETE_ARGS": " ".join(words)},
    "fish": lambda words: {"_TYPER_COMPLETE_ARGS": " ".join(words), "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
}


@pytest.mark.parametrize("shell", ASKED)
@pytest.mark.parametrize(("words", "expected"), [(("exhume", "diagn"), "diagnose"), (("exhume", "state", "--at-t"), "--at-time")])
def test_a_shell_gets_commands_and_options(shell: str, words: tuple[str, ...], expected: str) -> None:
    environment = {**os.environ, "_EXHUME_COMPLETE": f"complete_{shell}", **ASKED[shell](words)}
    done = subprocess.run(command(), env=environment, capture_output=True, text=True, check=True)

    assert expected in done.stdout
    assert "inspect" not in done.stdout


@pytest.mark.parametrize("shell", ASKED)
def test_the_script_is_one_that_its_shell_reads(ask: Ask, shell: str, tmp_path: Path) -> None:
    code, script, _ = ask("completion", shell)
    assert (code, "_EXHUME_COMPLETE" in script) == (0, True)
    (tmp_path / "script").write_text(script)
    if shutil.which(shell):
        subprocess.run([shell, "-n", str(tmp_path / "script")], check=True)


def test_bash_completes_with_the_script(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "exhume").write_text(f'#!/bin/sh\nexec {sys.executable} -m exhume "$@"\n')
    (tmp_path / "exhume").chmod(0o755)
    program = f'{ask("completion", "bash")[1]}\nCOMP_WORDS=(exhume time); COMP_CWORD=1; _exhume_completion exhume; echo "${{COMPREPLY[@]}}"'
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", program], env=environment, capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "timeline"


@pytest.mark.one_of(3)
@pytest.mark.parametrize("shell", ASKED)
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("why", DEMO, "--group", "fraud"), ["fraud-scoring"]),
        (("state", DEMO, "-g", "orders-enricher", "-g", "search"), ["search-indexer"]),
        (("why", DEMO, "--group", "fraud-scoring", "--topic", "or"), ["orders"]),
        (("why", "there-is-nothing-here", "--group", "f"), []),
    ],
    ids=["group", "second group", "topic", "no log"],
)
def test_a_shell_gets_groups_and_topics_of_the_log(shell: str, words: tuple[str, ...], expected: list[str]) -> None:
    environment = {**os.environ, "_EXHUME_COMPLETE": f"complete_{shell}", **ASKED[shell](("exhume", *words))}
    done = subprocess.run(command(), env=environment, capture_output=True, text=True, check=True)

    for name in expected:
        assert name in done.stdout
    assert not any(other in done.stdout for other in ("audit-trail-eu", "clicks.web", "promo-engine"))
    assert bool(expected) == bool(re.sub(r"_arguments|_files", "", done.stdout).strip())
