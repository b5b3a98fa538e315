"""`exhume expiry`: the offsets and groups that the expiry task of a release removes, and when."""

from __future__ import annotations

from typing import Annotated

import typer

from exhume.cli.notes import note
from exhume.cli.options import CsvRaw, EvidencePaths, Groups, Now, Output, OutputFile, OutputOption, Release, Retention, TempDir

_SHOWN = ("kind", "group", "topic", "partition", "committed_offset", "rule", "base_timestamp_ms", "expires_at_ms", "is_past_due", "reason")
_SHOWN_TOMBSTONES = ("offsets_partition", "append", "type", "group", "topic", "partition", "reason")


def expiry_command(
    paths: EvidencePaths,
    now: Now = None,
    retention: Retention = None,
    release: Release = None,
    groups: Groups = None,
    as_records: Annotated[
        bool, typer.Option("--as-records", help="Show the tombstones that the expiry task would write now; json has their keys in base64.")
    ] = False,
    temp_dir: TempDir = None,
    output: OutputOption = Output.table,
    output_file: OutputFile = None,
    csv_raw: CsvRaw = False,
) -> None:
    """Show which offsets and groups expire, when, and by which rule.

    One row for each committed offset and each group: the time at which the expiry task removes it if nothing changes, the start of its age,
    and whether it is due; for offsets that stay, the reason. exhume writes nothing to the log.

    Example: exhume expiry data/ --retention 7d --release 2.8.2 --group billing
    """
    from exhume.analysis.forecast import forecast_sentence
    from exhume.cli.groups import matched
    from exhume.cli.render import refuse_unfit, render
    from exhume.cli.run import opened, tell

    refuse_unfit(None, output=output, output_file=output_file, evidence=paths)
    with opened(paths, temp_dir=temp_dir) as topic:
        expiry = topic.expiry(now_ms=now, retention_ms=retention, release=release, groups=matched(topic, groups))
        answer, columns = (expiry.tombstones, _SHOWN_TOMBSTONES) if as_records else (expiry.forecast, _SHOWN)
        render(answer, output=output, output_file=output_file, csv_raw=csv_raw, columns=columns, evidence=paths)
        if output is Output.table and not as_records:
            note(forecast_sentence(expiry.forecast))
        tell(topic.findings)
