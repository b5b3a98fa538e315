"""Local directories as volumes: what is listed, what is left out and said, and that nothing is touched."""

from __future__ import annotations

import errno
import gc
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from exhume.codecs.mapping import map_descriptor
from exhume.codecs.volumes import LocalVolume
from exhume.errors import EvidenceError

SEGMENT = "00000000000000000000.log"


def codes(volume: LocalVolume) -> list[str]:
    return [finding.code for finding in volume.findings]


def denied(real: Callable[..., object], name: str) -> Callable[..., object]:
    """`real`, but for paths that end with this name, which the system refuses."""

    def refuse(path: object, *rest: object, **options: object) -> object:
        if str(path).endswith(name):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return real(path, *rest, **options)

    return refuse


def test_entries_come_sorted_with_size_and_time(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"12345")
    os.utime(tmp_path / "b", ns=(0, 1_600_000_000_123_000_000))
    (tmp_path / "a").mkdir()

    entries = LocalVolume(tmp_path).entries("")

    assert [(entry.path, entry.is_directory, entry.size_bytes) for entry in entries] == [("a", True, 0), ("b", False, 5)]
    assert entries[1].mtime_ms == 1_600_000_000_123


def test_a_file_opens_as_a_buffer_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"evidence")

    buffer = LocalVolume(tmp_path).open("f")

    assert bytes(buffer) == b"evidence"
    assert buffer.readonly


def test_an_empty_file_opens_as_an_empty_buffer(tmp_path: Path) -> None:
    (tmp_path / "f").touch()

    assert len(LocalVolume(tmp_path).open("f")) == 0


def test_a_buffer_outlives_the_volume_and_can_be_let_go(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"evidence")
    volume = LocalVolume(tmp_path)

    with volume.open("f") as buffer:
        volume.close()
        assert bytes(buffer) == b"evidence"

    with pytest.raises(ValueError, match="released"):
        bytes(buffer)


def test_buffers_that_are_dropped_give_their_descriptors_back(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"evidence")
    volume = LocalVolume(tmp_path)
    # Descriptors of earlier tests must not be closed by the collection below.
    gc.collect()
    before = len(list(Path("/proc/self/fd").iterdir()))

    for _ in range(50):
        volume.open("f")

    gc.collect()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_buffers_in_use_hold_no_descriptor_and_cannot_be_changed(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"evidence")
    volume = LocalVolume(tmp_path)
    gc.collect()
    before = len(list(Path("/proc/self/fd").iterdir()))

    buffers = [volume.open("f") for _ in range(50)]

    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert all(buffer.readonly and bytes(buffer) == b"evidence" for buffer in buffers)


def test_no_more_is_mapped_than_the_file_has(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"evidence")

    with (tmp_path / "f").open("rb") as file, pytest.raises(ValueError, match="greater than file size"):
        map_descriptor(file.fileno(), 100_000)


def test_a_missing_file_is_an_evidence_error_with_path_and_remedy(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError, match="no such file") as caught:
        LocalVolume(tmp_path).open("gone")

    assert caught.value.path == str(tmp_path / "gone")
    assert caught.value.remedy


def test_a_link_to_a_directory_above_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    volume = LocalVolume(tmp_path)

    assert volume.entries("a") == []
    assert codes(volume) == ["link_loop"]


def test_two_links_that_lead_to_each_other_are_not_followed_for_ever(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "to-b").symlink_to(tmp_path / "b")
    (tmp_path / "b" / "to-a").symlink_to(tmp_path / "a")
    volume = LocalVolume(tmp_path)

    assert [entry.path for entry in volume.entries("a")] == ["a/to-b"]
    assert volume.entries("a/to-b") == []
    assert codes(volume) == ["link_loop"]


def test_a_link_to_itself_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "self").symlink_to("self")
    volume = LocalVolume(tmp_path)

    assert volume.entries("") == []
    assert codes(volume) == ["link_loop"]
    assert not volume.findings.has_damage


def test_a_segment_that_is_a_link_to_itself_is_missed(tmp_path: Path) -> None:
    (tmp_path / "__consumer_offsets-0").mkdir()
    (tmp_path / "__consumer_offsets-0" / f"{0:020}.log").symlink_to(f"{0:020}.log")
    volume = LocalVolume(tmp_path)

    assert volume.entries("__consumer_offsets-0") == []
    assert codes(volume) == ["link_loop"]
    assert volume.findings.has_damage


def test_a_link_to_another_directory_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / SEGMENT).write_bytes(b"x")
    (tmp_path / "link").symlink_to("real")

    assert [entry.path for entry in LocalVolume(tmp_path).entries("link")] == [f"link/{SEGMENT}"]


def test_a_segment_that_is_a_broken_link_is_damage(tmp_path: Path) -> None:
    (tmp_path / SEGMENT).symlink_to("gone")
    volume = LocalVolume(tmp_path)

    assert volume.entries("") == []
    assert codes(volume) == ["broken_link"]
    assert volume.findings.has_damage


def test_a_broken_link_that_cannot_be_evidence_is_not_worth_a_word(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").symlink_to("gone")
    volume = LocalVolume(tmp_path)

    assert volume.entries("") == []
    assert codes(volume) == []


def test_a_pipe_named_like_a_segment_is_left_out_and_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / SEGMENT)
    volume = LocalVolume(tmp_path)

    assert volume.entries("") == []
    assert codes(volume) == ["special_file"]
    with pytest.raises(EvidenceError, match="neither a file"):
        volume.open(SEGMENT)


def test_a_file_without_permission_is_a_finding_and_the_others_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / SEGMENT).write_bytes(b"x")
    (tmp_path / "00000000000000000009.log").write_bytes(b"x")
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).endswith(SEGMENT))
    volume = LocalVolume(tmp_path)

    assert [entry.path for entry in volume.entries("")] == ["00000000000000000009.log"]
    [finding] = volume.findings
    assert (finding.code, finding.path, finding.is_damage) == ("unreadable", str(tmp_path / SEGMENT), True)
    assert finding.remedy is not None
    assert "permissions" in finding.remedy


def test_a_directory_without_permission_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "locked").mkdir()
    monkeypatch.setattr(os, "scandir", denied(os.scandir, "locked"))
    volume = LocalVolume(tmp_path)

    assert volume.entries("locked") == []
    assert codes(volume) == ["unreadable"]
    assert volume.findings.has_damage


def test_too_many_open_files_is_an_evidence_error_that_names_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "f").write_bytes(b"x")

    def refuse(*_: object) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(os, "open", refuse)

    with pytest.raises(EvidenceError, match="ulimit"):
        LocalVolume(tmp_path).open("f")


def test_a_name_that_is_no_text_is_listed_opened_and_shown_as_text(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9-0")
    (tmp_path / name).write_bytes(b"x")
    volume = LocalVolume(tmp_path)

    [entry] = volume.entries("")
    assert entry.path == name
    assert bytes(volume.open(entry.path)) == b"x"
    assert volume.shown(entry.path) == f"{tmp_path}/caf\\xe9-0"
