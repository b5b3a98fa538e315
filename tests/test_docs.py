"""The documentation says what the code does."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from exhume.cli.app import app

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_docs", ROOT / "tools" / "generate_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_pages_and_shown_outputs_are_what_the_code_gives_today(generator: ModuleType) -> None:
    stale = [page.name for page, text in generator.pages().items() if page.read_text(encoding="utf-8") != text]

    assert not stale, f"{', '.join(stale)}: run python tools/generate_docs.py"


def test_every_command_is_documented_with_an_example(generator: ModuleType) -> None:
    groups = [(group.name, group.typer_instance) for group in app.registered_groups]
    nested = [(f"{name} ", command) for name, group in groups if group is not None for command in group.registered_commands]
    assert len(nested) == 2
    for prefix, command in [*(("", command) for command in app.registered_commands), *nested]:
        assert f"{prefix}{command.name}" in generator.COMMANDS
        assert command.callback is not None
        assert "Example: exhume " in (command.callback.__doc__ or "")


def test_links_between_pages_lead_somewhere() -> None:
    import re

    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    broken = [
        f"{page.name} -> {target}"
        for page in pages
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]

    assert not broken
