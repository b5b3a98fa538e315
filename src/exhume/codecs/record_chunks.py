"""Read a log in chunks: the commits of a chunk as one table, all its other records as another, both in log order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from exhume.codecs import schemas
from exhume.codecs.columns.blocks import Watch
from exhume.codecs.columns.record_blocks import RecordBlock, record_blocks
from exhume.codecs.columns.record_columns import record_table
from exhume.codecs.columns.typed import commit_table, group_table
from exhume.codecs.kernels import records, scan
from exhume.codecs.log_directory import PartitionDirectory
from exhume.codecs.record_sizes import sizes_of
from exhume.codecs.record_types import GROUP_METADATA, OFFSET_COMMIT_TYPES, RECORD_TYPES
from exhume.codecs.segment_reader import SegmentReader
from exhume.derived import derived_from

_Floats = npt.NDArray[np.float64]
_OFFSET_COMMITS = pa.array(OFFSET_COMMIT_TYPES, pa.int16())
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
    commit_rows: npt.NDArray[np.int64]
    other_rows: npt.NDArray[np.int64]
    #: The bytes on disk of `commits` and of `others`, as `record_sizes` divides them.
    sizes: Callable[[], tuple[_Floats, _Floats]]

    def __len__(self) -> int:
        return len(self.commit_rows) + len(self.other_rows)


def record_chunks(reader: SegmentReader, *, watch: Watch | None = None) -> Iterator[RecordChunk]:
    """Yield all records of this reader in chunks, in the order of the files. Use each chunk before the next.

    `watch` gets each block when it is read, and each hole.
    """
    return map(_split, record_blocks(reader, watch=watch))


def _split(block: RecordBlock) -> RecordChunk:
    numbers = block.records[records.RECORD_TYPE]
    is_control = block.batches.columns[scan.ATTRIBUTES][block.records[records.BATCH]] & scan.CONTROL != 0
    is_commit = ~is_control & np.isin(numbers, OFFSET_COMMIT_TYPES)
    commit_rows, other_rows = np.flatnonzero(is_commit), np.flatnonzero(~is_commit)
    commits = block if is_commit.all() else block.only(commit_rows)
    groups = block.only(np.flatnonzero(~is_control & (numbers == GROUP_METADATA)))
    others = block.only(other_rows)

    def sizes() -> tuple[_Floats, _Floats]:
        of_all = sizes_of(block)
        return of_all[is_commit], of_all[~is_commit]

    tables = commit_table(commits, _commits()), group_table(groups), record_table(others)
    return RecordChunk(block.batches.partition, *tables, commit_rows, other_rows, sizes)
