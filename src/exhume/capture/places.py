"""Clusters as places: `kafka://host:port,host:port`, with the option `command_config`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote

from exhume.errors import RequestError

_URI = re.compile(r"kafka://(?P<servers>[^/?]*)/?(\?(?P<query>.*))?", re.DOTALL | re.IGNORECASE)
_SERVER = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:\[\]@]+):([0-9]{1,5})")
_DEFAULT_PORT = 9092


class ClusterPlace(NamedTuple):
    """Bootstrap servers, and the file of client properties that the URI names."""

    servers: tuple[str, ...]
    command_config: Path | None


def is_cluster(place: str) -> bool:
    """True if this place is a running cluster."""
    return place.lower().startswith("kafka://")


def parse_cluster(place: str) -> ClusterPlace:
    """Return the servers of a `kafka://` URI.

    Raises:
        RequestError: the URI has another form, or an option that does not exist.
    """
    match = _URI.fullmatch(place)
    form = "Write kafka://host:port, or several servers with commas between them"
    if match is None or not match["servers"]:
        raise RequestError(f"{place!r} names no bootstrap server", remedy=form)
    if "@" in match["servers"]:
        raise RequestError("a kafka:// URI takes no user and password", remedy="Put them into a file for --command-config")
    servers = []
    for server in match["servers"].split(","):
        named = server if _SERVER.fullmatch(server) else f"{server}:{_DEFAULT_PORT}"
        if _SERVER.fullmatch(named) is None:
            raise RequestError(f"{server!r} is not host:port", remedy=form)
        servers.append(named)
    options = dict(parse_qsl(match["query"] or "", keep_blank_values=True))
    config = options.pop("command_config", None)
    if options:
        raise RequestError(f"a kafka:// URI has no option {', '.join(sorted(options))}", remedy="The only option is command_config=FILE")
    return ClusterPlace(tuple(servers), None if config is None else Path(unquote(config)))
