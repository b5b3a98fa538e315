"""The index of keys against a dict, and folds whose keys come in every order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exhume.codecs.kernels.types import Number, Words
from exhume.fixtures.log_writer import KeyValue, PartitionWriter, group_metadata, offset_commit, tombstone
from exhume.replay.fold import offset_columns
from exhume.replay.fold.kernels.keys import COLUMNS, Keys, add_key, find_key, hash_of_key
from exhume.replay.fold.kernels.names import move_entries
from exhume.replay.fold.tables import new_tables, with_room
from tests.twins import assert_same_states

_PARTITIONS = st.one_of(st.integers(0, 20), st.integers(-(1 << 31), (1 << 31) - 1))
_KEYS = st.tuples(st.integers(0, 3), st.integers(0, 3), _PARTITIONS)


def _number(keys: Keys, count: Number, key: tuple[Number, Number, Number], seed: Number) -> Number:
    group, topic, partition = key
    key_hash = hash_of_key(group, topic, partition, seed)
    number, slot = find_key(keys, group, topic, partition, key_hash)
    if number >= 0:
        return number
    add_key(keys, count, slot, group, topic, partition, key_hash)
    return count


def _larger(slots: Words) -> Words:
    larger = np.zeros(2 * len(slots), np.uint64)
    move_entries(slots, larger)
    return larger


@settings(deadline=None)
@given(st.lists(_KEYS, max_size=200), st.integers(0, (1 << 62) - 1))
def test_a_key_is_found_again(asked: list[tuple[int, int, int]], seed: int) -> None:
    keys = Keys(np.zeros(8, np.uint64), np.zeros((200, COLUMNS), np.int32))
    known: dict[tuple[int, int, int], int] = {}
    for key in asked:
        if 2 * (len(known) + 1) > len(keys.slots):
            keys = Keys(_larger(keys.slots), keys.rows)
        number = _number(keys, len(known), key, seed)
        assert number == known.setdefault(key, number)
        assert number < len(known)
    assert [_number(keys, -1, key, seed) for key in known] == list(known.values()) == list(range(len(known)))


def test_the_index_of_keys_grows_for_those_that_are_expected_to_an_end() -> None:
    small = with_room(new_tables(7), 100, 100, 1)
    larger, beyond = (with_room(small, 10_000, 100, 1, expected) for expected in (100_000, 1 << 62))

    assert with_room(small, 100, 100, 1, 1 << 62).keys.slots is small.keys.slots
    assert [len(each.keys.slots) for each in (small, larger)] == [256, 1 << 18]
    assert beyond.keys.slots.nbytes == 64 << 20


def test_keys_that_follow_one_another_in_changing_orders(tmp_path: Path) -> None:
    orders = ([0, 1, 2, 3], [3, 2, 1, 0], [0, 0, 2, 2], [-1, -9, 8, 7], [0, 1, 2, 3])
    with PartitionWriter(tmp_path, 0) as log:
        for turn, order in enumerate(orders * 3):
            for group, topic in (("a", "bc"), ("ab", "c"), ("a", "c"), ("", "")):
                log.append([offset_commit(group, topic, each, turn, commit_timestamp_ms=5) for each in order])
            log.append([offset_commit(group, "c", 1, turn, commit_timestamp_ms=5) for group in ("a", "ab", "a")])
            log.append([tombstone(offset_commit("a", "c", turn % 3, 0, commit_timestamp_ms=5))])
            log.roll()
    assert_same_states(tmp_path, ["2.8.2", "4.3.0"])


def test_commits_such_as_most_are_with_others_between_them(tmp_path: Path) -> None:
    def commit(partition: int, turn: int, *, topic: str = "orders", version: int = 3, **fields: object) -> KeyValue:
        return offset_commit("payments", topic, partition, 100 * turn + partition, commit_timestamp_ms=5 + turn, version=version, **fields)

    group = group_metadata("payments", {"protocol_type": "consumer", "generation": 1, "protocol": None, "leader": None, "members": []})
    others: list[list[KeyValue]] = [
        [],
        [commit(2, 0, metadata="m")],
        [commit(2, 0, leader_epoch=7)],
        [commit(2, 0, topic="orderz")],
        [tombstone(commit(2, 0))],
        [group],
        [tombstone(group)],
        [commit(-1, 0)],
        [commit(2, 0, version=version) for version in (0, 1, 2, 4)],
        [commit(2, 0, version=1, expire_timestamp_ms=9)],
    ]
    with PartitionWriter(tmp_path, 0) as log:
        for turn in range(1, 4):
            for between in others:
                log.append([*(commit(partition, turn) for partition in range(3)), *between, *(commit(each, turn) for each in (3, 4, 5))])
            log.roll()
        # Of a group that is no more, its commits are told apart by the first one behind its tombstone.
        log.append([commit(0, 4), commit(1, 4), commit(2, 4), tombstone(group), commit(3, 4), commit(4, 4)])
    assert_same_states(tmp_path, ["2.8.2", "3.7.2", "4.3.0"])


def test_texts_that_are_too_many_for_one_array(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offset_columns, "_MOST_TEXT_BYTES", 40)
    with PartitionWriter(tmp_path, 0) as log:
        for group in ("payments", "mail", "stock"):
            log.append([offset_commit(group, "orders", each, 1, metadata="m" * each, commit_timestamp_ms=5) for each in range(9)])
    assert_same_states(tmp_path)
