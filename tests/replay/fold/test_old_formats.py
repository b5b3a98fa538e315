"""Logs that brokers before 0.11 began, in formats 0 and 1: loaded in columns as they are record by record."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from exhume.codecs.batches import Batch, BatchWalk, checksum
from exhume.fixtures.log_writer import KeyValue, PartitionWriter, group_metadata, offset_commit, tombstone
from tests.twins import CompiledLoads, assert_same_histories, assert_same_states, assert_same_tables

_RELEASES = ("0.11.0.3", "2.0.0", "2.8.2", "3.7.2-new", "4.3.0")
_LOADS = 2 * len(_RELEASES)


def _commit(group: str, partition: int, number: int, **fields: Any) -> KeyValue:
    return offset_commit(group, "orders", partition, number, commit_timestamp_ms=5, version=1, metadata="größe" * (number % 3), **fields)


def _write(directory: Path, magics: Sequence[int], extra: Sequence[KeyValue] = (), *, codec: int = 0, rolls: bool = True) -> Path:
    """Some commits, groups and tombstones in each of these formats, `extra` in the middle of each; the first or the second segment."""
    with PartitionWriter(directory, 0) as log:
        for place, magic in enumerate(magics):
            if rolls and place:
                log.roll()
            for number in range(8):
                group = group_metadata(f"g{number % 3}", {"protocol_type": "", "generation": number}, version=number % 2)
                log.append(
                    [_commit(f"g{number % 3}", each, number) for each in range(number % 4)] or [group], timestamp_ms=number, magic=magic
                )
                if number == 4:
                    middle = [_commit("mid", 0, 1), *extra, _commit("mid", 1, 2)]
                    log.append(middle, timestamp_ms=7, magic=magic, codec=codec)
            log.append([tombstone(group), tombstone(_commit("g1", 0, 0)), (b"\0\1\0\2h\xff", None)], timestamp_ms=None, magic=magic)
    return sorted(directory.rglob("*.log"))[:2][-1]


@pytest.mark.one_of(3)
@pytest.mark.parametrize("rolls", [False, True])
@pytest.mark.parametrize("magics", [(0,), (1,), (0, 1), (0, 1, 2), (2, 1, 2)])
def test_messages_and_what_was_written_behind_them(magics: tuple[int, ...], rolls: bool, tmp_path: Path, compiled: CompiledLoads) -> None:
    _write(tmp_path, magics, rolls=rolls)

    for asked in ({"groups": ["g1"]}, {"at_offset": {0: 9}}, {"at_time_ms": 4}, {"at_time_ms": 9}):
        assert_same_states(tmp_path, ("2.8.2", "4.3.0"), asked=asked)
    assert_same_tables(tmp_path)
    assert assert_same_histories(tmp_path, ["g0", "g1"], "4.3.0", 2)
    before = compiled.count
    assert_same_states(tmp_path, _RELEASES)

    assert compiled.count - before == _LOADS


@pytest.mark.one_of(4)
@pytest.mark.parametrize("codec", [1, 2, 3])
@pytest.mark.parametrize("magics", [(0,), (1,), (0, 1, 2)])
def test_compressed_messages_are_read_by_plain_code(magics: tuple[int, ...], codec: int, tmp_path: Path, compiled: CompiledLoads) -> None:
    group = group_metadata("mid", {"protocol_type": "", "generation": 1}, version=0)
    _write(tmp_path, magics, [group, (b"\0\1\0\0\0\0\0\0\0\0more", None), (None, b"")][: codec + 1], codec=codec)

    assert_same_states(tmp_path, _RELEASES)
    assert compiled.count >= _LOADS // 2
    assert_same_tables(tmp_path)


def _middle_message(content: bytearray) -> Batch:
    return next(batch for batch in BatchWalk(content) if b"mid" in content[batch.byte_position : batch.end_position])


@pytest.mark.one_of(5)
@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("place", [0, 8, 11, 12, 16, 17, 18, 25, 26, 34, 40, -1])
def test_a_message_in_which_a_bit_flipped(place: int, magic: int, tmp_path: Path, compiled: CompiledLoads) -> None:
    path = _write(tmp_path, (magic, magic, magic))
    content = bytearray(path.read_bytes())
    batch = _middle_message(content)
    content[batch.byte_position + place if place >= 0 else batch.end_position - 1] ^= 1
    path.write_bytes(content)

    for stop in ("clean", "unclean"):
        assert_same_states(tmp_path, ("2.0.0", "4.3.0"), asked={"stop": stop})
    assert_same_tables(tmp_path)
    assert compiled.count > 0


@pytest.mark.one_of(5)
@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("sizes", [(-1, 5), (-2, 0), (1 << 30, 0), (2, -7), (2, 1 << 30), (2, 3)])
def test_lengths_that_do_not_fill_a_message_whose_checksum_matches(
    sizes: tuple[int, int], magic: int, tmp_path: Path, compiled: CompiledLoads
) -> None:
    path = _write(tmp_path, (magic, magic, magic))
    content = bytearray(path.read_bytes())
    batch = _middle_message(content)
    key_at = batch.byte_position + (18 if magic == 0 else 26)
    struct.pack_into(">i", content, key_at, sizes[0])
    if 0 <= sizes[0] < 10 or sizes[0] == -1:
        struct.pack_into(">i", content, key_at + 4 + max(sizes[0], 0), sizes[1])
    struct.pack_into(">I", content, batch.byte_position + 12, checksum(content, batch, batch.end_position))
    path.write_bytes(content)

    assert_same_states(tmp_path, _RELEASES)
    assert compiled.count > 0
    assert_same_tables(tmp_path)


def test_attributes_that_no_broker_wrote(tmp_path: Path) -> None:
    for number, (magic, attributes) in enumerate([(0, 8), (1, 8), (1, 16), (1, 32), (1, 48), (0, 64), (1, 7)]):
        path = _write(tmp_path / str(number), (magic, magic))
        content = bytearray(path.read_bytes())
        batch = _middle_message(content)
        content[batch.byte_position + 17] = attributes
        struct.pack_into(">I", content, batch.byte_position + 12, checksum(content, batch, batch.end_position))
        path.write_bytes(content)

        assert_same_states(tmp_path / str(number), ("2.0.0", "4.3.0"))
        assert_same_tables(tmp_path / str(number))
