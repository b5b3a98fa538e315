"""The names of the groups that records have in their keys: kernels read those of commits."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from exhume.codecs.columns.record_blocks import RecordBlock
from exhume.codecs.columns.record_columns import record_column
from exhume.codecs.columns.tables import tables_of_records
from exhume.codecs.columns.typed import commit_table
from exhume.codecs.kernels import records, scan
from exhume.codecs.record_filter import RecordFilter
from exhume.codecs.record_types import OFFSET_COMMIT_TYPES, decode_record
from exhume.codecs.segment_reader import SegmentReader

_GROUP, _KEY = pa.field("group", pa.string()), pa.field("key", pa.binary())
#: A batch has records of few groups, one after the other.
_COMMITS = pa.schema([_GROUP.with_type(pa.dictionary(pa.int32(), pa.string()))])


def group_names(reader: SegmentReader) -> set[str]:
    """Return the name of each group that has a record, also of those that are gone."""
    found: set[str] = set()
    for table in tables_of_records(reader, RecordFilter(), _names_of):
        found.update(table["group"].to_pylist())
    return found


def _names_of(block: RecordBlock) -> pa.RecordBatch:
    """Return the groups of these records, each of them once or a few times."""
    is_control = block.batches.columns[scan.ATTRIBUTES][block.records[records.BATCH]] & scan.CONTROL != 0
    data = block.only(np.flatnonzero(~is_control)) if is_control.any() else block
    is_commit = np.isin(data.records[records.RECORD_TYPE], OFFSET_COMMIT_TYPES)
    commits, others = data.only(np.flatnonzero(is_commit)), data.only(np.flatnonzero(~is_commit))
    names = {*(commit_table(commits, _COMMITS)["group"].unique().to_pylist() if len(commits) else ())}
    for key in record_column(others, _KEY).unique().to_pylist() if len(others) else ():
        names.add(decode_record(key, None).key.get("group"))
    return pa.RecordBatch.from_arrays([pa.array(sorted(names - {None}), _GROUP.type)], schema=pa.schema([_GROUP]))
