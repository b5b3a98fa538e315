"""Our side of a broker's answer: the same log, loaded by the rules of that broker's release, and what passes of expiry leave of it.

Every answer about a log is compared in one of two ways, or both: `load_answers` tell what was there after the load, `expiry_answers` what
was left when expiry passes had nothing more to do. Left out are `before` (the broker that wrote the log knew more than its log says) and
the answers in `UNTRUSTWORTHY`.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import exhume
from exhume.codecs.log_directory import discover
from exhume.replay.broker_log import Stop
from exhume.replay.expiry import Expired, expire
from exhume.replay.local import load_partitions
from exhume.replay.partition_load import LoadOptions, PartitionLoad
from exhume.replay.partition_state import PartitionState
from exhume.replay.reading import LoadInputs
from exhume.replay.releases import profile_for
from exhume.replay.state_rows import state_rows
from exhume.replay.state_tables import SCHEMAS, Row, table
from exhume.replay.topic_names import TopicNames

from . import corpus
from .broker_answers import Coordinator, read_json
from .fetch_comparison import compare_fetches
from .state_comparison import Comparison, compare_state

_MS_PER_MINUTE = 60_000

#: The answers of 3.3.2 about these logs list nothing at all, one a group of another story: that broker never loaded them.
UNTRUSTWORTHY = frozenset(
    f"facts/{fact}-clean/after-3.3.2"
    for fact in ("count-wrong", "crc-flip", "magic-5", "offset-back-big", "offset-dup", "size-up", "tail-cut", "tail-zero")
)


@cache
def answers(root: Path = corpus.BUNDLED) -> list[corpus.AnswerFile]:
    """Every answer of a broker that loaded a log of this root, trusted or not."""
    found = (answer for case in corpus.cases(root) for answer in case.answers())
    return [answer for answer in found if answer.data.is_dir() and answer.kind != "before"]


def load_answers(root: Path = corpus.BUNDLED) -> list[corpus.AnswerFile]:
    """What brokers said of what they had loaded."""
    return [answer for answer in answers(root) if not answer.is_after_expiry and answer.id not in UNTRUSTWORTHY]


def expiry_answers(root: Path = corpus.BUNDLED) -> list[corpus.AnswerFile]:
    """What brokers said when their expiry passes had run; of some of these logs there was nothing to expire."""
    return [answer for answer in answers(root) if answer.kind == "expired" or answer.case.scenario.get("kind") == "expiry"]


def asked(release: str, coordinator: Coordinator) -> str:
    """The release as a user asks for it: 3.7 to 3.9 have both coordinators."""
    return f"{release}-new" if coordinator == "java" and release.startswith("3.") else release


def loaded_tables(answer: corpus.AnswerFile, loaded_with: str | None = None) -> Mapping[str, list[Row]]:
    """The state tables of the log of this answer; `loaded_with` None: by the rules of the release that answered."""
    buffer_bytes = re.search(r"-buffer-(\d+)", answer.label)
    inputs = LoadInputs(load_buffer_bytes=int(buffer_bytes[1])) if buffer_bytes else None
    stop: Stop = "clean" if answer.case.is_clean_stop else "unclean"
    release = loaded_with or asked(answer.release, answer.coordinator)
    with tempfile.TemporaryDirectory() as scratch, exhume.open(answer.data) as topic:
        topics = Path(scratch) / "topics.csv"
        names = (f"{topic},{topic_id},\n" for topic, topic_id in answer.case.topic_ids.items())
        topics.write_text("topic,topic_id,partitions\n" + "".join(names), encoding="utf-8")
        state = topic.state(release=release, stop=stop, topics_file=topics, inputs=inputs)
    return {name: rows.to_pylist() for name, rows in state.tables.items()}


@cache
def compare_load(answer: corpus.AnswerFile, loaded_with: str | None = None) -> Comparison:
    """The state of the log against the answer."""
    tables = loaded_tables(answer, loaded_with)
    comparison = compare_state(answer.expectation, tables, release=answer.release)
    compare_fetches(answer.expectation, tables, comparison)
    return comparison


@dataclass
class AfterPasses:
    """The loads, and all that passes did until they had nothing more to do."""

    names: TopicNames
    loads: list[tuple[PartitionLoad, PartitionState]]
    written: list[Expired]

    @property
    def tombstone_count(self) -> int:
        return sum(len(done.tombstones) for done in self.written)

    def tables(self) -> Mapping[str, list[Row]]:
        """The state tables of what is left."""
        rows: dict[str, list[Row]] = {name: [] for name in SCHEMAS}
        for load, partition_state in self.loads:
            origin = {"replica": load.partition.replica, "offsets_partition": load.partition.offsets_partition}
            rows["loads"].append({**origin, **load.row})
            for name, partition_rows in state_rows(partition_state, self.names).items():
                rows[name] += [{**origin, **row} for row in partition_rows]
        return {name: table(name, table_rows).to_pylist() for name, table_rows in rows.items()}


@cache
def after_passes(answer: corpus.AnswerFile) -> AfterPasses:
    """Load the log, and run passes with the retention and the clock of the broker that answered."""
    profile = profile_for(asked(answer.release, answer.coordinator))
    content = read_json(answer.path)
    content = content.get(answer.label, content)
    retention_minutes = content.get("retention_minutes") or answer.case.scenario["config"]["offsets.retention.minutes"]
    names = TopicNames()
    for topic, topic_id in answer.case.topic_ids.items():
        names.add("topics_file", topic_id, topic)
    options = LoadOptions(
        profile,
        stop="clean" if answer.case.is_clean_stop else "unclean",
        view="in_memory",
        inputs=LoadInputs(retention_minutes=retention_minutes),
    )
    after = AfterPasses(names, [], [])
    for load in load_partitions(discover([str(answer.data)]).log_directories, options, names):
        partition_state = load.partition_state
        # A pass can also remove a group that has no tombstone.
        while (
            done := expire(partition_state, content["asked_at_ms"], retention_minutes * _MS_PER_MINUTE, profile)
        ).partition_state != partition_state:
            after.written.append(done)
            partition_state = done.partition_state
        after.loads.append((load, partition_state))
    return after


@cache
def compare_after_expiry(answer: corpus.AnswerFile) -> Comparison:
    """What passes leave against the answer."""
    return compare_state(answer.expectation, after_passes(answer).tables(), release=answer.release)


def of_release(found: list[corpus.AnswerFile], release: str, coordinator: Coordinator) -> Iterator[corpus.AnswerFile]:
    """Those of these answers that one release gave."""
    return (answer for answer in found if (answer.release, answer.coordinator) == (release, coordinator))
