"""The report in a real browser: what it shows, what moves it, and what it never does."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page
from pypdf import PdfReader

from exhume.escape import printable
from exhume.fixtures import incidents
from exhume.moments import show_time
from tests.cli.hostile_names import NAMES
from tests.report.conftest import MARKUP, Report, made, written
from tests.report.large import large_tables

pytestmark = pytest.mark.browser
WIDTHS = (390, 900, 1400)
Scheme = Literal["light", "dark"]


def _wait_until(page: Page, condition: str) -> None:
    """Ask the page until this is true. Playwright's own way evaluates text within the page, which its policy forbids."""
    for _ in range(600):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    raise AssertionError(condition)


@dataclass
class Opened:
    """A page, and what it said and asked for."""

    page: Page
    problems: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


Open = Callable[..., Opened]


@pytest.fixture
def show(browser: Browser) -> Iterator[Open]:
    """Opens a report."""
    pages: list[Page] = []

    def opened(report: Report, *, width: int = 1280, scheme: Scheme = "light", place: str = "") -> Opened:
        shown = Opened(browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme))
        shown.page.on("console", lambda message: shown.problems.append(message.text))
        shown.page.on("pageerror", lambda error: shown.problems.append(str(error)))
        shown.page.on("dialog", lambda dialog: shown.problems.append(dialog.message))
        shown.page.on("request", lambda request: shown.requests.append(request.url))
        shown.page.goto(report.url + place)
        pages.append(shown.page)
        return shown

    yield opened
    for each in pages:
        each.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_a_report_fits_and_is_accessible(show: Open, night_shift: Report, width: int, scheme: Scheme) -> None:
    shown = show(night_shift, width=width, scheme=scheme)
    shown.page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    found = Axe().run(shown.page).response["violations"]

    assert [(each["id"], [node["target"] for node in each["nodes"]]) for each in found] == []
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= width
    assert shown.problems == []
    assert shown.requests == [night_shift.url]


def test_a_printed_report_has_every_headline_and_fits_the_paper(show: Open, night_shift: Report, tmp_path: Path) -> None:
    page = show(night_shift, scheme="dark").page
    page.pdf(path=tmp_path / "report.pdf", format="A4")
    printed = "".join(sheet.extract_text() for sheet in PdfReader(tmp_path / "report.pdf").pages)
    # The kit of letters has fi and ff as one; lines end within words.
    letters = "".join(unicodedata.normalize("NFKC", printed).split())
    expected = [*night_shift.tables.diagnosis["sentence"].to_pylist(), *night_shift.tables.files["sha256"].to_pylist()]

    assert len(expected) > 5
    assert [each for each in expected if "".join(each.split()) not in letters] == []
    assert page.evaluate("document.querySelectorAll('details:not([open])').length") > 0
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 718, "height": 1000})
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    _wait_until(page, "document.documentElement.scrollWidth <= 718")


def test_pictures_are_drawn(show: Open, night_shift: Report) -> None:
    page = show(night_shift).page
    colours = page.evaluate(
        """[...document.querySelectorAll('.picture canvas')].map((canvas) => {
            const pixels = new Uint32Array(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer);
            return new Set(pixels).size;
        })"""
    )

    assert len(colours) >= 6
    assert min(colours) > 3


def lane(page: Page, number: int, share: float) -> tuple[float, float]:
    """The place on the screen of a lane, at a share of the time that is shown."""
    box = page.locator(".scroll").bounding_box()
    assert box is not None
    label = min(max(round((box["width"] - 2) * 0.2), 84), 210)
    return box["x"] + 1 + label + share * (box["width"] - 2 - label - 9), box["y"] + 1 + number * 22 + 11


def test_pointing_at_a_lane_shows_the_row_of_owners(show: Open, night_shift: Report) -> None:
    page = show(night_shift).page
    page.locator(".scroll").scroll_into_view_if_needed()
    page.mouse.move(*lane(page, 0, 0.52))
    [row] = [
        row
        for row in night_shift.tables.groups[0].owners.to_pylist()
        if (row["topic"], row["partition"]) == ("orders", 0) and row["member_id"] is not None
    ]

    text = page.locator("#tip").inner_text()
    assert f"{show_time(row['from_timestamp_ms'])} to {show_time(row['to_timestamp_ms'])}" in text
    assert f"records {row['from_record_offset']} to {row['to_record_offset']}, generation or epoch {row['generation']}" in text
    assert f"{row['client_id']}@10.0.0.1" in text


def test_clicks_zoom_and_the_rows_follow(show: Open, night_shift: Report) -> None:
    page = show(night_shift).page
    rows = page.locator(".rebalances tr")
    assert rows.count() == night_shift.tables.groups[0].rebalances.num_rows == 20
    page.get_by_role("button", name="Zoom in").click()
    _wait_until(page, "document.querySelectorAll('.rebalances tr').length < 20")
    times = [row["timestamp_ms"] for row in night_shift.tables.groups[0].rebalances.to_pylist()]
    begin_ms, quarter = night_shift.data["begin_ms"], (night_shift.data["end_ms"] - night_shift.data["begin_ms"]) / 4

    assert rows.count() == sum(begin_ms + quarter <= time <= begin_ms + 3 * quarter for time in times)
    assert "25 min" in page.locator("#view").inner_text()
    page.get_by_role("button", name="Whole time").click()
    _wait_until(page, "document.querySelectorAll('.rebalances tr').length === 20")
    assert page.locator("#view").inner_text() == ""


