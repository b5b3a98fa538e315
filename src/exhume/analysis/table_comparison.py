"""Compare the rows of two tables by columns: counterparts, and values that differ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from exhume.codecs.json_values import to_json

_Rows = npt.NDArray[np.int64]
_Marks = npt.NDArray[np.bool_]

#: Ranks are renumbered before their product exceeds this.
_MOST = 2**62


@dataclass(frozen=True, slots=True)
class Match:
    """The rows of two tables with the same key. Of rows of one table with the same key only the last counts.

    `old[i]` and `new[i]` have the same key; `removed` are rows of the first table alone, `added` of the second, each in the order of keys.
    `ranks` are the places of all rows, those of the first table first, among the distinct keys.
    """

    ranks: _Rows
    old: _Rows
    new: _Rows
    removed: _Rows
    added: _Rows


def match(keys: pa.Table, old_rows: int) -> Match:
    """Match the rows of two tables; `keys` are the keys of the first table, which has `old_rows` rows, followed by those of the second.

    Keys are sorted column by column: null first, numbers and texts as in Python. A null matches a null.
    """
    ranks = _ranks(keys)
    old, new = _last_of_each(ranks[:old_rows]), _last_of_each(ranks[old_rows:])
    old_ranks, new_ranks = ranks[:old_rows][old], ranks[old_rows:][new]
    _, of_old, of_new = np.intersect1d(old_ranks, new_ranks, assume_unique=True, return_indices=True)
    return Match(ranks, old[of_old], new[of_new], np.delete(old, of_old), np.delete(new, of_new))


def _ranks(keys: pa.Table) -> _Rows:
    """Return the place of each row in the order of keys; the same place for the same key."""
    ranks, most = np.zeros(keys.num_rows, np.int64), 1
    for column in keys.columns:
        if not keys.num_rows:
            break
        encoded = column.combine_chunks().dictionary_encode()
        places = np.zeros(len(encoded.dictionary) + 1, np.int64)
        places[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(1, len(places))
        # The last place is that of null, which sorts first.
        own = places[encoded.indices.fill_null(len(places) - 1).to_numpy()]
        if most * len(places) > _MOST:
            _, ranks = np.unique(ranks, return_inverse=True)
            most = keys.num_rows
        ranks, most = ranks * len(places) + own, most * len(places)
    return ranks


def _last_of_each(ranks: _Rows) -> _Rows:
    """Return the last row of each rank, in the order of ranks."""
    order = np.argsort(ranks, kind="stable")
    is_last = np.append(np.diff(ranks[order]) != 0, [True] * bool(len(ranks)))
    return order[is_last.astype(np.bool_)]


def rows_of(column: pa.ChunkedArray, rows: _Rows) -> pa.ChunkedArray:
    """Return the values of these rows; null for a negative row."""
    return column.take(pa.array(rows, mask=rows < 0))


def differ(one: pa.ChunkedArray, other: pa.ChunkedArray) -> _Marks:
    """True where values of these columns differ; a null equals a null only."""
    if len(one) == 0:
        return np.zeros(0, np.bool_)
    return _differ(_storage(one), _storage(other))


def _differ(one: pa.Array, other: pa.Array) -> _Marks:
    found: _Marks = np.asarray(pc.not_equal(one.is_null(), other.is_null()))
    if pa.types.is_struct(one.type):
        for mine, theirs in zip(one.flatten(), other.flatten(), strict=True):
            found = found | _differ(mine, theirs)
    elif pa.types.is_list(one.type):
        sizes, other_sizes = (np.asarray(pc.list_value_length(each).fill_null(0)) for each in (one, other))
        found = found | (sizes != other_sizes)
        as_long = np.flatnonzero(~found)
        mine, theirs = (each.take(pa.array(as_long)) for each in (one, other))
        items = _differ(mine.flatten(), theirs.flatten())
        found[as_long[np.asarray(pc.list_parent_indices(mine))[items]]] = True
    else:
        found = found | np.asarray(pc.not_equal(one, other).fill_null(False))
    return found


def texts_of(column: pa.ChunkedArray) -> pa.Array:
    """Return these values as `to_json` writes them; null stays null."""
    values = _storage(column)
    if pa.types.is_boolean(values.type) or pa.types.is_integer(values.type):
        return values.cast(pa.string())
    if pa.types.is_string(values.type):
        encoded = values.dictionary_encode()
        return pa.array([to_json(value) for value in encoded.dictionary.to_pylist()], pa.string()).take(encoded.indices)
    return pa.array([None if value is None else to_json(value) for value in values.to_pylist()], pa.string())


def _storage(column: pa.ChunkedArray) -> pa.Array:
    """Return one array; JSON becomes text."""
    array = column.combine_chunks()
    return array.storage if isinstance(array, pa.ExtensionArray) else array
