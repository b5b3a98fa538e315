"""Archives and segments of a web server, read in ranges, and what the server refuses."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

import exhume
from exhume.cli.demo import DEMO_LOG
from exhume.codecs import remote_volume, web_files

SEGMENT = DEMO_LOG / "__consumer_offsets-0" / "00000000000000000000.log"


@dataclass
class WebServer:
    """Files by their paths, and the ranges that were asked for."""

    files: dict[str, bytes] = field(default_factory=dict)
    has_ranges: bool = True
    status: int = 200
    tags: list[str] = field(default_factory=lambda: ["one"])
    port: int = 0
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    logins: set[str | None] = field(default_factory=set)
    redirects: dict[str, str] = field(default_factory=dict)

    def uri(self, path: str, login: str = "") -> str:
        return f"http://{login}127.0.0.1:{self.port}{path}"


def _handler(server: WebServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_HEAD(self) -> None:
            self._answer(with_content=False)

        def do_GET(self) -> None:
            self._answer(with_content=True)

        def _answer(self, *, with_content: bool) -> None:
            wanted = self.headers["Range"]
            server.asked.append((self.path, wanted))
            server.logins.add(self.headers["Authorization"])
            if self.path in server.redirects:
                self.send_response(302)
                self.send_header("Location", server.redirects[self.path])
                self.end_headers()
                return
            content = server.files.get(self.path)
            if content is None or server.status != 200:
                self.send_error(404 if content is None else server.status)
                return
            if wanted and server.has_ranges:
                first, last = wanted.removeprefix("bytes=").split("-")
                content = content[int(first) : int(last) + 1]
            self.send_response(206 if wanted and server.has_ranges else 200)
            self.send_header("ETag", f'"{server.tags.pop(0) if len(server.tags) > 1 else server.tags[0]}"')
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if with_content:
                self.wfile.write(content)

    return Handler


@pytest.fixture
def web(tmp_path: Path) -> Iterator[WebServer]:
    server = WebServer()
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(server)) as http:
        server.port = http.server_address[1]
        thread = Thread(target=http.serve_forever, args=(0.01,))
        thread.start()
        yield server
        http.shutdown()
        thread.join()


@pytest.fixture
def archive(tmp_path: Path) -> bytes:
    log = shutil.copytree(DEMO_LOG, tmp_path / "demo_log")
    with tarfile.open(tmp_path / "log.tar.gz", "w:gz") as tar:
        tar.add(log, "demo_log")
    return (tmp_path / "log.tar.gz").read_bytes()


def offsets(place: str | Path) -> list[tuple[object, ...]]:
    with exhume.open(place) as topic:
        table = topic.state().offsets.select(["group", "topic", "partition", "committed_offset"])
    return sorted(tuple(row.values()) for row in table.to_pylist())


@pytest.mark.parametrize("has_ranges", [True, False])
def test_an_archive_of_a_web_server_is_read_as_a_file_is(
    web: WebServer, archive: bytes, has_ranges: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_volume, "_RANGE_BYTES", 4096)
    web.files["/copies/log.tar.gz?token=a%2Fb"], web.has_ranges = archive, has_ranges

    assert offsets(web.uri("/copies/log.tar.gz?token=a%2Fb", "reader:secret@")) == offsets(DEMO_LOG)
    assert len({wanted for _, wanted in web.asked if wanted}) > 2
    assert web.logins == {"Basic cmVhZGVyOnNlY3JldA=="}


def test_a_server_that_a_redirect_names_gets_no_password(web: WebServer, archive: bytes) -> None:
    web.files["/log.tar.gz"] = archive
    web.redirects["/old.tar.gz"] = f"http://localhost:{web.port}/log.tar.gz"

    assert offsets(web.uri("/old.tar.gz", "reader:secret@")) == offsets(DEMO_LOG)
    assert web.logins == {"Basic cmVhZGVyOnNlY3JldA==", None}


def test_a_segment_of_a_web_server_is_a_partition(web: WebServer) -> None:
    path = f"/{SEGMENT.parent.name}/{SEGMENT.name}"
    web.files[path] = SEGMENT.read_bytes()

    with exhume.open(web.uri(path)) as topic, exhume.open(SEGMENT) as local:
        assert topic.records().read_all().drop_columns(["replica", "path"]) == local.records().read_all().drop_columns(["replica", "path"])


@pytest.mark.parametrize(("status", "said"), [(403, "permission denied"), (404, "nothing exists at this path"), (500, "HTTP 500")])
def test_a_refusal_names_the_place_and_no_secret(web: WebServer, status: int, said: str) -> None:
    web.files = {} if status == 404 else {"/log.tar?token=hidden": b"x"}
    web.status = status

    with pytest.raises(exhume.EvidenceError, match=said) as raised:
        offsets(web.uri("/log.tar?token=hidden"))
    assert "/log.tar" in str(raised.value)
    assert "hidden" not in str(raised.value)


def test_a_file_that_changes_meanwhile_is_refused(web: WebServer, archive: bytes) -> None:
    web.files["/log.tar.gz"], web.tags = archive, ["one", "one", "one", "two"]

    with pytest.raises(exhume.EvidenceError, match="changed meanwhile"):
        offsets(web.uri("/log.tar.gz"))


def test_a_large_file_needs_a_server_with_ranges(web: WebServer, archive: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_files, "_MOST_WITHOUT_RANGES_BYTES", 100)
    web.files["/log.tar.gz"], web.has_ranges = archive, False

    with pytest.raises(exhume.EvidenceError, match="no ranges of bytes"):
        offsets(web.uri("/log.tar.gz"))


def test_a_server_that_is_not_there_is_an_error_of_the_network() -> None:
    with pytest.raises(exhume.EvidenceError, match="the connection failed"):
        exhume.open("http://127.0.0.1:9/log.tar")
