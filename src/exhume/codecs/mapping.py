"""Files in memory: a mapping that needs no descriptor, so that a log of thousands of segments stays below any limit on open files."""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Callable
from functools import cache

_PROT_READ, _MAP_SHARED = 1, 1
_MAP_FAILED = -1


def map_descriptor(descriptor: int, size_bytes: int) -> memoryview:
    """The first `size_bytes` of an open file, mapped read-only. The descriptor may be closed afterwards.

    The mapping exists while any object refers to the buffer.

    Raises:
        OSError: the system cannot map the file.
        ValueError: the file is shorter.
    """
    if size_bytes == 0:
        return memoryview(b"")
    if sys.version_info >= (3, 13):
        return memoryview(mmap.mmap(descriptor, size_bytes, access=mmap.ACCESS_READ, trackfd=False))
    if os.name != "posix" or sys.maxsize < 1 << 32:
        return memoryview(mmap.mmap(descriptor, size_bytes, access=mmap.ACCESS_READ))
    # mmap(2) maps pages beyond the end of a file too: to read one is a bus error.
    if os.fstat(descriptor).st_size < size_bytes:
        raise ValueError("mmap length is greater than file size")
    # Before 3.13 each `mmap.mmap` keeps a descriptor of its own.
    import pyarrow as pa

    mapping = _Mapping(descriptor, size_bytes)
    return memoryview(pa.foreign_buffer(mapping.address, size_bytes, base=mapping)).cast("B")


class _Mapping:
    """The memory of a file until nothing refers to it."""

    def __init__(self, descriptor: int, size_bytes: int) -> None:
        map_memory, self._unmap = _system_calls()
        self.address, self._size_bytes = map_memory(descriptor, size_bytes), size_bytes

    def __del__(self) -> None:
        if hasattr(self, "address"):
            self._unmap(self.address, self._size_bytes)


@cache
def _system_calls() -> tuple[Callable[[int, int], int], Callable[[int, int], object]]:
    """Return mmap(2), of a descriptor and a number of bytes, and munmap(2)."""
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    mmap_2, munmap_2 = library.mmap, library.munmap
    mmap_2.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64]
    mmap_2.restype = ctypes.c_ssize_t
    munmap_2.argtypes = [ctypes.c_size_t, ctypes.c_size_t]

    def map_memory(descriptor: int, size_bytes: int) -> int:
        address: int = mmap_2(None, size_bytes, _PROT_READ, _MAP_SHARED, descriptor, 0)
        if address == _MAP_FAILED:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return address

    return map_memory, munmap_2
