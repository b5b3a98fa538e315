"""`exhume assignments`."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from exhume.cli.notes import note
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
    chosen_moment,
)


class AssignmentsTable(StrEnum):
    """The table to show: a verdict for each group, or all partitions."""

    verdicts = "verdicts"
    partitions = "partitions"


_SHOWN: dict[str, tuple[str, ...]] = {
    AssignmentsTable.verdicts: (
        "offsets_partition",
        "record_offset",
        "group",
        "group_type",
        "assignor",
        "generation",
        "members",
        "partitions",
        "verdict",
        "sentence",
    ),
    AssignmentsTable.partitions: ("group", "topic", "partition", "actual", "expected", "previous", "current", "differences"),
}


_Expected = Annotated[
    str,
    typer.Option(
        "--expected",
        metavar="NAME",
        help="The expected assignor: range, roundrobin, sticky, cooperative-sticky, uniform, simple; auto tries all.",
    ),
]
_TopicsFile = Annotated[
    Path | None,
    typer.Option(
        "--topics",
        metavar="FILE",
        help="Partition counts, racks and names of topics: CSV topic,topic_id,partitions[,racks].",
        show_default=False,
    ),
]
_LeaderRelease = Annotated[
    str | None,
    typer.Option(
        "--release",
        metavar="R",
        help="The release of the client that leads a classic group, or of the coordinator of another.",
        show_default="all",
    ),
]
_Every = Annotated[bool, typer.Option("--every", help="Judge all assignments in the log, not only the last one.")]
_Table = Annotated[
    AssignmentsTable | None,
    typer.Option("--table", help="Verdicts, or partitions.", show_default="verdicts; with --group partitions too"),
]


def assignments_command(
    paths: EvidencePaths,
    groups: Groups = None,
    at_offset: AtOffset = None,
    at_time: AtTime = None,
    expected: _Expected = "auto",
    topics: _TopicsFile = None,
    release: _LeaderRelease = None,
    every: _Every = False,
    table: _Table = None,
    temp_dir: TempDir = None,
    output: PictureOutputOption = PictureOutput.table,
    output_file: OutputFile = None,
    csv_raw: CsvRaw = False,
) -> None:
    """Compare the actual assignment of each group with the expected one.

    One verdict for each group: as expected, explained by an assignor of certain releases (a hint at the client that led the group), or not
    explained. For each partition the actual, the expected and the previous owner, and the difference: lost, doubled, moved, unsubscribed,
    beyond the partition count.

    Example: exhume assignments data/ --group billing --topics topics.csv
    """
    from exhume.analysis.assignment.verdicts import assignments_sentence
    from exhume.cli.document import head_of
    from exhume.cli.groups import matched
    from exhume.cli.picture import write_picture
    from exhume.cli.render import refuse_unfit, render
    from exhume.cli.run import opened, tell
    from exhume.report.pictures import assignment_svg

    wanted = [table] if table is not None else list(AssignmentsTable) if groups else [AssignmentsTable.verdicts]
    refuse_unfit(
        [each.value for each in wanted] if len(wanted) > 1 else None, output=output.of_rows, output_file=output_file, evidence=paths
    )
    moment = chosen_moment(at_offset, at_time, None)
    with opened(paths, temp_dir=temp_dir) as topic:
        found = topic.assignments(
            groups=matched(topic, groups),
            at_offset=moment["at_offset"],
            at_time_ms=at_time,
            expected=expected,
            release=release,
            topics_file=topics,
            every=every,
        )
        tables = {AssignmentsTable.verdicts: found.verdicts, AssignmentsTable.partitions: found.partitions}
        if output.is_picture:
            title = "Expected against actual assignment"
            write_picture(assignment_svg(found.partitions, title), title, output, output_file, paths)
        elif len(wanted) > 1:
            head = partial(head_of, topic, paths, release=release, moment=moment)
            render(tables, output=output.of_rows, output_file=output_file, csv_raw=csv_raw, columns=_SHOWN, evidence=paths, head=head)
        else:
            columns = _SHOWN[wanted[0]]
            render(tables[wanted[0]], output=output.of_rows, output_file=output_file, csv_raw=csv_raw, columns=columns, evidence=paths)
        if output is PictureOutput.table:
            note(assignments_sentence(found.verdicts))
        tell(topic.findings)
