"""Python values as columns."""

from __future__ import annotations

import pyarrow as pa
import pytest

from exhume.arrow_rows import column

MOST = 2**63 - 1


def test_a_difference_that_does_not_fit_becomes_the_nearest_number_that_does() -> None:
    assert column(pa.int64(), [0, None, MOST - (-MOST), -MOST - MOST, 7]).to_pylist() == [0, None, MOST, -MOST - 1, 7]


def test_a_number_that_a_narrower_type_does_not_hold_is_a_mistake() -> None:
    with pytest.raises((pa.ArrowInvalid, OverflowError)):
        column(pa.int32(), [2**40])
