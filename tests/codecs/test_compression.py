"""What Kafka's readers accept and refuse of each codec, and what our writer makes of it."""

from __future__ import annotations

import contextlib
import random
import struct
import zlib

import lz4.block
import lz4.frame
import pyarrow as pa
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from xxhash import xxh32_intdigest as xxh32

from exhume.codecs.compressed_streams import BeyondCap, DamagedStream
from exhume.codecs.compression import compress, decompress
from exhume.errors import DecompressionError, EncodeError

TEXT = b"offsets and groups, " * 5000
NOISE = random.Random(1).randbytes(100_000)
ALLOWED = [(magic, codec) for magic in (0, 1, 2) for codec in (0, 1, 2, 3, 4) if codec < 4 or magic == 2]
XERIAL = bytes.fromhex("82534e41505059000000000100000001")
SNAPPY = pa.Codec("snappy")


def raw_snappy(data: bytes) -> bytes:
    packed: bytes = SNAPPY.compress(data, asbytes=True)
    return packed


def xerial_block(data: bytes) -> bytes:
    packed = raw_snappy(data)
    return struct.pack(">i", len(packed)) + packed


def lz4_frame(
    blocks: list[bytes],
    *,
    flags: int = 0x60,
    block_descriptor: int = 0x40,
    extra: bytes = b"",
    checksum: int | None = None,
    tail: bytes = b"",
) -> bytes:
    """A frame of stored or compressed blocks as given; the header checksum is right unless one is given."""
    descriptor = bytes((flags, block_descriptor)) + extra
    right = xxh32(descriptor) >> 8 & 0xFF
    return b"\x04\x22\x4d\x18" + descriptor + bytes((right if checksum is None else checksum,)) + b"".join(blocks) + bytes(4) + tail


def stored(data: bytes) -> bytes:
    return struct.pack("<I", len(data) | 0x80000000) + data


def packed(data: bytes) -> bytes:
    block: bytes = lz4.block.compress(data, store_size=False)
    return struct.pack("<I", len(block)) + block


@pytest.mark.parametrize(("magic", "codec"), ALLOWED)
@pytest.mark.parametrize("data", [b"", b"x", TEXT, NOISE], ids=["empty", "one", "text", "noise"])
def test_what_is_compressed_unfolds_to_itself_in_every_format_that_has_the_codec(magic: int, codec: int, data: bytes) -> None:
    assert decompress(codec, compress(codec, data, magic=magic), magic=magic) == data


@given(st.sampled_from(ALLOWED), st.binary(max_size=3000))
def test_any_bytes_survive_a_round_trip(form: tuple[int, int], data: bytes) -> None:
    magic, codec = form

    assert decompress(codec, compress(codec, data, magic=magic), magic=magic) == data


@given(st.integers(1, 4), st.integers(0, 2), st.booleans(), st.binary(max_size=300))
def test_any_bytes_unfold_or_raise_a_decompression_error(codec: int, magic: int, lenient: bool, data: bytes) -> None:
    heads = {1: b"\x1f\x8b\x08\0\0\0\0\0\0\xff", 2: XERIAL, 3: b"\x04\x22\x4d\x18\x60\x40\x82", 4: b"\x28\xb5\x2f\xfd"}
    for stream in (data, heads[codec] + data):
        with contextlib.suppress(DecompressionError):
            assert len(decompress(codec, stream, magic=magic, cap_bytes=100_000, lenient=lenient)) <= 100_000


@pytest.mark.parametrize("codec", [1, 3, 4])
def test_every_cut_of_a_stream_that_marks_its_end_is_damage_and_keeps_a_prefix(codec: int) -> None:
    stream = compress(codec, TEXT[:500], magic=2)
    for length in range(1, len(stream)):
        with pytest.raises(DamagedStream) as caught:
            decompress(codec, stream[:length], magic=2)
        assert TEXT.startswith(caught.value.partial)


