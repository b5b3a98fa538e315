"""The load of many logs as Spark jobs: the way of each log, and the result.

A log is folded in parts first. If a part cannot be folded by itself, one task loads the whole log, with the function
that loads it on one machine. Both ways give the rows of a load in one process.
"""

from __future__ import annotations

import pickle
import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from exhume.codecs.log_directory import LogDirectory
from exhume.replay.broker_log import Stop, served_files
from exhume.replay.broker_start import recovers_segments, stop_of
from exhume.replay.fold.plan import plan_parts
from exhume.replay.load_problems import LoadProblem
from exhume.replay.releases import profile_for
from exhume.replay.spark.request import MEGABYTE, Request
from exhume.replay.spark.session import collect, prepare_workers
from exhume.replay.spark.tasks import MESSAGES, ORDER, Job, Log, Way, Work, first_stage, second_stage
from exhume.replay.spark.wide import TABLE, UNIT, wide_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LEAST_PART_BYTES, _MOST_PART_BYTES = 32 * MEGABYTE, 256 * MEGABYTE
_PARTS_PER_CORE = 4


@dataclass(frozen=True, slots=True)
class LoadedLogs:
    """The result of loading some logs: `rows` (of `wide`) stay with the executors.

    `ways` has the way of each of `logs`; `damage` counts findings that make an answer partial.
    """

    rows: DataFrame
    ways: Mapping[int, Way]
    damage: int
    logs: Mapping[int, Log]
    _kept: Sequence[DataFrame]

    def problems(self) -> dict[int, LoadProblem]:
        """The problem of each load that has one, by the number of its log; of loads at one moment."""
        return _problems(self.rows)

    def unpersist(self) -> None:
        """Release the rows."""
        for frame in self._kept:
            frame.unpersist()


def load_logs(spark: SparkSession, directories: Sequence[LogDirectory], request: Request) -> LoadedLogs:
    """Load every offsets partition of these log directories."""
    prepare_workers(spark)
    return _Loading(spark, _logs(directories, request.load.stop), request).run()


def _logs(directories: Sequence[LogDirectory], stop: Stop | None) -> list[tuple[int, Log]]:
    """Every log, each with the number of its directory."""
    logs: list[tuple[int, Log]] = []
    for number, directory in enumerate(directories):
        its_stop = stop_of(directory, stop)
        for partition in directory.partitions:
            if partition.read_segments:
                alone = replace(directory, partitions=[partition], topic_ids={}, cluster_metadata=[])
                logs.append((number, Log(len(logs), alone, its_stop)))
    return logs


def _problems(rows: DataFrame) -> dict[int, LoadProblem]:
    found = rows.where(f"{TABLE} = 'problems'").select(UNIT, "problems.problem").collect()
    return {row[UNIT]: pickle.loads(row["problem"]) for row in found}  # noqa: S301  # written by the second stage


def parallelism(spark: SparkSession) -> int:
    """The number of parallel tasks, from the session."""
    try:
        return max(1, spark.sparkContext.defaultParallelism)
    except Exception:  # a session of Spark Connect has no context, and a class of its own for saying so
        return 16


