"""Floods of commits (IC-12), explosions of groups (IC-14), oversized records (IC-32)."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest

from exhume.fixtures.log_writer import PartitionWriter, group_metadata, offset_commit

from .files import decided, diagnosed
from .story import DAY_0_MS, HOUR_MS, MINUTE_MS, Story, codes_of, said


def test_a_key_that_is_committed_ten_times_a_second_for_an_hour_is_a_flood(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 0) as log:
        for second in range(1200):
            log.append([_commit("hot", 10 * second + number // 2) for number in range(10)], timestamp_ms=DAY_0_MS + second * 1000)
            if second % 5 == 0:
                log.append([_commit("calm", second)], timestamp_ms=DAY_0_MS + second * 1000)

    found = said(decided(tmp_path, "IC-12"), "IC-12")

    assert (found.group, found.topic, found.partition) == ("hot", "t", 0)
    assert "1 key committed more than once a second; t-0 for 20 min" in found.sentence
    assert "12000 commits in all" in found.sentence
    assert "50% of them repeat" in found.sentence


def _commit(group: str, offset: int, **fields: Any) -> tuple[bytes | None, bytes | None]:
    return offset_commit(group, "t", 0, offset, commit_timestamp_ms=DAY_0_MS, **fields)


@pytest.mark.parametrize(
    "text",
    ["0 d0 10:00 OC g t-0 = {n}  900 × every 5 s", "0 d0 10:00 OC g t-0 = {n}  400 × every 1 s"],
    ids=["every five seconds", "a burst of minutes"],
)
def test_commits_at_a_usual_pace_are_no_flood(tmp_path: Path, text: str) -> None:
    assert "IC-12" not in codes_of(Story(text).findings(tmp_path))


def test_a_large_group_that_commits_many_keys_is_no_flood(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 0) as log:
        for second in range(0, 1200, 5):
            commits = [offset_commit("g", "t", number, second, commit_timestamp_ms=DAY_0_MS) for number in range(50)]
            log.append(commits, timestamp_ms=DAY_0_MS + second * 1000)

    assert not decided(tmp_path, "IC-12")


def explosion(
    directory: Path, *, groups: int = 150, life_ms: int = 10 * MINUTE_MS, members: int = 1, first_offset: int = 0, gap: bool = False
) -> Path:
    """A group for each run of a job: a member, a commit, nobody."""
    with PartitionWriter(directory, 0) as log:
        for number in range(groups):
            now_ms, name = DAY_0_MS + number * HOUR_MS, f"app-{uuid.UUID(int=number)}"
            member = {"client_id": "c", "client_host": "/10.0.0.9", "subscription": b"", "assignment": b""}
            value: dict[str, Any] = {"protocol_type": "consumer", "generation": 1, "protocol": "range", "leader": "m0"}
            value["members"] = [member | {"member_id": f"m{each}"} for each in range(members)]
            log.append([group_metadata(name, value)], timestamp_ms=now_ms)
            log.append([_commit(name, number)], timestamp_ms=now_ms + life_ms // 2)
            log.append([group_metadata(name, {"protocol_type": "consumer", "generation": 2})], timestamp_ms=now_ms + life_ms)
        if gap:
            log.roll(log.next_offset + 10)
            log.append([_commit("other", 1)], timestamp_ms=DAY_0_MS + groups * HOUR_MS)
    return directory


def test_a_group_for_each_run_is_an_explosion_with_its_pattern(tmp_path: Path) -> None:
    found = said(decided(explosion(tmp_path), "IC-14"), "IC-14")

    assert "150 groups are named like 'app-<uuid>', 24 new ones a day, and live for 10 min in the median" in found.sentence
    assert "they hold 150 offsets of t, from /10.0.0.9" in found.sentence


@pytest.mark.parametrize(
    "log",
    [{"groups": 90}, {"life_ms": 48 * HOUR_MS}, {"members": 3}],
    ids=["few", "a group for each tenant", "several members"],
)
def test_many_groups_that_live_or_have_members_are_no_explosion(tmp_path: Path, log: dict[str, Any]) -> None:
    assert not decided(explosion(tmp_path, **log), "IC-14")


def test_where_compaction_took_their_beginnings_it_cannot_be_decided(tmp_path: Path) -> None:
    found = said(diagnosed(explosion(tmp_path, gap=True), "IC-14"), "IC-14")

    assert found.confidence == "undecidable"


@pytest.mark.parametrize(
    ("size_bytes", "severity"), [(1_020_000, "incident"), (900_000, "warn"), (700_000, None)], ids=["at the limit", "near it", "large"]
)
def test_a_group_record_near_the_largest_message_is_reported(tmp_path: Path, size_bytes: int, severity: str | None) -> None:
    member = {"member_id": "m", "client_id": "c", "client_host": "/h", "subscription": bytes(size_bytes), "assignment": b""}
    with PartitionWriter(tmp_path, 0) as log:
        log.append([group_metadata("g", {"protocol_type": "x", "generation": 10, "members": [member]})], timestamp_ms=DAY_0_MS)

    assert [finding.severity for finding in decided(tmp_path, "IC-32")] == ([severity] if severity else [])


@pytest.mark.parametrize(("size_bytes", "severity"), [(4000, "warn"), (4096, "info"), (300, None)])
def test_commit_metadata_near_its_limit_is_reported(tmp_path: Path, size_bytes: int, severity: str | None) -> None:
    with PartitionWriter(tmp_path, 0) as log:
        log.append([_commit("s", 5, metadata="A" * size_bytes)], timestamp_ms=DAY_0_MS)

    found = decided(tmp_path, "IC-32")

    assert [finding.severity for finding in found] == ([severity] if severity else [])
    if severity:
        assert f"the largest of {size_bytes} bytes (t-0)" in found[0].sentence
