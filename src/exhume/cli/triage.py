"""`exhume triage`, and `exhume PATH`: the page to begin with."""

from __future__ import annotations

import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from exhume.cli.options import EvidencePaths, LoadRelease, TempDir
from exhume.escape import printable

if TYPE_CHECKING:
    import pyarrow as pa

    from exhume.replay.state import CoordinatorState
    from exhume.topic import OffsetsTopic

#: The number of groups to name in a line.
_MOST_NAMES = 8
_MOST_SENTENCES = 5


def triage_command(paths: EvidencePaths, release: LoadRelease = None, temp_dir: TempDir = None) -> None:
    """Show the page to begin with: what is here, if it is whole, headlines, groups that lost offsets, the next commands.

    `exhume PATH` is the same. The headlines are those of diagnose, at most ten. The exit code is 1 after an incident, or if damage made the
    answer partial.

    Example: exhume triage data/
    """
    from exhume.analysis.detectors.headlines import ranked
    from exhume.analysis.summary import summarize_groups
    from exhume.cli.findings_list import write_findings
    from exhume.cli.notes import counted
    from exhume.cli.progress import make_way
    from exhume.cli.run import EXIT_DAMAGE, opened, tell

    with opened(paths, temp_dir=temp_dir, with_listing=True) as topic:
        state = topic.state(release=release)
        summary = summarize_groups(state)
        gone = sorted({*topic.group_names()} - {*summary["group"].to_pylist()})
        here = [*_what_is_here(topic, state), *_groups(summary, gone)]
        # The detectors take as much memory again.
        del state, summary
        found = topic.diagnose()
        loud = ranked(found.at_least("warn"), only_headlines=True)
        notes = ranked(found.at_least("info"), only_headlines=True)
        make_way()
        for line in here:
            _show(line)
        typer.echo()
        if loud.num_rows:
            _show(f"Headlines ({loud.num_rows})")
            write_findings(loud)
            if notes.num_rows > loud.num_rows:
                _show(f"{counted(notes.num_rows - loud.num_rows, 'note')} besides (--min-severity info)")
        else:
            for line in _notes(notes):
                _show(line)
        typer.echo()
        _show("Next")
        for command in _next(paths, loud if loud.num_rows else notes, gone, with_notes=notes.num_rows > loud.num_rows):
            # One line, so that it can be copied.
            typer.echo(f"  {printable(command)}")
        tell(topic.findings)
        if len(found.at_least("incident")):
            raise typer.Exit(EXIT_DAMAGE)


def _show(line: str) -> None:
    """Print a line; on a terminal in lines of its width."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    typer.echo("\n".join(textwrap.wrap(printable(line), max(width, 20), subsequent_indent="    ", drop_whitespace=True)))


def _notes(notes: pa.Table) -> Iterator[str]:
    from exhume.cli.notes import counted

    more = f", {counted(notes.num_rows, 'note')}" if notes.num_rows else ""
    yield f"No headline: nothing at warn or above{more}"
    for row in notes.slice(0, _MOST_SENTENCES).to_pylist():
        subject = row["group"] or row["topic"]
        yield f"{row['code']}{f' {subject}' if subject else ''}: {row['sentence']}"


def _what_is_here(topic: OffsetsTopic, state: CoordinatorState) -> Iterator[str]:
    from exhume.cli.moments import format_ms
    from exhume.cli.notes import counted

    inspection = topic.inspect().tables()
    partitions = inspection["partitions"].to_pylist()
    size_bytes, records = sum(row["size_bytes"] or 0 for row in partitions), sum(row["record_count"] or 0 for row in partitions)
    numbers = [row["offsets_partition"] for row in partitions]
    times = [row[name] for row in partitions for name in ("min_timestamp_ms", "max_timestamp_ms") if row[name] is not None]
    of = f" ({', '.join(map(str, numbers))})" if len(numbers) <= _MOST_NAMES else ""
    yield f"{counted(len(partitions), 'offsets partition')}{of}, {counted(records, 'record')}, {size_bytes:,} bytes"
    if times:
        yield f"from {format_ms(min(times))} to {format_ms(max(times))}"
    damaged = [row["offsets_partition"] for row in partitions if row["damaged_bytes"]]
    missing = sum(row["missing_offsets"] or 0 for row in partitions)
    yield f"Damaged: offsets partitions {', '.join(map(str, damaged))}" if damaged else "No damage found"
    if missing:
        yield f"{missing:,} record offsets have no record: compaction removes superseded records"
    not_loaded = [row for row in state.loads.to_pylist() if row["outcome"] not in ("loaded", "loaded_with_errors")]
    for row in not_loaded[:_MOST_SENTENCES]:
        yield f"A broker of {state.release} does not load offsets partition {row['offsets_partition']}: {row['reason']}"


def _groups(summary: pa.Table, gone: Sequence[str]) -> Iterator[str]:
    from exhume.cli.notes import counted

    there = summary.to_pylist()
    states: dict[str, int] = {}
    for row in there:
        states[row["group_state"] or "offsets only"] = states.get(row["group_state"] or "offsets only", 0) + 1
    by_state = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    yield f"{counted(len(there), 'group')} at the end{f': {by_state}' if by_state else ''}"
    if gone:
        names = ", ".join(gone[:_MOST_NAMES]) + (f" and {len(gone) - _MOST_NAMES} more" if len(gone) > _MOST_NAMES else "")
        yield f"{counted(len(gone), 'group')} with records, and not there at the end: {names}"


def _next(paths: Sequence[str], shown: pa.Table, gone: Sequence[str], *, with_notes: bool) -> Iterator[str]:
    places = " ".join(shlex.quote(path) for path in paths)
    groups = list(dict.fromkeys(row["group"] for row in shown.to_pylist() if row["group"]))
    yield f"exhume diagnose {places}{' --min-severity info' if with_notes else ''} --all"
    for group in groups[:2]:
        yield f"exhume explain {places} --group {shlex.quote(group)}"
    for group in [group for group in gone if group not in groups[:2]][:2]:
        yield f"exhume why {places} --group {shlex.quote(group)}"
    if not groups:
        yield f"exhume state {places}"


def is_place(text: str) -> bool:
    """Return True if this first argument of the program is evidence: a path that exists, or a URI."""
    return "://" in text or Path(text).exists()
