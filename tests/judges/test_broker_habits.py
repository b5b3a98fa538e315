"""What brokers write, and where: facts that no small log by itself shows, held to the logs that brokers of every era left behind.

    partition-for        a group lies where Java's hash of its id says (the ids that are hard to hash: `test_broker_answers`)
    commit-versions      offset values of version 1 to 2.0, 3 to 4.0, 4 since; 1 again where a client asked for a retention
    sequence-0           plain commits carry sequence 0, other writes of the Scala coordinator -1, all of the Java one 0
    new-simple-commit    commits of a group without members leave offset records and nothing else
    new-delete-simple    removing such a group: the Java coordinator writes a group tombstone for a key that never had a value
    join-no-sync         a join that is never synced leaves nothing but its end; the Java coordinator writes generation 0 first
    last-leave-0.9       when the last member leaves, 0.9 writes a tombstone, later releases an Empty group

Facts with a log of their own are the directories of `tests/data/facts`, each compared with every answer about it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from exhume.codecs.batches import Batch
from exhume.codecs.offsets_topic import offsets_partition_of
from exhume.codecs.record_types import decode_record
from tests.judges import corpus
from tests.judges.broker_answers import release_numbers
from tests.logs import logs_of_brokers


@dataclass(frozen=True)
class Said:
    """One record of a coordinator: what it says, and the batch it came in."""

    offsets_partition: int | None
    batch: Batch
    record_offset: int
    number: int | None
    key: dict[str, Any]
    value_version: int | None
    value: dict[str, Any] | None
    is_tombstone: bool

    @property
    def is_plain(self) -> bool:
        return self.batch.producer_id == -1


@cache
def said_in(story: str) -> list[Said]:
    """Every record of a story's log directories that is no marker, in the order of the log."""
    return [
        Said(
            found.partition.offsets_partition,
            batch.batch,
            record.record_offset,
            (decoded := decode_record(record.key, record.value)).number,
            decoded.key,
            decoded.value_version,
            decoded.value,
            record.value is None,
        )
        for found in logs_of_brokers()
        if found.name.startswith(f"{story}/")
        for batch in found.log.part(0)
        if not batch.is_control
        for record in batch.records()
    ]


STORIES = [case for case in corpus.cases() if not case.is_fact and not case.is_random]
#: Stories that one release wrote under a protocol of its own.
PLAIN_STORIES = [case for case in STORIES if case.name not in ("2.8.2-upgrade", "2.1.1-old-ibp")]


def named(cases: list[corpus.Case]) -> list[Any]:
    return [pytest.param(case, id=case.name) for case in cases]


@pytest.mark.parametrize("case", named(STORIES))
def test_every_group_lies_where_its_id_hashes_to(case: corpus.Case) -> None:
    placed = {(said.key["group"], said.offsets_partition) for said in said_in(case.name)}

    assert placed
    assert all(partition == offsets_partition_of(group, case.scenario["partitions"]) for group, partition in placed)


def release_of(case: corpus.Case) -> tuple[int, ...]:
    return release_numbers(case.name.split("-")[0])


def is_java(case: corpus.Case) -> bool:
    return release_of(case) >= (4,) or (release_of(case) >= (3, 7) and "scala" not in case.name)


@pytest.mark.parametrize("case", named(PLAIN_STORIES))
def test_commits_are_written_in_the_version_of_their_release(case: corpus.Case) -> None:
    release = release_of(case)
    own_version = 1 if release < (2, 1) else 3 if release < (4, 1) else 4
    commits = [said for said in said_in(case.name) if said.number == 1 and said.value is not None]

    assert commits or "share" in case.name
    for commit in commits:
        assert commit.value is not None
        has_retention = commit.value.get("expire_timestamp_ms", -1) != -1
        assert commit.value_version == (1 if has_retention else own_version)
        if commit.value_version == 4 and release >= (4, 3):
            assert (commit.value["topic_id"] is not None) == commit.is_plain


@pytest.mark.parametrize("case", named([case for case in STORIES if release_of(case) >= (0, 11)]))
def test_base_sequences_tell_the_coordinators_apart(case: corpus.Case) -> None:
    plain = [said for said in said_in(case.name) if said.is_plain and said.batch.magic == 2]

    for said in plain:
        is_commit = said.number in (0, 1) and not said.is_tombstone
        assert said.batch.base_sequence == (0 if is_commit or is_java(case) else -1)
    assert plain


def of_group(story: str, group: str) -> list[Said]:
    return [said for said in said_in(story) if said.key["group"] == group]


@pytest.mark.parametrize("story", ["2.8.2-lifecycle", "3.6.2-lifecycle"])
def test_a_simple_group_that_is_deleted_leaves_offset_tombstones_in_the_scala_coordinator(story: str) -> None:
    said = of_group(story, "old-canary-simple")

    assert {each.number for each in said} == {1}
    assert said[-1].is_tombstone


@pytest.mark.parametrize("release", ["3.9.1", "4.0.0", "4.3.0"])
def test_commits_of_a_simple_group_leave_offset_records_only(release: str) -> None:
    said = of_group(f"{release}-consumer-groups", "backfill-offsets")

    assert {each.number for each in said} == {1}


@pytest.mark.parametrize("story", ["3.9.1-transactions-new", "4.3.0-transactions"])
def test_a_simple_group_that_is_deleted_leaves_a_group_tombstone_in_the_java_coordinator(story: str) -> None:
    said = of_group(story, "tx-deleted")

    assert [(each.number, each.is_tombstone) for each in said][-2:] == [(1, True), (2, True)]
    assert not any(each.number == 2 and not each.is_tombstone for each in said)
    assert said[-1].batch is said[-2].batch
    assert {each.number for each in of_group("3.9.1-transactions-scala", "tx-deleted")} == {1}


@pytest.mark.parametrize(
    ("story", "generations"),
    [("3.9.1-classic-groups-scala", [2]), ("3.9.1-classic-groups-new", [0, 2]), ("4.3.0-classic-groups", [0, 2])],
)
def test_a_join_that_is_never_synced_leaves_its_end(story: str, generations: list[int]) -> None:
    values = [said.value for said in of_group(story, "idle-worker")]

    assert [value and value["generation"] for value in values] == generations
    assert not any(value and value["members"] for value in values)
    assert [value and value["protocol_type"] for value in values] == ["", "consumer"][-len(generations) :]


def test_when_the_last_member_leaves_0_9_writes_a_tombstone_and_later_releases_an_empty_group() -> None:
    lasts: dict[str, dict[str, Said]] = defaultdict(dict)
    for story in ("0.9.0.1-lifecycle", "0.10.2.2-lifecycle"):
        for said in said_in(story):
            if said.number == 2:
                lasts[story][said.key["group"]] = said

    def left(story: str) -> set[str]:
        return {group for group, said in lasts[story].items() if said.value is not None and not said.value["members"]}

    gone = {group for group, said in lasts["0.9.0.1-lifecycle"].items() if said.is_tombstone}
    assert len(gone & left("0.10.2.2-lifecycle")) >= 3
    assert not left("0.9.0.1-lifecycle")
