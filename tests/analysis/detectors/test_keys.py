"""Searches of columns find the same keys and groups as a search of each key and group."""

from __future__ import annotations

import pytest

from exhume.analysis.detectors import TopicCase, condense, renamed
from exhume.analysis.detectors.commit_loops.columns import KeyColumn
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.keys import GroupKeys
from exhume.codecs.log_directory import discover
from exhume.codecs.segment_reader import ReadOptions, SegmentReader
from exhume.findings import Findings
from tests.judges import corpus


def _cases(case: corpus.Case) -> list[TopicCase]:
    found = []
    for data in case.data_directories.values():
        with discover([data]) as evidence:
            found.append(condense(SegmentReader(evidence, ReadOptions(), Findings())))
    return found


def _check(keys: GroupKeys) -> None:
    assert keys.with_changes() == [key for key in keys if key.changes]
    assert [key for key in keys if key.count_of] == [key for key in keys if key.changes]
    assert keys.with_removals() == [key for key in keys if key.removals]
    assert keys.with_dropped() == [key for key in keys if key.dropped]
    for column, told in (
        (KeyColumn.HOTTEST_RUN, "hot_minutes"),
        (KeyColumn.LARGEST_METADATA, "largest_metadata_bytes"),
        (KeyColumn.COMMITS, "commits"),
    ):
        assert keys.with_at_least(2, column) == [key for key in keys if getattr(key, told) >= 2]
    assert keys.total(KeyColumn.BYTES) == sum(key.commit_bytes for key in keys)
    assert keys.first_committed_offsets() == [first for key in keys if (first := key.first_committed_offset) is not None]
    lasts = [key.last for key in keys]
    assert keys.last_record_offsets == [-1 if last is None else last.record_offset for last in lasts]
    for commit in filter(None, lasts):
        before = [key for key in keys if key.holds is not None and key.holds.commit_timestamp_ms < commit.commit_timestamp_ms]
        assert keys.held_before(commit.commit_timestamp_ms) == before
    assert keys.newest([]) is None
    assert keys.newest(keys.names) == max(filter(None, lasts), key=lambda commit: commit.record_offset, default=None)
    assert [keys.find(key.topic, key.partition) for key in keys] == [*keys]
    assert keys.find("no such topic", 0) is None


@pytest.mark.parametrize("case", corpus.sweep(corpus.cases()))
def test_columns_find_the_same_keys_as_a_search_of_each(case: corpus.Case) -> None:
    for found in _cases(case):
        for group in found.groups():
            _check(group.keys)


@pytest.mark.parametrize("case", corpus.sweep(corpus.cases()))
def test_no_group_was_renamed_if_none_begins_when_another_ends(case: corpus.Case, monkeypatch: pytest.MonkeyPatch) -> None:
    for found in _cases(case):
        asked_first = [*renamed.find_renamed_groups(found, Inputs())]
        with monkeypatch.context() as without:
            without.setattr(renamed, "_is_taken_up", lambda _: True)
            assert [*renamed.find_renamed_groups(found, Inputs())] == asked_first
