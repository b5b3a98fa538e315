"""Evidence in a bucket: the same rows and findings as on a disk, no more fetched than is needed, and errors that say what to do."""

from __future__ import annotations

import io
import pickle
import re
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest
from boto3.s3.transfer import TransferConfig

import exhume
from exhume.cli.app import invoke
from exhume.cli.demo import DEMO_LOG
from exhume.codecs import remote_volume
from exhume.codecs.file_systems import OPTIONS, file_system, refused
from exhume.codecs.log_directory import discover
from exhume.codecs.object_versions import is_content_of
from exhume.codecs.remote_volume import RemoteVolume
from exhume.codecs.uris import Uri, parse_place
from exhume.findings import Findings
from exhume.fixtures.log_writer import PartitionWriter, offset_commit
from exhume.topic import OffsetsTopic
from tests.s3_server import Asked, S3Server

TIME_MS = 1_700_000_000_000


@pytest.fixture
def prefix() -> str:
    """A place in the bucket that no other test knows."""
    return f"copies/{uuid4().hex}"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A data directory with two partitions of four segments each."""
    data = tmp_path / "local" / "data"
    for number in (3, 7):
        with PartitionWriter(data, number) as partition:
            for segment in range(4):
                if segment:
                    partition.roll()
                for batch in range(30):
                    commits = [offset_commit("g", "t", n, 100 * segment + batch, commit_timestamp_ms=TIME_MS) for n in range(20)]
                    partition.append(commits, timestamp_ms=TIME_MS + batch)
    return data


def remote(uri: str, s3: S3Server) -> Uri:
    parsed = parse_place(uri, s3.options)
    assert isinstance(parsed, Uri)
    return parsed


def rows(topic: OffsetsTopic) -> dict[str, list[dict[str, object]]]:
    """What a topic says, with paths cut to what lies below the data directory."""

    def without_place(table: pa.Table) -> list[dict[str, object]]:
        found: list[dict[str, object]] = table.to_pylist()
        for row in found:
            if row.get("path"):
                row["path"] = re.split(r"[/!](?:data|demo_log)", str(row["path"]))[-1]
        return found

    state = topic.state(release="4.3")
    return {
        "records": without_place(topic.records().read_all()),
        "commits": without_place(topic.offset_commits().read_all()),
        "batches": without_place(topic.batches().read_all()),
        "segments": without_place(topic.segments()),
        "offsets": without_place(state.offsets),
        "loads": without_place(state.loads),
    }


def sentences(findings: Findings) -> list[tuple[str, str | None, int | None, str]]:
    return sorted(
        ((item.code, item.replica, item.byte_position, re.split(r"[/!](?:data|demo_log)", item.sentence)[-1]) for item in findings),
        key=str,
    )


@pytest.mark.parametrize("source", ["written", "demo"])
def test_a_bucket_reads_as_a_directory_does(log: Path, s3: S3Server, prefix: str, source: str) -> None:
    directory = log if source == "written" else DEMO_LOG
    uri = s3.upload(directory, f"{prefix}/{directory.name}")
    with exhume.open(directory) as here, exhume.open(uri, filesystem_options=s3.options) as there:
        assert rows(there) == rows(here)
        assert sentences(there.findings) == sentences(here.findings)


def test_damage_in_a_bucket_is_the_same_damage(log: Path, s3: S3Server, prefix: str) -> None:
    [first, second, third, _] = sorted((log / "__consumer_offsets-3").glob("*.log"))
    content = bytearray(first.read_bytes())
    content[3000:3100] = b"\xff" * 100
    first.write_bytes(content)
    second.write_bytes(second.read_bytes()[:-50])
    third.unlink()
    (log / "__consumer_offsets-7" / "leader-epoch-checkpoint").write_bytes(b"nonsense")
    uri = s3.upload(log, f"{prefix}/data")
    with exhume.open(log) as here, exhume.open(uri, filesystem_options=s3.options) as there:
        assert rows(there) == rows(here)
        assert sentences(there.findings) == sentences(here.findings)
        assert there.findings.has_damage


@pytest.mark.one_of(3)
@pytest.mark.parametrize("form", ["prefix above", "partition", "segment", "segments", "bucket", "query", "s3a", "environment"])
def test_every_form_of_a_place(log: Path, s3: S3Server, prefix: str, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = s3.upload(log, f"{prefix}/data")
    partition = f"{uri}/__consumer_offsets-3"
    segments = [f"{partition}/{path.name}" for path in sorted((log / "__consumer_offsets-3").glob("*.log"))]
    if form == "bucket":
        s3._client.create_bucket(Bucket=f"b{prefix[-20:]}")
        for path in log.rglob("*.log"):
            s3.put(str(path.relative_to(log)), path.read_bytes(), f"b{prefix[-20:]}")
    places: dict[str, tuple[str | list[str], int]] = {
        "prefix above": (f"s3://evidence/{prefix}/", 2),
        "partition": (partition, 1),
        "segment": ([segments[1]], 1),
        "segments": (segments, 1),
        "bucket": (f"s3://b{prefix[-20:]}", 2),
        "query": (uri + s3.query, 2),
        "s3a": (uri.replace("s3://", "s3a://"), 2),
        "environment": (uri, 2),
    }
    place, partition_count = places[form]
    options = None if form in ("query", "environment") else s3.options
    if form == "environment":
        for name, value in (("AWS_ENDPOINT_URL", s3.endpoint), ("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b")):
            monkeypatch.setenv(name, value)
    with exhume.open(place, filesystem_options=options) as topic:
        records = topic.records().read_all()

    assert len(set(records["offsets_partition"].to_pylist())) == partition_count
    assert records.num_rows == 600 * (1 if form == "segment" else 4 * partition_count)
    assert not any("access_key" in path for path in records["path"].to_pylist())


@pytest.mark.one_of(3)
@pytest.mark.parametrize("kind", ["tar", "tar.gz", "zip"])
def test_archives_in_a_bucket(log: Path, s3: S3Server, prefix: str, kind: str) -> None:
    packed = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(packed, "w") as archive:
            for path in log.rglob("*.log"):
                archive.write(path, f"data/{path.relative_to(log)}")
    else:
        with tarfile.open(fileobj=packed, mode="w:gz" if kind == "tar.gz" else "w") as archive:
            archive.add(log, "data")
    s3.put(f"{prefix}/copy.{kind}", packed.getvalue())
    with (
        exhume.open(log) as here,
        exhume.open(f"s3://evidence/{prefix}/copy.{kind}", filesystem_options=s3.options) as there,
    ):
        assert rows(there)["records"] == rows(here)["records"]
        assert there.records().read_all()["path"][0].as_py().startswith(f"s3://evidence/{prefix}/copy.{kind}!data/")
        again = pickle.loads(pickle.dumps(there._logs.evidence))

    assert [partition.path for partition in again.partitions] == [partition.path for partition in there._logs.evidence.partitions]
    assert len(again.partitions[0].segments[0].open()) == again.partitions[0].segments[0].size_bytes


def test_opening_lists_and_fetches_no_segment(log: Path, s3: S3Server, prefix: str) -> None:
    uri = s3.upload(log, f"{prefix}/data")
    s3.asked.clear()
    with exhume.open(uri, filesystem_options=s3.options):
        listings = [asked for asked in s3.asked if "list-type" in asked.query and "max-keys=1&" not in asked.query]

        # The data directory and its two partitions.
        assert len(listings) == 3
        assert s3.ranges(".log") == []


def test_names_of_topics_are_asked_for_once_and_together(log: Path, s3: S3Server, prefix: str) -> None:
    for number in range(30):
        directory = log / f"topic{number}-0"
        directory.mkdir()
        if number:
            (directory / "partition.metadata").write_text(f"version: 0\ntopic_id: {'A' * 20}{number:02}\n")
    (log / "topic0-0" / "00000000000000000000.log").touch()
    uri = s3.upload(log, f"{prefix}/data")
    s3.asked.clear()
    with exhume.open(log) as here, exhume.open(uri, filesystem_options=s3.options) as there:
        [directory_here], [directory_there] = here._logs.evidence.log_directories, there._logs.evidence.log_directories
        assert directory_there.topic_ids == directory_here.topic_ids
        assert len(directory_there.topic_ids) == 29
    asked = [each for each in s3.asked if each.path.endswith("partition.metadata")]
    # A look and a fetch for each that is there.
    assert len(asked) <= 2 * 29 + 5


def test_a_segment_is_fetched_once_and_in_ranges(log: Path, s3: S3Server, prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_volume, "_RANGE_BYTES", 10_000)
    monkeypatch.setattr(remote_volume, "_SMALL_BYTES", 20_000)
    uri = s3.upload(log, f"{prefix}/data")
    segment = log / "__consumer_offsets-3" / "00000000000000000000.log"
    size_bytes = segment.stat().st_size
    assert size_bytes > 20_000
    with exhume.open(uri, filesystem_options=s3.options) as topic:
        s3.asked.clear()
        topic.records().read_all()
        topic.batches().read_all()

    ranges = sorted(s3.ranges(f"{prefix}/data/__consumer_offsets-3/{segment.name}"))
    assert ranges == [(start, min(start + 10_000, size_bytes) - 1) for start in range(0, size_bytes, 10_000)]


def test_nothing_but_what_is_asked_for_is_fetched(log: Path, s3: S3Server, prefix: str) -> None:
    volume = RemoteVolume(remote(s3.upload(log, f"{prefix}/data"), s3))
    path = "__consumer_offsets-3/00000000000000000000.log"
    content = (log / path).read_bytes()

    assert volume.read(path, 100, 50) == content[100:150]
    assert volume.read(path, len(content) - 10, 50) == content[-10:]
    assert volume.read(path, len(content) + 5, 50) == b""
    assert s3.ranges(path.rpartition("/")[2]) == [(100, 149), (len(content) - 10, len(content) - 1)]
    assert volume.fetched_bytes == 60


def test_what_is_kept_stays_within_its_bounds(log: Path, s3: S3Server, prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_volume, "_KEPT_IN_MEMORY_BYTES", 60_000)
    volume = RemoteVolume(remote(s3.upload(log, f"{prefix}/data"), s3))
    paths = [f"__consumer_offsets-3/{path.name}" for path in sorted((log / "__consumer_offsets-3").glob("*.log"))]
    buffers = [volume.open(path) for path in paths]

    assert volume._small._bytes <= 60_000
    assert [bytes(buffer) for buffer in buffers] == [(log / path).read_bytes() for path in paths]
    before = volume.fetched_bytes
    volume.open(paths[-1])
    assert volume.fetched_bytes == before
    volume.open(paths[0])
    assert volume.fetched_bytes > before


def test_a_volume_travels_without_what_it_fetched(log: Path, s3: S3Server, prefix: str) -> None:
    evidence = discover([s3.upload(log, f"{prefix}/data")], filesystem_options=s3.options)
    [segment, *_] = evidence.partitions[0].segments
    content = bytes(segment.open())

    travelled = pickle.loads(pickle.dumps(segment))

    assert travelled == segment
    assert travelled.path == segment.path
    assert travelled.volume.fetched_bytes == 0
    assert bytes(travelled.open()) == content


def test_local_evidence_travels_too(log: Path) -> None:
    evidence = discover([str(log)])

    travelled = pickle.loads(pickle.dumps(evidence))

    assert travelled.log_directories == evidence.log_directories
    assert bytes(travelled.partitions[0].segments[0].open()) == bytes(evidence.partitions[0].segments[0].open())


def test_keys_with_odd_characters(log: Path, s3: S3Server, prefix: str) -> None:
    s3.upload(log, f"{prefix}/dt=2026-01-01/50% {{a}}?#ü/data")
    written = f"s3://evidence/{prefix}/dt=2026-01-01/50%25 {{a}}%3F#ü/data"
    with exhume.open(written, filesystem_options=s3.options) as topic:
        paths = set(topic.records().read_all()["path"].to_pylist())

        assert all(path.startswith(f"{written}/__consumer_offsets-") for path in paths)
        with exhume.open(min(paths), filesystem_options=s3.options) as again:
            assert again.records().read_all().num_rows == 600


def error_of(place: str, options: dict[str, str] | None = None) -> exhume.EvidenceError:
    with pytest.raises(exhume.EvidenceError) as raised, exhume.open(place, filesystem_options=options) as topic:
        topic.records().read_all()
    assert raised.value.remedy
    assert raised.value.path is not None
    assert raised.value.path.startswith(place.partition("?")[0])
    assert "\n" not in str(raised.value)
    return raised.value


def test_what_is_not_there(s3: S3Server) -> None:
    missing = error_of("s3://evidence/nowhere", s3.options)
    assert missing.message == "cannot be read: nothing exists at this path"
    assert "prefix" in (missing.remedy or "")
    assert "nothing exists at this path" in error_of("s3://no-such-bucket/data", s3.options).message
    assert "nothing exists at this path" in error_of("s3://evidence/nowhere/00000000000000000000.log", s3.options).message


def test_a_bucket_with_nothing_of_the_topic(s3: S3Server, prefix: str) -> None:
    s3.put(f"{prefix}/readme.txt/x", b"hello")
    assert "no partition of __consumer_offsets" in error_of(f"s3://evidence/{prefix}", s3.options).message


def test_a_server_that_nobody_answers_for(s3: S3Server) -> None:
    error = error_of("s3://evidence/data", s3.options | {"endpoint_override": "http://127.0.0.1:9", "connect_timeout": "1"})
    assert error.message.startswith("cannot be read: the connection failed")
    assert "endpoint" in (error.remedy or "")


def test_no_permission(log: Path, s3: S3Server, prefix: str) -> None:
    uri = s3.upload(log, f"{prefix}/data")
    s3.is_closed = True
    error = error_of(uri, s3.options)
    assert error.message.startswith("cannot be read: permission denied")
    assert "credentials" in (error.remedy or "")


def test_a_connection_that_breaks_midway(log: Path, s3: S3Server, prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_volume, "_RANGE_BYTES", 10_000)
    monkeypatch.setattr(remote_volume, "_SMALL_BYTES", 20_000)
    uri = s3.upload(log, f"{prefix}/data")
    s3.broken_from_byte = 15_000
    error = error_of(uri, s3.options)

    assert error.path == f"{uri}/__consumer_offsets-3/00000000000000000000.log"
    assert error.byte_position == 20_000
    assert error.message.startswith("cannot be read")


def test_an_object_that_shrank_since_it_was_listed(log: Path, s3: S3Server, prefix: str) -> None:
    uri = s3.upload(log, f"{prefix}/data")
    with exhume.open(uri, filesystem_options=s3.options) as topic:
        s3.put(f"{prefix}/data/__consumer_offsets-3/00000000000000000000.log", b"short")
        with pytest.raises(exhume.EvidenceError, match="it changed meanwhile") as raised:
            topic.records().read_all()
    assert raised.value.byte_position == 5


def _short(_: Asked, content: bytes) -> bytes:
    return content[:-100]


def _shifted(_: Asked, content: bytes) -> bytes:
    return content[7:] + content[:7]


def _foreign(_: Asked, content: bytes) -> bytes:
    return b"x" * len(content)


@pytest.mark.parametrize("fault", [_short, _shifted, _foreign])
def test_bytes_that_are_not_those_of_the_object_are_fetched_again(
    log: Path, s3: S3Server, prefix: str, monkeypatch: pytest.MonkeyPatch, fault: Callable[[Asked, bytes], bytes]
) -> None:
    monkeypatch.setattr(remote_volume, "_RANGE_BYTES", 10_000)
    monkeypatch.setattr(remote_volume, "_SMALL_BYTES", 20_000)
    uri = s3.upload(log, f"{prefix}/data")
    broken: set[tuple[str, tuple[int, int] | None]] = set()

    def once(asked: Asked, content: bytes) -> bytes:
        if asked.path.endswith(".log") and (asked.path, asked.range_bytes) not in broken:
            broken.add((asked.path, asked.range_bytes))
            return fault(asked, content)
        return content

    s3.fault = once
    with exhume.open(log) as here, exhume.open(uri, filesystem_options=s3.options) as there:
        assert rows(there) == rows(here)
        assert not there.findings.has_damage
    assert broken


@pytest.mark.parametrize("fault", [_short, _shifted, _foreign])
def test_a_store_that_sends_other_bytes_is_no_damage_of_the_log(
    log: Path, s3: S3Server, prefix: str, monkeypatch: pytest.MonkeyPatch, fault: Callable[[Asked, bytes], bytes]
) -> None:
    monkeypatch.setattr(remote_volume, "_RANGE_BYTES", 10_000)
    monkeypatch.setattr(remote_volume, "_SMALL_BYTES", 20_000)
    uri = s3.upload(log, f"{prefix}/data")
    # The side files are right, so that tags are known to be digests.
    s3.fault = lambda asked, content: fault(asked, content) if asked.path.endswith(".log") else content

    error = error_of(uri, s3.options)

    assert error.path == f"{uri}/__consumer_offsets-3/00000000000000000000.log"
    assert re.search(r"(bytes|than) \d+ to \d+.*, twice", error.message)


def test_an_object_that_another_one_replaces_midway(log: Path, s3: S3Server, prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_volume, "_RANGE_BYTES", 10_000)
    monkeypatch.setattr(remote_volume, "_RANGES_AT_A_TIME", 1)
    monkeypatch.setattr(remote_volume, "_SMALL_BYTES", 20_000)
    uri = s3.upload(log, f"{prefix}/data")
    segment = "__consumer_offsets-3/00000000000000000000.log"
    content = (log / segment).read_bytes()

    def replace(asked: Asked, answer: bytes) -> bytes:
        if asked.path.endswith(segment) and asked.range_bytes == (10_000, 19_999):
            s3.put(f"{prefix}/data/{segment}", content[:-1] + b"x")
        return answer

    s3.fault = replace
    error = error_of(uri, s3.options)

    assert error.path == f"{uri}/{segment}"
    assert re.match(r"its ETag is [0-9a-f]{32} and was [0-9a-f]{32} when it was first read", error.message)


def test_an_object_that_changes_between_two_passes(log: Path, s3: S3Server, prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_volume, "_KEPT_IN_MEMORY_BYTES", 0)
    volume = RemoteVolume(remote(s3.upload(log, f"{prefix}/data"), s3))
    path = "__consumer_offsets-3/00000000000000000000.log"
    content = bytes(volume.open(path))
    travelled = pickle.loads(pickle.dumps(volume))
    s3.put(f"{prefix}/data/{path}", content[:-1] + b"x")

    for each in (volume, travelled):
        for ask in (each.open, partial(each.open_window, start=0, end=100), partial(each.read, start=5, size_bytes=5)):
            with pytest.raises(exhume.EvidenceError, match="it changed meanwhile"):
                ask(path)


def test_a_store_whose_tags_are_no_digests_is_read(log: Path, s3: S3Server, prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as one that encrypts with keys of the user."""
    monkeypatch.setattr(remote_volume, "tag_of", lambda _: "0" * 32)
    with exhume.open(log) as here, exhume.open(s3.upload(log, f"{prefix}/data"), filesystem_options=s3.options) as there:
        assert rows(there) == rows(here)


