"""Spans of logs: two parts of a log, joined, are the whole."""

from __future__ import annotations

import pytest

import exhume
from exhume.analysis.log_spans import joined, log_spans
from tests.judges import corpus


@pytest.mark.parametrize("name", ["2.8.2-compaction", "4.3.0-compaction", "4.3.0-transactions", "2.8.2-lifecycle"])
def test_a_log_in_two_parts(name: str) -> None:
    with exhume.open(corpus.BUNDLED / name / "data") as topic:
        batches = topic.batches().read_all()
    for origin, whole in log_spans(batches.to_batches()).items():
        rows = [row for row in batches.to_pylist() if (row["replica"], row["offsets_partition"]) == origin]
        table = batches.from_pylist(rows, schema=batches.schema)
        for at in {*range(1, min(len(rows), 40)), *range(1, len(rows), 1 + len(rows) // 20)}:
            first, second = (log_spans(part.combine_chunks().to_batches())[origin] for part in (table[:at], table[at:]))
            assert joined(first, second) == whole
