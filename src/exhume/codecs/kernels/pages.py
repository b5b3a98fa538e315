"""Files in memory for kernels: their bytes as an array, and their pages mapped before a loop comes to them."""

from __future__ import annotations

import numpy as np

from exhume.codecs.kernels import inlined
from exhume.codecs.kernels.instructions import touch
from exhume.codecs.kernels.primitives import Bytes, Number
from exhume.codecs.wire import Buffer

_AHEAD_BYTES = 1 << 20
# Linux maps sixteen pages at a time. Of a file on a disk it mostly fetches thirty-two, and the next ones when it meets the page three
# quarters behind the first.
_STRIDE_BYTES = 32 * 1024


def readable(buffer: Buffer) -> Bytes:
    """These bytes as an array of uint8 that cannot be written: kernels are compiled for one kind of array only."""
    content = np.frombuffer(buffer, np.uint8) if len(buffer) else np.empty(0, np.uint8)
    content.flags.writeable = False
    return content


@inlined
def touch_pages(content: Bytes, position: Number, end: Number) -> Number:
    """Have the system map the pages of a megabyte of `content[position:end]`; gives the byte behind it.

    A loop that computes waits longer where it meets a page that is not mapped, and to have all pages mapped by a call takes longer too.
    """
    behind = min(position + _AHEAD_BYTES, end)
    for place in range(position, behind, _STRIDE_BYTES):
        touch(content, place)
    return behind
