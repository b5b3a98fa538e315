"""Places by URI: `s3://bucket/prefix`, `gs://…`, `abfss://container@account…/prefix`, `hdfs://host:port/path`, `https://…`, `file:///path`.

    scheme://[user[:password]@]host[:port]/path[?option=value&…]

The path is percent-decoded, so that `%3F` stands for a question mark and `%25` for a percent sign; the options are those of the file
system (`codecs.file_systems`). The shown form of a URI has no user, password or options, and opens again with them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Self
from urllib.parse import parse_qsl, unquote

from exhume.errors import RequestError

#: The place of a log: a path of this machine, or a URI as text.
PathOrUri = str | PathLike[str]

#: Schemes as they are written, and the file system that each stands for.
SCHEMES = {
    "s3": "s3",
    "s3a": "s3",
    "s3n": "s3",
    "gs": "gs",
    "gcs": "gs",
    "az": "az",
    "abfs": "az",
    "abfss": "az",
    "hdfs": "hdfs",
    "viewfs": "viewfs",
    "https": "https",
    "http": "http",
    "file": "file",
}
#: Schemes whose host is a bucket.
_BUCKETS = ("s3", "gs", "az")

_URI = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?]*)(?P<path>[^?]*)(\?(?P<query>.*))?", re.DOTALL)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_LOST_SLASH = re.compile(rf"({'|'.join(SCHEMES)}):/(?!/)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Uri:
    """A place that is no path of this machine. `path` has no slash at its ends; it is empty for a whole bucket."""

    scheme: str
    host: str
    path: str
    user: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        written = self.path.replace("%", "%25").replace("?", "%3F")
        return f"{self.scheme}://{self.host}/{written}" if written else f"{self.scheme}://{self.host}"

    @property
    def name(self) -> str:
        """The last part of the path, or the host where there is no path."""
        return self.path.rpartition("/")[2] or self.host

    @property
    def parent(self) -> Self:
        """The directory that contains this place; a URI without a path is its own parent."""
        return replace(self, path=self.path.rpartition("/")[0])

    def at(self, path: str) -> Self:
        """Return the URI of this path below."""
        return replace(self, path=f"{self.path}/{path}".strip("/"))


def has_lost_a_slash(path: Path) -> bool:
    """Return True for a URI that was converted to a path, which removes one slash."""
    return _LOST_SLASH.match(str(path)) is not None


def parse_place(text: str, options: Mapping[str, str] | None = None) -> Path | Uri:
    """Return a path, or a URI; `file://` URIs become paths. `options` go before those in the URI.

    Raises:
        RequestError: an unknown scheme, or a URI without a bucket or host.
    """
    match = _URI.fullmatch(text)
    if match is None:
        return Path(text)
    scheme = SCHEMES.get(match["scheme"].lower())
    if scheme is None:
        raise RequestError(
            f"exhume cannot read from {match['scheme']}://", remedy=f"Known are {', '.join(f'{name}://' for name in SCHEMES)}"
        )
    path = unquote(match["path"], errors="surrogateescape")
    login, _, host = match["authority"].rpartition("@")
    if scheme == "file":
        if host not in ("", "localhost"):
            raise RequestError(f"file:// names files of this machine, not of {host}", remedy="Write file:///path")
        return Path(path)
    if not host and scheme not in ("hdfs", "viewfs"):
        needed = "bucket" if scheme in _BUCKETS else "host"
        raise RequestError(f"{scheme}:// needs a {needed}", remedy=f"Write {scheme}://{needed}/prefix")
    chosen = dict(parse_qsl(match["query"] or "", keep_blank_values=True)) | dict(options or {})
    if scheme == "az" and login:
        # Hadoop writes container@account.dfs.core.windows.net.
        chosen.setdefault("account_name", host.partition(".")[0])
        login, host = "", login
    user, _, password = login.partition(":")
    return Uri(
        scheme=scheme,
        host=host,
        path=path.strip("/"),
        user=unquote(user) or None,
        password=unquote(password) or None,
        options=tuple(sorted(chosen.items())),
    )
