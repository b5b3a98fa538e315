"""A load in columns against the load record by record, which brokers are compared with: every table, every finding."""

from __future__ import annotations

import struct
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import exhume
from exhume.codecs import compression, records, segment_reader
from exhume.codecs.batch_writer import NewRecord, encode_batch
from exhume.codecs.batches import checksum, read_header_fields
from exhume.codecs.embedded.consumer import encode_assignment, encode_subscription
from exhume.codecs.log_directory import discover
from exhume.codecs.record_types import encode_key, encode_value
from exhume.codecs.segment_reader import ReadOptions
from exhume.fixtures.log_writer import PartitionWriter, group_metadata, offset_commit, tombstone, write_checkpoint
from exhume.replay import local, partition_load
from exhume.replay.broker_log import Stop
from exhume.replay.fold import tables
from exhume.replay.fold.folded_log import FoldedLog
from exhume.topic import OffsetsTopic
from tests import strategies
from tests.compared import Compared
from tests.judges import corpus
from tests.twins import COMPILED, PLAIN, RELEASES, CompiledLoads, assert_same_states, write_segments
from tests.written_batches import Written


@pytest.mark.parametrize("share", corpus.SHARES)
def test_every_bundled_log_loads_in_columns_as_it_does_record_by_record(share: int, compiled: CompiledLoads, compared: Compared) -> None:
    for turn, directory in enumerate(corpus.data_directories(share=share), share):
        assert_same_states(directory, ("2.8.2", "4.3.0"), ("strict",), turn=turn)

    assert compiled.count > 30
    compared["partitions in columns", "the load record by record"] += compiled.count


@pytest.mark.corpus
@pytest.mark.skipif(corpus.WHOLE is None, reason="EXHUME_CORPUS does not name a larger set of logs")
def test_every_log_of_the_corpus_loads_in_columns_as_it_does_record_by_record(compiled: CompiledLoads, compared: Compared) -> None:
    assert corpus.WHOLE is not None
    for directory in corpus.data_directories(corpus.WHOLE):
        assert_same_states(directory, ("2.8.2", "3.7.2-new", "4.3.0"), ("strict",))

    compared["partitions in columns, corpus", "the load record by record"] += compiled.count


