"""Finding log directories in whatever somebody copied, and telling what of them is the log."""

from __future__ import annotations

import hashlib
import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from exhume.codecs import places
from exhume.codecs.checkpoints import LeaderEpoch, MetaProperties
from exhume.codecs.log_directory import Evidence, PartitionDirectory, discover
from exhume.errors import EvidenceError, RequestError

#: One batch of format 2 with the offsets 10 and 11. Its checksum does not cover the base offset.
BATCH = bytes.fromhex(
    "000000000000000a000000430000000502dd28df0c00000000000100000174876e800000000174876e8005"
    "ffffffffffffffffffffffffffff0000000210000000026102310010000a020262023200"
)
SNAPSHOT = bytes.fromhex("000148674bc700000000")
TOPIC_ID = "izAhskxkS8-h5AKuT9J0Iw"
OTHER_ID = "MMj6-rLMQuaHm78MMdPTcw"
META = b"#\n#Sat Nov 21 03:40:46 UTC 2026\nbroker.id=1\nversion=0\ncluster.id=YadDlpUiQ5-kYA1VWEjyhg\n"


def batch(base_offset: int) -> bytes:
    return base_offset.to_bytes(8, "big") + BATCH[8:]


def log(base_offset: int) -> str:
    return f"{base_offset:020d}.log"


