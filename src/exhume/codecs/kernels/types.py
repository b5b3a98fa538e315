"""The types of values in kernels: numbers, arrays with one dimension, arrays with rows, and several arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

#: A number: an int64 in machine code.
Number = Any

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]
Int16s = npt.NDArray[np.int16]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

# Arrays with two dimensions. `array[row]` is the row itself: a kernel may change it.
Rows = Annotated[npt.NDArray[np.int64], "rows"]
Int32Rows = Annotated[npt.NDArray[np.int32], "rows"]
UInt32Rows = Annotated[npt.NDArray[np.uint32], "rows"]

#: Any number of arrays of bytes, of any sizes.
ByteArrays = Sequence[npt.NDArray[np.uint8]]

#: The names of the arrays above.
ARRAYS = ("Bytes", "Floats", "Int16s", "Int32s", "Int64s", "Words", "Rows", "Int32Rows", "UInt32Rows", "ByteArrays")
