"""Texts out of a buffer into one column, for kernels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from exhume.codecs.kernels import kernel
from exhume.codecs.kernels.primitives import Bytes, Int64s

Int32s = npt.NDArray[np.int32]


@kernel
def copy_texts(data: Bytes, starts: Int64s, sizes: Int64s, offsets: Int32s, content: Bytes) -> None:
    """Copy `data[start:start + size]` for each pair, one behind the other, into `content`; `offsets` says where each begins, and the end.

    A negative size is a null: nothing is copied. The texts must lie within `data`, and `content` must hold them all.
    """
    place = np.int64(0)
    offsets[0] = 0
    for number in range(len(starts)):
        start, size = starts[number], sizes[number]
        for index in range(size):
            content[np.uint64(place + index)] = data[np.uint64(start + index)]
        place += max(size, 0)
        offsets[number + 1] = place


@kernel
def find_escapes(data: Bytes, starts: Int64s, sizes: Int64s, found: Int64s) -> None:
    """Set `found` to 1 for each text of `data` that has a character which JSON escapes; leave it as it is for the others."""
    for number in range(len(starts)):
        for at in range(starts[number], starts[number] + sizes[number]):
            byte = data[np.uint64(at)]
            if byte < 0x20 or byte == 0x22 or byte == 0x5C:
                found[number] = 1
                break
