"""Offsets that stayed when others of their topic were removed. The deletion of a topic leaves none."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from exhume.analysis.detectors.commit_loops.columns import CommitColumn, KeyColumn
from exhume.analysis.detectors.key_histories import KeyHistories
from exhume.analysis.number_columns import Int64s
from exhume.analysis.removals.evidence import KeptOffset


def oldest_survivors(histories: KeyHistories) -> dict[str, list[KeptOffset]]:
    """Return, for each topic with a tombstone, the oldest offset at the end of this log, and the oldest one of another group."""
    names = histories.names
    if not histories.removals:
        return {}
    topic_of, partition_of = names.topics_and_partitions(np.arange(names.key_count))
    group_of = names.groups_of_keys()
    keys = np.arange(names.key_count)
    is_held = (histories.numbers(KeyColumn.HAS_VALUE, keys) != 0) & (histories.numbers(KeyColumn.IS_REMOVED, keys) == 0)
    held = np.flatnonzero(is_held & np.isin(topic_of, topic_of[np.array([*histories.removals], np.int64)]))
    held = held[np.lexsort((histories.last[held, CommitColumn.OFFSET], topic_of[held]))]
    oldest = held[_firsts(topic_of[held])]
    # The group of the oldest offset, by topic.
    group_with_oldest = np.full(len(names.topics()), -1, np.int64)
    group_with_oldest[topic_of[oldest]] = group_of[oldest]
    of_others = held[group_of[held] != group_with_oldest[topic_of[held]]]
    groups, topics = [*names.groups], names.topics()
    found: dict[str, list[KeptOffset]] = {}
    for key in (*oldest.tolist(), *of_others[_firsts(topic_of[of_others])].tolist()):
        topic = topics[int(topic_of[key])]
        kept = KeptOffset(groups[int(group_of[key])], topic, int(partition_of[key]), int(histories.last[key, CommitColumn.OFFSET]))
        found.setdefault(topic, []).append(kept)
    return found


def _firsts(ordered: Int64s) -> npt.NDArray[Any]:
    """Return the first position of each different number in sorted numbers."""
    return np.flatnonzero(np.diff(ordered, prepend=-1))
