"""The floor: the fastest pass over segments that looks at every batch and checks its CRC-32C. Nothing that verifies a log is faster.

It steps from batch to batch, reads size and checksum of each, and sums its bytes with the instruction of the processor: compiled, one
thread, no object made. `in_one_call_per_megabyte` is what it is measured against: the same bytes through the `crc32c` package, which knows
of no batches.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import crc32c as package

from exhume.codecs.batch_format import HEADER_BYTES
from exhume.codecs.columns.blocks import readable
from exhume.codecs.kernels.floor import walk
from exhume.codecs.volumes import map_file

MEGABYTE = 1 << 20
_HEADER_BYTES = HEADER_BYTES[2]
_MAPPED_BYTES = 32 * 1024


class Floor(NamedTuple):
    """What the pass met: `damaged` batches have another checksum than they say."""

    batches: int
    records: int
    damaged: int


def walk_segments(partition: Path) -> Floor:
    """The floor over all segments of this directory, which hold format 2 and no damage."""
    met = Floor(0, 0, 0)
    for segment in sorted(partition.glob("*.log")):
        met = Floor(*(before + here for before, here in zip(met, walk(readable(map_file(segment))), strict=True)))
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
