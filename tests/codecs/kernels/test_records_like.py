"""Records that are compared with the one in front of them read as every record does."""

from __future__ import annotations

import random

import numpy as np
import numpy.typing as npt

from exhume.codecs.batch_writer import NewRecord, encode_batch
from exhume.codecs.kernels.primitives import NO_POSITION
from exhume.codecs.kernels.records import UNLIKE_ANY, read_fields, read_like
from exhume.codecs.kernels.scan import HEADER_BYTES
from exhume.codecs.kernels.types import Bytes, Int64s, Number

_FIELDS = 7


def _read(data: Bytes, position: Number, end: Number, found: Int64s) -> Number:
    """Fill rows of `found` with what `read_fields` says; how many there are."""
    count = np.int64(0)
    while position != end and count < len(found):
        record_end, timestamp_delta, offset_delta, key_start, key_size, value_start, value_size = read_fields(data, position, end)
        row = found[count]
        row[0], row[1], row[2], row[3] = record_end, timestamp_delta, offset_delta, key_start
        row[4], row[5], row[6] = key_size, value_start, value_size
        count += 1
        if record_end == NO_POSITION:
            break
        position = record_end
    return count


def _read_alike(data: Bytes, position: Number, end: Number, found: Int64s) -> Number:
    """The same by `read_like`; below 0 where no record was like the one in front."""
    count, were_alike = np.int64(0), np.int64(0)
    like = UNLIKE_ANY
    while position != end and count < len(found):
        before = like
        record_end, timestamp_delta, offset_delta, key_start, key_size, value_start, value_size, like = read_like(data, position, end, like)
        were_alike += like == before and like != UNLIKE_ANY
        row = found[count]
        row[0], row[1], row[2], row[3] = record_end, timestamp_delta, offset_delta, key_start
        row[4], row[5], row[6] = key_size, value_start, value_size
        count += 1
        if record_end == NO_POSITION:
            break
        position = record_end
    return count if were_alike else -count


def _both(section: bytes) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], bool]:
    data = np.frombuffer(section, np.uint8)
    plain, alike = (np.zeros((len(section) + 1, _FIELDS), np.int64) for _ in range(2))
    count = _read(data, 0, len(data), plain)
    other = _read_alike(data, 0, len(data), alike)
    assert abs(other) == count
    return plain[:count], alike[:count], other > 0


def _section(draw: random.Random) -> bytes:
    """Records of few sizes, short and long, with deltas of every length."""
    sizes = [draw.choice((0, 1, 2, 10, 63, 64, 85, 300)) for _ in range(2)]
    values = [draw.choice((0, 8, 24, 63, 64, 9000)) for _ in range(2)]
    records = []
    offset = draw.choice((0, 0, 0, 60, 8000))
    for _ in range(draw.randrange(1, 20)):
        key = None if draw.random() < 0.02 else bytes(draw.choice(sizes))
        value = None if draw.random() < 0.05 else bytes(draw.choice(values))
        records.append(NewRecord(offset, 1000 + draw.choice((0, 0, 0, 1, 1, 63, 64, 9000, 1 << 40)), key, value))
        offset += draw.choice((1, 1, 1, 1, 2, 200))
    return encode_batch(records, base_offset=0)[HEADER_BYTES:]


def test_records_read_alike_one_by_one() -> None:
    draw, were_alike = random.Random(5), 0
    for _ in range(1500):
        plain, alike, had = _both(_section(draw))
        assert plain[-1, 0] != NO_POSITION
        assert (plain == alike).all()
        were_alike += had
    assert were_alike > 100


def test_damaged_records_read_alike() -> None:
    draw, damaged = random.Random(6), 0
    for _ in range(2000):
        changed = bytearray(_section(draw)[:400])
        for _ in range(draw.randrange(1, 4)):
            changed[draw.randrange(len(changed))] = draw.choice((0, 1, 2, 4, 0x7F, 0x80, 0x81, 0xFF, draw.randrange(256)))
        plain, alike, _ = _both(bytes(changed))
        assert (plain == alike).all()
        damaged += int(plain[-1, 0] == NO_POSITION)
    assert damaged > 200


def test_a_length_in_more_bytes_than_it_needs() -> None:
    # Taken for one of two bytes, its third is the attributes, and a timestamp the offset.
    section = b""
    for timestamp in range(6):
        body = bytes((0, 2 * timestamp, 0, 20)) + b"k" * 10 + bytes((16,)) + b"v" * 8 + b"\0"
        section += bytes((0x80 | 2 * len(body), 0x80, 0)) + body
    plain, alike, _ = _both(section)
    assert plain[:, 1].tolist() == list(range(6))
    assert (plain == alike).all()
