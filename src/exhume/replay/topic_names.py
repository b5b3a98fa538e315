"""Names for topic ids: records of consumer, share and streams groups have ids only; other sources have the names.

The first source with an id wins:

    topics_file          the user's file (`--topics`): CSV with a header, `topic,topic_id,partitions[,racks]`; all but the topic may be
                         empty. Racks are those of each partition's replicas: `a|b;b|c` for partitions 0 and 1; one list is for all
    partition.metadata   the topic's own directory beside the offsets partitions
    captured             the topics.csv of a directory that `exhume capture` wrote
    record               records that carry id and name: partition metadata, and the state of share groups
    commit               the topic id tag of an offset commit
    cluster_metadata     topic records of a copied __cluster_metadata-0
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

from exhume.codecs.cluster_metadata import topic_of
from exhume.codecs.evidence_files import TOPICS
from exhume.codecs.lenient_records import read_records_leniently
from exhume.codecs.log_directory import LogDirectory, SegmentFile
from exhume.codecs.record_types import OFFSET_COMMIT, role_of
from exhume.codecs.salvage import Found, salvage
from exhume.codecs.text_files import read_text
from exhume.codecs.uris import PathOrUri
from exhume.codecs.wire import format_uuid, parse_uuid
from exhume.errors import EncodeError, RequestError

#: No topic has more.
MOST_PARTITIONS = 200_000
_EXPECTED_TOPICS = "Expected CSV with the header topic,topic_id,partitions[,racks]"

SOURCES = ("topics_file", "partition.metadata", "captured", "record", "commit", "cluster_metadata")


@dataclass(frozen=True, slots=True)
class TopicName:
    """A topic's name and the source that knows it."""

    topic: str
    source: str


@dataclass(slots=True)
class TopicNames:
    """Topic ids (22 characters, as Kafka spells them) and the names known for them."""

    _names: dict[str, dict[str, str]] = field(default_factory=lambda: {source: {} for source in SOURCES})

    def add(self, source: str, topic_id: str | None, topic: str) -> None:
        """Learn a name; a source's latest word counts. No id, nothing to learn."""
        if topic_id is not None:
            self._names[source][topic_id] = topic

    def add_all(self, source: str, names: Mapping[str, str]) -> None:
        """Learn many: topic id to name."""
        self._names[source].update(names)

    def differs_from(self, source: str, names: Mapping[str, str]) -> bool:
        """True where this source has learned another name for one of these topic ids."""
        return any(self._names[source].get(topic_id) != topic for topic_id, topic in names.items())

    def take(self, other: TopicNames) -> None:
        """Learn all that the other one has learned."""
        for source, names in other._names.items():
            self._names[source].update(names)

    def lookup(self, topic_id: str | None) -> TopicName | None:
        """The name of this topic and its source; None if no source has it."""
        if topic_id is None:
            return None
        for source in SOURCES:
            topic = self._names[source].get(topic_id)
            if topic is not None:
                return TopicName(topic, source)
        return None

    def learned(self) -> list[tuple[str, str, str]]:
        """(source, topic id, topic) of every name."""
        return [(source, topic_id, topic) for source, names in self._names.items() for topic_id, topic in names.items()]

    def ids(self) -> dict[str, str]:
        """The topic ids by name; of a name that had several, the last one of the best source."""
        return {topic: topic_id for source in reversed(SOURCES) for topic_id, topic in self._names[source].items()}

    def learn_from_record(self, record_type: int, key: Mapping[str, Any], value: Mapping[str, Any] | None) -> None:
        """Take up what a decoded record says about topic ids."""
        if value is None:
            return
        if record_type == OFFSET_COMMIT and "topic" in key:
            self.add("commit", value.get("topic_id"), key["topic"])
        elif tells_topic_names(record_type):
            for entries in value.values():
                for entry in entries if isinstance(entries, list) else ():
                    if isinstance(entry, dict) and "topic" in entry:
                        self.add("record", entry.get("topic_id"), entry["topic"])


def tells_topic_names(record_type: int | None) -> bool:
    """True for a record type whose values name topics beside their ids."""
    return role_of(record_type) in ("partition_metadata", "share_state")


