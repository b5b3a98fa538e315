"""`exhume report`."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from exhume.cli.detector_options import (
    EndOffsets,
    Live,
    OffsetsPartitionCount,
    Retention,
    StartOffsets,
    TopicsFile,
    WrittenBy,
    detector_inputs,
)
from exhume.cli.options import EvidencePaths, FromTime, Groups, OutputFile, TempDir, ToTime
from exhume.errors import RequestError


def report_command(
    paths: EvidencePaths,
    groups: Groups = None,
    from_time: FromTime = None,
    to_time: ToTime = None,
    end_offsets: EndOffsets = None,
    start_offsets: StartOffsets = None,
    topics_file: TopicsFile = None,
    live: Live = None,
    retention: Retention = None,
    release: WrittenBy = None,
    offsets_partitions: OffsetsPartitionCount = None,
    temp_dir: TempDir = None,
    output_file: OutputFile = None,
) -> None:
    """Write a report about groups: one HTML file for any browser, that needs nothing else.

    It has the headlines of diagnose, and for each group the owners and the committed offsets over time as a picture, the page of explain,
    rebalances, expected against actual assignment, lag where end offsets are given, and the reset plan as a file to download. Then what is
    uncertain, and the files with their SHA-256. The file makes no request and can be sent by mail. Without --group it draws at most twelve
    groups, those with problems first. The exit code is 1 if damage made the answer partial.

    Example: exhume report data/ --group billing --output-file report.html
    """
    from exhume.cli.destination import open_destination, refuse_inside
    from exhume.cli.groups import matched
    from exhume.cli.run import opened, tell
    from exhume.report import ReportRequest, gather, page

    if output_file is None and sys.stdout is not None and sys.stdout.isatty():
        raise RequestError("a terminal cannot show a report", remedy="Name a file with --output-file, such as report.html")
    if output_file is not None:
        refuse_inside(Path(output_file), paths)
    request = ReportRequest(
        from_time_ms=from_time,
        to_time_ms=to_time,
        inputs=detector_inputs(end_offsets, start_offsets, topics_file, live, retention, offsets_partitions, release),
        release=release,
        topics_file=topics_file,
    )
    with opened(paths, temp_dir=temp_dir, with_listing=True) as topic:
        chosen = matched(topic, groups)
        text = page(gather(topic, replace(request, groups=tuple(chosen or ()))), sys.argv[1:])
        with open_destination(output_file, evidence=paths) as sink:
            sink.write(text.encode())
        tell(topic.findings)
