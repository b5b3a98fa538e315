"""Kafka reading the same bytes: its dump tool, and brokers that load the partition. With the JVM flags of its own start scripts.

The harness is that of the tests that start real brokers; a release whose jars or Java are missing cannot be measured.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from benchmarks.generate import Content
from tests.brokers.broker import Broker
from tests.brokers.client import Client
from tests.brokers.kafka import Kafka, installed
from tests.brokers.protocol import FIND_COORDINATOR

DUMP_RELEASE = "4.3.0"
BROKER_RELEASES = ("2.8.2", "3.9.1", "4.3.0")

_SCRIPT_FLAGS = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
)
_BROKER_HEAP = ("-Xmx1G", "-Xms1G")
_TOOL_HEAP = ("-Xmx256M",)
BROKER_MAIN = "kafka.Kafka"

_LOADED = re.compile(r"Finished loading .*?__consumer_offsets-0\b.*? in (\d+) ?(?:ms|milliseconds)\b(?:.* Loaded (\d+) records)?")


class NotHere(Exception):
    """Something that cannot be measured on this machine; the text says why."""


class _AsShipped(Kafka):
    """A release with the flags of bin/kafka-run-class.sh and bin/kafka-server-start.sh, both compilers among them."""

    __slots__ = ()

    @property
    def class_archive(self) -> None:
        """Kafka ships none."""

    def command(
        self, main: str, *arguments: str | Path, properties: Mapping[str, str | Path] | None = None, options: Sequence[str] = ()
    ) -> list[str]:
        settings = [f"-D{name}={value}" for name, value in (properties or {}).items()]
        heap = _BROKER_HEAP if main == BROKER_MAIN else _TOOL_HEAP
        return [self.java, *heap, *_SCRIPT_FLAGS, *options, *settings, "-cp", f"{self.jars}/*", main, *map(str, arguments)]


def find(release: str) -> Kafka:
    """This release, as it is shipped.

    Raises:
        NotHere: its jars or a Java for them are missing.
    """
    try:
        found = installed(release)
    except pytest.skip.Exception as reason:
        raise NotHere(str(reason)) from reason
    return _AsShipped(found.release, found.jars, found.java)


@dataclass(frozen=True, slots=True)
class Dump:
    """`DumpLogSegments --offsets-decoder --print-data-log` over one segment; its text goes to a file, as that of `exhume dump` does."""

    kafka: Kafka
    segment: Path

    @property
    def _command(self) -> list[str]:
        main = "org.apache.kafka.tools.DumpLogSegments" if self.kafka.version >= (4, 3) else "kafka.tools.DumpLogSegments"
        return self.kafka.command(main, "--offsets-decoder", "--print-data-log", "--files", self.segment)

    def run(self) -> float:
        """Seconds from its start to its end."""
        with tempfile.TemporaryFile(dir=self.segment.parents[2]) as text:
            start = time.perf_counter()
            subprocess.run(self._command, check=True, stdin=subprocess.DEVNULL, stdout=text, stderr=subprocess.DEVNULL)
            return time.perf_counter() - start

    def check(self, content: Content) -> None:
        """Count the records that it prints.

        Raises:
            ValueError: they are not those of the segment.
        """
        with subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            assert process.stdout is not None
            printed = sum(line.startswith(b"| offset:") for line in process.stdout)
        if printed * content.segments != content.records:
            raise ValueError(f"DumpLogSegments printed {printed} records of {self.segment}")


class BrokerLoad:
    """A broker that has this partition for its only one of the offsets topic. Use it in a `with` statement.

    It is started anew for every load; what counts is the time that its own log line names.
    """

    def __init__(self, kafka: Kafka, partition: Path, content: Content) -> None:
        self._records = content.records
        self._scratch = tempfile.TemporaryDirectory(prefix=f"exhume-bench-{kafka.release}-")
        self._broker = Broker(kafka.release, Path(self._scratch.name), offsets_partitions=1, kafka=kafka)
        self._partition = partition

    def __enter__(self) -> Self:
        try:
            self._broker.start()
            self._broker.wait_until(self._has_offsets_topic, "creating the offsets topic")
            self._broker.wait_until(lambda: self._loads() != [], "loading the empty offsets topic")
            self._broker.stop()
            self._broker.put([self._partition])
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._broker.__exit__(kind, error, trace)
        self._scratch.cleanup()

    def run(self) -> float:
        """Seconds that the broker says it took.

        Raises:
            ValueError: it names another number of records than the partition has; Java coordinators name one.
        """
        # What it printed at its last start would be taken for this one.
        self._broker.output.unlink()
        self._broker.start()
        try:
            self._broker.wait_until(lambda: self._loads() != [], "loading the partition")
            milliseconds, records = self._loads()[0]
        finally:
            self._broker.stop()
        if records and int(records) != self._records:
            raise ValueError(f"the broker loaded {records} of {self._records} records")
        return int(milliseconds) / 1000

    def _has_offsets_topic(self) -> bool:
        with Client(self._broker.port) as client:
            return bool(client.call(FIND_COORDINATOR, key="any")["error_code"] == "none")

    def _loads(self) -> list[tuple[str, str]]:
        """Milliseconds and records (or nothing) of each load that its log tells of."""
        return _LOADED.findall(self._broker.output.read_text(encoding="utf-8", errors="replace"))
