"""Damage and hostile places: one clear word about each, and every good record all the same."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import re
import shutil
import stat
import struct
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import crc32c
import pytest

import exhume
from exhume.cli.demo import DEMO_LOG
from exhume.codecs.record_types import encode_key
from exhume.fixtures.log_writer import PartitionWriter, offset_commit
from tests.cli.conftest import Ask, command

#: Offsets 0 to 11, two records in each of six batches. Batch 2 (offsets 4 and 5) is the one that gets hurt.
HURT, ALL = {4, 5}, set(range(12))

Batches = list[tuple[int, int]]


def batches_of(content: bytes | bytearray) -> Batches:
    """Where each batch begins, and how long it is."""
    found, position = [], 0
    while position < len(content):
        size = 12 + struct.unpack_from(">i", content, position + 8)[0]
        found.append((position, size))
        position += size
    return found


# Damage. Each takes the content and the place and size of the batch to hurt.


def truncated_tail(content: bytearray, _at: int, _size: int) -> None:
    del content[-20:]


def flipped_byte(content: bytearray, at: int, _size: int) -> None:
    content[at + 80] ^= 1


def zeroed_page(content: bytearray, at: int, size: int) -> None:
    content[at : at + size] = bytes(size)


def length_too_long(content: bytearray, at: int, _size: int) -> None:
    struct.pack_into(">i", content, at + 8, 100_000)


def length_too_short(content: bytearray, at: int, _size: int) -> None:
    struct.pack_into(">i", content, at + 8, 60)


def negative_length(content: bytearray, at: int, _size: int) -> None:
    struct.pack_into(">i", content, at + 8, -1)


def count_too_large(content: bytearray, at: int, size: int) -> None:
    struct.pack_into(">i", content, at + 57, 2_000_000_000)
    mend_checksum(content, at, size)


def count_too_small(content: bytearray, at: int, size: int) -> None:
    struct.pack_into(">i", content, at + 57, 1)
    mend_checksum(content, at, size)


def huge_varint(content: bytearray, at: int, size: int) -> None:
    content[at + 61 : at + 66] = b"\xfe\xff\xff\xff\x0f"
    mend_checksum(content, at, size)


def endless_varint(content: bytearray, at: int, size: int) -> None:
    content[at + 61 : at + 72] = b"\xff" * 11
    mend_checksum(content, at, size)


def unknown_codec(content: bytearray, at: int, size: int) -> None:
    content[at + 22] |= 7
    mend_checksum(content, at, size)


def unknown_magic(content: bytearray, at: int, _size: int) -> None:
    content[at + 16] = 9


def garbage_between(content: bytearray, at: int, _size: int) -> None:
    content[at:at] = b"\xde\xad\xbe\xef" * 9


def mend_checksum(content: bytearray, at: int, size: int) -> None:
    struct.pack_into(">I", content, at + 17, crc32c.crc32c(bytes(content[at + 21 : at + size])))


DAMAGE: list[tuple[Callable[[bytearray, int, int], None], str, set[int]]] = [
    (truncated_tail, "cut_tail", ALL - {11}),
    (flipped_byte, "crc_mismatch", ALL),
    (zeroed_page, "hole", ALL - HURT),
    (length_too_long, "batch_size_lies", ALL),
    (length_too_short, "batch_size_lies", ALL),
    (negative_length, "batch_size_lies", ALL),
    (count_too_large, "record_count_lies", ALL),
    (count_too_small, "record_count_lies", ALL),
    (huge_varint, "undecodable_records", ALL - HURT),
    (endless_varint, "undecodable_records", ALL - HURT),
    (unknown_codec, "undecodable_records", ALL - HURT),
    (unknown_magic, "bad_magic", ALL),
    (garbage_between, "hole", ALL),
]


@pytest.mark.parametrize(("hurt", "code", "offsets"), DAMAGE, ids=[hurt.__name__ for hurt, _, _ in DAMAGE])
def test_of_a_hurt_log_every_good_record_before_and_after_comes_out_and_the_damage_has_its_place(
    ask: Ask, segment: Path, hurt: Callable[[bytearray, int, int], None], code: str, offsets: set[int]
) -> None:
    content = bytearray(segment.read_bytes())
    hurt(content, *batches_of(content)[2])
    segment.write_bytes(content)
    exit_code, out, err = ask("dump", segment.parent.parent, "--output", "jsonl")
    inspected, document, _ = ask("inspect", segment.parent.parent, "--output", "json")

    assert {json.loads(line)["record_offset"] for line in out.splitlines()} == offsets
    assert (exit_code, inspected) == (1, 1)
    told = next(line for line in err.splitlines() if f": {code}: " in line)
    assert re.match(rf"incident: {code}: {re.escape(str(segment))}, byte \d+", told)
    assert told.endswith(".")
    tables = json.loads(document)
    assert tables["partitions"][0]["record_count"] == len(offsets)
    [finding] = [finding for finding in tables["findings"] if finding["code"] == code]
    assert (finding["path"], finding["severity"]) == (str(segment), "incident")
    assert finding["byte_position"] is not None
    assert finding["remedy"]


@pytest.mark.parametrize(("hurt", "code"), [(hurt, code) for hurt, code, _ in DAMAGE], ids=[hurt.__name__ for hurt, _, _ in DAMAGE])
@pytest.mark.parametrize("release", ["2.8.2", "4.3"])
def test_a_state_says_that_it_is_partial_and_why(
    ask: Ask, segment: Path, hurt: Callable[[bytearray, int, int], None], code: str, release: str
) -> None:
    content = bytearray(segment.read_bytes())
    hurt(content, *batches_of(content)[2])
    segment.write_bytes(content)
    exit_code, out, err = ask("state", segment.parent.parent, "--release", release, "--mode", "lenient", "--output", "json")
    document = json.loads(out)

    assert exit_code == 1
    assert f": {code}: " in err
    assert "the answer is partial" in err
    assert code in {finding["code"] for finding in document["findings"]}
    assert {row["group"] for row in document["groups"]} >= {f"group-{number}" for number in (0, 1, 3, 4)}


def test_a_decompression_bomb_is_not_unfolded_and_its_neighbours_come_out(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The cap is lowered so that the bomb can be a small one.
    monkeypatch.setattr("exhume.topic.open_topic", partial(exhume.open, cap_bytes=100_000))
    with PartitionWriter(tmp_path, 0) as partition:
        partition.append([offset_commit("before", "t", 0, 1, commit_timestamp_ms=0)])
        partition.append([(encode_key(2, {"group": "bomb"}), bytes(1_000_000))], codec=4)
        partition.append([offset_commit("after", "t", 0, 1, commit_timestamp_ms=0)])
    code, out, err = ask("dump", tmp_path, "--output", "jsonl")

    assert next(partition.directory.glob("*.log")).stat().st_size < 500
    assert code == 1
    assert [json.loads(line)["group"] for line in out.splitlines()] == ["before", "after"]
    assert re.search(r"decompression_bomb: .*\.log, byte \d+, record offset 1: .* the cap of 100000 bytes", err)


# Files that are no log


def index_bytes() -> bytes:
    return b"".join(struct.pack(">ii", number * 7, number * 4096) for number in range(1, 60))


@pytest.mark.parametrize(
    ("content", "what"),
    [(b"this is a letter\n" * 50, "a text file"), (index_bytes(), "an offset index"), (b"0\n1\n__consumer_offsets 3 7\n", "checkpoint")],
    ids=["text", "index", "checkpoint"],
)
def test_a_file_that_is_no_log_is_called_what_it_is(ask: Ask, segment: Path, content: bytes, what: str) -> None:
    shutil.copy(segment, segment.with_name("00000000000000000012.log"))
    (segment.with_name("00000000000000000000.log")).write_bytes(content)
    alone = ask("dump", segment)
    inside = ask("inspect", segment.parent.parent)

    assert (alone[0], alone[1]) == (3, "")
    assert re.fullmatch(rf"exhume: {re.escape(str(segment))}: not a log: it looks like .*{what}.*\. .+\n", alone[2])
    assert inside[0] == 1
    assert re.search(rf"no_log: {re.escape(str(segment))}, byte 0: this file is named like a segment, but looks like .*{what}", inside[2])


def test_behind_a_segment_that_is_no_log_the_next_one_is_read(ask: Ask, tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 0) as partition:
        partition.append([offset_commit("lost", "t", 0, 1, commit_timestamp_ms=0)])
        partition.roll()
        partition.append([offset_commit("kept", "t", 0, 1, commit_timestamp_ms=0)])
    (partition.directory / "00000000000000000000.log").write_bytes(index_bytes())
    code, out, _ = ask("dump", tmp_path, "--output", "jsonl")

    assert (code, [json.loads(line)["group"] for line in out.splitlines()]) == (1, ["kept"])


@pytest.mark.parametrize("suffix", ["index", "timeindex"])
def test_an_index_given_for_a_log_is_one_error_that_names_the_log(ask: Ask, segment: Path, suffix: str) -> None:
    code, out, err = ask("dump", segment.with_suffix(f".{suffix}"))

    assert (code, out, len(err.splitlines())) == (3, "", 1)
    assert "Give the .log beside it" in err


def test_an_empty_file_is_a_finding_and_no_damage(ask: Ask, segment: Path) -> None:
    segment.write_bytes(b"")
    code, out, err = ask("inspect", segment.parent.parent, "--table", "findings", "--output", "json")
    [finding] = [finding for finding in json.loads(out) if finding["code"] == "empty_segment"]

    assert (code, err) == (0, "")
    assert (finding["path"], finding["byte_position"], finding["severity"]) == (str(segment), 0, "info")
    assert finding["remedy"]


@pytest.mark.parametrize("command_name", ["inspect", "dump", "state"])
@pytest.mark.parametrize("what", ["missing", "empty directory", "device", "text"])
def test_a_place_without_evidence_is_one_line_with_a_remedy(ask: Ask, tmp_path: Path, command_name: str, what: str) -> None:
    places = {"missing": tmp_path / "missing", "empty directory": tmp_path / "empty", "device": Path(os.devnull), "text": tmp_path / "text"}
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").write_text("hello")
    code, out, err = ask(command_name, places[what])

    assert (code, out, len(err.splitlines())) == (3, "", 1)
    assert re.match(rf"exhume: {re.escape(str(places[what]))}: .+\. [A-Z].+", err)


# Links and copies


def test_a_link_that_leads_to_itself_is_one_error(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    code, out, err = ask("dump", tmp_path / "loop")

    assert (code, out) == (3, "")
    assert "too many levels of symbolic links" in err


def test_links_that_lead_back_are_named_and_the_records_come_out_once(ask: Ask, segment: Path) -> None:
    data = segment.parent.parent
    (data / "back").symlink_to(data)
    (segment.parent / "back").symlink_to(data)
    (data / "self").symlink_to("self")
    code, out, err = ask("dump", data, "--output", "jsonl")

    assert (code, len(out.splitlines())) == (0, 12)
    assert "link_loop" in err
    assert str(data / "back") in err


def test_two_copies_of_one_segment_are_read_once_and_reported(ask: Ask, segment: Path) -> None:
    shutil.copy(segment, segment.with_name("0.log"))
    code, out, err = ask("dump", segment.parent.parent, "--output", "jsonl")
    findings = json.loads(ask("inspect", segment.parent.parent, "--table", "findings", "--output", "json")[1])

    assert (code, len(out.splitlines()), err) == (0, 12, "")
    assert [(row["severity"], row["path"]) for row in findings if row["code"] == "duplicate_segment"] == [
        ("info", str(segment.with_name("0.log")))
    ]


def test_two_copies_that_differ_are_told_apart_and_the_way_to_the_second_is_named(ask: Ask, segment: Path) -> None:
    other = segment.with_name("0.log")
    other.write_bytes(segment.read_bytes()[: batches_of(segment.read_bytes())[3][0]])
    code, out, err = ask("dump", segment.parent.parent, "--output", "jsonl")

    assert (code, len(out.splitlines())) == (0, 12)
    assert f"Read it alone: give {other}" in err
    assert len(ask("dump", other, "--output", "jsonl")[1].splitlines()) == 6


# Permissions


def _without_privileges() -> None:
    """Give up what lets root read everything; the owner of a file without any permission may not read it then."""
    if os.geteuid() == 0:
        for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
            if ctypes.CDLL(None).prctl(24, capability, 0, 0, 0):  # PR_CAPBSET_DROP
                os._exit(99)


def _privileges_can_be_given_up() -> bool:
    if os.geteuid() != 0:
        return True
    if not sys.platform.startswith("linux"):
        return False
    return subprocess.run(["/bin/true"], check=False, preexec_fn=_without_privileges).returncode == 0


needs_permissions = pytest.mark.skipif(not _privileges_can_be_given_up(), reason="root reads everything here and cannot give that up")


@needs_permissions
@pytest.mark.parametrize("what", ["segment", "directory"])
def test_evidence_that_may_not_be_read_is_one_error(segment: Path, what: str) -> None:
    place = segment if what == "segment" else segment.parent.parent
    place.chmod(0)
    try:
        done = subprocess.run(command("dump", place), capture_output=True, text=True, check=False, preexec_fn=_without_privileges)
    finally:
        place.chmod(0o700)

    assert (done.returncode, done.stdout) == (3, "")
    assert str(place) in done.stderr
    assert "permission denied" in done.stderr
    assert "change the permissions of a copy" in done.stderr


@needs_permissions
def test_one_segment_that_may_not_be_read_is_a_finding_and_the_others_come_out(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 0) as partition:
        for _ in range(3):
            partition.append([offset_commit("g", "t", 0, 1, commit_timestamp_ms=0)])
            partition.roll()
    locked = partition.directory / "00000000000000000001.log"
    locked.chmod(0)
    arguments = command("dump", tmp_path, "--output", "jsonl")
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, preexec_fn=_without_privileges)

    assert (done.returncode, [json.loads(line)["record_offset"] for line in done.stdout.splitlines()]) == (1, [0, 2])
    assert f"{locked}: cannot be read: permission denied" in done.stderr


# Evidence is never written to


def fingerprint(root: Path) -> dict[str, tuple[str, int, int, str]]:
    """Kind, permissions, time of the last change and contents of everything in this directory."""
    found = {}
    for path in sorted([root, *root.rglob("*")]):
        status = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path)] = (stat.filemode(status.st_mode), status.st_mtime_ns, status.st_ctime_ns, content)
    return found


def test_evidence_stays_as_it_was(ask: Ask, tmp_path: Path) -> None:
    copy = tmp_path / "evidence"
    shutil.copytree(DEMO_LOG, copy)
    flipped = next(copy.glob("*-2/*191.log"))
    flipped.write_bytes(flipped.read_bytes()[:-30])
    for path in (*copy.rglob("*"), copy):
        path.chmod(0o500 if path.is_dir() else 0o400)
    before = fingerprint(copy)
    try:
        for arguments in (
            ("inspect",),
            ("dump",),
            ("dump", "--annotate", "--output", "csv"),
            ("dump", "--include", "deleted"),
            ("state", "--release", "2.8.2"),
            ("state", "--release", "4.3", "--mode", "lenient"),
            ("dump", "--output-file", str(copy / "answer")),
            ("inspect", "--output", "json", "--output-file", str(copy / "__consumer_offsets-2" / "answer")),
        ):
            ask(arguments[0], copy, *arguments[1:])

        assert fingerprint(copy) == before
    finally:
        for path in (copy, *copy.rglob("*")):
            path.chmod(0o700)


@pytest.mark.parametrize("inside", ["answer", "__consumer_offsets-3/answer", "__consumer_offsets-3/00000000000000000000.log"])
def test_an_answer_is_never_written_into_the_evidence(ask: Ask, segment: Path, inside: str) -> None:
    data = segment.parent.parent
    code, _, err = ask("dump", data, "--output-file", data / inside)

    assert code == 2
    assert "is inside the evidence" in err
