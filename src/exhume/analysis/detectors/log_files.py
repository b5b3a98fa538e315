"""The files of the logs, for detectors that read them again: cleaner progress, trial loads, damage, differences between replicas.

Nothing is read before a detector needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import pyarrow as pa

from exhume.analysis.growth import CompactionRow, growth_of
from exhume.analysis.load_check import FailedLoad, given_up
from exhume.arrow_rows import Origin
from exhume.codecs.columns.tables import record_batches
from exhume.codecs.log_directory import Evidence, PartitionDirectory
from exhume.codecs.record_chunks import record_sizes
from exhume.codecs.record_filter import RecordFilter
from exhume.codecs.segment_reader import SegmentReader
from exhume.findings import Findings
from exhume.replay.reading import CompiledLoad

#: Loads of fewer bytes take less time than other detectors lose by a second thread.
_LEAST_BEGUN_BYTES = 16 << 20


@dataclass(slots=True)
class LogFiles:
    """The files of the logs. `damage` is the damage that reading has found so far."""

    evidence: Evidence
    read: Callable[[], SegmentReader]
    fast: Callable[[], CompiledLoad]
    damage: Findings
    _directories: list[PartitionDirectory] = field(default_factory=list, init=False)
    #: Trial loads that another thread makes, by their releases.
    _begun: dict[tuple[str, ...], Future[list[FailedLoad]]] = field(default_factory=dict, init=False)

    @property
    def directories(self) -> list[PartitionDirectory]:
        """The partition directories with segments to read."""
        if not self._directories:
            self._directories = [each for each in self.evidence.partitions if each.read_segments]
        return self._directories

    def directory(self, origin: Origin) -> PartitionDirectory | None:
        """Return the directory of this offsets partition."""
        return next((each for each in self.directories if (each.replica, each.offsets_partition) == origin), None)

    @property
    def size_bytes(self) -> int:
        """The bytes of all segments to read."""
        return sum(directory.size_bytes for directory in self.directories)

    def compaction(self, origins: Collection[Origin], open_transactions: Mapping[Origin, int], now_ms: int) -> dict[Origin, CompactionRow]:
        """Return the rows of `growth.COMPACTION` of these logs. Reads each of them whole."""
        sizes = record_sizes(self._reader_of(origins))
        growth = growth_of(sizes, self.directories, open_transactions, by=None, now_ms=now_ms)
        return {(row["replica"], row["offsets_partition"]): row for row in growth.partitions.to_pylist()}

    def begin_given_up(self, releases: Sequence[str]) -> None:
        """Begin the loads of `given_up` on another thread, if there are several threads: kernels leave Python to the other detectors."""
        fast = self.fast()
        if fast.threads > 1 and self.size_bytes >= _LEAST_BEGUN_BYTES:
            pool = ThreadPoolExecutor(1, thread_name_prefix="exhume-load")
            # One load for each thread would slow down the detectors.
            self._begun[tuple(releases)] = pool.submit(given_up, self.evidence.log_directories, releases, fast=replace(fast, threads=1))
            pool.shutdown(wait=False)

    def given_up(self, releases: Sequence[str]) -> list[FailedLoad]:
        """Return the loads that these releases abort, as `load_check.given_up`. Loads all logs once for each release."""
        begun = self._begun.pop(tuple(releases), None)
        return given_up(self.evidence.log_directories, releases, fast=self.fast()) if begun is None else begun.result()

    def records(self, origin: Origin) -> Iterator[pa.RecordBatch]:
        """Return the records of one replica of an offsets partition, in log order, as `schemas.RECORDS`."""
        reader = self._reader_of([origin])
        return record_batches(SegmentReader(reader.evidence, replace(reader.options, progress=None), reader.findings), RecordFilter())

    def _reader_of(self, origins: Collection[Origin]) -> SegmentReader:
        """Return a reader of these logs only."""
        ours = [
            replace(directory, partitions=[each for each in directory.partitions if (each.replica, each.offsets_partition) in origins])
            for directory in self.evidence.log_directories
        ]
        reader = self.read()
        return SegmentReader(replace(self.evidence, log_directories=ours), reader.options, reader.findings)
