"""Versions of objects in a store: the tag of each, and the check that fetched bytes are those of the tag.

Arrow's client asks for ranges without a condition, and takes the length of an answer for granted. So the tag of an object is read before
and after its ranges, and fetched bytes are compared with a tag that is their MD5.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

import pyarrow as pa

from exhume.codecs.wire import Buffer

_MIB = 1 << 20
#: The sizes of the parts that common clients upload.
_PART_SIZES = tuple(count * _MIB for count in (5, 8, 10, 15, 16, 25, 32, 50, 64, 100, 128, 256, 512))
_DIGEST = re.compile(r"([0-9a-f]{32})(?:-([1-9][0-9]{0,4}))?")


def tag_of(file: pa.NativeFile) -> str | None:
    """Return the ETag of an open object, with its version id if it has one; None if the store gives none.

    Raises:
        OSError, pa.ArrowException: the store refuses.
    """
    try:
        metadata = {name.lower(): value.decode("utf-8", "replace") for name, value in (file.metadata() or {}).items()}
    except NotImplementedError:
        return None
    tags = [metadata[name] for name in ("etag", "versionid", "generation") if metadata.get(name)]
    return " ".join(tag.removeprefix("W/").strip('"') for tag in tags) or None


def is_content_of(tag: str | None, content: Buffer) -> bool | None:
    """Return True if this tag is the digest of these bytes; False if it has the form of a digest and is not theirs; else None.

    Stores give the MD5 of an object that was uploaded at once, or that of the digests of its parts. Objects with keys of the user
    have tags of the same form that are no digests. None for parts of an unknown size.
    """
    match = _DIGEST.fullmatch((tag or "").partition(" ")[0])
    if match is None:
        return None
    digest, parts = match.groups()
    if parts is None:
        return _md5(content).hexdigest() == digest
    sizes = _part_sizes(len(content), int(parts))
    return True if any(_digest_of_parts(content, size_bytes) == digest for size_bytes in sizes) else None


def _part_sizes(size_bytes: int, parts: int) -> Iterator[int]:
    even = -(-size_bytes // parts // _MIB) * _MIB
    return (size for size in sorted({*_PART_SIZES, even}) if size and -(-size_bytes // size) == parts)


def _digest_of_parts(content: Buffer, part_bytes: int) -> str:
    view = memoryview(content)
    return _md5(b"".join(_md5(view[start : start + part_bytes]).digest() for start in range(0, len(view), part_bytes))).hexdigest()


def _md5(content: Buffer) -> hashlib._Hash:
    return hashlib.md5(content, usedforsecurity=False)
