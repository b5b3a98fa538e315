"""`exhume timeline`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from exhume.cli.options import CsvRaw, EvidencePaths, Group, Output, OutputFile, OutputOption, TempDir


class Lanes(StrEnum):
    """What a lane stands for."""

    partitions = "partition"
    members = "member"


class Scale(StrEnum):
    """What the width of a lane is shared out to: to time, or to each change alike."""

    time = "time"
    changes = "changes"


def timeline_command(
    paths: EvidencePaths,
    group: Group,
    by: Annotated[
        Lanes, typer.Option("--by", help="A lane for each partition, or for each member with how many it has.")
    ] = Lanes.partitions,
    scale: Annotated[Scale, typer.Option("--scale", help="Share the width out to time, or to each change alike.")] = Scale.time,
    temp_dir: TempDir = None,
    output: OutputOption = Output.table,
    output_file: OutputFile = None,
    csv_raw: CsvRaw = False,
) -> None:
    """Draw who owned which partition of a group over time.

    Swimlanes for people; for programs the rows of `exhume owners`, of all partitions that the group ever had.

    Example: exhume timeline data/ --group billing
    """
    from exhume.cli.render import refuse_unfit, render
    from exhume.cli.run import opened, tell
    from exhume.cli.swimlanes import draw

    refuse_unfit(None, output=output, output_file=output_file, evidence=paths)
    with opened(paths, temp_dir=temp_dir) as evidence:
        answer = evidence.owners(groups=[group])
        if output is Output.table:
            draw(answer, group, by_member=by is Lanes.members, by_changes=scale is Scale.changes, output_file=output_file, evidence=paths)
        else:
            render(answer, output=output, output_file=output_file, csv_raw=csv_raw, evidence=paths)
        tell(evidence.findings)
