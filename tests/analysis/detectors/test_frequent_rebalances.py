"""Groups that rebalance for hours (IC-40), and rebalances that stand still (IC-18)."""

from __future__ import annotations

from pathlib import Path

import pytest

from .incidents import hit
from .story import Story, said


def test_a_member_that_is_evicted_every_five_minutes(tmp_path: Path) -> None:
    found = said(hit("IC-40", tmp_path), "IC-40")

    assert (found.severity, found.confidence) == ("warn", "likely")
    assert found.sentence.startswith("72 generations in 3 h 6 min, 23.2 an hour, with 2 to 3 members: 35 members joined and left again")
    assert "(client id c, 1 host, not static; c@h3 joined 36 times)" in found.sentence
    assert "a member left about every 5 min, their rebalance timeout, as after an exceeded max.poll.interval.ms" in found.sentence


def test_a_program_with_a_new_address_each_time(tmp_path: Path) -> None:
    found = said(hit("IC-40", tmp_path, "a program ends and starts again with a new address each time"), "IC-40")

    assert "client id pod-<n>, 35 hosts, not static" in found.sentence
    assert found.not_excluded is None


def test_an_autoscaler(tmp_path: Path) -> None:
    found = said(hit("IC-40", tmp_path, "an autoscaler between three and six members"), "IC-40")

    assert "the number of members changes between 3 and 6 again and again, as by an autoscaler" in found.sentence


def test_the_time_without_an_assignment_is_a_share(tmp_path: Path) -> None:
    lines = []
    for number in range(20):
        begin = 36_000 + 600 * number
        for at_s, step in ((0, f"gen={2 * number + 1} {{M{number}@h/c: t → t-0}}"), (300, f"gen={2 * number + 2} empty")):
            second = begin + at_s
            clock = f"{second // 3600}:{second // 60 % 60:02d}:{second % 60:02d}"
            lines.append(f"{2 * number + (at_s > 0)} d0 {clock}  GM g {step}")
    found = said(Story("\n".join(lines)).findings(tmp_path, codes=["IC-40"]), "IC-40")

    assert found.severity == "warn"
    assert "no partition was assigned for at least 1 h 35 min, 49% of the time" in found.sentence


@pytest.mark.parametrize(("rise", "severity"), [(1, "info"), (0, "warn")])
def test_a_job_that_runs_again_and_again_makes_progress(tmp_path: Path, rise: int, severity: str) -> None:
    lines = []
    for number in range(20):
        begin = 36_000 + 600 * number
        steps = (f"GM g gen={2 * number + 1} {{M{number}@h/c: t → t-0}}", f"OC g t-0 = {rise * number}", f"GM g gen={2 * number + 2} empty")
        for place, step in enumerate(steps):
            second = begin + 60 * place
            lines.append(f"{3 * number + place} d0 {second // 3600}:{second // 60 % 60:02d}  {step}")
    found = said(Story("\n".join(lines)).findings(tmp_path, codes=["IC-40"]), "IC-40")

    assert found.severity == severity
    assert ("a job that runs again and again" in found.sentence) == (severity == "info")


def test_a_rebalance_that_waits_for_its_leader(tmp_path: Path) -> None:
    found = said(hit("IC-18", tmp_path, "the members wait for the assignment of their leader"), "IC-18")

    assert found.sentence == (
        "generation 10 stood still for 36 min: its 2 members waited for the assignment of the leader, a@h1 (A), and owned no partition in"
        " that time"
    )


def test_a_rebalance_that_stands_still(tmp_path: Path) -> None:
    found = said(hit("IC-18", tmp_path, "a rebalance of such clients stands still for half an hour"), "IC-18")

    assert found.sentence.endswith("then generation 10 began, as after a rebalance that stood still")
