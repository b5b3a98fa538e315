"""Orders that coordinators do not load (IC-06), and loads that are slow or endless (IC-15)."""

from __future__ import annotations

from pathlib import Path

import pytest

from exhume.fixtures.log_writer import KeyValue, PartitionWriter, group_metadata, offset_commit

from .files import decided
from .story import DAY_0_MS, Story, said

TWO_OWNERS = """
10 d0 10:00 CG3 g epoch=3 | CG5 g m1 {t} | CG5 g m2 {t} | CG6 g target-epoch=3 | CG8 g m1 epoch=3 prev=2 state=0 own{t:[0]}
17 d0 10:01 CG8 g m2 epoch=4 prev=3 state=0 own{t:[0]}
18 d0 10:02 CG8 g m1 epoch=5 prev=4 state=0 own{t:[1]}
"""


def commit(offset: int, partition: int = 0) -> KeyValue:
    return offset_commit("g", "t", partition, offset, commit_timestamp_ms=DAY_0_MS)


def test_two_owners_whose_handover_was_compacted_away_stop_the_releases_that_check_it(tmp_path: Path) -> None:
    found = said(decided(Story(TWO_OWNERS).write(tmp_path), "IC-06"), "IC-06")

    assert (found.severity, found.confidence, found.first_record_offset) == ("warn", "proof", 17)
    assert "4.1.1" in found.sentence
    assert "still owned" in found.sentence


def test_the_same_with_the_handover_is_loaded_by_all(tmp_path: Path) -> None:
    complete = TWO_OWNERS.replace("17 d0 10:01", "16 d0 10:01 CG8 g m1 epoch=4 prev=3 state=0 own{}\n17 d0 10:01")

    assert not [finding for finding in decided(Story(complete).write(tmp_path), "IC-06") if finding.severity != "info"]


def test_tombstones_of_a_member_that_is_not_there_stop_early_coordinators_only(tmp_path: Path) -> None:
    log = Story("0 d0 10:00 CG8 ghosts m1 = X | CG7 ghosts m1 = X | CG5 ghosts m1 = X | CG3 ghosts = X").write(tmp_path)

    assert {finding.severity for finding in decided(log, "IC-06")} == {"info"}


def test_a_group_that_no_release_takes_is_an_incident(tmp_path: Path) -> None:
    member = {"client_id": "c", "client_host": "/h", "subscription": b"\0\0\0\0\0\0\xff\xff\xff\xff", "assignment": b""}
    members = [member | {"member_id": "m1", "group_instance_id": "i"}, member | {"member_id": "m2", "group_instance_id": "i"}]
    with PartitionWriter(tmp_path, 0) as log:
        log.append([group_metadata("g", {"protocol_type": "consumer", "protocol": "range", "leader": "m1", "members": members})])

    assert said(decided(tmp_path, "IC-06"), "IC-06").severity == "incident"


def test_a_log_in_good_order_is_loaded(tmp_path: Path) -> None:
    log = Story("0 d0 10:00 GM g gen=1 {A: t → t-0}\n1 d0 10:01 OC g t-0 = 5\n2 d0 10:02 GM g = X\n3 d0 10:03 OC h t-0 = 5").write(tmp_path)

    assert not decided(log, "IC-06")


@pytest.mark.parametrize(("size_bytes", "is_large"), [(6 * 1024 * 1024, True), (4 * 1024 * 1024, False)])
def test_a_group_record_beyond_the_load_buffer_never_loads_in_old_releases(tmp_path: Path, size_bytes: int, is_large: bool) -> None:
    member = {"member_id": "m", "client_id": "c", "client_host": "/h", "subscription": bytes(size_bytes), "assignment": b""}
    with PartitionWriter(tmp_path, 0) as log:
        log.append([group_metadata("big", {"protocol_type": "x", "members": [member]})], timestamp_ms=DAY_0_MS)

    found = decided(tmp_path, "IC-15")

    assert bool(found) == is_large
    if is_large:
        assert found[0].group == "big"
        assert "in front of 2.1.0" in found[0].sentence


@pytest.mark.parametrize(("base_offset", "is_endless"), [(200, True), (1, False)])
def test_an_empty_segment_behind_a_gap_is_read_for_ever_by_old_releases(tmp_path: Path, base_offset: int, is_endless: bool) -> None:
    with PartitionWriter(tmp_path, 0) as log:
        log.append([commit(1)], timestamp_ms=DAY_0_MS)
        log.roll(base_offset)

    found = decided(tmp_path, "IC-15")

    assert bool(found) == is_endless
    if is_endless:
        assert "begins at 200, behind a gap that begins at 1" in found[0].sentence


@pytest.mark.parametrize(("siblings_mib", "is_large"), [(0, True), (3, False)])
def test_a_partition_that_is_many_times_its_siblings_is_slow_to_load(tmp_path: Path, siblings_mib: int, is_large: bool) -> None:
    filler = "x" * 1_000_000
    for partition in range(4):
        with PartitionWriter(tmp_path, partition) as log:
            for number in range(12 if partition == 3 else siblings_mib):
                big = offset_commit("g", "t", number, 1, commit_timestamp_ms=DAY_0_MS, metadata=filler[:30_000])
                log.append([big] * 35, timestamp_ms=DAY_0_MS)
            log.append([commit(1)], timestamp_ms=DAY_0_MS)

    found = decided(tmp_path, "IC-15")

    assert [finding.offsets_partition for finding in found] == ([3] if is_large else [])
