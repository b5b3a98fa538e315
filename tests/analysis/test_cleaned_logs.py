"""No grade promises more than the log before compaction confirms, on random logs and on logs that a real broker cleaned."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests import bundled
from tests.cleaned_logs import compare_all, with_replaced_segments, write
from tests.compared import Compared
from tests.strategies import times


@pytest.mark.one_of(4)
@pytest.mark.parametrize("seed", range(8))
def test_no_grade_promises_more_than_the_log_before_compaction_confirms(seed: int, tmp_path: Path, compared: Compared) -> None:
    for number in range(times(3)):
        counts = compare_all(write(tmp_path / str(number), Random(1_000 * seed + number)))
        assert not counts.wrong, f"seed {1_000 * seed + number}: {counts.wrong[0]}"
        for grade, count in counts.pairs.items():
            compared[f"group at a moment: {grade}", "the log before compaction"] += count


@pytest.mark.one_of(5)
@pytest.mark.parametrize(("release", "offsets_partition"), [("0.10.2.2", 0), ("0.10.2.2", 1), ("2.8.2", 0), ("2.8.2", 1), ("4.3.0", 0)])
def test_no_grade_promises_more_than_the_segments_that_a_real_cleaner_replaced(
    release: str, offsets_partition: int, tmp_path: Path, compared: Compared
) -> None:
    log = with_replaced_segments(bundled.unpacked() / f"{release}-compaction" / "data", offsets_partition, tmp_path, release)

    counts = compare_all(log, every=max(1, log.end_offset // 100))

    assert counts.pairs
    assert not counts.wrong, counts.wrong[0]
    for grade, count in counts.pairs.items():
        compared[f"group at a moment: {grade}", "segments before compaction"] += count
