"""What a real broker said about its groups, in our own column names.

A broker that had loaded a log was asked ListGroups, then for each group the describe request of its type, OffsetFetch with and without
require_stable, and DescribeProducers; for synthetic logs also heartbeats, to find generations (`probe`). The answers are kept as JSON in
three dialects: full responses (`after-R`, `restarted-R`, `before`), responses without their empty fields (hand-made logs, one offsets
partition each), and responses with `load_failures`, `probe` and `"offsets_stable": "same"` (random logs).

`read_answers` turns all three into an `Expectation`: for each group the columns of our tables that the broker showed, and nothing else.
What it did not show is missing, and where that needs a reason, `GroupAnswer.silences` has it.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from exhume.codecs.wire import format_uuid, parse_uuid

from .kafka_json import ASSIGNMENT, decode_embedded

Coordinator = Literal["classic", "java"]

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
    #: (topic, partition) of the offsets that a require_stable fetch refused.
    unstable: frozenset[tuple[str, int]] | None = None
    #: (topic id, partition) of the share partitions with a start offset.
    share_partitions: frozenset[tuple[str, int]] | None = None
    #: Of a streams group: subtopology id to the columns of `streams_topologies`.
    subtopologies: dict[str, dict[str, Any]] | None = None
    silences: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """The answers of one broker about one log.

    `kind` is after (a fresh broker that loaded the log; the topics of the groups exist there only for random logs), restarted (the whole
    log directory, topics and all), before (the writing broker, which may know more than its log) or expired (after an expiry pass).
    """

    label: str
    release: str
    coordinator: Coordinator
    kind: Literal["after", "restarted", "before", "expired"]
    offsets_partition_count: int
    groups: Mapping[str, GroupAnswer]
    #: offsets partition to the broker's own words on why it could not load it.
    failed_loads: Mapping[int, str]
    #: offsets partition to an error that the broker logged behind a load that was complete.
    late_errors: Mapping[int, str]
    refused_to_start: str | None
    #: False where ListGroups itself failed: a missing group proves nothing then.
    is_list_complete: bool
    #: False where only an excerpt of the broker's own log was kept: a load may have failed without a trace in `failed_loads`.
    is_log_complete: bool
    #: False where offsets were fetched for all topics only: partitions that are pending and nothing else do not appear then.
    is_pending_complete: bool
    #: Topic ids that the broker had, as far as its answers or the story tell.
    existing_topic_ids: frozenset[str]
    #: (offsets partition, producer id, epoch, first offset) of what the log layer of the broker holds open. None: not asked.
    open_transactions: frozenset[tuple[int, int, int, int]] | None
    #: What the broker appended to the log before it was asked: the state is not that of the bytes alone.
    appended: tuple[str, ...]

    @property
    def version(self) -> tuple[int, ...]:
        """The release as numbers."""
        return release_numbers(self.release)


def release_numbers(release: str) -> tuple[int, ...]:
    """`4.3.0` as (4, 3, 0), so that releases compare."""
    return tuple(int(number) for number in release.split("."))


def offsets_partition_of(group: str, count: int) -> int:
    """The offsets partition that a coordinator looks for this group in: Java's String.hashCode without its sign, modulo the count."""
    units = group.encode("utf-16-be", "surrogatepass")
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    signed = value - (1 << 32) if value >> 31 else value
    return (0 if signed == -(1 << 31) else abs(signed)) % count


def read_json(path: Path) -> dict[str, Any]:
    """A JSON file, plain or gzip."""
    raw = path.read_bytes()
    value: dict[str, Any] = json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)
    return value


def read_answers(answer: Mapping[str, Any], label: str, story: str, scenario: Mapping[str, Any]) -> Expectation:
    """This answer as an expectation.

    Args:
        answer: the JSON, read.
        label: the name of its file without suffixes, such as `after-4.3.0`.
        story: the name of the directory of its story, such as `3.9.1-expiry-scala`.
        scenario: the story itself: number of offsets partitions, topic ids.
    """
    kind, _, rest = label.partition("-")
    release = answer.get("version") or answer["release"]
    version = release_numbers(release)
    probes = answer.get("probe", {})
    groups = {group: _group_answer(parts, version, probes.get(group, {})) for group, parts in answer.get("groups", {}).items() if parts}
    groups |= {group: _committed_only(offsets) for group, offsets in answer.get("committed", {}).items()}
    failures, late = _load_errors(answer)
    refused = answer.get("broker_refused_to_start")
    return Expectation(
        label=label,
        release=release,
        coordinator=_coordinator(answer, kind, rest, story),
        kind=kind,  # type: ignore[arg-type]
        offsets_partition_count=scenario["partitions"],
        groups=groups,
        failed_loads=failures,
        late_errors=late,
        refused_to_start="\n".join(refused) if refused else None,
        is_list_complete=answer.get("list_error") == "none",
        is_log_complete="partition" not in answer,
        is_pending_complete="probe" in answer
        or any((group.unstable or frozenset()) - (group.offsets or {}).keys() for group in groups.values()),
        existing_topic_ids=_existing_topic_ids(groups.values(), scenario),
        open_transactions=_open_transactions(answer),
        appended=tuple(answer.get("appended", ())),
    )


