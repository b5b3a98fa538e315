"""Topic records of the KRaft log `__cluster_metadata-0`: the name of each topic id.

    value = frame version unsigned varint (1), api key unsigned varint (2 = TopicRecord, 9 = RemoveTopicRecord),
            version unsigned varint, body: [2] name compact string, topic id uuid, tags; [9] topic id uuid, tags

Source: MetadataRecordSerde, TopicRecord.json, Kafka 3.3 to 4.3.
"""

from __future__ import annotations

from exhume.codecs.layout import STRING, UUID, Field, Message, Struct
from exhume.codecs.wire import Reader
from exhume.errors import DecodeError

_TOPIC_RECORD_API_KEY = 2
_TOPIC_RECORD = Message(
    "TopicRecord", range(1), Struct((Field("topic", STRING, "name"), Field("topic_id", UUID, "topicId"))), flexible_since=0
)


def topic_of(value: bytes) -> tuple[str, str] | None:
    """(topic id, name) if this metadata record creates a topic; None for every other record, also for a damaged one."""
    reader = Reader(value)
    try:
        if reader.unsigned_varint() != 1 or reader.unsigned_varint() != _TOPIC_RECORD_API_KEY or reader.unsigned_varint() != 0:
            return None
        fields = _TOPIC_RECORD.read(reader, 0)
    except DecodeError:
        return None
    return (fields["topic_id"], fields["topic"]) if fields["topic_id"] is not None else None
