"""What is found behind damage, and what is said about it."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhume.codecs.batch_writer import NewRecord, encode_batch
from exhume.codecs.batches import read_batch_header
from exhume.codecs.damage import Context, DamageReport
from exhume.codecs.lenient_records import read_records_leniently
from exhume.codecs.salvage import Found, Hole, salvage
from exhume.findings import Finding

T = 1_600_000_000_000
CONTEXT = Context(path="00000000000000000000.log", replica="broker-1", offsets_partition=7)


def batch_at(offset: int, *, count: int = 2, codec: int = 0, magic: int = 2, value: bytes = b"value", leader_epoch: int = 3) -> bytes:
    records = [NewRecord(offset + index, T + index, b"key", value) for index in range(count)]
    return encode_batch(records, base_offset=offset, codec=codec, magic=magic, partition_leader_epoch=leader_epoch)


FIRST, SECOND, THIRD = batch_at(0), batch_at(2), batch_at(4)
THREE = FIRST + SECOND + THIRD
SIZE = len(FIRST)


def patched(data: bytes, position: int, new: bytes) -> bytes:
    return data[:position] + new + data[position + len(new) :]


def found_in(data: bytes, *, base_offset: int | None = None, next_base_offset: int | None = None) -> list[Found | Hole]:
    items = list(salvage(data, base_offset=base_offset, next_base_offset=next_base_offset))
    position = 0
    for item in items:
        start = item.batch.byte_position if isinstance(item, Found) else item.byte_position
        assert start == position, "items follow each other without a gap"
        position = item.end_position
    assert position == len(data)
    return items


def short(items: list[Found | Hole]) -> list[tuple[int, str]]:
    """Last offset and grade of what was found, size and reason of holes."""
    return [(item.batch.last_offset, item.grade) if isinstance(item, Found) else (item.size_bytes, item.reason) for item in items]


def codes(data: bytes, *, base_offset: int | None = None, next_base_offset: int | None = None) -> list[str]:
    items = found_in(data, base_offset=base_offset, next_base_offset=next_base_offset)
    return [
        finding.code for finding in findings_of(items, DamageReport(CONTEXT, base_offset=base_offset, next_base_offset=next_base_offset))
    ]


def findings_of(items: Iterable[Found | Hole], report: DamageReport | None = None) -> list[Finding]:
    report = DamageReport(CONTEXT) if report is None else report
    return [finding for item in items for finding in report.findings(item)]


def offsets_read(data: bytes) -> list[int]:
    return [
        record.record_offset
        for item in found_in(data)
        if isinstance(item, Found) and item.grade != "displaced"
        for record in read_records_leniently(data, item.batch)[0]
    ]


WHOLE = [(1, "verified"), (3, "verified"), (5, "verified")]


def test_whole_batches_are_verified_and_give_no_finding() -> None:
    assert short(found_in(THREE)) == WHOLE
    assert codes(THREE, base_offset=0, next_base_offset=6) == []


def test_an_empty_buffer_holds_nothing() -> None:
    assert found_in(b"") == []


def test_without_verification_batches_are_taken_as_they_come() -> None:
    items = list(salvage(patched(THREE, SIZE + 70, b"\xff"), verify_crc=False))

    assert [(item.crc_status, item.grade) for item in items if isinstance(item, Found)] == [("not_checked", "unverified")] * 3


def test_only_the_asked_range_is_looked_at() -> None:
    items = list(salvage(THREE[: 2 * SIZE], position=SIZE))

    assert short(items) == [(3, "verified")]


# --- Tails


@pytest.mark.parametrize("size", [1, 17])
def test_a_short_tail_is_a_hole_and_a_cut(size: int) -> None:
    data = THREE + b"\x01" * size

    assert short(found_in(data)) == [*WHOLE, (size, "short_tail")]
    assert codes(data) == ["cut_tail"]


@pytest.mark.parametrize("size", [1, 17, 18, 4096])
def test_zeros_up_to_the_end_are_preallocation_and_no_damage(size: int) -> None:
    items = found_in(THREE + bytes(size))
    findings = findings_of(items)

    assert short(items) == [*WHOLE, (size, "zero_tail")]
    assert [(finding.code, finding.severity, finding.is_damage) for finding in findings] == [("zero_tail", "info", False)]


def test_a_cut_header_is_a_cut_tail() -> None:
    data = THREE + FIRST[:40]

    assert short(found_in(data)) == [*WHOLE, (40, "cut_batch")]
    assert codes(data) == ["cut_tail"]


def test_of_a_cut_last_batch_the_whole_records_can_be_read() -> None:
    data = FIRST + batch_at(2, count=10)[:-30]
    items = found_in(data)
    last = items[-1]

    assert isinstance(last, Found)
    assert (last.crc_status, last.grade, last.batch.end_position) == ("unreadable", "unverified", len(data))
    assert offsets_read(data) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert codes(data) == ["cut_tail"]


def test_a_cut_behind_whole_batches_is_found_after_a_flipped_byte_too() -> None:
    """What the search came upon at the flipped byte lies in front of the cut, and is no answer there."""
    middle = batch_at(2, codec=3)
    data = FIRST + patched(middle, 17, b"\xff") + b"".join(batch_at(offset) for offset in (4, 6, 8)) + batch_at(10)[:40]

    assert short(found_in(data)) == [*WHOLE[:1], (3, "unverified"), (5, "verified"), (7, "verified"), (9, "verified"), (40, "cut_batch")]
    assert codes(data) == ["crc_mismatch", "cut_tail"]


# --- Contents and sizes that changed


def test_a_flipped_byte_costs_nobody_but_its_own_batch_the_verdict() -> None:
    data = patched(THREE, SIZE + 70, b"\xff")

    assert short(found_in(data)) == [(1, "verified"), (3, "structure_only"), (5, "verified")]
    assert codes(data) == ["crc_mismatch"]


def test_a_flipped_byte_in_a_compressed_batch_leaves_it_unverified() -> None:
    middle = batch_at(2, codec=3)
    data = FIRST + patched(middle, len(middle) - 8, b"\xff") + THIRD

    assert short(found_in(data)) == [(1, "verified"), (3, "unverified"), (5, "verified")]


@pytest.mark.parametrize("size", [2**31 - 1, 5000, SIZE * 2 - 12, SIZE - 13, 62, 49, 30, 14, 13, 0, -1])
@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
def test_a_batch_whose_size_lies_is_read_whole_where_its_checksum_can_be_met(size: int, codec: int) -> None:
    second = batch_at(2, codec=codec)
    data = FIRST + patched(second, 8, struct.pack(">i", size)) + THIRD

    assert short(found_in(data)) == WHOLE
    assert codes(data) == ["batch_size_lies"]
    assert offsets_read(data) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("size", [2**31 - 1, 13])
@pytest.mark.parametrize("codec", [0, 3])
def test_the_last_batch_may_lie_about_its_size_too(size: int, codec: int) -> None:
    third = batch_at(4, codec=codec)

    assert short(found_in(FIRST + SECOND + patched(third, 8, struct.pack(">i", size)))) == WHOLE


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("size", [2**31 - 1, 100, 13])
def test_an_old_message_whose_size_lies_is_read_by_its_own_lengths(magic: int, size: int) -> None:
    old = encode_batch([NewRecord(2, T, b"k", b"v")], base_offset=2, magic=magic)
    data = FIRST + patched(old, 8, struct.pack(">i", size)) + batch_at(3)

    assert short(found_in(data)) == [(1, "verified"), (2, "verified"), (4, "verified")]


@pytest.mark.parametrize("magic", [3, 5, 127, 128, 255])
def test_a_batch_of_no_format_whose_checksum_is_that_of_format_2_is_read_as_such(magic: int) -> None:
    data = patched(THREE, SIZE + 16, bytes((magic,)))
    middle = found_in(data)[1]

    assert short(found_in(data)) == WHOLE
    assert isinstance(middle, Found)
    assert (middle.batch.magic, middle.stated_magic) == (2, magic)
    assert codes(data) == ["bad_magic"]


@pytest.mark.parametrize("true_magic", [0, 1])
def test_an_old_message_of_no_format_is_read_as_what_its_checksum_says(true_magic: int) -> None:
    old = encode_batch([NewRecord(2, T, b"k", b"v")], base_offset=2, magic=true_magic)
    middle = found_in(FIRST + patched(old, 16, b"\x09") + batch_at(3))[1]

    assert isinstance(middle, Found)
    assert (middle.grade, middle.batch.magic, middle.stated_magic) == ("verified", true_magic, 9)


# --- Holes


@pytest.mark.parametrize("junk", [bytes(4096), random.Random(7).randbytes(4096), b"\xff" * 4096], ids=["zeros", "random", "ff"])
def test_batches_behind_a_hole_are_found(junk: bytes) -> None:
    data = FIRST + junk + THIRD
    hole = found_in(data)[1]

    assert isinstance(hole, Hole)
    assert (hole.byte_position, hole.size_bytes, hole.is_zero) == (SIZE, 4096, not any(junk))
    assert offsets_read(data) == [0, 1, 4, 5]
    assert codes(data) == ["hole"]


def test_a_page_of_zeros_over_two_batches_leaves_the_first_in_place() -> None:
    data = patched(THREE + batch_at(6), SIZE + 70, bytes(SIZE))

    assert short(found_in(data)) == [(1, "verified"), (3, "unverified"), (SIZE, "size_too_small"), (7, "verified")]
    assert offsets_read(data) == [0, 1, 2, 6, 7], "a changed record that keeps its form comes out under the failed checksum"


def test_every_format_and_codec_is_found_behind_a_hole() -> None:
    for magic, codec in [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2), (1, 3), (2, 0), (2, 1), (2, 2), (2, 3), (2, 4)]:
        data = FIRST + b"\xee" * 100 + batch_at(2, count=1, magic=magic, codec=codec) + batch_at(3)

        assert short(found_in(data))[-2:] == [(2, "verified"), (4, "verified")]


def test_a_file_that_is_no_log_is_one_hole() -> None:
    data = b"#!/bin/sh\necho hello\n" * 100

    assert short(found_in(data)) == [(len(data), "size_beyond_end")]
    assert codes(data) == ["hole"]


def test_a_read_only_view_is_salvaged_like_the_bytes_it_shows() -> None:
    data = FIRST + b"\xee" * 50 + patched(SECOND, 70, b"\xff") + THIRD

    assert list(salvage(memoryview(data))) == list(salvage(data))


# --- Batches in the wrong place

EMBEDDED = batch_at(100, count=1)


def test_a_batch_inside_the_value_of_a_whole_batch_is_never_seen() -> None:
    assert short(found_in(batch_at(0, value=EMBEDDED) + SECOND)) == [(1, "verified"), (3, "verified")]


def test_a_batch_inside_the_value_of_a_changed_batch_is_not_seen_either() -> None:
    outer = batch_at(0, value=EMBEDDED)
    data = patched(outer, len(outer) - 2, b"\xff") + SECOND

    assert [offset for offset, _ in short(found_in(data))] == [1, 3]


@pytest.mark.parametrize("size", [2**31 - 1, 13, 70])
@pytest.mark.parametrize("offset", [0, 2, 100])
def test_a_size_that_lies_does_not_bring_the_batch_inside_to_light(size: int, offset: int) -> None:
    outer = batch_at(0, value=batch_at(offset, count=1))
    data = patched(outer, 8, struct.pack(">i", size)) + SECOND

    assert short(found_in(data)) == [(1, "verified"), (3, "verified")]


@pytest.mark.parametrize("offset", [0, 1, 4, 100])
def test_a_batch_inside_what_a_lost_header_held_is_displaced(offset: int) -> None:
    outer = batch_at(2, value=batch_at(offset, count=1))
    data = FIRST + bytes(61) + outer[61:] + batch_at(4)
    items = found_in(data, next_base_offset=100)
    grades = {item.batch.last_offset: item.grade for item in items if isinstance(item, Found) and item.batch.record_count == 1}

    assert grades == {offset: "displaced"}
    assert short(items)[-1] == (5, "verified")
    assert "displaced_batch" in codes(data, next_base_offset=100)


def test_a_batch_between_two_holes_keeps_its_place() -> None:
    data = FIRST + b"\xee" * 50 + SECOND + b"\xee" * 50 + THIRD

    assert short(found_in(data)) == [(1, "verified"), (50, "size_too_small"), (3, "verified"), (50, "size_too_small"), (5, "verified")]


# --- What the order of offsets shows


def test_an_offset_that_goes_back_is_worth_a_look_and_no_damage() -> None:
    findings = findings_of(found_in(FIRST + SECOND + FIRST))

    assert [(finding.code, finding.severity, finding.is_damage) for finding in findings] == [("offsets_go_back", "warn", False)]


def test_a_repeated_batch_goes_back() -> None:
    assert codes(FIRST + FIRST) == ["offsets_go_back"]


def test_a_leader_epoch_that_goes_back_is_worth_a_look() -> None:
    assert codes(FIRST + batch_at(2, leader_epoch=2)) == ["leader_epoch_goes_back"]


@pytest.mark.parametrize(("base_offset", "next_base_offset"), [(1, None), (0, 3), (0, 1)])
def test_offsets_outside_the_segment_are_worth_a_look(base_offset: int, next_base_offset: int | None) -> None:
    assert "offsets_outside_segment" in codes(FIRST + SECOND, base_offset=base_offset, next_base_offset=next_base_offset)


def test_offsets_more_than_an_int32_above_the_base_are_worth_a_look() -> None:
    assert codes(FIRST + batch_at(2**31), base_offset=0) == ["offsets_outside_segment"]


# --- Findings


def test_findings_name_file_place_offsets_and_remedy() -> None:
    (finding,) = findings_of(found_in(patched(THREE, SIZE + 70, b"\xff")))

    assert (finding.path, finding.replica, finding.offsets_partition) == ("00000000000000000000.log", "broker-1", 7)
    assert (finding.byte_position, finding.size_bytes, finding.first_record_offset, finding.last_record_offset) == (SIZE, SIZE, 2, 3)
    assert finding.is_damage
    assert finding.remedy


def problem_codes(data: bytes, *, cap_bytes: int = 10_000) -> list[tuple[str, bool]]:
    batch = read_batch_header(data, 0)
    problems = read_records_leniently(data, batch, cap_bytes=cap_bytes)[1]
    return [(finding.code, finding.is_damage) for finding in DamageReport(CONTEXT).problem_findings(batch, problems)]


def test_a_bomb_is_a_finding() -> None:
    assert problem_codes(batch_at(0, codec=4, value=bytes(50_000))) == [("decompression_bomb", True)]


def test_a_record_count_that_lies_under_a_right_checksum_is_a_finding() -> None:
    data = bytearray(FIRST)
    struct.pack_into(">i", data, 57, 5)
    struct.pack_into(">I", data, 17, crc32c.crc32c(data[21:]))

    assert codes(bytes(data)) == []
    assert problem_codes(bytes(data)) == [("record_count_lies", True)]


# --- Every cut and every changed byte of one segment


@dataclass(frozen=True)
class Part:
    start: int
    data: bytes

    @property
    def unprotected(self) -> set[int]:
        """Base offset and leader epoch: what no checksum covers and no structure depends on."""
        return {*range(self.start, self.start + 8), *(range(self.start + 12, self.start + 16) if self.data[16] == 2 else ())}


def segment() -> list[Part]:
    transaction: dict[str, Any] = {"producer_id": 9, "producer_epoch": 1, "is_transactional": True, "partition_leader_epoch": 3}
    pair = [NewRecord(2, T, b"k", b"v" * 20), NewRecord(3, T, b"k", None)]
    batches = [
        batch_at(0, count=1, magic=0),
        batch_at(1, count=1, magic=1),
        encode_batch(pair, base_offset=2, magic=1, codec=1),
        encode_batch([NewRecord(4, T, b"k", b"v")], base_offset=4, magic=0, codec=2),
        batch_at(5, count=3, value=b"value" * 12),
        batch_at(8, codec=3, value=b"v" * 20),
        encode_batch([NewRecord(10, T, b"k", b"v", [("h", b"x")])], base_offset=10, base_sequence=0, **transaction),
        encode_batch([NewRecord(11, T, b"\0\0\0\1", bytes(6))], base_offset=11, is_control=True, **transaction),
        encode_batch(
            [NewRecord(13, T, b"k", None)], base_offset=12, last_offset_delta=2, delete_horizon_ms=T + 86_400_000, partition_leader_epoch=3
        ),
        encode_batch([], base_offset=15, last_offset_delta=0, base_sequence=0, **transaction),
        batch_at(16, codec=4),
        batch_at(18, codec=1, count=1),
    ]
    parts, position = [], 0
    for data in batches:
        parts.append(Part(position, data))
        position += len(data)
    return parts


PARTS = segment()
SEGMENT = b"".join(part.data for part in PARTS)


def all_findings(data: bytes) -> list[Finding]:
    report = DamageReport(CONTEXT, base_offset=0, next_base_offset=19)
    findings: list[Finding] = []
    for item in salvage(data, base_offset=0, next_base_offset=19):
        findings += report.findings(item)
        if isinstance(item, Found):
            problems = read_records_leniently(data, item.batch, cap_bytes=100_000)[1]
            findings += report.problem_findings(item.batch, problems)
    return findings


def variants(byte: int) -> Iterator[int]:
    yield from {byte ^ 1 << bit for bit in range(8)} | {0x00, 0xFF} - {byte}


def test_the_segment_to_be_damaged_is_whole_and_of_1_to_2_kib() -> None:
    assert 1024 <= len(SEGMENT) <= 2048
    assert all_findings(SEGMENT) == []


def test_every_cut_but_those_between_batches_is_found() -> None:
    silent = [length for length in range(len(SEGMENT)) if not all_findings(SEGMENT[:length])]

    assert silent == [part.start for part in PARTS]


def test_every_cut_leaves_the_records_before_it() -> None:
    whole = offsets_read(SEGMENT)
    for length in range(len(SEGMENT)):
        before = sum(part.start + len(part.data) <= length for part in PARTS)
        expected = offsets_read(SEGMENT[: PARTS[before].start])
        assert offsets_read(SEGMENT[:length])[: len(expected)] == expected == whole[: len(expected)]


@pytest.mark.one_of(4)
@pytest.mark.parametrize("index", range(len(PARTS)))
def test_every_changed_byte_is_found_but_in_base_offsets_and_leader_epochs(index: int) -> None:
    part = PARTS[index]
    silent = set()
    for position in range(part.start, part.start + len(part.data)):
        for byte in variants(SEGMENT[position]):
            if not all_findings(patched(SEGMENT, position, bytes((byte,)))):
                silent.add(position)

    assert silent <= part.unprotected


def is_in_order(batches: list[bytes]) -> bool:
    """True when offsets rise from 0 to 18 and leader epochs do not fall: all that shows a change of what no checksum covers."""
    headers = [read_batch_header(data, 0) for data in batches]
    firsts = [header.last_offset if header.base_offset is None else header.base_offset for header in headers]
    lasts = [-1, *(header.last_offset for header in headers)]
    epochs = [-1, *(header.partition_leader_epoch for header in headers if header.partition_leader_epoch is not None)]
    return all(before < first for before, first in zip(lasts, firsts, strict=False)) and lasts[-1] < 19 and epochs == sorted(epochs)


def test_nothing_can_show_base_offsets_and_leader_epochs_that_change_within_their_order() -> None:
    silent, in_order = set(), set()
    for index, part in enumerate(PARTS):
        for position in part.unprotected:
            for byte in variants(SEGMENT[position]):
                changed = [other.data for other in PARTS]
                changed[index] = patched(part.data, position - part.start, bytes((byte,)))
                if is_in_order(changed):
                    in_order.add((index, position - part.start))
                if not all_findings(b"".join(changed)):
                    silent.add((index, position - part.start))

    last = len(PARTS) - 1
    assert silent == in_order
    assert silent == {(2, 7), (4, 15), (last, 12), (last, 13), (last, 14), (last, 15)}


@pytest.mark.parametrize("index", range(len(PARTS)))
def test_one_changed_byte_costs_no_record_of_another_batch(index: int) -> None:
    part = PARTS[index]
    others = [offset for other in PARTS if other is not part for offset in offsets_read(other.data)]
    for position in range(part.start + 8, part.start + len(part.data)):
        assert set(others) <= set(offsets_read(patched(SEGMENT, position, bytes((SEGMENT[position] ^ 0xFF,)))))


# --- Any bytes


@given(st.binary(max_size=600))
def test_any_bytes_are_parted_into_batches_and_holes_without_a_gap(data: bytes) -> None:
    found_in(data)


@given(st.lists(st.sampled_from([FIRST, SECOND, THIRD, b"", bytes(20), b"\xff" * 30, FIRST[:50], EMBEDDED, SEGMENT]), max_size=8))
def test_any_mixture_of_batches_and_junk_is_parted_without_a_gap(pieces: list[bytes]) -> None:
    all_findings(b"".join(pieces))
    found_in(b"".join(pieces))


def test_a_file_of_nothing_but_failing_headers_takes_time_in_proportion() -> None:
    decoy = bytearray(encode_batch([], base_offset=5, last_offset_delta=0))
    struct.pack_into(">i", decoy, 57, 1)
    struct.pack_into(">i", decoy, 8, 61 * 3000 - 12)
    items = found_in(bytes(decoy) * 20_000)

    assert len(items) < 100