def write(root: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return root


def whole(root: Path, broker_id: int = 1) -> Path:
    """A log directory as a broker leaves it."""
    return write(
        root,
        {
            "meta.properties": META.replace(b"broker.id=1", b"broker.id=%d" % broker_id),
            "replication-offset-checkpoint": b"0\n2\n__consumer_offsets 0 12\n__consumer_offsets 1 2\n",
            "recovery-point-offset-checkpoint": b"0\n1\n__consumer_offsets 0 10\n",
            "log-start-offset-checkpoint": b"0\n1\n__consumer_offsets 0 1\n",
            "cleaner-offset-checkpoint": b"0\n1\n__consumer_offsets 0 9\n",
            ".kafka_cleanshutdown": b"",
            f"__consumer_offsets-0/{log(0)}": batch(0),
            "__consumer_offsets-0/00000000000000000000.index": b"",
            f"__consumer_offsets-0/{log(10)}": batch(10),
            "__consumer_offsets-0/00000000000000000010.index": b"",
            "__consumer_offsets-0/00000000000000000010.timeindex": b"",
            "__consumer_offsets-0/00000000000000000010.snapshot": SNAPSHOT,
            "__consumer_offsets-0/leader-epoch-checkpoint": b"0\n1\n5 0\n",
            "__consumer_offsets-0/partition.metadata": f"version: 0\ntopic_id: {TOPIC_ID}".encode(),
            f"__consumer_offsets-1/{log(0)}": batch(0),
            "__consumer_offsets-1/00000000000000000000.index": b"",
            f"orders.eu-west-3/{log(0)}": b"someone else's",
            "orders.eu-west-3/partition.metadata": f"version: 0\ntopic_id: {OTHER_ID}".encode(),
        },
    )


def codes(evidence: Evidence) -> list[str]:
    return [finding.code for finding in evidence.findings]


def read(partition: PartitionDirectory) -> list[str]:
    """The names of the files that make up the log."""
    return [segment.entry.name for segment in partition.segments if segment.is_read]


def only(evidence: Evidence) -> PartitionDirectory:
    [partition] = evidence.partitions
    return partition


# Whole log directories


def test_a_whole_log_directory_gives_its_offsets_partitions_in_order(tmp_path: Path) -> None:
    for number in (10, 2):
        write(whole(tmp_path), {f"__consumer_offsets-{number}/{log(0)}": b""})

    [directory] = discover([tmp_path]).log_directories

    assert [partition.offsets_partition for partition in directory.partitions] == [0, 1, 2, 10]
    assert (directory.path, directory.replica, directory.is_whole, directory.clean_shutdown) == (str(tmp_path), "1", True, True)
    assert directory.meta == MetaProperties(version=0, broker_id=1, cluster_id="YadDlpUiQ5-kYA1VWEjyhg", directory_id=None)


def test_a_healthy_log_directory_gives_no_findings(tmp_path: Path) -> None:
    assert codes(discover([whole(tmp_path)])) == []


def test_a_partition_knows_what_the_checkpoints_say_about_it(tmp_path: Path) -> None:
    first, second = discover([whole(tmp_path)]).partitions

    assert (first.high_watermark, first.recovery_point, first.log_start_offset, first.cleaner_offset) == (12, 10, 1, 9)
    assert (second.high_watermark, second.recovery_point, second.log_start_offset, second.cleaner_offset) == (2, None, None, None)


def test_a_partition_knows_its_epochs_its_topic_id_and_its_snapshots(tmp_path: Path) -> None:
    partition = discover([whole(tmp_path)]).partitions[0]

    assert partition.leader_epochs == [LeaderEpoch(5, 0)]
    assert partition.topic_id == TOPIC_ID
    assert [(snapshot.record_offset, snapshot.origin) for snapshot in partition.snapshots] == [(10, "log")]
    assert [file.entry.name for file in partition.side_files] == ["leader-epoch-checkpoint", "partition.metadata"]


def test_segments_come_in_offset_order_with_the_indexes_beside_them(tmp_path: Path) -> None:
    os.utime(whole(tmp_path) / "__consumer_offsets-0" / log(10), ns=(0, 1_600_000_000_123_000_000))

    first, second = discover([tmp_path]).partitions[0].segments

    assert [(s.base_offset, s.origin, s.is_read, s.size_bytes) for s in (first, second)] == [(0, "log", True, 79), (10, "log", True, 79)]
    assert first.timeindex is None
    assert second.timeindex is not None
    assert second.timeindex.path == f"{tmp_path}/__consumer_offsets-0/00000000000000000010.timeindex"
    assert second.mtime_ms == 1_600_000_000_123
    with second.open() as buffer:
        assert bytes(buffer) == batch(10)


def test_topic_ids_are_learnt_from_every_topic(tmp_path: Path) -> None:
    [directory] = discover([whole(tmp_path)]).log_directories

    assert directory.topic_ids == {OTHER_ID: "orders.eu-west", TOPIC_ID: "__consumer_offsets"}


def test_the_name_of_a_live_topic_wins_over_that_of_a_deleted_one(tmp_path: Path) -> None:
    metadata = f"version: 0\ntopic_id: {OTHER_ID}".encode()
    write(
        whole(tmp_path), {f"aaa-0.{'0' * 32}-delete/partition.metadata": metadata, f"zzz-0.{'0' * 32}-stray/partition.metadata": metadata}
    )

    assert discover([tmp_path]).log_directories[0].topic_ids[OTHER_ID] == "orders.eu-west"


def test_a_name_that_was_cut_names_no_topic(tmp_path: Path) -> None:
    topic_id = "F6kkSdSbTKSzc2iu8moV2g"
    cut = f"{'t' * 213}-0.{'0' * 32}-delete"
    write(whole(tmp_path), {f"{cut}/partition.metadata": f"version: 0\ntopic_id: {topic_id}".encode()})

    assert len(cut) == 255
    assert topic_id not in discover([tmp_path]).log_directories[0].topic_ids


def test_the_cluster_metadata_log_is_found_with_its_snapshots(tmp_path: Path) -> None:
    names = [f"{0:020d}.log", f"{200:020d}-{1:010d}.checkpoint", f"{200:020d}.log", f"{200:020d}.index", "quorum-state"]
    write(whole(tmp_path), {f"__cluster_metadata-0/{name}": batch(0) for name in names})

    [directory] = discover([tmp_path]).log_directories

    assert [segment.entry.name for segment in directory.cluster_metadata] == names[:3]
    assert [segment.base_offset for segment in directory.cluster_metadata] == [0, 200, 200]


def test_a_whole_directory_without_the_mark_was_not_stopped_cleanly(tmp_path: Path) -> None:
    (whole(tmp_path) / ".kafka_cleanshutdown").unlink()

    assert discover([tmp_path]).log_directories[0].clean_shutdown is False


def test_where_only_partitions_were_copied_nobody_knows_how_the_broker_stopped(tmp_path: Path) -> None:
    [directory] = discover([write(tmp_path / "copy", {f"__consumer_offsets-0/{log(0)}": b""})]).log_directories

    assert (directory.replica, directory.is_whole, directory.clean_shutdown) == ("copy", False, None)


@pytest.mark.parametrize("content", [b'{"version":0,"brokerEpoch":88}', b"rubbish"], ids=["3.7", "broken"])
def test_the_mark_of_a_clean_shutdown_counts_whatever_it_holds(tmp_path: Path, content: bytes) -> None:
    (whole(tmp_path) / ".kafka_cleanshutdown").write_bytes(content)

    assert discover([tmp_path]).log_directories[0].clean_shutdown is True


def test_a_copy_of_a_live_directory_is_read_with_its_preallocated_indexes(tmp_path: Path) -> None:
    (whole(tmp_path) / ".kafka_cleanshutdown").unlink()
    write(tmp_path, {"__consumer_offsets-0/00000000000000000010.index": bytes(10485760)})

    evidence = discover([tmp_path])

    assert read(evidence.partitions[0]) == [log(0), log(10)]
    assert codes(evidence) == []


# Names of directories


def test_directory_names_are_read_from_the_right(tmp_path: Path) -> None:
    token = "0123456789abcdef" * 2
    names = ["__consumer_offsets-49", f"__consumer_offsets-7.{token}-delete", f"__consumer_offsets-7.{token}-future"]
    write(whole(tmp_path), {f"{name}/{log(0)}": b"" for name in [*names, f"__consumer_offsets-8.{token}-stray", "my__consumer_offsets-5"]})

    found = [(partition.offsets_partition, partition.suffix) for partition in discover([tmp_path]).partitions]

    assert found == [(0, None), (1, None), (7, "delete"), (7, "future"), (8, "stray"), (49, None)]


@pytest.mark.parametrize(
    "name", ["junk", "__consumer_offsets", "__consumer_offsets-x", "__consumer_offsets-0.x-gone", "-0", "t-99999999999"]
)
def test_a_directory_of_another_name_is_no_partition(tmp_path: Path, name: str) -> None:
    write(whole(tmp_path), {f"{name}/{log(0)}": b""})

    evidence = discover([tmp_path])

    assert [(finding.code, finding.severity, finding.path, finding.replica) for finding in evidence.findings] == [
        ("not_a_partition", "info", str(tmp_path / name), "1")
    ]
    assert len(evidence.partitions) == 2


def test_the_cache_of_remote_indexes_is_no_stranger(tmp_path: Path) -> None:
    (whole(tmp_path) / "remote-log-index-cache").mkdir()

    assert codes(discover([tmp_path])) == []


def test_segments_in_the_root_of_a_log_directory_are_named(tmp_path: Path) -> None:
    assert codes(discover([write(whole(tmp_path), {log(0): b""})])) == ["loose_file"]


def test_names_that_are_no_text_make_findings_that_fit_a_table(tmp_path: Path) -> None:
    (whole(tmp_path) / os.fsdecode(b"caf\xe9")).mkdir()

    table = discover([tmp_path]).findings.to_table()

    assert table.column("path").to_pylist() == [f"{tmp_path}/caf\\xe9"]


# Leftovers


def test_the_directories_of_leftover_replicas_are_listed_and_not_read(tmp_path: Path) -> None:
    name = f"__consumer_offsets-0.{'a' * 32}-stray"
    write(whole(tmp_path), {f"{name}/{log(0)}": batch(0)})

    without = next(partition for partition in discover([tmp_path]).partitions if partition.suffix)
    asked_for = next(partition for partition in discover([tmp_path], include=frozenset({"stray"})).partitions if partition.suffix)

    assert (len(without.segments), read(without)) == (1, [])
    assert read(asked_for) == [log(0)]
    assert without.high_watermark is None


def swapped(root: Path) -> Path:
    return write(
        root / "__consumer_offsets-0",
        {
            f"{log(0)}": batch(0),
            f"{log(0)}.deleted": batch(0),
            f"{log(0)}.swap": batch(0),
            f"{log(0)}.cleaned": batch(0),
            f"{log(10)}": batch(10),
        },
    )


@pytest.mark.parametrize(
    ("include", "expected"),
    [
        (set(), [log(0), log(10)]),
        ({"swap"}, [log(0), f"{log(0)}.swap", log(10)]),
        ({"deleted", "cleaned"}, [log(0), f"{log(0)}.deleted", f"{log(0)}.cleaned", log(10)]),
    ],
    ids=["default", "swap", "deleted and cleaned"],
)
def test_leftover_files_are_read_on_request_and_always_listed(tmp_path: Path, include: set[str], expected: list[str]) -> None:
    partition = only(discover([swapped(tmp_path)], include=frozenset(include)))

    assert read(partition) == expected
    assert [segment.origin for segment in partition.segments] == ["log", "swap", "deleted", "cleaned", "log"]


def test_an_unknown_leftover_is_a_request_error_that_lists_the_known(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="cleaned, delete, deleted, future, stray, swap"):
        discover([whole(tmp_path)], include=frozenset({"tmp"}))


def test_a_swap_without_its_segment_is_read_in_its_place(tmp_path: Path) -> None:
    write(tmp_path / "__consumer_offsets-0", {f"{log(0)}.swap": batch(0), f"{log(0)}.deleted": batch(0), log(10): batch(10)})

    evidence = discover([tmp_path])

    assert read(only(evidence)) == [f"{log(0)}.swap", log(10)]
    [finding] = [finding for finding in evidence.findings if finding.code == "swap_read"]
    assert (finding.severity, finding.is_damage, finding.offsets_partition) == ("info", False, 0)


def test_a_swap_that_holds_several_segments_replaces_those_still_there(tmp_path: Path) -> None:
    merged = {f"{log(0)}.swap": batch(0) + batch(10), f"{log(0)}.deleted": batch(0), log(10): batch(10), log(12): batch(12)}
    write(tmp_path / "__consumer_offsets-0", merged)

    evidence = discover([tmp_path])

    assert read(only(evidence)) == [f"{log(0)}.swap", log(12)]
    assert "segment_replaced" in codes(evidence)


def test_a_complete_split_replaces_the_segment_that_was_split(tmp_path: Path) -> None:
    split = {log(0): batch(0) + batch(10), f"{log(0)}.swap": batch(0), f"{log(10)}.swap": batch(10)}
    write(tmp_path / "__consumer_offsets-0", split)

    assert read(only(discover([tmp_path]))) == [f"{log(0)}.swap", f"{log(10)}.swap"]


def test_an_incomplete_split_is_thrown_away(tmp_path: Path) -> None:
    split = {log(0): batch(0) + batch(10), f"{log(0)}.cleaned": batch(0), f"{log(10)}.swap": batch(10)}
    write(tmp_path / "__consumer_offsets-0", split)

    assert read(only(discover([tmp_path]))) == [log(0)]


def test_an_index_belongs_to_the_segment_of_the_same_suffix(tmp_path: Path) -> None:
    write(swapped(tmp_path), {"00000000000000000000.index.swap": b""})

    by_origin = {segment.origin: segment for segment in only(discover([tmp_path])).segments if segment.base_offset == 0}

    assert by_origin["log"].index is None
    assert by_origin["swap"].index is not None


# What is missing or broken


def test_partitions_without_checkpoints_are_named(tmp_path: Path) -> None:
    evidence = discover([write(tmp_path, {f"__consumer_offsets-0/{log(0)}": b"", "__consumer_offsets-0/00000000000000000000.index": b""})])

    assert codes(evidence) == ["no_checkpoints"]


def test_bare_logs_are_read_and_their_missing_indexes_told_once(tmp_path: Path) -> None:
    evidence = discover([write(tmp_path / "__consumer_offsets-0", {log(0): batch(0), log(10): batch(10)})])

    assert read(only(evidence)) == [log(0), log(10)]
    assert [(finding.code, finding.severity) for finding in evidence.findings] == [("missing_index", "info")]


def test_a_log_that_begins_late_without_a_checkpoint_lacks_segments(tmp_path: Path) -> None:
    assert "earlier_segments_missing" in codes(discover([write(tmp_path / "__consumer_offsets-0", {log(10): batch(10)})]))


def test_a_log_that_begins_late_as_its_checkpoint_says_lacks_nothing(tmp_path: Path) -> None:
    checkpoint = b"0\n1\n__consumer_offsets 0 10\n"
    write(tmp_path, {f"__consumer_offsets-0/{log(10)}": batch(10), "log-start-offset-checkpoint": checkpoint})

    assert "earlier_segments_missing" not in codes(discover([tmp_path]))


def test_indexes_without_their_segment_are_named(tmp_path: Path) -> None:
    write(
        whole(tmp_path),
        {"__consumer_offsets-0/00000000000000000500.index": b"", "__consumer_offsets-0/00000000000000000500.timeindex": b""},
    )

    [finding] = discover([tmp_path]).findings

    assert (finding.code, finding.offsets_partition) == ("orphan_index", 0)
    assert finding.sentence.startswith("2 index files")


def test_an_empty_partition_directory_is_listed_and_named(tmp_path: Path) -> None:
    (whole(tmp_path) / "__consumer_offsets-2").mkdir()

    evidence = discover([tmp_path])

    assert evidence.partitions[2].segments == []
    assert codes(evidence) == ["no_segments"]


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("replication-offset-checkpoint", b"0\n3\n__consumer_offsets 0 12\n", "line 2"),
        ("replication-offset-checkpoint", b"1\n1\n__consumer_offsets 0 12\n", "line 1"),
        ("__consumer_offsets-0/leader-epoch-checkpoint", b"0\n1\nfive 0\n", "line 3"),
        ("__consumer_offsets-0/partition.metadata", b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", "line 2"),
    ],
    ids=["count", "version", "epoch", "zero id"],
)
def test_a_broken_small_file_is_a_finding_and_the_rest_is_read(tmp_path: Path, name: str, content: bytes, line: str) -> None:
    evidence = discover([write(whole(tmp_path), {name: content})])

    [finding] = evidence.findings
    assert (finding.code, finding.severity, finding.path) == ("broken_side_file", "warn", str(tmp_path / name))
    assert line in finding.sentence
    assert finding.remedy
    assert read(evidence.partitions[0]) == [log(0), log(10)]


