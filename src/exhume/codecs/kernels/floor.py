"""The floor of the benchmarks: the fastest pass over a segment that steps from batch to batch and checks each CRC-32C."""

from __future__ import annotations

import numpy as np

from exhume.codecs.batch_format import LOG_OVERHEAD
from exhume.codecs.kernels import kernel, scan
from exhume.codecs.kernels.crc32c import crc32c
from exhume.codecs.kernels.pages import touch_pages
from exhume.codecs.kernels.primitives import int32
from exhume.codecs.kernels.types import Bytes, Number


@kernel
def walk(buffer: Bytes) -> tuple[Number, Number, Number]:
    """Return the number of batches of format 2 from the start of a segment on, of their records, and of those with a wrong checksum."""
    position, touched = np.int64(0), np.int64(0)
    batches, records, damaged = np.int64(0), np.int64(0), np.int64(0)
    while len(buffer) - position >= scan.HEADER_BYTES:
        if position >= touched:
            touched = touch_pages(buffer, position, len(buffer))
        end = position + LOG_OVERHEAD + int32(buffer, position + 8)
        if end > len(buffer) or end < position + scan.HEADER_BYTES or buffer[position + 16] != 2:
            break
        if np.int64(crc32c(buffer, position + scan.CHECKED_FROM, end)) != int32(buffer, position + 17) & 0xFFFFFFFF:
            damaged += 1
        batches += 1
        records += int32(buffer, position + 57)
        position = end
    return batches, records, damaged
