"""Problems that a load meets, as values: a kind for each cause, and one sentence for each kind."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from enum import StrEnum, auto
from typing import Any

from exhume.codecs.record_types import RECORD_TYPES


class ProblemKind(StrEnum):
    """One kind for each cause. Code compares kinds, never sentences."""

    # The broker does not start.
    START_NAME_MALFORMED = auto()
    START_BATCH_TOO_SMALL = auto()
    START_CONTROL_TYPE_UNKNOWN = auto()
    START_INDEX_GOES_BACK = auto()
    START_BATCH_BELOW_SEGMENT = auto()
    START_BATCH_UNREADABLE = auto()
    # The bytes of a batch or record.
    BATCH_UNREADABLE = auto()
    BATCH_TOO_SMALL = auto()
    BATCH_SIZE_OVERFLOWS = auto()
    MAGIC_UNKNOWN = auto()
    CONTROL_BATCH_EMPTY = auto()
    CONTROL_KEY_UNDECODABLE = auto()
    RECORD_KEY_NULL = auto()
    RECORD_TYPE_UNDECODABLE = auto()
    RECORD_KEY_UNDECODABLE = auto()
    VALUE_VERSION_UNDECODABLE = auto()
    VALUE_UNDECODABLE = auto()
    # Unknown to this release.
    FORMAT_2_UNKNOWN = auto()
    CODEC_UNKNOWN = auto()
    FORMAT_0_IN_FORMAT_1 = auto()
    LZ4_CHECKSUM_CORRECT = auto()
    RECORD_TYPE_UNKNOWN = auto()
    VALUE_VERSION_UNKNOWN = auto()
    RECORD_TYPE_NOT_REPLAYED = auto()
    # Reads of the log.
    EMPTY_READ_ABORTS = auto()
    EMPTY_READ_STALLS = auto()
    BATCH_BEYOND_BUFFER = auto()
    RECORD_OFFSETS_GO_BACK = auto()
    GAP_AT_END = auto()
    RECORDS_AFTER_END = auto()
    # Classic groups.
    ACTIVE_GROUP_UNLOADED = auto()
    ACTIVE_GROUP_UNLOADED_MIDWAY = auto()
    PROTOCOL_OR_LEADER_NULL = auto()
    INSTANCE_ID_TWICE = auto()
    MEMBER_ID_TWICE = auto()
    SUBSCRIPTION_UNPARSABLE = auto()
    # Groups of the Java coordinator.
    GROUP_MISSING = auto()
    MEMBER_MISSING = auto()
    GROUP_IS_SIMPLE = auto()
    GROUP_OF_OTHER_TYPE = auto()
    PARTITION_TAKEN_OVER = auto()
    PARTITION_STILL_OWNED = auto()
    TASK_STILL_OWNED = auto()
    TASK_NOT_OWNED = auto()
    GROUP_NOT_EMPTY = auto()
    TARGET_NOT_EMPTY = auto()
    MEMBER_WITH_ASSIGNMENT = auto()
    MEMBER_WITH_TARGET = auto()
    ASSIGNMENT_EPOCH_NEGATIVE = auto()
    TOPOLOGY_EPOCH_NEGATIVE = auto()
    REBALANCE_TIMEOUT_MISSING = auto()


_NO_START = "a broker of this release does not start on this log directory"

#: The sentence of each kind. In braces: attributes of `LoadProblem`.
TEMPLATES: dict[ProblemKind, str] = {
    ProblemKind.START_NAME_MALFORMED: f"{_NO_START}: the name of {{path}} has no base offset",
    ProblemKind.START_BATCH_TOO_SMALL: f"{_NO_START}: a batch at byte {{byte_position}} of {{path}} has a size below the minimum",
    ProblemKind.START_CONTROL_TYPE_UNKNOWN: f"{_NO_START}: a control record of unknown type at byte {{byte_position}} of {{path}}",
    ProblemKind.START_INDEX_GOES_BACK: f"{_NO_START}: {{path}} has no .index, and its record offsets go back",
    ProblemKind.START_BATCH_BELOW_SEGMENT: f"{_NO_START}: it checks {{path}}, whose first batch is below its base offset",
    ProblemKind.START_BATCH_UNREADABLE: (
        f"{_NO_START}: it looks for the log end from byte {{byte_position}} of {{path}} on, and cannot read the batch there"
    ),
    ProblemKind.BATCH_UNREADABLE: "a batch cannot be read: {detail}",
    ProblemKind.BATCH_TOO_SMALL: "the size of a batch is below the minimum",
    ProblemKind.BATCH_SIZE_OVERFLOWS: "the size of a batch exceeds 32 bits with the fields before it",
    ProblemKind.MAGIC_UNKNOWN: "the magic of a batch is unknown",
    ProblemKind.CONTROL_BATCH_EMPTY: "a control batch is empty",
    ProblemKind.CONTROL_KEY_UNDECODABLE: "the key of a control record cannot be decoded",
    ProblemKind.RECORD_KEY_NULL: "the record key is null",
    ProblemKind.RECORD_TYPE_UNDECODABLE: "the record type cannot be decoded: {detail}",
    ProblemKind.RECORD_KEY_UNDECODABLE: "the key cannot be decoded: {detail}",
    ProblemKind.VALUE_VERSION_UNDECODABLE: "the value version cannot be decoded: {detail}",
    ProblemKind.VALUE_UNDECODABLE: "the value (version {value_version}) cannot be decoded: {detail}",
    ProblemKind.FORMAT_2_UNKNOWN: "this release has no message format 2",
    ProblemKind.CODEC_UNKNOWN: "this release has no {codec}",
    ProblemKind.FORMAT_0_IN_FORMAT_1: "a compressed message of format 1 holds messages of format 0",
    ProblemKind.LZ4_CHECKSUM_CORRECT: ("this release knows lz4 frames only with the broken header checksum that Kafka 0.8 and 0.9 wrote"),
    ProblemKind.RECORD_TYPE_UNKNOWN: "record type {record_type} is not known to this release",
    ProblemKind.VALUE_VERSION_UNKNOWN: (
        "value version {value_version} of record type {record_type} ({record_type_name}) is not known to {release}"
    ),
    ProblemKind.RECORD_TYPE_NOT_REPLAYED: "this release has no way to replay record type {record_type}",
    ProblemKind.EMPTY_READ_ABORTS: (
        "nothing is left to read between {next_offset} and {end_offset}, and this release takes an empty read for another kind of answer"
    ),
    ProblemKind.EMPTY_READ_STALLS: "nothing is left to read between {next_offset} and {end_offset}, and this release reads on for ever",
    ProblemKind.BATCH_BEYOND_BUFFER: "a batch of {size_bytes} bytes does not fit into the load buffer of {buffer_bytes}",
    ProblemKind.RECORD_OFFSETS_GO_BACK: "record offsets go back: the batch ends at {next_offset}, the load was at {reached_offset}",
    ProblemKind.GAP_AT_END: (
        "the log ends in a gap: {end_offset} is its end, {next_offset} the end of its last batch; "
        "requests see the state at {shown_offset} until the next write"
    ),
    ProblemKind.RECORDS_AFTER_END: (
        "the newest segment ends at {end_offset}, an earlier one at {next_offset}: requests see the state at {shown_offset}"
    ),
    ProblemKind.ACTIVE_GROUP_UNLOADED: (
        "unexpected unload of active group {group!r}: its tombstone, record {record_offset}, was loaded, and offsets of it"
    ),
    ProblemKind.ACTIVE_GROUP_UNLOADED_MIDWAY: "unexpected unload of active group {group!r} in the middle of the load",
    ProblemKind.PROTOCOL_OR_LEADER_NULL: "protocol or leader of group {group!r} is null",
    ProblemKind.INSTANCE_ID_TWICE: "instance id {instance_id!r} is held by two members of group {group!r}",
    ProblemKind.MEMBER_ID_TWICE: "member {member_id!r} of group {group!r} comes after {other_member_id!r}, which the record has twice",
    ProblemKind.SUBSCRIPTION_UNPARSABLE: "a subscription in group {group!r} cannot be parsed: {detail}",
    ProblemKind.GROUP_MISSING: "there is no group {group!r} for a record of type {record_type}",
    ProblemKind.MEMBER_MISSING: "there is no member {member_id!r} in group {group!r} for a record of type {record_type}",
    ProblemKind.GROUP_IS_SIMPLE: "group {group!r} is a simple group, record type {record_type} belongs to {record_group_type} groups",
    ProblemKind.GROUP_OF_OTHER_TYPE: (
        "group {group!r} is a {group_type} group, record type {record_type} belongs to {record_group_type} groups"
    ),
    ProblemKind.PARTITION_TAKEN_OVER: (
        "member {member_id!r} of group {group!r} gives up {topic_id}-{partition} at epoch {epoch}, which is owned at epoch {owner_epoch}"
    ),
    ProblemKind.PARTITION_STILL_OWNED: (
        "member {member_id!r} of group {group!r} takes {topic_id}-{partition} at epoch {epoch}, which is still owned at epoch {owner_epoch}"
    ),
    ProblemKind.TASK_STILL_OWNED: (
        "member {member_id!r} of group {group!r} takes task {subtopology_id}_{partition} of process {process_id!r}"
    ),
    ProblemKind.TASK_NOT_OWNED: (
        "member {member_id!r} of group {group!r} gives up a task of subtopology {subtopology_id!r} that is not its own"
    ),
    ProblemKind.GROUP_NOT_EMPTY: "group {group!r} is removed while it still has {leftovers}",
    ProblemKind.TARGET_NOT_EMPTY: "the target assignment of group {group!r} is removed while {targets} members still have one",
    ProblemKind.MEMBER_WITH_ASSIGNMENT: (
        "member {member_id!r} of group {group!r} is removed at epoch {epoch}, its current assignment was not"
    ),
    ProblemKind.MEMBER_WITH_TARGET: "member {member_id!r} of group {group!r} is removed, its target assignment was not",
    ProblemKind.ASSIGNMENT_EPOCH_NEGATIVE: "assignment epoch {epoch} of group {group!r} is negative",
    ProblemKind.TOPOLOGY_EPOCH_NEGATIVE: "topology epoch {epoch} of group {group!r} is negative",
    ProblemKind.REBALANCE_TIMEOUT_MISSING: (
        "member {member_id!r} of group {group!r} has tasks to give up but no type 19 record: no timeout"
    ),
}

#: The `leftovers` of a group: one phrase for each attribute that is set.
LEFTOVERS: dict[str, str] = {
    "members": "{members} members",
    "targets": "a target assignment of {targets} members",
    "epoch": "assignment epoch {epoch}",
}


@dataclass(frozen=True, slots=True)
class LoadProblem:
    """One problem of a load. Attributes that its kind does not need are None; `str` gives its sentence.

    `record_offset` is the record at which the load meets it, `detail` the error of the decoder.
    """

    kind: ProblemKind
    _: KW_ONLY
    record_offset: int | None = None
    path: str | None = None
    byte_position: int | None = None
    detail: str | None = None
    release: str | None = None
    record_type: int | None = None
    value_version: int | None = None
    codec: str | None = None
    #: Of the group, and of the groups that the record is made for.
    group: str | None = None
    group_type: str | None = None
    record_group_type: str | None = None
    member_id: str | None = None
    other_member_id: str | None = None
    instance_id: str | None = None
    process_id: str | None = None
    topic_id: str | None = None
    subtopology_id: str | None = None
    partition: int | None = None
    epoch: int | None = None
    owner_epoch: int | None = None
    members: int | None = None
    targets: int | None = None
    next_offset: int | None = None
    end_offset: int | None = None
    reached_offset: int | None = None
    shown_offset: int | None = None
    size_bytes: int | None = None
    buffer_bytes: int | None = None

    def __str__(self) -> str:
        return TEMPLATES[self.kind].format_map(_Attributes(self))

    @property
    def record_type_name(self) -> str:
        """The name of the record type."""
        assert self.record_type is not None
        return RECORD_TYPES[self.record_type].name

    @property
    def leftovers(self) -> str:
        """The parts of a group that are left, in words."""
        present = [phrase for name, phrase in LEFTOVERS.items() if getattr(self, name) is not None]
        return " and ".join(present).format_map(_Attributes(self))


class _Attributes:
    """Gives a template the attributes of a problem."""

    __slots__ = ("_problem",)

    def __init__(self, problem: LoadProblem) -> None:
        self._problem = problem

    def __getitem__(self, name: str) -> Any:
        return getattr(self._problem, name)
