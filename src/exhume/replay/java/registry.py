"""The group object that a record changes, and the effect if the id belongs to a group of another type.

    record, group         none     same   simple classic   other
    offset value          create   use    use              use
    classic value         create   replace (a group of any type)
    classic tombstone     -        remove (a group of any type)
    consumer, streams     create*  use    replaced*        refused
    share                 create*  use    refused          refused

    * if the profile has it: `creating_types`, `missing_aborts`, `replaces_simple`; a tombstone creates nothing

A refusal ends a strict load. A lenient load continues: a value replaces the group, and a tombstone has no effect.

Source: GroupMetadataManager.getOrMaybeCreatePersisted*Group, Kafka 4.4.
"""

from __future__ import annotations

from typing import TypeVar

from exhume.replay.decode import ReplayRecord
from exhume.replay.load_problems import LoadProblem, ProblemKind
from exhume.replay.partition_state import ClassicGroupState, ConsumerGroupState, Group, ShareGroupState, StreamsGroupState
from exhume.replay.profiles import JavaProfile
from exhume.replay.refusals import Refusals

ModernGroupT = TypeVar("ModernGroupT", ConsumerGroupState, ShareGroupState, StreamsGroupState)


def group_for(
    record: ReplayRecord, wanted: type[ModernGroupT], groups: dict[str, Group], profile: JavaProfile, refusals: Refusals
) -> ModernGroupT | None:
    """The group of the wanted type that this record acts on; None if the record changes no group."""
    group_id = record.key["group"]
    present = groups.get(group_id)
    if isinstance(present, wanted):
        return present
    if present is None:
        creates = record.value is not None and record.record_type in profile.creating_types
        if not creates and record.record_type in profile.missing_aborts:
            refusals.refuse(
                LoadProblem(ProblemKind.GROUP_MISSING, record_offset=record.record_offset, group=group_id, record_type=record.record_type)
            )
        # A lenient load creates the group of a value in all releases.
        if record.value is None:
            return None
    elif not (isinstance(present, ClassicGroupState) and present.is_simple and wanted.group_type in profile.replaces_simple):
        is_simple = isinstance(present, ClassicGroupState) and present.is_simple
        refusals.refuse(
            LoadProblem(
                ProblemKind.GROUP_IS_SIMPLE if is_simple else ProblemKind.GROUP_OF_OTHER_TYPE,
                record_offset=record.record_offset,
                group=group_id,
                group_type=present.group_type,
                record_type=record.record_type,
                record_group_type=wanted.group_type,
            )
        )
        if record.value is None:
            return None
    created = wanted(group_id, record.record_offset, profile.initial_epoch, profile.initial_epoch)
    if isinstance(created, StreamsGroupState):
        created.validated_topology_epoch = profile.initial_validated_topology_epoch
    groups[group_id] = created
    return created
