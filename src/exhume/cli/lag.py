"""`exhume lag`."""

from __future__ import annotations

from exhume.cli.detector_options import EndOffsets
from exhume.cli.notes import note
from exhume.cli.options import (
    PEOPLE,
    AtOffset,
    AtTime,
    CsvRaw,
    EvidencePaths,
    Groups,
    LoadRelease,
    Output,
    OutputFile,
    OutputOption,
    TempDir,
    TopicNamesFile,
    WhichClock,
    chosen_moment,
)

#: In the order of `kafka-consumer-groups.sh --describe`.
SHOWN = ("group", "topic", "partition", "committed_offset", "end_offset", "lag", "member_id", "client_host", "client_id", "holding")


def lag_command(
    paths: EvidencePaths,
    end_offsets: EndOffsets = None,
    groups: Groups = None,
    at_offset: AtOffset = None,
    at_time: AtTime = None,
    clock: WhichClock = None,
    release: LoadRelease = None,
    topics: TopicNamesFile = None,
    temp_dir: TempDir = None,
    output: OutputOption = Output.table,
    output_file: OutputFile = None,
    csv_raw: CsvRaw = False,
) -> None:
    """Show committed offset, end offset, lag and consumer, as kafka-consumer-groups.sh --describe does, at any moment.

    One row for each committed offset and each owned partition. The offsets topic has no end offsets: give those of
    kafka-get-offsets.sh, or ask a directory of exhume capture, which has them. Where one is not known, it is null, and so is the lag.

    Example: exhume lag data/ --end-offsets ends.txt --group billing --sort -lag
    """
    from exhume.analysis.lag import lag_sentence
    from exhume.cli.groups import matched
    from exhume.cli.render import refuse_unfit, render
    from exhume.cli.run import opened, tell

    refuse_unfit(None, output=output, output_file=output_file, evidence=paths)
    moment = chosen_moment(at_offset, at_time, clock)
    with opened(paths, temp_dir=temp_dir, with_listing=True) as topic:
        answer = topic.lag(end_offsets, release=release, groups=matched(topic, groups), topics_file=topics, **moment)
        render(answer, output=output, output_file=output_file, csv_raw=csv_raw, columns=SHOWN, evidence=paths)
        if output in PEOPLE:
            note(lag_sentence(answer, is_past=bool(at_offset) or at_time is not None))
        tell(topic.findings)
