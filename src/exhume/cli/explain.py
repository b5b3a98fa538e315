"""`exhume explain`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from exhume.cli.options import (
    AtOffset,
    AtTime,
    CsvRaw,
    EvidencePaths,
    Group,
    Output,
    OutputFile,
    OutputOption,
    Release,
    Retention,
    TempDir,
    TopicNamesFile,
    WhichClock,
    chosen_moment,
)

if TYPE_CHECKING:
    import pyarrow as pa


def explain_command(
    paths: EvidencePaths,
    group: Group,
    at_time: AtTime = None,
    at_offset: AtOffset = None,
    clock: WhichClock = None,
    retention: Retention = None,
    release: Release = None,
    topics: TopicNamesFile = None,
    temp_dir: TempDir = None,
    output: OutputOption = Output.table,
    output_file: OutputFile = None,
    csv_raw: CsvRaw = False,
) -> None:
    """Explain a group in plain sentences: its type, state, members, rebalances and commits.

    Then unexpected offsets, missing records, and the next commands. Each sentence names the records that prove it: [12:1042-1077] are
    record offsets of offsets partition 12. A sentence without proof begins with its confidence: likely, possibly, undecidable.

    Example: exhume explain data/ --group billing --at-time 2026-11-20T03:00
    """
    from exhume.cli.groups import the_one
    from exhume.cli.render import refuse_unfit, render
    from exhume.cli.run import opened, tell

    refuse_unfit(None, output=output, output_file=output_file, evidence=paths)
    with opened(paths, temp_dir=temp_dir, groups=[group]) as topic:
        group = the_one(topic, group)
        answer = topic.explain(
            group,
            **chosen_moment(at_offset, at_time, clock),
            retention_ms=retention,
            release=release,
            topics_file=topics,
        )
        if output is Output.table:
            _write_page(answer, output_file, paths)
        else:
            render(answer, output=output, output_file=output_file, csv_raw=csv_raw, evidence=paths)
        tell(topic.findings)


def _write_page(answer: pa.Table, output_file: Path | None, evidence: list[str]) -> None:
    import sys

    from exhume.cli.destination import open_destination
    from exhume.cli.pages import page_text

    encoding = "utf-8" if output_file is not None else sys.stdout.encoding
    with open_destination(output_file, evidence=evidence) as sink:
        for text in page_text(answer, is_terminal=output_file is None and sys.stdout.isatty()):
            sink.write(text.encode(encoding, "backslashreplace"))
