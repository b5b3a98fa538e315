"""Compressed streams, codec by codec: unfold the streams that Kafka's readers accept, and make those that Kafka's writers make.

    1 gzip     RFC 1952, concatenated members
    2 snappy   xerial frame: 82 53 4e 41 50 50 59 00, two version words, then `int32 size + raw snappy` per block of 32 KiB;
               or one raw snappy block
    3 lz4      frame: 04 22 4d 18 | FLG | BD | [content size int64] | HC | blocks: uint32 LE size (bit 31: stored), data, [xxh32] | 0
    4 zstd     frames without content size, format 2 only

HC is the second byte of xxh32 over FLG..content size. Clients of format 0 hashed the frame's magic too (KAFKA-3160), so format 0 is
read without this check.

Nothing unfolds beyond a cap, and the work is linear in the bytes read and written.

Source: Lz4BlockInputStream of Kafka 3.8, SnappyInputStream of snappy-java, GZIPInputStream of the JDK, ZstdInputStream of zstd-jni.
"""

from __future__ import annotations

import itertools
import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from functools import lru_cache

import lz4.block
import lz4.frame
import pyarrow as pa
import xxhash
import zstandard

from exhume.codecs.wire import Buffer
from exhume.errors import DecompressionError

_GZIP_HEADER = bytes.fromhex("1f8b08000000000000ff")
_SMALLEST_GZIP_MEMBER = 18
_XERIAL_MAGIC = bytes.fromhex("82534e4150505900")
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES = 32 * 1024
# A snappy copy of 3 bytes yields at most 64: a stream that promises more is damaged, and gets no memory.
_SNAPPY_MOST_PER_BYTE = 22
_LZ4_MAGIC = bytes.fromhex("04224d18")
_LZ4_HEADER = _LZ4_MAGIC + b"\x60\x40"
#: Blocks of 64 KiB that are not linked, no checksums, no size; the header checksum of these.
_LZ4_PLAIN = _LZ4_HEADER + b"\x82"
_LZ4_BLOCK_BYTES = 64 * 1024
_LZ4_STORED = 0x80000000
_LZ4_MOST_PER_BYTE = 255
_ZSTD_STEP_BYTES = 256
# Four bytes are a block that repeats one byte 128 KiB times.
_ZSTD_MOST_PER_BYTE = 32 * 1024
_SNAPPY = pa.Codec("snappy")


_OF_THREAD = threading.local()

#: Unfolds a stream in one call; None if a broker would not write it so, or if it may unfold beyond the cap.
AtOnce = Callable[[Buffer], bytes | None]


class DamagedStream(DecompressionError):
    """The stream cannot be unfolded to its end.

    `partial` is the output before the damage. `later` is the output after it, one piece per unbroken run of blocks: only snappy and lz4
    have blocks that stand alone, and only a lenient reading continues after damage.
    """

    def __init__(self, message: str, *, partial: Buffer = b"", later: tuple[bytes, ...] = ()) -> None:
        super().__init__(message)
        self.partial = bytes(partial)
        self.later = later


class BeyondCap(DecompressionError):
    """The stream unfolds to more than `cap_bytes`."""

    def __init__(self, cap_bytes: int) -> None:
        super().__init__(
            f"the stream unfolds to more than the cap of {cap_bytes} bytes", remedy="Raise the cap if this data can be trusted"
        )
        self.cap_bytes = cap_bytes


class _BadBlock(Exception):
    """One block cannot be unfolded; the caller decides whether to continue with the next."""


