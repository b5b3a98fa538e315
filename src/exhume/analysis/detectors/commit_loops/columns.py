"""The columns of the tables of `loops`: commits, keys, groups, and noted rows."""

from __future__ import annotations

from enum import IntEnum, auto
from typing import Any

import numpy as np
import numpy.typing as npt

from exhume.analysis.number_columns import NONE

Floats = npt.NDArray[np.float64]

#: The number for no committed offset.
NEVER = -(1 << 63)
#: The number for a difference that does not fit into 64 bits.
FARTHEST = (1 << 63) - 1
#: A run of commits of one value has at least this many repeats.
LEAST_REPEATS = 10
#: The number of last rises or intervals whose median is the usual one.
USUAL = 20


class _Numbered(IntEnum):
    @staticmethod
    def _generate_next_value_(name: str, start: int, count: int, last_values: list[Any]) -> int:  # noqa: ARG004
        return count


class CommitColumn(_Numbered):
    """The rows of a table of commits. The first ones are the fields of a `CommitRow`.

    `KEY`, `GROUP` and `TOPIC_ID` are numbers of `NameNumbers`; topic id 0 is none.
    """

    OFFSET = auto()
    TIME = auto()
    VALUE = auto()
    LEADER_EPOCH = auto()
    METADATA = auto()
    COMMITTED_AT = auto()
    EXPIRES_AT = auto()
    VERSION = auto()
    PRODUCER = auto()
    IS_STAGED = auto()
    TOPIC_ID = auto()
    SETTLED = auto()
    POSITION = auto()
    PHASE = auto()
    STEPS = auto()
    KEY = auto()
    GROUP = auto()
    IS_TOMBSTONE = auto()
    BYTES = auto()


#: The number of columns of a `CommitRow`, and the number with the phase and the steps of its group.
COMMIT_COLUMNS, COMMIT_WITH_GROUP = CommitColumn.POSITION + 1, CommitColumn.STEPS + 1


class KeyColumn(_Numbered):
    """The numbers of each key. A run of hot minutes has the length `…_RUN`, from the minute `…_FROM` to `…_LAST`.

    `SAME_…` is the present run of commits of one value: the number of repeats, the time and record offset of its first commit. `LONGEST_…`
    is the longest earlier run, from its first to its last commit.

    `KNOWN_…` is the value of the last commit that has one.
    """

    HAS_VALUE = auto()
    IS_REMOVED = auto()
    WAS_REWOUND = auto()
    STEPS = auto()
    VALUE_AT_STEP = auto()
    VALUE_AT_STEP_BEFORE = auto()
    LAST_INTERVAL = auto()
    NEWEST_OFFSET = auto()
    COMMITS = auto()
    REPEATS = auto()
    BYTES = auto()
    METADATA = auto()
    LARGEST_METADATA = auto()
    STAGED = auto()
    WITHOUT_LEADER_EPOCH = auto()
    HIGHEST_LEADER_EPOCH = auto()
    KNOWN_LEADER_EPOCH = auto()
    KNOWN_TOPIC_ID = auto()
    LOWEST = auto()
    HIGHEST = auto()
    FIRST_OFFSET = auto()
    FIRST_TIME = auto()
    FIRST_VALUE = auto()
    HAS_FIRST_VALUE = auto()
    MINUTE = auto()
    IN_MINUTE = auto()
    HOT_RUN = auto()
    HOT_FROM = auto()
    HOT_LAST = auto()
    HOTTEST_RUN = auto()
    HOTTEST_FROM = auto()
    HOTTEST_LAST = auto()
    SAME_COUNT = auto()
    SAME_FROM = auto()
    SAME_OFFSET = auto()
    LONGEST_COUNT = auto()
    LONGEST_FROM = auto()
    LONGEST_LAST = auto()
    LONGEST_OFFSET = auto()
    LONGEST_VALUE = auto()


#: The columns of the longest earlier run of commits of one value, in the order of `commits.SameRun`.
LONGEST_RUN = (
    KeyColumn.LONGEST_VALUE,
    KeyColumn.LONGEST_COUNT,
    KeyColumn.LONGEST_FROM,
    KeyColumn.LONGEST_LAST,
    KeyColumn.LONGEST_OFFSET,
)
#: The initial values that are not 0.
BEGINS = {
    KeyColumn.VALUE_AT_STEP: NEVER,
    KeyColumn.VALUE_AT_STEP_BEFORE: NEVER,
    KeyColumn.NEWEST_OFFSET: NONE,
    KeyColumn.HIGHEST_LEADER_EPOCH: NONE,
    KeyColumn.KNOWN_LEADER_EPOCH: NONE,
    KeyColumn.LOWEST: FARTHEST,
    KeyColumn.HIGHEST: NEVER,
    KeyColumn.FIRST_OFFSET: NONE,
    KeyColumn.FIRST_TIME: NONE,
    KeyColumn.FIRST_VALUE: NONE,
    KeyColumn.MINUTE: NONE,
    KeyColumn.HOT_FROM: NONE,
    KeyColumn.HOT_LAST: NONE,
    KeyColumn.HOTTEST_FROM: NONE,
    KeyColumn.HOTTEST_LAST: NONE,
    KeyColumn.SAME_FROM: NONE,
    KeyColumn.SAME_OFFSET: NONE,
    KeyColumn.LONGEST_FROM: NONE,
    KeyColumn.LONGEST_LAST: NONE,
    KeyColumn.LONGEST_OFFSET: NONE,
}


class NewsColumn(_Numbered):
    """A record of a group: its record offset, and the phase of the group from there on, a place in `commits.GROUP_PHASES`."""

    GROUP = auto()
    OFFSET = auto()
    PHASE = auto()


class GroupColumn(_Numbered):
    """The append times of the first and the last commit of a group, and the record offset of the last one. Initially `NONE`."""

    FIRST = auto()
    LAST = auto()
    LAST_OFFSET = auto()


class NotedColumn(_Numbered):
    """A noted row: its number, its key, the reasons why it stands out (see `Bit`), and the state of the key before it."""

    ROW = auto()
    KEY = auto()
    WHY = auto()
    HAS_BEFORE = auto()
    AT_STEP = auto()
    AT_STEP_BEFORE = auto()
    KNOWN_LEADER_EPOCH = auto()
    KNOWN_TOPIC_ID = auto()
    IS_LONG = auto()
    REMOVES = auto()


class SilenceColumn(_Numbered):
    """A row after a long interval without commits of its group: its number, and the time and record offset of the commit before."""

    ROW = auto()
    BEFORE = auto()
    OFFSET_BEFORE = auto()


class Bit(IntEnum):
    """The reasons of `commits.Reason`, as bits of one number."""

    REWIND = 1
    AFTER_REWIND = 2
    JUMP = 4
    WHILE_EMPTY = 8
    BACK = 16
    TOPIC_ID = 32
    LEADER_EPOCH = 64


BIT_COUNT = len(Bit)
