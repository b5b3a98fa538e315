"""Arrays of text as the bytes of a file."""

from __future__ import annotations

import sys

import pyarrow as pa


def bytes_of(texts: pa.StringArray) -> bytes:
    """Return these texts, one after the other. The array must be a new one, and no slice of another."""
    _, offsets, content = texts.buffers()
    size = int.from_bytes(offsets.slice(4 * len(texts), 4).to_pybytes(), sys.byteorder)
    found = b"" if content is None else content.slice(0, size).to_pybytes()
    assert isinstance(found, bytes)
    return found
