"""JSON texts that need no change, against a JSON reader and writer."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from exhume.cli.arrow_json import dump
from exhume.codecs.kernels.plain_json import find_other_json
from tests.cli.one_by_one import JSON_TEXTS
from tests.strategies import times

_WORDS = ["a", "group", "x" * 7, "x" * 8, "x" * 17, 'say "x"', "back\\slash", "line\nend\t", "consumer-1"]


def others(texts: list[str]) -> list[bool]:
    """Return True for each text that is not plain."""
    array = pa.array([None, "before", *texts], pa.string()).slice(2)
    _, offsets, content = array.buffers()
    found = np.full(len(texts), 9, np.uint8)
    count = find_other_json(np.frombuffer(offsets, np.int32, len(texts) + 1, 8), np.frombuffer(content, np.uint8), found)
    assert count == found.sum()
    return [bool(each) for each in found]


def rewritten(text: str) -> str | None:
    """Return the text that a writer gives for the same value; None if it is no JSON."""
    try:
        return dump(json.loads(text, parse_constant=lambda _: None))
    except (ValueError, RecursionError):
        return None


def repeats_a_name(text: str) -> bool:
    repeats = False

    def look(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeats
        repeats = repeats or len(dict(pairs)) < len(pairs)
        return dict(pairs)

    json.loads(text, object_pairs_hook=look)
    return repeats


def value(draw: Random, depth: int) -> Any:
    kind = draw.randrange(8 if depth else 5)
    if kind == 0:
        return draw.choice((None, True, False))
    if kind < 3:
        return draw.choice((0, 9, -1, 10**8, -(1 << 63), 1 << 64))
    if kind < 5:
        return draw.choice(_WORDS)
    values = [value(draw, depth - 1) for _ in range(draw.randrange(4))]
    return values if kind == 5 else {f"{draw.choice(_WORDS)}{number}": each for number, each in enumerate(values)}


def test_what_a_writer_writes_is_plain() -> None:
    draw = Random(1)
    texts = [json.dumps(value(draw, 4), separators=(",", ":")) for _ in range(times(2000))]

    assert not any(others(texts))


def test_a_plain_text_is_what_a_writer_writes() -> None:
    draw = Random(2)
    texts = list(JSON_TEXTS)
    for _ in range(times(5000)):
        changed = list(json.dumps(value(draw, 3), separators=(",", ":")))
        for _ in range(draw.randrange(1, 3)):
            at = draw.randrange(len(changed))
            changed[at : at + draw.randrange(2)] = draw.choice('{}[]:,"\\ 0-1.eEtn/u\x7f\x1fü')
        texts.append("".join(changed))

    plain = [text for text, is_other in zip(texts, others(texts), strict=True) if not is_other]

    assert len(plain) > len(texts) / 20
    for text in plain:
        assert rewritten(text) == text or repeats_a_name(text)
