"""Producer snapshots, against bytes that Kafka's own code accepted."""

from __future__ import annotations

import struct

import crc32c
import pytest

from exhume.codecs.snapshots import ProducerState, read_producer_snapshot
from exhume.errors import CrcMismatch, EvidenceError, LengthOverrun, UnknownVersion

GOLDEN = bytes.fromhex(
    "0001809bd8f60000000200000000000003e8000300000008000000000000001f0000000100000174876e80010000002affffffffffffffff"
    "00000000000003e90000ffffffffffffffffffffffff0000000000000174876e8002000000070000000000000037"
)


def sealed(body: bytes, version: int = 1) -> bytes:
    """A snapshot of this body, count included, with the right checksum."""
    return struct.pack(">hI", version, crc32c.crc32c(body)) + body


def test_a_producer_with_a_batch_says_where_it_ended() -> None:
    producer = read_producer_snapshot(GOLDEN).producers[0]

    assert producer == ProducerState(
        producer_id=1000,
        producer_epoch=3,
        last_sequence=8,
        last_offset=31,
        offset_delta=1,
        timestamp_ms=1600000000001,
        coordinator_epoch=42,
        current_txn_first_offset=None,
    )


def test_a_producer_of_which_only_a_marker_was_seen_has_no_batch_and_may_have_an_open_transaction() -> None:
    producer = read_producer_snapshot(GOLDEN).producers[1]

    assert producer == ProducerState(
        producer_id=1001,
        producer_epoch=0,
        last_sequence=None,
        last_offset=None,
        offset_delta=None,
        timestamp_ms=1600000000002,
        coordinator_epoch=7,
        current_txn_first_offset=55,
    )


def test_one_byte_too_many_breaks_the_checksum() -> None:
    with pytest.raises(CrcMismatch) as caught:
        read_producer_snapshot(GOLDEN + b"\0")

    assert caught.value.expected == 0x809BD8F6


def test_version_2_is_unknown() -> None:
    with pytest.raises(UnknownVersion):
        read_producer_snapshot(sealed(bytes(4), version=2))


def test_a_snapshot_without_producers_is_empty() -> None:
    assert read_producer_snapshot(sealed(bytes(4))).producers == ()


@pytest.mark.parametrize("count", [2**31 - 1, 3, -1])
def test_a_count_that_lies_is_refused_before_anything_is_made_of_it(count: int) -> None:
    with pytest.raises(LengthOverrun):
        read_producer_snapshot(sealed(struct.pack(">i", count) + GOLDEN[10:]))


def test_a_snapshot_cut_anywhere_is_an_evidence_error() -> None:
    for size in range(len(GOLDEN)):
        with pytest.raises(EvidenceError):
            read_producer_snapshot(memoryview(GOLDEN)[:size])
