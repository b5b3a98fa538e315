"""Apply commits to their keys and groups, one by one, in the order in which they took effect.

A table of keys or groups has a row for each, so that the numbers of one are next to each other in memory. A table of commits has a column
for each commit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exhume.analysis.detectors.commit_loops.columns import (
    BIT_COUNT,
    COMMIT_COLUMNS,
    FARTHEST,
    LEAST_REPEATS,
    USUAL,
    Bit,
    CommitColumn,
    Floats,
    GroupColumn,
    KeyColumn,
    NewsColumn,
    NotedColumn,
    SilenceColumn,
)
from exhume.analysis.number_columns import NONE, Int64s
from exhume.codecs.kernels import inlined, kernel
from exhume.codecs.kernels.primitives import hash_of_number
from exhume.codecs.kernels.types import Number, Rows
from exhume.durations import MINUTE_MS

#: A value is compared with this many last ones first. For most values that is enough.
_FEW = 5
#: The number of `empty` in `commits.GROUP_PHASES`.
EMPTY = 1
#: Differences of halves are compared with half of `FARTHEST`: a difference of whole numbers may overflow.
_FAR = (1 << 62) - 1


@kernel
def look_up(codes: Int64s, known: Int64s, slots: Int64s, seed: Number, numbers: Int64s) -> None:
    """Write the position of each code in `known` into `numbers`; -1 if it is not in `known`.

    `slots` is the hash table that `enter` fills, with the same seed.
    """
    last_slot = np.uint64(len(slots) - 1)
    # Successive codes mostly have successive positions.
    number = NONE
    for at in range(len(codes)):
        code = codes[at]
        if number >= 0 and known[number] == code:
            numbers[at] = number
            continue
        if 0 <= number < len(known) - 1 and known[number + 1] == code:
            number += 1
        else:
            slot = hash_of_number(code, seed) & last_slot
            number = slots[slot]
            while number >= 0 and known[number] != code:
                slot = slot + np.uint64(1) & last_slot
                number = slots[slot]
        numbers[at] = number


@kernel
def enter(known: Int64s, first: int, slots: Int64s, seed: Number) -> None:
    """Enter the positions of the codes from `first` on into the hash table `slots`. Codes are distinct.

    The table is larger than `known`, and its size is a power of two.
    """
    last_slot = np.uint64(len(slots) - 1)
    for number in range(first, len(known)):
        slot = hash_of_number(known[number], seed) & last_slot
        while slots[slot] >= 0:
            slot = slot + np.uint64(1) & last_slot
        slots[slot] = number


class KeyTables(NamedTuple):
    """Tables with a row for each key.

    Attributes:
        numbers: The columns of `KeyColumn`.
        last: The last commit.
        counts: The number of commits that stood out, by reason.
    """

    numbers: Rows
    last: Rows
    counts: Rows


class CommitNotes(NamedTuple):
    """The results of `update_keys`.

    Attributes:
        rises: The rise of each commit; -1 for none.
        intervals: The interval before each commit; -1 for none.
        noted: The noted rows, as `NotedColumn`.
        before: The commits that the noted rows replaced.
    """

    rises: Int64s
    intervals: Int64s
    noted: Rows
    before: Rows


@kernel
def update_keys(rows: Rows, late: bool, floors: tuple[int, int, int, int], keys: KeyTables, most: int, notes: CommitNotes) -> int:
    """Apply these commits to their keys, fill `notes`, and return the number of noted rows.

    A row is noted if it is a tombstone, or a rise or interval above its floor, or if it stands out for a reason that its key had fewer than
    `most` times. A row that stands out only for other reasons is counted by key and not noted.

    Args:
        rows: The commits, rows of `CommitColumn`.
        late: False if each commit takes effect. Otherwise only those after all effective commits of their key do.
        floors: The least rise and the least interval of a noted row, the least ratio of that interval to the one before it, and the number
            of commits that makes a minute a hot one.
        keys: Receives the numbers and the last commits.
        most: The number of commits to note of each key for each reason.
        notes: Receives the results.
    """
    jump_floor, pause_ms, pause_ratio, hot = floors
    rises, intervals = notes.rises, notes.intervals
    count = 0
    for row in range(rows.shape[1]):
        rises[row] = intervals[row] = -1
        key, value, time = rows[CommitColumn.KEY, row], rows[CommitColumn.VALUE, row], rows[CommitColumn.TIME, row]
        numbers, newest = keys.numbers[key], keys.last[key]
        if late and rows[CommitColumn.OFFSET, row] <= numbers[KeyColumn.NEWEST_OFFSET]:
            continue
        is_tombstone = rows[CommitColumn.IS_TOMBSTONE, row] != 0
        _count_record(rows, row, numbers)
        why, is_rewind, is_long, is_noted = 0, False, False, is_tombstone
        if not is_tombstone:
            _count_commit(rows, row, numbers)
            why = _reasons(rows, row, numbers, newest)
            _count_same(rows, row, numbers, newest)
            if numbers[KeyColumn.HAS_VALUE] != 0 and rows[CommitColumn.STEPS, row] != numbers[KeyColumn.STEPS]:
                numbers[KeyColumn.VALUE_AT_STEP_BEFORE] = numbers[KeyColumn.VALUE_AT_STEP]
                numbers[KeyColumn.VALUE_AT_STEP] = newest[CommitColumn.VALUE]
            if numbers[KeyColumn.HAS_VALUE] != 0 and numbers[KeyColumn.IS_REMOVED] == 0:
                if value < newest[CommitColumn.VALUE]:
                    why |= Bit.REWIND
                    is_rewind = True
                elif value == newest[CommitColumn.VALUE]:
                    numbers[KeyColumn.REPEATS] += 1
                    is_rewind = numbers[KeyColumn.WAS_REWOUND] != 0
                else:
                    rises[row] = _distance(newest[CommitColumn.VALUE], value)
                    is_noted = rises[row] > jump_floor
                if time != NONE and newest[CommitColumn.TIME] != NONE:
                    intervals[row] = _distance(newest[CommitColumn.TIME], time)
                    # After another long interval it is no pause.
                    is_long = intervals[row] > pause_ms and (intervals[row] - 1) // pause_ratio >= numbers[KeyColumn.LAST_INTERVAL]
                    numbers[KeyColumn.LAST_INTERVAL] = intervals[row]
            if time != NONE:
                _count_minute(numbers, time // MINUTE_MS, hot)
        if is_noted or is_long or (why != 0 and _is_new(why, keys.counts[key], most)):
            _note(notes.noted[count], row, why, numbers, is_tombstone)
            notes.noted[count, NotedColumn.KEY], notes.noted[count, NotedColumn.IS_LONG] = key, is_long
            for column in range(COMMIT_COLUMNS):
                notes.before[count, column] = newest[column]
            count += 1
        numbers[KeyColumn.WAS_REWOUND] = is_rewind
        _become_newest(rows, row, numbers, newest)
    return count


@inlined
def _distance(earlier: Number, later: Number) -> Number:
    """Return the difference of these numbers, or `FARTHEST`; 0 if the second one is less."""
    if later <= earlier:
        return 0
    return FARTHEST if (later >> 1) - (earlier >> 1) > _FAR else later - earlier


@inlined
def _count_record(rows: Rows, row: Number, numbers: Int64s) -> None:
    """Count a record, a commit or a tombstone, in the numbers of its key."""
    offset, metadata = rows[CommitColumn.OFFSET, row], rows[CommitColumn.METADATA, row]
    if numbers[KeyColumn.FIRST_OFFSET] == NONE:
        numbers[KeyColumn.FIRST_OFFSET], numbers[KeyColumn.FIRST_TIME] = offset, rows[CommitColumn.TIME, row]
        numbers[KeyColumn.FIRST_VALUE] = rows[CommitColumn.VALUE, row]
        numbers[KeyColumn.HAS_FIRST_VALUE] = rows[CommitColumn.IS_TOMBSTONE, row] == 0
    numbers[KeyColumn.NEWEST_OFFSET] = max(numbers[KeyColumn.NEWEST_OFFSET], offset)
    numbers[KeyColumn.BYTES] += rows[CommitColumn.BYTES, row]
    numbers[KeyColumn.METADATA] += metadata
    numbers[KeyColumn.LARGEST_METADATA] = max(numbers[KeyColumn.LARGEST_METADATA], metadata)
    numbers[KeyColumn.HIGHEST_LEADER_EPOCH] = max(numbers[KeyColumn.HIGHEST_LEADER_EPOCH], rows[CommitColumn.LEADER_EPOCH, row])


@inlined
def _count_commit(rows: Rows, row: Number, numbers: Int64s) -> None:
    value = rows[CommitColumn.VALUE, row]
    numbers[KeyColumn.COMMITS] += 1
    numbers[KeyColumn.STAGED] += rows[CommitColumn.IS_STAGED, row]
    numbers[KeyColumn.LOWEST] = min(numbers[KeyColumn.LOWEST], value)
    numbers[KeyColumn.HIGHEST] = max(numbers[KeyColumn.HIGHEST], value)
    if rows[CommitColumn.LEADER_EPOCH, row] < 0:
        numbers[KeyColumn.WITHOUT_LEADER_EPOCH] += 1


@inlined
def _count_same(rows: Rows, row: Number, numbers: Int64s, newest: Int64s) -> None:
    """Extend the run of commits of one value, or begin one. The earlier run may be the longest one."""
    is_held = numbers[KeyColumn.HAS_VALUE] != 0 and numbers[KeyColumn.IS_REMOVED] == 0
    if is_held and rows[CommitColumn.VALUE, row] == newest[CommitColumn.VALUE]:
        numbers[KeyColumn.SAME_COUNT] += 1
        return
    begin, last, length_ms = numbers[KeyColumn.SAME_FROM], newest[CommitColumn.TIME], 0
    if numbers[KeyColumn.SAME_COUNT] >= LEAST_REPEATS and begin >= 0:
        length_ms = _distance(begin, last)
    if length_ms > _distance(numbers[KeyColumn.LONGEST_FROM], numbers[KeyColumn.LONGEST_LAST]):
        numbers[KeyColumn.LONGEST_COUNT], numbers[KeyColumn.LONGEST_VALUE] = numbers[KeyColumn.SAME_COUNT], newest[CommitColumn.VALUE]
        numbers[KeyColumn.LONGEST_FROM], numbers[KeyColumn.LONGEST_LAST] = begin, last
        numbers[KeyColumn.LONGEST_OFFSET] = numbers[KeyColumn.SAME_OFFSET]
    numbers[KeyColumn.SAME_COUNT], numbers[KeyColumn.SAME_FROM] = 0, rows[CommitColumn.TIME, row]
    numbers[KeyColumn.SAME_OFFSET] = rows[CommitColumn.OFFSET, row]


@inlined
def _count_minute(numbers: Int64s, minute: Number, hot: Number) -> None:
    """Count a commit in this minute. The commit that makes the minute a hot one extends the run of hot minutes, or begins one."""
    if minute != numbers[KeyColumn.MINUTE]:
        numbers[KeyColumn.MINUTE], numbers[KeyColumn.IN_MINUTE] = minute, 0
    numbers[KeyColumn.IN_MINUTE] += 1
    if numbers[KeyColumn.IN_MINUTE] != hot or numbers[KeyColumn.HOT_LAST] == minute:
        return
    if numbers[KeyColumn.HOT_LAST] == minute - 1:
        numbers[KeyColumn.HOT_RUN] += 1
    else:
        numbers[KeyColumn.HOT_RUN], numbers[KeyColumn.HOT_FROM] = 1, minute
    numbers[KeyColumn.HOT_LAST] = minute
    if numbers[KeyColumn.HOT_RUN] > numbers[KeyColumn.HOTTEST_RUN]:
        numbers[KeyColumn.HOTTEST_RUN], numbers[KeyColumn.HOTTEST_FROM] = numbers[KeyColumn.HOT_RUN], numbers[KeyColumn.HOT_FROM]
        numbers[KeyColumn.HOTTEST_LAST] = minute


@inlined
def _reasons(rows: Rows, row: Number, numbers: Int64s, newest: Int64s) -> Number:
    """Return the reasons why a commit stands out, except those that compare its value with a value in force."""
    why, epoch, topic_id = 0, rows[CommitColumn.LEADER_EPOCH, row], rows[CommitColumn.TOPIC_ID, row]
    if numbers[KeyColumn.WAS_REWOUND] != 0 and rows[CommitColumn.VALUE, row] != newest[CommitColumn.VALUE]:
        why |= Bit.AFTER_REWIND
    if numbers[KeyColumn.IS_REMOVED] != 0:
        why |= Bit.BACK
    if rows[CommitColumn.PHASE, row] == EMPTY:
        why |= Bit.WHILE_EMPTY
    if numbers[KeyColumn.HAS_VALUE] != 0:
        known_topic_id = numbers[KeyColumn.KNOWN_TOPIC_ID]
        if topic_id != 0 and known_topic_id != 0 and topic_id != known_topic_id:  # noqa: PLR1714
            why |= Bit.TOPIC_ID
        if 0 <= epoch < numbers[KeyColumn.KNOWN_LEADER_EPOCH]:
            why |= Bit.LEADER_EPOCH
    return why


@inlined
def _is_new(why: Number, counts: Int64s, most: Number) -> Number:
    """Return True if the key had fewer than `most` commits for one of these reasons; otherwise count the reasons."""
    for place in range(BIT_COUNT):
        if why >> place & 1 != 0 and counts[place] < most:
            return 1
    for place in range(BIT_COUNT):
        counts[place] += why >> place & 1
    return 0


@inlined
def _note(noted: Int64s, row: Number, why: Number, numbers: Int64s, is_tombstone: Number) -> None:
    """Note a row with the state of its key before it."""
    noted[NotedColumn.ROW], noted[NotedColumn.WHY], noted[NotedColumn.HAS_BEFORE] = row, why, numbers[KeyColumn.HAS_VALUE]
    noted[NotedColumn.AT_STEP], noted[NotedColumn.AT_STEP_BEFORE] = (
        numbers[KeyColumn.VALUE_AT_STEP],
        numbers[KeyColumn.VALUE_AT_STEP_BEFORE],
    )
    noted[NotedColumn.KNOWN_LEADER_EPOCH] = numbers[KeyColumn.KNOWN_LEADER_EPOCH]
    noted[NotedColumn.KNOWN_TOPIC_ID] = numbers[KeyColumn.KNOWN_TOPIC_ID]
    noted[NotedColumn.REMOVES] = is_tombstone != 0 and numbers[KeyColumn.HAS_VALUE] != 0 and numbers[KeyColumn.IS_REMOVED] == 0


@inlined
def _become_newest(rows: Rows, row: Number, numbers: Int64s, newest: Int64s) -> None:
    """Make this record the newest one of its key. A tombstone leaves the last commit as it was."""
    numbers[KeyColumn.STEPS], numbers[KeyColumn.IS_REMOVED] = rows[CommitColumn.STEPS, row], rows[CommitColumn.IS_TOMBSTONE, row] != 0
    if rows[CommitColumn.IS_TOMBSTONE, row] != 0:
        return
    numbers[KeyColumn.HAS_VALUE] = 1
    if rows[CommitColumn.LEADER_EPOCH, row] >= 0:
        numbers[KeyColumn.KNOWN_LEADER_EPOCH] = rows[CommitColumn.LEADER_EPOCH, row]
    if rows[CommitColumn.TOPIC_ID, row] != 0:
        numbers[KeyColumn.KNOWN_TOPIC_ID] = rows[CommitColumn.TOPIC_ID, row]
    for column in range(COMMIT_COLUMNS):
        newest[column] = rows[column, row]


class CommitPlaces(NamedTuple):
    """The group and the record offset of each commit, and the order of the commits by record offset."""

    groups: Int64s
    offsets: Int64s
    order: Int64s


class GroupSteps(NamedTuple):
    """Phases, as places in `commits.GROUP_PHASES`, and numbers of group records."""

    phases: Int64s
    steps: Int64s


@kernel
def follow_phases(commits: CommitPlaces, news: Rows, known: GroupSteps, found: GroupSteps) -> None:
    """Write the phase of its group, and the number of group records before it, for each commit into `found`.

    Args:
        commits: The commits.
        news: Group records, rows of `NewsColumn`, sorted by record offset.
        known: Phase and number of each group. They become those after all of these group records.
        found: Receives phase and number for each commit.
    """
    done = 0
    for place in range(len(commits.order)):
        commit = commits.order[place]
        while done < len(news) and news[done, NewsColumn.OFFSET] < commits.offsets[commit]:
            _take_news(news[done], known)
            done += 1
        group = commits.groups[commit]
        found.phases[commit], found.steps[commit] = known.phases[group], known.steps[group]
    for rest in range(done, len(news)):
        _take_news(news[rest], known)


@inlined
def _take_news(news: Int64s, known: GroupSteps) -> None:
    group = news[NewsColumn.GROUP]
    known.phases[group] = news[NewsColumn.PHASE]
    known.steps[group] += 1


@kernel
def update_groups(rows: Rows, least_ms: int, groups: Rows, intervals: Int64s, silent: Rows) -> int:
    """Apply these commits to `groups`, in log order.

    Writes the interval of each row since the last commit of its group with another time into `intervals`; -1 for none. Notes the rows with
    an interval of `least_ms` or more in `silent`, and returns their number.
    """
    count = 0
    for row in range(rows.shape[1]):
        intervals[row] = -1
        group, time = rows[CommitColumn.GROUP, row], rows[CommitColumn.TIME, row]
        if time == NONE or rows[CommitColumn.IS_TOMBSTONE, row] != 0:
            continue
        before = groups[group, GroupColumn.LAST]
        if groups[group, GroupColumn.FIRST] == NONE:
            groups[group, GroupColumn.FIRST] = time
        # The commits of one request have one time. The interval is that between requests.
        if before != NONE and before != time:  # noqa: PLR1714
            intervals[row] = _distance(before, time)
            if intervals[row] >= least_ms:
                silent[count, SilenceColumn.ROW], silent[count, SilenceColumn.BEFORE] = row, before
                silent[count, SilenceColumn.OFFSET_BEFORE] = groups[group, GroupColumn.LAST_OFFSET]
                count += 1
        groups[group, GroupColumn.LAST], groups[group, GroupColumn.LAST_OFFSET] = time, rows[CommitColumn.OFFSET, row]
    return count


@kernel
def judge(
    series: Int64s,
    values: Int64s,
    floor: int,
    ratio: float,
    ring_of: Int64s,
    rings: Rows,
    given: Int64s,
    next_ring: int,
    ordered: Int64s,
    usual: Floats,
) -> int:
    """Add these values to the last ones of their series, and compare each with the median before it. Negative values are skipped.

    Writes into `usual` the median of the last `USUAL` values if the value is above `floor`, and more than `ratio` times that median and
    more than `ratio` times the median of the last few. Otherwise, and if fewer than two values come before it, NaN. Both medians count,
    since many values are large after a pause and only the first one stands out. Assigns the next ring to a series without one, and returns
    the number of the next free ring.
    """
    for place in range(len(series)):
        usual[place] = np.nan
        value = values[place]
        if value < 0:
            continue
        ring = ring_of[series[place]]
        if ring == 0:
            ring = ring_of[series[place]] = next_ring
            next_ring += 1
        known = min(given[ring], USUAL)
        if value > floor and known > 1:
            for turn in range(2):
                looked_at = min(known, _FEW) if turn == 0 else known
                for back in range(looked_at):
                    number, at = rings[ring, (given[ring] - 1 - back) % USUAL], back
                    while at > 0 and ordered[at - 1] > number:
                        ordered[at] = ordered[at - 1]
                        at -= 1
                    ordered[at] = number
                median = (np.float64(ordered[(looked_at - 1) // 2]) + np.float64(ordered[looked_at // 2])) / 2
                if value <= ratio * median:
                    usual[place] = np.nan
                    break
                usual[place] = median
        rings[ring, given[ring] % USUAL] = value
        given[ring] += 1
    return next_ring


@kernel
def keep(noted: Rows, usual_rises: Floats, counts: Rows, most: int) -> None:
    """Count the reasons of these rows by key, and keep the first `most` of each. A row with a usual rise is a jump too."""
    for number in range(len(noted)):
        why, kept = noted[number, NotedColumn.WHY], 0
        if not np.isnan(usual_rises[noted[number, NotedColumn.ROW]]):
            why |= Bit.JUMP
        for place in range(BIT_COUNT):
            if why >> place & 1:
                count = counts[noted[number, NotedColumn.KEY], place]
                if count < most:
                    kept |= 1 << place
                counts[noted[number, NotedColumn.KEY], place] = count + 1
        noted[number, NotedColumn.WHY] = kept
