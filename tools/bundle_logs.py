#!/usr/bin/env python3
"""Pack and list the logs of real brokers that come with the tests: tests/data, one archive for each story.

    python tools/bundle_logs.py                         every story, and whether its files are those of the manifest
    python tools/bundle_logs.py unpack DIRECTORY        all stories as plain directories
    python tools/bundle_logs.py pack DIRECTORY          archives and manifest anew, from such directories: all stories there are
    python tools/bundle_logs.py pack DIRECTORY NAME ... those stories only, such as facts/txn-order; the others stay

Ends with 1 where an archive does not hold what the manifest says.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests import bundled


def show() -> int:
    """List every story; 1 where one is not what the manifest says."""
    known = {entry.name: entry for entry in bundled.manifest()}
    found = {bundled.name_of(archive): archive for archive in bundled.archives()}
    differ = 0
    for name in sorted(known.keys() | found.keys()):
        entry = bundled.entry_of(name, bundled.read(found[name])) if name in found else None
        verdict = "ok" if entry == known.get(name) else "differs" if entry and name in known else "missing" if name in known else "unknown"
        differ += verdict != "ok"
        packed = found[name].stat().st_size if name in found else 0
        sys.stdout.write(f"{verdict:8} {packed:>8} {entry or known[name]}\n")
    sys.stdout.write(f"{len(found)} archives, {sum(entry.files for entry in known.values())} files\n")
    return 1 if differ else 0


def pack(directory: Path, names: list[str]) -> None:
    """Write archives of these stories of the directory, or of all, and the manifest."""
    entries = {entry.name: entry for entry in bundled.manifest()} if names else {}
    if not names:
        for archive in bundled.archives():
            archive.unlink()
        names = sorted(path.parent.relative_to(directory).as_posix() for path in directory.rglob("oracle"))
    for name in names:
        files = bundled.read_directory(directory / name)
        target = bundled.PACKED / f"{name}{bundled.SUFFIX}"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(bundled.pack(files))
        entries[name] = bundled.entry_of(name, files)
    bundled.MANIFEST.write_text("".join(f"{entries[name]}\n" for name in sorted(entries)), encoding="utf-8")


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command")
    unpacker = commands.add_parser("unpack", help="write all stories as plain directories")
    unpacker.add_argument("directory", type=Path)
    packer = commands.add_parser("pack", help="write archives and the manifest")
    packer.add_argument("directory", type=Path)
    packer.add_argument("name", nargs="*")
    arguments = parser.parse_args()
    match arguments.command:
        case "unpack":
            bundled.unpack(arguments.directory)
        case "pack":
            pack(arguments.directory, arguments.name)
        case _:
            return show()
    return 0


if __name__ == "__main__":
    sys.exit(main())
