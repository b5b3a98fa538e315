"""Reduce stretches of a log that cannot be folded: to bytes for another process, and back to a log.

If a record cannot be read, the load raises the error that the reader raised here.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from exhume.codecs.batches import Batch
from exhume.codecs.records import Record
from exhume.errors import EvidenceError
from exhume.findings import Finding
from exhume.replay.broker_log import LoadedBatch, StrictLog, find_end, hidden_findings
from exhume.replay.load_problems import LoadProblem
from exhume.replay.partition_load import LoadOptions, PartitionLoad, load_log
from exhume.replay.reduce import NotReducible, Reduced, load_order, reduce
from exhume.replay.reduce_facts import Passed, ReducedBatch
from exhume.replay.stretches.plan import Stretch
from exhume.replay.topic_names import TopicNames
from exhume.replay.verdict import LoadAborted


@dataclass(frozen=True, slots=True)
class _PackedBatch:
    path: str
    batch: Batch
    record_count: int
    passed: Passed
    records: list[Record]
    #: The error of the reader after these records, if it gave up.
    unreadable: str | None


@dataclass(frozen=True, slots=True)
class _PackedStretch:
    batches: list[_PackedBatch]
    ending: tuple[LoadProblem, str | None, int | None] | None
    is_end_of_loads: bool
    hidden: list[Finding]
    end_offset: int | None


def reduce_stretch(log: StrictLog, stretch: Stretch) -> bytes | None:
    """Reduce whole segments of a log that is listed only; None if the log must be loaded whole."""
    segments = log.segments[stretch.first : stretch.last]
    for segment in segments:
        segment.open()
    end_offset = None
    if stretch.last == len(log.segments):
        find_end(log)
        end_offset = log.end_offset
        if log.refused:
            return None
    part = replace(log, segments=segments, hidden=[])
    try:
        reduced = reduce(part.batches())
    except NotReducible:
        return None
    ending = reduced.ending
    packed = _PackedStretch(
        [_packed(batch) for batch in reduced.batches],
        None if ending is None else (ending.problem, ending.path, ending.byte_position),
        reduced.is_end_of_loads,
        list(hidden_findings(part)),
        end_offset,
    )
    return pickle.dumps(packed, protocol=5)


def _packed(batch: ReducedBatch) -> _PackedBatch:
    records: list[Record] = []
    unreadable = None
    try:
        records.extend(batch.read())
    except EvidenceError as error:
        unreadable = error.message
    return _PackedBatch(batch.path, batch.batch, batch.record_count, batch.passed, records, unreadable)


def _reader(packed: _PackedBatch) -> Callable[[], Iterable[Record]]:
    def read() -> Iterator[Record]:
        yield from packed.records
        if packed.unreadable is not None:
            raise EvidenceError(packed.unreadable)

    return read


def _unpacked(packed: _PackedStretch) -> Reduced:
    ending = None
    if packed.ending is not None:
        problem, path, byte_position = packed.ending
        ending = LoadAborted(problem, path=path, byte_position=byte_position)
    batches = tuple(
        ReducedBatch(each.path, each.batch, b"", _reader(each), record_count=each.record_count, passed=each.passed)
        for each in packed.batches
    )
    return Reduced(batches, ending, packed.is_end_of_loads)


@dataclass(slots=True)
class _ReducedLog(StrictLog):
    """A log with only the records that a load depends on."""

    stretches: Sequence[Reduced] = ()
    options: LoadOptions | None = field(default=None)

    def batches(self) -> Iterator[LoadedBatch]:
        assert self.options is not None
        return load_order(self.stretches, self.options.profile, self.end_offset)


def load_reduced(log: StrictLog, stretches: Sequence[bytes], options: LoadOptions, names: TopicNames) -> PartitionLoad:
    """Load a log from all its reduced stretches, in order; add its topic names to `names`.

    Raises:
        NotReducible: the log must be loaded whole.
    """
    packed: list[_PackedStretch] = [pickle.loads(content) for content in stretches]  # noqa: S301  # written by `reduce_stretch`
    assert packed[-1].end_offset is not None
    reduced_log = _ReducedLog(
        log.partition,
        log.stop,
        log.start_offset,
        packed[-1].end_offset,
        log.segments,
        stretches=[_unpacked(each) for each in packed],
        options=options,
    )
    # Raise `NotReducible` before the load begins.
    reduced_log.batches()
    load = load_log(reduced_log, options, names)
    if load.outcome == "stalled":
        raise NotReducible("the load stalls, and the state before a stall depends on every batch")
    if load.outcome != "aborted":
        load.findings += [finding for each in packed for finding in each.hidden]
    return load