def test_the_tag_of_an_upload_in_parts_is_a_digest(s3: S3Server, prefix: str) -> None:
    content = bytes(range(256)) * (12 << 12)
    s3._client.upload_fileobj(io.BytesIO(content), "evidence", f"{prefix}/parts", Config=TransferConfig(multipart_chunksize=5 << 20))
    head = s3._client.head_object(Bucket="evidence", Key=f"{prefix}/parts")
    tag = head["ETag"].strip('"')

    assert tag.endswith("-3")
    assert is_content_of(tag, content) is True
    # The size of the parts is a guess, so another tag proves nothing.
    assert is_content_of(tag, content[:-1] + b"x") is None
    assert is_content_of("abc", content) is None
    assert is_content_of(None, content) is None


def test_no_room_for_what_is_fetched(log: Path, s3: S3Server, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_volume, "_SMALL_BYTES", 20_000)
    uri = s3.upload(log, f"{prefix}/data")
    with (
        exhume.open(uri, filesystem_options=s3.options, temp_dir=tmp_path / "missing") as topic,
        pytest.raises(exhume.RequestError, match="no temporary file can be made") as raised,
    ):
        topic.records().read_all()
    assert "--temp-dir" in (raised.value.remedy or "")


def test_hadoop_and_google_say_what_they_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither store can be started here: only that they are reached for, and what comes of it."""
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.delenv("HADOOP_HOME", raising=False)
    hadoop = error_of("hdfs://127.0.0.1:9/logs")
    assert "the Hadoop client is missing" in hadoop.message
    assert "HADOOP_HOME" in (hadoop.remedy or "")
    google = error_of(
        "gs://evidence/logs", {"endpoint_override": "127.0.0.1:9", "scheme": "http", "anonymous": "true", "retry_time_limit": "1"}
    )
    assert "the connection failed" in google.message


@pytest.mark.parametrize(
    ("place", "options", "said"),
    [
        ("ftp://host/data", None, "Known are s3://"),
        ("s3:///data", None, "needs a bucket"),
        ("https:///data", None, "needs a host"),
        ("az://evidence/data", None, "needs a storage account"),
        ("az://evidence/data?colour=red", None, "has no option 'colour'"),
        ("file://elsewhere/data", None, "files of this machine"),
        ("s3://b/data?colour=red", None, "has no option 'colour'"),
        ("s3://b/data", {"anonymous": "perhaps"}, "cannot be 'perhaps'"),
    ],
)
def test_requests_that_cannot_be_met(place: str, options: dict[str, str] | None, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT", raising=False)
    with pytest.raises(exhume.RequestError, match=said):
        exhume.open(place, filesystem_options=options)


@pytest.mark.parametrize("place", ["abfss://evidence@store.dfs.core.windows.net/logs", "az://evidence/logs?account_name=store"])
def test_a_container_of_azure_has_its_account(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = parse_place(place)

    assert isinstance(uri, Uri)
    assert (str(uri), uri.host, uri.options) == ("az://evidence/logs", "evidence", (("account_name", "store"),))
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", "sig=x")
    assert file_system(uri).type_name == "abfs"


def test_errors_of_azure_are_explained() -> None:
    text = "ListBlobs failed for prefix='x'. Azure Error: [AuthorizationFailure] 403 Server failed to authenticate the request."
    assert "permission denied" in refused("az://evidence/x", OSError(text)).message
    text = "GetFileInfo failed. Azure Error: [ContainerNotFound] 404 The specified container does not exist."
    assert "the bucket does not exist" in refused("az://evidence/x", OSError(text)).message


def test_file_uris_are_paths(log: Path) -> None:
    with exhume.open(f"file://{log}") as topic, exhume.open(log) as plain:
        assert topic.records().read_all() == plain.records().read_all()


def test_a_uri_that_was_made_a_path_says_so() -> None:
    with pytest.raises(exhume.EvidenceError, match="both slashes"):
        exhume.open(Path("s3://evidence/data"))


def test_secrets_are_never_shown() -> None:
    uri = parse_place("s3://KEY:SECRET@b/data?secret_key=HIDDEN", {"session_token": "TOKEN"})
    for text in (str(uri), repr(uri)):
        assert not any(secret in text for secret in ("KEY", "SECRET", "HIDDEN", "TOKEN"))


def test_a_long_error_of_a_client_is_one_line() -> None:
    text = str(refused("hdfs://namenode/x", OSError("Unable to load libjvm: " + "dlopen(/usr/lib/jvm/libjvm.so) failed " * 200)))

    assert text.startswith("hdfs://namenode/x: cannot be read: the Hadoop client is missing (Unable to load libjvm: dlopen")
    assert len(text) < 400
    assert "…). Install Java and Hadoop" in text


@pytest.mark.one_of(4)
@pytest.mark.parametrize(
    "command",
    [
        ["inspect"],
        ["dump", "--group", "g"],
        ["state", "--release", "4.3"],
        ["load-check"],
        ["history", "--group", "g"],
        ["expiry"],
        ["why", "--group", "g"],
        ["diff", "--from-offset", "100"],
    ],
    ids=lambda command: command[0],
)
def test_every_command_takes_uris(command: list[str], log: Path, s3: S3Server, prefix: str, tmp_path: Path) -> None:
    shutil.rmtree(log / "__consumer_offsets-7")
    for segment in sorted((log / "__consumer_offsets-3").iterdir()):
        if not segment.name.startswith(f"{0:020}"):
            segment.unlink()
    uri = s3.upload(log, f"{prefix}/data")
    name, *options = command
    told: dict[str, str] = {}
    for place in (str(log), uri + s3.query):
        answer = tmp_path / f"{len(told)}.json"
        moment = ["--now", "2026-01-01"] if name in ("expiry", "why") else []
        assert invoke([name, place, *options, *moment, "--output", "json", "--output-file", str(answer)]) in (0, 1)
        # Digests are those of local files alone.
        told[place] = re.sub(r'"evidence":(null|\[[^]]*\])', "", answer.read_text().replace(str(log), uri))

    assert told[str(log)] == told[uri + s3.query]
    assert len(told[uri + s3.query]) > 100


def test_the_page_about_uris_names_every_option() -> None:
    page = (Path(__file__).parents[2] / "docs" / "uris.md").read_text(encoding="utf-8")
    for scheme, options in OPTIONS.items():
        assert f"`{scheme}://" in page
        for option in options:
            assert f"`{option}`" in page
