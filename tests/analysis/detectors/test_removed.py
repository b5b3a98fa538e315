"""Groups and offsets that were deleted, by whom, and offsets topics that began anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from exhume.analysis.detectors import Inputs, diagnose
from exhume.fixtures.log_writer import PartitionWriter, offset_commit
from tests.analysis.detectors.story import DAY_0_MS, Story, case_of, codes_of, evidence_offsets, said

_ELECTED = """
    0 d0 10:00:00  GM elect gen=57 pt=consumer proto=cooperative-sticky leader=A st=… {A@h1/x: replica → replica-0}
    1 d0 10:05:00  GM elect gen=58 empty st=d0 10:05:00
    2 d0 10:11:40  GM elect = X
"""


def test_a_group_without_offsets_was_removed_and_begins_at_one(tmp_path: Path) -> None:
    again = "3 d0 12:00:00  GM elect gen=1 pt=consumer proto=cooperative-sticky leader=B st=… {B@h1/x: replica → replica-0}"

    found = said(Story(_ELECTED + again).findings(tmp_path), "IC-27")

    assert (found.severity, found.group) == ("warn", "elect")
    assert "Empty at generation 58 without an offset and was removed 6 min later" in found.sentence
    assert "2 lives so far, up to generation 58, 1" in found.sentence
    assert evidence_offsets(found) == [1, 2]


def test_a_generation_that_decreases_without_a_tombstone(tmp_path: Path) -> None:
    found = said(Story("0 d0 10:00 GM g gen=57 {A: t → t-0}\n 4 d1 10:00 GM g gen=2 {A: t → t-0}").findings(tmp_path), "IC-27")

    assert "generation 57 was followed by 2 without a tombstone" in found.sentence
    assert "compaction took" in str(found.not_excluded)


@pytest.mark.parametrize(
    "log",
    [
        pytest.param("0 d0 10:00 GM g gen=2 {A: t → t-0}\n 1 d0 10:01 OC g t-0 = 5\n 2 d0 10:05 GM g gen=3 empty\n"
                     "3 d0 10:11 OC g t-0 = X | GM g = X", id="with an offset"),
        pytest.param("0 d0 10:00 GM g gen=2 {A: t → t-0}\n 1 d0 10:05 GM g gen=3 empty\n 2 d0 11:00 GM g = X", id="an hour later"),
        pytest.param('0 d0 10:00 GM g gen=0 pt="" empty\n 1 d0 10:01 GM g gen=1 {A: t → t-0}', id="a placeholder"),
        pytest.param("0 d0 10:00 GM g gen=1 {A: t → t-0}\n 1 d0 10:01 GM g gen=1 {B: t → t-0}", id="the same generation"),
    ],
)  # fmt: skip
def test_other_ends_of_groups_are_no_restart(tmp_path: Path, log: str) -> None:
    assert "IC-27" not in codes_of(Story(log).findings(tmp_path))


_DELETED = """
    27 d3 02:00:00  GM bill gen=7 {A: inv → inv-0,1}
    28 d3 02:05:00  OC bill inv-0 = 5 | OC bill inv-1 = 6
    30 d3 02:30:00  GM bill gen=8 empty st=d3 02:10
    31 d3 02:31:00  OC bill inv-0 = X | OC bill inv-1 = X | GM bill = X
"""


def test_a_group_was_deleted(tmp_path: Path) -> None:
    found = said(Story(_DELETED).findings(tmp_path), "IC-05a")

    assert (found.severity, found.group, found.confidence) == ("info", "bill", "likely")
    assert "the group was deleted with 2 offsets of inv (0, 1), 26 min after the last commit" in found.sentence


_TOPIC_GONE = """
    35 d3 03:00:00  OC g1 tmp-0 = 1
    36 d3 03:00:00  OC g2 tmp-0 = 2
    40 d3 04:00:00  OC g1 tmp-0 = X
    41 d3 04:00:00  OC g2 tmp-0 = X
