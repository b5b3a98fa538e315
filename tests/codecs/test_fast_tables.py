"""Tables by kernels against the plain reading: every row, every finding, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exhume.codecs.columns import runs
from exhume.codecs.log_directory import discover
from exhume.codecs.record_filter import RecordFilter
from exhume.codecs.segment_reader import ReadOptions
from exhume.topic import OffsetsTopic
from tests import strategies
from tests.conftest import Compared
from tests.judges import corpus
from tests.written_batches import Written, encode_log

Readers = dict[str, Callable[[OffsetsTopic], pa.RecordBatchReader]]

_NEVER = 1 << 60


class _Taken:
    """Counts the batches that went through kernels."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        original = runs._count_in_order

        def spy(*arguments: Any) -> int:
            count = original(*arguments)
            self.count += count
            return count

        monkeypatch.setattr(runs, "_count_in_order", spy)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> _Taken:
    return _Taken(monkeypatch)


def table_of(reader: pa.RecordBatchReader) -> pa.Table:
    """All that this reader gives, its arrays checked to the last byte."""
    table = reader.read_all()
    table.validate(full=True)
    return table


READERS: Readers = {
    "batches": OffsetsTopic.batches,
    "records": OffsetsTopic.records,
    "offset commits": OffsetsTopic.offset_commits,
    "offset commits of two groups": lambda topic: topic.offset_commits(groups=["billing", "carts"]),
    "group metadata": OffsetsTopic.group_metadata,
    "group metadata of two groups": lambda topic: topic.group_metadata(groups=["billing", "carts"]),
    "end-transaction markers": OffsetsTopic.end_txn_markers,
}


def tables(directory: Path, *, least_bytes: int, verify: bool = True, readers: Readers = READERS) -> dict[str, Any]:
    """Every table, and what was found while it was read."""
    found: dict[str, Any] = {}
    for name, read in readers.items():
        with OffsetsTopic(discover([str(directory)]), ReadOptions(verify=verify, least_compiled_bytes=least_bytes)) as topic:
            table = table_of(read(topic))
            found[name] = (table.schema, table.to_pylist())
            found[f"findings of {name}"] = [repr(finding) for finding in topic.findings]
    return found


def assert_same(directory: Path, *, verify: bool = True, readers: Readers = READERS) -> None:
    plainly = tables(directory, least_bytes=_NEVER, verify=verify, readers=readers)
    by_kernels = tables(directory, least_bytes=0, verify=verify, readers=readers)
    for name, table in plainly.items():
        assert by_kernels[name] == table, name


def _logs(root: Path) -> Iterator[Path]:
    return (answer for answer in sorted({answer.data for case in corpus.cases(root) for answer in case.answers() if answer.data.is_dir()}))


def test_every_bundled_log(taken: _Taken, compared: Compared) -> None:
    for directory in _logs(corpus.BUNDLED):
        assert_same(directory)

    assert taken.count > 5000
    compared["batches by kernels", "the plain reading"] += taken.count


def write(directory: Path, batches: Sequence[Written], cut: int) -> list[Path]:
    """These batches as two segments."""
    content, headers = encode_log(batches)
    partition = directory / "__consumer_offsets-0"
    partition.mkdir(parents=True)
    cut = min(cut, len(headers) - 1)
    places = [(0, 0)] if cut < 1 else [(0, 0), (headers[cut].base_offset or 0, headers[cut].byte_position)]
    ends = [position for _, position in places[1:]] + [len(content)]
    written = []
    for (base_offset, position), end in zip(places, ends, strict=True):
        written.append(partition / f"{base_offset:020d}.log")
        written[-1].write_bytes(content[position:end])
    return written


_SETTINGS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
_ANY_LOG = st.one_of(strategies.logs(), strategies.logs(strategies.healthy_batches()), strategies.transaction_logs())


@settings(_SETTINGS, max_examples=60 * strategies.TIMES)
@given(batches=_ANY_LOG, cut=st.integers(0, 12), verify=st.booleans())
def test_a_generated_log(batches: list[Written], cut: int, verify: bool, tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("log")
    write(directory, batches, cut)

    assert_same(directory, verify=verify)


@settings(_SETTINGS, max_examples=100 * strategies.TIMES)
@given(data=st.data(), batches=_ANY_LOG, cut=st.integers(0, 12), verify=st.booleans())
def test_a_generated_log_that_is_damaged(
    data: st.DataObject, batches: list[Written], cut: int, verify: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("log")
    segments = write(directory, batches, cut)
    segment = data.draw(st.sampled_from(segments))
    content = bytearray(segment.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    segment.write_bytes(content[: data.draw(st.sampled_from((len(content), len(content), len(content) - 5)))])

    assert_same(directory, verify=verify)


_NAMES = ("billing", "carts", "refunds", "orders", "a\ufffdb", "\ud800", "")
_FILTERS = st.builds(
    RecordFilter,
    groups=st.none() | st.sets(st.sampled_from(_NAMES), max_size=2),
    topics=st.none() | st.none() | st.sets(st.sampled_from(_NAMES), max_size=2),
    partitions=st.none() | st.none() | st.sets(st.sampled_from((0, 1, -1, 1 << 40)), max_size=2),
    types=st.none()
    | st.sets(st.sampled_from(("offset_commit", "group_metadata", "end_txn_marker", "control", "unknown", "1", "5", "-1", "999", "20000"))),
    from_offset=st.none() | st.integers(0, 12),
    to_offset=st.none() | st.integers(12, 40),
    from_time_ms=st.none() | st.integers(-2, 3_000),
    to_time_ms=st.none() | st.integers(3_000, 9_000),
    offsets_partitions=st.none() | st.none() | st.sets(st.sampled_from((0, 1))),
)


@settings(_SETTINGS, max_examples=150 * strategies.TIMES)
@given(batches=_ANY_LOG, wanted=_FILTERS)
def test_filters(batches: list[Written], wanted: RecordFilter, tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("log")
    write(directory, batches, 4)

    assert_same(directory, readers={"records": lambda topic: topic.records(**asdict(wanted))})
