"""Records that a reader of the offsets topic trips over."""

from __future__ import annotations

from collections.abc import Iterator

from exhume.analysis.detectors.cases import PartitionCase
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.registry import Detector
from exhume.analysis.detectors.report import counted, finding
from exhume.codecs.record_types import MARKS, RECORD_TYPES
from exhume.findings import Finding, Severity

_SEVERITIES: dict[str, Severity] = {
    "undecodable_key": "warn",
    "undecodable_value": "warn",
    "null_key": "warn",
    "unknown_value_version": "warn",
}


def find_undecodable(partition: PartitionCase, inputs: Inputs) -> Iterator[Finding]:  # noqa: ARG001
    """Records whose key or value cannot be decoded, or not to its last byte, counted by record type, value version and reason.

    A record type that no release writes and bytes behind the last field are worth knowing only: brokers skip the one since 3.4.1 and 3.5.0,
    and read past the other. Of group records the first of each type and version is read to its end, and later ones if it was not clean.
    Markers of transactions are control records, and never decoded as data.
    """
    for stranger in partition.undecodable_records:
        known = RECORD_TYPES.get(stranger.record_type) if stranger.record_type is not None else None
        what = known.name if known is not None else f"record type {stranger.record_type}" if stranger.record_type is not None else "no type"
        version = "" if stranger.value_version is None else f", value version {stranger.value_version}"
        rows = {
            "record_offset": stranger.first_record_offset,
            "timestamp_ms": stranger.first_timestamp_ms,
            "what": stranger.mark,
            "key": stranger.key_sample,
            "value": stranger.value_sample,
        }
        yield finding(
            "IC-09",
            f"{counted(stranger.count, 'record')} of {what}{version}: {MARKS[stranger.mark]}",
            partition.log_context,
            severity=_SEVERITIES.get(stranger.mark, "info"),
            confidence="proof",
            evidence=[rows],
            not_excluded=("a compatible broker that writes other bytes", "a release that is newer than any known here"),
            remedy="exhume dump --annotate shows such a record byte by byte; exhume load-check says which releases refuse it",
        )


DETECTORS = (
    Detector(
        code="IC-09",
        title="Records that a reader cannot decode",
        section="Reading and writing back",
        in_partition=find_undecodable,
        traps=(
            "Versions 0 to 4 of commits and of groups occur in one log after upgrades: all are known",
            "Control records have keys of four bytes that look like an offset commit's",
            "Members of protocol types other than consumer carry bytes of their own, which are no damage",
        ),
    ),
)
