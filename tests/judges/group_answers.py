"""What one broker said of one group, in our own column names: the responses of six requests, read.

ListGroups says whether the group is there, a describe request (one for each type of group) what it is, OffsetFetch what it committed, and
heartbeats of a probing client which generation it is in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from exhume.codecs.wire import format_uuid, parse_uuid

from .kafka_json import ASSIGNMENT, decode_embedded

#: Of a consumer or share member (topic id, partition), of a classic one (topic, partition), of a streams one (role, subtopology id,
#: partition).
Assigned = frozenset[tuple[Any, ...]]

REBALANCING = frozenset({"PreparingRebalance", "CompletingRebalance", "AwaitingSync"})


@dataclass(slots=True)
class GroupAnswer:
    """What was said of one group. None means that nothing was said; columns and their values are those of our tables."""

    listed: bool
    columns: dict[str, Any] = field(default_factory=dict)
    members: dict[str, dict[str, Any]] | None = None
    assigned: dict[str, Assigned] | None = None
    target: dict[str, Assigned] | None = None
    topic_names: dict[str, str] = field(default_factory=dict)
    assignor: str | None = None
    #: (topic, partition) to the columns of its offset; only for requests that succeeded.
    offsets: dict[tuple[str, int], dict[str, Any]] | None = None
    #: The error of the whole OffsetFetch, and that of one with require_stable, in Kafka's spelling.
    fetch_error: str | None = None
    stable_fetch_error: str | None = None
    #: The same for a fetch with require_stable, and `error` of each; with it what was refused when it was asked for by name.
    stable_offsets: dict[tuple[str, int], dict[str, Any]] | None = None
    #: (topic, partition) of the offsets that a require_stable fetch refused.
    unstable: frozenset[tuple[str, int]] | None = None
    #: (topic id, partition) of the share partitions with a start offset.
    share_partitions: frozenset[tuple[str, int]] | None = None
    #: Of a streams group: subtopology id to the columns of `streams_topologies`.
    subtopologies: dict[str, dict[str, Any]] | None = None
    silences: list[str] = field(default_factory=list)


def read_group(parts: Mapping[str, Any], version: tuple[int, ...], probe: Mapping[str, Any]) -> GroupAnswer:
    """The responses of one broker about one group; `version` is its release, which tells what fields it has."""
    listing = parts.get("listed")
    answer = GroupAnswer(listed=listing is not None)
    if listing is not None:
        answer.columns["protocol_type"] = listing["protocol_type"]
        if "group_state" in listing:
            # 3.7 lists consumer groups in lower case.
            answer.columns["group_state"] = listing["group_state"][:1].upper() + listing["group_state"][1:]
        if "group_type" in listing:
            answer.columns["group_type"] = listing["group_type"]
        elif listing.get("group_state", "")[:1].islower():
            answer.columns["group_type"] = "consumer"
    for request, read in _DESCRIPTIONS.items():
        if request in parts:
            description = parts[request].get("groups", [{}])[0]
            error = parts[request].get("client_error") or description["error_code"]
            if error == "none":
                read(answer, description, version)
            else:
                answer.silences.append(f"{request}: {error}")
    _read_offsets(answer, parts, probe)
    if isinstance(probe.get("generation"), int):
        answer.columns["generation"] = probe["generation"]
    return answer


def _read_classic(answer: GroupAnswer, description: Mapping[str, Any], version: tuple[int, ...]) -> None:
    if not answer.listed or answer.columns.get("group_type") in ("consumer", "share", "streams"):
        return
    state = description["group_state"]
    if state == "Dead":
        answer.silences.append("describe: listed, but unknown in the offsets partition of its id")
        return
    listed_state = answer.columns.setdefault("group_state", state)
    if listed_state == "Stable" and state in {"Empty", *REBALANCING}:
        answer.silences.append(f"members: {state} when the group was described: a session ended after it was listed as Stable")
        return
    # Only a Stable group is described with its protocol and the bytes of its members.
    if state == "Stable":
        answer.columns["protocol"] = description["protocol_data"]
    if state in REBALANCING:
        answer.silences.append(f"members: the group is {state}, which no log tells")
        return
    answer.members, answer.assigned = {}, {}
    for member in description["members"]:
        columns = {"client_id": member["client_id"], "client_host": member["client_host"]}
        if version >= (2, 4):
            columns["group_instance_id"] = member.get("group_instance_id")
        if state == "Stable":
            if version[:2] != (2, 3):
                # 2.3 writes the assignment into both fields.
                columns["subscription_bytes"] = bytes.fromhex(member["member_metadata"])
            columns["assignment_bytes"] = bytes.fromhex(member["member_assignment"])
            if description["protocol_type"] == "consumer":
                _read_assignment(answer, member["member_id"], columns["assignment_bytes"])
        answer.members[member["member_id"]] = columns


def _read_assignment(answer: GroupAnswer, member_id: str, assignment: bytes) -> None:
    decoded = decode_embedded(ASSIGNMENT, assignment)
    if decoded is not None and answer.assigned is not None:
        topics = decoded[1]["assigned_partitions"]
        answer.assigned[member_id] = frozenset((topic["topic"], partition) for topic in topics for partition in topic["partitions"])


def _read_modern(answer: GroupAnswer, description: Mapping[str, Any]) -> None:
    for column in ("group_state", "group_epoch", "assignment_epoch"):
        answer.columns[column] = description[column]
    answer.members, answer.assigned = {}, {}


def _read_member(member: Mapping[str, Any]) -> dict[str, Any]:
    return {column: member[column] for column in ("member_epoch", "client_id", "client_host")} | {"rack_id": member.get("rack_id")}


def _read_consumer(answer: GroupAnswer, description: Mapping[str, Any], _version: tuple[int, ...]) -> None:
    _read_modern(answer, description)
    assert answer.members is not None
    assert answer.assigned is not None
    answer.target = {}
    answer.assignor = description["assignor_name"]
    for member in description["members"]:
        columns = _read_member(member) | {
            "group_instance_id": member.get("instance_id"),
            "subscribed_topics": sorted(member["subscribed_topic_names"]),
            "subscribed_regex": member.get("subscribed_topic_regex") or "",
        }
        # -1: the version of the request has no such field.
        if member.get("member_type", -1) >= 0:
            columns["is_classic"] = member["member_type"] == 0
        answer.members[member["member_id"]] = columns
        answer.assigned[member["member_id"]] = _partitions(answer, member["assignment"])
        answer.target[member["member_id"]] = _partitions(answer, member["target_assignment"])


def _read_share(answer: GroupAnswer, description: Mapping[str, Any], _version: tuple[int, ...]) -> None:
    _read_modern(answer, description)
    assert answer.members is not None
    assert answer.assigned is not None
    answer.silences.append("the assignor of a share group is a setting of the broker")
    for member in description["members"]:
        answer.members[member["member_id"]] = _read_member(member) | {"subscribed_topics": sorted(member["subscribed_topic_names"])}
        answer.assigned[member["member_id"]] = _partitions(answer, member["assignment"])


def _read_share_offsets(answer: GroupAnswer, description: Mapping[str, Any], _version: tuple[int, ...]) -> None:
    partitions = set()
    for topic in description["topics"]:
        topic_id = topic_id_of(topic["topic_id"])
        answer.topic_names[topic_id] = topic["topic_name"]
        partitions |= {(topic_id, partition["partition_index"]) for partition in topic["partitions"]}
    answer.share_partitions = frozenset(partitions)


def _read_streams(answer: GroupAnswer, description: Mapping[str, Any], _version: tuple[int, ...]) -> None:
    _read_modern(answer, description)
    assert answer.members is not None
    assert answer.assigned is not None
    answer.target = {}
    topology = description.get("topology")
    if topology is not None:
        answer.columns["topology_epoch"] = topology["epoch"]
        answer.subtopologies = {subtopology["subtopology_id"]: _subtopology(subtopology) for subtopology in topology["subtopologies"]}
    for member in description["members"]:
        answer.members[member["member_id"]] = _read_member(member) | {
            "group_instance_id": member.get("instance_id"),
            "topology_epoch": member["topology_epoch"],
            "process_id": member["process_id"],
            "user_endpoint": member.get("user_endpoint"),
            "client_tags": member["client_tags"],
        }
        answer.assigned[member["member_id"]] = frozenset(_tasks(member["assignment"]))
        answer.target[member["member_id"]] = frozenset(_tasks(member["target_assignment"]))


def _subtopology(subtopology: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "source_topics": subtopology["source_topics"],
        "repartition_sink_topics": subtopology["repartition_sink_topics"],
        "repartition_source_topics": [topic["name"] for topic in subtopology["repartition_source_topics"]],
        "state_changelog_topics": [topic["name"] for topic in subtopology["state_changelog_topics"]],
    }


_DESCRIPTIONS = {
    "describe": _read_classic,
    "consumer_describe": _read_consumer,
    "share_describe": _read_share,
    "share_offsets": _read_share_offsets,
    "streams_describe": _read_streams,
}


def _partitions(answer: GroupAnswer, assignment: Mapping[str, Any]) -> Assigned:
    partitions = set()
    for topic in assignment["topic_partitions"]:
        topic_id = topic_id_of(topic["topic_id"])
        answer.topic_names[topic_id] = topic["topic_name"]
        partitions |= {(topic_id, partition) for partition in topic["partitions"]}
    return frozenset(partitions)


def _tasks(assignment: Mapping[str, Any]) -> Iterator[tuple[str, str, int]]:
    for role in ("active", "standby", "warmup"):
        for task in assignment[f"{role}_tasks"]:
            for partition in task["partitions"]:
                yield role, task["subtopology_id"], partition


def _read_offsets(answer: GroupAnswer, parts: Mapping[str, Any], probe: Mapping[str, Any]) -> None:
    fetched = parts.get("offsets")
    if fetched is None:
        return
    # Up to 0.10.1 the response has no error of its own.
    answer.fetch_error = (fetched.get("error_code") or "none").upper()
    stable = parts.get("offsets_stable")
    if stable is not None:
        stable = fetched if stable == "same" else stable
        answer.stable_fetch_error = stable["error_code"].upper()
    if answer.fetch_error != "NONE":
        answer.silences.append(f"offsets: {fetched['error_code']}")
        return
    answer.offsets = _offset_columns(fetched)
    if answer.stable_fetch_error != "NONE" or stable is None:
        return
    answer.stable_offsets = _offset_columns(stable)
    for row in stable["offsets"]:
        answer.stable_offsets[row["topic"], row["partition_index"]]["error"] = (row.get("error_code") or "none").upper()
    for name in probe.get("stable", ()):
        topic, _, partition = name.rpartition("-")
        answer.stable_offsets.setdefault((topic, int(partition)), {"error": "UNSTABLE_OFFSET_COMMIT"})
    answer.unstable = frozenset(key for key, columns in answer.stable_offsets.items() if columns["error"] == "UNSTABLE_OFFSET_COMMIT")


def _offset_columns(fetched: Mapping[str, Any]) -> dict[tuple[str, int], dict[str, Any]]:
    offsets = {}
    for row in fetched["offsets"]:
        columns = {"committed_offset": row["committed_offset"], "metadata": row["metadata"]}
        if "committed_leader_epoch" in row:
            columns["leader_epoch"] = None if row["committed_leader_epoch"] == -1 else row["committed_leader_epoch"]
        offsets[row["topic"], row["partition_index"]] = columns
    return offsets


def topic_id_of(text: str) -> str:
    """A topic id of an answer, with dashes, as our tables spell it."""
    return format_uuid(parse_uuid(text))
