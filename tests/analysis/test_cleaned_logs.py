"""No grade promises more than the log before compaction confirms, on random logs and on logs that a real broker cleaned."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.cleaned_logs import compare_all, write
from tests.compared import Compared
from tests.strategies import times


@pytest.mark.one_of(4)
@pytest.mark.parametrize("seed", range(16))
def test_no_grade_promises_more_than_the_log_before_compaction_confirms(seed: int, tmp_path: Path, compared: Compared) -> None:
    for number in range(times(4)):
        counts = compare_all(write(tmp_path / str(number), Random(1_000 * seed + number)))
        assert not counts.wrong, f"seed {1_000 * seed + number}: {counts.wrong[0]}"
        for grade, count in counts.pairs.items():
            compared[f"group at a moment: {grade}", "the log before compaction"] += count
