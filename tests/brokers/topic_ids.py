"""Give the topics of a stopped KRaft broker other ids, so that records with those ids mean these topics."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from pathlib import Path

from exhume.codecs.batches import BatchWalk, checksum
from exhume.codecs.wire import format_uuid, parse_uuid

_TOPIC_ID = "partition.metadata"
#: The position of the checksum in a batch of format 2, the only one of the metadata log.
_CHECKSUM_POSITION = 17


def give_topic_ids(log_directory: Path, topic_ids: Mapping[str, str]) -> None:
    """Replace the ids of these topics in the metadata log, and beside each partition."""
    replaced: dict[bytes, bytes] = {}
    for topic, topic_id in topic_ids.items():
        for path in log_directory.glob(f"{topic}-*/{_TOPIC_ID}"):
            text = path.read_text(encoding="utf-8")
            found = re.search(r"topic_id: (\S+)", text)
            assert found is not None
            new = parse_uuid(topic_id)
            replaced[parse_uuid(found[1])] = new
            path.write_text(text.replace(found[1], format_uuid(new)), encoding="utf-8")
    for path in log_directory.glob("__cluster_metadata-0/*.log"):
        path.write_bytes(_with_ids(path.read_bytes(), replaced))


def _with_ids(log: bytes, replaced: Mapping[bytes, bytes]) -> bytes:
    for old, new in replaced.items():
        log = log.replace(old, new)
    changed = bytearray(log)
    for batch in BatchWalk(log):
        struct.pack_into(">I", changed, batch.byte_position + _CHECKSUM_POSITION, checksum(log, batch, batch.end_position))
    return bytes(changed)
