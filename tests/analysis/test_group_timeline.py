"""The lives of groups, step by step, from logs of real brokers and from hand-made ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import exhume
from exhume.analysis.classic_members import classic_group
from exhume.analysis.group_timeline import group_record_names, group_timeline
from exhume.analysis.memberships import Member, Membership
from exhume.codecs.group_metadata_split import decode_member, split_group_metadata
from exhume.codecs.record_types import decode_record, encode_key, encode_value
from exhume.fixtures.log_writer import PartitionWriter, group_metadata, tombstone
from tests.analysis.group_records import TOPIC_ID, classic, consumer, current
from tests.judges import corpus

#: Without a value of a version that no release knows: a coordinator refuses it, a reader takes what it can.
CASES = corpus.sweep(case for case in corpus.cases() if case.name != "facts/group-value-v5")
#: What 3.7 wrote no later release can read.
EARLY = ("3.7.2-consumer-groups", "facts/c-37-layout")


def lives(directory: Path, append: Callable[[PartitionWriter], object]) -> list[Membership]:
    with PartitionWriter(directory, 7) as log:
        append(log)
    with exhume.open(directory) as topic:
        return [*topic.memberships()]


@pytest.mark.parametrize("case", CASES)
def test_the_last_step_of_each_group_is_what_a_coordinator_holds(case: corpus.Case) -> None:
    release = "3.7.2-new" if case.name in EARLY else None
    for data in case.data_directories.values():
        with exhume.open(data) as topic:
            state = topic.state(release=release, mode="lenient", view="in_memory")
            last = {(*step.origin, step.group): step for step in topic.memberships()}

        held = _held(state)
        told = {
            (*place, member.member_id): (member.client_id or "", _owned(member))
            for place, step in last.items()
            for member in step.members.values()
        }

        assert told == held


def _held(state: exhume.CoordinatorState) -> dict[tuple[Any, ...], Any]:
    """Client id, epoch, and (kind, topic, partition) of what each member has."""
    assigned: dict[tuple[Any, ...], set[tuple[Any, ...]]] = {}
    for row in state.assignments.to_pylist():
        if row["topic"] is not None or row["topic_id"] is not None:
            place = (row["replica"], row["offsets_partition"], row["group"], row["member_id"])
            assigned.setdefault(place, set()).add((row["kind"], row["topic"] or row["topic_id"], row["partition"]))
    held = {}
    for row in state.members.to_pylist():
        place = (row["replica"], row["offsets_partition"], row["group"], row["member_id"])
        held[place] = (row["client_id"] or "", assigned.get(place, set()))
    return held


def _owned(member: Member) -> set[tuple[Any, ...]]:
    if member.active_tasks or member.standby_tasks or member.process_id:
        return set()
    kinds = {"assigned": member.assigned, "pending_revocation": member.pending_revocation, "target": member.target}
    return {(kind, *topic_partition) for kind, partitions in kinds.items() for topic_partition in partitions or ()}


def _group_values() -> Iterator[tuple[bytes, bytes]]:
    for case in corpus.cases(corpus.BUNDLED):
        for data in case.data_directories.values():
            with exhume.open(data) as topic:
                for row in topic.records(types=["group_metadata"]).read_all().to_pylist():
                    if row["value"] is not None:
                        yield row["key"], row["value"]


def test_a_group_value_cut_into_members_says_what_the_whole_says() -> None:
    cut_values = 0
    for key, value in _group_values():
        cut, whole = split_group_metadata(value), decode_record(key, value)
        if cut is None:
            continue
        assert whole.value is not None
        cut_values += 1
        assert cut.front | {"members": [decode_member(cut.value_version, raw) for raw in cut.members]} == whole.value
    assert cut_values > 500


def test_a_group_value_that_is_cut_short_or_too_long_is_not_cut_into_members() -> None:
    key, value = classic(1, a=[0], b=[1])
    assert key is not None
    assert value is not None
    assert split_group_metadata(value) is not None

    assert all(split_group_metadata(value[:end]) is None for end in range(len(value)))
    assert split_group_metadata(value + b"\0") is None
    read = classic_group(key, value + b"\0")
    assert read is not None
    assert [*read[1]] == ["a", "b"]


def test_a_flexible_value_is_read_too() -> None:
    member = {"member_id": "a", "client_id": "a", "client_host": "/h", "session_timeout_ms": 1, "subscription": b"", "assignment": b""}
    value = {"protocol_type": "consumer", "generation": 4, "members": [member]}
    key = encode_key(2, {"group": "g"})
    read = classic_group(key, encode_value(2, 4, value))

    assert read is not None
    assert (read[0]["generation"], [*read[1]]) == (4, ["a"])


def test_what_members_claim_stands_beside_what_they_get(tmp_path: Path) -> None:
    (step,) = lives(tmp_path, lambda log: log.append([classic(5, a=[0, 1], b=[2])], timestamp_ms=9))

    a = step.members["a"]
    assert (step.kind, step.generation, step.leader, step.timestamp_ms, step.state_timestamp_ms) == ("classic", 5, "a", 9, 5)
    assert (a.assigned, a.claimed, a.claimed_generation) == ((("orders", 0), ("orders", 1)), (("orders", 0), ("orders", 1)), 4)
    assert [*step.owners()] == [("orders", 0), ("orders", 1), ("orders", 2)]


def test_every_classic_record_of_a_batch_is_a_step(tmp_path: Path) -> None:
    placeholder = group_metadata("billing", {"protocol_type": "", "generation": 0, "members": []})

    steps = lives(tmp_path, lambda log: log.append([placeholder, classic(1, a=[0]), classic(1, group="other", x=[0]), classic(2, a=[0])]))

    assert [(step.group, step.generation, step.record_offset, step.is_placeholder) for step in steps] == [
        ("billing", 0, 0, True),
        ("billing", 1, 1, False),
        ("billing", 2, 3, False),
        ("other", 1, 2, False),
    ]


def test_of_a_consumer_group_nothing_inside_a_batch_was_ever_so(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([consumer(3, {"group_epoch": 1}), current("a", 1, 0, [0, 1], []), current("b", 1, 0, [0], [])])
        log.append([current("a", 1, 1, [0], [1])])
        log.append([current("a", 2, 0, [0], []), current("b", 2, 0, [1], [])])

    steps = lives(tmp_path, append)

    assert [(step.record_offset, step.last_record_offset) for step in steps] == [(0, 2), (3, 3), (4, 5)]
    assert [{tp[1]: [m.member_id for m in owners] for tp, owners in step.owners().items()} for step in steps] == [
        {0: ["a", "b"], 1: ["a"]},
        {0: ["a", "b"], 1: ["a"]},
        {0: ["a"], 1: ["b"]},
    ]
    assert [step.members["a"].member_state for step in steps] == ["stable", "unrevoked", "stable"]


def test_a_conversion_is_one_step_and_says_where_from(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([classic(5, a=[0])])
        log.append([tombstone(classic(5)), consumer(3, {"group_epoch": 6}), current("a", 5, 0, [0], [])])
        log.append([consumer(8, None, member_id="a"), consumer(5, None, member_id="a"), consumer(3, None), classic(7, a=[0])])
        log.append([tombstone(classic(7))])

    steps = lives(tmp_path, append)

    assert [(step.kind, step.epoch, step.converted_from, step.is_tombstone) for step in steps] == [
        ("classic", 5, None, False),
        ("consumer", 6, "classic", False),
        ("classic", 7, "consumer", False),
        ("classic", None, None, True),
    ]


def test_the_tombstone_of_a_member_ends_it_and_that_of_the_group_ends_all(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([consumer(3, {"group_epoch": 1}), current("a", 1, 0, [0], []), current("b", 1, 0, [1], [])])
        log.append([consumer(8, None, member_id="a"), consumer(7, None, member_id="a"), consumer(5, None, member_id="a")])
        log.append([consumer(8, None, member_id="b"), consumer(5, None, member_id="b"), consumer(3, None)])
        log.append([current("c", 1, 0, [0], [])])

    steps = lives(tmp_path, append)

    assert [[*step.members] for step in steps] == [["a", "b"], ["b"], [], ["c"]]
    assert [step.is_tombstone for step in steps] == [False, False, True, False]


def test_records_of_one_partition_after_the_other_do_not_mix(tmp_path: Path) -> None:
    for number in (1, 2):
        with PartitionWriter(tmp_path, number) as log:
            log.append([consumer(3, {"group_epoch": number}), current("ab"[number - 1], 1, 0, [0], [])])
    with exhume.open(tmp_path) as topic:
        steps = [*group_timeline(topic.records())]

    assert [(step.offsets_partition, [*step.members]) for step in steps] == [(1, ["a"]), (2, ["b"])]
    assert steps[0].members["a"].assigned == ((TOPIC_ID, 0),)


@pytest.mark.parametrize("name", ["4.0.0-conversion", "2.8.2-lifecycle", "4.3.0-consumer-groups"])
def test_a_group_by_itself_has_the_life_that_it_has_among_others(name: str) -> None:
    with exhume.open(corpus.BUNDLED / name / "data") as topic:
        records = topic.records(types=group_record_names()).read_all()
        together = [*topic.memberships()]
        by_group: dict[str, list[int]] = {}
        for number, key in enumerate(records["key"].to_pylist()):
            by_group.setdefault(decode_record(key, None).key["group"], []).append(number)

    alone = {group: [*group_timeline(records.take(numbers).to_batches())] for group, numbers in by_group.items()}

    def told(steps: list[Membership]) -> list[tuple[Any, ...]]:
        return [(step.record_offset, step.last_record_offset, step.kind, step.epoch, [*step.members]) for step in steps]

    assert {group: told(steps) for group, steps in alone.items() if steps} == {
        group: told([step for step in together if step.group == group]) for group in {step.group for step in together}
    }
