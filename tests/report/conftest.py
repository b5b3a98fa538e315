"""The reports that the tests of this room read: made once, from scenarios and from a log with hostile names."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import exhume
from exhume.fixtures import scenarios
from exhume.report import ReportRequest, gather, page
from exhume.report.gather import ReportTables


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
