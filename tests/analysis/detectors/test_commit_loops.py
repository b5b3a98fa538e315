"""Kernels and plain loops give the same result, in blocks of any size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhume.analysis.detectors.commit_loops import loops
from exhume.analysis.detectors.commit_loops.columns import BEGINS, BIT_COUNT, Bit, CommitColumn, KeyColumn
from exhume.analysis.detectors.commit_rows import NameNumbers, _Numbering
from exhume.analysis.detectors.commits import GROUP_PHASES, REASONS
from exhume.analysis.detectors.key_histories import KeyHistories
from exhume.analysis.number_columns import Int64s
from exhume.codecs.kernels import text_of
from tests import strategies

_KEYS, _FAR = 4, 1 << 62


def _rows(seed: int, count: int) -> Int64s:
    """Return commits of few keys: steady, jumps, rewinds, pauses, hot minutes, tombstones, transactional, with any times."""
    rng = np.random.default_rng(seed)
    rows = np.zeros((len(CommitColumn), count), np.int64)
    rows[CommitColumn.KEY] = rng.integers(0, _KEYS, count)
    rows[CommitColumn.OFFSET] = rows[CommitColumn.SETTLED] = np.arange(count)
    if rng.random() < 0.3:
        is_staged = rng.random(count) < 0.3
        rows[CommitColumn.IS_STAGED] = is_staged
        rows[CommitColumn.OFFSET, is_staged] = np.maximum(rows[CommitColumn.OFFSET, is_staged] - rng.integers(0, 9, is_staged.sum()), 0)
    pace = rng.choice([10, 900, 5_000])
    steps = rng.choice([0, pace, -100, 3_600_000], count, p=[0.2, 0.7, 0.05, 0.05])
    rows[CommitColumn.TIME] = 1_700_000_000_000 + np.cumsum(steps)
    rows[CommitColumn.TIME, rng.random(count) < 0.05] = -1
    rows[CommitColumn.VALUE] = np.cumsum(rng.choice([0, 1, 5, 5, -3, 20_000, 900_000], count))
    if rng.random() < 0.2:
        rows[CommitColumn.VALUE] = rng.choice([_FAR, -_FAR, 2 * _FAR - 1, -2 * _FAR, 7], count)
    rows[CommitColumn.LEADER_EPOCH] = rng.integers(-1, 3, count)
    rows[CommitColumn.TOPIC_ID] = rng.integers(0, 3, count)
    rows[CommitColumn.PHASE] = rng.choice(len(GROUP_PHASES), count, p=[0.1, 0.2, 0.6, 0.1])
    rows[CommitColumn.STEPS] = np.arange(count) // 20
    rows[CommitColumn.IS_TOMBSTONE] = rng.random(count) < 0.1
    rows[CommitColumn.METADATA], rows[CommitColumn.BYTES] = rng.integers(0, 50, count), rng.integers(60, 90, count)
    return rows


class _Names(NameNumbers):
    """Names of keys that are numbers."""

    topic_ids = [None, "one", "two"]  # noqa: RUF012
    key_count = _KEYS

    def __init__(self) -> None:
        pass


def _told(rows: Int64s, block: int) -> dict[str, Any]:
    lives = KeyHistories(_Names())
    for first in range(0, rows.shape[1], block):
        lives.take(rows[:, first : first + block])
    keys = np.arange(_KEYS)
    return {
        **{column.name: lives.numbers(column, keys).tolist() for column in KeyColumn},
        "last": lives.last.tolist(),
        "counts": lives.counts.tolist(),
        "changes": repr([lives.changes.of(keys[key : key + 1]).changes() for key in range(_KEYS)]),
        "pauses": {key: lives.pauses[key] for key in range(_KEYS)},
        "removals": {key: lives.removals[key] for key in range(_KEYS)},
        "usual": [lives.rises.medians(keys), lives.intervals.medians(keys)],
        "recent": [lives.rises.last(key) + lives.intervals.last(key) for key in range(_KEYS)],
    }


@strategies.examples(25)
@given(st.integers(0, 2**32), st.integers(1, 400), st.integers(1, 90))
def test_kernels_and_blocks_of_any_size_give_the_same(seed: int, count: int, block: int) -> None:
    rows = _rows(seed, count)
    # With transactional commits, a commit counts only after the ones that took effect before. So all blocks have some, or none has.
    rows[CommitColumn.IS_STAGED] = rows[CommitColumn.IS_STAGED].any()

    with pytest.MonkeyPatch.context() as patch:
        for name in ("update_keys", "judge", "keep"):
            patch.setattr(loops, name, text_of(getattr(loops, name)))
        whole = _told(rows, count)

    assert _told(rows, count) == whole
    assert _told(rows, block) == whole


@strategies.examples(25)
@given(st.integers(0, 2**32), st.integers(1, 400), st.integers(1, 90))
def test_codes_get_numbers_in_the_order_of_their_first_use(seed: int, count: int, block: int) -> None:
    rng = np.random.default_rng(seed)
    codes = np.maximum(rng.choice([0, 1 << 31, (1 << 62) + 7], count) + np.cumsum(rng.choice([0, 1, 1, 1, -9, 1 << 32], count)), 0)
    numbers, numbering = dict[int, int](), _Numbering()
    for first in range(0, count, block):
        asked = codes[first : first + block].tolist()
        for code in sorted({*asked} - {*numbers}):
            numbers[code] = len(numbers)

        assert numbering.of(codes[first : first + block]).tolist() == [numbers[code] for code in asked]
    assert numbering.codes.tolist() == [*numbers]


def test_reasons_have_a_bit_each() -> None:
    assert [Bit[reason.upper()] for reason in REASONS] == [1 << place for place in range(BIT_COUNT)]
    assert GROUP_PHASES[loops.EMPTY] == "empty"
    assert {*BEGINS} < {*KeyColumn}


def test_a_group_is_silent_between_commits_of_different_times() -> None:
    rows = np.zeros((len(CommitColumn), 5), np.int64)
    rows[CommitColumn.TIME], rows[CommitColumn.OFFSET], rows[CommitColumn.IS_TOMBSTONE] = (
        [1000, 1000, 2000, -1, 99_000],
        [0, 1, 2, 3, 4],
        [0, 0, 0, 0, 0],
    )
    groups, intervals, silent = np.full((1, 3), -1, np.int64), np.empty(5, np.int64), np.empty((5, 3), np.int64)

    count = loops.update_groups(rows, 60_000, groups, intervals, silent)

    assert intervals.tolist() == [-1, -1, 1000, -1, 97_000]
    assert silent[:count].tolist() == [[4, 2000, 2]]
    assert groups.tolist() == [[1000, 99_000, 4]]


def test_a_difference_beyond_64_bits_is_a_rise_and_a_pause() -> None:
    least, most = -2 * _FAR, 2 * _FAR - 1
    rows = np.zeros((len(CommitColumn), 3), np.int64)
    rows[CommitColumn.VALUE], rows[CommitColumn.TIME], rows[CommitColumn.OFFSET] = [least, most, least], [least, most, least], [0, 1, 2]
    lives, groups, intervals = KeyHistories(_Names()), np.full((1, 3), -1, np.int64), np.empty(3, np.int64)

    lives.take(rows)
    loops.update_groups(rows, 60_000, groups, intervals, np.empty((3, 3), np.int64))

    assert lives.rises.last(0) == [most]
    assert lives.intervals.last(0) == [most, 0]
    assert intervals.tolist() == [-1, most, 0]
    assert lives.counts[0].tolist() == [1, 0, 0, 0, 0, 0, 0]
