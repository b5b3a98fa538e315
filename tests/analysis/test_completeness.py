"""How much a log still knows of a moment: grades."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import exhume
from exhume.analysis.completeness import completeness_sentence
from exhume.codecs.batch_format import HEADER_BYTES
from exhume.codecs.batches import BatchWalk
from exhume.codecs.record_types import ABORT, COMMIT
from exhume.fixtures.log_writer import KeyValue, PartitionWriter, offset_commit
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
    directory: Path, append: Append, *, cleaner_offset: int | None = None, first_offset: int = 0, release: str = "4.3.0", **moment: Any
) -> list[dict[str, Any]]:
    with PartitionWriter(directory, 7, first_offset=first_offset) as log:
        append(log)
    if cleaner_offset is not None:
        (directory / "cleaner-offset-checkpoint").write_text(f"0\n1\n__consumer_offsets 7 {cleaner_offset}\n")
        (directory / ".kafka_cleanshutdown").touch()
    with exhume.open(directory) as topic:
        answer: list[dict[str, Any]] = topic.completeness(topic.state(release=release, **moment)).to_pylist()
    return answer


def test_a_log_without_gaps_is_certain_at_every_moment(tmp_path: Path) -> None:
    assert grades(tmp_path, log_of("a", "b", "a"), at_offset=1) == {"a": "certain", "b": "certain"}


def test_a_group_that_comes_later_in_a_log_without_gaps_was_not_there(tmp_path: Path) -> None:
    assert grades(tmp_path, log_of("a", "b"), at_offset=0) == {"a": "certain"}


@pytest.mark.parametrize(("release", "traceless"), [("4.3.0", [None]), ("3.6.2", [])])
def test_the_end_of_a_compacted_log_is_certain(tmp_path: Path, release: str, traceless: list[None]) -> None:
    # The coordinator in Java has a group in state Empty after tombstones of all its offsets.
    answer = grades(tmp_path, log_of("a", None, None, "b"), release=release)

    assert answer == dict.fromkeys(["a", "b"], "certain") | dict.fromkeys(traceless, "unknown")


def test_a_copy_without_its_last_segments_is_not_certain_at_its_end(tmp_path: Path) -> None:
    assert grades(tmp_path, log_of("a", None, "b"), cleaner_offset=4, release="3.6.2") == {
        "a": "at_least",
        "b": "at_least",
        None: "unknown",
    }


def test_the_cleaner_has_not_reached_the_second_record_of_a_key(tmp_path: Path) -> None:
    append = log_of("a", None, "b", "c", "b", "a")

    # Record 4 repeats the key of record 2.
    assert grades(tmp_path, append, at_offset=2, release="3.6.2") == {"a": "certain", "b": "certain", "c": "unknown"}


def test_a_key_that_repeats_across_a_gap_does_not_bound_the_cleaner(tmp_path: Path) -> None:
    append = log_of("a", None, "b", "a", "b")

    # Record 3 repeats the key of record 0, which the replica may have had before it fetched the others.
    assert grades(tmp_path, append, at_offset=2, release="3.6.2") == {"a": "at_least", "b": "certain"}


def test_a_checkpoint_does_not_bound_the_cleaner_of_the_leader(tmp_path: Path) -> None:
    append = log_of("a", None, "b", "a")

    assert grades(tmp_path, append, cleaner_offset=3, at_offset=2, release="3.6.2") == {"a": "at_least", "b": "certain"}


def test_any_later_record_may_have_superseded_what_is_missing(tmp_path: Path) -> None:
    append = log_of("a", None, "b", "a")

    (first, second) = rows(tmp_path, append, at_offset=2, release="3.6.2")

    assert (first["group"], first["grade"], first["next_record_offset"]) == ("a", "at_least", 3)
    assert (second["group"], second["grade"], second["next_record_offset"]) == ("b", "certain", None)
    assert (first["missing_offsets"], first["first_gap_offset"], first["last_gap_offset"]) == (1, 1, 1)


def test_a_gap_above_the_cleaner_checkpoint_was_inherited(tmp_path: Path) -> None:
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


def timed(*records: tuple[str, int] | None) -> Append:
    """A log with a commit of each of these groups at this time; None leaves the offset out, as compaction does."""

    def append(log: PartitionWriter) -> None:
        for number, record in enumerate(records):
            if record is not None:
                log.next_offset = number
                log.append([commit(record[0], number)], timestamp_ms=record[1])

    return append


def test_a_cut_by_time_is_graded_at_its_last_record(tmp_path: Path) -> None:
    append = timed(("a", 100), None, None, None, None, ("b", 200), ("b", 300))

    (first, second, third) = rows(tmp_path, append, at_time_ms=250)

    assert (first["group"], first["grade"]) == ("a", "certain")
    assert (second["group"], second["grade"]) == ("b", "certain")
    assert (third["group"], third["grade"]) == (None, "unknown")
    assert {first["last_record_offset"], second["last_record_offset"]} == {5}


def test_missing_records_around_a_time_may_be_before_it(tmp_path: Path) -> None:
    (first, second, third) = rows(tmp_path, timed(("a", 100), None, None, ("b", 300)), at_time_ms=200, release="3.6.2")

    assert [row["grade"] for row in (first, second, third)] == ["at_least", "unknown", "unknown"]
    assert (first["missing_offsets"], first["first_gap_offset"], first["last_gap_offset"]) == (2, 1, 2)
    assert "1 to 2 may be before the moment or after it" in first["reason"]


def test_a_time_after_the_last_record_has_the_state_of_the_end(tmp_path: Path) -> None:
    append = timed(("a", 100), None, ("b", 300))

    assert grades(tmp_path, append, at_time_ms=300, release="3.6.2") == {"a": "certain", "b": "certain"}


def test_a_missing_record_may_be_later_than_a_time_if_the_times_go_back(tmp_path: Path) -> None:
    # Times go back by 5 ms.
    append = timed(("a", 100), None, ("b", 199), ("c", 300), ("d", 295))

    assert set(grades(tmp_path / "near", append, at_time_ms=210, release="3.6.2").values()) == {"unknown"}
    assert grades(tmp_path / "far", append, at_time_ms=249, release="3.6.2") == {
        "a": "certain",
        "b": "certain",
        "c": "unknown",
        "d": "unknown",
    }


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

    assert grades(tmp_path / "before", append, at_offset=2) == {"a": "at_least", "b": "certain", None: "unknown"}
    assert grades(tmp_path / "after", append, at_offset=3) == {None: "unknown"}


def test_the_grades_of_a_real_compacted_log_fall_behind_its_end_only() -> None:
    with exhume.open(corpus.BUNDLED / "4.3.0-compaction" / "data") as topic:
        end = topic.completeness(topic.state(release="4.3.0", stop="clean"))
        early = topic.completeness(topic.state(release="4.3.0", stop="clean", at_offset={0: 30, 1: 30}))

    assert {row["grade"] for row in end.to_pylist() if row["group"] is not None} == {"certain"}
    assert set(early["grade"].to_pylist()) - {"certain"}
    assert completeness_sentence(early).startswith("completeness by group")
