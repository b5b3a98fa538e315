"""A load for a few groups against the load of all, of which the others were left out afterwards: every table, every finding."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhume.codecs.columns import mentions, record_blocks
from exhume.codecs.log_directory import discover
from exhume.codecs.segment_reader import ReadOptions
from exhume.errors import RequestError
from exhume.fixtures.log_writer import PartitionWriter, group_metadata, offset_commit, tombstone
from exhume.replay.fold import log as log_folds
from exhume.replay.fold import part as part_folds
from exhume.replay.partition_load import Mode
from exhume.replay.state import CoordinatorState
from exhume.topic import OffsetsTopic
from tests import strategies
from tests.compared import Compared
from tests.judges import corpus
from tests.twins import (
    COMPILED,
    PLAIN,
    RELEASES,
    THREADS,
    CompiledLoads,
    assert_equal,
    assert_same_histories,
    groups_of,
    history_of,
    write_segments,
)
from tests.written_batches import Written


def _loaded(
    directory: Path,
    release: str,
    groups: Collection[str] | None,
    *,
    least_bytes: int = COMPILED,
    threads: int = 1,
    mode: Mode = "strict",
    **at: Any,
) -> tuple[CoordinatorState, list[str]]:
    options = ReadOptions(least_compiled_bytes=least_bytes, threads=threads)
    with OffsetsTopic(discover([str(directory)], include=frozenset(), temp_dir=None), options) as topic:
        state = topic.state(release=release, mode=mode, groups=groups, **at)
        for table in state.tables.values():
            assert table is not None
        return state, sorted(map(repr, topic.findings))


def assert_same(directory: Path, release: str, *, turn: int = 0, mode: Mode = "strict", shares: int | None = None, **at: Any) -> int:
    """Raises where a load for some groups is another than that of all; how many groups there are.

    Each is chosen alone, or all in so many shares. `turn` is the place in `THREADS` to begin with.
    """
    whole, findings = _loaded(directory, release, None, least_bytes=PLAIN, mode=mode, **at)
    named = groups_of(whole)
    known = [*named, "nobody"]
    for share in range(shares or len(known)):
        chosen, threads = known[share :: shares or len(known)], THREADS[(turn + share) % len(THREADS)]
        state, found = _loaded(directory, release, chosen, threads=threads, mode=mode, **at)
        assert_equal(dict(state.tables), dict(whole.only(chosen).tables), (release, chosen, threads))
        assert found == findings, (release, chosen, threads)
    return len(named)


@pytest.mark.parametrize("share", corpus.SHARES)
def test_every_group_of_every_bundled_log(share: int, compiled: CompiledLoads, compared: Compared) -> None:
    count = 0
    for number, directory in enumerate(corpus.data_directories(share=share), share):
        release = ("4.3.0", "2.8.2", "4.3.0", "3.7.2-new", "1.1.1")[number % 5]
        count += assert_same(directory, release, turn=number, shares=2)

    compared["chosen groups", "the load of all"] += count
    assert compiled.count > 30


@strategies.examples(60)
@given(
    batches=strategies.any_logs(),
    cut=st.integers(1, 9),
    release=st.sampled_from(RELEASES),
    mode_and_near=st.tuples(st.sampled_from(["strict", "lenient"]), st.sampled_from([1, 3, 128])),
)
def test_every_group_of_a_generated_log(
    batches: list[Written], cut: int, release: str, mode_and_near: tuple[Mode, int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("log")
    write_segments(directory, batches, cut)
    mode, near = mode_and_near

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(part_folds, "_NEAR_BATCHES", near)
        patch.setattr(log_folds, "_LEAST_BYTES", 100)
        assert_same(directory, release, mode=mode)


def _commit(group: str, partition: int = 0, number: int = 1, **fields: Any) -> Any:
    return offset_commit(group, "orders", partition, number, commit_timestamp_ms=5, **fields)


def test_a_group_that_was_removed_without_its_offsets_is_told_though_nobody_asks_for_it(tmp_path: Path, compiled: CompiledLoads) -> None:
    with PartitionWriter(tmp_path, 0) as log:
        for number in range(8):
            log.append([_commit("chosen", 0, number), _commit("chosen", 1, number)])
            log.append([_commit("left", partition, number) for partition in range(3)])
            log.append([_commit("gone", partition, number) for partition in range(3)])
        log.append([group_metadata("left", {"protocol_type": "consumer", "generation": 3})])
        log.append([tombstone(_commit("gone", partition)) for partition in range(3)])
        log.append([tombstone(group_metadata(group, {"protocol_type": "", "generation": 3})) for group in ("left", "gone")])

    _, findings = _loaded(tmp_path, "4.3.0", ["chosen"])
    assert ["offsets_without_group" in finding and "left" in finding for finding in findings].count(True) == 1
    for release in RELEASES[2:]:
        assert_same(tmp_path, release)
    assert compiled.count > 0


def test_a_group_in_two_partitions_is_told_though_nobody_asks_for_it(tmp_path: Path) -> None:
    for partition in range(2):
        with PartitionWriter(tmp_path, partition) as log:
            for number in range(4):
                log.append([_commit("chosen" if not partition else "other", 0, number)])
                log.append([_commit("twice", 0, number)])
            if partition:
                log.append([tombstone(_commit("twice"))])

    for release in RELEASES[2:]:
        assert_same(tmp_path, release)


def test_a_transaction_of_several_groups_is_shown_whole(tmp_path: Path, compiled: CompiledLoads) -> None:
    transaction = {"producer_id": 7, "producer_epoch": 0, "is_transactional": True}
    with PartitionWriter(tmp_path, 0) as log:
        for group in ("chosen", "other", "third"):
            log.append([_commit(group, partition) for partition in range(3)])
            log.append([_commit(group, partition, 2) for partition in range(3)])
        log.append([_commit(group, partition, 9) for group in ("chosen", "other") for partition in range(2)], **transaction)
        log.append([tombstone(_commit("other", 1))])
        log.append([_commit("third", 1, 3)])

    for release in RELEASES[2:]:
        assert_same(tmp_path, release)
    assert compiled.count > 0


def test_names_of_topics_are_learned_from_commits_of_every_group(tmp_path: Path, compiled: CompiledLoads) -> None:
    ids = ("AQIDBAUGBwgJCgsMDQ4PEA", "BQIDBAUGBwgJCgsMDQ4PEA")
    with PartitionWriter(tmp_path, 0) as log:
        for number in range(6):
            log.append([_commit("chosen", 0, number)])
            log.append([_commit("other", each, number, version=4, topic_id=ids[number // 4], metadata="m" * number) for each in range(3)])
            log.append([_commit("other", each, number, version=4) for each in range(3)])

    assert_same(tmp_path, "4.3.0")
    assert compiled.count > 0


@pytest.mark.parametrize("codec", range(5))
def test_every_codec_and_moments(codec: int, tmp_path: Path, compiled: CompiledLoads) -> None:
    with PartitionWriter(tmp_path, 0) as log:
        for number in range(40):
            commits = [_commit(f"g{number % 5}", each, number, metadata="x" * (number % 3)) for each in range(10)]
            log.append(commits, timestamp_ms=number, codec=codec if number % 7 else 0)
            if number == 20:
                log.roll()

    assert_same(tmp_path, "4.3.0")
    assert_same(tmp_path, "4.3.0", at_offset=205)
    assert_same(tmp_path, "2.8.2", at_time_ms=17)
    assert compiled.count > 10


@pytest.mark.parametrize("share", corpus.SHARES)
def test_histories_of_bundled_stories(share: int, compared: Compared) -> None:
    count = 0
    for number, directory in enumerate(corpus.data_directories(share=share), share):
        release = ("4.3.0", "2.8.2")[number % 2]
        groups = groups_of(_loaded(directory, release, None, least_bytes=PLAIN, mode="lenient")[0])
        count += assert_same_histories(directory, groups[number % 3 :: 3][:2], release, 1 + number % 2)

    compared["records of histories", "the plain reading"] += count


@strategies.examples(20)
@given(
    batches=st.one_of(strategies.logs(strategies.healthy_batches()), strategies.transaction_logs(), strategies.old_logs()),
    cut=st.integers(1, 9),
    release=st.sampled_from(RELEASES[3:]),
    threads=st.sampled_from([1, 2]),
)
def test_histories_of_a_generated_log(
    batches: list[Written], cut: int, release: str, threads: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("log")
    write_segments(directory, batches, cut)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_folds, "_LEAST_BYTES", 100)
        groups = groups_of(_loaded(directory, release, None, least_bytes=PLAIN, mode="lenient")[0])
        assert_same_histories(directory, groups, release, threads)


def test_a_transaction_that_is_committed_in_another_part_is_told_in_the_history(tmp_path: Path) -> None:
    transaction = {"producer_id": 7, "producer_epoch": 0, "is_transactional": True}
    with PartitionWriter(tmp_path, 0) as log:
        for number in range(30):
            log.append([_commit("other", 0, number)])
            log.append([_commit("chosen", 0, number), _commit("chosen", 1, number)], **transaction)
            log.append([_commit("other", 0, number)])
            if number % 2:
                log.append_marker(number // 2 % 2, producer_id=7, producer_epoch=0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_folds, "_LEAST_BYTES", 100)
        for threads in (1, 2, 8):
            assert assert_same_histories(tmp_path, ["chosen", "other"], "4.3.0", threads) == 120


def test_a_batch_of_more_records_than_a_piece_is_told_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (mentions, record_blocks):
        monkeypatch.setattr(module, "ROWS", 5)
    with PartitionWriter(tmp_path, 0) as log:
        for size in (3, 5, 6, 12, 1):
            log.append([_commit("chosen", partition, size) for partition in range(size)])

    assert assert_same_histories(tmp_path, ["chosen"], "4.3.0", 1) == 27


def test_what_nobody_knows_is_told_with_what_is_near_by(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 0) as log:
        for number in range(3):
            log.append([_commit("billing", 0, number)])
            log.append([_commit("shipping", 0, number)])

    for group, key in (("biling", None), ("billing", ("orders", 9)), ("billing", ("returns", 0))):
        told = set()
        for least_bytes in (COMPILED, PLAIN):
            with pytest.raises(RequestError) as error:
                history_of(tmp_path, group, key, release="4.3.0", least_compiled_bytes=least_bytes)
            told.add((error.value.message, error.value.remedy))
        assert len(told) == 1
