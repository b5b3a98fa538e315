"""Read the records of a batch that may be damaged: all readable records, and the problems of the batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from exhume.codecs.batch_format import HEADER_BYTES
from exhume.codecs.batch_search import BatchSearch
from exhume.codecs.batches import Batch, crc_matches, end_reason, read_header_fields, wrap_int64
from exhume.codecs.compressed_streams import BeyondCap, DamagedStream
from exhume.codecs.compression import DEFAULT_CAP_BYTES, decompress
from exhume.codecs.records import Record, read_message, read_record, read_records, wrapper_base
from exhume.codecs.wire import Buffer, Reader
from exhume.errors import DecodeError, DecompressionError

_WRONG_COUNT = "record_count_lies"  # plain: the code of a finding


@dataclass(frozen=True, slots=True)
class RecordProblem:
    """Bytes in a batch that Kafka would refuse, or that were lost.

    `code` is a key of `damage.PROBLEM_REMEDIES`; `refused_stream` means that all records were read, but Kafka refuses them.
    `lost_records` is None if they cannot be counted.
    """

    code: str
    message: str
    byte_position: int | None = None
    lost_records: int | None = None


def read_records_leniently(buffer: Buffer, batch: Batch, *, cap_bytes: int = DEFAULT_CAP_BYTES) -> tuple[list[Record], list[RecordProblem]]:
    """Return all readable records of `batch`, and its problems. Damage raises no error.

    A damaged format 2 batch gives the records before the damage. A damaged wrapper also gives those after it, because inner entries have
    their own checksums. An entry that fails its checksum but has consistent lengths is returned with `crc_ok` False.
    """
    if batch.magic == 2:
        return _format_2_leniently(buffer, batch, cap_bytes)
    problems: list[RecordProblem] = []
    try:
        records = list(read_records(buffer, batch, cap_bytes=cap_bytes))
    except (DecodeError, DecompressionError) as error:
        if batch.codec == 0:
            return [], [RecordProblem("undecodable_records", error.message, error.byte_position, lost_records=1)]
        records = _wrapper_leniently(buffer, batch, cap_bytes, problems)
    if batch.codec:
        for record in records:
            if not record.crc_ok:
                sentence = f"the inner message at record offset {record.record_offset} fails its own checksum"
                problems.append(RecordProblem("inner_crc_mismatch", sentence, batch.byte_position, lost_records=0))
    return records, problems


def _format_2_leniently(buffer: Buffer, batch: Batch, cap_bytes: int) -> tuple[list[Record], list[RecordProblem]]:
    problems: list[RecordProblem] = []
    end = min(batch.end_position, len(buffer))
    reader = Reader(buffer, min(batch.byte_position + HEADER_BYTES[2], end), end)
    if batch.codec and reader.remaining:
        pieces = _pieces(batch, buffer[reader.position : reader.end], cap_bytes, problems)
        reader = Reader(pieces[0] if pieces else b"")
    end = reader.end
    records: list[Record] = []
    # Not the error itself: its traceback refers to the unfolded bytes, and to this frame.
    failure: tuple[str, int | None] | None = None
    while reader.position < end and failure is None:
        reader.end = end
        try:
            records.append(read_record(reader, batch, is_compressed=batch.codec != 0))
        except DecodeError as error:
            failure = error.message, error.byte_position
    count = batch.record_count or 0
    lost = max(count - len(records), 0)
    if failure is not None and len(records) >= count > 0:
        # All records that the header counts are there; the bytes after them only looked like records.
        del records[count:]
        sentence = f"the batch has bytes after the {count} records that its header counts"
        problems.append(RecordProblem(_WRONG_COUNT, sentence, batch.byte_position, 0))
    elif problems:
        problems[-1] = replace(problems[-1], lost_records=lost)
    elif failure is not None:
        message, position = failure
        place = batch.byte_position if batch.codec else position
        problems.append(RecordProblem("undecodable_records", f"record {len(records) + 1} of {count}: {message}", place, lost))
    elif len(records) != count:
        sentence = f"the header counts {count} records, {len(records)} fill the batch"
        problems.append(RecordProblem(_WRONG_COUNT, sentence, batch.byte_position, None if lost else 0))
    return records, problems


def _pieces(batch: Batch, stream: Buffer, cap_bytes: int, problems: list[RecordProblem]) -> list[bytes]:
    """Unfold the stream: one piece if it is whole or only Kafka's rules forbid it, else the runs between damaged blocks."""
    place = batch.byte_position
    try:
        return [decompress(batch.codec, stream, magic=batch.magic, cap_bytes=cap_bytes)]
    except BeyondCap as bomb:
        problems.append(RecordProblem("decompression_bomb", bomb.message, place))
        return []
    except DecompressionError as error:
        # Not the error: its traceback refers to the output so far, and to this frame, which would refer to the error.
        refusal = error.message
    try:
        section = decompress(batch.codec, stream, magic=batch.magic, cap_bytes=cap_bytes, lenient=True)
    except DamagedStream as damage:
        problems.append(RecordProblem("undecodable_records", damage.message, place))
        return [damage.partial, *damage.later]
    except BeyondCap as bomb:
        problems.append(RecordProblem("decompression_bomb", bomb.message, place))
    except DecompressionError as error:
        problems.append(RecordProblem("undecodable_records", error.message, place))
    else:
        problems.append(RecordProblem("refused_stream", refusal, place, lost_records=0))
        return [section]
    return []


