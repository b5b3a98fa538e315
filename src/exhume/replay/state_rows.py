"""Rows of the state tables from a `PartitionState`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from exhume.codecs.embedded import assigned_partitions, decode_assignment, decode_subscription, subscribed_topics
from exhume.codecs.json_values import to_json
from exhume.replay.partition_state import (
    ClassicGroupState,
    ClassicMember,
    Commit,
    ConsumerGroupState,
    ConsumerMember,
    Group,
    LaterMembers,
    OffsetKey,
    OpenTransaction,
    PartitionState,
    ShareGroupState,
    ShareMember,
    StreamsGroupState,
    StreamsMember,
    Tasks,
    TopicPartitions,
)
from exhume.replay.state_tables import (
    AssignmentRow,
    GroupRow,
    MemberRow,
    OffsetRow,
    OpenTransactionRow,
    RegularExpressionRow,
    Row,
    SharePartitionRow,
    StreamsTopologyRow,
)
from exhume.replay.topic_names import TopicNames


def state_rows(partition_state: PartitionState, names: TopicNames) -> Mapping[str, Sequence[Row]]:
    """The rows of this state, by table, without `replica` and `offsets_partition`, ordered by group and key.

    Rows of members that are not read yet are left out; `later_groups` has their groups.
    """
    groups = _in_order(partition_state)
    known = [group for group in groups if not _has_later_members(group)]
    transactions = [transaction for _, transaction in sorted(partition_state.transactions.items())]
    return {
        "groups": [_group_row(group) for group in groups],
        "members": [row for group in known for row in _member_rows(group)],
        "assignments": [row for group in known for row in _assignment_rows(group, names)],
        "offsets": [_offset_row(key, commit, partition_state.is_stable(key)) for key, commit in sorted(partition_state.offsets.items())],
        "pending_offsets": [_offset_row(key, commit, False) for each in transactions for key, commit in sorted(each.offsets.items())],
        "open_transactions": [_transaction_row(transaction) for transaction in transactions],
        "share_partitions": list(_share_partition_rows(partition_state)),
        "regular_expressions": [row for group in groups for row in _regular_expression_rows(group)],
        "streams_topologies": [row for group in groups for row in _topology_rows(group)],
    }


def later_groups(partition_state: PartitionState) -> list[ClassicGroupState]:
    """Return the groups whose members are not read yet, in order."""
    return [group for group in _in_order(partition_state) if isinstance(group, ClassicGroupState) and _has_later_members(group)]


def _has_later_members(group: Group) -> bool:
    return isinstance(group.members, LaterMembers)


def _in_order(partition_state: PartitionState) -> list[Group]:
    return sorted(partition_state.groups.values(), key=lambda group: group.group)


def _member_rows(group: Group) -> list[MemberRow]:
    match group:
        case ClassicGroupState():
            return [_classic_member_row(group, member) for member in group.members.values()]
        case ConsumerGroupState():
            return [_consumer_member_row(group, member) for member in group.members.values()]
        case ShareGroupState():
            return [_share_member_row(group, member) for member in group.members.values()]
        case StreamsGroupState():
            return [_streams_member_row(group, member) for member in group.members.values()]


def _assignment_rows(group: Group, names: TopicNames) -> list[AssignmentRow]:
    match group:
        case ClassicGroupState():
            return [row for member in group.members.values() for row in _classic_assignment_rows(group, member)]
        case ConsumerGroupState() | ShareGroupState():
            return _topic_assignment_rows(group, names)
        case StreamsGroupState():
            return _task_assignment_rows(group)


def _group_row(group: Group) -> GroupRow:
    row: GroupRow = {"record_offset": group.record_offset, "group": group.group, "group_type": group.group_type, "group_state": group.state}
    if isinstance(group, ClassicGroupState):
        return row | {
            "protocol_type": group.protocol_type,
            "protocol": group.protocol,
            "generation": group.generation,
            "leader": group.leader,
            "current_state_timestamp_ms": group.current_state_timestamp_ms,
        }
    row |= {
        "protocol_type": group.group_type,
        "group_epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "metadata_hash": group.metadata_hash,
        "assignment_timestamp_ms": group.assignment_timestamp_ms or None,
    }
    if isinstance(group, StreamsGroupState):
        row["topology_epoch"] = None if group.topology is None else group.topology["topology_epoch"]
        row["validated_topology_epoch"] = group.validated_topology_epoch
    return row


def _classic_member_row(group: ClassicGroupState, member: ClassicMember) -> MemberRow:
    subscription = decode_subscription(group.protocol_type, group.protocol, member.subscription)
    return {
        "record_offset": group.record_offset,
        "group": group.group,
        "member_id": member.member_id,
        "group_instance_id": member.group_instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "rack_id": subscription.value.get("rack_id"),
        "session_timeout_ms": member.session_timeout_ms,
        "rebalance_timeout_ms": member.rebalance_timeout_ms,
        "subscribed_topics": subscribed_topics(subscription),
        "is_classic": True,
        "subscription_bytes": member.subscription,
        "assignment_bytes": member.assignment,
        "user_data": subscription.value.get("user_data"),
    }


def _modern_member_row(
    group: ConsumerGroupState | ShareGroupState | StreamsGroupState, member: ConsumerMember | ShareMember | StreamsMember
) -> MemberRow:
    return {
        "record_offset": max(member.record_offset, member.assignment_record_offset or 0),
        "group": group.group,
        "member_id": member.member_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "rack_id": member.rack_id,
        "member_state": member.member_state,
        "rebalance_timeout_ms": member.rebalance_timeout_ms,
        "member_epoch": member.member_epoch,
        "previous_member_epoch": member.previous_member_epoch,
        "is_classic": False,
    }


def _consumer_member_row(group: ConsumerGroupState, member: ConsumerMember) -> MemberRow:
    timeout_ms: int | None = member.classic["session_timeout_ms"] if member.classic else None
    return _modern_member_row(group, member) | {
        "group_instance_id": member.group_instance_id,
        "session_timeout_ms": timeout_ms,
        "subscribed_topics": member.subscribed_topics,
        "subscribed_regex": member.subscribed_regex,
        "server_assignor": member.server_assignor,
        "is_classic": member.classic is not None,
    }


def _share_member_row(group: ShareGroupState, member: ShareMember) -> MemberRow:
    return _modern_member_row(group, member) | {"rebalance_timeout_ms": None, "subscribed_topics": member.subscribed_topics}


def _streams_member_row(group: StreamsGroupState, member: StreamsMember) -> MemberRow:
    return _modern_member_row(group, member) | {
        "group_instance_id": member.group_instance_id,
        "topology_epoch": member.topology_epoch,
        "process_id": member.process_id,
        "user_endpoint": member.user_endpoint,
        "client_tags": member.client_tags,
    }


def _classic_assignment_rows(group: ClassicGroupState, member: ClassicMember) -> Iterator[AssignmentRow]:
    for topic, partition in assigned_partitions(decode_assignment(group.protocol_type, group.protocol, member.assignment)):
        yield {
            "record_offset": group.record_offset,
            "group": group.group,
            "member_id": member.member_id,
            "kind": "assigned",
            "topic": topic,
            "topic_name_source": "assignment",
            "partition": partition,
        }


def _topic_assignment_rows(group: ConsumerGroupState | ShareGroupState, names: TopicNames) -> list[AssignmentRow]:
    def expand(member_id: str, kind: str, record_offset: int | None, held: TopicPartitions) -> Iterator[AssignmentRow]:
        for topic_id, partitions in held.items():
            name = names.lookup(topic_id)
            for partition, epoch in partitions.items():
                yield {
                    "record_offset": record_offset,
                    "group": group.group,
                    "member_id": member_id,
                    "kind": kind,
                    "topic": name.topic if name else None,
                    "topic_id": topic_id,
                    "topic_name_source": name.source if name else None,
                    "partition": partition,
                    "assignment_epoch": epoch,
                }

    rows: list[AssignmentRow] = []
    for member in group.members.values():
        rows += expand(member.member_id, "assigned", member.assignment_record_offset, member.assigned)
        if isinstance(member, ConsumerMember):
            rows += expand(member.member_id, "pending_revocation", member.assignment_record_offset, member.pending_revocation)
    for member_id, target in group.target.items():
        rows += expand(member_id, "target", target.record_offset, target.assigned)
    return rows


def _task_assignment_rows(group: StreamsGroupState) -> list[AssignmentRow]:
    def expand(member_id: str, kind: str, record_offset: int | None, tasks: Tasks) -> Iterator[AssignmentRow]:
        for role, subtopologies in tasks.items():
            for subtopology_id, partitions in subtopologies.items():
                for partition, epoch in partitions.items():
                    yield {
                        "record_offset": record_offset,
                        "group": group.group,
                        "member_id": member_id,
                        "kind": kind,
                        "partition": partition,
                        "subtopology_id": subtopology_id,
                        "task_role": role,
                        "assignment_epoch": epoch,
                    }

    rows: list[AssignmentRow] = []
    for member in group.members.values():
        rows += expand(member.member_id, "assigned", member.assignment_record_offset, member.assigned)
        rows += expand(member.member_id, "pending_revocation", member.assignment_record_offset, member.pending_revocation)
    for member_id, target in group.target.items():
        rows += expand(member_id, "target", target.record_offset, target.assigned)
    return rows


def _offset_row(key: OffsetKey, commit: Commit, is_stable: bool) -> OffsetRow:
    group, topic, partition = key
    return {
        "record_offset": commit.record_offset,
        "group": group,
        "topic": topic,
        "topic_id": commit.topic_id,
        "partition": partition,
        "committed_offset": commit.committed_offset,
        "leader_epoch": commit.leader_epoch,
        "metadata": commit.metadata,
        "commit_timestamp_ms": commit.commit_timestamp_ms,
        "expire_timestamp_ms": commit.expire_timestamp_ms,
        "value_version": commit.value_version,
        "is_stable": is_stable,
        "producer_id": commit.producer_id,
        "producer_epoch": commit.producer_epoch,
    }


def _transaction_row(transaction: OpenTransaction) -> OpenTransactionRow:
    return {
        "record_offset": transaction.last_record_offset,
        "producer_id": transaction.producer_id,
        "producer_epoch": transaction.producer_epoch,
        "first_record_offset": transaction.first_record_offset,
        "last_record_offset": transaction.last_record_offset,
        "first_timestamp_ms": transaction.first_timestamp_ms,
        "last_timestamp_ms": transaction.last_timestamp_ms,
        "groups": sorted(transaction.groups),
        "pending_partitions": [
            {"group": group, "topic": topic, "partition": partition} for group, topic, partition in sorted(transaction.offsets)
        ],
    }


def _share_partition_rows(partition_state: PartitionState) -> Iterator[SharePartitionRow]:
    for group, state in sorted(partition_state.share_states.items()):
        for status, topics in (("initializing", state.initializing), ("initialized", state.initialized), ("deleting", state.deleting)):
            for topic in topics:
                for partition in topic.get("partitions", [None]):
                    yield {
                        "record_offset": state.record_offset,
                        "group": group,
                        "topic": topic["topic"],
                        "topic_id": topic["topic_id"],
                        "partition": partition,
                        "status": status,
                    }


def _regular_expression_rows(group: Group) -> Iterator[RegularExpressionRow]:
    if not isinstance(group, ConsumerGroupState):
        return
    for text, expression in sorted(group.regular_expressions.items()):
        yield {
            "record_offset": expression.record_offset,
            "group": group.group,
            "regular_expression": text,
            "topics": expression.topics,
            "metadata_image_version": expression.metadata_image_version,
            "resolved_timestamp_ms": expression.resolved_timestamp_ms,
        }


def _topology_rows(group: Group) -> Iterator[StreamsTopologyRow]:
    if not isinstance(group, StreamsGroupState) or group.topology is None:
        return
    for subtopology in group.topology["subtopologies"]:
        yield {
            "record_offset": group.topology_record_offset,
            "group": group.group,
            "topology_epoch": group.topology["topology_epoch"],
            "subtopology_id": subtopology["subtopology_id"],
            "source_topics": subtopology["source_topics"],
            "source_topic_regex": subtopology["source_topic_regex"],
            "repartition_sink_topics": subtopology["repartition_sink_topics"],
            "repartition_source_topics": [topic["name"] for topic in subtopology["repartition_source_topics"]],
            "state_changelog_topics": [topic["name"] for topic in subtopology["state_changelog_topics"]],
            "details": to_json(
                {name: subtopology[name] for name in ("repartition_source_topics", "state_changelog_topics", "copartition_groups")}
            ),
        }
