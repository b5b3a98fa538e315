"""A release agrees with the load of another one if it agrees in all rules that the load read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from exhume.codecs.record_types import GROUP_METADATA, OFFSET_COMMIT
from exhume.replay.profiles import BrokerProfile, ScalaProfile
from exhume.replay.release_table import newest_of_each_line
from exhume.replay.releases import profile_for
from exhume.replay.rule_reads import LoadsByRules, RuleReads


def scala(release: str) -> ScalaProfile:
    profile = profile_for(release)
    assert isinstance(profile, ScalaProfile)
    return profile


def test_a_rule_that_was_not_read_may_differ() -> None:
    reads = RuleReads(scala("2.8.2"))
    assert isinstance(reads.profile, ScalaProfile)
    assert reads.profile.oversized_batch == "grow"

    assert reads.agrees(replace(scala("2.8.2"), subscription="tolerated"))
    assert not reads.agrees(replace(scala("2.8.2"), oversized_batch="stall"))


def test_a_set_is_compared_by_the_elements_that_were_tested() -> None:
    reads = RuleReads(scala("2.8.2"))
    assert isinstance(reads.profile, ScalaProfile)
    assert "format_2" not in reads.profile.refused_formats

    assert reads.agrees(scala("2.0.1"))
    assert not reads.agrees(scala("0.10.2.2"))


@pytest.mark.parametrize(("version", "agreeing"), [(1, ["1.1.1", "2.0.1", "2.8.2"]), (3, ["2.8.2"])])
def test_versions_are_compared_one_by_one(version: int, agreeing: list[str]) -> None:
    reads = RuleReads(scala("3.9.1"))
    accepted = reads.profile.value_versions[OFFSET_COMMIT]
    assert accepted is not None
    assert version in accepted
    assert GROUP_METADATA in reads.profile.values
    assert 17 not in reads.profile.values

    assert [release for release in ("1.1.1", "2.0.1", "2.8.2") if reads.agrees(scala(release))] == agreeing


def test_the_coordinators_never_share_a_load() -> None:
    assert not RuleReads(profile_for("3.9.1")).agrees(profile_for("3.9.1-new"))


def test_names_are_no_rules_and_some_rules_can_be_left_out() -> None:
    reads = RuleReads(scala("2.8.2"), besides={"memberless_state"})
    assert isinstance(reads.profile, ScalaProfile)
    assert (reads.profile.release, reads.profile.coordinator, reads.profile.memberless_state) == ("2.8.2", "classic", "Empty")

    assert reads.agrees(scala("0.9.0.1"))


def test_a_condition_of_a_fold_counts_like_a_rule() -> None:
    reads = RuleReads(scala("2.8.2"))
    reads.add_check(lambda other: other.release != "2.0.1")

    assert reads.agrees(scala("1.1.1"))
    assert not reads.agrees(scala("2.0.1"))


def test_a_profile_with_notes_has_the_values_of_its_release() -> None:
    for release in newest_of_each_line():
        profile = profile_for(release)
        noting = RuleReads(profile).profile

        assert isinstance(noting, type(profile))
        assert noting.depends_on_chunks == profile.depends_on_chunks
        assert [*noting.values] == [*profile.values]
        assert all(noting.values[number] == message for number, message in profile.values.items())
        assert RuleReads(profile).agrees(profile)


def test_a_load_is_made_once_for_releases_that_agree() -> None:
    made: list[str] = []

    def load(profile: BrokerProfile) -> bool:
        made.append(profile.release)
        return isinstance(profile, ScalaProfile) and profile.has_transactions

    loads = LoadsByRules(load)

    assert [loads.of(profile_for(release)) for release in ("0.9.0.1", "0.10.2.2", "2.8.2", "3.9.1")] == [False, False, True, True]
    assert made == ["0.9.0.1", "2.8.2"]