@strategies.examples(60)
@given(
    batches=strategies.any_logs(),
    cut=st.integers(1, 9),
    release=st.sampled_from(RELEASES),
)
def test_a_generated_log_loads_in_columns_as_it_does_record_by_record(
    batches: list[Written], cut: int, release: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("log")
    write_segments(directory, batches, cut)

    assert_same_states(directory, [release])


@pytest.mark.parametrize("steps", ["s7 s8 v c8 c7", "s7 t c7", "s7 v t s7 c7", "s7 c7 s7 a7", "s7 s8 c7 t", "v s7", "s7 s7 t s7"])
def test_races_of_transactions_are_loaded_in_columns(steps: str, tmp_path: Path, compiled: CompiledLoads) -> None:
    write_segments(tmp_path, strategies.race(steps.split()), 3)

    assert_same_states(tmp_path)
    assert compiled.count >= (len(RELEASES) - 1)


@pytest.mark.parametrize("codec", range(5))
def test_a_log_of_every_codec_is_loaded_in_columns(codec: int, tmp_path: Path, compiled: CompiledLoads) -> None:
    with PartitionWriter(tmp_path, 0) as log:
        for number in range(40):
            commits = [
                offset_commit(f"g{number % 7}", f"t{each}", each, number, commit_timestamp_ms=number, metadata="x" * (number % 3))
                for each in range(30)
            ]
            log.append(commits, timestamp_ms=number, codec=codec)
            if number == 20:
                log.roll()
        log.append([tombstone(commits[0]), group_metadata("g1", {"protocol_type": "", "generation": 3})], timestamp_ms=50)

    assert_same_states(tmp_path, ("2.8.2", "4.3.0"))
    assert compiled.count == 4


def test_names_that_are_not_ascii_and_names_that_are_no_text(tmp_path: Path, compiled: CompiledLoads) -> None:
    """Valid UTF-8 is folded; what reads as U+FFFD goes to the loader, to which names that differ there only are one."""
    with PartitionWriter(tmp_path, 0) as log:
        for group in ("zahlungen-für-größe", "支付", "a�b"):
            log.append([offset_commit(group, "orders", 0, 1, commit_timestamp_ms=1)], timestamp_ms=1)
        for byte in (b"\xff", b"\xfe"):
            key, value = offset_commit("aXb", "orders", 0, 7, commit_timestamp_ms=1)
            assert key is not None
            log.append([(key.replace(b"aXb", b"a" + byte + b"b"), value)], timestamp_ms=1)

    # Releases before 2.1 refuse version 3 of a commit.
    assert_same_states(tmp_path, RELEASES[2:])
    assert compiled.count == 2 * len(RELEASES[2:])


def test_members_are_read_when_somebody_looks(tmp_path: Path, compiled: CompiledLoads) -> None:
    member = {
        "member_id": "m",
        "client_id": "c",
        "client_host": "/h",
        "session_timeout_ms": 30,
        "subscription": b"\0\0\0\0\0\1\0\6orders\xff\xff\xff\xff",
        "assignment": b"\0\0\0\0\0\1\0\6orders\0\0\0\1\0\0\0\2\xff\xff\xff\xff",
    }
    with PartitionWriter(tmp_path, 0) as log:
        value = {"protocol_type": "consumer", "generation": 3, "protocol": "range", "leader": "m", "members": [member]}
        log.append([group_metadata("g", value)], timestamp_ms=1)

    # Releases before 2.3 refuse version 3 of a group.
    assert_same_states(tmp_path, RELEASES[3:])
    assert compiled.count == 2 * len(RELEASES[3:])


@pytest.mark.parametrize(("last", "passed"), [("m2999", 0), ("m0", 3)], ids=["each once", "one twice"])
def test_superseded_records_of_thousands_of_members_are_not_passed_on(
    last: str, passed: int, tmp_path: Path, compiled: CompiledLoads, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: set[int] = set()

    def spy(settled: Any, options: Any) -> Any:
        counts.add(int(settled.tables.counts[tables.PASSED]))
        return partition_load.load_fold_result(settled, options)

    monkeypatch.setattr(local, "load_fold_result", spy)
    subscription, assignment = encode_subscription(1, {"topics": ["t"]}), encode_assignment(1, {})
    fields = {"client_id": "c", "client_host": "/h", "subscription": subscription, "assignment": assignment}
    members = [{"member_id": name, **fields} for name in (*(f"m{number}" for number in range(2999)), last)]
    value = {"protocol_type": "consumer", "protocol": "range", "leader": "m0", "members": members}
    with PartitionWriter(tmp_path, 0) as log:
        for generation in (1, 2):
            log.append([group_metadata("g", {**value, "generation": generation})], timestamp_ms=1000)
        log.append([group_metadata("g", {"protocol_type": "consumer", "generation": 3})], timestamp_ms=1000)

    assert_same_states(tmp_path, ("2.8.2", "4.3.0"))
    assert compiled.count == 4
    assert counts == {passed}


@pytest.mark.parametrize("codec", [0, 3])
def test_groups_of_batches_that_are_compressed_and_that_are_not(codec: int, tmp_path: Path, compiled: CompiledLoads) -> None:
    """A value is read where it lies in its segment, wherever it was folded."""
    with PartitionWriter(tmp_path, 0) as log:
        for number in range(30):
            commits = [offset_commit(f"g{number}", "t", each, number, commit_timestamp_ms=number) for each in range(9)]
            log.append(commits, timestamp_ms=number, codec=3)
            groups = [group_metadata(f"g{number + each}", {"protocol_type": f"p{number}", "generation": number}) for each in range(3)]
            log.append([commits[0], *groups], timestamp_ms=number, codec=codec)

    assert_same_states(tmp_path, RELEASES[3:])
    assert compiled.count == 2 * len(RELEASES[3:])


def test_a_small_log_is_folded_by_kernels(tmp_path: Path, compiled: CompiledLoads) -> None:
    with PartitionWriter(tmp_path, 0) as log:
        log.append([offset_commit("g", "t", 0, 1, commit_timestamp_ms=1)], timestamp_ms=1)
    with exhume.open(tmp_path) as topic:
        assert topic.state().offsets.num_rows == 1

    assert compiled.count == 1


def test_a_checksum_that_fails_is_no_matter_to_a_load(tmp_path: Path, compiled: CompiledLoads) -> None:
    with PartitionWriter(tmp_path, 0) as log:
        for number in range(3):
            log.append([offset_commit("g", "t", 0, number, commit_timestamp_ms=1)], timestamp_ms=1)
    segment = next(tmp_path.rglob("*.log"))
    content = bytearray(segment.read_bytes())
    content[40] ^= 1  # in the largest timestamp of the first batch
    segment.write_bytes(content)

    assert_same_states(tmp_path)
    assert compiled.count == 2 * len(RELEASES)
    unverified = discover([str(tmp_path)], include=frozenset(), temp_dir=None)
    with OffsetsTopic(unverified, replace(ReadOptions(least_compiled_bytes=COMPILED), verify=False)) as topic:
        topic.state()
    assert compiled.count == 2 * len(RELEASES) + 1


def asked(directory: Path, *, least_bytes: int) -> dict[str, Any]:
    """What questions about single groups are answered."""
    answers: dict[str, Any] = {}
    with OffsetsTopic(discover([str(directory)]), ReadOptions(least_compiled_bytes=least_bytes, threads=2)) as topic:
        expiry = topic.expiry(now_ms=1_900_000_000_000)
        answers["forecast"], answers["tombstones"] = expiry.forecast.to_pylist(), expiry.tombstones.to_pylist()
        groups = sorted({row["group"] for row in answers["forecast"]})
        for group in groups[:3]:
            answers[f"history of {group}"] = topic.history(group).to_pylist()
            answers[f"why {group}"] = topic.why(group, now_ms=1_900_000_000_000).to_pylist()
    return answers


@pytest.mark.one_of(5)
@pytest.mark.parametrize(
    "story", ["2.8.2-expiry", "2.8.2-lifecycle", "3.9.1-transactions-new", "4.3.0-transactions", "4.3.0-consumer-groups"]
)
def test_questions_about_groups_are_answered_alike(story: str, compiled: CompiledLoads) -> None:
    directory = next(case for case in corpus.cases() if case.name == story).directory / "data"

    assert asked(directory, least_bytes=COMPILED) == asked(directory, least_bytes=PLAIN)
    assert compiled.count > 0


def test_a_group_without_a_record_is_told_with_its_neighbours(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 0) as log:
        log.append([offset_commit("billing", "orders", 0, 1, commit_timestamp_ms=1)], timestamp_ms=1)
    topic = OffsetsTopic(discover([str(tmp_path)]), ReadOptions(least_compiled_bytes=COMPILED))
    with topic, pytest.raises(exhume.RequestError) as refused:
        topic.history("biling")

    assert "billing" in str(refused.value)


def test_bytes_behind_the_header_of_a_batch_that_counts_no_record(tmp_path: Path, compiled: CompiledLoads) -> None:
    """A broker takes it for empty; who reads leniently finds the record."""
    with PartitionWriter(tmp_path, 0) as log:
        log.append([offset_commit("g", "t", 0, 1, commit_timestamp_ms=1)], timestamp_ms=1)
        batch = bytearray(encode_batch([NewRecord(1, 1, *offset_commit("g", "t", 1, 1, commit_timestamp_ms=1))], base_offset=1))
        struct.pack_into(">i", batch, 57, 0)
        struct.pack_into(">I", batch, 17, checksum(batch, read_header_fields(batch, 0), len(batch)))
        log.append_bytes(bytes(batch), 1, 1)

    assert_same_states(tmp_path)
    # A strict load ends there, which nobody needs a second load to find.
    assert compiled.count == 2 * len(RELEASES)


def test_a_group_whose_only_commit_is_of_a_topic_that_is_no_text(tmp_path: Path, compiled: CompiledLoads) -> None:
    """The commit is passed on and makes the group exist, which the fold knows from a tombstone only, or from a later commit."""
    key, value = offset_commit("g", "aXb", 0, 7, commit_timestamp_ms=1)
    assert key is not None
    not_plain, plain = (key.replace(b"aXb", b"a\xffb"), value), offset_commit("g", "t", 0, 1, commit_timestamp_ms=1)
    other = offset_commit("h", "t", 0, 1, commit_timestamp_ms=1)
    group = group_metadata("g", {"protocol_type": "consumer", "generation": 3})
    for number, written in enumerate(
        (
            [tombstone(plain), not_plain],
            [not_plain, tombstone(plain)],
            [not_plain, plain],
            [plain, not_plain],
            [group, not_plain, tombstone(group), plain],
            [not_plain, tombstone(group)],
        )
    ):
        with PartitionWriter(tmp_path / str(number), 0) as log:
            for record in (other, *written):
                log.append([record], timestamp_ms=1)
                log.roll()

        assert_same_states(tmp_path / str(number), RELEASES[3:])
    assert compiled.count == 6 * 2 * len(RELEASES[3:])


def test_one_topic_id_with_two_names(tmp_path: Path, compiled: CompiledLoads) -> None:
    """The latest word counts, of the last partition: whichever of them are loaded in columns."""
    topic_id = "AQIDBAUGBwgJCgsMDQ4PEA"
    member = encode_key(7, {"group": "g", "member_id": "m"})
    assigned = encode_value(7, 0, {"topic_partitions": [{"topic_id": topic_id, "partitions": [0]}]})
    for number, is_not_plain in enumerate(((False, False), (True, False), (False, True), (True, True))):
        for partition, topic in enumerate(("before", "behind")):
            with PartitionWriter(tmp_path / str(number), partition) as log:
                fields = {"commit_timestamp_ms": 1, "version": 4}
                log.append([offset_commit("g", topic, 0, 1, topic_id=topic_id, **fields), (member, assigned)], timestamp_ms=1)
                if is_not_plain[partition]:
                    # A key that no release reads: record by record.
                    log.append([(b"\0\1\0\1g", b"")], timestamp_ms=1)

        assert_same_states(tmp_path / str(number), ["4.3.0"])
    assert compiled.count > 0


@pytest.mark.parametrize("base_offset", [2**63 - 1, 2**63 - 2, 2**63 - 3, 2**62])
def test_the_largest_record_offsets_there_can_be(base_offset: int, tmp_path: Path) -> None:
    commits = [offset_commit("g", "t", each, 1, commit_timestamp_ms=1) for each in range(2)]
    with PartitionWriter(tmp_path, 0, first_offset=base_offset) as log:
        for place, commit in enumerate(commits[: 2**63 - base_offset]):
            batch = encode_batch([NewRecord(base_offset + place, 1, *commit)], base_offset=base_offset + place)
            log.append_bytes(batch, base_offset + place, 1)

    assert_same_states(tmp_path)
    with exhume.open(tmp_path) as topic:
        assert topic.inspect().segments.num_rows == 1


def _batches_at(log: PartitionWriter, *places: tuple[int, int]) -> None:
    """Batches from these first to these last record offsets."""
    for first, last in places:
        records = [NewRecord(each, 1, *offset_commit("g", "t", each % 3, each, commit_timestamp_ms=1)) for each in range(first, last + 1)]
        log.append_bytes(encode_batch(records, base_offset=first), last, 1)


@pytest.mark.parametrize("places", [((0, 3), (2, 6)), ((0, 1), (2, 3), (2, 3), (4, 6)), ((0, 3), (4, 6)), ((0, 1), (2, 3))], ids=str)
def test_batches_below_the_log_start_are_looked_at_all_the_same(places: tuple[tuple[int, int], ...], tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 0) as log:
        _batches_at(log, *places)
    write_checkpoint(tmp_path / "log-start-offset-checkpoint", [("__consumer_offsets", 0, 4)])

    assert_same_states(tmp_path)


@pytest.mark.parametrize("stop", ["clean", "unclean"])
@pytest.mark.parametrize("outcome", [b"\0\0\0\1", b"\0\0\0\x09"], ids=["commit", "unknown"])
def test_a_marker_below_the_log_start(stop: Stop, outcome: bytes, tmp_path: Path) -> None:
    """A start after an unclean stop refuses one of an unknown type, wherever it lies."""
    with PartitionWriter(tmp_path, 0) as log:
        log.append([(outcome, b"\0\0\0\0\0\0")], producer_id=7, producer_epoch=0, is_transactional=True, is_control=True)
        _batches_at(log, (1, 3))
    write_checkpoint(tmp_path / "log-start-offset-checkpoint", [("__consumer_offsets", 0, 2)])

    assert_same_states(tmp_path, asked={"stop": stop})


@pytest.mark.parametrize("stop", ["clean", "unclean"])
def test_a_start_after_an_unclean_stop_verifies_whatever_the_reader_does(stop: Stop, tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 0) as log:
        _batches_at(log, (0, 3), (4, 6))
    segment = next(tmp_path.rglob("*.log"))
    content = bytearray(segment.read_bytes())
    content[40] ^= 1
    segment.write_bytes(content)

    assert_same_states(tmp_path, asked={"stop": stop}, verify=False)


def test_a_batch_that_unfolds_to_more_than_a_broker_is_taken_to_survive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A larger cap for reading is no larger cap for a load; group records in such a batch are none that a fold could go back to."""
    for module in (compression, records, segment_reader):
        monkeypatch.setattr(module, "DEFAULT_CAP_BYTES", 1000)
    monkeypatch.setattr(records.read_records, "__kwdefaults__", {"cap_bytes": 1000})
    monkeypatch.setattr(records.record_section, "__kwdefaults__", {"cap_bytes": 1000})
    with PartitionWriter(tmp_path, 0) as log:
        group = group_metadata("g", {"protocol_type": "", "generation": 3, "protocol": "p" * 2000}, version=0)
        log.append([group, tombstone(group)], codec=1)
        log.append([group], codec=1)

    assert_same_states(tmp_path, cap_bytes=1 << 20)


def test_the_group_that_a_late_error_names_is_the_first_that_was_removed(tmp_path: Path, compiled: CompiledLoads) -> None:
    """Members of another protocol than that of consumers make the loader read a group's records itself."""
    member = {"member_id": "m", "client_id": "c", "client_host": "/h", "session_timeout_ms": 30, "subscription": b"", "assignment": b""}
    value = {"protocol_type": "connect", "generation": 3, "protocol": "default", "leader": "m", "members": [member]}
    connect = group_metadata("connect", value, version=0)
    commits = [offset_commit(name, "t", 0, 1, commit_timestamp_ms=1, version=1) for name in ("plain", "connect")]
    plain = group_metadata("plain", {"protocol_type": "", "generation": 3}, version=0)
    with PartitionWriter(tmp_path, 0) as log:
        for record in (connect, tombstone(connect), plain, tombstone(plain), tombstone(connect)):
            log.append([record], timestamp_ms=1)
            log.roll()
        # Offsets of a transaction that is open still make a group exist, and are no excuse.
        log.append(commits, timestamp_ms=1, producer_id=7, producer_epoch=0, is_transactional=True)

    assert_same_states(tmp_path, RELEASES)
    assert compiled.count == 2 * len(RELEASES)


def test_an_empty_log(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path / "nothing", 0):
        pass
    assert_same_states(tmp_path / "nothing")
    with PartitionWriter(tmp_path / "empty batch", 0) as log:
        log.append_bytes(encode_batch([], base_offset=0, last_offset_delta=4), 4, 1)
    assert_same_states(tmp_path / "empty batch")


def test_keys_whose_ranks_have_more_than_31_bits(tmp_path: Path) -> None:
    """Each in a group and a topic of its own, of partitions on both sides of 0."""
    count = 47_000
    with PartitionWriter(tmp_path, 0) as log:
        commits = [offset_commit(f"g{-each}", f"t{each}", each - 9, each, commit_timestamp_ms=1) for each in range(count)]
        for start in range(0, count, 1000):
            log.append(commits[start : start + 1000], timestamp_ms=1)

    with OffsetsTopic(discover([str(tmp_path)]), ReadOptions(least_compiled_bytes=COMPILED)) as topic:
        offsets = topic.state().offsets
    keys = list(zip(*(offsets[name].to_pylist() for name in ("group", "topic", "partition")), strict=True))
    assert len(keys) == count
    assert keys == sorted(keys)


def test_an_archive_is_loaded_in_columns(tmp_path: Path, compiled: CompiledLoads) -> None:
    with PartitionWriter(tmp_path / "data", 0) as log:
        for number in range(20):
            log.append([offset_commit("g", "t", number, 1, commit_timestamp_ms=1)], timestamp_ms=1, codec=number % 5)
    for mode in ("w", "w:gz"):
        archive = tmp_path / f"data.{mode[2:]}tar"
        with tarfile.open(archive, mode) as tar:
            tar.add(tmp_path / "data", "data")

        assert_same_states(archive, ["4.3.0"])
    assert compiled.count == 2 * 2


def test_a_retention_beyond_the_last_moment_wraps_as_in_java(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 0) as log:
        log.append([offset_commit("g", "t", 0, 1, commit_timestamp_ms=2**63 - 1, version=1)], timestamp_ms=1)

    assert_same_states(tmp_path)


def test_the_fold_of_a_few_keys_keeps_no_room_for_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folds: list[FoldedLog] = []

    def load(folded: FoldedLog, options: partition_load.LoadOptions) -> object:
        folds.append(folded)
        return partition_load.load_fold_result(folded, options)

    monkeypatch.setattr(local, "load_fold_result", load)
    with PartitionWriter(tmp_path, 0) as log:
        log.append(
            [offset_commit("billing", "orders", partition, 1, commit_timestamp_ms=1, metadata="m") for partition in range(20)],
            timestamp_ms=1,
        )

    with OffsetsTopic(discover([str(tmp_path)]), ReadOptions(least_compiled_bytes=COMPILED)) as topic:
        assert topic.state().offsets.num_rows == 20

    (folded,) = folds
    assert len(folded.tables.commits) == len(folded.tables.keys.rows) == 20
    assert len(folded.tables.group_names.places) == 1
    assert len(folded.tables.metadata) == 20
