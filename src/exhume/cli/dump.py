"""`exhume dump`."""

from __future__ import annotations

from typing import Annotated

import typer

from exhume.cli.options import (
    CsvRaw,
    EvidencePaths,
    FromOffset,
    FromTime,
    Groups,
    Include,
    NoVerify,
    OffsetsPartitions,
    Output,
    OutputFile,
    OutputOption,
    Partitions,
    RecordTypes,
    TempDir,
    ToOffset,
    Topics,
    ToTime,
)

#: The columns for a terminal; json, jsonl, csv and parquet have all.
_SHOWN = (
    "offsets_partition",
    "record_offset",
    "timestamp_ms",
    "type",
    "group",
    "member_id",
    "topic",
    "partition",
    "is_tombstone",
    "value_version",
    "marks",
    # The longest column is last, so that short columns stay visible.
    "value",
)


_ANNOTATION_SHOWN = ("offsets_partition", "record_offset", "part", "field", "wire_type", "byte_position", "bytes", "value")


def dump_command(
    paths: EvidencePaths,
    groups: Groups = None,
    topics: Topics = None,
    partitions: Partitions = None,
    types: RecordTypes = None,
    offsets_partitions: OffsetsPartitions = None,
    from_offset: FromOffset = None,
    to_offset: ToOffset = None,
    from_time: FromTime = None,
    to_time: ToTime = None,
    raw: Annotated[bool, typer.Option("--raw", help="Also show key and value as bytes (hexadecimal in tables).")] = False,
    annotate: Annotated[bool, typer.Option("--annotate", help="Show each field with its bytes, one row per field.")] = False,
    include: Include = None,
    no_verify: NoVerify = False,
    temp_dir: TempDir = None,
    output: OutputOption = Output.table,
    output_file: OutputFile = None,
    csv_raw: CsvRaw = False,
) -> None:
    """Show each record, decoded to the last field.

    Ranges include both ends. A filter on group, topic or partition leaves out records without this field.

    Example: exhume dump data/ --group billing --type offset_commit --from-time 2026-11-20
    """
    from dataclasses import replace

    from exhume.cli.groups import matched, refuse_unknown
    from exhume.cli.render import render
    from exhume.cli.run import opened, tell
    from exhume.codecs.record_filter import RecordFilter

    wanted = RecordFilter(
        topics=topics or None,
        partitions=partitions or None,
        types=types or None,
        from_offset=from_offset,
        to_offset=to_offset,
        from_time_ms=from_time,
        to_time_ms=to_time,
        offsets_partitions=offsets_partitions or None,
    )
    with opened(paths, include=include, temp_dir=temp_dir, verify=not no_verify) as topic:
        if groups:
            wanted = replace(wanted, groups=matched(topic, groups))
            refuse_unknown(topic, wanted.groups)
        reader = topic.annotate(wanted) if annotate else topic.dump(wanted, raw=raw)
        columns = _ANNOTATION_SHOWN if annotate else [*_SHOWN, *(("raw_key", "raw_value") if raw else ())]
        render(reader, output=output, output_file=output_file, csv_raw=csv_raw, columns=columns, evidence=paths)
        tell(topic.findings)
