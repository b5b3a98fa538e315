"""The logs of an opened topic: every method reads them and adds findings to them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

import pyarrow as pa

from exhume.codecs import schemas
from exhume.codecs.log_directory import Evidence
from exhume.codecs.record_filter import RecordFilter
from exhume.codecs.segment_reader import ReadOptions, SegmentBatch, SegmentReader
from exhume.codecs.uris import PathOrUri
from exhume.errors import RequestError, did_you_mean
from exhume.findings import Findings
from exhume.moments import Clock, Time
from exhume.replay.broker_log import Stop
from exhume.replay.broker_start import missing_index_findings
from exhume.replay.local import load_partitions, load_state
from exhume.replay.moment import Moment, moment
from exhume.replay.partition_load import LoadOptions, Mode, PartitionLoad
from exhume.replay.profiles import BrokerProfile
from exhume.replay.reading import CompiledLoad
from exhume.replay.releases import newer_release_findings, profile_for
from exhume.replay.state import CoordinatorState
from exhume.replay.topic_names import TopicNames, names_beside

if TYPE_CHECKING:
    from exhume.analysis.log_extent import LogExtents
    from exhume.codecs.columns.noted_batches import Spans
    from exhume.codecs.log_pass import Collector

#: A record offset for each offsets partition, or one number for a log with one partition.
AtOffset = int | Mapping[int, int]


@dataclass(frozen=True, slots=True)
class TopicLogs:
    """Evidence, the options of reading, and the findings so far."""

    evidence: Evidence
    options: ReadOptions
    findings: Findings

    # Files

    def reader(self) -> SegmentReader:
        """One pass over all segments."""
        return SegmentReader(self.evidence, self.options, self.findings)

    def batches(self) -> pa.RecordBatchReader:
        """One row per batch, of `schemas.BATCHES`."""
        from exhume.codecs.columns.tables import batch_tables

        return pa.RecordBatchReader.from_batches(schemas.BATCHES, batch_tables(self.reader()))

    def records(self, wanted: RecordFilter | None = None, noted: Spans | None = None) -> pa.RecordBatchReader:
        """One row per record that meets the conditions, of `schemas.RECORDS`. `noted` are those of `record_batches`."""
        from exhume.codecs.columns.tables import record_batches

        return pa.RecordBatchReader.from_batches(schemas.RECORDS, record_batches(self.reader(), wanted or RecordFilter(), noted))

    def dump(self, wanted: RecordFilter, *, raw: bool) -> pa.RecordBatchReader:
        """These records decoded, of `decoded_tables.DUMP`."""
        from exhume.codecs.columns.tables import dump_batches
        from exhume.codecs.decoded_tables import DUMP

        return pa.RecordBatchReader.from_batches(DUMP, dump_batches(self.reader(), wanted, raw=raw))

    def group_names(self) -> set[str]:
        """The name of each group that has a record here."""
        from exhume.codecs.columns.group_names import group_names

        return group_names(self.reader())

    def annotate(self, wanted: RecordFilter) -> pa.RecordBatchReader:
        """The fields of these records with their bytes, of `annotation.ANNOTATION`."""
        from exhume.arrow_rows import batches_of
        from exhume.codecs.annotation import ANNOTATION, annotate
        from exhume.codecs.columns.tables import matching_records

        found = matching_records(self.reader(), wanted)
        rows = (row for batch, record in found for row in annotate(batch.origin, batch.buffer, batch.batch, record))
        return pa.RecordBatchReader.from_batches(ANNOTATION, batches_of(ANNOTATION, rows))

    def decoded(self, name: str, wanted: RecordFilter) -> pa.RecordBatchReader:
        """The table of one record type.

        Raises:
            RequestError: no record type has this name; lists those there are.
        """
        from exhume.codecs.columns.tables import decoded_batches

        schema = schemas.END_TXN_MARKERS if name == "end_txn_markers" else schemas.decoded().get(name)
        if schema is None:
            raise RequestError(f"no table {name!r}", remedy=did_you_mean(name, [*schemas.decoded(), "end_txn_markers"]))
        return pa.RecordBatchReader.from_batches(schema, decoded_batches(name, self.reader(), wanted))

    def decoded_columns(self, name: str, wanted: RecordFilter, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the typed table of one record type, with these columns at least."""
        from exhume.codecs.columns.tables import decoded_batches

        return decoded_batches(name, self.reader(), wanted, columns)

    def batches_about(self, group: str, fast: CompiledLoad, key: tuple[str | None, int | None] = (None, None)) -> Iterator[SegmentBatch]:
        """Every batch that may have records of this group, among them those whose group names are not exact.

        Commits of other keys than this one may be left out.
        """
        reader = self.reader()
        if not fast.verified_segments or not is_exact(group):
            return reader.batches()
        from exhume.codecs.columns.mentions import batches_about

        return batches_about(reader, group, fast.verified_segments, noted=fast.relevant_batches, key=key)

    def read(self, *collectors: Collector) -> None:
        """Read every segment once, for all of these collectors."""
        from exhume.codecs.log_pass import collect

        collect(self.reader(), collectors)

    def extents(self) -> LogExtents:
        """Return the extents of all logs; reads the headers of all batches."""
        from exhume.analysis.log_extent import log_extents

        return log_extents(self.reader())

    # Loads

    def profile(self, release: str | None) -> BrokerProfile:
        """The rules of this release (default: the newest); adds a finding if it is newer than all known ones.

        Raises:
            RequestError: no such release.
        """
        profile = profile_for(release)
        self.findings.extend(newer_release_findings([release]))
        return profile

    def moment(self, at_offset: AtOffset | None = None, at_time_ms: Time | None = None, clock: Clock | None = None) -> Moment | None:
        """Return this moment of these logs; None for their end.

        Raises:
            RequestError: the logs cannot have this moment.
        """
        return moment(self.evidence.offsets_partitions, at_offset=at_offset, at_time_ms=at_time_ms, clock=clock)

    def load(self, options: LoadOptions, names: TopicNames) -> CoordinatorState:
        """The state after loading every offsets partition; `names` learns topic names."""
        return load_state(self.evidence.log_directories, options, names)

    def load_partitions(self, options: LoadOptions, names: TopicNames) -> list[PartitionLoad]:
        """The load of each offsets partition; `names` learns topic names."""
        return load_partitions(self.evidence.log_directories, options, names)

    def fast_load(self) -> CompiledLoad:
        """The options of a load with kernels. Each load needs its own."""
        options = self.options
        return CompiledLoad(options, self.count_bytes(), options.least_compiled_bytes, options.most_threads)

    def look_for_damage(self, mode: Mode, fast: CompiledLoad | None = None, stop: Stop | None = None) -> None:
        """Verify every checksum, after a lenient load also every record, and add the findings. `stop` is that of the load.

        Segments that a load with kernels has read whole are left out: it has verified them without a finding.
        """
        from exhume.codecs.columns.record_blocks import look_for_damage

        besides = fast.verified_segments if fast else frozenset[str]()
        look_for_damage(self.reader(), besides, with_records=mode == "lenient")
        if mode == "strict":
            self.findings.extend(list(missing_index_findings(self.evidence.log_directories, self.findings, stop)))

    def count_bytes(self) -> Callable[[int], None]:
        """Return a function that adds up the bytes that threads or processes have read, and reports the sum as progress."""
        progress, total_bytes = self.options.progress, self.reader().total_bytes
        lock = Lock()
        done = 0

        def advance(size_bytes: int) -> None:
            nonlocal done
            with lock:
                done += size_bytes
                if progress is not None:
                    progress(done, total_bytes)

        return advance

    # Topic names

    def topic_names(self, topics_file: PathOrUri | None = None) -> TopicNames:
        """The names of topic ids in the files beside the logs and in this file of names."""
        return names_beside(self.evidence.log_directories, topics_file)


def is_exact(group: str) -> bool:
    """Return True if this name stands for one group only: bytes that are not UTF-8 are all read as U+FFFD."""
    return "\ufffd" not in group


def selectable_groups(groups: Collection[str] | None) -> Collection[str] | None:
    """Return these groups if a load may leave out commits of others; None if a name is not exact and the load needs all."""
    return None if groups is None or not all(is_exact(group) for group in groups) else groups
