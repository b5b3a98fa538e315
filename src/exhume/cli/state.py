"""`exhume state`."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from exhume.cli.detector_options import EndOffsets
from exhume.cli.lag import SHOWN as LAG_COLUMNS
from exhume.cli.notes import note
from exhume.cli.options import (
    AtOffset,
    AtTime,
    CsvRaw,
    EvidencePaths,
    Groups,
    LoadRelease,
    NoVerify,
    Output,
    OutputFile,
    OutputOption,
    TempDir,
    TopicNamesFile,
    WhichClock,
    chosen_moment,
)
from exhume.errors import RequestError, did_you_mean

if TYPE_CHECKING:
    from exhume.topic.states import GradedState


class Mode(StrEnum):
    """`strict` loads as the release does, with its aborts; `lenient` goes on after a refused record and adds a finding."""

    strict = "strict"
    lenient = "lenient"


class StopOption(StrEnum):
    """The last stop of the broker: after a clean stop it trusts its log; after an unclean stop it checks and truncates it.

    With `_copy`: of a broker that starts on these files. It also checks and cuts each segment without an `.index`.
    """

    clean = "clean"
    unclean = "unclean"
    clean_copy = "clean_copy"
    unclean_copy = "unclean_copy"


STOP_HELP = "The last stop of the broker; with _copy: a broker that starts on these files, without the .index files that they lack."


class View(StrEnum):
    """`committed`: the state that requests see. `in_memory`: the whole state in memory."""

    committed = "committed"
    in_memory = "in_memory"


_GROUP_TABLES = (
    "groups",
    "members",
    "assignments",
    "offsets",
    "pending_offsets",
    "open_transactions",
    "share_partitions",
    "regular_expressions",
    "streams_topologies",
)
_SUMMARY_COLUMNS = (
    "group",
    "group_type",
    "group_state",
    "epoch",
    "members",
    "assigned_partitions",
    "offsets",
    "pending_offsets",
    "last_commit_timestamp_ms",
    "replica",
    "offsets_partition",
)
_COLUMNS: dict[str, tuple[str, ...]] = {
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
    "open_transactions": (
        "replica",
        "offsets_partition",
        "producer_id",
        "producer_epoch",
        "first_record_offset",
        "last_record_offset",
        "first_timestamp_ms",
        "last_timestamp_ms",
        "groups",
        "pending_partitions",
    ),
    "lag": LAG_COLUMNS,
    "fetched_offsets": (
        "group",
        "topic",
        "partition",
        "committed_offset",
        "is_listed",
        "stable_error",
        "stable_offset",
        "is_stable_listed",
    ),
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


_LoadBufferBytes = Annotated[
    int | None,
    typer.Option(
        "--load-buffer-bytes",
        metavar="N",
        min=1,
        help="offsets.load.buffer.size of the broker: up to 2.0.0 a larger batch stalls the load.",
        show_default="5242880",
    ),
]
_HighWatermark = Annotated[
    int | None,
    typer.Option(
        "--high-watermark",
        metavar="N",
        min=0,
        help="The high watermark: releases up to 0.10.2 end their load there.",
        show_default="from the checkpoint, else the log end",
    ),
]
_GroupMaxSize = Annotated[
    int | None,
    typer.Option(
        "--group-max-size",
        metavar="N",
        min=1,
        help="group.max.size of the broker: from 2.2.0 on a larger classic group rebalances after the load.",
        show_default="2147483647",
    ),
]


def state_command(
    paths: EvidencePaths,
    release: LoadRelease = None,
    groups: Groups = None,
    table: Annotated[
        str | None, typer.Option("--table", metavar="NAME", help="Only this table, such as offsets, members or loads.", show_default=False)
    ] = None,
    mode: Annotated[Mode, typer.Option("--mode", help="Load as the release does, or go on after records that it refuses.")] = Mode.strict,
    stop: Annotated[
        StopOption | None,
        typer.Option("--stop", help=STOP_HELP, show_default="as the directory shows, else clean"),
    ] = None,
    view: Annotated[View, typer.Option("--view", help="The state that requests see, or the whole state in memory.")] = View.committed,
    at_offset: AtOffset = None,
    at_time: AtTime = None,
    clock: WhichClock = None,
    load_buffer_bytes: _LoadBufferBytes = None,
    high_watermark: _HighWatermark = None,
    group_max_size: _GroupMaxSize = None,
    topics: TopicNamesFile = None,
    end_offsets: EndOffsets = None,
    no_verify: NoVerify = False,
    temp_dir: TempDir = None,
    output: OutputOption = Output.table,
    output_file: OutputFile = None,
    csv_raw: CsvRaw = False,
) -> None:
    """Show the state of a coordinator after it has loaded these logs.

    Groups, members, assignments, committed and pending offsets, open transactions, and the outcome of each load. With --end-offsets also
    the lag, as exhume lag shows it. Without --table, json gives one document with all tables by name.

    Example: exhume state data/ --release 2.8.2 --group billing
    """
    from exhume.cli.document import head_of
    from exhume.cli.groups import matched
    from exhume.cli.render import refuse_unfit, render
    from exhume.cli.run import opened, tell
    from exhume.replay.reading import LoadInputs

    settings = {"load_buffer_bytes": load_buffer_bytes, "high_watermark": high_watermark, "group_max_size": group_max_size}
    moment = chosen_moment(at_offset, at_time, clock)
    refuse_unfit(_known_tables(table, with_lag=end_offsets is not None), output=output, output_file=output_file, evidence=paths)
    with opened(paths, temp_dir=temp_dir, verify=not no_verify) as topic:
        answer = topic.graded_state(
            release=release,
            mode=mode.value,
            stop=stop.value if stop else None,
            view=view.value,
            groups=matched(topic, groups),
            topics_file=topics,
            inputs=LoadInputs(**{name: value for name, value in settings.items() if value is not None}),
            **moment,
            grade_end=table == "completeness",
            end_offsets=end_offsets,
        )
        if table is None and output is Output.table:
            _render_summary(answer, bool(groups), output_file, paths)
        else:
            tables = answer if table is None else answer[table]
            head = partial(head_of, topic, paths, release=answer.state.release, moment=moment)
            render(tables, output=output, output_file=output_file, csv_raw=csv_raw, evidence=paths, head=head)
        tell(topic.findings)


def _known_tables(table: str | None, *, with_lag: bool) -> list[str] | None:
    """The names of all tables; None where one of them is wanted.

    Raises:
        RequestError: there is no such table, or the lag without end offsets.
    """
    from exhume.replay.state_tables import SCHEMAS

    names = [*SCHEMAS, "completeness", "findings"]
    if with_lag:
        names.append("lag")
    elif table == "lag":
        raise RequestError("the table lag needs end offsets", remedy="Give --end-offsets, or ask: exhume lag")
    if table is not None and table not in names:
        raise RequestError(f"no table {table!r}", remedy=did_you_mean(table, names))
    return names if table is None else None


def _render_summary(answer: GradedState, is_detailed: bool, output_file: Path | None, paths: list[str]) -> None:
    """The outcome of the loads, then one line per group; all tables of the named groups."""
    from exhume.analysis.summary import notable_loads, summarize_assignments, summarize_groups
    from exhume.cli.render import render

    state = answer.state
    loads = notable_loads(state)
    shown = {"loads": loads if loads.num_rows else state.loads}
    columns = dict(_COLUMNS)
    if is_detailed:
        shown |= {name: state.tables[name] for name in _GROUP_TABLES if state.tables[name].num_rows}
        if "assignments" in shown:
            shown["assignments"] = summarize_assignments(state)
    else:
        title = f"groups after loading with {state.release} ({state.mode})"
        columns[title] = _SUMMARY_COLUMNS
        shown[title] = summarize_groups(state)
        shown |= {name: state.tables[name] for name in ("open_transactions",) if state.tables[name].num_rows}
    if answer.lag is not None:
        shown["lag"] = answer.lag
    render(shown, output=Output.table, output_file=output_file, columns=columns, evidence=paths)
    if answer.completeness is not None:
        from exhume.analysis.completeness import completeness_sentence

        note(completeness_sentence(answer.completeness))
