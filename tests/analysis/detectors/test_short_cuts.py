"""A search of everything finds nothing that the columns rule out."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from exhume.analysis.detectors import TopicCase, diagnose, offsets_out_of_range, rewinds, truncated, unconsumed_partitions, uneven
from exhume.analysis.detectors.cases import GroupCase, Silence
from exhume.analysis.detectors.commit_loops.columns import USUAL
from exhume.analysis.detectors.commit_rows import ChangeTable
from exhume.analysis.detectors.commits import Change
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.member_columns import all_owned, is_opaque, is_owned_twice
from exhume.codecs.log_directory import discover
from exhume.codecs.segment_reader import ReadOptions, SegmentReader
from exhume.findings import Finding, Findings
from tests.judges import corpus
from tests.twins import record_chunks

from .story import Story, case_of, codes_of
from .troubles import troubles

_SEEDS = range(12)


@pytest.fixture(scope="module", params=_SEEDS)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> TopicCase:
    return troubles(request.param).case(tmp_path_factory.mktemp("troubles"))


def _found(case: TopicCase, code: str) -> list[Finding]:
    return diagnose(case, Inputs(), codes=[code])


def test_troubles_are_many(tmp_path: Path) -> None:
    found = [finding for seed in _SEEDS for finding in diagnose(troubles(seed).case(tmp_path / str(seed)), Inputs())]

    assert {"IC-02", "IC-07", "IC-11", "IC-11b", "IC-16", "IC-18", "IC-20a", "IC-24a", "IC-24c", "IC-34", "IC-38"} <= codes_of(found)
    assert any(finding.code == "IC-13" for finding in found)


def test_rewinds_far_from_every_handover(case: TopicCase, monkeypatch: pytest.MonkeyPatch) -> None:
    asked_first = _found(case, "IC-02")
    monkeypatch.setattr(rewinds, "_may_be_after_handovers", lambda _, changes: np.ones(len(changes), np.bool_))

    assert _found(case, "IC-02") == asked_first


def test_keys_without_teeth(case: TopicCase, monkeypatch: pytest.MonkeyPatch) -> None:
    asked_first = _found(case, "IC-13")
    monkeypatch.setattr(rewinds, "_with_teeth", lambda group: [*group.keys])

    assert _found(case, "IC-13") == asked_first


def _collapses(change: Change) -> bool:
    if change.before is None or change.phase == "empty":
        return False
    before, now = change.before.committed_offset, change.commit.committed_offset
    return now <= 1000 and before > 10 * max(now, 100)


def test_offsets_that_collapse(case: TopicCase) -> None:
    for group in case.groups():
        changes = group.keys.changed("topic_id", "leader_epoch", "rewind")
        assert offsets_out_of_range._are_collapses(changes).tolist() == [*map(_collapses, changes.changes())]


def _falls(group: GroupCase) -> Iterator[tuple[str, int, Change]]:
    for key in group.keys:
        for change in key.of("rewind") if key.count_of.get("rewind", 0) <= 3 else ():
            is_other = not change.reasons.isdisjoint(("leader_epoch", "topic_id", "while_empty")) or change.commit.producer_id is not None
            if not is_other and change.phase in ("active", "unrecorded") and change.commit.timestamp_ms is not None:
                yield key.topic, key.partition, change


def test_offsets_that_fall_as_after_a_truncation(case: TopicCase) -> None:
    for group in case.groups():
        assert [(*place, fall.change) for place, fall in truncated._falls(group)] == [*_falls(group)]


def test_troubles_collapse_and_fall(tmp_path: Path) -> None:
    groups = [group for seed in _SEEDS for group in troubles(seed).case(tmp_path / str(seed)).groups()]

    assert sum(len([*_falls(group)]) for group in groups) > 5
    assert sum(map(_collapses, (change for group in groups for key in group.keys for change in key.changes))) > 5


def test_changes_whose_commit_before_had_a_leader_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Most keys change only once, so that a wrong short cut shows."""
    cases = [troubles(seed, events=40).case(tmp_path / str(seed)) for seed in range(60)]
    asked_first = [_found(case, "IC-38") for case in cases]
    monkeypatch.setattr(ChangeTable, "where", lambda changes, _: changes)

    assert [_found(case, "IC-38") for case in cases] == asked_first
    assert sum(map(len, asked_first)) > 5


