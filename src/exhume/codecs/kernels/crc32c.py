"""CRC-32C for kernels: with the instruction of the processor where it has one, else with tables.

The instruction takes eight bytes and gives its result three cycles later, but a new one can begin in every cycle. So a range is cut into
three parts of equal length that are summed side by side and joined at the end. Joining means to move the sum of one part behind the
bytes that follow it: a product of polynomials over two elements, modulo that of the checksum. With `P` the checksum's polynomial, a
part of n words, and bits in the checksum's order (the lowest is the highest power):

    after n more words      sum · x^(64·n) mod P
    the instruction         state, word -> (state · x^64 + word · x^32) mod P
    multiplying two sums    a · b · x, as a word: one bit of the 64 is left over

so `instruction(0, product(sum, x^(64·n - 33) mod P))` moves a sum by n words, and one table of these powers serves every length.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import binding, ir
from numba import config, types

from exhume.codecs.kernels import kernel
from exhume.codecs.kernels.crc_tables import byte_tables, sum_by_tables
from exhume.codecs.kernels.instructions import call, emitted, fetch
from exhume.codecs.kernels.primitives import Bytes

Checksum = Callable[[Bytes, int, int], np.uint32]

_POLYNOMIAL = 0x82F63B78
#: The longest part in words of 8 bytes: with long ones memory is read in three places at once, which the processor does not foresee.
_LONGEST_PART = 32
#: Not all processors foresee three places that are near each other either, so bytes are asked for when they are so far ahead.
_AHEAD_BYTES = 4096
_LINE_BYTES = 64
#: Below this many words side by side is not worth the joining.
_SHORTEST_RUN = 24


def _instructions() -> str | None:
    """Whose checksum instruction the compiler may use: `x86`, `arm`, or None."""
    if config.CPU_NAME or config.CPU_FEATURES or sys.byteorder != "little":  # type: ignore[attr-defined]
        # Somebody asked the compiler for another machine than this one.
        return None
    try:
        has = binding.get_host_cpu_features()
    except RuntimeError:
        return None
    machine = platform.machine().lower()
    if machine in {"x86_64", "amd64"} and has.get("sse4.2") and has.get("pclmul"):
        return "x86"
    if machine in {"aarch64", "arm64"} and has.get("crc") and has.get("aes"):
        return "arm"
    return None


INSTRUCTIONS = _instructions()


def _powers() -> npt.NDArray[np.uint32]:
    """`[n]`: x^(64·n - 33) modulo P, for every n that moving needs. There is none for 0."""
    tables = _TABLES.tolist()
    crc = 1  # x^31
    powers = [0]
    for _ in range(2 * _LONGEST_PART):
        powers.append(crc)
        crc = tables[7][crc & 255] ^ tables[6][crc >> 8 & 255] ^ tables[5][crc >> 16 & 255] ^ tables[4][crc >> 24]
    return np.array(powers, dtype=np.uint32)


_TABLES = byte_tables(_POLYNOMIAL)
_POWERS = _powers()
_NONE = np.uint32(0)
_ONES = np.uint32(0xFFFFFFFF)


_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)


@emitted
def _word_at(typing_context: Any, buffer: Any, position: Any) -> Any:  # noqa: ARG001
    """The eight bytes at `buffer[position]` as the processor loads them."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.gep(array.data, [arguments[1]])
        pointer = builder.bitcast(place, ir.IntType(64).as_pointer())
        return builder.load(pointer, align=1)

    return types.uint64(buffer, types.int64), generate


@emitted
def _add_word(typing_context: Any, crc: Any, word: Any) -> Any:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        crc, word = arguments
        if INSTRUCTIONS == "arm":
            return call(builder, "llvm.aarch64.crc32cx", _I32, crc, word)
        return builder.trunc(call(builder, "llvm.x86.sse42.crc32.64.64", _I64, builder.zext(crc, _I64), word), _I32)

    return types.uint32(types.uint32, types.uint64), generate


@emitted
def _product(typing_context: Any, left: Any, right: Any) -> Any:  # noqa: ARG001
    """Two polynomials multiplied; of the result the lower 64 bits, which hold all of it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        left, right = (builder.zext(argument, _I64) for argument in arguments)
        pair = ir.VectorType(_I64, 2)
        if INSTRUCTIONS == "arm":
            product = call(builder, "llvm.aarch64.neon.pmull64", ir.VectorType(_I8, 16), left, right)
            return builder.extract_element(builder.bitcast(product, pair), _I32(0))
        first, second = (builder.insert_element(ir.Constant(pair, [0, 0]), side, _I32(0)) for side in (left, right))
        product = call(builder, "llvm.x86.pclmulqdq", pair, first, second, _I8(0))
        return builder.extract_element(product, _I32(0))

    return types.uint64(types.uint32, types.uint32), generate


@kernel
def _with_instructions(buffer: Bytes, start: int, end: int) -> np.uint32:
    crc = _ONES
    position = start
    while end - position >= 8 * _SHORTEST_RUN:
        words = min((end - position) // 24, _LONGEST_PART)
        size = 8 * words
        for ahead in range(position + _AHEAD_BYTES, position + _AHEAD_BYTES + 3 * size, _LINE_BYTES):
            fetch(buffer, ahead)
        second = third = _NONE
        for at in range(position, position + size, 8):
            crc = _add_word(crc, _word_at(buffer, at))
            second = _add_word(second, _word_at(buffer, at + size))
            third = _add_word(third, _word_at(buffer, at + 2 * size))
        moved = _product(crc, _POWERS[2 * words]) ^ _product(second, _POWERS[words])
        crc = third ^ _add_word(_NONE, moved)
        position += 3 * size
    while end - position >= 8:
        crc = _add_word(crc, _word_at(buffer, position))
        position += 8
    for at in range(position, end):
        crc = np.uint32(crc >> np.uint32(8)) ^ _TABLES[0, (crc ^ buffer[at]) & np.uint32(255)]
    return crc ^ _ONES


@kernel
def with_tables(buffer: Bytes, start: int, end: int) -> np.uint32:
    """The same as `crc32c`, on any machine."""
    return sum_by_tables(_TABLES, buffer, start, end)


#: `crc32c(buffer, start, end)`: the CRC-32C of `buffer[start:end]`, an array of uint8; the range must lie within it. A kernel.
crc32c: Checksum = with_tables if INSTRUCTIONS is None else _with_instructions
