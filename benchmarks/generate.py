#!/usr/bin/env python3
"""Write an offsets partition such as a busy cluster has, of any size, by the encoders of exhume.

    benchmarks/generate.py DIR --variant few-keys --megabytes 100 --codec lz4

lands in DIR/__consumer_offsets-0 (and -1, -2 … with --partitions), in segments of 100 MB (104,857,600 bytes, the default of brokers for
this topic). What it holds is printed as JSON. The same options make the same bytes. A codec makes the same records smaller: sizes are asked
for before compression.

600 groups commit. A batch is one request: a run of partitions that one group reads, as many as `--batch-records` in the mean, a few most
often and up to 200 at times. One record in a hundred is the metadata of a group of 3 to 20 members, in a batch of its own. Times and
committed offsets rise; one commit in ten carries metadata. About 700,000 records are 100 MB.

    few-keys        27,000 keys, each committed again and again: 1 to 45 partitions of three topics for each group
    many-keys       as many keys as there is room for, more than 800,000 in 100 MB, each committed once
    transactional   few keys, committed by 100 producers: one to three batches and a marker, one transaction in ten aborted
    old-formats     few keys, as brokers before 0.11 wrote them: the first half in batch format 0, the second in format 1

Only the first 100 MB are encoded. Further segments repeat them with later batch offsets, which no checksum covers: their times start
again with every segment, and their records commit what the first ones did.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import shutil
import struct
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from exhume.codecs.batch_writer import NewRecord, encode_batch
from exhume.codecs.batches import BatchWalk
from exhume.codecs.compression import CODECS
from exhume.codecs.embedded.consumer import encode_assignment, encode_subscription
from exhume.codecs.offsets_topic import offsets_partition_of
from exhume.codecs.record_types import ABORT, COMMIT, decode_record, encode_control_record, encode_key, encode_value
from exhume.fixtures.log_writer import KeyValue, PartitionWriter, group_metadata

MEGABYTE = 1 << 20
SEGMENT_BYTES = 100 * MEGABYTE
GROUPS = 600
VARIANTS = ("few-keys", "many-keys", "transactional", "old-formats")
NUMBERS_OF_CODECS = {codec.name: codec.number for codec in CODECS.values()}

_FIRST_MS = 1_760_000_000_000
_MOST_RECORDS = 200
_PRODUCERS = 100
_METADATA_SHARE = 0.01
#: Partitions of the topics that groups read; three of them make 15, 59, 56 or 50.
_FEW_PARTITIONS = (1, 4, 10, 45)
_THINGS = ("orders", "payments", "shipments", "invoices", "clicks", "sessions", "inventory", "prices", "accounts", "audit")
_DEEDS = ("created", "changed", "enriched", "rejected", "archived", "settled")
_TOPICS_OF_MANY = 40
_A_DAY_MS = 86_400_000
_LEADER_EPOCH = 5
#: Room for a marker of every producer.
_CLOSING_BYTES = 100 * _PRODUCERS
_COMMIT_PREFIX = (1).to_bytes(2, "big")
_COMMITTED_OFFSET = struct.Struct(">q")
_COMMIT_KEY = encode_control_record(COMMIT, {"coordinator_epoch": 0})[0]


@dataclass(frozen=True, slots=True)
class Content:
    """What a generated partition holds, and what a load of it must come to.

    `committed_offset_sum` is the sum over the live offsets. `a_group`, `a_topic` and `a_partition` are a key to ask about;
    its group has `a_group_offsets` live offsets, and `a_key_records` commits are by the key. `plain_bytes` is the size before compression.
    """

    variant: str
    codec: str
    seed: int
    batch_records: float
    segments: int
    size_bytes: int
    plain_bytes: int
    batches: int
    records: int
    group_records: int
    live_offsets: int
    committed_offset_sum: int
    a_group: str
    a_topic: str
    a_partition: int
    a_group_offsets: int
    a_key_records: int


@dataclass(slots=True)
class _Group:
    """A group: what it may commit for, in the order of its topics, and what it committed last."""

    name: str
    topic_partitions: Sequence[tuple[str, int]]
    committed: list[int]
    next_place: int = 0
    generation: int = 0
    _keys: dict[int, bytes] = field(default_factory=dict)

    def key(self, place: int) -> bytes:
        """The record key for one of its topic partitions."""
        if place not in self._keys:
            topic, partition = self.topic_partitions[place]
            self._keys[place] = encode_key(1, {"group": self.name, "topic": topic, "partition": partition})
        return self._keys[place]


class _Cluster:
    """Groups and the clock that they share; makes the records of one request after the other."""

    def __init__(self, variant: str, seed: int, batch_records: float, place: tuple[int, int]) -> None:
        """Make the groups. `place` is the number of their offsets partition, and of how many."""
        self.random = random.Random(f"{variant} {seed}")
        self.now_ms = _FIRST_MS
        self._batch_records = batch_records
        self._records = self._group_records = 0
        make = _group_of_many if variant == "many-keys" else _group_of_few
        self.groups = [make(index, place, self.random) for index in range(GROUPS)]

    def any_group(self) -> _Group:
        return self.groups[self.random.randrange(GROUPS)]

    def is_a_rebalance(self) -> bool:
        """Whether it is the turn of group metadata, so that it is its share of the records made."""
        return self._group_records < _METADATA_SHARE * self._records

    def commit(self, group: _Group, version: int) -> list[KeyValue]:
        """One commit of a run of this group's partitions."""
        self.now_ms += self.random.randrange(20)
        chance = self.random.random
        size = min(1 + int(self.random.expovariate(1 / (self._batch_records - 0.5))), _MOST_RECORDS, len(group.topic_partitions))
        self._records += size
        records: list[KeyValue] = []
        for _ in range(size):
            place = group.next_place
            group.next_place = (place + 1) % len(group.topic_partitions)
            group.committed[place] += 1 + int(chance() * 500)
            value = {
                "committed_offset": group.committed[place],
                "leader_epoch": 7,
                "metadata": "" if chance() < 0.9 else f"checkpoint {place}",
                "commit_timestamp_ms": self.now_ms,
                "expire_timestamp_ms": self.now_ms + _A_DAY_MS,
            }
            records.append((group.key(place), encode_value(1, version, value)))
        return records

    def rebalance(self, group: _Group, version: int) -> list[KeyValue]:
        """The metadata of a group after a rebalance."""
        self.now_ms += self.random.randrange(20)
        self._records += 1
        self._group_records += 1
        group.generation += 1
        members = [self._member(group, index) for index in range(self.random.randint(3, 20))]
        value = {
            "protocol_type": "consumer",
            "generation": group.generation,
            "protocol": "range",
            "leader": members[0]["member_id"],
            "current_state_timestamp_ms": self.now_ms,
            "members": members,
        }
        return [group_metadata(group.name, value, version=version)]

    def _member(self, group: _Group, index: int) -> dict[str, Any]:
        client_id = f"{group.name[:24]}-{index}"
        topic, partition = group.topic_partitions[index % len(group.topic_partitions)]
        return {
            "member_id": f"{client_id}-{uuid.UUID(int=self.random.getrandbits(128), version=4)}",
            "client_id": client_id,
            "client_host": f"/10.{index}.{group.generation % 250}.17",
            "rebalance_timeout_ms": 300_000,
            "session_timeout_ms": 45_000,
            "subscription": encode_subscription(1, {"topics": [topic], "owned_partitions": []}),
            "assignment": encode_assignment(1, {"assigned_partitions": [{"topic": topic, "partitions": [partition, partition + 1]}]}),
        }


