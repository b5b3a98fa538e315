"""Fold records that are not commits: kernels."""

from __future__ import annotations

from exhume.codecs.kernels import inlined, scan
from exhume.codecs.kernels.primitives import NO_POSITION, NOT_EXACT, hash_of, kind_of_text
from exhume.codecs.kernels.readers import TYPE_BYTES, read_group_key
from exhume.codecs.kernels.types import Bytes, Int64s, Number, Rows
from exhume.codecs.record_types import GROUP_METADATA
from exhume.replay.fold import tables as columns
from exhume.replay.fold.kernels.for_loader import pass_group, pass_record
from exhume.replay.fold.kernels.group_values import is_plain_group
from exhume.replay.fold.kernels.names import find_name
from exhume.replay.fold.kernels.numbering import group_of
from exhume.replay.fold.rules import ACCEPTED_2, DONE, NOT_PLAIN_KEY, SEED, TAKES_NULL_PROTOCOL
from exhume.replay.fold.tables import Tables


@inlined
def fold_other(
    record_type: Number,
    rows: Rows,
    number: Number,
    start: Number,
    record: Int64s,
    data: Bytes,
    segment: Number,
    rules: Int64s,
    tables: Tables,
) -> Number:
    """Fold a record that is not a commit, in a batch whose records begin at `start`. All known key types begin with a group."""
    key_start, key_end = record[columns.KEY_START], record[columns.KEY_START] + record[columns.KEY_SIZE]
    key = read_group_key(data, key_start + TYPE_BYTES, key_end)
    if key.after == NO_POSITION or kind_of_text(data, key.group_start, key.group_size) == NOT_EXACT:
        pass_record(rows, number, record[columns.PLACE], record[columns.OFFSET], segment, tables)
        return DONE
    if record_type == GROUP_METADATA and key.after != key_end:
        return NOT_PLAIN_KEY
    group_hash = hash_of(data, key.group_start, key.group_size, rules[SEED])
    group = find_name(tables.group_names, data, key.group_start, key.group_size, group_hash)
    if group < 0:
        group = group_of(data, key.group_start, key.group_size, rules[SEED], tables)
    is_folded = record_type == GROUP_METADATA and fold_group(
        rows,
        number,
        start,
        record[columns.PLACE],
        record[columns.OFFSET],
        data,
        record[columns.VALUE_START],
        record[columns.VALUE_SIZE],
        segment,
        group,
        rules,
        tables.counts,
        tables.groups,
        tables.scratch,
    )
    if not is_folded:
        pass_group(group, tables)
        pass_record(rows, number, record[columns.PLACE], record[columns.OFFSET], segment, tables)
    return DONE


@inlined
def fold_group(
    rows: Rows,
    number: Number,
    start: Number,
    place: Number,
    record_offset: Number,
    data: Bytes,
    value_start: Number,
    value_size: Number,
    segment: Number,
    group: Number,
    rules: Int64s,
    counts: Int64s,
    groups: Rows,
    scratch: Rows,
) -> Number:
    """Fold the record of a classic group, or its tombstone; return False for one that the loader must read."""
    if groups[group, columns.IS_PASSED_ON]:
        return False
    if value_size >= 0:
        counts[columns.GROUP_RECORDS] += 1
        value_end, stamp = value_start + value_size, counts[columns.GROUP_RECORDS]
        takes_null = rules[TAKES_NULL_PROTOCOL] != 0
        if not is_plain_group(data, value_start, value_end, rules[ACCEPTED_2], columns.MOST_MEMBERS, takes_null, scratch, stamp):
            return False
    groups[group, columns.KIND_OFFSET] = record_offset
    groups[group, columns.KIND_SEGMENT] = segment
    groups[group, columns.KIND_BATCH] = rows[number, scan.POSITION]
    groups[group, columns.KIND_PLACE] = place
    if value_size >= 0:
        groups[group, columns.KIND] = columns.VALUE
        groups[group, columns.HAS_VALUE] = 1
        is_elsewhere = rows[number, scan.ATTRIBUTES] & scan.CODEC != 0 or rows[number, scan.MAGIC] != 2
        in_segment = rows[number, scan.POSITION] + scan.HEADER_BYTES + value_start - start
        groups[group, columns.VALUE_POSITION] = -1 if is_elsewhere else in_segment
        groups[group, columns.VALUE_BYTES] = value_size
        groups[group, columns.FIRST_TOMBSTONE] = -1
        groups[group, columns.FIRST_COMMIT] = record_offset
    else:
        groups[group, columns.KIND] = columns.TOMBSTONE
        groups[group, columns.FIRST_COMMIT] = -1
        if groups[group, columns.FIRST_TOMBSTONE] < 0:
            groups[group, columns.FIRST_TOMBSTONE] = record_offset
    return True
