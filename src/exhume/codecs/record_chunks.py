"""Divide the records of a block into chunks of typed tables: commits, classic groups, and all other records, in log order.

Also the size of each record on disk: the bytes of its batch, divided among its records by the sizes of keys and values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from exhume.arrow_rows import OfLog, schema_of
from exhume.codecs import schemas
from exhume.codecs.columns.arrow import flags, numbers
from exhume.codecs.columns.record_blocks import RecordBlock, record_blocks
from exhume.codecs.columns.record_columns import record_column, record_table
from exhume.codecs.columns.typed import commit_table, group_table
from exhume.codecs.kernels import records, scan
from exhume.codecs.kernels.types import Floats, Int64s
from exhume.codecs.log_directory import PartitionDirectory
from exhume.codecs.record_types import GROUP_METADATA, OFFSET_COMMIT_TYPES, RECORD_TYPES
from exhume.codecs.segment_reader import SegmentReader
from exhume.derived import derived_from

#: A group commits one topic after the other, partition by partition: each name occurs many times in succession.
_TEXTS = pa.dictionary(pa.int32(), pa.string())


class RecordSizeRow(OfLog):
    """One row per record, control records included. The sizes of the records of a batch add up to the size of the batch on disk."""

    record_offset: int
    timestamp_ms: int | None
    is_control: bool
    is_tombstone: bool
    delete_horizon_ms: int | None
    key: bytes | None
    size_bytes: float


RECORD_SIZES = schema_of(RecordSizeRow)
#: The bytes of a record besides its key and value: lengths, deltas, attributes.
RECORD_OVERHEAD_BYTES = 8


def record_sizes(reader: SegmentReader) -> Iterator[pa.RecordBatch]:
    """Rows of `RECORD_SIZES` for every record, in the order of the files; each record batch is of one offsets partition."""
    for block in record_blocks(reader):
        yield pa.RecordBatch.from_arrays([_column(block, field) for field in RECORD_SIZES], schema=RECORD_SIZES)


def _column(block: RecordBlock, field: pa.Field) -> pa.Array:
    match field.name:
        case "is_tombstone":
            return flags(block.records[records.VALUE_SIZE] < 0)
        case "size_bytes":
            return numbers(sizes_of(block), field.type)
    return record_column(block, field)


def sizes_of(block: RecordBlock) -> npt.NDArray[np.float64]:
    """Return the bytes on disk of each of these records. They must be all records that a record block has of their batches."""
    batches = block.records[records.BATCH]
    keys, values = np.maximum(block.records[records.KEY_SIZE], 0), np.maximum(block.records[records.VALUE_SIZE], 0)
    weights = keys + values + RECORD_OVERHEAD_BYTES
    local, span = batches - batches[0], slice(batches[0], batches[-1] + 1)
    # A large batch may be spread over several record blocks: each divides its share. A batch without records has no share.
    here = np.bincount(local) / np.maximum(block.batches.record_counts()[span], 1)
    per_byte = here * block.batches.columns[scan.SIZE, span] / np.maximum(np.bincount(local, weights), 1)
    shares: npt.NDArray[np.float64] = weights * per_byte[local]
    return shares


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
    is_commit = ~is_control & np.logical_or.reduce([numbers == number for number in OFFSET_COMMIT_TYPES])
    commit_rows, other_rows = np.flatnonzero(is_commit), np.flatnonzero(~is_commit)
    commits = block if is_commit.all() else block.only(commit_rows)
    groups = block.only(np.flatnonzero(~is_control & (numbers == GROUP_METADATA)))
    others = block.only(other_rows)

    def sizes() -> tuple[Floats, Floats]:
        of_all = sizes_of(block)
        return of_all[is_commit], of_all[~is_commit]

    tables = commit_table(commits, _commits()), group_table(groups), record_table(others)
    return RecordChunk(block.batches.partition, *tables, commit_rows, other_rows, sizes)
