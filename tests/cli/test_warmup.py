"""Compiling ahead, and where compiled code is kept."""

from __future__ import annotations

import ast
import io
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest

import exhume
from exhume.cli.run import opened
from exhume.codecs import kernel_cache
from exhume.fixtures.log_writer import PartitionWriter, offset_commit

#: A run for which a log of any size is worth a compiler.
COMPILING = """
import sys
from exhume.cli.app import run
from exhume.codecs import segment_reader
segment_reader.WORTH_KERNELS_BYTES = segment_reader.WORTH_COMPILING_BYTES = 0
sys.exit(run(sys.argv[1:]))
"""


def run(*arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
    return subprocess.run([sys.executable, "-m", "exhume", *arguments], check=False, capture_output=True, text=True, env=environment)


@pytest.mark.slow
def test_what_is_compiled_ahead_is_kept_in_the_cache_of_the_user(tmp_path: Path) -> None:
    done = run("warmup", home=tmp_path)

    assert done.returncode == 0
    assert done.stdout == ""
    kept = [path for path in (tmp_path / "cache" / "exhume").rglob("*") if path.suffix == ".nbc"]
    assert "kept in" in done.stderr
    assert len(kept) > 10
    assert next((tmp_path / "cache" / "exhume").glob("kernels-*/warm")).exists()


def test_without_a_place_to_keep_it_code_is_made_for_each_process(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("no directory")
    ask = "from exhume.codecs import kernels, kernel_cache; print(kernels.KEEPS_CODE, kernel_cache.is_warm())"
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}

    said = subprocess.run([sys.executable, "-c", ask], check=True, capture_output=True, text=True, env=environment).stdout

    assert said == "False False\n"


def test_code_is_kept_for_the_sources_it_was_made_of_and_their_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = tmp_path / "here"
    for room in kernel_cache.KERNEL_ROOMS:
        (package / room).mkdir(parents=True)
    (package / kernel_cache.KERNEL_ROOMS[0] / "module.py").write_text("one")
    for module in kernel_cache.KERNEL_FACTS:
        (package / module).parent.mkdir(parents=True, exist_ok=True)
        (package / module).write_text("NUMBER = 1")
    monkeypatch.setattr(kernel_cache, "_PACKAGE", package)
    first = kernel_cache.directory.__wrapped__()

    (package / kernel_cache.KERNEL_ROOMS[0] / "module.py").write_text("another")

    assert kernel_cache.directory.__wrapped__() != first
    assert first.parent == kernel_cache.directory.__wrapped__().parent
    for module in kernel_cache.KERNEL_FACTS:
        before = kernel_cache.directory.__wrapped__()
        (package / module).write_text("NUMBER = -1")
        assert kernel_cache.directory.__wrapped__() != before

    shutil.copytree(package, tmp_path / "elsewhere")
    second = kernel_cache.directory.__wrapped__()
    monkeypatch.setattr(kernel_cache, "_PACKAGE", tmp_path / "elsewhere")
    assert kernel_cache.directory.__wrapped__() != second


def test_code_of_a_package_in_a_zip_is_kept_for_its_content_and_its_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def place_of(archive: Path, *sources: str, fact: str = "NUMBER = 1") -> Path:
        with ZipFile(archive, "w") as content:
            for room, source in zip(kernel_cache.KERNEL_ROOMS, sources, strict=False):
                content.writestr(f"exhume/{room}/module.py", source)
            content.writestr(f"exhume/{kernel_cache.KERNEL_FACTS[0]}", fact)
            content.writestr("exhume/cli/app.py", archive.name)
        monkeypatch.setattr(kernel_cache, "_PACKAGE", archive / "exhume")
        return kernel_cache.directory.__wrapped__()

    first = place_of(tmp_path / "exhume.zip", "one", "two")

    assert place_of(tmp_path / "exhume.zip", "one", "two") == first
    others = [place_of(tmp_path / "exhume.zip", "one", "six"), place_of(tmp_path / "exhume.zip", "one", "two", fact="NUMBER = 2")]
    assert len({first, *others, place_of(tmp_path / "other.zip", "one", "two")}) == 4


def test_what_kernels_are_made_of_lies_in_their_rooms() -> None:
    package = Path(exhume.__file__).parent
    rooms = [package / room for room in kernel_cache.KERNEL_ROOMS]
    facts = [package / module for module in kernel_cache.KERNEL_FACTS]
    sources = {path: path.read_text(encoding="utf-8") for path in package.rglob("*.py")}
    decorated = re.compile(r"^@(kernel|inlined)\b", re.MULTILINE)
    #: A kernel made of a plain function of a module beside it.
    wrapped = re.compile(r"\bkernel\((\w+)\.\w+\)")

    with_kernels = {path for path, source in sources.items() if decorated.search(source)}
    with_kernels |= {path.with_name(f"{module}.py") for path, source in sources.items() for module in wrapped.findall(source)}
    from_elsewhere = {
        (path.name, used.relative_to(package).as_posix())
        for path in with_kernels
        for used in _imported(package, sources[path])
        if used.parent not in rooms and used not in facts
    }

    assert {path.parent for path in with_kernels} == {*rooms}
    assert all(path in sources for path in facts)
    assert not from_elsewhere


def _imported(package: Path, source: str) -> Iterator[Path]:
    """Yield the modules of the package that this source imports, or imports names from."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("exhume."):
            module = package.parent.joinpath(*str(node.module).split("."))
            for name in node.names:
                inner = module / f"{name.name}.py"
                yield inner if inner.exists() else module / "__init__.py" if module.is_dir() else module.with_suffix(".py")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    with PartitionWriter(tmp_path / "log", 0) as partition:
        partition.append([offset_commit("group", "topic", 0, 1, commit_timestamp_ms=1)])
    return tmp_path / "log"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.slow
def test_whoever_watches_is_told_why_a_cold_cache_takes_its_time(tmp_path: Path, log: Path) -> None:
    def told() -> list[str]:
        """What a terminal shows of standard error, while standard output is a pipe."""
        screen, terminal = os.openpty()
        environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "TERM": "dumb"}
        arguments = [sys.executable, "-c", COMPILING, "inspect", str(log), "--output", "json"]
        done = subprocess.run(arguments, check=False, stdout=subprocess.PIPE, stderr=terminal, text=True, env=environment)
        os.close(terminal)
        try:
            lines = os.read(screen, 1 << 16).decode().splitlines()
        except OSError:  # what Linux says of a terminal to which nobody has written
            lines = []
        os.close(screen)
        assert done.returncode == 0
        assert "compiling" not in done.stdout
        return lines

    assert told() == ["compiling kernels for this machine: up to half a minute, once (ahead of time: exhume warmup)"]
    # What was compiled was kept.
    assert told() == []


@pytest.mark.parametrize(("is_watched", "times"), [(True, 1), (False, 0)], ids=["watched", "nobody watches"])
def test_it_is_told_once_where_somebody_watches(log: Path, monkeypatch: pytest.MonkeyPatch, is_watched: bool, times: int) -> None:
    said = Terminal() if is_watched else io.StringIO()
    monkeypatch.setattr(sys, "stderr", said)

    with opened([str(log)]), opened([str(log)]):
        kernel_cache.about_to_compile()
        kernel_cache.about_to_compile()

    assert said.getvalue().count("compiling kernels") == times


def test_without_a_cache_directory_it_is_told_that_it_will_be_so_each_time(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = Terminal()
    monkeypatch.setattr(sys, "stderr", said)
    monkeypatch.setattr(kernel_cache, "prepare", lambda: None)

    with opened([str(log)]):
        kernel_cache.about_to_compile()

    assert "each time" in said.getvalue()


def test_the_library_tells_nobody(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = Terminal()
    monkeypatch.setattr(sys, "stderr", said)

    with exhume.open(log):
        kernel_cache.about_to_compile()

    assert said.getvalue() == ""
