"""Read the batches that the kernels do not take with the plain Python reader, so that the fold can continue after them.

A strict load reads a batch whose checksum fails, stops at a cut batch without an error, and ends in an error at a batch that its release
cannot read: the fold ends before that batch, and the loader gives the reason. A lenient load takes the batches that salvage finds. Some
batches are written anew for the fold, with the records as the plain reader returns them: a batch that is damaged, a batch with a record
that no broker writes in this form, and a compressed message of format 0 or 1. Records that the release refuses are left out and passed on
to the loader, which reports them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from exhume.codecs.batch_format import GZIP, HEADER_BYTES
from exhume.codecs.batch_writer import NewRecord, encode_batch
from exhume.codecs.batches import Batch, end_reason, first_offset, overflows, read_header_fields
from exhume.codecs.columns.blocks import readable
from exhume.codecs.compression import decompress
from exhume.codecs.kernels import scan
from exhume.codecs.kernels.messages import as_records
from exhume.codecs.kernels.types import Bytes, Int64s
from exhume.codecs.layout import Fields
from exhume.codecs.layouts.offsets import COMMIT_FLEXIBLE_SINCE
from exhume.codecs.lenient_records import read_records_leniently
from exhume.codecs.record_types import OFFSET_COMMIT_TYPES, encode_key, encode_value
from exhume.codecs.records import Record, read_records
from exhume.codecs.salvage import Found, salvage
from exhume.errors import DecodeError, DecompressionError, EncodeError, EvidenceError
from exhume.replay.broker_log import LoadedBatch, StrictLog
from exhume.replay.decode import ReplayRecord, UnknownRecordType, decode_for
from exhume.replay.fold import tables as columns
from exhume.replay.fold.kernels.batches import fold
from exhume.replay.fold.result import MendedBatch, mended_position
from exhume.replay.fold.rules import (
    BAD_RECORD,
    DONE,
    LAST_COUNTED_OFFSET,
    NOT_PLAIN_BATCH,
    NOT_PLAIN_KEY,
    NOT_PLAIN_VALUE,
    NOT_SOUND,
    RULES,
    START_OFFSET,
)
from exhume.replay.fold.served_log import hide_after
from exhume.replay.fold.tables import Tables, given_up, with_room_for
from exhume.replay.profiles import BrokerProfile, JavaProfile, ScalaProfile
from exhume.replay.reading import refused_format

#: The ends of a fold that a batch written anew can mend.
_MENDABLE = (BAD_RECORD, NOT_PLAIN_KEY, NOT_PLAIN_VALUE)
#: The first bytes of the keys of commits.
_COMMIT_KEYS = tuple(record_type.to_bytes(2, "big") for record_type in OFFSET_COMMIT_TYPES)


@dataclass(frozen=True, slots=True)
class _Mended:
    """A batch whose first `done` records are folded.

    `records` are the other records in the form to fold, `refused` those that the release refuses.
    """

    batch: Batch
    done: int
    records: list[Record]
    refused: list[Record]


@dataclass(slots=True)
class CarefulReader(ABC):
    """Reads the batches at which a fold stopped: the fold calls `pass_over`, and continues after them.

    `mended` are the batches that were written anew for the fold, by segment and byte position. `careful_segments` are the segments in which
    the fold stopped. `ends_at` is the segment and byte at which the load ends in an error; None if it reaches the log end.
    `hidden_from` are the places at which a broker stops reading a segment without an error, as in `FoldResult`.
    """

    log: StrictLog
    profile: BrokerProfile
    cap_bytes: int
    #: The rules of the fold.
    rules: Int64s = field(default_factory=lambda: np.zeros(RULES, np.int64))
    mended: dict[tuple[int, int], MendedBatch] = field(default_factory=dict)
    careful_segments: set[int] = field(default_factory=set)
    ends_at: tuple[int, int] | None = None
    hidden_from: list[tuple[int, int, bool]] = field(default_factory=list)
    #: True if no batch after the last place counts.
    is_over: bool = False
    #: The byte position of the last batch of the current segment that was folded in its own bytes.
    last_batch_at: int = 0

    @abstractmethod
    def pass_over(self, tables: Tables, segment: int, position: int) -> tuple[Tables, int]:
        """Fold the batch at this byte of the segment; return the tables, and the byte at which the fold continues.

        `counts[STATUS]` is `DONE` on success. All batches before it are folded, and the first `counts[RECORDS_DONE]` records of this batch.
        """

    def _begin(self, tables: Tables, segment: int) -> int:
        status = int(tables.counts[columns.STATUS])
        self.careful_segments.add(segment)
        tables.counts[columns.STATUS] = DONE
        if tables.counts[columns.IS_CUT]:
            self.is_over = True
        return status

    def _content(self, segment: int) -> Bytes:
        return readable(self.log.segments[segment].buffer)

    def _loaded(self, segment: int, batch: Batch) -> LoadedBatch:
        served = self.log.segments[segment]
        return LoadedBatch(served.file.path, batch, served.buffer, lambda: read_records(served.buffer, batch))

    def _fold_unchecked(self, tables: Tables, segment: int, batch: Batch) -> Tables:
        """Fold a batch in its own bytes, also if its checksum fails."""
        row = _row(batch, tables)
        data, start, end = self._content(segment), batch.byte_position + HEADER_BYTES[2], batch.end_position
        if batch.magic < 2:
            body = np.empty((1, 2), np.int64)
            data = as_records(data, row, 0, 1, body)
            start, end = body[0].tolist()
        elif batch.codec and batch.record_count:
            try:
                data = np.frombuffer(decompress(batch.codec, data[start:end].data, magic=2, cap_bytes=self.cap_bytes) or b"\0", np.uint8)
            except DecompressionError:
                return given_up(tables, BAD_RECORD)
            start, end = 0, len(data)
        return self._folded(tables, segment, row, data, (start, end))

    def _folded(self, tables: Tables, segment: int, row: Int64s, data: Bytes, body: tuple[int, int]) -> Tables:
        bodies = np.array([body], np.int64)
        tables = with_room_for(tables, row, 0, 1, bodies)
        # Kernels are compiled for one kind of array only.
        data.flags.writeable = False
        fold(row, 0, 1, data, bodies, segment, self.rules, tables)
        counts = tables.counts
        if counts[columns.FIRST_BASE_OFFSET] < 0:
            counts[[columns.FIRST_BASE_OFFSET, columns.FIRST_LEADER_EPOCH]] = row[0, [scan.BASE_OFFSET, scan.LEADER_EPOCH]]
            counts[columns.LAST_OFFSET_SEEN] = row[0, scan.LAST_OFFSET]
        return tables

    def _fold_mended(self, tables: Tables, segment: int, mended: _Mended) -> Tables:
        batch, records = mended.batch, mended.records
        base_timestamp = batch.delete_horizon_ms if batch.delete_horizon_ms is not None else batch.base_timestamp_ms
        try:
            written = encode_batch(
                [NewRecord(each.record_offset, each.timestamp_ms, each.key, each.value) for each in records],
                base_offset=batch.base_offset or 0,
                last_offset_delta=0,
                base_timestamp_ms=-1 if base_timestamp is None else base_timestamp,
                max_timestamp_ms=0,
            )
        except EncodeError:
            return given_up(tables, NOT_PLAIN_BATCH)
        section = written[HEADER_BYTES[2] :]
        counts = tables.counts
        passed_before = int(counts[columns.PASSED])
        row = _row(batch, tables)
        row[0, scan.POSITION] = position = mended_position(batch.byte_position)
        row[0, scan.RECORD_COUNT] = len(records)
        row[0, scan.ATTRIBUTES] = row[0, scan.ATTRIBUTES] & ~scan.CODEC | GZIP
        data = np.frombuffer(section or b"\0", np.uint8)
        tables = self._folded(tables, segment, row, data, (0, len(section)))
        if tables.counts[columns.STATUS] != DONE:
            return tables
        counts = tables.counts
        counts[columns.RECORDS] += mended.done + len(mended.refused)
        for number, record in enumerate(mended.refused):
            passed = tables.passed[counts[columns.PASSED]]
            passed[columns.PASSED_SEGMENT], passed[columns.PASSED_BATCH] = segment, position
            passed[columns.PASSED_PLACE], passed[columns.PASSED_OFFSET] = -number - 1, record.record_offset
            passed[columns.PASSED_GROUP] = -1
            counts[columns.PASSED] += 1
        if counts[columns.PASSED] != passed_before or any((record.key or b"")[:2] not in _COMMIT_KEYS for record in records):
            # The loader may read it again: of a group, a fold keeps only the place of the last record.
            self.mended[segment, position] = MendedBatch(batch, section, mended.refused)
        return tables


def careful_reader(log: StrictLog, profile: BrokerProfile, cap_bytes: int, *, lenient: bool) -> CarefulReader:
    """Return the reader for the batches of this log that the kernels do not take."""
    return (LenientCarefulReader if lenient else StrictCarefulReader)(log, profile, cap_bytes)


class StrictCarefulReader(CarefulReader):
    """Reads the batches as a strict load does."""

    def pass_over(self, tables: Tables, segment: int, position: int) -> tuple[Tables, int]:
        status = self._begin(tables, segment)
        served = self.log.segments[segment]
        if self.is_over:
            return tables, served.end
        reason = end_reason(served.buffer, position, served.end)
        if reason in ("cut_batch", "short_tail") and not (reason == "cut_batch" and overflows(served.buffer, position)):
            self.hidden_from.append((segment, position, reason == "cut_batch"))
            hide_after(self.log, served, position, is_batch=reason == "cut_batch")
            return tables, position
        if reason is not None:
            return self._end(tables, segment, position)
        batch = read_header_fields(served.buffer, position)
        if batch.last_offset < self.rules[START_OFFSET] or batch.last_offset >= self.rules[LAST_COUNTED_OFFSET]:
            return given_up(tables, status or NOT_PLAIN_BATCH), position
        if status == NOT_SOUND:
            tables = self._fold_unchecked(tables, segment, batch)
            status = int(tables.counts[columns.STATUS])
            if status == DONE:
                return tables, batch.end_position
        if status == NOT_PLAIN_BATCH and refused_format(self._loaded(segment, batch), self.profile) is not None:
            return self._end(tables, segment, position)
        if not (status in _MENDABLE or (status == NOT_PLAIN_BATCH and batch.magic < 2)) or batch.is_control:
            return given_up(tables, status), position
        tables.counts[columns.STATUS] = DONE
        done = int(tables.counts[columns.RECORDS_DONE])
        try:
            records = list(read_records(served.buffer, batch))[done:]
        except EvidenceError:
            return self._end(tables, segment, position)
        mended = [_mended(self.profile, record) for record in records]
        if None in mended:
            return self._end(tables, segment, position)
        kept = [record for record in mended if record is not None]
        return self._fold_mended(tables, segment, _Mended(_to_be_written(batch, records), done, kept, [])), batch.end_position

    def _end(self, tables: Tables, segment: int, position: int) -> tuple[Tables, int]:
        """End the load, and the fold, at this place."""
        self.ends_at, self.is_over = (segment, position), True
        return tables, position


@dataclass(slots=True)
class LenientCarefulReader(CarefulReader):
    """Reads the batches that salvage finds, as a lenient load does."""

    def pass_over(self, tables: Tables, segment: int, position: int) -> tuple[Tables, int]:
        status = self._begin(tables, segment)
        served = self.log.segments[segment]
        if self.is_over:
            return tables, served.end
        is_batch = end_reason(served.buffer, position, served.end) is None
        if status not in (NOT_SOUND, *_MENDABLE) and is_batch and served.buffer[position + 16] == 2:
            return given_up(tables, status), position
        for found in self._found_from(segment, position):
            if found.batch.byte_position > position and _is_in_place(found):
                return tables, found.batch.byte_position
            done = int(tables.counts[columns.RECORDS_DONE]) if found.batch.byte_position == position else 0
            tables = self._take(tables, segment, found.batch, done)
            if tables.counts[columns.STATUS] != DONE:
                return tables, position
            if _is_in_place(found):
                self.last_batch_at = found.batch.byte_position
        return tables, served.end

    def _found_from(self, segment: int, position: int) -> Iterator[Found]:
        """Yield the batches that salvage finds from this byte on."""
        served = self.log.segments[segment]
        # From the last sound batch on, salvage knows which offsets belong here.
        start = min(self.last_batch_at, position)
        for item in salvage(served.buffer, position=start, base_offset=served.file.base_offset):
            if isinstance(item, Found) and item.batch.byte_position >= position:
                yield item

    def _take(self, tables: Tables, segment: int, batch: Batch, done: int) -> Tables:
        if batch.last_offset >= self.rules[LAST_COUNTED_OFFSET] or refused_format(self._loaded(segment, batch), self.profile):
            return given_up(tables, NOT_PLAIN_BATCH)
        if batch.is_control:
            return self._fold_unchecked(tables, segment, batch)
        records = read_records_leniently(self.log.segments[segment].buffer, batch)[0][done:]
        if batch.magic < 2 and not records:
            # Only its records would give the first record offset.
            return given_up(tables, NOT_PLAIN_BATCH)
        mended = [(record, _mended(self.profile, record)) for record in records]
        kept = [after for _, after in mended if after is not None]
        refused = [before for before, after in mended if after is None]
        return self._fold_mended(tables, segment, _Mended(_to_be_written(batch, records), done, kept, refused))


def _to_be_written(batch: Batch, records: Sequence[Record]) -> Batch:
    """Return the batch as one of format 2, whose header has the first record offset."""
    return batch if batch.magic == 2 else replace(batch, magic=2, base_offset=records[0].record_offset)


def _is_in_place(found: Found) -> bool:
    """True for a batch that a scan would find in the same way as salvage."""
    is_as_stated = found.stated_size_bytes is None and found.stated_magic is None
    return found.crc_status == "ok" and found.grade == "verified" and is_as_stated


def _mended(profile: BrokerProfile, record: Record) -> Record | None:
    """Return the record as a broker would have written it, or unchanged if its form is unknown; None if the release refuses it."""
    try:
        decoded = decode_for(profile, record.record_offset, record.key, record.value)
    except UnknownRecordType:
        return None if isinstance(profile, ScalaProfile) and profile.unknown_record_type == "abort" else record
    except DecodeError:
        return None
    if isinstance(profile, JavaProfile) and decoded.record_type in profile.refused_types:
        return None
    if decoded.family not in ("offsets", "classic"):
        return record
    try:
        return _written(record, decoded)
    except EncodeError:
        return record


def _written(record: Record, decoded: ReplayRecord) -> Record:
    assert record.key is not None
    fields: Fields = {"key": record.key, "value": record.value}
    key = encode_key(decoded.record_type, decoded.key)
    if record.key.startswith(key):
        # Every release ignores bytes after the last field.
        fields["key"] = key
    if record.value is not None and decoded.family == "offsets":
        assert decoded.value_version is not None
        assert decoded.value is not None
        version = decoded.value_version
        if version >= COMMIT_FLEXIBLE_SINCE:
            fields["value"] = encode_value(decoded.record_type, version, decoded.value)
        else:
            fields["value"] = version.to_bytes(2, "big", signed=True) + record.value[2:]
    return Record(record.record_offset, record.timestamp_ms, record.timestamp_type, record.sequence, **fields)


def _row(batch: Batch, tables: Tables) -> Int64s:
    """Return the header of a batch as a row of a scan. No load reads the leader epoch, so it is that of the batch before."""
    base_timestamp = batch.delete_horizon_ms if batch.delete_horizon_ms is not None else batch.base_timestamp_ms
    fields = {
        scan.POSITION: batch.byte_position,
        scan.SIZE: batch.size_bytes,
        scan.BASE_OFFSET: first_offset(batch),
        scan.LAST_OFFSET: batch.last_offset,
        scan.ATTRIBUTES: batch.attributes,
        scan.RECORD_COUNT: 1 if batch.record_count is None else batch.record_count,
        scan.BASE_TIMESTAMP: -1 if base_timestamp is None else base_timestamp,
        scan.MAX_TIMESTAMP: -1 if batch.max_timestamp_ms is None else batch.max_timestamp_ms,
        scan.PRODUCER_ID: batch.producer_id,
        scan.PRODUCER_EPOCH: batch.producer_epoch,
        scan.BASE_SEQUENCE: batch.base_sequence,
        scan.LEADER_EPOCH: int(tables.counts[columns.LEADER_EPOCH_SEEN]),
        scan.CRC: batch.crc,
        scan.IS_SOUND: 1,
        scan.MAGIC: batch.magic,
    }
    return np.array([[fields[column] for column in range(scan.COLUMNS)]], np.int64)
