"""Tables for other libraries: times as times, and integers that may be null as integers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from exhume.arrow_times import timed

if TYPE_CHECKING:
    import pandas as pd

_PANDAS_TYPES = {
    pa.bool_(): "BooleanDtype",
    pa.int8(): "Int8Dtype",
    pa.int16(): "Int16Dtype",
    pa.int32(): "Int32Dtype",
    pa.int64(): "Int64Dtype",
    pa.uint32(): "UInt32Dtype",
    pa.string(): "StringDtype",
}


def with_times(source: pa.Table | pa.RecordBatchReader) -> pa.Table:
    """Return this answer with each column of milliseconds since the epoch as `timestamp[ms, UTC]`. No value is copied."""
    return timed(source if isinstance(source, pa.Table) else source.read_all())


def to_pandas(source: pa.Table | pa.RecordBatchReader) -> pd.DataFrame:
    """Return this answer as a DataFrame: times in UTC, and integers, booleans and texts in types that have nulls.

    `table.to_pandas()` of Arrow makes floating-point numbers of integers with nulls, which are wrong from 2**53 on. Needs pandas.
    """
    import pandas as pd

    table = with_times(source)
    # A JSON column is text for pandas.
    plain = [pa.field(field.name, field.type.storage_type) if isinstance(field.type, pa.JsonType) else field for field in table.schema]
    types = {arrow: getattr(pd, name)() for arrow, name in _PANDAS_TYPES.items()}
    return table.cast(pa.schema(plain)).to_pandas(types_mapper=types.get)
