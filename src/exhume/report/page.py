"""The report as one HTML file.

The file makes no request: its policy allows its own script and style by their digests, and nothing else. All texts of the evidence pass
through `printable` and the escapes of the template engine, or are JSON in a block that no browser runs.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from exhume._version import __version__
from exhume.escape import printable
from exhume.moments import show_time
from exhume.report.facts import facts
from exhume.report.gather import ReportTables
from exhume.report.picture_data import pictures

#: The files beside this module that a page is made of.
_SOURCES = ("report.html", "picture.html", "report.css", "report.js")


def page(tables: ReportTables, command: Sequence[str]) -> str:
    """The report about these tables as HTML. `command` are the arguments that made it."""
    return _rendered("report.html", {"data": pictures(tables), "command": command, **facts(tables)})


def picture_page(title: str, svg: str) -> str:
    """A page with one picture of `pictures`."""
    return _rendered("picture.html", {"title": title, "picture": Markup(svg), "data": None})  # noqa: S704


def _rendered(name: str, context: Mapping[str, Any]) -> str:
    style, script = _source("report.css"), _source("report.js")
    policy = "; ".join(
        [
            "default-src 'none'",
            f"script-src '{_digest(script)}'",
            f"style-src '{_digest(style)}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    return (
        _environment()
        .get_template(name)
        .render(
            context,
            policy=policy,
            style=Markup(style),  # noqa: S704
            script=Markup(script),  # noqa: S704
            data=_json_block(context["data"]),
            version=__version__,
        )
    )


@cache
def _source(name: str) -> str:
    return (files("exhume.report") / "templates" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _json_block(data: object) -> Markup:
    """This data as JSON that ends no block and opens no tag or comment."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return Markup(re.sub(r"[<>&]", lambda found: f"\\u{ord(found[0]):04x}", text))  # noqa: S704


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=DictLoader({name: _source(name) for name in _SOURCES if name.endswith(".html")}),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_harmless,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"time": _time, "anchor": _anchor, "lines": _lines, "number": _number, "size": _size}
    return environment


def _harmless(value: Any) -> Any:
    """Make the text of an expression visible; text that is HTML already stays."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return printable(value)
    return value


def _time(timestamp_ms: int | None) -> str:
    return "–" if timestamp_ms is None else show_time(timestamp_ms)


def _anchor(timestamp_ms: int) -> str:
    """A time as the link to it has it."""
    return show_time(timestamp_ms).replace(" ", "T")


def _lines(text: str) -> Iterator[str]:
    return iter(text.split("\n"))


def _number(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _size(size_bytes: int) -> str:
    """A size in the unit of its order, with the exact bytes left to the caller."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size_bytes >= size:
            return f"{size_bytes / size:.1f} {unit}"
    return f"{size_bytes} bytes"
