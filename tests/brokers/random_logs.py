"""Random logs of one offsets partition: records of many clients, then thinned by compaction or by a worse loss.

Small universes make the same keys meet often. Most logs are healthy; every sixth has one thing in it that brokers trip over. A log follows
from its seed alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

from exhume.codecs.batch_writer import NewRecord, encode_batch
from exhume.codecs.record_types import ABORT, COMMIT, encode_control_record, encode_key, encode_value
from exhume.fixtures.log_writer import KeyValue, PartitionWriter, group_metadata, offset_commit, tombstone

from .client import group_in
from .random_groups import GONE_TOPIC_ID, HALF_AN_HOUR_MS, HOSTILE, RandomConsumerGroup, RandomShareGroup, RandomStreamsGroup, classic_group
from .reach import Reach

OFFSETS_PARTITIONS = 50

T = 1_700_000_000_000
FAR_FUTURE = 4_000_000_000_000
_TOPICS = ("orders", "payments.v2", "returns", "unknown/topic", *HOSTILE)


@dataclass(frozen=True, slots=True)
class _Batch:
    """A batch to write. A removed record is None; `header` are further fields of the batch."""

    records: tuple[KeyValue | None, ...]
    magic: int
    codec: int
    header: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_control(self) -> bool:
        return "is_control" in self.header


@dataclass(slots=True)
class _Producer:
    producer_id: int
    epoch: int = 0
    sequence: int = 0


class RandomLog:
    """A log as batches. `write` makes it a directory."""

    def __init__(self, seed: str, offsets_partition: int, reach: Reach, topic_ids: Mapping[str, str]) -> None:
        self.random = Random(seed)
        self._partition = offsets_partition
        self._reach = reach
        self._topic_ids = topic_ids
        # Every second log begins with the newest format, of the others every format begins some.
        self._magic = reach.formats[-1] if offsets_partition % 2 else reach.formats[offsets_partition // 2 % len(reach.formats)]
        self._batches: list[_Batch] = []
        self._groups = [self._name() for _ in range(self.random.randint(2, 5))]
        self._topics = self.random.sample(_TOPICS, 3)
        self._producers = [_Producer(1000 * offsets_partition + number) for number in range(3)]
        self._modern = list(self._modern_groups())
        self._tell()
        self._thin()

    def _name(self) -> str:
        stem = self.random.choice(("billing", "audit.sink", "carts", "geo_events", *HOSTILE))
        return group_in(self._partition, OFFSETS_PARTITIONS, f"{stem}-{self.random.randint(0, 9)}")

    def _modern_groups(self) -> list[RandomConsumerGroup]:
        kinds = {"consumer": RandomConsumerGroup, "share": RandomShareGroup, "streams": RandomStreamsGroup}
        known = [kind for name, kind in kinds.items() if name in self._reach.group_types]
        topics = [*self._topic_ids.values(), *([GONE_TOPIC_ID] if self.random.random() < 0.2 else [])]
        made: list[RandomConsumerGroup] = []
        for kind in self.random.choices(known, k=self.random.randint(0, 3)) if known else ():
            name = group_in(self._partition, OFFSETS_PARTITIONS, f"modern-{len(made)}")
            made.append(kind(name, self.random, ("0", "1") if kind is RandomStreamsGroup else topics))
        return made

    # The story

    def _tell(self) -> None:
        length = self.random.choice((10, 20, 40, 80))
        damage_at = self.random.randint(length // 2, length) if self.random.random() < 0.17 else -1
        for number in range(length):
            if number == damage_at:
                self._damage()
            if self._magic < self._reach.newest_format and self.random.random() < 0.05:
                self._magic += 1
            what = self.random.random()
            if what < 0.35:
                self._add([self._commit_or_tombstone() for _ in range(self.random.randint(1, 4))])
            elif what < 0.5:
                group = self.random.choice(self._groups)
                self._add([classic_group(self.random, group, self._reach.group_version, T + number)])
            elif what < 0.56:
                self._remove(self.random.choice(self._groups))
            elif what < 0.8 and self._modern:
                self._live(self.random.choice(self._modern))
            elif self._magic == 2:
                self._transact(self.random.choice(self._producers))

    def _add(self, records: Sequence[KeyValue], **header: Any) -> None:
        codecs = self._reach.codecs(self._magic)
        number = len(self._batches)
        # All codecs of the format that a log begins with, one after the other.
        codec = codecs[number] if number < len(codecs) else self.random.choice((0, *codecs))
        # Control records are never compressed.
        self._batches.append(_Batch(tuple(records), self._magic, 0 if "is_control" in header else codec, header))

    def _commit_or_tombstone(self) -> KeyValue:
        names = [*self._groups, *self._groups, *(modern.group for modern in self._modern if modern.epoch)]
        commit = self._commit(self.random.choice(names))
        return tombstone(commit) if self.random.random() < 0.2 else commit

    def _commit(self, group: str) -> KeyValue:
        random = self.random
        topic, partition = random.choice(self._topics), random.randint(0, 2)
        value: dict[str, Any] = {
            "committed_offset": random.choice((0, random.randint(1, 99), 2**40)),
            "commit_timestamp_ms": T + random.randint(0, 10**6),
            "leader_epoch": random.choice((-1, 0, 7)),
            "metadata": random.choice(("", "", "at 5", *HOSTILE)),
            "expire_timestamp_ms": random.choice((-1, FAR_FUTURE)),
            "topic_id": self._topic_ids.get(topic) if random.random() < 0.5 else None,
        }
        if random.random() < 0.05:
            return encode_key(0, {"group": group, "topic": topic, "partition": partition}), encode_value(0, 0, value)
        fields = {name: value.pop(name) for name in ("committed_offset", "commit_timestamp_ms")}
        version = random.randint(0, self._reach.offset_version)
        if version != 1:
            del value["expire_timestamp_ms"]
        return offset_commit(group, topic, partition, version=version, **fields, **value)

    def _remove(self, group: str) -> None:
        """Remove a group with its offsets, or with some of them."""
        keys = {key for batch in self._batches for key, _ in filter(None, batch.records) if key is not None}
        prefixes = [encode_key(number, {"group": group, "topic": "", "partition": 0})[:-6] for number in (0, 1)]
        offsets = sorted(key for key in keys if any(key.startswith(prefix) for prefix in prefixes))
        kept = self.random.choice((0.0, 0.0, 0.5))
        gone: list[KeyValue] = [(key, None) for key in offsets if self.random.random() >= kept]
        self._add([*gone, (encode_key(2, {"group": group}), None)])

    def _live(self, modern: RandomConsumerGroup) -> None:
        records = modern.step()
        # A broker that dies leaves half of a batch.
        if self.random.random() < 0.5:
            self._add(records)
        else:
            for record in records:
                self._add([record])

    def _transact(self, producer: _Producer) -> None:
        what = self.random.random()
        if what < 0.55:
            records = [self._commit_or_tombstone() for _ in range(self.random.randint(1, 3))]
            self._add(records, **self._header(producer), base_sequence=producer.sequence, is_transactional=True)
            producer.sequence += len(records)
        elif what < 0.93:
            outcome = COMMIT if self.random.random() < 0.7 else ABORT
            # Since transactions version 2 every marker bumps the epoch.
            if self.random.random() < 0.2:
                producer.epoch, producer.sequence = producer.epoch + 1, 0
            marker = encode_control_record(outcome, {"coordinator_epoch": 5})
            self._add([marker], **self._header(producer), is_transactional=True, is_control=True)
        else:
            # An idempotent producer, and no transaction.
            idempotent = _Producer(producer.producer_id + 500)
            self._add([self._commit(self.random.choice(self._groups))], **self._header(idempotent), base_sequence=0)

    @staticmethod
    def _header(producer: _Producer) -> dict[str, Any]:
        return {"producer_id": producer.producer_id, "producer_epoch": producer.epoch}

    # Records that brokers fail on

    def _damage(self) -> None:
        group = self.random.choice(self._groups)
        commit = offset_commit(group, "orders", 0, 5, commit_timestamp_ms=T, version=1)
        key, value = commit
        assert key is not None
        assert value is not None
        members = [self._member("a"), self._member("a")]
        state = {"protocol_type": "consumer", "generation": 3, "protocol": "range", "leader": "a"}
        stray = group_in((self._partition + 1) % OFFSETS_PARTITIONS, OFFSETS_PARTITIONS, f"stray-{self._partition}")
        damaged: list[KeyValue] = [
            (key, b"\x00\x09" + value[2:]),
            (encode_key(2, {"group": group}), b"\x00\x09" + b"\x00" * 30),
            (b"\x00\x63" + key[2:], value),
            (b"\x00\x63" + key[2:], None),
            (None, value),
            (key[:-3], value),
            (key + b"!", value),
            (key, value[:-3]),
            (key, value + b"!"),
            (key, b""),
            (b"", value),
            group_metadata(group, state | {"members": members}, version=1),
            group_metadata(group, state | {"members": members[:1], "protocol": None}, version=1),
            offset_commit(stray, "orders", 0, 5, commit_timestamp_ms=T, version=1),
        ]
        choice = self.random.randint(0, len(damaged) + 1)
        if choice < len(damaged) or self._magic < 2:
            self._add([damaged[choice % len(damaged)]])
            return
        # Control batches without a marker, and with two.
        markers = [encode_control_record(COMMIT, {"coordinator_epoch": 5})] * (2 if choice == len(damaged) else 1)
        self._add(markers, **self._header(self._producers[0]), is_transactional=True, is_control=True)
        if len(markers) == 1:
            self._batches[-1] = replace(self._batches[-1], records=(None,))

    @staticmethod
    def _member(member_id: str) -> dict[str, Any]:
        timeouts = {"rebalance_timeout_ms": 60_000, "session_timeout_ms": HALF_AN_HOUR_MS}
        return timeouts | {"member_id": member_id, "client_id": "c", "client_host": "/h", "subscription": b"", "assignment": b""}

    # Compaction

    def _thin(self) -> None:
        """Remove superseded records, or any. The cleaner removes none from an open transaction."""
        way = self.random.choice(("whole", "compacted", "compacted", "torn"))
        clean_up_to = self.random.randint(0, len(self._batches)) if way == "compacted" else 0
        newest = {record[0]: (number, index) for number, index, record in self._data_records()}
        untouchable = self._open_batches()
        gone = {
            (number, index)
            for number, index, record in self._data_records()
            if number not in untouchable
            and ((way == "torn" and self.random.random() < 0.15) or (number < clean_up_to and newest[record[0]] != (number, index)))
        }
        for number, batch in enumerate(self._batches):
            left = tuple(None if (number, index) in gone else record for index, record in enumerate(batch.records))
            self._batches[number] = replace(batch, records=left)

    def _data_records(self) -> Iterator[tuple[int, int, KeyValue]]:
        for number, batch in enumerate(self._batches):
            for index, record in enumerate(batch.records):
                if record is not None and not batch.is_control:
                    yield number, index, record

    def _open_batches(self) -> set[int]:
        """Return the batches of open transactions."""
        found: dict[int, set[int]] = {}
        for number, batch in enumerate(self._batches):
            if batch.is_control:
                found.pop(batch.header["producer_id"], None)
            elif "is_transactional" in batch.header:
                found.setdefault(batch.header["producer_id"], set()).add(number)
        return {number for numbers in found.values() for number in numbers}

    # Bytes

    def write(self, directory: Path) -> None:
        """Write `__consumer_offsets-<n>` into `directory`: one to four segments."""
        with PartitionWriter(directory, self._partition, first_offset=self.random.choice((0, 0, 1234))) as log:
            for batch in self._batches:
                self._append(log, batch)
                if self.random.random() < 0.04:
                    log.roll()
            if self._reach.reads_empty_tail and self.random.random() < 0.1:
                # The last records were removed: the log ends after them.
                log.roll(log.next_offset + 3)

    def _append(self, log: PartitionWriter, batch: _Batch) -> None:
        base_offset = log.next_offset
        timestamp_ms = T + base_offset if batch.magic else None
        records = [NewRecord(base_offset + index, timestamp_ms, *record) for index, record in enumerate(batch.records) if record]
        last_offset = base_offset + len(batch.records) - 1
        # A batch may stay without records: the last batch of its producer does.
        if not records and (batch.magic < 2 or not batch.header or self.random.random() < 0.5) and not batch.is_control:
            log.next_offset = last_offset + 1
            return
        fields = dict(batch.header)
        if batch.magic == 2:
            fields |= {"last_offset_delta": len(batch.records) - 1, "max_timestamp_ms": timestamp_ms}
        content = encode_batch(records, base_offset=base_offset, magic=batch.magic, codec=batch.codec, **fields)
        log.append_bytes(content, last_offset if batch.magic == 2 else records[-1].offset, timestamp_ms)
        log.next_offset = last_offset + 1
