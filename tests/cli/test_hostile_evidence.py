"""Damage, hostile names, hostile places and impatient people: one clear word about each, and every good record all the same."""

from __future__ import annotations

import csv
import ctypes
import hashlib
import io
import json
import os
import re
import shutil
import signal
import stat
import struct
import subprocess
import sys
import time
import unicodedata
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import crc32c
import pyarrow.parquet as pq
import pytest

import exhume
from exhume.cli.app import run
from exhume.cli.demo import DEMO_LOG
from exhume.codecs.batch_writer import NewRecord, encode_batch
from exhume.codecs.record_types import encode_key
from exhume.codecs.wire import InvalidUtf8
from exhume.fixtures.log_writer import PartitionWriter, group_metadata, offset_commit

TIME_MS = 1_700_000_000_000
#: Offsets 0 to 11, two records in each of six batches. Batch 2 (offsets 4 and 5) is the one that gets hurt.
HURT, ALL = {4, 5}, set(range(12))

Batches = list[tuple[int, int]]
Answer = tuple[int, str, str]
Ask = Callable[..., Answer]


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    """Runs the command line in this process: exit code, standard output, standard error."""

    def answer(*arguments: str | Path) -> Answer:
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return answer


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    with PartitionWriter(tmp_path / "data", 3) as partition:
        for number in range(6):
            commits = [offset_commit(f"group-{number}", "t", index, 10, commit_timestamp_ms=TIME_MS) for index in range(2)]
            partition.append(commits, timestamp_ms=TIME_MS + number)
    return partition.directory / "00000000000000000000.log"


def batches_of(content: bytes | bytearray) -> Batches:
    """Where each batch begins, and how long it is."""
    found, position = [], 0
    while position < len(content):
        size = 12 + struct.unpack_from(">i", content, position + 8)[0]
        found.append((position, size))
        position += size
    return found


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "exhume", *map(str, arguments)]


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
    assert re.fullmatch(rf"exhume: {re.escape(str(segment))}: no log: it looks like .*{what}.*\. .+\n", alone[2])
    assert inside[0] == 1
    assert re.search(rf"no_log: {re.escape(str(segment))}, byte 0: this file is named like a segment and looks like .*{what}", inside[2])


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
    assert "lies inside the evidence" in err


# Hostile names

