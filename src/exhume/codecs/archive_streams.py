"""Archives as streams of bytes: recognised, decompressed, and read from front to back only."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from typing import IO, Literal, Protocol, cast

import zstandard

ArchiveKind = Literal["tar", "gzip", "bzip2", "xz", "zstd", "zip"]

#: The errors that decompression raises for damaged, cut, encrypted or unsupported data.
DAMAGE = (EOFError, OSError, zlib.error, lzma.LZMAError, zstandard.ZstdError, zipfile.BadZipFile, NotImplementedError, RuntimeError)

CHUNK_BYTES = 64 * 1024
_TAR_BLOCK_BYTES = 512
#: The headers of one tar member: long names and extended attributes count in kilobytes.
_MAX_HEADER_BYTES = 4 * 1024 * 1024
_MAGICS: tuple[tuple[int, bytes, ArchiveKind], ...] = (
    (0, b"\x1f\x8b\x08", "gzip"),
    (0, b"BZh", "bzip2"),
    (0, b"\xfd7zXZ\x00", "xz"),
    (0, b"\x28\xb5\x2f\xfd", "zstd"),
    (0, b"PK\x03\x04", "zip"),
    (0, b"PK\x05\x06", "zip"),
    (257, b"ustar", "tar"),
)


class Source(Protocol):
    """Decompressed bytes."""

    def read1(self, size: int, /) -> bytes:
        """Some of the next bytes, at most `size`; none at the end."""
        ...


def archive_kind(stream: IO[bytes]) -> ArchiveKind | None:
    """Return the archive or compression format of this file, None for anything else. Leave the stream at its start."""
    prefix = stream.read(_TAR_BLOCK_BYTES)
    stream.seek(0)
    return next((kind for start, magic, kind in _MAGICS if prefix[start : start + len(magic)] == magic), None)


def decompressed(stream: IO[bytes], kind: ArchiveKind) -> Source:
    """The bytes of this file, unpacked as `kind` says."""
    match kind:
        case "gzip":
            return gzip.GzipFile(fileobj=stream)
        case "bzip2":
            return bz2.BZ2File(stream)
        case "xz":
            return lzma.LZMAFile(stream)
        case "zstd":
            return cast("Source", zstandard.ZstdDecompressor().stream_reader(stream, read_across_frames=True))
        case "tar" | "zip":
            return cast("Source", stream)


class ForwardStream(io.BufferedIOBase):
    """The stream that `tarfile` reads: forward only, at most `limit_bytes`, and in steps so small that a forged header cannot fill the
    memory.

    Damage ends the stream as its end does; `damage` describes it. Only a forged header raises an error, `tarfile.ReadError`.
    """

    def __init__(self, source: Source, limit_bytes: int) -> None:
        self.damage: str | None = None
        self.is_beyond_limit = False
        self._source = source
        self._limit_bytes = limit_bytes
        self._pending = b""
        self._position = 0
        self._header_allowance: int | None = _MAX_HEADER_BYTES
        self._last_header = b""

    @property
    def stopped_at_end_mark(self) -> bool:
        """True when the last header read was the block of zeros that ends a tar."""
        return self._last_header == bytes(_TAR_BLOCK_BYTES)

    @property
    def stopped_at_end(self) -> bool:
        """True when no byte was left for the last header."""
        return not self._last_header

    def read_header(self, archive: tarfile.TarFile) -> tarfile.TarInfo | None:
        """The next member of this archive, which reads from this stream; None at its end, or if `tarfile` takes damage for the end."""
        self._header_allowance = _MAX_HEADER_BYTES
        try:
            return archive.next()
        finally:
            self._header_allowance = None

    def read(self, size: int | None = -1, /) -> bytes:
        wanted = _MAX_HEADER_BYTES if size is None or size < 0 else size
        if self._header_allowance is None:
            return self._take(wanted)
        self._header_allowance -= wanted
        if self._header_allowance < 0:
            raise tarfile.ReadError(f"a header of more than {_MAX_HEADER_BYTES} bytes")
        self._last_header = self._take(wanted)
        return self._last_header

    def tell(self) -> int:
        return self._position

    def seek(self, position: int, whence: int = io.SEEK_SET, /) -> int:
        if whence != io.SEEK_SET or position < self._position:
            raise tarfile.ReadError("a member that begins before the end of the one before it")
        while self._position < position and self._take(min(CHUNK_BYTES, position - self._position)):
            pass
        return self._position

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def _take(self, size: int) -> bytes:
        """The next bytes, fewer than `size` only if the stream ends."""
        chunks = []
        while size > 0 and (self._pending or self._fill()):
            chunk, self._pending = self._pending[:size], self._pending[size:]
            chunks.append(chunk)
            size -= len(chunk)
            self._position += len(chunk)
        return b"".join(chunks)

    def _fill(self) -> bool:
        if self.damage is not None or self.is_beyond_limit:
            return False
        if self._position >= self._limit_bytes:
            self.is_beyond_limit = True
            return False
        try:
            self._pending = self._source.read1(CHUNK_BYTES)
        except DAMAGE as error:
            self.damage = str(error) or type(error).__name__
        return bool(self._pending)