def _coordinator(answer: Mapping[str, Any], kind: str, rest: str, story: str) -> Coordinator:
    named = answer.get("coordinator")
    if named:
        return "java" if named == "new" else "classic"
    if rest.endswith(("-new", "-classic")):
        return "java" if rest.endswith("-new") else "classic"
    release = answer.get("version") or answer["release"]
    if release_numbers(release) >= (4,):
        return "java"
    # 3.7.2 and 3.9.1 have both, and their own stories ran on the Java one unless their name says scala.
    is_own_story = release in ("3.7.2", "3.9.1") and story.startswith(release) and "scala" not in story
    return "java" if is_own_story else "classic"


_FAILED = re.compile(
    r"(?:Error (?:in )?loading offsets from|Failed to load metadata from) \[?__consumer_offsets[-,](\d+)"
    # A load that a change of leaders interrupted says nothing about the log: it is tried again.
    r"(?!.* is no longer the leader)"
)
_LATE = re.compile(r"Unexpected unload of active group .* while loading partition __consumer_offsets-(\d+)")


def _load_errors(answer: Mapping[str, Any]) -> tuple[dict[int, str], dict[int, str]]:
    """Offsets partitions that were not loaded, and those where the Scala coordinator only complained behind a complete load."""
    failures = {int(partition): line for partition, line in answer.get("load_failures", {}).items()}
    late = {partition: line for partition, line in failures.items() if _LATE.search(line)}
    if "load_failures" not in answer:
        lines = answer.get("log_lines", ())
        # Hand-made logs lie in one broker together: only one partition is the answer's own.
        own = answer.get("partition")
        for pattern, errors in ((_FAILED, failures), (_LATE, late)):
            for line in lines:
                match = pattern.search(line)
                if match and own in (None, int(match[1])):
                    errors.setdefault(int(match[1]), line)
        unled = re.search(r"not led or not loaded: \[([\d, ]*)\]", answer.get("load", ""))
        for partition in unled[1].split(",") if unled else ():
            failures.setdefault(int(partition), answer["load"])
    return {partition: line for partition, line in failures.items() if partition not in late}, late


def _open_transactions(answer: Mapping[str, Any]) -> frozenset[tuple[int, int, int, int]] | None:
    if "topics" not in answer.get("producers", {}):
        return None
    return frozenset(
        (partition["partition_index"], producer["producer_id"], producer["producer_epoch"], producer["current_txn_start_offset"])
        for topic in answer["producers"]["topics"]
        for partition in topic["partitions"]
        for producer in partition["active_producers"]
        if producer["current_txn_start_offset"] >= 0
    )


def _existing_topic_ids(groups: Iterable[GroupAnswer], scenario: Mapping[str, Any]) -> frozenset[str]:
    seen = {topic_id for group in groups for topic_id in group.topic_names}
    if scenario.get("synthetic"):
        seen |= {_topic_id(text) for text in scenario.get("topic_ids", {}).values()}
    return frozenset(seen)


def _topic_id(text: str) -> str:
    return format_uuid(parse_uuid(text))


def _committed_only(offsets: Mapping[str, int]) -> GroupAnswer:
    """The shortest dialect: `topic-partition` to committed offset."""
    commits = {}
    for name, committed_offset in offsets.items():
        topic, _, partition = name.rpartition("-")
        commits[topic, int(partition)] = {"committed_offset": committed_offset}
    return GroupAnswer(listed=bool(commits), offsets=commits)


def _group_answer(parts: Mapping[str, Any], version: tuple[int, ...], probe: Mapping[str, Any]) -> GroupAnswer:
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
        answer.silences.append("describe: listed, but unknown where its id leads to")
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
        topic_id = _topic_id(topic["topic_id"])
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
        topic_id = _topic_id(topic["topic_id"])
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
    if fetched.get("error_code") not in (None, "none"):
        answer.silences.append(f"offsets: {fetched['error_code']}")
        return
    answer.offsets = {}
    for row in fetched["offsets"]:
        columns = {"committed_offset": row["committed_offset"], "metadata": row["metadata"]}
        if "committed_leader_epoch" in row:
            columns["leader_epoch"] = None if row["committed_leader_epoch"] == -1 else row["committed_leader_epoch"]
        answer.offsets[row["topic"], row["partition_index"]] = columns
    stable = parts.get("offsets_stable")
    if stable == "same":
        answer.unstable = frozenset()
    elif stable is not None and stable["error_code"] == "none":
        answer.unstable = frozenset(
            (row["topic"], row["partition_index"]) for row in stable["offsets"] if row.get("error_code") == "unstable_offset_commit"
        )
    if "stable" in probe and answer.unstable is not None:
        probed = frozenset((name.rpartition("-")[0], int(name.rpartition("-")[2])) for name in probe["stable"])
        answer.unstable |= probed
