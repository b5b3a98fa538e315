"""Detectors are linear in the bytes of names, and in the keys of one group: work is counted in processor time, against a plain log."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import exhume
from exhume.analysis.detectors.headlines import ranked
from exhume.findings import Finding, Findings
from exhume.fixtures.log_writer import PartitionWriter, group_metadata, offset_commit

_HOUR_MS, _TIME_MS = 3_600_000, 1_750_000_000_000
_SUBSCRIPTION = b"\0\1\0\0\0\1\0\6orders\xff\xff\xff\xff\0\0\0\0"
_ASSIGNMENT = b"\0\0\0\0\0\1\0\6orders\0\0\0\1\0\0\0\0\xff\xff\xff\xff"
#: Plain names may be faster by so much; quadratic work would take hundreds of times as long.
_MOST_RATIO = 8.0
_NAME_BYTES, _NAMES = 30_000, 12


def _client(name: str, number: int) -> dict[str, Any]:
    return {
        "member_id": f"m{number}",
        "client_id": name,
        "client_host": "/10.0.0.1",
        "session_timeout_ms": 30,
        "rebalance_timeout_ms": 30,
        "subscription": _SUBSCRIPTION,
        "assignment": _ASSIGNMENT,
    }


def _write(directory: Path, names: list[str]) -> None:
    """Write groups and members with these names; a group follows another one after a day."""
    with PartitionWriter(directory, 0) as log:
        for turn, group in enumerate(("old", "new", "newer")):
            now = _TIME_MS + turn * 40 * _HOUR_MS
            members = [_client(name, number) for number, name in enumerate(names)]
            value = {
                "protocol_type": "consumer",
                "generation": 1,
                "protocol": "range",
                "leader": "m0",
                "current_state_timestamp_ms": now,
                "members": members,
            }
            log.append([group_metadata(group, value, version=3)], timestamp_ms=now)
            log.append([offset_commit(group, "orders", 0, 5, commit_timestamp_ms=now, version=1)], timestamp_ms=now)
        for name in names:
            log.append([offset_commit(name, name[:240], 0, 5, commit_timestamp_ms=_TIME_MS, version=1)], timestamp_ms=now)


def _processor_seconds(directory: Path) -> float:
    before = time.process_time()
    with exhume.open(directory) as topic:
        topic.diagnose()
    return time.process_time() - before


@pytest.mark.one_of(4)
@pytest.mark.parametrize(
    "piece", ["0", "1", "f", "a", "-", "_", ".", "a1", "1-", "dead-", "consumer", "3f2504e0-", "2026-11-", "ab_", "\\", "é"]
)
def test_names_of_any_kind_cost_what_plain_names_cost(tmp_path: Path, piece: str) -> None:
    """A megabyte of names: each ends in a character that no pattern expects."""
    long = [(piece * _NAME_BYTES)[: _NAME_BYTES // len(piece[0].encode())] + f"{number}z" for number in range(_NAMES)]
    _write(tmp_path / "hostile", long)
    plain = [("name of an application " * _NAME_BYTES)[:_NAME_BYTES] + str(number) for number in range(_NAMES)]
    _write(tmp_path / "plain", plain)
    _processor_seconds(tmp_path / "plain")

    expected = _processor_seconds(tmp_path / "plain")

    assert _processor_seconds(tmp_path / "hostile") < _MOST_RATIO * max(expected, 0.2)


@pytest.mark.slow
def test_a_hundred_thousand_keys_of_one_group_cost_what_they_cost_in_many_groups(tmp_path: Path) -> None:
    for name, groups in (("one", 1), ("many", 1000)):
        with PartitionWriter(tmp_path / name, 0) as log:
            for start in range(0, 100_000, 1000):
                commits = [
                    offset_commit(f"g{number % groups}", f"t{number // 1000}", number % 1000, 5, commit_timestamp_ms=_TIME_MS, version=1)
                    for number in range(start, start + 1000)
                ]
                log.append(commits, timestamp_ms=_TIME_MS + start)

    assert _processor_seconds(tmp_path / "one") < _MOST_RATIO * _processor_seconds(tmp_path / "many")


def test_findings_are_ranked_in_time_that_their_number_allows() -> None:
    """Findings of two classes about each group: one is the cause of the other."""

    def seconds(count: int) -> float:
        findings = Findings(
            Finding(code=code, severity="warn", confidence="likely", sentence="It is so", group=f"g{number}", topic=topic)
            for number in range(count)
            for code, topic in (("IC-01", None), ("IC-16", "a"), ("IC-16", "b"))
        )
        before = time.process_time()
        assert ranked(findings)["because_of"].null_count < findings.to_table().num_rows
        return time.process_time() - before

    seconds(1000)

    # Each finding compared with each other one would take several times as long as this allows.
    assert seconds(16_000) < 3 * 16 * seconds(1000)
