"""One log for each kind of problem that a load can meet, and what its value and its sentence say."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from string import Formatter
from typing import Any

import pytest

from exhume.codecs.batch_writer import NewRecord, encode_batch
from exhume.codecs.compression import compress
from exhume.codecs.log_directory import discover
from exhume.codecs.record_types import encode_key, encode_value
from exhume.fixtures.log_writer import KeyValue, PartitionWriter, group_metadata, offset_commit
from exhume.replay.broker_start import open_strictly
from exhume.replay.decode import RecordRefused, UnknownRecordType
from exhume.replay.load_problems import LEFTOVERS, TEMPLATES, LoadProblem
from exhume.replay.load_problems import ProblemKind as Kind
from exhume.replay.local import load_partitions
from exhume.replay.partition_load import LoadOptions, new_load
from exhume.replay.reading import LoadInputs
from exhume.replay.refusals import Refusals
from exhume.replay.releases import profile_for
from exhume.replay.topic_names import TopicNames
from exhume.replay.verdict import LoadAborted, outcome_of
from tests.codecs.raw_batches import entry, wrapper

Write = Callable[[PartitionWriter], object]
NOW_MS = 1_700_000_000_000
TOPIC_ID = "AQIDBAUGBwgJCgsMDQ4PEA"
COMMITTED = offset_commit("g", "t", 0, 1, commit_timestamp_ms=NOW_MS)
OLD_COMMIT = offset_commit("g", "t", 0, 1, commit_timestamp_ms=NOW_MS, version=1)
PENDING = {"producer_id": 7, "producer_epoch": 1, "base_sequence": 0, "is_transactional": True}
CONTROL = {"producer_id": 7, "producer_epoch": 1, "is_transactional": True, "is_control": True}
CLIENT = {"client_id": "c", "client_host": "/h", "subscription": b"\0\0\0\0\0\0\xff\xff\xff\xff"}
OWNED = {"assigned": [{"topic_id": TOPIC_ID, "partitions": [3]}], "pending_revocation": []}
NO_TASKS: dict[str, Any] = {
    f"{role}_tasks{suffix}": [] for role in ("active", "standby", "warmup") for suffix in ("", "_pending_revocation")
}
CONSUMER = {"client_id": "c", "client_host": "/h", "subscribed_topics": ["t"], "classic_member_metadata": None}
STREAMS = {"client_id": "c", "client_host": "/h", "topology_epoch": 1, "process_id": "p", "client_tags": []}


def record(number: int, value: dict[str, Any] | None = None, *, member: str = "m1") -> KeyValue:
    return encode_key(number, {"group": "g", "member_id": member}), None if value is None else encode_value(number, 0, value)


def one(*records: KeyValue, **batch_fields: Any) -> Write:
    """A log of one batch."""
    return lambda log: log.append(records, **batch_fields)


def each(*records: KeyValue) -> Write:
    """A log with a batch for each record."""
    return lambda log: [log.append([record]) for record in records]


def members(*members: dict[str, Any], version: int = 3, **fields: Any) -> KeyValue:
    value = {"protocol_type": "consumer", "protocol": "range", "leader": "m1", "generation": 1, "members": [*members]}
    return group_metadata("g", value | fields, version=version)


def owned(epoch: int) -> dict[str, Any]:
    return {"member_epoch": epoch, **OWNED}


def tasks(*partitions: int, member_state: int = 1) -> dict[str, Any]:
    active = {"active_tasks": [{"subtopology_id": "0", "partitions": [*partitions]}]} if partitions else {}
    return {"member_epoch": 1, "previous_member_epoch": 0, "member_state": member_state, **NO_TASKS, **active}


def broken(log: PartitionWriter) -> None:
    log.append([COMMITTED])
    log.append_bytes(_with_count(log, 5), 1, NOW_MS)


def _with_count(log: PartitionWriter, count: int) -> bytes:
    """The bytes of a batch that claims more records than it has."""
    with PartitionWriter(log.directory.parent / "other", 7, first_offset=1) as other:
        other.append([COMMITTED])
    content = bytearray((other.directory / f"{1:020}.log").read_bytes())
    struct.pack_into(">i", content, 57, count)
    return bytes(content)


def behind_a_roll(content: bytes) -> Write:
    """Bytes at the end of a segment that is not the last."""

    def write(log: PartitionWriter) -> None:
        log.append([COMMITTED])
        log.append_bytes(content, 1, NOW_MS)
        log.roll()
        log.append([COMMITTED])

    return write


def zeros_at_the_end(log: PartitionWriter) -> None:
    log.append([COMMITTED])
    log.append_bytes(bytes(100), 1, NOW_MS)


def empty_control_batch(log: PartitionWriter) -> None:
    log.append([], **CONTROL, last_offset_delta=0)
    log.roll(1)


def then_a_gap(**batch_fields: Any) -> Write:
    """A log that ends in a gap: its newest segment is empty."""

    def write(log: PartitionWriter) -> None:
        log.append([OLD_COMMIT], **batch_fields)
        log.roll(9)

    return write


def twice_at_the_end(log: PartitionWriter) -> None:
    log.append([COMMITTED])
    log.next_offset = 0
    log.append([COMMITTED])


def lz4_with_the_right_checksum(log: PartitionWriter) -> None:
    stream = compress(3, entry(0, *OLD_COMMIT, magic=0), magic=1)
    log.append_bytes(entry(0, None, stream, magic=0, attributes=3), 0, NOW_MS)


def pending_and_removed(log: PartitionWriter) -> None:
    log.append([COMMITTED], **PENDING)
    log.append([(encode_key(2, {"group": "g"}), None)])


@dataclass(frozen=True)
class Case:
    """A log of a kind of problem, the release that meets it, what else its value says, and the sentence."""

    release: str
    write: Write
    said: dict[str, Any]
    sentence: str
    inputs: LoadInputs = LoadInputs()  # noqa: RUF009  # frozen
    stop: Any = "clean"


def overlapping(log: PartitionWriter) -> None:
    for _ in range(3):
        log.append([offset_commit("g", "t", 0, log.next_offset, commit_timestamp_ms=1)])
    log.roll(1)
    log.append([offset_commit("g", "t", 0, 1, commit_timestamp_ms=1)])


def without_index(log: PartitionWriter) -> None:
    for first in (0, 40, 20, 60):
        log.next_offset = first
        log.append([(b"k" * 5000, None)])
    for index in log.directory.glob("*.index"):
        index.unlink()


def beside_a_copy(log: PartitionWriter) -> None:
    log.append([COMMITTED])
    (log.directory / "copy.log").write_bytes(b"")


def below_the_segment(log: PartitionWriter) -> None:
    log.append([COMMITTED])
    log.roll(2)
    log.next_offset = 1
    log.append([COMMITTED])


def compressed_and_broken(log: PartitionWriter) -> None:
    batch = bytearray(encode_batch([NewRecord(0, NOW_MS, *OLD_COMMIT)], base_offset=0, magic=1, codec=1))
    batch[40:] = bytes(len(batch) - 40)
    log.append_bytes(bytes(batch), 0, NOW_MS)


CASES: dict[Kind, Case] = {
    Kind.START_NAME_MALFORMED: Case(
        "2.8.2", beside_a_copy, {}, "a broker of this release does not start on this log directory: the name of LOG has no base offset"
    ),
    Kind.START_BATCH_TOO_SMALL: Case(
        "2.8.2",
        zeros_at_the_end,
        {"byte_position": 104},
        "a broker of this release does not start on this log directory: a batch at byte 104 of LOG has a size below the minimum",
    ),
    Kind.START_CONTROL_TYPE_UNKNOWN: Case(
        "4.3.0",
        one((struct.pack(">hh", 0, 7), b""), **CONTROL),
        {"byte_position": 0},
        "a broker of this release does not start on this log directory: a control record of unknown type at byte 0 of LOG",
        stop="unclean",
    ),
    Kind.START_INDEX_GOES_BACK: Case(
        "4.3.0",
        without_index,
        {},
        "a broker of this release does not start on this log directory: LOG has no .index, and its record offsets go back",
        stop="clean_copy",
    ),
    Kind.START_BATCH_BELOW_SEGMENT: Case(
        "4.3.0",
        below_the_segment,
        {},
        "a broker of this release does not start on this log directory: it checks LOG, whose first batch is below its base offset",
        stop="unclean",
    ),
    Kind.START_BATCH_UNREADABLE: Case(
        "4.3.0",
        compressed_and_broken,
        {"byte_position": 0},
        "a broker of this release does not start on this log directory:"
        " it looks for the log end from byte 0 of LOG on, and cannot read the batch there",
    ),
    Kind.BATCH_UNREADABLE: Case("4.3.0", broken, {"record_offset": 1}, "a batch cannot be read: {detail}"),
    Kind.BATCH_TOO_SMALL: Case("4.3.0", behind_a_roll(bytes(100)), {}, "the size of a batch is below the minimum"),
    Kind.BATCH_SIZE_OVERFLOWS: Case(
        "4.3.0",
        behind_a_roll(struct.pack(">qiib", 2, 0x7FFFFFFF, 0, 2) + bytes(60)),
        {},
        "the size of a batch exceeds 32 bits with the fields before it",
    ),
    Kind.MAGIC_UNKNOWN: Case("4.3.0", behind_a_roll(struct.pack(">qiib", 2, 65, 0, 9) + bytes(60)), {}, "the magic of a batch is unknown"),
    Kind.CONTROL_BATCH_EMPTY: Case("1.1.1", empty_control_batch, {"record_offset": 0}, "a control batch is empty"),
    Kind.CONTROL_KEY_UNDECODABLE: Case(
        "4.3.0", one((b"\0", b""), **CONTROL), {"record_offset": 0}, "the key of a control record cannot be decoded"
    ),
    Kind.RECORD_KEY_NULL: Case("4.3.0", one((None, b"v")), {"record_offset": 0}, "the record key is null"),
    Kind.RECORD_TYPE_UNDECODABLE: Case("4.3.0", one((b"\0", b"v")), {}, "the record type cannot be decoded: {detail}"),
    Kind.RECORD_KEY_UNDECODABLE: Case("4.3.0", one((b"\0\1\0", b"v")), {}, "the key cannot be decoded: {detail}"),
    Kind.VALUE_VERSION_UNDECODABLE: Case("4.3.0", one((COMMITTED[0], b"\0")), {}, "the value version cannot be decoded: {detail}"),
    Kind.VALUE_UNDECODABLE: Case(
        "4.3.0", one((COMMITTED[0], b"\0\3")), {"value_version": 3}, "the value (version 3) cannot be decoded: {detail}"
    ),
    Kind.FORMAT_2_UNKNOWN: Case("0.10.2.2", one(OLD_COMMIT), {"record_offset": 0}, "this release has no message format 2"),
    Kind.CODEC_UNKNOWN: Case("2.0.1", one(OLD_COMMIT, codec=4), {"record_offset": 0, "codec": "zstd"}, "this release has no zstd"),
    Kind.FORMAT_0_IN_FORMAT_1: Case(
        "0.10.0.1",
        lambda log: log.append_bytes(wrapper(0, entry(0, *OLD_COMMIT, magic=0)), 0, NOW_MS),
        {"record_offset": 0},
        "a compressed message of format 1 holds messages of format 0",
    ),
    Kind.LZ4_CHECKSUM_CORRECT: Case(
        "0.9.0.1",
        lz4_with_the_right_checksum,
        {"record_offset": 0},
        "this release knows lz4 frames only with the broken header checksum that Kafka 0.8 and 0.9 wrote",
    ),
    Kind.RECORD_TYPE_UNKNOWN: Case(
        "2.8.2", one(record(3)), {"record_offset": 0, "record_type": 3}, "record type 3 is not known to this release"
    ),
    Kind.VALUE_VERSION_UNKNOWN: Case(
        "2.0.1",
        one(COMMITTED),
        {"record_offset": 0, "record_type": 1, "value_version": 3, "release": "2.0.1"},
        "value version 3 of record type 1 (offset_commit) is not known to 2.0.1",
    ),
    Kind.RECORD_TYPE_NOT_REPLAYED: Case(
        "4.0.0",
        one((encode_key(15, {"group": "g"}), b"\0\0\1\1\0")),
        {"record_type": 15},
        "this release has no way to replay record type 15",
    ),
    Kind.EMPTY_READ_ABORTS: Case(
        "0.10.2.2",
        then_a_gap(magic=1),
        {"record_offset": 1, "next_offset": 1, "end_offset": 9},
        "nothing is left to read between 1 and 9, and this release takes an empty read for another kind of answer",
    ),
    Kind.EMPTY_READ_STALLS: Case(
        "1.1.1",
        then_a_gap(),
        {"record_offset": 1, "next_offset": 1, "end_offset": 9},
        "nothing is left to read between 1 and 9, and this release reads on for ever",
    ),
    Kind.BATCH_BEYOND_BUFFER: Case(
        "1.1.1",
        one(OLD_COMMIT),
        {"record_offset": 0, "size_bytes": 108, "buffer_bytes": 50},
        "a batch of 108 bytes does not fit into the load buffer of 50",
        LoadInputs(load_buffer_bytes=50),
    ),
    Kind.RECORD_OFFSETS_GO_BACK: Case(
        "4.3.0",
        twice_at_the_end,
        {"record_offset": 0, "next_offset": 1, "reached_offset": 1},
        "record offsets go back: the batch ends at 1, the load was at 1",
    ),
    Kind.GAP_AT_END: Case(
        "4.3.0",
        then_a_gap(),
        {"end_offset": 9, "next_offset": 1, "shown_offset": 0},
        "the log ends in a gap: 9 is its end, 1 the end of its last batch; requests see the state at 0 until the next write",
    ),
    Kind.RECORDS_AFTER_END: Case(
        "4.3.0",
        overlapping,
        {"end_offset": 2, "next_offset": 3, "shown_offset": 2},
        "the newest segment ends at 2, an earlier one at 3: requests see the state at 2",
    ),
    Kind.ACTIVE_GROUP_UNLOADED: Case(
        "2.8.2",
        pending_and_removed,
        {"record_offset": 1, "group": "g"},
        "unexpected unload of active group 'g': its tombstone, record 1, was loaded, and offsets of it",
    ),
    Kind.ACTIVE_GROUP_UNLOADED_MIDWAY: Case(
        "0.11.0.0",
        each(members(version=1), (encode_key(2, {"group": "g"}), None)),
        {"record_offset": 1, "group": "g"},
        "unexpected unload of active group 'g' in the middle of the load",
        LoadInputs(load_buffer_bytes=150),
    ),
    Kind.PROTOCOL_OR_LEADER_NULL: Case(
        "0.9.0.1", one(members(protocol=None, leader=None, version=0), magic=0), {"group": "g"}, "protocol or leader of group 'g' is null"
    ),
    Kind.INSTANCE_ID_TWICE: Case(
        "4.3.0",
        one(members(CLIENT | {"member_id": "m1", "group_instance_id": "i"}, CLIENT | {"member_id": "m2", "group_instance_id": "i"})),
        {"group": "g", "instance_id": "i"},
        "instance id 'i' is held by two members of group 'g'",
    ),
    Kind.MEMBER_ID_TWICE: Case(
        "4.3.0",
        one(members(*(CLIENT | {"member_id": name} for name in ("m1", "m1", "m2")))),
        {"group": "g", "member_id": "m2", "other_member_id": "m1"},
        "member 'm2' of group 'g' comes after 'm1', which the record has twice",
    ),
    Kind.SUBSCRIPTION_UNPARSABLE: Case(
        "4.3.0",
        one(members(CLIENT | {"member_id": "m1", "subscription": b"\0\0\xff\xff\xff\xff"})),
        {"group": "g"},
        "a subscription in group 'g' cannot be parsed: {detail}",
    ),
    Kind.GROUP_MISSING: Case("4.0.0", one(record(14)), {"group": "g", "record_type": 14}, "there is no group 'g' for a record of type 14"),
    Kind.MEMBER_MISSING: Case(
        "4.0.0",
        one(record(11, {"group_epoch": 1}), record(14)),
        {"group": "g", "member_id": "m1", "record_type": 14},
        "there is no member 'm1' in group 'g' for a record of type 14",
    ),
    Kind.GROUP_IS_SIMPLE: Case(
        "3.9.1-new",
        one(COMMITTED, record(3, {"group_epoch": 1})),
        {"group": "g", "group_type": "classic", "record_type": 3, "record_group_type": "consumer"},
        "group 'g' is a simple group, record type 3 belongs to consumer groups",
    ),
    Kind.GROUP_OF_OTHER_TYPE: Case(
        "4.3.0",
        one(record(11, {"group_epoch": 1}), record(3, {"group_epoch": 1})),
        {"group": "g", "group_type": "share", "record_type": 3, "record_group_type": "consumer"},
        "group 'g' is a share group, record type 3 belongs to consumer groups",
    ),
    Kind.PARTITION_STILL_OWNED: Case(
        "4.3.0",
        one(record(8, owned(3)), record(8, owned(3), member="m2")),
        {"group": "g", "member_id": "m2", "topic_id": TOPIC_ID, "partition": 3, "epoch": 3, "owner_epoch": 3},
        f"member 'm2' of group 'g' takes {TOPIC_ID}-3 at epoch 3, which is still owned at epoch 3",
    ),
    Kind.TASK_STILL_OWNED: Case(
        "4.1.0",
        one(record(19, STREAMS), record(19, STREAMS, member="m2"), record(22, tasks(5)), record(22, tasks(5), member="m2")),
        {"group": "g", "member_id": "m2", "subtopology_id": "0", "partition": 5, "process_id": "p"},
        "member 'm2' of group 'g' takes task 0_5 of process 'p'",
    ),
    Kind.TASK_NOT_OWNED: Case(
        "4.1.0",
        one(record(22, tasks(5)), record(22, tasks(6))),
        {"group": "g", "member_id": "m1", "subtopology_id": "0"},
        "member 'm1' of group 'g' gives up a task of subtopology '0' that is not its own",
    ),
    Kind.GROUP_NOT_EMPTY: Case(
        "4.3.0",
        one(record(5, CONSUMER), record(7, {"topic_partitions": []}), record(6, {"assignment_epoch": 2}), record(3)),
        {"group": "g", "members": 1, "targets": 1, "epoch": 2},
        "group 'g' is removed while it still has 1 members and a target assignment of 1 members and assignment epoch 2",
    ),
    Kind.TARGET_NOT_EMPTY: Case(
        "4.3.0",
        one(record(7, {"topic_partitions": []}), record(6)),
        {"group": "g", "targets": 1},
        "the target assignment of group 'g' is removed while 1 members still have one",
    ),
    Kind.MEMBER_WITH_ASSIGNMENT: Case(
        "4.3.0",
        one(record(5, CONSUMER), record(8, owned(3)), record(5)),
        {"group": "g", "member_id": "m1", "epoch": 3},
        "member 'm1' of group 'g' is removed at epoch 3, its current assignment was not",
    ),
    Kind.MEMBER_WITH_TARGET: Case(
        "4.3.0",
        one(record(5, CONSUMER), record(7, {"topic_partitions": []}), record(8), record(5)),
        {"group": "g", "member_id": "m1"},
        "member 'm1' of group 'g' is removed, its target assignment was not",
    ),
    Kind.ASSIGNMENT_EPOCH_NEGATIVE: Case(
        "4.3.0", one(record(6, {"assignment_epoch": -2})), {"group": "g", "epoch": -2}, "assignment epoch -2 of group 'g' is negative"
    ),
    Kind.TOPOLOGY_EPOCH_NEGATIVE: Case(
        "4.3.0",
        one(record(23, {"topology_epoch": -1, "subtopologies": []})),
        {"group": "g", "epoch": -1},
        "topology epoch -1 of group 'g' is negative",
    ),
    Kind.REBALANCE_TIMEOUT_MISSING: Case(
        "4.3.0",
        one(record(17, {"group_epoch": 1, "metadata_hash": 0}), record(22, tasks(member_state=2))),
        {"record_offset": 1, "group": "g", "member_id": "m1"},
        "member 'm1' of group 'g' has tasks to give up but no type 19 record: no timeout",
    ),
}


def problem_of(directory: Path, case: Case) -> LoadProblem:
    with PartitionWriter(directory, 7) as log:
        case.write(log)
    options = LoadOptions(profile_for(case.release), stop=case.stop, inputs=case.inputs)
    with discover([directory]) as evidence:
        (load,) = load_partitions(evidence.log_directories, options, TopicNames())
    assert load.problem is not None
    assert load.row["reason"] == str(load.problem)
    assert load.row["outcome"] == load.outcome == outcome_of(load.problem)
    return load.problem


#: The first problem ends a load, so these show where it goes on.
LENIENT = {Kind.PARTITION_TAKEN_OVER}


def test_each_kind_has_a_log() -> None:
    assert {*CASES, *LENIENT} == {*Kind} == {*TEMPLATES}


@pytest.mark.parametrize("kind", CASES)
def test_each_kind_is_met_by_a_load(kind: Kind, tmp_path: Path) -> None:
    case = CASES[kind]
    problem = problem_of(tmp_path, case)

    assert problem.kind == kind
    assert {name: getattr(problem, name) for name in case.said} == case.said
    assert str(problem) == case.sentence.replace("{detail}", str(problem.detail)).replace("LOG", str(problem.path))


def test_a_partition_that_was_taken_over_shows_where_a_load_goes_on(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        log.append([record(8, owned(3)), record(8, owned(4), member="m2"), record(8, owned(5))])
    refusals = Refusals(lenient=True)
    with discover([tmp_path]) as evidence:
        served = open_strictly(evidence.log_directories[0].partitions[0], "clean")
        loader = new_load(profile_for("4.0.0"), refusals, TopicNames(), served.end_offset, LoadInputs())
        for batch in served.batches():
            loader.apply(batch)

    taken = next(each.problem for each in refusals.tolerated if each.problem.kind == Kind.PARTITION_TAKEN_OVER)
    assert taken == LoadProblem(
        Kind.PARTITION_TAKEN_OVER,
        record_offset=2,
        group="g",
        member_id="m1",
        topic_id=TOPIC_ID,
        partition=3,
        epoch=3,
        owner_epoch=4,
    )
    assert str(taken) == f"member 'm1' of group 'g' gives up {TOPIC_ID}-3 at epoch 3, which is owned at epoch 4"


def test_templates_name_attributes_of_problems_alone() -> None:
    known = {each.name for each in fields(LoadProblem)} | {"record_type_name", "leftovers"}
    asked = {name for template in (*TEMPLATES.values(), *LEFTOVERS.values()) for _, name, _, _ in Formatter().parse(template) if name}

    assert asked <= known
    assert {*LEFTOVERS} <= known


def test_braces_in_names_are_text() -> None:
    problem = LoadProblem(Kind.GROUP_MISSING, group="{kind} {0}", record_type=8)

    assert str(problem) == "there is no group '{kind} {0}' for a record of type 8"


def test_a_group_without_members_is_told_with_what_is_left() -> None:
    assert str(LoadProblem(Kind.GROUP_NOT_EMPTY, group="g", epoch=0)) == "group 'g' is removed while it still has assignment epoch 0"


@pytest.mark.parametrize(
    "error",
    [
        LoadAborted(LoadProblem(Kind.BATCH_UNREADABLE, record_offset=5, detail="it ends early"), path="a.log", byte_position=7),
        RecordRefused(LoadProblem(Kind.RECORD_KEY_NULL, record_offset=5)),
        UnknownRecordType(LoadProblem(Kind.RECORD_TYPE_UNKNOWN, record_offset=5, record_type=99)),
    ],
    ids=lambda error: type(error).__name__,
)
def test_problems_travel_with_the_errors_that_carry_them(error: LoadAborted | RecordRefused) -> None:
    other = pickle.loads(pickle.dumps(error))

    assert type(other) is type(error)
    assert other.problem == error.problem
    assert vars(other) == vars(error)
    assert str(other) == str(error)
