"""Numbers as far out as their fields allow, in logs of every kind: each question has an answer, or an error of ours."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import exhume
from exhume.codecs.record_types import decode_record, encode_value
from exhume.errors import EncodeError, ExhumeError
from exhume.topic import OffsetsTopic
from tests import strategies
from tests.written_batches import KeyValue, Written, encode_log

_EXTREMES = (2**63 - 1, -(2**63), 2**31 - 1, -(2**31), 2**15 - 1, -(2**15), 2**7 - 1, -(2**7), -1, 0)
_NOW_MS = 1_700_000_000_000
_GROUP = strategies.GROUPS[0]

_QUESTIONS: tuple[Callable[[OffsetsTopic], Any], ...] = (
    lambda topic: topic.inspect(),
    lambda topic: topic.dump().read_all(),
    lambda topic: topic.annotate().read_all(),
    lambda topic: topic.state(mode="lenient"),
    lambda topic: topic.completeness(topic.state(at_offset=3)),
    lambda topic: topic.state(at_time_ms=_NOW_MS),
    lambda topic: topic.load_check(["2.8.2", "3.7.2-new"]),
    lambda topic: topic.diff(from_offset=2),
    lambda topic: topic.history(_GROUP),
    lambda topic: topic.why(_GROUP, now_ms=_NOW_MS),
    lambda topic: topic.explain(_GROUP),
    lambda topic: topic.expiry(now_ms=_NOW_MS),
    lambda topic: topic.rebalances(),
    lambda topic: topic.owners(),
    lambda topic: topic.assignments(every=True),
    lambda topic: topic.growth(by="hour"),
    lambda topic: topic.transactions(),
    lambda topic: topic.diagnose(),
    lambda topic: topic.reset_plan([_GROUP], taken_back="lost"),
    lambda topic: topic.reset_plan([_GROUP], taken_back="before_rewind"),
)


def _extreme(value: Any, rng: random.Random) -> Any:
    if isinstance(value, dict):
        return {name: _extreme(each, rng) for name, each in value.items()}
    if isinstance(value, list):
        return [_extreme(each, rng) for each in value]
    if isinstance(value, int) and not isinstance(value, bool) and rng.random() < 0.3:
        return rng.choice(_EXTREMES)
    return value


def _with_extremes(record: KeyValue, rng: random.Random) -> KeyValue:
    """The same with some other numbers, where that can be: not every number fits every field."""
    key, value = record
    decoded = decode_record(key, value)
    if decoded.number is None or decoded.value is None or decoded.value_version is None:
        return record
    for _ in range(4):
        with suppress(EncodeError):
            return key, encode_value(decoded.number, decoded.value_version, _extreme(decoded.value, rng))
    return record


def _far_out(log: list[Written], rng: random.Random) -> Iterator[Written]:
    for batch in log:
        records = tuple((place, _with_extremes(record, rng)) for place, record in batch.records)
        yield batch if batch.is_control else replace(batch, records=records)


def _ask_everything(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as directory:
        partition = Path(directory, "__consumer_offsets-0")
        partition.mkdir()
        (partition / f"{0:020}.log").write_bytes(content)
        for ask in _QUESTIONS:
            with exhume.open(directory) as topic, suppress(ExhumeError):
                ask(topic)


@strategies.examples(12)
@given(strategies.any_logs(), st.integers(0, 2**32))
def test_every_question_has_an_answer(log: list[Written], seed: int) -> None:
    content, _ = encode_log([*_far_out(log, random.Random(seed))])
    _ask_everything(content)


@strategies.examples(12)
@given(strategies.any_logs(), st.integers(0, 2**32))
def test_record_offsets_that_no_checksum_covers_may_be_any_number(log: list[Written], seed: int) -> None:
    rng = random.Random(seed)
    written, headers = encode_log(log)
    content = bytearray(written)
    for header in headers:
        if rng.random() < 0.3:
            content[header.byte_position : header.byte_position + 8] = rng.choice(_EXTREMES).to_bytes(8, "big", signed=True)
    _ask_everything(bytes(content))
