"""Help in parts: commands by task, options by use. Plain text, since rich doubles the time of `--help`."""

from __future__ import annotations

import re
from typing import Any

from typer.core import TyperCommand, TyperGroup

#: The parts of `exhume --help`, in this order.
LOOK, EXPLAIN, REPAIR, SET_UP = "Look at a log", "Explain a group", "Repair", "Set up"
#: The parts of the help of a command, after its own options.
ROWS, OUTPUT, LOADING = "Rows and columns", "Output", "Loading"
_OPTIONS = "Options"
_PANELS = (_OPTIONS, LOADING, ROWS, OUTPUT)
_WIDEST_HELP = 100
_FOR_ALL = "Every command also takes --memory-limit, --unpack-ratio and --debug: see exhume --help."
#: typer puts a described default in brackets of its own, and a range of numbers after it.
_DEFAULT = re.compile(r"\[default: \(([^()]*(?:\([^()]*\))?[^()]*)\)(?:; [^\]]*)?\]")


class PanelCommand(TyperCommand):
    """A command whose help has its options in parts."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        arguments, panels = [], {name: [] for name in _PANELS}  # type: ignore[var-annotated]
        for param in self.get_params(ctx):
            found = param.get_help_record(ctx)
            if found is None:
                continue
            record = (found[0], _DEFAULT.sub(r"[default: \1]", found[1]))
            if param.param_type_name == "argument":
                arguments.append(record)
            else:
                panels.setdefault(getattr(param, "rich_help_panel", None) or _OPTIONS, []).append(record)
        for name, records in {"Arguments": arguments, **panels}.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)
        formatter.write_paragraph()
        formatter.write_text(_FOR_ALL)


class PanelGroup(TyperGroup):
    """A program whose help has its commands in parts, each with its whole first sentence."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        panels: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                sentence = (command.help or "").split("\n\n")[0].replace("\n", " ")
                panels.setdefault(getattr(command, "rich_help_panel", None) or "Commands", []).append((name, sentence))
        for panel, records in panels.items():
            with formatter.section(panel):
                formatter.write_dl(records, col_max=14)


def help_width() -> int:
    """The width of help: that of the terminal, at most 100."""
    import shutil

    return min(shutil.get_terminal_size((80, 24)).columns, _WIDEST_HELP)
