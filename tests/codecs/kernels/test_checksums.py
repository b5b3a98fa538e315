"""The checksums of kernels against the crc32c package and zlib."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import crc32c as package
import numpy as np
import pytest

from exhume.codecs.kernels import crc32, crc32c
from exhume.codecs.kernels.types import Bytes

_CONTENT = np.random.default_rng(5).integers(0, 256, 20_000, dtype=np.uint8)


def test_check_value() -> None:
    # The check value that RFC 3720 and every catalogue give for the nine digits.
    assert crc32c.crc32c(np.frombuffer(b"123456789", dtype=np.uint8), 0, 9) == 0xE3069283


@pytest.mark.parametrize("checksum", [crc32c.crc32c, crc32c.with_tables])
def test_every_length_and_alignment(checksum: Callable[[Bytes, int, int], np.uint32]) -> None:
    lengths = [*range(1700), 4095, 4096, 19_000]
    for index, length in enumerate(lengths):
        start = index % 17
        assert checksum(_CONTENT, start, start + length) == package.crc32c(_CONTENT[start : start + length].data), (start, length)


def test_every_length_and_alignment_of_the_checksum_of_messages() -> None:
    for index, length in enumerate([*range(70), 171, 4095, 19_000]):
        start = index % 17
        assert crc32.crc32(_CONTENT, start, start + length) == zlib.crc32(_CONTENT[start : start + length].data), (start, length)


def test_memory_that_cannot_be_written() -> None:
    content = np.frombuffer(_CONTENT.tobytes(), dtype=np.uint8)
    assert not content.flags.writeable
    assert crc32c.crc32c(content, 3, 15_000) == package.crc32c(content[3:15_000].data)
