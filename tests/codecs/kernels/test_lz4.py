"""Streams of lz4 that a kernel unfolds: to what the library makes of them, or it leaves them alone."""

from __future__ import annotations

import random

import pytest

from exhume.codecs.compression import compress, decompress
from exhume.errors import DecompressionError
from tests.fuzz.lz4_streams import HEADER, compare, content_of_some_kind, side_by_side


def test_streams_of_brokers_are_unfolded_all_in_one_call() -> None:
    draw = random.Random(3)
    contents = [content_of_some_kind(draw) for _ in range(200)]
    streams = [compress(3, content, magic=2) for content in contents]

    assert side_by_side(streams, room=1 << 25) == contents


def test_what_is_taken_of_garbled_streams_is_what_the_library_makes_of_them() -> None:
    met = compare(300)

    assert met["taken"] > 600
    assert met["left"] > 300


@pytest.mark.parametrize("period", range(1, 40))
def test_every_distance_is_repeated_to_every_length(period: int) -> None:
    contents = [bytes(range(period)) * 9 + bytes(range(period))[:more] + b"the end, all of it literal" for more in range(period)]
    streams = [compress(3, content, magic=2) for content in contents]

    assert side_by_side(streams) == contents


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

    assert side_by_side([HEADER + len(content).to_bytes(4, "little") + content + bytes(4)]) == [None]


def test_nothing_unfolds_beyond_the_cap_or_the_room() -> None:
    content = random.Random(1).randbytes(500) * 4
    stream = compress(3, content, magic=2)

    assert side_by_side([stream], cap=len(content)) == [content]
    assert side_by_side([stream], cap=len(content) - 1) == [None]
    assert side_by_side([stream], room=len(content)) == [content]
    assert side_by_side([stream], room=len(content) - 1) == [None]


def test_what_is_not_compressed_is_put_there_as_it_lies() -> None:
    streams = [b"", b"short", b"longer than eight bytes"]

    assert side_by_side(streams, codec=0) == streams


def test_other_codecs_are_left_to_their_libraries() -> None:
    assert side_by_side([compress(4, b"records", magic=2)], codec=4) == [None]


def test_the_library_says_what_is_wrong_with_a_stream_that_is_left_to_it() -> None:
    with pytest.raises(DecompressionError, match="cut"):
        decompress(3, HEADER, magic=2)
    assert side_by_side([HEADER]) == [None]
