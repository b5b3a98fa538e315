"""The sentences and grades of the detectors of membership and assignment."""

from __future__ import annotations

from pathlib import Path

from exhume.analysis.detectors import Inputs, diagnose
from exhume.replay.topic_names import Topic

from .incidents import ALL, hit, near_miss, undecidable
from .story import Story, case_of, codes_of, evidence_offsets, said, time_ms

# IC-04


def test_a_storm_names_its_clients_and_counts_unfinished_rebalances(tmp_path: Path) -> None:
    finding = said(hit("IC-04", tmp_path), "IC-04")

    assert finding.confidence == "proof"
    assert "119 generations in 51 minutes, 2.3 a minute; 40 of them never got an assignment" in finding.sentence
    assert "b@h2 79 times" in finding.sentence


def test_the_numbers_show_a_storm_without_its_records(tmp_path: Path) -> None:
    finding = said(hit("IC-04", tmp_path, "compaction removed the records"), "IC-04")

    assert finding.confidence == "likely"
    assert "79 of them are not in the log" in finding.sentence
    assert "rolling restart" in (finding.not_excluded or "")


def test_members_that_join_again_and_again_are_no_rolling_restart(tmp_path: Path) -> None:
    story = "0 d0 10:00:00 GM g gen={n} {A@h1/a: t → t-0; B@h2/b: t → t-1}   40 × every 30 s"
    finding = said(Story(story).findings(tmp_path, codes=["IC-04"]), "IC-04")

    assert "39 generations in 19 minutes, 2.0 a minute; in 39 of them no member joined, left or changed" in finding.sentence
    assert finding.not_excluded == "partitions that were added again and again: members join again for them"


# IC-18


def test_clients_that_come_back_under_other_member_ids_came_back(tmp_path: Path) -> None:
    story = """
        0 d0 10:00:00  GM g gen=9 {A1@h1/a: t → t-0; B1@h2/b: t → t-1}
        1 d0 10:00:05  OC g t-0 = {n} | OC g t-1 = {n}  240 × every 5 s
        500 d0 11:00:00  OC other u-0 = {n}  5 × every 60 s
        600 d0 13:05:00  GM g gen=10 {A2@h1/a: t → t-0,t-1}
    """
    finding = said(Story(story).findings(tmp_path, codes=["IC-18"]), "IC-18")

    assert "1 of its 2 clients came back under other member ids" in finding.sentence
    assert "none" not in finding.sentence


# IC-11


def test_a_partition_in_two_assignments_of_a_generation(tmp_path: Path) -> None:
    finding = said(hit("IC-11", tmp_path, "in one assignment"), "IC-11")

    assert (finding.severity, finding.confidence, finding.topic, finding.partition) == ("incident", "proof", "t", 1)
    assert "1 partition had two owners or more from generation 7 on, for 10 min: t-1, owned by a@h1 (A) and b@h2 (B)" in finding.sentence
    assert evidence_offsets(finding) == [0, 2]


def test_a_member_of_a_consumer_group_took_a_partition_that_another_still_owns(tmp_path: Path) -> None:
    assert said(hit("IC-11", tmp_path, "taken before the other member revoked it"), "IC-11").partition == 1


def test_a_compacted_consumer_group_is_undecidable(tmp_path: Path) -> None:
    findings = undecidable("IC-11", tmp_path)

    assert "IC-11" not in codes_of(findings)
    assert said(findings, "IC-11").confidence == "undecidable"


def test_a_custom_assignor_may_give_a_partition_to_two_members(tmp_path: Path) -> None:
    finding = said(hit("IC-11", tmp_path, "by a custom assignor"), "IC-11")

    assert (finding.severity, finding.confidence) == ("info", "possible")


def test_a_stale_claim_is_info(tmp_path: Path) -> None:
    findings = hit("IC-11b", tmp_path)

    finding = said(findings, "IC-11b")
    assert (finding.severity, finding.topic, finding.partition) == ("info", "t", 1)
    assert "a@h1 (A) and b@h2 (B) claimed the same partitions when they joined: t-1" in finding.sentence
    assert codes_of(findings) == {"IC-11b"}


# IC-20


