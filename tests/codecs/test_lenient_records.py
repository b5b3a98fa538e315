"""As much of records as damage leaves."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhume.codecs.batches import crc_matches, read_batch_header
from exhume.codecs.compression import compress
from exhume.codecs.lenient_records import read_records_leniently
from exhume.codecs.records import read_records
from exhume.errors import DecodeError, DecompressionError, LengthOverrun
from tests.codecs.raw_batches import GOLDEN, T, batch_of, body, entry, read, read_leniently, section, wrapper


@pytest.mark.parametrize("name", GOLDEN)
def test_lenient_reading_of_a_good_batch_is_strict_reading_without_a_problem(name: str) -> None:
    batch = read_batch_header(GOLDEN[name], 0)

    assert read_records_leniently(GOLDEN[name], batch) == (list(read_records(GOLDEN[name], batch)), [])


@pytest.mark.parametrize("count", [0, 1, 3, 1000, -1])
def test_all_records_come_out_leniently_where_the_count_lies(count: int) -> None:
    data = batch_of(section(body(0), body(1)), count=count, last_offset_delta=1)

    found, problems = read_leniently(data)

    assert ([row[0] for row in found], problems) == ([100, 101], ["record_count_lies"])


def test_records_before_a_broken_one_come_out_leniently_and_the_lost_are_counted() -> None:
    data = batch_of(section(body(0), body(1), body(2, headers=b"\x01"), body(3)), count=4, last_offset_delta=3)
    records, problems = read_records_leniently(data, read_batch_header(data, 0))

    assert [record.record_offset for record in records] == [100, 101]
    assert [(problem.code, problem.lost_records) for problem in problems] == [("undecodable_records", 2)]


def test_bytes_behind_the_last_record_cost_no_record_leniently() -> None:
    found, problems = read_leniently(batch_of(section(body(0)) + b"\xff\xff"))

    assert ([row[0] for row in found], problems) == ([100], ["record_count_lies"])


def test_a_cut_batch_gives_its_first_records_leniently_and_none_strictly() -> None:
    data = batch_of(section(*(body(delta) for delta in range(5))), count=5, last_offset_delta=4)[:-20]
    batch = read_batch_header(data, 0)
    records, problems = read_records_leniently(data, batch)

    with pytest.raises(LengthOverrun):
        list(read_records(data, batch))
    assert [record.record_offset for record in records] == [100, 101]
    assert [(problem.code, problem.lost_records) for problem in problems] == [("undecodable_records", 3)]


def test_a_bad_snappy_block_costs_the_records_from_there_on() -> None:
    content = section(*(body(delta, value=b"\xf0\x01" + bytes(120)) for delta in range(600)))
    data = bytearray(batch_of(compress(2, content, magic=2), codec=2, count=600, last_offset_delta=599))
    first_block = int.from_bytes(data[61 + 16 : 61 + 20], "big")
    second = 61 + 16 + 4 + first_block + 4
    data[second : second + 5] = b"\xff" * 5
    records, problems = read_records_leniently(data, read_batch_header(data, 0))

    assert [record.record_offset for record in records] == list(range(100, 100 + len(records)))
    assert 200 < len(records) < 300
    assert [(problem.code, problem.lost_records) for problem in problems] == [("undecodable_records", 600 - len(records))]


def test_what_kafka_alone_refuses_is_read_leniently_and_named() -> None:
    stream = bytearray(compress(3, section(body()), magic=2))
    stream[6] = 0x1A
    data = batch_of(bytes(stream), codec=3)

    with pytest.raises(DecompressionError):
        read(data)
    assert read_leniently(data) == ([(100, T, b"k", b"v")], ["refused_stream"])


def test_an_inner_message_with_a_wrong_checksum_is_loaded_and_marked() -> None:
    bad = bytearray(entry(1, b"b", b"2"))
    bad[-1] = ord("X")
    data = wrapper(11, entry(0, b"a", b"1") + bytes(bad))
    records, problems = read_records_leniently(data, read_batch_header(data, 0))

    assert crc_matches(data, read_batch_header(data, 0))
    assert [record.crc_ok for record in read(data)] == [record.crc_ok for record in records] == [True, False]
    assert [problem.code for problem in problems] == ["inner_crc_mismatch"]


def test_messages_behind_a_broken_one_in_a_wrapper_come_out_leniently() -> None:
    bad = bytearray(entry(1, b"b", b"2"))
    bad[8:12] = bytes(4)
    data = wrapper(12, entry(0, b"a", b"1") + bytes(bad) + entry(2, b"c", b"3"))

    with pytest.raises(DecodeError):
        read(data)
    assert read_leniently(data) == ([(10, T, b"a", b"1"), (12, T, b"c", b"3")], ["undecodable_records"])


@pytest.mark.parametrize("codec", [2, 3])
def test_messages_behind_a_bad_block_of_a_wrapper_come_out_leniently(codec: int) -> None:
    inner = b"".join(entry(delta, b"k", delta.to_bytes(2, "big") * 60) for delta in range(1500))
    data = bytearray(wrapper(1499, inner, codec=codec))
    head = 34 + (16 if codec == 2 else 7)
    word = data[head : head + 4]
    second = head + 4 + (int.from_bytes(word, "big") if codec == 2 else int.from_bytes(word, "little")) + 4
    data[second : second + 5] = b"\xff" * 5
    found, problems = read_leniently(bytes(data))
    offsets = [row[0] for row in found]

    assert offsets[:100] == list(range(100))
    assert offsets[-100:] == list(range(1400, 1500))
    assert 700 < len(offsets) < 1500
    assert set(problems) == {"undecodable_records"}


def test_a_wrapper_that_lost_its_last_message_lies_below_its_own_offset() -> None:
    inner = b"".join(entry(delta, b"k", bytes(40000)) for delta in range(3))
    data = wrapper(12, inner, codec=2)[:-100]
    batch = replace(read_batch_header(data, 0), size_bytes=len(data))
    records, problems = read_records_leniently(data, batch)

    assert [record.record_offset for record in records] == [10, 11]
    assert "uncertain_offsets" in [problem.code for problem in problems]


@given(st.sampled_from(sorted(GOLDEN)), st.data())
def test_damaged_batches_give_records_or_problems_and_never_raise_leniently(name: str, data: st.DataObject) -> None:
    damaged = bytearray(GOLDEN[name])
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(17, len(damaged) - 1))
        damaged[position] = data.draw(st.integers(0, 255))
    cut = bytes(damaged[: data.draw(st.integers(61, max(61, len(damaged))))])
    batch = read_batch_header(damaged, 0)
    records, _ = read_records_leniently(cut, batch, cap_bytes=100_000)

    assert all(-(2**63) <= record.record_offset < 2**63 for record in records)
