"""CRC-32C for kernels: with the instruction of the processor where it has one, else with tables (`kernel_build/crc32c.h`)."""

from __future__ import annotations

import crc32c as library
import numpy as np

from exhume.codecs.kernels import native
from exhume.codecs.kernels.types import Bytes, Number


@native
def crc32c(buffer: Bytes, start: Number, end: Number) -> np.uint32:
    """Return the CRC-32C of `buffer[start:end]`; the range must be within the array."""
    return np.uint32(library.crc32c(bytes(buffer[start:end])))


@native
def with_tables(buffer: Bytes, start: Number, end: Number) -> np.uint32:
    """Return the same as `crc32c`, without the instruction."""
    return np.uint32(library.crc32c(bytes(buffer[start:end])))
