"""A standalone Spark cluster on this machine's loopback: a master and workers, each a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROOT = Path(__file__).resolve().parents[3]
_MASTER = re.compile(r"Starting Spark master at (spark://\S+)")
_WORKER = re.compile(r"Successfully registered with master")
_EXECUTOR = b"CoarseGrainedExecutorBackend"


@dataclass(frozen=True)
class Cluster:
    """`url` is the master's; `workers` are the process ids of the workers."""

    url: str
    workers: tuple[int, ...]

    def executors(self) -> list[int]:
        """The process ids of all executors."""
        found = []
        for worker in self.workers:
            children = {int(child) for file in Path(f"/proc/{worker}/task").glob("*/children") for child in file.read_text().split()}
            found += [child for child in sorted(children) if _EXECUTOR in Path(f"/proc/{child}/cmdline").read_bytes()]
        return found


@contextmanager
def running(directory: Path, workers: int = 2) -> Iterator[Cluster]:
    """A cluster whose workers have a core each; it is stopped at the end."""
    with ExitStack() as stack:
        master = stack.enter_context(_process(["org.apache.spark.deploy.master.Master", "--port", "0"], directory / "master"))
        url = master.wait_for(_MASTER)[1]
        options = ["--cores", "1", "--memory", "640m"]
        started = [
            stack.enter_context(
                _process(
                    ["org.apache.spark.deploy.worker.Worker", url, *options, "--work-dir", str(directory / f"work-{number}")],
                    directory / f"worker-{number}",
                )
            )
            for number in range(workers)
        ]
        for worker in started:
            worker.wait_for(_WORKER)
        yield Cluster(url, tuple(worker.process.pid for worker in started))


class _Process:
    """A daemon of Spark, and what it logs."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self.process = process
        self._log = log
        self._lines: list[str] = []
        self._news = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        with self._log.open("w") as log:
            for line in self.process.stderr:
                log.write(line)
                with self._news:
                    self._lines.append(line)
                    self._news.notify_all()

    def wait_for(self, pattern: re.Pattern[str]) -> re.Match[str]:
        """The first line that matches; fails where none comes."""

        def found() -> re.Match[str] | None:
            return next((match for line in self._lines if (match := pattern.search(line))), None)

        with self._news:
            assert self._news.wait_for(found, PATIENCE_SECONDS), "".join(self._lines)
            match = found()
        assert match is not None
        return match


@contextmanager
def _process(command: list[str], log: Path) -> Iterator[_Process]:
    import pyspark

    spark_class = Path(pyspark.__file__).parent / "bin" / "spark-class"
    # What runs on the machines of the cluster is what applications bring along.
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment = {**inherited, "SPARK_DAEMON_MEMORY": "256m", "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    process = subprocess.Popen(
        [spark_class, *command, "--host", "127.0.0.1", "--webui-port", "0"],
        env=environment,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield _Process(process, log)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        if process.stderr is not None:
            process.stderr.close()


def open_session(cluster: Cluster, directory: Path) -> SparkSession:
    """A session on this cluster: an executor on each worker, with little memory."""
    from pyspark.sql import SparkSession

    return (
        SparkSession.builder.master(cluster.url)
        .appName("exhume tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.executor.memory", "512m")
        .config("spark.executor.cores", "1")
        .config("spark.executorEnv.PYTHONPATH", f"{_ROOT / 'src'}:{_ROOT}")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(directory))
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
