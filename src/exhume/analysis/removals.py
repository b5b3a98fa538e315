"""Who removed an offset or a group: judged by what was due when its tombstone was written, and by what went with it.

A tombstone does not say who wrote it. A pass writes it for what is due; a request, or the deletion of a topic, at any time. A request that
deletes a group takes all of it, the deletion of a topic takes that topic from every group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from exhume.analysis.times import show_time
from exhume.arrow_rows import Origin, table_of
from exhume.codecs.record_types import decode_record, role_of
from exhume.replay.profiles import BrokerProfile, ScalaProfile

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

#: Passes come every ten minutes by default; what went later than two of them was late.
_PROMPT_MS = 20 * 60_000
_NEARBY_MS = 1000
_SHORTER = "expiry, if the broker had a shorter retention or other rules"
_ANOTHER_RELEASE = "a broker of another release, which can do more"
_BY_NAME = {"group_deletion": "a request", "topic_deletion": "the deletion of the topic"}
_Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Removal:
    """An append with tombstones of a group. `record_offset` is that of the first, `timestamp_ms` their time."""

    append: Append
    record_offset: int
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

    `held` are the `FORECAST` rows of the group's offsets in front of it, `together` the group's tombstones in the same append, `soon` those
    of other appends at about the same time: some releases delete a topic partition by partition. `neighbours` are `NEIGHBOURS`,
    `survivors` the offsets of topics that went from this group, which other groups have to this day. `profile` is that of the broker.
    """

    held: Sequence[_Row]
    together: Sequence[_Row]
    soon: Sequence[_Row]
    neighbours: Sequence[_Row]
    survivors: Sequence[_Row]
    profile: BrokerProfile

    def group_record(self) -> int | None:
        """The record that removed the group itself with this append."""
        return next((row["record_offset"] for row in self.together if role_of(row["record_type"]) == "group"), None)

    def topics(self) -> set[str]:
        """The topics that went from the group with this append."""
        return {row["topic"] for row in self.together if row["topic"] is not None}

    def kept(self, topic: str | None = None) -> _Row | None:
        """An offset of the group, of this topic where one is given, that did not go with the append or soon after."""
        went = {(row["topic"], row["partition"]) for row in (*self.together, *self.soon)}
        left = (row for row in self.held if topic in (None, row["topic"]) and (row["topic"], row["partition"]) not in went)
        return next(left, None)

    def survivor(self, topic: str, record_offset: int) -> _Row | None:
        """An older offset of this topic that another group still has: the topic was not deleted."""
        return next((row for row in self.survivors if row["topic"] == topic and row["record_offset"] < record_offset), None)

    def near(self, timestamp_ms: int | None) -> list[_Row]:
        """The tombstones of other groups at about this time."""
        return [row for row in self.neighbours if is_near(row["timestamp_ms"], timestamp_ms)]


def removals(history: pa.Table) -> list[Removal]:
    """The appends that may have removed something of this group: what `explain` wants a forecast for, of the moment in front of each."""
    found: dict[Append, Removal] = {}
    for row in history.to_pylist():
        if row["is_tombstone"] and role_of(row["record_type"]) in ("offset_commit", "group"):
            found.setdefault(append_of(row), Removal(append_of(row), row["record_offset"], row["timestamp_ms"]))
    return list(found.values())


def records_by_origin(history: pa.Table) -> dict[Origin, list[int]]:
    """The record offsets of this history by replica and offsets partition."""
    found: dict[Origin, list[int]] = {}
    for row in history.select(["replica", "offsets_partition", "record_offset"]).to_pylist():
        found.setdefault((row["replica"], row["offsets_partition"]), []).append(row["record_offset"])
    return found


def neighbours_of(commits: Iterable[pa.RecordBatch], group: str, history: pa.Table) -> pa.Table:
    """The offset tombstones of other groups, as `NEIGHBOURS`; none where this history has none either, and then nothing is read.

    `commits` are rows of `schemas.RECORDS`, offset commits alone.
    """
    if not any(row["is_tombstone"] and row["topic"] is not None for row in history.to_pylist()):
        return NEIGHBOURS.empty_table()
    rows = []
    for batch in commits:
        for row in batch.filter(pc.is_null(batch["value"])).select([*NEIGHBOURS.names[:4], "key"]).to_pylist():
            told = decode_record(row.pop("key"), None).key
            # A key that is cut off names no partition.
            if told.get("group") not in (group, None) and "partition" in told:
                rows.append(row | {"group": told["group"], "topic": told["topic"]})
    return table_of(NEIGHBOURS, rows)


