"""Streams of lz4 that a kernel unfolds: to what the library makes of them, or it leaves them alone."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from exhume.codecs.compression import compress, decompress
from exhume.codecs.kernels import scan
from exhume.codecs.kernels.lz4 import SLACK_BYTES, put_side_by_side
from exhume.errors import DecompressionError

_BLOCK_BYTES = 64 * 1024
_CAP = 1 << 20
_HEADER = bytes.fromhex("04224d18604082")


def _side_by_side(streams: Sequence[bytes], *, codec: int = 3, cap: int = _CAP, room: int = 1 << 23) -> list[bytes | None]:
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


def _content(draw: random.Random) -> bytes:
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
        streams = [bytearray(compress(3, _content(draw), magic=2)) for _ in range(6)]
        for stream in streams:
            for _ in range(draw.randrange(3)):
                first = 0 if draw.random() < 0.1 else min(len(_HEADER), len(stream) - 1)
                stream[draw.randrange(first, len(stream))] = draw.choice((0, 1, 15, 0x7F, 0x80, 0xF0, 0xFF, draw.randrange(256)))
            if draw.random() < 0.2:
                del stream[draw.randrange(1, len(stream)) :]
        for stream, unfolded in zip(streams, _side_by_side([bytes(stream) for stream in streams]), strict=True):
            met["left" if unfolded is None else "taken"] += 1
            if unfolded is not None:
                assert unfolded == decompress(3, stream, magic=2, cap_bytes=_CAP)
    return met


def test_streams_of_brokers_are_unfolded_all_in_one_call() -> None:
    draw = random.Random(3)
    contents = [_content(draw) for _ in range(200)]
    streams = [compress(3, content, magic=2) for content in contents]

    assert _side_by_side(streams, room=1 << 25) == contents


def test_what_is_taken_of_garbled_streams_is_what_the_library_makes_of_them() -> None:
    met = compare(300)

    assert met["taken"] > 600
    assert met["left"] > 300


@pytest.mark.parametrize("period", range(1, 40))
def test_every_distance_is_repeated_to_every_length(period: int) -> None:
    contents = [bytes(range(period)) * 9 + bytes(range(period))[:more] + b"the end, all of it literal" for more in range(period)]
    streams = [compress(3, content, magic=2) for content in contents]

    assert _side_by_side(streams) == contents


@pytest.mark.parametrize(
    "block",
    [
        pytest.param("1041 0000 00 50 4243444546", id="a match no bytes back"),
        pytest.param("1041 0200 50 4243444546", id="a match in front of the block"),
        pytest.param("1f41 0100 ffffffff", id="a size that does not end"),
        pytest.param("1041 0100 40 42434445", id="a match too near to the end of the block"),
        pytest.param("ff" * 40, id="more literals than there are bytes"),
        pytest.param("1041 01", id="a match that is cut"),
        pytest.param("1f41 0100" + "ff" * 300 + "00 50 4243444546", id="more than a block may hold"),
    ],
)
def test_a_block_that_no_compressor_writes_is_left_to_the_library(block: str) -> None:
    content = bytes.fromhex(block)

    assert _side_by_side([_HEADER + len(content).to_bytes(4, "little") + content + bytes(4)]) == [None]


def test_nothing_unfolds_beyond_the_cap_or_the_room() -> None:
    content = random.Random(1).randbytes(500) * 4
    stream = compress(3, content, magic=2)

    assert _side_by_side([stream], cap=len(content)) == [content]
    assert _side_by_side([stream], cap=len(content) - 1) == [None]
    assert _side_by_side([stream], room=len(content)) == [content]
    assert _side_by_side([stream], room=len(content) - 1) == [None]


def test_what_is_not_compressed_is_put_there_as_it_lies() -> None:
    streams = [b"", b"short", b"longer than eight bytes"]

    assert _side_by_side(streams, codec=0) == streams


def test_other_codecs_are_left_to_their_libraries() -> None:
    assert _side_by_side([compress(4, b"records", magic=2)], codec=4) == [None]


def test_the_library_says_what_is_wrong_with_a_stream_that_is_left_to_it() -> None:
    with pytest.raises(DecompressionError, match="cut"):
        decompress(3, _HEADER, magic=2)
    assert _side_by_side([_HEADER]) == [None]
