"""Rows of CSV from columns of cells, as the module `csv` writes them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from exhume.cli.text_arrays import bytes_of

#: A cell with one of these characters stands in quotes.
_SPECIAL = '[",\r\n]'


def csv_rows(columns: Sequence[pa.StringArray]) -> bytes:
    """Return the rows with these cells, none of which is null, each row with a line feed at its end."""
    if not columns or not len(columns[0]):
        return b""
    cells: list[pa.Array | pa.Scalar] = []
    for number, column in enumerate(columns):
        cells += [pa.scalar("," if number else ""), _quoted(column, is_only=len(columns) == 1)]
    return bytes_of(pc.binary_join_element_wise(*cells, pa.scalar("\n"), ""))


def _quoted(column: pa.StringArray, *, is_only: bool) -> pa.StringArray:
    is_special = pc.match_substring_regex(column, _SPECIAL)
    if is_only:
        # Without quotes a row with one empty cell would be an empty line.
        is_special = pc.or_(is_special, pc.equal(column, ""))
    if not pc.any(is_special).as_py():
        return column
    quoted = pc.binary_join_element_wise(pa.scalar('"'), pc.replace_substring(column, '"', '""'), pa.scalar('"'), "")
    return pc.if_else(is_special, quoted, column)
