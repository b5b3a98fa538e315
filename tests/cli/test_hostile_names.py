"""Names inside the evidence are hostile: harmless where people look, unchanged where programs read."""

from __future__ import annotations

import csv
import io
import json
import os
import unicodedata
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from exhume.codecs.batch_writer import NewRecord, encode_batch
from exhume.codecs.wire import InvalidUtf8
from exhume.fixtures.log_writer import PartitionWriter, group_metadata, offset_commit
from tests.cli.conftest import TIME_MS, Ask
from tests.cli.hostile_names import NAMES


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