def test_what_came_out_before_damage_is_kept() -> None:
    stream = compress(1, NOISE, magic=2)

    with pytest.raises(DamagedStream) as caught:
        decompress(1, stream[: len(stream) // 2], magic=2)

    assert len(caught.value.partial) > 40_000


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_a_bomb_stops_at_the_cap_and_names_it(codec: int) -> None:
    bomb = compress(codec, bytes(20_000_000), magic=2)

    with pytest.raises(BeyondCap, match=r"cap of 1000000 bytes.*Raise the cap"):
        decompress(codec, bomb, magic=2, cap_bytes=1_000_000)


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_a_stream_of_exactly_the_cap_unfolds(codec: int) -> None:
    assert len(decompress(codec, compress(codec, TEXT, magic=2), magic=2, cap_bytes=len(TEXT))) == len(TEXT)


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_codecs_5_to_7_do_not_exist(codec: int) -> None:
    with pytest.raises(DecompressionError, match=f"codec {codec} does not exist"):
        decompress(codec, b"", magic=2)
    with pytest.raises(EncodeError):
        compress(codec, b"", magic=2)


# --- gzip


def test_gzip_members_are_joined() -> None:
    assert decompress(1, compress(1, b"one", magic=2) + compress(1, b"two", magic=2), magic=2) == b"onetwo"


def test_many_tiny_gzip_members_unfold() -> None:
    assert decompress(1, compress(1, b"x", magic=2) * 5000, magic=2) == b"x" * 5000


def test_bytes_behind_a_gzip_member_that_begin_no_other_are_ignored() -> None:
    assert decompress(1, compress(1, b"one", magic=2) + b"junk" * 10, magic=2) == b"one"


def test_a_wrong_gzip_checksum_is_damage() -> None:
    stream = bytearray(compress(1, b"one", magic=2))
    stream[-8] ^= 1

    with pytest.raises(DamagedStream):
        decompress(1, stream, magic=2)


def test_gzip_is_written_with_the_header_of_a_recent_jdk() -> None:
    stream = compress(1, b"one", magic=2)

    assert stream[:10].hex() == "1f8b08000000000000ff"
    assert zlib.decompress(stream, wbits=31) == b"one"


# --- snappy


def test_snappy_without_a_frame_is_one_block() -> None:
    assert decompress(2, raw_snappy(TEXT), magic=2) == TEXT


def test_snappy_is_written_in_blocks_of_32_kib() -> None:
    stream = compress(2, NOISE, magic=2)
    blocks = []
    position = len(XERIAL)
    while position < len(stream):
        size = int.from_bytes(stream[position : position + 4], "big")
        blocks.append(len(decompress(2, stream[position + 4 : position + 4 + size], magic=2)))
        position += 4 + size

    assert stream.startswith(XERIAL)
    assert blocks == [32768, 32768, 32768, 100_000 - 3 * 32768]


def test_concatenated_snappy_frames_are_joined() -> None:
    assert decompress(2, compress(2, b"one", magic=2) + compress(2, b"two", magic=2), magic=2) == b"onetwo"


@pytest.mark.parametrize("words", ["0100000001000000", "0000000200000002", "ffffffff00000000"])
def test_the_version_words_of_a_snappy_frame_are_not_looked_at(words: str) -> None:
    assert decompress(2, XERIAL[:8] + bytes.fromhex(words) + xerial_block(b"one"), magic=2) == b"one"


def test_a_tail_of_less_than_4_bytes_behind_the_snappy_blocks_is_ignored() -> None:
    assert decompress(2, XERIAL + xerial_block(b"one") + b"\0\0\0", magic=2) == b"one"


@pytest.mark.parametrize("size", [-1, 4, 2**31 - 1])
def test_a_snappy_block_size_that_lies_is_damage(size: int) -> None:
    with pytest.raises(DamagedStream) as caught:
        decompress(2, XERIAL + xerial_block(b"one") + struct.pack(">i", size) + b"abc", magic=2)

    assert caught.value.partial == b"one"


def test_a_snappy_block_that_promises_more_than_snappy_can_hold_gets_no_memory() -> None:
    with pytest.raises(DamagedStream, match="cannot unfold to 4294967295"):
        decompress(2, b"\xff\xff\xff\xff\x0f" + bytes(20), magic=2, cap_bytes=2**40)


def test_nothing_is_no_snappy_stream() -> None:
    with pytest.raises(DamagedStream):
        decompress(2, b"", magic=2)


def test_snappy_blocks_behind_a_bad_one_come_out_leniently() -> None:
    bad = struct.pack(">i", 5) + b"\xff\xff\xff\xff\xff"
    stream = XERIAL + xerial_block(b"one") + bad + xerial_block(b"three") + xerial_block(b"four")

    with pytest.raises(DamagedStream) as strict:
        decompress(2, stream, magic=2)
    with pytest.raises(DamagedStream) as lenient:
        decompress(2, stream, magic=2, lenient=True)

    assert (strict.value.partial, strict.value.later) == (b"one", ())
    assert (lenient.value.partial, lenient.value.later) == (b"one", (b"threefour",))


# --- lz4


def test_xxh32_agrees_with_the_published_vectors() -> None:
    assert [xxh32(b""), xxh32(b"abc"), xxh32(b"Nobody inspects the spammish repetition")] == [0x02CC5D05, 0x32D153FF, 0xE2293B2F]


@pytest.mark.parametrize(("magic", "checksum"), [(0, 0x1A), (1, 0x82), (2, 0x82)])
def test_lz4_is_written_with_the_header_checksum_that_the_format_expects(magic: int, checksum: int) -> None:
    assert compress(3, TEXT, magic=magic)[:7] == b"\x04\x22\x4d\x18\x60\x40" + bytes((checksum,))


def test_lz4_blocks_that_do_not_shrink_are_stored() -> None:
    assert compress(3, NOISE[:100], magic=2)[7:11] == struct.pack("<I", 100 | 0x80000000)


def test_the_lz4_library_reads_what_is_written() -> None:
    assert lz4.frame.decompress(compress(3, TEXT, magic=2)) == TEXT


@pytest.mark.parametrize("checksum", [0x1A, 0x82, 0x00])
def test_format_0_does_not_look_at_the_lz4_header_checksum(checksum: int) -> None:
    assert decompress(3, lz4_frame([packed(TEXT[:900])], checksum=checksum), magic=0) == TEXT[:900]


@pytest.mark.parametrize("magic", [1, 2])
def test_formats_1_and_2_refuse_a_wrong_lz4_header_checksum(magic: int) -> None:
    stream = lz4_frame([packed(TEXT[:900])], checksum=0x1A)

    with pytest.raises(DamagedStream, match="0x1a instead of 0x82"):
        decompress(3, stream, magic=magic)
    assert decompress(3, stream, magic=magic, lenient=True) == TEXT[:900]


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_lz4_block_checksums_are_verified(magic: int) -> None:
    block = packed(TEXT[:900])
    right = struct.pack("<I", xxh32(block[4:]))

    assert decompress(3, lz4_frame([block + right], flags=0x70), magic=magic) == TEXT[:900]
    with pytest.raises(DamagedStream, match="checksum of an lz4 block"):
        decompress(3, lz4_frame([block + bytes(4)], flags=0x70), magic=magic)


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_the_lz4_content_size_is_stepped_over(magic: int) -> None:
    assert decompress(3, lz4_frame([stored(b"one")], flags=0x68, extra=struct.pack("<Q", 99)), magic=magic) == b"one"


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_the_lz4_content_checksum_is_not_verified(magic: int) -> None:
    assert decompress(3, lz4_frame([stored(b"one")], flags=0x64, tail=b"\0\0\0\0"), magic=magic) == b"one"


@pytest.mark.parametrize(("descriptor", "size"), [(0x40, 1 << 16), (0x50, 1 << 18), (0x60, 1 << 20), (0x70, 1 << 22)])
def test_lz4_blocks_may_be_as_large_as_their_descriptor_says_and_no_larger(descriptor: int, size: int) -> None:
    data = bytes(size)

    assert decompress(3, lz4_frame([packed(data)], block_descriptor=descriptor), magic=2) == data
    with pytest.raises(DamagedStream):
        decompress(3, lz4_frame([packed(data + b"x")], block_descriptor=descriptor), magic=2)
    with pytest.raises(DamagedStream):
        decompress(3, lz4_frame([stored(data + b"x")], block_descriptor=descriptor), magic=2)


@pytest.mark.parametrize(
    ("flags", "descriptor"),
    [(0x20, 0x40), (0xA0, 0x40), (0x61, 0x40), (0x62, 0x40), (0x60, 0x30), (0x60, 0x00), (0x60, 0x41), (0x60, 0xC0)],
)
def test_other_lz4_versions_dictionaries_and_reserved_bits_are_refused(flags: int, descriptor: int) -> None:
    with pytest.raises(DamagedStream):
        decompress(3, lz4_frame([stored(b"one")], flags=flags, block_descriptor=descriptor), magic=2)


def test_linked_lz4_blocks_are_read_leniently_only() -> None:
    data = NOISE[:50_000] * 6
    stream = lz4.frame.compress(data, block_linked=True, block_size=lz4.frame.BLOCKSIZE_MAX64KB, store_size=False)

    with pytest.raises(DamagedStream, match="linked"):
        decompress(3, stream, magic=2)
    assert len(stream) < 100_000, "blocks refer to the ones before them"
    assert decompress(3, stream, magic=2, lenient=True) == data


def test_one_lz4_frame_is_read_and_what_follows_it_ignored() -> None:
    assert decompress(3, lz4_frame([stored(b"one")]) + lz4_frame([stored(b"two")]), magic=2) == b"one"


def test_lz4_blocks_behind_a_bad_one_come_out_leniently() -> None:
    stream = lz4_frame([stored(b"one"), struct.pack("<I", 3) + b"\xff\xff\xff", stored(b"three")])

    with pytest.raises(DamagedStream) as caught:
        decompress(3, stream, magic=2, lenient=True)

    assert (caught.value.partial, caught.value.later) == (b"one", (b"three",))


# --- zstd


def test_zstd_is_written_without_content_size_and_checksum() -> None:
    parameters = zstandard.get_frame_parameters(compress(4, TEXT, magic=2))

    assert (parameters.content_size, parameters.has_checksum) == (zstandard.CONTENTSIZE_UNKNOWN, False)


def test_zstd_frames_with_and_without_content_size_are_joined() -> None:
    sized = zstandard.ZstdCompressor().compress(b"two")

    assert decompress(4, compress(4, b"one", magic=2) + sized, magic=2) == b"onetwo"


def test_bytes_behind_a_zstd_frame_that_begin_no_other_are_damage() -> None:
    with pytest.raises(DamagedStream) as caught:
        decompress(4, compress(4, b"one", magic=2) + b"junkjunk", magic=2)

    assert caught.value.partial == b"one"


@pytest.mark.parametrize("magic", [0, 1])
def test_formats_0_and_1_have_no_zstd(magic: int) -> None:
    stream = compress(4, b"one", magic=2)

    with pytest.raises(DecompressionError, match=f"format {magic} has no zstd"):
        decompress(4, stream, magic=magic)
    assert decompress(4, stream, magic=magic, lenient=True) == b"one"
