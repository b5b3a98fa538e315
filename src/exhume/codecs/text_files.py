"""Text files besides the evidence: lists of topics, output of Kafka's tools."""

from __future__ import annotations

from pathlib import Path

from exhume.codecs.volumes import reason, remedy
from exhume.errors import RequestError


def read_text(path: Path, expected: str) -> str:
    """Read the whole file with its line ends unchanged; `expected` names the kind of file.

    Raises:
        RequestError: the file cannot be read, or is not UTF-8 text; names the file.
    """
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise RequestError(f"{path}: cannot be read: {reason(error)}", remedy=remedy(error)) from error
    except UnicodeDecodeError as error:
        raise RequestError(f"{path}, byte {error.start}: not UTF-8 text", remedy=expected) from error
