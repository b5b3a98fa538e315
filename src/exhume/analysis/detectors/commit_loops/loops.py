"""Apply commits to their keys and groups, one by one, in the order in which they took effect.

A table of keys or groups has a row for each, so that the numbers of one are next to each other in memory. A table of commits has a column
for each commit.
"""

from __future__ import annotations

import numpy as np

from exhume.analysis.detectors.commit_loops.columns import (
    BIT_COUNT,
    COMMIT_COLUMNS,
    FARTHEST,
    USUAL,
    Bit,
    CommitColumn,
    Floats,
    GroupColumn,
    KeyColumn,
    NotedColumn,
    SilenceColumn,
)
from exhume.analysis.number_columns import NONE, Int64s
from exhume.codecs.kernels import kernel
from exhume.codecs.kernels.types import Rows
from exhume.durations import MINUTE_MS

#: A value is compared with this many last ones first. For most values that is enough.
_FEW = 5
#: The number of `empty` in `commits.GROUP_PHASES`.
EMPTY = 1
#: Differences of halves are compared with half of `FARTHEST`: a difference of whole numbers may overflow.
_FAR = (1 << 62) - 1


@kernel
def look_up(codes: Int64s, known: Int64s, slots: Int64s, numbers: Int64s) -> None:
    """Write the position of each code in `known` into `numbers`; -1 if it is not in `known`. No code is negative.

    `slots` is the hash table that `enter` fills.
    """
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
            slot = code % len(slots)
            number = slots[slot]
            while number >= 0 and known[number] != code:
                slot = slot + 1 if slot + 1 < len(slots) else 0
                number = slots[slot]
        numbers[at] = number


@kernel
def enter(known: Int64s, first: int, slots: Int64s) -> None:
    """Enter the positions of the codes from `first` on into the hash table `slots`, which is larger than `known`. Codes are distinct."""
    for number in range(first, len(known)):
        slot = known[number] % len(slots)
        while slots[slot] >= 0:
            slot = slot + 1 if slot + 1 < len(slots) else 0
        slots[slot] = number


