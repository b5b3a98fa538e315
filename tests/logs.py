"""Logs of one offsets partition in memory, as a broker serves them: generated ones, and those that come with the tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from exhume.codecs.log_directory import LogDirectory, PartitionDirectory, discover
from exhume.codecs.records import read_records
from exhume.replay.broker_log import LoadedBatch, Stop
from exhume.replay.broker_start import open_strictly
from exhume.replay.verdict import LoadAborted
from tests.judges import corpus
from tests.written_batches import Written, encode_log


@dataclass
class Log:
    """The batches of one partition as a broker serves them, and both ends of the log."""

    batches: Sequence[LoadedBatch]
    end_offset: int
    ending: LoadAborted | None = None
    start_offset: int = 0

    def part(self, start: int, stop: int | None = None) -> Iterator[LoadedBatch]:
        """Some of the batches, fresh; the reader's own end comes behind the last."""
        for batch in self.batches[start:stop]:
            yield LoadedBatch(batch.path, batch.batch, batch.buffer, batch.read)
        if self.ending is not None and (stop is None or stop >= len(self.batches)):
            raise self.ending


def written(batches: Sequence[Written], *, magic: int = 2, gap_at_end: int = 0) -> Log:
    """A generated log. A gap at its end is an empty newest segment."""
    content, headers = encode_log(batches, magic)
    served = [LoadedBatch("generated.log", header, content, partial(read_records, content, header)) for header in headers]
    return Log(served, (headers[-1].last_offset + 1 if headers else 0) + gap_at_end)


@dataclass(frozen=True)
class FoundLog:
    """A partition of a log directory. `name` is story and offsets partition, such as `facts/txn-order/0`; `stop` is how it was left."""

    name: str
    directory: LogDirectory
    partition: PartitionDirectory
    stop: Stop
    log: Log


@cache
def logs_of_brokers(root: Path = corpus.BUNDLED) -> list[FoundLog]:
    """Every partition of the stories under this root that a broker starts with."""
    found = []
    for case in corpus.cases(root):
        stop: Stop = "clean" if case.is_clean_stop else "unclean"
        for data in case.data_directories.values():
            for directory in discover([str(data)]).log_directories:
                for partition in directory.partitions:
                    strict = open_strictly(partition, stop)
                    log = _collect(strict.batches(), strict.end_offset, strict.start_offset)
                    if log.batches and not strict.refused:
                        found.append(FoundLog(f"{case.name}/{partition.offsets_partition}", directory, partition, stop, log))
    return found


def _collect(batches: Iterator[LoadedBatch], end_offset: int, start_offset: int) -> Log:
    log: list[LoadedBatch] = []
    try:
        log.extend(batches)
    except LoadAborted as ending:
        return Log(log, end_offset, ending, start_offset)
    return Log(log, end_offset, None, start_offset)
