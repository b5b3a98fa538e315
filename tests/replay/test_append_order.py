"""The order of a log by its append times."""

from __future__ import annotations

from pathlib import Path

import pytest

from exhume.arrow_rows import Origin
from exhume.codecs.batch_writer import NewRecord, encode_batch
from exhume.codecs.log_directory import discover
from exhume.codecs.log_pass import collect
from exhume.codecs.segment_reader import ReadOptions, SegmentReader
from exhume.findings import Findings
from exhume.fixtures.log_writer import PartitionWriter, offset_commit
from exhume.replay.append_order import AppendOrders
from exhume.replay.moment import ClockOrder
from tests.clocks import take
from tests.judges import corpus


def orders(directory: Path, time_ms: int) -> dict[Origin, ClockOrder]:
    with discover([directory]) as evidence:
        found = AppendOrders(time_ms)
        collect(SegmentReader(evidence, ReadOptions(), Findings()), [found])
        return dict(found.by_log)


def orders_record_by_record(directory: Path, time_ms: int) -> dict[Origin, ClockOrder]:
    found: dict[Origin, ClockOrder] = {}
    with discover([directory]) as evidence:
        for batch in SegmentReader(evidence, ReadOptions(), Findings()).batches():
            order = found.setdefault((batch.partition.replica, batch.partition.offsets_partition), ClockOrder())
            for record in batch.records():
                take(order, record.record_offset, record.timestamp_ms, time_ms)
    return found


def times_of(directory: Path) -> list[int]:
    """The median of all times of these logs, and one on each side of them."""
    with discover([directory]) as evidence:
        batches = SegmentReader(evidence, ReadOptions(), Findings()).batches()
        times = sorted(record.timestamp_ms for batch in batches for record in batch.records() if record.timestamp_ms is not None)
    return [0, times[len(times) // 2], times[-1]] if times else [0]


@pytest.mark.parametrize("case", corpus.sweep(corpus.cases()))
def test_the_order_is_the_same_as_record_by_record(case: corpus.Case) -> None:
    for directory in case.data_directories.values():
        for time_ms in times_of(directory):
            assert orders(directory, time_ms) == orders_record_by_record(directory, time_ms)


@pytest.mark.parametrize("codec", [0, 2, 3])
def test_records_that_no_kernel_takes_count_once_and_in_their_place(tmp_path: Path, codec: int) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        for number, time_ms in enumerate((100, 300, 150, 400, 200, 500)):
            key, value = offset_commit("billing", "orders", 0, number, commit_timestamp_ms=time_ms)
            headers = [("h", b"v")] if number in (2, 4) else []
            records = [NewRecord(2 * number, time_ms, key, value), NewRecord(2 * number + 1, time_ms, key, value, headers)]
            log.append_bytes(encode_batch(records, base_offset=2 * number, codec=codec), 2 * number + 1, time_ms)

    [(origin, order)] = orders(tmp_path, 200).items()

    assert origin[1] == 7
    assert order == ClockOrder(timed=12, out_of_order=4, first_later=(2, 300), left_out=4, greatest_ms=500)


def test_a_batch_that_cannot_be_unfolded_says_nothing(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        for number, time_ms in enumerate((100, 300, 200)):
            record = NewRecord(number, time_ms, *offset_commit("billing", "orders", 0, number, commit_timestamp_ms=time_ms))
            batch = encode_batch([record], base_offset=number, codec=0)
            if number == 1:
                batch = batch[:21] + b"\0\2" + batch[23:]
            log.append_bytes(batch, number, time_ms)

    [order] = orders(tmp_path, 150).values()

    assert (order.timed, order.first_later) == (2, (2, 200))