def test_broken_meta_properties_leave_the_name_of_the_directory_as_label(tmp_path: Path) -> None:
    evidence = discover([write(whole(tmp_path / "disk1"), {"meta.properties": b"version=9\n"})])

    [directory] = evidence.log_directories
    assert (directory.replica, directory.is_whole, directory.meta) == ("disk1", True, None)
    assert [(finding.code, finding.replica) for finding in evidence.findings] == [("broken_side_file", "disk1")]


def test_an_empty_checkpoint_has_no_entries_and_is_not_broken(tmp_path: Path) -> None:
    evidence = discover([write(whole(tmp_path), {"replication-offset-checkpoint": b""})])

    assert evidence.log_directories[0].high_watermarks == {}
    assert codes(evidence) == []


def test_an_unfinished_checkpoint_is_read_only_where_the_finished_one_is_missing(tmp_path: Path) -> None:
    write(whole(tmp_path), {"replication-offset-checkpoint.tmp": b"0\n1\n__consumer_offsets 0 99\n"})

    beside_the_finished = discover([tmp_path])
    (tmp_path / "replication-offset-checkpoint").unlink()
    alone = discover([tmp_path])

    assert beside_the_finished.partitions[0].high_watermark == 12
    assert alone.partitions[0].high_watermark == 99
    assert codes(beside_the_finished) == codes(alone) == ["unfinished_file"]


