"""Hypothesis strategies for logs of one offsets partition: small universes, so that everything meets everything.

A log is a list of `Written` batches, drawn as the story of a few writers, often without what a cleaner takes out of it. Most of it is
healthy; the rest is what real brokers were seen to trip over.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from exhume.codecs.embedded import encode_subscription
from exhume.codecs.record_types import RECORD_TYPES, encode_control_record, encode_key, encode_value
from tests.cleaner import compacted
from tests.written_batches import NO_PRODUCER, KeyValue, Written

GROUPS = ("billing", "carts", "refunds")
TOPICS = ("orders", "returns")
TOPIC_IDS = ("AQIDBAUGBwgJCgsMDQ4PEA", "EA8ODQwLCgkIBwYFBAMCAQ")
PRODUCERS = (7, 8, 9)
MEMBERS = ("m1", "m2")
#: Record type and value version of commits that every release takes, that those since 3.4.1 take, and that 4.x does not.
COMMON, NEWER, LEGACY = ((1, 3), (1, 3), (1, 1), (0, 0)), ((1, 3), (1, 4), (1, 4), (0, 0)), ((0, 1), (1, 3))

_SUBSCRIPTION = encode_subscription(0, {"topics": ["orders"]})

#: More examples for a run by hand, or fewer for a short one: EXHUME_EXAMPLES=50 takes fifty times as many.
TIMES = float(os.environ.get("EXHUME_EXAMPLES", "1"))


def times(count: int) -> int:
    """Return `count` times EXHUME_EXAMPLES, at least 1."""
    return max(1, round(TIMES * count))


def examples(count: int) -> settings:
    """So many examples, however long one takes."""
    return settings(max_examples=times(count), deadline=None, suppress_health_check=[HealthCheck.too_slow])


# Records


@st.composite
def offset_values(
    draw: st.DrawFn, kinds: Sequence[tuple[int, int]] = COMMON, groups: Sequence[str] = GROUPS, topics: Sequence[str] = TOPICS
) -> KeyValue:
    number, version = draw(st.sampled_from(kinds))
    fields: dict[str, Any] = {"committed_offset": draw(st.integers(0, 99)), "commit_timestamp_ms": draw(st.integers(0, 5))}
    if version >= 3:
        fields["leader_epoch"] = draw(st.sampled_from((-1, -1, 5, -5)))
    if version == 4:
        fields["topic_id"] = draw(st.sampled_from((None, *TOPIC_IDS)))
    if version == 1:
        fields["expire_timestamp_ms"] = draw(st.sampled_from((-1, 500)))
    return draw(offset_keys(number, groups, topics)), encode_value(number, version, fields)


@st.composite
def offset_keys(draw: st.DrawFn, number: int, groups: Sequence[str], topics: Sequence[str]) -> bytes:
    key = {"group": draw(st.sampled_from(groups)), "topic": draw(st.sampled_from(topics)), "partition": draw(st.sampled_from((0, 0, 0, 1)))}
    return encode_key(number, key)


def offset_tombstones(groups: Sequence[str] = GROUPS, topics: Sequence[str] = TOPICS) -> st.SearchStrategy[KeyValue]:
    """Tombstones of both key types, which are one key to a coordinator."""
    keys = st.one_of(offset_keys(1, groups, topics), offset_keys(0, groups, topics))
    return st.builds(lambda key: (key, None), keys)


@st.composite
def classic_groups(draw: st.DrawFn) -> KeyValue:
    key = encode_key(2, {"group": draw(st.sampled_from(GROUPS))})
    if draw(st.integers(0, 4)) == 0:
        return key, None
    member_ids = draw(st.lists(st.sampled_from(MEMBERS), max_size=3, unique=draw(st.integers(0, 5)) > 0))
    members = [
        {
            "member_id": member_id,
            "group_instance_id": draw(st.sampled_from((None, None, None, "i1"))),
            "client_id": "c",
            "client_host": "/h",
            "rebalance_timeout_ms": 300,
            "session_timeout_ms": 30,
            "subscription": draw(st.sampled_from((*[_SUBSCRIPTION] * 9, b"", b"\0\0\0\0\0\x09a"))),
            "assignment": b"",
        }
        for member_id in member_ids
    ]
    value = {
        "protocol_type": draw(st.sampled_from(("consumer", "consumer", "connect", ""))),
        "generation": draw(st.integers(0, 9)),
        "protocol": draw(st.sampled_from(("range", None))),
        "leader": draw(st.sampled_from((None, "m1"))),
        "current_state_timestamp_ms": 77,
        "members": members,
    }
    return key, encode_value(2, draw(st.sampled_from((3, 3, 3, 4, 2, 1, 0))), value)


@st.composite
def full_groups(draw: st.DrawFn) -> KeyValue:
    """A classic group of any version, every text of it drawn."""
    texts = st.sampled_from(("", "a", "größe", "x" * 300))
    members = st.fixed_dictionaries(
        {
            "member_id": texts,
            "group_instance_id": st.none() | texts,
            "client_id": texts,
            "client_host": texts,
            "rebalance_timeout_ms": st.integers(-1, 5),
            "session_timeout_ms": st.integers(-1, 5),
            "subscription": st.binary(max_size=5),
            "assignment": st.binary(max_size=5),
        }
    )
    value = {
        "protocol_type": draw(texts),
        "generation": draw(st.integers(-1, 5)),
        "protocol": draw(st.none() | texts),
        "leader": draw(st.none() | texts),
        "current_state_timestamp_ms": draw(st.integers(-1, 5)),
        "members": draw(st.lists(members, max_size=3)),
    }
    return encode_key(2, {"group": draw(texts)}), encode_value(2, draw(st.integers(0, 4)), value)


_MODERN: dict[int, st.SearchStrategy[dict[str, Any]]] = {
    3: st.fixed_dictionaries({"group_epoch": st.integers(0, 5)}),
    4: st.just({"topics": []}),
    5: st.fixed_dictionaries({"client_id": st.just("c"), "client_host": st.just("/h"), "rebalance_timeout_ms": st.sampled_from((-1, 300))}),
    6: st.fixed_dictionaries({"assignment_epoch": st.integers(-2, 5)}),
    7: st.fixed_dictionaries({"topic_partitions": st.sampled_from(([], [{"topic_id": TOPIC_IDS[0], "partitions": [0]}]))}),
    8: st.fixed_dictionaries(
        {
            "member_epoch": st.integers(0, 5),
            "previous_member_epoch": st.integers(-1, 4),
            "member_state": st.integers(0, 3),
            "assigned": st.sampled_from(([], [{"topic_id": TOPIC_IDS[0], "partitions": [0]}])),
            "pending_revocation": st.sampled_from(([], [{"topic_id": TOPIC_IDS[1], "partitions": [1]}])),
        }
    ),
    10: st.fixed_dictionaries({"client_id": st.just("c"), "client_host": st.just("/h"), "subscribed_topics": st.just(["orders"])}),
    11: st.fixed_dictionaries({"group_epoch": st.integers(0, 5), "metadata_hash": st.just(3)}),
    12: st.fixed_dictionaries({"assignment_epoch": st.integers(0, 5)}),
    13: st.fixed_dictionaries({"topic_partitions": st.just([{"topic_id": TOPIC_IDS[0], "partitions": [0]}])}),
    14: st.fixed_dictionaries({"member_epoch": st.integers(0, 5), "member_state": st.integers(0, 3)}),
    15: st.just({"initializing": [], "initialized": [{"topic_id": TOPIC_IDS[0], "topic": "orders", "partitions": [0]}], "deleting": []}),
    16: st.just({"topics": ["orders"], "metadata_image_version": 1, "resolved_timestamp_ms": 2}),
    17: st.fixed_dictionaries(
        {"group_epoch": st.integers(0, 5), "metadata_hash": st.just(3), "validated_topology_epoch": st.integers(0, 1)}
    ),
    19: st.fixed_dictionaries({"client_id": st.just("c"), "client_host": st.just("/h"), "process_id": st.sampled_from(("p", "q"))}),
    20: st.fixed_dictionaries({"assignment_epoch": st.integers(0, 5)}),
    21: st.just({}),
    22: st.fixed_dictionaries(
        {
            "member_epoch": st.integers(0, 5),
            "member_state": st.integers(0, 3),
            "active_tasks": st.sampled_from(([], [{"subtopology_id": "0", "partitions": [0]}])),
            "active_tasks_pending_revocation": st.sampled_from(([], [{"subtopology_id": "0", "partitions": [1]}])),
        }
    ),
    23: st.fixed_dictionaries({"topology_epoch": st.integers(-1, 1), "subtopologies": st.just([])}),
}

#: In the order in which a coordinator writes a group with a member, and removes it again: (type, is a tombstone).
_LIVES = {
    "consumer": ((5, False), (3, False), (7, False), (6, False), (8, False), (8, True), (7, True), (5, True), (6, True), (3, True)),
    "share": ((10, False), (11, False), (13, False), (12, False), (14, False), (14, True), (13, True), (10, True), (12, True), (11, True)),
    "streams": (
        (19, False), (23, False), (17, False), (21, False), (20, False), (22, False),
        (22, True), (21, True), (19, True), (20, True), (17, True),
    ),
}  # fmt: skip


@st.composite
def modern_records(draw: st.DrawFn, number: int | None = None, group: str | None = None, *, is_tombstone: bool | None = None) -> KeyValue:
    number = draw(st.sampled_from(sorted(_MODERN))) if number is None else number
    group = draw(st.sampled_from(GROUPS)) if group is None else group
    names = {field.name for field in RECORD_TYPES[number].key.fields}
    key = {"group": group, "member_id": draw(st.sampled_from(MEMBERS)), "regular_expression": "o.*"}
    content = encode_key(number, {name: value for name, value in key.items() if name in names})
    if draw(st.integers(0, 3)) == 0 if is_tombstone is None else is_tombstone:
        return content, None
    return content, encode_value(number, 0, draw(_MODERN[number]))


@st.composite
def modern_lives(draw: st.DrawFn) -> list[KeyValue]:
    """The records of a modern group in healthy order, up to some point of its life."""
    life = _LIVES[draw(st.sampled_from(sorted(_LIVES)))]
    group = draw(st.sampled_from(GROUPS))
    return [draw(modern_records(number, group, is_tombstone=gone)) for number, gone in life[: draw(st.integers(1, len(life)))]]


@st.composite
def unusual_records(draw: st.DrawFn) -> KeyValue:
    """Unknown types and versions, keys and values that are cut, null keys."""
    key, value = draw(st.one_of(offset_values((*NEWER, *LEGACY)), classic_groups()))
    assert key is not None
    return draw(
        st.sampled_from(
            (
                (b"\x03\xe7xx", value),
                (b"\x00\x12\x00\x01g", None),
                (b"\xff\xff", b"x"),
                (key, b"\0\x09" + (value or b"\0\0")[2:]),
                (key, (value or b"\0\0\0")[:-1]),
                (key, b""),
                (key[:-1], value),
                (None, value),
                (key, value),
                (key + b"!", None if value is None else value + b"!"),
            )
        )
    )


# Batches


def _batch(records: Sequence[KeyValue], **fields: Any) -> Written:
    return Written(tuple(enumerate(records)), len(records), **fields)


def markers() -> st.SearchStrategy[Written]:
    """COMMIT and ABORT, of known and unknown producers."""
    return st.builds(
        lambda outcome, producer_id: _batch(
            [encode_control_record(outcome, {"coordinator_epoch": 0})], producer_id=producer_id, is_transactional=True, is_control=True
        ),
        st.sampled_from((1, 1, 1, 0)),
        st.sampled_from((*PRODUCERS, 99)),
    )


def unusual_control_batches() -> st.SearchStrategy[Written]:
    """No record at all, a control type of no transaction, two markers, a cut key, no producer."""
    commit, abort = (encode_control_record(outcome, {"coordinator_epoch": 0}) for outcome in (1, 0))
    contents: tuple[list[KeyValue], ...] = ([], [(b"\0\0\0\x02", b"\0\0\0\0")], [commit, abort], [(b"\0\0\0", b"")])
    return st.builds(
        lambda content, producer_id: replace(
            _batch(content, producer_id=producer_id, is_transactional=True, is_control=True), size=max(len(content), 1)
        ),
        st.sampled_from(contents),
        st.sampled_from((*PRODUCERS, NO_PRODUCER)),
    )


def _one_of_each_kind(group: str) -> Written:
    keys = {number: encode_key(number, {"group": group, "topic": TOPICS[-1], "partition": 1}) for number in (0, 1)}
    fields = {"committed_offset": 1, "commit_timestamp_ms": 1}
    values: list[KeyValue] = [(keys[number], encode_value(number, version, fields)) for number, version in COMMON]
    return _batch([*values, (keys[1], None), (keys[0], None)])


_FIRSTS = [_one_of_each_kind(group) for group in GROUPS]


@st.composite
def transactional(draw: st.DrawFn, values: st.SearchStrategy[KeyValue]) -> Written:
    """Commits of a transaction, now and then under a header that one coordinator reads as plain."""
    records = draw(st.lists(st.one_of(values, values, values, offset_tombstones()), min_size=1, max_size=2))
    producer_id = draw(st.sampled_from(PRODUCERS))
    disguise = draw(st.integers(0, 11))
    return _batch(records, producer_id=NO_PRODUCER if disguise == 0 else producer_id, is_transactional=disguise != 1)


def plain(records: st.SearchStrategy[KeyValue], most: int = 3) -> st.SearchStrategy[Written]:
    """A batch of a coordinator's own."""
    return st.builds(
        lambda drawn, codec: _batch(drawn, codec=codec), st.lists(records, min_size=1, max_size=most), st.sampled_from((0, 0, 0, 1, 4))
    )


