"""The `uniform` assignor of the coordinator, version by version. It uses one method for equal subscriptions and another where they differ.

    3.7         racks count
    3.8 - 3.9   members are filled one by one; unequal subscriptions: partitions are moved
    4.0         unequal subscriptions: loads are levelled topic by topic
    4.1 -       equal subscriptions: a member keeps the extra partition that it has

Source: UniformAssignor, Kafka 3.7 to 4.3.
"""

from __future__ import annotations

from exhume.analysis.assignors.coordinator_view import CoordinatorView
from exhume.analysis.assignors.group import GroupAssignment, GroupSpec
from exhume.analysis.assignors.uniform_equal import dealt_in_turn, filled_one_by_one
from exhume.analysis.assignors.uniform_levels import levelled
from exhume.analysis.assignors.uniform_moves import moved_about


def uniform_3_7(spec: GroupSpec) -> GroupAssignment:
    """Assign as `uniform` of the coordinator 3.7. Topic names that do not exist do not make subscriptions differ."""
    view = CoordinatorView(spec)
    known = [set(topics) for topics in view.topics.values()]
    return dealt_in_turn(view) if all(topics == known[0] for topics in known) else moved_about(view, rack_aware=True)


def uniform_3_8(spec: GroupSpec) -> GroupAssignment:
    """Assign as `uniform` of the coordinators 3.8 and 3.9."""
    view = CoordinatorView(spec)
    return filled_one_by_one(view, keeps_extras=False) if view.subscriptions_equal() else moved_about(view, rack_aware=False)


def uniform_4_0(spec: GroupSpec) -> GroupAssignment:
    """Assign as `uniform` of the coordinator 4.0."""
    view = CoordinatorView(spec)
    return filled_one_by_one(view, keeps_extras=False) if view.subscriptions_equal() else levelled(view)


def uniform_4_1(spec: GroupSpec) -> GroupAssignment:
    """Assign as `uniform` of the coordinator since 4.1."""
    view = CoordinatorView(spec)
    return filled_one_by_one(view, keeps_extras=True) if view.subscriptions_equal() else levelled(view)
