"""Why something is there or not: against stories in which somebody said what they did, and logs made for one answer each."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import exhume
from exhume.analysis.why import WHY
from exhume.cli.app import run
from exhume.codecs.batch_writer import NewRecord, encode_batch
from exhume.codecs.embedded import encode_subscription
from exhume.codecs.record_types import ABORT, COMMIT, encode_key, encode_value
from exhume.errors import RequestError
from exhume.fixtures import incidents
from exhume.fixtures.log_writer import KeyValue, PartitionWriter, group_metadata, offset_commit, tombstone
from exhume.replay import expiry
from tests.judges import corpus

T0_MS = 1_700_000_000_000
DAY_MS = 86_400_000
NOW_MS = T0_MS + 30 * DAY_MS
TRANSACTION = {"producer_id": 7, "producer_epoch": 1, "base_sequence": 0, "is_transactional": True}


def story(name: str, group: str, **options: Any) -> dict[tuple[str | None, int | None], dict[str, Any]]:
    """The answers about a group of this story, by topic and partition."""
    case = next(case for case in corpus.cases() if case.name == name)
    with exhume.open(case.data_directories[""]) as topic:
        table = topic.why(group, **options)
    assert table.schema == WHY
    return {(row["topic"], row["partition"]): row for row in table.to_pylist()}


def codes(answers: dict[tuple[str | None, int | None], dict[str, Any]]) -> dict[tuple[str | None, int | None], tuple[str, str]]:
    return {key: (row["code"], row["confidence"]) for key, row in answers.items()}


@pytest.mark.parametrize(
    ("name", "release", "group", "topic", "partition"),
    [
        ("2.8.2-expiry", "2.8.2", "batch-loader", "orders", 0),
        ("2.8.2-expiry", "2.8.2", "cron-report", "orders", 1),
        ("2.8.2-expiry", "2.8.2", "topic-hopper", "audit", 0),
        ("1.1.1-expiry", "1.1.1", "order-router", "orders", 0),
        ("0.9.0.1-expiry", "0.9.0.1", "cron-report", "orders", 0),
        ("3.9.1-expiry-new", "3.9.1-new", "weekly-digest", "facts", 1),
        ("4.3.0-expiry", "4.3.0", "modern-idle", "facts", 0),
        ("4.3.0-expiry", "4.3.0", "modern-live", "dims", 0),
    ],
)
def test_what_a_broker_expired_is_expired(name: str, release: str, group: str, topic: str, partition: int) -> None:
    answers = story(name, group, release=release, retention_ms=60_000, topic=topic, partition=partition)

    assert codes(answers) == {(topic, partition): ("expired", "likely")}


def test_an_expired_offset_names_its_rule_its_times_and_both_records() -> None:
    answer = story("2.8.2-expiry", "cron-report", release="2.8.2", retention_ms=60_000)["orders", 1]

    assert answer["records"] == [1, 7]
    assert "since_commit" in answer["sentence"]
    assert "it was due at 2026-11-21" in answer["sentence"]
    assert "a request" in answer["not_excluded"]


def test_a_group_that_expired_went_with_the_last_of_its_offsets() -> None:
    assert codes(story("4.3.0-expiry", "modern-idle", retention_ms=60_000))[None, None] == ("expired", "likely")


@pytest.mark.parametrize(
    ("name", "release", "group", "expected"),
    [
        ("2.8.2-lifecycle", "2.8.2", "old-canary", ("group_deleted", "likely")),
        ("1.1.1-lifecycle", "1.1.1", "old-canary", ("group_deleted", "likely")),
        ("4.3.0-consumer-groups", "4.3.0", "promo-engine-2023", ("group_deleted", "likely")),
        ("4.3.0-transactions", "4.3.0", "tx-deleted", ("group_deleted", "likely")),
        ("4.3.0-transactions", "4.3.0", "tx-deleted-2", ("removed", "undecidable")),
    ],
)
def test_a_group_that_was_deleted_on_request_is_told_from_one_that_expired(
    name: str, release: str, group: str, expected: tuple[str, str]
) -> None:
    assert codes(story(name, group, release=release))[None, None] == expected


def test_offsets_that_were_deleted_on_request_left_others_of_their_topic() -> None:
    answers = codes(story("2.8.2-lifecycle", "mirror-lag-probe", release="2.8.2"))

    assert answers["payments", 0] == answers["payments", 1] == ("offsets_deleted", "likely")
    assert answers["payments", 2] == answers["orders", 0] == ("there", "proof")


@pytest.mark.parametrize(
    ("name", "release", "group", "topic"),
    [("2.8.2-lifecycle", "2.8.2", "import-watch", "tmp-import"), ("4.3.0-consumer-groups", "4.3.0", "audit-trail-eu", "promo.events")],
)
def test_what_no_request_could_have_removed_went_with_its_topic(name: str, release: str, group: str, topic: str) -> None:
    assert codes(story(name, group, release=release))[topic, 0] == ("topic_deleted", "likely")


def test_the_words_of_a_forecast_do_not_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiry, "_SUBSCRIBED", "kram blub zzz")
    answer = story("4.3.0-consumer-groups", "audit-trail-eu", release="4.3.0")["promo.events", 0]

    assert "kram blub zzz" in answer["sentence"]
    assert (answer["code"], answer["confidence"]) == ("topic_deleted", "likely")
    assert "the coordinator would have refused any request" in answer["sentence"]


def test_a_commit_that_was_pending_when_its_group_was_deleted_went_with_it() -> None:
    assert codes(story("4.3.0-transactions", "tx-deleted"))["balances", 1] == ("group_deleted", "likely")


def test_a_tombstone_whose_offset_is_compacted_away_leaves_nothing_to_judge_by() -> None:
    answer = story("2.8.2-lifecycle", "nightly-export", release="2.8.2")["tmp-import", 0]

    assert (answer["code"], answer["confidence"], answer["records"]) == ("removed", "undecidable", [31])
    assert "its age is not known" in answer["sentence"]


def test_an_offset_that_is_there_names_the_record_that_committed_it_and_what_waits() -> None:
    answer = story("4.3.0-transactions", "stream-copier")["input", 0]

    assert (answer["code"], answer["is_there"], answer["records"]) == ("there", True, [215, 213])


def test_an_offset_that_only_waits_names_its_producer() -> None:
    answer = story("4.3.0-transactions", "stream-copier")["balances", 1]

    assert (answer["code"], answer["confidence"], answer["is_there"], answer["records"]) == ("pending", "proof", False, [214])
    assert "producer 1000" in answer["sentence"]


def commit(
    committed_offset: int = 10, partition: int = 0, *, group: str = "billing", topic: str = "orders", at_ms: int = T0_MS
) -> KeyValue:
    return offset_commit(group, topic, partition, committed_offset, commit_timestamp_ms=at_ms)


def why(directory: Path, append: Callable[[PartitionWriter], object], **options: Any) -> list[dict[str, Any]]:
    with PartitionWriter(directory / "data", 7, first_offset=options.pop("first_offset", 0)) as log:
        append(log)
    with exhume.open(directory / "data") as topic:
        rows: list[dict[str, Any]] = topic.why(options.pop("group", "billing"), now_ms=NOW_MS, **options).to_pylist()
    return rows


ORDERS_0 = {"topic": "orders", "partition": 0}


def test_an_aborted_commit_names_its_marker(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([commit()], **TRANSACTION)
        log.append_marker(ABORT, producer_id=7, producer_epoch=1, timestamp_ms=T0_MS)

    answer = why(tmp_path, append, **ORDERS_0)[0]

    assert (answer["code"], answer["confidence"], answer["records"]) == ("aborted", "proof", [0, 1])


def test_an_aborted_commit_in_a_log_with_gaps_may_not_have_been_the_only_one(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([commit()], **TRANSACTION)
        log.append_marker(ABORT, producer_id=7, producer_epoch=1, timestamp_ms=T0_MS)

    answer = why(tmp_path, append, first_offset=5, **ORDERS_0)[0]

    assert (answer["code"], answer["confidence"]) == ("aborted", "likely")
    assert "5 record offsets from 0 on are missing" in answer["not_excluded"]


@pytest.mark.parametrize(("first_offset", "confidence"), [(0, "proof"), (3, "possible")])
def test_that_an_offset_was_never_committed_is_proven_by_a_log_without_gaps_alone(
    tmp_path: Path, first_offset: int, confidence: str
) -> None:
    answer = why(tmp_path, lambda log: log.append([commit()]), first_offset=first_offset, topic="clicks", partition=3)

    assert [(row["code"], row["confidence"]) for row in answer] == [("never_there", confidence)]


def test_a_group_that_no_log_knows_may_lie_elsewhere(tmp_path: Path) -> None:
    (answer,) = why(tmp_path, lambda log: log.append([commit()]), group="search")

    assert (answer["code"], answer["confidence"]) == ("never_there", "possible")
    assert "not here" in answer["not_excluded"]


def test_an_offset_that_a_release_does_not_load_names_the_record_that_stops_it(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([commit()])
        log.append([(b"\x03\xe7", b"\x00\x00")])

    by_release = {release: why(tmp_path / release, append, release=release, **ORDERS_0)[0] for release in ("2.8.2", "4.3.0")}

    assert by_release["4.3.0"]["code"] == "there"
    assert (by_release["2.8.2"]["code"], by_release["2.8.2"]["records"]) == ("load_aborted", [0, 1])
    assert by_release["2.8.2"]["confidence"] == "proof"


def test_a_pending_commit_of_a_load_that_aborts_is_no_offset_that_was_never_there(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([commit()], **TRANSACTION)
        log.append([(b"\x03\xe7", b"\x00\x00")])

    assert why(tmp_path, append, release="2.8.2", **ORDERS_0)[0]["code"] == "load_aborted"


def removed(log: PartitionWriter, *, after_ms: int) -> None:
    log.append([commit()], timestamp_ms=T0_MS)
    log.append([tombstone(commit())], timestamp_ms=T0_MS + after_ms)


@pytest.mark.parametrize(
    ("after_ms", "expected"),
    [
        (7 * DAY_MS - 1, ("group_deleted", "possible")),
        (7 * DAY_MS, ("expired", "likely")),
        (7 * DAY_MS + 600_000, ("expired", "likely")),
        (9 * DAY_MS, ("expired", "possible")),
    ],
)
def test_a_tombstone_is_judged_by_what_was_due_at_its_time(tmp_path: Path, after_ms: int, expected: tuple[str, str]) -> None:
    answer = why(tmp_path, lambda log: removed(log, after_ms=after_ms), **ORDERS_0)[0]

    assert (answer["code"], answer["confidence"]) == expected


def test_the_retention_decides_what_was_due(tmp_path: Path) -> None:
    answer = why(tmp_path, lambda log: removed(log, after_ms=DAY_MS), retention_ms=DAY_MS, **ORDERS_0)[0]

    assert (answer["code"], answer["confidence"]) == ("expired", "likely")


def test_a_topic_that_went_from_every_group_at_once_was_deleted(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([commit(), commit(group="search")], timestamp_ms=T0_MS)
        log.append([tombstone(commit()), tombstone(commit(group="search"))], timestamp_ms=T0_MS + 1000)

    answer = why(tmp_path, append, **ORDERS_0)[0]

    assert (answer["code"], answer["confidence"], answer["records"]) == ("topic_deleted", "likely", [0, 2, 3])


@pytest.mark.parametrize("missing_bytes", range(5))
def test_a_key_that_is_cut_off_names_no_offset_that_went_with_the_topic(tmp_path: Path, missing_bytes: int) -> None:
    def append(log: PartitionWriter) -> None:
        key, _ = commit(group="search")
        assert key is not None
        log.append([commit()], timestamp_ms=T0_MS)
        log.append([tombstone(commit())], timestamp_ms=T0_MS + 1000)
        log.append([(key[: len(key) - missing_bytes], None)], timestamp_ms=T0_MS + 1500)

    answer = why(tmp_path, append, **ORDERS_0)[0]

    assert (answer["code"] == "topic_deleted") == (missing_bytes == 0)


def test_a_topic_that_another_group_still_has_offsets_of_was_not_deleted(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([commit(), commit(group="search")], timestamp_ms=T0_MS)
        log.append([tombstone(commit())], timestamp_ms=T0_MS + 1000)

    answer = why(tmp_path, append, **ORDERS_0)[0]

    assert (answer["code"], answer["confidence"], answer["records"]) == ("group_deleted", "likely", [0, 2, 1])


def test_several_topics_that_went_from_several_groups_at_once_may_have_expired_by_another_retention() -> None:
    answer = story("4.3.0-expiry", "modern-live")["dims", 0]

    assert (answer["code"], answer["confidence"]) == ("removed", "undecidable")
    assert "a shorter retention" in answer["not_excluded"]


@pytest.mark.parametrize("name", ["0.10.2.2-lifecycle", "0.11.0.3-lifecycle"])
def test_before_there_were_requests_offsets_went_with_their_topic_partition_by_partition(name: str) -> None:
    release = name.partition("-")[0]

    assert codes(story(name, "tmp-import-job", release=release)) == dict.fromkeys(
        [(None, None), ("tmp-import", 0), ("tmp-import", 1)], ("topic_deleted", "likely")
    )


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("0.10.1.1", ("expired", "possible")),
        ("0.10.2.2", ("topic_deleted", "likely")),
        ("1.1.1", ("group_deleted", "possible")),
        ("2.4.0", ("group_deleted", "possible")),
        ("4.3.0", ("offsets_deleted", "possible")),
    ],
)
def test_a_release_removes_only_by_the_requests_that_it_knows(tmp_path: Path, release: str, expected: tuple[str, str]) -> None:
    old = offset_commit("billing", "orders", 0, 10, commit_timestamp_ms=T0_MS, version=1, expire_timestamp_ms=-1)

    def append(log: PartitionWriter) -> None:
        log.append([old], timestamp_ms=T0_MS, magic=1)
        log.append([tombstone(old)], timestamp_ms=T0_MS + 1000, magic=1)

    answer = why(tmp_path, append, release=release, **ORDERS_0)[0]

    assert (answer["code"], answer["confidence"]) == expected
    assert answer["not_excluded"]


def test_a_group_that_went_with_its_last_offsets_may_have_gone_with_their_topic_in_the_scala_coordinator(tmp_path: Path) -> None:
    value = {"protocol_type": "consumer", "generation": 3, "current_state_timestamp_ms": T0_MS, "members": []}
    group = group_metadata("billing", {**value, "protocol": None, "leader": None})

    def append(log: PartitionWriter) -> None:
        log.append([group, commit()], timestamp_ms=T0_MS)
        log.append([tombstone(commit()), tombstone(group)], timestamp_ms=T0_MS + 1000)

    excluded = {release: why(tmp_path / release, append, release=release)[0]["not_excluded"] for release in ("2.8.2", "4.3.0")}

    assert "the deletion of topic 'orders'" in excluded["2.8.2"]
    assert "topic" not in excluded["4.3.0"]


def test_a_pass_is_not_late_for_what_was_past_due_when_it_was_committed() -> None:
    answers = story("2.1.1-old-ibp", "empty-loader", release="2.1.1", retention_ms=60_000)

    assert set(codes(answers).values()) == {("expired", "likely")}
    assert "KAFKA-8069" in answers["orders", 0]["sentence"]


def test_an_expire_timestamp_that_had_passed_points_to_an_older_broker() -> None:
    answer = story("1.1.1-expiry", "order-router")["orders", 0]

    assert (answer["code"], answer["confidence"], answer["records"]) == ("expired", "likely", [1, 15])


@pytest.mark.parametrize(("name", "group"), [("facts/below-log-start", "purged-129"), ("facts/size-up-clean", "size-up-clean-b-92")])
def test_a_record_where_no_broker_reads_is_told_from_one_that_is_lost(name: str, group: str) -> None:
    assert codes(story(name, group))["orders", 0] == ("not_read", "proof")


def test_times_that_no_calendar_has_stay_numbers(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([commit(at_ms=-(2**63))], timestamp_ms=T0_MS)
        log.append([tombstone(commit())], timestamp_ms=T0_MS)

    assert str(-(2**63)) in why(tmp_path, append, **ORDERS_0)[0]["sentence"]


def test_an_empty_group_without_offsets_was_taken_by_the_next_pass(tmp_path: Path) -> None:
    value = {
        "protocol_type": "consumer",
        "generation": 3,
        "current_state_timestamp_ms": T0_MS,
        "members": [],
        "protocol": None,
        "leader": None,
    }

    def append(log: PartitionWriter) -> None:
        log.append([group_metadata("billing", value)], timestamp_ms=T0_MS)
        log.append([tombstone(group_metadata("billing", value))], timestamp_ms=T0_MS + 60_000)

    answer = why(tmp_path, append)[0]

    assert (answer["code"], answer["confidence"], answer["records"]) == ("expired", "likely", [0, 1])


def test_a_committed_transaction_is_there_with_its_producer(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([commit()], **TRANSACTION)
        log.append_marker(COMMIT, producer_id=7, producer_epoch=1)

    answer = why(tmp_path, append, **ORDERS_0)[0]

    assert (answer["code"], answer["is_there"]) == ("there", True)
    assert "producer 7" in answer["sentence"]


def test_an_offset_that_is_past_due_says_that_the_next_pass_takes_it(tmp_path: Path) -> None:
    answers = why(tmp_path, lambda log: log.append([commit()]))

    assert all("the next run of the expiry task removes it" in row["sentence"] for row in answers)
    assert [row["code"] for row in answers] == ["there", "there"]


def test_an_offset_that_is_loaded_and_not_shown_is_told_from_one_that_is_lost(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([commit()])
        log.roll(5)

    answer = why(tmp_path, append, **ORDERS_0)[0]

    assert (answer["code"], answer["confidence"], answer["records"]) == ("not_shown", "proof", [0])


def test_offsets_that_outlived_their_group_are_told(tmp_path: Path) -> None:
    subscription = encode_subscription(0, {"topics": ["orders"]})
    member = {
        "member_id": "m",
        "client_id": "c",
        "client_host": "/h",
        "session_timeout_ms": 1,
        "subscription": subscription,
        "assignment": b"",
    }
    value = {"protocol_type": "consumer", "generation": 3, "protocol": "range", "leader": "m", "members": [member]}

    def append(log: PartitionWriter) -> None:
        log.append([group_metadata("billing", value), commit()], timestamp_ms=T0_MS)
        log.append([tombstone(group_metadata("billing", value))], timestamp_ms=T0_MS)

    group, offset = why(tmp_path, append)

    assert (group["code"], group["confidence"], group["is_there"]) == ("last_member_left", "possible", False)
    assert "offsets left without a group: 1" in group["sentence"]
    assert (offset["code"], offset["confidence"], offset["is_there"]) == ("not_shown", "proof", False)
    assert "its group is gone" in offset["sentence"]


def test_offsets_of_a_share_group_are_held_and_not_shown(tmp_path: Path) -> None:
    share_group = encode_key(11, {"group": "billing"}), encode_value(11, 0, {"group_epoch": 3, "metadata_hash": 0})

    answers = why(tmp_path, lambda log: log.append([share_group, commit()]))

    assert [row["code"] for row in answers] == ["there", "not_shown"]


def test_a_log_whose_tail_is_gone_proves_nothing_about_what_it_does_not_have(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([commit()])
        log.roll(5)

    answer = why(tmp_path, append, release="2.8.2", topic="clicks", partition=3)[0]

    assert (answer["code"], answer["confidence"]) == ("never_there", "possible")
    assert "4 record offsets from 0 on are missing" in answer["not_excluded"]


def test_a_record_that_is_there_twice_does_not_stand_for_one_that_is_missing(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([commit()])
        log.append_bytes(encode_batch([NewRecord(0, T0_MS, *commit())], base_offset=0), 0, T0_MS)
        log.roll(2)
        log.append([commit(11)])

    answer = why(tmp_path, append, release="2.8.2", topic="clicks", partition=3)[0]

    assert "1 record offsets from 0 on are missing" in answer["not_excluded"]


def test_a_partition_without_its_topic_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="needs its topic"):
        why(tmp_path, lambda log: log.append([commit()]), partition=0)


def test_the_command_answers_for_one_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with PartitionWriter(tmp_path / "data", 7) as log:
        removed(log, after_ms=DAY_MS)
    options = ["--group", "billing", "--topic", "orders", "--partition", "0", "--retention", "24h", "--output", "json"]

    assert run(["why", str(tmp_path / "data"), *options]) == 0
    (answer,) = json.loads(capsys.readouterr().out)
    assert (answer["code"], answer["records"]) == ("expired", [0, 1])


def test_what_expired_and_began_anew_says_so(tmp_path: Path) -> None:
    written = incidents.write("IC-01", tmp_path / "drill")
    with exhume.open([*written.data_directories]) as topic:
        answers = {(row["topic"], row["partition"]): row for row in topic.why("pay").to_pylist()}

    own, offset = answers[None, None], answers["orders", 0]
    assert codes(answers)["orders", 0] == ("there", "proof")
    assert "; it began anew: record 106 of 2024-01-15 18:06:12.000Z removed the group of record 103; likely: " in own["sentence"]
    assert "offset 310 was committed by record 108" in offset["sentence"]
    assert "; it began anew: record 104 of 2024-01-15 18:06:12.000Z removed offset 5000 of record 101; likely: " in offset["sentence"]
    assert offset["records"] == [108, 101, 104]
    assert "a request" in offset["not_excluded"]


def test_what_was_deleted_and_came_back_says_so(tmp_path: Path) -> None:
    commit = partial(offset_commit, "pay", "t", 0)
    with PartitionWriter(tmp_path / "data", 0) as partition:
        partition.append([commit(500, commit_timestamp_ms=T0_MS)], timestamp_ms=T0_MS)
        for number in (1, 2):
            time_ms = T0_MS + number * 60_000
            partition.append([tombstone(commit(500, commit_timestamp_ms=T0_MS))], timestamp_ms=time_ms)
            partition.append([commit(number, commit_timestamp_ms=time_ms)], timestamp_ms=time_ms + 1000)
    with exhume.open(tmp_path / "data") as topic:
        [answer] = topic.why("pay", topic="t").to_pylist()

    assert answer["is_there"]
    assert "offset 2 was committed by record 4" in answer["sentence"]
    assert "removed offset 1 of record 2 (2 removals in all)" in answer["sentence"]
    assert answer["records"][:3] == [4, 2, 3]


def test_a_key_that_was_never_removed_did_not_begin_anew() -> None:
    answers = story("2.8.2-expiry", "cron-report", release="2.8.2", retention_ms=60_000)

    assert not any("began anew" in row["sentence"] for row in answers.values())
