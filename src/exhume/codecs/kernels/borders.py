"""Where in the middle of a segment a batch begins: a kernel that guesses by length, magic and checksum."""

from __future__ import annotations

import numpy as np

from exhume.codecs.batch_format import LOG_OVERHEAD
from exhume.codecs.kernels import kernel, scan
from exhume.codecs.kernels.crc32c import crc32c
from exhume.codecs.kernels.primitives import int32, int64
from exhume.codecs.kernels.types import Bytes, Number

#: No batch was found.
NOWHERE = -1
#: How many checksums a search may take.
_MOST_GUESSES = 64


@kernel
def next_batch(buffer: Bytes, position: Number, end: Number, base_offset: Number) -> Number:
    """Where the first whole batch of format 2 begins in `buffer[position:end]`, judged by itself; `NOWHERE` where none does."""
    guesses = 0
    while end - position >= scan.HEADER_BYTES and guesses < _MOST_GUESSES:
        if buffer[np.uint64(position + 16)] == 2 and int64(buffer, position) >= base_offset:
            size = LOG_OVERHEAD + int32(buffer, position + 8)
            if scan.HEADER_BYTES <= size <= end - position:
                guesses += 1
                crc = int32(buffer, position + 17) & 0xFFFFFFFF
                if np.int64(crc32c(buffer, position + scan.CHECKED_FROM, position + size)) == crc:
                    return position
        position += 1
    return np.int64(NOWHERE)
