"""Every answer about a moment, or over time, says where the log may lack records."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import exhume
from exhume.cli.app import run
from exhume.codecs.offsets_topic import offsets_partition_of
from exhume.findings import Finding
from exhume.fixtures.classic_group import ClassicGroup
from exhume.fixtures.cleaner import Cleaner
from exhume.fixtures.coordinator import Coordinator
from exhume.fixtures.partition_log import MessageForm
from exhume.topic import OffsetsTopic

PARTITION = offsets_partition_of("billing")


@pytest.fixture
def cleaned(tmp_path: Path) -> Path:
    """A log that was cleaned up to record 7: records 0, 1 and 3 are missing. The moment of record 4 is before the second generation."""
    coordinator = Coordinator(MessageForm(2, "none"))
    billing, log = ClassicGroup(coordinator, "billing"), coordinator.log("billing")
    billing.join("b-1")
    billing.commit("orders", {0: 10})
    coordinator.wait(minutes=1)
    billing.commit("payments", {0: 5})
    billing.commit("refunds", {0: 6})
    billing.commit("payments", {1: 7})
    coordinator.wait(minutes=1)
    billing.join("b-2")
    billing.commit("orders", {0: 20})
    billing.commit("refunds", {0: 8})
    log.roll()
    billing.commit("payments", {1: 9})
    log.clean(Cleaner())
    coordinator.write(tmp_path)
    return tmp_path


AT_A_MOMENT: dict[str, Callable[[OffsetsTopic], object]] = {
    "reset plan": lambda topic: topic.reset_plan(["billing"], at_offset=4),
    "diff": lambda topic: topic.diff(from_offset=4),
    "diff of a group": lambda topic: topic.diff(from_offset=4, groups=["billing"]),
    "owners": lambda topic: topic.owners(topic="orders", at_offset=4),
    "assignments": lambda topic: topic.assignments(at_offset=4),
    "assignments of a group": lambda topic: topic.assignments(groups=["billing"], at_offset=4),
}
OVER_TIME: dict[str, Callable[[OffsetsTopic], object]] = {
    "history": lambda topic: topic.history("billing"),
    "history of a key": lambda topic: topic.history("billing", topic="orders", partition=0),
    "rebalances": lambda topic: topic.rebalances(),
    "owners": lambda topic: topic.owners(topic="orders"),
}


def findings(directory: Path, ask: Callable[[OffsetsTopic], object]) -> dict[str, Finding]:
    with exhume.open(directory) as topic:
        ask(topic)
        return {finding.code: finding for finding in topic.findings}


@pytest.mark.parametrize("question", AT_A_MOMENT)
def test_an_answer_about_a_moment_says_that_the_log_may_lack_records(cleaned: Path, question: str) -> None:
    finding = findings(cleaned, AT_A_MOMENT[question])["past_is_incomplete"]

    assert (finding.severity, finding.offsets_partition, finding.last_record_offset) == ("warn", PARTITION, 4)
    assert "3 record offsets are missing" in finding.sentence
    assert (finding.group == "billing") == (question in ("reset plan", "diff of a group", "assignments of a group"))


def test_a_difference_names_the_moment_that_is_not_certain(cleaned: Path) -> None:
    assert "at the earlier moment" in findings(cleaned, lambda topic: topic.diff(from_offset=4))["past_is_incomplete"].sentence
    later = findings(cleaned, lambda topic: topic.diff(from_offset=4, to_offset=5))
    assert "past_is_incomplete" in later
    assert "past_is_incomplete" not in findings(cleaned, lambda topic: topic.diff(from_offset=8, to_offset=8, release="3.6.2"))


@pytest.mark.parametrize("question", OVER_TIME)
def test_an_answer_over_time_says_that_compaction_removed_records(cleaned: Path, question: str) -> None:
    finding = findings(cleaned, OVER_TIME[question])["records_are_missing"]

    assert (finding.severity, finding.offsets_partition) == ("warn", PARTITION)
    assert "3 record offsets" in finding.sentence


@pytest.mark.parametrize("question", OVER_TIME)
def test_an_answer_over_time_about_a_complete_log_has_no_such_finding(tmp_path: Path, question: str) -> None:
    coordinator = Coordinator(MessageForm(2, "none"))
    billing = ClassicGroup(coordinator, "billing")
    billing.join("b-1")
    billing.commit("orders", {0: 10})
    coordinator.write(tmp_path)

    assert "records_are_missing" not in findings(tmp_path, OVER_TIME[question])


def test_a_plan_says_of_each_offset_that_the_group_may_have_had_it(cleaned: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with exhume.open(cleaned) as topic:
        plan = topic.reset_plan(["billing"], at_offset=4)
    reasons = {(row["topic"], row["partition"]): row["reason"] for row in plan.table.to_pylist() if row["action"] == "not_restorable"}

    assert set(reasons) == {("orders", 0), ("refunds", 0)}
    assert all("the log does not show if the group had it then" in reason for reason in reasons.values())
    assert run(["reset-plan", str(cleaned), "--group", "billing", "--at-offset", f"{PARTITION}:4"]) == 1
    assert "the answer is partial" in capsys.readouterr().err
    assert run(["reset-plan", str(cleaned), "--group", "billing", "--at-offset", f"{PARTITION}:8"]) == 0


def test_a_group_with_only_tombstones_left_is_not_certain_not_to_have_been(tmp_path: Path) -> None:
    coordinator = Coordinator(MessageForm(2, "none"))
    billing, log = ClassicGroup(coordinator, "billing"), coordinator.log("billing")
    billing.commit("orders", {0: 10})
    billing.commit("payments", {0: 10})
    billing.remove_offsets("orders", 0)
    billing.remove_offsets("payments", 0)
    log.roll()
    coordinator.wait(days=3)
    billing.commit("orders", {1: 5})
    log.roll()
    log.clean(Cleaner())
    billing.commit("orders", {1: 6})
    coordinator.write(tmp_path)

    with exhume.open(tmp_path) as topic:
        page = topic.explain("billing", at_offset=2).to_pylist()
        plan = findings(tmp_path, lambda other: other.reset_plan(["billing"], at_offset=2))
    assert any("may be incomplete" in row["sentence"] for row in page)
    assert "past_is_incomplete" in plan
