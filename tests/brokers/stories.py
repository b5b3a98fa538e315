"""The log that brokers load: one story in each offsets partition, written by `fixtures.log_writer`.

commits              every value version in every codec, a segment each; what was overwritten and what was removed
old formats          formats 0 and 1 in each of their codecs, then a batch of the newest format
transactions         committed, aborted and open ones, across each other and across plain commits and tombstones; not before format 2
classic groups       every value version; static members, a Connect group, groups that are empty, removed or begun anew
consumer groups      KIP-848 in every state, for releases that have them
unknown version      a good commit, a value of an unknown version, another good commit
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exhume.codecs.embedded import encode_assignment, encode_connect_assignment, encode_subscription
from exhume.codecs.record_types import ABORT, encode_key, encode_value
from exhume.fixtures.log_writer import KeyValue, PartitionWriter, group_metadata, offset_commit, tombstone

from .client import group_in
from .reach import Reach

COMMITS, OLD_FORMATS, TRANSACTIONS, CLASSIC_GROUPS, CONSUMER_GROUPS, UNKNOWN_VERSION = range(6)
OFFSETS_PARTITIONS = 6

T = 1_700_000_000_000
FAR_FUTURE = 4_000_000_000_000
HALF_AN_HOUR_MS = 1_800_000
TOPIC = "orders"


def group(story: int, name: str) -> str:
    """Return a group id of the offsets partition of this story."""
    return group_in(story, OFFSETS_PARTITIONS, name)


@dataclass(slots=True)
class Stories:
    """The written stories. `unknown_version_offset` is the record offset that ends the load of that story."""

    directory: Path
    reach: Reach
    topic_id: str | None
    unknown_version_offset: int = -1

    def partition(self, story: int) -> PartitionWriter:
        """Return a log with batches of the newest format by default."""
        return _Log(self.directory, story, self.reach.newest_format)

    def commit(self, group: str, topic: str, partition: int, committed_offset: int, **fields: Any) -> KeyValue:
        """Return an offset commit with all fields of its version."""
        told: dict[str, Any] = {
            "metadata": f"at {committed_offset}",
            "leader_epoch": 7,
            "expire_timestamp_ms": FAR_FUTURE,
            "topic_id": self.topic_id,
            "version": min(3, self.reach.offset_version),
        }
        return offset_commit(group, topic, partition, committed_offset, commit_timestamp_ms=T, **told | fields)

    def classic_group(self, group: str, value: dict[str, Any], **fields: Any) -> KeyValue:
        """Return a group record of a version that the coordinator knows."""
        return group_metadata(group, value, **{"version": min(3, self.reach.group_version)} | fields)


class _Log(PartitionWriter):
    def __init__(self, directory: Path, story: int, magic: int) -> None:
        super().__init__(directory, story)
        self._magic = magic

    def append(self, records: Iterable[KeyValue], *, timestamp_ms: int | None = 0, **batch_fields: Any) -> int:
        return super().append(records, timestamp_ms=timestamp_ms, **{"magic": self._magic} | batch_fields)


def write_stories(directory: Path, reach: Reach, topic_id: str | None) -> Stories:
    """Write each story that a coordinator of this reach can read. `topic_id` is that of `TOPIC`; None for releases without topic ids."""
    stories = Stories(directory, reach, topic_id)
    _write_commits(stories)
    _write_old_formats(stories)
    if reach.newest_format == 2:
        _write_transactions(stories)
    _write_classic_groups(stories)
    if "consumer" in reach.group_types:
        assert topic_id is not None
        _write_consumer_groups(stories, topic_id)
    _write_unknown_version(stories)
    return stories


def _write_commits(stories: Stories) -> None:
    billing, gone = group(COMMITS, "billing"), group(COMMITS, "gone")
    with stories.partition(COMMITS) as log:
        for codec in stories.reach.codecs(stories.reach.newest_format):
            versions = range(stories.reach.offset_version + 1)
            batch = [stories.commit(billing, TOPIC, 10 * codec + version, 100 * codec + version, version=version) for version in versions]
            log.append(batch, timestamp_ms=T + codec, codec=codec)
            log.roll()
        overwritten = stories.commit(billing, "returns", 0, 1)
        removed = stories.commit(billing, "returns", 1, 1)
        of_gone = stories.commit(gone, "returns", 0, 5)
        log.append([overwritten, removed, of_gone], timestamp_ms=T + 10)
        log.append([stories.commit(billing, "returns", 0, 2, metadata="", leader_epoch=-1)], timestamp_ms=T + 11)
        log.append([tombstone(removed), tombstone(of_gone), (encode_key(2, {"group": gone}), None)], timestamp_ms=T + 12)
        # Enough for a few index entries in the newest segment.
        for number in range(200):
            log.append([stories.commit(billing, "many", number % 3, number)], timestamp_ms=T + 100 + number)


def _write_old_formats(stories: Stories) -> None:
    with stories.partition(OLD_FORMATS) as log:
        for magic in (0, 1):
            for codec in stories.reach.codecs(magic):
                old = group(OLD_FORMATS, f"format-{magic}-{codec}")
                batch = [stories.commit(old, TOPIC, partition, 10 * codec + partition, version=magic) for partition in range(3)]
                members = [_member(f"{old}-member")]
                batch.append(group_metadata(old, _group_value(members, generation=codec + 1), version=magic))
                log.append(batch, timestamp_ms=T + codec if magic else None, magic=magic, codec=codec)
                log.append([tombstone(batch[1])], timestamp_ms=T + codec if magic else None, magic=magic, codec=codec)
            log.roll()
        log.append([stories.commit(group(OLD_FORMATS, "newest-format"), TOPIC, 0, 1)], timestamp_ms=T + 10)


def _write_transactions(stories: Stories) -> None:
    ledger = group(TRANSACTIONS, "ledger")
    only_pending = group(TRANSACTIONS, "only-pending")
    sequences: dict[int, int] = {}
    with stories.partition(TRANSACTIONS) as log:

        def transactional(producer_id: int, *records: KeyValue, codec: int = 0) -> None:
            sequence = sequences.get(producer_id, 0)
            sequences[producer_id] = sequence + len(records)
            producer = {"producer_id": producer_id, "producer_epoch": 3, "base_sequence": sequence, "is_transactional": True}
            log.append(records, timestamp_ms=T + log.next_offset, codec=codec, **producer)

        def plain(*records: KeyValue) -> None:
            log.append(records, timestamp_ms=T + log.next_offset)

        plain(*(stories.commit(ledger, TOPIC, partition, 1) for partition in range(6)))
        # Committed, aborted, and committed before a later plain commit.
        transactional(1, stories.commit(ledger, TOPIC, 0, 10), stories.commit(ledger, TOPIC, 1, 10), codec=3)
        transactional(
            2, stories.commit(ledger, TOPIC, 2, 20), stories.commit(ledger, "aborted-only", 0, 20), codec=stories.reach.codecs(2)[-1]
        )
        plain(stories.commit(ledger, TOPIC, 1, 11))
        log.append_marker(producer_id=1, producer_epoch=3, timestamp_ms=T)
        log.append_marker(ABORT, producer_id=2, producer_epoch=3, timestamp_ms=T)
        # A second transaction of the same producer, and a tombstone of a key that waits for its marker.
        transactional(1, stories.commit(ledger, TOPIC, 3, 30), stories.commit(ledger, TOPIC, 4, 30))
        plain(tombstone(stories.commit(ledger, TOPIC, 4, 0)))
        log.append_marker(producer_id=1, producer_epoch=3, timestamp_ms=T)
        log.roll()
        # Open: over a committed offset, over nothing, and of a group that has nothing else; two that touch one key.
        transactional(3, stories.commit(ledger, TOPIC, 0, 40), stories.commit(ledger, "pending-only", 0, 40))
        transactional(4, stories.commit(ledger, TOPIC, 0, 50), stories.commit(only_pending, TOPIC, 0, 50), codec=1)
        plain(stories.commit(ledger, TOPIC, 5, 60))


def _write_classic_groups(stories: Stories) -> None:
    with stories.partition(CLASSIC_GROUPS) as log:
        for version in range(stories.reach.group_version + 1):
            name = group(CLASSIC_GROUPS, f"version-{version}")
            members = [_member(f"{name}-{number}", version=number, instance=f"{name}-{number}") for number in range(4)]
            log.append(
                [
                    group_metadata(name, _group_value(members[:1], generation=version), version=version),
                    group_metadata(name, _group_value(members, generation=version + 10), version=version),
                    stories.commit(name, TOPIC, version, version),
                ],
                timestamp_ms=T,
                codec=version,
            )
        connect, empty, removed, renewed = (group(CLASSIC_GROUPS, name) for name in ("connect", "empty", "removed", "renewed"))
        worker = _member(
            "worker", subscription=b"", assignment=encode_connect_assignment(0, {"leader": "worker", "leader_url": "http://w/"})
        )
        log.append(
            [
                stories.classic_group(connect, _group_value([worker], generation=2) | {"protocol_type": "connect", "protocol": "default"}),
                stories.classic_group(empty, {"protocol_type": "consumer", "generation": 5, "current_state_timestamp_ms": T}),
                stories.classic_group(removed, _group_value([_member("late")], generation=1)),
                stories.classic_group(renewed, _group_value([_member("first")], generation=1)),
            ],
            timestamp_ms=T,
        )
        log.append([(encode_key(2, {"group": name}), None) for name in (removed, renewed)], timestamp_ms=T)
        log.append([stories.classic_group(renewed, _group_value([_member("second")], generation=1))], timestamp_ms=T)


def _member(
    member_id: str,
    *,
    version: int = 0,
    instance: str | None = None,
    subscription: bytes | None = None,
    assignment: bytes | None = None,
) -> dict[str, Any]:
    """Return a member of a classic group, by default a consumer with payloads of this version."""
    owned = [{"topic": TOPIC, "partitions": [version]}]
    wants = {"topics": [TOPIC, "returns"], "user_data": b"\x01", "owned_partitions": owned, "generation": 4, "rack_id": "rack-a"}
    gets = {"assigned_partitions": [{"topic": TOPIC, "partitions": [version, version + 4]}]}
    return {
        "member_id": member_id,
        "group_instance_id": instance,
        "client_id": "client-1",
        "client_host": "/127.0.0.1",
        "rebalance_timeout_ms": 60_000,
        "session_timeout_ms": HALF_AN_HOUR_MS,
        "subscription": encode_subscription(version, wants) if subscription is None else subscription,
        "assignment": encode_assignment(version, gets) if assignment is None else assignment,
    }


def _group_value(members: list[dict[str, Any]], *, generation: int) -> dict[str, Any]:
    return {
        "protocol_type": "consumer",
        "generation": generation,
        "protocol": "range",
        "leader": members[0]["member_id"],
        "current_state_timestamp_ms": T,
        "members": members,
    }


def _write_consumer_groups(stories: Stories, topic_id: str) -> None:
    with stories.partition(CONSUMER_GROUPS) as log:
        for name, records in (
            ("stable", _stable_group(topic_id)),
            ("reconciling", _reconciling_group(topic_id)),
            ("assigning", _assigning_group(topic_id)),
            ("empty", _empty_group(topic_id)),
            ("removed", _removed_group(topic_id)),
        ):
            log.append([_modern(group(CONSUMER_GROUPS, name), *record) for record in records], timestamp_ms=T)
        log.append([stories.commit(group(CONSUMER_GROUPS, "stable"), TOPIC, 0, 70, version=4)], timestamp_ms=T)


#: Record type, member id (None: of the whole group), value (None: a tombstone).
_ModernRecord = tuple[int, str | None, dict[str, Any] | None]


def _modern(group_id: str, record_type: int, member_id: str | None, value: dict[str, Any] | None) -> KeyValue:
    key = {"group": group_id} | ({} if member_id is None else {"member_id": member_id})
    return encode_key(record_type, key), None if value is None else encode_value(record_type, 0, value)


def _joined(member_id: str, **fields: Any) -> _ModernRecord:
    value = {
        "client_id": "client-1",
        "client_host": "/127.0.0.1",
        "subscribed_topics": [TOPIC],
        "rebalance_timeout_ms": HALF_AN_HOUR_MS,
        "server_assignor": "uniform",
        # Null, but present: a member of the consumer protocol.
        "classic_member_metadata": None,
    }
    return 5, member_id, value | fields


def _epochs(group_epoch: int, assignment_epoch: int) -> list[_ModernRecord]:
    return [(3, None, {"group_epoch": group_epoch, "metadata_hash": 99}), (6, None, {"assignment_epoch": assignment_epoch})]


def _target(member_id: str, topic_id: str, *partitions: int) -> _ModernRecord:
    return 7, member_id, {"topic_partitions": [{"topic_id": topic_id, "partitions": list(partitions)}] if partitions else []}


def _current(
    member_id: str, epoch: int, topic_id: str, *assigned: int, state: int = 0, pending_revocation: tuple[int, ...] = ()
) -> _ModernRecord:
    def entries(partitions: tuple[int, ...]) -> list[dict[str, Any]]:
        return [{"topic_id": topic_id, "partitions": list(partitions)}] if partitions else []

    value = {"member_epoch": epoch, "previous_member_epoch": epoch - 1, "member_state": state}
    return 8, member_id, value | {"assigned": entries(assigned), "pending_revocation": entries(pending_revocation)}


def _stable_group(topic_id: str) -> Iterator[_ModernRecord]:
    classic = {
        "session_timeout_ms": HALF_AN_HOUR_MS,
        "supported_protocols": [{"name": "range", "metadata": encode_subscription(1, {"topics": [TOPIC]})}],
    }
    yield _joined("a", group_instance_id="instance-a", rack_id="rack-a", subscribed_regex="ord.*")
    yield _joined("b", classic_member_metadata=classic)
    yield from _epochs(3, 3)
    yield 4, None, {"topics": [{"topic_id": topic_id, "topic": TOPIC, "partition_count": 3}]}
    yield _target("a", topic_id, 0, 1)
    yield _target("b", topic_id, 2)
    yield _current("a", 3, topic_id, 0, 1)
    yield _current("b", 3, topic_id, 2)


def _reconciling_group(topic_id: str) -> Iterator[_ModernRecord]:
    yield _joined("a")
    yield _joined("b")
    yield from _epochs(5, 5)
    yield _target("a", topic_id, 0)
    yield _target("b", topic_id, 1, 2)
    yield _current("a", 4, topic_id, 0, state=1, pending_revocation=(1, 2))
    yield _current("b", 5, topic_id, state=2)


def _assigning_group(topic_id: str) -> Iterator[_ModernRecord]:
    yield _joined("a")
    yield from _epochs(8, 7)
    yield _target("a", topic_id, 0)
    yield _current("a", 7, topic_id, 0)


def _empty_group(topic_id: str) -> Iterator[_ModernRecord]:
    yield from _assigning_group(topic_id)
    yield 8, "a", None
    yield 7, "a", None
    yield 5, "a", None
    yield from _epochs(9, 9)


def _removed_group(topic_id: str) -> Iterator[_ModernRecord]:
    yield from _empty_group(topic_id)
    yield 6, None, None
    yield 4, None, None
    yield 3, None, None


def _write_unknown_version(stories: Stories) -> None:
    before, unknown, after = (stories.commit(group(UNKNOWN_VERSION, name), TOPIC, 0, 1) for name in ("before", "unknown", "after"))
    assert unknown[1] is not None
    with stories.partition(UNKNOWN_VERSION) as log:
        log.append([before], timestamp_ms=T)
        stories.unknown_version_offset = log.append([(unknown[0], b"\x00\x09" + unknown[1][2:])], timestamp_ms=T)
        log.append([after], timestamp_ms=T)
