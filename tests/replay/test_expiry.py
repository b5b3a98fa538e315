"""Expiry, rule by rule; and the tombstones of passes against those that brokers wrote (what they left: `test_against_brokers`)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace

import pytest

from exhume.codecs.log_directory import PartitionDirectory, discover
from exhume.codecs.record_types import decode_record
from exhume.replay.broker_start import open_strictly
from exhume.replay.expiry import Expired, Tombstone, due_groups, due_offsets, expire
from exhume.replay.local import load_partitions
from exhume.replay.moment import Moment
from exhume.replay.partition_load import LoadOptions
from exhume.replay.partition_state import (
    ClassicGroupState,
    ClassicMember,
    Commit,
    ConsumerGroupState,
    Group,
    OffsetKey,
    OpenTransaction,
    PartitionState,
    ShareGroupState,
    Target,
)
from exhume.replay.reading import LoadInputs
from exhume.replay.releases import profile_for
from exhume.replay.topic_names import TopicNames
from tests.judges import corpus, replays

_MS_PER_MINUTE = 60_000
_MS_PER_DAY = 86_400_000

FACTS = [answer for answer in replays.expiry_answers() if answer.case.is_fact]


@pytest.mark.parametrize("answer", corpus.parameters(FACTS))
def test_tombstones_and_their_appends_are_those_that_a_broker_wrote(answer: corpus.AnswerFile) -> None:
    after = replays.after_passes(answer)

    assert Counter(appends_of(after.written)) == Counter(appended_by_broker(answer.expectation.appended))


def appends_of(written: list[Expired]) -> Iterator[frozenset[str]]:
    for done in written:
        for append in {tombstone.append for tombstone in done.tombstones}:
            yield frozenset(as_text(tombstone) for tombstone in done.tombstones if tombstone.append == append)


def as_text(tombstone: Tombstone) -> str:
    key = decode_record(tombstone.key, None).key
    place = f" {key['topic']}-{key['partition']}" if tombstone.record_type == 1 else ""
    return f"type={tombstone.record_type} {key['group']}{place}"


def appended_by_broker(lines: tuple[str, ...]) -> Iterator[frozenset[str]]:
    appends: dict[str, set[str]] = {}
    for line in lines:
        match = re.fullmatch(r"\d+ (b\d+) (type=.*) = null .*", line)
        assert match is not None
        appends.setdefault(match[1], set()).add(match[2])
    return (frozenset(texts) for texts in appends.values())


def test_a_broker_wrote_tombstones_in_most_of_the_facts() -> None:
    assert sum(len(answer.expectation.appended) for answer in FACTS) > 150


EXPIRY_STORIES = ["0.10.2.2", "1.1.1", "2.8.2", "3.9.1-scala", "3.9.1-new", "4.3.0"]


@pytest.mark.parametrize("story", EXPIRY_STORIES)
def test_offsets_were_due_when_the_writing_broker_took_them_and_not_a_pass_before(story: str) -> None:
    release, _, coordinator = story.partition("-")
    case = next(case for case in corpus.cases() if case.name == f"{release}-expiry{'-' + coordinator if coordinator else ''}")
    profile = profile_for(f"{release}-new" if coordinator == "new" else release)
    config = case.scenario["config"]
    retention_minutes, interval_ms = config["offsets.retention.minutes"], config["offsets.retention.check.interval.ms"]
    lateness = []
    for directory in discover([str(case.data_directories[""])]).log_directories:
        for partition in directory.partitions:
            for record_offset, timestamp_ms, key in offset_tombstones(partition):
                at = Moment(last_offsets={partition.offsets_partition: record_offset - 1})
                options = LoadOptions(profile, view="in_memory", inputs=LoadInputs(retention_minutes=retention_minutes), at=at)
                loads = load_partitions([replace(directory, partitions=[partition])], options, TopicNames())
                due = due_offsets(loads[0].partition_state, retention_minutes * _MS_PER_MINUTE, profile)[key]
                assert due.expires_at_ms is not None
                lateness.append(timestamp_ms - due.expires_at_ms)

    assert len(lateness) >= 6
    assert all(0 <= late_ms < interval_ms + 500 for late_ms in lateness), lateness


def offset_tombstones(partition: PartitionDirectory) -> Iterator[tuple[int, int, OffsetKey]]:
    for batch in open_strictly(partition, "clean").batches():
        for record in () if batch.is_control else batch.records():
            decoded = decode_record(record.key, record.value)
            if decoded.number == 1 and record.value is None:
                assert record.timestamp_ms is not None
                yield record.record_offset, record.timestamp_ms, (decoded.key["group"], decoded.key["topic"], decoded.key["partition"])


def commit(*, at_ms: int = 0, expire_timestamp_ms: int | None = None) -> Commit:
    return Commit(1, None, "", at_ms, expire_timestamp_ms, None, 3, 0, 0, None, None)


def member(member_id: str = "m") -> ClassicMember:
    return ClassicMember(member_id, None, "", "", 0, 0, b"", b"")


def simple(name: str = "g") -> ClassicGroupState:
    return ClassicGroupState(name, 0)


def empty(name: str = "g", *, since_ms: int | None = 0, generation: int = 3) -> ClassicGroupState:
    return ClassicGroupState(name, 0, generation, "consumer", current_state_timestamp_ms=since_ms)


def live(subscribed: set[str] | None, protocol_type: str = "consumer") -> ClassicGroupState:
    topics = None if subscribed is None else frozenset(subscribed)
    return ClassicGroupState("g", 0, 3, protocol_type, "range", members={"m": member()}, subscribed_topics=topics)


def partition_state(*groups: Group, pending: bool = False, **commits: Commit) -> PartitionState:
    """These groups; the first has these commits by topic, and one pending for the topic `orders`."""
    name = groups[0].group if groups else "g"
    held = PartitionState({group.group: group for group in groups}, {(name, topic, 0): commit for topic, commit in commits.items()})
    if pending:
        held.transactions[7] = OpenTransaction(7, 0, 1, 1, 0, 0, {name}, {(name, "orders", 0): commit(at_ms=0)})
    return held


def due_ms(held: PartitionState, release: str, *, retention_ms: int = _MS_PER_DAY, topic: str = "orders") -> int | None:
    return due_offsets(held, retention_ms, profile_for(release))["g", topic, 0].expires_at_ms


def test_an_expire_timestamp_is_exclusive_to_2_0_and_inclusive_later() -> None:
    held = partition_state(simple(), orders=commit(expire_timestamp_ms=1000))

    assert [due_ms(held, release) for release in ("0.9.0.1", "0.10.1.0", "2.0.1")] == [1001, 1001, 1001]
    assert [due_ms(held, release) for release in ("2.1.0", "3.9.1", "3.9.1-new", "4.3.0")] == [1000, 1000, 1000, 1000]


def test_the_retention_is_over_in_the_very_millisecond() -> None:
    held = partition_state(simple(), orders=commit(at_ms=5))

    assert not expire(held, 5 + _MS_PER_DAY - 1, _MS_PER_DAY, profile_for("4.3.0")).tombstones
    assert expire(held, 5 + _MS_PER_DAY, _MS_PER_DAY, profile_for("4.3.0")).tombstones


def test_a_fresh_commit_does_not_save_an_empty_group() -> None:
    held = partition_state(empty(since_ms=10), orders=commit(at_ms=5000))

    assert due_ms(held, "2.8.2") == due_ms(held, "4.3.0") == 10 + _MS_PER_DAY
    assert due_ms(partition_state(empty(since_ms=None), orders=commit(at_ms=5000)), "2.8.2") == 5000 + _MS_PER_DAY


def test_topics_without_a_subscriber_expire_under_members_from_2_4() -> None:
    held = partition_state(live({"clicks"}), orders=commit(), clicks=commit())

    assert [due_ms(held, release) for release in ("2.1.0", "2.3.1", "2.4.0", "3.9.1", "4.3.0")] == [None, None, *[_MS_PER_DAY] * 3]
    assert due_ms(held, "4.3.0", topic="clicks") is None


@pytest.mark.parametrize("group", [live(None), live(set(), "connect")], ids=["unknown subscription", "other protocol type"])
def test_nothing_expires_under_members_whose_topics_the_coordinator_does_not_know(group: ClassicGroupState) -> None:
    held = partition_state(group, orders=commit())

    assert due_ms(held, "2.8.2") is None
    assert due_ms(held, "4.3.0") is None


def test_active_groups_lost_their_offsets_to_2_0() -> None:
    held = partition_state(live({"orders"}), orders=commit(expire_timestamp_ms=1000))

    assert [due_ms(held, release) for release in ("0.10.0.1", "1.1.1", "2.0.1", "2.1.0")] == [1001, 1001, 1001, None]


def test_an_expire_timestamp_of_the_largest_number_is_never() -> None:
    assert due_ms(partition_state(simple(), orders=commit(expire_timestamp_ms=2**63 - 1)), "2.0.1") is None
    assert due_ms(partition_state(simple(), orders=commit(at_ms=2**63 - 1)), "4.3.0") is None


def test_a_pending_commit_protects_its_offset_in_the_java_coordinator_from_3_8() -> None:
    held = partition_state(simple(), pending=True, orders=commit())

    assert [due_ms(held, release) for release in ("3.9.1", "3.7.2-new")] == [_MS_PER_DAY] * 2
    assert [due_ms(held, release) for release in ("3.8.0-new", "4.0.0", "4.3.0")] == [None] * 3


@pytest.mark.parametrize(
    ("release", "left"),
    [
        ("2.8.2", [True, True]),
        ("3.7.2-new", [False, False]),
        ("3.9.1-new", [True, False]),
        ("4.0.0", [True, False]),
        ("4.0.1", [True, True]),
    ],
)
def test_an_open_transaction_keeps_its_group_for_so_many_passes(release: str, left: list[bool]) -> None:
    held = partition_state(simple(), pending=True, clicks=commit())
    seen = []
    for _ in left:
        held = expire(held, 2 * _MS_PER_DAY, _MS_PER_DAY, profile_for(release)).partition_state
        seen.append("g" in held.groups)

    assert seen == left


def test_an_offset_without_its_group_stays_in_the_java_coordinator() -> None:
    assert due_ms(partition_state(orders=commit()), "4.3.0") is None


@pytest.mark.parametrize(("release", "is_left"), [("4.0.0", False), ("4.1.0", True), ("4.4.0", True)])
def test_an_empty_share_group_goes_in_4_0_alone(release: str, *, is_left: bool) -> None:
    done = expire(partition_state(ShareGroupState("g", 0, 3, 3)), 0, _MS_PER_DAY, profile_for(release))

    assert ("g" in done.partition_state.groups) == is_left
    assert [tombstone.record_type for tombstone in done.tombstones] == ([] if is_left else [12, 9, 11])


def test_generation_0_leaves_no_group_tombstone_in_the_scala_coordinator() -> None:
    held = partition_state(empty(generation=0), orders=commit())
    types = {
        release: [tombstone.record_type for tombstone in expire(held, _MS_PER_DAY, _MS_PER_DAY, profile_for(release)).tombstones]
        for release in ("2.8.2", "4.3.0")
    }

    assert types == {"2.8.2": [1], "4.3.0": [1, 2]}
    assert not expire(held, _MS_PER_DAY, _MS_PER_DAY, profile_for("2.8.2")).partition_state.groups


def test_a_pass_leaves_what_it_was_given_as_it_was() -> None:
    held = partition_state(empty(), empty("h"), pending=True, clicks=commit())
    before = deepcopy(held)

    done = expire(held, _MS_PER_DAY, _MS_PER_DAY, profile_for("4.3.0"))

    assert done.partition_state != before
    assert held == before


def test_a_group_whose_tombstones_would_be_refused_keeps_a_whole_pass_from_writing() -> None:
    stuck = ConsumerGroupState("stuck", 0, 3, 3, target={"gone": Target(0, {})})
    held = partition_state(simple(), stuck, orders=commit())

    done = expire(held, _MS_PER_DAY, _MS_PER_DAY, profile_for("4.3.0"))

    assert done.failure is not None
    assert "stuck" in done.failure
    assert (done.partition_state, done.tombstones) == (held, [])


@pytest.mark.parametrize(("release", "fails"), [("4.0.2", True), ("4.1.2", False), ("4.3.1", False), ("4.4.0", True)])
def test_offsets_of_a_share_group_keep_a_whole_run_from_writing_in_4_0_and_4_4(release: str, *, fails: bool) -> None:
    held = partition_state(ShareGroupState("g", 0, 3, 3), empty("hollow"), orders=commit())

    done = expire(held, 2 * _MS_PER_DAY, _MS_PER_DAY, profile_for(release))

    assert (done.failure is not None) == fails
    assert ("hollow" in done.partition_state.groups) == fails
    assert "g" in done.partition_state.groups


def test_a_group_goes_with_the_last_of_its_offsets() -> None:
    held = partition_state(simple(), empty("hollow"), orders=commit(at_ms=1), clicks=commit(at_ms=2))
    profile = profile_for("4.3.0")
    groups = due_groups(held, due_offsets(held, _MS_PER_DAY, profile), 9, profile)

    assert (groups["g"].rule, groups["g"].expires_at_ms) == ("last_offset", _MS_PER_DAY + 2)
    assert (groups["hollow"].rule, groups["hollow"].expires_at_ms) == ("no_offsets", 9)
    assert due_groups(held, {}, 9, profile_for("0.9.0.1"))["hollow"].expires_at_ms is None
