"""The tables of a coordinator's state.

Null means that a column does not apply or that the coordinator does not know; Kafka's -1 for "none" never appears, but a -1 that a record
carries as a value does. `record_offset` is the record that made the row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from exhume.arrow_rows import table_of

_ORIGIN = [pa.field("replica", pa.string()), pa.field("offsets_partition", pa.int32()), pa.field("record_offset", pa.int64())]
_GROUP_PARTITION = pa.struct([("group", pa.string()), ("topic", pa.string()), ("partition", pa.int32())])
_KEY_VALUES = pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())]))


def _schema(*columns: tuple[str, pa.DataType]) -> pa.Schema:
    return pa.schema([*_ORIGIN, *(pa.field(name, data_type) for name, data_type in columns)])


_OFFSETS = _schema(
    ("group", pa.string()),
    ("topic", pa.string()),
    ("topic_id", pa.string()),
    ("partition", pa.int32()),
    ("committed_offset", pa.int64()),
    ("leader_epoch", pa.int32()),
    ("metadata", pa.string()),
    ("commit_timestamp_ms", pa.int64()),
    ("expire_timestamp_ms", pa.int64()),
    ("value_version", pa.int16()),
    # False while an open transaction has a commit pending for the key; `fetched_offsets` says what requests make of it.
    ("is_stable", pa.bool_()),
    ("producer_id", pa.int64()),
    ("producer_epoch", pa.int16()),
)

SCHEMAS: Mapping[str, pa.Schema] = {
    "groups": _schema(
        ("group", pa.string()),
        ("group_type", pa.string()),
        ("group_state", pa.string()),
        ("protocol_type", pa.string()),
        ("protocol", pa.string()),
        ("generation", pa.int32()),
        ("group_epoch", pa.int32()),
        ("assignment_epoch", pa.int32()),
        ("leader", pa.string()),
        ("metadata_hash", pa.int64()),
        ("topology_epoch", pa.int32()),
        ("validated_topology_epoch", pa.int32()),
        ("current_state_timestamp_ms", pa.int64()),
        ("assignment_timestamp_ms", pa.int64()),
    ),
    "members": _schema(
        ("group", pa.string()),
        ("member_id", pa.string()),
        ("group_instance_id", pa.string()),
        ("client_id", pa.string()),
        ("client_host", pa.string()),
        ("rack_id", pa.string()),
        ("member_state", pa.string()),
        ("session_timeout_ms", pa.int32()),
        ("rebalance_timeout_ms", pa.int32()),
        ("subscribed_topics", pa.list_(pa.string())),
        ("subscribed_regex", pa.string()),
        ("server_assignor", pa.string()),
        ("member_epoch", pa.int32()),
        ("previous_member_epoch", pa.int32()),
        # True where the member speaks the classic protocol.
        ("is_classic", pa.bool_()),
        ("topology_epoch", pa.int32()),
        ("process_id", pa.string()),
        ("user_endpoint", pa.struct([("host", pa.string()), ("port", pa.int32())])),
        ("client_tags", _KEY_VALUES),
        ("subscription_bytes", pa.binary()),
        ("assignment_bytes", pa.binary()),
        ("user_data", pa.binary()),
    ),
    # One row for each member x topic x partition. `kind` is assigned, target or pending_revocation.
    "assignments": _schema(
        ("group", pa.string()),
        ("member_id", pa.string()),
        ("kind", pa.string()),
        ("topic", pa.string()),
        ("topic_id", pa.string()),
        # Where the name comes from: the assignment itself, or a source of `topic_names`.
        ("topic_name_source", pa.string()),
        ("partition", pa.int32()),
        ("subtopology_id", pa.string()),
        ("task_role", pa.string()),
        ("assignment_epoch", pa.int32()),
    ),
    "offsets": _OFFSETS,
    "pending_offsets": _OFFSETS,
    # What OffsetFetch answers: one row for each key with a commit, pending ones too. Null stands for Kafka's -1, no offset. The columns
    # `stable_…` are the answer with `require_stable`, null where the release does not know it; `stable_error` is NONE or
    # UNSTABLE_OFFSET_COMMIT. `is_listed` and `is_stable_listed`: the partition also shows where all of the group are asked for.
    "fetched_offsets": _schema(
        ("group", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("committed_offset", pa.int64()),
        ("leader_epoch", pa.int32()),
        ("metadata", pa.string()),
        ("is_listed", pa.bool_()),
        ("stable_error", pa.string()),
        ("stable_offset", pa.int64()),
        ("stable_leader_epoch", pa.int32()),
        ("stable_metadata", pa.string()),
        ("is_stable_listed", pa.bool_()),
    ),
    # Since when, and when last: by record and by time. `pending_partitions` are those that it blocks, having a commit for them pending;
    # `groups` also those whose commits were removed since. `record_offset` is that of the newest record of the transaction.
    "open_transactions": _schema(
        ("producer_id", pa.int64()),
        ("producer_epoch", pa.int16()),
        ("first_record_offset", pa.int64()),
        ("last_record_offset", pa.int64()),
        ("first_timestamp_ms", pa.int64()),
        ("last_timestamp_ms", pa.int64()),
        ("groups", pa.list_(pa.string())),
        ("pending_partitions", pa.list_(_GROUP_PARTITION)),
    ),
    # `status` is initializing, initialized or deleting; a topic that is being deleted has no partitions any more.
    "share_partitions": _schema(
        ("group", pa.string()),
        ("topic", pa.string()),
        ("topic_id", pa.string()),
        ("partition", pa.int32()),
        ("status", pa.string()),
    ),
    "regular_expressions": _schema(
        ("group", pa.string()),
        ("regular_expression", pa.string()),
        ("topics", pa.list_(pa.string())),
        ("metadata_image_version", pa.int64()),
        ("resolved_timestamp_ms", pa.int64()),
    ),
    # One row for each subtopology; `details` holds changelog, repartition and copartition declarations.
    "streams_topologies": _schema(
        ("group", pa.string()),
        ("topology_epoch", pa.int32()),
        ("subtopology_id", pa.string()),
        ("source_topics", pa.list_(pa.string())),
        ("source_topic_regex", pa.list_(pa.string())),
        ("repartition_sink_topics", pa.list_(pa.string())),
        ("repartition_source_topics", pa.list_(pa.string())),
        ("state_changelog_topics", pa.list_(pa.string())),
        ("details", pa.json_()),
    ),
    # One row for each offsets partition. `outcome`: see `verdict.Outcome`; `record_offset` is where an aborted load stopped.
    "loads": pa.schema(
        [
            *_ORIGIN,
            pa.field("release", pa.string()),
            pa.field("coordinator", pa.string()),
            pa.field("mode", pa.string()),
            pa.field("stop", pa.string()),
            pa.field("outcome", pa.string()),
            pa.field("reason", pa.string()),
            # Of every OffsetFetch for a group of this partition: NONE, NOT_COORDINATOR, …; null where no broker is there to answer.
            pa.field("offset_fetch_error", pa.string()),
            pa.field("path", pa.string()),
            pa.field("byte_position", pa.int64()),
            pa.field("records_read", pa.int64()),
            pa.field("bytes_read", pa.int64()),
            pa.field("first_record_offset", pa.int64()),
            pa.field("last_record_offset", pa.int64()),
            # The next offset this log would give; and the one up to which requests are answered.
            pa.field("end_offset", pa.int64()),
            pa.field("shown_offset", pa.int64()),
            pa.field("tolerated_records", pa.int64()),
            # Of a state at a moment, else null. `clock` is append or commit; the order is that of the whole log, not only of what counts.
            pa.field("at_offset", pa.int64()),
            pa.field("at_time_ms", pa.int64()),
            pa.field("clock", pa.string()),
            pa.field("is_ordered_by_clock", pa.bool_()),
            pa.field("out_of_order_records", pa.int64()),
        ]
    ),
}

#: A row of one of these tables: column name to value; columns it lacks are null.
Row = dict[str, Any]


def table(name: str, rows: Iterable[Row]) -> pa.Table:
    """These rows as the state table of this name."""
    return table_of(SCHEMAS[name], rows)
