"""What versions the values of commits and of classic groups have, for whoever only counts them."""

from __future__ import annotations

import numpy as np

from exhume.codecs.columns.arrow import Flags
from exhume.codecs.columns.pieces import Piece
from exhume.codecs.kernels import keys, records, values
from exhume.codecs.kernels.types import Int64s
from exhume.codecs.record_types import GROUP_METADATA


def read_versions(piece: Piece) -> tuple[Int64s, Flags]:
    """The value version of each record, -1 for a tombstone, and which ones that was read of: commits and classic groups without a mark. Of
    others it says nothing.
    """
    commits = np.empty((values.COMMIT_COLUMNS, len(piece)), np.int64)
    values.read_commits(piece.data, piece.records, commits)
    versions, is_read = commits[values.VERSION], commits[keys.IS_READ] != 0
    numbers = np.flatnonzero(piece.records[records.RECORD_TYPE] == GROUP_METADATA)
    if len(numbers):
        fields, _ = read_group_fields(piece.only(numbers))
        versions[numbers], is_read[numbers] = fields[values.VERSION], fields[keys.IS_READ] != 0
    return versions, is_read


def read_group_fields(piece: Piece) -> tuple[Int64s, Int64s]:
    """Columns of `kernels.values` of these records, of type 2 only, and of all their members."""
    groups = np.empty((values.GROUP_COLUMNS, len(piece)), np.int64)
    room = int((np.maximum(piece.records[records.VALUE_SIZE], 0) // values.LEAST_MEMBER_BYTES).sum())
    members = np.empty((values.MEMBER_COLUMNS, room), np.int64)
    count = values.read_groups(piece.data, piece.records, groups, members)
    return groups, np.ascontiguousarray(members[:, :count])
