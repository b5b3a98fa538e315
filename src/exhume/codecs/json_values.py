"""Decoded values as JSON, without loss.

Bytes become base64 text. A name that is no valid UTF-8 becomes `{"invalid_utf8": <base64 of its bytes>}`, since JSON text cannot
hold these bytes.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from exhume.codecs.wire import InvalidUtf8


class JsonReady(dict[str, Any]):
    """An object that `json_ready` has made already."""


def json_ready(value: Any) -> Any:
    """Replace all values that JSON cannot represent."""
    if isinstance(value, JsonReady):
        return value
    if isinstance(value, InvalidUtf8):
        return {"invalid_utf8": base64.b64encode(value.raw).decode("ascii")}
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, dict):
        return {str(name): json_ready(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [json_ready(item) for item in value]
    return value


def from_json(text: str) -> Any:
    """Parse the text of `to_json`; bytes stay base64 text."""
    return json.loads(text, object_hook=_with_its_bytes)


def _with_its_bytes(value: dict[str, Any]) -> Any:
    return InvalidUtf8(base64.b64decode(value["invalid_utf8"])) if [*value] == ["invalid_utf8"] else value


def to_json(value: Any) -> str:
    """This decoded value as compact JSON text, fields in their own order."""
    return json.dumps(json_ready(value), ensure_ascii=False, separators=(",", ":"))
