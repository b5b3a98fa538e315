"""A batch with a wrong checksum, or one that is cut, feeds no detector."""

from __future__ import annotations

from pathlib import Path

import pytest

from exhume.fixtures.story import Story as Written

from .files import decided
from .story import case_of

_PLACED = """
    0 d0 10:00 OC my-group t-0 = 1
    1 d0 10:01 OC my-group t-0 = 2
    2 d0 10:02 OC my-group t-0 = 3
"""


def _with_one_flipped_byte(directory: Path, old: bytes, new: bytes) -> Path:
    """Change a byte of the second batch, as a disk does."""
    Written(_PLACED, offsets_partition=12).write(directory)
    segment = next(directory.glob("*/*.log"))
    content = bytearray(segment.read_bytes())
    second = content.index(old, content.index(old) + 1)
    content[second : second + len(old)] = new
    segment.write_bytes(bytes(content))
    return directory


def test_a_flipped_byte_makes_no_group_and_moves_none(tmp_path: Path) -> None:
    damaged = _with_one_flipped_byte(tmp_path, b"my-group", b"my-grouq")

    assert [group.group for group in case_of(damaged).groups()] == ["my-group"]
    assert not decided(damaged, "IC-21")
    assert len(decided(damaged, "IC-36")) == 1


def test_a_damaged_commit_moves_no_offset(tmp_path: Path) -> None:
    # The committed offset of the second batch becomes 1 << 57.
    Written(_PLACED, offsets_partition=12).write(tmp_path)
    segment = next(tmp_path.glob("*/*.log"))
    content = bytearray(segment.read_bytes())
    at = content.index((2).to_bytes(8, "big"), len(content) // 3)
    content[at] = 2
    segment.write_bytes(bytes(content))
    [group] = case_of(tmp_path).groups()

    assert (group.keys[0].commits, group.keys[0].highest, group.keys[0].lowest) == (2, 3, 1)


@pytest.mark.parametrize("kept", [10, 40])
def test_a_cut_batch_feeds_no_detector(tmp_path: Path, kept: int) -> None:
    Written("0 d0 10:00 OC my-group t-0 = 1\n1 d0 10:01 OC my-group t-0 = 2 | OC my-group t-1 = 2 | OC my-group t-2 = 2").write(tmp_path)
    segment = next(tmp_path.glob("*/*.log"))
    segment.write_bytes(segment.read_bytes()[:-kept])
    [group] = case_of(tmp_path).groups()

    assert [key.commits for key in group.keys] == [1]
