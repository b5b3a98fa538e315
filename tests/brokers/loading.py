"""One broker loads many logs, one in each offsets partition: exhume's state of them, and the answers of the broker."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import exhume
from exhume.codecs.record_types import decode_record
from exhume.replay.broker_log import Stop
from exhume.topic import OffsetsTopic
from tests.compared import Compared
from tests.judges.broker_answers import Expectation, read_answers
from tests.judges.fetch_comparison import compare_fetches
from tests.judges.state_comparison import Comparison, compare_state

from .broker import Broker
from .client import Client, Question, answers, await_loads, create_topics

#: The topics that exist on every broker here, beside the offsets topic.
TOPICS = ("orders", "payments.v2")


@dataclass(frozen=True, slots=True)
class Loaded:
    """A coordinator that has loaded logs, after a clean stop or after a kill."""

    coordinator: str
    stop: Stop
    batches: list[dict[str, Any]]
    #: The state of the logs by exhume: rows by table.
    tables: Mapping[str, list[dict[str, Any]]]
    expectation: Expectation

    def compare(self) -> Comparison:
        """Compare the state by exhume with the answers."""
        comparison = compare_state(self.expectation, self.tables, release=self.expectation.release)
        compare_fetches(self.expectation, self.tables, comparison)
        return comparison

    def count(self, comparison: Comparison, compared: Compared, what: str) -> None:
        """Add the compared rows to the printed counts, under the name `what`."""
        said_by = f"broker {self.coordinator}, {what}"
        compared.update({(f"{table} ({group_type})", said_by): rows for (table, group_type), rows in comparison.counts.items()})
        generations = sum("generation" in group.columns for group in self.expectation.groups.values())
        compared["generations (classic)", said_by] += generations


@contextmanager
def fresh_broker(coordinator: str, directory: Path, *, offsets_partitions: int) -> Iterator[Broker]:
    """Return a stopped broker with `TOPICS` and an empty offsets topic."""
    with Broker(coordinator, directory, offsets_partitions=offsets_partitions) as broker:
        broker.start()
        create_topics(broker, *TOPICS)
        await_loads(broker)
        broker.stop()
        yield broker


def topic_ids(broker: Broker) -> dict[str, str]:
    """Return the ids of `TOPICS` on a broker that was started once; none before 3.0."""
    return {topic: broker.topic_id(topic) for topic in TOPICS} if broker.kafka.version >= (3,) else {}


def load(broker: Broker, partition_directories: Sequence[Path], *, stop: Stop) -> Loaded:
    """Let a stopped broker load exactly these directories, read its state, and stop it again."""
    broker.put(partition_directories)
    if stop == "unclean":
        broker.forget_clean_stop()
    with exhume.open(broker.log_directory) as topic:
        tables = {name: table.to_pylist() for name, table in topic.state(release=broker.coordinator).tables.items()}
        batches = topic.batches().read_all().to_pylist()
        questions = questions_of(topic)
    broker.start()
    try:
        await_loads(broker)
        with Client(broker.port) as client:
            answer = answers(client, broker, questions)
    finally:
        broker.stop()
    if stop == "clean":
        # The log layer reads open transactions from producer snapshots, and a written log has none. A recovery reads the log.
        answer.pop("producers", None)
    setting = {"partitions": broker.offsets_partitions, "synthetic": True, "topic_ids": topic_ids(broker)}
    expectation = read_answers(answer, f"after-{broker.coordinator}", "written", setting)
    return Loaded(broker.coordinator, stop, batches, tables, expectation)


def questions_of(topic: OffsetsTopic) -> dict[str, Question]:
    """Return each group of a log, also removed ones, with its committed partitions and its generations."""
    questions: defaultdict[str, Question] = defaultdict(Question)
    for record in topic.records().read_all().to_pylist():
        if record["is_control"]:
            continue
        decoded = decode_record(record["key"], record["value"])
        if "group" not in decoded.key or {"undecodable_key", "invalid_utf8"} & set(decoded.marks):
            continue
        question = questions[decoded.key["group"]]
        if decoded.number in (0, 1):
            question.partitions.add((decoded.key["topic"], decoded.key["partition"]))
        if decoded.number == 2 and decoded.value is not None and "generation" in decoded.value:
            question.generations.add(decoded.value["generation"])
    return dict(questions)
