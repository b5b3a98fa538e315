"""Who removed an offset or a group: judged by what was due when its tombstone was written, and by what went with it.

A tombstone does not say who wrote it. A pass writes it for what is due; a request, or the deletion of a topic, at any time. A request that
deletes a group takes all of it, the deletion of a topic takes that topic from every group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from exhume.arrow_rows import table_of
from exhume.codecs.record_filter import RecordFilter
from exhume.codecs.records_table import matching_records
from exhume.codecs.segment_reader import SegmentReader
from exhume.replay.expiry import SUBSCRIBED

#: Offset tombstones of other groups: what went at the same time.
NEIGHBOURS = pa.schema(
    [
        ("replica", pa.string()),
        ("offsets_partition", pa.int32()),
        ("record_offset", pa.int64()),
        ("timestamp_ms", pa.int64()),
        ("group", pa.string()),
        ("topic", pa.string()),
    ]
)
#: What an append is known by: its log, and the position of its batch.
Append = tuple[str, int | None, str, int]

GROUP_RECORDS = (2, 3, 11, 17)
OFFSET_COMMITS = (0, 1)
#: Passes come every ten minutes by default; what went later than two of them was late.
_PROMPT_MS = 20 * 60_000
_NEARBY_MS = 1000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Removal:
    """An append with tombstones of a group. `before_offset` is the last record offset in front of them, `timestamp_ms` their time."""

    append: Append
    before_offset: int
    timestamp_ms: int | None


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: columns of `why.WHY`."""

    code: str
    confidence: str
    sentence: str
    records: Sequence[int] = ()
    not_excluded: str | None = None
    is_there: bool = False


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What is known around a tombstone, in its own log.

    `held` are the `FORECAST` rows of the group's offsets in front of it, `together` the group's tombstones in the same append.
    `neighbours` are `NEIGHBOURS`, `survivors` the offsets that other groups have to this day. `is_oldest`: by the rules of the oldest
    releases, where expiry alone removes offsets.
    """

    held: Sequence[_Row]
    together: Sequence[_Row]
    neighbours: Sequence[_Row]
    survivors: Sequence[_Row]
    is_oldest: bool


def removals(history: pa.Table) -> list[Removal]:
    """The appends that may have removed something of this group: what `explain` wants a forecast for, of the moment in front of each."""
    found: dict[Append, Removal] = {}
    for row in history.to_pylist():
        if row["is_tombstone"] and row["record_type"] in (*OFFSET_COMMITS, *GROUP_RECORDS):
            found.setdefault(append_of(row), Removal(append_of(row), row["record_offset"] - 1, row["timestamp_ms"]))
    return list(found.values())


def neighbours_of(reader: SegmentReader, group: str, history: pa.Table) -> pa.Table:
    """The offset tombstones of other groups, as `NEIGHBOURS`; none where this history has none either."""
    has_some = any(row["is_tombstone"] and row["topic"] is not None for row in history.to_pylist())
    wanted = RecordFilter(types=["offset_commit"])
    rows = [
        {
            **found.origin,
            "record_offset": record.record_offset,
            "timestamp_ms": record.timestamp_ms,
            "group": decoded.key["group"],
            "topic": decoded.key["topic"],
        }
        for found, record, decoded in (matching_records(reader, wanted) if has_some else ())
        if record.value is None and decoded.key["group"] != group
    ]
    return table_of(NEIGHBOURS, rows)


def append_of(row: Mapping[str, Any]) -> Append:
    """The append that this row of a history came in."""
    return row["replica"], row["offsets_partition"], row["path"], row["byte_position"]


def judge(
    around: Circumstances,
    tombstone: _Row,
    forecast: Mapping[str, Any] | None,
    removed: str,
    records: Sequence[int],
    *,
    expire_timestamp_ms: int | None = None,
) -> Answer:
    """Expired, or removed by somebody: by what was due when the tombstone was written, and what went with it.

    `forecast` is that of the moment in front of the tombstone; None: nothing was there. `removed` begins the sentence.
    `expire_timestamp_ms` is that of the record, None where it has none.
    """
    time_ms = tombstone["timestamp_ms"]
    if forecast is None:
        return Answer("removed", "undecidable", f"{removed}; a load in front of it does not hold that", records, "every kind of removal")
    if time_ms is None and around.is_oldest:
        return Answer("expired", "likely", f"{removed}; in this release only expiry does, and the tombstone has no time to check", records)
    if time_ms is None:
        sentence = f"{removed}; the tombstone has no time, so nobody knows what was due then"
        return Answer("removed", "undecidable", sentence, records, "every kind of removal")
    if forecast["is_past_due"]:
        counted = f"counted from {show_time(forecast['base_timestamp_ms'])}, it was due from {show_time(forecast['expires_at_ms'])} on"
        sentence = f"{removed}; {forecast['reason']}: {counted} ({forecast['rule']})"
        return _expired(time_ms - forecast["expires_at_ms"], sentence, records)
    if expire_timestamp_ms is not None and 0 < expire_timestamp_ms <= time_ms:
        elder = f"its expire timestamp, {show_time(expire_timestamp_ms)}, had passed, which decides alone in releases that write one"
        sentence = f"{removed}; here no pass would have, since {_not_due(forecast)}, but {elder}"
        return _expired(time_ms - expire_timestamp_ms, sentence, records)
    return _deleted(around, tombstone, forecast, removed, records)


def _expired(late_ms: int, sentence: str, records: Sequence[int]) -> Answer:
    other = "a request, or the deletion of the topic, when it was due anyway"
    if late_ms <= _PROMPT_MS:
        return Answer("expired", "likely", sentence, records, other)
    late = f"{sentence}, {late_ms // 60_000} minutes before"
    return Answer("expired", "possible", late, records, f"{other}; passes come every ten minutes")


def _deleted(around: Circumstances, tombstone: _Row, forecast: Mapping[str, Any], removed: str, records: Sequence[int]) -> Answer:
    topic, record_offset = tombstone["topic"], tombstone["record_offset"]
    sentence = f"{removed}; no pass would have, since {_not_due(forecast)}"
    shorter = "expiry, if the broker had a shorter retention or other rules"
    if topic is None:
        return Answer("group_deleted", "likely", sentence, records, shorter)
    own = next((row["record_offset"] for row in around.together if row["record_type"] in GROUP_RECORDS), None)
    if own is not None:
        return Answer("group_deleted", "likely", f"{sentence}; record {own} removed the group with it", [*records, own], shorter)
    went = {(row["topic"], row["partition"]) for row in around.together}
    kept = [row for row in around.held if row["topic"] == topic and (topic, row["partition"]) not in went]
    if kept:
        with_kept = f"{sentence}; the group kept {topic}-{kept[0]['partition']}, which the deletion of the topic takes too"
        return Answer("offsets_deleted", "likely", with_kept, [*records, kept[0]["record_offset"]], shorter)
    shorter_or_group = f"{shorter}; a request to delete the whole group"
    if any(other != topic for other, _ in went):
        return Answer("offsets_deleted", "likely", f"{sentence}; offsets of other topics went with it", records, shorter_or_group)
    survivor = next((row for row in around.survivors if row["topic"] == topic and row["record_offset"] < record_offset), None)
    if survivor is not None:
        with_survivor = f"{sentence}; group {survivor['group']!r} kept its offset of the topic (record {survivor['record_offset']})"
        return Answer("offsets_deleted", "likely", with_survivor, [*records, survivor["record_offset"]], shorter_or_group)
    if forecast["reason"] == SUBSCRIBED:
        return Answer("topic_deleted", "likely", f"{sentence}, and so every request would have been refused", records, shorter)
    near = [row for row in around.neighbours if _is_near(row["timestamp_ms"], tombstone["timestamp_ms"])]
    foreign = next((row for row in near if row["topic"] != topic), None)
    if foreign is not None:
        with_foreign = (
            f"{sentence}; record {foreign['record_offset']} removed another topic from group {foreign['group']!r} at the same time"
        )
        by_whom = "a pass by a shorter retention or other rules, the deletion of several topics, and requests"
        return Answer("removed", "undecidable", with_foreign, [*records, foreign["record_offset"]], by_whom)
    others = [row for row in near if row["topic"] == topic]
    if others:
        other = others[0]["record_offset"]
        with_others = f"{sentence}; record {other} removed an offset of the topic from group {others[0]['group']!r} at the same time"
        return Answer("topic_deleted", "likely", with_others, [*records, other], f"{shorter}; requests for several groups")
    return Answer("offsets_deleted", "possible", sentence, records, f"{shorter_or_group}; the deletion of topic {topic!r}")


def _not_due(forecast: Mapping[str, Any]) -> str:
    if forecast["expires_at_ms"] is None:
        return str(forecast["reason"])
    return f"it was not due before {show_time(forecast['expires_at_ms'])} ({forecast['rule']})"


def _is_near(one_ms: int | None, other_ms: int | None) -> bool:
    return one_ms is not None and other_ms is not None and abs(one_ms - other_ms) <= _NEARBY_MS


def at(timestamp_ms: int | None) -> str:
    """A time as the end of a phrase; nothing where there is none."""
    return "" if timestamp_ms is None else f" of {show_time(timestamp_ms)}"


def show_time(timestamp_ms: int) -> str:
    """A time for a sentence, in UTC; the number itself where no calendar has it."""
    try:
        moment = _EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return str(timestamp_ms)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03d}Z"
