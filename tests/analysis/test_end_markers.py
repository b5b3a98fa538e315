"""Which end marker ended each record of a transaction, against reading the log one event after the other."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from exhume.analysis.transaction_outcomes import NO_EPOCH, Ending, EndMarkers, ended_by, ending_of
from exhume.codecs.record_types import ABORT, COMMIT, encode_control_record

_VERSION_0 = b"\0\0"


@pytest.mark.parametrize(
    ("key", "of_others", "of_scala"),
    [
        (_VERSION_0 + b"\0\1", "COMMIT", "COMMIT"),
        (_VERSION_0 + b"\0\0", "ABORT", "ABORT"),
        (_VERSION_0 + b"\0\5", None, "ABORT"),
        (b"\xff\xff\0\1", None, None),
        (b"\0\0\0", None, None),
        (None, None, None),
    ],
)
def test_the_type_of_a_control_record_says_how_it_ends_a_transaction(key: bytes | None, of_others: Ending, of_scala: Ending) -> None:
    assert ending_of(key) == of_others
    assert ending_of(key, every_type_ends=True) == of_scala


@pytest.mark.parametrize("seed", range(20))
def test_the_next_marker_of_its_producer_ends_a_record(seed: int) -> None:
    rng = random.Random(seed)
    events = [(place, rng.choice([-1, 7, 8, 2**62]), rng.random() < 0.3) for place in range(rng.randint(0, 60))]
    staged = [(place, producer) for place, producer, is_marker in events if not is_marker]
    markers = [(place, producer) for place, producer, is_marker in events if is_marker]
    expected = [
        next((number for number, (at, by) in enumerate(markers) if by == producer and at > place), -1) for place, producer in staged
    ]

    assert _ended(staged, markers) == expected


def test_markers_and_records_may_come_in_any_order_since_places_say_which_is_later() -> None:
    assert _ended([(5, 7), (1, 7), (3, 8)], [(9, 7), (2, 7), (4, 8)]) == [0, 1, 2]


def _ended(staged: list[tuple[int, int]], markers: list[tuple[int, int]]) -> list[int]:
    places, producers = (np.array([each[column] for each in staged], np.int64) for column in range(2))
    marker_places, marker_producers = (np.array([each[column] for each in markers], np.int64) for column in range(2))
    found: list[int] = ended_by(producers, places, marker_producers, marker_places).tolist()
    return found


def test_markers_are_read_from_control_records_and_others_are_left_out() -> None:
    commit, value = encode_control_record(COMMIT, {"coordinator_epoch": 5})
    abort, short_value = encode_control_record(ABORT, {"coordinator_epoch": 0})[0], b"\0\0\0"
    controls = pa.RecordBatch.from_pydict(
        {
            "producer_id": [7, 8, None],
            "record_offset": [1, 2, 3],
            "timestamp_ms": [10, 20, None],
            "key": [commit, _VERSION_0 + b"\0\5", abort],
            "value": [value, value, short_value],
        }
    )

    markers = EndMarkers.joined([EndMarkers.of(controls, np.array([4, 5, 6])), EndMarkers.of(controls[:1], np.array([9]))])

    assert len(markers) == 3
    assert (markers.place.tolist(), markers.producer_id.tolist(), markers.record_offset.tolist()) == ([4, 6, 9], [7, -1, 7], [1, 3, 1])
    assert (markers.timestamp_ms.tolist(), markers.is_commit.tolist()) == ([10, -1, 10], [1, 0, 1])
    assert markers.coordinator_epoch.tolist() == [5, NO_EPOCH, 5]


def test_a_marker_of_an_unknown_type_ends_a_transaction_only_on_request() -> None:
    unknown = {"producer_id": [7], "record_offset": [1], "timestamp_ms": [10], "key": [_VERSION_0 + b"\0\5"], "value": [b"\0\0\0\0\0\5"]}
    controls = pa.RecordBatch.from_pydict(unknown)

    assert len(EndMarkers.of(controls, np.array([4]))) == 0
    markers = EndMarkers.of(controls, np.array([4]), every_type_ends=True)
    assert (markers.is_commit.tolist(), markers.coordinator_epoch.tolist()) == ([0], [NO_EPOCH])