def healthy_batches(kinds: Sequence[tuple[int, int]] = COMMON) -> st.SearchStrategy[Written]:
    values = offset_values(kinds)
    return st.one_of(
        plain(values),
        plain(st.one_of(values, offset_tombstones())),
        transactional(values),
        markers(),
        plain(classic_groups(), most=1),
        st.builds(_batch, modern_lives()),
    )


def _mostly_healthy(kinds: Sequence[tuple[int, int]]) -> st.SearchStrategy[Written]:
    unusual = (plain(modern_records(), most=2), plain(unusual_records(), most=1), unusual_control_batches())
    return st.one_of(*[healthy_batches(kinds)] * 6, *unusual)


@st.composite
def logs(draw: st.DrawFn, batches: st.SearchStrategy[Written] | None = None, *, most: int = 16) -> list[Written]:
    """A log: some batches in any order, now and then compacted, or with holes that no cleaner leaves.

    Most begin with one record of each kind for every group: what follows is no longer the first of anything, and can be dropped.
    """
    kinds = draw(st.sampled_from((COMMON, NEWER)))
    written = draw(st.lists(_mostly_healthy(kinds) if batches is None else batches, min_size=1, max_size=most))
    written = written if draw(st.integers(0, 3)) == 0 else [*_FIRSTS, *written]
    match draw(st.sampled_from(("whole", "whole", "thinned", "compacted"))):
        case "thinned":
            return [draw(_thinned(batch)) for batch in written]
        case "compacted":
            return draw(compacted(written))
    return written


