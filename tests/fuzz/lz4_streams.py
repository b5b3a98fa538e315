"""Streams of lz4, whole and garbled, and what the kernel makes of them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import numpy as np

from exhume.codecs.compression import compress, decompress
from exhume.codecs.kernels import scan
from exhume.codecs.kernels.lz4 import SLACK_BYTES, put_side_by_side

_BLOCK_BYTES = 64 * 1024
CAP = 1 << 20
HEADER = bytes.fromhex("04224d18604082")


def side_by_side(streams: Sequence[bytes], *, codec: int = 3, cap: int = CAP, room: int = 1 << 23) -> list[bytes | None]:
    """What comes of each of these, which are the sections of batches; None for one that the kernel ended at."""
    content = np.frombuffer(b"".join(bytes(scan.HEADER_BYTES) + stream for stream in streams), np.uint8)
    rows = np.zeros((len(streams), scan.COLUMNS), np.int64)
    rows[:, scan.SIZE] = [scan.HEADER_BYTES + len(stream) for stream in streams]
    rows[:, scan.POSITION] = rows[:, scan.SIZE].cumsum() - rows[:, scan.SIZE]
    rows[:, scan.ATTRIBUTES] = codec
    bodies = np.full((len(streams), 2), -1, np.int64)
    target = np.full(room + SLACK_BYTES, 0xA5, np.uint8)
    found: list[bytes | None] = []
    while len(found) < len(streams):
        first = len(found)
        done = put_side_by_side(content, rows, first, len(streams), cap, target, bodies)
        found += [target[start:end].tobytes() for start, end in bodies[first:done].tolist()]
        if done < len(streams):
            found.append(None)
    return found


def content_of_some_kind(draw: random.Random) -> bytes:
    """Of every kind: that is not compressed at all, or to matches of every length and distance, in one block or some."""
    size = draw.choice((0, 1, 4, 5, 12, 13, 15, 16, 17, 300, 3000, 3000, 3000, _BLOCK_BYTES, _BLOCK_BYTES + 1, 3 * _BLOCK_BYTES - 7))
    kind = draw.randrange(4)
    if kind == 0:
        return draw.randbytes(size)
    if kind == 1:
        period = draw.randbytes(draw.randrange(1, 20))
        return (period * (size // len(period) + 1))[:size]
    words = [draw.randbytes(draw.randrange(1, 40 if kind == 2 else 600)) for _ in range(8)]
    pieces = bytearray()
    while len(pieces) < size:
        pieces += draw.choice(words)
    return bytes(pieces[:size])


def compare(rounds: int) -> Counter[str]:
    """Streams that are garbled and cut, by the kernel and by the library; how many of them were taken, and how many not."""
    draw, met = random.Random(7), Counter[str]()
    for _ in range(rounds):
        streams = [bytearray(compress(3, content_of_some_kind(draw), magic=2)) for _ in range(6)]
        for stream in streams:
            for _ in range(draw.randrange(3)):
                first = 0 if draw.random() < 0.1 else min(len(HEADER), len(stream) - 1)
                stream[draw.randrange(first, len(stream))] = draw.choice((0, 1, 15, 0x7F, 0x80, 0xF0, 0xFF, draw.randrange(256)))
            if draw.random() < 0.2:
                del stream[draw.randrange(1, len(stream)) :]
        for stream, unfolded in zip(streams, side_by_side([bytes(stream) for stream in streams]), strict=True):
            met["left" if unfolded is None else "taken"] += 1
            if unfolded is not None:
                assert unfolded == decompress(3, stream, magic=2, cap_bytes=CAP)
    return met
