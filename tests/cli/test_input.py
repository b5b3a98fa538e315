"""Requests as people type them: times before now, globs of groups, a path alone, names that are gone or mistyped."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from exhume import moments
from exhume.cli.demo import DEMO_LOG
from exhume.durations import DAY_MS, HOUR_MS, MINUTE_MS, parse_duration
from exhume.errors import RequestError
from exhume.fixtures import scenarios
from exhume.moments import parse_moment, use_zone
from exhume.replay.releases import newer_release_findings
from tests.cli.conftest import Ask

DEMO = str(DEMO_LOG)
#: Monday, 2026-11-23 10:20:30 UTC.
NOW_MS = 1_795_429_230_000


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> None:
    class Present(datetime):
        @classmethod
        def now(cls, tz: object = None) -> Present:
            return cls.fromtimestamp(NOW_MS / 1000, tz)  # type: ignore[arg-type]

    monkeypatch.setattr(time, "time_ns", lambda: NOW_MS * 1_000_000)
    monkeypatch.setattr(moments, "datetime", Present)


@pytest.mark.parametrize(
    ("text", "before"),
    [
        ("now", timedelta()),
        ("-2h", timedelta(hours=2)),
        ("2h ago", timedelta(hours=2)),
        ("1d12h ago", timedelta(days=1, hours=12)),
        ("- 3 days", timedelta(days=3)),
        ("today", timedelta(hours=10, minutes=20, seconds=30)),
        ("yesterday 14:00", timedelta(hours=20, minutes=20, seconds=30)),
        ("Friday 10:20", timedelta(days=3, seconds=30)),
    ],
)
@pytest.mark.usefixtures("now")
def test_a_time_before_now_is_a_moment(text: str, before: timedelta) -> None:
    assert parse_moment(text) == NOW_MS - before // timedelta(milliseconds=1)


@pytest.mark.parametrize("text", ["soon", "2h", "12", "tomorrow", "2026-13-40", "-h", "ago", "may", "yesterday 25:00", "5 apples ago"])
def test_other_words_are_refused_or_numbers(text: str) -> None:
    if text == "12":
        assert parse_moment(text) == 12
    else:
        with pytest.raises(RequestError, match="is not a moment"):
            parse_moment(text)


def test_a_zone_holds_for_texts_without_one() -> None:
    use_zone("Europe/Berlin")
    try:
        assert parse_moment("2026-07-01T12:00") == parse_moment("2026-07-01T10:00Z")
    finally:
        use_zone(None)
    assert datetime.fromtimestamp(parse_moment("2026-07-01T12:00") / 1000, UTC).hour == 12


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1w", 7 * DAY_MS),
        ("1d12h", 36 * HOUR_MS),
        ("7 days", 7 * DAY_MS),
        ("90m", 90 * MINUTE_MS),
        ("250", 250),
        ("250ms", 250),
        ("x", None),
    ],
)
def test_durations_have_the_units_that_people_use(text: str, expected: int | None) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("fraud-scoring", ["fraud-scoring"]),
        ("fraud*", ["fraud-scoring"]),
        ("fraud-scoring, shipping-eta", ["fraud-scoring", "shipping-eta"]),
        ("*-eta,recomm*", ["recommendations", "shipping-eta"]),
    ],
)
def test_groups_are_named_by_globs_and_lists(ask: Ask, wanted: str, expected: list[str]) -> None:
    code, out, _ = ask("state", DEMO, "-g", wanted, "--table", "groups", "-o", "jsonl", "--columns", "group")

    assert code == 0
    assert sorted(json.loads(line)["group"] for line in out.splitlines()) == expected


@pytest.mark.parametrize("command", ["state", "dump", "why", "explain", "history", "expiry", "diagnose"])
def test_a_mistyped_group_is_refused_alike(ask: Ask, command: str) -> None:
    code, _, err = ask(command, DEMO, "--group", "fraud-scorin")

    assert code == 2
    assert "Did you mean fraud-scoring?" in err


@pytest.mark.parametrize("command", ["state", "expiry"])
def test_a_group_that_is_gone_is_answered_with_the_record_that_removed_it(ask: Ask, tmp_path: Path, command: str) -> None:
    scenarios.write("dead-groups", tmp_path / "log")
    code, _, err = ask(command, tmp_path / "log", "--group", "invoices")

    assert code == 2
    assert "record 13 of 2024-01-15 08:05:20.000Z in offsets partition 38 is its last tombstone" in err
    assert "exhume why PATH --group invoices" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("state", DEMO, "--table", "offset"), "Did you mean offsets?"),
        (("dump", DEMO, "--type", "offset_comit"), "Did you mean offset_commit?"),
        (("state", DEMO, "--tz", "Europa/Berlin"), "Did you mean Europe/Berlin"),
        (("explain", DEMO, "--group", "*s*"), "groups match '*s*'"),
        (("reset-plan", DEMO, "--lost"), "--all-groups"),
    ],
    ids=lambda value: " ".join(value[:1] + value[2:]) if isinstance(value, tuple) else "",
)
def test_what_is_nearly_right_gets_a_hint(ask: Ask, arguments: tuple[str, ...], said: str) -> None:
    code, _, err = ask(*arguments)

    assert (code, said in err) == (2, True), err


def test_why_judges_expiry_at_the_end_of_the_log(ask: Ask) -> None:
    at_the_end = ask("why", DEMO, "-g", "fraud-scoring", "-o", "jsonl")

    assert "past due" not in at_the_end[1]
    assert "past due" not in ask("why", DEMO, "-g", "backfill-offsets")[1]
    assert "past due" in ask("why", DEMO, "-g", "backfill-offsets", "--now", "2027-06-01")[1]


def test_times_in_tables_follow_the_zone(ask: Ask) -> None:
    _, out, _ = ask("state", DEMO, "--tz", "Europe/Berlin", "--table", "offsets", "--columns", "commit_timestamp_ms", "--limit", "1")

    assert out.splitlines()[-1] == "2026-11-21 04:13:45.063+01:00"
    _, out, _ = ask("state", DEMO, "--table", "offsets", "--columns", "commit_timestamp_ms", "--limit", "1")
    assert out.splitlines()[-1] == "2026-11-21 03:13:45.063Z"


@pytest.mark.parametrize(
    ("release", "newest"), [("2.8.99", "2.8.2"), ("3.9.9", "3.9.2"), ("2.8.2", None), ("2.8", None), ("0.10.2.7", "0.10.2.2")]
)
def test_a_release_that_is_not_known_is_a_finding(release: str, newest: str | None) -> None:
    found = [finding for finding in newer_release_findings([release]) if finding.code == "release_not_known"]

    assert [newest in finding.sentence for finding in found if newest] == [True] * (newest is not None)
    assert len(found) == (newest is not None)


@pytest.mark.parametrize("arguments", [(DEMO,), ("triage", DEMO)])
def test_a_path_alone_is_the_page_to_begin_with(ask: Ask, arguments: tuple[str, ...]) -> None:
    code, out, err = ask(*arguments)

    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "4 offsets partitions (0, 1, 2, 3), 289 records, 34,624 bytes"
    assert "1 group with records, and not there at the end: promo-engine-2023" in out
    assert f"  exhume diagnose {DEMO} --min-severity info --all" in out.splitlines()


def test_the_page_to_begin_with_leads_to_groups_that_are_gone_and_to_notes(ask: Ask, tmp_path: Path) -> None:
    scenarios.write("dead-groups", tmp_path / "log")
    code, out, _ = ask(tmp_path / "log")
    lines = out.splitlines()

    assert code == 1
    assert "3 notes besides (--min-severity info)" in lines
    commands = [line.strip() for line in lines[lines.index("Next") + 1 :]]
    assert commands == [
        f"exhume diagnose {tmp_path / 'log'} --min-severity info --all",
        f"exhume explain {tmp_path / 'log'} --group returns",
        f"exhume why {tmp_path / 'log'} --group campaign",
        f"exhume why {tmp_path / 'log'} --group invoices",
    ]


def test_the_page_to_begin_with_has_headlines_and_the_exit_code_of_damage(ask: Ask, tmp_path: Path) -> None:
    scenarios.write("damaged", tmp_path / "log")
    code, out, _ = ask(tmp_path / "log")

    assert code == 1
    assert "Damaged: offsets partitions 8" in out
    assert "INCIDENT IC-36" in out


def test_help_of_a_command_is_its_help(ask: Ask) -> None:
    assert ask("help", "why")[1] == ask("why", "--help")[1]
    assert "Explain a group:" in ask("help")[1]
