"""Pass records on to the loader, as rows of `passed`: kernels."""

from __future__ import annotations

from exhume.codecs.kernels import kernel, scan
from exhume.codecs.kernels.types import Number, Rows
from exhume.replay.fold import tables as columns
from exhume.replay.fold.tables import Tables


@kernel
def pass_record(rows: Rows, number: Number, place: Number, record_offset: Number, segment: Number, tables: Tables) -> None:
    """Pass the record at this place on to the loader."""
    _pass_row(segment, rows[number, scan.POSITION], place, record_offset, tables)


@kernel
def _pass_row(segment: Number, batch: Number, place: Number, record_offset: Number, tables: Tables) -> None:
    passed = tables.passed
    row = tables.counts[columns.PASSED]
    passed[row, columns.PASSED_SEGMENT] = segment
    passed[row, columns.PASSED_BATCH] = batch
    passed[row, columns.PASSED_PLACE] = place
    passed[row, columns.PASSED_OFFSET] = record_offset
    passed[row, columns.PASSED_GROUP] = -1
    tables.counts[columns.PASSED] += 1


@kernel
def pass_commit(group: Number, record_offset: Number, tables: Tables) -> None:
    """Note for the loader that this group has a commit at this record offset."""
    _pass_row(-1, -1, -1, record_offset, tables)
    tables.passed[tables.counts[columns.PASSED] - 1, columns.PASSED_GROUP] = group


@kernel
def pass_group(group: Number, tables: Tables) -> None:
    """Leave this group to the loader from here on; pass on its last group record and its first commit."""
    groups = tables.groups
    if not groups[group, columns.IS_PASSED_ON]:
        groups[group, columns.IS_PASSED_ON] = 1
        if groups[group, columns.KIND] != columns.NO_KIND:
            _pass_row(
                groups[group, columns.KIND_SEGMENT],
                groups[group, columns.KIND_BATCH],
                groups[group, columns.KIND_PLACE],
                groups[group, columns.KIND_OFFSET],
                tables,
            )
        if groups[group, columns.KIND] != columns.VALUE and groups[group, columns.FIRST_COMMIT] >= 0:
            pass_commit(group, groups[group, columns.FIRST_COMMIT], tables)
    groups[group, columns.FIRST_COMMIT] = -1
