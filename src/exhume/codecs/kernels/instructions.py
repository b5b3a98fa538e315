"""Instructions of the processor, for kernels. The compiled functions are those of `kernel_build/kernels.h`."""

from __future__ import annotations

from typing import Any

import numpy as np

from exhume.codecs.kernels import native
from exhume.codecs.kernels.types import Bytes, Number

#: The bytes that `are_equal`, `is_ascii` and `copy_run` read.
RUN_BYTES = 32


@native
def fetch(array: Any, place: Number) -> None:
    """Ask the processor to fetch an element of any array soon; `place` counts over all rows, and may be after the end."""


@native
def touch(content: Bytes, place: Number) -> None:
    """Read a byte, so that the system maps its page."""
    content[place]


@native
def are_equal(left: Bytes, left_at: Number, right: Bytes, right_at: Number) -> Number:
    """Return True if `RUN_BYTES` of two arrays are equal."""
    return bool((left[left_at : left_at + RUN_BYTES] == right[right_at : right_at + RUN_BYTES]).all())


@native
def is_ascii(buffer: Bytes, at: Number) -> Number:
    """Return True if `RUN_BYTES` of an array are all below 0x80."""
    return bool((buffer[at : at + RUN_BYTES] < 0x80).all())


@native
def first_byte(word: np.uint64) -> Number:
    """Return the number of the lowest byte that is not 0; 7 if all are 0."""
    number = int(word) | 1 << 63
    return ((number & -number).bit_length() - 1) >> 3


@native
def copy_run(source: Bytes, start: Number, target: Bytes, place: Number) -> None:
    """Copy `RUN_BYTES` to another array."""
    target[place : place + RUN_BYTES] = source[start : start + RUN_BYTES]
