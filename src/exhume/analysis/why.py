"""Why the coordinator has an offset or a group, or does not: one answer for each, with the records that prove it and its confidence.

`removals` judges tombstones: most such answers are likely, not proven, and `not_excluded` names other causes with the same records. If the
log has lost the deciding records, the answer is undecidable and says why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from exhume.analysis.history import NEVER_COUNTED, Fate
from exhume.analysis.log_extent import LogExtent, LogExtents
from exhume.analysis.removals.causes import Judgement, RecordPlace
from exhume.arrow_rows import Int32, OfLog, Origin, schema_of, table_of
from exhume.codecs.record_types import OFFSET_COMMIT_TYPES, role_of
from exhume.findings import Confidence
from exhume.moments import at
from exhume.replay.profiles import BrokerProfile
from exhume.replay.state import CoordinatorState
from exhume.replay.verdict import LOADED_IN_MEMORY


class WhyRow(OfLog):
    """One row per answer; `topic` is null if it is about the group itself.

    `records` are record offsets, in the order of the sentence. `confidence` is that of findings. `code`:

    there             the coordinator has it; the sentence says so if it was removed before and began anew
    pending           only a commit of an open transaction
    aborted           only commits of aborted transactions
    expired           a tombstone at a time when it was due
    group_deleted     the group was removed with its offsets before they were due: a request
    offsets_deleted   some offsets were removed before they were due: a request
    topic_deleted     offsets of a topic were removed before they were due, those of other groups as well
    last_member_left  releases to 0.10.0 remove a group then
    removed           a tombstone, and no record that shows its cause
    load_aborted      the release does not load it, though the log has it
    not_shown         loaded, but not shown to requests: after a gap, or without a group that has offsets to fetch
    not_read          the files have it where no broker reads: before the log start, or after damage
    not_kept          the log has it, and the release drops it by its rules
    never_there       the log has no record of it
    """

    group: str
    topic: str | None
    partition: Int32 | None
    is_there: bool
    code: str
    confidence: Confidence
    sentence: str
    records: list[int]
    not_excluded: str | None


WHY = schema_of(WhyRow)

_NOT_JUDGED = Judgement(
    "removed",
    "undecidable",
    "the log has too few records of it to find the cause",
    (),
    ("expiry, a request, and the deletion of the topic",),
)
_Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Answer:
    """One answer: columns of `WHY`."""

    code: str
    confidence: str
    sentence: str
    records: Sequence[int] = ()
    not_excluded: str | None = None
    is_there: bool = False


def explain(
    group: str,
    history: pa.Table,
    state: CoordinatorState,
    profile: BrokerProfile,
    *,
    now: pa.Table,
    judgements: Mapping[RecordPlace, Judgement],
    extents: LogExtents,
    topic: str | None = None,
    partition: int | None = None,
) -> pa.Table:
    """Explain this group and each of its offsets, as `WHY`; with `topic`, or `partition` of it, only those offsets.

    Args:
        group: the group.
        history: its records, as `history.HISTORY`; empty if there are none.
        state: the state after a strict load of the release.
        profile: the rules of that release.
        now: the `FORECAST` of the moment.
        judgements: the cause of each tombstone of an offset of the group, or of the group itself.
        extents: the extents of the logs.
        topic: answer for this topic only.
        partition: answer for this partition of a topic only.
    """
    rows = history.to_pylist()
    loads = {(row["replica"], row["offsets_partition"]): row for row in state.loads.to_pylist()}
    mine = {name: _of_group(state.tables[name], group) for name in ("groups", "offsets", "pending_offsets")}
    origins = list(dict.fromkeys((row["replica"], row["offsets_partition"]) for row in [*rows, *mine["groups"], *mine["offsets"]]))
    answers: list[_Row] = []
    for origin in origins:
        known = _Known(
            group,
            origin,
            [row for row in rows if _is_of(row, origin)],
            {name: [row for row in found if _is_of(row, origin)] for name, found in mine.items()},
            loads[origin],
            profile,
            [row for row in _of_group(now, group) if _is_of(row, origin)],
            judgements,
            extents.get(origin),
        )
        answers += _answers(known, topic, partition)
    if not answers:
        answers = [_never_anywhere(group, topic, partition, list(loads.values()), extents)]
    return table_of(WHY, answers)


def _of_group(table: pa.Table, group: str) -> list[_Row]:
    found: list[_Row] = table.filter(pc.field("group") == group).to_pylist()
    return found


def _is_of(row: Mapping[str, Any], origin: Origin) -> bool:
    return (row["replica"], row["offsets_partition"]) == origin


@dataclass(frozen=True, slots=True)
class _Known:
    """The facts of one offsets partition about the group."""

    group: str
    origin: Origin
    history: list[_Row]
    held: Mapping[str, list[_Row]]
    load: _Row
    profile: BrokerProfile
    now: list[_Row]
    judgements: Mapping[RecordPlace, Judgement]
    extent: LogExtent | None

    def commits(self, topic: str, partition: int) -> list[_Row]:
        return [
            row
            for row in self.history
            if row["record_type"] in OFFSET_COMMIT_TYPES and (row["topic"], row["partition"]) == (topic, partition)
        ]

    def offset_keys(self) -> list[tuple[str, int]]:
        return sorted({(row["topic"], row["partition"]) for row in [*self.history, *self.held["offsets"]] if row["topic"] is not None})

    def judgement(self, tombstone: _Row) -> Judgement:
        """Return the judgement of this tombstone."""
        return self.judgements.get((*self.origin, tombstone["record_offset"]), _NOT_JUDGED)


def _answers(known: _Known, topic: str | None, partition: int | None) -> Iterator[_Row]:
    origin = {"replica": known.origin[0], "offsets_partition": known.origin[1], "group": known.group}
    if topic is None and partition is None:
        yield origin | _columns(_why_group(known))
    keys = [key for key in known.offset_keys() if topic in (None, key[0]) and partition in (None, key[1])]
    if not keys and topic is not None:
        place = f"an offset of {topic}" if partition is None else f"an offset of {topic}-{partition}"
        yield origin | {"topic": topic, "partition": partition} | _columns(_never(known, place))
    for key in keys:
        yield origin | {"topic": key[0], "partition": key[1]} | _columns(_why_offset(known, *key))


def _columns(answer: _Answer) -> _Row:
    return {name: getattr(answer, name) for name in ("code", "confidence", "sentence", "not_excluded", "is_there")} | {
        "records": list(dict.fromkeys(answer.records))
    }


def _why_offset(known: _Known, topic: str, partition: int) -> _Answer:
    rows = known.commits(topic, partition)
    held = _find(known.held["offsets"], topic, partition)
    pending = _find(known.held["pending_offsets"], topic, partition)
    if held is not None:
        group_type = next((row["group_type"] for row in known.held["groups"]), None)
        if known.profile.coordinator == "java" and group_type in (None, "share"):
            return _offset_has_no_group(held, group_type)
        return _began_anew(known, _offset_is_there(held, pending, _find(known.now, topic, partition)), rows, held["record_offset"])
    lost = _lost_by_load(known, rows)
    if lost is not None:
        return lost
    if pending is not None:
        return _only_pending(rows, pending)
    decided = [row for row in rows if row["fate"] not in NEVER_COUNTED]
    if decided and max(decided, key=lambda row: int(row["record_offset"]))["is_tombstone"]:
        return _why_removed(known, decided)
    if decided:
        return _not_kept(known, decided[-1])
    aborted = [row for row in rows if row["fate"] == Fate.ABORTED]
    if aborted:
        return _aborted(known, aborted[-1])
    return _never(known, f"an offset of {topic}-{partition}")


def _find(rows: Sequence[_Row], topic: str, partition: int) -> _Row | None:
    return next((row for row in rows if (row["topic"], row["partition"]) == (topic, partition)), None)


def _offset_is_there(held: _Row, pending: _Row | None, forecast: _Row | None) -> _Answer:
    by = "" if held["producer_id"] is None else f" in a transaction of producer {held['producer_id']}, which was committed"
    sentence = f"offset {held['committed_offset']} was committed by record {held['record_offset']}{at(held['commit_timestamp_ms'])}{by}"
    records = [held["record_offset"]]
    if pending is not None:
        sentence += f"; record {pending['record_offset']} waits for the end of a transaction of producer {pending['producer_id']}"
        records.append(pending["record_offset"])
    if forecast is not None and forecast["is_past_due"]:
        sentence += f"; it is past due: the next run of the expiry task removes it ({forecast['reason']})"
    return _Answer("there", "proof", sentence, records, is_there=True)


def _began_anew(known: _Known, answer: _Answer, rows: Sequence[_Row], record_offset: int) -> _Answer:
    """Add to this answer the last removal before this record, if the log has one: what is there now began after it."""
    before = sorted((row for row in rows if row["fate"] not in NEVER_COUNTED), key=lambda row: int(row["record_offset"]))
    ends = [
        (value, tombstone)
        for value, tombstone in pairwise(row for row in before if row["record_offset"] < record_offset)
        if tombstone["is_tombstone"] and not value["is_tombstone"]
    ]
    if not ends:
        return answer
    value, tombstone = ends[-1]
    judgement = known.judgement(tombstone)
    held = "the group" if value["committed_offset"] is None else f"offset {value['committed_offset']}"
    times = "" if len(ends) == 1 else f" ({len(ends)} removals in all)"
    removed = f"record {tombstone['record_offset']}{at(tombstone['timestamp_ms'])} removed {held} of record {value['record_offset']}"
    cause = judgement.reason if judgement.confidence == "proof" else f"{judgement.confidence}: {judgement.reason}"
    return replace(
        answer,
        sentence=f"{answer.sentence}; it began anew: {removed}{times}; {cause}",
        records=[*answer.records, value["record_offset"], tombstone["record_offset"], *judgement.records],
        not_excluded="; ".join([*([answer.not_excluded] if answer.not_excluded else ()), *judgement.not_excluded]) or None,
    )


def _offset_has_no_group(held: _Row, group_type: str | None) -> _Answer:
    why_not = "its group is gone" if group_type is None else "its group is a share group"
    commit = f"record {held['record_offset']} committed {held['committed_offset']}"
    sentence = f"{commit}; the coordinator has it, but {why_not}, so no request shows it"
    return _Answer("not_shown", "proof", sentence, [held["record_offset"]])


def _lost_by_load(known: _Known, rows: Sequence[_Row]) -> _Answer | None:
    """Return the answer if the log has a value and the load of the release is the reason why the coordinator does not."""
    live = next((row for row in reversed(rows) if row["fate"] in (Fate.LIVE, Fate.PENDING) and not row["is_tombstone"]), None)
    load = known.load
    if live is None:
        return None
    if load["outcome"] not in LOADED_IN_MEMORY:
        where = "" if load["record_offset"] is None else f" at record {load['record_offset']}"
        sentence = (
            f"record {live['record_offset']} is in the log, but a load by {load['release']} is {load['outcome']}{where}: {load['reason']}"
        )
        records = [offset for offset in (live["record_offset"], load["record_offset"]) if offset is not None]
        return _Answer("load_aborted", "proof", sentence, records)
    if load["outcome"] == "not_shown" and live["record_offset"] >= (load["shown_offset"] or 0):
        return _Answer(
            "not_shown", "proof", f"record {live['record_offset']} is loaded, but not shown: {load['reason']}", [live["record_offset"]]
        )
    return None


def _only_pending(rows: Sequence[_Row], pending: _Row) -> _Answer:
    first = min(
        (row["record_offset"] for row in rows if row["producer_id"] == pending["producer_id"] and row["fate"] == Fate.PENDING), default=None
    )
    since = next((row["timestamp_ms"] for row in rows if row["record_offset"] == first), None)
    sentence = (
        f"record {pending['record_offset']} commits {pending['committed_offset']}, but the transaction of producer "
        f"{pending['producer_id']} (epoch {pending['producer_epoch']}) has no end marker; its first commit here is "
        f"record {first}{at(since)}"
    )
    return _Answer("pending", "proof", sentence, sorted({pending["record_offset"], *([] if first is None else [first])}))


def _aborted(known: _Known, row: _Row) -> _Answer:
    sentence = (
        f"record {row['record_offset']} committed {row['committed_offset']} in a transaction of producer {row['producer_id']}, which "
        f"marker {row['marker_record_offset']}{at(row['marker_timestamp_ms'])} aborted; no other commit is left"
    )
    excluded = _gaps(known, "an earlier commit that was removed without a trace")
    return _Answer("aborted", "likely" if excluded else "proof", sentence, [row["record_offset"], row["marker_record_offset"]], excluded)


def _not_kept(known: _Known, row: _Row) -> _Answer:
    first, last = known.load["first_record_offset"], known.load["last_record_offset"]
    if first is None or not first <= row["record_offset"] <= last:
        reads = "nothing" if first is None else f"records {first} to {last}"
        return _Answer(
            "not_read", "proof", f"record {row['record_offset']} is in the files, but a broker reads {reads}", [row["record_offset"]]
        )
    sentence = f"record {row['record_offset']} is in the log, but a load by {known.load['release']} does not keep it"
    return _Answer("not_kept", "undecidable", sentence, [row["record_offset"]], "each rule of the release that drops records")


def _never(known: _Known, what: str) -> _Answer:
    excluded = _gaps(known, "it existed and was removed without a trace")
    if excluded is None:
        return _Answer("never_there", "proof", f"the log is complete from record 0 on and has no record of {what}")
    return _Answer("never_there", "possible", f"the log has no record of {what}", not_excluded=excluded)


def _gaps(known: _Known, what: str) -> str | None:
    """Return the possibility that a log with missing records leaves open; None if no record is missing."""
    if known.extent is not None and known.extent.first_damage_offset is not None:
        return f"{what}: part of the log is damaged"
    missing = 0 if known.extent is None else known.extent.missing_offsets
    return f"{what}: {missing} record offsets from 0 on are missing" if missing else None


def _why_removed(known: _Known, decided: Sequence[_Row]) -> _Answer:
    """Answer for a key whose last record is a tombstone."""
    values = [row for row in decided if not row["is_tombstone"]]
    value = max(values, key=lambda row: int(row["record_offset"])) if values else None
    tombstone = next(row for row in decided if row["is_tombstone"] and (value is None or row["record_offset"] > value["record_offset"]))
    judgement = known.judgement(tombstone)
    record = f"record {tombstone['record_offset']}{at(tombstone['timestamp_ms'])}"
    records = [tombstone["record_offset"], *judgement.records]
    removed = f"{record} is its tombstone"
    if value is not None:
        records.insert(0, value["record_offset"])
        what = f"offset {value['committed_offset']}, which record {value['record_offset']}{at(value['commit_timestamp_ms'])} committed"
        removed = f"{record} removed {what}"
    with_group = ""
    if judgement.group_record_offset is not None:
        with_group = f"; record {judgement.group_record_offset} removed the group with it"
        records.append(judgement.group_record_offset)
    return _judged(judgement, f"{removed}; {judgement.reason}{with_group}", records)


def _judged(judgement: Judgement, sentence: str, records: Sequence[int]) -> _Answer:
    return _Answer(judgement.cause, judgement.confidence, sentence, records, "; ".join(judgement.not_excluded) or None)


def _why_group(known: _Known) -> _Answer:
    held = next(iter(known.held["groups"]), None)
    if held is not None:
        sentence = f"record {held['record_offset']} shows the {held['group_type']} group as {held['group_state']}"
        due = next((row for row in known.now if row["kind"] == "group"), None)
        if due is not None and due["is_past_due"]:
            sentence += f"; the next run of the expiry task removes it ({due['reason']})"
        own = [row for row in known.history if role_of(row["record_type"]) == "group"]
        return _began_anew(known, _Answer("there", "proof", sentence, [held["record_offset"]], is_there=True), own, held["record_offset"])
    lost = _lost_by_load(known, known.history)
    if lost is not None and not known.held["offsets"]:
        return lost
    own = [row for row in known.history if role_of(row["record_type"]) == "group"]
    tombstones = [row for row in own if row["is_tombstone"]]
    if tombstones:
        return _why_group_removed(known, own, tombstones[-1])
    if own:
        return _not_kept(known, own[-1])
    if known.held["offsets"]:
        sentence = "the group has offsets, which this release keeps without a group"
        return _Answer("not_kept", "proof", sentence, [row["record_offset"] for row in known.held["offsets"]])
    offsets = [_why_offset(known, *key) for key in known.offset_keys()]
    if offsets:
        last = max(offsets, key=lambda answer: max(answer.records, default=-1))
        return _Answer(
            last.code,
            last.confidence,
            f"the group had committed offsets alone; the last one: {last.sentence}",
            last.records,
            last.not_excluded,
        )
    return _never(known, f"group {known.group!r}")


def _why_group_removed(known: _Known, own: Sequence[_Row], tombstone: _Row) -> _Answer:
    before = [row for row in own if row["record_offset"] < tombstone["record_offset"] and not row["is_tombstone"]]
    records = [*(row["record_offset"] for row in before[-1:]), tombstone["record_offset"]]
    judgement = known.judgement(tombstone)
    left = known.held["offsets"]
    suffix = f"; offsets left without a group: {len(left)}" if left else ""
    removed = f"record {tombstone['record_offset']}{at(tombstone['timestamp_ms'])} removed the group"
    return _judged(judgement, f"{removed}; {judgement.reason}{suffix}", [*records, *judgement.records])


def _never_anywhere(group: str, topic: str | None, partition: int | None, loads: Sequence[_Row], extents: LogExtents) -> _Row:
    """Return the answer for a group without any record."""
    incomplete = [extent for extent in extents.values() if extent.missing_offsets or extent.first_damage_offset is not None]
    partitions = {row["offsets_partition"] for row in loads if row["offsets_partition"] is not None}
    here = "the one offsets partition here" if len(partitions) == 1 else f"the {len(partitions)} offsets partitions here"
    missing = f"{len(incomplete)} of them have gaps or damage; " if incomplete else ""
    return {
        "group": group,
        "topic": topic,
        "partition": partition,
        "is_there": False,
        "code": "never_there",
        "confidence": "possible",
        "sentence": f"no record of group {group!r} is in {here}",
        "records": [],
        "not_excluded": f"{missing}its records are in an offsets partition that is not here",
    }
