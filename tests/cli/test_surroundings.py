"""What is around a command: no home, a home that others write to, a second process, a disk that fails. None changes an answer."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cli.conftest import command
from tests.patience import PATIENCE_SECONDS

#: Finds the path of an open file.
_PATH_OF_A_FILE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int has_in_path(int file, const char *name) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t size = readlink(link, path, sizeof path - 1);
  if (size < 0) return 0;
  path[size] = 0;
  return strstr(path, name) != NULL;
}
"""
#: Reads of files of this name fail as on a broken disk.
_BROKEN_DISK = r"""
ssize_t read(int file, void *buffer, size_t count) {
  ssize_t (*real)(int, void *, size_t) = dlsym(RTLD_NEXT, "read");
  if (has_in_path(file, "00000000000000000000.log")) { errno = EIO; return -1; }
  return real(file, buffer, count);
}
"""
#: Files below a directory with this name take so many bytes each; then the disk is full.
_FULL_DISK = r"""
ssize_t write(int file, const void *buffer, size_t count) {
  ssize_t (*real)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
  if (has_in_path(file, "/full-disk/") && lseek(file, 0, SEEK_CUR) >= 500) { errno = ENOSPC; return -1; }
  return real(file, buffer, count > 500 ? 500 : count);
}
"""


def _preloaded(directory: Path, source: str) -> dict[str, str]:
    """Return the environment of a program whose calls of the C library go through this code."""
    code, library = directory / "shim.c", directory / "shim.so"
    code.write_text(_PATH_OF_A_FILE + source)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, code, "-ldl"], check=True)
    return os.environ | {"LD_PRELOAD": str(library)}


def _run(*arguments: str | Path, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments), capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS, env=environment)


_NEEDS_SHIM = pytest.mark.skipif(sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler")


class _Planted:
    """Runs when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return os.mkdir, (str(self.mark),)


def test_an_answer_needs_no_home_and_takes_nothing_from_one(segment: Path, tmp_path: Path) -> None:
    expected = _run("state", segment.parent, "--output", "json")
    home, mark = tmp_path / "home", tmp_path / "mark"
    for name in (".cache/exhume", ".cache/exhume/kernels", ".config/exhume", ".exhume"):
        place = home / name
        place.mkdir(parents=True)
        for file in ("kernels.nbi", "kernels.1.nbc", "cache.pickle", "_kernels.so", "_kernels.abi3.so", "_kernels.py"):
            (place / file).write_bytes(pickle.dumps(_Planted(mark)))
    rest = {name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")}
    planted = rest | {"HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache"), "XDG_CONFIG_HOME": str(home / ".config")}
    before = sorted(home.rglob("*"))
    home.chmod(0o500)

    for environment in (rest, planted, rest | {"HOME": "/nonexistent"}):
        found = _run("state", segment.parent, "--output", "json", environment=environment)
        assert (found.returncode, found.stdout) == (expected.returncode, expected.stdout), found.stderr
    assert not mark.exists()
    assert sorted(home.rglob("*")) == before


def test_two_processes_at_once_give_the_same_answer(segment: Path) -> None:
    both = [
        subprocess.Popen(command("diagnose", segment.parent, "--output", "json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    answers = [(*process.communicate(timeout=PATIENCE_SECONDS), process.returncode) for process in both]

    assert answers[0] == answers[1]
    assert answers[0][2] in (0, 1)


@_NEEDS_SHIM
def test_a_segment_on_a_broken_disk_costs_that_segment(segment: Path, tmp_path: Path) -> None:
    good = segment.parent.parent / "__consumer_offsets-4" / "00000000000000000009.log"
    good.parent.mkdir()
    shutil.copy(segment, good)
    found = _run("dump", segment.parent.parent, "--output", "jsonl", environment=_preloaded(tmp_path, _BROKEN_DISK))

    assert found.returncode == 1, found.stderr
    assert len(found.stdout.splitlines()) == 12
    assert "input/output error" in found.stderr
    assert str(segment.parent.name) in found.stderr


@_NEEDS_SHIM
@pytest.mark.parametrize(
    "arguments",
    [
        *[("dump", "--output", output, "--output-file") for output in ("jsonl", "csv", "parquet")],
        ("state", "--output", "json", "--output-file"),
        ("report", "--output-file"),
        pytest.param(("export", "--master", "local[1]", "--output-dir"), marks=pytest.mark.spark),
    ],
    ids=lambda arguments: " ".join(arguments[:3]),
)
def test_a_disk_that_fills_up_midway_leaves_what_was_there(segment: Path, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    disk = tmp_path / "full-disk"
    disk.mkdir()
    earlier = disk / "other answer"
    earlier.write_text("earlier")
    found = _run(arguments[0], segment.parent.parent, *arguments[1:], disk / "answer", environment=_preloaded(tmp_path, _FULL_DISK))

    assert found.returncode == 2, found.stderr
    assert "o space left on device" in found.stderr
    assert "Traceback" not in found.stderr
    assert list(disk.iterdir()) == [earlier]
