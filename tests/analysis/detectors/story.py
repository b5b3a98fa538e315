"""Logs told in a few characters, for the tests of detectors.

    <offset> <time> [flags] RECORD | RECORD        one line is one batch; `|` joins records of the same batch

    OC g t-0 = 5 {le= md= ct= xt= tid= v=}         offset commit; OC g t-0 = X: its tombstone
    GM g gen=5 proto=range leader=A st= {A@h1/c#i: t,u → t-0,u-1; B}
    GM g gen=6 empty st=                           a classic group with members, and without; GM g = X: its tombstone
    CG3 g epoch=5 · CG5 g m {t} · CG6 g target-epoch=5 · CG7 g m {t:[0,1]} · CG8 g m epoch=5 prev=4 state=0 own{t:[0]} revoke{}
                                                   records of a consumer group; `= X` instead of fields: a tombstone
    MARK pid=7 ep=0 COMMIT                         the end of a transaction
    [T pid=7 ep=0]                                 the batch is one of this producer's transaction
    [e=4]                                          the leader epoch of the batch

Times are `d<day> hh:mm[:ss]`; the day is that of the line before where it is left out. What a record leaves out: `le=-1`, `md=""`, `ct` and
`st` the time of the line, `pt=consumer`, `proto=range`, the first member leads. A line may repeat: `12 × every 5 s` behind it repeats the
batch, with `{n}` counting from 0.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from exhume.analysis.detectors import Inputs, TopicCase, condense, diagnose
from exhume.codecs.chapters import chapters
from exhume.codecs.embedded import encode_assignment, encode_subscription
from exhume.codecs.log_directory import discover
from exhume.codecs.record_types import ABORT, COMMIT, encode_control_record, encode_key, encode_value
from exhume.codecs.segment_reader import ReadOptions, SegmentReader
from exhume.codecs.wire import format_uuid
from exhume.findings import Finding, Findings
from exhume.fixtures.coordinator import START_MS
from exhume.fixtures.log_writer import KeyValue, group_metadata
from exhume.fixtures.partition_log import MessageForm, PartitionLog
from exhume.replay.topic_names import TopicNames

DAY_MS, HOUR_MS, MINUTE_MS = 86_400_000, 3_600_000, 60_000
#: Midnight of day 0.
DAY_0_MS = START_MS - START_MS % DAY_MS

_LINE = re.compile(r"(?P<offset>\d+)\s+(?P<time>(?:d\d+\s+)?\d+:\d+(?::\d+)?)\s+(?P<flags>(?:\[[^\]]*\]\s*)*)(?P<records>.*)")
_REPEAT = re.compile(r"(?P<line>.*?)\s+(?P<count>\d+) × every (?P<seconds>\d+) s$")
_TIME = re.compile(r"(?:d(\d+)\s+)?(\d+):(\d+)(?::(\d+))?")
_FIELD = re.compile(r"([a-z-]+)=((?:d\d+ \d+:\d+(?::\d+)?)|\"[^\"]*\"|[^\s{}]+)")
_STATE_OF = {"own": "assigned", "revoke": "pending_revocation"}


def topic_id(name: str) -> str:
    """The id that a topic, or a word for an id, has in these stories."""
    return format_uuid(uuid.uuid5(uuid.NAMESPACE_OID, name).bytes)


def time_ms(text: str, day: int = 0) -> int:
    """A time of a story."""
    match = _TIME.fullmatch(text.strip())
    assert match is not None, text
    days, hours, minutes, seconds = match.groups()
    day = int(days) if days is not None else day
    return DAY_0_MS + day * DAY_MS + int(hours) * HOUR_MS + int(minutes) * MINUTE_MS + int(seconds or 0) * 1000


class Story:
    """Logs of one broker, partition by partition."""

    def __init__(self, text: str = "", *, offsets_partition: int = 0) -> None:
        self._logs: dict[int, PartitionLog] = {}
        self._topics: set[str] = set()
        self._day = 0
        if text:
            self.tell(text, offsets_partition=offsets_partition)

    def tell(self, text: str, *, offsets_partition: int = 0) -> Story:
        """Append these lines to the log of an offsets partition. Offsets that are left out are offsets that a cleaner took."""
        log = self._logs.setdefault(offsets_partition, PartitionLog(offsets_partition, MessageForm(2, "none")))
        self._epoch = 0
        for line in filter(None, map(str.strip, text.strip().splitlines())):
            if not line.startswith("#"):
                self._tell_line(log, line)
        return self

    def write(self, directory: Path) -> Path:
        """Write the data directory."""
        for log in self._logs.values():
            log.write(directory)
        return directory

    def case(self, directory: Path) -> TopicCase:
        """Written there, read, and condensed."""
        return case_of(self.write(directory), topics=self._topics)

    def findings(self, directory: Path, inputs: Inputs | None = None, *, codes: Collection[str] | None = None) -> list[Finding]:
        """What is diagnosed of it."""
        return diagnose(self.case(directory), inputs or Inputs(), codes=codes)

    def _tell_line(self, log: PartitionLog, line: str) -> None:
        repeat = _REPEAT.fullmatch(line)
        body, count, step_ms = (repeat["line"], int(repeat["count"]), int(repeat["seconds"]) * 1000) if repeat else (line, 1, 0)
        match = _LINE.fullmatch(body)
        assert match is not None, line
        first_ms = time_ms(match["time"], self._day)
        self._day = (first_ms - DAY_0_MS) // DAY_MS
        for number in range(count):
            records, batch_fields = self._batch(
                match["records"].replace("{n}", str(number)), match["flags"], log, first_ms + number * step_ms
            )
            if number == 0:
                log.next_offset = int(match["offset"])
            if self._epoch != batch_fields["partition_leader_epoch"]:
                self._epoch = batch_fields["partition_leader_epoch"]
                log.begin_epoch(self._epoch)
            log.append(records, timestamp_ms=first_ms + number * step_ms, **batch_fields)

    def _batch(self, text: str, flags: str, log: PartitionLog, now_ms: int) -> tuple[list[KeyValue], dict[str, Any]]:
        fields: dict[str, Any] = {"partition_leader_epoch": self._epoch}
        for flag in re.findall(r"\[([^\]]*)\]", flags):
            values = dict(_FIELD.findall(flag))
            if "e" in values:
                fields["partition_leader_epoch"] = int(values["e"])
            if flag.startswith("T"):
                fields |= {"producer_id": int(values["pid"]), "producer_epoch": int(values.get("ep", 0)), "is_transactional": True}
        if text.startswith("MARK"):
            values = dict(_FIELD.findall(text))
            outcome = COMMIT if text.rsplit(maxsplit=1)[-1] == "COMMIT" else ABORT
            fields |= {"producer_id": int(values["pid"]), "producer_epoch": int(values.get("ep", 0)), "is_transactional": True}
            return [encode_control_record(outcome, {"coordinator_epoch": int(values.get("ce", 0))})], fields | {"is_control": True}
        return [self._record(record.strip(), now_ms) for record in text.split(" | ")], fields

    def _record(self, text: str, now_ms: int) -> KeyValue:
        kind, _, rest = text.partition(" ")
        if kind == "OC":
            return self._commit(rest, now_ms)
        if kind == "GM":
            return self._group(rest, now_ms)
        return self._modern(int(kind.removeprefix("CG")), rest)

    def _commit(self, text: str, now_ms: int) -> KeyValue:
        match = re.fullmatch(r"(\S+) (\S+)-(\d+) = (\S+)(?: \{(.*)\})?", text)
        assert match is not None, text
        group, topic, partition, offset, details = match.groups()
        self._topics.add(topic)
        key = encode_key(1, {"group": group, "topic": topic, "partition": int(partition)})
        if offset == "X":
            return key, None
        fields = dict(_FIELD.findall(details or ""))
        version = int(fields.get("v", 4 if "tid" in fields else 1 if "xt" in fields else 3))
        value: dict[str, Any] = {
            "committed_offset": int(offset),
            "metadata": fields.get("md", "").strip('"'),
            "commit_timestamp_ms": time_ms(fields["ct"], self._day) if "ct" in fields else now_ms,
        }
        if version == 1:
            expires = fields.get("xt", "-1")
            value["expire_timestamp_ms"] = int(expires) if expires.lstrip("-").isdigit() else time_ms(expires, self._day)
        if version >= 3:
            value["leader_epoch"] = int(fields.get("le", -1))
        if "tid" in fields:
            value["topic_id"] = topic_id(fields["tid"])
        return key, encode_value(1, version, value)

    def _group(self, text: str, now_ms: int) -> KeyValue:
        group, _, rest = text.partition(" ")
        if rest.strip() == "= X":
            return encode_key(2, {"group": group}), None
        members_text = re.search(r"\{(.*)\}", rest)
        fields = dict(_FIELD.findall(rest[: members_text.start()] if members_text else rest))
        members = [_member(each.strip()) for each in re.split("[;]", members_text[1])] if members_text else []
        is_empty = not members
        value = {
            "protocol_type": fields.get("pt", "consumer").strip('"'),
            "generation": int(fields["gen"]),
            "protocol": None if is_empty else fields.get("proto", "range"),
            "leader": None if is_empty else fields.get("leader", members[0]["member_id"]),
            "current_state_timestamp_ms": time_ms(fields["st"], self._day) if fields.get("st", "…") != "…" else now_ms,
            "members": members,
        }
        return group_metadata(group, value)

    def _modern(self, number: int, text: str) -> KeyValue:
        group, _, rest = text.partition(" ")
        key: dict[str, Any] = {"group": group}
        if number in (5, 7, 8):
            key["member_id"], _, rest = rest.partition(" ")
        encoded = encode_key(number, key)
        if rest.strip() == "= X":
            return encoded, None
        fields = dict(_FIELD.findall(rest))
        value: dict[str, Any]
        match number:
            case 3:
                value = {"group_epoch": int(fields["epoch"]), "metadata_hash": 0}
            case 5:
                topics = re.search(r"\{([^}]*)\}", rest)
                value = {
                    "client_id": fields.get("client", "c"),
                    "client_host": fields.get("host", "/h"),
                    "subscribed_topics": [name for name in re.split(r"[,\s]+", topics[1]) if name] if topics else [],
                    "rebalance_timeout_ms": int(fields.get("timeout", 300_000)),
                    "server_assignor": fields.get("assignor", "uniform"),
                    "classic_member_metadata": None,
                }
                if "instance" in fields:
                    value["instance_id"] = fields["instance"]
            case 6:
                value = {"assignment_epoch": int(fields["target-epoch"])}
            case 7:
                value = {"topic_partitions": self._entries(rest)}
            case _:
                value = {
                    "member_epoch": int(fields["epoch"]),
                    "previous_member_epoch": int(fields.get("prev", -1)),
                    "member_state": int(fields.get("state", 0)),
                    "assigned": [],
                    "pending_revocation": [],
                }
                for name, entries in re.findall(r"(own|revoke)\{([^}]*)\}", rest):
                    value[_STATE_OF[name]] = self._entries(entries)
        return encoded, encode_value(number, 0, value)

    def _entries(self, text: str) -> list[dict[str, Any]]:
        entries = []
        for topic, partitions in re.findall(r"([^\s{},:]+):\[([\d,\s]*)\]", text):
            self._topics.add(topic)
            numbers = [int(number) for number in re.split(r"[,\s]+", partitions) if number]
            entries.append({"topic_id": topic_id(topic), "partitions": numbers})
        return entries


def case_of(*directories: Path, topics: Collection[str] = ()) -> TopicCase:
    """What is condensed of these directories, as `exhume diagnose` does; the ids of these topics are known."""
    names = TopicNames()
    for topic in topics:
        names.add("topics_file", topic_id(topic), topic)
    with discover([*directories]) as evidence:
        return condense(chapters(SegmentReader(evidence, ReadOptions(), Findings())), names)


def _member(text: str) -> dict[str, Any]:
    who, _, what = text.partition(":")
    subscribed, _, assigned = re.sub("->", "→", what).partition("→")
    match = re.fullmatch(r"([^@/#\s]+)(?:@([^/#\s]+))?(?:/([^#\s]+))?(?:#(\S+))?", who.strip())
    assert match is not None, text
    member_id, host, client, instance = match.groups()
    topics = [topic for topic in re.split(r"[,\s]+", subscribed) if topic]
    partitions: dict[str, list[int]] = {}
    for topic_partitions in filter(None, re.split(r",\s*(?=[^\d\s])", assigned.strip())):
        topic, _, numbers = topic_partitions.strip().rpartition("-")
        partitions.setdefault(topic, []).extend(int(number) for number in numbers.split(","))
    entries = [{"topic": topic, "partitions": numbers} for topic, numbers in partitions.items()]
    return {
        "member_id": member_id,
        "group_instance_id": instance,
        "client_id": client or "c",
        "client_host": f"/{host or 'h'}",
        "rebalance_timeout_ms": 300_000,
        "session_timeout_ms": 45_000,
        "subscription": encode_subscription(1, {"topics": topics, "owned_partitions": []}),
        "assignment": encode_assignment(1, {"assigned_partitions": entries}),
    }


def codes_of(findings: Collection[Finding]) -> set[str]:
    """The codes of what was found, but for what could not be decided."""
    return {finding.code for finding in findings if finding.confidence != "undecidable"}


def said(findings: Collection[Finding], code: str) -> Finding:
    """The only finding of this code."""
    found = [finding for finding in findings if finding.code == code]
    assert len(found) == 1, [finding.sentence for finding in found]
    return found[0]


def evidence_offsets(finding: Finding) -> list[int]:
    """The record offsets that a finding rests on."""
    rows = finding.evidence
    assert isinstance(rows, list)
    return [row["record_offset"] for row in rows if isinstance(row, Mapping)]
