"""Read only the versions of the values of commits and of classic groups."""

from __future__ import annotations

import numpy as np

from exhume.codecs.columns.arrow import Flags
from exhume.codecs.columns.record_blocks import RecordBlock
from exhume.codecs.kernels import keys, records, values
from exhume.codecs.kernels.readers import LEAST_MEMBER_BYTES
from exhume.codecs.kernels.types import Int64s
from exhume.codecs.record_types import GROUP_METADATA


def read_versions(block: RecordBlock) -> tuple[Int64s, Flags]:
    """Return the value version of each record, -1 for a tombstone, and True for each record whose version was read.

    These are commits and classic groups without a mark. For other records the version means nothing.
    """
    commits = np.empty((values.COMMIT_COLUMNS, len(block)), np.int64)
    values.read_commits(block.data, block.records, commits)
    versions, is_read = commits[values.VERSION], commits[keys.IS_READ] != 0
    numbers = np.flatnonzero(block.records[records.RECORD_TYPE] == GROUP_METADATA)
    if len(numbers):
        fields, _ = read_group_fields(block.only(numbers))
        versions[numbers], is_read[numbers] = fields[values.VERSION], fields[keys.IS_READ] != 0
    return versions, is_read


def read_group_fields(block: RecordBlock) -> tuple[Int64s, Int64s]:
    """Return columns of `kernels.values` for these records, all of type 2, and for all their members."""
    groups = np.empty((values.GROUP_COLUMNS, len(block)), np.int64)
    room = int((np.maximum(block.records[records.VALUE_SIZE], 0) // LEAST_MEMBER_BYTES).sum())
    members = np.empty((values.MEMBER_COLUMNS, room), np.int64)
    count = values.read_groups(block.data, block.records, groups, members)
    return groups, np.ascontiguousarray(members[:, :count])
