"""Tables of different types as rows of one type."""

from __future__ import annotations

import pyarrow as pa

from exhume.arrow_rows import BATCH_BYTES
from exhume.replay.spark.wide import MOMENT, TABLE, TABLES, UNIT, wide_batches


def test_batches_are_cut_by_bytes_too() -> None:
    names = ["x" * 500_000 + str(number) for number in range(60)]
    rows = pa.table({"source": names, "topic_id": ["a"] * 60, "topic": ["b"] * 60}, schema=TABLES["names"])

    batches = [*wide_batches(3, 4, "names", rows)]

    assert all(batch.nbytes < BATCH_BYTES + 1_000_000 for batch in batches)
    assert [row["source"] for batch in batches for row in batch.column("names").to_pylist()] == names
    assert {(row[UNIT], row[MOMENT], row[TABLE]) for batch in batches for row in batch.select([UNIT, MOMENT, TABLE]).to_pylist()} == {
        (3, 4, "names")
    }