"""


def test_a_topic_was_deleted(tmp_path: Path) -> None:
    found = said(Story(_TOPIC_GONE).findings(tmp_path), "IC-05a")

    assert found.topic == "tmp"
    assert "topic tmp was deleted" in found.sentence
    assert "2 groups lost offsets of it" in found.sentence


def test_offsets_of_a_group_were_deleted(tmp_path: Path) -> None:
    log = """
        44 d3 04:30:00  GM g3 gen=1 {A: new → new-0}
        45 d3 04:40:00  OC g3 old-0 = 5 | OC g3 new-0 = 5
        50 d3 05:00:00  OC g3 old-0 = X
    """
    found = said(Story(log).findings(tmp_path), "IC-05a")

    assert "the offset of old-0 deleted, 20 min after the commit; the group stayed" in found.sentence


def test_an_offset_that_members_subscribe_to_went_with_its_topic(tmp_path: Path) -> None:
    log = "44 d3 04:30 GM g3 gen=1 {A: new → new-0}\n 45 d3 04:40 OC g3 new-0 = 5\n 50 d3 05:00 OC g3 new-0 = X"

    found = said(Story(log).findings(tmp_path), "IC-05a")

    assert "topic new was deleted" in found.sentence
    assert "a request would have been refused" in found.sentence


def test_a_sweep_of_what_was_due_is_no_deletion(tmp_path: Path) -> None:
    swept = "0 d0 00:00 OC a t-0 = 1 | OC b u-0 = 1\n 2 d7 00:05 OC a t-0 = X | OC b u-0 = X"

    assert codes_of(Story(swept).findings(tmp_path)) == {"IC-01"}


def _fresh(committed: int, *, day: int = 10) -> str:
    lines = []
    for number in range(20):
        lines.append(f"{2 * number} d{day} 00:0{number // 5} GM g{number} gen=1 {{A: t → t-0}}")
        lines.append(f"{2 * number + 1} d{day} 00:0{number // 5} OC g{number} t-0 = {committed + number}")
    return "\n".join(lines)


def test_an_offsets_topic_that_is_younger_than_the_data(tmp_path: Path) -> None:
    found = said(Story(_fresh(500_000)).findings(tmp_path), "IC-35")

    assert (found.severity, found.confidence) == ("incident", "likely")
    assert "20 groups at generation 1 within minutes" in found.sentence


def test_a_new_cluster_is_no_wiped_topic(tmp_path: Path) -> None:
    assert not Story(_fresh(0)).findings(tmp_path, codes=["IC-35"])


def test_a_partition_that_is_younger_than_its_siblings(tmp_path: Path) -> None:
    story = Story(_fresh(0, day=0), offsets_partition=1).tell(_fresh(0, day=0), offsets_partition=2)
    found = said(story.tell(_fresh(0, day=5), offsets_partition=3).findings(tmp_path, codes=["IC-35"]), "IC-35")

    assert (found.offsets_partition, found.severity) == (3, "warn")
    assert "5 d after its siblings" in found.sentence


def test_partitions_with_different_topic_ids(tmp_path: Path) -> None:
    directory = Story("0 d0 10:00 OC g t-0 = 1").tell("0 d0 10:00 OC h t-0 = 1", offsets_partition=1).write(tmp_path)
    for number, topic_id in enumerate(("qtC0tyB_QVKeUkDOcXVKCw", "AAAAAAAAAAAAAAAAAAAABA")):
        (directory / f"__consumer_offsets-{number}" / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")

    found = said(diagnose(case_of(directory), Inputs(), codes=["IC-35"]), "IC-35")

    assert (found.severity, found.confidence) == ("incident", "proof")


def test_a_log_that_lost_its_first_segments(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 0, first_offset=500) as writer:
        writer.append([offset_commit("g", "t", 0, 5, commit_timestamp_ms=DAY_0_MS)], timestamp_ms=DAY_0_MS)

    found = said(diagnose(case_of(tmp_path), Inputs(), codes=["IC-35"]), "IC-35")

    assert "begins with a segment at offset 500" in found.sentence
