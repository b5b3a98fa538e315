"""The small text files, read as strictly as a broker reads them."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhume.codecs.checkpoints import (
    MAX_TEXT_BYTES,
    LeaderEpoch,
    MetaProperties,
    read_clean_shutdown,
    read_leader_epochs,
    read_meta_properties,
    read_offset_checkpoint,
    read_partition_metadata,
)
from exhume.errors import DecodeError

TOPIC_ID = "izAhskxkS8-h5AKuT9J0Iw"


def test_a_checkpoint_maps_topic_and_partition_to_an_offset() -> None:
    found = read_offset_checkpoint(b"0\n2\n__consumer_offsets 7 1234\nmy-topic.v2 0 0\n")

    assert found == {("__consumer_offsets", 7): 1234, ("my-topic.v2", 0): 0}


@pytest.mark.parametrize("data", [b"", b"0\n", b"0\n0\n"], ids=["no bytes", "version only", "count 0"])
def test_a_checkpoint_without_entries_is_empty_and_not_broken(data: bytes) -> None:
    assert read_offset_checkpoint(data) == {}


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
def test_lines_end_as_on_any_platform(line_end: bytes) -> None:
    assert read_offset_checkpoint(line_end.join([b"0", b"1", b"t 0 5", b""])) == {("t", 0): 5}


def test_fields_may_be_parted_by_any_run_of_white_space() -> None:
    assert read_offset_checkpoint(b"0\n1\nt \t 0    5  \n") == {("t", 0): 5}


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"1\n1\nt 0 5\n", 1),
        (b"x\n1\nt 0 5\n", 1),
        (b"0\nmany\nt 0 5\n", 2),
        (b"0\n2\nt 0 5\n", 2),
        (b"0\n0\nt 0 5\n", 2),
        (b"0\n1\nt 0\n", 3),
        (b"0\n1\nt 0 5 6\n", 3),
        (b"0\n1\n t 0 5\n", 3),
        (b"0\n1\nt 0 5\n\n", 4),
        (b"0\n1\nt 0 9223372036854775808\n", 3),
        (b"0\n1\nt 2147483648 5\n", 3),
        (b"0\n1\nt 0 1_000\n", 3),
        (b"0\n1\nt 0 " + b"9" * 10_000 + b"\n", 3),
    ],
    ids=[
        "version 1",
        "no version",
        "no count",
        "fewer entries",
        "more entries",
        "two fields",
        "four fields",
        "blank first",
        "empty line",
        "offset too large",
        "partition too large",
        "Python's spelling",
        "endless number",
    ],
)
def test_a_checkpoint_that_a_broker_refuses_is_refused_with_its_line(data: bytes, line: int) -> None:
    with pytest.raises(DecodeError, match=rf"line {line}, ") as caught:
        read_offset_checkpoint(data)

    assert caught.value.remedy


def test_the_refusal_knows_the_byte_at_which_its_line_begins() -> None:
    with pytest.raises(DecodeError) as caught:
        read_offset_checkpoint(b"0\n2\nt 0 5\nbroken\n")

    assert caught.value.byte_position == 10


def test_leader_epochs_keep_the_order_of_the_file() -> None:
    assert read_leader_epochs(b"0\n2\n0 0\n3 179\n") == [LeaderEpoch(0, 0), LeaderEpoch(3, 179)]


def test_leader_epochs_with_three_fields_are_refused() -> None:
    with pytest.raises(DecodeError, match="epoch start_offset"):
        read_leader_epochs(b"0\n1\nt 0 5\n")


def test_the_topic_id_is_22_characters() -> None:
    assert read_partition_metadata(f"version: 0\ntopic_id: {TOPIC_ID}".encode()) == TOPIC_ID


def test_a_later_version_of_partition_metadata_is_read_as_brokers_do() -> None:
    assert read_partition_metadata(f"version: 1\ntopic_id: {TOPIC_ID}\nmore: 1\n".encode()) == TOPIC_ID


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"version: 0",
        b"version: -1\ntopic_id: izAhskxkS8-h5AKuT9J0Iw",
        b"version 0\ntopic_id: izAhskxkS8-h5AKuT9J0Iw",
        b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
        b"version: 0\ntopic_id: short",
        b"version: 0\ntopic_id: izAhskxkS8+h5AKuT9J0Iw",
    ],
    ids=["empty", "no id", "negative version", "no colon", "zero id", "short id", "other alphabet"],
)
def test_partition_metadata_that_a_broker_refuses_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        read_partition_metadata(data)


def test_version_0_of_meta_properties_names_the_broker() -> None:
    found = read_meta_properties(b"#\n#Sat Nov 21 03:40:46 UTC 2026\nbroker.id=1\nversion=0\ncluster.id=YadDlpUiQ5-kYA1VWEjyhg\n")

    assert found == MetaProperties(version=0, broker_id=1, cluster_id="YadDlpUiQ5-kYA1VWEjyhg", directory_id=None)


def test_version_1_of_meta_properties_names_node_and_directory() -> None:
    found = read_meta_properties(b"node.id=3\ndirectory.id=KPS1qVfIGosYwegpj5gX3Q\nversion=1\ncluster.id=F6kkSdSbTKSzc2iu8moV2g\n")

    assert found == MetaProperties(version=1, broker_id=3, cluster_id="F6kkSdSbTKSzc2iu8moV2g", directory_id="KPS1qVfIGosYwegpj5gX3Q")


def test_the_oldest_meta_properties_know_no_cluster() -> None:
    assert read_meta_properties(b"version=0\nbroker.id=0\n") == MetaProperties(0, 0, None, None)


def test_properties_are_spelled_as_java_spells_them() -> None:
    found = read_meta_properties(b"  ! comment\nversion : 0\nbroker.id 4\ncluster.id=a\\=\\u0062\\\n   c\r\n")

    assert (found.broker_id, found.cluster_id) == (4, "a=bc")


@pytest.mark.parametrize(
    "data",
    [b"version=2\nbroker.id=1\n", b"version=0\nbroker.id=one\n", b"version=1\nnode.id=1\n", b"version=1\ncluster.id=x\n"],
    ids=["unknown version", "no number", "no cluster", "no node"],
)
def test_meta_properties_that_a_broker_refuses_are_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        read_meta_properties(data)


def test_the_mark_of_a_clean_shutdown_is_empty_up_to_3_6() -> None:
    assert read_clean_shutdown(b"") is None


def test_the_mark_of_a_clean_shutdown_holds_the_broker_epoch_from_3_7() -> None:
    assert read_clean_shutdown(b'{"version":0,"brokerEpoch":88}') == 88


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"version":0}', b"\xff", b"[" * 100_000])
def test_a_mark_of_a_clean_shutdown_with_strange_content_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        read_clean_shutdown(data)


READERS = [read_offset_checkpoint, read_leader_epochs, read_partition_metadata, read_meta_properties, read_clean_shutdown]


@pytest.mark.parametrize("read", READERS)
def test_a_file_of_absurd_size_is_refused(read: Callable[[bytes], object]) -> None:
    with pytest.raises(DecodeError, match="no file of this kind is so large"):
        read(bytes(MAX_TEXT_BYTES + 1))


def test_a_property_of_very_many_lines_takes_no_longer_than_its_bytes() -> None:
    start = time.process_time()

    read_meta_properties(b"a=\\\n" + b"b\\\n" * 300_000)

    assert time.process_time() - start < 10


@pytest.mark.parametrize("read", READERS)
@given(data=st.binary(max_size=200) | st.text("0123456789 \n\r\t:=\\\\#abu{}[]", max_size=200).map(str.encode))
def test_any_bytes_are_read_or_refused(read: Callable[[bytes], object], data: bytes) -> None:
    refusal: DecodeError | None = None
    try:
        read(data)
    except DecodeError as error:
        refusal = error

    assert refusal is None or refusal.remedy
