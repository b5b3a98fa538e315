"""Find records that a reader of the offsets topic cannot decode."""

from __future__ import annotations

from collections.abc import Iterator

from exhume.analysis.detectors.cases import PartitionCase
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.registry import Detector
from exhume.analysis.detectors.report import EvidenceRow, counted, finding, next_step, only_record
from exhume.codecs.record_types import MARKS, RECORD_TYPES
from exhume.findings import Finding, Severity

_SEVERITIES: dict[str, Severity] = {
    "undecodable_key": "warn",
    "undecodable_value": "warn",
    "null_key": "warn",
    "unknown_value_version": "warn",
}


def find_undecodable(partition: PartitionCase, inputs: Inputs) -> Iterator[Finding]:
    """Records whose key or value cannot be decoded to its last byte, counted by record type, value version and reason.

    A record type that no release writes, and bytes after the last field, are only `info`: brokers skip such a type since 3.4.1 and 3.5.0,
    and ignore such bytes. Of the group records, the first of each type and version is decoded to its end, and later ones if that failed. A
    transaction marker is a control record, and is never decoded as data.
    """
    for each in partition.undecodable_records:
        known = RECORD_TYPES.get(each.record_type) if each.record_type is not None else None
        what = known.name if known is not None else f"record type {each.record_type}" if each.record_type is not None else "unknown type"
        version = "" if each.value_version is None else f", value version {each.value_version}"
        row: EvidenceRow = {
            "record_offset": each.first_record_offset,
            "timestamp_ms": each.first_timestamp_ms,
            "what": each.mark,
            "key": each.key_sample,
            "value": each.value_sample,
        }
        which = only_record(partition.log_context, each.first_record_offset)
        yield finding(
            "IC-09",
            f"{counted(each.count, 'record')} of {what}{version}: {MARKS[each.mark]}",
            partition.log_context,
            severity=_SEVERITIES.get(each.mark, "info"),
            confidence="proof",
            evidence=[row],
            not_excluded=("a compatible broker that writes other bytes", "a release newer than all releases that exhume knows"),
            remedy=next_step(
                "exhume load-check shows the releases that refuse such a record; see the first one byte by byte",
                inputs,
                "dump",
                "--annotate",
                *which,
            ),
        )


DETECTORS = (
    Detector(
        code="IC-09",
        title="Records that a reader cannot decode",
        section="Reading and writing back",
        in_partition=find_undecodable,
        traps=(
            "After upgrades one log contains versions 0 to 4 of commits and groups: all of them are known",
            "The key of a control record has four bytes, and looks like that of an offset commit",
            "Members of other protocol types than consumer have their own bytes, which are not damage",
        ),
    ),
)
