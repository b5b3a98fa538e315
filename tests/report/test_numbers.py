"""The report shows the numbers of the tables that the commands show."""

from __future__ import annotations

import base64
import hashlib
import html as html_text
import re
from collections.abc import Iterator
from typing import Any

import pyarrow.compute as pc
import pytest

import exhume
from exhume.analysis.detectors import Inputs
from exhume.escape import printable
from exhume.moments import show_time
from exhume.report.lanes import KINDS
from exhume.report.marks import MARK_FIELDS, words
from tests.report.conftest import Report, made

_TAG = re.compile(r"<[^>]*>")


def test_bars_are_the_rows_of_owners(night_shift: Report) -> None:
    with exhume.open(night_shift.log) as topic:
        owners = topic.owners(groups=["checkout"]).to_pylist()
    begin_ms, [group] = night_shift.data["begin_ms"], night_shift.data["groups"]
    lanes = [(night_shift.data["strings"][topic], partition) for topic, partition in group["lanes"]]
    drawn = {
        (*lanes[lane], begin_ms + at, length, KINDS[kind], None if owner < 0 else group["owners"][owner], record, end, epoch)
        for lane, at, length, owner, kind, record, end, epoch, _, _ in zip(*group["bars"], strict=True)
    }

    assert drawn == {
        (
            row["topic"],
            row["partition"],
            row["from_timestamp_ms"],
            row["to_timestamp_ms"] - row["from_timestamp_ms"],
            row["reason"] or row["holding"],
            None if row["member_id"] is None else f"{row['client_id']}@{row['client_host'].removeprefix('/')}",
            row["from_record_offset"],
            -1 if row["to_record_offset"] is None else row["to_record_offset"],
            row["generation"],
        )
        for row in owners
    }
    assert len(group["bars"][0]) == len(owners) == 66


def test_points_are_the_commits_of_history(night_shift: Report) -> None:
    with exhume.open(night_shift.log) as topic:
        commits = [row for row in topic.history("checkout").to_pylist() if row["type"] == "offset_commit"]
    begin_ms, [group] = night_shift.data["begin_ms"], night_shift.data["groups"]
    drawn = {
        (topic, partition, begin_ms + at, offset, record, delta)
        for (number, partition), columns in zip(group["lanes"], group["points"], strict=True)
        for topic in [night_shift.data["strings"][number]]
        for at, offset, record, _, delta, _ in zip(*columns, strict=True)
    }

    assert drawn == {
        (
            row["topic"],
            row["partition"],
            row["timestamp_ms"],
            row["committed_offset"],
            row["record_offset"],
            None if row["is_tombstone"] else row["committed_offset_delta"],
        )
        for row in commits
    }
    assert group["counted"] == len(commits) == 242


def test_falls_and_removals_are_marked(night_shift: Report) -> None:
    [group], kinds = night_shift.data["groups"], night_shift.data["point_kinds"]
    special = {
        (night_shift.data["strings"][number], partition, record, kinds[kind])
        for (number, partition), columns in zip(group["lanes"], group["points"], strict=True)
        for _, _, record, kind, _, _ in zip(*columns, strict=True)
        if kinds[kind] != "commit"
    }

    rewinds = {("orders", 4, 179, "rewind"), ("orders", 5, 180, "rewind")}
    assert special == rewinds | {("refunds", 0, 205, "removed"), ("refunds", 1, 206, "removed")}


def test_marks_are_the_rows_of_rebalances(night_shift: Report) -> None:
    with exhume.open(night_shift.log) as topic:
        rows = topic.rebalances(["checkout"]).to_pylist()
    data = night_shift.data
    marks = [dict(zip(MARK_FIELDS, mark, strict=True)) for mark in data["groups"][0]["marks"]]
    texts = [*data["strings"], None]

    assert [
        (
            data["begin_ms"] + mark["time_ms"],
            mark["record_offset"],
            texts[mark["causes"]],
            mark["epoch"],
            mark["members"],
            texts[mark["left"]],
        )
        for mark in marks
    ] == [
        (
            row["timestamp_ms"],
            row["record_offset"],
            words(row["causes"]),
            row["generation"],
            row["members"],
            ", ".join(row["left_clients"] or ()) or None,
        )
        for row in rows
    ]
    assert [mark["is_storm"] for mark in marks] == [int(row["is_storm"]) for row in rows]
    assert [mark["partitions_moved"] for mark in marks] == [
        -1 if row["partitions_moved"] is None else row["partitions_moved"] for row in rows
    ]


