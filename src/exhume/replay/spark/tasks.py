"""The work of executors: fold parts of logs, verify segments, and load folded logs. No PySpark here, only record batches.

A job has two stages. The first makes messages about logs (a log is an offsets partition of a log directory, with a number). Spark brings
the messages of each log together in order. The second stage loads each log from its messages and gives rows of `wide`.
"""

from __future__ import annotations

import pickle
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import pyarrow as pa

from exhume.arrow_rows import Int32, schema_of
from exhume.codecs.columns.record_blocks import look_for_damage
from exhume.codecs.log_directory import Evidence, LogDirectory, PartitionDirectory
from exhume.codecs.segment_reader import SegmentReader
from exhume.findings import Finding, Findings
from exhume.replay.broker_log import Stop, StrictLog, list_log
from exhume.replay.broker_start import missing_index_findings, open_strictly, start_problem
from exhume.replay.fold.plan import Part
from exhume.replay.load_problems import LoadProblem
from exhume.replay.local import load_partitions, state_of_loads
from exhume.replay.moment import Moment, cut_log
from exhume.replay.partition_load import LoadOptions, PartitionLoad, refused_load
from exhume.replay.reading import CompiledLoad
from exhume.replay.spark.request import Request
from exhume.replay.spark.wide import wide_batches, wide_rows
from exhume.replay.topic_names import TopicNames

if TYPE_CHECKING:
    from exhume.replay.fold.log import FoldSettings
    from exhume.replay.fold.part import PartFold


