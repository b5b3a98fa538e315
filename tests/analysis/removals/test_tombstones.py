"""Whether another group lost offsets at about the same time: counted, and by a look at each tombstone."""

from __future__ import annotations

import pickle

from hypothesis import given
from hypothesis import strategies as st

from exhume.analysis.removals.causes import WINDOWS
from exhume.analysis.removals.tombstones import OffsetTombstone, OffsetTombstones, RemovalMoment

TIMES_MS = st.sampled_from([0, 1, WINDOWS.together_ms - 1, WINDOWS.together_ms, WINDOWS.together_ms + 1, 9_999, 10_000, 10_001, 20_000])
TOMBSTONES = st.builds(
    OffsetTombstone,
    timestamp_ms=TIMES_MS,
    group=st.sampled_from("abc"),
    topic=st.sampled_from(["orders", "payments"]),
    offsets_partition=st.sampled_from([None, 0, 7]),
    record_offset=st.integers(0, 9),
    is_with_group=st.booleans(),
)
MOMENTS = st.builds(
    RemovalMoment,
    group=st.sampled_from("abc"),
    topic=st.sampled_from(["orders", "payments"]),
    offsets_partition=st.sampled_from([None, 0, 7]),
    timestamp_ms=TIMES_MS,
)


def is_same_act(each: OffsetTombstone, moment: RemovalMoment) -> bool:
    return each.group != moment.group and abs(each.timestamp_ms - moment.timestamp_ms) <= WINDOWS.together_ms


def is_topic_deletion(each: OffsetTombstone, moment: RemovalMoment) -> bool:
    if each.group == moment.group or each.topic != moment.topic:
        return False
    if each.offsets_partition == moment.offsets_partition:
        return is_same_act(each, moment)
    return abs(each.timestamp_ms - moment.timestamp_ms) <= WINDOWS.topic_deletion_ms


@given(st.lists(TOMBSTONES, max_size=12), MOMENTS, st.booleans(), st.booleans())
def test_the_same_topic_of_another_group_is_found_where_it_is(
    tombstones: list[OffsetTombstone], moment: RemovalMoment, is_one_act: bool, has_group_stayed: bool
) -> None:
    expected = [
        each
        for each in tombstones
        if is_topic_deletion(each, moment)
        and (is_same_act(each, moment) or not is_one_act)
        and not (has_group_stayed and each.is_with_group)
    ]

    found = OffsetTombstones(tombstones).of_same_topic(moment, is_one_act=is_one_act, has_group_stayed=has_group_stayed)

    assert found in expected if expected else found is None
    if found is not None and any(each.offsets_partition == moment.offsets_partition for each in expected):
        assert found.offsets_partition == moment.offsets_partition


@given(st.lists(TOMBSTONES, max_size=12), MOMENTS)
def test_another_topic_of_another_group_is_found_where_it_is(tombstones: list[OffsetTombstone], moment: RemovalMoment) -> None:
    expected = [each for each in tombstones if is_same_act(each, moment) and each.topic != moment.topic]

    found = OffsetTombstones(tombstones).of_other_topics(moment)

    assert found in expected if expected else found is None
    if found is not None and any(each.offsets_partition == moment.offsets_partition for each in expected):
        assert found.offsets_partition == moment.offsets_partition


def test_they_travel_between_processes() -> None:
    tombstone = OffsetTombstone(5, "a", "orders", 0, 1)
    tombstones = OffsetTombstones([tombstone])
    moment = RemovalMoment("b", "orders", 0, 5)
    assert tombstones.of_same_topic(moment) == tombstone

    assert pickle.loads(pickle.dumps(tombstones)).of_same_topic(moment) == tombstone
    assert pickle.loads(pickle.dumps(OffsetTombstones())).of_same_topic(moment) is None
