"""`exhume state`."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from exhume.cli.options import CsvRaw, EvidencePaths, Groups, Include, Output, OutputFile, OutputOption, TempDir

if TYPE_CHECKING:
    from exhume.replay.state import CoordinatorState


class Mode(StrEnum):
    """`strict` does as the release does, aborted loads included; `lenient` never stops and notes what it went on over."""

    strict = "strict"
    lenient = "lenient"


class StopOption(StrEnum):
    """How the broker stopped: after a clean stop it trusts its log, after an unclean one it checks and cuts it."""

    clean = "clean"
    unclean = "unclean"


class View(StrEnum):
    """`shown`: what requests are answered from. `held`: all that is in memory."""

    shown = "shown"
    held = "held"


_GROUP_TABLES = ("groups", "members", "assignments", "offsets", "pending_offsets", "share_partitions", "regular_expressions")
_COLUMNS = {
    "groups": (
        "group",
        "group_type",
        "group_state",
        "protocol_type",
        "protocol",
        "generation",
        "group_epoch",
        "assignment_epoch",
        "leader",
    ),
    "members": ("group", "member_id", "group_instance_id", "client_id", "client_host", "member_state", "member_epoch", "subscribed_topics"),
    "offsets": ("group", "topic", "partition", "committed_offset", "metadata", "commit_timestamp_ms", "is_stable", "record_offset"),
    "pending_offsets": ("group", "topic", "partition", "committed_offset", "producer_id", "producer_epoch", "record_offset"),
    "loads": (
        "replica",
        "offsets_partition",
        "outcome",
        "reason",
        "records_read",
        "bytes_read",
        "first_record_offset",
        "last_record_offset",
    ),
}


def state_command(
    paths: EvidencePaths,
    release: Annotated[
        str | None,
        typer.Option("--release", metavar="R", help="The Kafka release whose coordinator loads the log.", show_default="the newest"),
    ] = None,
    groups: Groups = None,
    table: Annotated[
        str | None, typer.Option("--table", metavar="NAME", help="Only this table, such as offsets, members or loads.", show_default=False)
    ] = None,
    mode: Annotated[Mode, typer.Option("--mode", help="What to do where the release's own load would abort.")] = Mode.strict,
    stop: Annotated[
        StopOption | None,
        typer.Option("--stop", help="How the broker stopped.", show_default="as the directory says; clean where it does not"),
    ] = None,
    view: Annotated[View, typer.Option("--view", help="What requests are answered from, or all that is in memory.")] = View.shown,
    topics: Annotated[
        Path | None,
        typer.Option("--topics", metavar="FILE", help="Names of topic ids: CSV topic,topic_id,partitions[,racks].", show_default=False),
    ] = None,
    include: Include = None,
    temp_dir: TempDir = None,
    output: OutputOption = Output.table,
    output_file: OutputFile = None,
    csv_raw: CsvRaw = False,
) -> None:
    """Show what the coordinator of a release holds after loading these logs: groups, members, assignments, offsets.

    Without --table, json gives one document with all tables by name.

    Example: exhume state data/ --release 2.8.2 --group billing
    """
    from exhume.cli.render import render
    from exhume.cli.run import opened, tell
    from exhume.errors import RequestError
    from exhume.replay.state_tables import SCHEMAS

    if table is not None and table not in {*SCHEMAS, "findings"}:
        raise RequestError(f"no table {table!r}", remedy=f"Choose one of {', '.join([*SCHEMAS, 'findings'])}")
    with opened(paths, include=include, temp_dir=temp_dir) as topic:
        state = topic.state(
            release=release,
            mode=mode.value,
            stop=stop.value if stop else None,
            view=view.value,
            topics_file=topics,
        )
        if groups:
            _refuse_unknown_groups(state, groups)
            state = state.only(groups)
        if table is not None:
            answer = topic.findings.to_table() if table == "findings" else state.tables[table]
            render(answer, output=output, output_file=output_file, csv_raw=csv_raw, evidence=paths)
        elif output is Output.table:
            _render_summary(state, bool(groups), output_file, paths)
        else:
            everything = {**state.tables, "findings": topic.findings.to_table()}
            render(everything, output=output, output_file=output_file, csv_raw=csv_raw, evidence=paths)
        tell(topic.findings)


def _refuse_unknown_groups(state: CoordinatorState, groups: Iterable[str]) -> None:
    """An unknown group is a wrong request, unless a load that failed may have hidden it."""
    if set(state.loads["outcome"].to_pylist()) <= {"loaded", "loaded_with_error"}:
        for group in groups:
            state.group(group)


def _render_summary(state: CoordinatorState, is_detailed: bool, output_file: Path | None, paths: list[Path]) -> None:
    """One line per group; for groups that were named, what belongs to them."""
    from exhume.analysis.summary import summarize_assignments, summarize_groups
    from exhume.cli.render import render

    shown = {"loads": state.loads}
    if is_detailed:
        shown |= {name: state.tables[name] for name in _GROUP_TABLES if state.tables[name].num_rows}
        if "assignments" in shown:
            shown["assignments"] = summarize_assignments(state)
    else:
        shown |= {f"groups after loading with {state.release} ({state.mode})": summarize_groups(state)}
        shown |= {name: state.tables[name] for name in ("open_transactions",) if state.tables[name].num_rows}
    render(shown, output=Output.table, output_file=output_file, columns=_COLUMNS, evidence=paths)
