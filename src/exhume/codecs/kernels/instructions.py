"""Instructions of the processor that no expression stands for, for kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_I8, _I32 = ir.IntType(8), ir.IntType(32)


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
