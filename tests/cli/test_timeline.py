"""Rebalances, owners and timelines as people and programs meet them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.cells import cell_len

import exhume
from exhume.cli.app import run
from exhume.cli.swimlanes import lines
from exhume.fixtures import scenarios
from exhume.fixtures.incidents import write
from exhume.fixtures.log_writer import PartitionWriter
from exhume.fixtures.story import Story
from tests.analysis.group_records import classic, classic_of
from tests.judges import corpus


@pytest.fixture
def three(tmp_path: Path) -> Path:
    scenarios.write("three-rebalances", tmp_path / "three")
    return tmp_path / "three"


def test_a_timeline_draws_a_lane_for_each_partition(three: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["timeline", str(three), "--group", "checkout", "--scale", "changes"]) == 0

    shown = capsys.readouterr().out.splitlines()
    assert [line for line in shown if line.startswith("orders-")] == [
        f"orders-{partition}  {lane}"
        for partition, lane in enumerate(
            [
                "A" * 90,
                "A" * 90,
                "A" * 60 + "B" * 30,
                "A" * 30 + "B" * 60,
                "A" * 30 + "B" * 30 + "C" * 30,
                "A" * 30 + "B" * 30 + "C" * 30,
            ]
        )
    ]
    assert "A  checkout-1@10.0.0.1  generations 1 to 3" in "\n".join(shown)


def test_where_time_goes_back_lanes_are_drawn_by_changes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    story = """
        0 08:00 GM g gen=1 {A@h1: t → t-0; B@h2: t → t-1}
        1 07:00 GM g gen=2 {A@h1: t → ; B@h2: t → t-0,1}
    """
    assert run(["timeline", str(Story(story).write(tmp_path)), "--group", "g"]) == 0

    shown = capsys.readouterr().out.splitlines()
    assert "2 changes, all equally wide" in shown[1]
    assert [[lane.count(owner) for owner in "AB"] for lane in (line.removeprefix("t-") for line in shown[2:4])] == [[47, 48], [0, 95]]


def lanes(story: str, directory: Path, *, by_member: bool = False) -> tuple[dict[str, str], list[str]]:
    """Lanes by their labels, and the legend."""
    with exhume.open(Story(story).write(directory)) as topic:
        _, _, *shown = [line.plain for line in lines(topic.owners(), "g", 25, by_member=by_member)]
    drawn = shown[: shown.index("")]
    return dict(line.split(maxsplit=1) for line in drawn), shown[shown.index("") + 1 :]


def test_members_of_one_name_that_were_there_at_once_have_a_letter_each(tmp_path: Path) -> None:
    # Many clients have their library's name for a client id; this one went from one member to the other and back.
    story = """
        0 08:00 GM g gen=1 {a@h/rdkafka: t → t-0; b@h/rdkafka: t → t-1}
        1 08:10 GM g gen=2 {a@h/rdkafka: t → t-1; b@h/rdkafka: t → t-0}
        2 08:20 GM g gen=3 {c@h/rdkafka: t → t-0,1}
        3 08:30 OC other t-0 = 1
    """
    drawn, legend = lanes(story, tmp_path)

    assert drawn == {"t-0": "AAAAAAABBBBBBCCCCCCC", "t-1": "BBBBBBBAAAAAACCCCCCC"}
    assert [line.split()[:2] for line in legend] == [["A", "a"], ["B", "b"], ["C", "c"]]
    assert [*lanes(story, tmp_path / "by-member", by_member=True)[0]] == ["a", "b", "c"]


def test_who_comes_back_under_another_member_id_keeps_its_letter(tmp_path: Path) -> None:
    story = """
        0 08:00 GM g gen=1 {a@h/rdkafka: t → t-0; x#i: t → t-1}
        1 08:10 GM g gen=2 {b@h/rdkafka: t → t-0; y#i: t → t-1}
        2 08:20 OC other t-0 = 1
    """

    assert lanes(story, tmp_path)[0] == {"t-0": "A" * 20, "t-1": "B" * 10 + "!" + "B" * 9}


def test_the_last_column_is_the_end_of_the_log(tmp_path: Path) -> None:
    story = """
        0 08:00 GM g gen=1 {a@h1: t → t-0,1,2}
        1 09:00 GM g gen=2 {a@h1: t → t-0,2; b@h2: t → t-1,2}
    """

    assert lanes(story, tmp_path)[0] == {"t-0": "A" * 20, "t-1": "A" * 19 + "B", "t-2": "A" * 19 + "#"}
    assert lanes(story, tmp_path / "by-member", by_member=True)[0] == {"c@h1": "3" * 18 + "2", "c@h2": "." * 18 + "2"}


def test_lanes_of_members_count_partitions(three: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["timeline", str(three), "--group", "checkout", "--by", "member", "--scale", "changes"]) == 0

    shown = capsys.readouterr().out.splitlines()
    lanes = [line.split()[1] for line in shown if line.startswith("checkout-")]
    assert [[lane[place] for place in (0, len(lane) // 2, -1)] for lane in lanes] == [["6", "3", "2"], [".", "3", "2"], [".", ".", "2"]]


def test_a_timeline_for_programs_has_the_intervals(three: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["timeline", str(three), "--group", "checkout", "--output", "jsonl"]) == 0

    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(rows) == 12
    assert {row["group"] for row in rows} == {"checkout"}


@pytest.mark.parametrize("by_member", [True, False])
@pytest.mark.parametrize("width", [40, 80, 200])
def test_every_line_fits_and_hostile_names_do_nothing(tmp_path: Path, width: int, by_member: bool) -> None:
    evil = "\x1b[2J" + "消" * 60 + "\u202e"
    with PartitionWriter(tmp_path, 0) as log:
        log.append([classic_of(1, {evil: [0], "b": [0, 1]}, group=evil)], timestamp_ms=10)
        log.append([classic_of(2, {evil: [0]}, group=evil)], timestamp_ms=99_999)
    with exhume.open(tmp_path) as topic:
        table = topic.owners()

    shown = [line.plain for line in lines(table, evil, width, by_member=by_member)]

    assert all(cell_len(line) <= width for line in shown)
    assert not any("\x1b" in line or "\u202e" in line for line in shown)
    assert by_member or any("#" in line.split()[-1] for line in shown if line.startswith("orders-0"))


def test_more_owners_than_letters_are_counted(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 0) as log:
        log.append([classic_of(1, {f"m{number}": [number] for number in range(70)})], timestamp_ms=10)
    with exhume.open(tmp_path) as topic:
        shown = [line.plain for line in lines(topic.owners(), "billing", 80)]

    assert shown[-1] == "+  8 owners more"


def test_a_group_without_partitions_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with PartitionWriter(tmp_path, 0) as log:
        log.append([classic(1)])

    assert run(["timeline", str(tmp_path), "--group", "billing"]) == 0
    assert "no member has a partition" in capsys.readouterr().out


def test_owners_at_a_moment(three: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        run(["owners", str(three), "--topic", "orders", "--partition", "5", "--at-time", "2024-01-08T08:01:30", "--output", "jsonl"]) == 0
    )

    (row,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (row["client_id"], row["generation"]) == ("checkout-2", 2)


def test_two_moments_are_a_wrong_request(three: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["owners", str(three), "--topic", "orders", "--at-time", "2024-01-08", "--at-offset", "3"]

    assert run(arguments) == 2
    assert "not both" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("moment", "problem"), [("3", "needs an offsets partition. Write P:3, P being one of"), ("77:3", "77 is not in these logs")]
)
def test_owners_at_a_moment_that_the_log_cannot_have(moment: str, problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    data = str(corpus.BUNDLED / "4.0.0-consumer-groups" / "data")

    assert run(["owners", data, "--topic", "orders", "--at-offset", moment]) == 2
    assert problem in capsys.readouterr().err


def test_rebalances_are_summed_up(three: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rebalances", str(three)]) == 0
    assert capsys.readouterr().err.splitlines() == ["3 rebalances of 1 group"]


_HOUR = """
    0 08:00 GM g gen=1 {A@h1: t → t-0}
    1 08:30 GM g gen=2 {B@h2: t → t-0}
    2 09:00 OC other t-0 = 1
"""


def test_a_part_of_a_timeline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = str(Story(_HOUR).write(tmp_path))
    with exhume.open(place) as topic:
        begin_ms = topic.owners()["from_timestamp_ms"][0].as_py()
    times = (f"--from-time={begin_ms + 24 * 60_000}", f"--to-time={begin_ms + 36 * 60_000}")

    assert run(["timeline", place, "--group", "g", *times]) == 0
    shown = capsys.readouterr().out.splitlines()
    lane = shown[2].removeprefix("t-0  ")
    assert (lane.count("A"), lane.count("B"), len(lane)) == (47, 48, 95)
    assert run(["timeline", place, "--group", "g", *times, "-o", "jsonl"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert run(["timeline", place, "--group", "g", f"--to-time={begin_ms - 1}"]) == 2
    assert "has no partition at this time" in capsys.readouterr().err


def test_a_static_member_that_is_replaced_shows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = write("IC-19", tmp_path / "drill")
    with exhume.open([*written.data_directories]) as topic:
        owners = topic.owners().to_pylist()
        group = next(row["group"] for row in owners if row["group_instance_id"])
    ids = {row["member_id"] for row in owners if row["group"] == group and row["group_instance_id"]}

    assert run(["timeline", *map(str, written.data_directories), "--group", group, "--scale", "changes"]) == 0
    shown = capsys.readouterr().out
    assert len(ids) > 1
    assert "!" in shown.split("\n\n")[0]
    assert "!  a member with a new id took over this static identity" in shown
