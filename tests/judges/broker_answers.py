"""What a real broker said about its groups, in our own column names.

A broker that had loaded a log was asked ListGroups, then for each group the describe request of its type, OffsetFetch with and without
require_stable, and DescribeProducers; for synthetic logs also heartbeats, to find generations (`probe`). The answers are kept as JSON in
three dialects: full responses (`after-R`, `restarted-R`, `before`), responses without their empty fields (hand-made logs, one offsets
partition each), and responses with `load_failures`, `probe` and `"offsets_stable": "same"` (random logs).

`read_answers` turns all three into an `Expectation`: for each group the columns of our tables that the broker showed, and nothing else.
What it did not show is missing, and where that needs a reason, `GroupAnswer.silences` has it.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

# Handed on to those who ask brokers.
from .group_answers import GroupAnswer, read_group, topic_id_of

Coordinator = Literal["classic", "java"]
Kind = Literal["after", "restarted", "before", "expired"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """The answers of one broker about one log.

    `kind` is after (a fresh broker that loaded the log; the topics of the groups exist there only for random logs), restarted (the whole
    log directory, topics and all), before (the writing broker, which may know more than its log) or expired (after an expiry pass).
    """

    label: str
    release: str
    coordinator: Coordinator
    kind: Kind
    offsets_partition_count: int
    groups: Mapping[str, GroupAnswer]
    #: offsets partition to the broker's own words on why it could not load it.
    failed_loads: Mapping[int, str]
    #: offsets partition to an error that the broker logged behind a load that was complete.
    late_errors: Mapping[int, str]
    refused_to_start: str | None
    #: False where ListGroups itself failed: a missing group proves nothing then.
    is_list_complete: bool
    #: False where only an excerpt of the broker's own log was kept: a load may have failed without a trace in `failed_loads`.
    is_log_complete: bool
    #: False where offsets were fetched for all topics only: partitions that are pending and nothing else do not appear then.
    is_pending_complete: bool
    #: Topic ids that the broker had, as far as its answers or the story tell.
    existing_topic_ids: frozenset[str]
    #: (offsets partition, producer id, epoch, first offset) of what the log layer of the broker holds open. None: not asked.
    open_transactions: frozenset[tuple[int, int, int, int]] | None
    #: What the broker appended to the log before it was asked: the state is not that of the bytes alone.
    appended: tuple[str, ...]

    @property
    def version(self) -> tuple[int, ...]:
        """The release as numbers."""
        return release_numbers(self.release)


def release_numbers(release: str) -> tuple[int, ...]:
    """`4.3.0` as (4, 3, 0), so that releases compare."""
    return tuple(int(number) for number in release.split("."))


def read_json(path: Path) -> dict[str, Any]:
    """A JSON file, plain or gzip."""
    raw = path.read_bytes()
    value: dict[str, Any] = json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)
    return value


def read_answers(answer: Mapping[str, Any], label: str, story: str, scenario: Mapping[str, Any]) -> Expectation:
    """This answer as an expectation.

    Args:
        answer: the JSON, read.
        label: the name of its file without suffixes, such as `after-4.3.0`.
        story: the name of the directory of its story, such as `3.9.1-expiry-scala`.
        scenario: the story itself: number of offsets partitions, topic ids.
    """
    kind = label.partition("-")[0]
    release = answer.get("version") or answer["release"]
    version = release_numbers(release)
    probes = answer.get("probe", {})
    groups = {group: read_group(parts, version, probes.get(group, {})) for group, parts in answer.get("groups", {}).items() if parts}
    groups |= {group: _committed_only(offsets) for group, offsets in answer.get("committed", {}).items()}
    failures, late = _load_errors(answer)
    refused = answer.get("broker_refused_to_start")
    return Expectation(
        label=label,
        release=release,
        coordinator=coordinator_of(answer, label, story),
        kind=cast("Kind", kind),
        offsets_partition_count=scenario["partitions"],
        groups=groups,
        failed_loads=failures,
        late_errors=late,
        refused_to_start="\n".join(refused) if refused else None,
        is_list_complete=answer.get("list_error") == "none",
        is_log_complete="partition" not in answer,
        is_pending_complete="probe" in answer
        or any((group.unstable or frozenset()) - (group.offsets or {}).keys() for group in groups.values()),
        existing_topic_ids=_existing_topic_ids(groups.values(), scenario),
        open_transactions=_open_transactions(answer),
        appended=tuple(answer.get("appended", ())),
    )


def coordinator_of(answer: Mapping[str, Any], label: str, story: str) -> Coordinator:
    """The coordinator that answered; arguments as of `read_answers`."""
    rest = label.partition("-")[2]
    named = answer.get("coordinator")
    if named:
        return "java" if named == "new" else "classic"
    if rest.endswith(("-new", "-classic")):
        return "java" if rest.endswith("-new") else "classic"
    release = answer.get("version") or answer["release"]
    if release_numbers(release) >= (4,):
        return "java"
    # 3.7.2 and 3.9.1 have both, and their own stories ran on the Java one unless their name says scala.
    is_own_story = release in ("3.7.2", "3.9.1") and story.startswith(release) and "scala" not in story
    return "java" if is_own_story else "classic"


#: How coordinators log that a load failed, with the offsets partition.
FAILED_LOAD = re.compile(
    r"(?:Error (?:in )?loading offsets from|Failed to load metadata from) \[?__consumer_offsets[-,](\d+)"
    # A load that a change of leaders interrupted says nothing about the log: it is tried again.
    r"(?!.* is no longer the leader)"
)
#: How the Scala coordinator complains behind a complete load.
LATE_ERROR = re.compile(r"Unexpected unload of active group .* while loading partition __consumer_offsets-(\d+)")


def _load_errors(answer: Mapping[str, Any]) -> tuple[dict[int, str], dict[int, str]]:
    """Offsets partitions that were not loaded, and those where the Scala coordinator only complained behind a complete load."""
    failures = {int(partition): line for partition, line in answer.get("load_failures", {}).items()}
    late = {partition: line for partition, line in failures.items() if LATE_ERROR.search(line)}
    if "load_failures" not in answer:
        lines = answer.get("log_lines", ())
        # Hand-made logs lie in one broker together: only one partition is the answer's own.
        own = answer.get("partition")
        for pattern, errors in ((FAILED_LOAD, failures), (LATE_ERROR, late)):
            for line in lines:
                match = pattern.search(line)
                if match and own in (None, int(match[1])):
                    errors.setdefault(int(match[1]), line)
        unled = re.search(r"not led or not loaded: \[([\d, ]*)\]", answer.get("load", ""))
        for partition in unled[1].split(",") if unled else ():
            failures.setdefault(int(partition), answer["load"])
    return {partition: line for partition, line in failures.items() if partition not in late}, late


def _open_transactions(answer: Mapping[str, Any]) -> frozenset[tuple[int, int, int, int]] | None:
    if "topics" not in answer.get("producers", {}):
        return None
    return frozenset(
        (partition["partition_index"], producer["producer_id"], producer["producer_epoch"], producer["current_txn_start_offset"])
        for topic in answer["producers"]["topics"]
        for partition in topic["partitions"]
        for producer in partition["active_producers"]
        if producer["current_txn_start_offset"] >= 0
    )


def _existing_topic_ids(groups: Iterable[GroupAnswer], scenario: Mapping[str, Any]) -> frozenset[str]:
    seen = {topic_id for group in groups for topic_id in group.topic_names}
    if scenario.get("synthetic"):
        seen |= {topic_id_of(text) for text in scenario.get("topic_ids", {}).values()}
    return frozenset(seen)


def _committed_only(offsets: Mapping[str, int]) -> GroupAnswer:
    """The shortest dialect: `topic-partition` to committed offset."""
    commits = {}
    for name, committed_offset in offsets.items():
        topic, _, partition = name.rpartition("-")
        commits[topic, int(partition)] = {"committed_offset": committed_offset}
    return GroupAnswer(listed=bool(commits), offsets=commits)
