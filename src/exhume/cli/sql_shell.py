"""The shell of `exhume sql`: statements end with a semicolon; history, completion, and answers as tables."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import typer

from exhume.cli.options import Output
from exhume.cli.progress import Progress
from exhume.errors import ExhumeError, RequestError
from exhume.escape import printable
from exhume.topic import open_topic

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import Completer

    from exhume.topic.sql import SqlDatabase

_PROMPT, _MORE = "exhume> ", "   ...> "
_MOST_ROWS = 1000
_GREETING = "Statements end with ;  .tables lists the views, .columns VIEW its columns, .quit or Ctrl-D ends."
_WORDS = (
    *("select", "from", "where", "group by", "order by", "limit", "join", "left join", "on", "using", "with", "as", "and", "or", "not"),
    *("is null", "is not null", "in", "like", "between", "distinct", "count(*)", "min(", "max(", "sum(", "desc", "having", "union all"),
)


class Shell:
    """A shell over the logs of these places. Use it in a `with` statement."""

    def __init__(self, places: Sequence[str], temp_dir: Path | None, *, verify: bool) -> None:
        self._temp_dir = temp_dir
        self._bar: Progress | None = None
        self._topic = open_topic(places, temp_dir=temp_dir, verify=verify, progress=self._advance)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._topic.close()

    def run(self, *, release: str | None, external_access: bool, memory_limit: str) -> None:
        """Take statements until the user ends the shell. An error of a statement does not end it."""
        with self._topic.to_duckdb(
            release=release, external_access=external_access, memory_limit=memory_limit, temp_dir=self._temp_dir
        ) as database:
            session = _session(database)
            typer.echo(_GREETING, err=True)
            pending = ""
            while True:
                try:
                    line = session.prompt(_MORE if pending else _PROMPT)
                except KeyboardInterrupt:
                    pending = ""
                    continue
                except EOFError:
                    return
                if not pending and line.strip() in (".quit", ".exit"):
                    return
                pending = f"{pending}\n{line}" if pending else line
                if is_whole(pending):
                    self._answer(database, pending)
                    pending = ""

    def _answer(self, database: SqlDatabase, text: str) -> None:
        from exhume.cli.render import render

        known = set(self._topic.findings)
        try:
            with Progress("reading") as self._bar:
                answer = database.query(_statement(text)).read_all()
            shown = answer.slice(0, _MOST_ROWS)
            render(shown, output=Output.table)
            count = f"{answer.num_rows:,} row{'' if answer.num_rows == 1 else 's'}"
            typer.echo(count if shown.num_rows == answer.num_rows else f"{count}, {_MOST_ROWS:,} shown: add a limit", err=True)
        except ExhumeError as error:
            typer.echo(printable(str(error)), err=True)
        except KeyboardInterrupt:
            typer.echo("interrupted", err=True)
        finally:
            self._bar = None
        worse = [each for each in self._topic.findings if each not in known and each.severity != "info"]
        if worse:
            typer.echo(f"{len(worse)} new finding{'' if len(worse) == 1 else 's'}: from findings where severity <> 'info';", err=True)

    def _advance(self, done_bytes: int, total_bytes: int) -> None:
        if self._bar is not None:
            self._bar.total_bytes = total_bytes
            self._bar.advance(done_bytes - self._bar.done_bytes)


def is_whole(text: str) -> bool:
    """Return True if this text can be run: a command of the shell, or statements that end with a semicolon outside of quotes."""
    if not text.strip() or text.startswith("."):
        return True
    import duckdb

    tokens = [start for start, kind in duckdb.tokenize(text) if kind is not duckdb.token_type.comment]
    return bool(tokens) and text[tokens[-1] :].lstrip().startswith(";")


def _statement(text: str) -> str:
    match text.split():
        case [".tables"]:
            return "SELECT name FROM (SHOW TABLES)"
        case [".columns", view]:
            return f'FROM (DESCRIBE "{view.replace(chr(34), 2 * chr(34))}")'
        case [command, *_] if command.startswith("."):
            raise RequestError(f"no command {command!r}", remedy="Write .tables, .columns VIEW or .quit")
    return text


def _session(database: SqlDatabase) -> PromptSession[str]:
    try:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.history import FileHistory
    except ImportError as error:
        raise RequestError("the shell needs prompt_toolkit, which is not installed", remedy="Run pip install 'exhume[sql]'") from error
    history = history_file()
    history.parent.mkdir(parents=True, exist_ok=True)
    return PromptSession(history=FileHistory(str(history)), completer=completer(database))


def history_file() -> Path:
    """Return the file of earlier statements."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "exhume" / "sql_history"


def completer(database: SqlDatabase) -> Completer:
    """Complete words of SQL, views, macros, and columns."""
    from prompt_toolkit.completion import WordCompleter

    return WordCompleter(sorted(_names(database)), ignore_case=True)


def _names(database: SqlDatabase) -> Iterable[str]:
    columns = {name for view in database.views.values() for name in view.schema.names}
    return {*_WORDS, *database.views, *(f"{name}(" for name in database.macros), *columns}
