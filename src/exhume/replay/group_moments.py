"""The state of one group in a coordinator before some of its records.

Groups do not affect each other, so one pass suffices, over the batches with a record of the group and the end-transaction markers only. A
refused record does not end the pass: a working broker held this state, whether or not a load today would give it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection
from dataclasses import replace

from exhume.codecs.log_directory import PartitionDirectory
from exhume.replay.broker_log import LoadedBatch, salvaged_batches
from exhume.replay.partition_load import new_load
from exhume.replay.partition_state import PartitionState
from exhume.replay.profiles import BrokerProfile
from exhume.replay.reading import LoadInputs
from exhume.replay.refusals import Refusals
from exhume.replay.topic_names import TopicNames

_NO_END = 2**63


def holdings_in_front(
    partition: PartitionDirectory, own: Collection[int], moments: Collection[int], profile: BrokerProfile, inputs: LoadInputs
) -> dict[int, PartitionState]:
    """The state of a group before each of these record offsets; without offsets that no batch has.

    `own` are the record offsets of all its records in this partition, `moments` some of them.
    """
    record_offsets, wanted = sorted(own), sorted(moments)
    loader = new_load(profile, Refusals(lenient=True), TopicNames(), _NO_END, inputs)
    found: dict[int, PartitionState] = {}
    first_offset = 0
    for batch in salvaged_batches(partition):
        base_offset = first_offset if batch.batch.base_offset is None else batch.batch.base_offset
        first_offset = batch.last_offset + 1
        if batch.is_control:
            loader.apply(batch)
            continue
        mine = record_offsets[bisect_left(record_offsets, base_offset) : bisect_right(record_offsets, batch.last_offset)]
        if not mine:
            continue
        own_part = _only(batch, frozenset(mine))
        for moment in wanted[bisect_left(wanted, base_offset) : bisect_right(wanted, batch.last_offset)]:
            fork = loader.fork()
            if mine[0] < moment:
                fork.apply(_only(batch, frozenset(offset for offset in mine if offset < moment)))
            found[moment] = fork.snapshot()
        loader.apply(own_part)
    return found


def _only(batch: LoadedBatch, record_offsets: frozenset[int]) -> LoadedBatch:
    """This batch with these records alone."""
    return replace(batch, read=lambda: (record for record in batch.read() if record.record_offset in record_offsets))
