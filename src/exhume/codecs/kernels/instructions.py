"""Instructions of the processor that no expression stands for, for kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

#: How many bytes are compared in one go.
RUN_BYTES = 32
_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)


def emitted(function: Callable[..., Any]) -> Callable[..., Any]:
    """An operation for kernels; `function` writes the instructions for it."""
    return cast("Callable[..., Any]", intrinsic(function))


def call(builder: Any, name: str, result: Any, *arguments: Any) -> Any:
    """Write the call of a function that the compiler knows by this name."""
    function_type = ir.FunctionType(result, [argument.type for argument in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, function_type, name), arguments)  # type: ignore[no-untyped-call]


@emitted
def fetch(typing_context: Any, array: Any, place: Any) -> Any:  # noqa: ARG001
    """Have the processor fetch the line of an array's element soon; `place` is its number, rows counted through. It may lie behind the end:
    then nothing is fetched.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target = context.make_array(signature.args[0])(context, builder, arguments[0])
        line = builder.bitcast(builder.gep(target.data, [arguments[1]]), _I8.as_pointer())
        # To read, into the nearest cache, as data.
        call(builder, "llvm.prefetch.p0i8", ir.VoidType(), line, _I32(0), _I32(3), _I32(1))
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


@emitted
def touch(typing_context: Any, array: Any, place: Any) -> Any:  # noqa: ARG001
    """Read a byte of an array of bytes, for the sake of reading it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target = context.make_array(signature.args[0])(context, builder, arguments[0])
        # A plain one the compiler leaves out, since nothing comes of it.
        builder.load_atomic(builder.gep(target.data, [arguments[1]]), "monotonic", 1)
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


# The compiler compares word by word, with a branch for each, where it is told to compare `RUN_BYTES`.

_RUN = ir.IntType(8 * RUN_BYTES)


def _load_run(context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
    place = builder.gep(context.make_array(kind)(context, builder, array).data, [at])
    words = ir.VectorType(_I64, RUN_BYTES // 8)
    return builder.load(builder.bitcast(place, words.as_pointer()), align=1)


def _is_zero(builder: Any, words: Any) -> Any:
    return builder.icmp_unsigned("==", builder.bitcast(words, _RUN), _RUN(0))


@emitted
def are_equal(typing_context: Any, left: Any, left_at: Any, right: Any, right_at: Any) -> Any:  # noqa: ARG001
    """True when `RUN_BYTES` of two arrays of bytes are equal."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        left, left_at, right, right_at = arguments
        left_run = _load_run(context, builder, signature.args[0], left, left_at)
        right_run = _load_run(context, builder, signature.args[2], right, right_at)
        return _is_zero(builder, builder.xor(left_run, right_run))

    return types.boolean(left, types.int64, right, types.int64), generate


@emitted
def is_ascii(typing_context: Any, buffer: Any, at: Any) -> Any:  # noqa: ARG001
    """True when `RUN_BYTES` of an array are all below 0x80."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        run = _load_run(context, builder, signature.args[0], *arguments)
        return _is_zero(builder, builder.and_(run, ir.Constant(run.type, [0x8080808080808080] * (RUN_BYTES // 8))))

    return types.boolean(buffer, types.int64), generate