def test_a_segment_spelled_twice_is_read_once(tmp_path: Path) -> None:
    evidence = discover([write(whole(tmp_path), {"__consumer_offsets-0/0.log": batch(0)})])

    assert read(evidence.partitions[0]) == [log(0), log(10)]
    assert [(finding.code, finding.severity) for finding in evidence.findings] == [("duplicate_segment", "info")]


def test_of_two_segments_that_differ_the_broker_s_spelling_is_read(tmp_path: Path) -> None:
    evidence = discover([write(whole(tmp_path), {"__consumer_offsets-0/0.log": batch(1)})])

    assert read(evidence.partitions[0]) == [log(0), log(10)]
    assert [(finding.code, finding.severity, finding.path) for finding in evidence.findings] == [
        ("duplicate_segment", "warn", f"{tmp_path}/__consumer_offsets-0/0.log")
    ]


# Paths of every kind


def test_a_partition_directory_can_be_given_alone(tmp_path: Path) -> None:
    evidence = discover([whole(tmp_path / "broker") / "__consumer_offsets-0"])

    partition = only(evidence)
    assert (partition.offsets_partition, partition.replica, partition.high_watermark) == (0, "broker", None)
    assert evidence.log_directories[0].clean_shutdown is None


def test_partition_directories_of_one_log_directory_are_one_replica(tmp_path: Path) -> None:
    whole(tmp_path / "broker")

    evidence = discover([tmp_path / "broker" / "__consumer_offsets-1", tmp_path / "broker" / "__consumer_offsets-0"])

    assert [(directory.replica, len(directory.partitions)) for directory in evidence.log_directories] == [("broker", 2)]


