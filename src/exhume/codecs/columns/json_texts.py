"""Objects of JSON from the fields that kernels read: what `json_values.to_json` makes of them, for texts that need no escape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from exhume.codecs.columns.arrow import bits
from exhume.codecs.kernels import json_texts
from exhume.codecs.kernels.json_texts import LITERAL, READY, TEXT
from exhume.codecs.kernels.types import Bytes, Int32s, Int64s
from exhume.codecs.layout import Struct

#: A step, or the characters of a literal: kind and row of `fields`.
Step = tuple[int, int] | str

NOTHING_READY = np.zeros(1, np.uint8)


def object_steps(struct: Struct, version: int, places: Mapping[str, Sequence[Step]]) -> list[Step]:
    """The steps for an object of the fields that this struct has in this version; `places` says for each what writes it."""
    steps: list[Step] = []
    for field in struct.fields:
        if field.is_in(version):
            steps += [f'{"," if steps else "{"}"{field.name}":', *places[field.name]]
    return [*steps, "}"]


class Texts:
    """Texts that are made by lists of steps; `choices` of `write` are their numbers."""

    def __init__(self, lists: Iterable[Sequence[Step]]) -> None:
        rows: list[tuple[int, int, int]] = []
        borders, literals = [0], bytearray()
        #: Of each list: what it writes at most besides texts, and the sizes of these, as rows of `fields`.
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
        """Where each text begins (and the end), and all of them; null texts are empty."""
        room = 0
        for number, (most_bytes, sizes) in enumerate(zip(self._most_bytes, self._sizes, strict=True)):
            chosen = np.flatnonzero(choices == number)
            room += len(chosen) * most_bytes + sum(int(np.maximum(fields[size, chosen], 0).sum()) for size in sizes)
        offsets, content = np.empty(len(choices) + 1, np.int32), np.empty(room, np.uint8)
        used = json_texts.write_texts(choices, self._lists, self._steps, self._literals, fields, data, ready, offsets, content)
        assert used >= 0
        return offsets, content[:used]

    def column(self, choices: Int64s, fields: Int64s, data: Bytes, ready: Bytes = NOTHING_READY) -> pa.Array:
        """The texts as an array of strings, null where `choices` says so."""
        offsets, content = self.write(choices, fields, data, ready)
        is_there = choices != json_texts.NULL_ROW
        validity = None if is_there.all() else bits(is_there)
        return pa.Array.from_buffers(pa.string(), len(choices), [validity, pa.py_buffer(offsets), pa.py_buffer(content)])
