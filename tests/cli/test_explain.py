"""`exhume explain` as a person or a program meets it."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pyarrow as pa
import pytest
from rich.cells import cell_len

from exhume.analysis.explanation.page import EXPLANATION
from exhume.cli.demo import DEMO_LOG
from exhume.cli.pages import page_text
from exhume.fixtures.log_writer import PartitionWriter, group_metadata, offset_commit
from tests.cli.conftest import TIME_MS, Ask
from tests.cli.hostile_names import NAMES

DEMO = str(DEMO_LOG)


@pytest.mark.parametrize("name", [name for name in NAMES if "\0" not in name], ids=ascii)
def test_a_page_about_a_hostile_group_is_harmless(ask: Ask, tmp_path: Path, name: str) -> None:
    with PartitionWriter(tmp_path, 0) as partition:
        member = {"member_id": name, "client_id": name, "client_host": name, "group_instance_id": name}
        value = {"protocol_type": name, "protocol": name, "leader": name, "generation": 1, "members": [member]}
        commit = offset_commit(name, name, 0, 1, commit_timestamp_ms=TIME_MS, metadata=name)
        partition.append([group_metadata(name, value), commit], timestamp_ms=TIME_MS)

    code, out, err = ask("explain", tmp_path, "--group", name)

    assert code == 0
    assert {character for character in out + err if unicodedata.category(character)[0] == "C"} <= {"\n"}
    assert out.count("What it is\n") == 1


def test_a_page_has_eighty_columns_and_commands_are_whole(ask: Ask) -> None:
    _, out, _ = ask("explain", DEMO, "--group", "fraud-scoring")

    lines = out.splitlines()
    commands = [line for line in lines if line.startswith("    exhume ")]
    assert max(cell_len(line) for line in lines if line not in commands) <= 80
    assert f"    exhume history {DEMO} --group fraud-scoring" in commands
    assert "\x1b" not in out
    assert [line for line in lines if line != line.rstrip()] == []


def test_rows_for_programs_have_the_columns_that_are_documented(ask: Ask) -> None:
    code, out, _ = ask("explain", DEMO, "--group", "fraud-scoring", "--output", "json")

    rows = json.loads(out)
    assert code == 0
    assert [*rows[0]] == EXPLANATION.names
    assert {row["section"] for row in rows} >= {"what_it_is", "state", "members", "rebalances", "commits", "next"}


def test_how_sure_a_sentence_is_stands_in_front_of_it() -> None:
    origin = {"replica": "1", "offsets_partition": 12, "group": "g", "section": "odd"}
    rows = [
        origin | {"sentence": "A", "confidence": "proof", "first_record_offset": 1042, "last_record_offset": 1077},
        origin | {"sentence": "B", "confidence": "likely", "first_record_offset": 7, "last_record_offset": 7},
        origin | {"sentence": "C", "confidence": "possible", "not_excluded": "d"},
        origin | {"sentence": "E", "confidence": "undecidable"},
    ]

    text = "".join(page_text(pa.Table.from_pylist(rows, EXPLANATION), is_terminal=False))

    assert text.splitlines()[3:] == [
        "  A. [12:1042-1077]",
        "  Likely: B. [12:7]",
        "  Possibly: C. Not excluded: d.",
        "  Undecidable: E.",
    ]


def test_a_group_that_is_not_there_is_a_wrong_request(ask: Ask) -> None:
    code, out, err = ask("explain", DEMO, "--group", "fraud-scorer")

    assert (code, out) == (2, "")
    assert "Did you mean fraud-scoring" in err


def test_a_page_can_be_written_to_a_file(ask: Ask, tmp_path: Path) -> None:
    code, out, _ = ask("explain", DEMO, "--group", "fraud-scoring", "--output-file", tmp_path / "page.txt")

    assert (code, out) == (0, "")
    assert "What to look at next" in (tmp_path / "page.txt").read_text(encoding="utf-8")