def _group_of_few(index: int, place: tuple[int, int], chance: random.Random) -> _Group:
    topics = {
        f"prod.eu-west-1.{_THINGS[(index + each) % 10]}.{_DEEDS[(index // 4 + each) % 6]}.avro.v1": _FEW_PARTITIONS[(index + each) % 4]
        for each in range(3)
    }
    return _group(_placed(f"prod-{_THINGS[index % 10]}-projection-service-{index:04d}", place), _places(topics), chance)


def _group_of_many(index: int, place: tuple[int, int], chance: random.Random) -> _Group:
    return _group(_placed(f"{_THINGS[index % 10]}-projection-{index:03d}", place), _places_of_many(), chance)


def _placed(name: str, place: tuple[int, int]) -> str:
    """This name, or the first longer one that belongs into this offsets partition."""
    number, count = place
    longer = (f"{name}-{each}" for each in itertools.count(1))
    return next(each for each in itertools.chain([name], longer) if offsets_partition_of(each, count) == number)


@cache
def _places_of_many() -> list[tuple[str, int]]:
    return _places({f"eu-1.{_THINGS[each % 10]}.{_DEEDS[each % 6]}.{each:02d}": 64 for each in range(_TOPICS_OF_MANY)})


def _places(topics: Mapping[str, int]) -> list[tuple[str, int]]:
    return [(topic, partition) for topic, partitions in topics.items() for partition in range(partitions)]


def _group(name: str, places: Sequence[tuple[str, int]], chance: random.Random) -> _Group:
    return _Group(name, places, [chance.randrange(10**6, 10**9)] * len(places))


#: Records of one batch, and the fields of its header.
_Request = tuple[list[KeyValue], dict[str, Any]]


