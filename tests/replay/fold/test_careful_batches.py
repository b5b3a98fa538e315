"""A load in columns steps over batches that are not plain, and gives the state of the load record by record."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhume.codecs.batch_writer import NewRecord, encode_batch
from exhume.codecs.batches import BatchWalk, checksum, read_header_fields
from exhume.codecs.embedded.consumer import encode_assignment, encode_subscription
from exhume.codecs.record_types import encode_key, encode_value
from exhume.fixtures.log_writer import KeyValue, PartitionWriter, group_metadata, offset_commit, tombstone, write_checkpoint
from exhume.replay.broker_log import Stop
from exhume.replay.partition_load import Mode
from tests import strategies
from tests.judges import corpus
from tests.twins import RELEASES, CompiledLoads, assert_same_states, write_segments
from tests.written_batches import Written

_STOPS: tuple[Stop, ...] = ("clean", "unclean")
#: One of each kind.
_RELEASES = ("2.0.0", "2.8.2", "3.7.2-new", "4.3.0")


def _segments(directory: Path) -> list[Path]:
    return sorted(directory.rglob("*.log"))


def _positions(path: Path) -> list[int]:
    return [batch.byte_position for batch in BatchWalk(path.read_bytes())]


def _change(path: Path, change: Callable[[bytearray], None]) -> None:
    content = bytearray(path.read_bytes())
    change(content)
    path.write_bytes(content)


def _write_log(directory: Path, extra: Sequence[KeyValue] = (), *, codec: int = 0) -> None:
    """Three segments of commits; in the middle of the second one a batch with `extra` between two commits."""
    with PartitionWriter(directory, 0) as log:
        for segment in range(3):
            if segment:
                log.roll()
            for number in range(6):
                commits = [
                    offset_commit(f"g{number % 2}", "t", each, 100 * segment + number, commit_timestamp_ms=number, version=1)
                    for each in range(4)
                ]
                unusual = extra if (segment, number) == (1, 3) else ()
                log.append([*commits[:2], *unusual, *commits[2:]], timestamp_ms=number, codec=codec)
            group = group_metadata("g1", {"protocol_type": "", "generation": segment}, version=0)
            log.append([group, tombstone(offset_commit("g0", "t", 3, 1, commit_timestamp_ms=1, version=1))], timestamp_ms=9)


def _assert_compiled(
    directory: Path, compiled: CompiledLoads, modes: Sequence[Mode] = ("strict", "lenient"), stops: Sequence[Stop] = _STOPS
) -> None:
    for stop in stops:
        for mode in modes:
            before = compiled.count
            assert_same_states(directory, _RELEASES, [mode], asked={"stop": stop})
            assert compiled.count - before == len(_RELEASES), (stop, mode)


@pytest.mark.parametrize("lost_bytes", [1, 10, 100, 140])
def test_a_torn_end(lost_bytes: int, tmp_path: Path, compiled: CompiledLoads) -> None:
    _write_log(tmp_path)
    _change(_segments(tmp_path)[-1], lambda content: content.__delitem__(slice(len(content) - lost_bytes, None)))

    _assert_compiled(tmp_path, compiled)
    # Where nobody asks how much of the past is left, nobody else reads that segment.
    assert_same_states(tmp_path, _RELEASES[-1:])


@pytest.mark.parametrize("offset", [(1 << 63) - 1, (1 << 63) - 2, 1 << 62])
def test_a_batch_at_the_end_of_all_offsets_and_others_after_it(offset: int, tmp_path: Path) -> None:
    """No checksum covers the base offset; a past counts on after it."""
    _write_log(tmp_path)
    _change(_segments(tmp_path)[0], lambda content: struct.pack_into(">q", content, 0, offset))

    assert_same_states(tmp_path, _RELEASES, asked={"at_offset": {0: 9}})


@pytest.mark.parametrize("is_simple", [True, False])
def test_a_load_that_ends_for_what_a_group_is_in_front_of_what_cannot_be_decoded(
    is_simple: bool, tmp_path: Path, compiled: CompiledLoads
) -> None:
    """The group is settled before the batch at which the fold ends; the record of that batch that ends the load depends on it."""
    commit, group = offset_commit("g", "t", 0, 1, commit_timestamp_ms=1), group_metadata("g", {"protocol_type": "consumer"})
    modern = encode_key(3, {"group": "g"}), encode_value(3, 0, {"group_epoch": 1})
    with PartitionWriter(tmp_path, 0) as log:
        log.append([commit if is_simple else group])
        log.append([modern, (encode_key(5, {"group": "g", "member_id": "m"}), b"\0\0")])

    before = compiled.count
    assert_same_states(tmp_path, _RELEASES, ["strict"])
    assert compiled.count - before == len(_RELEASES)


@pytest.mark.parametrize("zeros", [5, 17, 18, 5000])
def test_zeros_at_the_end(zeros: int, tmp_path: Path, compiled: CompiledLoads) -> None:
    _write_log(tmp_path)
    _change(_segments(tmp_path)[-1], lambda content: content.extend(bytes(zeros)))

    _assert_compiled(tmp_path, compiled, stops=["unclean"])
    _assert_compiled(tmp_path, compiled, modes=["lenient"])
    assert_same_states(tmp_path, _RELEASES, ["strict"], asked={"stop": "clean"})


@pytest.mark.one_of(4)
@pytest.mark.parametrize(("segment", "codec"), [(0, 3), (1, 0), (2, 3)])
@pytest.mark.parametrize("at", [40, 70, -1])
def test_a_bit_that_flipped(at: int, segment: int, codec: int, tmp_path: Path, compiled: CompiledLoads) -> None:
    _write_log(tmp_path, codec=codec)
    path = _segments(tmp_path)[segment]
    positions = _positions(path)

    def flip(content: bytearray) -> None:
        content[positions[3] + at if at > 0 else positions[4] - 1] ^= 1

    _change(path, flip)

    for stop in _STOPS:
        assert_same_states(tmp_path, _RELEASES, asked={"stop": stop})
    assert compiled.count > len(_RELEASES) * 2


@pytest.mark.one_of(5)
@pytest.mark.parametrize("segment", range(3))
@pytest.mark.parametrize("size", [-1, 0, 13, 1 << 20])
def test_a_size_that_lies(size: int, segment: int, tmp_path: Path, compiled: CompiledLoads) -> None:
    _write_log(tmp_path)
    path = _segments(tmp_path)[segment]
    _change(path, lambda content: struct.pack_into(">i", content, _positions(path)[3] + 8, size))

    for stop in _STOPS:
        assert_same_states(tmp_path, _RELEASES, asked={"stop": stop})
    assert compiled.count > len(_RELEASES) * 2


@pytest.mark.one_of(4)
@pytest.mark.parametrize("segment", range(3))
@pytest.mark.parametrize("magic", [3, 200])
def test_a_magic_that_no_release_knows(magic: int, segment: int, tmp_path: Path, compiled: CompiledLoads) -> None:
    _write_log(tmp_path)
    path = _segments(tmp_path)[segment]
    _change(path, lambda content: content.__setitem__(_positions(path)[3] + 16, magic))

    for stop in _STOPS:
        assert_same_states(tmp_path, _RELEASES, asked={"stop": stop})
    assert compiled.count > len(_RELEASES)


def test_unsound_batches_below_the_recovery_point_stay(tmp_path: Path, compiled: CompiledLoads) -> None:
    _write_log(tmp_path)
    first, second, third = _segments(tmp_path)
    for path in (first, third):
        _change(path, lambda content: content.__setitem__(70, content[70] ^ 1))
    write_checkpoint(tmp_path / "recovery-point-offset-checkpoint", [("__consumer_offsets", 0, int(third.stem))])

    _assert_compiled(tmp_path, compiled, modes=["strict"])
    assert second.exists()


_KEY, _VALUE = offset_commit("g0", "t", 1, 7, commit_timestamp_ms=1, version=1)
assert _KEY is not None
assert _VALUE is not None
_MEMBER = {
    "member_id": "m",
    "client_id": "c",
    "client_host": "/h",
    "session_timeout_ms": 3,
    "subscription": encode_subscription(0, {"topics": ["t"]}),
    "assignment": encode_assignment(0, {"assigned_partitions": [{"topic": "t", "partitions": [0]}]}),
}
_GROUP_KEY, _GROUP = group_metadata("g1", {"protocol_type": "", "generation": 9}, version=0)
assert _GROUP_KEY is not None
assert _GROUP is not None
_, _GROUP_OF_ONE = group_metadata("g1", {"protocol_type": "consumer", "generation": 9, "members": [_MEMBER]})
assert _GROUP_OF_ONE is not None


@pytest.mark.one_of(3)
@pytest.mark.parametrize(
    "not_plain",
    [
        (None, _VALUE),
        (b"", _VALUE),
        (b"\0\1\0\2g", None),
        (_KEY + b"more", _VALUE),
        (_KEY, _VALUE + b"more"),
        (_KEY, b"\0\x09" + _VALUE[2:]),
        (_KEY, b"\xff\xff" + _VALUE[2:]),
        (_KEY, _VALUE[:9]),
        (_KEY, b""),
        (_GROUP_KEY + b"more", _GROUP),
        (_GROUP_KEY, b"\0\x09" + _GROUP[2:]),
        (_GROUP_KEY, _GROUP[:9]),
        (_GROUP_KEY, _GROUP_OF_ONE + b"more"),
        (b"\0\x63\0\2g1", b"\0\0"),
        (b"\0\4\0\2g1", b"\0\0\0\0\0\1"),
    ],
    ids=str,
)
def test_a_record_that_is_not_plain(not_plain: KeyValue, tmp_path: Path, compiled: CompiledLoads) -> None:
    _write_log(tmp_path, [not_plain, tombstone(offset_commit("g1", "t", 0, 7, commit_timestamp_ms=1))], codec=len(not_plain[0] or b"") % 2)

    _assert_compiled(tmp_path, compiled, stops=["clean"])


def test_a_tombstone_in_a_batch_written_anew_is_given_to_the_loader(tmp_path: Path, compiled: CompiledLoads) -> None:
    """The group turns out to be one that the loader says more about."""
    group = group_metadata("h", {"protocol_type": "", "generation": 9}, version=0)
    member = {"member_id": "m", "client_id": "c", "client_host": "/h", "session_timeout_ms": 30, "subscription": b"", "assignment": b""}
    connect = group_metadata("h", {"protocol_type": "connect", "generation": 3, "protocol": "p", "members": [member]}, version=0)
    _write_log(tmp_path, [((_KEY or b"") + b"more", _VALUE), tombstone(group)])
    path = _segments(tmp_path)[2]
    end = _positions(path)[-1]
    batch = read_header_fields(path.read_bytes(), end)
    more = encode_batch([NewRecord(batch.last_offset + 1, 1, *connect)], base_offset=batch.last_offset + 1)
    path.write_bytes(path.read_bytes() + more)

    _assert_compiled(tmp_path, compiled, stops=["clean"])


def test_many_records_in_a_row_that_are_not_plain(tmp_path: Path, compiled: CompiledLoads) -> None:
    with PartitionWriter(tmp_path, 0) as log:
        for number in range(30):
            commit = offset_commit("g", "t", number % 3, number, commit_timestamp_ms=1, version=1)
            log.append([commit, (_KEY, b"\0\x09" + _VALUE[2:] if _VALUE else b""), commit, (None, b"")], timestamp_ms=1)

    _assert_compiled(tmp_path, compiled, stops=["clean"])


def test_a_record_of_a_transaction_that_is_not_plain(tmp_path: Path, compiled: CompiledLoads) -> None:
    fields = {"producer_id": 7, "producer_epoch": 0, "is_transactional": True}
    commits = [offset_commit("g", "t", each, each, commit_timestamp_ms=1, version=1) for each in range(4)]
    with PartitionWriter(tmp_path, 0) as log:
        log.append([commits[0]], timestamp_ms=1)
        log.append([commits[1], (None, b""), commits[2]], timestamp_ms=2, **fields)
        log.append([(b"\0\0\0\1", b"\0\0\0\0\0\0")], timestamp_ms=3, is_control=True, **fields)
        log.append([commits[3]], timestamp_ms=4, **fields)

    _assert_compiled(tmp_path, compiled, stops=["clean"])


@pytest.mark.slow
def test_a_record_count_that_lies(tmp_path: Path, compiled: CompiledLoads) -> None:
    for count in (-1, 0, 3, 9, 1 << 30):
        directory = tmp_path / str(count)
        _write_log(directory)
        path = _segments(directory)[1]
        position = _positions(path)[3]

        def lie(content: bytearray, position: int = position, count: int = count) -> None:
            struct.pack_into(">i", content, position + 57, count)
            header = read_header_fields(content, position)
            struct.pack_into(">I", content, position + 17, checksum(content, header, header.end_position))

        _change(path, lie)
        for stop in _STOPS:
            assert_same_states(directory, _RELEASES, asked={"stop": stop})
    assert compiled.count > 0


@st.composite
def _damages(draw: st.DrawFn) -> Callable[[bytearray], None]:
    """What may befall a segment."""
    kind, share = draw(st.sampled_from(("none", "flip", "cut", "zeros", "patch"))), draw(st.floats(0, 1))
    patch, bit = draw(st.binary(min_size=1, max_size=40)), draw(st.integers(0, 7))

    def damage(content: bytearray) -> None:
        place = int(share * (len(content) - 1))
        if kind == "flip" and content:
            content[place] ^= 1 << bit
        elif kind == "cut":
            del content[place:]
        elif kind == "zeros":
            content.extend(bytes(len(patch)))
        elif kind == "patch":
            content[place : place + len(patch)] = patch

    return damage


_LOGS = strategies.any_logs()


@strategies.examples(30)
@given(
    batches=_LOGS,
    damages=st.lists(_damages(), min_size=1, max_size=4),
    release=st.sampled_from(RELEASES),
    stop=st.sampled_from(_STOPS),
)
def test_a_generated_log_that_is_damaged(
    batches: list[Written],
    damages: list[Callable[[bytearray], None]],
    release: str,
    stop: Stop,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    directory = tmp_path_factory.mktemp("log")
    write_segments(directory, batches, -(-len(batches) // len(damages)) or 1)
    for path, damage in zip(_segments(directory), damages, strict=False):
        _change(path, damage)

    assert_same_states(directory, [release], asked={"stop": stop})


@pytest.mark.one_of(2)
@pytest.mark.parametrize("stop", _STOPS)
def test_bundled_logs_that_end_too_early(stop: Stop, tmp_path: Path, compiled: CompiledLoads) -> None:
    for name in ("2.8.2-lifecycle", "3.6.2-transactions", "4.3.0-consumer-groups", "4.3.0-transactions"):
        case = next(case for case in corpus.cases(corpus.BUNDLED) if case.name == name)
        directory = tmp_path / name
        for path in sorted((case.directory / "data").rglob("*")):
            copy = directory / path.relative_to(case.directory / "data")
            if path.is_dir():
                copy.mkdir(parents=True, exist_ok=True)
            else:
                copy.parent.mkdir(parents=True, exist_ok=True)
                content = path.read_bytes()
                copy.write_bytes(content[:-7] if path.suffix == ".log" and len(content) > 100 else content)

        assert_same_states(directory, ("2.8.2", "4.3.0"), asked={"stop": stop})
    assert compiled.count > 0
