"""Files in memory for kernels: their pages are mapped before a loop comes to them."""

from __future__ import annotations

from exhume.codecs.kernels import inlined
from exhume.codecs.kernels.instructions import touch
from exhume.codecs.kernels.types import Bytes, Number

# A scan that ends sooner touches the rest again when it is called for what follows: of the smallest batches, 128 a call, that is a
# twentieth of its time.
_AHEAD_BYTES = 1 << 20
# Linux maps sixteen pages at a time. Of a file on a disk it mostly fetches thirty-two, and the next ones when it meets the page three
# quarters behind the first.
_STRIDE_BYTES = 32 * 1024


@inlined
def touch_pages(content: Bytes, position: Number, end: Number) -> Number:
    """Have the system map the pages of a megabyte of `content[position:end]`; gives the byte behind it.

    A loop that computes waits longer where it meets a page that is not mapped, and to have all pages mapped by a call takes longer too.
    """
    behind = min(position + _AHEAD_BYTES, end)
    for place in range(position, behind, _STRIDE_BYTES):
        touch(content, place)
    return behind