def names_beside(directories: Sequence[LogDirectory], topics_file: PathOrUri | None = None) -> TopicNames:
    """Topic names from a topics file and from these directories, without records of the offsets topic.

    Raises:
        RequestError: exhume cannot read the topics file.
    """
    names = TopicNames()
    if topics_file is not None:
        for topic in read_topics_file(topics_file):
            names.add("topics_file", topic.topic_id, topic.topic)
    for directory in directories:
        names.add_all("partition.metadata", directory.topic_ids)
        for topic in captured_topics([directory]) or ():
            names.add("captured", topic.topic_id, topic.topic)
        names.add_all("cluster_metadata", dict(_cluster_topics(directory.cluster_metadata)))
    return names


def _cluster_topics(segments: Sequence[SegmentFile]) -> Iterator[tuple[str, str]]:
    """(topic id, name) of every topic that these metadata segments and snapshots announce, the latest word last."""
    for segment in segments:
        with segment.open() as buffer:
            for item in salvage(buffer):
                if isinstance(item, Found) and not item.batch.is_control:
                    for record in read_records_leniently(buffer, item.batch)[0]:
                        topic = None if record.value is None else topic_of(record.value)
                        if topic is not None:
                            yield topic


@dataclass(frozen=True, slots=True)
class Topic:
    """One row of a topics file. What the file leaves out is None; `racks` are those of the replicas, by partition."""

    topic: str
    topic_id: str | None
    partition_count: int | None
    racks: tuple[frozenset[str], ...] | None


def read_topics_file(file: PathOrUri) -> list[Topic]:
    """The topics of a `--topics` file.

    Raises:
        RequestError: the file cannot be read as such; names file, line and what is expected.
    """
    path = Path(file)
    return _parse_topics(read_text(path, _EXPECTED_TOPICS), str(path))


def captured_topics(directories: Sequence[LogDirectory]) -> list[Topic] | None:
    """The topics of directories that `exhume capture` wrote; None if none of them has topics.

    Raises:
        RequestError: a file of them is damaged.
    """
    found: list[Topic] | None = None
    for directory in directories:
        text = None if directory.captured is None else directory.captured.text(TOPICS)
        if text is not None and directory.captured is not None:
            found = [*(found or []), *_parse_topics(text, directory.captured.shown(TOPICS))]
    return found


def _parse_topics(text: str, path: str) -> list[Topic]:
    expected = _EXPECTED_TOPICS
    try:
        return list(_topics(csv.DictReader(StringIO(text, newline="")), path, expected))
    except csv.Error as error:
        raise RequestError(f"{path}: cannot be read as a topics file: {error}", remedy=expected) from error


def _topics(rows: csv.DictReader[str], path: str, expected: str) -> Iterable[Topic]:
    if not {"topic", "topic_id"} <= set(rows.fieldnames or ()):
        raise RequestError(f"{path}, line 1: no columns topic and topic_id", remedy=expected)
    for row in rows:
        try:
            if None in row:
                raise ValueError("more cells than the header has columns")
            if not row["topic"]:
                raise ValueError("a topic without a name")
            topic_id = format_uuid(parse_uuid(row["topic_id"])) if row["topic_id"] else None
            partitions = _count(row["partitions"]) if row.get("partitions") else None
            racks = _racks(row["racks"], partitions) if row.get("racks") else None
        except (EncodeError, ValueError) as error:
            raise RequestError(f"{path}, line {rows.line_num}: {error}", remedy=expected) from error
        yield Topic(row["topic"], topic_id, partitions, racks)


def _count(text: str) -> int:
    """A number of partitions. Raises ValueError where it is none that a topic can have."""
    if not text.strip().isdecimal() or not 1 <= int(text) <= MOST_PARTITIONS:
        raise ValueError(f"a topic of {text} partitions")
    return int(text)


def _racks(text: str, partitions: int | None) -> tuple[frozenset[str], ...]:
    """The racks of every partition. Raises ValueError where their number is not that of the partitions."""
    listed = tuple(frozenset(filter(None, (rack.strip() for rack in racks.split("|")))) for racks in text.split(";"))
    if len(listed) == 1 and partitions is not None:
        return listed * partitions
    if len(listed) != partitions:
        raise ValueError(f"racks of {len(listed)} partitions, where {'none are counted' if partitions is None else f'{partitions} are'}")
    return listed
