"""Collect the names of topic ids from records: commits since value version 4, partition metadata, states of share groups."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from exhume.codecs.columns.arrow import texts
from exhume.codecs.columns.record_blocks import RecordBlock
from exhume.codecs.kernels import keys, values
from exhume.codecs.kernels import records as fields
from exhume.codecs.kernels.types import Int64s
from exhume.codecs.layouts.offsets import TOPIC_ID_SINCE
from exhume.codecs.log_directory import PartitionDirectory
from exhume.codecs.log_pass import LogCollector
from exhume.codecs.record_types import OFFSET_COMMIT_TYPES, RECORD_TYPES, decode_record
from exhume.codecs.wire import format_uuid
from exhume.replay.topic_names import TopicNames, tells_topic_names

_TOPIC_ID = values.COMMITS["topic_id_start"]
_UNDECODABLE = frozenset({"undecodable_key", "undecodable_value"})
_TELLING_TYPES = np.array([number for number in RECORD_TYPES if tells_topic_names(number)], np.int64)


class NameReader(LogCollector):
    """Learn topic names from all logs of a pass; records below the log start count too."""

    def __init__(self, names: TopicNames) -> None:
        self._names = names

    def of(self, partition: PartitionDirectory) -> Iterable[LogCollector]:  # noqa: ARG002
        """Return this collector: it reads every log."""
        return [self]

    def add_records(self, block: RecordBlock) -> None:
        # Most records are commits without a topic id. Records of control batches have no type.
        found = np.empty(len(block), np.int64)
        found = found[: values.besides_old_commits(block.data, block.records, TOPIC_ID_SINCE, found)]
        numbers = block.records[fields.RECORD_TYPE, found]
        self._learn_from_commits(block, found[np.isin(numbers, OFFSET_COMMIT_TYPES)])
        for number in found[np.isin(numbers, _TELLING_TYPES)].tolist():
            self._learn(*block.key_and_value(number))

    def _learn_from_commits(self, block: RecordBlock, with_ids: Int64s) -> None:
        if not len(with_ids):
            return
        commits = np.empty((values.COMMIT_COLUMNS, len(with_ids)), np.int64)
        values.read_commits(block.data, block.only(with_ids).records, commits)
        for number in with_ids[commits[keys.IS_READ] == 0].tolist():
            self._learn(*block.key_and_value(number))
        commits = np.take(commits, np.flatnonzero((commits[keys.IS_READ] != 0) & (commits[_TOPIC_ID] >= 0)), axis=1)
        ids = texts(block.data, commits[_TOPIC_ID], np.full(commits.shape[1], 16), pa.binary()).dictionary_encode()
        # The last name of a topic id counts. For equal places the last assignment wins.
        last = np.empty(len(ids.dictionary), np.int64)
        last[ids.indices.to_numpy()] = np.arange(commits.shape[1])
        topics = texts(block.data, commits[keys.TOPIC_START][last], commits[keys.TOPIC_SIZE][last], pa.string())
        for topic_id, topic in zip(ids.dictionary.to_pylist(), topics.to_pylist(), strict=True):
            self._names.add("commit", format_uuid(topic_id) if any(topic_id) else None, topic)

    def _learn(self, key: bytes | None, value: bytes | None) -> None:
        decoded = decode_record(key, value)
        if decoded.number is not None and not _UNDECODABLE.intersection(decoded.marks):
            self._names.learn_from_record(decoded.number, decoded.key, decoded.value)