def test_dragging_over_a_span_zooms_into_it(show: Open, night_shift: Report) -> None:
    page = show(night_shift).page
    page.locator(".scroll").scroll_into_view_if_needed()
    page.mouse.move(*lane(page, 2, 0.4))
    page.mouse.down()
    page.mouse.move(*lane(page, 2, 0.6), steps=4)
    page.mouse.up()

    _wait_until(page, "document.getElementById('view').textContent.includes('10 min')")


def test_a_click_links_to_the_moment_and_the_link_leads_back(show: Open, night_shift: Report) -> None:
    page = show(night_shift).page
    page.locator(".scroll").scroll_into_view_if_needed()
    page.mouse.click(*lane(page, 4, 0.5))
    place = page.evaluate("window.location.hash")
    again = show(night_shift, place="#t=2024-01-08T08:26:35.000Z&g=0").page

    assert re.fullmatch(r"#t=2024-01-08T08:2\d:\d\d\.\d{3}Z&g=0", place)
    assert "set back to 44 (-720) by record 179" in again.locator(".said").inner_text()
    assert "08:20:20 to 08:32:50" in again.locator("#view").inner_text()


def test_filters_keep_one_topic_or_member(show: Open, night_shift: Report) -> None:
    page = show(night_shift).page
    heights = []
    for name, value in (("topic", "refunds"), ("topic", ""), ("member", "checkout-3@10.0.0.3"), ("member", "")):
        page.locator(f"#{name}").select_option(value)
        page.wait_for_timeout(50)
        heights.append(page.locator(".tall").evaluate("(each) => each.clientHeight"))

    assert heights == [2 * 22, 8 * 22, 2 * 22, 8 * 22]


def test_the_keyboard_moves_zooms_and_says_what_is_there(show: Open, night_shift: Report) -> None:
    page = show(night_shift).page
    page.locator(".scroll").focus()
    for key in ("ArrowUp", "n", "n"):
        page.keyboard.press(key)
    said = page.locator(".said")
    assert re.search(r"◆ .*record \d+, generation or epoch \d+", said.inner_text())
    page.keyboard.press("+")
    _wait_until(page, "document.getElementById('view').textContent !== ''")
    page.keyboard.press("0")
    _wait_until(page, "document.getElementById('view').textContent === ''")
    page.keyboard.press("ArrowUp")
    assert said.inner_text().startswith("orders-2; ")


def test_members_have_lanes_too(show: Open, night_shift: Report) -> None:
    page = show(night_shift).page
    page.get_by_role("button", name="Members").click()
    page.locator(".scroll").scroll_into_view_if_needed()
    page.mouse.move(*lane(page, 0, 0.2))

    assert page.locator("#tip").inner_text().startswith("checkout-1@10.0.0.1\n")
    assert page.locator("#tip").inner_text().endswith("3 partitions")


def test_the_plan_is_downloaded(show: Open, night_shift: Report, tmp_path: Path) -> None:
    page = show(night_shift).page
    with page.expect_download() as download:
        page.locator(".download").first.click()
    download.value.save_as(tmp_path / "plan.csv")

    assert download.value.suggested_filename == "checkout-before-rewind.csv"
    assert (tmp_path / "plan.csv").read_text() == night_shift.tables.groups[0].plans["before_rewind"].text


def test_the_theme_can_be_chosen(show: Open, night_shift: Report) -> None:
    page = show(night_shift).page
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Dark colours").click()

    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    assert page.get_by_role("button", name="Light colours").count() == 1


def test_hostile_names_are_text(show: Open, hostile: Report) -> None:
    shown = show(hostile)
    page = shown.page
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    for scroll in page.locator(".scroll").all()[:4]:
        scroll.scroll_into_view_if_needed()
        scroll.hover()
        scroll.click()
    headings = page.locator("section.group h2 .name").all_inner_texts()

    assert page.evaluate("window.owned") is None
    assert shown.problems == []
    assert shown.requests == [hostile.url]
    assert sorted(headings) == sorted(printable(name) for name in MARKUP)
    assert {printable(name) for name in (*MARKUP, *NAMES)} <= set(hostile.data["strings"])
    assert page.locator("section img, section svg, section script, section style, section meta").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    assert [each["id"] for each in Axe().run(page).response["violations"]] == []


@pytest.mark.parametrize("code", ["IC-11", "IC-30", "IC-08", "IC-16", "IC-20a", "IC-36", "IC-26", "IC-31"])
def test_the_report_of_an_incident_opens(show: Open, tmp_path: Path, code: str) -> None:
    incidents.write(code, tmp_path / "log")
    report = made(tmp_path / "log", tmp_path / "report.html")
    shown = show(report)

    assert shown.page.locator("section.group").count() == len(report.tables.groups) > 0
    assert shown.page.locator(".code", has_text=code).count() > 0
    assert shown.problems == []
    assert shown.requests == [report.url]


def test_days_with_many_rebalances_stay_usable(show: Open, tmp_path: Path) -> None:
    report = written(large_tables(rebalances=10_000, partitions=1_000), tmp_path, tmp_path / "report.html")
    assert report.path.stat().st_size <= 10_000_000
    group = report.data["groups"][0]
    assert (len(group["marks"]), len(group["lanes"])) == (10_000, 1_000)
    counts = group["bars"][8]
    assert sum(counts) == group["intervals"] > 100_000 > len(counts)
    shown = show(report)
    page = shown.page
    page.get_by_role("button", name="Zoom in").click()
    page.locator(".scroll").scroll_into_view_if_needed()
    page.mouse.move(*lane(page, 1, 0.5))
    page.locator("#tip").wait_for(state="visible")

    assert shown.problems == []
    assert page.locator(".tall").evaluate("(each) => each.clientHeight") == 4 * 1_000