def test_a_partition_without_an_owner_over_two_generations(tmp_path: Path) -> None:
    finding = said(hit("IC-20a", tmp_path), "IC-20a")

    assert (finding.severity, finding.confidence, finding.topic, finding.partition) == ("incident", "likely", "t", 3)
    assert "no member owned t-3 from record 2 on, through 2 group records and for 31 min, until the end" in finding.sentence
    assert "commits stopped after record 1" in finding.sentence


_HOLE = """
    {first}  d0 09:58:00  OC g t-3 = 7
    2  d0 10:00:00  GM g gen=5 {A@h1/a: t → t-0,t-1; B@h2/b: t → t-2}
    3  d0 10:30:00  GM g gen=6 {A@h1/a: t → t-0,t-1; B@h2/b: t → t-2}
    {between}
    5  d0 10:31:00  GM g gen=7 {A@h1/a: t → t-0,t-1; B@h2/b: t → t-2,t-3}
    6  d0 10:32:00  OC g t-3 = 9
"""
_FOUR = Inputs(topics=[Topic("t", None, 4, None)])


def test_a_commit_of_a_later_owner_does_not_belong_to_the_time_without_owner(tmp_path: Path) -> None:
    story = _HOLE.replace("{first}", "1").replace("    {between}\n", "")
    finding = said(Story(story).findings(tmp_path, _FOUR, codes=["IC-20a"]), "IC-20a")

    assert finding.sentence == "no member owned t-3 from record 2 on, through 2 group records and for 31 min"
    assert evidence_offsets(finding) == [2, 3, 5]
    assert finding.not_excluded == "partitions that were added to the topic later: the topics file has its present size"


def test_a_partition_that_no_record_named_before_its_first_owner_is_new(tmp_path: Path) -> None:
    story = "\n".join(_HOLE.splitlines()[2:]).replace("    {between}\n", "")

    assert not Story(story).findings(tmp_path, _FOUR, codes=["IC-20a"])


def test_a_partition_that_only_the_topics_file_has_may_be_new(tmp_path: Path) -> None:
    story = "\n".join(_HOLE.splitlines()[2:]).partition("    {between}")[0]
    finding = said(Story(story).findings(tmp_path, _FOUR, codes=["IC-20a"]), "IC-20a")

    assert finding.confidence == "possible"
    assert finding.sentence == (
        "the topics file has 4 partitions of t, and no assignment or commit in the log names t-3: the members may not know new partitions"
    )


_GROWS = """
    0 d0 08:00  GM g gen=1 {A@h1/a: t → t-0,1; B@h2/b: t → t-2,3} | GM other gen=1 {C@h3/c: t → t-0,1,2,3}
    2 d0 08:01  OC g t-0 = 1 | OC g t-1 = 1 | OC g t-2 = 1 | OC g t-3 = 1
    6 d2 12:00  GM other gen=2 {C@h3/c: t → t-0,1,2,3,4,5}
    7 d2 12:01  OC other t-4 = 1 | OC other t-5 = 1
"""


def test_partitions_that_are_added_are_not_missing_before(tmp_path: Path) -> None:
    story = f"{_GROWS}\n9 d2 12:06 GM g gen=2 {{A@h1/a: t → t-0,1,2; B@h2/b: t → t-3,4,5}}\n10 d3 12:00 OC g t-4 = 9"

    assert "IC-20a" not in codes_of(Story(story).findings(tmp_path, codes=["IC-20a"]))
    six = Inputs(topics=[Topic("t", None, 6, None)])
    assert not Story(story).findings(tmp_path / "six", six, codes=["IC-20a"])


def test_a_group_that_does_not_know_the_new_partitions(tmp_path: Path) -> None:
    story = f"{_GROWS}\n9 d2 13:01 OC g t-0 = 2"
    [finding] = [each for each in Story(story).findings(tmp_path, codes=["IC-20a"]) if each.confidence != "undecidable"]

    assert (finding.group, finding.severity, finding.topic, finding.partition) == ("g", "warn", "t", None)
    assert "the topic t grew: the log has commits for 2 partitions of t (4, 5) since 2024-01-10 12:01:00" in finding.sentence
    assert "no member of this group owned them for 1 h, until the end of the log" in finding.sentence


