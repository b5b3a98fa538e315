"""Read the whole of `__consumer_offsets`-0 with librdkafka's consumer, and print its records and the bytes of their keys and values."""

from __future__ import annotations

import sys

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

_TOPIC = "__consumer_offsets"
_MESSAGES = 10_000


def main(server: str) -> None:
    """Read up to the high watermark of now."""
    consumer = Consumer({"bootstrap.servers": server, "group.id": "unused", "enable.auto.commit": False, "check.crcs": True})
    _, end = consumer.get_watermark_offsets(TopicPartition(_TOPIC, 0))
    consumer.assign([TopicPartition(_TOPIC, 0, OFFSET_BEGINNING)])
    records = size_bytes = last = 0
    while last < end - 1:
        for message in consumer.consume(_MESSAGES, timeout=5):
            if message.error() is not None:
                raise ValueError(str(message.error()))
            records += 1
            size_bytes += len(message.key() or b"") + len(message.value() or b"")
            last = max(last, message.offset() or 0)
    consumer.close()
    print(records, size_bytes)


if __name__ == "__main__":
    main(sys.argv[1])
