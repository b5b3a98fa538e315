"""The `range` assignor of the coordinator.

    3.7 - 3.8   sticky: members keep their lowest partitions of each topic, up to an equal share
    3.9 -       not sticky: the same as that of consumers since 2.4 (`client_range.range_static_first`)

Source: RangeAssignor of the group coordinator, Kafka 3.7 to 4.3.
"""

from __future__ import annotations

from exhume.analysis.assignors.coordinator_view import CoordinatorView, Held, plan_of
from exhume.analysis.assignors.group import GroupAssignment, GroupSpec


def range_sticky(spec: GroupSpec) -> GroupAssignment:
    """Assign as `range` of the coordinators 3.7 and 3.8."""
    view = CoordinatorView(spec)
    held: dict[str, Held] = {member.member_id: {} for member in view.members}
    for topic in view.subscribed():
        subscribers = [member.member_id for member in view.members if topic in view.topics[member.member_id]]
        count = spec.partition_counts[topic]
        share, extras = divmod(count, len(subscribers))
        kept: set[int] = set()
        missing: dict[str, int] = {}
        for member_id in subscribers:
            before = sorted(view.previous[member_id].get(topic, ()))
            own = before[:share]
            if len(before) > share and extras:
                own = before[: share + 1]
                extras -= 1
            else:
                missing[member_id] = share - len(before)
            held[member_id][topic] = own
            kept.update(own)
        left = [partition for partition in range(count) if partition not in kept]
        for member_id, wanted in missing.items():
            if extras:
                extras -= 1
                wanted += 1
            if wanted > 0:
                held[member_id][topic] = [*held[member_id][topic], *left[:wanted]]
                left = left[wanted:]
    return plan_of(held)
