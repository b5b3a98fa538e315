"""Facts of records for a reduction: the kind of a record, the facts of earlier records, and counts of dropped records.

Releases refuse different records. A record can be dropped only if an earlier record that stays has everything that a release could refuse
in
it: `RunningFacts` knows the first record of each kind. A record that the common layouts cannot read always stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from exhume.codecs.embedded import broker_subscription_topics
from exhume.codecs.layout import Fields
from exhume.codecs.record_types import GROUP_METADATA, OFFSET_COMMIT, OFFSET_COMMIT_TYPES, RECORD_TYPES
from exhume.codecs.records import Record
from exhume.codecs.wire import Reader
from exhume.errors import DecodeError
from exhume.replay.broker_log import LoadedBatch
from exhume.replay.partition_state import OffsetKey


@dataclass(frozen=True, slots=True)
class Passed:
    """The records and batches dropped between two batches. A load has read them; they do not change its state."""

    records: int = 0
    bytes: int = 0
    first_offset: int | None = None
    last_offset: int | None = None

    def __add__(self, later: Passed) -> Passed:
        return Passed(
            self.records + later.records,
            self.bytes + later.bytes,
            later.first_offset if self.first_offset is None else self.first_offset,
            self.last_offset if later.last_offset is None else later.last_offset,
        )


@dataclass(slots=True)
class ReducedBatch(LoadedBatch):
    """A batch with the records that stay; it has none if only its header matters.

    `record_count` is the number of records that a load of the whole batch reads. `passed` counts the records dropped before it.
    """

    record_count: int = 0
    passed: Passed = field(default_factory=Passed)

    def records(self) -> Iterator[Record]:
        yield from LoadedBatch.records(self)
        self.records_read = self.record_count


@dataclass(frozen=True, slots=True)
class OtherRecord:
    """A record that always stays. It may change the kind or the existence of `group`; None if it names no group."""

    group: str | None = None


@dataclass(frozen=True, slots=True)
class ClassicValue:
    """A classic group record that every release takes if it knows the version."""

    group: str
    version: int


@dataclass(frozen=True, slots=True)
class OffsetWrite:
    """A committed offset, or its tombstone (`version` None), that every release takes if it knows the version.

    `topic_id` is the topic id in the commit, None if it has none.
    """

    key: OffsetKey
    record_type: int
    version: int | None
    topic_id: str | None = None

    @property
    def is_tombstone(self) -> bool:
        return self.version is None


Facts = OtherRecord | ClassicValue | OffsetWrite


def read_facts(record: Record) -> Facts:
    """Return the facts of a record for a reduction. A record that cannot be read is an `OtherRecord`; no error is raised."""
    group = None
    try:
        if record.key is None:
            return OtherRecord()
        reader = Reader(record.key)
        number = reader.int16()
        if number not in RECORD_TYPES:
            return OtherRecord()
        key = RECORD_TYPES[number].key_message.read(reader, 0)
        group = key["group"]
        if number in OFFSET_COMMIT_TYPES:
            offset_key = (group, key["topic"], key["partition"])
            if record.value is None:
                return OffsetWrite(offset_key, number, None)
            version, value = _read_value(number, record.value)
            return OffsetWrite(offset_key, number, version, value.get("topic_id") if number == OFFSET_COMMIT else None)
        if number == GROUP_METADATA and record.value is not None:
            version, value = _read_value(number, record.value)
            if _is_taken_by_all(value):
                return ClassicValue(group, version)
    except DecodeError:
        pass
    return OtherRecord(group)


def _read_value(number: int, content: bytes) -> tuple[int, Fields]:
    reader = Reader(content)
    version = reader.int16()
    return version, RECORD_TYPES[number].message.read(reader, version)


def _is_taken_by_all(value: Fields) -> bool:
    """Return False if a release could refuse a member: an id that comes twice, a Subscription that ends too early."""
    members = value["members"]
    instances = [member.get("group_instance_id") for member in members if member.get("group_instance_id") is not None]
    if len({member["member_id"] for member in members}) < len(members) or len(set(instances)) < len(instances):
        return False
    if value["protocol_type"] == "consumer":
        for member in members:
            broker_subscription_topics(member["subscription"])
    return True


@dataclass(slots=True)
class RunningFacts:
    """The facts of the records and batches so far. Each call also adds the facts that it gets."""

    _kinds: set[tuple[int, int | None]] = field(default_factory=set)
    _existing_groups: set[str] = field(default_factory=set)
    _topics: dict[str, str] = field(default_factory=dict)
    _codecs: set[int] = field(default_factory=set)
    _largest_batch_bytes: int = 0

    def is_new_to_readers(self, codec: int, size_bytes: int) -> bool:
        """True for the first batch of a codec, and for the largest batch so far: a release that cannot read it ends its load there."""
        is_new = codec not in self._codecs or size_bytes > self._largest_batch_bytes
        self._codecs.add(codec)
        self._largest_batch_bytes = max(self._largest_batch_bytes, size_bytes)
        return is_new

    def is_news(self, facts: Facts) -> bool:
        """True for the first record of its type and version, or one that creates its group, or gives a topic id a new topic."""
        if isinstance(facts, OtherRecord):
            if facts.group is not None:
                self._existing_groups.discard(facts.group)
            return True
        is_news = False
        kind = (GROUP_METADATA, facts.version) if isinstance(facts, ClassicValue) else (facts.record_type, facts.version)
        if kind not in self._kinds:
            self._kinds.add(kind)
            is_news = True
        group = facts.group if isinstance(facts, ClassicValue) else facts.key[0]
        if facts.version is not None and group not in self._existing_groups:
            self._existing_groups.add(group)
            is_news = True
        if isinstance(facts, OffsetWrite) and facts.topic_id is not None and self._topics.get(facts.topic_id) != facts.key[1]:
            self._topics[facts.topic_id] = facts.key[1]
            is_news = True
        return is_news