def _wrapper_leniently(buffer: Buffer, batch: Batch, cap_bytes: int, problems: list[RecordProblem]) -> list[Record]:
    pieces = _pieces(batch, _wrapper_stream(buffer, batch), cap_bytes, problems)
    found = [(piece, entry) for piece in pieces for entry in _surviving_entries(piece, problems, batch.byte_position)]
    if not found:
        if not problems:
            problems.append(RecordProblem("undecodable_records", "a compressed message without inner messages", batch.byte_position))
        return []
    last_piece, last = found[-1]
    base = 0
    try:
        base = wrapper_base(batch, last.last_offset)
    except DecodeError as error:
        problems.append(RecordProblem("uncertain_offsets", f"{error.message}; inner offsets are shown as they are", batch.byte_position, 0))
    if batch.magic == 1 and base and (last_piece is not pieces[-1] or last.end_position != len(last_piece)):
        # At least one message after the last found one is lost, so all found offsets are below the wrapper's offset.
        base -= 1
        problems.append(
            RecordProblem("uncertain_offsets", "the last inner message is lost, and with it the offsets of the others", batch.byte_position)
        )
    return [read_message(piece, entry, wrap_int64(base + entry.last_offset), batch) for piece, entry in found]


def _wrapper_stream(buffer: Buffer, batch: Batch) -> Buffer:
    """Return the wrapper's value; if its lengths are wrong, all bytes after a null key."""
    start, end = batch.byte_position + HEADER_BYTES[batch.magic] - 8, min(batch.end_position, len(buffer))
    reader = Reader(buffer, min(start, end), end)
    try:
        _, stream = reader.nullable_blob(), reader.nullable_blob()
    except DecodeError:
        stream = None
    return buffer[min(start + 8, end) : end] if stream is None else stream


def _surviving_entries(piece: bytes, problems: list[RecordProblem], place: int) -> Iterator[Batch]:
    """Yield the sound inner entries of an unfolded run; after damage, continue at the next entry whose checksum matches."""
    search = BatchSearch(piece, len(piece))
    position = 0
    while position < len(piece):
        entry = _sound_entry(piece, position)
        if entry is not None:
            yield entry
            position = entry.end_position
            continue
        following = search.first_from(position + 1)
        while following is not None and following.magic > 1:
            following = search.first_from(following.byte_position + 1)
        stop = len(piece) if following is None else following.byte_position
        problems.append(RecordProblem("undecodable_records", f"bytes {position} to {stop} of the unfolded messages hold none", place))
        position = stop


def _sound_entry(piece: bytes, position: int) -> Batch | None:
    """Return the plain entry at `position` if its lengths match its size, or its checksum its bytes; else None."""
    if end_reason(piece, position, len(piece)) is not None or piece[position + 16] > 1:
        return None
    entry = read_header_fields(piece, position)
    reader = Reader(piece, position + HEADER_BYTES[entry.magic] - 8, entry.end_position)
    try:
        reader.nullable_blob()
        reader.nullable_blob()
    except DecodeError:
        return None
    return entry if entry.codec == 0 and (reader.remaining == 0 or crc_matches(piece, entry)) else None