def test_a_commit_for_a_partition_without_owner_is_no_stop(tmp_path: Path) -> None:
    story = _HOLE.replace("{first}", "1").replace("{between}", "4  d0 10:30:30  OC g t-3 = 8").split("    5  d0")[0]
    finding = said(Story(story).findings(tmp_path, _FOUR, codes=["IC-20a"]), "IC-20a")

    assert finding.sentence.endswith("until the end of the log; the last commit is record 4")
    assert evidence_offsets(finding) == [2, 3, 4]


def test_without_partition_counts_higher_partitions_are_undecidable(tmp_path: Path) -> None:
    findings = [finding for finding in undecidable("IC-20a", tmp_path) if finding.code == "IC-20a"]

    assert [finding.confidence for finding in findings] == ["possible", "undecidable"]
    assert "t has at least 4 partitions" in findings[1].sentence
    assert findings[1].remedy == "Add --topics FILE"


def test_with_fewer_partitions_none_is_missing(tmp_path: Path) -> None:
    assert not near_miss("IC-20a", tmp_path, "members without partitions")


def test_a_cooperative_rebalance_leaves_partitions_without_owner_for_a_moment(tmp_path: Path) -> None:
    assert codes_of(near_miss("IC-20a", tmp_path, "a cooperative rebalance", codes=ALL)) == set()


def test_an_owner_that_does_not_commit_one_partition(tmp_path: Path) -> None:
    finding = said(hit("IC-20b", tmp_path, "it may have no new records"), "IC-20b")

    assert (finding.severity, finding.confidence, finding.partition, finding.member_id) == ("info", "possible", 2, "A")
    assert "offsets of 2 other partitions in that time" in finding.sentence
    assert "without new records" in (finding.not_excluded or "")


def test_with_end_offsets_the_lag_of_the_partition_is_known(tmp_path: Path) -> None:
    finding = said(hit("IC-20b", tmp_path, "with a lag of 5000"), "IC-20b")

    assert (finding.severity, finding.confidence) == ("warn", "likely")
    assert "its lag is 5000" in finding.sentence


def test_an_owner_that_did_not_commit_for_a_time_though_it_commits_unchanged_offsets(tmp_path: Path) -> None:
    finding = said(hit("IC-20b", tmp_path, "for a time, by a client that also commits unchanged offsets"), "IC-20b")

    assert (finding.severity, finding.confidence, finding.partition, finding.member_id) == ("warn", "likely", 2, "A")
    assert (
        "a@h1 (A) committed no offset of this partition for 5 min (61 times the usual interval), and committed offsets of 2 other"
        in finding.sentence
    )
    assert "leader epoch 1 of the offsets partition began in that time" in finding.sentence
    assert evidence_offsets(finding) == [24, 147]


def test_a_large_rise_after_a_pause_may_be_an_owner_that_did_not_commit(tmp_path: Path) -> None:
    finding = said(hit("IC-20b", tmp_path, "for a time, and then many records in one commit"), "IC-20b")

    assert (finding.severity, finding.confidence) == ("info", "possible")
    assert "then the offset rose by 8963 in one commit (usual rise 1)" in finding.sentence
    assert "had no records for that time" in (finding.not_excluded or "")


def test_a_pause_in_the_compacted_part_is_undecidable(tmp_path: Path) -> None:
    findings = [finding for finding in undecidable("IC-20b", tmp_path) if finding.code == "IC-20b"]

    assert [finding.confidence for finding in findings] == ["undecidable"]


_BY_ID = """
    0 d0 10:00 CG3 g epoch=7 | CG5 g m1 {t} | CG6 g target-epoch=7 | CG7 g m1 {t:[0,1]}
    4 d0 10:00 CG8 g m1 epoch=7 prev=6 state=0 own{t:[0,1]}
    5 d0 10:01 OC g t-0 = 5 {tid=?} | OC g t-1 = 5 {tid=?} | OC g t-2 = 5 {tid=?}
    8 d0 12:01 OC g t-0 = 6 {tid=?} | OC g t-1 = 6 {tid=?}
"""


