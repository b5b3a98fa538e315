"""Capturing while leaders change: a broker is killed, and a replica that has less becomes the leader."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest

import exhume
from exhume.capture import cluster, fetching, open_capture
from exhume.capture.capturing import CaptureOptions
from exhume.capture.fetching import LostRecords
from exhume.capture.recorded_partition import scan_batches
from tests.compared import Compared
from tests.patience import PATIENCE_SECONDS

from .committing import GROUPS, Committer, commit, create_topic
from .pair import Pair
from .test_capture import (
    OFFSETS_PARTITIONS,
    await_growth,
    await_same_bytes,
    capture,
    follow,
    listed_offsets,
    log_of,
    replayed,
    require_same_bytes,
)

pytestmark = [pytest.mark.broker, pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")]

#: EXHUME_LEADER_RELEASES="2.8.2 4.4.0" runs both tests with these releases.
RELEASES = os.environ.get("EXHUME_LEADER_RELEASES", "").split()


def partitions_of(evidence: Path) -> list[dict[str, Any]]:
    partitions: list[dict[str, Any]] = json.loads((evidence / "manifest.json").read_text())["partitions"]
    return partitions


@pytest.mark.parametrize("release", RELEASES or ["4.4.0"])
def test_a_recorder_loses_and_repeats_nothing_when_leaders_are_killed(release: str, tmp_path: Path, compared: Compared) -> None:
    evidence = tmp_path / "evidence"
    with Pair(release, tmp_path, offsets_partitions=OFFSETS_PARTITIONS) as pair:
        create_topic(pair.servers, replicas=2)
        commit(pair.servers, "billing", 1)
        pair.wait_for_leaders({1, 2}, in_sync=2)
        with Committer(pair.servers) as committer:
            recorder = follow(pair.servers, evidence, "--follow")
            await_growth(evidence, recorder)
            for killed, left in ((2, 1), (1, 2)):
                pair.brokers[killed].kill()
                pair.wait_for_leaders({left}, in_sync=1)
                committer.wait_for(1)
                await_growth(evidence, recorder)
                pair.brokers[killed].start()
                pair.wait_for_leaders({left}, in_sync=2)
        await_same_bytes(pair.brokers[2], evidence, recorder)
        recorder.send_signal(signal.SIGTERM)
        _, said = recorder.communicate(timeout=PATIENCE_SECONDS)
        assert recorder.returncode == 0, said
        for broker in pair.brokers.values():
            compared["captured bytes after leader changes", release] += require_same_bytes(broker, evidence)
        done = capture(pair.servers, evidence)
        assert done.returncode == 0, done.stderr
        assert replayed(evidence, release) == (listed_offsets(evidence), [])
    for partition in partitions_of(evidence):
        assert partition["gaps"] == []
        assert partition["missing_offsets"] == 0
        # Broker 2 led at the end, and broker 1 for a time before.
        assert [row["broker"] for row in partition["leaders"]][-2:] == [1, 2]
        epochs = [row["leader_epoch"] for row in partition["leaders"]]
        assert epochs == sorted(set(epochs))
        assert [row["from_offset"] for row in partition["leaders"]] == sorted(row["from_offset"] for row in partition["leaders"])
    assert set(GROUPS) == {group for group, _, _ in listed_offsets(evidence)}


@pytest.mark.parametrize("release", RELEASES or ["2.8.2"])
def test_a_leader_that_has_less_is_named_and_its_records_are_not_added(
    release: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    once, followed = tmp_path / "once", tmp_path / "followed"
    with Pair(release, tmp_path, offsets_partitions=1) as pair:
        create_topic(pair.servers, replicas=2)
        commit(pair.servers, "billing", 5)
        pair.brokers[2].stop()
        pair.wait_for_leaders({1}, in_sync=1)
        kept = len(log_of(pair.brokers[2].log_directory, 0))
        commit(pair.server(1), "billing", 5, first=100)
        assert capture(pair.servers, once).returncode == 0
        captured = log_of(once, 0)
        recorder = follow(pair.servers, followed, "--follow")
        await_growth(followed, recorder)
        pair.brokers[1].kill()
        pair.brokers[2].start()
        pair.wait_for_leaders({2}, in_sync=1)
        _, said = recorder.communicate(timeout=PATIENCE_SECONDS)
        lost_from = require_lost(recorder.returncode, said)
        # The leader has less than the directory, then other records at the same offsets.
        refused = capture(pair.servers, once)
        assert require_lost(refused.returncode, refused.stderr) == lost_from
        commit(pair.server(2), "billing", 20, first=200)
        for evidence in (once, followed):
            refused = capture(pair.servers, evidence)
            assert require_lost(refused.returncode, refused.stderr) == lost_from
            assert log_of(evidence, 0) == captured
            assert partitions_of(evidence)[0]["lost_from"] == lost_from
            with exhume.open(evidence) as topic:
                assert [finding.code for finding in topic.inspect().findings if finding.severity != "info"] == ["leader_lost_records"]
        # The bytes say it too: up to this offset both logs are the same.
        assert captured[:kept] == log_of(pair.brokers[2].log_directory, 0)[:kept]
        assert lost_from == scan_batches(memoryview(captured[:kept]), 0, -1).next_offset
        # Brokers before 2.7 do not compare epochs with a fetch, and are asked for them.
        monkeypatch.setattr(cluster, "_FETCH_VERSION", 11)
        monkeypatch.setattr(fetching, "fetch_compares_epochs", lambda _: False)
        with pytest.raises(LostRecords) as error, open_capture(f"kafka://{pair.server(2)}", once, CaptureOptions()) as again:
            again.run_once()
        assert error.value.record_offset == lost_from
        assert log_of(once, 0) == captured


def require_lost(status: int | None, said: str) -> int:
    """Check the error about lost records, and return the first lost offset."""
    assert status == 3, said
    assert "broker 2, the leader of partition 0 of __consumer_offsets since leader epoch " in said
    found = re.search(r"does not have the captured records from offset (\d+) on: an unclean election lost them", said)
    assert found is not None, said
    return int(found[1])
