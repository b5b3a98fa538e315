"""`exhume capture` beside the consumer of librdkafka, from one broker on the loopback: throughput and memory."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.generate import Content, generate
from benchmarks.measuring import say
from benchmarks.memory import PeakMemory
from benchmarks.report import machine, table, write_into
from tests.brokers.broker import Broker
from tests.brokers.client import Client
from tests.brokers.protocol import FIND_COORDINATOR

RELEASE = "4.4.0"
_ROOT = Path(__file__).resolve().parents[1]


def run(page: Path, *, quick: bool, repetitions: int) -> int:
    """Measure, and write the page; with `quick` smaller logs are measured and the table printed. The exit status."""
    rows = [_measured(megabytes, repetitions) for megabytes in ((50, 100) if quick else (100, 1000))]
    text = _report(rows, repetitions)
    if quick:
        sys.stdout.write(text)
    else:
        write_into(page, text)
        say(f"Written: {page}")
    return 0


def _measured(megabytes: int, repetitions: int) -> list[str]:
    """A row of the table: both take turns."""
    with TemporaryDirectory(prefix="exhume-bench-capture-") as scratch:
        root = Path(scratch)
        content = generate(root / "log", megabytes=megabytes, segment_bytes=100 << 20)
        ours, theirs, peaks = [], [], []
        with _serving(root, root / "log" / "__consumer_offsets-0") as broker:
            server = f"127.0.0.1:{broker.port}"
            for number in range(repetitions):
                say(f"{megabytes} MB, {number + 1} of {repetitions}")
                evidence = root / f"evidence-{number}"
                arguments = ("-m", "exhume", "capture", f"kafka://{server}", "--output-dir", str(evidence), "--no-listing")
                seconds, peak, _ = _timed(arguments)
                _require_all(evidence, content)
                ours.append(seconds)
                peaks.append(peak)
                seconds, _, printed = _timed(("-m", "benchmarks.rivals.librdkafka", server))
                if int(printed.split()[0]) != content.records:
                    raise ValueError(f"librdkafka read {printed} of {content.records} records")
                theirs.append(seconds)
    speeds = [content.size_bytes / 1e6 / median(times) for times in (ours, theirs)]
    return [
        f"{megabytes} MB",
        f"{content.records:,}",
        f"{speeds[0]:.0f} MB/s",
        f"{speeds[1]:.0f} MB/s",
        f"{speeds[0] / speeds[1]:.2f} ×",
        f"{max(peaks) / 1e6:.0f} MB",
    ]


@contextmanager
def _serving(root: Path, partition: Path) -> Iterator[Broker]:
    """A broker whose offsets topic is this partition."""
    directory = root / "broker"
    directory.mkdir()
    with Broker(RELEASE, directory, offsets_partitions=1) as broker:
        for _ in range(2):
            broker.start()
            broker.wait_until(lambda: _has_coordinator(broker), "loading the offsets topic")
            if partition.exists():
                broker.stop()
                broker.put([partition])
                partition.rename(partition.with_name("put"))
        yield broker


def _has_coordinator(broker: Broker) -> bool:
    with Client(broker.port) as client:
        return bool(client.call(FIND_COORDINATOR, key="any")["error_code"] == "none")


def _timed(arguments: Sequence[str]) -> tuple[float, int, str]:
    """Seconds of this whole process of Python, its peak RssAnon, and what it prints."""
    start = time.perf_counter()
    command = [sys.executable, *arguments]
    with subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        with PeakMemory(process.pid) as memory:
            printed, said = process.communicate()
        seconds = time.perf_counter() - start
    if process.returncode:
        raise ValueError(f"{' '.join(arguments)} ended with status {process.returncode}: {said}")
    return seconds, memory.anonymous_bytes or 0, printed


def _require_all(evidence: Path, content: Content) -> None:
    size = sum(path.stat().st_size for path in evidence.glob("*/*.log"))
    if size != content.size_bytes:
        raise ValueError(f"captured {size} of {content.size_bytes} bytes")


def _report(rows: Sequence[Sequence[str]], repetitions: int) -> str:
    heads = ("log", "records", "`exhume capture`", "librdkafka", "speed against librdkafka", "peak RssAnon of exhume")
    runs = f"medians of {repetitions}" if repetitions > 1 else "one run each"
    said = (
        f"Whole processes, {runs}, in turns, from one broker {RELEASE} on the loopback. librdkafka reads each record in Python "
        "and keeps nothing; `exhume capture` checks each batch and writes it to the disk.\n\n"
    )
    return "\n\n".join((table(heads, rows), said + "\n".join(f"- {line}" for line in machine()))) + "\n"
