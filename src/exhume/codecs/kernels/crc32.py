"""CRC-32 for kernels: what zlib calls `crc32`, the checksum of messages of formats 0 and 1."""

from __future__ import annotations

import numpy as np

from exhume.codecs.kernels import kernel
from exhume.codecs.kernels.crc_tables import byte_tables, sum_by_tables
from exhume.codecs.kernels.types import Bytes

_TABLES = byte_tables(0xEDB88320)


@kernel
def crc32(buffer: Bytes, start: int, end: int) -> np.uint32:
    """The CRC-32 of `buffer[start:end]`, an array of uint8; the range must lie within it."""
    return sum_by_tables(_TABLES, buffer, start, end)