def test_paths_relative_to_where_we_stand_know_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(whole(tmp_path / "broker") / "__consumer_offsets-0")

    by_directory = discover(["."])
    by_file = discover([log(10)])

    assert (only(by_directory).offsets_partition, only(by_directory).replica) == (0, "broker")
    assert (only(by_file).offsets_partition, read(only(by_file))) == (0, [log(10)])


def test_segment_files_given_are_the_only_ones_read(tmp_path: Path) -> None:
    directory = whole(tmp_path) / "__consumer_offsets-0"

    partition = only(discover([directory / log(10)]))

    assert (partition.offsets_partition, [segment.path for segment in partition.segments]) == (0, [str(directory / log(10))])
    assert partition.segments[0].index is not None


def test_a_leftover_given_by_itself_is_read(tmp_path: Path) -> None:
    partition = only(discover([swapped(tmp_path) / f"{log(0)}.deleted"]))

    assert [(segment.origin, segment.is_read) for segment in partition.segments] == [("deleted", True)]


def test_a_segment_of_any_name_is_known_by_its_first_batch(tmp_path: Path) -> None:
    evidence = discover([write(tmp_path, {"carved.bin": batch(77)}) / "carved.bin"])

    segment = only(evidence).segments[0]
    assert (segment.base_offset, segment.origin, segment.is_read) == (77, "log", True)
    assert only(evidence).offsets_partition is None
    assert codes(evidence) == ["unnamed_partition"]


