"""Files of a web server (`https://`, `http://`) as a file system of Arrow: read in ranges, never listed.

All ranges of a file are of one version of it, if the server gives ETags: that of its first read.
"""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Mapping
from errno import ENOENT
from http.client import HTTPException, HTTPResponse
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

import pyarrow as pa
from pyarrow import fs

from exhume.codecs.uris import Uri

#: The largest file of a server without ranges: each range is then the whole file up to its end.
_MOST_WITHOUT_RANGES_BYTES = 64 * 1024 * 1024
_TIMEOUT_S = 60.0
_SKIPPED_BYTES = 1024 * 1024
_PARTIAL = 206
_HEADERS = {"Accept-Encoding": "identity", "User-Agent": "exhume"}


def web_file_system(root: Uri) -> fs.FileSystem:
    """Return the files of this server. The options of the URI are the query of each request."""
    login = None
    if root.user is not None:
        name_and_password = f"{root.user}:{root.password or ''}"
        login = f"Basic {b64encode(name_and_password.encode()).decode()}"
    return fs.PyFileSystem(_WebFiles(root.scheme, urlencode(root.options), login))


class _WebFiles(fs.FileSystemHandler):  # type: ignore[misc]
    def __init__(self, scheme: str, query: str, login: str | None) -> None:
        self._scheme, self._query, self._login = scheme, query, login
        self._tags: dict[str, str | None] = {}
        self._sizes: dict[str, int] = {}

    def get_type_name(self) -> str:
        return self._scheme

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> list[fs.FileInfo]:
        return [self._info(path) for path in paths]

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        """Return the files that were asked for: a web server lists no directory."""
        found = [path for path in self._sizes if path.rpartition("/")[0] == selector.base_dir]
        return [fs.FileInfo(path, fs.FileType.File, size=self._sizes[path]) for path in found]

    def open_input_file(self, path: str) -> Any:
        return pa.PythonFile(_WebFile(self, path, self.size_bytes(path)), mode="r")

    def open_input_stream(self, path: str) -> Any:
        return self.open_input_file(path)

    def _info(self, path: str) -> fs.FileInfo:
        try:
            return fs.FileInfo(path, fs.FileType.File, size=self.size_bytes(path))
        except FileNotFoundError:
            return fs.FileInfo(path, fs.FileType.NotFound)

    def size_bytes(self, path: str) -> int:
        with self._answer(path, "HEAD") as answer:
            length = answer.headers.get("Content-Length", "")
        if not length.isdigit():
            raise OSError("the server does not say how long the file is: download it, and give the copy")
        self._sizes[path] = int(length)
        return int(length)

    def read(self, path: str, start: int, size_bytes: int) -> bytes:
        """Return these bytes of a file."""
        with self._answer(path, "GET", {"Range": f"bytes={start}-{start + size_bytes - 1}"}) as answer:
            try:
                if answer.status == _PARTIAL:
                    return answer.read(size_bytes)
                if start + size_bytes > _MOST_WITHOUT_RANGES_BYTES:
                    raise OSError("the server gives no ranges of bytes: download the file, and give the copy")
                while start > 0 and (skipped := answer.read(min(start, _SKIPPED_BYTES))):
                    start -= len(skipped)
                return answer.read(size_bytes)
            except HTTPException as error:
                raise ConnectionError(f"the answer ended early: {error!r}") from error

    def _answer(self, path: str, method: str, headers: Mapping[str, str] | None = None) -> HTTPResponse:
        host, _, inside = path.partition("/")
        query = f"?{self._query}" if self._query else ""
        url = f"{self._scheme}://{host}/{quote(inside, errors='surrogateescape')}{query}"
        request = Request(url, headers={**_HEADERS, **(headers or {})}, method=method)  # noqa: S310 - http or https
        if self._login is not None:
            # The server that a redirect names does not get it.
            request.add_unredirected_header("Authorization", self._login)
        try:
            answer: HTTPResponse = urlopen(request, timeout=_TIMEOUT_S)  # noqa: S310
        except HTTPError as error:
            error.close()
            raise _refusal(error) from error
        except (URLError, HTTPException, ValueError) as error:
            raise ConnectionError(f"{getattr(error, 'reason', error)}") from error
        tag = answer.headers.get("ETag")
        first = self._tags.setdefault(path, tag)
        if tag != first:
            answer.close()
            raise OSError(f"its ETag is {tag} and was {first} when it was first read: it changed meanwhile")
        return answer

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("exhume writes nothing to a web server")

    create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = delete_file = _refuse
    move = copy_file = open_output_stream = open_append_stream = _refuse


class _WebFile(io.RawIOBase):
    def __init__(self, files: _WebFiles, path: str, size_bytes: int) -> None:
        self._files, self._path, self._size_bytes, self._at = files, path, size_bytes, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size_bytes}[whence]
        return self._at

    def readinto(self, buffer: Any) -> int:
        wanted = min(len(buffer), self._size_bytes - self._at)
        if wanted <= 0:
            return 0
        content = self._files.read(self._path, self._at, wanted)
        buffer[: len(content)] = content
        self._at += len(content)
        return len(content)


def _refusal(error: HTTPError) -> OSError:
    if error.code in (401, 403):
        return PermissionError(f"HTTP {error.code} {error.reason}")
    if error.code in (404, 410):
        return FileNotFoundError(ENOENT, f"HTTP {error.code} {error.reason}")
    return OSError(f"HTTP {error.code} {error.reason}")
