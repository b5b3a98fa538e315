"""The logs of real brokers that come with the tests are, byte for byte, those that the manifest lists."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests import bundled


def test_every_archive_unpacks_to_the_files_of_the_manifest() -> None:
    stories = sorted(path.parent for path in bundled.unpacked().rglob("oracle"))
    found = [bundled.entry_of(story.relative_to(bundled.unpacked()).as_posix(), bundled.read_directory(story)) for story in stories]

    assert sorted(found, key=str) == sorted(bundled.manifest(), key=str)
    assert (len(found), sum(entry.files for entry in found)) == (149, 3770)


def test_the_same_files_make_the_same_archive(tmp_path: Path) -> None:
    files = {"data/__consumer_offsets-0/00000000000000000000.log": b"\0\1", "scenario.json": b"{}"}
    archive = tmp_path / "story.tar.xz"
    archive.write_bytes(bundled.pack(files))

    assert bundled.pack(dict(reversed(files.items()))) == archive.read_bytes()
    assert bundled.read(archive) == files


@pytest.mark.parametrize("change", [{"a": b"2"}, {"b": b"1"}, {"a": b"1", "b": b""}, {}], ids=str)
def test_any_other_file_is_another_line_of_the_manifest(change: dict[str, bytes]) -> None:
    assert bundled.entry_of("story", change) != bundled.entry_of("story", {"a": b"1"})


def test_processes_that_share_a_directory_unpack_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = threading.Barrier(4)
    unpacked: list[Path] = []

    def unpack(directory: Path) -> None:
        directory.mkdir()
        unpacked.append(directory)

    def ask(_: int) -> Path:
        begun.wait()
        return bundled.unpacked.__wrapped__()

    monkeypatch.setenv(bundled.SHARED, str(tmp_path))
    monkeypatch.setattr(bundled, "unpack", unpack)
    with ThreadPoolExecutor(4) as pool:
        places = set(pool.map(ask, range(4)))

    assert places == {tmp_path / "stories"}
    assert len(unpacked) == 1
