"""Defaults of options: from the environment, and from `exhume.toml`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from exhume.cli.demo import DEMO_LOG
from tests.cli.conftest import Ask


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def releases(ask: Ask, *options: str) -> tuple[set[str], str]:
    """The releases that load the log, and standard error."""
    _, shown, told = ask("state", DEMO_LOG, "--table", "loads", "-o", "jsonl", *options)
    return {json.loads(line)["release"] for line in shown.splitlines()}, told


def test_a_file_gives_defaults_and_an_option_comes_before_it(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "exhume.toml").write_text('release = "3.9.1"\n', encoding="utf-8")

    found, told = releases(ask)
    assert found == {"3.9.1"}
    assert told.startswith("defaults: --release 3.9.1 (exhume.toml)\n")
    found, told = releases(ask, "--release", "4.3.0")
    assert (found, "defaults" in told) == ({"4.3.0"}, False)
    assert "defaults" not in releases(ask, "--quiet")[1]


def test_the_environment_comes_before_the_file(ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other.toml").write_text('release = "2.8.2"\nretention = "3d"\n', encoding="utf-8")
    monkeypatch.setenv("EXHUME_CONFIG", str(tmp_path / "other.toml"))
    monkeypatch.setenv("EXHUME_RELEASE", "4.3.0")

    found, told = releases(ask)
    assert found == {"4.3.0"}
    assert told.startswith("defaults: --release 4.3.0 (EXHUME_RELEASE)\n")
    _, shown, _ = ask("expiry", DEMO_LOG, "--now", "2026-11-25", "--group", "backfill-offsets", "-o", "jsonl")
    rows = [row for row in map(json.loads, shown.splitlines()) if row["rule"] == "since_commit"]
    assert {row["expires_at_ms"] - row["base_timestamp_ms"] for row in rows} == {3 * 86_400_000}


def test_a_default_is_parsed_as_the_option_is(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXHUME_RETENTION", "1q")
    code, _, told = ask("expiry", DEMO_LOG)

    assert code == 2
    assert "'1q' is not a duration" in told


@pytest.mark.parametrize(("text", "problem"), [('relase = "3.0"', "Did you mean release?"), ("release =", "exhume.toml: ")])
def test_a_wrong_file_is_refused(ask: Ask, tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "exhume.toml").write_text(text, encoding="utf-8")
    code, _, told = ask("state", DEMO_LOG)

    assert code == 2
    assert problem in told
    assert ask("--version")[0] == 0


def test_the_release_of_a_client_has_no_default(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXHUME_RELEASE", "2.8.2")

    assert "defaults" not in ask("assignments", DEMO_LOG, "--group", "orders-enricher")[2]
