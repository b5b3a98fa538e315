"""The members and assignments of classic groups whose values a fold checked, as rows of the state tables.

Kernels read the members of many groups at once; each different subscription and assignment is decoded once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from exhume.arrow_rows import OfLog
from exhume.codecs.columns.arrow import numbers, texts
from exhume.codecs.columns.payloads import PayloadNumbers
from exhume.codecs.embedded import assigned_partitions, decode_assignment, decode_subscription, subscribed_topics
from exhume.codecs.kernels import keys, records, values
from exhume.codecs.kernels.types import Bytes, Int64s
from exhume.codecs.record_types import GROUP_METADATA
from exhume.replay.partition_state import ClassicGroupState, LaterMembers
from exhume.replay.state_tables import SCHEMAS

MemberTableName = Literal["members", "assignments"]

#: The bytes of values that are read at once.
_CHUNK_BYTES = 4 << 20
_KEY_VERSION = GROUP_METADATA.to_bytes(2, "big")
#: Rack, topics and user data of a subscription.
_Subscription = tuple[str | None, list[str] | None, bytes | None]


class LaterMemberTables:
    """The rows of the members of these groups, which are `LaterMembers`, in this order."""

    def __init__(self, groups: Sequence[ClassicGroupState]) -> None:
        self._groups = groups

    def table(self, name: MemberTableName, origin: OfLog) -> pa.Table:
        """Return the rows of one of these tables; `origin` has the columns of the log."""
        schema = SCHEMAS[name]
        made: Callable[[Iterator[_Members]], Iterator[_Columns]] = _member_columns if name == "members" else _assignment_columns
        parts = []
        for count, columns in made(_chunks(self._groups)):
            same = {column: pa.repeat(pa.scalar(value, schema.field(column).type), count) for column, value in origin.items()}
            arrays = {**{field.name: pa.nulls(count, field.type) for field in schema}, **columns, **same}
            parts.append(pa.Table.from_arrays([arrays[column] for column in schema.names], schema=schema))
        return pa.concat_tables([schema.empty_table(), *parts])


#: The number of rows, and the columns that are not null.
_Columns = tuple[int, Mapping[str, pa.Array]]


@dataclass(frozen=True, slots=True)
class _Members:
    """The members of some groups: `fields` are columns of `kernels.values`; `of_group` is the place of the group of each member."""

    groups: Sequence[ClassicGroupState]
    data: Bytes
    fields: Int64s
    of_group: Int64s

    def __len__(self) -> int:
        return len(self.of_group)

    def of_groups(self, value: Callable[[ClassicGroupState], object], data_type: pa.DataType) -> pa.Array:
        """Return a value of the group of each member."""
        return pa.array([value(group) for group in self.groups], data_type).take(pa.array(self.of_group))

    def texts(self, field: str, data_type: pa.DataType) -> pa.Array:
        """Return a text of each member."""
        start = values.MEMBERS[f"{field}_start"]
        return texts(self.data, self.fields[start], self.fields[start + 1], data_type)

    def payloads(self, field: str, known: PayloadNumbers[Any]) -> Int64s:
        """Return the number of the payload of each member."""
        protocols = [(group.protocol_type, group.protocol) for group in self.groups]
        places = {protocol: place for place, protocol in enumerate(dict.fromkeys(protocols))}
        of_member = np.array([places[protocol] for protocol in protocols], np.int64)[self.of_group]
        return known.numbers(self.texts(field, pa.binary()), [*places], of_member).astype(np.int64)


def _chunks(groups: Sequence[ClassicGroupState]) -> Iterator[_Members]:
    """Yield the members of some groups after the other."""
    chunk: list[ClassicGroupState] = []
    size_bytes = 0
    for group in groups:
        assert isinstance(group.members, LaterMembers)
        chunk.append(group)
        size_bytes += len(group.members.value)
        if size_bytes >= _CHUNK_BYTES:
            yield _read(chunk)
            chunk, size_bytes = [], 0
    if chunk:
        yield _read(chunk)


def _read(groups: Sequence[ClassicGroupState]) -> _Members:
    pieces = list(chain.from_iterable((_key(group.group), _value(group)) for group in groups))
    ends = np.cumsum([len(piece) for piece in pieces])
    starts = ends - [len(piece) for piece in pieces]
    rows = np.zeros((records.COLUMNS, len(groups)), np.int64)
    rows[records.RECORD_TYPE] = GROUP_METADATA
    rows[records.KEY_START], rows[records.KEY_SIZE] = starts[::2], (ends - starts)[::2]
    rows[records.VALUE_START], rows[records.VALUE_SIZE] = starts[1::2], (ends - starts)[1::2]
    data = np.frombuffer(b"".join(pieces), np.uint8)
    of_values = np.empty((values.GROUP_COLUMNS, len(groups)), np.int64)
    members = np.empty((values.MEMBER_COLUMNS, sum(len(group.members) for group in groups)), np.int64)
    count = values.read_groups(data, rows, of_values, members)
    # A fold has checked the values.
    assert of_values[keys.IS_READ].all()
    assert count == members.shape[1]
    return _Members(groups, data, members, np.repeat(np.arange(len(groups)), of_values[values.MEMBERS_COUNT]))


def _key(group: str) -> bytes:
    name = group.encode()
    return _KEY_VERSION + len(name).to_bytes(2, "big") + name


def _value(group: ClassicGroupState) -> bytes:
    assert isinstance(group.members, LaterMembers)
    return group.members.value


def _member_columns(chunks: Iterator[_Members]) -> Iterator[_Columns]:
    subscriptions = PayloadNumbers(_subscription)
    for chunk in chunks:
        fields, int32 = chunk.fields, pa.int32()
        numbers_of = chunk.payloads("subscription", subscriptions)
        racks, topics, user_data = zip(*subscriptions.values, strict=True)
        places = pa.array(numbers_of)
        session_timeouts, rebalance_timeouts = fields[values.MEMBERS["session_timeout_ms"]], fields[values.MEMBERS["rebalance_timeout_ms"]]
        yield (
            len(chunk),
            {
                "record_offset": chunk.of_groups(lambda group: group.record_offset, pa.int64()),
                "group": chunk.of_groups(lambda group: group.group, pa.string()),
                "member_id": chunk.texts("member_id", pa.string()),
                "group_instance_id": chunk.texts("group_instance_id", pa.string()),
                "client_id": chunk.texts("client_id", pa.string()),
                "client_host": chunk.texts("client_host", pa.string()),
                "rack_id": pa.array(racks, pa.string()).take(places),
                "session_timeout_ms": numbers(session_timeouts, int32),
                "rebalance_timeout_ms": numbers(np.where(rebalance_timeouts == -1, session_timeouts, rebalance_timeouts), int32),
                "subscribed_topics": pa.array(topics, pa.list_(pa.string())).take(places),
                "is_classic": pa.repeat(pa.scalar(True), len(chunk)),
                "subscription_bytes": chunk.texts("subscription", pa.binary()),
                "assignment_bytes": chunk.texts("assignment", pa.binary()),
                "user_data": pa.array(user_data, pa.binary()).take(places),
            },
        )


def _subscription(protocol_type: str | None, protocol: str | None, payload: bytes) -> _Subscription:
    decoded = decode_subscription(protocol_type, protocol, payload)
    return decoded.value.get("rack_id"), subscribed_topics(decoded), decoded.value.get("user_data")


def _assignment_columns(chunks: Iterator[_Members]) -> Iterator[_Columns]:
    assignments = PayloadNumbers(lambda *payload: assigned_partitions(decode_assignment(*payload)))
    for chunk in chunks:
        numbers_of = chunk.payloads("assignment", assignments)
        sizes = np.array([len(each) for each in assignments.values], np.int64)
        counts = sizes[numbers_of]
        count = int(counts.sum())
        of_member = np.repeat(np.arange(len(chunk)), counts)
        # The place of each partition among those of all different assignments.
        first_places = (sizes.cumsum() - sizes)[numbers_of] - (counts.cumsum() - counts)
        places = pa.array(np.repeat(first_places, counts) + np.arange(count))
        partitions = list(chain.from_iterable(assignments.values))
        members = pa.array(of_member)
        yield (
            count,
            {
                "record_offset": chunk.of_groups(lambda group: group.record_offset, pa.int64()).take(members),
                "group": chunk.of_groups(lambda group: group.group, pa.string()).take(members),
                "member_id": chunk.texts("member_id", pa.string()).take(members),
                "kind": pa.repeat(pa.scalar("assigned"), count),
                "topic": pa.array([topic for topic, _ in partitions], pa.string()).take(places),
                "topic_name_source": pa.repeat(pa.scalar("assignment"), count),
                "partition": pa.array([partition for _, partition in partitions], pa.int32()).take(places),
            },
        )


def in_group_order(tables: Sequence[pa.Table]) -> pa.Table:
    """Return the rows of these tables by group; each table has its own groups, in order."""
    filled = [table for table in tables if table.num_rows]
    if len(filled) < 2:
        return filled[0] if filled else tables[0]
    together = pa.concat_tables(filled)
    # Text in UTF-8 has the order of its characters.
    return together.take(pc.sort_indices(together["group"]))
