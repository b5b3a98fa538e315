"""Two recordings of all answers are equal as long as nothing changes, and the tool finds what does."""

from __future__ import annotations

import importlib
import json
import shutil
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from exhume.fixtures.log_writer import PartitionWriter, offset_commit

TOOLS = Path(__file__).resolve().parent.parent.parent / "tools"
TIME_MS = 1_700_000_000_000

Tool = Callable[..., int]


@pytest.fixture(scope="module")
def tool() -> Iterator[Tool]:
    """Runs the tool in this process with these arguments; gives its exit code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(TOOLS)
        main = importlib.import_module("compare_answers").main
        yield lambda *arguments: main([str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def recorded(tool: Tool, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with two recordings of one small log, one after the other."""
    place = tmp_path_factory.mktemp("recorded")
    with PartitionWriter(place / "logs" / "story" / "data", 3) as partition:
        for number in range(4):
            commits = [offset_commit("billing", "orders", index, number, commit_timestamp_ms=TIME_MS) for index in range(2)]
            partition.append(commits, timestamp_ms=TIME_MS + number)
    for target in ("before", "after"):
        commands = ("dump", "state", "expiry", "why")
        assert tool("record", place / target, "--data", place / "logs", "--logs", "story/*", "--commands", *commands) == 0
    return place


@pytest.fixture
def recordings(recorded: Path, tmp_path: Path) -> tuple[Path, Path]:
    """Copies of both recordings, to change."""
    before, after = (shutil.copytree(recorded / name, tmp_path / name) for name in ("before", "after"))
    return before, after


def test_two_recordings_of_the_same_log_are_equal(
    tool: Tool, recorded: Path, recordings: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = recordings
    state = json.loads((before / "story" / "data" / "state 2.8.2.json").read_text())
    why = json.loads((before / "story" / "data" / "why group-0.json").read_text())

    assert [row["committed_offset"] for row in state["tables"]["offsets"]] == [3, 3]
    assert "--group=billing" in why["arguments"]
    assert why["tables"][""]
    assert not [place for place in before.rglob("*.json") if str(recorded) in place.read_text()]
    assert {place.relative_to(before): place.read_bytes() for place in before.rglob("*.json")} == {
        place.relative_to(after): place.read_bytes() for place in after.rglob("*.json")
    }
    capsys.readouterr()
    assert tool("compare", before, after) == 0
    assert ": 0 values differ, 0 sentences by 0 templates" in capsys.readouterr().out


def test_a_value_that_changed_is_found(tool: Tool, recordings: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    before, after = recordings
    _change(after / "story" / "data" / "state 2.8.2.json", '"committed_offset": 3,', '"committed_offset": 4,')
    (after / "story" / "data" / "dump.json").unlink()
    capsys.readouterr()

    assert tool("compare", before, after) == 1
    lines = capsys.readouterr().out.splitlines()
    assert 'story/data | dump | - | - | answer: "there" -> "missing"' in lines
    assert "story/data | state 2.8.2 | offsets | 0 | committed_offset: 3 -> 4" in lines


def test_words_of_a_sentence_are_no_value_but_its_numbers_are(
    tool: Tool, recordings: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = recordings
    answer = (
        '{"arguments": [], "exit_code": 0, "messages": [], "tables": {"": [{"group": "billing", "sentence": "billing has 2 offsets"}]}}'
    )
    for root in recordings:
        (root / "story" / "data" / "why group-0.json").write_text(answer)
    place = after / "story" / "data" / "why group-0.json"
    capsys.readouterr()

    _change(place, "has 2 offsets", "holds 2 offsets")
    assert tool("compare", before, after) == 0
    assert "       1  - <group> has N offsets\n          + <group> holds N offsets\n" in capsys.readouterr().out

    _change(place, "holds 2 offsets", "has 3 offsets")
    assert tool("compare", before, after) == 1
    assert 'sentence: "billing has 2 offsets" -> "billing has 3 offsets"' in capsys.readouterr().out


def test_a_row_that_is_missing_does_not_move_the_others(
    tool: Tool, recordings: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = recordings
    place = after / "story" / "data" / "dump.json"
    answer = json.loads(place.read_text())
    del answer["tables"][""][2]
    place.write_text(json.dumps(answer))
    capsys.readouterr()

    assert tool("compare", before, after, "--logs", "story/*", "--commands", "dump") == 1
    assert ": 1 values differ, 0 sentences" in capsys.readouterr().out


def test_a_renamed_value_is_the_same_value(tool: Tool, recordings: tuple[Path, Path]) -> None:
    before, after = recordings
    _change(after / "story" / "data" / "state 2.8.2.json", '"topic": "orders"', '"topic": "refunds"')
    places = ("--logs", "story/*", "--commands", "2.8.2")

    assert tool("compare", before, after, *places) == 1
    assert tool("compare", before, after, *places, "--renamed", "orders=refunds") == 1
    text = (before / "story" / "data" / "state 2.8.2.json").read_text()
    (after / "story" / "data" / "state 2.8.2.json").write_text(text.replace('"orders"', '"refunds"'))
    assert tool("compare", before, after, *places, "--renamed", "orders=refunds") == 0


def test_a_packed_story_has_the_answers_of_a_plain_one(tool: Tool, recorded: Path, tmp_path: Path) -> None:
    (tmp_path / "packed").mkdir()
    with tarfile.open(tmp_path / "packed" / "story.tar.xz", "w:xz") as archive:
        archive.add(recorded / "logs" / "story" / "data", "data")

    assert tool("record", tmp_path / "answers", "--data", tmp_path / "packed", "--logs", "story/*", "--commands", "dump") == 0
    assert tool("compare", recorded / "before", tmp_path / "answers", "--commands", "dump") == 0


def _change(place: Path, old: str, new: str) -> None:
    text = place.read_text()
    assert old in text
    place.write_text(text.replace(old, new, 1))
