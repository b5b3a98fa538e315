"""`exhume rebalances`."""

from __future__ import annotations

from exhume.cli.notes import note
from exhume.cli.options import CsvRaw, EvidencePaths, Groups, Output, OutputFile, OutputOption, TempDir

_SHOWN = (
    "record_offset",
    "timestamp_ms",
    "group",
    "event",
    "causes",
    "generation",
    "group_epoch",
    "skipped",
    "members",
    "joined_clients",
    "left_clients",
    "partitions_moved",
    "no_assignment_ms",
    "reconciliation_ms",
    "is_storm",
)


def rebalances_command(
    paths: EvidencePaths,
    groups: Groups = None,
    temp_dir: TempDir = None,
    output: OutputOption = Output.table,
    output_file: OutputFile = None,
    csv_raw: CsvRaw = False,
) -> None:
    """Show the rebalances of groups: time, causes, members that joined or left, moved partitions.

    One row for each generation of a classic group, or epoch of a consumer, share or streams group, with a record in the log. Generations
    without an assignment show as gaps. A last line counts storms.

    Example: exhume rebalances data/ --group billing
    """
    from exhume.analysis.rebalances import rebalances_sentence
    from exhume.cli.groups import matched
    from exhume.cli.render import refuse_unfit, render
    from exhume.cli.run import opened, tell

    refuse_unfit(None, output=output, output_file=output_file, evidence=paths)
    with opened(paths, temp_dir=temp_dir) as topic:
        answer = topic.rebalances(matched(topic, groups))
        render(answer, output=output, output_file=output_file, csv_raw=csv_raw, columns=_SHOWN, evidence=paths)
        if output is Output.table:
            note(rebalances_sentence(answer))
        tell(topic.findings)
