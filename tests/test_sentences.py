"""The list of sentences: which templates it finds, and how it writes them."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

_TOOL = Path(__file__).resolve().parent.parent / "tools" / "list_sentences.py"
_SOURCE = """
from exhume.errors import RequestError
_HELP = "Name one"
def lag(found, end, group):
    about = f" of {group.name}"
    sentence = f"{counted(found, 'commit')}{about}" + (", and more" if end else "")
    if end:
        sentence += f"; lag {end - 1}"
    not_excluded = ["a copy that is old"] if end else []
    not_excluded.append("two clocks")
    yield finding("IC-00", sentence, group, not_excluded=not_excluded, remedy=next_step("See it", inputs, "state", "--group", group.name))
    yield undecidable("IC-00", "the log has " + _state(group), group)
    raise RequestError(f"no group {group!r}", remedy=_HELP)
def _state(group) -> str:
    return "no record of it" if group else "none"
print("not a sentence of a finding")
"""


@pytest.fixture(scope="module")
def tool() -> dict[str, Any]:
    return runpy.run_path(str(_TOOL))


@pytest.fixture(scope="module")
def page(tool: dict[str, Any]) -> str:
    text: str = tool["page"]()
    return text


def test_templates_come_from_constructors_variables_and_functions(tool: dict[str, Any], tmp_path: Path) -> None:
    source = tmp_path / "module.py"
    source.write_text(_SOURCE, encoding="utf-8")
    [module] = tool["modules"]([source])
    found = {(kind, text) for _, kind, text in tool["templates"](module, tool["signatures"](tool["modules"]()))}

    assert found == {
        ("sentence", "{N commits}{about}[, and more]"),
        ("sentence +", "of {name}"),
        ("sentence +", "; lag {end - 1}"),
        ("not excluded", "a copy that is old"),
        ("not excluded", "two clocks"),
        ("remedy", "See it: exhume state PATH --group {name}"),
        ("remedy", "Name one"),
        ("reason", "the log has {_state group}"),
        ("reason +", "no record of it"),
        ("message", "no group {group}"),
    }


def test_templates_come_from_tables(tool: dict[str, Any], page: str, tmp_path: Path) -> None:
    source = tmp_path / "module.py"
    source.write_text("TEMPLATES: dict[str, str] = {KIND: 'no group {group!r} at {offset}'}", encoding="utf-8")
    [module] = tool["modules"]([source])

    assert tool["templates"](module, {}) == [(1, "reason", "no group {group} at {offset}")]
    assert "* reason: the record key is null\n" in page


def test_the_page_has_every_kind_of_sentence(page: str) -> None:
    assert {line.split(":")[0].removeprefix("* ") for line in page.splitlines() if line.startswith("* ")} >= {
        "sentence",
        "reason",
        "not excluded",
        "remedy",
        "message",
        "note",
    }
    assert "cannot decide: {reason}" in page
