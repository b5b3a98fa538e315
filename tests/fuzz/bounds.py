"""Kernels over hostile bytes, records at any place, and hostile tables; run it with kernels that check each index."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from exhume.codecs.batch_writer import NewRecord, encode_batch
from exhume.codecs.kernels import keys, primitives, records, scan, texts, values
from exhume.codecs.kernels.readers import LEAST_MEMBER_BYTES
from exhume.codecs.record_types import encode_control_record, encode_key, encode_value
from tests.fuzz import hostile_tables, lz4_streams
from tests.written_batches import KeyValue

_ROOT = Path(__file__).resolve().parents[3]
_MEMBER = {
    "member_id": "m-ü",
    "group_instance_id": "i",
    "client_id": "c",
    "client_host": "/h",
    "session_timeout_ms": 30,
    "subscription": b"\0\1",
    "assignment": b"",
}


def _sample(draw: random.Random) -> bytes:
    """A few batches of every version of commits and groups, tombstones and a marker among them."""
    key = {"group": draw.choice(("g", "größe", "")), "topic": "orders", "partition": 3}
    commit = {"committed_offset": 7, "commit_timestamp_ms": 5, "metadata": draw.choice(("", "x" * 20)), "topic_id": None}
    if draw.random() < 0.5:
        commit["topic_id"] = "AQIDBAUGBwgJCgsMDQ4PEA"
    group = {"protocol_type": "consumer", "generation": 3, "protocol": "range", "leader": None, "members": [_MEMBER] * draw.randrange(3)}
    content: list[KeyValue] = [(encode_key(draw.choice((0, 1)), key), encode_value(1, version, commit)) for version in range(4)]
    content.append((encode_key(1, key), encode_value(1, 4, commit)))
    content += [(encode_key(2, key), encode_value(2, version, group)) for version in range(5)]
    content += [(encode_key(1, key), None), (encode_key(2, key), None), (None, b"x")]
    draw.shuffle(content)
    new = [NewRecord(place, 1000 + place, *key_and_value) for place, key_and_value in enumerate(content)]
    marker = [NewRecord(len(new), 0, *encode_control_record(1, {"coordinator_epoch": 0}))]
    return encode_batch(new, base_offset=0) + encode_batch(marker, base_offset=len(new), is_control=True, producer_id=1, producer_epoch=0)


def _mutated(content: bytes, draw: random.Random, count: int) -> npt.NDArray[np.uint8]:
    changed = bytearray(content)
    for _ in range(count):
        changed[draw.randrange(len(changed))] = draw.choice((0, 1, 2, 0x7F, 0x80, 0xFF, draw.randrange(256)))
    if draw.random() < 0.3:
        del changed[draw.randrange(len(changed)) :]
    result = np.frombuffer(bytes(changed) or b"\0", np.uint8)
    assert not result.flags.writeable
    return result


def _decode(buffer: npt.NDArray[np.uint8], found: npt.NDArray[np.int64], met: Counter[str]) -> None:
    """Every kernel over these records, as if all of them were of its type."""
    count = found.shape[1]
    columns = np.empty((keys.COLUMNS, count), np.int64)
    found[records.RECORD_TYPE] = 1
    keys.read_keys(buffer, found, columns)
    commits = np.empty((values.COMMIT_COLUMNS, count), np.int64)
    values.read_commits(buffer, found, commits)
    values.besides_old_commits(buffer, found, 4, np.empty(count, np.int64))
    groups = np.empty((values.GROUP_COLUMNS, count), np.int64)
    room = int((np.maximum(found[records.VALUE_SIZE], 0) // LEAST_MEMBER_BYTES).sum())
    members = np.empty((values.MEMBER_COLUMNS, room), np.int64)
    member_count = values.read_groups(buffer, found, groups, members)
    _copy(buffer, found, [records.KEY_START, records.VALUE_START])
    for table, places in (
        (columns, [keys.GROUP_START, keys.TOPIC_START]),
        (commits, [keys.GROUP_START, keys.TOPIC_START, values.COMMITS["metadata_start"]]),
        (groups, [keys.GROUP_START, *(values.GROUPS[f"{name}_start"] for name in ("protocol_type", "protocol", "leader"))]),
    ):
        _copy(buffer, np.ascontiguousarray(table[:, table[keys.IS_READ] == 1]), places)
    texts_of_members = [place for name, place in values.MEMBERS.items() if name.endswith("_start")]
    _copy(buffer, np.ascontiguousarray(members[:, :member_count]), texts_of_members)
    met.update(records=count, commits=int((commits[keys.IS_READ] == 1).sum()), groups=int((groups[keys.IS_READ] == 1).sum()))
    met.update(members=int(member_count))


def _copy(buffer: npt.NDArray[np.uint8], table: npt.NDArray[np.int64], starts: list[int]) -> None:
    for start in starts:
        sizes = table[start + 1]
        assert ((sizes < 0) | ((table[start] >= 0) & (table[start] + sizes <= len(buffer)))).all()
        offsets, content = np.empty(len(sizes) + 1, np.int32), np.empty(int(np.maximum(sizes, 0).sum()), np.uint8)
        texts.copy_texts(buffer, table[start], sizes, offsets, content)
        assert offsets[-1] == len(content)
        is_there = sizes >= 0
        places, sizes = table[start][is_there], sizes[is_there]
        numbers, firsts = np.empty(len(sizes), np.int32), np.empty(len(sizes), np.int64)
        count = texts.number_texts(buffer, places, sizes, 1, np.full(2 << len(sizes).bit_length(), -1, np.int32), numbers, firsts)
        assert (sizes == sizes[firsts[:count]][numbers]).all()


def fuzz(rounds: int) -> None:
    """Run every kernel over mutated batches and over places anywhere in random bytes."""
    with pytest.raises(IndexError):
        primitives.int16(np.zeros(3, np.uint8), 2)
    draw, met = random.Random(11), Counter[str]()
    rows = np.empty((6, scan.COLUMNS), np.int64)
    columns = np.empty((scan.COLUMNS, 6), np.int64)
    for number in range(rounds):
        buffer = _mutated(_sample(draw) * 2, draw, number % 12)
        count, _ = scan.scan(buffer, 0, len(buffer), number % 2 == 0, rows)
        met["batches in order"] += scan.in_order(rows, count, 0, 1 << 40, -1, columns)
        bodies = rows[:count, [scan.POSITION, scan.POSITION]] + rows[:count, [scan.SIZE, scan.SIZE]]
        bodies[:, 0] = rows[:count, scan.POSITION] + scan.HEADER_BYTES
        found = np.empty((records.COLUMNS, draw.choice((0, 5, 40))), np.int64)
        first = 0
        while first < count:
            done, split = records.split(rows, first, count, buffer, np.ascontiguousarray(bodies), found)
            _decode(buffer, np.ascontiguousarray(found[:, :split]), met)
            first = done + 1
        anywhere = np.zeros((records.COLUMNS, 8), np.int64)
        for at in range(8):
            for start in (records.KEY_START, records.VALUE_START):
                anywhere[start, at] = draw.randrange(len(buffer) + 1)
                anywhere[start + 1, at] = draw.choice((-1, draw.randrange(len(buffer) + 1 - int(anywhere[start, at]))))
        _decode(buffer, anywhere, met)
    for name in ("batches in order", "records", "commits", "groups", "members"):
        assert met[name] > rounds / 10, met
    assert lz4_streams.compare(rounds // 4)["taken"] > rounds / 10
    hostile_tables.compare(rounds)
