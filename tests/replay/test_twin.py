"""The loaders against the naive twin: every release, strictly and leniently, on generated logs and on those of brokers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import cycle, islice, pairwise
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhume.replay.broker_log import LoadedBatch, StrictLog
from exhume.replay.java.loader import JavaLoad
from exhume.replay.local import load_partitions
from exhume.replay.moment import Moment
from exhume.replay.partition_load import LoadOptions
from exhume.replay.partition_state import PartitionState
from exhume.replay.profiles import BrokerProfile, JavaProfile, ScalaProfile
from exhume.replay.reading import LoadInputs, read_chunks
from exhume.replay.refusals import Refusals
from exhume.replay.releases import all_spans, profile_for
from exhume.replay.scala import ScalaLoad
from exhume.replay.state_rows import state_rows
from exhume.replay.topic_names import TopicNames
from exhume.replay.verdict import LoadAborted, outcome_of
from tests import naive, strategies
from tests.judges import corpus
from tests.logs import FoundLog, Log, logs_of_brokers, written
from tests.strategies import examples
from tests.written_batches import Written

NEWEST = [profile_for("2.8.2"), profile_for("4.3.0")]
#: What the log is read in. 0.9 knows format 0 only, releases before 0.11 no format 2.
_FORMATS = {"0.9.0.1": (0,), "0.10.0.1": (0, 1), "0.10.1.1": (0, 1), "0.10.2.2": (0, 1)}


@dataclass(slots=True)
class ServedLog(StrictLog):
    """A log in memory that a broker reads as it would read one on disk."""

    log: Log | None = None

    def batches(self) -> Iterator[LoadedBatch]:
        assert self.log is not None
        return self.log.part(0)


def load(profile: BrokerProfile, log: Log, inputs: LoadInputs, *, is_lenient: bool) -> naive.Answer:
    """What our loaders say, in the words of the twin."""
    names, refusals = TopicNames(), Refusals(lenient=is_lenient)
    loader: ScalaLoad | JavaLoad
    if isinstance(profile, ScalaProfile):
        loader = ScalaLoad(profile, refusals, names, inputs)
    else:
        assert isinstance(profile, JavaProfile)
        loader = JavaLoad(profile, refusals, names, log.end_offset)
    served = ServedLog(cast("Any", None), "clean", log.start_offset, log.end_offset, [], log=log)
    chunks = ([batch] for batch in log.part(0)) if is_lenient else read_chunks(served, profile, inputs)
    try:
        for chunk in chunks:
            for batch in chunk:
                loader.apply(batch)
            loader.end_chunk()
        partition_state, late_error = loader.finish()
    except LoadAborted as aborted:
        if outcome_of(aborted.problem) == "stalled":
            return naive.Answer(stalled=True)
        answer = as_answer(loader.held_after_abort())
        answer.ended_at = aborted.problem.record_offset
        return answer
    answer = as_answer(partition_state)
    answer.late_error = late_error is not None
    answer.shown_offset = loader.shown_offset if isinstance(loader, JavaLoad) else None
    refused = [tolerated.problem.record_offset for tolerated in refusals.tolerated]
    answer.refusals = [-1 if record_offset is None else record_offset for record_offset in refused]
    return answer


def as_answer(partition_state: PartitionState) -> naive.Answer:
    rows = state_rows(partition_state, TopicNames())
    answer = naive.Answer()
    answer.groups = {row["group"]: {**row, "members": {}} for row in rows["groups"]}
    for member in rows["members"]:
        answer.groups[member["group"]]["members"][member["member_id"]] = (member.get("member_epoch"), member.get("member_state"))
    answer.offsets = {(row["group"], row["topic"], row["partition"]): dict(row) for row in rows["offsets"]}
    answer.pending = {(row["producer_id"], (row["group"], row["topic"], row["partition"])): dict(row) for row in rows["pending_offsets"]}
    return answer


def assert_twin_agrees(profile: BrokerProfile, log: Log, inputs: LoadInputs | None = None, *, is_lenient: bool = False) -> int:
    """Our loaders and the twin say the same; how many rows they said. The twin is asked for both ends of the span of releases."""
    inputs = inputs or LoadInputs(high_watermark=log.end_offset)
    ours = load(profile, log, inputs, is_lenient=is_lenient)
    for release in {profile.first, profile.last}:
        twin = naive.load(
            release,
            profile.coordinator,
            list(log.part(0)),
            log.end_offset,
            start_offset=log.start_offset,
            high_watermark=inputs.high_watermark,
            buffer_bytes=inputs.load_buffer_bytes,
            is_lenient=is_lenient,
        )
        rows = assert_same(ours, twin)
    return rows


def assert_same(ours: naive.Answer, twin: naive.Answer) -> int:
    """Everything that the twin says, we say too; how many rows that is."""
    # Where a timer cannot be set the twin names no record.
    if twin.ended_at != -1:
        assert ours.ended_at == twin.ended_at
    assert (ours.ended_at is None, ours.stalled, ours.late_error) == (twin.ended_at is None, twin.stalled, twin.late_error)
    assert ours.shown_offset == twin.shown_offset
    assert len(ours.refusals) == len(twin.refusals)
    assert all(record_offset in (said, -1) for said, record_offset in zip(ours.refusals, twin.refusals, strict=True))
    tables: list[tuple[dict[Any, Any], dict[Any, Any]]] = [
        (ours.groups, twin.groups),
        (ours.offsets, twin.offsets),
        (ours.pending, twin.pending),
    ]
    rows = 0
    for said, expected in tables:
        assert said.keys() == expected.keys()
        for key, row in expected.items():
            rows += 1
            columns = row.keys() - {"first_offset"}
            assert {name: said[key][name] for name in columns} == {name: row[name] for name in columns}, key
    return rows


generated = st.one_of(strategies.logs(), strategies.logs(strategies.healthy_batches()), strategies.transaction_logs())


@examples(80)
@given(st.data())
def test_the_twin_agrees_on_generated_logs_for_every_release(data: st.DataObject) -> None:
    batches = data.draw(generated)
    gap_at_end = data.draw(st.sampled_from((0, 0, 0, 3)))
    buffer_bytes = data.draw(st.sampled_from((5_000_000, 5_000_000, 700, 150)))
    watermark = data.draw(st.sampled_from((0.5, 0.9, 1.0)))
    for profile in all_spans():
        for magic in _FORMATS.get(profile.name, (2,)):
            log = written(batches, magic=magic, gap_at_end=gap_at_end)
            inputs = LoadInputs(load_buffer_bytes=buffer_bytes, high_watermark=round(log.end_offset * watermark))
            assert_twin_agrees(profile, log, inputs)


@examples(40)
@given(generated)
def test_the_twin_agrees_on_lenient_loads_for_every_release(batches: list[Written]) -> None:
    for profile in all_spans():
        assert_twin_agrees(profile, written(batches, magic=_FORMATS.get(profile.name, (2,))[0]), is_lenient=True)


def test_the_twin_agrees_on_the_small_logs_of_brokers_for_every_release() -> None:
    rows = 0
    for found in logs_of_brokers():
        if found.name.startswith("facts/") and found.log.ending is None:
            rows += sum(assert_twin_agrees(profile, found.log) for profile in all_spans() if is_judged(profile, found))

    assert rows > 9_000


def is_judged(profile: BrokerProfile, found: FoundLog) -> bool:
    """The twin does not look into lz4 frames, whose checksum 0.9 refuses."""
    return not (profile.name == "0.9.0.1" and found.name.startswith("facts/lz4-v0-good-hc/"))


#: There are so many of them that every release is met several times.
PROFILES_FOR_EACH_LOG = 1


@pytest.mark.slow
def test_the_twin_agrees_on_the_long_logs_of_brokers() -> None:
    """Each log with the newest rules of both coordinators and, in turn, with some of the others."""
    rows = 0
    others = cycle(all_spans())
    for found in logs_of_brokers():
        if not found.name.startswith("facts/") and found.log.ending is None:
            for profile in [*NEWEST, *islice(others, PROFILES_FOR_EACH_LOG)]:
                rows += assert_twin_agrees(profile, found.log)

    assert rows > 9_000


#: Neighbours that the small logs do not tell apart, and in what they differ.
_ALIKE = {
    ("1.0.2", "1.1.1"),  # requests that remove groups
    ("2.3.1", "2.4.0"),  # expiry, and subscribed topics that are known from then on
    ("2.4.1", "2.6.0"),  # what OffsetFetch answers for pending commits
    ("3.0.0", "3.0.1"),  # expiry
    ("3.1.0", "3.1.1"),  # expiry
    ("4.0.0", "4.0.1"),  # what an expiry pass keeps
    ("4.1.0", "4.1.1"),  # snapshots on the way, every 16384 offsets
    ("4.1.2", "4.2.0"),  # readiness of streams groups with members: of such groups there are only long logs
}


@pytest.mark.parametrize(
    ("before", "after"),
    [pair for pair in pairwise(all_spans()) if pair[0].coordinator == pair[1].coordinator],
    ids=lambda profile: profile.name,
)
def test_the_twin_objects_to_the_rules_of_the_neighbouring_releases(before: BrokerProfile, after: BrokerProfile) -> None:
    """A judge that finds nothing must be able to: loads by the rules of one span against the twin of the next."""
    asked = replace(before, first=after.first, last=after.last)
    small = [found.log for found in logs_of_brokers() if found.name.startswith("facts/") and found.log.ending is None]

    assert any(objects(asked, log) for log in small) == ((before.name, after.name) not in _ALIKE)


def objects(profile: BrokerProfile, log: Log) -> bool:
    try:
        assert_twin_agrees(profile, log)
    except AssertionError:
        return True
    return False


#: A release of each kind: 0.9, reads that test the high watermark, installs behind each read, both coordinators at their newest, 3.7.
KINDS = [profile_for(release) for release in ("0.9.0.1", "0.10.2.2", "0.11.0.0", "2.8.2", "3.7.2-new", "4.3.0")]


def small_logs(root: Path, most_records: int) -> list[FoundLog]:
    found = (found for found in logs_of_brokers(root) if found.log.ending is None)
    return [log for log in found if log.log.end_offset - log.log.start_offset <= most_records]


def state_at(profile: BrokerProfile, found: FoundLog, record_offset: int) -> naive.Answer:
    """What a state at this record offset says, in the words of the twin."""
    number = found.partition.offsets_partition
    options = LoadOptions(profile, stop=found.stop, view="in_memory", at=Moment(last_offsets={number: record_offset}))
    (load,) = load_partitions([replace(found.directory, partitions=[found.partition])], options, TopicNames())
    answer = as_answer(load.partition_state)
    answer.ended_at = load.row["record_offset"] if load.row["outcome"] == "aborted" else None
    answer.stalled = load.row["outcome"] == "stalled"
    answer.late_error = load.row["outcome"] == "loaded_with_error"
    answer.shown_offset = load.row.get("shown_offset")
    return answer


def twin_at(profile: BrokerProfile, found: FoundLog, record_offset: int) -> naive.Answer:
    """What the twin says of a log that is cut off there."""
    batches, end_offset = naive.cut_off(list(found.log.part(0)), record_offset, found.log.start_offset)
    high_watermark = found.partition.high_watermark
    start_offset = found.log.start_offset
    return naive.load(profile.last, profile.coordinator, batches, end_offset, start_offset=start_offset, high_watermark=high_watermark)


def assert_every_moment(found: FoundLog, profiles: Iterable[BrokerProfile]) -> int:
    """The state at every record offset is what the twin says of the log up to there; how many states that were."""
    states = 0
    for profile in profiles:
        if is_judged(profile, found):
            for record_offset in range(found.log.start_offset, found.log.end_offset):
                assert_same(state_at(profile, found, record_offset), twin_at(profile, found, record_offset))
                states += 1
    return states


@pytest.mark.slow
def test_the_state_at_every_record_offset_of_the_small_logs_is_that_of_the_twin() -> None:
    """The smallest ones for a release of each kind, those of up to twenty records for one kind in turn."""
    kinds = cycle(KINDS)
    states = 0
    for found in small_logs(corpus.BUNDLED, most_records=20):
        is_smallest = found.log.end_offset - found.log.start_offset <= 12
        states += assert_every_moment(found, KINDS if is_smallest else [next(kinds)])

    assert states > 5_000


@pytest.mark.corpus
@pytest.mark.skipif(corpus.WHOLE is None, reason="EXHUME_CORPUS does not name a larger set of logs")
def test_the_state_at_every_record_offset_of_the_small_logs_of_the_whole_corpus_is_that_of_the_twin() -> None:
    assert corpus.WHOLE is not None

    states = sum(assert_every_moment(found, KINDS) for found in small_logs(corpus.WHOLE, most_records=40))

    assert states > 10_000