def test_the_plan_to_download_is_that_of_reset_plan(night_shift: Report) -> None:
    files = [base64.b64decode(text).decode() for text in re.findall(r'href="data:text/csv;base64,([^"]*)"', night_shift.html)]
    with exhume.open(night_shift.log) as topic:
        plans = [topic.reset_plan(["checkout"], taken_back=way).text for way in ("before_rewind", "lost")]

    assert files == plans == ["orders,4,764\norders,5,765\n", "refunds,0,95\nrefunds,1,96\n"]


def test_every_file_has_its_digest(night_shift: Report) -> None:
    directory = night_shift.log / "__consumer_offsets-18"
    files = [path for path in directory.iterdir() if path.suffix not in {".snapshot", ".metadata"}]

    assert len(files) > 2
    for path in files:
        content = path.read_bytes()
        row = f"{html_text.escape(str(path))}</th>.*?{len(content):,}</td><td><code class=.hash.>{hashlib.sha256(content).hexdigest()}<"
        assert re.search(row, night_shift.html), path.name


def cells(value: Any) -> Iterator[str]:
    """Every text of a table that a page may show: cells, times, and numbers with separators."""
    if isinstance(value, dict):
        for each in value.values():
            yield from cells(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from cells(each)
    elif isinstance(value, int):
        yield from (str(value), f"{value:,}", show_time(value) if value > 10**11 else "")
    elif value is not None:
        yield printable(str(value))


def test_every_number_of_the_page_is_in_a_table(night_shift: Report) -> None:
    tables = night_shift.tables
    shown = [tables.diagnosis, tables.growth, *tables.inspection.values(), tables.files]
    for group in tables.groups:
        shown += [group.explanation, group.rebalances, group.offsets, group.owners]
        shown += [table for table in (group.verdicts, group.assigned) if table is not None]
        shown += [plan.table for plan in group.plans.values()]
    sentences = [sentence for group in tables.groups for plan in group.plans.values() for sentence in plan.sentences()]
    known = " ".join(text for table in shown for row in table.to_pylist() for text in cells(row)) + " ".join(sentences)
    numbers = set(re.findall(r"\d[\d,.:]*", known)) | set(re.findall(r"\d+", known))
    body = night_shift.html.partition("<main>")[2].partition("</main>")[0]
    text = html_text.unescape(_TAG.sub(" ", re.sub(r"[A-Za-z]*SHA-256|localhost:\d+|HOST:9092|exhume \d+\.\d+\.\d+", " ", body)))
    counts = {str(table.num_rows) for table in shown} | {str(len(tables.diagnosis.filter(mask))) for mask in _masks(tables.diagnosis)}
    unknown = {number for number in re.findall(r"\d+", text) if number not in numbers | counts}

    assert not unknown
    assert len(numbers) > 200


def _masks(diagnosis: Any) -> Iterator[Any]:
    for severity in ("info", "warn", "incident"):
        yield pc.and_(pc.equal(diagnosis["severity"], severity), pc.not_equal(diagnosis["confidence"], "undecidable"))
    yield pc.equal(diagnosis["confidence"], "undecidable")


def test_lag_is_the_end_offset_less_the_committed_one(night_shift: Report, tmp_path: Any) -> None:
    ends = {("orders", 0): 1000, ("orders", 4): 2000}
    report = made(night_shift.log, tmp_path / "report.html", groups=("checkout",), inputs=Inputs(end_offsets=ends))

    rows = re.findall(
        r"<tr><th scope=\"row\">(orders-\d)</th><td class=\"n\">(\S+)</td><td class=\"n\">(\S+)</td><td class=\"n\">(\S+)</td>", report.html
    )
    assert [row for row in rows if row[2] != "–"] == [("orders-4", "62", "2,000", "1,938"), ("orders-0", "895", "1,000", "105")]
    assert report.data["groups"][0]["ends"] == [1000, None, None, None, 2000, None, None, None]


@pytest.mark.parametrize(("from_time_ms", "to_time_ms"), [(1_704_702_600_000, None), (None, 1_704_702_000_000)])
def test_a_range_of_time_limits_the_rows(night_shift: Report, tmp_path: Any, from_time_ms: int | None, to_time_ms: int | None) -> None:
    report = made(night_shift.log, tmp_path / "report.html", groups=("checkout",), from_time_ms=from_time_ms, to_time_ms=to_time_ms)
    rows = re.findall(r'<tbody class="rebalances">(.*?)</tbody>', report.html, re.DOTALL)[0].count("<tr>")

    with exhume.open(night_shift.log) as topic:
        times = topic.rebalances(["checkout"])["timestamp_ms"].to_pylist()
    assert rows == sum((from_time_ms or 0) <= time <= (to_time_ms or time) for time in times)
    assert rows > 0
    assert (report.data["from_ms"], report.data["to_ms"]) == (from_time_ms, to_time_ms)