@pytest.mark.parametrize("content", [b"", bytes(5000), batch(0)[:40], b"\x01" * 500], ids=["empty", "zeros", "cut", "rubbish"])
def test_a_file_named_like_a_segment_is_taken_for_one_even_if_damaged(tmp_path: Path, content: bytes) -> None:
    path = write(tmp_path / "__consumer_offsets-0", {log(0): content}) / log(0)

    assert read(only(discover([path]))) == [log(0)]


def test_a_partition_of_another_topic_is_read_if_it_is_given_and_named(tmp_path: Path) -> None:
    evidence = discover([write(tmp_path / "my.topic-x-3", {log(0): batch(0)})])

    partition = only(evidence)
    assert (partition.topic, partition.partition, partition.offsets_partition) == ("my.topic-x", 3, None)
    assert "not_the_offsets_topic" in codes(evidence)


def test_a_directory_of_replicas_gives_one_log_directory_each(tmp_path: Path) -> None:
    whole(tmp_path / "data-broker1", 1)
    whole(tmp_path / "data-broker2", 2)
    write(tmp_path / "notes", {"readme.txt": b"x"})

    evidence = discover([tmp_path])

    assert [(directory.replica, len(directory.partitions)) for directory in evidence.log_directories] == [("1", 2), ("2", 2)]


def test_a_replica_that_only_its_directory_names_is_not_taken_for_a_partition(tmp_path: Path) -> None:
    for number in (1, 2):
        write(tmp_path / f"broker-{number}", {f"__consumer_offsets-0/{log(0)}": b""})

    assert [directory.replica for directory in discover([tmp_path]).log_directories] == ["broker-1", "broker-2"]


def test_replicas_of_the_same_label_are_numbered(tmp_path: Path) -> None:
    paths = [whole(tmp_path / name) for name in ("before", "after", "later")]

    evidence = discover(paths)

    assert [directory.replica for directory in evidence.log_directories] == ["1", "1#2", "1#3"]
    assert evidence.partitions[2].replica == "1#2"


@pytest.mark.parametrize(
    "order",
    [
        ["data", "data"],
        ["data", "data/__consumer_offsets-0"],
        ["data/__consumer_offsets-0", "data"],
        ["data", f"data/__consumer_offsets-0/{log(0)}"],
        [f"data/__consumer_offsets-0/{log(0)}", "data"],
        ["data", "link"],
    ],
    ids=["twice", "partition behind", "partition before", "segment behind", "segment before", "by a link"],
)
def test_what_is_given_twice_is_read_once_and_said(tmp_path: Path, order: list[str]) -> None:
    whole(tmp_path / "data")
    (tmp_path / "link").symlink_to("data")

    evidence = discover([tmp_path / path for path in order])

    assert [read(partition) for partition in evidence.partitions] == [[log(0), log(10)], [log(0)]]
    assert [(finding.code, finding.severity) for finding in evidence.findings] == [("duplicate_segment", "info")]


def test_a_leftover_directory_given_beside_its_log_directory_is_read(tmp_path: Path) -> None:
    name = f"__consumer_offsets-0.{'a' * 32}-stray"
    write(whole(tmp_path), {f"{name}/{log(0)}": batch(0)})

    partitions = discover([tmp_path, tmp_path / name]).partitions

    assert [read(partition) for partition in partitions if partition.suffix] == [[log(0)]]


def test_segments_of_one_directory_may_be_given_one_by_one(tmp_path: Path) -> None:
    directory = whole(tmp_path) / "__consumer_offsets-0"

    evidence = discover([directory / log(10), directory / log(0), directory / log(10)])

    assert read(only(evidence)) == [log(0), log(10)]
    assert codes(evidence) == ["duplicate_segment"]


# Archives


@pytest.mark.parametrize("name", ["evidence.tar.gz", "evidence.zip"])
def test_an_archive_of_a_log_directory_gives_what_the_directory_gives(tmp_path: Path, name: str) -> None:
    data = whole(tmp_path / "backup" / "data")
    pack(tmp_path / name, tmp_path / "backup")

    [packed] = discover([tmp_path / name]).log_directories
    [plain] = discover([data]).log_directories

    assert (packed.replica, packed.meta, packed.topic_ids, packed.clean_shutdown) == (plain.replica, plain.meta, plain.topic_ids, True)
    assert packed.path == f"{tmp_path / name}!data"
    for one, other in zip(packed.partitions, plain.partitions, strict=True):
        assert (one.high_watermark, one.leader_epochs, read(one)) == (other.high_watermark, other.leader_epochs, read(other))
        assert [bytes(segment.open()) for segment in one.segments] == [bytes(segment.open()) for segment in other.segments]
    assert packed.partitions[0].segments[0].path == f"{tmp_path / name}!data/__consumer_offsets-0/{log(0)}"


