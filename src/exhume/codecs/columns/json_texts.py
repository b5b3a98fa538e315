"""Make JSON objects of the fields that kernels read, as `json_values.to_json` does, for texts that need no escapes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from exhume.codecs.columns.arrow import bits
from exhume.codecs.kernels import json_texts
from exhume.codecs.kernels.json_texts import LITERAL, NUMBER, READY, TEXT, UUID
from exhume.codecs.kernels.types import Bytes, Int32s, Int64s
from exhume.codecs.layout import STRING, Struct

#: A step: its kind and a row of `fields`, or the characters of a literal.
Step = tuple[int, int] | str

NOTHING_READY = np.zeros(1, np.uint8)


def object_steps(struct: Struct, version: int, places: Mapping[str, Sequence[Step]]) -> list[Step]:
    """Return the steps for an object of the fields that this struct has in this version; `places` has the steps of each field."""
    steps: list[Step] = []
    for field in struct.fields:
        if field.is_in(version):
            steps += [f'{"," if steps else "{"}"{field.name}":', *places[field.name]]
    return [*steps, "}"]


def field_steps(struct: Struct, places: Mapping[str, int]) -> dict[str, Sequence[Step]]:
    """Return the steps of each text, id and number of this struct; `places` has the rows of `fields`, named as in `kernels.readers`."""
    found: dict[str, Sequence[Step]] = {}
    for field in struct.fields:
        start = f"{field.name}_start"
        if field.name in places:
            found[field.name] = [(NUMBER, places[field.name])]
        elif start in places:
            found[field.name] = [(TEXT if field.type is STRING else UUID, places[start])]
    return found


def text_starts(struct: Struct, places: Mapping[str, int]) -> list[int]:
    """Return the rows of `fields` with the starts of the texts of this struct."""
    starts = [f"{field.name}_start" for field in struct.fields if field.type is STRING]
    return [places[start] for start in starts if start in places]


class Texts:
    """Writes texts by lists of steps. `choices` of `write` are numbers of these lists."""

    def __init__(self, lists: Iterable[Sequence[Step]]) -> None:
        rows: list[tuple[int, int, int]] = []
        borders, literals = [0], bytearray()
        #: For each list: the most bytes that it writes besides texts, and the rows of `fields` with the sizes of its texts.
        self._most_bytes: list[int] = []
        self._sizes: list[list[int]] = []
        for steps in lists:
            most_bytes, sizes = 0, list[int]()
            for step in steps:
                if isinstance(step, str):
                    rows.append((LITERAL, len(literals), len(step)))
                    literals += step.encode("ascii")
                    most_bytes += len(step)
                else:
                    rows.append((*step, 0))
                    most_bytes += json_texts.MOST_BYTES
                    if step[0] in (TEXT, READY):
                        sizes.append(step[1] + 1)
            borders.append(len(rows))
            self._most_bytes.append(most_bytes)
            self._sizes.append(sizes)
        self._steps = np.array(rows, np.int64)
        self._lists = np.array([borders[:-1], borders[1:]], np.int64).T.copy()
        self._literals = np.frombuffer(bytes(literals), np.uint8)

    def write(self, choices: Int64s, fields: Int64s, data: Bytes, ready: Bytes = NOTHING_READY) -> tuple[Int32s, Bytes]:
        """Return the start of each text and the end of the last one, and the bytes of all texts; null texts are empty."""
        room = 0
        for number, (most_bytes, sizes) in enumerate(zip(self._most_bytes, self._sizes, strict=True)):
            chosen = np.flatnonzero(choices == number)
            room += len(chosen) * most_bytes + sum(int(np.maximum(fields[size, chosen], 0).sum()) for size in sizes)
        offsets, content = np.empty(len(choices) + 1, np.int32), np.empty(room, np.uint8)
        used = json_texts.write_texts(choices, self._lists, self._steps, self._literals, fields, data, ready, offsets, content)
        assert used >= 0
        return offsets, content[:used]

    def column(self, choices: Int64s, fields: Int64s, data: Bytes, ready: Bytes = NOTHING_READY) -> pa.Array:
        """Return the texts as an array of strings, null where the choice is `NULL_ROW`."""
        offsets, content = self.write(choices, fields, data, ready)
        is_valid = choices != json_texts.NULL_ROW
        validity = None if is_valid.all() else bits(is_valid)
        return pa.Array.from_buffers(pa.string(), len(choices), [validity, pa.py_buffer(offsets), pa.py_buffer(content)])
