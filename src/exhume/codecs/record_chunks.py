"""Divide the records of a block into chunks of typed tables: commits, classic groups, and all other records, in log order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from exhume.codecs import schemas
from exhume.codecs.columns.record_blocks import RecordBlock
from exhume.codecs.columns.record_columns import record_table
from exhume.codecs.columns.typed import commit_table, group_table
from exhume.codecs.kernels import records, scan
from exhume.codecs.kernels.types import Floats, Int64s
from exhume.codecs.log_directory import PartitionDirectory
from exhume.codecs.record_sizes import sizes_of
from exhume.codecs.record_types import GROUP_METADATA, OFFSET_COMMIT_TYPES, RECORD_TYPES
from exhume.derived import derived_from

#: A group commits one topic after the other, partition by partition: each name occurs many times in succession.
_TEXTS = pa.dictionary(pa.int32(), pa.string())


@derived_from(RECORD_TYPES)
def _commits() -> pa.Schema:
    table = schemas.decoded()["offset_commit"]
    return pa.schema([field.with_type(_TEXTS) if field.name in ("group", "topic") else field for field in table])


@dataclass(frozen=True, slots=True)
class RecordChunk:
    """Some records of one offsets partition that follow one another.

    `commits` are rows of `schemas.decoded()["offset_commit"]`, where groups and topics may be dictionaries. A
    dictionary can have names that no row uses, after rows were filtered. `others` are all other records,
    also control records, as `schemas.RECORDS`. Those of classic groups are also in `groups`, as
    `schemas.decoded()["group_metadata"]`.
    """

    partition: PartitionDirectory
    commits: pa.RecordBatch
    groups: pa.RecordBatch
    others: pa.RecordBatch
    #: The rows of `commits` and of `others` among all records of the chunk.
    commit_rows: Int64s
    other_rows: Int64s
    #: The bytes on disk of `commits` and of `others`, as `record_sizes` divides them.
    sizes: Callable[[], tuple[Floats, Floats]]

    def __len__(self) -> int:
        return len(self.commit_rows) + len(self.other_rows)


def chunk_of(block: RecordBlock) -> RecordChunk:
    """Return the records of this block, at least one, as a chunk."""
    numbers = block.records[records.RECORD_TYPE]
    is_control = block.batches.columns[scan.ATTRIBUTES][block.records[records.BATCH]] & scan.CONTROL != 0
    is_commit = ~is_control & np.isin(numbers, OFFSET_COMMIT_TYPES)
    commit_rows, other_rows = np.flatnonzero(is_commit), np.flatnonzero(~is_commit)
    commits = block if is_commit.all() else block.only(commit_rows)
    groups = block.only(np.flatnonzero(~is_control & (numbers == GROUP_METADATA)))
    others = block.only(other_rows)

    def sizes() -> tuple[Floats, Floats]:
        of_all = sizes_of(block)
        return of_all[is_commit], of_all[~is_commit]

    tables = commit_table(commits, _commits()), group_table(groups), record_table(others)
    return RecordChunk(block.batches.partition, *tables, commit_rows, other_rows, sizes)
