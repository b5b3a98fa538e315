"""The rules of a load, one readable log each. That real brokers follow them is shown by test_against_brokers and the logs in tests/data."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import exhume
from exhume.codecs.batch_writer import NewRecord, encode_batch
from exhume.codecs.embedded import encode_subscription
from exhume.codecs.record_types import ABORT, COMMIT, encode_key, encode_value
from exhume.errors import RequestError
from exhume.fixtures.log_writer import KeyValue, PartitionWriter, group_metadata, offset_commit, tombstone
from exhume.replay.reading import LoadInputs
from exhume.replay.state import CoordinatorState

NOW_MS = 1_700_000_000_000
TOPIC_ID = "AQIDBAUGBwgJCgsMDQ4PEA"
Write = Callable[[PartitionWriter], object]


def load(directory: Path, write: Write, **options: Any) -> CoordinatorState:
    with PartitionWriter(directory, 7) as log:
        write(log)
    with exhume.open(directory) as topic:
        return topic.state(**options)


def commit(committed_offset: int, group: str = "billing") -> KeyValue:
    return offset_commit(group, "orders", 0, committed_offset, commit_timestamp_ms=NOW_MS)


def record(number: int, value: dict[str, Any] | None, *, member_id: str = "m1", group: str = "carts") -> KeyValue:
    key = encode_key(number, {"group": group, "member_id": member_id})
    return key, None if value is None else encode_value(number, 0, value)


def committed(state: CoordinatorState) -> dict[str, int]:
    return {row["group"]: row["committed_offset"] for row in state.offsets.to_pylist()}


def outcome(state: CoordinatorState) -> str:
    (row,) = state.loads.to_pylist()
    return str(row["outcome"])


TRANSACTION = {"producer_id": 7, "producer_epoch": 1, "base_sequence": 0, "is_transactional": True}


@pytest.mark.parametrize(
    ("release", "expected"),
    [("2.6.3", "loaded"), ("2.8.2", "aborted"), ("4.2.1", "aborted"), ("4.2.2", "loaded"), ("4.3.1", "aborted"), ("4.4.0", "loaded")],
)
@pytest.mark.parametrize("subscription", [b"\0\0\xff\xff\xff\xff", b"\0\0\0\0\0\1\0\x09short"], ids=["null", "longer than its bytes"])
def test_a_subscription_that_cannot_be_parsed_ends_the_loads_of_some_releases(
    tmp_path: Path, subscription: bytes, release: str, expected: str
) -> None:
    member = {"member_id": "m1", "client_id": "c", "client_host": "/h", "session_timeout_ms": 1, "assignment": b""}
    value = {"protocol_type": "consumer", "generation": 1, "protocol": "range", "leader": "m1"}
    group = group_metadata("carts", value | {"members": [member | {"subscription": subscription}]})

    state = load(tmp_path, lambda log: log.append([group, commit(100)]), release=release)

    assert outcome(state) == expected
    assert committed(state) == ({"billing": 100} if expected == "loaded" else {})


@pytest.mark.parametrize(("release", "expected"), [("4.3.1", "Reconciling"), ("4.4.0", "NotReady")])
def test_a_topology_without_a_group_record_counts_as_validated_before_4_4(tmp_path: Path, release: str, expected: str) -> None:
    streams_member: dict[str, Any] = {
        "group_instance_id": None, "rack_id": None, "client_id": "c", "client_host": "/h", "rebalance_timeout_ms": 1, "topology_epoch": 0,
        "process_id": "p", "user_endpoint": None, "client_tags": [],
    }  # fmt: skip
    topology = record(23, {"topology_epoch": 0, "subtopologies": []})

    state = load(tmp_path, lambda log: log.append([record(19, streams_member), topology]), release=release)

    assert [row["group_state"] for row in state.groups.to_pylist()] == [expected]


@pytest.mark.parametrize(("release", "expected"), [("2.8.2", {"billing": 100}), ("4.3.0", {})])
def test_a_pending_commit_comes_back_behind_a_plain_tombstone_in_the_scala_coordinator_only(
    tmp_path: Path, release: str, expected: dict[str, int]
) -> None:
    def write(log: PartitionWriter) -> None:
        log.append([commit(100)], **TRANSACTION)
        log.append([tombstone(commit(100))])
        log.append_marker(COMMIT, producer_id=7, producer_epoch=1)

    assert committed(load(tmp_path, write, release=release)) == expected


@pytest.mark.parametrize("release", ["2.8.2", "4.3.0"])
def test_the_order_of_commits_decides_and_not_that_of_their_markers(tmp_path: Path, release: str) -> None:
    def write(log: PartitionWriter) -> None:
        log.append([commit(100)], **TRANSACTION)
        log.append([commit(150)])
        log.append_marker(COMMIT, producer_id=7, producer_epoch=1)

    assert committed(load(tmp_path, write, release=release)) == {"billing": 150}


@pytest.mark.parametrize("release", ["2.8.2", "4.3.0"])
def test_an_open_transaction_makes_its_keys_unstable(tmp_path: Path, release: str) -> None:
    def write(log: PartitionWriter) -> None:
        log.append([commit(90)], timestamp_ms=NOW_MS)
        log.append([commit(100)], timestamp_ms=NOW_MS + 5, **TRANSACTION)

    state = load(tmp_path, write, release=release)

    assert [row["is_stable"] for row in state.offsets.to_pylist()] == [False]
    assert [row["committed_offset"] for row in state.pending_offsets.to_pylist()] == [100]
    assert state.open_transactions.to_pylist() == [
        {
            "replica": tmp_path.name,
            "offsets_partition": 7,
            "record_offset": 1,
            "producer_id": 7,
            "producer_epoch": 1,
            "first_record_offset": 1,
            "last_record_offset": 1,
            "first_timestamp_ms": NOW_MS + 5,
            "last_timestamp_ms": NOW_MS + 5,
            "groups": ["billing"],
            "pending_partitions": [{"group": "billing", "topic": "orders", "partition": 0}],
        }
    ]


@pytest.mark.parametrize(("release", "groups"), [("2.8.2", []), ("4.3.0", ["billing"])])
def test_an_aborted_transaction_leaves_its_group_behind_in_the_java_coordinator_only(
    tmp_path: Path, release: str, groups: list[str]
) -> None:
    def write(log: PartitionWriter) -> None:
        log.append([commit(100)], **TRANSACTION)
        log.append_marker(ABORT, producer_id=7, producer_epoch=1)

    state = load(tmp_path, write, release=release)

    assert state.groups["group"].to_pylist() == groups
    assert committed(state) == {}


def test_a_group_tombstone_leaves_offsets_without_a_group_in_the_java_coordinator(tmp_path: Path) -> None:
    def write(log: PartitionWriter) -> None:
        log.append([commit(42), group_metadata("billing", {"protocol_type": "consumer", "generation": 1, "members": []})])
        log.append([(encode_key(2, {"group": "billing"}), None)])

    state = load(tmp_path, write, release="4.3.0")

    assert state.groups.num_rows == 0
    assert committed(state) == {"billing": 42}
    assert [finding.code for finding in state.findings] == ["offsets_without_group"]
    assert state.group("billing").group is None


def two_groups(log: PartitionWriter) -> None:
    for group, size in (("crowd", 3), ("couple", 2)):
        members = [
            {"member_id": f"{group}-{number}", "client_id": "app", "client_host": "/h", "session_timeout_ms": 9000}
            | {"subscription": b"", "assignment": b""}
            for number in range(size)
        ]
        value = {"protocol_type": "connect", "generation": 4, "protocol": "p", "leader": f"{group}-0", "members": members}
        log.append([group_metadata(group, value, version=1)], timestamp_ms=NOW_MS)


@pytest.mark.parametrize(
    ("release", "expected"),
    [("2.1.1", "Stable"), ("2.2.0", "PreparingRebalance"), ("3.9.1-new", "PreparingRebalance"), ("4.3.0", "PreparingRebalance")],
)
def test_a_group_that_is_loaded_with_too_many_members_has_to_rebalance_from_2_2(tmp_path: Path, release: str, expected: str) -> None:
    state = load(tmp_path, two_groups, release=release, inputs=LoadInputs(group_max_size=2))

    assert {row["group"]: row["group_state"] for row in state.groups.to_pylist()} == {"couple": "Stable", "crowd": expected}
    assert state.members.num_rows == 5
    assert {row["generation"] for row in state.groups.to_pylist()} == {4}
    found = [(finding.code, finding.group) for finding in state.findings]
    assert found == ([("group_over_max_size", "crowd")] if expected == "PreparingRebalance" else [])


@pytest.mark.parametrize("release", ["2.8.2", "4.3.0"])
def test_no_group_is_too_large_by_default(tmp_path: Path, release: str) -> None:
    assert set(load(tmp_path, two_groups, release=release).groups["group_state"].to_pylist()) == {"Stable"}


def test_a_rebalance_that_a_load_began_shows_where_the_rest_of_the_log_does_not(tmp_path: Path) -> None:
    def write(log: PartitionWriter) -> None:
        log.roll(20_000)
        two_groups(log)
        log.roll(30_000)

    state = load(tmp_path, write, release="4.3.0", inputs=LoadInputs(group_max_size=2))

    assert outcome(state) == "not_shown"
    assert {row["group"]: row["group_state"] for row in state.groups.to_pylist()} == {"crowd": "PreparingRebalance"}


@pytest.mark.parametrize(("release", "expected"), [("2.8.2", "aborted"), ("4.3.0", "loaded")])
def test_an_unknown_record_type_ends_the_older_load_and_is_skipped_by_the_newer(tmp_path: Path, release: str, expected: str) -> None:
    def write(log: PartitionWriter) -> None:
        log.append([commit(1)])
        log.append([(bytes.fromhex("03e70001"), b"\0\0")])
        log.append([commit(2, "search")])

    state = load(tmp_path, write, release=release)

    assert outcome(state) == expected
    assert committed(state) == ({} if expected == "aborted" else {"billing": 1, "search": 2})


def test_an_aborted_load_names_the_record_and_the_other_mode(tmp_path: Path) -> None:
    def write(log: PartitionWriter) -> None:
        log.append([commit(1)])
        log.append([(commit(2)[0], b"\0\x09")])

    state = load(tmp_path, write, release="4.3.0")

    (row,) = state.loads.to_pylist()
    assert (row["outcome"], row["record_offset"]) == ("aborted", 1)
    assert "version 9" in row["reason"]
    (finding,) = state.findings
    assert "--mode lenient" in (finding.remedy or "")
    assert not finding.is_damage


def test_a_record_that_is_refused_ends_the_load_before_bytes_behind_it_that_cannot_be_read(tmp_path: Path) -> None:
    def write(log: PartitionWriter) -> None:
        log.append([commit(1)])
        log.append([(commit(2)[0], b"\0\x09")])
        unknown_magic = struct.pack(">qiib", 2, 65, 0, 9) + bytes(60)
        log.append_bytes(unknown_magic, 2, NOW_MS)
        log.roll()
        log.append([commit(3)])

    for release in ("2.8.2", "4.3.0"):
        (row,) = load(tmp_path / release, write, release=release, stop="clean").loads.to_pylist()
        assert (row["outcome"], row["record_offset"], row["records_read"]) == ("aborted", 1, 1), release


def test_lenient_mode_goes_on_and_notes_each_tolerated_record(tmp_path: Path) -> None:
    def write(log: PartitionWriter) -> None:
        log.append([commit(1)])
        log.append([(commit(2)[0], b"\0\x09")])
        log.append([(None, b"no key")])
        log.append([commit(3, "search")])

    state = load(tmp_path, write, release="4.3.0", mode="lenient")

    assert committed(state) == {"billing": 1, "search": 3}
    assert [(finding.code, finding.first_record_offset) for finding in state.findings] == [("tolerated_record", 1), ("tolerated_record", 2)]
    assert state.loads["tolerated_records"].to_pylist() == [2]


MEMBER = {"client_id": "app", "client_host": "/h", "subscribed_topics": ["orders"], "classic_member_metadata": None}


def held(member_epoch: int) -> dict[str, Any]:
    return {"member_epoch": member_epoch, "assigned": [{"topic_id": TOPIC_ID, "partitions": [0]}], "pending_revocation": []}


def test_lenient_mode_lets_a_modern_value_replace_a_classic_group_and_ignores_a_modern_tombstone(tmp_path: Path) -> None:
    def write(log: PartitionWriter) -> None:
        log.append([group_metadata("carts", {"protocol_type": "connect", "generation": 1, "members": []})])
        log.append([record(3, {"group_epoch": 5})])
        log.append([group_metadata("jobs", {"protocol_type": "connect", "generation": 1, "members": []})])
        log.append([record(3, None, group="jobs")])

    state = load(tmp_path, write, release="4.3.0", mode="lenient")

    assert {row["group"]: row["group_type"] for row in state.groups.to_pylist()} == {"carts": "consumer", "jobs": "classic"}


def test_a_partition_is_taken_over_at_a_higher_epoch_and_refused_at_an_equal_one(tmp_path: Path) -> None:
    def write(log: PartitionWriter, second_epoch: int) -> None:
        log.append([record(5, MEMBER), record(8, held(5)), record(5, MEMBER, member_id="m2")])
        log.append([record(8, held(second_epoch), member_id="m2")])

    higher = load(tmp_path / "higher", lambda log: write(log, 6), release="4.3.0")
    equal = load(tmp_path / "equal", lambda log: write(log, 5), release="4.3.0")

    assert [outcome(higher), outcome(equal)] == ["loaded", "aborted"]


def test_lenient_mode_takes_the_partitions_of_a_member_that_is_removed_with_them(tmp_path: Path) -> None:
    def write(log: PartitionWriter) -> None:
        log.append([record(5, MEMBER), record(8, held(5)), record(5, None)])
        log.append([record(5, MEMBER, member_id="m2"), record(8, held(5), member_id="m2")])

    state = load(tmp_path, write, release="4.3.0", mode="lenient")

    # The release refuses the tombstone of the member, and not the assignment of the next one.
    assert state.loads["tolerated_records"].to_pylist() == [1]
    assert state.members["member_id"].to_pylist() == ["m2"]


@pytest.mark.parametrize(("release", "assignment_epoch"), [("4.3.1", 1), ("4.4.0", 6)])
def test_a_member_with_partitions_to_give_up_and_no_timeout_is_gone_the_moment_the_load_is_over(
    tmp_path: Path, release: str, assignment_epoch: int
) -> None:
    def write(log: PartitionWriter) -> None:
        log.append([record(3, {"group_epoch": 5}), record(8, {**held(5), "member_state": 1})])

    state = load(tmp_path, write, release=release)

    assert state.members.num_rows == 0
    assert [(row["group_epoch"], row["assignment_epoch"], row["group_state"]) for row in state.groups.to_pylist()] == [
        (6, assignment_epoch, "Empty")
    ]
    assert [finding.code for finding in state.findings] == ["member_fenced_at_load"]


def metadata(**protocols: bytes) -> dict[str, Any]:
    supported = [{"name": name, "metadata": content} for name, content in protocols.items()]
    return {"session_timeout_ms": 30_000, "supported_protocols": supported}


SUBSCRIPTION = encode_subscription(1, {"topics": ["orders"]})
NO_TOPICS = b"\0\1\xff\xff\xff\xff\xff\xff\xff\xff"
BY_RANGE = metadata(range=SUBSCRIPTION)


def fencing_group(log: PartitionWriter, others: Mapping[str, dict[str, Any] | None], *, targets: bool = True, **fields: Any) -> None:
    """A group at epoch 5 with member n, whom each load fences, and others: the metadata of a member of the classic protocol, or None."""
    log.append([record(5, {**MEMBER, "rebalance_timeout_ms": 0}, member_id="n"), record(3, {"group_epoch": 5})])
    for member_id, classic in others.items():
        member = {**MEMBER, **fields, "rebalance_timeout_ms": 60_000, "classic_member_metadata": classic}
        log.append([record(5, member, member_id=member_id)])
        log.append([record(7, {"topic_partitions": []}, member_id=member_id)] if targets else [])
    log.append([record(6, {"assignment_epoch": 5}), record(8, {**held(5), "member_state": 1}, member_id="n")])


#: The answers of brokers of 3.9.1, 4.0.0, 4.1.1, 4.2.1, 4.3.0 and 4.4.0, which tests/brokers/test_fencing.py asks again.
REMOVED, CLASSIC, REFUSED = ("consumer", 6, None), ("classic", None, 5), ("consumer", 5, None)


@pytest.mark.parametrize(
    ("others", "fields", "expected"),
    [
        (
            {"a": BY_RANGE, "b": BY_RANGE},
            {},
            {"3.9.1-new": REMOVED, "4.0.0": CLASSIC, "4.2.2": CLASSIC, "4.3.0": CLASSIC, "4.4.0": CLASSIC},
        ),
        (
            {"a": BY_RANGE},
            {"targets": False},
            {"3.9.1-new": REMOVED, "4.0.0": REFUSED, "4.2.2": REFUSED, "4.3.0": CLASSIC, "4.4.0": CLASSIC},
        ),
        ({"a": metadata(range=NO_TOPICS)}, {}, {"4.2.1": REFUSED, "4.2.2": CLASSIC, "4.3.0": REFUSED, "4.4.0": CLASSIC}),
        ({"a": metadata(range=b"\0\1")}, {}, {"4.0.0": CLASSIC, "4.4.0": CLASSIC}),
        ({"a": metadata(range=b"\0")}, {}, {"4.0.0": REFUSED, "4.4.0": REFUSED}),
        ({"a": metadata(range=b"\xff\xfb" + SUBSCRIPTION[2:])}, {}, {"4.0.0": REFUSED, "4.4.0": REFUSED}),
        ({"a": BY_RANGE, "b": metadata(sticky=SUBSCRIPTION)}, {}, {"4.0.0": REFUSED, "4.4.0": REFUSED}),
        ({"a": BY_RANGE, "b": BY_RANGE}, {"group_instance_id": "i"}, {"4.0.0": REFUSED, "4.4.0": REFUSED}),
        ({"a": BY_RANGE, "b": None}, {}, {"4.0.0": REMOVED, "4.4.0": REMOVED}),
    ],
    ids=[
        "two",
        "no-target",
        "null-topics",
        "only-version",
        "no-version",
        "negative",
        "no-common-protocol",
        "one-instance",
        "other-protocol",
    ],
)
def test_a_group_whose_last_member_of_the_consumer_protocol_is_fenced_becomes_classic_if_it_can(
    tmp_path: Path, others: dict[str, Any], fields: dict[str, Any], expected: dict[str, Any]
) -> None:
    states = {release: load(tmp_path / release, lambda log: fencing_group(log, others, **fields), release=release) for release in expected}

    assert {
        release: (row["group_type"], row["group_epoch"], row["generation"])
        for release, state in states.items()
        for row in state.groups.to_pylist()
    } == expected
    for release, state in states.items():
        assert set(state.members["member_id"].to_pylist()) == {*others, *(["n"] if expected[release] == REFUSED else [])}


def test_a_group_that_becomes_classic_begins_to_rebalance_with_the_protocol_that_most_members_prefer(tmp_path: Path) -> None:
    prefers_sticky = metadata(sticky=SUBSCRIPTION, range=SUBSCRIPTION)
    others = {"a": metadata(range=SUBSCRIPTION, sticky=SUBSCRIPTION), "b": prefers_sticky, "c": prefers_sticky}

    state = load(tmp_path, lambda log: fencing_group(log, others), release="4.4.0")

    (group,) = state.groups.to_pylist()
    assert [group[name] for name in ("group_state", "protocol_type", "protocol", "leader")] == [
        *("PreparingRebalance", "consumer", "sticky", None)
    ]
    assert {(row["session_timeout_ms"], row["rebalance_timeout_ms"]) for row in state.members.to_pylist()} == {(30_000, 60_000)}
    (fenced,) = state.findings
    assert fenced.sentence.endswith("it is removed at once, and the group becomes classic")


def test_a_group_with_more_members_than_a_classic_group_may_have_stays_a_consumer_group(tmp_path: Path) -> None:
    others = {"a": BY_RANGE, "b": BY_RANGE}

    state = load(tmp_path, lambda log: fencing_group(log, others), release="4.4.0", inputs=LoadInputs(group_max_size=1))

    assert [(row["group_type"], row["group_epoch"]) for row in state.groups.to_pylist()] == [("consumer", 6)]


def test_topic_names_come_from_the_topics_file_before_the_log(tmp_path: Path) -> None:
    def write(log: PartitionWriter) -> None:
        named = {"committed_offset": 1, "commit_timestamp_ms": NOW_MS, "topic_id": TOPIC_ID}
        log.append([(commit(1, "carts")[0], encode_value(1, 4, named))])
        log.append([record(5, MEMBER), record(8, held(5))])

    topics = tmp_path / "topics.csv"
    topics.write_text(f"topic,topic_id,partitions\nclicks,{TOPIC_ID},6\n")

    from_log = load(tmp_path / "a", write, release="4.3.0")
    from_file = load(tmp_path / "b", write, release="4.3.0", topics_file=topics)

    assert [(row["topic"], row["topic_name_source"]) for row in from_log.assignments.to_pylist()] == [("orders", "commit")]
    assert [(row["topic"], row["topic_name_source"]) for row in from_file.assignments.to_pylist()] == [("clicks", "topics_file")]


def test_a_topic_that_nobody_names_keeps_its_id(tmp_path: Path) -> None:
    state = load(tmp_path, lambda log: log.append([record(5, MEMBER), record(8, held(5))]), release="4.3.0")

    assert [(row["topic"], row["topic_id"], row["topic_name_source"]) for row in state.assignments.to_pylist()] == [(None, TOPIC_ID, None)]


# --- What a broker does with its log before it loads


def test_a_log_that_ends_in_a_gap_is_held_but_not_shown_by_the_java_coordinator(tmp_path: Path) -> None:
    def write(log: PartitionWriter) -> None:
        log.append([commit(1)])
        log.roll(50)

    shown = load(tmp_path / "a", write, release="4.3.0")
    held_state = load(tmp_path / "b", write, release="4.3.0", view="in_memory")
    scala = load(tmp_path / "c", write, release="2.8.2")

    assert [committed(state) for state in (shown, held_state, scala)] == [{}, {"billing": 1}, {"billing": 1}]
    assert outcome(shown) == "not_shown"


def test_pending_offsets_are_shown_even_where_nothing_else_is(tmp_path: Path) -> None:
    """They appear in fetches that require stable offsets alone, and those see what is held."""

    def write(log: PartitionWriter) -> None:
        log.append([commit(1)])
        log.append([commit(2, "carts")], **TRANSACTION)
        log.roll(50)

    state = load(tmp_path, write, release="4.3.0")

    assert committed(state) == {}
    assert [(row["group"], row["committed_offset"]) for row in state.pending_offsets.to_pylist()] == [("carts", 2)]
    assert [row["producer_id"] for row in state.open_transactions.to_pylist()] == [7]


def three_batches(directory: Path) -> Path:
    with PartitionWriter(directory, 7) as log:
        for number, group in enumerate("abc"):
            log.append([commit(number, group)])
        return log.directory / "00000000000000000000.log"


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


def test_a_wrong_checksum_is_loaded_unseen_after_a_clean_stop_and_ends_the_log_after_an_unclean_one(tmp_path: Path) -> None:
    path = three_batches(tmp_path)
    size = path.stat().st_size // 3
    value = bytes.fromhex("0000000000000001ffffffff")
    flip(path, size + path.read_bytes()[size:].index(value) + 6)

    with exhume.open(tmp_path) as topic:
        clean = topic.state(release="4.3.0", stop="clean")
        unclean = topic.state(release="4.3.0", stop="unclean")

    assert committed(clean) == {"a": 0, "b": 257, "c": 2}
    assert committed(unclean) == {"a": 0}
    (lost,) = [finding for finding in unclean.findings if finding.code == "lost_at_unclean_start"]
    assert (lost.byte_position, lost.size_bytes, lost.last_record_offset) == (size, 2 * size, 2)
    assert "crc_mismatch" in {finding.code for finding in topic.findings}


def test_a_zero_tail_keeps_a_broker_from_starting_and_lenient_mode_reads_on(tmp_path: Path) -> None:
    path = three_batches(tmp_path)
    path.write_bytes(path.read_bytes() + bytes(4096))

    with exhume.open(tmp_path) as topic:
        strict = topic.state(release="2.8.2", stop="clean")
        lenient = topic.state(release="2.8.2", mode="lenient")

    assert (outcome(strict), committed(strict)) == ("refused", {})
    assert committed(lenient) == {"a": 0, "b": 1, "c": 2}


def test_records_below_the_log_start_checkpoint_are_not_loaded(tmp_path: Path) -> None:
    three_batches(tmp_path)
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\n__consumer_offsets 7 2\n")
    (tmp_path / ".kafka_cleanshutdown").touch()

    with exhume.open(tmp_path) as topic:
        assert committed(topic.state(release="4.3.0")) == {"c": 2}


def test_an_unknown_release_lists_the_known_ones(tmp_path: Path) -> None:
    three_batches(tmp_path)

    with exhume.open(tmp_path) as topic, pytest.raises(RequestError, match=r"2\.8\.2.*4\.3"):
        topic.state(release="banana")


def test_an_unknown_group_is_told_with_its_neighbours(tmp_path: Path) -> None:
    state = load(tmp_path, lambda log: log.append([commit(1)]), release="4.3.0")

    with pytest.raises(RequestError, match="billing"):
        state.group("bill")


def test_a_streams_member_that_nothing_is_left_of_still_ends_the_load_where_no_timeout_can_be_set(tmp_path: Path) -> None:
    """The tombstone of an assignment leaves the member and its state; the record that made the member is named."""
    tasks: dict[str, Any] = {
        f"{role}_tasks{suffix}": [] for role in ("active", "standby", "warmup") for suffix in ("", "_pending_revocation")
    }
    assignment = {"member_epoch": 1, "previous_member_epoch": 0, "member_state": 2, **tasks}

    def write(log: PartitionWriter) -> None:
        log.append([record(17, {"group_epoch": 1}), record(22, assignment), record(22, None)])

    (row,) = load(tmp_path, write, release="4.3.0").loads.to_pylist()

    assert (row["outcome"], row["record_offset"]) == ("aborted", 1)
    assert "no timeout" in row["reason"]


# Messages that nothing can decompress


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [1, 2, 3])
def test_a_damaged_wrapper_ends_the_load_of_its_partition_only(tmp_path: Path, magic: int, codec: int) -> None:
    def old_commit(group: str) -> KeyValue:
        return offset_commit(group, "orders", 0, 5, commit_timestamp_ms=NOW_MS, expire_timestamp_ms=NOW_MS, version=1)

    with PartitionWriter(tmp_path, 7) as log:
        log.append([old_commit("billing")], magic=magic)
        new = NewRecord(1, 0, *old_commit("billing"))
        damaged = bytearray(encode_batch([new], base_offset=1, magic=magic, codec=codec))
        stream = 34 if magic else 26
        damaged[stream + 7 : stream + 23] = b"\xff" * 16
        log.append_bytes(bytes(damaged), 1, 0)
    with PartitionWriter(tmp_path, 8) as log:
        log.append([old_commit("carts")], magic=magic)

    for release in ("0.9.0.1", "0.10.0.1", "0.10.2.2", "2.8.2", "4.3.0"):
        with exhume.open(tmp_path) as topic:
            state = topic.state(release=release)
            loads = {row["offsets_partition"]: row["outcome"] for row in state.loads.to_pylist()}
            assert loads == {7: "aborted", 8: "loaded"}, release
    with exhume.open(tmp_path) as topic:
        failed = topic.load_check(["0.9.0.1", "0.10.0.1", "4.3.0"]).to_pylist()
    assert {row["offsets_partition"] for row in failed if row["stop"] == "clean" and row["outcome"] != "loaded"} == {7}
