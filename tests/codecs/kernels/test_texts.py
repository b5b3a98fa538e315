"""Runs of bytes that are compared, judged and hashed some at a time, against each byte by itself."""

from __future__ import annotations

import random
import struct

import numpy as np
import pyarrow as pa

from exhume.codecs.columns.arrow import numbered_texts, texts
from exhume.codecs.kernels.instructions import first_byte
from exhume.codecs.kernels.primitives import (
    ASCII,
    NOT_EXACT,
    UTF8,
    copy_bytes,
    hash_of,
    int16,
    int32,
    int64,
    is_same,
    kind_of_text,
    put_word,
    word,
)
from exhume.codecs.kernels.types import Bytes, Number

_SIZES = (*range(72), 95, 96, 97, 128, 200)


def _same(left: Bytes, left_at: Number, right: Bytes, right_at: Number, size: Number) -> Number:
    return is_same(left, left_at, right, right_at, size)


def _kind(text: Bytes, position: Number, size: Number) -> Number:
    return kind_of_text(text, position, size)


def _hash(text: Bytes, position: Number, size: Number, seed: Number) -> np.uint64:
    return hash_of(text, position, size, seed)


def _array(content: bytes) -> Bytes:
    return np.frombuffer(content, np.uint8)


def test_numbers_are_those_of_their_bytes() -> None:
    draw = random.Random(2)
    for size in (8, 9, 15, 40):
        content = draw.randbytes(size)
        for at in range(size - 7):
            assert int(word(_array(content), at)) == struct.unpack_from("<Q", content, at)[0]
            assert int64(_array(content), at) == struct.unpack_from(">q", content, at)[0]
            assert int32(_array(content), at + 4) == struct.unpack_from(">i", content, at + 4)[0]
            assert int16(_array(content), at + 6) == struct.unpack_from(">h", content, at + 6)[0]
            written, value = bytearray(content), draw.randrange(1 << 64)
            put_word(np.frombuffer(written, np.uint8), at, np.uint64(value))
            assert written == content[:at] + struct.pack("<Q", value) + content[at + 8 :]


def test_copied_bytes_change_nothing_beside_them() -> None:
    draw = random.Random(3)
    for size in _SIZES:
        content = draw.randbytes(size)
        target = np.zeros(size + 4, np.uint8)
        copy_bytes(_array(b"ab" + content + b"c"), 2, size, target, 3)
        assert target.tobytes() == b"\0\0\0" + content + b"\0"


def test_the_first_byte_that_is_not_0() -> None:
    for place in range(8):
        for byte in (1, 0x80, 0xFF):
            assert first_byte(np.uint64(byte << 8 * place)) == place
            assert first_byte(np.uint64(byte << 8 * place | 1 << 63)) == place
    assert first_byte(np.uint64(0)) == 7


def test_one_byte_that_differs_is_seen() -> None:
    draw = random.Random(1)
    for size in _SIZES:
        content = draw.randbytes(size)
        left, right = _array(b"ab" + content), _array(b"c" + content + b"d")
        assert _same(left, 2, right, 1, size)
        hashed = _hash(left, 2, size, 9)
        assert hashed == _hash(right, 1, size, 9)
        for at in range(size):
            other = bytearray(content)
            other[at] ^= 1 << draw.randrange(8)
            assert not _same(left, 2, _array(bytes(other)), 0, size)
            assert hashed != _hash(_array(bytes(other)), 0, size, 9)


def test_one_character_that_is_odd_is_seen() -> None:
    for size in _SIZES:
        text = b"\xff" + b"x" * size + b"\xff"
        assert _kind(_array(text), 1, size) == ASCII
        for at in range(1, size + 1):
            assert _kind(_array(text[:at] + b"\x80" + text[at + 1 :]), 1, size) == NOT_EXACT
            if at < size:
                assert _kind(_array(text[:at] + "ü".encode() + text[at + 2 :]), 1, size) == UTF8
            else:
                assert _kind(_array(text[:at] + "ü".encode()), 1, size) == NOT_EXACT


def test_texts_are_there_once_however_often_they_come() -> None:
    draw = random.Random(1)
    different = ["", "a", "b", "ü" * 30, *("x" * 40 + str(number) for number in range(300))]
    for count in (0, 1, 2, 1000):
        told = [text for text in draw.choices(different, k=count) for _ in range(draw.randrange(1, 4))]
        sizes = np.array([len(text.encode()) for text in told], np.int64)
        starts = np.cumsum(sizes) - sizes
        content = _array("".join(told).encode() + b"-")

        numbered = numbered_texts(content, starts, sizes)

        assert numbered.to_pylist() == texts(content, starts, sizes, pa.string()).to_pylist() == told
        assert numbered.dictionary.to_pylist() == [*dict.fromkeys(told)]
