"""An explanation as a page of text: headings, sentences of 80 columns, and each command on one line."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from itertools import groupby

import pyarrow as pa
from rich.console import Console
from rich.text import Text

from exhume.analysis.explanation.page import ExplanationRow
from exhume.escape import printable

_COLUMNS = 80
_HEADINGS: Mapping[str, str] = {
    "what_it_is": "What it is",
    "state": "State",
    "members": "Members",
    "rebalances": "Rebalances",
    "commits": "Commits",
    "odd": "What stands out",  # plain: a value of the column section
    "missing": "What is missing",
    "next": "What to look at next",
}
#: The first word of a sentence without proof.
_SURENESS: Mapping[str, str] = {"likely": "Likely: ", "possible": "Possibly: ", "undecidable": "Undecidable: "}


def page_text(explanation: pa.Table, *, is_terminal: bool) -> Iterator[str]:
    """The pages of this `EXPLANATION`, section by section; with colours on a terminal that has them."""
    if is_terminal:
        terminal = Console(file=sys.stdout, markup=False, emoji=False, highlight=False)
        console = Console(file=sys.stdout, markup=False, emoji=False, highlight=False, width=min(_COLUMNS, terminal.width))
    else:
        console = Console(file=sys.stdout, markup=False, emoji=False, highlight=False, width=_COLUMNS, color_system=None)
    rows: list[ExplanationRow] = explanation.to_pylist()
    for number, (origin, page) in enumerate(groupby(rows, key=lambda row: (row["replica"], row["offsets_partition"]))):
        sections = [(section, list(section_rows)) for section, section_rows in groupby(page, key=lambda row: row["section"])]
        with console.capture() as captured:
            if number:
                console.print()
            console.print(_title(rows[0]["group"], *origin))
        yield captured.get()
        for section, section_rows in sections:
            with console.capture() as captured:
                console.print()
                console.print(Text(_HEADINGS[section], style="bold"))
                for row in section_rows:
                    _print_row(console, row)
            yield captured.get()


def _title(group: str, replica: str, offsets_partition: int | None) -> Text:
    partition = "" if offsets_partition is None else f"offsets partition {offsets_partition} of "
    return Text.assemble((printable(group) or '""', "bold underline"), f"  {partition}replica {printable(replica)}")


def _print_row(console: Console, row: ExplanationRow) -> None:
    if row["section"] == "next":
        # One line, so that it can be copied.
        console.print(
            f"  {printable(row['sentence'])}:", Text(f"    {printable(row['next_command'] or '')}", style="cyan"), sep="\n", soft_wrap=True
        )
        return
    text = Text(f"{_SURENESS.get(row['confidence'], '')}{printable(row['sentence'])}.")
    if row["not_excluded"] is not None:
        text.append(f" Not excluded: {printable(row['not_excluded'])}.")
    evidence = _evidence(row)
    if evidence:
        text.append(f" {evidence}", style="dim")
    lines = text.wrap(console, console.width - 4)
    for number, line in enumerate(lines):
        line.rstrip()
        console.print(Text.assemble("  " if not number else "    ", line), soft_wrap=True)


def _evidence(row: ExplanationRow) -> str:
    first, last = row["first_record_offset"], row["last_record_offset"]
    if first is None:
        return ""
    partition = "" if row["offsets_partition"] is None else f"{row['offsets_partition']}:"
    return f"[{partition}{first}]" if first == last else f"[{partition}{first}-{last}]"