@kernel
def update_keys(
    rows: Rows,
    late: bool,
    floors: tuple[int, int, int, int],
    keys: Rows,
    last: Rows,
    rises: Int64s,
    intervals: Int64s,
    counts: Rows,
    most: int,
    noted: Rows,
    before: Rows,
) -> int:
    """Apply these commits to `keys`, and set `last` to the last commit of each key.

    A row is noted if it is a tombstone, or a rise or interval above its floor, or if it stands out for a reason that its key had fewer than
    `most` times. A row that stands out only for other reasons is counted in `counts` and not noted.

    Args:
        rows: The commits, rows of `CommitColumn`.
        late: False if each commit takes effect. Otherwise only those after all effective commits of their key do.
        floors: The least rise and the least interval of a noted row, the least ratio of that interval to the one before it, and the number
            of commits that makes a minute a hot one.
        keys: A row of `KeyColumn` for each key.
        last: The last commit of each key.
        rises: Receives the rise of each row; -1 for none.
        intervals: Receives the interval of each row; -1 for none.
        counts: The number of commits of each key that stood out, by reason.
        most: The number of commits to note of each key for each reason.
        noted: Receives the noted rows.
        before: Receives the commits that the noted rows replaced.

    Returns:
        The number of noted rows.
    """
    jump_floor, pause_ms, pause_ratio, hot = floors
    count = 0
    for row in range(rows.shape[1]):
        rises[row] = intervals[row] = -1
        key, offset = rows[CommitColumn.KEY, row], rows[CommitColumn.OFFSET, row]
        if late and offset <= keys[key, KeyColumn.NEWEST_OFFSET]:
            continue
        value, time, epoch = rows[CommitColumn.VALUE, row], rows[CommitColumn.TIME, row], rows[CommitColumn.LEADER_EPOCH, row]
        topic_id, metadata, steps = rows[CommitColumn.TOPIC_ID, row], rows[CommitColumn.METADATA, row], rows[CommitColumn.STEPS, row]
        is_tombstone = rows[CommitColumn.IS_TOMBSTONE, row] != 0
        has_before, was_removed = keys[key, KeyColumn.HAS_VALUE] != 0, keys[key, KeyColumn.IS_REMOVED] != 0
        if keys[key, KeyColumn.FIRST_OFFSET] == NONE:
            keys[key, KeyColumn.FIRST_OFFSET], keys[key, KeyColumn.FIRST_TIME], keys[key, KeyColumn.FIRST_VALUE] = offset, time, value
            keys[key, KeyColumn.HAS_FIRST_VALUE] = not is_tombstone
        keys[key, KeyColumn.NEWEST_OFFSET] = max(keys[key, KeyColumn.NEWEST_OFFSET], offset)
        keys[key, KeyColumn.BYTES] += rows[CommitColumn.BYTES, row]
        keys[key, KeyColumn.METADATA] += metadata
        keys[key, KeyColumn.LARGEST_METADATA] = max(keys[key, KeyColumn.LARGEST_METADATA], metadata)
        keys[key, KeyColumn.HIGHEST_LEADER_EPOCH] = max(keys[key, KeyColumn.HIGHEST_LEADER_EPOCH], epoch)
        why, is_rewind, is_long, is_noted = 0, False, False, is_tombstone
        if not is_tombstone:
            keys[key, KeyColumn.COMMITS] += 1
            keys[key, KeyColumn.STAGED] += rows[CommitColumn.IS_STAGED, row]
            keys[key, KeyColumn.LOWEST] = min(keys[key, KeyColumn.LOWEST], value)
            keys[key, KeyColumn.HIGHEST] = max(keys[key, KeyColumn.HIGHEST], value)
            if epoch < 0:
                keys[key, KeyColumn.WITHOUT_LEADER_EPOCH] += 1
            if keys[key, KeyColumn.WAS_REWOUND] != 0 and value != last[key, CommitColumn.VALUE]:
                why |= Bit.AFTER_REWIND
            if was_removed:
                why |= Bit.BACK
            if rows[CommitColumn.PHASE, row] == EMPTY:
                why |= Bit.WHILE_EMPTY
            if has_before:
                known_topic_id = keys[key, KeyColumn.KNOWN_TOPIC_ID]
                if topic_id != 0 and known_topic_id != 0 and topic_id != known_topic_id:  # noqa: PLR1714
                    why |= Bit.TOPIC_ID
                if 0 <= epoch < keys[key, KeyColumn.KNOWN_LEADER_EPOCH]:
                    why |= Bit.LEADER_EPOCH
                if steps != keys[key, KeyColumn.STEPS]:
                    keys[key, KeyColumn.VALUE_AT_STEP_BEFORE] = keys[key, KeyColumn.VALUE_AT_STEP]
                    keys[key, KeyColumn.VALUE_AT_STEP] = last[key, CommitColumn.VALUE]
            if has_before and not was_removed:
                if value < last[key, CommitColumn.VALUE]:
                    why |= Bit.REWIND
                    is_rewind = True
                elif value == last[key, CommitColumn.VALUE]:
                    keys[key, KeyColumn.REPEATS] += 1
                    is_rewind = keys[key, KeyColumn.WAS_REWOUND] != 0
                else:
                    is_far = (value >> 1) - (last[key, CommitColumn.VALUE] >> 1) > _FAR
                    rises[row] = FARTHEST if is_far else value - last[key, CommitColumn.VALUE]
                    is_noted = rises[row] > jump_floor
                if time != NONE and last[key, CommitColumn.TIME] != NONE:
                    time_before, interval = last[key, CommitColumn.TIME], 0
                    if time > time_before:
                        interval = FARTHEST if (time >> 1) - (time_before >> 1) > _FAR else time - time_before
                    intervals[row] = interval
                    # After another long interval it is no pause.
                    is_long = interval > pause_ms and (interval - 1) // pause_ratio >= keys[key, KeyColumn.LAST_INTERVAL]
                    keys[key, KeyColumn.LAST_INTERVAL] = interval
            if time != NONE:
                minute = time // MINUTE_MS
                if minute != keys[key, KeyColumn.MINUTE]:
                    keys[key, KeyColumn.MINUTE], keys[key, KeyColumn.IN_MINUTE] = minute, 0
                keys[key, KeyColumn.IN_MINUTE] += 1
                if keys[key, KeyColumn.IN_MINUTE] == hot and keys[key, KeyColumn.HOT_LAST] != minute:
                    if keys[key, KeyColumn.HOT_LAST] == minute - 1:
                        keys[key, KeyColumn.HOT_RUN] += 1
                    else:
                        keys[key, KeyColumn.HOT_RUN], keys[key, KeyColumn.HOT_FROM] = 1, minute
                    keys[key, KeyColumn.HOT_LAST] = minute
                    if keys[key, KeyColumn.HOT_RUN] > keys[key, KeyColumn.HOTTEST_RUN]:
                        keys[key, KeyColumn.HOTTEST_RUN], keys[key, KeyColumn.HOTTEST_FROM] = (
                            keys[key, KeyColumn.HOT_RUN],
                            keys[key, KeyColumn.HOT_FROM],
                        )
                        keys[key, KeyColumn.HOTTEST_LAST] = minute
        is_noted = is_noted or is_long
        if why != 0 and not is_noted:
            for place in range(BIT_COUNT):
                is_noted = is_noted or (why >> place & 1 != 0 and counts[key, place] < most)
            if not is_noted:
                for place in range(BIT_COUNT):
                    counts[key, place] += why >> place & 1
        if is_noted:
            noted[count, NotedColumn.ROW], noted[count, NotedColumn.KEY], noted[count, NotedColumn.WHY] = row, key, why
            noted[count, NotedColumn.HAS_BEFORE], noted[count, NotedColumn.IS_LONG] = has_before, is_long
            noted[count, NotedColumn.AT_STEP] = keys[key, KeyColumn.VALUE_AT_STEP]
            noted[count, NotedColumn.AT_STEP_BEFORE] = keys[key, KeyColumn.VALUE_AT_STEP_BEFORE]
            noted[count, NotedColumn.KNOWN_LEADER_EPOCH] = keys[key, KeyColumn.KNOWN_LEADER_EPOCH]
            noted[count, NotedColumn.KNOWN_TOPIC_ID] = keys[key, KeyColumn.KNOWN_TOPIC_ID]
            noted[count, NotedColumn.REMOVES] = is_tombstone and has_before and not was_removed
            for column in range(COMMIT_COLUMNS):
                before[count, column] = last[key, column]
            count += 1
        keys[key, KeyColumn.STEPS], keys[key, KeyColumn.WAS_REWOUND], keys[key, KeyColumn.IS_REMOVED] = steps, is_rewind, is_tombstone
        if not is_tombstone:
            keys[key, KeyColumn.HAS_VALUE] = 1
            if epoch >= 0:
                keys[key, KeyColumn.KNOWN_LEADER_EPOCH] = epoch
            if topic_id != 0:
                keys[key, KeyColumn.KNOWN_TOPIC_ID] = topic_id
            for column in range(COMMIT_COLUMNS):
                last[key, column] = rows[column, row]
    return count


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
            intervals[row] = 0
            if time > before:
                intervals[row] = FARTHEST if (time >> 1) - (before >> 1) > _FAR else time - before
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
