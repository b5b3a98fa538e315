"""What is appended is what was sent; after a kill at any byte, capturing goes on without a gap and without a repeat."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

import pytest

from exhume.capture.recorded_partition import Gap, RecordedPartition, scan_batches
from exhume.codecs.batch_writer import NewRecord, encode_batch
from exhume.codecs.checkpoints import LeaderEpoch, read_leader_epochs

ENDLESS = 1 << 40


def batch(first: int, last: int, *, epoch: int = 0, missing: int = 0, magic: int = 2, codec: int = 0) -> bytes:
    """A batch of these offsets; the first `missing` offsets have no record."""
    records = [NewRecord(offset, 1_700_000_000_000 + offset, b"key", b"value %d" % offset) for offset in range(first + missing, last + 1)]
    fields = {"partition_leader_epoch": epoch} if magic == 2 else {}
    return encode_batch(records, base_offset=first, magic=magic, codec=codec, **fields)  # type: ignore[arg-type]


BATCHES = [batch(0, 0), batch(1, 3), batch(4, 4, epoch=2), batch(5, 9, epoch=2, codec=4), batch(10, 10, epoch=3), batch(11, 14, epoch=3)]
LOG = b"".join(BATCHES)


_opened: list[RecordedPartition] = []


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while _opened:
        _opened.pop().close()


def recorded(root: Path, *, segment_bytes: int = ENDLESS, digests: dict[str, tuple[int, str]] | None = None) -> RecordedPartition:
    partition = RecordedPartition(root, 7, segment_bytes=segment_bytes, segment_ms=None)
    partition.resume(digests or {}, "AE126DPrT1GIKPF0TXDEiQ")
    _opened.append(partition)
    return partition


def feed(partition: RecordedPartition, data: bytes, *, counts_gaps: bool = False) -> None:
    """Append the batches that a leader sends for the offset that the partition wants next."""
    scanned = scan_batches(memoryview(data), partition.next_offset, partition.last_epoch)
    partition.take(memoryview(data), scanned, counts_gaps=counts_gaps)


def content(root: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted((root / "__consumer_offsets-7").glob("*.log")))


def test_a_kill_at_any_byte_leaves_no_gap_and_no_repeat(tmp_path: Path) -> None:
    ends = list(accumulate(map(len, BATCHES)))
    cuts = {end + step for end in (0, *ends) for step in (-1, 0, 1, 17, 61)} | set(range(0, len(LOG), 37))
    for cut in sorted(cuts & set(range(len(LOG) + 1))):
        root = tmp_path / str(cut)
        root.mkdir()
        partition = recorded(root)
        feed(partition, LOG)
        partition.close()
        os.truncate(partition.segments[0].path, cut)
        again = recorded(root)
        whole = sum(len(one) for one in BATCHES[: _whole_batches(cut)])
        assert content(root) == LOG[:whole]
        assert again.cut_bytes == cut - whole
        feed(again, LOG)
        again.write_epochs()
        assert content(root) == LOG
        assert again.next_offset == 15
        epochs = read_leader_epochs((again.path / "leader-epoch-checkpoint").read_bytes())
        assert epochs == [LeaderEpoch(0, 0), LeaderEpoch(2, 4), LeaderEpoch(3, 10)]


def _whole_batches(cut: int) -> int:
    count = 0
    while count < len(BATCHES) and sum(map(len, BATCHES[: count + 1])) <= cut:
        count += 1
    return count


def test_a_torn_write_in_the_middle_is_cut(tmp_path: Path) -> None:
    partition = recorded(tmp_path)
    feed(partition, LOG)
    partition.close()
    path = partition.segments[0].path
    torn = bytearray(path.read_bytes())
    torn[sum(map(len, BATCHES[:3])) - 2] ^= 0xFF
    path.write_bytes(torn)
    again = recorded(tmp_path)
    assert again.next_offset == 4
    feed(again, LOG)
    assert content(tmp_path) == LOG


def test_segments_are_rolled_and_named_as_a_broker_names_them(tmp_path: Path) -> None:
    partition = recorded(tmp_path, segment_bytes=len(BATCHES[0]) + len(BATCHES[1]))
    for one in BATCHES:
        feed(partition, one)
    partition.close()
    names = [path.name for path in sorted(partition.path.glob("*.log"))]
    assert names == [f"{offset:020}.log" for offset in (0, 4, 5, 10, 11)]
    assert content(tmp_path) == LOG
    listed = {row["path"]: row["sha256"] for row in partition.files() if str(row["path"]).endswith(".log")}
    assert listed == {
        f"__consumer_offsets-7/{path.name}": hashlib.sha256(path.read_bytes()).hexdigest() for path in partition.path.glob("*.log")
    }


def test_epochs_of_segments_that_no_manifest_lists_are_read_again(tmp_path: Path) -> None:
    partition = recorded(tmp_path, segment_bytes=1)
    feed(partition, BATCHES[0])
    partition.write_epochs()
    for one in BATCHES[1:]:
        feed(partition, one)
    again = recorded(tmp_path, segment_bytes=1)
    assert again.epochs == [(0, 0), (2, 4), (3, 10)]
    assert again.last_epoch == 3


def test_a_hash_of_the_manifest_is_kept_for_closed_segments(tmp_path: Path) -> None:
    partition = recorded(tmp_path, segment_bytes=1)
    for one in BATCHES:
        feed(partition, one)
    partition.close()
    digests = {str(row["path"]): (int(str(row["size_bytes"])), "0" * 64) for row in partition.files()}
    again = recorded(tmp_path, segment_bytes=1, digests=digests)
    found = [row["sha256"] for row in again.files() if str(row["path"]).endswith(".log")]
    # The last one is open, and was read.
    assert found == ["0" * 64] * 5 + [hashlib.sha256(BATCHES[-1]).hexdigest()]


def test_offsets_that_compaction_took_are_gaps_only_after_the_capture_caught_up(tmp_path: Path) -> None:
    partition = recorded(tmp_path)
    feed(partition, batch(0, 3) + batch(10, 12))
    assert (partition.gaps, partition.missing_offsets) == ([], 0)
    feed(partition, batch(20, 25, missing=2) + batch(26, 26), counts_gaps=True)
    assert partition.gaps == [Gap(13, 19)]
    # Seven between the batches, and two inside one.
    assert partition.missing_offsets == 9


def test_batches_that_are_there_already_are_not_written_again(tmp_path: Path) -> None:
    partition = recorded(tmp_path)
    feed(partition, b"".join(BATCHES[:3]))
    feed(partition, b"".join(BATCHES[1:5]))
    feed(partition, b"".join(BATCHES[1:5]))
    feed(partition, LOG)
    assert content(tmp_path) == LOG


def test_a_cut_batch_at_the_end_of_an_answer_is_left_for_the_next_one() -> None:
    scanned = scan_batches(memoryview(LOG[:-1]), 0, -1)
    assert scanned.end == len(LOG) - len(BATCHES[-1])
    assert (scanned.next_offset, scanned.batch_count, scanned.record_count) == (11, 5, 11)


@pytest.mark.parametrize(("magic", "codec"), [(0, 0), (1, 0), (0, 1), (1, 3)])
def test_messages_of_old_formats_are_kept_as_they_are(tmp_path: Path, magic: int, codec: int) -> None:
    old = b"".join(batch(first, first + 2, magic=magic, codec=codec) for first in (0, 3, 6))
    partition = recorded(tmp_path)
    feed(partition, old + batch(9, 9))
    assert content(tmp_path) == old + batch(9, 9)
    assert partition.next_offset == 10
    again = recorded(tmp_path)
    assert (again.next_offset, again.epochs) == (10, [(0, 9)])


def test_a_batch_with_a_wrong_checksum_is_written_as_it_came_and_named(tmp_path: Path) -> None:
    bad = bytearray(BATCHES[1])
    bad[-1] ^= 1
    partition = recorded(tmp_path)
    feed(partition, BATCHES[0] + bytes(bad) + BATCHES[2])
    assert content(tmp_path) == BATCHES[0] + bytes(bad) + BATCHES[2]
    assert partition.unsound_offsets == [1]


def test_the_oldest_segments_leave_with_their_epochs(tmp_path: Path) -> None:
    partition = recorded(tmp_path, segment_bytes=1)
    for one in BATCHES:
        feed(partition, one)
    for _ in range(3):
        partition.forget(partition.segments[0].path)
    assert partition.removed_below == 5
    assert partition.epochs == [(2, 5), (3, 10)]
    assert len([row for row in partition.files() if str(row["path"]).endswith(".log")]) == 3
