"""Findings as a list for people: severity, code and subject; the sentence; other possible causes; the next command to paste."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from typing import TypedDict

import pyarrow as pa
from rich.console import Console
from rich.text import Text

from exhume.cli.destination import open_destination
from exhume.cli.shortening import cut_at_the_end, with_short_ids
from exhume.cli.terminal import console_for
from exhume.escape import printable
from exhume.findings import Remedy

_STYLES = {"incident": "bold red", "warn": "bold yellow", "info": "bold cyan"}
_INDENT = "  "
#: Lines longer than this are hard to read.
_WIDEST_SENTENCE = 100


class _Row(TypedDict, total=False):
    """The columns of a finding that the list shows."""

    severity: str
    code: str
    confidence: str
    group: str | None
    topic: str | None
    partition: int | None
    offsets_partition: int | None
    first_record_offset: int | None
    last_record_offset: int | None
    sentence: str
    not_excluded: str | None
    consequences: str | None
    remedy: str | None
    remedy_commands: list[str] | None


def write_findings(findings: pa.Table, *, is_brief: bool = False) -> None:
    """Write findings, rows of `findings.SCHEMA` or of `headlines.DIAGNOSIS`, to standard output; brief ones have two lines each."""
    console = console_for(is_terminal=sys.stdout.isatty())
    with open_destination(None) as sink:
        for row in findings.to_pylist():
            with console.capture() as captured:
                for line in _brief(console, row) if is_brief else _lines(console, row):
                    console.print(line, soft_wrap=True)
            sink.write(captured.get().encode(sys.stdout.encoding, "backslashreplace"))


def _brief(console: Console, row: _Row) -> Iterator[Text]:
    head = _head(row)
    head.truncate(console.width, overflow="ellipsis")
    yield head
    sentence = with_short_ids(_capital(printable(row["sentence"])))
    yield Text(_INDENT + cut_at_the_end(sentence, max(console.width - len(_INDENT), 1)))


def _lines(console: Console, row: _Row) -> Iterator[Text]:
    width = min(console.width, _WIDEST_SENTENCE)
    yield from _wrapped(console, _head(row), width, first="")
    yield from _wrapped(console, Text(f"{_capital(printable(row['sentence']))}."), width)
    if row["not_excluded"]:
        yield from _wrapped(console, Text(f"Not excluded: {printable(row['not_excluded'])}.", style="dim"), width)
    if row.get("consequences"):
        yield from _wrapped(console, Text(f"It explains: {row['consequences']}.", style="dim"), width)
    if row["remedy"]:
        yield from _remedy(console, row["remedy"], row["remedy_commands"] or [], width)


def _head(row: _Row) -> Text:
    style = "dim" if row["confidence"] == "undecidable" else _STYLES[row["severity"]]
    head = Text.assemble((row["severity"].upper(), style), " ", (row["code"], "bold"), (f" {row['confidence']}", "dim"))
    subject = _subject(row)
    if subject:
        head.append(f"  {subject}")
    return head


def _subject(row: _Row) -> str:
    topic, partition = row["topic"], row["partition"]
    named = None if topic is None else f"{printable(topic)}{'' if partition is None else f'-{partition}'}"
    parts = [None if row["group"] is None else printable(row["group"]) or '""', named]
    if row["first_record_offset"] is not None:
        first, last = row["first_record_offset"], row["last_record_offset"]
        of = "" if row["offsets_partition"] is None else f"{row['offsets_partition']}:"
        parts.append(f"[{of}{first}{'' if last in (None, first) else f'-{last}'}]")
    return "  ".join(part for part in parts if part)


def _remedy(console: Console, remedy: str, commands: Sequence[str], width: int) -> Iterator[Text]:
    # The commands are its end.
    purpose = remedy[: len(remedy) - len(str(Remedy("", (*commands,))))]
    yield from _wrapped(console, Text(f"Next: {printable(purpose)}{':' if commands else '.'}"), width)
    # One line, so that it can be copied.
    yield from (Text(f"{_INDENT * 2}{printable(command)}", style="cyan") for command in commands)


def _wrapped(console: Console, text: Text, width: int, *, first: str = _INDENT) -> Iterator[Text]:
    for number, line in enumerate(text.wrap(console, max(width - len(_INDENT) * 2, 1))):
        line.rstrip()
        yield Text(first if not number else _INDENT * 2) + line


def _capital(sentence: str) -> str:
    # A name at the start keeps its letters.
    return sentence[:1].upper() + sentence[1:] if re.match(r"[a-z]+ ", sentence) else sentence
