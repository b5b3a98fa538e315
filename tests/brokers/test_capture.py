"""`exhume capture` from real brokers: the bytes are those of the broker, and the state is what its coordinator shows."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient

import exhume
from exhume.codecs.offsets_topic import offsets_partition_of
from tests.compared import Compared
from tests.patience import PATIENCE_SECONDS

from .broker import Broker
from .committing import GROUPS, Committer, commit, create_topic

pytestmark = [
    pytest.mark.broker,
    # The clients of these tests close their connections when they are collected.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

OFFSETS_PARTITIONS = 4
#: Kills of the flight recorder. EXHUME_KILLS sets another number.
KILLS = int(os.environ.get("EXHUME_KILLS", "4"))


@contextmanager
def running(release: str, directory: Path, extra: Callable[[Broker], str] = lambda _: "") -> Iterator[Broker]:
    with Broker(release, directory, offsets_partitions=OFFSETS_PARTITIONS) as broker:
        with (directory / "server.properties").open("a") as settings:
            settings.write(extra(broker))
        broker.start()
        create_topic(server(broker))
        yield broker


def server(broker: Broker) -> str:
    return f"127.0.0.1:{broker.port}"


def command(place: str, output_dir: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "exhume", "capture", f"kafka://{place}", "--output-dir", str(output_dir), *options]


def capture(place: str, output_dir: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(place, output_dir, *options), check=False, capture_output=True, text=True, timeout=PATIENCE_SECONDS)


def log_of(root: Path, number: int) -> bytes:
    return b"".join(path.read_bytes() for path in sorted((root / f"__consumer_offsets-{number}").glob("*.log")))


def require_same_bytes(broker: Broker, evidence: Path) -> int:
    """Compare the captured segments with the files of the broker. Returns the number of bytes."""
    size = 0
    for number in range(OFFSETS_PARTITIONS):
        assert log_of(evidence, number) == log_of(broker.log_directory, number), f"partition {number}"
        size += len(log_of(evidence, number))
    return size


def listed_offsets(evidence: Path) -> dict[tuple[str, str, int], int]:
    groups = json.loads((evidence / "groups.json").read_text())
    return {
        (group["group"], row["topic"], row["partition_index"]): row["committed_offset"]
        for group in groups
        for row in group["offsets"]["offsets"]
    }


def replayed(evidence: Path, release: str) -> tuple[dict[tuple[str, str, int], int], Sequence[str]]:
    """Committed offsets of the state, and findings of `inspect` that are not mere information."""
    with exhume.open(evidence) as topic:
        rows = topic.state(release=release).offsets.to_pylist()
        findings = [finding.code for finding in topic.inspect().findings if finding.severity != "info"]
    return {(row["group"], row["topic"], row["partition"]): row["committed_offset"] for row in rows}, findings


def described(broker: Broker) -> tuple[Any, ...]:
    """Topics, groups and files of the offsets topic: what a client that writes would change."""
    admin: Any = KafkaAdminClient(bootstrap_servers=server(broker))
    try:
        topics, groups = sorted(admin.list_topics()), sorted(str(group) for group in admin.list_groups())
    finally:
        admin.close()
    return topics, groups, [log_of(broker.log_directory, number) for number in range(OFFSETS_PARTITIONS)]


@pytest.mark.parametrize("release", ["2.8.2", "3.9.1", "4.0.0", "4.4.0"])
def test_a_capture_is_what_the_broker_has_and_changes_nothing(release: str, tmp_path: Path, compared: Compared) -> None:
    evidence = tmp_path / "evidence"
    with running(release, tmp_path) as broker:
        for group in GROUPS:
            commit(server(broker), group, 40)
        before = described(broker)
        done = capture(server(broker), evidence)
        assert done.returncode == 0, done.stderr
        assert described(broker) == before
        compared["captured bytes", release] += require_same_bytes(broker, evidence)
        offsets, findings = replayed(evidence, release)
        assert offsets == listed_offsets(evidence)
        assert findings == []
        assert {group for group, _, _ in offsets} == set(GROUPS)
        compared["offsets beside the live listing", release] += len(offsets)
        # A second run adds what came meanwhile.
        commit(server(broker), "billing", 5, first=100)
        assert capture(server(broker), evidence).returncode == 0
        require_same_bytes(broker, evidence)
        assert replayed(evidence, release) == (listed_offsets(evidence), [])
    manifest = json.loads((evidence / "manifest.json").read_text())
    assert manifest["complete"]
    assert all(partition["gaps"] == [] for partition in manifest["partitions"])


@pytest.mark.slow
def test_a_recorder_that_is_killed_has_no_gap_and_no_repeat(tmp_path: Path, compared: Compared) -> None:
    evidence = tmp_path / "evidence"
    metrics = tmp_path / "metrics.prom"
    options = ("--follow", "--segment-bytes", "20k", "--fsync", "100ms", "--metrics-file", str(metrics), "--metrics-time", "100ms")
    with running("3.9.1", tmp_path) as broker:
        commit(server(broker), "billing", 1)
        with Committer(server(broker)) as committer:
            for number in range(KILLS):
                recorder = follow(server(broker), evidence, *options)
                await_growth(evidence, recorder)
                time.sleep(0.05 * (number % 7))
                recorder.kill()
                recorder.communicate()
                if number == KILLS // 2:
                    broker.stop()
                    broker.start()
                committer.wait_for(1)
        recorder = follow(server(broker), evidence, *options)
        await_same_bytes(broker, evidence, recorder)
        # The broker restarts while the recorder runs.
        broker.stop()
        broker.start()
        commit(server(broker), "audit", 20, first=5000)
        await_same_bytes(broker, evidence, recorder)
        recorder.send_signal(signal.SIGTERM)
        _, said = recorder.communicate(timeout=PATIENCE_SECONDS)
        assert recorder.returncode == 0, said
        compared["bytes after kills", str(KILLS)] += require_same_bytes(broker, evidence)
        assert "exhume_capture_lag_offsets 0" in metrics.read_text()
        # The listing of a recorder is older than its log; a capture renews it.
        assert capture(server(broker), evidence).returncode == 0
        assert replayed(evidence, "3.9.1") == (listed_offsets(evidence), [])
    manifest = json.loads((evidence / "manifest.json").read_text())
    assert [partition["gaps"] for partition in manifest["partitions"]] == [[]] * OFFSETS_PARTITIONS
    assert all(partition["missing_offsets"] == 0 for partition in manifest["partitions"])
    assert len(manifest["runs"]) == KILLS + 2


def follow(place: str, evidence: Path, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(command(place, evidence, *options), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def await_growth(evidence: Path, recorder: subprocess.Popen[str]) -> None:
    """Return once the recorder has written something."""
    before, end = captured_bytes(evidence), time.monotonic() + PATIENCE_SECONDS
    while captured_bytes(evidence) <= before:
        assert recorder.poll() is None, recorder.communicate()
        assert time.monotonic() < end
        time.sleep(0.01)


def captured_bytes(evidence: Path) -> int:
    return sum(path.stat().st_size for path in evidence.glob("*/*.log"))


def await_same_bytes(broker: Broker, evidence: Path, recorder: subprocess.Popen[str]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while any(log_of(evidence, number) != log_of(broker.log_directory, number) for number in range(OFFSETS_PARTITIONS)):
        assert recorder.poll() is None, recorder.communicate()
        assert time.monotonic() < end
        time.sleep(0.1)


def test_kafka_is_a_place_for_a_command_and_for_the_library(tmp_path: Path) -> None:
    evidence = tmp_path / "evidence"
    (tmp_path / "captures").mkdir()
    with running("4.0.0", tmp_path) as broker:
        commit(server(broker), "billing", 7)
        assert capture(server(broker), evidence).returncode == 0
        commit(server(broker), "billing", 1, first=500)
        asked = [sys.executable, "-m", "exhume", "explain", f"kafka://{server(broker)}", "--group", "billing"]
        done = subprocess.run(asked, check=False, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
        assert done.returncode == 0, done.stderr
        assert "500" in done.stdout
        differs = [sys.executable, "-m", "exhume", "diff", str(evidence), "--live", f"kafka://{server(broker)}", "--output", "json"]
        done = subprocess.run(differs, check=False, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
        assert done.returncode == 1, done.stderr
        changes = {(row["before"], row["after"]) for row in json.loads(done.stdout) if row["column"] == "committed_offset"}
        assert changes == {(6, 500)}
        with exhume.open(f"kafka://{server(broker)}", temp_dir=tmp_path / "captures", capture_groups=["billing"]) as topic:
            (temporary,) = (tmp_path / "captures").iterdir()
            offsets = {row["committed_offset"] for row in topic.state().offsets.to_pylist()}
            assert (offsets, {row["offsets_partition"] for row in topic.segments().to_pylist()}) == (
                {500},
                {offsets_partition_of("billing", 4)},
            )
            assert [finding.code for finding in topic.findings if finding.severity != "info"] == []
            assert server(broker) in repr(topic)
        assert not temporary.exists()


def test_a_cluster_that_does_not_answer_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    done = capture("127.0.0.1:1", tmp_path / "evidence", "--timeout", "2s")
    assert done.returncode == 3
    assert "no broker answered within 2 s" in done.stderr
    assert "Traceback" not in done.stderr
