"""Records as Kafka reads them, and what it refuses."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xxhash import xxh32_intdigest as xxh32

from exhume.codecs.batch_writer import NewRecord, encode_batch
from exhume.codecs.batches import Batch, BatchWalk, read_batch_header
from exhume.codecs.compression import compress
from exhume.codecs.lenient_records import read_records_leniently
from exhume.codecs.records import Record, read_records
from exhume.errors import DecodeError, DecompressionError, Underflow
from tests.codecs.raw_batches import GOLDEN, Row, T, batch_of, body, entry, read, read_leniently, rows, section, wrapper

Stream = Callable[[bytes], bytes]

PLAIN_PAIR: list[Row] = [(10, T, b"a", b"1"), (11, T + 5, b"b", b"2")]
LAT = T + 99_999
EXPECTED: dict[str, list[Row]] = {
    "v0-kv": [(0, None, b"k", b"v")],
    "v0-nulls": [(7, None, None, None)],
    "v1-tomb": [(1, T, b"k", None)],
    "v1-lat": [(1, LAT, b"k", b"v")],
    "v0-lz4": [(10, None, b"a", b"1"), (11, None, b"b", b"2")],
    "v1-lz4": PLAIN_PAIR,
    "v1-snappy-lat": [(10, LAT, b"a", b"1"), (11, LAT, b"b", b"2")],
    "v1-gz-compacted": [(41, T + 1, b"b", b"2"), (43, T + 3, b"d", b"4")],
    "v2-two": PLAIN_PAIR,
    "v2-headers": [(10, T, b"k", b"v")],
    "v2-txn": [(10, T, b"k", b"v")],
    "v2-snappy": PLAIN_PAIR,
    "v2-lz4": PLAIN_PAIR,
    "v2-zstd": PLAIN_PAIR,
    "v2-gzip": PLAIN_PAIR,
    "v2-commit": [(12, T + 9, b"\0\0\0\1", b"\0\0\0\0\0\x2a")],
    "v2-abort": [(13, T + 9, b"\0\0\0\0", b"\0\0\0\0\0\x2a")],
    "v2-horizon": [(21, T + 1, b"b", None)],
    "v2-empty": [],
}


@pytest.mark.parametrize("name", GOLDEN)
def test_every_batch_of_kafka_gives_the_records_it_was_made_of(name: str) -> None:
    assert rows(read(GOLDEN[name])) == EXPECTED[name]


# --- Format 2


def test_headers_may_have_null_values() -> None:
    assert read(GOLDEN["v2-headers"])[0].headers == [("h", b"x"), ("n", None)]


def test_an_uncompressed_record_knows_its_place_in_the_buffer() -> None:
    data = bytes(5) + GOLDEN["v2-two"]

    assert [record.byte_position for record in read_records(data, read_batch_header(data, 5))] == [5 + 61, 5 + 61 + 9]


def test_a_compressed_record_has_no_place_in_the_buffer() -> None:
    assert {record.byte_position for record in read(GOLDEN["v2-lz4"])} == {None}


def test_sequences_count_from_the_base_sequence() -> None:
    assert [record.sequence for record in read(batch_of(section(body(0), body(3)), count=2, last_offset_delta=3, base_sequence=7))] == [
        7,
        10,
    ]


def test_sequences_wrap_to_0_behind_the_largest_int32() -> None:
    data = batch_of(section(body(0), body(1), body(2)), count=3, last_offset_delta=2, base_sequence=2**31 - 2)

    assert [record.sequence for record in read(data)] == [2**31 - 2, 2**31 - 1, 0]


def test_without_a_base_sequence_records_have_none() -> None:
    assert read(GOLDEN["v2-two"])[0].sequence is None


def test_a_negative_offset_delta_leads_back() -> None:
    assert read(batch_of(section(body(-3))))[0].record_offset == 97


def test_offsets_beyond_int64_wrap_as_in_java() -> None:
    data = bytearray(batch_of(section(body(1)), last_offset_delta=1))
    data[:8] = (2**63 - 1).to_bytes(8, "big")

    assert read(bytes(data))[0].record_offset == -(2**63)


def test_log_append_time_replaces_the_timestamp_of_every_record() -> None:
    data = encode_batch(
        [NewRecord(0, T, b"a", b""), NewRecord(1, T + 5, b"b", b"")], base_offset=0, timestamp_type="LogAppendTime", max_timestamp_ms=T + 77
    )

    assert [(record.timestamp_ms, record.timestamp_type) for record in read(data)] == [(T + 77, "LogAppendTime")] * 2


def test_a_timestamp_of_minus_1_is_none() -> None:
    assert read(encode_batch([NewRecord(0, None, b"a", b"")], base_offset=0))[0].timestamp_ms is None


def test_a_null_key_is_not_an_empty_key() -> None:
    data = encode_batch([NewRecord(0, T, None, b""), NewRecord(1, T, b"", None)], base_offset=0)

    assert [(record.key, record.value) for record in read(data)] == [(None, b""), (b"", None)]


def test_any_negative_length_is_null() -> None:
    assert read(batch_of(section(body(key=b"\x05", value=b"\x09"))))[0].key is None


def test_a_length_of_5_bytes_is_read() -> None:
    assert read(batch_of(section(body(key=b"\x82\x80\x80\x80\x00k"))))[0].key == b"k"


def test_a_batch_without_records_is_empty_whatever_its_codec_says() -> None:
    assert read(batch_of(b"", count=0, codec=6)) == []


def test_an_empty_batch_without_a_producer_is_empty() -> None:
    assert read(encode_batch([], base_offset=5, last_offset_delta=3, max_timestamp_ms=T)) == []


def test_a_batch_may_span_more_offsets_than_it_has_records() -> None:
    data = encode_batch([NewRecord(11, T, b"k", b"v")], base_offset=10, last_offset_delta=7)

    assert [record.record_offset for record in read(data)] == [11]
    assert read_batch_header(data, 0).last_offset == 17


def test_a_control_record_of_unknown_type_and_with_a_long_key_is_a_record() -> None:
    data = encode_batch([NewRecord(0, T, b"\0\0\0\x63more", b"")], base_offset=0, is_control=True)

    assert read(data)[0].key == b"\0\0\0\x63more"


def test_a_marker_under_a_delete_horizon_keeps_its_timestamp() -> None:
    data = encode_batch([NewRecord(0, T, b"\0\0\0\1", bytes(6))], base_offset=0, is_control=True, delete_horizon_ms=T + 86_400_000)
    batch = read_batch_header(data, 0)

    assert (batch.is_control, batch.delete_horizon_ms) == (True, T + 86_400_000)
    assert read(data)[0].timestamp_ms == T


REFUSED = {
    "null header key": section(body(headers=b"\x02\x01\x00")),
    "negative header count": section(body(headers=b"\x01")),
    "more headers than bytes": section(body(headers=b"\x06\x00\x00")),
    "key length of 6 bytes": section(body(key=b"\x82\x80\x80\x80\x80\x00k")),
    "timestamp delta of 11 bytes": section(b"\0" + b"\x80" * 10 + b"\0" + body()[2:]),
    "key beyond the record": section(body(key=b"\x7ek")),
    "record longer than its fields": section(body() + b"\0"),
    "record shorter than its fields": section(body())[:-1],
    "record of negative length": b"\x01" + body(),
    "record beyond the batch": b"\x7e" + body(),
    "bytes behind the last record": section(body()) + b"\0",
    "no record at all": b"",
}


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("content", REFUSED.values(), ids=REFUSED)
def test_what_kafka_refuses_raises_with_a_position_whatever_the_codec(content: bytes, codec: int) -> None:
    data = bytes(7) + batch_of(compress(codec, content, magic=2), codec=codec)

    with pytest.raises(DecodeError) as caught:
        list(read_records(data, read_batch_header(data, 7)))

    assert caught.value.byte_position is not None
    assert caught.value.byte_position == 7 if codec else 7 + 61 <= caught.value.byte_position <= len(data)


def test_records_before_the_one_that_is_refused_are_handed_out() -> None:
    data = batch_of(section(body(0), body(1, headers=b"\x01")), count=2, last_offset_delta=1)
    records = read_records(data, read_batch_header(data, 0))

    assert next(records).record_offset == 100
    with pytest.raises(DecodeError, match="record 2 of 2"):
        next(records)


@pytest.mark.parametrize(("count", "error"), [(3, Underflow), (1, DecodeError), (-1, DecodeError), (2**31 - 1, Underflow)])
def test_a_record_count_that_lies_is_refused(count: int, error: type[DecodeError]) -> None:
    data = batch_of(section(body(0), body(1)), count=count, last_offset_delta=1)

    with pytest.raises(error):
        read(data)


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_a_codec_that_does_not_exist_is_refused(codec: int) -> None:
    data = batch_of(section(body()), codec=codec)

    with pytest.raises(DecompressionError) as caught:
        read(data)
    assert caught.value.byte_position == 0
    assert read_leniently(data) == ([], ["undecodable_records"])


def test_a_bomb_is_refused_strictly_and_a_problem_leniently() -> None:
    data = batch_of(compress(1, bytes(10_000_000), magic=2), codec=1)
    batch = read_batch_header(data, 0)

    with pytest.raises(DecompressionError, match="cap of 1000 bytes"):
        list(read_records(data, batch, cap_bytes=1000))
    assert [problem.code for problem in read_records_leniently(data, batch, cap_bytes=1000)[1]] == ["decompression_bomb"]


# --- Formats 0 and 1


@pytest.mark.parametrize("magic", [0, 1])
def test_a_plain_message_of_formats_0_and_1_knows_its_place_and_its_verdict(magic: int) -> None:
    data = entry(5, b"k", b"v", magic=magic)
    record = read(data)[0]

    assert (record.record_offset, record.byte_position, record.crc_ok, record.magic) == (5, 0, True, magic)


@pytest.mark.parametrize(
    ("key", "value"), [(None, b""), (b"", None), (b"", b""), (None, None)], ids=["null key", "null value", "both empty", "both null"]
)
def test_empty_and_null_differ_in_formats_0_and_1(key: bytes | None, value: bytes | None) -> None:
    for magic in (0, 1):
        record = read(entry(0, key, value, magic=magic))[0]
        assert (record.key, record.value) == (key, value)


def test_high_attribute_bits_of_formats_0_and_1_change_nothing() -> None:
    assert rows(read(entry(0, b"k", b"v", attributes=0xF0))) == [(0, T, b"k", b"v")]


@pytest.mark.parametrize("part", [18, 23])
def test_a_key_or_value_beyond_its_message_is_refused(part: int) -> None:
    data = bytearray(entry(0, b"k", b"v", magic=0))
    data[part : part + 4] = b"\0\0\0\x7f"

    with pytest.raises(DecodeError):
        read(bytes(data))
    assert read_leniently(bytes(data)) == ([], ["undecodable_records"])


def test_inner_offsets_of_a_format_0_wrapper_are_absolute_and_may_have_gaps() -> None:
    inner = entry(40, b"a", b"1", magic=0) + entry(47, b"b", b"2", magic=0)

    assert [row[0] for row in rows(read(wrapper(47, inner, magic=0)))] == [40, 47]


def test_inner_offsets_of_a_format_1_wrapper_count_back_from_its_own() -> None:
    inner = entry(0, b"a", b"1") + entry(3, b"b", b"2")

    assert [row[0] for row in rows(read(wrapper(47, inner)))] == [44, 47]


def test_a_format_1_wrapper_with_offset_0_takes_inner_offsets_as_they_are() -> None:
    inner = entry(0, b"a", b"1") + entry(1, b"b", b"2")

    assert [row[0] for row in rows(read(wrapper(0, inner)))] == [0, 1]


def test_a_format_1_wrapper_below_its_last_inner_offset_is_refused() -> None:
    data = wrapper(1, entry(0, b"a", b"1") + entry(2, b"b", b"2"))

    with pytest.raises(DecodeError, match="wrapper has offset 1"):
        read(data)
    assert read_leniently(data) == ([(0, T, b"a", b"1"), (2, T, b"b", b"2")], ["uncertain_offsets"])


def test_format_0_messages_in_a_format_1_wrapper_have_relative_offsets_and_no_timestamp() -> None:
    records = read(wrapper(11, entry(0, b"a", b"1", magic=0) + entry(1, b"b", b"2", magic=0)))

    assert [(row.record_offset, row.timestamp_ms, row.magic) for row in records] == [(10, None, 0), (11, None, 0)]


def test_format_1_messages_in_a_format_0_wrapper_have_absolute_offsets_and_keep_their_timestamp() -> None:
    records = read(wrapper(11, entry(10, b"a", b"1") + entry(11, b"b", b"2"), magic=0))

    assert [(row.record_offset, row.timestamp_ms, row.magic) for row in records] == [(10, T, 1), (11, T, 1)]
    assert {row.timestamp_type for row in records} == {"NoTimestampType"}


def test_log_append_time_of_a_wrapper_overrides_its_messages() -> None:
    records = read(wrapper(1, entry(0, b"a", b"1") + entry(1, b"b", b"2"), attributes=8, timestamp=T + 50))

    assert {(row.timestamp_ms, row.timestamp_type) for row in records} == {(T + 50, "LogAppendTime")}


def test_the_timestamp_type_of_an_inner_message_is_not_asked() -> None:
    assert read(wrapper(0, entry(0, b"a", b"1", attributes=8)))[0].timestamp_type == "CreateTime"


def test_a_cut_message_at_the_end_of_a_wrapper_is_left_out_quietly() -> None:
    inner = entry(0, b"a", b"1") + entry(1, b"b", b"2") + entry(2, b"c", b"3")[:-1]

    assert [row[0] for row in rows(read(wrapper(11, inner)))] == [10, 11]


REFUSED_WRAPPERS = {
    "null value": entry(5, None, None, attributes=1),
    "empty value": entry(5, None, b"", attributes=1),
    "no messages": wrapper(5, b""),
    "nothing but a cut message": wrapper(5, entry(0, b"a", b"1")[:-1]),
    "inner size too small": wrapper(5, entry(0, b"a", b"1") + bytes(12)),
    "inner format 2": wrapper(5, encode_batch([NewRecord(0, T, b"k", b"v")], base_offset=0)),
    "inner compression": wrapper(5, wrapper(0, entry(0, b"a", b"1"))),
    "zstd": entry(5, None, compress(4, entry(0, b"a", b"1"), magic=2), attributes=4),
    "codec 5": entry(5, None, entry(0, b"a", b"1"), attributes=5),
    "cut stream": entry(5, None, compress(1, entry(0, b"a", b"1"), magic=1)[:-1], attributes=1),
}


@pytest.mark.parametrize("data", REFUSED_WRAPPERS.values(), ids=REFUSED_WRAPPERS)
def test_wrappers_that_kafka_refuses_raise_and_are_a_problem_leniently(data: bytes) -> None:
    with pytest.raises((DecodeError, DecompressionError)) as caught:
        read(data)
    assert caught.value.byte_position == 0
    assert read_leniently(data)[1]


# --- Streams that only some writers make


def xerial_block(data: bytes) -> bytes:
    return compress(2, data, magic=2)[16:]


def lz4_with(
    flags: int, *, descriptor: int = 0x40, checksum: int | None = None, block_checksum: bool = False, extra: bytes = b""
) -> Stream:
    """Streams of one stored block under these header fields."""

    def stream(data: bytes) -> bytes:
        fields = bytes((flags, descriptor)) + extra
        header_checksum = xxh32(fields) >> 8 & 0xFF if checksum is None else checksum
        block = struct.pack("<I", len(data) | 0x80000000) + data + (struct.pack("<I", xxh32(data)) if block_checksum else b"")
        return b"\x04\x22\x4d\x18" + fields + bytes((header_checksum,)) + block + bytes(4)

    return stream


XERIAL = bytes.fromhex("82534e41505059000000000100000001")
STREAMS: dict[str, tuple[int, Stream]] = {
    "snappy-raw": (2, lambda data: compress(2, data, magic=2)[20:]),
    "snappy-xerial-2-blocks": (2, lambda data: XERIAL + xerial_block(data[:9]) + xerial_block(data[9:])),
    "snappy-xerial-concatenated": (2, lambda data: compress(2, data[:9], magic=2) + compress(2, data[9:], magic=2)),
    "snappy-little-endian-version": (2, lambda data: XERIAL[:8] + bytes.fromhex("0100000001000000") + xerial_block(data)),
    "lz4-block-checksum": (3, lz4_with(0x70, block_checksum=True)),
    "lz4-content-size": (3, lz4_with(0x68, extra=bytes(8))),
    "lz4-256k-blocks": (3, lz4_with(0x60, descriptor=0x50)),
    "gzip-two-members": (1, lambda data: compress(1, data[:9], magic=2) + compress(1, data[9:], magic=2)),
}


def batch_around(stream: Stream, codec: int, magic: int) -> bytes:
    if magic == 2:
        return batch_of(stream(section(body(0), body(1))), codec=codec, count=2, last_offset_delta=1)
    first = 0 if magic else 100
    inner = entry(first, b"k", b"v", magic=magic) + entry(first + 1, b"k", b"v", magic=magic)
    return entry(101, None, stream(inner), magic=magic, attributes=codec)


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("name", STREAMS)
def test_these_streams_are_read_in_every_format(name: str, magic: int) -> None:
    codec, stream = STREAMS[name]
    expected_time = T if magic else None

    assert rows(read(batch_around(stream, codec, magic))) == [(100, expected_time, b"k", b"v"), (101, expected_time, b"k", b"v")]


@pytest.mark.parametrize(("checksum", "magics"), [(0x1A, [0]), (0x82, [0, 1, 2])])
def test_the_broken_lz4_header_checksum_is_read_in_format_0_only(checksum: int, magics: list[int]) -> None:
    stream = lz4_with(0x60, checksum=checksum)
    readable = []
    for magic in (0, 1, 2):
        with contextlib.suppress(DecompressionError):
            readable.append((magic, len(read(batch_around(stream, 3, magic)))))

    assert readable == [(magic, 2) for magic in magics]


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_linked_lz4_blocks_are_refused_in_every_format_and_read_leniently(magic: int) -> None:
    data = batch_around(lz4_with(0x40), 3, magic)

    with pytest.raises(DecompressionError, match="linked"):
        read(data)
    assert [row[0] for row in read_leniently(data)[0]] == [100, 101]


def test_two_zstd_frames_are_one_section() -> None:
    data = batch_around(lambda data: compress(4, data[:9], magic=2) + compress(4, data[9:], magic=2), 4, 2)

    assert [record.record_offset for record in read(data)] == [100, 101]


# --- Any bytes


@given(st.binary(max_size=200), st.integers(0, 4), st.integers(-2, 5))
def test_strict_reading_of_any_section_raises_evidence_errors_only(content: bytes, codec: int, count: int) -> None:
    data = batch_of(content, codec=codec, count=count)
    batch = read_batch_header(data, 0)
    try:
        strict: list[Record] | None = list(read_records(data, batch, cap_bytes=100_000))
    except (DecodeError, DecompressionError):
        strict = None
    lenient, problems = read_records_leniently(data, batch, cap_bytes=100_000)

    assert strict is None or count == 0 or (lenient, problems) == (strict, [])
    assert strict is not None or problems


def test_batches_of_all_formats_in_one_segment_are_read_in_order() -> None:
    data = entry(0, b"a", b"1", magic=0) + wrapper(2, entry(0, b"b", b"2") + entry(1, b"c", b"3")) + GOLDEN["v2-two"]
    batches: list[Batch] = list(BatchWalk(data))

    assert [row[0] for batch in batches for row in rows(list(read_records(data, batch)))] == [0, 1, 2, 10, 11]
