"""Texts that a kernel writes, against the plain ones."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import numpy as np

from exhume.codecs.columns.json_texts import Texts
from exhume.codecs.kernels import json_texts
from exhume.codecs.kernels.json_texts import NULL_ROW, NUMBER, READY, TEXT, UUID
from exhume.codecs.kernels.texts import find_escapes
from exhume.codecs.wire import format_uuid

_LEAST, _GREATEST = -(1 << 63), (1 << 63) - 1


def fields_of(*rows: list[int]) -> Any:
    return np.array(rows, np.int64)


def bytes_of(content: bytes) -> Any:
    return np.frombuffer(content, np.uint8)


def test_every_number_of_digits() -> None:
    numbers = [
        0,
        -1,
        _LEAST,
        _LEAST + 1,
        _GREATEST,
        *(sign * (10**power + more) for power in range(19) for more in (-1, 0) for sign in (1, -1)),
    ]
    column = Texts([[(NUMBER, 0)]]).column(np.zeros(len(numbers), np.int64), fields_of(numbers), bytes_of(b"\0"))

    assert column.to_pylist() == [str(number) for number in numbers]


def test_uuids_as_kafka_prints_them() -> None:
    raws = [bytes(15) + b"\1", b"\xff" * 16, bytes(16), *(Random(number).randbytes(16) for number in range(50))]
    places = [16 * number for number in range(len(raws))]
    column = Texts([[(UUID, 0)]]).column(np.zeros(len(raws) + 1, np.int64), fields_of([*places, -1]), bytes_of(b"".join(raws)))

    assert [json.loads(text) for text in column.to_pylist()] == [*(format_uuid(raw) if any(raw) else None for raw in raws), None]


def test_texts_nulls_and_lists_of_steps() -> None:
    data, ready = "größeorders".encode(), b"[1]{}"
    texts = Texts([['{"a":', (TEXT, 0), ',"b":', (READY, 2), "}"], ["-"]])
    fields = fields_of([0, 7, 0, 0], [7, 6, -1, 0], [0, 3, 0, 0], [3, 2, -1, 0])
    column = texts.column(np.array([0, 0, 0, 1]), fields, bytes_of(data), bytes_of(ready))
    column.validate(full=True)

    assert column.to_pylist() == ['{"a":"größe","b":[1]}', '{"a":"orders","b":{}}', '{"a":null,"b":null}', "-"]
    assert texts.column(np.array([NULL_ROW, 1]), fields[:, :2], bytes_of(data)).to_pylist() == [None, "-"]


def test_what_there_is_no_room_for_is_not_written() -> None:
    steps, literals, lists = np.array([[TEXT, 0, 0]]), bytes_of(b"\0"), np.array([[0, 1]])
    offsets = np.empty(2, np.int32)
    for room in range(json_texts.MOST_BYTES + 4):
        content = np.zeros(room, np.uint8)
        written = json_texts.write_texts(
            np.zeros(1, np.int64), lists, steps, literals, fields_of([0], [4]), bytes_of(b"text"), literals, offsets, content
        )
        assert written == -1, room


def test_every_character_that_json_escapes_is_found_wherever_it_stands() -> None:
    for byte in range(256):
        for place in range(20):
            text = b"a" * place + bytes([byte]) + b"\xc3\xbf" * 4
            found = np.zeros(1, np.int64)
            find_escapes(bytes_of(text), np.zeros(1, np.int64), np.array([len(text)]), found)
            assert bool(found[0]) == (byte < 0x20 or byte in b'"\\'), (byte, place)


def test_nobody_looks_at_the_place_of_a_null() -> None:
    # It may be anything, so a place from which a step back leads to the other end of the numbers, too.
    found = np.zeros(4, np.int64)
    find_escapes(bytes_of(b'"' * 16), np.array([_LEAST, _LEAST, _GREATEST, _GREATEST]), np.array([-1, 0, -1, 0]), found)

    assert not found.any()
