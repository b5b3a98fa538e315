"""Spark on two local cores beside the local engine: what a GB costs, what a job costs before it reads any, and what memory it takes."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.generate import MEGABYTE, generate
from benchmarks.measuring import say
from benchmarks.memory import PeakMemory, family
from benchmarks.report import machine, table, write_into

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RELEASE = "4.3.0"
PARTITIONS = 4
_SEGMENT_BYTES = 25 * MEGABYTE
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Log:
    """A generated data directory, and what a load of it comes to."""

    directory: Path
    megabytes: int
    partitions: int
    size_bytes: int
    segments: int
    live_offsets: int
    committed_offset_sum: int


def run(scratch: Path, page: Path, *, quick: bool, repetitions: int) -> int:
    """Measure, and write the page; with `quick` smaller logs are measured and the tables printed. The exit status."""
    sizes = (100, 400) if quick else (1000, 10_000)
    with _session() as session:
        text = _report(session, [*_measured(session, scratch, sizes, repetitions)], _diagnosed(session, scratch, sizes[0]))
    if quick:
        sys.stdout.write(text)
    else:
        write_into(page, text)
        say(f"Written: {page}")
    return 0


@contextmanager
def _session() -> Iterator[SparkSession]:
    from exhume.replay.spark.session import open_session

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).resolve().parents[1] / "src"), os.environ.get("PYTHONPATH", "")])
    session = open_session("exhume benchmarks", "local[2]")
    try:
        yield session
    finally:
        session.stop()


@contextmanager
def _log(scratch: Path, megabytes: int, partitions: int) -> Iterator[Log]:
    """Written, its bytes in the page cache as far as they fit, and removed afterwards."""
    directory = scratch / f"spark-{megabytes}-{partitions}"
    shutil.rmtree(directory, ignore_errors=True)
    contents = []
    for partition in range(partitions):
        aside = directory / "aside"
        contents.append(generate(aside, megabytes=megabytes // partitions, seed=1 + partition, segment_bytes=_SEGMENT_BYTES))
        (aside / "__consumer_offsets-0").rename(directory / f"__consumer_offsets-{partition}")
        aside.rmdir()
    try:
        yield Log(
            directory,
            megabytes,
            partitions,
            sum(content.size_bytes for content in contents),
            sum(content.segments for content in contents),
            sum(content.live_offsets for content in contents),
            sum(content.committed_offset_sum for content in contents),
        )
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@dataclass(frozen=True)
class Measurement:
    """Median seconds of both engines over a log; cores that were busy, and peak bytes that processes of Spark allocated."""

    log: Log
    local_seconds: float
    spark_seconds: float
    busy_cores: float
    worker_bytes: int
    jvm_bytes: int


def _measured(session: SparkSession, scratch: Path, sizes: Sequence[int], repetitions: int) -> Iterator[Measurement]:
    with _log(scratch, 100, PARTITIONS) as warm_up:
        _locally(warm_up)
        _on_spark(session, warm_up)
    for megabytes, partitions in [*((size, PARTITIONS) for size in sizes), (sizes[0], 1)]:
        with _log(scratch, megabytes, partitions) as log:
            say(f"{megabytes} MB in {partitions} offsets partitions, {log.segments} segments")
            yield _measure(session, log, repetitions)


def _measure(session: SparkSession, log: Log, repetitions: int) -> Measurement:
    local = [_timed(lambda: _locally(log))[0] for _ in range(repetitions)]
    with PeakMemory(os.getpid(), having="pyspark.daemon") as workers, PeakMemory(os.getpid(), having="java") as jvm:
        spark = [_timed(lambda: _on_spark(session, log)) for _ in range(repetitions)]
    seconds = median(seconds for seconds, _ in spark)
    busy = max(cpu / wall for wall, cpu in spark)
    say(f"  local {median(local):.2f} s, Spark {seconds:.2f} s, {busy:.2f} cores busy")
    return Measurement(log, median(local), seconds, busy, workers.anonymous_bytes or 0, jvm.anonymous_bytes or 0)


@dataclass(frozen=True)
class Diagnosed:
    """Seconds on the clock and of processors that all detectors took over a log, on one machine and on Spark."""

    log: Log
    local: tuple[float, float]
    spark: tuple[float, float]


def _diagnosed(session: SparkSession, scratch: Path, megabytes: int) -> Diagnosed:
    """Measure each engine once: the executors run by now."""
    with _log(scratch, megabytes, PARTITIONS) as log:
        say(f"diagnose, {megabytes} MB in {PARTITIONS} offsets partitions")
        found: list[int] = []
        diagnosed = Diagnosed(
            log,
            _timed(lambda: found.append(_diagnose_locally(log))),
            _timed(lambda: found.append(_diagnose_on_spark(session, log))),
        )
        if len(set(found)) != 1:
            raise ValueError(f"{log.directory}: {found[0]} findings here, and {found[1]} on Spark")
    return diagnosed


def _diagnose_locally(log: Log) -> int:
    import exhume

    with exhume.open(log.directory) as topic:
        return len(topic.diagnose())


def _diagnose_on_spark(session: SparkSession, log: Log) -> int:
    import exhume.spark

    with exhume.spark.diagnose(session, log.directory) as diagnosis:
        return diagnosis.findings().count()


def _timed(subject: Callable[[], object]) -> tuple[float, float]:
    """Seconds on the clock, and those of processors."""
    cpu, wall = _cpu_seconds(), time.perf_counter()
    subject()
    return time.perf_counter() - wall, _cpu_seconds() - cpu


def _cpu_seconds() -> float:
    """What this process and all that it started have spent so far."""
    total = 0
    for process_id in family(os.getpid()):
        try:
            fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(int(field) for field in fields[11:15])
    return total / _TICKS


def _locally(log: Log) -> None:
    import pyarrow.compute as pc

    import exhume

    with exhume.open(log.directory) as topic:
        state = topic.state(release=RELEASE)
        _check(log, state.offsets.num_rows, pc.sum(state.offsets["committed_offset"]).as_py(), state.groups.num_rows)


def _on_spark(session: SparkSession, log: Log) -> None:
    from pyspark.sql import functions

    import exhume.spark

    with exhume.spark.reconstruct(session, log.directory, release=RELEASE, tables=["groups", "offsets", "loads"]) as state:
        row: Any = state["offsets"].agg(functions.count("*"), functions.sum("committed_offset")).collect()[0]
        _check(log, row[0], row[1], state["groups"].count())


def _check(log: Log, offsets: int, total: int, groups: int) -> None:
    if (offsets, total) != (log.live_offsets, log.committed_offset_sum) or not groups:
        raise ValueError(
            f"{log.directory}: {offsets} offsets with the sum {total}, {log.live_offsets} and {log.committed_offset_sum} are there"
        )


def _report(session: SparkSession, measured: Sequence[Measurement], diagnosed: Diagnosed) -> str:
    small, large, alone = measured
    rows = [
        (
            f"{each.log.megabytes} MB, {each.log.partitions} offsets partitions, {each.log.segments} segments",
            f"{each.local_seconds:.2f}",
            f"{each.spark_seconds:.2f}",
            f"{each.busy_cores:.2f}",
            f"{each.worker_bytes / 1e6:.0f}",
            f"{each.jvm_bytes / 1e6:.0f}",
        )
        for each in measured
    ]
    gigabytes = (large.log.size_bytes - small.log.size_bytes) / 1e9
    local = (large.local_seconds - small.local_seconds) / gigabytes
    spark = (large.spark_seconds - small.spark_seconds) / gigabytes
    fixed = small.spark_seconds - spark * small.log.size_bytes / 1e9
    cores, terabyte = 200, 1000
    paper = (
        f"A GB takes {spark:.2f} s on 2 cores, which is {2 * spark:.2f} s of one. 1 TB on {cores} cores, all busy: "
        f"{terabyte * 2 * spark / cores:.0f} s, and {max(fixed, 0.0):.1f} s that no size changes. Fetching comes on top where the log is "
        "not at hand; and where one offsets partition has most of it, one task merges its parts."
    )
    all_detectors = (
        f"All detectors over {diagnosed.log.megabytes} MB in {diagnosed.log.partitions} offsets partitions, once: "
        f"{diagnosed.local[0]:.1f} s by the local engine ({diagnosed.local[1]:.0f} s of processors), {diagnosed.spark[0]:.1f} s on Spark "
        f"({diagnosed.spark[1]:.0f} s of processors)."
    )
    parts = [
        "### Measured",
        table(("log", "local engine, s", "Spark, s", "cores busy", "Python workers, MB", "JVM, MB"), rows),
        table(
            ("what", "measured", "to reach", "reached"),
            [
                _target("marginal cost of a GB, Spark / local engine", spark / local if local > 0 else float("inf"), 2.0, ""),
                _target(f"all of {small.log.megabytes} MB, the session up", small.spark_seconds, 15.0, " s"),
                _target("Python workers of both cores, at most", max(each.worker_bytes for each in measured) / 1e9, 1.0, " GB"),
                (
                    "cores busy with one offsets partition",
                    f"{alone.busy_cores:.2f}",
                    "more than 1.5",
                    "yes" if alone.busy_cores > 1.5 else "**no**",
                ),
            ],
        ),
        all_detectors,
        "### On paper: 1 TB on 50 executors of 4 cores",
        paper,
        "### Ran on",
        "\n".join(f"- {line}" for line in [*machine(), f"PySpark {session.version}, local[2]"]),
    ]
    return "\n\n".join(parts) + "\n"


def _target(what: str, value: float, most: float, unit: str) -> tuple[str, ...]:
    return (what, f"{value:.2f}{unit}", f"at most {most:g}{unit}", "yes" if value <= most else "**no**")