def _requests(cluster: _Cluster, commit_version: int = 3, group_version: int = 3, **fields: Any) -> Iterator[_Request]:
    while True:
        group = cluster.any_group()
        records = cluster.rebalance(group, group_version) if cluster.is_a_rebalance() else cluster.commit(group, commit_version)
        yield records, {"timestamp_ms": cluster.now_ms, **fields}


@dataclass(slots=True)
class _Producers:
    """Transactional producers, each with groups of its own: what several write is never about one key."""

    cluster: _Cluster
    #: How many batches are still to come until the marker, by producer.
    batches_left: dict[int, int] = field(default_factory=dict)

    def requests(self) -> Iterator[_Request]:
        cluster = self.cluster
        while True:
            if cluster.is_a_rebalance():
                yield cluster.rebalance(cluster.any_group(), 3), {"timestamp_ms": cluster.now_ms}
                continue
            producer = cluster.random.randrange(_PRODUCERS)
            left = self.batches_left.setdefault(producer, cluster.random.randint(1, 3))
            if left == 0:
                yield self._marker(producer)
                continue
            self.batches_left[producer] = left - 1
            group = cluster.groups[producer + _PRODUCERS * cluster.random.randrange(GROUPS // _PRODUCERS)]
            yield cluster.commit(group, 3), self._fields(producer)

    def closing_requests(self) -> Iterator[_Request]:
        """The markers of the transactions that are open."""
        return (self._marker(producer) for producer in sorted(self.batches_left))

    def _marker(self, producer: int) -> _Request:
        del self.batches_left[producer]
        outcome = ABORT if self.cluster.random.random() < 0.1 else COMMIT
        return [encode_control_record(outcome, {"coordinator_epoch": 3})], self._fields(producer) | {"is_control": True}

    def _fields(self, producer: int) -> dict[str, Any]:
        producer_fields = {"producer_id": 1000 + producer, "producer_epoch": 0, "is_transactional": True}
        return producer_fields | {"timestamp_ms": self.cluster.now_ms}


class _Tally:
    """What a load of the records that were added comes to."""

    def __init__(self) -> None:
        #: The key of the first commit, and how many commits are by it.
        self.asked_key: bytes | None = None
        self.asked_key_records = 0
        self.batches = self.records = self.group_records = 0
        self.live: dict[bytes, int] = {}
        self._pending: dict[int, dict[bytes, int]] = {}

    def add(self, records: list[KeyValue], fields: Mapping[str, Any]) -> None:
        self.batches += 1 if fields.get("magic", 2) == 2 or fields.get("codec") else len(records)
        self.records += len(records)
        if fields.get("is_control"):
            # The last transaction may have had no room for a commit.
            pending = self._pending.pop(fields["producer_id"], {})
            if records[0][0] == _COMMIT_KEY:
                self.live.update(pending)
            return
        offsets = self._pending.setdefault(fields["producer_id"], {}) if "producer_id" in fields else self.live
        for key, value in records:
            assert key is not None
            assert value is not None
            if key.startswith(_COMMIT_PREFIX):
                offsets[key] = _COMMITTED_OFFSET.unpack_from(value, 2)[0]
                self.asked_key = self.asked_key or key
                self.asked_key_records += key == self.asked_key
            else:
                self.group_records += 1


class _Piece:
    """The first segment, while it is written."""

    def __init__(self, writer: PartitionWriter, most_bytes: int, codec: int) -> None:
        self.tally = _Tally()
        self.size_bytes = self.plain_bytes = 0
        self._writer = writer
        self.most_bytes = most_bytes
        self._codec = codec

    def add(self, requests: Iterator[_Request], share: float = 1.0) -> None:
        """Append these requests until they end, or this share of the piece is full."""
        for records, fields in requests:
            base_offset = self._writer.next_offset
            header: dict[str, Any] = {"codec": 0 if fields.get("is_control") else self._codec} | fields
            timestamp_ms = header.pop("timestamp_ms")
            stamp = None if header.get("magic") == 0 else timestamp_ms
            new = [NewRecord(base_offset + index, stamp, key, value) for index, (key, value) in enumerate(records)]
            plain = encode_batch(new, base_offset=base_offset, **header | {"codec": 0})
            if self.plain_bytes + len(plain) > share * self.most_bytes:
                return
            batch = encode_batch(new, base_offset=base_offset, **header) if header["codec"] else plain
            self._writer.append_bytes(batch, base_offset + len(new) - 1, stamp)
            self.plain_bytes += len(plain)
            self.size_bytes += len(batch)
            self.tally.add(records, header)


def generate(
    directory: Path,
    *,
    variant: str = "few-keys",
    megabytes: int = 100,
    codec: str = "none",
    seed: int = 1,
    batch_records: float = 24,
    segment_bytes: int = SEGMENT_BYTES,
    place: tuple[int, int] = (0, 1),
) -> Content:
    """Write an offsets partition below `directory`, which must not be there, and say what it holds.

    `megabytes` beyond one segment are rounded up to whole segments. `place` is the number of the partition, and of how many: its groups
    belong there.
    """
    cluster = _Cluster(variant, seed, batch_records, place)
    segments = -(-megabytes * MEGABYTE // segment_bytes)
    with PartitionWriter(directory, place[0], leader_epoch=_LEADER_EPOCH) as writer:
        piece = _Piece(writer, min(megabytes * MEGABYTE, segment_bytes), NUMBERS_OF_CODECS[codec])
        if variant == "old-formats":
            # Offsets in compressed format 0 are under the checksum: it stays uncompressed, so that it can be repeated.
            piece.add(_requests(cluster, 1, 0, magic=0, codec=0), 0.5)
            piece.add(_requests(cluster, 1, 1, magic=1))
        elif variant == "transactional":
            producers = _Producers(cluster)
            piece.add(producers.requests(), 1 - _CLOSING_BYTES / piece.most_bytes)
            piece.add(producers.closing_requests())
        else:
            piece.add(_requests(cluster))
        partition, next_offset = writer.directory, writer.next_offset
    _write_segments(partition, segments, next_offset)
    tally = piece.tally
    asked = decode_record(tally.asked_key, None).key
    # Both kinds of key begin with the group, behind their record type.
    group_key = encode_key(2, {"group": asked["group"]})
    return Content(
        variant=variant,
        codec=codec,
        seed=seed,
        batch_records=batch_records,
        segments=segments,
        size_bytes=segments * piece.size_bytes,
        plain_bytes=segments * piece.plain_bytes,
        batches=segments * tally.batches,
        records=segments * tally.records,
        group_records=segments * tally.group_records,
        live_offsets=len(tally.live),
        committed_offset_sum=sum(tally.live.values()),
        a_group=asked["group"],
        a_topic=asked["topic"],
        a_partition=asked["partition"],
        a_group_offsets=sum(key.startswith(_COMMIT_PREFIX + group_key[2:]) for key in tally.live),
        a_key_records=segments * tally.asked_key_records,
    )


def _write_segments(partition: Path, count: int, offsets: int) -> None:
    """Make `count` segments of the first, which holds this many offsets. Entries of indexes count from their segment's base.

    The first is written anew as well: in one piece like the others, as a copy is, it lies in the page cache as they do.
    """
    first = partition / f"{0:020d}.log"
    content = np.fromfile(first, dtype=np.uint8)
    positions = np.array([batch.byte_position for batch in BatchWalk(content.data)], dtype=np.int64)
    places = positions[:, None] + np.arange(8)
    stored = content[places].view(">i8")
    for number in range(count):
        content[places] = (stored + number * offsets).astype(">i8").view(np.uint8)
        segment = partition / f"{number * offsets:020d}.log"
        content.tofile(segment)
        if number:
            for suffix in (".index", ".timeindex"):
                shutil.copyfile(first.with_suffix(suffix), segment.with_suffix(suffix))


def _main() -> None:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, metavar="DIR", help="where __consumer_offsets-0 is to be; made if it is not there")
    parser.add_argument("--variant", choices=VARIANTS, default="few-keys")
    parser.add_argument("--megabytes", type=int, default=100, help="beyond 100: whole segments of 100 (default: 100)")
    parser.add_argument("--codec", choices=NUMBERS_OF_CODECS, default="none", help="how batches are compressed (default: none)")
    parser.add_argument(
        "--batch-records", type=float, default=24, help="records that a commit has in the mean, if its group has as many keys"
    )
    parser.add_argument("--partitions", type=int, default=1, help="each of this size, with its own groups (default: 1)")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    if asked.megabytes < 1 or asked.batch_records < 1 or asked.partitions < 1:
        parser.error("--megabytes, --batch-records and --partitions are 1 at least")
    if asked.variant == "old-formats" and asked.codec == "zstd":
        parser.error("zstd came with batch format 2: old formats are compressed with gzip, snappy or lz4")
    try:
        contents = [
            generate(
                asked.directory,
                variant=asked.variant,
                megabytes=asked.megabytes,
                codec=asked.codec,
                seed=asked.seed,
                batch_records=asked.batch_records,
                place=(number, asked.partitions),
            )
            for number in range(asked.partitions)
        ]
    except FileExistsError as error:
        parser.error(f"{error.filename} is there already: name another directory, or remove it")
    for content in contents:
        json.dump(asdict(content), sys.stdout, indent=2)
        sys.stdout.write("\n")


if __name__ == "__main__":
    _main()
