"""`exhume timeline`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from exhume.cli.options import CsvRaw, EvidencePaths, FromTime, Group, OutputFile, PictureOutput, PictureOutputOption, TempDir, ToTime
from exhume.errors import RequestError


class Lanes(StrEnum):
    """A lane for each partition, or for each member."""

    partitions = "partition"
    members = "member"


class Scale(StrEnum):
    """The scale of a lane: time, or one column for each change."""

    time = "time"
    changes = "changes"


def timeline_command(
    paths: EvidencePaths,
    group: Group,
    by: Annotated[
        Lanes, typer.Option("--by", help="A lane for each partition, or for each member with its number of partitions.")
    ] = Lanes.partitions,
    scale: Annotated[Scale, typer.Option("--scale", help="The scale of the lanes: time, or one column for each change.")] = Scale.time,
    from_time: FromTime = None,
    to_time: ToTime = None,
    temp_dir: TempDir = None,
    output: PictureOutputOption = PictureOutput.table,
    output_file: OutputFile = None,
    csv_raw: CsvRaw = False,
) -> None:
    """Draw the owners of the partitions of a group over time.

    Swimlanes for people; for programs the rows of `exhume owners` for all partitions of the group. --from-time and --to-time show a part.

    Example: exhume timeline data/ --group billing
    """
    from exhume.analysis.ownership import clipped, within
    from exhume.cli.groups import the_one
    from exhume.cli.picture import write_picture
    from exhume.cli.render import refuse_unfit, render
    from exhume.cli.run import opened, tell
    from exhume.cli.swimlanes import draw
    from exhume.report.pictures import owners_svg

    refuse_unfit(None, output=output.of_rows, output_file=output_file, evidence=paths)
    with opened(paths, temp_dir=temp_dir) as evidence:
        group = the_one(evidence, group)
        whole = evidence.owners(groups=[group])
        answer = within(whole, from_time, to_time)
        if whole.num_rows and not answer.num_rows:
            raise RequestError(
                f"group {group!r} has no partition at this time", remedy="Choose another range: exhume timeline shows the whole"
            )
        if output.is_picture:
            title = f"Owners of the partitions of {group} over time"
            write_picture(owners_svg(answer, title), title, output, output_file, paths)
        elif output is PictureOutput.table:
            answer = clipped(answer, from_time, to_time)
            draw(answer, group, by_member=by is Lanes.members, by_changes=scale is Scale.changes, output_file=output_file, evidence=paths)
        else:
            render(answer, output=output.of_rows, output_file=output_file, csv_raw=csv_raw, evidence=paths)
        tell(evidence.findings)
