"""`exhume why`."""

from __future__ import annotations

from exhume.cli.options import (
    CsvRaw,
    EvidencePaths,
    Group,
    Now,
    Output,
    OutputFile,
    OutputOption,
    Partition,
    Release,
    Retention,
    TempDir,
    Topic,
)

_SHOWN = ("group", "topic", "partition", "code", "confidence", "sentence", "records", "not_excluded")


def why_command(
    paths: EvidencePaths,
    group: Group,
    topic: Topic = None,
    partition: Partition = None,
    now: Now = None,
    retention: Retention = None,
    release: Release = None,
    temp_dir: TempDir = None,
    output: OutputOption = Output.table,
    output_file: OutputFile = None,
    csv_raw: CsvRaw = False,
) -> None:
    """Show why a group or an offset is in the state or is gone.

    One answer for the group and one for each of its offsets: there, expired, deleted, aborted, pending, lost by a load, or never there;
    with the records that prove it, its confidence, and other possible causes. Give the release and the retention of the broker that wrote
    the log: they decide which offsets it expired.

    Example: exhume why data/ --group billing --topic orders --partition 3 --release 2.8.2
    """
    from exhume.cli.groups import refuse_unknown, the_one
    from exhume.cli.render import refuse_unfit, render
    from exhume.cli.run import opened, tell

    refuse_unfit(None, output=output, output_file=output_file, evidence=paths)
    with opened(paths, temp_dir=temp_dir, groups=[group]) as evidence:
        group = the_one(evidence, group)
        answer = evidence.why(group, topic=topic, partition=partition, now_ms=now, retention_ms=retention, release=release)
        if set(answer["code"].to_pylist()) <= {"never_there"}:
            refuse_unknown(evidence, [group])
        render(answer, output=output, output_file=output_file, csv_raw=csv_raw, columns=_SHOWN, evidence=paths)
        tell(evidence.findings)