@pytest.mark.parametrize(("name", "offsets_partition"), [("__consumer_offsets-7.tar.gz", 7), ("segments.zip", None)])
def test_an_archive_of_bare_segments_is_a_partition_named_like_the_archive(
    tmp_path: Path, name: str, offsets_partition: int | None
) -> None:
    write(tmp_path / "files", {log(0): batch(0)})
    pack(tmp_path / name, tmp_path / "files")

    partition = only(discover([tmp_path / name]))

    assert (partition.offsets_partition, read(partition)) == (offsets_partition, [log(0)])


def test_an_archive_given_twice_is_read_once(tmp_path: Path) -> None:
    whole(tmp_path / "files")
    pack(tmp_path / "a.zip", tmp_path / "files")

    evidence = discover([tmp_path / "a.zip", tmp_path / "a.zip"])

    assert (len(evidence.log_directories), codes(evidence)) == (1, ["duplicate_segment"])


def test_evidence_is_a_context_whose_buffers_survive_it(tmp_path: Path) -> None:
    whole(tmp_path / "files")
    pack(tmp_path / "a.zip", tmp_path / "files")

    with discover([tmp_path / "a.zip"], temp_dir=tmp_path) as evidence:
        buffer = evidence.partitions[0].segments[0].open()

    assert bytes(buffer) == batch(0)


def pack(path: Path, directory: Path) -> None:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            for file in sorted(directory.rglob("*")):
                archive.write(file, file.relative_to(directory))
        return
    with tarfile.open(path, "w:gz") as tar:
        tar.add(directory, ".")


# What cannot be answered


def test_a_missing_path_is_an_evidence_error(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError, match="no such file") as caught:
        discover([tmp_path / "gone"])

    assert (caught.value.path, caught.value.remedy) == (str(tmp_path / "gone"), "Check the path")


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("00000000000000000000.index", b"", "an offset index"),
        ("00000000000000000000.timeindex.deleted", b"", "a time index"),
        ("00000000000000000000.txnindex", b"", "a transaction index"),
        ("00000000000000000000.snapshot", SNAPSHOT, "a producer snapshot"),
        ("replication-offset-checkpoint", b"0\n0\n", "a checkpoint or metadata"),
        ("meta.properties", META, "a checkpoint or metadata"),
        (log(0), b"[2026-11-21] INFO started\n", "looks like a text file"),
        ("copy.log", b"0\n1\nt 0 5\n", "looks like an offset checkpoint"),
        ("copy.log", META, "looks like meta.properties"),
        (log(0), bytes.fromhex("0000000a000010680000001500002134000000210000315c") + bytes(80), r"looks like an offset index \(.index\)"),
        (log(0), bytes.fromhex("000000000000000003e8000000000000000f00000000000000100000000000000011"), "looks like a transaction index"),
        ("notes.bin", b"\xd1\x07\x99" + bytes(97), "neither its name nor its first bytes"),
        ("notes.bin", b"", "neither its name nor its first bytes"),
    ],
)
def test_a_file_that_is_no_log_is_told_what_it_is(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    with pytest.raises(EvidenceError, match=says) as caught:
        discover([write(tmp_path / "__consumer_offsets-0", {name: content}) / name])

    assert caught.value.path == str(tmp_path / "__consumer_offsets-0" / name)
    assert caught.value.remedy


def test_a_directory_without_evidence_says_what_was_looked_for(tmp_path: Path) -> None:
    write(tmp_path, {"a/b/c.txt": b"x"})

    with pytest.raises(
        EvidenceError, match=r"no partition of __consumer_offsets found: no directory named __consumer_offsets-N and no segment"
    ):
        discover([tmp_path])


def test_other_topics_and_archives_that_lie_there_are_mentioned(tmp_path: Path) -> None:
    write(tmp_path, {f"orders-0/{log(0)}": b"", "broker1.tar.gz": b""})

    with pytest.raises(EvidenceError, match=r"only other topics \(orders\).*give them by name \(.*broker1.tar.gz\)"):
        discover([tmp_path])


def test_a_broker_s_directory_without_offsets_partitions_has_no_answer(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError, match="no partition of __consumer_offsets"):
        discover([write(tmp_path, {"meta.properties": META, f"orders-0/{log(0)}": b""})])


def test_what_could_not_be_read_is_named_where_nothing_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {f"locked/__consumer_offsets-0/{log(0)}": b""})
    real = os.scandir

    def refuse(path: Path) -> object:
        if path.name == "locked":
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", refuse)

    with pytest.raises(EvidenceError, match=r"locked cannot be read: permission denied.*Run as a user"):
        discover([tmp_path])


