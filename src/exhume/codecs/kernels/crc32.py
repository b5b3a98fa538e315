"""CRC-32 for kernels: the checksum of messages of formats 0 and 1, and `crc32` of zlib."""

from __future__ import annotations

import numpy as np

from exhume.codecs.kernels import kernel
from exhume.codecs.kernels.crc_tables import byte_tables, sum_by_tables
from exhume.codecs.kernels.types import Bytes

_TABLES = byte_tables(0xEDB88320)


@kernel
def crc32(buffer: Bytes, start: int, end: int) -> np.uint32:
    """Return the CRC-32 of `buffer[start:end]`; the range must be within the array."""
    return sum_by_tables(_TABLES, buffer, start, end)
