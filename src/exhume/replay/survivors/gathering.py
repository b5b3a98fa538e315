"""Columns out of what a fold remembers: kernels."""

from __future__ import annotations

from exhume.codecs.kernels import kernel
from exhume.codecs.kernels.primitives import Bytes, Int64s
from exhume.replay.survivors.keys import GROUP, Int32s
from exhume.replay.survivors.tables import COMMIT_COLUMNS, RECORD_OFFSET, SIZE_BITS

_SIZE_MASK = (1 << SIZE_BITS) - 1


@kernel
def span_offsets(keys: Int64s, rows: Int32s, commits: Int64s, lowest: Int64s, highest: Int64s) -> None:
    """The lowest and the highest record offset of each group's commits; `lowest` begins with the largest number, `highest` with -1."""
    for key in keys:
        group, record_offset = rows[key, GROUP], commits[key, RECORD_OFFSET]
        lowest[group] = min(lowest[group], record_offset)
        highest[group] = max(highest[group], record_offset)


@kernel
def gather_commits(keys: Int64s, commits: Int64s, columns: Int64s) -> None:
    """The commits of these keys, a row of `columns` for each column."""
    for index in range(len(keys)):
        commit = commits[keys[index]]
        for column in range(COMMIT_COLUMNS):
            columns[column, index] = commit[column]


@kernel
def gather_texts(packed: Int64s, content: Bytes, texts: Bytes) -> None:
    """The bytes of these texts, one behind the other; `packed` is a column METADATA."""
    position = 0
    for each in packed:
        start, size = each >> SIZE_BITS, each & _SIZE_MASK
        for offset in range(size):
            texts[position + offset] = content[start + offset]
        position += size