class DecompressedBytes:
    """The output so far; the one place that enforces the cap."""

    def __init__(self, cap_bytes: int) -> None:
        self.data = bytearray()
        self.cap_bytes = cap_bytes
        self.error: str | None = None
        self._breaks: list[int] = []

    @property
    def room(self) -> int:
        return self.cap_bytes - len(self.data)

    def add(self, piece: Buffer) -> None:
        if len(piece) > self.room:
            raise BeyondCap(self.cap_bytes)
        self.data += piece

    def damaged(self, message: str) -> DamagedStream:
        """Return the error for damage after which nothing can be read."""
        if self.error is not None:
            return self._error(self.error)
        return DamagedStream(message, partial=self.data)

    def skip_block(self, bad: _BadBlock) -> None:
        """Note a block that cannot be read, and continue after it."""
        self.error = self.error or str(bad)
        self._breaks.append(len(self.data))

    def _error(self, message: str) -> DamagedStream:
        edges = [*self._breaks, len(self.data)]
        later = tuple(bytes(self.data[start:stop]) for start, stop in itertools.pairwise(edges) if stop > start)
        return DamagedStream(message, partial=self.data[: edges[0]], later=later)

    def finish(self) -> bytes:
        if self.error is not None:
            raise self._error(self.error)
        return bytes(self.data)


def lz4_at_once(cap_bytes: int) -> AtOnce:
    """Return a function that unfolds a stream as brokers write it in one library call. For this thread only."""
    most_bytes = cap_bytes // _LZ4_MOST_PER_BYTE
    if not hasattr(_OF_THREAD, "lz4"):
        _OF_THREAD.lz4 = lz4.frame.create_decompression_context()
    # A new context with its buffers takes as long as unfolding a short stream.
    context, decompress_chunk = _OF_THREAD.lz4, lz4.frame.decompress_chunk

    def unfold(data: Buffer) -> bytes | None:
        if len(data) > most_bytes or data[: len(_LZ4_PLAIN)] != _LZ4_PLAIN:
            return None
        try:
            unfolded: bytes
            unfolded, _, is_whole = decompress_chunk(context, data)
        except RuntimeError:
            is_whole = False
        if is_whole:
            return unfolded
        lz4.frame.reset_decompression_context(context)
        return None

    return unfold


def zstd_at_once(cap_bytes: int) -> AtOnce:
    """Return a function that unfolds a stream as brokers write it in one library call. For this thread only."""
    most_bytes = cap_bytes // _ZSTD_MOST_PER_BYTE
    decompressor = _zstd_decompressor()

    def unfold(data: Buffer) -> bytes | None:
        if len(data) > most_bytes:
            return None
        frame = decompressor.decompressobj()
        try:
            unfolded: bytes = frame.decompress(data)
        except zstandard.ZstdError:
            return None
        return unfolded if frame.eof and not frame.unused_data else None

    return unfold


def unfold_gzip(data: memoryview, output: DecompressedBytes, *, magic: int, lenient: bool) -> None:  # noqa: ARG001
    """Unfold member after member. Ignore bytes after a member that begin no other member, as Java's reader does."""
    position = 0
    while position == 0 or (len(data) - position >= _SMALLEST_GZIP_MEMBER and data[position : position + 3] == _GZIP_HEADER[:3]):
        member = zlib.decompressobj(wbits=31)
        # Small steps first: the rest of a step after a member is copied, and a stream may consist of tiny members.
        step = 256
        while not member.eof:
            if position >= len(data):
                raise output.damaged("the gzip stream is cut")
            try:
                output.add(member.decompress(data[position : position + step], output.room + 1))
            except zlib.error as error:
                raise output.damaged(f"the gzip stream is damaged: {error}") from error
            position += min(step, len(data) - position) - len(member.unused_data)
            step = min(step * 2, 64 * 1024)


def unfold_snappy(data: memoryview, output: DecompressedBytes, *, magic: int, lenient: bool) -> None:  # noqa: ARG001
    """Unfold block after block of a xerial frame, or one raw block."""
    if len(data) < len(_XERIAL_HEADER) or data[:8] != _XERIAL_MAGIC:
        try:
            _unfold_snappy_block(data, output)
        except _BadBlock as bad:
            raise output.damaged(str(bad)) from bad
        return
    position = len(_XERIAL_HEADER)
    while len(data) - position >= 4:
        size = int.from_bytes(data[position : position + 4], "big", signed=True)
        if data[position : position + 4] == _XERIAL_MAGIC[:4]:
            header = data[position : position + len(_XERIAL_HEADER)]
            if len(header) < len(_XERIAL_HEADER):
                raise output.damaged("a snappy header is cut")
            if header[:8] != _XERIAL_MAGIC:
                return
            position += len(header)
            continue
        position += 4
        if not 0 <= size <= len(data) - position:
            raise output.damaged(f"a snappy block of {size} bytes, but {len(data) - position} are left")
        try:
            _unfold_snappy_block(data[position : position + size], output)
        except _BadBlock as bad:
            if not lenient:
                raise output.damaged(str(bad)) from bad
            output.skip_block(bad)
        position += size


