"""The reading of brokers' answers, and the comparison of a state with them, rule by rule."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from exhume.codecs.offsets_topic import offsets_partition_of

from . import corpus
from .broker_answers import Expectation, read_answers
from .state_comparison import Comparison, compare_state

ORDERS = "1f2e3d4c-5b6a-4978-a1b2-c3d4e5f60000"
ORDERS_ID = "Hy49TFtqSXihssPU5fYAAA"
SUBSCRIPTION = "00010000000100066f7264657273ffffffff00000000"
ASSIGNMENT = "00010000000100066f72646572730000000100000001ffffffff"

Answer = dict[str, Any]
Tables = dict[str, list[dict[str, Any]]]


def described(**fields: Any) -> Answer:
    return {"groups": [{"error_code": "none", "error_message": None} | fields]}


def fetched(*offsets: Answer) -> Answer:
    return {"error_code": "none", "offsets": list(offsets)}


def offset(partition: int, committed_offset: int, **fields: Any) -> Answer:
    row = {
        "topic": "orders",
        "partition_index": partition,
        "committed_offset": committed_offset,
        "committed_leader_epoch": -1,
        "metadata": "",
    }
    return row | {"error_code": "none"} | fields


def listed(group: str, group_type: str, state: str, protocol_type: str) -> Answer:
    return {"group_id": group, "protocol_type": protocol_type, "group_state": state, "group_type": group_type}


CLASSIC_MEMBER = {
    "member_id": "c-1",
    "group_instance_id": None,
    "client_id": "c",
    "client_host": "/127.0.0.1",
    "member_metadata": SUBSCRIPTION,
    "member_assignment": ASSIGNMENT,
}
HELD = {"topic_partitions": [{"topic_id": ORDERS, "topic_name": "orders", "partitions": [0, 1]}]}
CONSUMER_MEMBER = {
    "member_id": "k-1",
    "instance_id": None,
    "rack_id": "r1",
    "member_epoch": 4,
    "client_id": "k",
    "client_host": "/127.0.0.1",
    "subscribed_topic_names": ["orders"],
    "subscribed_topic_regex": "",
    "assignment": HELD,
    "target_assignment": HELD,
    "member_type": 1,
}
STREAMS_MEMBER = {
    "member_id": "s-1",
    "member_epoch": 2,
    "instance_id": None,
    "rack_id": None,
    "client_id": "s",
    "client_host": "/127.0.0.1",
    "topology_epoch": 0,
    "process_id": "p",
    "user_endpoint": {"host": "h", "port": 7000},
    "client_tags": [{"key": "zone", "value": "z1"}],
    "assignment": {"active_tasks": [{"subtopology_id": "0", "partitions": [0]}], "standby_tasks": [], "warmup_tasks": []},
    "target_assignment": {"active_tasks": [], "standby_tasks": [{"subtopology_id": "0", "partitions": [1]}], "warmup_tasks": []},
}
TOPOLOGY = {
    "epoch": 0,
    "subtopologies": [
        {
            "subtopology_id": "0",
            "source_topics": ["orders"],
            "repartition_sink_topics": [],
            "repartition_source_topics": [],
            "state_changelog_topics": [{"name": "counts-changelog"}],
        }
    ],
}
#: One group of each type, as 4.3.0 answers; every id hashes to the one offsets partition there is.
ANSWER: Answer = {
    "version": "4.3.0",
    "list_error": "none",
    "load": "none",
    "groups": {
        "billing": {
            "listed": listed("billing", "classic", "Stable", "consumer"),
            "describe": described(group_state="Stable", protocol_type="consumer", protocol_data="range", members=[CLASSIC_MEMBER]),
            "offsets": fetched(offset(0, 10, metadata="m", committed_leader_epoch=3)),
            "offsets_stable": fetched(
                offset(0, 10, metadata="m", committed_leader_epoch=3), offset(2, -1, error_code="unstable_offset_commit")
            ),
        },
        "modern": {
            "listed": listed("modern", "consumer", "Stable", "consumer"),
            "consumer_describe": described(
                group_state="Stable", group_epoch=4, assignment_epoch=4, assignor_name="uniform", members=[CONSUMER_MEMBER]
            ),
            "describe": described(group_state="Dead", protocol_type="", protocol_data="", members=[]),
            "offsets": fetched(),
            "offsets_stable": "same",
        },
        "pool": {
            "listed": listed("pool", "share", "Empty", "share"),
            "share_describe": described(group_state="Empty", group_epoch=2, assignment_epoch=1, assignor_name="simple", members=[]),
            "share_offsets": described(topics=[{"topic_id": ORDERS, "topic_name": "orders", "partitions": [{"partition_index": 0}]}]),
        },
        "word-count": {
            "listed": listed("word-count", "streams", "Stable", "streams"),
            "streams_describe": described(
                group_state="Stable", group_epoch=2, assignment_epoch=2, topology=TOPOLOGY, members=[STREAMS_MEMBER]
            ),
        },
        "gone": {
            "listed": None,
            "describe": described(group_state="Dead", protocol_type="", protocol_data="", members=[]),
            "offsets": fetched(),
        },
    },
    "producers": {
        "topics": [
            {
                "partitions": [
                    {
                        "partition_index": 0,
                        "active_producers": [
                            {"producer_id": 7, "producer_epoch": 1, "current_txn_start_offset": 40},
                            {"producer_id": 8, "producer_epoch": 0, "current_txn_start_offset": -1},
                        ],
                    }
                ]
            }
        ]
    },
    "log_lines": [],
}
SCENARIO = {"release": "4.3.0", "partitions": 1, "topics": {"orders": 3}, "topic_ids": {"orders": ORDERS}}
ORIGIN = {"replica": "1", "offsets_partition": 0, "record_offset": 0}


def _assignment(group: str, member_id: str, kind: str, **fields: Any) -> dict[str, Any]:
    row = {"group": group, "member_id": member_id, "kind": kind, "topic": None, "topic_id": None, "subtopology_id": None, "task_role": None}
    return ORIGIN | row | fields


TABLES: Tables = {
    "loads": [ORIGIN | {"outcome": "loaded", "reason": None}],
    "groups": [
        ORIGIN | {"group": "billing", "group_type": "classic", "group_state": "Stable", "protocol_type": "consumer", "protocol": "range"},
        ORIGIN
        | {"group": "modern", "group_type": "consumer", "group_state": "Stable", "protocol_type": "consumer"}
        | {"group_epoch": 4, "assignment_epoch": 4},
        ORIGIN
        | {"group": "pool", "group_type": "share", "group_state": "Empty", "protocol_type": "share"}
        | {"group_epoch": 2, "assignment_epoch": 1},
        ORIGIN
        | {"group": "word-count", "group_type": "streams", "group_state": "Stable", "protocol_type": "streams"}
        | {"group_epoch": 2, "assignment_epoch": 2, "topology_epoch": 0},
    ],
    "members": [
        ORIGIN
        | {"group": "billing", "member_id": "c-1", "group_instance_id": None, "client_id": "c", "client_host": "/127.0.0.1"}
        | {"subscription_bytes": bytes.fromhex(SUBSCRIPTION), "assignment_bytes": bytes.fromhex(ASSIGNMENT), "server_assignor": None},
        ORIGIN
        | {"group": "modern", "member_id": "k-1", "group_instance_id": None, "client_id": "k", "client_host": "/127.0.0.1"}
        | {"rack_id": "r1", "member_epoch": 4, "subscribed_topics": ["orders"], "subscribed_regex": None, "is_classic": False}
        | {"server_assignor": "uniform"},
        ORIGIN
        | {"group": "word-count", "member_id": "s-1", "group_instance_id": None, "client_id": "s", "client_host": "/127.0.0.1"}
        | {"rack_id": None, "member_epoch": 2, "topology_epoch": 0, "process_id": "p", "user_endpoint": {"host": "h", "port": 7000}}
        | {"client_tags": [{"key": "zone", "value": "z1"}], "server_assignor": None},
    ],
    "assignments": [
        _assignment("billing", "c-1", "assigned", topic="orders", partition=1),
        _assignment("modern", "k-1", "assigned", topic="orders", topic_id=ORDERS_ID, partition=0),
        _assignment("modern", "k-1", "pending_revocation", topic="orders", topic_id=ORDERS_ID, partition=1),
        _assignment("modern", "k-1", "target", topic="orders", topic_id=ORDERS_ID, partition=0),
        _assignment("modern", "k-1", "target", topic="orders", topic_id=ORDERS_ID, partition=1),
        _assignment("word-count", "s-1", "assigned", subtopology_id="0", task_role="active", partition=0),
        _assignment("word-count", "s-1", "target", subtopology_id="0", task_role="standby", partition=1),
    ],
    "offsets": [
        ORIGIN
        | {"group": "billing", "topic": "orders", "partition": 0, "committed_offset": 10, "metadata": "m", "leader_epoch": 3}
        | {"is_stable": True}
    ],
    "pending_offsets": [ORIGIN | {"group": "billing", "topic": "orders", "partition": 2}],
    "open_transactions": [ORIGIN | {"producer_id": 7, "producer_epoch": 1, "first_record_offset": 40}],
    "share_partitions": [ORIGIN | {"group": "pool", "topic": "orders", "topic_id": ORDERS_ID, "partition": 0, "status": "initialized"}],
    "streams_topologies": [
        ORIGIN
        | {"group": "word-count", "subtopology_id": "0", "source_topics": ["orders"], "repartition_sink_topics": []}
        | {"repartition_source_topics": [], "state_changelog_topics": ["counts-changelog"]}
    ],
}


def expect(answer: Answer = ANSWER, label: str = "after-4.3.0", story: str = "4.3.0-all-types", **scenario: Any) -> Expectation:
    return read_answers(answer, label, story, SCENARIO | scenario)


def compare(
    change: Callable[[Answer, Tables], object], *, label: str = "after-4.3.0", release: str = "4.3.0", **scenario: Any
) -> Comparison:
    """The comparison of an answer and a state that are equal but for this change."""
    answer, tables = copy.deepcopy(ANSWER), copy.deepcopy(TABLES)
    answer["version"] = release
    change(answer, tables)
    return compare_state(expect(answer, label, **scenario), tables, release=release)


def reasons(comparison: Comparison) -> str:
    return "\n".join(comparison.not_shown)


def test_an_equal_state_has_no_difference() -> None:
    assert compare(lambda _answer, _tables: None).differences == []


def test_every_row_that_is_shown_is_counted() -> None:
    counts = compare(lambda _answer, _tables: None).counts

    assert counts == Counter(
        {
            ("loads", "any"): 1,
            ("groups", "classic"): 1,
            ("groups", "consumer"): 1,
            ("groups", "share"): 1,
            ("groups", "streams"): 1,
            ("members", "classic"): 1,
            ("members", "consumer"): 1,
            ("members", "streams"): 1,
            ("assignments", "classic"): 1,
            ("assignments", "consumer"): 4,
            ("assignments", "streams"): 2,
            ("offsets", "classic"): 1,
            ("pending_offsets", "classic"): 1,
            ("open_transactions", "any"): 1,
            ("share_partitions", "share"): 1,
            ("streams_topologies", "streams"): 1,
        }
    )


SHOWN = [
    (table, index, column)
    for table, rows in TABLES.items()
    for index, row in enumerate(rows)
    for column in row
    # Of a load the outcome alone is told, and where a row came from is ours to know.
    if column not in ORIGIN
    and (table, column) not in {("loads", "reason"), ("share_partitions", "topic")}
    # Only a consumer group is described with its assignor, and a topic only by name or by id.
    and not (column == "server_assignor" and row["group"] != "modern")
    and not (table == "assignments" and row[column] is None)
]


@pytest.mark.parametrize(("table", "index", "column"), SHOWN)
def test_nothing_that_a_broker_shows_can_change_unseen(table: str, index: int, column: str) -> None:
    def change(_answer: Answer, tables: Tables) -> None:
        value = tables[table][index][column]
        other: Any = f"{value}x" if isinstance(value, str) else ["x"] if isinstance(value, list) else b"x"
        tables[table][index][column] = (not value) if isinstance(value, bool) else value + 1 if isinstance(value, int) else other

    assert compare(change).differences


@pytest.mark.parametrize("table", [name for name in TABLES if name != "loads"])
def test_a_row_too_few_is_a_difference(table: str) -> None:
    assert compare(lambda _answer, tables: tables[table].pop()).differences


def test_a_group_too_many_is_a_difference() -> None:
    def change(_answer: Answer, tables: Tables) -> None:
        tables["groups"].append(tables["groups"][0] | {"group": "gone"})

    assert compare(change).differences == ["group 'gone': we have it, the broker does not list it"]


def test_no_protocol_type_is_an_empty_one_at_the_broker() -> None:
    def change(answer: Answer, tables: Tables) -> None:
        answer["groups"]["billing"]["listed"]["protocol_type"] = ""
        tables["groups"][0]["protocol_type"] = None

    assert compare(change).differences == []


def test_up_to_4_2_a_member_is_described_without_what_it_gives_up() -> None:
    def change(answer: Answer, _tables: Tables) -> None:
        (member,) = answer["groups"]["modern"]["consumer_describe"]["groups"][0]["members"]
        member["assignment"] = {"topic_partitions": [{"topic_id": ORDERS, "topic_name": "orders", "partitions": [0]}]}

    assert compare(change, label="after-4.2.1", release="4.2.1").differences == []
    assert compare(change).differences


def test_partitions_of_a_topic_that_the_broker_lacks_are_not_shown() -> None:
    def change(answer: Answer, _tables: Tables) -> None:
        (member,) = answer["groups"]["modern"]["consumer_describe"]["groups"][0]["members"]
        member["assignment"] = member["target_assignment"] = {"topic_partitions": []}
        answer["groups"]["pool"]["share_offsets"]["groups"][0]["topics"] = []

    comparison = compare(change)

    assert comparison.differences == []
    assert "topic is gone: 2 assigned partitions" in reasons(comparison)
    assert "topic is gone: 1 share partitions" in reasons(comparison)


def test_partitions_of_a_topic_that_the_broker_has_must_be_shown() -> None:
    def change(answer: Answer, _tables: Tables) -> None:
        (member,) = answer["groups"]["modern"]["consumer_describe"]["groups"][0]["members"]
        member["assignment"] = {"topic_partitions": []}

    assert compare(change).differences


@pytest.mark.parametrize(("named", "reason"), [(None, "no member names one"), ("range", "a tie")])
def test_an_assignor_that_no_majority_names_is_not_compared(named: str | None, reason: str) -> None:
    def change(answer: Answer, tables: Tables) -> None:
        member = copy.deepcopy(CONSUMER_MEMBER) | {"member_id": "k-2", "assignment": HELD, "target_assignment": {"topic_partitions": []}}
        member["assignment"] = {"topic_partitions": []}
        answer["groups"]["modern"]["consumer_describe"]["groups"][0]["members"].append(member)
        tables["members"].append(tables["members"][1] | {"member_id": "k-2", "server_assignor": named})
        tables["members"][1]["server_assignor"] = named and "uniform"

    comparison = compare(change)

    assert comparison.differences == []
    assert reason in reasons(comparison)


def test_the_java_coordinator_does_not_show_offsets_without_a_group() -> None:
    def change(_answer: Answer, tables: Tables) -> None:
        tables["offsets"].append(tables["offsets"][0] | {"group": "gone"})

    comparison = compare(change)

    assert comparison.differences == []
    assert "group 'gone': 1 offsets without a group" in reasons(comparison)


def test_the_scala_coordinator_shows_every_offset() -> None:
    def change(answer: Answer, tables: Tables) -> None:
        answer["groups"] = {name: parts for name, parts in answer["groups"].items() if name in ("billing", "gone")}
        for table in ("groups", "members", "assignments", "share_partitions", "streams_topologies"):
            tables[table] = [row for row in tables[table] if row["group"] == "billing"]
        tables["offsets"].append(tables["offsets"][0] | {"group": "gone"})

    assert compare(change, label="after-2.8.2", release="2.8.2").differences == [
        "group 'gone': offsets is [('orders', 0)], the broker says []"
    ]


def stray(answer: Answer, tables: Tables) -> None:
    """`modern` belongs to another offsets partition than the one it lies in."""
    for table in tables.values():
        for row in table:
            group = row.get("group")
            row["offsets_partition"] = 1 if group is None else offsets_partition_of(group, 2)
    home = offsets_partition_of("modern", 2)
    for row in tables["groups"]:
        if row["group"] == "modern":
            row["offsets_partition"] = 1 - home
    answer["producers"]["topics"][0]["partitions"][0]["partition_index"] = 1


def test_of_a_stray_group_only_the_listing_is_compared() -> None:
    def change(answer: Answer, tables: Tables) -> None:
        stray(answer, tables)
        answer["groups"]["modern"] = {"listed": answer["groups"]["modern"]["listed"], "offsets": fetched(offset(1, 5))}

    comparison = compare(change, partitions=2)

    assert comparison.differences == []
    assert "a stray group in offsets partition" in reasons(comparison)


def test_the_state_of_a_stray_group_is_compared_all_the_same() -> None:
    def change(answer: Answer, tables: Tables) -> None:
        stray(answer, tables)
        answer["groups"]["modern"]["listed"]["group_state"] = "Empty"
        del answer["groups"]["modern"]["consumer_describe"]

    assert compare(change, partitions=2).differences == ["group 'modern': group_state is 'Stable', the broker says 'Empty'"]


FAILED = "ERROR [GroupCoordinator id=1] Failed to load metadata from __consumer_offsets-0 with epoch 0 due to Replaying record failed."
INTERRUPTED = f"{FAILED[:-27]}Stopped loading records from __consumer_offsets-0 because it is not online or is no longer the leader."


def test_a_partition_that_the_broker_could_not_load_must_be_aborted() -> None:
    def change(answer: Answer, _tables: Tables) -> None:
        answer["log_lines"] = [FAILED]

    assert any("outcome is 'loaded', the broker says 'aborted'" in difference for difference in compare(change).differences)


def test_an_aborted_load_holds_nothing_of_the_java_coordinator() -> None:
    def change(answer: Answer, tables: Tables) -> None:
        for parts in answer["groups"].values():
            parts.clear()
            parts |= {"listed": None, "offsets": {"error_code": "not_coordinator", "offsets": []}}
        answer["log_lines"] = [FAILED]
        for name in tables:
            tables[name].clear()
        tables["loads"].append(ORIGIN | {"outcome": "aborted", "reason": "a record cannot be replayed"})

    comparison = compare(change)

    assert comparison.differences == []
    assert "group 'billing': offsets: not_coordinator" in reasons(comparison)


def test_a_load_that_a_change_of_leaders_interrupted_is_no_failure() -> None:
    def change(answer: Answer, _tables: Tables) -> None:
        answer["log_lines"] = [INTERRUPTED]

    assert compare(change).differences == []


def test_an_abort_that_the_broker_knows_nothing_of_is_a_difference() -> None:
    def change(_answer: Answer, tables: Tables) -> None:
        tables["loads"][0]["outcome"] = "aborted"

    assert compare(change).differences


def test_the_late_error_of_the_scala_coordinator_is_no_failure_but_must_be_told() -> None:
    late = "java.lang.IllegalStateException: Unexpected unload of active group g while loading partition __consumer_offsets-0"
    line = f"ERROR [GroupMetadataManager brokerId=1] Error loading offsets from __consumer_offsets-0 | {late}"

    def change(answer: Answer, tables: Tables, reason: str | None = "Unexpected unload") -> None:
        answer["load_failures"] = {"0": line}
        tables["loads"][0] |= {"outcome": "loaded_with_error" if reason else "loaded", "reason": reason}

    assert compare(change).differences == []
    assert compare(lambda answer, tables: change(answer, tables, None)).differences


def test_a_broker_that_did_not_start_expects_a_refusal() -> None:
    def change(answer: Answer, _tables: Tables) -> None:
        answer["broker_refused_to_start"] = ["ERROR There was an error in one of the threads during logs loading"]

    assert compare(change).differences == ["offsets partition 0: outcome is 'loaded', the broker says 'refused'"]


def test_a_session_that_ended_between_two_questions_hides_the_members() -> None:
    def change(answer: Answer, _tables: Tables) -> None:
        answer["groups"]["billing"]["describe"]["groups"][0] |= {"group_state": "Empty", "protocol_data": "", "members": []}

    comparison = compare(change)

    assert comparison.differences == []
    assert "a session ended after it was listed as Stable" in reasons(comparison)


def test_an_empty_group_is_not_described_with_its_protocol() -> None:
    def change(answer: Answer, tables: Tables) -> None:
        answer["groups"]["billing"]["listed"]["group_state"] = "Empty"
        answer["groups"]["billing"]["describe"]["groups"][0] |= {"group_state": "Empty", "protocol_data": "", "members": []}
        tables["groups"][0]["group_state"] = "Empty"
        tables["members"].pop(0)
        tables["assignments"].pop(0)

    assert compare(change).differences == []


def test_what_only_the_writing_broker_knew_is_not_expected_of_its_log() -> None:
    def change(answer: Answer, _tables: Tables) -> None:
        answer["groups"]["unsynced"] = {"listed": listed("unsynced", "classic", "PreparingRebalance", "consumer"), "offsets": fetched()}

    comparison = compare(change, label="before")

    assert comparison.differences == []
    assert "more than the log" in reasons(comparison)
    assert compare(change).differences


def test_pending_offsets_need_not_be_shown_where_nobody_asked_for_them_by_name() -> None:
    def change(answer: Answer, _tables: Tables) -> None:
        answer["groups"]["billing"]["offsets_stable"]["offsets"].pop()

    comparison = compare(change)

    assert comparison.differences == []
    assert "1 offsets that are only pending" in reasons(comparison)


def test_a_failed_request_is_a_reason_not_a_difference() -> None:
    def change(answer: Answer, _tables: Tables) -> None:
        answer["groups"]["modern"]["consumer_describe"] = described(error_code="unsupported_version")

    comparison = compare(change)

    assert comparison.differences == []
    assert "consumer_describe: unsupported_version" in reasons(comparison)


def test_the_generation_that_a_probe_found_is_expected() -> None:
    def change(answer: Answer, tables: Tables) -> None:
        answer["probe"] = {"billing": {"generation": 5, "stable": ["orders-2"]}}
        tables["groups"][0]["generation"] = 4

    assert compare(change).differences == ["group 'billing': generation is 4, the broker says 5"]


@pytest.mark.parametrize(
    ("group", "partition"),
    [
        ("", 0),
        ("a", 47),
        ("group", 47),
        ("my-group", 12),
        ("polygenelubricants", 0),
        ("grüppe", 12),
        ("日本語", 43),
        ("group-😀", 7),
        ("𐐀", 27),
    ],
)
def test_a_group_lies_where_java_hashes_it_to(group: str, partition: int) -> None:
    assert offsets_partition_of(group, 50) == partition


@pytest.mark.parametrize(
    ("label", "story", "release", "coordinator"),
    [
        ("after-2.8.2", "2.8.2-lifecycle", "2.8.2", "classic"),
        ("after-3.9.1", "2.8.2-lifecycle", "3.9.1", "classic"),
        ("after-3.9.1-new", "2.8.2-lifecycle", "3.9.1", "java"),
        ("after-3.9.1-classic", "4.0.0-conversion", "3.9.1", "classic"),
        ("restarted-3.9.1", "3.9.1-expiry-scala", "3.9.1", "classic"),
        ("restarted-3.9.1", "3.9.1-expiry-new", "3.9.1", "java"),
        ("before", "3.7.2-consumer-groups", "3.7.2", "java"),
        ("before", "4.0.0-conversion", "4.0.0", "java"),
    ],
)
def test_which_coordinator_answered(label: str, story: str, release: str, coordinator: str) -> None:
    assert expect(ANSWER | {"version": release}, label, story).coordinator == coordinator


# Every bundled answer.


@pytest.fixture(scope="module")
def answers() -> list[corpus.AnswerFile]:
    return [file for case in corpus.cases() for file in case.answers()]


def test_every_bundled_answer_can_be_read(answers: list[corpus.AnswerFile]) -> None:
    kinds = Counter(file.expectation.kind for file in answers)

    assert kinds == {"after": 1840, "before": 45, "restarted": 33, "expired": 18}


def test_every_answer_has_its_log_directory(answers: list[corpus.AnswerFile]) -> None:
    assert [file.id for file in answers if not any(file.data.glob("__consumer_offsets-*/*.log"))] == []


def test_the_release_is_that_of_the_file_name(answers: list[corpus.AnswerFile]) -> None:
    assert [file.id for file in answers if file.expectation.release != file.release] == []


def test_nothing_is_left_unsaid_for_a_reason_that_is_not_known(answers: list[corpus.AnswerFile]) -> None:
    silences = {reason for file in answers for group in file.expectation.groups.values() for reason in group.silences}

    assert silences == {
        "consumer_describe: KeyError: 'Unknown tagged field tag: 42'",
        "consumer_describe: KeyError: 'Unknown tagged field tag: 753557'",
        "consumer_describe: UnexpectedNull: Unexpectedly read null where compact string/bytes was expected",
        "consumer_describe: ValueError: Varint is too long, the most significant bit in the 5th byte is set",
        "consumer_describe: unsupported_version",
        "describe: coordinator_load_in_progress",
        "describe: listed, but unknown in the offsets partition of its id",
        "describe: not_coordinator",
        "describe: unknown_server_error",
        "members: Empty when the group was described: a session ended after it was listed as Stable",
        "members: the group is AwaitingSync, which no log tells",
        "members: the group is PreparingRebalance, which no log tells",
        "offsets: coordinator_load_in_progress",
        "offsets: not_coordinator",
        "share_describe: ModuleNotFoundError: No module named 'kio.schema.share_group_describe.v0'",
        "share_describe: group_id_not_found",
        "streams_describe: unknown_server_error",
        "the assignor of a share group is a setting of the broker",
    }


def test_an_answer_belongs_to_the_replica_that_its_name_says() -> None:
    (case,) = (case for case in corpus.cases() if case.name == "2.8.2-failover")

    assert {file.label: file.data.name for file in case.answers()}["after-2.8.2-broker2"] == "data-broker2"


def test_a_mark_beside_a_fact_says_how_its_broker_stopped() -> None:
    clean = {case.name: case.is_clean_stop for case in corpus.cases() if case.name.startswith("facts/crc-flip")}

    assert clean == {"facts/crc-flip-clean": True, "facts/crc-flip-unclean": False}
