"""An S3 server on the loopback: it speaks the protocol, keeps objects in memory, counts what is asked of it, and can break down."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock, Thread
from typing import Any
from wsgiref.types import StartResponse

_RANGE = re.compile(r"bytes=(\d+)-(\d+)")
_DENIED = b"<?xml version='1.0'?><Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
_Application = Callable[[dict[str, Any], StartResponse], Iterable[bytes]]


@dataclass
class Asked:
    """One request: method, path of the object, and the first and last byte asked for where it was for a range."""

    method: str
    path: str
    query: str
    range_bytes: tuple[int, int] | None


@dataclass
class S3Server:
    """A server with one bucket, `evidence`. `asked` has every request since it was cleared."""

    endpoint: str
    asked: list[Asked] = field(default_factory=list)
    #: Answers nothing but 500 to requests for ranges that begin at this byte or behind it.
    broken_from_byte: int | None = None
    #: Makes other bytes of those that a request for a range gets.
    fault: Callable[[Asked, bytes], bytes] | None = None
    #: Answers that whoever asks may not.
    is_closed: bool = False
    _client: Any = None

    @property
    def options(self) -> dict[str, str]:
        """What `filesystem_options` takes to reach it."""
        return {"endpoint_override": self.endpoint, "region": "us-east-1", "access_key": "a", "secret_key": "b"}

    @property
    def query(self) -> str:
        """The same at the end of a URI."""
        return f"?endpoint_override={self.endpoint}&region=us-east-1&access_key=a&secret_key=b"

    def ranges(self, name: str = "") -> list[tuple[int, int]]:
        """The ranges that were asked for of objects whose path ends like this."""
        return [asked.range_bytes for asked in self.asked if asked.range_bytes and asked.path.endswith(name)]

    def put(self, key: str, content: bytes, bucket: str = "evidence") -> None:
        """Make an object."""
        self._client.put_object(Bucket=bucket, Key=key, Body=content)

    def upload(self, directory: Path, prefix: str) -> str:
        """Make an object of every file below this directory; the URI of the prefix."""
        for path in sorted(directory.rglob("*")):
            if path.is_file():
                self.put(f"{prefix}/{path.relative_to(directory)}", path.read_bytes())
        return f"s3://evidence/{prefix}"


class _Counting:
    """Notes each request, then hands it on."""

    def __init__(self, application: _Application) -> None:
        self._application = application
        self._lock = Lock()
        self.server: S3Server | None = None

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        match = _RANGE.fullmatch(environ.get("HTTP_RANGE", ""))
        asked = Asked(
            environ["REQUEST_METHOD"],
            environ["PATH_INFO"],
            environ.get("QUERY_STRING", ""),
            (int(match[1]), int(match[2])) if match else None,
        )
        if self.server is not None:
            with self._lock:
                self.server.asked.append(asked)
            if self.server.is_closed:
                start_response("403 Forbidden", [("Content-Type", "application/xml"), ("Content-Length", str(len(_DENIED)))])
                return [b"" if asked.method == "HEAD" else _DENIED]
            broken_from = self.server.broken_from_byte
            if broken_from is not None and asked.range_bytes is not None and asked.range_bytes[0] >= broken_from:
                start_response("500 Internal Server Error", [("Content-Length", "0")])
                return [b""]
            if self.server.fault is not None and asked.method == "GET" and asked.range_bytes is not None:
                return self._with_fault(asked, environ, start_response, self.server.fault)
        return self._application(environ, start_response)

    def _with_fault(
        self, asked: Asked, environ: dict[str, Any], start_response: StartResponse, fault: Callable[[Asked, bytes], bytes]
    ) -> Iterable[bytes]:
        started: list[Any] = []
        content = b"".join(self._application(environ, lambda *given: started.append(given) or (lambda _: None)))  # type: ignore[func-returns-value]
        content = fault(asked, content)
        status, headers = started[0][:2]
        kept = [(name, value) for name, value in headers if name.lower() != "content-length"]
        start_response(status, [*kept, ("Content-Length", str(len(content)))])
        return [content]


def start() -> tuple[S3Server, Callable[[], None]]:
    """A server on a free port, and what stops it."""
    import boto3
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        def log_request(self, *_: object) -> None:
            pass

    counting = _Counting(DomainDispatcherApplication(create_backend_app))
    http = make_server("127.0.0.1", 0, counting, threaded=True, request_handler=Quiet)
    thread = Thread(target=http.serve_forever, daemon=True)
    thread.start()
    endpoint = f"http://127.0.0.1:{http.port}"
    client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
    client.create_bucket(Bucket="evidence")
    server = S3Server(endpoint, _client=client)
    counting.server = server

    def stop() -> None:
        client.close()
        http.shutdown()
        thread.join()
        http.server_close()

    return server, stop
