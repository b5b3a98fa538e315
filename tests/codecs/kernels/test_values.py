"""Commits that may have a topic id, found by the version of their value."""

from __future__ import annotations

import numpy as np
import pytest

from exhume.codecs.kernels import records, values
from exhume.codecs.record_types import GROUP_METADATA, LEGACY_OFFSET_COMMIT, OFFSET_COMMIT


@pytest.mark.parametrize(
    ("record_type", "value", "is_found"),
    [
        (OFFSET_COMMIT, b"\0\x03...", False),
        (LEGACY_OFFSET_COMMIT, b"\0\0...", False),
        (OFFSET_COMMIT, b"\0\x04...", True),
        (LEGACY_OFFSET_COMMIT, b"\0\x04", True),
        (OFFSET_COMMIT, b"\x01\0...", True),
        (OFFSET_COMMIT, b"\xff\xff...", True),
        (OFFSET_COMMIT, b"\x04", False),
        (OFFSET_COMMIT, b"", False),
        (OFFSET_COMMIT, None, False),
        (GROUP_METADATA, b"\0\x03...", True),
        (GROUP_METADATA, None, True),
        (records.MISSING, b"\0\x03...", True),
    ],
)
def test_all_records_but_old_commits_are_found(record_type: int, value: bytes | None, is_found: bool) -> None:
    # The bytes after the value are those of the next record.
    data = np.frombuffer(b"#" + (value or b"") + b"\0\x04", np.uint8)
    columns = np.zeros((records.COLUMNS, 2), np.int64)
    columns[records.RECORD_TYPE] = record_type, GROUP_METADATA
    columns[records.VALUE_START], columns[records.VALUE_SIZE] = 1, -1 if value is None else len(value)
    found = np.empty(2, np.int64)

    count = values.besides_old_commits(data, columns, 4, found)

    assert found[:count].tolist() == ([0, 1] if is_found else [1])
