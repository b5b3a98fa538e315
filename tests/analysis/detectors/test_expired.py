"""Offsets that expired (IC-01, IC-17), or expired too early (IC-28)."""

from __future__ import annotations

from pathlib import Path

from .incidents import ALL, hit, near_miss, undecidable
from .story import Story, codes_of, evidence_offsets, said


def test_the_offsets_of_an_idle_group_expired_and_it_started_again(tmp_path: Path) -> None:
    found = said(hit("IC-01", tmp_path, "the group starts again"), "IC-01")

    assert (found.severity, found.group, found.topic, found.confidence) == ("incident", "pay", "orders", "likely")
    assert "expired 7 d 6 min after the group became Empty" in found.sentence
    assert "orders-0 5000 → 310 (-4690), orders-1 7000 → 290 (-6710)" in found.sentence
    assert evidence_offsets(found) == [101, 102, 104, 105, 108, 109]


def test_expiry_of_a_group_that_does_not_come_back_is_no_incident(tmp_path: Path) -> None:
    assert said(hit("IC-01", tmp_path, "the group does not come back"), "IC-01").severity == "info"


def test_an_offset_that_members_subscribe_to_expired(tmp_path: Path) -> None:
    found = said(hit("IC-28a", tmp_path), "IC-28a")

    assert (found.severity, found.group, found.topic, found.partition) == ("incident", "rep", "slow", 0)
    assert "expired 7 d 10 min after the commit, while the group was Stable" in found.sentence
    assert evidence_offsets(found) == [10, 11, 12]


def test_the_deletion_of_a_subscribed_topic_is_no_expiry_of_any_kind(tmp_path: Path) -> None:
    assert not {code for code in codes_of(near_miss("IC-28a", tmp_path, codes=ALL)) if code.startswith("IC-28")}


def test_an_offset_expired_while_the_group_was_rebalancing(tmp_path: Path) -> None:
    assert said(hit("IC-28b", tmp_path / "gap"), "IC-28b").confidence == "possible"
    # Without a generation in between, it is the normal expiry of a topic without subscribers.
    assert codes_of(near_miss("IC-28b", tmp_path / "no gap", codes=["IC-01", "IC-17", "IC-28"])) == {"IC-17"}


def test_without_an_expire_timestamp_the_retention_decides(tmp_path: Path) -> None:
    title = "commits of version 1 without an expire timestamp"
    found = said(hit("IC-01", tmp_path / "expired", title, codes=ALL), "IC-01")

    assert "2 offsets of orders (0, 1) expired 7 d 6 min after the group became Empty" in found.sentence
    deleted = """
        0 d0 10:00 OC g t-0 = 900 {v=1 xt=-1}
        1 d0 10:21 OC g t-0 = X
    """
    assert "21 min after the last commit" in said(Story(deleted).findings(tmp_path / "deleted"), "IC-05a").sentence


def test_tombstones_alone_do_not_show_the_age(tmp_path: Path) -> None:
    found = said(undecidable("IC-01", tmp_path), "IC-01")

    assert found.sentence == (
        "cannot decide: tombstones removed 2 offsets of orders (0, 1), and compaction removed the earlier commits: "
        "the age of the offsets is not known"
    )
    assert evidence_offsets(found) == [104, 105]
    # In a complete log they removed nothing.
    assert not [each for each in Story("0 d0 10:00 OC g t-0 = X").findings(tmp_path / "nothing") if each.code == "IC-01"]


def test_several_groups_lost_offsets_before_the_end_of_the_retention(tmp_path: Path) -> None:
    found = [each for each in hit("IC-28c", tmp_path) if each.code == "IC-28c"]

    assert [(each.group, each.severity, each.confidence) for each in found] == [(None, "warn", "possible")]
    assert found[0].sentence.startswith("3 groups (one, three, two) lost 3 offsets at one moment, 2024-01-11")
    assert "3 d 5 h after they became Empty or were committed; the retention is 7 d" in found[0].sentence
    assert evidence_offsets(found[0]) == [0, 1, 2, 3, 4, 5]


_SHORTER = """
    0 d0 00:00  GM one gen=1 empty | OC one a-0 = 1
    2 d1 00:00  GM two gen=1 empty | OC two b-0 = 2
    4 d2 00:00  GM three gen=1 empty | OC three c-0 = 3
    6 d3 00:00  GM four gen=1 empty | OC four d-0 = 4
    8 d5 02:00  OC one a-0 = X | GM one = X
    10 d5 02:00  OC two b-0 = X | GM two = X
    12 d5 02:00  OC three c-0 = X | GM three = X
"""


def test_a_sweep_over_several_groups_is_one_shorter_retention(tmp_path: Path) -> None:
    found = Story(_SHORTER).findings(tmp_path)
    swept = said(found, "IC-28c")

    assert not [each for each in found if each.code == "IC-05a"]
    assert (swept.severity, swept.confidence, swept.group) == ("warn", "likely", None)
    assert "3 groups (one, three, two) lost 3 offsets at one moment" in swept.sentence
    assert swept.sentence.endswith(
        "3 d 2 h to 5 d 2 h after they became Empty or were committed: the expiry task removed them by a retention of at most 3 d 2 h,"
        " shorter than before"
    )


def test_a_sweep_that_leaves_an_older_group_may_be_requests(tmp_path: Path) -> None:
    story = _SHORTER.replace("4 d2", "0 d0 00:00  GM old gen=1 empty | OC old e-0 = 9\n4 d2").replace("    0 d0", "    20 d0", 1)
    swept = said(Story("\n".join(_numbered(story))).findings(tmp_path), "IC-28c")

    assert (swept.severity, swept.confidence) == ("info", "possible")
    assert "though 1 group with older offsets stayed (old)" in swept.sentence


