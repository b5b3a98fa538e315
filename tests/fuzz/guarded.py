"""Reads logs whose bytes end at a page that nobody may read: a kernel that reads beyond them ends the process.

    python -m tests.fuzz.guarded DIRECTORY SEED EXAMPLES

Run by `test_kernels`, with the kernels that users have. Prints the number of files that were read, as JSON.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import shutil
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from random import Random
from typing import Literal
from unittest.mock import patch

import numpy as np

from exhume.codecs import volumes
from tests.fuzz.mutations import segments_of
from tests.fuzz.runner import of_every_kind, write_example
from tests.judges import corpus
from tests.twins import COMPILED, RELEASES, state_of, tables_of

_PAGE = mmap.PAGESIZE
_NO_ACCESS = 0

Side = Literal["start", "end"]


def guard(content: bytes, side: Side) -> memoryview:
    """Return these bytes in memory of their own, with a page that nobody may read directly before their start or after their end."""
    pages = -(-len(content) // _PAGE)
    memory = mmap.mmap(-1, (pages + 2) * _PAGE)
    start = _PAGE if side == "start" else (pages + 1) * _PAGE - len(content)
    memory[start : start + len(content)] = content
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for page in (0, pages + 1):
        if ctypes.CDLL(None).mprotect(ctypes.c_void_p(address + page * _PAGE), ctypes.c_size_t(_PAGE), _NO_ACCESS):
            raise OSError("mprotect")
    return memoryview(memory)[start : start + len(content)].toreadonly()


def run(directory: Path, seed: int, examples: int) -> int:
    """Read this number of logs, each once with a guard at each side; return the number of files."""
    random = Random(seed)
    sources = [*segments_of(of_every_kind(directory / "kinds"))]
    for number in range(3):
        sources += segments_of(random.choice(corpus.data_directories(share=number)))
    count = 0

    def guarded(side: Side) -> AbstractContextManager[object]:
        def open_guarded(path: Path) -> memoryview:
            nonlocal count
            count += 1
            return guard(path.read_bytes(), side)

        return patch.object(volumes, "map_file", open_guarded)

    for number in range(examples):
        log = directory / f"log-{number}"
        write_example(random, sources, log)
        sides: tuple[Side, Side] = ("start", "end")
        for side in sides:
            with guarded(side):
                state_of(log, least_bytes=COMPILED, release=random.choice(RELEASES), threads=2)
                tables_of(log, least_bytes=COMPILED)
        shutil.rmtree(log)
    return count


def overrun() -> None:
    """Read the byte after a guarded buffer: the process ends."""
    buffer = guard(b"x" * 100, "end")
    ctypes.string_at(np.frombuffer(buffer, np.uint8).ctypes.data + len(buffer), 1)


if __name__ == "__main__":
    sys.stdout.write(json.dumps({"files": run(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))}))
