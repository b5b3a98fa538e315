from __future__ import annotations

from typing import Any

import pytest

from exhume.codecs.record_filter import RecordFilter
from exhume.codecs.record_types import COMMIT, Decoded, decode_control_record, decode_record, encode_control_record
from exhume.codecs.wire import InvalidUtf8
from exhume.errors import RequestError
from exhume.fixtures.log_writer import KeyValue, group_metadata, offset_commit


def key_of(record: KeyValue) -> Decoded:
    return decode_record(record[0], None)


COMMIT_OF_BILLING = key_of(offset_commit("billing", "orders", 3, 42, commit_timestamp_ms=0))
GROUP_BILLING = key_of(group_metadata("billing", {}))
MARKER = decode_control_record(*encode_control_record(COMMIT, {"coordinator_epoch": 0}))
UNKNOWN = decode_record(b"\x00\x63later", b"\x00\x00")


@pytest.mark.parametrize(
    ("conditions", "accepted"),
    [
        ({}, {"commit", "group", "marker", "unknown"}),
        ({"groups": ["billing", "other"]}, {"commit", "group"}),
        ({"groups": ["other"]}, set()),
        ({"groups": []}, set()),
        ({"topics": ["orders"]}, {"commit"}),
        ({"partitions": [3]}, {"commit"}),
        ({"partitions": [0]}, set()),
        ({"types": ["offset_commit"]}, {"commit"}),
        ({"types": ["1"]}, {"commit"}),
        ({"types": ["2", "offset_commit"]}, {"commit", "group"}),
        ({"types": ["end_txn_marker"]}, {"marker"}),
        ({"types": ["unknown"]}, {"unknown"}),
        ({"types": ["99"]}, {"unknown"}),
        ({"groups": ["billing"], "types": ["group_metadata"]}, {"group"}),
    ],
)
def test_every_condition_must_be_met(conditions: dict[str, Any], accepted: set[str]) -> None:
    wanted = RecordFilter(**conditions)
    candidates = {"commit": COMMIT_OF_BILLING, "group": GROUP_BILLING, "marker": MARKER, "unknown": UNKNOWN}

    assert {name for name, decoded in candidates.items() if wanted.accepts_key(decoded)} == accepted


def test_the_number_of_a_control_record_is_no_record_type() -> None:
    assert MARKER.number == COMMIT == 1
    assert not RecordFilter(types=["1"]).accepts_key(MARKER)


def test_a_name_that_is_no_utf_8_is_found_as_it_is_shown() -> None:
    decoded = key_of(offset_commit(InvalidUtf8(b"caf\xe9"), "t", 0, 1, commit_timestamp_ms=0))

    assert RecordFilter(groups=["caf\ufffd"]).accepts_key(decoded)


@pytest.mark.parametrize(
    ("conditions", "accepted"),
    [
        ({"from_offset": 10}, [10, 11]),
        ({"to_offset": 10}, [9, 10]),
        ({"from_offset": 10, "to_offset": 10}, [10]),
        ({"from_time_ms": 1010}, [10, 11]),
        ({"to_time_ms": 1010}, [9, 10]),
        ({"from_offset": 10, "to_time_ms": 1010}, [10]),
    ],
)
def test_ranges_include_both_ends(conditions: dict[str, Any], accepted: list[int]) -> None:
    wanted = RecordFilter(**conditions)

    assert [offset for offset in (9, 10, 11) if wanted.accepts_position(offset, 1000 + offset)] == accepted


def test_a_record_without_a_time_is_in_no_time_range() -> None:
    assert not RecordFilter(from_time_ms=0).accepts_position(5, None)
    assert not RecordFilter(to_time_ms=2**62).accepts_position(5, None)
    assert RecordFilter(from_offset=5).accepts_position(5, None)


@pytest.mark.parametrize("conditions", [{"from_offset": 9, "to_offset": 8}, {"from_time_ms": 9, "to_time_ms": 8}])
def test_a_range_that_ends_before_it_begins_is_a_wrong_request(conditions: dict[str, int]) -> None:
    with pytest.raises(RequestError, match="ends at 8, before it begins at 9"):
        RecordFilter(**conditions)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["offset_commits", "", "01", "+1", "1.0", "\u0661", "--1", "OFFSET_COMMIT"])
def test_a_type_that_there_is_not_lists_those_there_are(name: str) -> None:
    with pytest.raises(RequestError, match="offset_commit"):
        RecordFilter(types=[name])


@pytest.mark.parametrize("condition", ["groups", "topics", "types"])
def test_one_name_is_not_taken_for_a_collection_of_letters(condition: str) -> None:
    with pytest.raises(RequestError, match=rf"Write {condition}=\['billing'\]"):
        RecordFilter(**{condition: "billing"})  # type: ignore[arg-type]


def test_only_conditions_on_the_key_need_the_key() -> None:
    assert not RecordFilter(from_offset=1, to_time_ms=2, offsets_partitions=[3]).needs_key
    assert RecordFilter(groups=[]).needs_key