def test_topics_with_unknown_ids_are_undecidable(tmp_path: Path) -> None:
    story = Story(_BY_ID.replace(" {tid=?}", "")).write(tmp_path)
    found = said(diagnose(case_of(story), Inputs(), codes=["IC-20"]), "IC-20a")

    assert found.confidence == "undecidable"
    assert "assignments contain topic ids whose names are not known, and t may be among them" in found.sentence


def test_commits_contain_the_names_of_topic_ids(tmp_path: Path) -> None:
    story = Story(_BY_ID.replace("?", "t")).write(tmp_path)
    found = diagnose(case_of(story), Inputs(), codes=["IC-20"])

    assert [(each.topic, each.partition) for each in found if each.confidence != "undecidable"] == [("t", 2)]


# IC-18


def test_a_group_that_committed_nothing_and_skipped_generations(tmp_path: Path) -> None:
    finding = said(hit("IC-18", tmp_path), "IC-18")

    assert (finding.severity, finding.confidence) == ("incident", "likely")
    assert "the group had 2 members and committed nothing for 2 h 45 min (usual interval 5 s)" in finding.sentence
    assert "the log has generation 9 and then 14" in finding.sentence
    assert "none of its members came back" in finding.sentence


def test_no_commit_at_the_end_is_undecidable_for_clients_that_commit_changed_offsets_only(tmp_path: Path) -> None:
    assert said(undecidable("IC-18", tmp_path), "IC-18").confidence == "undecidable"


def test_no_commit_at_the_end_is_possibly_stuck_for_clients_that_commit_unchanged_offsets(tmp_path: Path) -> None:
    finding = said(hit("IC-18", tmp_path, "a client that also commits unchanged offsets"), "IC-18")

    assert finding.confidence == "possible"
    assert "the group may be stuck since record 240" in finding.sentence


# IC-19


def test_two_clients_use_one_static_identity(tmp_path: Path) -> None:
    finding = said(hit("IC-19", tmp_path), "IC-19")

    assert "group.instance.id i1 moved 3 times in 3 min, 60 an hour, back and forth between /h1 and /h2" in finding.sentence
    assert evidence_offsets(finding) == [1, 2, 3]


def test_two_clients_use_one_static_identity_in_a_consumer_group(tmp_path: Path) -> None:
    log = """
        0 d0 10:00 CG3 g epoch=3 | CG5 g m1 {t} instance=i host=/h1
        2 d0 10:01 CG5 g m1 = X | CG5 g m2 {t} instance=i host=/h2
        4 d0 10:02 CG5 g m2 = X | CG5 g m3 {t} instance=i host=/h1
        6 d0 10:03 CG5 g m3 = X | CG5 g m4 {t} instance=i host=/h2
    """
    finding = said(Story(log).findings(tmp_path, codes=["IC-19"]), "IC-19")

    assert "group.instance.id i moved 3 times in 2 min" in finding.sentence
    assert finding.member_id == "m4"


# IC-24


def test_members_without_a_common_topic(tmp_path: Path) -> None:
    findings = hit("IC-24a", tmp_path, codes=ALL)

    assert "billing@h1 (A) subscribes to bills, and mail@h2 (B) subscribes to mails" in said(findings, "IC-24a").sentence
    assert "the group committed offsets of other (1 partition: 0) while it had 2 members" in said(findings, "IC-24b").sentence


def test_a_deployment_that_adds_a_topic_keeps_a_common_topic(tmp_path: Path) -> None:
    assert not [code for code in codes_of(near_miss("IC-24a", tmp_path, codes=ALL)) if code.startswith("IC-24")]


def test_a_protocol_that_changes_back_and_forth(tmp_path: Path) -> None:
    finding = said(hit("IC-24c", tmp_path), "IC-24c")

    assert "protocol of the group changed 3 times, back and forth between consumer sticky and consumer range" in finding.sentence


def test_a_static_member_that_is_replaced_does_not_hide_a_foreign_commit(tmp_path: Path) -> None:
    log = """
        0 d0 10:00 GM g gen=1 {A@h1/c#i: t → t-0}
        1 d0 10:01 OC g t-0 = 5 | OC g u-1 = 5
        3 d0 12:01 GM g gen=1 {B@h1/c#i: t → t-0}
        4 d0 12:02 OC g t-0 = 6
    """
    finding = said(Story(log).findings(tmp_path), "IC-24b")

    assert (finding.topic, finding.partition) == ("u", 1)


