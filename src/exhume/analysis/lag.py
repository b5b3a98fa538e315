"""The lag of committed offsets, with their consumers: the columns of `kafka-consumer-groups.sh --describe`, at any moment.

The offsets topic has no end offsets of data topics: they come from outside. Where one is not known it is null, and so is the lag.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TypedDict

import pyarrow as pa
import pyarrow.compute as pc

from exhume.analysis.group_slices import GROUP_KEY, group_slices
from exhume.arrow_rows import Int32, OfLog, batch_of, schema_of
from exhume.replay.state import CoordinatorState
from exhume.replay.state_tables import AssignmentRow, GroupRow, MemberRow, OffsetRow, StreamsTopologyRow

#: The end offset of each topic partition, by topic and partition.
EndOffsets = Mapping[tuple[str, int], int]


class LagRow(OfLog):
    """One row per group, topic partition and consumer; a consumer without a partition has a row without a topic.

    The columns are those of `kafka-consumer-groups.sh --describe`: `committed_offset` is its CURRENT-OFFSET, null for an owned partition
    without a commit; `end_offset` is its LOG-END-OFFSET, null where it is not known; `lag` is their difference, null if either is. It is
    negative if the committed offset is beyond the given end. `member_id` is its CONSUMER-ID, null if no member owns the partition; in a
    streams group it is the member with the active task. A topic whose id has no known name is shown by its id. `holding` is assigned, or
    pending_revocation: the member still owns the partition, and has to give it up. Share groups have no committed offsets, and no rows.
    """

    group: str
    topic: str | None
    partition: Int32 | None
    committed_offset: int | None
    end_offset: int | None
    lag: int | None
    member_id: str | None
    client_host: str | None
    client_id: str | None
    group_instance_id: str | None
    holding: str | None
    commit_timestamp_ms: int | None
    record_offset: int | None


LAG = schema_of(LagRow)


class _Consumer(TypedDict, total=False):
    """The columns of a row about its consumer."""

    member_id: str | None
    client_host: str | None
    client_id: str | None
    group_instance_id: str | None
    holding: str | None


_Group = tuple[str | None, int | None, str]
_Place = tuple[str | None, int | None]
#: The topics that the tasks of a subtopology of a group read.
_TopicsOfTasks = dict[tuple[_Group, str], list[str]]

#: The columns that rows of `LAG` are made of.
_OFFSET_COLUMNS = (*GROUP_KEY, "topic", "partition", "committed_offset", "commit_timestamp_ms", "record_offset")
_MEMBER_COLUMNS = (*GROUP_KEY, "member_id", "client_host", "client_id", "group_instance_id")
_ASSIGNMENT_COLUMNS = (*GROUP_KEY, "member_id", "kind", "topic", "topic_id", "partition", "subtopology_id", "task_role")


def lag_of(state: CoordinatorState, end_offsets: EndOffsets) -> pa.Table:
    """Return the lag of every committed offset and owned partition of a state, as `LAG`, by replica, group, topic, partition, member."""
    read_topics, share = _topics_of_tasks(state), _share_groups(state)
    tables = {
        "offsets": state.offsets.select(_OFFSET_COLUMNS),
        "members": state.members.select(_MEMBER_COLUMNS),
        "assignments": state.assignments.filter(pc.not_equal(state.assignments["kind"], "target")).select(_ASSIGNMENT_COLUMNS),
    }
    batches = [batch_of(LAG, _rows(slices, share, read_topics, end_offsets)) for slices in group_slices(tables)]
    return pa.Table.from_batches(batches, schema=LAG)


def _rows(slices: Mapping[str, pa.Table], share: Collection[_Group], read_topics: _TopicsOfTasks, end_offsets: EndOffsets) -> list[LagRow]:
    """Return the rows of some groups, which have all their rows in `slices`."""
    commits: dict[_Group, dict[_Place, OffsetRow]] = {}
    committed: list[OffsetRow] = slices["offsets"].to_pylist()
    for row in committed:
        commits.setdefault(_group(row), {})[row["topic"], row["partition"]] = row
    members: list[MemberRow] = [row for row in slices["members"].to_pylist() if _group(row) not in share]
    owners = _owners(members, slices["assignments"].to_pylist(), read_topics)
    rows: list[LagRow] = []
    for group in sorted({*commits, *owners}, key=lambda key: (key[0] or "", key[2], key[1] or 0)):
        own, held = commits.get(group, {}), owners.get(group, {})
        for place in sorted({*own, *held}, key=lambda key: (key[0] is None, key[0] or "", key[1] or 0)):
            topic, partition = place
            end = None if topic is None or partition is None else end_offsets.get((topic, partition))
            owned = held.get(place, [(None, None)])
            rows += [{**_row(group, place, own.get(place), end), **_consumer(holding, member)} for holding, member in owned]
    return rows


def lag_sentence(lag: pa.Table, *, is_past: bool) -> str:
    """Return the sum of the known lags, the number of rows without one and the reasons, as one sentence."""
    with_topic = lag.filter(pc.is_valid(lag["topic"]))
    known = with_topic.filter(pc.greater_equal(with_topic["lag"], 0))
    beyond = with_topic.num_rows - with_topic["lag"].null_count - known.num_rows
    parts = [f"lag {pc.sum(known['lag']).as_py():,} in {known.num_rows:,} partitions" if known.num_rows else "no lag is known"]
    if beyond:
        parts.append(f"{beyond:,} beyond the given end offset")
    without_end, without_commit = with_topic["end_offset"].null_count, with_topic["committed_offset"].null_count
    if without_end:
        parts.append(f"{without_end:,} without a known end offset (--end-offsets)")
    if without_commit:
        parts.append(f"{without_commit:,} without a committed offset")
    if is_past and known.num_rows:
        parts.append("if the end offsets are newer than this moment, the lag was smaller then")
    return " · ".join(parts)


def _group(row: OffsetRow | MemberRow | AssignmentRow | StreamsTopologyRow | GroupRow) -> _Group:
    return row["replica"], row["offsets_partition"], row["group"]


def _share_groups(state: CoordinatorState) -> set[_Group]:
    groups: list[GroupRow] = state.groups.filter(pc.equal(state.groups["group_type"], "share")).to_pylist()
    return {_group(row) for row in groups}


def _owners(
    member_rows: Iterable[MemberRow], held: Iterable[AssignmentRow], read_topics: _TopicsOfTasks
) -> dict[_Group, dict[_Place, list[tuple[str | None, MemberRow]]]]:
    """The members of each partition; those without a partition under (None, None)."""
    members = {(_group(row), row["member_id"]): row for row in member_rows}
    owners: dict[_Group, dict[_Place, list[tuple[str | None, MemberRow]]]] = {}
    busy: set[tuple[_Group, str]] = set()
    for row in held:
        group = _group(row)
        member = members.get((group, row["member_id"]))
        if member is None:
            continue
        # A topic whose id has no known name is shown by its id.
        topics = read_topics.get((group, row["subtopology_id"]), []) if row["subtopology_id"] else [row["topic"] or row["topic_id"]]
        if row["task_role"] in (None, "active"):
            busy.add((group, row["member_id"]))
            for topic in topics:
                owners.setdefault(group, {}).setdefault((topic, row["partition"]), []).append((row["kind"], member))
    for key, member in members.items():
        if key not in busy:
            owners.setdefault(key[0], {}).setdefault((None, None), []).append((None, member))
    return owners


def _topics_of_tasks(state: CoordinatorState) -> _TopicsOfTasks:
    """The topics that a task of each subtopology reads."""
    rows: list[StreamsTopologyRow] = state.streams_topologies.to_pylist()
    return {(_group(row), row["subtopology_id"]): [*row["source_topics"], *row["repartition_source_topics"]] for row in rows}


def _row(group: _Group, place: _Place, commit: OffsetRow | None, end: int | None) -> LagRow:
    committed = None if commit is None else commit["committed_offset"]
    return {
        "replica": group[0],
        "offsets_partition": group[1],
        "group": group[2],
        "topic": place[0],
        "partition": place[1],
        "committed_offset": committed,
        "end_offset": end,
        "lag": None if end is None or committed is None else end - committed,
        "member_id": None,
        "client_host": None,
        "client_id": None,
        "group_instance_id": None,
        "holding": None,
        "commit_timestamp_ms": None if commit is None else commit["commit_timestamp_ms"],
        "record_offset": None if commit is None else commit["record_offset"],
    }


def _consumer(holding: str | None, member: MemberRow | None) -> _Consumer:
    if member is None:
        return {}
    return {
        "member_id": member["member_id"],
        "client_host": member["client_host"],
        "client_id": member["client_id"],
        "group_instance_id": member["group_instance_id"],
        "holding": holding,
    }
