"""What a reduction knows of records: what was dropped beside those that stay, what one is, and what was said before it.

Releases refuse different things. A record is droppable only if whatever a release could refuse in it was there before, in a record that
stays: `RunningFacts` knows the first of each. What the common layouts cannot read stays anyway.
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
    """What was dropped whole between two batches: a load has read it, and found nothing that counts."""

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
    """A batch of which some records stay; none, where only its header matters.

    `record_count` is what a load of the whole batch reads. `passed` is what lay in front of it.
    """

    record_count: int = 0
    passed: Passed = field(default_factory=Passed)

    def records(self) -> Iterator[Record]:
        yield from LoadedBatch.records(self)
        self.records_read = self.record_count


@dataclass(frozen=True, slots=True)
class OtherRecord:
    """A record that always stays. `group` is whose kind or presence it may change, None where it is nobody's."""

    group: str | None = None


@dataclass(frozen=True, slots=True)
class ClassicValue:
    """A classic group record that every release which knows its version takes."""

    group: str
    version: int


@dataclass(frozen=True, slots=True)
class OffsetWrite:
    """A committed offset, or its tombstone (`version` None), that every release which knows its version takes.

    `topic_id` is what it says about its topic, None where it says nothing.
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
    """What this record is to a reduction. Never raises: what cannot be read is an `OtherRecord`."""
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
    """False where a release could refuse a member: ids that come twice, subscriptions that end too early."""
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
    """What the records and batches so far have said. Each question takes note of what it was asked for."""

    _kinds: set[tuple[int, int | None]] = field(default_factory=set)
    _existing_groups: set[str] = field(default_factory=set)
    _topics: dict[str, str] = field(default_factory=dict)
    _codecs: set[int] = field(default_factory=set)
    _largest_batch_bytes: int = 0

    def is_new_to_readers(self, codec: int, size_bytes: int) -> bool:
        """True for the first batch of a codec, and for one larger than all before: a release without either ends its load there."""
        is_new = codec not in self._codecs or size_bytes > self._largest_batch_bytes
        self._codecs.add(codec)
        self._largest_batch_bytes = max(self._largest_batch_bytes, size_bytes)
        return is_new

    def is_news(self, facts: Facts) -> bool:
        """True for a record that is the first to have its type and version, to make its group exist, or to name a topic id so."""
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
