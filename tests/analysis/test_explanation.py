"""Groups in sentences: what is said rests on records that are there, and fits what the stories tell."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import exhume
from exhume.analysis.completeness import grade_at_end
from exhume.analysis.explanation.sentences import Command, listed, moment_arguments, named, numbers, often, partitions, shell_word
from exhume.analysis.log_extent import log_extents
from exhume.codecs.log_directory import discover
from exhume.codecs.segment_reader import ReadOptions, SegmentReader
from exhume.errors import RequestError
from exhume.findings import Findings
from exhume.fixtures import incidents, scenarios
from exhume.fixtures.log_writer import PartitionWriter, group_metadata, offset_commit, tombstone
from exhume.fixtures.story import Story
from exhume.topic import OffsetsTopic
from tests.judges import corpus

T0_MS = 1_700_000_000_000
REPLICAS = corpus.mostly_slow(
    (
        pytest.param(data, id=f"{case.name}{'/' if name else ''}{name}")
        for case in corpus.cases()
        if "/" not in case.name
        for name, data in case.data_directories.items()
    ),
    one_of=4,
)
commit = partial(offset_commit, commit_timestamp_ms=T0_MS)


def groups_of(topic: OffsetsTopic) -> list[str]:
    """Every group that a record names, of all kinds of groups."""
    return sorted({row["group"] for row in topic.dump().read_all().select(["group"]).to_pylist()} - {None})


def explained(directory: Path, group: str, **options: Any) -> dict[str, list[dict[str, Any]]]:
    """The sentences by section, as rows."""
    with exhume.open(directory) as topic:
        rows = topic.explain(group, **options).to_pylist()
    sections: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        sections.setdefault(row["section"], []).append(row)
    return sections


def said(sections: Mapping[str, list[dict[str, Any]]], section: str) -> str:
    return "\n".join(row["sentence"] for row in sections.get(section, []))


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("lab")
    for name in ("failover", "dead-groups", "transactions", "consumer-groups", "active-groups"):
        scenarios.write(name, directory / name)
    return directory


@pytest.mark.one_of(12)
@pytest.mark.parametrize("data", REPLICAS)
def test_every_sentence_about_a_real_group_rests_on_records_that_are_there(data: Path) -> None:
    with exhume.open(data) as topic:
        records = topic.records().read_all().select(["offsets_partition", "record_offset"]).to_pylist()
        known = {(row["offsets_partition"], row["record_offset"]) for row in records}
        groups = groups_of(topic)
    assert groups
    for group in groups[:3]:
        with exhume.open(data) as topic:
            rows = topic.explain(group).to_pylist()
        evidence = [(row["offsets_partition"], row[end]) for row in rows for end in ("first_record_offset", "last_record_offset")]
        assert {place for place in evidence if place[1] is not None} <= known
        assert {row["group"] for row in rows} == {group}
        assert [section for section in ("what_it_is", "state", "next") if section not in {row["section"] for row in rows}] == []
        assert all(row["sentence"] and row["confidence"] in ("proof", "likely", "possible", "undecidable") for row in rows)


#: The sections about rebalances, the state and missing records tell these without a code.
_TOLD_ELSEWHERE = {"IC-04", "IC-36", "load_aborted"}


@pytest.mark.one_of(4)
@pytest.mark.parametrize("data", REPLICAS[::4])
def test_a_page_has_every_finding_about_its_group(data: Path) -> None:
    with exhume.open(data) as topic:
        for group in groups_of(topic)[:4]:
            page = "\n".join(row["sentence"] for row in topic.explain(group).to_pylist())
            found = {each.code for each in topic.diagnose(groups=[group]).at_least("warn") if each.group == group}
            assert not {code for code in found - _TOLD_ELSEWHERE if f"({code})" not in page}


@pytest.mark.parametrize("code", ["IC-06e", "IC-21", "IC-25", "IC-12"])
def test_a_page_has_findings_that_need_more_than_the_group(code: str, tmp_path: Path) -> None:
    written = incidents.write(code, tmp_path / "drill")
    with exhume.open([*written.data_directories]) as topic:
        [group, *_] = [finding.group for finding in topic.diagnose().at_least("warn") if finding.code == code and finding.group]
        page = "\n".join(row["sentence"] for row in topic.explain(group).to_pylist())

    assert f"({code})" in page


@pytest.mark.parametrize("data", REPLICAS[::4])
def test_a_sentence_about_the_past_rests_on_nothing_that_came_later(data: Path) -> None:
    with exhume.open(data) as topic:
        records = topic.records().read_all().select(["offsets_partition", "record_offset"]).to_pylist()
        group = groups_of(topic)[0]
        offsets: dict[int, list[int]] = {}
        for row in records:
            offsets.setdefault(row["offsets_partition"], []).append(row["record_offset"])
        middle = {number: found[len(found) // 2] for number, found in offsets.items()}
        rows = topic.explain(group, at_offset=middle).to_pylist()

    assert rows
    assert all(row["last_record_offset"] <= middle[row["offsets_partition"]] for row in rows if row["last_record_offset"] is not None)
    assert any(row["next_command"] and "--at-offset" in row["next_command"] for row in rows)


@pytest.mark.parametrize("data", REPLICAS[::3])
def test_how_sure_the_end_of_a_log_is_can_be_told_without_reading_it_again(data: Path) -> None:
    with exhume.open(data) as topic:
        state = topic.state()
        grades = {(row["replica"], row["offsets_partition"], row["group"]): row for row in topic.completeness(state).to_pylist()}
        loads = {(row["replica"], row["offsets_partition"]): row for row in state.loads.to_pylist()}
        has_damage = topic.findings.has_damage
    with discover([str(data)]) as evidence:
        extents = log_extents(SegmentReader(evidence, ReadOptions(), Findings()))

    assert grades
    for (replica, number, group), row in grades.items():
        if group is not None:
            grade, _ = grade_at_end(loads[replica, number], extents[replica, number], has_damage=has_damage)
            assert grade == row["grade"], group


def test_a_classic_group_after_a_failover(lab: Path) -> None:
    page = explained(lab / "failover" / "broker-2", "checkout", release="2.8.2")

    assert "a classic group of consumers (protocol range)" in said(page, "what_it_is")
    assert "has the group in state Stable, in generation 2, by record 7" in said(page, "state")
    assert "checkout-4 at 10.0.0.4 owns orders 5" in said(page, "members")
    assert "Generation 2, record 7 of 2024-01-08 08:00:55.000Z: checkout-4@10.0.0.4 joined; 4 members; 1 partition moved" in said(
        page, "rebalances"
    )
    assert "orders 0-5 are between 700 (partition 0) and 705 (partition 5)" in said(page, "commits")


def test_the_same_group_before_the_fourth_member_came(lab: Path) -> None:
    place = lab / "failover" / "broker-2"
    page = explained(place, "checkout", at_time_ms=1_704_700_840_000, release="2.8.2")

    assert "As of record 6 of 2024-01-08 08:00:30.000Z a coordinator of 2.8.2 has the group in state Stable, in generation 1" in said(
        page, "state"
    )
    assert "3 members" in said(page, "members")
    assert page["next"][0]["next_command"] == (
        f"exhume state {shell_word(str(place))} --group checkout --release 2.8.2 --at-time 1704700840000"
    )


def test_what_waits_for_a_transaction_and_what_was_aborted(lab: Path) -> None:
    page = explained(lab / "transactions", "ledger")

    pending = next(row for row in page["commits"] if "waits for the end of a transaction" in row["sentence"])
    assert "orders 2 waits for the end of a transaction of producer 1002, epoch 0, open since record 8" in pending["sentence"]
    assert "1 commit (orders 1) was aborted with its transaction" in said(page, "commits")
    assert "refunds 0 is gone" in said(page, "missing")


def test_a_reconciliation_that_is_stuck(lab: Path) -> None:
    page = explained(lab / "consumer-groups", "scoring")

    assert "a consumer group: its coordinator assigns the partitions" in said(page, "what_it_is")
    assert "has the group in state Reconciling, at group epoch 2" in said(page, "state")
    assert "scorer-2 waits for orders 1, 3, 5, which scorer-1 still owns" in said(page, "members")
    assert "2 members did not reconcile" in said(page, "rebalances")


def test_groups_that_are_gone_and_one_that_began_anew(lab: Path) -> None:
    campaign = explained(lab / "dead-groups", "campaign", release="2.8.2")
    returns = explained(lab / "dead-groups", "returns", release="2.8.2")

    deleted = next(row for row in campaign["state"] if "deleted by a request" in row["sentence"])
    assert deleted["confidence"] == "likely"
    assert deleted["not_excluded"]
    assert "the last in the log was campaign-1, until record 7" in said(campaign, "members")
    assert "It was removed once before and created again" in said(returns, "what_it_is")
    assert "3 generations of the group, which was removed and created again once" in said(returns, "rebalances")


def test_a_group_that_began_anew_with_the_generation_that_it_ended_with_had_two_lives(tmp_path: Path) -> None:
    story = """
        0 08:00 GM g gen=1 {A: t → t-0}
        1 08:10 GM g = X
        2 08:20 GM g gen=1 {A: t → t-0}
        3 08:30 GM g gen=2 {A: t → t-0; B: t → t-1}
    """

    assert "3 generations of the group, which was removed and created again once" in said(
        explained(Story(story).write(tmp_path), "g"), "rebalances"
    )


def test_in_front_of_its_first_record_nothing_is_said_of_what_the_group_is(tmp_path: Path) -> None:
    Story("0 08:00 OC other t-0 = 1\n1 08:10 GM g gen=1 {A: t → t-0}").write(tmp_path)

    page = explained(tmp_path, "g", at_offset=0)

    assert "the log has no record of the group: its first record is later" in said(page, "state")
    assert "It was" not in said(page, "what_it_is")


def test_a_moment_behind_what_aborts_the_load_is_told_as_where_the_log_is_cut_off(tmp_path: Path) -> None:
    # No coordinator removes a member in front of its current assignment.
    lines = """
        0 08:00 CG5 g A {t} | CG3 g epoch=1 | CG6 g target-epoch=1 | CG8 g A epoch=1 own{t:[0]}
        4 08:10 CG5 g A = X | CG3 g epoch=2
        6 08:20 CG5 g B {t} | CG3 g epoch=3 | CG6 g target-epoch=3 | CG8 g B epoch=3 own{t:[0]}
        10 08:30 OC g t-0 = 1
    """.strip().splitlines()
    Story("\n".join(lines)).write(tmp_path / "whole")
    Story("\n".join(lines[:3])).write(tmp_path / "cut")

    moment, cut = explained(tmp_path / "whole", "g", at_offset=9), explained(tmp_path / "cut", "g")

    for section in ("what_it_is", "members", "rebalances", "commits"):
        assert said(moment, section) == said(cut, section)
    assert "As of record 9 of 2024-01-08 08:20:00.000Z a coordinator" in said(moment, "state")
    assert "At the end of the log a coordinator" in said(cut, "state")
    assert "its load is aborted at record 4" in said(moment, "state")


def test_a_group_that_was_converted_had_generations_and_epochs(tmp_path: Path) -> None:
    story = """
        0 08:00 GM g gen=1 {A: t → t-0}
        1 08:10 GM g = X | CG5 g A {t} | CG3 g epoch=1 | CG6 g target-epoch=1 | CG8 g A epoch=1 own{t:[0]}
    """

    assert "2 generations and epochs of the group" in said(explained(Story(story).write(tmp_path), "g"), "rebalances")


def test_a_group_that_is_nothing_but_offsets(lab: Path) -> None:
    page = explained(lab / "active-groups", "export")

    assert "It is a group of committed offsets alone" in said(page, "what_it_is")
    assert "members" not in page
    assert "orders 0 is at 5, last committed by record 0" in said(page, "commits")


def test_a_rewind_names_both_records_and_the_command_that_undoes_it(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 0) as log:
        log.append([commit("billing", "orders", 0, 900), commit("billing", "orders", 1, 50)], timestamp_ms=T0_MS)
        log.append([commit("billing", "orders", 0, 500)], timestamp_ms=T0_MS + 60_000)
        log.append([commit("billing", "orders", 0, 700)], timestamp_ms=T0_MS + 120_000)

    row = explained(tmp_path, "billing")["odd"][0]

    assert row["sentence"].startswith("orders 0 was set back from 900 to 500 by record 2 of ")
    assert row["sentence"].endswith("; it is now at 700")
    assert (row["first_record_offset"], row["last_record_offset"], row["confidence"]) == (0, 2, "proof")
    assert row["next_command"] == f"exhume reset-plan {tmp_path} --group billing --before-rewind --output table"


def test_a_lower_commit_after_a_removal_is_no_rewind_and_is_reported(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 0) as log:
        log.append([commit("billing", "orders", 0, 900)], timestamp_ms=T0_MS)
        log.append([tombstone(commit("billing", "orders", 0, 0))], timestamp_ms=T0_MS + 1000)
        log.append([commit("billing", "orders", 0, 500)], timestamp_ms=T0_MS + 2000)

    sentences = said(explained(tmp_path, "billing"), "odd")
    assert "After a removal, 1 commit began below the removed offset, the last of orders 0: from 900 to 500" in sentences
    assert "No commit in the log set an offset back" not in sentences


def test_a_storm_of_rebalances(tmp_path: Path) -> None:
    clients = ("a", "b")
    with PartitionWriter(tmp_path, 0) as log:
        for generation in range(1, 41):
            members = [
                {"member_id": f"{client}-{generation if client == 'b' else 0}", "client_id": client, "client_host": f"/{client}"}
                for client in (clients if generation % 2 else clients[:1])
            ]
            value = {"protocol_type": "consumer", "protocol": "range", "leader": "a-0", "generation": generation, "members": members}
            log.append([group_metadata("billing", value)], timestamp_ms=T0_MS + generation * 20_000)

    text = said(explained(tmp_path, "billing"), "rebalances")

    assert "Rebalance storm since record 0" in text
    assert "39 generations in 13 minutes" in text
    assert "b@b" in text


def test_a_moment_in_front_of_the_first_record_of_the_group(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 0) as log:
        log.append([commit("other", "orders", 0, 1)], timestamp_ms=T0_MS)
        log.append([commit("billing", "orders", 0, 1)], timestamp_ms=T0_MS + 1)

    page = explained(tmp_path, "billing", at_offset=0)

    assert "the log has no record of the group: its first record is later" in said(page, "state")
    assert "commits" not in page


def test_a_group_that_no_record_names_is_refused_with_similar_names(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 0) as log:
        log.append([commit("billing", "orders", 0, 1)])

    with exhume.open(tmp_path) as topic, pytest.raises(RequestError, match=r"no record of group 'biling'.*Did you mean billing"):
        topic.explain("biling")


def test_a_log_with_damage_says_that_nobody_knows_all(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 0) as log:
        for number in range(4):
            log.append([commit("billing", "orders", 0, number)], timestamp_ms=T0_MS + number)
    segment = next(log.directory.glob("*.log"))
    content = bytearray(segment.read_bytes())
    content[len(content) // 4 + 70] ^= 1
    segment.write_bytes(content)

    page = explained(tmp_path, "billing")

    assert page["state"][-1]["confidence"] == "undecidable"
    assert "Part of the log is damaged" in said(page, "missing")
    assert any(row["next_command"].startswith("exhume inspect") for row in page["next"])


NAMES = [
    "\x1b[2J",
    "it's",
    "a b",
    "-dash",
    "$(reboot)",
    "`x`",
    "\u202eright",
    "back\\slash",
    "消費者",
    "",
    "line\nbreak",
    "\u3164",
    "!!",
    "a\\x1b",
]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_shell_reads_back_what_a_command_names(name: str) -> None:
    line = Command("why", ("--group", name), "").line(["data dir/"])

    assert line is not None
    assert line.replace("消費者", "").isascii()
    assert line.isprintable()
    done = subprocess.run(["bash", "-c", f"exhume() {{ printf '%s\\0' \"$@\"; }}; {line}"], capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == ["why", "data dir/", "--group", name]


def test_no_command_is_made_of_a_name_that_none_can_carry() -> None:
    assert Command("why", ("--group", "nul\0"), "").line(["data"]) is None


def test_the_options_of_a_moment() -> None:
    assert moment_arguments({3: 7, 4: 9}, None, None) == ("--at-offset", "3:7", "--at-offset", "4:9")
    assert moment_arguments(7, None, None) == ("--at-offset", "7")
    assert moment_arguments(None, 12, "commit") == ("--at-time", "12", "--clock", "commit")
    assert moment_arguments(None, None, None) == ()


def test_words() -> None:
    assert named("orders-1.x") == "orders-1.x"
    assert named("a b") == '"a b"'
    assert named("") == '""'
    assert numbers([5, 0, 1, 2]) == "0-2, 5"
    assert numbers(range(0, 60, 2)) == "0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22 and more, 30 in all"
    assert partitions([("b", 1), ("a", 0), ("b", 0)]) == "a 0 and b 0-1"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert listed(["a", "b", "c"], most=2) == "a, b and 1 more"
    assert often(10, 5000) == "2.0 a second"
    assert often(10, 300_000) == "2.0 a minute"
    assert often(1, 2 * 86_400_000) == "0.5 a day"


@pytest.mark.parametrize("group", ["pay", "web"])
@pytest.mark.parametrize("cut_key", [b"\0\1\0\3web", b"\0\1\0\3web\0\6orders\0\0"], ids=["topic", "partition"])
def test_keys_that_are_cut_off_behind_their_group_are_no_commits(tmp_path: Path, cut_key: bytes, group: str) -> None:
    value = commit("web", "orders", 0, 7)[1]
    with PartitionWriter(tmp_path, 0) as log:
        log.append([group_metadata("web", {"protocol_type": "consumer", "generation": 1})])
        log.append([commit("pay", "orders", 0, 5), (cut_key, value), (cut_key, None)])
        log.append([tombstone(commit("pay", "orders", 0, 5)), tombstone(commit("web", "orders", 0, 5))])

    assert "orders 0 is gone" in said(explained(tmp_path, group), "missing")
    with exhume.open(tmp_path) as topic:
        assert [finding.group for finding in topic.diagnose(codes=["IC-09"])] == [None, None]
