"""Orders that abort a load (IC-06), and loads that are slow or never end (IC-15)."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

import exhume
from exhume.analysis.detectors.loading import order_of
from exhume.analysis.load_check import FAILED
from exhume.findings import Finding
from exhume.fixtures.incidents.load_orders import INCIDENTS
from exhume.replay import load_problems
from exhume.replay.load_problems import LoadProblem, ProblemKind
from exhume.replay.verdict import outcome_of

from .incidents import ALL, hit, near_miss
from .story import said


def test_two_owners_without_the_revocation_abort_the_releases_that_check(tmp_path: Path) -> None:
    found = said(hit("IC-06d", tmp_path), "IC-06d")

    assert (found.severity, found.confidence, found.group, found.first_record_offset) == ("warn", "proof", "g", 17)
    assert "4.1.1" in found.sentence
    assert "still owned" in found.sentence
    assert found.sentence.endswith("at the end of the log, t-0 belongs to m2, t-1 belongs to m1")
    assert "KAFKA-19862" in str(found.remedy)


@pytest.mark.parametrize(
    ("which", "releases", "record_offset"),
    [("commits after the tombstone, in the format of 0.10.1", "0.10.1.1", 3), ("only pending commits", "2.3.1 to 3.9.2", 1)],
)
def test_commits_after_the_removal_of_their_group_load_with_an_error(tmp_path: Path, which: str, releases: str, record_offset: int) -> None:
    found = said(hit("IC-06a", tmp_path, which), "IC-06a")

    assert (found.severity, found.group, found.first_record_offset) == ("info", "g", record_offset)
    assert f"a coordinator of {releases} " in found.sentence
    assert "loads the whole partition, and then reports an error: unexpected unload" in found.sentence
    assert "No data is lost" in str(found.remedy)


@pytest.mark.parametrize(
    ("code", "which", "told", "sentence"),
    [
        ("IC-06b", "of a group", ("info", 0), "there is no group 'g' for a record of type 8"),
        ("IC-06b", "of a member", ("info", 5), "there is no member 'm1' in group 'g' for a record of type 8"),
        ("IC-06c", 1, ("info", 5), "group 'g' is a simple group, record type 3 belongs to consumer groups"),
        ("IC-06e", 1, ("incident", 2), "group 'g' is a classic group, record type 3 belongs to consumer groups"),
        ("IC-06e", 2, ("incident", 5), "group 'g' is a classic group, record type 8 belongs to consumer groups"),
    ],
)
def test_orders_of_consumer_groups_have_codes_of_their_own(
    tmp_path: Path, code: str, which: int | str, told: tuple[str, int], sentence: str
) -> None:
    found = said(hit(code, tmp_path, which), code)

    assert ((found.severity, found.first_record_offset), found.confidence) == (told, "proof")
    assert sentence in found.sentence
    assert ("4.4.0" in found.sentence) == (found.severity == "incident")


def test_a_group_that_no_release_loads_is_an_incident(tmp_path: Path) -> None:
    assert said(hit("IC-06", tmp_path, "two members with one static identity"), "IC-06").severity == "incident"


@pytest.mark.parametrize(
    ("code", "which"),
    [("IC-06", "good order"), ("IC-06d", "the log has the revocation"), ("IC-06e", "an upgrade"), ("IC-06e", "a downgrade")],
)
def test_a_log_in_good_order_is_loaded(tmp_path: Path, code: str, which: str) -> None:
    assert not near_miss(code, tmp_path, which)


INCIDENTS_OF_LOADS = [(incident.code, number) for incident in INCIDENTS for number in range(1, len(incident.hits) + 1)]


@pytest.mark.parametrize(("code", "which"), INCIDENTS_OF_LOADS)
def test_no_word_of_a_sentence_decides_what_is_found(code: str, which: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = hit(code, tmp_path / "plain", which, codes=ALL)
    for kind in ProblemKind:
        monkeypatch.setitem(load_problems.TEMPLATES, kind, "kram blub zzz")
    reworded = hit(code, tmp_path / "reworded", which, codes=ALL)

    assert code in {finding.code for finding in plain}
    assert any("kram blub zzz" in finding.sentence for finding in reworded)
    assert [facts(finding) for finding in reworded] == [facts(finding) for finding in plain]


def facts(finding: Finding) -> tuple[object, ...]:
    """Return all fields of a finding without its words and paths."""
    words = ("sentence", "evidence", "path", "replica", "remedy", "remedy_commands")
    return tuple(getattr(finding, each.name) for each in fields(finding) if each.name not in words)


def test_every_problem_that_ends_a_load_is_classified() -> None:
    ends = [kind for kind in ProblemKind if outcome_of(LoadProblem(kind)) in FAILED]
    not_about_order = {
        "batch_unreadable",
        "batch_size_overflows",
        "batch_too_small",
        "magic_unknown",
        "control_batch_empty",
        "control_key_undecodable",
        "record_key_null",
        "record_type_undecodable",
        "record_key_undecodable",
        "value_version_undecodable",
        "value_undecodable",
        "format_2_unknown",
        "codec_unknown",
        "lz4_checksum_correct",
        "record_type_unknown",
        "value_version_unknown",
        "record_type_not_replayed",
        "empty_read_aborts",
        "record_offsets_go_back",
    }

    assert {kind for kind in ends if order_of(kind) is None} == not_about_order


def test_a_group_record_beyond_the_load_buffer_never_loads_in_old_releases(tmp_path: Path) -> None:
    found = said(hit("IC-15", tmp_path, "a group record beyond the load buffer"), "IC-15")

    assert found.group == "big"
    assert "releases before 2.1.0" in found.sentence


def test_old_releases_never_finish_at_an_empty_segment_after_a_gap(tmp_path: Path) -> None:
    found = said(hit("IC-15", tmp_path, "an empty segment after a gap"), "IC-15")

    assert "begins at 200, after a gap from 1 on" in found.sentence


def test_a_partition_that_is_many_times_its_siblings_is_slow_to_load(tmp_path: Path) -> None:
    assert said(hit("IC-15", tmp_path, "a partition that is many times as large as the others"), "IC-15").offsets_partition == 3


def test_the_bytes_of_a_large_partition_are_compared_with_its_live_bytes(tmp_path: Path) -> None:
    found = said(hit("IC-15", tmp_path / "1", "a partition that is many times as large as the others"), "IC-15")
    small = said(hit("IC-15", tmp_path / "2", "a small partition that is many times as large as the others"), "IC-15")

    assert found.severity == "warn"
    assert "about 359753 bytes" in found.sentence
    assert small.severity == "info"
    assert not near_miss("IC-15", tmp_path / "3", "many live keys")


def test_old_releases_never_finish_a_log_of_empty_segments(tmp_path: Path) -> None:
    partition = tmp_path / "__consumer_offsets-3"
    partition.mkdir()
    for base_offset in (100, 200):
        (partition / f"{base_offset:020}.log").touch()
    with exhume.open(tmp_path) as topic:
        found = said([*topic.diagnose(codes=["IC-15"])], "IC-15")

    assert (found.offsets_partition, found.first_record_offset) == (3, 100)
    assert "the newest segment is empty and begins at 200, after a gap from 100 on" in found.sentence
