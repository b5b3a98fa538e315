import os
import stat
import threading
from pathlib import Path

import pytest

from exhume.cli.destination import open_destination, refuse_inside
from exhume.errors import RequestError


@pytest.fixture
def log_directory(tmp_path: Path) -> Path:
    partition = tmp_path / "data" / "__consumer_offsets-7"
    partition.mkdir(parents=True)
    (partition / "00000000000000000000.log").write_bytes(b"evidence")
    return tmp_path / "data"


def test_a_file_appears_whole(tmp_path: Path) -> None:
    with open_destination(tmp_path / "answer") as sink:
        sink.write(b"half")
        assert not (tmp_path / "answer").exists()
        sink.write(b" and half")

    assert (tmp_path / "answer").read_bytes() == b"half and half"
    assert [path.name for path in tmp_path.iterdir()] == ["answer"]


def test_a_failure_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path) -> None:
    (tmp_path / "answer").write_bytes(b"old")
    with pytest.raises(KeyError), open_destination(tmp_path / "answer") as sink:
        sink.write({b"new": b"newer"}[b"old"])

    assert (tmp_path / "answer").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["answer"]


def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path: Path) -> None:
    (tmp_path / "answer").touch(mode=0o600)
    with open_destination(tmp_path / "answer") as sink:
        sink.write(b"secret")

    assert stat.S_IMODE((tmp_path / "answer").stat().st_mode) == 0o600


def test_a_symbolic_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with open_destination(tmp_path / "link") as sink:
        sink.write(b"x")

    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"x"


def test_a_named_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    with open_destination(pipe) as sink:
        sink.write(b"through")
    reader.join()

    assert received == [b"through"]
    assert pipe.is_fifo()


@pytest.mark.parametrize("name", [".", "missing/answer", "file/answer"])
def test_a_place_that_cannot_be_written_is_a_wrong_request(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RequestError), open_destination(tmp_path / name):
        pytest.fail("nothing may be computed for a place that cannot be written")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a disk that is always full")
@pytest.mark.parametrize("size_bytes", [1, 100_000])
def test_a_full_disk_is_a_request_error(size_bytes: int) -> None:
    with pytest.raises(RequestError, match="No space left"), open_destination(Path("/dev/full")) as sink:
        sink.write(b"x" * size_bytes)


@pytest.mark.parametrize("inside", ["answer", "__consumer_offsets-7/answer", "__consumer_offsets-7/00000000000000000000.log"])
def test_a_file_inside_an_evidence_directory_is_refused(log_directory: Path, inside: str) -> None:
    with pytest.raises(RequestError, match="inside the evidence"):
        refuse_inside(log_directory / inside, [log_directory])


def test_a_segment_file_makes_its_partition_directory_evidence(log_directory: Path) -> None:
    partition = log_directory / "__consumer_offsets-7"
    with pytest.raises(RequestError, match="inside the evidence"):
        refuse_inside(partition / "answer", [partition / "00000000000000000000.log"])


def test_a_loose_file_of_evidence_is_not_overwritten_but_may_have_neighbours(tmp_path: Path) -> None:
    archive = tmp_path / "logs.tar"
    archive.touch()
    refuse_inside(tmp_path / "answer", [archive])
    with pytest.raises(RequestError, match="inside the evidence"):
        refuse_inside(archive, [str(archive)])


def test_the_way_into_the_evidence_through_a_symbolic_link_is_refused(log_directory: Path, tmp_path: Path) -> None:
    (tmp_path / "innocent").symlink_to(log_directory)
    with pytest.raises(RequestError, match="inside the evidence"):
        refuse_inside(tmp_path / "innocent" / "answer", [log_directory])


def test_a_place_outside_the_evidence_is_fine(log_directory: Path, tmp_path: Path) -> None:
    refuse_inside(tmp_path / "data-answer", [log_directory, "s3://bucket/logs"])


def test_a_partition_directory_makes_its_data_directory_evidence(log_directory: Path) -> None:
    (log_directory / "meta.properties").touch()
    with pytest.raises(RequestError, match="inside the evidence"):
        refuse_inside(log_directory / "answer", [log_directory / "__consumer_offsets-7"])


def test_a_hard_link_to_the_evidence_is_refused(log_directory: Path, tmp_path: Path) -> None:
    [segment] = log_directory.rglob("*.log")
    (tmp_path / "answer").hardlink_to(segment)
    (tmp_path / "other").touch()
    (tmp_path / "other link").hardlink_to(tmp_path / "other")

    with pytest.raises(RequestError, match="inside the evidence"):
        refuse_inside(tmp_path / "answer", [log_directory])
    refuse_inside(tmp_path / "other", [log_directory])