def _numbered(story: str) -> list[str]:
    """Return the lines of a story with record offsets in their order: each has two records."""
    lines = sorted(line.split(maxsplit=1)[1] for line in story.strip().splitlines())
    return [f"{2 * number} {line}" for number, line in enumerate(lines)]


def test_two_groups_at_one_moment_are_deletions(tmp_path: Path) -> None:
    found = Story("\n".join(_SHORTER.strip().splitlines()[:-1])).findings(tmp_path)

    assert {each.group for each in found if each.code == "IC-05a"} == {"one", "two"}


def test_one_group_lost_offsets_of_the_same_age_each_time(tmp_path: Path) -> None:
    found = [each for each in hit("IC-28c", tmp_path, "offsets of one group, at the same age each time") if each.code == "IC-28c"]

    assert [(each.topic, each.severity, each.confidence) for each in found] == [("a", "warn", "possible"), ("b", "warn", "possible")]
    assert (
        found[0].sentence
        == "the offset of a-0 was removed 3 d 5 min after the commit, as in 1 other removal of the group; the retention is 7 d"
    )
    assert "a job that deletes offsets of a certain age" in str(found[0].not_excluded)


def test_an_early_removal_in_several_groups_is_undecidable_without_the_retention(tmp_path: Path) -> None:
    assert {(each.code, each.confidence) for each in undecidable("IC-28c", tmp_path)} == {("IC-28c", "undecidable")}


def test_an_early_removal_of_one_offset_is_undecidable_without_the_retention(tmp_path: Path) -> None:
    log = """
        0 d0 10:00 OC g t-0 = 900
        1 d3 10:05 OC g t-0 = X
    """
    found = said(Story(log).findings(tmp_path, codes=["IC-28"]), "IC-28c")

    assert found.confidence == "undecidable"
    assert "the offset of t-0 was removed 3 d 5 min after the commit" in found.sentence


def test_one_offset_was_removed_early(tmp_path: Path) -> None:
    found = hit("IC-28c", tmp_path, "one offset", codes=ALL)

    assert said(found, "IC-28c").sentence == "the offset of a-0 was removed 3 d 5 h after the commit; the retention is 7 d"
    assert "a request to delete them (IC-05a)" in str(said(found, "IC-28c").not_excluded)
    assert codes_of(found) == {"IC-05a", "IC-28c"}


def test_the_deletion_of_one_group_is_no_early_expiry(tmp_path: Path) -> None:
    assert codes_of(near_miss("IC-28c", tmp_path, "the deletion of one group", codes=ALL)) == {"IC-05a"}


def test_an_offset_that_never_expires_was_removed_after_a_change_of_leader(tmp_path: Path) -> None:
    assert "3 min after leader epoch 1 began" in said(hit("IC-28d", tmp_path), "IC-28d").sentence


def test_offsets_of_a_kip_848_group_expired_as_its_last_member_left(tmp_path: Path) -> None:
    found = said(hit("IC-28", tmp_path), "IC-28")

    assert "as soon as the last member had left, 9 d 4 min after the commit" in found.sentence


def test_the_tombstone_of_the_last_member_is_enough(tmp_path: Path) -> None:
    log = """
        20 d0 00:00:00 OC web slow-0 = 77
        21 d9 00:00:00 CG8 web m1 = X | CG7 web m1 = X | CG5 web m1 = X | CG3 web epoch=12
        25 d9 00:04:00 OC web slow-0 = X
    """
    assert "9 d 4 min after the commit (KIP-848" in said(Story(log).findings(tmp_path), "IC-28").sentence


def test_offsets_of_a_kip_848_group_that_was_empty_for_long_expired_in_time(tmp_path: Path) -> None:
    assert codes_of(near_miss("IC-28", tmp_path, codes=ALL)) == {"IC-01"}


def test_an_offset_of_a_topic_without_subscribers_expired(tmp_path: Path) -> None:
    found = said(hit("IC-17", tmp_path, "expired"), "IC-17")

    assert (found.severity, found.topic, found.partition) == ("info", "old", 0)
    assert "expired 7 d 2 min after the commit" in found.sentence


def test_an_offset_of_a_topic_without_subscribers_is_not_expired_yet(tmp_path: Path) -> None:
    found = said(hit("IC-17", tmp_path, "not expired yet"), "IC-17")

    assert "the group still has the offset of old-0 3 d 2 min after the commit" in found.sentence
    assert "2024-01-15" in found.sentence


def test_a_topic_with_a_commit_in_the_last_day_is_no_finding(tmp_path: Path) -> None:
    assert not codes_of(near_miss("IC-17", tmp_path, codes=ALL))


def test_expiry_is_undecidable_without_times(tmp_path: Path) -> None:
    log = """
        0 d0 10:00 OC g t-0 = 900
        1 d9 10:00 OC g t-0 = X
    """
    found = Story(log, message_format=0).findings(tmp_path / "0", codes=["IC-01", "IC-32"])

    assert [(each.code, each.confidence) for each in found] == [("IC-01", "undecidable")]
    assert "message format 0 stores none: 2 records without a time" in found[0].sentence
    assert codes_of(Story(log, message_format=1).findings(tmp_path / "1", codes=["IC-01"])) == {"IC-01"}
