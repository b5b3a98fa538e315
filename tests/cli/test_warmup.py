"""Compiling ahead, and where compiled code is kept."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
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
    for room in kernel_cache.KERNEL_ROOMS:
        (tmp_path / room).mkdir(parents=True)
    (tmp_path / kernel_cache.KERNEL_ROOMS[0] / "module.py").write_text("one")
    for module in kernel_cache.KERNEL_FACTS:
        (tmp_path / module).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / module).write_text("NUMBER = 1")
    monkeypatch.setattr(kernel_cache, "_PACKAGE", tmp_path)
    first = kernel_cache.directory.__wrapped__()

    (tmp_path / kernel_cache.KERNEL_ROOMS[0] / "module.py").write_text("another")

    assert kernel_cache.directory.__wrapped__() != first
    assert first.parent == kernel_cache.directory.__wrapped__().parent
    for module in kernel_cache.KERNEL_FACTS:
        before = kernel_cache.directory.__wrapped__()
        (tmp_path / module).write_text("NUMBER = -1")
        assert kernel_cache.directory.__wrapped__() != before

    (tmp_path / "elsewhere").mkdir()
    for top in ("analysis", "codecs", "replay"):
        shutil.copytree(tmp_path / top, tmp_path / "elsewhere" / top)
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
    rooms = [f"exhume.{room.replace('/', '.')}" for room in kernel_cache.KERNEL_ROOMS]
    facts = [f"exhume.{module.removesuffix('.py').replace('/', '.')}" for module in kernel_cache.KERNEL_FACTS]
    made = re.compile(r"^@(kernel|inlined)\b", re.MULTILINE)
    imported = re.compile(r"^from (exhume[.\w]*) import (\w+)", re.MULTILINE)

    with_kernels = [path for path in package.rglob("*.py") if made.search(path.read_text())]
    undecodable_records = {
        (path.name, module)
        for path in with_kernels
        for module, name in imported.findall(path.read_text())
        if module not in facts and not any(f"{module}.{name}".startswith(room) for room in rooms)
    }

    assert len(with_kernels) > 10
    assert all(path.parent in [package / room for room in kernel_cache.KERNEL_ROOMS] for path in with_kernels)
    assert not undecodable_records


@pytest.fixture
def log(tmp_path: Path) -> Path:
    with PartitionWriter(tmp_path / "log", 0) as partition:
        partition.append([offset_commit("group", "topic", 0, 1, commit_timestamp_ms=1)])
    return tmp_path / "log"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


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
