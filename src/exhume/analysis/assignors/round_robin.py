"""The `roundrobin` assignor of consumers: it gives the partitions of all topics to members in turn.

    0.10 - 2.3   members by member id
    2.4 -        static members first

Source: RoundRobinAssignor, Kafka 0.10 to 4.3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from exhume.analysis.assignors.group import Assigned, GroupAssignment, GroupSpec, MemberSpec, by_member_id, static_first
from exhume.analysis.assignors.java_order import sort_key


def round_robin_by_member_id(spec: GroupSpec) -> GroupAssignment:
    """Assign as `roundrobin` up to 2.3."""
    return _dealt(spec, by_member_id)


def round_robin_static_first(spec: GroupSpec) -> GroupAssignment:
    """Assign as `roundrobin` since 2.4."""
    return _dealt(spec, static_first)


def _dealt(spec: GroupSpec, order: Callable[[MemberSpec], Any]) -> GroupAssignment:
    members = sorted(spec.in_hash_order(), key=order)
    topics = sorted({topic for member in members for topic in spec.known_topics(member)}, key=sort_key)
    subscriptions = [frozenset(member.topics) for member in members]
    assigned: Assigned = {member.member_id: [] for member in members}
    turn = 0
    for topic in topics:
        for partition in range(spec.partition_counts[topic]):
            while topic not in subscriptions[turn]:
                turn = (turn + 1) % len(members)
            assigned[members[turn].member_id].append((topic, partition))
            turn = (turn + 1) % len(members)
    return GroupAssignment(assigned)
