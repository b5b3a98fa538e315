"""Which releases would load a log, and which would not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import exhume
from exhume.analysis.load_check import check_loads, given_up, is_refused, load_matrix
from exhume.codecs.log_directory import discover
from exhume.codecs.record_types import encode_key, encode_value
from exhume.codecs.segment_reader import ReadOptions
from exhume.fixtures.log_writer import PartitionWriter, offset_commit
from exhume.replay.local import load_partitions
from exhume.replay.partition_load import LoadOptions
from exhume.replay.profiles import BrokerProfile
from exhume.replay.reading import CompiledLoad
from exhume.replay.release_table import newest_of_each_line
from exhume.replay.releases import profile_for
from exhume.replay.rule_reads import VALUE_RULES, LoadsByRules
from exhume.replay.topic_names import TopicNames
from tests.judges import corpus
from tests.judges.corpus import BUNDLED

NOW_MS = 1_700_000_000_000


def write(directory: Path, *, newest_version: int = 3) -> None:
    with PartitionWriter(directory, 7) as log:
        log.append([offset_commit("billing", "orders", 0, 1, commit_timestamp_ms=NOW_MS, version=1)])
        log.append([offset_commit("billing", "orders", 1, 2, commit_timestamp_ms=NOW_MS, version=newest_version)])


def test_a_downgrade_behind_a_newer_value_version_is_refused_at_that_record(tmp_path: Path) -> None:
    write(tmp_path)

    with exhume.open(tmp_path) as topic:
        checked = topic.load_check(["2.0.1", "2.1.1", "4.3"], stop="clean")

    rows = {row["release"]: row for row in checked.to_pylist()}
    assert {release: row["outcome"] for release, row in rows.items()} == {"2.0.1": "aborted", "2.1.1": "loaded", "4.3": "loaded"}
    assert (rows["2.0.1"]["record_offset"], rows["2.0.1"]["missing_offsets"]) == (1, 2)
    assert is_refused(checked)


def test_by_default_every_span_of_releases_is_tried_both_ways_of_stopping(tmp_path: Path) -> None:
    write(tmp_path, newest_version=1)

    with exhume.open(tmp_path) as topic:
        checked = topic.load_check()

    assert set(checked["stop"].to_pylist()) == {"clean", "unclean"}
    assert {"0.9.0.1", "0.11.0.0", "2.8.2", "3.9.2", "3.9.2-new", "4.3.1", "4.4.0"} <= set(checked["release"].to_pylist())
    refused = {row["release"] for row in checked.to_pylist() if row["outcome"] != "loaded"}
    assert refused == {"0.9.0.1", "0.10.0.1", "0.10.1.1", "0.10.2.2"}  # these have no message format 2


def test_what_an_unclean_start_would_cut_off_is_told_before_it_happens(tmp_path: Path) -> None:
    write(tmp_path)
    path = tmp_path / "__consumer_offsets-7" / "00000000000000000000.log"
    path.write_bytes(path.read_bytes()[:-5])

    with exhume.open(tmp_path) as topic:
        lines = load_matrix(topic.load_check(["4.3"])).to_pylist()

    assert [(line["stop"], line["loaded"], line["lost_bytes"] > 0) for line in lines] == [
        ("clean", "1 of 1", False),
        ("unclean", "1 of 1", True),
    ]


def test_record_types_of_a_newer_coordinator_are_skipped_from_3_4_1_on(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        log.append([(encode_key(3, {"group": "carts"}), encode_value(3, 0, {"group_epoch": 1}))])

    with exhume.open(tmp_path) as topic:
        outcomes = {
            row["release"]: row["outcome"] for row in topic.load_check(["3.4.0", "3.4.1", "3.9.1-classic"], stop="clean").to_pylist()
        }

    assert outcomes == {"3.4.0": "aborted", "3.4.1": "loaded", "3.9.1-classic": "loaded"}


def test_loads_in_columns_come_to_the_same_for_every_release() -> None:
    directories = discover([str(BUNDLED / "4.3.0-transactions" / "data")]).log_directories
    releases = ["0.9.0.1", "1.1.1", "2.8.2", "3.9.1-new", "4.3.0"]
    fast = CompiledLoad(least_bytes=0)

    assert check_loads(directories, releases, fast=fast).equals(check_loads(directories, releases))
    assert fast.verified_segments


@pytest.mark.slow
@pytest.mark.parametrize("turn", range(6))
def test_releases_that_share_a_load_have_the_same_one(turn: int, monkeypatch: pytest.MonkeyPatch) -> None:
    loads = 0

    def of(profile: BrokerProfile, load: Callable[[BrokerProfile], Any]) -> Any:
        nonlocal loads
        loads += 1
        return load(profile)

    for data in corpus.data_directories(share=0)[turn::6]:
        with discover([data]) as evidence:
            directories, releases = evidence.log_directories, newest_of_each_line()
            shared = given_up(directories, releases, fast=CompiledLoad()), check_loads(directories, releases, fast=CompiledLoad())
            with monkeypatch.context() as apart:
                # Each release has its own load, without notes.
                apart.setattr(LoadsByRules, "of", lambda self, profile: of(profile, self._load))
                own = given_up(directories, releases, fast=CompiledLoad()), check_loads(directories, releases, fast=CompiledLoad())

        assert shared[0] == own[0], data
        assert shared[1].equals(own[1]), data
        assert loads == 2 * len(releases)
        loads = 0


def test_most_releases_share_the_load_of_a_sound_log(tmp_path: Path) -> None:
    write(tmp_path)
    made: list[str] = []
    loads = LoadsByRules(lambda profile: made.append(_loaded(tmp_path, profile)), besides=VALUE_RULES)
    for release in newest_of_each_line():
        loads.of(profile_for(release))

    assert 4 <= len(made) <= 10
    assert set(made) == {"loaded", "aborted"}


def _loaded(directory: Path, profile: BrokerProfile) -> str:
    with discover([directory]) as evidence:
        [load] = load_partitions(evidence.log_directories, LoadOptions(profile, fast=CompiledLoad()), TopicNames())
    return load.outcome


@pytest.mark.parametrize("fast", [None, CompiledLoad(least_bytes=0), CompiledLoad(ReadOptions(verify=False), least_bytes=0)])
def test_loads_that_are_given_up_are_those_of_the_whole_check(tmp_path: Path, fast: CompiledLoad | None) -> None:
    write(tmp_path)
    directories = discover([str(tmp_path), str(BUNDLED / "4.3.0-transactions" / "data")]).log_directories
    releases = ["1.1.1", "2.0.1", "2.1.1", "4.3.0"]

    found = given_up(directories, releases, fast=fast)

    assert found
    assert [row | {"problem": str(row["problem"])} for row in found] == [
        {name: row[name] for name in found[0] if name != "problem"} | {"problem": row["reason"]}
        for row in check_loads(directories, releases).to_pylist()
        if row["outcome"] == "aborted"
    ]


def test_a_torn_end_is_met_after_an_unclean_stop_alone_or_never(tmp_path: Path) -> None:
    write(tmp_path)
    path = tmp_path / "__consumer_offsets-7" / "00000000000000000000.log"
    path.write_bytes(path.read_bytes()[:-5])
    directories = discover([str(tmp_path)]).log_directories

    found = given_up(directories, ["2.0.1", "4.3.0"], fast=CompiledLoad(least_bytes=0))

    checked = check_loads(directories, ["2.0.1", "4.3.0"]).to_pylist()
    assert [(row["release"], row["stop"]) for row in found] == [
        (row["release"], row["stop"]) for row in checked if row["outcome"] == "aborted"
    ]


def test_releases_that_load_alike_are_one_line(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        log.append([(encode_key(3, {"group": "carts"}), encode_value(3, 0, {"group_epoch": 1}))])

    with exhume.open(tmp_path) as topic:
        lines = load_matrix(topic.load_check(["3.3.2", "3.4.0", "3.4.1", "3.9.1-classic", "4.3.0"])).to_pylist()

    assert [(line["release"], line["stop"], line["loaded"]) for line in lines] == [
        ("3.3.2 to 3.4.0", "both", "0 of 1"),
        ("3.4.1 to 3.9.1-classic", "both", "1 of 1"),
        ("4.3.0", "both", "1 of 1"),
    ]
