"""CRC-32C for kernels: with the instruction of the processor where it has one, else with tables (`kernel_build/crc32c.h`)."""

from __future__ import annotations

import numpy as np

from exhume.codecs.kernels import native
from exhume.codecs.kernels.types import Bytes, Number
from exhume.codecs.wire import Buffer


@native
def crc32c(buffer: Bytes, start: Number, end: Number) -> np.uint32:
    """Return the CRC-32C of `buffer[start:end]`; the range must be within the array."""
    return _of_library(buffer, start, end)


@native
def with_tables(buffer: Bytes, start: Number, end: Number) -> np.uint32:
    """Return the same as `crc32c`, without the instruction."""
    return _of_library(buffer, start, end)


def crc32c_of(content: Buffer) -> int:
    """Return the CRC-32C of these bytes."""
    return int(crc32c(np.frombuffer(content, np.uint8), 0, len(content)))


def _of_library(buffer: Bytes, start: Number, end: Number) -> np.uint32:
    # Only the text of the kernels needs the package; its import reads the metadata of all installed packages.
    from crc32c import crc32c as checksum

    return np.uint32(checksum(bytes(buffer[start:end])))
