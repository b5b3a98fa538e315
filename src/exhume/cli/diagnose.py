"""`exhume diagnose`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from exhume.cli.expiry import parse_retention
from exhume.cli.options import CsvRaw, EvidencePaths, Groups, Output, OutputFile, OutputOption, TempDir

if TYPE_CHECKING:
    import pyarrow as pa

    from exhume.analysis.detectors import Inputs
    from exhume.findings import Findings

_SHOWN = (
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
    """How bad: worth knowing, worth a look, or an incident."""

    info = "info"
    warn = "warn"
    incident = "incident"


class FailOn(StrEnum):
    """The severity from which on the exit code is 1."""

    info = "info"
    warn = "warn"
    incident = "incident"
    never = "never"


_RANKS = ("info", "warn", "incident", "never")


def _show_codes(wanted: bool) -> None:
    if not wanted:
        return
    from exhume.analysis.detectors.catalogue import DETECTORS
    from exhume.cli.escape import printable

    for detector in DETECTORS:
        needs = f" (needs {', '.join(detector.needs)})" if detector.needs else ""
        typer.echo(printable(f"{detector.code:<7} {detector.title}{needs}"))
    raise typer.Exit


def _offsets_option(which: str) -> object:
    help_text = f"The {which} offsets of data topics, as kafka-get-offsets.sh prints them: topic:partition:offset."
    return typer.Option(f"--{'end' if which == 'latest' else 'start'}-offsets", metavar="FILE", help=help_text, show_default=False)


def diagnose_command(
    paths: EvidencePaths,
    groups: Groups = None,
    codes: Annotated[
        list[str] | None,
        typer.Option("--code", metavar="CODE", help="Only this detector, such as IC-02. Repeatable.", show_default="all"),
    ] = None,
    min_severity: Annotated[Severity, typer.Option("--min-severity", help="Show findings from this severity on.")] = Severity.warn,
    fail_on: Annotated[
        FailOn, typer.Option("--fail-on", help="Exit with 1 when there is a finding from this severity on.")
    ] = FailOn.incident,
    undecided: Annotated[
        bool, typer.Option("--undecided", help="Show what could not be decided, too. Of the codes asked for it always is.")
    ] = False,
    end_offsets: Annotated[Path | None, _offsets_option("latest")] = None,
    start_offsets: Annotated[Path | None, _offsets_option("earliest")] = None,
    topics_file: Annotated[
        Path | None,
        typer.Option("--topics", metavar="FILE", help="CSV: topic,topic_id,partitions[,racks].", show_default=False),
    ] = None,
    live: Annotated[
        Path | None,
        typer.Option("--live", metavar="FILE", help="What kafka-consumer-groups.sh --describe --all-groups printed.", show_default=False),
    ] = None,
    retention: Annotated[
        int | None,
        typer.Option(
            "--retention",
            parser=parse_retention,
            metavar="TIME",
            help="offsets.retention.minutes of the broker, as for expiry.",
            show_default="what removals speak for",
        ),
    ] = None,
    offsets_partitions: Annotated[
        int | None,
        typer.Option(
            "--offsets-partitions", min=1, metavar="N", help="How many partitions __consumer_offsets has.", show_default="not known"
        ),
    ] = None,
    _list: Annotated[bool, typer.Option("--list", callback=_show_codes, is_eager=True, help="List all codes and exit.")] = False,
    temp_dir: TempDir = None,
    output: OutputOption = Output.table,
    output_file: OutputFile = None,
    csv_raw: CsvRaw = False,
) -> None:
    """Look for what is known to go wrong, and say what was found.

    A row for each finding, the worst first: how bad and how sure, whose it is, the records it rests on, one sentence with the numbers, and
    what else it could be. Where nothing is shown, all detectors have looked and found nothing; how many could not decide is said below.
    Exit code 1 when something is an incident, or damage made the answer partial.

    Example: exhume diagnose data/ --min-severity info --end-offsets ends.txt
    """
    from exhume.cli.render import refuse_unfit, render
    from exhume.cli.run import EXIT_DAMAGE, opened, tell

    refuse_unfit(None, output=output, output_file=output_file, evidence=paths)
    inputs = _inputs(end_offsets, start_offsets, topics_file, live, retention, offsets_partitions)
    with opened(paths, temp_dir=temp_dir) as topic:
        found = topic.diagnose(inputs, codes=codes or None, groups=groups or None, topics_file=topics_file)
        shown = _shown(found, min_severity, undecided=undecided or bool(codes))
        render(shown, output=output, output_file=output_file, csv_raw=csv_raw, columns=_SHOWN, evidence=paths)
        if output is Output.table:
            _tell_rest(found, shown.num_rows)
        is_failed = any(
            finding.confidence != "undecidable" and _RANKS.index(finding.severity) >= _RANKS.index(fail_on.value) for finding in found
        )
        tell(topic.findings)
        if is_failed:
            raise typer.Exit(EXIT_DAMAGE)


def _inputs(
    end_offsets: Path | None,
    start_offsets: Path | None,
    topics_file: Path | None,
    live: Path | None,
    retention_ms: int | None,
    offsets_partitions: int | None,
) -> Inputs:
    from exhume.analysis.detectors import Inputs
    from exhume.analysis.detectors.inputs import read_live_file, read_offsets_file
    from exhume.replay.topic_names import read_topics_file

    return Inputs(
        end_offsets=None if end_offsets is None else read_offsets_file(end_offsets),
        start_offsets=None if start_offsets is None else read_offsets_file(start_offsets),
        topics=None if topics_file is None else read_topics_file(topics_file),
        live=None if live is None else read_live_file(live),
        retention_ms=retention_ms,
        offsets_partitions=offsets_partitions,
    )


def _shown(found: Findings, min_severity: Severity, *, undecided: bool) -> pa.Table:
    from exhume.findings import Findings

    least = _RANKS.index(min_severity.value)
    return Findings(
        finding for finding in found if (undecided if finding.confidence == "undecidable" else _RANKS.index(finding.severity) >= least)
    ).to_table()


def _tell_rest(found: Findings, shown: int) -> None:
    """Count what is not shown, on standard error."""
    undecided = sum(finding.confidence == "undecidable" for finding in found)
    parts = [f"{len(found)} findings, {shown} shown"]
    if undecided:
        parts.append(f"{undecided} could not be decided (--undecided shows why)")
    if len(found) - undecided > shown:
        parts.append("--min-severity info shows all")
    typer.echo("; ".join(parts), err=True)
