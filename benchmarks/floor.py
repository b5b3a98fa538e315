"""The floor: the fastest pass over segments that looks at every batch and checks its CRC-32C. Nothing that verifies a log is faster.

It steps from batch to batch, reads size and checksum of each, and sums its bytes with the instruction of the processor: compiled, one
thread, no object made. `in_one_call_per_megabyte` is what it is measured against: the same bytes through the `crc32c` package, which knows
of no batches.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import crc32c as package
import numpy as np

from exhume.codecs.batch_format import HEADER_BYTES, LOG_OVERHEAD
from exhume.codecs.columns.runs import readable
from exhume.codecs.kernels import kernel
from exhume.codecs.kernels.crc32c import crc32c
from exhume.codecs.kernels.pages import touch_pages
from exhume.codecs.kernels.primitives import Bytes
from exhume.codecs.volumes import map_file

MEGABYTE = 1 << 20
_HEADER_BYTES = HEADER_BYTES[2]
_MAPPED_BYTES = 32 * 1024


class Floor(NamedTuple):
    """What the pass met: `damaged` batches have another checksum than they say."""

    batches: int
    records: int
    damaged: int


@kernel
def _int32_at(buffer: Bytes, position: int) -> int:
    word = np.int32(buffer[position]) << 24 | np.int32(buffer[position + 1]) << 16
    return np.int32(word | np.int32(buffer[position + 2]) << 8 | np.int32(buffer[position + 3]))  # type: ignore[return-value]


@kernel
def _walk(buffer: Bytes) -> tuple[int, int, int]:
    position = batches = records = damaged = touched = 0
    while len(buffer) - position >= _HEADER_BYTES:
        if position >= touched:
            touched = touch_pages(buffer, position, len(buffer))
        end = position + LOG_OVERHEAD + _int32_at(buffer, position + 8)
        if end > len(buffer) or end < position + _HEADER_BYTES or buffer[position + 16] != 2:
            break
        if np.uint32(_int32_at(buffer, position + 17)) != crc32c(buffer, position + 21, end):
            damaged += 1
        batches += 1
        records += _int32_at(buffer, position + 57)
        position = end
    return batches, records, damaged


def walk_segments(partition: Path) -> Floor:
    """The floor over all segments of this directory, which hold format 2 and no damage."""
    met = Floor(0, 0, 0)
    for segment in sorted(partition.glob("*.log")):
        met = Floor(*(before + here for before, here in zip(met, _walk(readable(map_file(segment))), strict=True)))
    return met


def in_one_call_per_megabyte(partition: Path) -> int:
    """Run all bytes through the package, a megabyte at a time; the number of bytes."""
    size = 0
    for segment in sorted(partition.glob("*.log")):
        buffer = readable(map_file(segment))
        for start in range(0, len(buffer), MEGABYTE):
            megabyte = buffer[start : start + MEGABYTE]
            # As the floor does: its pages are mapped first.
            megabyte[::_MAPPED_BYTES].max()
            package.crc32c(megabyte.data)
        size += len(buffer)
    return size
