"""Subjects one after the other, again and again: what they are measured in, and what comes of it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import statistics
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks import generate as generator
from benchmarks.memory import PeakMemory
from benchmarks.rivals.kafka_itself import BROKER_MAIN, BROKER_RELEASES, DUMP_RELEASE, BrokerLoad, Dump, NotHere, find
from benchmarks.stages import STAGES
from benchmarks.subjects import SUBJECTS, Log
from benchmarks.worker import SubjectFailed, Worker

#: What the subjects that are no process of Python are called.
DUMP = "DumpLogSegments"
BROKERS = {f"broker {release}": release for release in BROKER_RELEASES}
_STOP_AFTER_SECONDS = 60
#: What is over soon is measured several times whenever it is its turn.
_SHORT_SECONDS = 0.5
_TIMES_IF_SHORT = 5
#: Starting and stopping a broker takes longer than what is measured.
_BROKER_REPETITIONS = 3


@dataclass(frozen=True, slots=True)
class Case:
    """A log, and what is measured on it: subjects on one core and on two. Each of its `partitions` has this many megabytes."""

    variant: str
    megabytes: int
    codec: str = "none"
    one_core: Sequence[str] = ()
    two_cores: Sequence[str] = ()
    partitions: int = 1

    @property
    def name(self) -> str:
        codec = "" if self.codec == "none" else f" {self.codec}"
        count = "" if self.partitions == 1 else f"{self.partitions} × "
        return f"{self.variant}{codec} {count}{self.megabytes} MB"


#: Name of a case, subject, cores.
Key = tuple[str, str, int]


@dataclass(slots=True)
class Measured:
    """Seconds of every repetition, those of its stages in some more (one core), and the peaks of a run in a process of its own (None where
    there was none).
    """

    seconds: list[float] = field(default_factory=list)
    stages: list[Mapping[str, float]] = field(default_factory=list)
    anonymous_bytes: int | None = None
    resident_bytes: int | None = None

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


@dataclass(slots=True)
class Results:
    """Everything that one run found. `missing` says what could not be measured here, `failures` what broke or lied."""

    measured: dict[Key, Measured] = field(default_factory=dict)
    contents: dict[str, generator.Content] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


@contextmanager
def log_of(case: Case, scratch: Path, *, keep: bool = True) -> Iterator[Log]:
    """The log of this case, generated unless it is there from an earlier run by the same generator; its pages are in memory."""
    directory = scratch / case.name.replace(" ", "-")
    written = directory.with_suffix(".json")
    maker = hashlib.sha256(Path(generator.__file__).read_bytes()).hexdigest()
    if not written.exists() or json.loads(written.read_text())["generator"] != maker:
        for old in (directory, directory.with_name(f"{directory.name}-copy")):
            shutil.rmtree(old, ignore_errors=True)
        written.unlink(missing_ok=True)
        say(f"Generating {case.name}")
        # What is compared with an answer, and asked about, is in the first partition.
        content, *_ = [
            generator.generate(directory, variant=case.variant, megabytes=case.megabytes, codec=case.codec, place=(number, case.partitions))
            for number in range(case.partitions)
        ]
        written.write_text(json.dumps({"generator": maker, "content": asdict(content)}))
    log = Log(directory, generator.Content(**json.loads(written.read_text())["content"]))
    try:
        for segment in log.directory.glob("*/*.log"):
            with segment.open("rb") as file:
                while file.read(1 << 24):
                    pass
        yield log
    finally:
        if not keep:
            shutil.rmtree(directory, ignore_errors=True)
            shutil.rmtree(log.copy, ignore_errors=True)
            written.unlink(missing_ok=True)


def measure(case: Case, log: Log, results: Results, *, repetitions: int, warm_up: Log, only: str = "") -> None:
    """Run every subject of `case` in turn, `repetitions` times or until it took a minute, and once for its memory."""
    results.contents[case.name] = log.content
    with ExitStack() as stack:
        runs = dict(_runs(case, log, results, stack, only=only))
        for _ in range(repetitions):
            for key, run in list(runs.items()):
                measured = results.measured.setdefault(key, Measured())
                enough = key[1] in BROKERS and len(measured.seconds) >= _BROKER_REPETITIONS
                if enough or sum(measured.seconds) > _STOP_AFTER_SECONDS:
                    continue
                try:
                    measured.seconds.append(run())
                    if measured.seconds[-1] < _SHORT_SECONDS:
                        measured.seconds += [run() for _ in range(_TIMES_IF_SHORT - 1)]
                except (SubjectFailed, ValueError) as error:
                    _leave_out(results, key, error)
                    del runs[key]
                else:
                    say(f"  {_named(key):60} {measured.seconds[-1]:10.4f} s")
        _time_stages(log, runs, results)
        for key, run in runs.items():
            try:
                _take_memory(key, run, log, results.measured[key], warm_up)
            except SubjectFailed as error:
                _leave_out(results, key, error)


def _time_stages(log: Log, measured: Collection[Key], results: Results) -> None:
    """Of every subject that has stages, and was measured on one core."""
    with Worker(1) as worker:
        for key in measured:
            _, subject, cores = key
            if cores == 1 and subject in STAGES:
                worker.run(subject, log)
                repetitions = _TIMES_IF_SHORT if results.measured[key].median < _SHORT_SECONDS else 1
                results.measured[key].stages += [worker.stages(subject, log) for _ in range(repetitions)]


def _runs(case: Case, log: Log, results: Results, stack: ExitStack, *, only: str) -> Iterator[tuple[Key, Callable[[], float]]]:
    """What takes one measurement of each subject. The processes are ended with the stack."""
    for cores, names in ((1, case.one_core), (2, case.two_cores)):
        wanted = [name for name in names if name == "floor" or only in name]
        ours = [name for name in wanted if name in SUBJECTS]
        if ours:
            worker = stack.enter_context(Worker(cores))
            for name in ours:
                try:
                    # What does not count has imports and machine code behind it; a small log would be read without kernels.
                    worker.run(name, log)
                except SubjectFailed as error:
                    _leave_out(results, (case.name, name, cores), error)
                else:
                    yield (case.name, name, cores), _one_run(worker, name, log)
        for name in wanted:
            try:
                if name == DUMP:
                    dump = Dump(find(DUMP_RELEASE), min(log.partition.glob("*.log")))
                    dump.check(log.content)
                    yield (case.name, name, cores), dump.run
                elif name in BROKERS:
                    yield (case.name, name, cores), stack.enter_context(BrokerLoad(find(BROKERS[name]), log.partition, log.content)).run
            except NotHere as reason:
                _leave_out(results, (case.name, name, cores), reason)


def _one_run(worker: Worker, name: str, log: Log) -> Callable[[], float]:
    return lambda: worker.run(name, log)


def _take_memory(key: Key, run: Callable[[], float], log: Log, measured: Measured, warm_up: Log) -> None:
    _, name, cores = key
    with ExitStack() as stack:
        if name in SUBJECTS:
            worker = stack.enter_context(Worker(cores))
            if name != "decompression":
                # The small log is not compressed.
                worker.run(name, warm_up)
            peak = stack.enter_context(PeakMemory(worker.process_id, having=SUBJECTS[name].process))
            worker.run(name, log)
        else:
            peak = stack.enter_context(PeakMemory(os.getpid(), having=DUMP if name == DUMP else BROKER_MAIN))
            run()
    measured.anonymous_bytes, measured.resident_bytes = peak.anonymous_bytes, peak.resident_bytes


def _leave_out(results: Results, key: Key, reason: Exception) -> None:
    remark = f"{_named(key)}: {reason}"
    say(f"  {remark}")
    (results.missing if isinstance(reason, NotHere) else results.failures).append(remark)
    results.measured.pop(key, None)


def _named(key: Key) -> str:
    case, subject, cores = key
    return f"{case}, {subject}, {'one core' if cores == 1 else 'two cores'}"


def say(text: str) -> None:
    """Progress, for who waits."""
    print(text, file=sys.stderr, flush=True)
