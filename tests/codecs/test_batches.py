"""Headers, checksums, Kafka's walk and the search for headers."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhume.codecs.batch_search import BatchSearch, is_plausible, plausible_positions
from exhume.codecs.batch_writer import NewRecord, encode_batch
from exhume.codecs.batches import BatchWalk, crc_matches, read_batch_header
from exhume.errors import DecodeError, Underflow, UnknownVersion
from tests.codecs.raw_batches import GOLDEN, T


def batch_at(offset: int, *, magic: int = 2, codec: int = 0) -> bytes:
    return encode_batch([NewRecord(offset, T, b"key", b"value")], base_offset=offset, magic=magic, codec=codec)


@pytest.mark.parametrize("name", GOLDEN)
def test_every_batch_of_kafka_is_read_to_its_last_byte_and_has_a_matching_checksum(name: str) -> None:
    batch = read_batch_header(GOLDEN[name], 0)

    assert (batch.size_bytes, crc_matches(GOLDEN[name], batch)) == (len(GOLDEN[name]), True)


@pytest.mark.parametrize("name", GOLDEN)
def test_every_flipped_bit_behind_the_magic_breaks_the_checksum(name: str) -> None:
    data = GOLDEN[name]
    for bit in range(17 * 8, len(data) * 8):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        assert not crc_matches(flipped, read_batch_header(flipped, 0))


def test_a_checksum_of_a_cut_batch_never_matches() -> None:
    data = GOLDEN["v2-two"]

    assert not crc_matches(data[:-1], read_batch_header(data, 0))


def test_header_of_a_transactional_batch() -> None:
    batch = read_batch_header(GOLDEN["v2-txn"], 0)

    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (1000, 3, 0)
    assert (batch.is_transactional, batch.is_control, batch.partition_leader_epoch) == (True, False, 5)


def test_header_of_an_end_transaction_marker() -> None:
    batch = read_batch_header(GOLDEN["v2-commit"], 0)

    assert (batch.is_transactional, batch.is_control, batch.base_sequence, batch.size_bytes) == (True, True, -1, 78)


def test_a_delete_horizon_stands_in_the_field_of_the_base_timestamp() -> None:
    batch = read_batch_header(GOLDEN["v2-horizon"], 0)

    assert (batch.base_offset, batch.last_offset, batch.record_count) == (20, 22, 1)
    assert (batch.base_timestamp_ms, batch.delete_horizon_ms) == (None, 1_600_087_400_000)


def test_an_empty_batch_keeps_its_offsets_and_has_no_base_timestamp() -> None:
    batch = read_batch_header(GOLDEN["v2-empty"], 0)

    assert (batch.base_offset, batch.last_offset, batch.record_count, batch.size_bytes) == (30, 31, 0, 61)
    assert (batch.base_timestamp_ms, batch.max_timestamp_ms) == (None, T + 1)


def test_a_wrapper_knows_its_last_offset_only() -> None:
    batch = read_batch_header(GOLDEN["v1-gz-compacted"], 0)

    assert (batch.base_offset, batch.last_offset, batch.record_count, batch.codec) == (None, 43, None, 1)


def test_format_0_has_no_timestamp() -> None:
    batch = read_batch_header(GOLDEN["v0-kv"], 0)

    assert (batch.timestamp_type, batch.max_timestamp_ms, batch.base_offset, batch.record_count) == ("NoTimestampType", None, 0, 1)


def test_a_log_append_time_is_told_by_its_bit() -> None:
    batch = read_batch_header(GOLDEN["v1-lat"], 0)

    assert (batch.timestamp_type, batch.max_timestamp_ms) == ("LogAppendTime", T + 99_999)


def test_unused_attribute_bits_change_nothing_but_the_attributes() -> None:
    data = bytearray(batch_at(0))
    data[21] = 0x7F

    batch = read_batch_header(data, 0)

    assert (batch.attributes, batch.codec, batch.is_transactional) == (0x7F00, 0, False)


def test_last_offset_wraps_as_a_java_long_does() -> None:
    data = bytearray(encode_batch([], base_offset=0, last_offset_delta=5))
    data[:8] = (2**63 - 1).to_bytes(8, "big")

    assert read_batch_header(data, 0).last_offset == -(2**63) + 4


def test_two_batches_that_differ_in_base_offset_only_have_one_checksum() -> None:
    first, second = batch_at(7), batch_at(8)

    assert read_batch_header(first, 0).crc == read_batch_header(second, 0).crc


@pytest.mark.parametrize("size", [-1, 0, 13, 48])
def test_a_size_too_small_for_the_format_is_no_header(size: int) -> None:
    data = bytearray(batch_at(0))
    struct.pack_into(">i", data, 8, size)

    with pytest.raises(DecodeError):
        read_batch_header(data, 0)


@pytest.mark.parametrize("magic", [3, 5, 127, 255])
def test_a_magic_above_2_or_below_0_is_an_unknown_version(magic: int) -> None:
    data = bytearray(batch_at(0))
    data[16] = magic

    with pytest.raises(UnknownVersion):
        read_batch_header(data, 0)


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_a_cut_header_underflows_at_every_length(magic: int) -> None:
    data = batch_at(0, magic=magic)
    for length in range({0: 26, 1: 34, 2: 61}[magic]):
        with pytest.raises(Underflow):
            read_batch_header(data[:length], 0)


# --- The walk


def ends_of_walk(data: bytes, end: int | None = None) -> tuple[list[int], int, str]:
    batches = BatchWalk(data, 0, end)
    offsets = [batch.last_offset for batch in batches]
    assert batches.end is not None
    return offsets, batches.end.byte_position, batches.end.reason


TWO = batch_at(0) + batch_at(1)


def test_a_walk_over_all_three_formats_ends_at_the_end() -> None:
    data = batch_at(0, magic=0) + batch_at(1, magic=1) + batch_at(2)

    assert ends_of_walk(data) == ([0, 1, 2], len(data), "end")


def test_a_walk_over_nothing_ends_at_once() -> None:
    assert ends_of_walk(b"") == ([], 0, "end")


def test_the_end_is_unknown_before_the_walk_is_over() -> None:
    batches = BatchWalk(TWO)
    next(batches)

    assert batches.end is None


@pytest.mark.parametrize("size", [1, 17])
def test_a_tail_of_up_to_17_bytes_ends_a_walk_quietly(size: int) -> None:
    assert ends_of_walk(TWO + bytes(size)) == ([0, 1], len(TWO), "short_tail")


def test_18_zero_bytes_are_a_batch_with_an_impossible_size() -> None:
    assert ends_of_walk(TWO + bytes(18)) == ([0, 1], len(TWO), "size_too_small")


def test_a_cut_batch_ends_a_walk() -> None:
    assert ends_of_walk(TWO[:-1]) == ([0], len(TWO) // 2, "cut_batch")


def test_a_size_that_leads_beyond_the_end_hides_what_follows() -> None:
    data = bytearray(TWO)
    struct.pack_into(">i", data, 8, 2**31 - 1)

    assert ends_of_walk(bytes(data)) == ([], 0, "cut_batch")


@pytest.mark.parametrize("magic", [5, 255])
def test_a_magic_that_no_format_has_ends_a_walk(magic: int) -> None:
    data = bytearray(TWO)
    data[len(TWO) // 2 + 16] = magic

    assert ends_of_walk(bytes(data)) == ([0], len(TWO) // 2, "bad_magic")


def test_a_size_between_14_and_the_header_of_its_format_ends_a_walk() -> None:
    data = bytearray(TWO)
    struct.pack_into(">i", data, 8, 30)

    assert ends_of_walk(bytes(data)) == ([], 0, "size_too_small")


def test_a_walk_keeps_within_its_bounds() -> None:
    batches = BatchWalk(TWO + TWO, len(TWO) // 2, len(TWO))

    assert [batch.byte_position for batch in batches] == [len(TWO) // 2]


@given(st.binary(max_size=400))
def test_a_walk_over_any_bytes_ends_with_a_reason(data: bytes) -> None:
    batches = BatchWalk(data)
    for batch in batches:
        assert batch.end_position <= len(data)

    assert batches.end is not None


# --- The search


SEARCHED = b"".join(GOLDEN.values())


def test_plausible_positions_are_the_places_where_is_plausible_says_yes() -> None:
    slow = [position for position in range(len(SEARCHED)) if is_plausible(SEARCHED, position, len(SEARCHED))]

    assert plausible_positions(SEARCHED, 0, len(SEARCHED), len(SEARCHED)).tolist() == slow


@given(st.integers(0, len(SEARCHED) - 1), st.integers(0, 255))
def test_fast_and_plain_plausibility_agree_on_damaged_bytes(position: int, byte: int) -> None:
    data = bytearray(SEARCHED)
    data[position] = byte
    start = max(position - 70, 0)
    slow = [place for place in range(start, position + 1) if is_plausible(data, place, len(data))]

    assert plausible_positions(data, start, position + 1, len(data)).tolist() == slow


def test_every_golden_batch_is_found_among_random_looking_bytes() -> None:
    junk = bytes(range(256)) * 2
    data = junk + junk.join(GOLDEN.values()) + junk
    search = BatchSearch(data, len(data))
    found = []
    position = 0
    while (batch := search.first_from(position)) is not None:
        found.append(data[batch.byte_position : batch.end_position])
        position = batch.end_position

    assert found == list(GOLDEN.values())


def test_a_batch_across_two_windows_of_the_search_is_found() -> None:
    for lead in range(4096 - 70, 4096 + 2):
        data = bytes(lead) + TWO

        found = BatchSearch(data, len(data)).first_from(1)

        assert found is not None
        assert found.byte_position == lead


def test_a_search_that_looked_ahead_still_knows_what_it_passed() -> None:
    data = bytes(100) + TWO
    search = BatchSearch(data, len(data))
    first = search.first_from(1)
    second = search.first_from(101)

    assert first is not None
    assert second is not None
    assert second.byte_position == 100 + len(TWO) // 2
    assert search.first_from(1) == first


def test_a_search_leaves_candidates_unchecked_rather_than_taking_checksums_without_end() -> None:
    decoy = bytearray(encode_batch([], base_offset=0, last_offset_delta=0))
    struct.pack_into(">i", decoy, 57, 1)
    struct.pack_into(">i", decoy, 8, 61 * 2000 - 12)
    data = bytes(decoy) * 100_000
    search = BatchSearch(data, len(data))

    assert search.first_from(0) is None
    assert search.skipped_count > 50_000
