import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from exhume.cli import progress
from exhume.cli.destination import open_destination
from exhume.cli.progress import Progress


class FakeTerminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Callable[[], FakeTerminal]:
    """Makes standard error a terminal; to be called by the test, since pytest replaces the stream between set-up and test."""

    def watch() -> FakeTerminal:
        fake = FakeTerminal()
        monkeypatch.setattr(sys, "stderr", fake)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "120")
        return fake

    return watch


@pytest.fixture
def no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SHOWN_AFTER_SECONDS", 0.0)


@pytest.mark.usefixtures("no_delay")
def test_long_work_shows_label_bytes_and_total(watched: Callable[[], FakeTerminal]) -> None:
    terminal = watched()
    with Progress("reading", total_bytes=4 << 20) as bar:
        bar.advance(1 << 20)
        bar.advance(1 << 20)
        assert bar.is_shown

    assert "reading" in terminal.getvalue()
    assert "2.0/4.0 MiB" in terminal.getvalue()


@pytest.mark.usefixtures("no_delay")
def test_a_total_that_is_learnt_late_is_shown(watched: Callable[[], FakeTerminal]) -> None:
    terminal = watched()
    with Progress("reading") as bar:
        bar.advance(1 << 20)
        bar.total_bytes = 2 << 20
        bar.advance(1 << 20)

    assert "2.0/2.0 MiB" in terminal.getvalue()


@pytest.mark.usefixtures("no_delay")
def test_one_bar_names_the_pass_and_the_work_after_it(watched: Callable[[], FakeTerminal]) -> None:
    watched()
    labels = []
    with Progress("reading") as bar:
        for done_bytes in (1, 4, 4, 2, 4, 1):
            bar.reach(done_bytes, 4)
            labels.append(bar.label)

    assert labels == [
        *("reading", "reading: evaluating", "reading: evaluating"),
        *("reading, pass 2", "reading, pass 2: evaluating", "reading, pass 3"),
    ]


@pytest.mark.usefixtures("no_delay")
def test_a_bar_leaves_when_the_work_fails(watched: Callable[[], FakeTerminal]) -> None:
    terminal = watched()
    bar = Progress("reading")

    def work() -> None:
        with bar:
            bar.advance(1)
            raise KeyError

    with pytest.raises(KeyError):
        work()

    assert not bar.is_shown
    # Erase the line of the bar: it does not stay among the messages.
    assert "\x1b[2K" in terminal.getvalue()


@pytest.mark.usefixtures("no_delay")
def test_a_bar_makes_way_for_an_answer_on_a_terminal(watched: Callable[[], FakeTerminal], monkeypatch: pytest.MonkeyPatch) -> None:
    watched()
    screen = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(screen, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdout", screen)
    with Progress("reading") as bar:
        bar.advance(1)
        assert bar.is_shown
        with open_destination(None) as sink:
            sink.write(b"answer")
        bar.advance(1)
        assert not bar.is_shown


@pytest.mark.usefixtures("no_delay")
def test_a_bar_stays_while_the_answer_goes_to_a_file(watched: Callable[[], FakeTerminal], tmp_path: Path) -> None:
    watched()
    with Progress("reading") as bar:
        bar.advance(1)
        with open_destination(tmp_path / "answer") as sink:
            sink.write(b"answer")
        assert bar.is_shown


@pytest.mark.usefixtures("no_delay")
def test_what_is_printed_while_a_bar_shows_goes_to_standard_output(
    watched: Callable[[], FakeTerminal], capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = watched()
    with Progress("reading") as bar:
        bar.advance(1)
        sys.stdout.write("data\n")

    assert capsys.readouterr().out == "data\n"
    assert "data" not in terminal.getvalue()


def test_quick_work_stays_silent(watched: Callable[[], FakeTerminal]) -> None:
    terminal = watched()
    with Progress("reading", total_bytes=2) as bar:
        bar.advance(2)

    assert terminal.getvalue() == ""
    assert bar.done_bytes == 2


@pytest.mark.usefixtures("no_delay")
def test_nothing_is_shown_where_standard_error_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("reading", total_bytes=2) as bar:
        bar.advance(1)
        assert not bar.is_shown

    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("no_delay")
def test_a_dumb_terminal_gets_no_bar(watched: Callable[[], FakeTerminal], monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = watched()
    monkeypatch.setenv("TERM", "dumb")
    with Progress("reading") as bar:
        bar.advance(1)

    assert terminal.getvalue() == ""


@pytest.mark.usefixtures("no_delay")
def test_a_label_from_the_evidence_cannot_paint_the_screen(watched: Callable[[], FakeTerminal]) -> None:
    terminal = watched()
    with Progress("a\x1b[31m[bold]", total_bytes=1) as bar:
        bar.advance(1)

    assert r"a\x1b[31m[bold]" in terminal.getvalue()
