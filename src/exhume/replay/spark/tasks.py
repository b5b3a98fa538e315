"""The work of executors: fold stretches, verify segments, and load folded logs. No PySpark here, only record batches.

A job has two stages. The first makes messages about logs (a log is an offsets partition of a log directory, with a number). Spark brings
the messages of each log together in order. The second stage loads each log from its messages and gives rows of `wide`.
"""

from __future__ import annotations

import pickle
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import Any, Literal, TypedDict

import pyarrow as pa

from exhume.arrow_rows import Int32, schema_of
from exhume.codecs.columns.record_blocks import look_for_damage
from exhume.codecs.log_directory import Evidence, LogDirectory, PartitionDirectory
from exhume.codecs.segment_reader import SegmentReader
from exhume.findings import Findings
from exhume.replay.broker_log import Stop, list_log, open_strictly
from exhume.replay.fold.plan import Stretch
from exhume.replay.load_problems import LoadProblem
from exhume.replay.local import load_partitions, state_of_loads
from exhume.replay.moment import Moment, cut_log
from exhume.replay.partition_load import LoadOptions, PartitionLoad, refused_load
from exhume.replay.reading import CompiledLoad
from exhume.replay.spark.request import Request
from exhume.replay.spark.wide import wide_batches, wide_rows
from exhume.replay.topic_names import TopicNames


class MessageRow(TypedDict):
    """A chunk of a message: the log, the kind, the stretch, its place among the messages of the stretch, and the bytes."""

    unit: Int32
    phase: Int32
    stretch: Int32
    message: Int32
    chunk: Int32
    content: bytes


MESSAGES = schema_of(MessageRow)
#: The order of messages about a log.
ORDER = MESSAGES.names[:-1]
#: Phases: facts first, then pieces in order, then findings about segments.
_FACTS, _PIECES, _LOOKS = range(3)

#: Spark limits the number of rows in a batch, not their bytes: so each row is small.
CHUNK_BYTES = 16 * 1024
BATCH_CHUNKS = 256

Way = Literal["fold", "whole", "refused"]


@dataclass(frozen=True, slots=True)
class Log:
    """An offsets partition of a log directory, with no other partition. `number` is its place among all."""

    number: int
    directory: LogDirectory
    stop: Stop

    @property
    def partition(self) -> PartitionDirectory:
        return self.directory.partitions[0]


@dataclass(frozen=True, slots=True)
class Work:
    """The work of one task for a log in the first stage.

    It folds a stretch, or verifies segments (by their place in the partition), or only passes on the way of the load and the
    problem of a broker that does not start.
    """

    log: int
    way: Way
    number: int = 0
    stretch: Stretch | None = None
    looks: tuple[int, ...] = ()
    problem: LoadProblem | None = None


@dataclass(frozen=True)
class Job:
    """The data of all tasks: the request, the logs and the work; all stretches of a log are folded with the same `seed`."""

    request: Request
    logs: Mapping[int, Log]
    tasks: Sequence[Sequence[Work]]
    seed: int

    @cached_property
    def options(self) -> LoadOptions:
        """The options of each load, without the stop of its broker, which each log has itself. Executors look up the profile."""
        return replace(self.request.load, stop=None, groups=None).options()

    def fast(self) -> CompiledLoad:
        """The options of a task that loads a whole log."""
        return CompiledLoad(self.request.read, least_bytes=self.request.least_bytes, threads=1)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "options"}


# The first stage


