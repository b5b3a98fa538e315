"""Hostile tables as lines, in kernels that check each index."""

from __future__ import annotations

from random import Random

import pyarrow as pa

from exhume.cli import lines
from exhume.cli.lines import csv_lines, json_lines
from tests.cli import one_by_one


def compare(rounds: int) -> None:
    """Raise an error if a line differs from the one that is made cell by cell, or if a kernel leaves its arrays."""
    draw = Random(3)
    for _ in range(rounds):
        lines._PIECE_BYTES = draw.choice((1, 40, 500, 1 << 20))
        lines._ROWS = draw.choice((1, 7, 8192))
        batch: pa.RecordBatch = one_by_one.hostile_batch(draw, draw.choice((0, 1, 2, 30)))
        raw = draw.random() < 0.5
        found = b"".join(map(bytes, json_lines(batch.schema, [batch], before=b"", after=b"\n")))
        assert found == one_by_one.json_rows(batch, "", "\n"), batch
        found = b"".join(map(bytes, csv_lines(batch.schema, [batch], raw=raw)))
        assert found == one_by_one.csv_rows(batch, raw=raw), batch
