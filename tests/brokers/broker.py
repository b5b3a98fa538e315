"""Start brokers on the loopback, and let them load logs."""

from __future__ import annotations

import base64
import os
import re
import shutil
import socket
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self

from tests.patience import PATIENCE_SECONDS

from .kafka import Kafka, KafkaFailed, installed, tail

_LOG4J = """log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n
"""
_MAIN = "kafka.Kafka"
_TOPIC_ID = "partition.metadata"


class _JavaProcess:
    """A process that a test starts. Its prints are added to `output`. It is stopped by its process id, by force after some time."""

    def __init__(self, command: Sequence[str], output: Path, *, unfinished: Path | None = None) -> None:
        self.output = output
        #: A file that Java writes when it stops. It then loses its last suffix.
        self._unfinished = unfinished
        with output.open("ab") as file:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT)

    def wait_until(self, condition: Callable[[], bool], what: str, seconds: float = PATIENCE_SECONDS) -> None:
        """Return once `condition` holds. An OSError in it counts as "not yet": a port may be open before the broker serves it.

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

    def kill(self) -> None:
        """End it at once, as after a crash."""
        self._process.kill()
        self._process.wait()
        if self._unfinished is not None:
            self._unfinished.unlink(missing_ok=True)

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        else:
            if self._unfinished is not None and self._unfinished.exists():
                self._unfinished.rename(self._unfinished.with_suffix(""))

    def _said(self) -> str:
        return f"{self.output}:\n{tail(self.output.read_text(encoding='utf-8', errors='replace'))}"


class Broker:
    """A broker of this release, with ZooKeeper before 3.3, with KRaft from then on. Use it in a `with` statement.

    It is alone in its cluster, or it `joins` the cluster of another one, under another `node_id`. That one may be a `Controller`.

    It is not running until `start`, and can be stopped and started again on `log_directory`. It neither compacts nor
    expires anything. `output` is the text of its log since it was last started.

    `coordinator` is one of `kafka.COORDINATORS`: a release, or `3.9.1-new` for the other coordinator of that release. `settings` are added
    to its own; `kafka` runs it in another way than `installed`.
    """

    def __init__(
        self,
        coordinator: str,
        directory: Path,
        *,
        offsets_partitions: int,
        settings: Mapping[str, object] = MappingProxyType({}),
        kafka: Kafka | None = None,
        node_id: int = 1,
        joins: Broker | None = None,
    ) -> None:
        release, _, choice = coordinator.partition("-")
        self.kafka = installed(release) if kafka is None else kafka
        self.coordinator = coordinator
        self.offsets_partitions = offsets_partitions
        #: True for the coordinator of KIP-848, which has groups of other types than classic.
        self.is_java = choice == "new" or self.kafka.version >= (4,)
        self._is_early = choice == "new"
        self.log_directory = directory / "data"
        self.output = directory / "broker.txt"
        self.node_id = node_id
        self.port, own_port = _free_ports(2)
        self._joins = joins
        #: Of ZooKeeper, or of the controllers.
        self._other_port: int = own_port if joins is None else joins._other_port
        self._cluster_id: str = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode() if joins is None else joins._cluster_id
        self._directory = directory
        self._is_kraft = self.kafka.version >= (3, 3)
        own = self._common_settings() | self._cluster_settings() | self._coordinator_settings()
        self._settings = self._write("server.properties", {**own, **settings})
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
        self._start_cluster()
        self._start_process(self.port)

    def _start_cluster(self) -> None:
        """Start the ZooKeeper of the cluster, or make the directory of a member of a KRaft cluster."""
        if not self._is_kraft and self._zookeeper is None and self._joins is None:
            self._zookeeper = self._start_zookeeper()
        elif self._is_kraft and not (self.log_directory / "meta.properties").exists():
            format_command = ("format", f"--cluster-id={self._cluster_id}", "--config", self._settings)
            self.kafka.run("kafka.tools.StorageTool", *format_command, directory=self._directory)

    def _start_process(self, port: int) -> None:
        self.output.unlink(missing_ok=True)
        self._broker = self._start(_MAIN, self._settings, output=self.output)
        self.wait_until(lambda: _is_open(port), f"opening the port {port}")

    @property
    def is_running(self) -> bool:
        """True from `start` until `stop` or `kill`."""
        return self._broker is not None

    def stop(self) -> None:
        """Stop it as an operator does, leaving a log that needs no recovery."""
        if self._broker is not None:
            self._broker.stop()
            self._broker = None

    def kill(self) -> None:
        """End it at once, as a crash does."""
        assert self._broker is not None
        self._broker.kill()
        self._broker = None

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        """Return once `condition` holds; raises `KafkaFailed` where the broker ends before, or the time."""
        assert self._broker is not None
        self._broker.wait_until(condition, f"Kafka {self.coordinator}, {what}")

    def put(self, partition_directories: Sequence[Path]) -> None:
        """Make these directories the offsets partitions of the stopped broker, and leave nothing in the others.

        Each keeps the topic id that this cluster knows.
        """
        assert self._broker is None
        for place in self.log_directory.glob("__consumer_offsets-*"):
            for file in place.iterdir():
                if file.name != _TOPIC_ID:
                    file.unlink()
        for source in partition_directories:
            files = shutil.ignore_patterns(_TOPIC_ID)
            shutil.copytree(source, self.log_directory / source.name, ignore=files, dirs_exist_ok=True)
        # Checkpoints of the former partitions.
        for checkpoint in self.log_directory.glob("*-offset-checkpoint"):
            checkpoint.unlink()

    def forget_clean_stop(self) -> None:
        """Make the stopped broker recover its log when it starts, as after a kill."""
        (self.log_directory / ".kafka_cleanshutdown").unlink()

    def topic_id(self, topic: str) -> str:
        """The id of a topic that has a partition 0 here, in Kafka's spelling."""
        found = re.search(r"topic_id: (\S+)", (self.log_directory / f"{topic}-0" / _TOPIC_ID).read_text())
        assert found is not None
        return found[1]

    def _common_settings(self) -> dict[str, object]:
        far_away_ms, ten_years_minutes = 3_600_000, 5_256_000
        return {
            "log.dirs": self.log_directory,
            "num.partitions": 3,
            "offsets.topic.num.partitions": self.offsets_partitions,
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
            return {"broker.id": self.node_id, "listeners": f"PLAINTEXT://{broker}", "zookeeper.connect": other}
        is_controller = self._joins is None
        return {
            "node.id": self.node_id,
            "process.roles": "broker,controller" if is_controller else "broker",
            "listeners": f"PLAINTEXT://{broker},CONTROLLER://{other}" if is_controller else f"PLAINTEXT://{broker}",
            "advertised.listeners": f"PLAINTEXT://{broker}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"{(self._joins or self).node_id}@{other}",
            # A broker that was killed can return only after its session has expired.
            "broker.heartbeat.interval.ms": 500,
            "broker.session.timeout.ms": 3000,
        }

    def _coordinator_settings(self) -> dict[str, object]:
        if not self.is_java:
            return {}
        # The broker sets the session timeout of the members of these groups.
        types = ("consumer", "share", "streams") if self.kafka.version >= (4, 2) else ("consumer",)
        names = [f"group.{group_type}.{name}session.timeout.ms" for group_type in types for name in ("", "max.")]
        settings: dict[str, object] = dict.fromkeys(names, 600_000)
        if self.kafka.version >= (4, 1):
            # Describing the offsets of a share group creates the topic of their states.
            state = "share.coordinator.state.topic"
            settings |= {f"{state}.num.partitions": 2, f"{state}.replication.factor": 1, f"{state}.min.isr": 1}
        if self._is_early:
            settings |= {"group.coordinator.new.enable": "true", "group.coordinator.rebalance.protocols": "classic,consumer"}
        return settings

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
        archive = self.kafka.class_archive if main == _MAIN else None
        options, unfinished = [], None
        if archive is not None and archive.exists():
            options = [f"-XX:SharedArchiveFile={archive}"]
        elif archive is not None and os.access(archive.parent, os.W_OK):
            unfinished = archive.with_name(f"{archive.name}.{uuid.uuid4().hex}")
            options = [f"-XX:ArchiveClassesAtExit={unfinished}"]
        return _JavaProcess(self.kafka.command(main, settings, properties=properties, options=options), output, unfinished=unfinished)

    def _write(self, name: str, settings: Mapping[str, object]) -> Path:
        path = self._directory / name
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        return path


class Controller(Broker):
    """What brokers need to be a cluster: ZooKeeper, or a controller of KRaft that is no broker."""

    def __init__(self, release: str, directory: Path, *, settings: Mapping[str, object] = MappingProxyType({})) -> None:
        super().__init__(release, directory, offsets_partitions=1, settings=settings, node_id=100)

    def start(self) -> None:
        """Start it and return once its port is open."""
        self._start_cluster()
        if self._is_kraft:
            self._start_process(self._other_port)

    def _cluster_settings(self) -> dict[str, object]:
        settings = super()._cluster_settings()
        settings.pop("advertised.listeners", None)
        return settings | {"process.roles": "controller", "listeners": f"CONTROLLER://127.0.0.1:{self._other_port}"}


def _free_ports(count: int) -> list[int]:
    """Return different free ports of the loopback."""
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