def racer(name: str, committed_offset: int = 1) -> Written:
    """One step of a race for one key: `s7` stages a commit of producer 7, `c7` and `a7` end its transaction, `v` and `t` are plain.

    `b` and `p` are commits under headers that the two coordinators read differently: the bit alone, the producer id alone; `x` is empty.
    """
    key = encode_key(1, {"group": GROUPS[0], "topic": TOPICS[0], "partition": 0})
    value = encode_value(1, 3, {"committed_offset": committed_offset, "commit_timestamp_ms": 1})
    match name[0]:
        case "s":
            return _batch([(key, value)], producer_id=int(name[1:]), is_transactional=True)
        case "c" | "a":
            marker = encode_control_record(int(name[0] == "c"), {"coordinator_epoch": 0})
            return _batch([marker], producer_id=int(name[1:]), is_transactional=True, is_control=True)
        case "b":
            return _batch([(key, value)], is_transactional=True)
        case "p":
            return _batch([(key, value)], producer_id=7)
        case "x":
            return Written((), 1)
    return _batch([(key, value if name == "v" else None)])


def race(names: Sequence[str]) -> list[Written]:
    """These steps, behind one record of each kind."""
    return [_FIRSTS[0], *(racer(name, place) for place, name in enumerate(names))]


def transaction_logs() -> st.SearchStrategy[list[Written]]:
    """Logs in which two producers, plain commits and tombstones race for one key."""
    steps = ("s7", "s8", "s7", "s8", "c7", "c8", "c7", "c8", "a7", "v", "t", "b", "p")
    races = st.builds(race, st.lists(st.sampled_from(steps), min_size=4, max_size=14))
    return st.one_of(races, races, races.flatmap(compacted))


@st.composite
def old_logs(draw: st.DrawFn) -> list[Written]:
    """A log that was begun by brokers before 0.11: its formats one behind the other, now and then back to an earlier one."""
    # A message at least: nothing else of control batches and empty ones is written.
    written = [draw(plain(offset_values(LEGACY))), *draw(st.one_of(logs(healthy_batches(LEGACY)), logs()))]
    magics = draw(st.sampled_from(((0,), (1,), (0, 1), (0, 1, 2), (1, 2), (0, 2), (2, 1, 0, 2))))
    has_wrappers = draw(st.integers(0, 3)) == 0
    return [
        replace(batch, magic=magics[number * len(magics) // len(written)], codec=batch.codec if has_wrappers else 0)
        for number, batch in enumerate(written)
    ]


def any_logs() -> st.SearchStrategy[list[Written]]:
    """Logs of every kind."""
    return st.one_of(logs(), logs(healthy_batches()), transaction_logs(), old_logs())


@st.composite
def _thinned(draw: st.DrawFn, batch: Written) -> Written:
    left = tuple(placed for placed in batch.records if batch.is_control or draw(st.integers(0, 3)))
    return replace(batch, records=left, gap=draw(st.sampled_from((0, 0, 0, 1, 1, 2, 20_000))))
