"""What a start costs: `--help` must not wait for what it does not use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import exhume

#: Each takes tens to hundreds of milliseconds to import.
HEAVY = ("pyarrow", "numpy", "rich", "lz4", "zstandard", "crc32c", "exhume.codecs", "exhume.replay", "exhume.analysis", "exhume.topic")

#: Parts of Arrow for files elsewhere; hashes of OpenSSL; pages; pools of threads; masked arrays; detectors.
FOR_OTHERS = (
    "pyarrow.acero",
    "pyarrow.dataset",
    "pyarrow.fs",
    "ssl",
    "hashlib",
    "html",
    "logging",
    "concurrent.futures",
    "numpy.ma",
    "exhume.analysis.detectors",
)

DEMO = str(Path(exhume.__file__).parent / "cli" / "demo_log")

_PROGRAM = """
import sys
from exhume.cli.app import run
code = run(sys.argv[1:])
print(code, [name for name in {heavy!r} if name in sys.modules], file=sys.stderr)
"""


def imported_by(*arguments: str) -> str:
    """The exit code and those of `HEAVY` that a run with these arguments imported, as text."""
    done = subprocess.run([sys.executable, "-c", _PROGRAM.format(heavy=HEAVY), *arguments], capture_output=True, text=True, check=True)
    return done.stderr.strip().splitlines()[-1]


@pytest.mark.one_of(5)
@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("-h",),
        ("--version",),
        ("inspect", "--help"),
        ("dump", "--help"),
        ("state", "--help"),
        ("demo", "--help"),
        ("lab", "--help"),
        ("lab", "write", "--help"),
    ],
    ids=" ".join,
)
def test_help_imports_nothing_heavy(arguments: tuple[str, ...]) -> None:
    assert imported_by(*arguments) == "0 []"


@pytest.mark.parametrize("arguments", [("nonsense",), ("dump",), ("dump", "data", "--output", "yaml")], ids=" ".join)
def test_a_wrong_request_is_refused_before_anything_heavy_is_imported(arguments: tuple[str, ...]) -> None:
    assert imported_by(*arguments) == "2 []"


def test_a_command_that_reads_does_import_what_it_needs() -> None:
    assert "pyarrow" in imported_by("dump", "there-is-nothing-here")


@pytest.mark.parametrize("command", ["state", "load-check"])
def test_a_command_imports_nothing_that_only_others_need(command: str) -> None:
    program = f"""
import sys
from exhume import without_pandas
from exhume.cli.app import run
without_pandas.keep_out()
run(sys.argv[1:])
print([name for name in {FOR_OTHERS!r} if name in sys.modules], file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", program, command, DEMO], capture_output=True, text=True, check=True)

    assert done.stderr.strip().splitlines()[-1] == "[]"


def test_importing_the_package_imports_nothing_heavy() -> None:
    program = f"import sys, exhume; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_the_front_door_opens_when_it_is_asked_for() -> None:
    program = "import exhume; print(exhume.open.__name__, exhume.OffsetsTopic.__name__, exhume.GroupState.__name__)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["open_topic", "OffsetsTopic", "GroupState"]


@pytest.mark.parametrize(
    ("command", "outcome"),
    [(("state",), "0 False True"), (("export", "--output-dir", "nowhere", "--tables", "nonsense"), "2 True True")],
    ids=["state", "export"],
)
def test_a_command_does_without_pandas_unless_it_is_for_spark(command: tuple[str, ...], outcome: str) -> None:
    """The exit code; whether pandas can be imported behind the command; and whether Arrow was imported, which looks for it."""
    program = """
import sys
from exhume.cli import app
try:
    app.main()
except SystemExit as ended:
    code = ended.code
try:
    import pandas
except ModuleNotFoundError:
    pandas = None
print(code, pandas is not None, "pyarrow" in sys.modules, file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", program, *command, DEMO], capture_output=True, text=True, check=True)

    assert done.stderr.strip().splitlines()[-1] == outcome