def _commits_of_groups(directory: Path) -> Iterator[list[dict[str, Any]]]:
    """Return the decodable commits in log order, group by group and log by log."""
    commits = defaultdict(list)
    with discover([directory]) as evidence:
        for chunk in record_chunks(SegmentReader(evidence, ReadOptions(), Findings())):
            for row in chunk.commits.to_pylist():
                is_named = None not in (row["group"], row["topic"], row["partition"])
                if (
                    is_named
                    and row["crc_status"] in ("ok", "not_checked")
                    and row["committed_offset"] is not None
                    and not row["is_tombstone"]
                ):
                    commits[row["replica"], row["offsets_partition"], row["group"]].append(row)
    yield from (commits[place] for place in sorted(commits, key=str))


def _walked(commits: list[dict[str, Any]]) -> tuple[list[Silence], list[int]]:
    """Return the silences that IC-18 judges, and the last intervals, commit by commit."""
    silences: list[Silence] = []
    intervals: list[int] = []
    before: tuple[int, int] | None = None
    for row in commits:
        time_ms = row["commit_timestamp_ms"] if row["timestamp_ms"] in (None, -1) else row["timestamp_ms"]
        if time_ms in (None, -1):
            continue
        if before is not None and time_ms != before[1]:
            interval = max(time_ms - before[1], 0)
            if interval >= 60_000 and len(intervals) >= 2 and len(silences) < 200:
                usual = float(median(intervals[-USUAL:]))
                if interval > 5 * usual and interval > 5 * median(intervals[-5:]):
                    silences.append(Silence(before[0], before[1], row["record_offset"], time_ms, usual))
            intervals.append(interval)
        before = row["record_offset"], time_ms
    return silences, intervals[-USUAL:]


def _requests(seed: int) -> Story:
    """Commits of two groups every few seconds, with pauses of about the length of a silence."""
    rng = random.Random(seed)
    lines, now_s, pace = [], 0, rng.choice([2, 10, 16])
    for offset in range(300):
        pause = rng.randint(55, 95) if rng.random() < 0.1 else rng.randint(0, pace)
        now_s += pause
        lines.append(f"{offset} {now_s // 3600:02}:{now_s // 60 % 60:02}:{now_s % 60:02} OC {rng.choice('gh')} t-0 = {offset}")
    return Story("\n".join(lines))


def _silences(directory: Path) -> int:
    """Compare the silences with those of a loop over all commits, and return their number."""
    found = [
        (group.silences, group.last_intervals_ms)
        for group in sorted(
            case_of(directory).groups(),
            key=lambda group: str((group.log_context.replica, group.log_context.offsets_partition, group.group)),
        )
        if group.last_commit_ms is not None
    ]
    assert found == [*map(_walked, _commits_of_groups(directory))]
    return sum(len(silences) for silences, _ in found)


def test_silences_of_groups(tmp_path: Path) -> None:
    assert sum(_silences(troubles(seed).write(tmp_path / str(seed))) for seed in _SEEDS) > 10
    assert sum(_silences(_requests(seed).write(tmp_path / f"requests-{seed}")) for seed in _SEEDS) > 10


@pytest.mark.parametrize("case", corpus.sweep(corpus.cases()))
def test_silences_of_groups_in_real_logs(case: corpus.Case) -> None:
    for directory in case.data_directories.values():
        _silences(directory)


@pytest.mark.parametrize(
    ("code", "short_cut", "passed"),
    [("IC-20b", (unconsumed_partitions, "_may_be_silent"), True), ("IC-34", (uneven, "difference_of"), 2)],
)
def test_members_with_the_same_properties(
    case: TopicCase, code: str, short_cut: tuple[ModuleType, str], passed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_first = _found(case, code)
    monkeypatch.setattr(*short_cut, lambda _: passed)

    assert _found(case, code) == asked_first


def test_changes_in_columns_are_those_of_the_keys(case: TopicCase) -> None:
    for group in case.groups():
        found = group.keys.changed("rewind", "jump")
        of_keys = [(place, change) for place, key in enumerate(group.keys) for change in key.of("rewind", "jump")]
        assert [*zip(found.places.tolist(), found.changes(), strict=True)] == of_keys
        assert group.keys.with_changes("while_empty") == [key for key in group.keys if any(key.of("while_empty"))]


def test_the_union_of_all_members_is_that_of_each(case: TopicCase) -> None:
    for group in case.groups():
        for step in group.memberships:
            owners = step.owners()
            assert all_owned(step) == owners.keys()
            assert is_owned_twice(step) == any(len(members) > 1 for members in owners.values())
            assert is_opaque(step) == step.is_opaque
