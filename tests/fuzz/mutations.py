"""Logs that somebody has tampered with, checksums made right again: what kernels get to see of hostile bytes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

from exhume.codecs.batch_format import HEADER_BYTES, HEADER_UP_TO_MAGIC, LOG_OVERHEAD
from exhume.codecs.batch_writer import rewrite_batch
from exhume.codecs.batches import Batch, BatchWalk, checksum, read_header_fields
from exhume.codecs.compression import compress
from exhume.codecs.lenient_records import read_records_leniently
from exhume.codecs.records import record_section
from exhume.errors import EvidenceError

#: Where what every record has to itself begins, by format: behind the header of format 2, with the key of a message.
_CONTENTS = {0: 18, 1: 26, 2: HEADER_BYTES[2]}
_SIZE_AT, _CRC_AT = 8, {0: 12, 1: 12, 2: 17}
#: Header fields by format: place and layout.
_FIELDS = {
    0: {0: ">q", 17: ">b"},
    1: {0: ">q", 17: ">b", 18: ">q"},
    2: {0: ">q", 12: ">i", 21: ">h", 23: ">i", 27: ">q", 35: ">q", 43: ">q", 51: ">h", 53: ">i", 57: ">i"},
}
#: The ends of every width, as numbers and as lengths: varints (zigzag and not, too long, without end), int16, int32, int64.
_EXTREMES = (
    *(bytes([*[0xFF] * count, last]) for count in (0, 1, 3, 4, 8, 9) for last in (0x00, 0x01, 0x0E, 0x0F, 0x7F)),
    *(b"\xfe" + bytes([*[0xFF] * count, last]) for count in (3, 8) for last in (0x01, 0x0F)),
    b"\x80\x80\x80\x80\x00",
    b"\xff" * 12,
    *(
        number.to_bytes(size, "big", signed=True)
        for size in (2, 4, 8)
        for number in (-1, 0, 1, 1 << 8 * size - 1 - 1, -(1 << 8 * size - 1))
    ),
    b"\x7f\xff",
    b"\x7f\xff\xff\xff",
    b"\x7f" + b"\xff" * 7,
    # Texts: cut, overlong, a surrogate, U+FFFD, beyond the last code point.
    b"\xe2\x82",
    b"\xc0\x80",
    b"\xed\xa0\x80",
    b"\xef\xbf\xbd",
    b"\xf4\x90\x80\x80",
)


def segments_of(root: Path) -> list[list[bytes]]:
    """The batches of each segment in these directories."""
    found = []
    for path in sorted(root.rglob("*.log")):
        content = path.read_bytes()
        batches = [content[batch.byte_position : batch.end_position] for batch in BatchWalk(content)]
        if batches:
            found.append(batches)
    return found


def mutated(random: Random, batches: Sequence[bytes], others: Sequence[bytes], count: int) -> list[bytes]:
    """These batches with so many mutations; `others` are at hand for splicing."""
    result = list(batches)
    for _ in range(count):
        number = random.randrange(len(result))
        if random.random() < 0.1:
            _rearrange(random, result, number)
        else:
            change = random.choice(_CHANGES)
            result[number] = change(random, result[number], random.choice(others))
    return result


def write(directory: Path, batches: Sequence[bytes], first_offsets: Sequence[int], cut: int) -> None:
    """A segment for each `cut` batches, named as it was before anybody tampered with them."""
    directory.mkdir(parents=True)
    for start in range(0, len(batches), cut):
        base_offset = first_offsets[min(start, len(first_offsets) - 1)] + max(start - len(first_offsets) + 1, 0)
        (directory / f"{base_offset:020d}.log").write_bytes(b"".join(batches[start : start + cut]))


def _rearrange(random: Random, batches: list[bytes], number: int) -> None:
    match random.choice(("twice", "gone", "swapped", "torn")):
        case "twice":
            batches.insert(number, batches[number])
        case "gone" if len(batches) > 1:
            del batches[number]
        case "swapped":
            batches[number], batches[0] = batches[0], batches[number]
        case _:
            batches[number] = batches[number][: random.randrange(1, len(batches[number]) + 1)]


def sealed(content: bytes | bytearray) -> bytes:
    """This batch with the size and the checksum that it has."""
    whole = bytearray(content)
    struct.pack_into(">i", whole, _SIZE_AT, len(whole) - LOG_OVERHEAD)
    header = read_header_fields(whole, 0)
    struct.pack_into(">I", whole, _CRC_AT[header.magic], checksum(whole, header, len(whole)))
    return bytes(whole)


def edited(random: Random, content: bytes, other: bytes) -> bytes:
    """Some bytes changed, put in, or taken out."""
    place = random.randrange(len(content) + 1)
    behind = min(place + random.choice((1, 1, 2, 4, 8, 40)), len(content))
    match random.randrange(8):
        case 0 | 1 if place < len(content):
            return content[:place] + bytes([content[place] ^ 1 << random.randrange(8)]) + content[place + 1 :]
        case 2:
            return content[:place] + random.randbytes(behind - place) + content[behind:]
        case 3:
            extreme = random.choice(_EXTREMES)
            return content[:place] + extreme + content[place + len(extreme) :]
        case 4:
            return content[:place] + random.choice(_EXTREMES) + content[place + 1 :]
        case 5:
            return content[:place] + content[behind:]
        case 6:
            start = random.randrange(len(other) + 1)
            return content[:place] + other[start : start + random.randrange(1, 60)] + content[behind:]
        case _:
            return content[:place]


def _change_contents(random: Random, content: bytes, other: bytes) -> bytes:
    """A key or a value, in a record that is whole."""
    batch = _whole(content)
    records = read_records_leniently(content, batch)[0] if batch else []
    if batch is None or not records:
        return content
    number = random.randrange(len(records))
    record = records[number]
    if random.random() < 0.25 and record.key is not None:
        record = replace(record, key=edited(random, record.key, other))
    elif record.value is not None:
        record = replace(record, value=edited(random, record.value, other))
    else:
        record = replace(record, value=random.choice(_EXTREMES))
    records[number] = record
    return rewrite_batch(replace(batch, record_count=len(records)), records, content)


def _change_section(random: Random, content: bytes, other: bytes) -> bytes:
    """The bytes of the records, unfolded where they are compressed."""
    batch = _whole(content)
    if batch is None or batch.magic < 2:
        return content if batch is None else _change_stream(random, content, other)
    try:
        section = bytes(record_section(content, batch))
    except EvidenceError:
        return content
    codec = batch.codec if batch.codec <= 4 and batch.record_count else 0
    return sealed(content[: _CONTENTS[2]] + compress(codec, edited(random, section, other), magic=2))


def _change_stream(random: Random, content: bytes, other: bytes) -> bytes:
    """The bytes behind the header as they lie there."""
    batch = _whole(content)
    if batch is None:
        return content
    start = _CONTENTS[batch.magic]
    return sealed(content[:start] + edited(random, content[start:], other))


def _change_header(random: Random, content: bytes, _: bytes) -> bytes:
    batch = _whole(content)
    if batch is None:
        return content
    changed = bytearray(content)
    place, layout = random.choice(list(_FIELDS[batch.magic].items()))
    size = struct.calcsize(layout)
    present = struct.unpack_from(layout, changed, place)[0]
    most = (1 << 8 * size - 1) - 1
    value = random.choice(
        (present + 1, present - 1, -1, 0, 1, most, -most - 1, random.randint(-most - 1, most), present ^ 1 << random.randrange(7))
    )
    struct.pack_into(layout, changed, place, max(min(value, most), -most - 1))
    return sealed(changed)


def _damage(random: Random, content: bytes, other: bytes) -> bytes:
    """Any byte, and no checksum that would agree."""
    return edited(random, content, other)


def _whole(content: bytes) -> Batch | None:
    """The header of what is a batch still."""
    if len(content) < HEADER_UP_TO_MAGIC or len(content) < HEADER_BYTES.get(content[16], len(content) + 1):
        return None
    batch = read_header_fields(content, 0)
    return batch if batch.size_bytes == len(content) else None


_Change = Callable[[Random, bytes, bytes], bytes]
_CHANGES: tuple[_Change, ...] = (*[_change_contents] * 8, *[_change_section] * 4, *[_change_header] * 2, _change_stream, _damage)
