"""The reports that the tests of this room read, and the browser that opens them."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

import exhume
from exhume.fixtures import scenarios
from exhume.fixtures.log_writer import PartitionWriter, group_metadata, offset_commit
from exhume.report import ReportRequest, gather, page
from exhume.report.gather import ReportTables
from tests.cli.hostile_names import NAMES

#: Names that a browser must not run, load or lay out.
MARKUP = [
    "<script>window.owned = 1</script>",
    "</script><script>window.owned = 2</script>",
    '"><img src=x onerror="window.owned = 3">',
    "' onmouseover='window.owned = 4",
    "javascript:window.owned=5",
    "{{ 7 * 7 }}{% raw %}",
    "<!--<script>",
    "]]><svg onload=window.owned=6>",
    "\u2028window.owned = 7\u2029",
    "<style>* { display: none }</style>",
    "<meta http-equiv=refresh content='0;url=http://192.0.2.1/'>",
    "x" * 600,
]
_CHROMIUMS = ("chromium", "chromium-browser", "google-chrome")


@dataclass(frozen=True)
class Report:
    """A report, its tables and its data block."""

    path: Path
    log: Path
    tables: ReportTables
    html: str
    data: dict[str, Any]

    @property
    def url(self) -> str:
        return self.path.as_uri()


def made(log: Path, path: Path, **request: Any) -> Report:
    """Write the report about this log."""
    with exhume.open(log) as topic:
        tables = gather(topic, ReportRequest(**request))
    return written(tables, log, path)


def written(tables: ReportTables, log: Path, path: Path) -> Report:
    """Write the report about these tables."""
    html = page(tables, ["report", str(log)])
    path.write_text(html, encoding="utf-8")
    return Report(path, log, tables, html, data_of(html))


def data_of(html: str) -> dict[str, Any]:
    """The data block of a report."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


@pytest.fixture(scope="session")
def night_shift(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """The report about a failover, a storm, and offsets that go back and are removed."""
    directory = tmp_path_factory.mktemp("night-shift")
    scenarios.write("night-shift", directory / "log")
    return made(directory / "log" / "broker-2", directory / "report.html", groups=("checkout",))


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """The report about groups, topics, members and clients with hostile names."""
    directory = tmp_path_factory.mktemp("hostile")
    with PartitionWriter(directory / "log", 0) as partition:
        for number, group in enumerate(MARKUP):
            names = [group, *NAMES[2 * number : 2 * number + 2]]
            partition.append(_records(group, names), timestamp_ms=1_700_000_000_000 + number * 60_000)
    return made(directory / "log", directory / "report.html", groups=tuple(MARKUP))


def _records(group: str, names: Sequence[str]) -> list[tuple[bytes | None, bytes | None]]:
    """A group with members and topics of these names; an offset of each topic goes back."""
    members = [
        {"member_id": name, "client_id": name, "client_host": name, "subscription": _subscription(name), "assignment": _assignment(name)}
        for name in names
    ]
    value = {"protocol_type": "consumer", "protocol": "range", "leader": names[0], "generation": 1, "members": members}
    commits = [
        offset_commit(group, name, 0, offset, commit_timestamp_ms=1_700_000_000_000, metadata=name) for name in names for offset in (900, 7)
    ]
    return [group_metadata(group, value), *commits]


def _subscription(topic: str) -> bytes:
    return b"\x00\x01" + _array([_text(topic)]) + b"\xff\xff\xff\xff" + _array([])


def _assignment(topic: str) -> bytes:
    return b"\x00\x01" + _array([_text(topic) + _array([b"\x00\x00\x00\x00"])]) + b"\xff\xff\xff\xff"


def _text(text: str) -> bytes:
    encoded = text.encode()
    return len(encoded).to_bytes(2, "big") + encoded


def _array(items: list[bytes]) -> bytes:
    return len(items).to_bytes(4, "big") + b"".join(items)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """An installed Chromium without a window."""
    path = os.environ.get("EXHUME_CHROMIUM") or next(filter(None, map(shutil.which, _CHROMIUMS)), None)
    if path is None:
        pytest.skip("Chromium is not installed (Debian: apt-get install chromium), and EXHUME_CHROMIUM does not name it")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield opened
        opened.close()
