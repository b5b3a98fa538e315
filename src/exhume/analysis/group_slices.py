"""Tables of a state in slices of whole groups: Python rows of a few groups at a time, however many groups a topic has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from exhume.analysis.number_columns import RowGroups
from exhume.codecs.columns.arrow import numbers

#: The columns that name a group.
GROUP_KEY = ("replica", "offsets_partition", "group")
#: A slice has one group, and others with fewer rows than these together.
_MOST_ROWS = 1 << 14


def group_slices(tables: Mapping[str, pa.Table], most_rows: int = _MOST_ROWS) -> Iterator[dict[str, pa.Table]]:
    """Yield these tables in slices by replica, group and offsets partition; the rows of a group are in one slice, in their order."""
    found = RowGroups(pa.concat_tables([table.select(GROUP_KEY) for table in tables.values()]), GROUP_KEY)
    if not found.keys:
        return
    order = sorted(range(len(found.keys)), key=lambda number: _place(found.keys[number]))
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    rank_of_rows = ranks[found.numbers]
    # The number of the slice that each rank is in.
    slices = (np.bincount(rank_of_rows, minlength=len(order)).cumsum() - 1) // most_rows
    firsts = np.flatnonzero(np.diff(slices, prepend=-1))
    sorted_rows: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    start = 0
    for name, table in tables.items():
        own = rank_of_rows[start : start + table.num_rows]
        start += table.num_rows
        rows = np.argsort(own, kind="stable")
        sorted_rows[name] = rows, np.append(np.searchsorted(own[rows], firsts), len(rows))
    for number in range(len(firsts)):
        yield {
            name: tables[name].take(numbers(rows[bounds[number] : bounds[number + 1]], pa.int64()))
            for name, (rows, bounds) in sorted_rows.items()
        }


def _place(key: tuple[str | None, int | None, str]) -> tuple[str, str, int]:
    replica, offsets_partition, group = key
    return replica or "", group, -1 if offsets_partition is None else offsets_partition
