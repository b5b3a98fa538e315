"""Read a log in chunks: the commits of a chunk as one table, all its other records as another, both in log order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, groupby
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from exhume.codecs import schemas
from exhume.codecs.decoded_tables import decode_table
from exhume.codecs.log_directory import PartitionDirectory
from exhume.codecs.record_filter import RecordFilter
from exhume.codecs.record_types import GROUP_METADATA, OFFSET_COMMIT_TYPES, RECORD_TYPES
from exhume.codecs.records_table import tables_of_batches
from exhume.codecs.segment_reader import SegmentBatch, SegmentReader, Watch
from exhume.derived import derived_from

if TYPE_CHECKING:
    import numpy.typing as npt

    from exhume.codecs.columns.pieces import Piece

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
    #: The bytes on disk of `commits` and of `others`, as `record_sizes` divides them; None if batches are read one by one.
    sizes: Callable[[], tuple[_Floats, _Floats]] | None = None

    def __len__(self) -> int:
        return len(self.commit_rows) + len(self.other_rows)


def record_chunks(reader: SegmentReader, *, watch: Watch | None = None) -> Iterator[RecordChunk]:
    """Yield all records of this reader in chunks, in the order of the files. Use each chunk before the next.

    `watch` gets each batch or run when it is read, and each hole.
    """
    if not reader.is_worth_compiling:
        yield from _read_plainly(reader.batches(watch=watch))
        return
    from exhume.codecs.columns.pieces import Piece, pieces
    from exhume.codecs.columns.runs import group_batches

    for found in group_batches(pieces(reader, watch=watch)):
        if isinstance(found, Piece):
            yield _split(found)
        else:
            yield from _read_plainly(found)


def _read_plainly(batches: Iterator[SegmentBatch]) -> Iterator[RecordChunk]:
    for _, stretch in groupby(batches, key=lambda found: (found.partition.replica, found.partition.path)):
        first = next(stretch)
        for records in tables_of_batches(chain([first], stretch), RecordFilter()):
            yield divide(first.partition, records)


def divide(partition: PartitionDirectory, records: pa.RecordBatch) -> RecordChunk:
    """Return these records (of `schemas.RECORDS`) as a chunk."""
    is_commit = pc.and_(pc.invert(records["is_control"]), pc.is_in(records["record_type"], value_set=_OFFSET_COMMITS))
    others = records.filter(pc.invert(is_commit))
    rows = (pc.indices_nonzero(mask).to_numpy().astype(np.int64) for mask in (is_commit, pc.invert(is_commit)))
    return RecordChunk(partition, decode_table("offset_commit", records), decode_table("group_metadata", others), others, *rows)


def _split(piece: Piece) -> RecordChunk:
    from exhume.codecs.columns.record_columns import record_table
    from exhume.codecs.columns.sized import sizes_of
    from exhume.codecs.columns.typed import commit_table, group_table
    from exhume.codecs.kernels import records, scan

    numbers = piece.records[records.RECORD_TYPE]
    is_control = piece.run.columns[scan.ATTRIBUTES][piece.records[records.BATCH]] & scan.CONTROL != 0
    is_commit = ~is_control & np.isin(numbers, OFFSET_COMMIT_TYPES)
    commit_rows, other_rows = np.flatnonzero(is_commit), np.flatnonzero(~is_commit)
    commits = piece if is_commit.all() else piece.only(commit_rows)
    groups = piece.only(np.flatnonzero(~is_control & (numbers == GROUP_METADATA)))
    others = piece.only(other_rows)

    def sizes() -> tuple[_Floats, _Floats]:
        of_all = sizes_of(piece)
        return of_all[is_commit], of_all[~is_commit]

    tables = commit_table(commits, _commits()), group_table(groups), record_table(others)
    return RecordChunk(piece.run.partition, *tables, commit_rows, other_rows, sizes)
