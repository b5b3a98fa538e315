"""`exhume owners`."""

from __future__ import annotations

from typing import Annotated

import typer

from exhume.cli.options import (
    AtOffset,
    AtTime,
    CsvRaw,
    EvidencePaths,
    Groups,
    OutputFile,
    PictureOutput,
    PictureOutputOption,
    TempDir,
    record_offsets,
    typed_name,
)

_SHOWN = (
    "group",
    "topic",
    "partition",
    "from_timestamp_ms",
    "to_timestamp_ms",
    "holding",
    "reason",
    "member_id",
    "client_host",
    "generation",
    "group_epoch",
    "began",
    "ended",
    "overlaps",
    "from_record_offset",
)


def owners_command(
    paths: EvidencePaths,
    topic: Annotated[str, typer.Option("--topic", "-t", parser=typed_name, metavar="TOPIC", help="The topic.", show_default=False)],
    partition: Annotated[
        int | None, typer.Option("--partition", "-p", min=0, metavar="N", help="Only this partition of the topic.", show_default=False)
    ] = None,
    groups: Groups = None,
    at_offset: AtOffset = None,
    at_time: AtTime = None,
    temp_dir: TempDir = None,
    output: PictureOutputOption = PictureOutput.table,
    output_file: OutputFile = None,
    csv_raw: CsvRaw = False,
) -> None:
    """Show the owners of a partition over time, in each group that read it.

    One row for each interval: the member, the first and the last record, its generation or epoch, client and host. Gaps are intervals
    without an owner; overlaps have two owners. A commit does not name its author: the owner at that time is the most likely one.

    Example: exhume owners data/ --topic orders --partition 3 --at-time 2026-11-20T14:07Z
    """
    from exhume.cli.groups import matched
    from exhume.cli.picture import write_picture
    from exhume.cli.render import refuse_unfit, render
    from exhume.cli.run import opened, tell

    refuse_unfit(None, output=output.of_rows, output_file=output_file, evidence=paths)
    offsets = record_offsets(at_offset, "--at-offset")
    with opened(paths, temp_dir=temp_dir) as evidence:
        answer = evidence.owners(groups=matched(evidence, groups), topic=topic, partition=partition, at_offset=offsets, at_time_ms=at_time)
        if output.is_picture:
            # A table needs nothing of the report, which takes a second to import.
            from exhume.report.pictures import owners_svg

            title = f"Owners of {topic}" + ("" if partition is None else f"-{partition}")
            write_picture(owners_svg(answer, title), title, output, output_file, paths)
        else:
            render(answer, output=output.of_rows, output_file=output_file, csv_raw=csv_raw, columns=_SHOWN, evidence=paths)
        tell(evidence.findings)
