"""Medians of many series, block by block, equal those of each series alone."""

from __future__ import annotations

import random
from statistics import median

import numpy as np
import pytest

from exhume.analysis.detectors.commit_loops import loops
from exhume.analysis.detectors.commit_loops.columns import USUAL
from exhume.analysis.detectors.key_histories import Recent
from exhume.codecs.kernels import text_of

_SERIES, _RATIO, _FLOOR = 6, 5, 2


@pytest.mark.parametrize("is_text", [False, True])
@pytest.mark.parametrize("seed", range(30))
def test_values_that_stand_out_are_the_same_in_many_series_and_in_each(
    seed: int, *, is_text: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_text:
        monkeypatch.setattr(loops, "judge", text_of(loops.judge))
    rng = random.Random(seed)
    recent = Recent()
    taken: list[list[int]] = [[] for _ in range(_SERIES)]
    beyond = 0
    for _ in range(30):
        recent.make_room(_SERIES)
        block = rng.choices(range(_SERIES), k=rng.choice([0, 1, 2, 3, 40]))
        # Some numbers are usual for a time, so that the last median differs from that of all.
        values = [rng.choice([-1, 0, 1, 2, 3, 4, 20, 100]) * rng.choice([1, 1, 1, 3]) for _ in block]
        expected = {}
        for place, (series, value) in enumerate(zip(block, values, strict=True)):
            before = taken[series]
            if value < 0:
                continue
            if len(before) >= 2:
                usual = float(median(before[-USUAL:]))
                if value > _RATIO * usual and value > _RATIO * median(before[-5:]) and value > _FLOOR:
                    expected[place] = usual
            before.append(value)

        found = recent.judge(np.array(block, np.int64), np.array(values, np.int64), _FLOOR, _RATIO)

        assert {place: usual for place, usual in enumerate(found.tolist()) if usual == usual} == expected  # noqa: PLR0124
        known = [float(median(each[-USUAL:])) if len(each) > 1 else None for each in taken]
        assert recent.medians(np.arange(_SERIES)) == known
        assert [recent.last(series) for series in range(_SERIES)] == [each[-USUAL:] for each in taken]
        beyond += len(expected)
    assert beyond > 5
