"""The options that every command with an answer has: rows and columns, colours, notes.

`with_table_options` adds them to the function of a command, which does not see them: `render` finds them in `selection`.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import update_wrapper
from typing import Annotated, Any, get_type_hints

import typer

from exhume.cli import notes
from exhume.cli.panels import OUTPUT, ROWS
from exhume.cli.selection import Selection, selecting


class Color(StrEnum):
    """When an answer has colours: on a terminal that has them, always, or never."""

    auto = "auto"
    always = "always"
    never = "never"


def _use_zone(name: str | None) -> str | None:
    from exhume.moments import use_zone

    use_zone(name)
    return name


_OPTIONS: dict[str, tuple[Any, Any]] = {
    "where": (
        Annotated[
            str | None,
            typer.Option(
                "--where",
                metavar="CONDITION",
                help="Only rows that meet it, such as: partition = 3 and topic ~ 'pay*'.",
                rich_help_panel=ROWS,
                show_default=False,
            ),
        ],
        None,
    ),
    "sort": (
        Annotated[
            list[str] | None,
            typer.Option(
                "--sort",
                metavar="COLUMN",
                help="Sort by this column; -COLUMN: the greatest value first. Repeatable, or with commas.",
                rich_help_panel=ROWS,
                show_default=False,
            ),
        ],
        None,
    ),
    "shown_columns": (
        Annotated[
            list[str] | None,
            typer.Option(
                "--columns",
                metavar="COLUMN",
                help="Show these columns, in this order. Repeatable, or with commas.",
                rich_help_panel=ROWS,
                show_default=False,
            ),
        ],
        None,
    ),
    "limit": (
        Annotated[
            int | None,
            typer.Option(
                "--limit",
                min=0,
                metavar="N",
                help="Show the first N rows of each table; 0: all.",
                rich_help_panel=ROWS,
                show_default="all; 100 on a terminal",
            ),
        ],
        None,
    ),
    "zone": (
        Annotated[
            str | None,
            typer.Option(
                "--tz",
                metavar="ZONE",
                # Before the options that have times.
                is_eager=True,
                callback=_use_zone,
                help="The zone of times in options and tables, such as Europe/Berlin, or local.",
                rich_help_panel=OUTPUT,
                show_default="UTC",
            ),
        ],
        None,
    ),
    "color": (
        Annotated[Color, typer.Option("--color", help="When to use colours. NO_COLOR is obeyed too.", rich_help_panel=OUTPUT)],
        Color.auto,
    ),
    "quiet": (
        Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notes; errors and findings stay.", rich_help_panel=OUTPUT)],
        False,
    ),
}


def with_table_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return this command with the options for its answer; unchanged if it has no `output`."""
    parameters = inspect.signature(command).parameters
    if "output" not in parameters:
        return command
    hints = get_type_hints(command, include_extras=True)

    def run(**arguments: Any) -> Any:
        own = {name: arguments.pop(name) for name in _OPTIONS}
        _apply_color(own["color"])
        with selecting(selection_of(own["where"], own["sort"], own["shown_columns"], own["limit"])), notes.quiet(is_quiet=own["quiet"]):
            return command(**arguments)

    update_wrapper(run, command)
    del run.__wrapped__  # type: ignore[attr-defined]
    run.__annotations__ = {**hints, **{name: annotation for name, (annotation, _) in _OPTIONS.items()}}
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in _OPTIONS.items()
    ]
    given = [
        parameter.replace(annotation=hints.get(name, parameter.annotation), kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in parameters.items()
    ]
    run.__signature__ = inspect.Signature([*given, *added])  # type: ignore[attr-defined]
    return run


def selection_of(where: str | None, sort: Sequence[str] | None, columns: Sequence[str] | None, limit: int | None) -> Selection:
    """Parse the options for rows and columns.

    Raises:
        RequestError: the condition cannot be read.
    """
    condition = None
    if where is not None:
        # Conditions need Arrow, which a wrong request should not wait for.
        from exhume.where import Where

        condition = Where(where)
    order = tuple((name.removeprefix("-"), name.startswith("-")) for name in _split(sort))
    return Selection(condition, order, tuple(_split(columns)), limit)


def _split(texts: Sequence[str] | None) -> list[str]:
    return [name.strip() for text in texts or () for name in text.split(",") if name.strip()]


def _apply_color(color: Color) -> None:
    """Choose colours in the way that rich and all others understand."""
    if color is Color.auto:
        return
    os.environ.pop("FORCE_COLOR" if color is Color.never else "NO_COLOR", None)
    os.environ["NO_COLOR" if color is Color.never else "FORCE_COLOR"] = "1"