def first_stage(job: Job, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The messages of the tasks whose numbers are in these batches."""
    rows: list[MessageRow] = []
    for batch in batches:
        for number in batch.column(0).to_pylist():
            for work in job.tasks[number]:
                for row in _messages(job, work):
                    rows.append(row)
                    if len(rows) >= BATCH_CHUNKS:
                        yield pa.RecordBatch.from_pylist(rows, schema=MESSAGES)
                        rows = []
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema=MESSAGES)


def _messages(job: Job, work: Work) -> Iterator[MessageRow]:
    log = job.logs[work.log]
    if work.looks:
        findings = Findings(_look(job, log, work.looks))
        yield from _chunks(work, _LOOKS, work.looks[0], pickle.dumps(list(findings)))
    elif work.way == "fold":
        yield from _fold(job, log, work)
    else:
        yield from _chunks(work, _FACTS, 0, pickle.dumps((work.way, work.problem)))


def _fold(job: Job, log: Log, work: Work) -> Iterator[MessageRow]:
    from exhume.replay.fold.cuts import cutter_for
    from exhume.replay.fold.part_folds import FoldOptions, PackedFold, fold_stretch

    listed = list_log(log.partition, log.stop)
    assert work.stretch is not None
    options = FoldOptions(
        job.options.profile,
        job.options.inputs,
        listed.start_offset if job.options.mode == "strict" else 0,
        job.seed,
        # A start after an unclean stop verifies checksums, also without `verify`.
        job.request.read.of_fold(verify=log.stop == "unclean"),
    )
    cutter = cutter_for(job.request.moments, log.partition.offsets_partition)
    for number, said in enumerate(fold_stretch(listed, work.stretch, options, cutter)):
        if isinstance(said, PackedFold):
            content = pickle.dumps((said.number, said.is_branch, said.content), protocol=5)
            yield from _chunks(work, _PIECES, number, content)
        else:
            yield from _chunks(work, _FACTS, 0, pickle.dumps((work.way, said), protocol=5))


def _chunks(work: Work, phase: int, message: int, content: bytes) -> Iterator[MessageRow]:
    for chunk, start in enumerate(range(0, len(content), CHUNK_BYTES)):
        yield {
            "unit": work.log,
            "phase": phase,
            "stretch": work.number,
            "message": message,
            "chunk": chunk,
            "content": content[start : start + CHUNK_BYTES],
        }


def _look(job: Job, log: Log, places: Collection[int]) -> Findings:
    """The findings of verifying all checksums of these segments; in lenient mode also of reading all records."""
    findings = Findings()
    paths = {log.partition.segments[place].path for place in places}
    reader = SegmentReader(Evidence([log.directory], Findings()), job.request.read, findings, only_paths=paths)
    look_for_damage(reader, with_records=job.options.mode == "lenient")
    return findings


# The second stage


def second_stage(job: Job, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of the logs that these messages are about; they come log by log, in order."""
    rows = (row for batch in batches for row in zip(*(column.to_pylist() for column in batch.columns), strict=True))
    for number, about in groupby(rows, key=itemgetter(0)):
        yield from _LogLoad(job, job.logs[number]).rows(_joined(about))


@dataclass(frozen=True, slots=True)
class _Message:
    phase: int
    stretch: int
    content: bytes


def _joined(rows: Iterable[tuple[Any, ...]]) -> Iterator[_Message]:
    for (_, phase, stretch, _), chunks in groupby(rows, key=lambda row: row[:4]):
        yield _Message(phase, stretch, b"".join(chunk[-1] for chunk in chunks))


class _LogLoad:
    """The load of one log at every moment, as rows of the wanted tables; the result comes last."""

    def __init__(self, job: Job, log: Log) -> None:
        self._job = job
        self._log = log
        self._findings: list[Findings] = [Findings() for _ in job.request.moments]

    def rows(self, messages: Iterator[_Message]) -> Iterator[pa.RecordBatch]:
        facts: list[tuple[Way, Any]] = []
        waiting: _Message | None = None
        for message in messages:
            if message.phase != _FACTS:
                waiting = message
                break
            facts.append(pickle.loads(message.content))  # noqa: S301  # written by the first stage
        way = facts[0][0]
        pieces = _Pieces(waiting, messages)
        try:
            yield from self._loads(way, [said for _, said in facts], pieces)
        except _NotLoaded as other:
            if other.problem is not None:
                yield from self._problem(0, other.problem)
            yield from self._verdict(other.outcome)
            return
        for message in pieces.rest():
            if message.phase == _LOOKS:
                found = pickle.loads(message.content)  # noqa: S301  # written by the first stage
                for findings in self._findings:
                    findings.extend(found)
        for moment, findings in enumerate(self._findings):
            yield from wide_batches(self._log.number, moment, "findings", findings.to_table())
        yield from self._verdict("loaded")

    def _loads(self, way: Way, said: list[Any], pieces: _Pieces) -> Iterator[pa.RecordBatch]:
        if way == "fold":
            yield from self._folded(said, pieces)
        else:
            for moment, at in enumerate(self._job.request.moments):
                yield from self._whole(moment, at, said[0] if way == "refused" else None)

    def _folded(self, facts: list[Any], pieces: _Pieces) -> Iterator[pa.RecordBatch]:
        from exhume.replay.fold.part_folds import PackedFold
        from exhume.replay.fold.part_loads import JoinedLog, NotFolded

        coming = ((message.stretch, PackedFold(*pickle.loads(message.content))) for message in pieces)  # noqa: S301
        log = list_log(self._log.partition, self._log.stop)
        try:
            for at in JoinedLog(log, facts, coming, self._job.request.moments, self._job.options, self._job.seed).loads():
                yield from self._tables(at.moment, at.load, at.names)
        except NotFolded:
            raise _NotLoaded("not_folded") from None

    def _whole(self, moment: int, at: Moment | None, problem: LoadProblem | None) -> Iterator[pa.RecordBatch]:
        job, log = self._job, self._log
        names = TopicNames()
        options = replace(job.options, stop=log.stop, at=at, fast=job.fast())
        if problem is not None:
            cut = cut_log(open_strictly(log.partition, log.stop), at, lenient=False)
            load = refused_load(cut, options.profile, problem)
        else:
            (load,) = load_partitions([log.directory], options, names)
        if load.outcome == "refused" and problem is None:
            raise _NotLoaded("refused", load.problem)
        yield from self._tables(moment, load, names)

    def _tables(self, moment: int, load: PartitionLoad, names: TopicNames) -> Iterator[pa.RecordBatch]:
        state = state_of_loads([load], self._job.options, names)
        self._findings[moment].extend(state.findings)
        number = self._log.number
        if load.problem is not None:
            yield from self._problem(moment, load.problem)
        for name in self._job.request.tables:
            yield from wide_batches(number, moment, name, state.tables[name])
        if "assignments" in self._job.request.tables:
            learned = [{"source": source, "topic_id": topic_id, "topic": topic} for source, topic_id, topic in names.learned()]
            yield from wide_rows(number, moment, "names", learned)

    def _problem(self, moment: int, problem: LoadProblem) -> Iterator[pa.RecordBatch]:
        yield from wide_rows(self._log.number, moment, "problems", [{"problem": pickle.dumps(problem)}])

    def _verdict(self, outcome: str) -> Iterator[pa.RecordBatch]:
        damage = sum(finding.is_damage for findings in self._findings for finding in findings)
        yield from wide_rows(self._log.number, 0, "verdict", [{"outcome": outcome, "damage": damage}])


class _Pieces:
    """The messages of pieces, up to the first of another kind; `rest` has the others."""

    def __init__(self, first: _Message | None, messages: Iterator[_Message]) -> None:
        self._waiting = first
        self._messages = messages

    def __iter__(self) -> Iterator[_Message]:
        while self._waiting is not None and self._waiting.phase == _PIECES:
            message, self._waiting = self._waiting, next(self._messages, None)
            yield message

    def rest(self) -> Iterator[_Message]:
        while self._waiting is not None:
            message, self._waiting = self._waiting, next(self._messages, None)
            yield message


class _NotLoaded(Exception):
    def __init__(self, outcome: str, problem: LoadProblem | None = None) -> None:
        super().__init__(outcome)
        self.outcome = outcome
        self.problem = problem
