"""Tables of what the files hold: segments, batches, records, each record type by itself."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from os import PathLike
from types import TracebackType
from typing import Self

import pyarrow as pa

from exhume.analysis.inspection import Inspection, inspect
from exhume.arrow_rows import batches_of
from exhume.codecs import schemas
from exhume.codecs.annotation import ANNOTATION, annotate
from exhume.codecs.decoded_tables import DUMP, decoded_batches, dump_batches
from exhume.codecs.log_directory import Evidence
from exhume.codecs.record_filter import RecordFilter
from exhume.codecs.records_table import batch_tables, matching_records, record_batches
from exhume.codecs.segment_reader import ReadOptions, SegmentReader
from exhume.errors import RequestError
from exhume.findings import Findings

Place = str | PathLike[str]


class TopicTables:
    """The files of an offsets topic, and what is in them."""

    def __init__(self, evidence: Evidence, options: ReadOptions, places: Sequence[str] = ()) -> None:
        self._evidence = evidence
        self._options = options
        self._places = tuple(places)
        self.findings = Findings(evidence.findings)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let every file go."""
        self._evidence.close()

    def segments(self) -> pa.Table:
        """One row per segment file, leftovers among them, of `schemas.SEGMENTS`. Reads every segment that is part of the answer."""
        return self.inspect().segments

    def inspect(self) -> Inspection:
        """What is here, what it holds and what it lacks. Adds its findings to `findings`."""
        inspection = inspect(self._evidence, self._options)
        self.findings.extend(inspection.findings)
        return inspection

    def batches(self) -> pa.RecordBatchReader:
        """One row per batch, of `schemas.BATCHES`, in the order of the files."""
        return pa.RecordBatchReader.from_batches(schemas.BATCHES, batch_tables(self._reader()))

    def records(
        self,
        *,
        groups: Collection[str] | None = None,
        topics: Collection[str] | None = None,
        partitions: Collection[int] | None = None,
        types: Collection[str] | None = None,
        from_offset: int | None = None,
        to_offset: int | None = None,
        from_time_ms: int | None = None,
        to_time_ms: int | None = None,
        offsets_partitions: Collection[int] | None = None,
    ) -> pa.RecordBatchReader:
        """One row per record, of `schemas.RECORDS`: those that meet every condition, both ends of a range included.

        Conditions on group, topic or partition leave out records that have none, end-transaction markers among them. `types` are names or
        numbers of record types, or `end_txn_marker`.
        """
        wanted = RecordFilter(
            groups=groups,
            topics=topics,
            partitions=partitions,
            types=types,
            from_offset=from_offset,
            to_offset=to_offset,
            from_time_ms=from_time_ms,
            to_time_ms=to_time_ms,
            offsets_partitions=offsets_partitions,
        )
        return pa.RecordBatchReader.from_batches(schemas.RECORDS, record_batches(self._reader(), wanted))

    def dump(self, wanted: RecordFilter | None = None, *, raw: bool = False) -> pa.RecordBatchReader:
        """Every record decoded to the last field, one row each, of `decoded_tables.DUMP`; with `raw`, key and value bytes beside it."""
        return pa.RecordBatchReader.from_batches(DUMP, dump_batches(self._reader(), wanted or RecordFilter(), raw=raw))

    def annotate(self, wanted: RecordFilter | None = None) -> pa.RecordBatchReader:
        """A byte-by-byte reading of these records: every field with its bytes, one row each, of `annotation.ANNOTATION`."""
        rows = (
            found.origin | row
            for found, record, _ in matching_records(self._reader(), wanted or RecordFilter())
            for row in annotate(found.buffer, found.batch, record)
        )
        return pa.RecordBatchReader.from_batches(ANNOTATION, batches_of(ANNOTATION, rows))

    def decoded(self, name: str, *, groups: Collection[str] | None = None) -> pa.RecordBatchReader:
        """The typed table of one record type: `schemas.DECODED[name]`, or `schemas.END_TXN_MARKERS`.

        Raises:
            RequestError: no record type has this name; lists those there are.
        """
        schema = schemas.END_TXN_MARKERS if name == "end_txn_markers" else schemas.DECODED.get(name)
        if schema is None:
            raise RequestError(f"no table {name!r}", remedy=f"Choose one of {', '.join([*schemas.DECODED, 'end_txn_markers'])}")
        return pa.RecordBatchReader.from_batches(schema, decoded_batches(name, self._reader(), RecordFilter(groups=groups)))

    def offset_commits(self, *, groups: Collection[str] | None = None) -> pa.RecordBatchReader:
        """Offset commits and their tombstones (record types 0 and 1)."""
        return self.decoded("offset_commit", groups=groups)

    def group_metadata(self, *, groups: Collection[str] | None = None) -> pa.RecordBatchReader:
        """Classic group records and their tombstones (record type 2)."""
        return self.decoded("group_metadata", groups=groups)

    def end_txn_markers(self) -> pa.RecordBatchReader:
        """End-transaction markers."""
        return self.decoded("end_txn_markers")

    def _reader(self) -> SegmentReader:
        return SegmentReader(self._evidence, self._options, self.findings)
