"""The owners of streams tasks in 4.1.0 and 4.1.1: a broker of 4.1.1 loaded these logs, and ended at these records."""

from __future__ import annotations

from pathlib import Path

import pytest

import exhume
from exhume.fixtures.log_writer import KeyValue, PartitionWriter
from tests.replay.test_load_problems import NO_TASKS, STREAMS, record


def _own(*partitions: int, member: str = "m1", role: str = "active") -> KeyValue:
    tasks = {f"{role}_tasks": [{"subtopology_id": "0", "partitions": [*partitions]}]} if partitions else {}
    value = {"member_epoch": 1, "previous_member_epoch": 0, "member_state": 1, **NO_TASKS, **tasks}
    return record(22, value, member=member)


_KNOWN, _OTHER = record(19, STREAMS), record(19, STREAMS, member="m2")
_GONE, _OTHER_GONE = record(22), record(22, member="m2")

#: The records after that of the group, and the record at which the load ends; None if the broker loads them.
_LOADS: dict[str, tuple[list[KeyValue], int | None]] = {
    "a member without a record takes a task of another": ([_KNOWN, _own(5), _own(5, member="m2")], None),
    "it gives up tasks, and none of the subtopology is noted": ([_own(5, member="m2"), _own(6, member="m2")], 2),
    "it gives up tasks beside those of another": ([_KNOWN, _own(5), _own(6, member="m2"), _own(7, member="m2")], None),
    "it gives up a task of another": ([_KNOWN, _own(5), _own(5, member="m2"), _OTHER_GONE], 4),
    "it gives up a standby task": ([_own(1, member="m2", role="standby"), _OTHER_GONE], 2),
    "it gets its record after its tasks": ([_own(5, member="m2"), _OTHER], 2),
    "two members of one process give up one standby task": (
        [_KNOWN, _OTHER, _own(1, role="standby"), _own(1, member="m2", role="standby"), _GONE, _OTHER_GONE],
        6,
    ),
    "a member with a record gives up a task": ([_KNOWN, _own(5), _own(6)], None),
    "two members of one process take one task": ([_KNOWN, _OTHER, _own(5), _own(5, member="m2")], 4),
    "it gives up a warmup task beside that of another": (
        [_KNOWN, _own(1, role="warmup"), _own(2, member="m2", role="warmup"), _own(member="m2")],
        4,
    ),
}


@pytest.mark.parametrize("release", ["4.1.0", "4.1.1"])
@pytest.mark.parametrize("story", _LOADS)
def test_a_load_ends_where_that_of_the_broker_did(story: str, release: str, tmp_path: Path) -> None:
    records, ended = _LOADS[story]
    group = {"group_epoch": 1, "epoch": 1, "metadata_hash": 0, "validated_topology_epoch": 0, "last_assignment_configs": []}
    with PartitionWriter(tmp_path, 0) as log:
        for each in (record(17, group), *records):
            log.append([each])

    with exhume.open(tmp_path) as topic:
        (load,) = topic.state(release=release).loads.to_pylist()

    assert load["record_offset"] == ended
    assert load["outcome"] == ("loaded" if ended is None else "aborted")


@pytest.mark.parametrize("story", _LOADS)
def test_the_next_release_does_not_check_owners(story: str, tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 0) as log:
        log.append(_LOADS[story][0])

    with exhume.open(tmp_path) as topic:
        (load,) = topic.state(release="4.1.2").loads.to_pylist()

    assert load["outcome"] == "loaded"
