"""Detectors find the same in chunks of kernels and in chunks of the plain reader."""

from __future__ import annotations

from pathlib import Path

import pytest

from exhume.codecs.log_directory import discover
from exhume.codecs.segment_reader import ReadOptions
from exhume.errors import RequestError
from exhume.findings import Finding
from exhume.fixtures.log_writer import PartitionWriter, offset_commit
from exhume.topic import OffsetsTopic
from tests.analysis.detectors.troubles import troubles
from tests.twins import PLAIN, reading


def _found(directory: Path, least_bytes: int) -> list[Finding]:
    with reading(least_bytes), OffsetsTopic(discover([directory]), ReadOptions(least_compiled_bytes=least_bytes)) as topic:
        return [*topic.diagnose()]


@pytest.mark.one_of(3)
@pytest.mark.parametrize("seed", range(6))
def test_both_readings_find_the_same(tmp_path: Path, seed: int) -> None:
    troubles(seed, events=120).write(tmp_path)

    found = _found(tmp_path, 0)

    assert found == _found(tmp_path, PLAIN)
    assert found


@pytest.mark.parametrize("least_bytes", [0, PLAIN])
def test_a_group_none_of_whose_commits_can_be_read_is_no_group(tmp_path: Path, least_bytes: int) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        key, value = offset_commit("ghost", "t", 0, 5, commit_timestamp_ms=10)
        assert value is not None
        log.append([(key, value[:5]), offset_commit("web", "t", 0, 5, commit_timestamp_ms=10)], timestamp_ms=10)

    assert not [finding for finding in _found(tmp_path, least_bytes) if finding.group == "ghost" and finding.code.startswith("IC-")]
    with (
        reading(least_bytes),
        OffsetsTopic(discover([tmp_path]), ReadOptions(least_compiled_bytes=least_bytes)) as topic,
        pytest.raises(RequestError, match="ghost"),
    ):
        topic.diagnose(groups=["ghost"])
