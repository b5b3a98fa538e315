"""Any record offsets of many series in one order."""

from __future__ import annotations

import random
import re
from pathlib import Path

import numpy as np
import pytest

from exhume.analysis.detectors import diagnose
from exhume.analysis.detectors.group_phases import rank_offsets
from exhume.analysis.detectors.inputs import Inputs
from exhume.codecs.batches import BatchWalk

from .story import case_of
from .troubles import troubles

_EXTREMES = (2**63 - 1, -(2**63), 2**62, -(2**62), -1, 0, 1)


@pytest.mark.parametrize("offsets", [range(-5, 5), _EXTREMES])
def test_ranks_order_by_series_and_then_by_record_offset(offsets: tuple[int, ...]) -> None:
    rng = random.Random(1)
    pairs = [[(rng.randrange(4), rng.choice(offsets)) for _ in range(30)] for _ in range(2)]

    span, found = rank_offsets(4, *(np.array([offset for _, offset in each], np.int64) for each in pairs))
    numbers = [
        series * span + int(number) for each, own in zip(pairs, found, strict=True) for (series, _), number in zip(each, own, strict=True)
    ]

    assert max(numbers) + span < 2**63
    assert [pair for _, pair in sorted(zip(numbers, pairs[0] + pairs[1], strict=True))] == sorted(pairs[0] + pairs[1])
    assert all(0 <= int(number) < span for own in found for number in own)


def test_a_series_without_record_offsets() -> None:
    assert [each.tolist() for each in rank_offsets(1, np.array([7, 9], np.int64), np.empty(0, np.int64))[1]] == [[0, 2], []]


@pytest.mark.parametrize("seed", range(12))
def test_a_log_with_extreme_record_offsets_is_diagnosed(tmp_path: Path, seed: int) -> None:
    """No checksum covers the base offset of a batch."""
    rng = random.Random(seed)
    troubles(seed, events=80).write(tmp_path)
    for segment in tmp_path.rglob("*.log"):
        content = bytearray(segment.read_bytes())
        for batch in BatchWalk(bytes(content)):
            if rng.random() < 0.05:
                content[batch.byte_position : batch.byte_position + 8] = rng.choice(_EXTREMES).to_bytes(8, "big", signed=True)
        segment.write_bytes(content)

    found = [*diagnose(case_of(tmp_path), Inputs())]

    assert found
    assert not [finding.sentence for finding in found if re.search(r"\(-\d+ bytes", finding.sentence)]
