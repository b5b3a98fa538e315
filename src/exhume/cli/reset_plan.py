"""`exhume reset-plan`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from exhume.cli.options import (
    AtOffset,
    AtTime,
    CsvRaw,
    EvidencePaths,
    Groups,
    Now,
    Output,
    OutputFile,
    Release,
    TempDir,
    WhichClock,
    chosen_moment,
)
from exhume.errors import RequestError

if TYPE_CHECKING:
    from exhume.analysis.reset_plan import ResetPlan

_SHOWN = (
    "group",
    "topic",
    "partition",
    "action",
    "newest_committed_offset",
    "committed_offset",
    "committed_offset_delta",
    "record_offset",
    "ended_by_record_offset",
    "reason",
)
#: The number of sentences to print on standard error; the rows have all.
_MAX_PRINTED_SENTENCES = 30


_AllGroups = Annotated[bool, typer.Option("--all-groups", help="Plan for every group of the log.")]
_BeforeRewind = Annotated[
    bool, typer.Option("--before-rewind", help="Restore the value before the last commit that set it back; for removed offsets see --lost.")
]
_Lost = Annotated[bool, typer.Option("--lost", help="Restore the last value of removed offsets, also if they were committed again.")]
_IncludePending = Annotated[
    bool, typer.Option("--include-pending", help="Also restore offsets for which an open transaction has a commit.")
]
_AsRecords = Annotated[
    bool, typer.Option("--as-records", help="Show the plan as encoded offset commits; json has keys and values in base64.")
]
_PlanOutput = Annotated[
    Output | None,
    typer.Option("--output", help="Show all compared offsets as rows instead of the plan.", show_default="the plan"),
]


def reset_plan_command(
    paths: EvidencePaths,
    groups: Groups = None,
    all_groups: _AllGroups = False,
    at_time: AtTime = None,
    at_offset: AtOffset = None,
    clock: WhichClock = None,
    before_rewind: _BeforeRewind = False,
    lost: _Lost = False,
    include_pending: _IncludePending = False,
    as_records: _AsRecords = False,
    now: Now = None,
    release: Release = None,
    temp_dir: TempDir = None,
    output: _PlanOutput = None,
    output_file: OutputFile = None,
    csv_raw: CsvRaw = False,
) -> None:
    """Write a plan that restores earlier offsets of groups, for Kafka's own reset tool.

    Standard output, or the file, is CSV without a header: topic,partition,offset for one group, group,topic,partition,offset for several.
    Standard error has the changes, and the offsets that cannot be restored with the reason. The plan leaves out unchanged offsets.

    Example: exhume reset-plan data/ --group billing --at-time 2026-11-20T03:00 --output-file plan.csv
    """
    from exhume.cli.destination import open_destination
    from exhume.cli.groups import matched
    from exhume.cli.render import refuse_unfit, render
    from exhume.cli.run import opened, tell

    if bool(groups) == all_groups:
        raise RequestError("a plan needs a group", remedy="Name each group with --group, or all of them with --all-groups")
    if [at_time is not None, bool(at_offset), before_rewind, lost].count(True) != 1:
        raise RequestError("a plan needs exactly one target", remedy="Choose one of --at-time, --at-offset, --before-rewind and --lost")
    if now is not None and not as_records:
        raise RequestError("--now is the commit timestamp for --as-records", remedy="Add --as-records, or leave out --now")
    refuse_unfit(None, output=output or Output.table, output_file=output_file, evidence=paths)
    with opened(paths, temp_dir=temp_dir) as topic:
        plan = topic.reset_plan(
            (matched(topic, groups) if groups else None) or topic.group_names(),
            **chosen_moment(at_offset, at_time, clock),
            taken_back="before_rewind" if before_rewind else "lost" if lost else None,
            include_pending=include_pending,
            now_ms=now,
            release=release,
        )
        if as_records:
            render(plan.records, output=output or Output.table, output_file=output_file, csv_raw=csv_raw, evidence=paths)
        elif output is not None:
            render(plan.table, output=output, output_file=output_file, csv_raw=csv_raw, columns=_SHOWN, evidence=paths)
        else:
            with open_destination(output_file, evidence=paths) as sink:
                sink.write(plan.text.encode())
        _print_sentences(plan)
        tell(topic.findings)


def _print_sentences(plan: ResetPlan) -> None:
    """Print the first sentences of the plan on standard error."""
    from exhume.escape import printable

    sentences = list(plan.sentences())
    for sentence in sentences[:_MAX_PRINTED_SENTENCES]:
        typer.echo(printable(sentence), err=True)
    if len(sentences) > _MAX_PRINTED_SENTENCES:
        typer.echo(f"{len(sentences) - _MAX_PRINTED_SENTENCES} more offsets; --output table lists all", err=True)
