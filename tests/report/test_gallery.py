"""The pictures of docs/gallery: screenshots of reports about logs that come with exhume. EXHUME_GALLERY=docs/gallery writes them."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser

from exhume.cli.demo import DEMO_LOG
from exhume.fixtures import incidents
from tests.report.conftest import Report, made

pytestmark = pytest.mark.browser


@dataclass(frozen=True)
class Shot:
    """A screenshot: of an incident, of the demo log, or else of the night shift, at a place of the page."""

    log: str | None
    width: int
    height: int
    scheme: Literal["light", "dark"] = "light"
    place: str = ""
    scroll_to: str | None = None


SHOTS = {
    "night-shift": Shot(None, 1200, 960),
    "storm-dark": Shot(None, 1200, 700, "dark", "#t=2024-01-08T08:26:35.000Z&g=0"),
    "restore": Shot(None, 1000, 620, scroll_to="#g0 .plan"),
    "phone": Shot(None, 390, 760, scroll_to="#g0"),
    "two-owners": Shot("IC-11", 1200, 640, scroll_to="#g0"),
    "stuck-dark": Shot("demo", 1200, 900, "dark"),
    "skipped-records": Shot("IC-16", 1200, 640, scroll_to="#g0"),
}


@pytest.mark.parametrize("name", SHOTS)
def test_gallery(browser: Browser, night_shift: Report, tmp_path: Path, name: str) -> None:
    shot, report = SHOTS[name], night_shift
    if shot.log == "demo":
        report = made(DEMO_LOG, tmp_path / "report.html", groups=("fraud-scoring",))
    elif shot.log is not None:
        incidents.write(shot.log, tmp_path / "log")
        report = made(tmp_path / "log", tmp_path / "report.html")
    page = browser.new_page(viewport={"width": shot.width, "height": shot.height}, color_scheme=shot.scheme, reduced_motion="reduce")
    page.goto(report.url + shot.place)
    if shot.scroll_to is not None:
        page.locator(shot.scroll_to).first.evaluate("(each) => each.scrollIntoView({ block: 'start' })")
    page.wait_for_timeout(200)
    target = Path(os.environ.get("EXHUME_GALLERY", tmp_path)) / f"{name}.png"
    page.screenshot(path=target)
    page.close()

    header = target.read_bytes()[:24]
    assert struct.unpack(">II", header[16:]) == (shot.width, shot.height)
    assert 10_000 < target.stat().st_size < 300_000


def test_the_gallery_in_the_docs_is_whole_and_small() -> None:
    pictures = [*(Path(__file__).resolve().parents[2] / "docs" / "gallery").glob("*.png")]

    assert {path.stem for path in pictures} == set(SHOTS)
    assert sum(path.stat().st_size for path in pictures) < 2_000_000
