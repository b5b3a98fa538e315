"""Random logs twice: as the coordinator wrote them, and as a cleaner left them; and the grades of their moments against each other."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

import exhume
from exhume.codecs.batches import Batch, BatchWalk
from exhume.codecs.offsets_topic import offsets_partition_of
from exhume.codecs.records import read_records
from exhume.fixtures.classic_group import ClassicGroup
from exhume.fixtures.cleaner import Cleaner
from exhume.fixtures.consumer_group import ConsumerGroup
from exhume.fixtures.coordinator import Coordinator, Producer
from exhume.fixtures.log_writer import KeyValue, PartitionWriter, offset_commit, tombstone, write_checkpoint
from exhume.fixtures.partition_log import MessageForm, PartitionLog, Replica
from exhume.replay.state import CoordinatorState
from exhume.topic import OffsetsTopic

PARTITION = 7
#: Groups of one offsets partition.
NAMES = [name for name in (f"group-{number}" for number in range(2_000)) if offsets_partition_of(name) == PARTITION]
_TOPICS = {"orders": 6, "payments": 3, "refunds": 2}
#: The steps of a story, and how often it has them.
_STEPS = {"commit": 10, "join": 4, "leave": 2, "remove": 3, "heartbeat": 4, "transaction": 4, "end": 5, "roll": 4, "clean": 3}
_TABLES = ("groups", "members", "assignments", "offsets", "pending_offsets")
#: Columns that say where a fact was found: a group without its own record has the first record that names it.
_SOURCES = {"groups": {"record_offset"}, "assignments": {"topic", "topic_name_source"}}


class TwiceCoordinator(Coordinator):
    """A coordinator whose log is written twice; a cleaner works on the second."""

    def __init__(self, form: MessageForm) -> None:
        super().__init__(form)
        self.whole = self.log(NAMES[0])
        self.cleaned = PartitionLog(PARTITION, form)
        #: The time between the records of a batch.
        self.step_ms = 0

    def append(self, group: str, records: Iterable[KeyValue], **batch_fields: Any) -> int:
        records = [*records]
        if not records:
            return self.whole.next_offset
        fields: Any = {"timestamp_ms": self.now_ms, "step_ms": self.step_ms, **batch_fields}
        self.now_ms += (len(records) - 1) * self.step_ms
        self.cleaned.append(records, **fields)
        return self.whole.append(records, **fields)


@dataclass
class CleanedLog:
    """The directories of one log: as it was written, and as a cleaner left it; its times, its end and the release that reads it."""

    whole: Path
    cleaned: Path
    times_ms: list[int]
    end_offset: int
    release: str


def write(directory: Path, random: Random) -> CleanedLog:
    """Write a random log twice below this directory."""
    story = _Story(random)
    for _ in range(random.choice([20, 40, 60])):
        story.step()
    coordinator = story.coordinator
    whole, cleaned = directory / "whole", directory / "cleaned"
    for place, log in ((whole, coordinator.whole), (cleaned, story.replica())):
        Replica(1, [log], {}).write(place)
    if random.random() < 0.5:
        # People often copy the segments alone.
        (cleaned / "cleaner-offset-checkpoint").unlink(missing_ok=True)
    if random.random() < 0.1:
        start_offset = random.randrange(coordinator.whole.next_offset)
        write_checkpoint(cleaned / "log-start-offset-checkpoint", [("__consumer_offsets", PARTITION, start_offset)])
    return CleanedLog(whole, cleaned, sorted(story.times_ms), coordinator.whole.next_offset, story.release)


def with_replaced_segments(data: Path, offsets_partition: int, directory: Path, release: str) -> CleanedLog:
    """Write a partition of a real broker as its cleaner left it, and with the records of the segments that the cleaner replaced.

    A broker keeps a replaced segment for a while, as `.deleted`. Of segments with the same first offset only the last one is left, so
    early records are missing in both logs.
    """
    name = f"__consumer_offsets-{offsets_partition}"
    whole, cleaned = directory / "whole", directory / "cleaned"
    (cleaned / name).mkdir(parents=True)
    for path in (data / name).glob("*.log"):
        shutil.copy(path, cleaned / name)
    shutil.copy(data / "cleaner-offset-checkpoint", cleaned)
    batches: dict[int, tuple[int, bytes, Batch]] = {}
    times_ms: set[int] = set()
    for path in (data / name).glob("*.log*"):
        content = path.read_bytes()
        for batch in BatchWalk(content):
            records = list(read_records(content, batch))
            times_ms |= {record.timestamp_ms for record in records if record.timestamp_ms is not None}
            base_offset = batch.last_offset if batch.base_offset is None else batch.base_offset
            # A cleaned batch has fewer records than its original.
            if len(records) >= batches.get(base_offset, (0,))[0]:
                batches[base_offset] = len(records), content[batch.byte_position : batch.end_position], batch
    with PartitionWriter(whole, offsets_partition) as log:
        for _, (_, content, batch) in sorted(batches.items(), key=lambda item: item[0]):
            log.append_bytes(content, batch.last_offset, batch.max_timestamp_ms)
    return CleanedLog(whole, cleaned, sorted(times_ms), log.next_offset, release)


class _Story:
    """Groups of one coordinator that do things at random, and a cleaner between them."""

    def __init__(self, random: Random) -> None:
        self.random = random
        message_format, codec = random.choice([(2, "none"), (2, "none"), (2, "lz4"), (1, "none"), (0, "none")])
        self.coordinator = TwiceCoordinator(MessageForm(message_format, codec))
        self.has_transactions = message_format == 2 and random.random() < 0.7
        names = random.sample(NAMES, random.choice([4, 8, 16]))
        is_modern = message_format == 2 and random.random() < 0.6
        self.release = "4.3.0" if is_modern else random.choice(["4.3.0", "2.8.2"])
        self.groups: list[ClassicGroup | ConsumerGroup] = [
            ConsumerGroup(self.coordinator, name) if is_modern and random.random() < 0.4 else ClassicGroup(self.coordinator, name)
            for name in names
        ]
        self.has_modern_groups = is_modern
        self.members: dict[str, list[str]] = {name: [] for name in names}
        self.producers = [Producer(self.coordinator, number) for number in (7, 8)]
        self.times_ms: set[int] = set()
        self.active_offset = 0
        self.delete_retention_ms = random.choice([0, 0, 60_000, 86_400_000])
        self.knows_producers = random.random() < 0.7
        self.clock_goes_back = random.random() < 0.1
        self.rests = random.random() < 0.3
        #: Groups with a commit in a transaction.
        self.in_transactions: set[str] = set()
        self.has_follower = random.random() < 0.25
        #: The log of a new follower.
        self.follower: PartitionLog | None = None

    def step(self) -> None:
        random, coordinator = self.random, self.coordinator
        coordinator.now_ms += random.choice([0, 1, 1000, 60_000])
        if self.clock_goes_back and random.random() < 0.1:
            coordinator.now_ms -= random.choice([500, 5_000, 120_000])
        coordinator.step_ms = random.choice([0, 0, 1]) if self.has_modern_groups else 0
        if self.has_follower and self.follower is None and random.random() < 0.1:
            self.follower = PartitionLog(PARTITION, coordinator.form)
        self.times_ms |= {coordinator.now_ms, coordinator.now_ms - 1, coordinator.now_ms + coordinator.step_ms}
        group = random.choice(self.groups[: max(1, len(self.groups) // 2)] if self.rests else self.groups)
        match random.choices([*_STEPS], [*_STEPS.values()])[0]:
            case "commit":
                group.commit(*self._offsets())
            case "join":
                client = random.choice("abc")
                if isinstance(group, ClassicGroup) or client not in self.members[group.name]:
                    self.members[group.name] = [*{*self.members[group.name], client}]
                    group.join(client)
            case "leave" if self.members[group.name]:
                client = self.members[group.name].pop()
                group.leave(client)
            case "remove":
                self._remove(group)
            case "heartbeat" if isinstance(group, ConsumerGroup) and self.members[group.name]:
                client = random.choice(self.members[group.name])
                group.heartbeat(client)
                if random.random() < 0.5:
                    group.give_up(client)
            case "transaction" if self.has_transactions:
                self.in_transactions.add(group.name)
                random.choice(self.producers).commit_offsets(group.name, *self._offsets())
            case "end" if self.has_transactions:
                producer = random.choice(self.producers)
                random.choice([producer.commit, producer.commit, producer.abort])()
            case "roll" if coordinator.cleaned.next_offset > self.active_offset:
                self.active_offset = coordinator.cleaned.next_offset
                coordinator.cleaned.roll()
            case "clean":
                coordinator.cleaned.clean(self._cleaner())

    def replica(self) -> PartitionLog:
        """Return the log of the leader, or that of a new follower, which fetched the gaps too and may have cleaned less since."""
        leader, follower = self.coordinator.cleaned, self.follower
        if follower is None:
            return leader
        follower.fetch(leader, before=self.random.randrange(1, leader.next_offset + 1))
        if follower.next_offset:
            follower.roll()
            follower.fetch(leader)
            follower.clean(self._cleaner())
        follower.fetch(leader)
        return follower

    def _cleaner(self) -> Cleaner:
        return Cleaner(self.coordinator.now_ms, self.delete_retention_ms, knows_producers=self.knows_producers)

    def _offsets(self) -> tuple[str, dict[int, int]]:
        topic = self.random.choice([*_TOPICS])
        partitions = self.random.sample(range(_TOPICS[topic]), self.random.choice([1, 1, 2]))
        return topic, {partition: self.random.randrange(1_000) for partition in partitions}

    def _remove(self, group: ClassicGroup | ConsumerGroup) -> None:
        """Remove some offsets, or the whole group."""
        coordinator, keys = self.coordinator, sorted(self.coordinator.committed_keys[group.name])
        if group.name in self.in_transactions and self.release == "2.8.2":
            # The coordinator in Scala brings such an offset back when it loads the log before it is cleaned, and not after.
            return
        if self.random.random() < 0.5 and keys:
            key = self.random.choice(keys)
            coordinator.append(group.name, [tombstone(offset_commit(group.name, *key, 0, commit_timestamp_ms=0))])
            return
        if self.members[group.name] and self.random.random() < 0.7:
            return
        while self.members[group.name]:
            group.leave(self.members[group.name].pop())
        group.remove()


Facts = dict[str, dict[str, set[str]]]


def facts_of(state: CoordinatorState) -> Facts:
    """Return the rows of each group by table, as texts."""
    found: Facts = {}
    for name in _TABLES:
        table: pa.Table = state.tables[name]
        wanted = [column for column in table.column_names if column not in {"replica", *_SOURCES.get(name, ())}]
        for row in table.select(wanted).to_pylist():
            found.setdefault(row["group"], {}).setdefault(name, set()).add(str(row))
    return found


@dataclass
class Counts:
    """(group, moment) pairs by the grade, and the pairs whose grade is wrong."""

    pairs: Counter[str] = field(default_factory=Counter)
    wrong: list[tuple[object, ...]] = field(default_factory=list)

    def add(self, other: Counts) -> None:
        self.pairs += other.pairs
        self.wrong += other.wrong


def moments(log: CleanedLog, every: int = 1) -> Iterator[dict[str, int]]:
    """Yield the arguments of every moment of this log, or of one in so many."""
    yield from ({"at_offset": record_offset} for record_offset in range(0, log.end_offset, every))
    yield from ({"at_time_ms": time_ms} for time_ms in log.times_ms[::every])
    yield {}


def compare(log: CleanedLog, moment: Mapping[str, int], whole: OffsetsTopic, cleaned: OffsetsTopic) -> Counts:
    """Compare the grades of all groups at this moment with the log as it was written."""
    counts = Counts()
    options: dict[str, Any] = {"release": log.release, "stop": "clean", **moment}
    past = whole.state(**options)
    (load,) = past.loads.to_pylist()
    if load["outcome"] != "loaded" or any(finding.code == "time_goes_back" for finding in past.findings):
        # Then the log as it was written does not know the state of this moment.
        counts.pairs["no answer"] += 1
        return counts
    state = cleaned.state(**options)
    truth, answer = facts_of(past), facts_of(state)
    graded = {row["group"]: row["grade"] for row in cleaned.completeness(state).to_pylist()}
    for group in {*truth, *answer, *graded} - {None}:
        # A group without a row is either certain not to have been, or one of those for which the row without a group stands.
        grade = graded.get(group, "certain" if None not in graded else "traceless")
        counts.pairs[grade] += 1
        then, now = truth.get(group, {}), answer.get(group, {})
        if grade == "certain" and then != now:
            counts.wrong.append(("certain", log, moment, group, then, now))
        elif grade == "at_least" and not _existed(now, then):
            counts.wrong.append(("at_least", log, moment, group, then, now))
    return counts


def _existed(now: Mapping[str, set[str]], then: Mapping[str, set[str]]) -> bool:
    """Return True if the group, and each of these members, assignments and offsets existed."""
    if not then:
        return False
    for name in ("members", "assignments", "offsets", "pending_offsets"):
        shown, facts = ({_as_left(row) for row in each.get(name, ())} for each in (now, then))
        if not shown <= facts:
            return False
    return True


def _as_left(row: str) -> str:
    """Return a row without what depends on other records: of a member only its id, of an offset all but its stability."""
    if "'member_state': " in row:
        return re.sub(r".*('member_id': '[^']+').*", r"\1", row)
    return row.replace("'is_stable': False", "'is_stable': True")


def compare_all(log: CleanedLog, every: int = 1) -> Counts:
    """Compare the grades of every group at the moments of this log; there are none for a log without a missing record."""
    counts = Counts()
    with exhume.open(log.whole) as whole, exhume.open(log.cleaned) as cleaned:
        if not cleaned.inspect().tables()["gaps"].num_rows:
            return counts
        for moment in moments(log, every):
            counts.add(compare(log, moment, whole, cleaned))
    return counts