NAMES = [
    "\x1b[2J\x1b]0;owned\x07",
    "\x9b31m",
    "line\nbreak\r\tand tab",
    "nul\x00",
    "pay\u202etxt.exe",
    "\u2066isolated\u2069",
    "zero\u200bwidth",
    "[red]markup[/red]",
    "=1+1",
    "+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(A1)",
    'comma, "quote"',
    '{"json": 1}',
    r"\x1b[31m",
    "",
    "\ue000\U000e0041",
    "消費者 été",
]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log whose groups, topics, members and metadata are named by somebody who means harm."""
    directory = tmp_path_factory.mktemp("hostile")
    with PartitionWriter(directory, 0) as partition:
        for number, name in enumerate(NAMES):
            member = {"member_id": name, "client_id": name, "client_host": name, "group_instance_id": name}
            value = {"protocol_type": name, "protocol": name, "leader": name, "generation": 1, "members": [member]}
            commit = offset_commit(name, name, 0, number, commit_timestamp_ms=TIME_MS, metadata=name)
            partition.append([group_metadata(name, value), commit], timestamp_ms=TIME_MS)
    return directory


ANSWERS = [
    ("inspect",),
    ("dump",),
    ("dump", "--annotate"),
    ("dump", "--output", "json"),
    ("dump", "--output", "csv"),
    ("state",),
    ("state", "--table", "members"),
    ("state", "--table", "offsets", "--output", "csv"),
    ("state", "--output", "json"),
]


@pytest.mark.parametrize("arguments", ANSWERS, ids=" ".join)
def test_no_answer_lets_a_name_move_the_cursor_or_turn_the_reading_direction(ask: Ask, hostile: Path, arguments: tuple[str, ...]) -> None:
    code, out, err = ask(arguments[0], hostile, *arguments[1:])

    assert code == 0
    assert {character for character in out + err if unicodedata.category(character)[0] == "C"} <= {"\n"}


@pytest.mark.parametrize("arguments", [("dump",), ("state", "--table", "offsets")], ids=" ".join)
def test_a_name_with_line_breaks_does_not_forge_a_row(ask: Ask, hostile: Path, arguments: tuple[str, ...]) -> None:
    _, out, _ = ask(arguments[0], hostile, *arguments[1:])

    assert len(out.splitlines()) == 2 + len(NAMES) * (2 if arguments[0] == "dump" else 1)


@pytest.mark.parametrize("output", ["json", "jsonl"])
def test_json_gives_every_name_back_as_it_was(ask: Ask, hostile: Path, output: str) -> None:
    _, out, _ = ask("dump", hostile, "--type", "offset_commit", "--output", output)
    rows = json.loads(out) if output == "json" else [json.loads(line) for line in out.splitlines()]

    assert [(row["group"], row["topic"], row["value"]["metadata"]) for row in rows] == [(name, name, name) for name in NAMES]


def test_parquet_gives_every_name_back_as_it_was(ask: Ask, hostile: Path, tmp_path: Path) -> None:
    ask("state", hostile, "--table", "members", "--output", "parquet", "--output-file", tmp_path / "members.parquet")

    assert sorted(pq.read_table(tmp_path / "members.parquet")["client_id"].to_pylist()) == sorted(NAMES)


def test_raw_csv_gives_every_name_back_and_csv_for_people_runs_no_formula(ask: Ask, hostile: Path) -> None:
    def groups(*options: str) -> list[str]:
        text = ask("dump", hostile, "--type", "offset_commit", "--output", "csv", *options)[1]
        return [row["group"] for row in csv.DictReader(io.StringIO(text, newline=""))]

    assert groups("--csv-raw") == NAMES
    assert not [cell for cell in groups() if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
    assert {"'=1+1", "'-2+3", "'@SUM(A1)", r"\x1b[2J\x1b]0;owned\x07"} <= set(groups())


@pytest.mark.parametrize("name", [name for name in NAMES if "\x00" not in name])
def test_a_group_is_found_by_its_hostile_name(ask: Ask, hostile: Path, name: str) -> None:
    dumped = ask("dump", hostile, f"--group={name}", "--output", "jsonl")[1]
    state = json.loads(ask("state", hostile, f"--group={name}", "--output", "json")[1])

    assert len(dumped.splitlines()) == 2
    assert [row["group"] for row in state["groups"]] == [name]


def test_a_name_in_an_error_is_harmless_too(ask: Ask, tmp_path: Path) -> None:
    code, _, err = ask("dump", tmp_path / "\x1b[2J\u202eevil")

    assert code == 3
    assert r"\x1b[2J\u202eevil" in err


def test_a_hostile_directory_name_is_harmless_in_every_answer(ask: Ask, segment: Path) -> None:
    evil = segment.parent.parent.with_name("\x1b[31m\u202e=cmd")
    segment.parent.parent.rename(evil)
    (evil / segment.parent.name / segment.name).write_bytes(segment_with_damage())
    for arguments in (("inspect",), ("dump",), ("state",), ("dump", "--output", "csv"), ("state", "--output", "json")):
        _, out, err = ask(arguments[0], evil, *arguments[1:])
        assert {character for character in out + err if unicodedata.category(character)[0] == "C"} <= {"\n"}


def segment_with_damage() -> bytes:
    return encode_batch([NewRecord(0, 0, *offset_commit("g", "t", 0, 1, commit_timestamp_ms=0))], base_offset=0)[:-3]


# Names that are no text


@pytest.fixture
def not_utf_8(tmp_path: Path) -> Path:
    with PartitionWriter(tmp_path / "data", 0) as partition:
        for raw in (b"caf\xe9", b"\xff", b"\xfe"):
            partition.append([offset_commit(InvalidUtf8(raw), "t", 0, 1, commit_timestamp_ms=0)])
    return tmp_path / "data"


def test_a_name_that_is_no_utf_8_is_kept_as_bytes_with_a_mark(ask: Ask, not_utf_8: Path) -> None:
    rows = [json.loads(line) for line in ask("dump", not_utf_8, "--output", "jsonl")[1].splitlines()]

    assert [row["key"]["group"] for row in rows] == [{"invalid_utf8": "Y2Fm6Q=="}, {"invalid_utf8": "/w=="}, {"invalid_utf8": "/g=="}]
    assert [row["marks"] for row in rows] == [["invalid_utf8"]] * 3


def test_a_name_that_is_no_utf_8_is_not_lost_in_parquet(ask: Ask, not_utf_8: Path, tmp_path: Path) -> None:
    ask("dump", not_utf_8, "--output", "parquet", "--output-file", tmp_path / "dump.parquet")
    keys = pq.read_table(tmp_path / "dump.parquet")["raw_key"].to_pylist()

    assert [key[4 : 4 + int.from_bytes(key[2:4])] for key in keys] == [b"caf\xe9", b"\xff", b"\xfe"]


@pytest.mark.parametrize("arguments", [("dump", "--output", "jsonl"), ("state", "--table", "offsets", "--output", "jsonl")], ids=" ".join)
def test_a_name_typed_as_bytes_that_are_no_utf_8_is_found(ask: Ask, not_utf_8: Path, arguments: tuple[str, ...]) -> None:
    typed = os.fsdecode(b"caf\xe9")
    code, out, _ = ask(arguments[0], not_utf_8, "--group", typed, *arguments[1:])

    assert (code, len(out.splitlines())) == (0, 1)


def test_a_state_says_which_names_are_no_utf_8_and_keeps_their_bytes(ask: Ask, not_utf_8: Path) -> None:
    """To a broker, 0xff and 0xfe are one name, U+FFFD."""
    found = [json.loads(line) for line in ask("state", not_utf_8, "--table", "findings", "--output", "jsonl")[1].splitlines()]
    evidence = [row["evidence"] for row in found if row["code"] == "invalid_utf8" and row["sentence"].startswith("offsets:")]

    assert [json.loads(item) if isinstance(item, str) else item for item in evidence] == [
        {"group": {"invalid_utf8": encoded}} for encoded in ("Y2Fm6Q==", "/w==")
    ]


# Impatient people


@pytest.fixture(scope="module")
def large_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """400,000 commits: seconds of work for every command."""
    directory = tmp_path_factory.mktemp("large")
    commits = [offset_commit(f"group-{number % 50}", "t", number, 1, commit_timestamp_ms=TIME_MS) for number in range(2000)]
    batch = bytearray(encode_batch([NewRecord(number, TIME_MS, *commit) for number, commit in enumerate(commits)], base_offset=0))
    with PartitionWriter(directory, 0) as partition:
        for number in range(200):
            # The checksum does not cover the base offset.
            struct.pack_into(">q", batch, 0, number * 2000)
            partition.append_bytes(bytes(batch), number * 2000 + 1999, TIME_MS)
    return directory


def started(*arguments: str | Path) -> subprocess.Popen[str]:
    # Block-buffered output would keep a reader waiting; what is tested is the program, not the pipe.
    return subprocess.Popen(command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture
def interrupted() -> Callable[..., tuple[int, str, float]]:
    """Interrupts a command that is at work: exit code, what it said, and how many seconds it took to end."""

    def interrupt(*arguments: str | Path, waits_for_output: bool) -> tuple[int, str, float]:
        with started(*arguments) as process:
            assert process.stdout is not None
            if waits_for_output:
                process.stdout.readline()
            else:
                time.sleep(1.5)
            assert process.poll() is None, "it must be at work still"
            at = time.monotonic()
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=20)
            return process.returncode, said, time.monotonic() - at

    return interrupt


@pytest.mark.parametrize(
    ("arguments", "waits_for_output"),
    [
        (("dump", "--output", "jsonl"), True),
        (("inspect",), False),
        (("state",), False),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_an_interrupt_ends_a_command_within_a_second_with_one_word(
    interrupted: Callable[..., tuple[int, str, float]], large_log: Path, arguments: tuple[str, ...], waits_for_output: bool
) -> None:
    code, said, seconds = interrupted(arguments[0], large_log, *arguments[1:], waits_for_output=waits_for_output)

    assert (code, said) == (130, "interrupted\n")
    assert seconds < 1


def test_an_interrupt_leaves_no_half_written_file(
    interrupted: Callable[..., tuple[int, str, float]], large_log: Path, tmp_path: Path
) -> None:
    target = tmp_path / "dump.jsonl"
    code, _, _ = interrupted("dump", large_log, "--output", "jsonl", "--output-file", target, waits_for_output=False)

    assert code == 130
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [("dump", "--output", "jsonl"), ("dump", "--annotate")], ids=" ".join)
def test_a_reader_that_leaves_ends_a_command_without_a_word(large_log: Path, arguments: tuple[str, ...]) -> None:
    with started(arguments[0], large_log, *arguments[1:]) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()
        process.wait(timeout=20)

    assert (process.returncode, said) == (141, "")


def test_a_closed_standard_output_is_a_wrong_request(segment: Path) -> None:
    done = subprocess.run(
        command("dump", segment), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False, preexec_fn=lambda: os.close(1)
    )

    assert (done.returncode, done.stderr) == (2, "exhume: standard output is closed. Name a file with --output-file\n")


def test_colours_stay_off_where_nobody_watches(segment: Path) -> None:
    any_colour: dict[str, Any] = {**os.environ, "FORCE_COLOR": "1", "CLICOLOR_FORCE": "1", "TERM": "xterm-256color"}
    for arguments in (("inspect", segment.parent.parent), ("--help",), ("nonsense",)):
        done = subprocess.run(command(*arguments), capture_output=True, text=True, check=False, env=any_colour)
        assert "\x1b" not in done.stdout + done.stderr
