"""What was held of one group in front of a record: the same as a load of the whole log up to there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import exhume
from exhume.codecs.log_directory import discover
from exhume.codecs.record_types import ABORT, COMMIT
from exhume.fixtures.log_writer import KeyValue, PartitionWriter, offset_commit, tombstone
from exhume.replay.group_moments import holdings_in_front
from exhume.replay.local import load_partitions
from exhume.replay.moment import Moment
from exhume.replay.partition_load import LoadOptions
from exhume.replay.partition_state import PartitionState
from exhume.replay.reading import LoadInputs
from exhume.replay.releases import profile_for
from exhume.replay.topic_names import TopicNames
from tests.judges import corpus

STORIES = [
    ("0.9.0.1-expiry", "0.9.0.1"),
    ("0.11.0.3-transactions", "0.11.0.3"),
    ("2.8.2-expiry", "2.8.2"),
    ("4.0.0-conversion", "4.0.0"),
    ("4.3.0-transactions", "4.3.0"),
]
GROUPS, MOMENTS = 8, 3


def groups_of(topic: exhume.OffsetsTopic) -> Iterator[str]:
    tables = (topic.decoded(name).read_all() for name in ("offset_commit", "group_metadata"))
    yield from sorted({group for table in tables for group in table["group"].to_pylist()})[:GROUPS]


def only(group: str, held: PartitionState) -> tuple[object, ...]:
    """What there is of this group; of transactions what is pending of it."""
    pending = {
        (transaction.producer_id, key): commit
        for transaction in held.transactions.values()
        for key, commit in transaction.offsets.items()
        if key[0] == group
    }
    return held.groups.get(group), {key: commit for key, commit in held.offsets.items() if key[0] == group}, pending


@pytest.mark.parametrize(("name", "release"), STORIES)
def test_one_pass_over_a_group_gives_what_a_load_up_to_each_record_gives(name: str, release: str) -> None:
    data = next(case for case in corpus.cases() if case.name == name).data_directories[""]
    profile = profile_for(release)
    compared = 0
    with exhume.open(data) as topic:
        histories = {group: topic.history(group, release=release).to_pylist() for group in groups_of(topic)}
    for directory in discover([str(data)]).log_directories:
        for partition in directory.partitions:
            for group, rows in histories.items():
                mine = [row for row in rows if row["offsets_partition"] == partition.offsets_partition]
                moments = [row["record_offset"] for row in mine if row["is_tombstone"] or row["topic"] is not None][-MOMENTS:]
                held = holdings_in_front(partition, [row["record_offset"] for row in mine], moments, profile, LoadInputs())
                assert sorted(held) == sorted(moments)
                for moment in moments:
                    at = Moment(last_offsets={partition.offsets_partition: moment - 1})
                    options = LoadOptions(profile, "lenient", view="in_memory", at=at)
                    (load,) = load_partitions([replace(directory, partitions=[partition])], options, TopicNames())
                    assert only(group, held[moment]) == only(group, load.partition_state), (group, moment)
                    compared += 1
    assert compared > 10


def commit(committed_offset: int, group: str = "billing") -> KeyValue:
    return offset_commit(group, "orders", 0, committed_offset, commit_timestamp_ms=0)


@pytest.mark.parametrize("release", ["2.8.2", "4.3.0"])
def test_a_moment_inside_a_batch_has_the_records_in_front_of_it(tmp_path: Path, release: str) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        log.append([commit(1), commit(7, "search"), tombstone(commit(1)), commit(2), tombstone(commit(2))])
    (partition,) = discover([str(tmp_path)]).log_directories[0].partitions

    held = holdings_in_front(partition, [0, 2, 3, 4], [0, 2, 4], profile_for(release), LoadInputs())

    assert {moment: [commit.committed_offset for commit in each.offsets.values()] for moment, each in held.items()} == {
        0: [],
        2: [1],
        4: [2],
    }


@pytest.mark.parametrize(("outcome", "expected"), [(COMMIT, [100]), (ABORT, [90])])
@pytest.mark.parametrize("release", ["2.8.2", "4.3.0"])
def test_markers_of_a_group_s_transactions_count_though_they_name_no_group(
    tmp_path: Path, release: str, outcome: int, expected: list[int]
) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        log.append([commit(90)])
        log.append([commit(100)], producer_id=7, producer_epoch=1, base_sequence=0, is_transactional=True)
        log.append([commit(1, "search")])
        log.append_marker(outcome, producer_id=7, producer_epoch=1)
        log.append([tombstone(commit(90))])
    (partition,) = discover([str(tmp_path)]).log_directories[0].partitions

    held = holdings_in_front(partition, [0, 1, 4], [4], profile_for(release), LoadInputs())

    assert [commit.committed_offset for commit in held[4].offsets.values()] == expected


def test_a_batch_without_a_record_of_the_group_is_not_read(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        log.append([commit(1)])
        log.append([commit(1, "search")], codec=1)
        log.append([tombstone(commit(1))])
        path = log.directory / "00000000000000000000.log"
    data = bytearray(path.read_bytes())
    start = data.index(b"\x1f\x8b")
    data[start : start + 8] = bytes(8)
    path.write_bytes(data)
    (partition,) = discover([str(tmp_path)]).log_directories[0].partitions

    held = holdings_in_front(partition, [0, 2], [2], profile_for("4.3.0"), LoadInputs())

    assert len(held[2].offsets) == 1
