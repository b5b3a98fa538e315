"""Single pictures: every interval and every partition is there, and hostile names are text."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import exhume
from exhume.cli.app import run
from exhume.errors import RequestError
from exhume.escape import printable
from exhume.moments import show_time
from exhume.report import ReportRequest
from exhume.report.pictures import assignment_svg, owners_svg
from tests.cli.hostile_names import NAMES
from tests.report.conftest import MARKUP, Report, data_of

SVG = "{http://www.w3.org/2000/svg}"


def titles(svg: str) -> list[str]:
    """What pointing at the rectangles of a picture shows."""
    return [title.text or "" for rect in ET.fromstring(svg).iter(f"{SVG}rect") for title in rect.iter(f"{SVG}title")]


def test_swimlanes_have_each_interval(night_shift: Report) -> None:
    with exhume.open(night_shift.log) as topic:
        owners = topic.owners(groups=["checkout"])
    svg = owners_svg(owners, "checkout")
    spans = [
        f"{show_time(row['from_timestamp_ms'])} to {show_time(row['to_timestamp_ms'])}; from record {row['from_record_offset']}"
        for row in owners.to_pylist()
    ]

    assert Counter(title.partition("; ")[2] for title in titles(svg)) == Counter(spans)


def test_an_assignment_has_each_partition(night_shift: Report) -> None:
    assigned = night_shift.tables.groups[0].assigned
    assert assigned is not None

    assert titles(assignment_svg(assigned, "checkout")) == [", ".join(row["actual"]) for row in assigned.to_pylist()]


def test_hostile_names_are_text_of_the_picture(hostile: Report) -> None:
    for group in hostile.tables.groups:
        picture = ET.fromstring(owners_svg(group.owners, group.group))
        assert {element.tag.removeprefix(SVG) for element in picture.iter()} == {"svg", "title", "rect", "text", "line"}
        assert picture.findtext(f"{SVG}title") == printable(group.group)
    assert len(MARKUP) + len(NAMES) > 20


@pytest.mark.parametrize(
    "arguments",
    [("timeline", "--group", "checkout"), ("owners", "--topic", "orders"), ("assignments", "--group", "checkout")],
    ids=" ".join,
)
def test_commands_write_pictures(night_shift: Report, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    files = {name: tmp_path / f"picture.{name}" for name in ("svg", "html")}
    for name, path in files.items():
        assert run([arguments[0], str(night_shift.log), *arguments[1:], "--output", name, "--output-file", str(path)]) == 0
    svg, html = (path.read_text(encoding="utf-8") for path in files.values())

    assert ET.fromstring(svg).tag == f"{SVG}svg"
    assert svg.strip() in html
    assert "default-src &#39;none&#39;" in html


def test_the_command_writes_the_report(night_shift: Report, tmp_path: Path) -> None:
    arguments = ["report", str(night_shift.log), "--group", "check*"]
    assert run([*arguments, "--output-file", str(tmp_path / "report.html")]) == 0
    assert data_of((tmp_path / "report.html").read_text(encoding="utf-8")) == night_shift.data
    assert run([*arguments, "--output-file", str(night_shift.log / "report.html")]) == 2
    assert not (night_shift.log / "report.html").exists()


def test_a_range_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(RequestError, match="ends before it begins"):
        ReportRequest(from_time_ms=2, to_time_ms=1)
