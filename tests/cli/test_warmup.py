"""Compiling ahead, and where compiled code is kept."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

import exhume
from exhume.codecs import kernel_cache


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
    monkeypatch.setattr(kernel_cache, "_PACKAGE", tmp_path)
    first = kernel_cache.directory.__wrapped__()

    (tmp_path / kernel_cache.KERNEL_ROOMS[0] / "module.py").write_text("another")

    assert kernel_cache.directory.__wrapped__() != first
    assert first.parent == kernel_cache.directory.__wrapped__().parent

    (tmp_path / "elsewhere").mkdir()
    for room in kernel_cache.KERNEL_ROOMS:
        shutil.copytree(tmp_path / room, tmp_path / "elsewhere" / room)
    second = kernel_cache.directory.__wrapped__()
    monkeypatch.setattr(kernel_cache, "_PACKAGE", tmp_path / "elsewhere")
    assert kernel_cache.directory.__wrapped__() != second


def test_code_of_a_package_in_a_zip_is_kept_for_its_content_and_its_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def place_of(archive: Path, *sources: str) -> Path:
        with ZipFile(archive, "w") as content:
            for room, source in zip(kernel_cache.KERNEL_ROOMS, sources, strict=True):
                content.writestr(f"exhume/{room}/module.py", source)
            content.writestr("exhume/cli/app.py", archive.name)
        monkeypatch.setattr(kernel_cache, "_PACKAGE", archive / "exhume")
        return kernel_cache.directory.__wrapped__()

    first = place_of(tmp_path / "exhume.zip", "one", "two")

    assert place_of(tmp_path / "exhume.zip", "one", "two") == first
    assert len({first, place_of(tmp_path / "exhume.zip", "one", "six"), place_of(tmp_path / "other.zip", "one", "two")}) == 3


def test_what_kernels_are_made_of_lies_in_their_rooms() -> None:
    package = Path(exhume.__file__).parent
    rooms = [f"exhume.{room.replace('/', '.')}" for room in kernel_cache.KERNEL_ROOMS]
    made = re.compile(r"^@(kernel|inlined)\b", re.MULTILINE)
    imported = re.compile(r"^from (exhume[.\w]*) import (\w+)", re.MULTILINE)

    with_kernels = [path for path in package.rglob("*.py") if made.search(path.read_text())]
    strangers = {
        (path.name, module)
        for path in with_kernels
        for module, name in imported.findall(path.read_text())
        if not any(f"{module}.{name}".startswith(room) for room in rooms)
    }

    assert len(with_kernels) > 10
    assert all(path.parent in [package / room for room in kernel_cache.KERNEL_ROOMS] for path in with_kernels)
    assert not strangers
