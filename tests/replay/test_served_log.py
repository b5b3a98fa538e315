"""Which part of what lies in a directory a load is fed with, and what the answer says about the rest."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import exhume
from exhume.analysis.load_check import is_refused
from exhume.codecs.record_types import encode_key, encode_value
from exhume.errors import RequestError
from exhume.fixtures.log_writer import KeyValue, PartitionWriter, offset_commit
from exhume.replay.state import CoordinatorState

NOW_MS = 1_700_000_000_000


def commit(committed_offset: int, partition: int = 0) -> KeyValue:
    return offset_commit("billing", "orders", partition, committed_offset, commit_timestamp_ms=NOW_MS, version=1)


def load(directory: Path, include: tuple[str, ...] = (), **options: Any) -> CoordinatorState:
    with exhume.open(directory, include=include) as topic:
        return topic.state(**options)


def committed(state: CoordinatorState) -> list[int]:
    return sorted(row["committed_offset"] for row in state.offsets.to_pylist())


@pytest.fixture
def cleaned(tmp_path: Path) -> Path:
    """What a cleaner leaves for a minute: the first segment holds the newest record, and the second one waits to be deleted."""
    with PartitionWriter(tmp_path, 7) as log:
        for committed_offset in (1, 2, 3):
            log.append([commit(committed_offset)])
            log.roll()
        log.append([commit(9, partition=1)])
    first, second, third = (log.directory / f"{number:020}.log" for number in range(3))
    first.write_bytes(third.read_bytes())
    third.unlink()
    second.rename(f"{second}.deleted")
    return tmp_path


@pytest.mark.parametrize("mode", ["strict", "lenient"])
@pytest.mark.parametrize("release", ["2.8.2", "4.3.0"])
def test_leftovers_beside_a_log_are_read_but_not_loaded(cleaned: Path, release: str, mode: str) -> None:
    with exhume.open(cleaned, include=["deleted"]) as topic:
        assert topic.records().read_all().num_rows == 3
        assert [finding.code for finding in topic.findings if finding.code == "offsets_outside_segment"] == []
    state = load(cleaned, ("deleted",), release=release, mode=mode)

    assert committed(state) == committed(load(cleaned, release=release, mode=mode)) == [3, 9]


def test_batches_that_a_lying_size_hides_from_a_broker_are_an_incident(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        for number in range(5):
            log.append([commit(number + 1, partition=number)])
    path = log.directory / f"{0:020}.log"
    content = bytearray(path.read_bytes())
    struct.pack_into(">i", content, len(content) // 5 + 8, 2**30)
    path.write_bytes(content)

    with exhume.open(tmp_path) as topic:
        checked = topic.load_check(["2.8.2"], stop="clean")
    state = load(tmp_path, release="2.8.2", stop="clean")
    (hidden,) = (finding for finding in state.findings if finding.code == "hidden_from_broker")

    assert committed(state) == [1]
    assert (hidden.byte_position, hidden.last_record_offset, hidden.is_damage) == (len(content) // 5, 4, True)
    assert is_refused(checked)


def test_a_cut_tail_hides_nothing(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        log.append([commit(1)])
        log.append([commit(2)])
    path = log.directory / f"{0:020}.log"
    path.write_bytes(path.read_bytes()[:-3])

    assert "hidden_from_broker" not in {finding.code for finding in load(tmp_path, release="2.8.2", stop="clean").findings}


def test_what_happens_when_a_load_is_over_does_not_happen_to_the_part_that_is_shown(tmp_path: Path) -> None:
    def record(number: int, key: dict[str, Any], value: dict[str, Any]) -> KeyValue:
        return encode_key(number, key), encode_value(number, 0, value)

    tasks = ("active_tasks", "standby_tasks", "warmup_tasks")
    no_tasks: dict[str, Any] = {name: [] for name in (*tasks, *(f"{name}_pending_revocation" for name in tasks))}
    member = {"group": "s", "member_id": "m"}
    described = {"rebalance_timeout_ms": 1000, "process_id": "p", "client_id": "", "client_host": "", "topology_epoch": 0}
    with PartitionWriter(tmp_path, 7, first_offset=20_000) as log:
        log.append(
            [
                record(17, {"group": "s"}, {"group_epoch": 1, "metadata_hash": 0, "validated_topology_epoch": 0}),
                # Tasks to give up, and no word about a timeout yet.
                record(22, member, {"member_epoch": 1, "previous_member_epoch": 0, "member_state": 2, **no_tasks}),
            ]
        )
        log.append([record(19, member, described)])
        log.append([commit(4)])
        log.roll(log.next_offset + 50)

    state = load(tmp_path, release="4.3.0")

    assert state.loads["outcome"].to_pylist() == ["not_shown"]
    assert state.groups["group"].to_pylist() == ["s"]


@pytest.mark.parametrize(("release", "outcome"), [("0.9.0.1", "aborted"), ("0.10.2.2", "aborted"), ("0.11.0.0", "loaded")])
def test_a_release_without_message_format_2_does_not_load_it(tmp_path: Path, release: str, outcome: str) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        log.append([commit(1)])

    assert load(tmp_path, release=release).loads["outcome"].to_pylist() == [outcome]


@pytest.mark.parametrize(("at_offset", "expected"), [(0, (0, 0)), (2, (0, 2)), (7, (0, 7))])
def test_loads_counts_from_the_first_record_inside_a_wrapper(tmp_path: Path, at_offset: int, expected: tuple[int, int]) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        for _ in range(2):
            log.append([commit(number, partition=number) for number in range(5)], magic=1, codec=1)
    (row,) = load(tmp_path, release="2.8.2", at_offset=at_offset).loads.to_pylist()

    assert (row["first_record_offset"], row["last_record_offset"]) == expected


def test_an_answer_names_the_coordinator_that_gave_it(cleaned: Path) -> None:
    assert load(cleaned, release="3.9.1-new").loads["release"].to_pylist() == ["3.9.1-new"]


ASK: dict[str, Callable[[exhume.OffsetsTopic], object]] = {
    "state": lambda topic: topic.state(release="9.9"),
    "diff": lambda topic: topic.diff(from_offset=0, release="9.9"),
    "history": lambda topic: topic.history("billing", release="9.9"),
    "load_check": lambda topic: topic.load_check(["9.9"]),
}


@pytest.mark.parametrize("question", ASK)
def test_every_answer_says_that_the_rules_of_a_release_are_not_known(cleaned: Path, question: str) -> None:
    with exhume.open(cleaned) as topic:
        ASK[question](topic)
        assert "release_newer_than_known" in {finding.code for finding in topic.findings}


def test_a_moment_beyond_every_offset_and_a_clock_without_a_time_are_wrong_requests(cleaned: Path) -> None:
    with exhume.open(cleaned) as topic:
        with pytest.raises(RequestError, match="64 bits"):
            topic.state(at_offset=2**63)
        with pytest.raises(RequestError, match="clock"):
            topic.diff(from_offset=1, to_offset=2, clock="commit")
