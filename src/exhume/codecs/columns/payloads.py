"""Numbers for the payloads of members: the members of a group mostly send the same bytes, in every generation again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_Read = TypeVar("_Read")
#: Protocol type and protocol of a group.
Protocol = tuple[str | None, str | None]
Int32s = npt.NDArray[np.int32]


class PayloadNumbers(Generic[_Read]):
    """Payloads numbered in the order of their first occurrence, and decoded once for each protocol."""

    def __init__(self, read: Callable[[str | None, str | None, bytes], _Read]) -> None:
        self._read: Callable[[str | None, str | None, bytes], _Read] = read
        self.values: list[_Read] = []
        self._numbers: dict[Protocol, dict[bytes, int]] = {}

    def numbers(self, column: pa.Array, protocols: Sequence[Protocol], of_member: npt.NDArray[np.signedinteger]) -> Int32s:
        """Return the number of each payload. `of_member` gives the place of its protocol in `protocols`."""
        encoded = column.dictionary_encode()
        different, places = encoded.dictionary.to_pylist(), encoded.indices.to_numpy()
        codes = pa.array(of_member.astype(np.int64) * max(len(different), 1) + places).dictionary_encode()
        known = [self._numbers.setdefault(protocol, {}) for protocol in protocols]
        found: list[int] = []
        for code in codes.dictionary.to_pylist():
            by, place = divmod(code, len(different))
            number = known[by].get(different[place])
            if number is None:
                number = known[by][different[place]] = len(self.values)
                protocol_type, protocol = protocols[by]
                self.values.append(self._read(protocol_type, protocol, different[place]))
            found.append(number)
        numbers: Int32s = np.array(found, np.int32)[codes.indices.to_numpy()]
        return numbers
