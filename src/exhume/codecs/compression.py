"""Compress and unfold record sections, by one table of codecs.

Reading, writing, the refusals of older releases and the fixtures derive from `CODECS`.

Source: CompressionType of Kafka 3.8; zstd since KAFKA-4514.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from exhume.codecs import compressed_streams as streams
from exhume.codecs.batch_format import GZIP, LZ4, SNAPPY, UNCOMPRESSED, ZSTD
from exhume.codecs.compressed_streams import AtOnce, DecompressedBytes
from exhume.codecs.wire import Buffer
from exhume.errors import DecompressionError, EncodeError

#: The number of bytes that one batch may unfold to, by default.
DEFAULT_CAP_BYTES = 64 * 1024 * 1024


class Unfold(Protocol):
    """Adds the unfolded bytes of a stream; unless `lenient`, raises `DamagedStream` if Kafka's reader of this magic fails."""

    def __call__(self, data: memoryview, output: DecompressedBytes, *, magic: int, lenient: bool) -> None: ...


@dataclass(frozen=True, slots=True)
class Codec:
    """One row of the table. `number` is in the attributes of batches.

    Attributes:
        compress: makes a stream as Kafka's Java writers do for a batch of this magic.
        unfold: unfolds a stream as Kafka's readers do.
        at_once: the same in one library call, up to a cap; None if the library has none.
        first_format: the first message format that has the codec.
        first_release: the first release that reads it; None: all known releases.
    """

    number: int
    name: str
    compress: Callable[[Buffer, int], bytes]
    unfold: Unfold
    at_once: Callable[[int], AtOnce] | None = None
    first_format: int = 0
    first_release: str | None = None


def _copy(data: Buffer, magic: int) -> bytes:  # noqa: ARG001
    return bytes(data)


def _take(data: memoryview, output: DecompressedBytes, *, magic: int, lenient: bool) -> None:  # noqa: ARG001
    output.add(data)


CODECS: dict[int, Codec] = {
    row.number: row
    for row in (
        Codec(UNCOMPRESSED, "none", _copy, _take),
        Codec(GZIP, "gzip", streams.make_gzip, streams.unfold_gzip),
        Codec(SNAPPY, "snappy", streams.make_snappy, streams.unfold_snappy),
        Codec(LZ4, "lz4", streams.make_lz4, streams.unfold_lz4, streams.lz4_at_once),
        Codec(ZSTD, "zstd", streams.make_zstd, streams.unfold_zstd, streams.zstd_at_once, first_format=2, first_release="2.1.0"),
    )
}


def codec_name(number: int) -> str:
    """The name of this codec, for people and tables."""
    return CODECS[number].name if number in CODECS else f"codec {number}"


def codecs_of_format(magic: int) -> list[int]:
    """The codecs that this message format has."""
    return [codec.number for codec in CODECS.values() if codec.first_format <= magic]


def decompress(codec: int, data: Buffer, *, magic: int, cap_bytes: int = DEFAULT_CAP_BYTES, lenient: bool = False) -> bytes:
    """Unfold `data` to a record section, by the rules of Kafka's readers for a batch of this magic.

    `lenient` also accepts streams that Kafka refuses but that have one certain reading: linked lz4 blocks, a wrong lz4 header checksum,
    zstd in formats 0 and 1. It also continues after a broken snappy or lz4 block.

    Raises:
        DamagedStream: the stream is cut, damaged or of a kind that Kafka refuses; the error has the output so far.
        BeyondCap: it unfolds to more than `cap_bytes`.
        DecompressionError: there is no such codec in this format.
    """
    if codec == UNCOMPRESSED:
        return bytes(data)
    if codec not in CODECS:
        raise DecompressionError(f"codec {codec} does not exist; codecs 0 to {max(CODECS)} do")
    row = CODECS[codec]
    if magic < row.first_format and not lenient:
        raise DecompressionError(f"message format {magic} has no {row.name}")
    # The library does not accept the lz4 header checksum of format 0.
    at_once = row.at_once(cap_bytes) if magic > 0 and row.at_once is not None else None
    whole = None if at_once is None else at_once(data)
    if whole is not None:
        return whole
    output = DecompressedBytes(cap_bytes)
    row.unfold(memoryview(data), output, magic=magic, lenient=lenient)
    return output.finish()


def decompress_in_turn(codecs: Iterable[int], streams: Iterable[memoryview], *, cap_bytes: int) -> Iterator[bytes]:
    """Unfold each of these streams of format 2 as `decompress` does; faster for many short streams."""
    at_once = {row.number: row.at_once(cap_bytes) for row in CODECS.values() if row.at_once is not None}
    for codec, stream in zip(codecs, streams, strict=True):
        unfold = at_once.get(codec)
        whole = None if unfold is None else unfold(stream)
        yield decompress(codec, stream, magic=2, cap_bytes=cap_bytes) if whole is None else whole


def compress(codec: int, data: Buffer, *, magic: int) -> bytes:
    """`data` as Kafka's Java writers compress it for a batch of this magic."""
    if codec not in CODECS:
        raise EncodeError(f"codec {codec} does not exist; codecs 0 to {max(CODECS)} do")
    return CODECS[codec].compress(data, magic)