class _Loading:
    def __init__(self, spark: SparkSession, logs: list[tuple[int, Log]], request: Request) -> None:
        self._spark = spark
        self._request = request
        self._profile = profile_for(request.load.release)
        self._logs = {log.number: log for _, log in logs}
        self._directory_of = {log.number: directory for directory, log in logs}
        self._cores = parallelism(spark)
        self._seed = secrets.randbits(62)
        #: The way in which each log is loaded next, or was loaded last.
        self._ways: dict[int, Way] = {log.number: self._first_way(log) for _, log in logs}
        self._frame_of: dict[int, int] = {}
        self._frames: list[DataFrame] = []
        self._problems: dict[int, LoadProblem] = {}
        self._damage: dict[int, int] = {}

    def run(self) -> LoadedLogs:
        refused: dict[int, LoadProblem] = {}
        waiting: Collection[int] = list(self._logs)
        while waiting:
            self._load(waiting)
            waiting, verdicts = [], self._verdicts(waiting)
            if "refused" in verdicts.values():
                problems = _problems(self._frames[-1])
                refused |= {number: problems[number] for number, outcome in verdicts.items() if outcome == "refused"}
            for number, outcome in verdicts.items():
                if outcome not in ("loaded", "refused"):
                    self._ways[number] = "whole"
                    waiting.append(number)
        if refused:
            numbers = self._refuse(refused)
            self._load(numbers)
            self._verdicts(numbers)
        return LoadedLogs(self._rows(), self._ways, sum(self._damage.values()), self._logs, self._frames)

    # Ways

    def _first_way(self, log: Log) -> Way:
        size = sum(segment.size_bytes for segment in log.partition.segments)
        has_content = any(file.size_bytes for file in served_files(log.partition))
        is_folded = not self._profile.depends_on_chunks and not recovers_segments(log.partition, log.stop)
        return "fold" if is_folded and has_content and size >= self._request.least_bytes else "whole"

    def _refuse(self, refused: Mapping[int, LoadProblem]) -> list[int]:
        """Refuse every log of the directories on which a broker does not start, with the problem of the first refused log."""
        problems: dict[int, LoadProblem] = {}
        for number in sorted(refused):
            problems.setdefault(self._directory_of[number], refused[number])
        numbers = [number for number in self._logs if self._directory_of[number] in problems]
        for number in numbers:
            self._ways[number] = "refused"
            self._problems[number] = problems[self._directory_of[number]]
        return numbers

    # Jobs

    def _load(self, numbers: Collection[int]) -> None:
        from pyspark.sql.pandas.types import from_arrow_schema

        tasks = self._tasks(numbers)
        job = Job(self._request, {number: self._logs[number] for number in numbers}, tasks, self._seed)
        places = max(1, min(2 * len(numbers), _PARTS_PER_CORE * self._cores))
        messages = self._spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(partial(first_stage, job), from_arrow_schema(MESSAGES))
        together = messages.repartition(places, "unit").sortWithinPartitions(*ORDER)
        rows = together.mapInArrow(partial(second_stage, job), from_arrow_schema(wide_schema())).persist()
        self._frames.append(rows)
        for number in numbers:
            self._frame_of[number] = len(self._frames) - 1

    def _verdicts(self, numbers: Iterable[int]) -> dict[int, str]:
        found = self._frames[-1].where(f"{TABLE} = 'verdict'").select(UNIT, "verdict.*")
        rows = collect(found)
        assert {row[UNIT] for row in rows} == set(numbers)
        self._damage.update({row[UNIT]: row["damage"] for row in rows})
        return {row[UNIT]: row["outcome"] for row in sorted(rows, key=lambda row: row[UNIT])}

    def _tasks(self, numbers: Collection[int]) -> list[list[Work]]:
        total = sum(segment.size_bytes for number in numbers for segment in self._logs[number].partition.segments)
        share = total // (_PARTS_PER_CORE * self._cores)
        most_bytes = self._request.stretch_bytes or min(max(share, _LEAST_PART_BYTES), _MOST_PART_BYTES)
        task_bytes = max(most_bytes, min(share, _MOST_PART_BYTES))
        tasks: list[list[Work]] = [[]]
        gathered = 0
        for number in numbers:
            for work, size in self._work(self._logs[number], self._ways[number], most_bytes):
                if tasks[-1] and gathered + size > task_bytes:
                    tasks.append([])
                    gathered = 0
                tasks[-1].append(work)
                gathered += size
        return tasks

    def _work(self, log: Log, way: Way, most_bytes: int) -> list[tuple[Work, int]]:
        """The work for a log in the first stage, each with the bytes that it reads."""
        served = served_files(log.partition)
        work: list[tuple[Work, int]] = []
        if way == "fold":
            sizes = [file.size_bytes for file in served]
            parts = plan_parts(sizes, max(1, round(sum(sizes) / most_bytes)))
            work += [
                (Work(log.number, way, number, part, is_part=len(parts) > 1), part.size_of(sizes)) for number, part in enumerate(parts)
            ]
        else:
            work.append((Work(log.number, way, problem=self._problems.get(log.number)), 0))
        # Segments that a fold has read whole have no findings.
        looked_at = {file.path for file in served} if way == "fold" else set()
        for place, segment in enumerate(log.partition.segments):
            if segment.is_read and segment.path not in looked_at:
                work.append((Work(log.number, way, looks=(place,)), segment.size_bytes))
        return work

    def _rows(self) -> DataFrame:
        """The final rows of each log: those of the last job that loaded it."""
        parts: list[DataFrame] = []
        for index, frame in enumerate(self._frames):
            outdated = [number for number, last in self._frame_of.items() if last != index]
            is_last = index == len(self._frames) - 1
            parts.append(frame if is_last or not outdated else frame.where(~frame[UNIT].isin(outdated)))
        together = parts[0]
        for part in parts[1:]:
            together = together.unionAll(part)
        return together
