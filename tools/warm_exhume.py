"""Run many commands of exhume quickly: one process imports it, and a copy of that process runs each command.

with WarmExhume() as exhume:
done = exhume.run(["state", "demo_log"], directory)
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self

#: As in a pipe, 120 columns wide.
_ENVIRONMENT = {"COLUMNS": "120", "NO_COLOR": "1", "TERM": "dumb"}


class WarmExhume:
    """A process that has imported exhume. Use it in a `with` statement."""

    def __enter__(self) -> Self:
        self._outputs = TemporaryDirectory()
        self._process = subprocess.Popen(
            [sys.executable, "-P", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **_ENVIRONMENT},
        )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.communicate()
        self._outputs.cleanup()

    def run(self, arguments: Sequence[str], directory: Path | None = None, *, with_notes: bool = False) -> tuple[int, str, str]:
        """Run exhume with these arguments in this directory. Return the exit code, and the texts on standard output and error.

        With notes, the first text has both, in the order of their writing.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        outputs = [str(Path(self._outputs.name) / name) for name in ("output", "notes")]
        self._process.stdin.write(json.dumps([[*arguments], str(directory or Path.cwd()), outputs, with_notes]) + "\n")
        self._process.stdin.flush()
        code = int(self._process.stdout.readline())
        output, notes = (Path(path).read_text(encoding="utf-8") for path in outputs)
        return code, output, notes


def _serve() -> None:
    import exhume

    for module in walk_packages(exhume.__path__, "exhume."):
        # These need an extra, or are the program itself.
        if not {"spark", "capture", "__main__"} & {*module.name.split(".")}:
            import_module(module.name)
    from exhume.__main__ import main

    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _become(*json.loads(line))
            main()
            os._exit(0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        sys.stdout.flush()


def _become(arguments: list[str], directory: str, outputs: list[str], with_notes: bool) -> None:
    """Take the arguments, the directory and the standard streams of a command."""
    for number, path in ((0, os.devnull), (1, outputs[0]), (2, outputs[1])):
        file = os.open(path, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(file, number)
        os.close(file)
    if with_notes:
        os.dup2(1, 2)
    os.chdir(directory)
    sys.argv = ["exhume", *arguments]


if __name__ == "__main__":
    _serve()