def test_a_partition_that_cannot_be_listed_is_damage_and_the_others_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole(tmp_path)
    real = os.scandir

    def refuse(path: Path) -> object:
        if path.name == "__consumer_offsets-1":
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", refuse)
    evidence = discover([tmp_path])

    assert [len(partition.segments) for partition in evidence.partitions] == [2, 0]
    assert evidence.findings.has_damage


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / log(0))

    with pytest.raises(EvidenceError, match="neither a file nor a directory"):
        discover([tmp_path / log(0)])


def test_a_link_in_a_circle_does_not_hold_up_the_search(tmp_path: Path) -> None:
    whole(tmp_path / "copies" / "data")
    (tmp_path / "copies" / "again").symlink_to(tmp_path)

    evidence = discover([tmp_path])

    assert len(evidence.log_directories) == 1
    assert codes(evidence) == ["link_loop"]


def test_a_search_in_the_wrong_place_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "MAX_SEARCHED_DIRECTORIES", 5)
    whole(tmp_path / "a")
    for number in range(10):
        (tmp_path / f"b{number}" / "c").mkdir(parents=True)

    evidence = discover([tmp_path])

    assert [directory.replica for directory in evidence.log_directories] == ["1"]
    assert "search_ended" in codes(evidence)


# The evidence itself


def fingerprint(root: Path) -> dict[str, tuple[int, int, int, str]]:
    """Mode, size, time and content of everything below."""
    return {
        str(path.relative_to(root)): (
            (status := path.stat()).st_mode,
            status.st_size,
            status.st_mtime_ns,
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
        )
        for path in [root, *root.rglob("*")]
    }


def test_a_read_only_log_directory_is_the_same_afterwards(tmp_path: Path) -> None:
    root = whole(tmp_path / "data")
    write(root, {f"__consumer_offsets-3/{log(0)}.swap": batch(0), "__consumer_offsets-3/leader-epoch-checkpoint.tmp": b"0\n0\n"})
    for path in [*root.rglob("*"), root]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = fingerprint(root)

    with discover([root], include=frozenset({"swap", "deleted"})) as evidence:
        opened = [segment.open() for partition in evidence.partitions for segment in partition.segments]

    assert len(opened) == 4
    assert fingerprint(root) == before
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
    for path in [root, *root.rglob("*")]:
        path.chmod(0o755)


CORPUS = os.environ.get("EXHUME_CORPUS")


@pytest.mark.corpus
@pytest.mark.skipif(CORPUS is None, reason="set EXHUME_CORPUS to a directory of logs that brokers wrote")
def test_every_directory_of_the_corpus_is_found_and_none_is_damaged() -> None:
    root = Path(CORPUS or "")
    stories = [path.parent for path in sorted(root.rglob("scenario.json"))]
    counts = {"stories": 0, "partitions": 0, "segments": 0, "read": 0}
    for story in stories:
        evidence = discover([story])
        expected = {path.parent for path in story.rglob("__consumer_offsets-*/*.log*")}
        assert {Path(partition.path) for partition in evidence.partitions} == expected, story
        assert not evidence.findings.has_damage, story
        assert {finding.code for finding in evidence.findings} <= {
            "earlier_segments_missing",
            "missing_index",
            "no_checkpoints",
            "swap_read",
        }, story
        counts["stories"] += 1
        counts["partitions"] += len(evidence.partitions)
        for partition in evidence.partitions:
            assert read(partition), partition.path
            counts["segments"] += len(partition.segments)
            counts["read"] += len(read(partition))

    assert counts["stories"] == len(stories) > 0
    assert counts["segments"] == sum(1 for _ in root.rglob("__consumer_offsets-*/*.log*"))


def test_a_swap_beside_the_segment_of_its_offset_replaces_it(tmp_path: Path) -> None:
    write(tmp_path / "__consumer_offsets-0", {log(0): batch(0) + batch(1), f"{log(0)}.swap": batch(1), log(10): batch(10)})

    evidence = discover([tmp_path])

    assert read(only(evidence)) == [f"{log(0)}.swap", log(10)]
    assert {finding.code for finding in evidence.findings} >= {"swap_read", "segment_replaced"}
