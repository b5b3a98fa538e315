"""One reader under Atheris: `python -m tests.fuzz.guided READER CORPUS [options of libFuzzer]`. Run by `campaign`."""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["exhume.codecs"]):
    from tests.fuzz.entries import ENTRIES, check


def main() -> None:
    """Run one reader until libFuzzer ends it."""
    name, kept = sys.argv[1], Path(sys.argv[2])
    entry = ENTRIES[name]
    if not any(kept.iterdir()):
        for number, seed in enumerate(entry.seeds()):
            (kept / f"seed{number}").write_bytes(seed)
    atheris.Setup([sys.argv[0], *sys.argv[2:]], lambda data: check(entry, data))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
