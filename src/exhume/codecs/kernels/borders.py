"""Find a batch in the middle of a segment, by its length, magic and checksum: a kernel."""

from __future__ import annotations

import numpy as np

from exhume.codecs.batch_format import LOG_OVERHEAD
from exhume.codecs.kernels import kernel, scan
from exhume.codecs.kernels.crc32c import crc32c
from exhume.codecs.kernels.primitives import int32, int64
from exhume.codecs.kernels.types import Bytes, Number

#: No batch was found.
NOWHERE = -1
#: A search gives up after this number of checksums.
_MOST_GUESSES = 64


@kernel
def next_batch(buffer: Bytes, position: Number, end: Number, base_offset: Number) -> Number:
    """Return the position of the first whole batch of format 2 in `buffer[position:end]` with at least this base offset, or `NOWHERE`."""
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
