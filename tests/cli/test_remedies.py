"""The commands in remedies of findings: each can be pasted, and shows something."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import exhume
from exhume.fixtures.incidents import INCIDENTS, write

from .conftest import Ask

#: The incidents whose remedy is a command on the log itself.
_WITH_COMMAND = {"IC-02", "IC-09", "IC-11", "IC-16", "IC-21", "IC-23", "IC-25"}
_COMMAND = re.compile(r": (exhume .+)$")


def test_commands_in_remedies_run_as_they_are(tmp_path: Path, ask: Ask) -> None:
    found = set()
    for code in INCIDENTS:
        directory = write(code, tmp_path / code).directory
        with exhume.open(directory) as topic:
            remedies = {finding.remedy for finding in topic.diagnose(codes=[code]) if finding.remedy} if code != "IC-10" else set()
        for command in (match[1] for remedy in remedies if (match := _COMMAND.search(remedy)) and str(directory) in remedy):
            exit_code, out, err = ask(*shlex.split(command)[1:])
            assert exit_code in {0, 1}, (code, command, err)
            assert len(out.splitlines()) + len(err.splitlines()) > 1, (code, command)
            found.add(code)

    assert found >= _WITH_COMMAND