def append_of(row: Mapping[str, Any]) -> Append:
    """The append that this row of a history came in."""
    return row["replica"], row["offsets_partition"], row["path"], row["byte_position"]


def judge(
    log_context: Circumstances,
    tombstone: _Row,
    forecast: Mapping[str, Any] | None,
    removed: str,
    records: Sequence[int],
    *,
    written_ms: int | None = None,
    expire_timestamp_ms: int | None = None,
) -> Answer:
    """Expired, or removed by somebody: by what was due when the tombstone was written, and what went with it.

    `forecast` is that of the moment in front of the tombstone; None: nothing was there. `removed` begins the sentence. `written_ms` is
    when that came to be which is gone, `expire_timestamp_ms` that of its record; None: not known, or none.
    """
    time_ms = tombstone["timestamp_ms"]
    if forecast is None:
        return Answer("removed", "undecidable", f"{removed}; a load in front of it does not hold that", records, "every kind of removal")
    if not log_context.profile.removed_by and not (time_ms is not None and forecast["is_past_due"]):
        return _only_expired(tombstone, forecast, removed, records)
    if time_ms is None:
        sentence = f"{removed}; the tombstone has no time, so nobody knows what was due then"
        return Answer("removed", "undecidable", sentence, records, "every kind of removal")
    if forecast["is_past_due"]:
        counted = f"counted from {show_time(forecast['base_timestamp_ms'])}, it was due from {show_time(forecast['expires_at_ms'])} on"
        sentence = f"{removed}; {forecast['reason']}: {counted} ({forecast['rule']})"
        return _expired(log_context, time_ms, max(forecast["expires_at_ms"], written_ms or 0), sentence, records)
    if expire_timestamp_ms is not None and 0 < expire_timestamp_ms <= time_ms:
        elder = f"its expire timestamp, {show_time(expire_timestamp_ms)}, had passed, which decides alone in releases that write one"
        sentence = f"{removed}; here no pass would have, since {_not_due(forecast)}, but {elder}"
        return _expired(log_context, time_ms, expire_timestamp_ms, sentence, records)
    sentence = f"{removed}; no pass would have, since {_not_due(forecast)}"
    if tombstone["topic"] is None or log_context.group_record() is not None:
        return _deleted_with_group(log_context, tombstone, sentence, records)
    return _deleted(log_context, tombstone, forecast, sentence, records)


def _only_expired(tombstone: _Row, forecast: Mapping[str, Any], removed: str, records: Sequence[int]) -> Answer:
    """Of a release in which nothing but passes removes offsets."""
    if tombstone["timestamp_ms"] is None:
        sentence = f"{removed}; in this release only expiry does, and the tombstone has no time to check"
        return Answer("expired", "likely", sentence, records, _ANOTHER_RELEASE)
    sentence = f"{removed}; in this release only expiry does, though {_not_due(forecast)}"
    return Answer("expired", "possible", sentence, records, _ANOTHER_RELEASE)


def _expired(log_context: Circumstances, time_ms: int, due_ms: int, sentence: str, records: Sequence[int]) -> Answer:
    others = [_BY_NAME[how] for how in ("group_deletion", "topic_deletion") if how in log_context.profile.removed_by]
    other = f"{', or '.join(others)}, when it was due anyway" if others else None
    late_ms = time_ms - due_ms
    if late_ms <= _PROMPT_MS:
        return Answer("expired", "likely", sentence, records, other)
    late = f"{sentence}, {late_ms // 60_000} minutes before"
    return Answer("expired", "possible", late, records, "; ".join(filter(None, (other, "passes come every ten minutes"))))


def _deleted_with_group(log_context: Circumstances, tombstone: _Row, sentence: str, records: Sequence[int]) -> Answer:
    """The group itself went, before it was due: by a request, or with the topic of its last offsets."""
    own = log_context.group_record()
    if tombstone["topic"] is not None and own is not None:
        sentence, records = f"{sentence}; record {own} removed the group with it", [*records, own]
    topics = log_context.topics()
    topic = next(iter(topics), None)
    # Only the Scala coordinator takes a group along when its last offset goes with a topic.
    has_survivor = topic is not None and log_context.survivor(topic, tombstone["record_offset"]) is not None
    by_topic = (
        isinstance(log_context.profile, ScalaProfile)
        and "topic_deletion" in log_context.profile.removed_by
        and len(topics) == 1
        and not has_survivor
    )
    others = [row for row in log_context.near(tombstone["timestamp_ms"]) if row["topic"] == topic] if by_topic else []
    if "group_deletion" in log_context.profile.removed_by and not others:
        excluded = f"{_SHORTER}; the deletion of topic {topic!r}, whose offsets were its last" if by_topic else _SHORTER
        return Answer("group_deleted", "likely", sentence, records, excluded)
    if by_topic:
        with_others = sentence + "".join(f"; {_other_group(row)}" for row in others[:1])
        requests = f"{_SHORTER}; requests for several groups" if "group_deletion" in log_context.profile.removed_by else _SHORTER
        return Answer("topic_deleted", "likely", with_others, [*records, *(row["record_offset"] for row in others[:1])], requests)
    without = f"{sentence}; no request deletes a group of this release"
    return Answer("removed", "undecidable", without, records, f"{_SHORTER}; the deletion of its topics; {_ANOTHER_RELEASE}")


