"""The tables of a coordinator's state.

Null means that a column does not apply or that the coordinator does not know; Kafka's -1 for "none" never appears, but a -1 that a record
carries as a value does. `record_offset` is the record that made the row. A row may lack columns: they are null.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypedDict

import pyarrow as pa

from exhume.arrow_rows import Int16, Int32, Json, schema_of, table_of

#: A row of any of these tables.
Row = Mapping[str, Any]


class StateRow(TypedDict, total=False):
    """The columns of every row: its log."""

    replica: str | None
    offsets_partition: Int32 | None


class RecordedRow(StateRow, total=False):
    """A row that a record made."""

    record_offset: int


class GroupRow(RecordedRow, total=False):
    """One row for each group."""

    group: str
    group_type: str
    group_state: str
    protocol_type: str | None
    protocol: str | None
    generation: Int32 | None
    group_epoch: Int32 | None
    assignment_epoch: Int32 | None
    leader: str | None
    metadata_hash: int | None
    topology_epoch: Int32 | None
    validated_topology_epoch: Int32 | None
    current_state_timestamp_ms: int | None
    assignment_timestamp_ms: int | None


class Endpoint(TypedDict):
    """The endpoint of a member of a streams group."""

    host: str
    port: Int32


class ClientTag(TypedDict):
    """A tag of a client."""

    key: str
    value: str


class MemberRow(RecordedRow, total=False):
    """One row for each member. `is_classic` is true where the member speaks the classic protocol."""

    group: str
    member_id: str
    group_instance_id: str | None
    client_id: str | None
    client_host: str | None
    rack_id: str | None
    member_state: str | None
    session_timeout_ms: Int32 | None
    rebalance_timeout_ms: Int32 | None
    subscribed_topics: list[str] | None
    subscribed_regex: str | None
    server_assignor: str | None
    member_epoch: Int32 | None
    previous_member_epoch: Int32 | None
    is_classic: bool
    topology_epoch: Int32 | None
    process_id: str | None
    user_endpoint: Endpoint | None
    client_tags: list[ClientTag] | None
    subscription_bytes: bytes | None
    assignment_bytes: bytes | None
    user_data: bytes | None


class AssignmentRow(StateRow, total=False):
    """One row for each member x topic x partition. `kind` is assigned, target or pending_revocation.

    `topic_name_source` says where the name comes from: the assignment itself, or a source of `topic_names`.
    """

    record_offset: int | None
    group: str
    member_id: str
    kind: str
    topic: str | None
    topic_id: str | None
    topic_name_source: str | None
    partition: Int32
    subtopology_id: str | None
    task_role: str | None
    assignment_epoch: Int32 | None


class OffsetRow(RecordedRow, total=False):
    """One row for each committed offset, or for each that an open transaction has pending.

    `is_stable` is false while an open transaction has a commit pending for the key; `fetched_offsets` says what requests make of it.
    """

    group: str
    topic: str
    topic_id: str | None
    partition: Int32
    committed_offset: int
    leader_epoch: Int32 | None
    metadata: str | None
    commit_timestamp_ms: int
    expire_timestamp_ms: int | None
    value_version: Int16
    is_stable: bool
    producer_id: int | None
    producer_epoch: Int16 | None


class FetchedOffsetRow(RecordedRow, total=False):
    """The answers to OffsetFetch: one row for each key with a commit, also a pending one. Null stands for Kafka's -1, no offset.

    The columns `stable_…` are the answer with `require_stable`, null if the release does not know it; `stable_error` is NONE or
    UNSTABLE_OFFSET_COMMIT. `is_listed` and `is_stable_listed`: the partition is also in an answer about all partitions of the group.
    """

    group: str
    topic: str
    partition: Int32
    committed_offset: int | None
    leader_epoch: Int32 | None
    metadata: str | None
    is_listed: bool | None
    stable_error: str | None
    stable_offset: int | None
    stable_leader_epoch: Int32 | None
    stable_metadata: str | None
    is_stable_listed: bool | None


class GroupPartition(TypedDict):
    """The key of a committed offset."""

    group: str
    topic: str
    partition: Int32


class OpenTransactionRow(RecordedRow, total=False):
    """One row for each open transaction: since when, and when last, by record and by time.

    `pending_partitions` are those that it blocks, having a commit for them pending; `groups` also those whose commits were removed since.
    `record_offset` is that of the newest record of the transaction.
    """

    producer_id: int
    producer_epoch: Int16
    first_record_offset: int
    last_record_offset: int
    first_timestamp_ms: int | None
    last_timestamp_ms: int | None
    groups: list[str]
    pending_partitions: list[GroupPartition]


class SharePartitionRow(RecordedRow, total=False):
    """`status` is initializing, initialized or deleting; a topic that is being deleted has no partitions any more."""

    group: str
    topic: str
    topic_id: str
    partition: Int32 | None
    status: str


class RegularExpressionRow(RecordedRow, total=False):
    """One row for each regular expression that a member of a consumer group subscribed to."""

    group: str
    regular_expression: str
    topics: list[str]
    metadata_image_version: int
    resolved_timestamp_ms: int


class StreamsTopologyRow(StateRow, total=False):
    """One row for each subtopology; `details` holds changelog, repartition and copartition declarations."""

    record_offset: int | None
    group: str
    topology_epoch: Int32
    subtopology_id: str
    source_topics: list[str]
    source_topic_regex: list[str]
    repartition_sink_topics: list[str]
    repartition_source_topics: list[str]
    state_changelog_topics: list[str]
    details: Json


class LoadRow(StateRow, total=False):
    """One row for each offsets partition. `outcome`: see `verdict.Outcome`; `record_offset` is where an aborted load stopped.

    `offset_fetch_error` is that of every OffsetFetch for a group of this partition: NONE, NOT_COORDINATOR, …; null where no broker is there
    to answer. `end_offset` is the next offset that this log would give, `shown_offset` the one up to which requests are answered.
    `at_offset` or `at_time_ms` is the moment of the state; `clock` is append or commit; the order is that of the whole log, not only of
    what counts.
    """

    record_offset: int | None
    release: str
    coordinator: str
    mode: str
    stop: str
    outcome: str
    reason: str | None
    offset_fetch_error: str | None
    path: str | None
    byte_position: int | None
    records_read: int
    bytes_read: int
    first_record_offset: int | None
    last_record_offset: int | None
    end_offset: int
    shown_offset: int | None
    tolerated_records: int | None
    at_offset: int | None
    at_time_ms: int | None
    clock: str | None
    is_ordered_by_clock: bool | None
    out_of_order_records: int | None


#: The type of the rows of each table.
ROWS: Mapping[str, type[StateRow]] = {
    "groups": GroupRow,
    "members": MemberRow,
    "assignments": AssignmentRow,
    "offsets": OffsetRow,
    "pending_offsets": OffsetRow,
    "fetched_offsets": FetchedOffsetRow,
    "open_transactions": OpenTransactionRow,
    "share_partitions": SharePartitionRow,
    "regular_expressions": RegularExpressionRow,
    "streams_topologies": StreamsTopologyRow,
    "loads": LoadRow,
}
SCHEMAS: Mapping[str, pa.Schema] = {name: schema_of(row) for name, row in ROWS.items()}


def table(name: str, rows: Iterable[Row]) -> pa.Table:
    """These rows as the state table of this name."""
    return table_of(SCHEMAS[name], rows)