def test_commits_again_and_again_while_the_group_has_no_members(tmp_path: Path) -> None:
    assert "9 commits over 8 min while the group had no members (t)" in said(hit("IC-24d", tmp_path), "IC-24d").sentence


# IC-30


def test_a_member_that_waits_for_another_names_it(tmp_path: Path) -> None:
    findings = [finding for finding in hit("IC-30", tmp_path) if finding.code == "IC-30"]

    assert [finding.member_id for finding in findings] == ["m1", "m2"]
    assert "it must revoke t-1, and has not confirmed that" in findings[0].sentence
    assert "did not reach target epoch 8 for 9 min, until the end of the log: it waits for" in findings[1].sentence
    assert "(m1) to revoke t-1" in findings[1].sentence


def test_a_member_that_never_revokes_is_stuck_at_any_number_of_targets(tmp_path: Path) -> None:
    log = """
        0 d0 10:00:00 CG3 g epoch=7 | CG5 g m1 {t} | CG5 g m2 {t} | CG6 g target-epoch=7 | CG7 g m1 {t:[0,1]}
        5 d0 10:00:00 CG8 g m1 epoch=7 prev=6 state=0 own{t:[0,1]}
        6 d0 10:01:00 CG3 g epoch=8 | CG6 g target-epoch=8 | CG7 g m1 {t:[0]} | CG7 g m2 {t:[1]}
        10 d0 10:01:05 CG8 g m1 epoch=7 prev=6 state=1 own{t:[0]} revoke{t:[1]}
        11 d0 10:05 CG3 g epoch=9 | CG6 g target-epoch=9
        13 d0 10:09 CG3 g epoch=10 | CG6 g target-epoch=10
        15 d0 10:13 OC g t-0 = 5
    """
    stuck = [each for each in Story(log).findings(tmp_path, codes=["IC-30"]) if each.member_id == "m1"]

    assert "(m1) did not reach target epoch 8 to 10 for 12 min, until the end of the log" in stuck[0].sentence
    assert "it must revoke t-1" in stuck[0].sentence


# IC-31


def test_a_group_that_changes_its_type_three_times_in_a_day(tmp_path: Path) -> None:
    finding = said(hit("IC-31", tmp_path), "IC-31")

    assert (finding.severity, finding.confidence) == ("warn", "proof")
    assert "the group changed its type 3 times in 40 min, the last time to consumer" in finding.sentence


def test_an_offset_that_goes_back_with_the_change_of_type(tmp_path: Path) -> None:
    finding = said(hit("IC-31", tmp_path, "an offset goes back with the type"), "IC-31")

    assert "the committed offset changed by -8900 within a minute of the group's change to type consumer" in finding.sentence


# IC-34


def test_range_is_uneven_for_topics_of_one_partition(tmp_path: Path) -> None:
    finding = said(hit("IC-34", tmp_path), "IC-34")

    assert (finding.severity, finding.confidence) == ("info", "proof")
    assert "a@h1 (A) got 3 partitions and b@h2 (B) got 0 from range, for the same subscription to 3 topics: range" in finding.sentence


def test_more_than_any_assignor_gives_is_a_warning(tmp_path: Path) -> None:
    assert said(hit("IC-34", tmp_path, "more than by any assignor"), "IC-34").severity == "warn"


def test_the_target_of_a_consumer_group_counts(tmp_path: Path) -> None:
    finding = said(hit("IC-34", tmp_path, "in the target of a consumer group"), "IC-34")

    assert finding.first_timestamp_ms == time_ms("d0 10:00:00")


def test_members_of_another_topic_do_not_make_it_even(tmp_path: Path) -> None:
    log = """
        0 d0 10:00 GM g gen=2 proto=roundrobin {A: t → t-0,1,2,3; B: t → ; C: u → u-0}
        1 d0 10:30 GM g gen=3 proto=roundrobin {A: t → t-0,1,2,3; B: t → ; C: u → u-0}
    """
    finding = said(Story(log).findings(tmp_path), "IC-34")

    assert "c@h (A) got 4 partitions and c@h (B) got 0" in finding.sentence
