"""The records of batches in one piece of memory: that of their segment, or side by side if they are compressed or messages.

Uncompressed batches between compressed ones, such as markers of transactions, are copied beside these, so that no piece is tiny.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from exhume.codecs.batch_format import LZ4
from exhume.codecs.compression import decompress_in_turn
from exhume.codecs.kernels import scan
from exhume.codecs.kernels.lz4 import SLACK_BYTES, put_side_by_side
from exhume.codecs.kernels.messages import as_records
from exhume.codecs.kernels.types import Bytes, Int64s
from exhume.errors import DecompressionError

_IN_SEGMENT, _SIDE_BY_SIDE, _MESSAGES = range(3)
#: The most bytes between two compressed batches that are not worth their own piece of memory.
_FEW_BYTES = 64 * 1024
#: The most unfolded bytes of several batches: Arrow counts bytes in 32 bits. A larger batch has its own piece of memory.
_MOST_BYTES = 1 << 30


class Sections:
    """The records of the batches in `rows`, which are rows of `kernels.scan` for the segment `content`.

    `memory_from` returns a piece of memory, and sets `bodies` to the start and the end of the records of each batch in it.
    """

    def __init__(self, content: Bytes, rows: Int64s, cap_bytes: int) -> None:
        self._content = content
        self._rows = rows
        self._cap_bytes = cap_bytes
        self._starts = rows[:, scan.POSITION] + scan.HEADER_BYTES
        self._ends = rows[:, scan.POSITION] + rows[:, scan.SIZE]
        #: The bytes of the batches up to and with each one. There may be bytes between the batches that are not read.
        self._sizes = np.cumsum(rows[:, scan.SIZE])
        # Kafka does not look at the codec of a batch without records.
        codecs = np.where(self._ends > self._starts, rows[:, scan.ATTRIBUTES] & scan.CODEC, 0)
        is_message = rows[:, scan.MAGIC] != 2
        self._kinds = np.where(is_message, _MESSAGES, _IN_SEGMENT)
        self._codecs: list[int] = []
        if codecs.any():
            self._codecs = codecs.tolist()
            self._put_together(np.flatnonzero(codecs))
        self._borders = np.append(np.flatnonzero(np.diff(self._kinds)) + 1, len(rows))
        self.bodies = np.stack([self._starts, self._ends], axis=1)

    def _put_together(self, compressed: Int64s) -> None:
        """Mark the batches that go side by side: compressed ones, and uncompressed ones between two of them."""
        if len(compressed) == len(self._kinds):
            self._kinds[:] = _SIDE_BY_SIDE
            return
        bytes_between = self._sizes[compressed[1:] - 1] - self._sizes[compressed[:-1]]
        messages_before = np.cumsum(self._kinds == _MESSAGES)
        has_message = messages_before[compressed[1:]] != messages_before[compressed[:-1]]
        parted = np.flatnonzero((bytes_between > _FEW_BYTES) | has_message)
        firsts, lasts = compressed[np.append(0, parted + 1)], compressed[np.append(parted, len(compressed) - 1)]
        for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
            self._kinds[first : last + 1] = _SIDE_BY_SIDE

    def memory_from(self, first: int, last: int, most_bytes: int) -> tuple[int, Bytes | None]:
        """Return the number of the next batch, at most `last`, and memory with the records of the batches from `first` to before it.

        The memory has about `most_bytes`, and at least one batch. It is None if the first batch cannot be unfolded.
        """
        last = min(last, int(self._borders[np.searchsorted(self._borders, first, side="right")]))
        if self._kinds[first] == _SIDE_BY_SIDE:
            return self._side_by_side(first, last, most_bytes)
        before = self._sizes[first] - self._rows[first, scan.SIZE]
        last = first + max(1, int(np.searchsorted(self._sizes[first:last], before + most_bytes, side="right")))
        if self._kinds[first] == _MESSAGES:
            return last, as_records(self._content, self._rows, first, last, self.bodies)
        self.bodies[first:last, 0], self.bodies[first:last, 1] = self._starts[first:last], self._ends[first:last]
        return last, self._content

    def _side_by_side(self, first: int, last: int, most_bytes: int) -> tuple[int, Bytes | None]:
        if self._codecs[first] in (0, LZ4):
            target = np.empty(most_bytes + SLACK_BYTES, np.uint8)
            following = put_side_by_side(self._content, self._rows, first, last, self._cap_bytes, target, self.bodies)
            if following > first:
                target.flags.writeable = False
                return following, target[: max(int(self.bodies[following - 1, 1]), 1)]
        view = self._content.data
        places = zip(self._starts[first:last].tolist(), self._ends[first:last].tolist(), strict=True)
        streams = (view[start:end] for start, end in places)
        pieces: list[bytes] = []
        size = 0
        # The batches before one that cannot be unfolded come first.
        with suppress(DecompressionError):
            for piece in decompress_in_turn(self._codecs[first:last], streams, cap_bytes=self._cap_bytes):
                if size and size + len(piece) > _MOST_BYTES:
                    break
                pieces.append(piece)
                size += len(piece)
                if size >= most_bytes:
                    break
        if not pieces:
            return first + 1, None
        sizes = np.fromiter(map(len, pieces), np.int64, len(pieces))
        following = first + len(pieces)
        self.bodies[first:following, 1] = sizes.cumsum()
        self.bodies[first:following, 0] = self.bodies[first:following, 1] - sizes
        return following, np.frombuffer(b"".join(pieces) or b"\0", np.uint8)
