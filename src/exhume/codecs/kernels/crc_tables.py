"""Checksums of 32 bits for kernels, eight bytes at a time by tables: for any polynomial, on any machine."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from exhume.codecs.kernels import inlined
from exhume.codecs.kernels.types import Bytes, UInt32Rows

_ONES = np.uint32(0xFFFFFFFF)


def byte_tables(polynomial: int) -> npt.NDArray[np.uint32]:
    """Return the tables of a polynomial, whose bits are in the order of the checksum: `[k][b]` is the sum of byte b and k zero bytes."""
    first = [_moved_by_a_zero_byte(byte, polynomial) for byte in range(256)]
    tables = [first]
    for _ in range(7):
        tables.append([crc >> 8 ^ first[crc & 255] for crc in tables[-1]])
    return np.array(tables, dtype=np.uint32)


def _moved_by_a_zero_byte(crc: int, polynomial: int) -> int:
    for _ in range(8):
        crc = crc >> 1 ^ (polynomial if crc & 1 else 0)
    return crc


@inlined
def sum_by_tables(tables: UInt32Rows, buffer: Bytes, start: int, end: int) -> np.uint32:
    """Return the checksum of `buffer[start:end]`; the range must be within the array."""
    crc = _ONES
    position = start
    while end - position >= 8:
        at = np.uint64(position)
        crc = (
            tables[7, (crc ^ buffer[at]) & np.uint32(255)]
            ^ tables[6, (crc >> np.uint32(8) ^ buffer[at + np.uint64(1)]) & np.uint32(255)]
            ^ tables[5, (crc >> np.uint32(16) ^ buffer[at + np.uint64(2)]) & np.uint32(255)]
            ^ tables[4, (crc >> np.uint32(24) ^ buffer[at + np.uint64(3)]) & np.uint32(255)]
            ^ tables[3, buffer[at + np.uint64(4)]]
            ^ tables[2, buffer[at + np.uint64(5)]]
            ^ tables[1, buffer[at + np.uint64(6)]]
            ^ tables[0, buffer[at + np.uint64(7)]]
        )
        position += 8
    for left in range(position, end):
        crc = np.uint32(crc >> np.uint32(8)) ^ tables[0, (crc ^ buffer[left]) & np.uint32(255)]
    return crc ^ _ONES
