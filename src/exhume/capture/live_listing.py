"""The live answers of the coordinators about their groups, beside the records: a listing that `diagnose` compares with the log."""

from __future__ import annotations

import csv
import json
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from io import StringIO
from typing import Any

from kafka.protocol.admin import DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.consumer import OffsetFetchRequest

from exhume.capture.cluster import EARLIEST, GROUP_DENIED, LATEST, RETRIABLE, TOPIC_DENIED, Cluster, ClusterInfo, Leader, Unreachable
from exhume.capture.messages import describe_modern_group
from exhume.codecs.offsets_topic import offsets_partition_of

_ATTEMPTS = 5
_PARTITIONS_PER_REQUEST = 5000
_HEADINGS = ("TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID")


@dataclass(slots=True)
class Listing:
    """The answers about each group, and about the topics of their offsets; `warnings` names those that are missing."""

    groups: list[dict[str, Any]] = field(default_factory=list)
    topics: ClusterInfo | None = None
    start_offsets: dict[tuple[str, int], int] = field(default_factory=dict)
    end_offsets: dict[tuple[str, int], int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def committed(self) -> Iterator[tuple[str, str, int, int]]:
        """Group, topic, partition and committed offset of each commit."""
        for group in self.groups:
            for row in group.get("offsets", {}).get("offsets", ()):
                if not row["error_code"] and row["committed_offset"] >= 0:
                    yield group["group"], row["topic"], row["partition_index"], row["committed_offset"]


def take_listing(
    cluster: Cluster, leaders: Callable[[], Mapping[int, Leader]], partition_count: int, wanted: Collection[str] | None
) -> Listing:
    """Ask each coordinator for its groups, their members and offsets.

    `leaders` returns the leaders of the offsets topic, which coordinate its groups. `wanted` are the only groups to ask for; None: all.

    Raises:
        Unreachable: a coordinator gave no answer, after several attempts.
    """
    listing = Listing()
    for row in _listed(cluster, listing, wanted):
        listing.groups.append({"group": row["group_id"], "listed": row})
    listing.groups.sort(key=lambda group: group["group"])
    asker = _Asker(cluster, leaders, partition_count)
    _describe(asker, listing)
    for group in listing.groups:
        name = group["group"]
        group["offsets"] = asker.ask(name, partial(_offsets, cluster, name, require_stable=False))
        group["offsets_stable"] = asker.ask(name, partial(_offsets, cluster, name, require_stable=True))
        if group["offsets"]["error_code"] == GROUP_DENIED:
            listing.warnings.append(f"the offsets of group {name!r} are missing: the client needs DESCRIBE on this group")
    return listing


class _Asker:
    """Asks the coordinator of a group, and again where it has moved or loads."""

    def __init__(self, cluster: Cluster, leaders: Callable[[], Mapping[int, Leader]], partition_count: int) -> None:
        self.cluster = cluster
        self._refresh = leaders
        self._leaders = leaders()
        self._count = partition_count

    def node(self, group: str) -> int:
        leader = self._leaders.get(offsets_partition_of(group, self._count))
        if leader is None or leader.node_id < 0:
            raise Unreachable(f"no leader for the offsets partition of group {group!r}")
        return leader.node_id

    def ask(self, group: str, request: Callable[[int], dict[str, Any]]) -> dict[str, Any]:
        answer: dict[str, Any] = {}
        for attempt in range(_ATTEMPTS):
            if attempt:
                time.sleep(0.2 * attempt)
                self._leaders = self._refresh()
            try:
                answer = request(self.node(group))
            except Unreachable:
                if attempt == _ATTEMPTS - 1:
                    raise
                continue
            if answer["error_code"] not in RETRIABLE:
                break
        return answer


def _listed(cluster: Cluster, listing: Listing, wanted: Collection[str] | None) -> Iterator[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for node in cluster.info().brokers:
        response = cluster.ask(node, ListGroupsRequest(states_filter=[], types_filter=[]))
        if response.error_code:
            listing.warnings.append(f"broker {node} does not list its groups: error {response.error_code}")
        for row in response.groups:
            found[row.group_id] = {
                "group_id": row.group_id,
                "protocol_type": row.protocol_type,
                "group_state": row.group_state or None,
                "group_type": row.group_type or None,
            }
    if not found:
        listing.warnings.append("the brokers list no group: there is none, or the client needs DESCRIBE on the groups")
    return (row for name, row in found.items() if wanted is None or name in wanted)


def _describe(asker: _Asker, listing: Listing) -> None:
    for group in listing.groups:
        group_type = str(group["listed"]["group_type"] or "classic").lower()
        name = group["group"]
        if group_type == "classic":
            described = asker.ask(name, partial(_describe_classic, asker.cluster, name))
        else:
            described = asker.ask(name, partial(describe_modern_group, asker.cluster, group_type, name))
        group["described"] = described


def _describe_classic(cluster: Cluster, group: str, node: int) -> dict[str, Any]:
    response = cluster.ask(node, DescribeGroupsRequest(groups=[group], include_authorized_operations=False))
    one = response.groups[0]
    return {
        "error_code": one.error_code,
        "group_state": one.group_state,
        "protocol_type": one.protocol_type,
        "protocol_data": one.protocol_data,
        "members": [
            {
                "member_id": member.member_id,
                "group_instance_id": member.group_instance_id,
                "client_id": member.client_id,
                "client_host": member.client_host,
                "member_metadata": bytes(member.member_metadata or b"").hex(),
                "member_assignment": bytes(member.member_assignment or b"").hex(),
            }
            for member in one.members
        ],
    }


def _offsets(cluster: Cluster, group: str, node: int, *, require_stable: bool) -> dict[str, Any]:
    # Version 7 names one group and its topics by name; all releases up to 4.4 answer it.
    response = cluster.ask(node, OffsetFetchRequest(max_version=7, group_id=group, topics=None, require_stable=require_stable))
    rows = [
        {
            "topic": topic.name,
            "partition_index": one.partition_index,
            "committed_offset": one.committed_offset,
            "committed_leader_epoch": one.committed_leader_epoch,
            "metadata": one.metadata,
            "error_code": one.error_code,
        }
        for topic in response.topics
        for one in topic.partitions
    ]
    return {"error_code": response.error_code, "offsets": sorted(rows, key=lambda row: (row["topic"], row["partition_index"]))}


def take_topics(cluster: Cluster, listing: Listing) -> None:
    """Add all topics to the listing, with first and last offsets of those in its commits.

    The last offsets have to come after the last record of the log: an earlier one may be lower than a commit.

    Raises:
        Unreachable: a leader gave no answer.
    """
    names = {topic for _, topic, _, _ in listing.committed()}
    listing.topics = cluster.info(None)
    committed = cluster.info(names)
    by_leader: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for topic in committed.topics.values():
        if topic.error_code == TOPIC_DENIED:
            listing.warnings.append(f"topic {topic.name!r} is missing: the client needs DESCRIBE on this topic")
        for number, leader in topic.leaders.items():
            if leader.node_id >= 0:
                by_leader[leader.node_id][topic.name].append(number)
    for node, partitions in by_leader.items():
        for chunk in _chunks(partitions):
            for which, into in ((LATEST, listing.end_offsets), (EARLIEST, listing.start_offsets)):
                answers = cluster.offsets(node, chunk, which)
                into.update({key: offset for key, (error_code, offset) in answers.items() if not error_code})


def _chunks(partitions: Mapping[str, list[int]]) -> Iterator[dict[str, list[int]]]:
    chunk: dict[str, list[int]] = {}
    size = 0
    for topic, numbers in partitions.items():
        chunk[topic] = numbers
        size += len(numbers)
        if size >= _PARTITIONS_PER_REQUEST:
            yield chunk
            chunk, size = {}, 0
    if chunk:
        yield chunk


# The files that `diagnose` takes


def topics_csv(info: ClusterInfo) -> str:
    """The topics as `--topics` takes them."""
    text = StringIO(newline="")
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(("topic", "topic_id", "partitions", "racks"))
    for topic in sorted(info.topics.values(), key=lambda topic: topic.name):
        if topic.leaders and not topic.error_code:
            replicas = [leader.replicas for _, leader in sorted(topic.leaders.items())]
            racks = [sorted({rack for node in nodes if (rack := info.racks.get(node))}) for nodes in replicas]
            shown = ";".join("|".join(names) for names in racks) if any(racks) and len(racks) > 1 else "|".join(racks[0])
            rows.writerow((topic.name, topic.topic_id or "", len(topic.leaders), shown))
    return text.getvalue()


def offsets_text(offsets: Mapping[tuple[str, int], int]) -> str:
    """Offsets as kafka-get-offsets.sh prints them."""
    return "".join(f"{topic}:{partition}:{offset}\n" for (topic, partition), offset in sorted(offsets.items()))


def live_text(listing: Listing) -> str:
    """The committed offsets as kafka-consumer-groups.sh prints them. A group with a line end in its name is left out."""
    rows = [row for row in listing.committed() if "\n" not in row[0] and "\r" not in row[0]]
    width = max([len("GROUP"), *(_units(group) for group, *_ in rows)]) + 1
    topic_width = max([len("TOPIC"), *(len(row[1]) for row in rows)]) + 1
    lines = [f"{'GROUP':<{width}}{'TOPIC':<{topic_width}}" + " ".join(f"{name:<15}" for name in _HEADINGS[1:])]
    for group, topic, partition, committed in rows:
        end = listing.end_offsets.get((topic, partition))
        cells = (partition, committed, "-" if end is None else end, "-" if end is None else end - committed, "-", "-", "-")
        padding = " " * (width - _units(group))
        lines.append(f"{group}{padding}{topic:<{topic_width}}" + " ".join(f"{cell!s:<15}" for cell in cells))
    return "\n".join(line.rstrip(" ") for line in lines) + "\n"


def groups_json(listing: Listing) -> str:
    """All answers about the groups."""
    return json.dumps(listing.groups, indent=1) + "\n"


def _units(text: str) -> int:
    """The width of a text in Java's characters, in which the tool pads its columns."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