def _unfold_snappy_block(block: memoryview, output: DecompressedBytes) -> None:
    size = shift = 0
    for byte in block[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    else:
        raise _BadBlock("a snappy block does not begin with its size")
    if size > _SNAPPY_MOST_PER_BYTE * len(block):
        raise _BadBlock(f"a snappy block of {len(block)} bytes cannot unfold to {size}")
    if size > output.room:
        raise BeyondCap(output.cap_bytes)
    try:
        output.add(_SNAPPY.decompress(pa.py_buffer(block), size, asbytes=True))
    except (OSError, pa.ArrowInvalid) as error:
        raise _BadBlock("a snappy block is damaged") from error


def unfold_lz4(data: memoryview, output: DecompressedBytes, *, magic: int, lenient: bool) -> None:
    """Unfold block after block of an lz4 frame."""
    position, is_linked, has_block_checksum, block_bytes = _read_lz4_header(data, output, magic, lenient)
    while True:
        if len(data) - position < 4:
            raise output.damaged("the lz4 frame is cut")
        word = int.from_bytes(data[position : position + 4], "little")
        size = word & ~_LZ4_STORED
        position += 4
        if size == 0:
            # A content checksum may follow, and other bytes after it: Kafka reads neither.
            return
        if size > block_bytes:
            raise output.damaged(f"an lz4 block of {size} bytes in a frame of blocks of at most {block_bytes}")
        stop = position + size
        if stop + 4 * has_block_checksum > len(data):
            raise output.damaged("an lz4 block is cut")
        block = data[position:stop]
        position = stop + 4 * has_block_checksum
        try:
            if has_block_checksum and xxhash.xxh32_intdigest(block) != int.from_bytes(data[stop : stop + 4], "little"):
                raise _BadBlock("the checksum of an lz4 block does not match")
            output.add(block if word & _LZ4_STORED else _unfold_lz4_block(block, output.data if is_linked else None, block_bytes))
        except _BadBlock as bad:
            if not lenient or is_linked:
                raise output.damaged(str(bad)) from bad
            output.skip_block(bad)


def _read_lz4_header(data: memoryview, output: DecompressedBytes, magic: int, lenient: bool) -> tuple[int, bool, bool, int]:
    """Return the position after the header, two flags (blocks are linked, blocks have checksums), and the largest block size."""
    if len(data) < 7 or data[:4] != _LZ4_MAGIC:
        raise output.damaged("no lz4 frame begins here")
    flags, block_descriptor = data[4], data[5]
    if flags >> 6 != 1 or flags & 3:
        raise output.damaged(f"lz4 flags {flags:#04x}: a version, a dictionary or a reserved bit that Kafka refuses")
    if block_descriptor & 0x8F or block_descriptor >> 4 < 4:
        raise output.damaged(f"lz4 block descriptor {block_descriptor:#04x}: Kafka knows block sizes 4 to 7 and no other bit")
    is_linked = not flags & 0x20
    if is_linked and not lenient:
        raise output.damaged("the lz4 blocks are linked, which Kafka refuses")
    position = 14 if flags & 8 else 6
    if len(data) <= position:
        raise output.damaged("the lz4 header is cut")
    checksum = _header_checksum(bytes(data[4:position]))
    if magic > 0 and not lenient and data[position] != checksum:
        raise output.damaged(f"the lz4 header checksum is {data[position]:#04x} instead of {checksum:#04x}")
    return position + 1, is_linked, bool(flags & 16), 1 << (8 + 2 * (block_descriptor >> 4))


def _unfold_lz4_block(block: memoryview, before: bytearray | None, block_bytes: int) -> bytes:
    """Unfold one block; `before` is the output that linked blocks refer to, at most 64 KiB back."""
    size = min(block_bytes, _LZ4_MOST_PER_BYTE * len(block))
    try:
        if not before:
            return bytes(lz4.block.decompress(block, uncompressed_size=size))
        with memoryview(before) as whole, whole[-64 * 1024 :] as window:
            return bytes(lz4.block.decompress(block, uncompressed_size=size, dict=window))
    except lz4.block.LZ4BlockError as error:
        raise _BadBlock("an lz4 block is damaged") from error


def _zstd_decompressor() -> zstandard.ZstdDecompressor:
    """Return the decompressor of this thread: a new one takes longer than unfolding most batches."""
    if not hasattr(_OF_THREAD, "zstd"):
        _OF_THREAD.zstd = zstandard.ZstdDecompressor()
    decompressor: zstandard.ZstdDecompressor = _OF_THREAD.zstd
    return decompressor


def unfold_zstd(data: memoryview, output: DecompressedBytes, *, magic: int, lenient: bool) -> None:  # noqa: ARG001
    """Unfold frame after frame, in steps that cannot exceed the cap; only the last steps can exceed it, by a few MiB."""
    decompressor = _zstd_decompressor()
    position = 0
    while position < len(data):
        frame = decompressor.decompressobj()
        while not frame.eof:
            if position >= len(data):
                raise output.damaged("the zstd stream is cut")
            step = data[position : position + max(_ZSTD_STEP_BYTES, output.room // _ZSTD_MOST_PER_BYTE)]
            try:
                output.add(frame.decompress(step))
            except zstandard.ZstdError as error:
                raise output.damaged(f"the zstd stream is damaged: {error}") from error
            position += len(step) - len(frame.unused_data)


def make_gzip(data: Buffer, magic: int) -> bytes:  # noqa: ARG001
    """One gzip member."""
    body = zlib.compressobj(wbits=-15)
    return _GZIP_HEADER + body.compress(data) + body.flush() + struct.pack("<II", zlib.crc32(data), len(data) & 0xFFFFFFFF)


def make_snappy(data: Buffer, magic: int) -> bytes:  # noqa: ARG001
    """A xerial frame."""
    blocks = (_SNAPPY.compress(pa.py_buffer(block), asbytes=True) for block in _blocks(data, _XERIAL_BLOCK_BYTES))
    return _XERIAL_HEADER + b"".join(struct.pack(">i", len(block)) + block for block in blocks)


def make_lz4(data: Buffer, magic: int) -> bytes:
    """An lz4 frame; in format 0 with the header checksum that its readers expect, which is wrong by the lz4 specification."""
    checksum = _header_checksum(_LZ4_HEADER if magic == 0 else _LZ4_HEADER[4:])
    return b"".join((_LZ4_HEADER, bytes((checksum,)), *_lz4_blocks(data), bytes(4)))


def make_zstd(data: Buffer, magic: int) -> bytes:  # noqa: ARG001
    """A zstd frame without the size of its content."""
    stream = zstandard.ZstdCompressor(write_checksum=False, write_content_size=False).compressobj()
    return stream.compress(data) + stream.flush()


def _blocks(data: Buffer, size: int) -> Iterator[memoryview]:
    view = memoryview(data)
    return (view[start : start + size] for start in range(0, len(view), size))


def _lz4_blocks(data: Buffer) -> Iterator[bytes]:
    for block in _blocks(data, _LZ4_BLOCK_BYTES):
        small = lz4.block.compress(block, store_size=False)
        if len(small) < len(block):
            yield struct.pack("<I", len(small)) + small
        else:
            yield struct.pack("<I", len(block) | _LZ4_STORED) + block


@lru_cache(maxsize=256)
def _header_checksum(header: bytes) -> int:
    return xxhash.xxh32_intdigest(header) >> 8 & 0xFF
