"""The logs of an opened topic: what every question reads, and where its findings go."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from threading import Lock

import pyarrow as pa

from exhume.analysis.group_timeline import group_record_names
from exhume.analysis.log_spans import LogSpans, log_spans
from exhume.codecs import schemas
from exhume.codecs.log_directory import Evidence
from exhume.codecs.record_filter import RecordFilter
from exhume.codecs.record_types import MODERN_FAMILIES
from exhume.codecs.records_table import batch_tables, record_batches
from exhume.codecs.segment_reader import ReadOptions, SegmentBatch, SegmentReader
from exhume.codecs.uris import PathOrUri
from exhume.findings import Findings
from exhume.replay.local import load_partitions, load_state
from exhume.replay.moment import Clock, Moment, moment
from exhume.replay.partition_load import LoadOptions, Mode, PartitionLoad
from exhume.replay.profiles import BrokerProfile
from exhume.replay.reading import CompiledLoad
from exhume.replay.releases import newer_release_findings, profile_for
from exhume.replay.state import CoordinatorState
from exhume.replay.topic_names import TopicNames, names_beside

#: A record offset for each offsets partition, or one alone where there is one partition.
AtOffset = int | Mapping[int, int]


@dataclass(frozen=True, slots=True)
class TopicLogs:
    """Evidence, how to read it, and the findings that grow while it is read."""

    evidence: Evidence
    options: ReadOptions
    findings: Findings

    # Files

    def reader(self) -> SegmentReader:
        """One pass over all segments."""
        return SegmentReader(self.evidence, self.options, self.findings)

    def batches(self) -> pa.RecordBatchReader:
        """One row per batch, of `schemas.BATCHES`."""
        return pa.RecordBatchReader.from_batches(schemas.BATCHES, batch_tables(self.reader()))

    def records(self, wanted: RecordFilter | None = None) -> pa.RecordBatchReader:
        """One row per record that meets the conditions, of `schemas.RECORDS`."""
        return pa.RecordBatchReader.from_batches(schemas.RECORDS, record_batches(self.reader(), wanted or RecordFilter()))

    def batches_about(self, group: str, fast: CompiledLoad, key: tuple[str | None, int | None] = (None, None)) -> Iterator[SegmentBatch]:
        """Every batch that may have records of this group, among them those whose group names are not exact.

        Commits of other keys than this one may be left out.
        """
        reader = self.reader()
        if not fast.verified_segments or not is_exact(group):
            return reader.batches()
        from exhume.codecs.columns.mentions import batches_about

        return batches_about(reader, group, fast.verified_segments, noted=fast.relevant_batches, key=key)

    def spans(self) -> LogSpans:
        """How far each log reaches; reads the headers of all batches."""
        return log_spans(self.batches())

    def times_of(self, record_offset: int, offsets_partition: int | None) -> dict[str, int | None]:
        """The timestamp of the record with this offset, by replica."""
        partitions = None if offsets_partition is None else [offsets_partition]
        found = self.records(RecordFilter(from_offset=record_offset, to_offset=record_offset, offsets_partitions=partitions))
        return {row["replica"]: row["timestamp_ms"] for row in found.read_all().select(["replica", "timestamp_ms"]).to_pylist()}

    # Loads

    def profile(self, release: str | None) -> BrokerProfile:
        """The rules of this release (default: the newest); a finding where it is newer than all that are known.

        Raises:
            RequestError: no such release.
        """
        profile = profile_for(release)
        self.findings.extend(newer_release_findings([release]))
        return profile

    def moment(self, at_offset: AtOffset | None = None, at_time_ms: int | None = None, clock: Clock | None = None) -> Moment | None:
        """This moment of these logs; None for their end.

        Raises:
            RequestError: these logs cannot have it.
        """
        return moment(self.evidence.offsets_partitions, at_offset=at_offset, at_time_ms=at_time_ms, clock=clock)

    def load(self, options: LoadOptions, names: TopicNames) -> CoordinatorState:
        """The state after loading every offsets partition; `names` learns topic names."""
        return load_state(self.evidence.log_directories, options, names)

    def load_partitions(self, options: LoadOptions, names: TopicNames) -> list[PartitionLoad]:
        """The load of each offsets partition; `names` learns topic names."""
        return load_partitions(self.evidence.log_directories, options, names)

    def fast_load(self) -> CompiledLoad:
        """How to load in columns. Each load needs its own."""
        options = self.options
        least_bytes = options.least_kernel_bytes(self.reader().total_bytes)
        return CompiledLoad(options, self._count_bytes(), least_bytes, options.most_threads)

    def look_for_damage(self, mode: Mode, fast: CompiledLoad | None = None) -> None:
        """Put what a look at every checksum finds into `findings`; after a lenient load at every record, too.

        Segments that a fast load has read whole are left out: it has verified them, and found nothing to say.
        """
        reader, besides = self.reader(), fast.verified_segments if fast else frozenset[str]()
        if reader.is_worth_compiling:
            from exhume.codecs.columns.looking import look

            look(reader, besides, at_records=mode == "lenient")
            return
        for found in reader.batches(besides=besides):
            if mode == "lenient":
                found.records()

    def _count_bytes(self) -> Callable[[int], None]:
        """A function that adds up the bytes that threads have done, and reports the sum as progress."""
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
        """The names of topic ids that the files beside the logs have, and this file of names."""
        return names_beside(self.evidence.log_directories, topics_file)

    def learned_names(self, topics_file: PathOrUri | None = None) -> TopicNames:
        """The same, and those that a load of these logs learns from commits."""
        names = self.topic_names(topics_file)
        # Classic groups have names and no ids: their logs need no load.
        with_ids = group_record_names(MODERN_FAMILIES)
        if any(batch.num_rows for batch in self.records(RecordFilter(types=with_ids))):
            self.load(LoadOptions(profile_for(None), "lenient", fast=self.fast_load()), names)
        return names


def is_exact(group: str) -> bool:
    """True where this name stands for one group only: bytes that are not UTF-8 are all read as U+FFFD."""
    return "\ufffd" not in group


def selectable_groups(groups: Collection[str] | None) -> Collection[str] | None:
    """These groups, for a load that may leave out commits of others; None where a name is not exact, and a load has to have all."""
    return None if groups is None or not all(is_exact(group) for group in groups) else groups
