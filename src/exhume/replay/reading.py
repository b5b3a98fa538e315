"""The reader of a release's load: chunk by chunk, up to its bound, in the formats that it knows.

A chunk is the result of one read: whole batches of one segment, up to the size of the load buffer, at least one. For most releases the size
of chunks makes no difference. It does for those that test the high watermark between chunks (to 0.10.2), or install groups and offsets
after each chunk (0.11.0.0).

Source: GroupMetadataManager.doLoadGroupsAndOffsets of 0.9.0.1 to 3.9.0; CoordinatorLoaderImpl of 4.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from threading import Event
from typing import TYPE_CHECKING

from xxhash import xxh32_intdigest

from exhume.codecs.batch_format import HEADER_BYTES, LZ4
from exhume.codecs.batches import first_offset
from exhume.codecs.compression import codec_name
from exhume.codecs.segment_reader import ReadOptions
from exhume.codecs.wire import Reader
from exhume.errors import DecodeError, DecompressionError
from exhume.replay.broker_log import DEFAULT_LOAD_BUFFER_BYTES, LoadedBatch, StrictLog
from exhume.replay.load_problems import LoadProblem, ProblemKind
from exhume.replay.profiles import BrokerProfile, JavaProfile, ScalaProfile
from exhume.replay.verdict import LoadAborted

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from exhume.replay.fold.result import FoldResult

DEFAULT_GROUP_MAX_SIZE = 2**31 - 1

_FRAME_DESCRIPTOR = slice(4, 6)


@dataclass(frozen=True, slots=True)
class LoadInputs:
    """The inputs of a load besides log and release.

    `high_watermark` None: that of the checkpoint, else the log end. `retention_minutes` None: the release's default. `group_max_size` is
    the largest number of members of a classic group.
    """

    load_buffer_bytes: int = DEFAULT_LOAD_BUFFER_BYTES
    high_watermark: int | None = None
    retention_minutes: int | None = None
    group_max_size: int = DEFAULT_GROUP_MAX_SIZE


@dataclass(slots=True)
class CompiledLoad:
    """Options of a load with compiled kernels.

    Attributes:
        read: with or without checksums, and the number of bytes that one batch may unfold to.
        advance: takes the number of bytes done so far.
        least_bytes: smaller logs are loaded record by record.
        threads: the number of threads that may work.
        verified_segments: the load adds the path of each segment that it read to the last record without a finding.
        relevant_batches: the load adds by path the batches that concern `groups`, rows of `kernels.scan`; None: it does not.
        is_stopped: once set, threads end soon.
        reusable_folds: the fold of each log by its path, for other releases with the same fold; each with its rules, and True if it
            verified checksums. None: keep no fold.
    """

    read: ReadOptions = field(default_factory=ReadOptions)
    advance: Callable[[int], None] = lambda _: None
    least_bytes: int = 0
    threads: int = 1
    verified_segments: set[str] = field(default_factory=set)
    relevant_batches: dict[str, npt.NDArray[np.int64]] | None = None
    is_stopped: Event = field(default_factory=Event)
    reusable_folds: dict[str, tuple[npt.NDArray[np.int64], FoldResult, bool]] | None = None


def read_chunks(log: StrictLog, profile: BrokerProfile, inputs: LoadInputs) -> Iterator[Iterable[LoadedBatch]]:
    """The chunks that this release reads, in order. Consume each before the next.

    Raises:
        LoadAborted: the reader of this release throws: from the chunk, after the batches that the release has already applied; or it reads
            the same place again and again.
    """
    if not isinstance(profile, ScalaProfile):
        for batch in log.batches():
            yield [batch]
        return
    bound = log.end_offset
    if profile.read_bound == "high_watermark":
        checkpoint = log.partition.high_watermark if inputs.high_watermark is None else inputs.high_watermark
        bound = log.end_offset if checkpoint is None else min(checkpoint, log.end_offset)
    next_offset = log.start_offset
    for _, batches in groupby(log.batches(), key=lambda batch: batch.path):
        segment = _Segment(batches)
        while segment.first is not None:
            if next_offset >= bound:
                return
            chunk = _Chunk(segment, profile, inputs.load_buffer_bytes)
            yield chunk
            next_offset = chunk.next_offset
    if next_offset < bound and profile.empty_read != "stop":
        kind = ProblemKind.EMPTY_READ_ABORTS if profile.empty_read == "abort" else ProblemKind.EMPTY_READ_STALLS
        raise LoadAborted(LoadProblem(kind, record_offset=next_offset, next_offset=next_offset, end_offset=bound))


class _Chunk:
    """The batches of one read: as many of a segment as fit the load buffer, at least one. Each is read when it is wanted."""

    def __init__(self, segment: _Segment, profile: ScalaProfile, buffer_bytes: int) -> None:
        self._segment = segment
        self._profile = profile
        self._buffer_bytes = buffer_bytes
        #: The offset after the batches so far.
        self.next_offset = -1

    def __iter__(self) -> Iterator[LoadedBatch]:
        """Yield the batches; raises `LoadAborted` where the reader of the release throws."""
        left_bytes, is_empty = self._buffer_bytes, True
        while (batch := self._segment.first) is not None:
            size_bytes = batch.batch.size_bytes
            if size_bytes > left_bytes and not is_empty:
                return
            if size_bytes > self._buffer_bytes and self._profile.oversized_batch == "stall":
                problem = LoadProblem(
                    ProblemKind.BATCH_BEYOND_BUFFER,
                    record_offset=first_offset(batch.batch),
                    size_bytes=size_bytes,
                    buffer_bytes=self._buffer_bytes,
                )
                raise LoadAborted(problem, path=batch.path, byte_position=batch.batch.byte_position)
            yield batch
            left_bytes, is_empty = left_bytes - size_bytes, False
            self.next_offset = batch.next_offset
            self._segment.advance()


class _Segment:
    """The batches of one segment, of which `first` is next; None at the end."""

    def __init__(self, batches: Iterator[LoadedBatch]) -> None:
        self._batches = batches
        self.first = next(batches, None)

    def advance(self) -> None:
        """Step over the first batch."""
        self.first = next(self._batches, None)


def refused_formats(profile: BrokerProfile) -> frozenset[str]:
    """The formats and codecs that this release cannot read, by the names of `profiles`."""
    return profile.refused_formats if isinstance(profile, ScalaProfile | JavaProfile) else frozenset()


def refused_format(batch: LoadedBatch, profile: BrokerProfile) -> LoadProblem | None:
    """The reason why this release cannot read the batch; None if it can, or if nothing can: then its records raise the error."""
    refused, codec = refused_formats(profile), codec_name(batch.batch.codec)
    kind = None
    with suppress(DecodeError, DecompressionError):
        kind = _refused_kind(batch, refused, codec) if refused else None
    if kind is None:
        return None
    return LoadProblem(kind, record_offset=first_offset(batch.batch), codec=codec if kind is ProblemKind.CODEC_UNKNOWN else None)


def _refused_kind(batch: LoadedBatch, refused: frozenset[str], codec: str) -> ProblemKind | None:
    magic = batch.batch.magic
    if magic == 2 and "format_2" in refused:
        return ProblemKind.FORMAT_2_UNKNOWN
    if codec in refused:
        return ProblemKind.CODEC_UNKNOWN
    if magic == 1 and batch.batch.codec and "inner_v0_in_v1" in refused and any(record.magic == 0 for record in batch.read()):
        return ProblemKind.FORMAT_0_IN_FORMAT_1
    if magic == 0 and batch.batch.codec == LZ4 and "lz4_v0_correct_checksum" in refused and _has_correct_lz4_checksum(batch):
        return ProblemKind.LZ4_CHECKSUM_CORRECT
    return None


def _has_correct_lz4_checksum(batch: LoadedBatch) -> bool:
    reader = Reader(batch.buffer, batch.batch.byte_position + HEADER_BYTES[0] - 8, batch.batch.end_position)
    reader.nullable_blob()
    frame = reader.nullable_blob() or b""
    return len(frame) > _FRAME_DESCRIPTOR.stop and frame[_FRAME_DESCRIPTOR.stop] == xxh32_intdigest(frame[_FRAME_DESCRIPTOR]) >> 8 & 0xFF
