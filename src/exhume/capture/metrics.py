"""Metrics of a flight recorder: a line for a log, and a text file for the collector of Prometheus."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from exhume.capture.fetching import now_ms
from exhume.capture.recorded_partition import write_atomically

if TYPE_CHECKING:
    from exhume.capture.capturing import Capture

_COUNTERS = (
    ("bytes", "Bytes of record batches written."),
    ("batches", "Record batches written."),
    ("records", "Records written, without those of compressed messages of formats 0 and 1."),
    ("fetches", "Fetch requests sent."),
    ("failures", "Requests that failed, and were sent again."),
    ("leader_changes", "Changes of a leader."),
    ("fsyncs", "Segments forced to the disk."),
    ("removed_segments", "Segments removed by --keep or --keep-bytes."),
)


def metrics_line(capture: Capture) -> str:
    """Return the counts on one line."""
    totals = capture.totals
    parts = [f"{name}={getattr(totals, name)}" for name, _ in _COUNTERS]
    return " ".join([*parts, f"lag={totals.lag}", f"disk_bytes={_disk_bytes(capture)}", f"gaps={_gaps(capture)}"])


def prometheus_text(capture: Capture) -> str:
    """Return the metrics in the text format of Prometheus."""
    totals = capture.totals
    lines: list[str] = []
    for name, what in _COUNTERS:
        metric = f"exhume_capture_{name}_total"
        lines += [f"# HELP {metric} {what}", f"# TYPE {metric} counter", f"{metric} {getattr(totals, name)}"]
    gauges = (
        ("lag_offsets", "Offsets between the captured end and the high watermarks.", totals.lag),
        ("disk_bytes", "Bytes of all segments.", _disk_bytes(capture)),
        ("gaps", "Ranges of offsets that the cluster no longer had when they were fetched.", _gaps(capture)),
        ("last_write_timestamp_seconds", "Time of the last write.", totals.last_write_ms / 1000),
        ("updated_timestamp_seconds", "Time of this file.", now_ms() / 1000),
    )
    for name, what, value in gauges:
        metric = f"exhume_capture_{name}"
        lines += [f"# HELP {metric} {what}", f"# TYPE {metric} gauge", f"{metric} {value}"]
    metric = "exhume_capture_next_offset"
    lines += [f"# HELP {metric} The offset after the last captured record.", f"# TYPE {metric} gauge"]
    lines += [f'{metric}{{offsets_partition="{number}"}} {part.recorded.next_offset}' for number, part in capture.parts.items()]
    return "\n".join(lines) + "\n"


def write_metrics(capture: Capture, path: Path) -> None:
    """Write the metrics as a file that a collector can read at any time.

    Raises:
        EvidenceError: the file cannot be written.
    """
    write_atomically(path, prometheus_text(capture))


def _disk_bytes(capture: Capture) -> int:
    return sum(part.recorded.size_bytes for part in capture.parts.values())


def _gaps(capture: Capture) -> int:
    return sum(len(part.recorded.gaps) for part in capture.parts.values())
