"""`exhume diagnose`."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from exhume.cli.detector_options import (
    Codes,
    EndOffsets,
    Live,
    OffsetsPartitionCount,
    Retention,
    StartOffsets,
    TopicsFile,
    WrittenBy,
    detector_inputs,
)
from exhume.cli.notes import counted, note
from exhume.cli.options import PEOPLE, CsvRaw, EvidencePaths, Groups, Output, OutputFile, OutputOption, TempDir

if TYPE_CHECKING:
    from exhume.findings import Findings

#: The columns of headlines, and of all findings.
_HEADLINES = ("rank", "severity", "code", "confidence", "group", "topic", "partition", "sentence", "consequences", "remedy")
_SHOWN = (
    "rank",
    "because_of",
    "severity",
    "code",
    "confidence",
    "group",
    "topic",
    "partition",
    "offsets_partition",
    "first_record_offset",
    "last_record_offset",
    "last_timestamp_ms",
    "sentence",
    "not_excluded",
    "remedy",
)


class Severity(StrEnum):
    """The severity of a finding: information, warning or incident."""

    info = "info"
    warn = "warn"
    incident = "incident"


class FailOn(StrEnum):
    """The lowest severity that makes the exit code 1."""

    info = "info"
    warn = "warn"
    incident = "incident"
    never = "never"


def _show_codes(wanted: bool) -> None:
    if not wanted:
        return
    from exhume.analysis.detectors.catalogue import DETECTORS
    from exhume.escape import printable

    for detector in DETECTORS:
        needs = f" (needs {', '.join(detector.needs)})" if detector.needs else ""
        typer.echo(printable(f"{detector.code:<7} {detector.title}{needs}"))
    raise typer.Exit


def diagnose_command(
    paths: EvidencePaths,
    groups: Groups = None,
    codes: Codes = None,
    min_severity: Annotated[Severity, typer.Option("--min-severity", help="Show findings of this severity or higher.")] = Severity.warn,
    fail_on: Annotated[
        FailOn, typer.Option("--fail-on", help="Exit with 1 if there is a finding of this severity or higher.")
    ] = FailOn.incident,
    undecided: Annotated[
        bool, typer.Option("--undecided", help="Also show checks that the log cannot decide. With --code they are always shown.")
    ] = False,
    show_all: Annotated[
        bool, typer.Option("--all", help="Show all findings, not only the headlines. Files and other formats than `table` have all.")
    ] = False,
    with_details: Annotated[
        bool,
        typer.Option("--details", help="Show each finding of --all and --undecided with all of its lines. With --code that is always so."),
    ] = False,
    end_offsets: EndOffsets = None,
    start_offsets: StartOffsets = None,
    topics_file: TopicsFile = None,
    live: Live = None,
    retention: Retention = None,
    release: WrittenBy = None,
    offsets_partitions: OffsetsPartitionCount = None,
    _list: Annotated[bool, typer.Option("--list", callback=_show_codes, is_eager=True, help="List all codes and exit.")] = False,
    temp_dir: TempDir = None,
    output: OutputOption = Output.table,
    output_file: OutputFile = None,
    csv_raw: CsvRaw = False,
) -> None:
    """Find known problems of consumer groups.

    It opens with at most ten headlines, the worst first: severity, confidence, group, one sentence with its numbers, and the next step.
    A finding that another one explains is no headline: it is among the consequences of its cause. --all shows every finding: on a
    terminal in two lines, and with --details in all of its lines. Formats for programs always have all findings, with rank and because_of.
    Without a row, all detectors ran and found nothing; the last line counts the checks that the log cannot decide. The exit code is 1 after
    an incident, or if damage made the answer partial.

    Example: exhume diagnose data/ --min-severity info --end-offsets ends.txt
    """
    from exhume.analysis.detectors.headlines import alike_as_one, ranked
    from exhume.cli.groups import matched
    from exhume.cli.render import refuse_unfit, render, wants_list
    from exhume.cli.run import EXIT_DAMAGE, opened, tell

    refuse_unfit(None, output=output, output_file=output_file, evidence=paths)
    inputs = detector_inputs(end_offsets, start_offsets, topics_file, live, retention, offsets_partitions, release)
    with opened(paths, temp_dir=temp_dir, with_listing=True) as topic:
        found = topic.diagnose(inputs, codes=codes or None, groups=matched(topic, groups), topics_file=topics_file)
        wanted = found.at_least(min_severity.value, undecidable=undecided or bool(codes))
        is_whole = show_all or undecided or bool(codes) or output is not Output.table
        rows = ranked(wanted, only_headlines=not is_whole)
        listed = alike_as_one(rows) if output is Output.table and not codes else rows
        columns = _SHOWN if is_whole else _HEADLINES
        if wants_list(output, output_file):
            from exhume.cli.findings_list import write_findings
            from exhume.cli.selection import most_rows

            is_brief = is_whole and not (with_details or codes)
            write_findings(listed.slice(0, most_rows()), is_brief=is_brief)
            if listed.num_rows > most_rows():
                note(f"{listed.num_rows:,} findings, {most_rows():,} shown: --limit 0 for all")
        else:
            is_brief = False
            render(listed, output=output, output_file=output_file, csv_raw=csv_raw, columns=columns, evidence=paths)
        if output in PEOPLE:
            _tell_rest(found, min_severity.value, rows.num_rows, len(wanted), is_brief=is_brief, with_undecided=undecided or bool(codes))
        tell(topic.findings)
        if fail_on is not FailOn.never and len(found.at_least(Severity(fail_on.value).value)):
            raise typer.Exit(EXIT_DAMAGE)


def _tell_rest(found: Findings, lowest: str, shown: int, wanted: int, *, is_brief: bool, with_undecided: bool) -> None:
    """Print the number of findings that are not shown on standard error."""
    decided = sum(finding.confidence != "undecidable" for finding in found)
    undecided = len(found) - decided
    loud = len(found.at_least(Severity(lowest).value))
    parts = [f"{counted(loud, 'finding')} at {lowest} or above" if loud else f"nothing at {lowest} or above"]
    if wanted > shown:
        parts.append(f"{wanted - shown} more with --all")
    if decided > loud:
        parts.append(f"{counted(decided - loud, 'note')} (--min-severity info)")
    if undecided and not with_undecided:
        parts.append(f"{undecided} {'checks lack' if undecided > 1 else 'check lacks'} input (--undecided)")
    if is_brief and shown:
        parts.append("--details shows all lines")
    note(" · ".join(parts))
