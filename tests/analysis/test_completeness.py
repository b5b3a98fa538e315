"""How much a log still knows of a moment: grades."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

import exhume
from exhume.analysis.completeness import completeness_sentence
from exhume.codecs.batch_format import HEADER_BYTES
from exhume.codecs.batches import BatchWalk
from exhume.codecs.record_types import ABORT, COMMIT
from exhume.fixtures.log_writer import KeyValue, PartitionWriter, offset_commit, tombstone
from exhume.replay.state import CoordinatorState
from tests.judges import corpus

NOW_MS = 1_700_000_000_000
Append = Callable[[PartitionWriter], object]


def commit(group: str, committed_offset: int) -> KeyValue:
    return offset_commit(group, "orders", 0, committed_offset, commit_timestamp_ms=NOW_MS)


def log_of(*groups: str | None, first_offset: int = 0, behind: Append | None = None) -> Append:
    """A log with a commit of each of these groups; None leaves the offset out, as compaction does."""

    def append(log: PartitionWriter) -> None:
        for number, group in enumerate(groups, first_offset):
            if group is not None:
                log.next_offset = number
                log.append([commit(group, number)])
        if behind is not None:
            behind(log)

    return append


def grades(directory: Path, append: Append, **options: Any) -> dict[str | None, str]:
    return {row["group"]: row["grade"] for row in rows(directory, append, **options)}


def rows(
    directory: Path, append: Append, *, cleaner_offset: int | None = None, first_offset: int = 0, **moment: Any
) -> list[dict[str, Any]]:
    with PartitionWriter(directory, 7, first_offset=first_offset) as log:
        append(log)
    if cleaner_offset is not None:
        (directory / "cleaner-offset-checkpoint").write_text(f"0\n1\n__consumer_offsets 7 {cleaner_offset}\n")
        (directory / ".kafka_cleanshutdown").touch()
    with exhume.open(directory) as topic:
        answer: list[dict[str, Any]] = topic.completeness(topic.state(release="4.3.0", **moment)).to_pylist()
    return answer


def test_a_log_without_gaps_is_certain_at_every_moment(tmp_path: Path) -> None:
    assert grades(tmp_path, log_of("a", "b", "a"), at_offset=1) == {"a": "certain", "b": "certain"}


def test_a_group_that_comes_later_in_a_log_without_gaps_was_not_there(tmp_path: Path) -> None:
    assert grades(tmp_path, log_of("a", "b"), at_offset=0) == {"a": "certain"}


def test_the_end_of_a_compacted_log_is_certain(tmp_path: Path) -> None:
    assert grades(tmp_path, log_of("a", None, None, "b")) == {"a": "certain", "b": "certain"}


def test_a_moment_that_the_cleaner_has_not_come_past_is_certain(tmp_path: Path) -> None:
    append = log_of("a", None, "b", "a", "b")

    assert grades(tmp_path, append, cleaner_offset=3, at_offset=2) == {"a": "certain", "b": "certain"}


def test_without_a_checkpoint_any_later_record_may_have_superseded_what_is_missing(tmp_path: Path) -> None:
    append = log_of("a", None, "b", "a")

    (first, second) = rows(tmp_path, append, at_offset=2)

    assert (first["group"], first["grade"], first["next_record_offset"]) == ("a", "at_least", 3)
    assert (second["group"], second["grade"], second["next_record_offset"]) == ("b", "certain", None)
    assert (first["missing_offsets"], first["first_gap_offset"], first["last_gap_offset"]) == (1, 1, 1)


def test_a_gap_above_the_cleaner_checkpoint_was_inherited_and_its_checkpoint_is_no_bound(tmp_path: Path) -> None:
    append = log_of("a", None, "b", None, "a")

    assert grades(tmp_path, append, cleaner_offset=0, at_offset=2) == {"a": "at_least", "b": "at_least", None: "unknown"}


def test_a_gap_behind_the_moment_may_have_held_what_superseded_any_group(tmp_path: Path) -> None:
    assert grades(tmp_path, log_of("a", None, "b", None, "c"), at_offset=2) == {
        "a": "at_least",
        "b": "at_least",
        "c": "unknown",
        None: "unknown",
    }


@pytest.mark.parametrize("outcome", [ABORT, COMMIT])
def test_commits_that_were_pending_until_a_marker_behind_the_moment_may_be_gone(tmp_path: Path, outcome: int) -> None:
    def behind(log: PartitionWriter) -> None:
        log.append_marker(outcome, producer_id=7, producer_epoch=1)

    assert grades(tmp_path, log_of("a", None, "b", behind=behind), at_offset=2) == {
        "a": "at_least",
        "b": "at_least",
        None: "unknown",
    }


def test_a_group_that_shows_only_behind_the_moment_is_unknown(tmp_path: Path) -> None:
    assert grades(tmp_path, log_of("a", None, "a", "b"), at_offset=1)["b"] == "unknown"


def test_a_log_that_begins_later_is_never_certain(tmp_path: Path) -> None:
    assert grades(tmp_path, log_of("a", "b", first_offset=40), first_offset=40, at_offset=40) == {
        "a": "at_least",
        "b": "unknown",
        None: "unknown",
    }


def test_a_cut_by_time_is_graded_at_its_last_record(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([commit("a", 1)], timestamp_ms=100)
        log.next_offset = 5
        log.append([commit("b", 2)], timestamp_ms=200)
        log.append([commit("b", 3)], timestamp_ms=300)

    (first, second) = rows(tmp_path, append, at_time_ms=250)

    assert (first["grade"], second["grade"]) == ("certain", "at_least")
    assert {first["last_record_offset"], second["last_record_offset"]} == {5}


def test_damage_before_the_moment_leaves_nothing_certain(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        log_of("a", "b", "c")(log)
    segment = next(tmp_path.glob("*/*.log"))
    data = bytearray(segment.read_bytes())
    data[data.index((1).to_bytes(8, "big"), list(BatchWalk(bytes(data)))[1].byte_position + HEADER_BYTES[2]) + 7] ^= 4
    segment.write_bytes(data)

    with exhume.open(tmp_path) as topic:
        before, after = (topic.completeness(topic.state(stop="clean", at_offset=number)) for number in (0, 2))

    assert before["grade"].to_pylist() == ["certain"]
    assert after["grade"].to_pylist() == ["unknown"] * 4


def test_an_aborted_load_leaves_everything_unknown(tmp_path: Path) -> None:
    def behind(log: PartitionWriter) -> None:
        log.append([(commit("a", 2)[0], b"\0\x09")])

    append = log_of("a", None, "b", behind=behind)

    assert grades(tmp_path / "before", append, at_offset=2) == {"a": "at_least", "b": "certain"}
    assert grades(tmp_path / "after", append, at_offset=3) == {None: "unknown"}


# --- Grades against the log as it was before compaction


@dataclass(frozen=True)
class Written:
    """One record of a random log. A marker has an outcome and no key; `producer_id` is set where a transaction wrote it."""

    group: str | None
    committed_offset: int | None
    producer_id: int | None = None
    outcome: int | None = None

    def append_to(self, log: PartitionWriter) -> None:
        if self.outcome is not None:
            log.append_marker(self.outcome, producer_id=self.producer_id or 0, producer_epoch=0)
            return
        assert self.group is not None
        key_value = commit(self.group, self.committed_offset or 0)
        transaction = {} if self.producer_id is None else {"producer_id": self.producer_id, "producer_epoch": 0, "base_sequence": 0}
        log.append(
            [key_value if self.committed_offset is not None else tombstone(key_value)],
            is_transactional=self.producer_id is not None,
            **transaction,
        )


def random_log(random: Random, length: int = 24) -> list[Written]:
    log: list[Written] = []
    while len(log) < length:
        producer_id = random.choice([None, None, 7, 8])
        committed_offset = len(log) if random.random() < 0.8 or producer_id is not None else None
        log.append(Written(random.choice("abcd"), committed_offset, producer_id))
        if random.random() < 0.2:
            log.append(Written(None, None, random.choice([7, 8]), random.choice([ABORT, COMMIT])))
    return log


def compacted(log: list[Written], first_dirty_offset: int) -> dict[int, Written]:
    """What a cleaner leaves that came up to this offset, by record offset. It does not touch what no marker has decided yet."""
    aborted, last = set(), {}
    for number, record in enumerate(log):
        marker = next((m for m in log[number:] if m.outcome is not None and m.producer_id == record.producer_id), None)
        if record.producer_id is not None and record.outcome is None:
            if marker is None or log.index(marker, number) >= first_dirty_offset:
                first_dirty_offset = min(first_dirty_offset, number)
            elif marker.outcome == ABORT:
                aborted.add(number)
    for number, record in enumerate(log[:first_dirty_offset]):
        if record.group is not None and number not in aborted:
            last[record.group] = number
    return {
        number: record
        for number, record in enumerate(log)
        if number >= first_dirty_offset or record.group is None or (number not in aborted and last[record.group] == number)
    }


def kept(directory: Path, records: dict[int, Written]) -> Path:
    with PartitionWriter(directory / "data", 7) as writer:
        for number, record in records.items():
            writer.next_offset = number
            record.append_to(writer)
    return directory / "data"


def commits_of(state: CoordinatorState) -> dict[str, set[tuple[str, int, int]]]:
    found: dict[str, set[tuple[str, int, int]]] = defaultdict(set)
    for name in ("offsets", "pending_offsets"):
        for row in state.tables[name].to_pylist():
            found[row["group"]].add((name, row["committed_offset"], row["record_offset"]))
    return found


@pytest.mark.one_of(4)
@pytest.mark.parametrize("seed", [*range(8), 23, 69, 81, 127])
def test_no_grade_promises_more_than_the_log_before_compaction_confirms(seed: int, tmp_path: Path) -> None:
    log = random_log(Random(seed))
    left = compacted(log, len(log) * 3 // 4)
    before, after = kept(tmp_path / "before", dict(enumerate(log))), kept(tmp_path / "after", left)
    if seed % 2:
        first_dirty_offset = max((number for number in range(len(log)) if number not in left), default=0) + 1
        (after / "cleaner-offset-checkpoint").write_text(f"0\n1\n__consumer_offsets 7 {max(first_dirty_offset, len(log) * 3 // 4)}\n")

    with exhume.open(before) as whole, exhume.open(after) as thinned:
        for number in range(len(log)):
            truth = commits_of(whole.state(release="4.3.0", stop="clean", at_offset=number))
            state = thinned.state(release="4.3.0", stop="clean", at_offset=number)
            answer = commits_of(state)
            graded = {row["group"]: row["grade"] for row in thinned.completeness(state).to_pylist()}
            assert None in graded or {group for group, rows in truth.items() if rows} <= set(graded), number
            for group, grade in graded.items():
                assert answer[group] <= truth[group], (number, group, grade)
                assert grade != "certain" or answer[group] == truth[group], (number, group)


def test_the_grades_of_a_real_compacted_log_fall_behind_its_end_only() -> None:
    with exhume.open(corpus.BUNDLED / "4.3.0-compaction" / "data") as topic:
        end = topic.completeness(topic.state(release="4.3.0", stop="clean"))
        early = topic.completeness(topic.state(release="4.3.0", stop="clean", at_offset={0: 30, 1: 30}))

    assert set(end["grade"].to_pylist()) == {"certain"}
    assert set(early["grade"].to_pylist()) - {"certain"}
    assert completeness_sentence(early).startswith("completeness by group")
