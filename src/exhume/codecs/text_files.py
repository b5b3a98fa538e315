"""Text files that are given beside the evidence: lists of topics, answers of Kafka's tools."""

from __future__ import annotations

from pathlib import Path

from exhume.codecs.volumes import reason, remedy
from exhume.errors import RequestError


def read_text(path: Path, expected: str) -> str:
    """All of it, line ends as they are; `expected` tells what kind of file is wanted.

    Raises:
        RequestError: the file cannot be read, or is no UTF-8 text; names the file.
    """
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise RequestError(f"{path}: cannot be read: {reason(error)}", remedy=remedy(error)) from error
    except UnicodeDecodeError as error:
        raise RequestError(f"{path}, byte {error.start}: no UTF-8 text", remedy=expected) from error
