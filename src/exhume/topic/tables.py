"""Records as tables: each with all of its fields, each byte by byte, each record type by itself."""

from __future__ import annotations

import pyarrow as pa

from exhume.arrow_rows import batches_of
from exhume.codecs import schemas
from exhume.codecs.annotation import ANNOTATION
from exhume.codecs.annotation import annotate as annotated_rows
from exhume.codecs.columns.tables import decoded_batches, dump_batches, matching_records
from exhume.codecs.decoded_tables import DUMP
from exhume.codecs.record_filter import RecordFilter
from exhume.errors import RequestError
from exhume.topic.logs import TopicLogs


def dump(logs: TopicLogs, wanted: RecordFilter, *, raw: bool) -> pa.RecordBatchReader:
    """These records decoded, of `decoded_tables.DUMP`."""
    return pa.RecordBatchReader.from_batches(DUMP, dump_batches(logs.reader(), wanted, raw=raw))


def annotate(logs: TopicLogs, wanted: RecordFilter) -> pa.RecordBatchReader:
    """The fields of these records with their bytes, of `annotation.ANNOTATION`."""
    rows = (
        row
        for found, record in matching_records(logs.reader(), wanted)
        for row in annotated_rows(found.origin, found.buffer, found.batch, record)
    )
    return pa.RecordBatchReader.from_batches(ANNOTATION, batches_of(ANNOTATION, rows))


def decoded(logs: TopicLogs, name: str, wanted: RecordFilter) -> pa.RecordBatchReader:
    """The table of one record type.

    Raises:
        RequestError: no record type has this name; lists those there are.
    """
    schema = schemas.END_TXN_MARKERS if name == "end_txn_markers" else schemas.decoded().get(name)
    if schema is None:
        raise RequestError(f"no table {name!r}", remedy=f"Choose one of {', '.join([*schemas.decoded(), 'end_txn_markers'])}")
    return pa.RecordBatchReader.from_batches(schema, decoded_batches(name, logs.reader(), wanted))