class MessageRow(TypedDict):
    """A chunk of a message: the log, the kind, the part, its place among the messages of the part, and the bytes."""

    unit: Int32
    phase: Int32
    part: Int32
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

    It folds a part, or verifies segments (by their place in the partition), or only passes on the way of the load and the
    problem of a broker that does not start.
    """

    log: int
    way: Way
    number: int = 0
    part: Part | None = None
    is_part: bool = False
    looks: tuple[int, ...] = ()
    problem: LoadProblem | None = None


@dataclass(frozen=True)
class Job:
    """The data of all tasks: the request, the logs and the work; all parts of a log are folded with the same `seed`."""

    request: Request
    logs: Mapping[int, Log]
    tasks: Sequence[Sequence[Work]]
    seed: int

    @cached_property
    def options(self) -> LoadOptions:
        """The options of each load, without the stop of its broker, which each log has itself. Executors look up the profile."""
        return replace(self.request.load, stop=None, groups=None).options()

    def settings(self, log: StrictLog) -> FoldSettings:
        """The settings of the fold of this log."""
        from exhume.replay.fold.log import FoldSettings

        start_offset = log.start_offset if self.options.mode == "strict" else 0
        return FoldSettings(self.options, start_offset, self.seed, self.request.moments)

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
        findings = Findings(_look(job, log, {log.partition.segments[place].path for place in work.looks}))
        yield from _chunks(work, _LOOKS, work.looks[0], pickle.dumps(list(findings)))
    elif work.way == "fold":
        yield from _fold(job, log, work)
    else:
        yield from _chunks(work, _FACTS, 0, pickle.dumps((work.way, work.problem)))


def _fold(job: Job, log: Log, work: Work) -> Iterator[MessageRow]:
    from exhume.replay.fold.log import fold_listed_part

    assert work.part is not None
    listed = list_log(log.partition, log.stop)
    if start_problem(log.partition, job.options.profile, log.stop) is not None:
        yield from _chunks(work, _FACTS, 0, pickle.dumps((work.way, None), protocol=5))
        return
    # A start after an unclean stop verifies checksums, and so does salvage, also without `verify`.
    read = job.request.read.of_fold(verify=log.stop != "clean" or job.options.mode == "lenient")
    folded = fold_listed_part(listed, work.part, job.settings(listed), CompiledLoad(read), is_part=work.is_part)
    facts = None if folded is None else replace(folded, folds=())
    yield from _chunks(work, _FACTS, 0, pickle.dumps((work.way, facts), protocol=5))
    for number, fold in enumerate(() if folded is None else folded.folds):
        yield from _chunks(work, _PIECES, number, pickle.dumps(fold, protocol=5))


def _chunks(work: Work, phase: int, message: int, content: bytes) -> Iterator[MessageRow]:
    for chunk, start in enumerate(range(0, len(content), CHUNK_BYTES)):
        yield {
            "unit": work.log,
            "phase": phase,
            "part": work.number,
            "message": message,
            "chunk": chunk,
            "content": content[start : start + CHUNK_BYTES],
        }


def _look(job: Job, log: Log, paths: Collection[str]) -> Findings:
    """The findings of verifying all checksums of these segments; in lenient mode also of reading all records."""
    findings = Findings()
    reader = SegmentReader(Evidence([log.directory], Findings()), job.request.read, findings, only_paths=paths)
    is_lenient = job.options.mode == "lenient"
    look_for_damage(reader, with_records=is_lenient)
    if not is_lenient:
        findings.extend(list(missing_index_findings([log.directory], findings, log.stop)))
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
    part: int
    content: bytes


def _joined(rows: Iterable[tuple[Any, ...]]) -> Iterator[_Message]:
    for (_, phase, part, _), chunks in groupby(rows, key=lambda row: row[:4]):
        yield _Message(phase, part, b"".join(chunk[-1] for chunk in chunks))


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
                self._add(pickle.loads(message.content))  # noqa: S301  # written by the first stage
        for moment, findings in enumerate(self._findings):
            yield from wide_batches(self._log.number, moment, "findings", findings.to_table())
        yield from self._verdict("loaded")

    def _loads(self, way: Way, said: list[Any], pieces: _Pieces) -> Iterator[pa.RecordBatch]:
        if way == "fold":
            yield from self._folded(said, pieces)
        else:
            for moment, at in enumerate(self._job.request.moments):
                yield from self._whole(moment, at, said[0] if way == "refused" else None)

    def _folded(self, facts: list[PartFold | None], pieces: _Pieces) -> Iterator[pa.RecordBatch]:
        from exhume.replay.fold.merge import NotMerged
        from exhume.replay.part_loads import load_parts

        parts = [each for each in facts if each is not None]
        if len(parts) < len(facts):
            raise _NotLoaded("not_folded")
        log = list_log(self._log.partition, self._log.stop)
        log.end_offset = parts[-1].end_offset or 0
        clocks = [part.clock for part in parts if part.clock is not None]
        try:
            for at in load_parts(log, _with_folds(parts, pieces), clocks, self._job.settings(log)):
                yield from self._tables(at.moment, at.load, at.names)
        except NotMerged:
            raise _NotLoaded("not_folded") from None
        unread = {log.segments[number].file.path for part in parts for number in part.unread_segments}
        if unread:
            self._add(_look(self._job, self._log, unread))

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

    def _add(self, found: Iterable[Finding]) -> None:
        for findings in self._findings:
            findings.extend(found)

    def _problem(self, moment: int, problem: LoadProblem) -> Iterator[pa.RecordBatch]:
        yield from wide_rows(self._log.number, moment, "problems", [{"problem": pickle.dumps(problem)}])

    def _verdict(self, outcome: str) -> Iterator[pa.RecordBatch]:
        damage = sum(finding.is_damage for findings in self._findings for finding in findings)
        yield from wide_rows(self._log.number, 0, "verdict", [{"outcome": outcome, "damage": damage}])


def _with_folds(parts: Sequence[PartFold], pieces: Iterable[_Message]) -> Iterator[PartFold]:
    """Yield the parts with their folds, which are read when they are needed."""
    for number, messages in groupby(pieces, key=attrgetter("part")):
        yield replace(parts[number], folds=(pickle.loads(message.content) for message in messages))  # noqa: S301


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