def _deleted(log_context: Circumstances, tombstone: _Row, forecast: Mapping[str, Any], sentence: str, records: Sequence[int]) -> Answer:
    """Offsets went, before they were due, and the group stayed, or had no record of its own."""
    topic, can = tombstone["topic"], log_context.profile.removed_by
    others_of_group = log_context.kept()
    whole_group = "; a request to delete the whole group" if "group_deletion" in can and others_of_group is None else ""
    not_the_topic = _not_the_topic(log_context, tombstone)
    if not_the_topic is not None:
        why_not, evidence = not_the_topic
        if "offset_deletion" in can:
            return Answer("offsets_deleted", "likely", f"{sentence}; {why_not}", [*records, *evidence], _SHORTER + whole_group)
        without = f"{sentence}; {why_not}, and no request deletes single offsets of this release"
        if whole_group:
            return Answer("group_deleted", "likely", without, [*records, *evidence], f"{_SHORTER}; the deletion of several topics")
        return Answer(
            "removed", "undecidable", without, [*records, *evidence], f"{_SHORTER}; the deletion of several topics; {_ANOTHER_RELEASE}"
        )
    if forecast["is_subscribed"]:
        return Answer("topic_deleted", "likely", f"{sentence}, and so every request would have been refused", records, _SHORTER)
    near = log_context.near(tombstone["timestamp_ms"])
    foreign = next((row for row in near if row["topic"] != topic), None)
    if foreign is not None:
        with_foreign = f"{sentence}; {_other_group(foreign, 'another topic')}"
        by_whom = "a pass by a shorter retention or other rules, the deletion of several topics, and requests"
        return Answer("removed", "undecidable", with_foreign, [*records, foreign["record_offset"]], by_whom)
    if near:
        with_others = f"{sentence}; {_other_group(near[0])}"
        requests = f"{_SHORTER}; requests for several groups" if "offset_deletion" in can or whole_group else _SHORTER
        return Answer("topic_deleted", "likely", with_others, [*records, near[0]["record_offset"]], requests)
    if "offset_deletion" in can:
        return Answer("offsets_deleted", "possible", sentence, records, f"{_SHORTER}{whole_group}; the deletion of topic {topic!r}")
    if whole_group:
        by_whom = f"a request to delete the group, the deletion of topic {topic!r}, and {_SHORTER}"
        return Answer("removed", "undecidable", f"{sentence}; nothing of the group was left", records, by_whom)
    without = f"{sentence}; no request deletes single offsets of this release"
    return Answer("topic_deleted", "likely", without, records, f"{_SHORTER}; {_ANOTHER_RELEASE}")


def _not_the_topic(log_context: Circumstances, tombstone: _Row) -> tuple[str, list[int]] | None:
    """Why it cannot have been the deletion of the topic, and the records that say so; None where it can."""
    topic = tombstone["topic"]
    kept = log_context.kept(topic)
    if kept is not None:
        return f"the group kept {topic}-{kept['partition']}, which the deletion of the topic takes too", [kept["record_offset"]]
    if len(log_context.topics()) > 1:
        return "offsets of other topics went with it", []
    survivor = log_context.survivor(topic, tombstone["record_offset"])
    if survivor is not None:
        return f"group {survivor['group']!r} kept its offset of the topic (record {survivor['record_offset']})", [survivor["record_offset"]]
    return None


def _other_group(row: _Row, what: str = "an offset of the topic") -> str:
    return f"record {row['record_offset']} removed {what} from group {row['group']!r} at the same time"


def _not_due(forecast: Mapping[str, Any]) -> str:
    if forecast["expires_at_ms"] is None:
        return str(forecast["reason"])
    return f"it was not due before {show_time(forecast['expires_at_ms'])} ({forecast['rule']})"


def is_near(one_ms: int | None, other_ms: int | None) -> bool:
    """True where both times are known and one event may have caused what happened at them."""
    return one_ms is not None and other_ms is not None and abs(one_ms - other_ms) <= _NEARBY_MS
