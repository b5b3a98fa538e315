"""The start of a broker on the log of one offsets partition: it checks segments, and truncates them at the first damage.

A broker recovers a segment without an `.index`: it verifies every checksum and cuts the segment at the first damage; later segments stay.
After an unclean stop it then recovers the segments from the recovery point on, and drops the segments after a damaged one. No file changes.

Source: Log/LogLoader, LogSegment.recover, Kafka 0.9.0.1 to 4.3.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from exhume.codecs.batches import Batch, BatchWalk, checksum, read_header_fields
from exhume.codecs.columns.blocks import readable
from exhume.codecs.indexes import INDEX_INTERVAL_BYTES, last_indexed_position
from exhume.codecs.kernels import scan
from exhume.codecs.log_directory import LogDirectory, PartitionDirectory, SegmentFile
from exhume.codecs.record_types import CONTROL_TYPES, decode_control_record
from exhume.codecs.records import read_records
from exhume.codecs.wire import Buffer
from exhume.errors import EvidenceError
from exhume.findings import Finding
from exhume.replay.broker_log import (
    DEFAULT_LOAD_BUFFER_BYTES,
    FileWalk,
    ServedSegment,
    Stop,
    StrictLog,
    find_end,
    is_copy,
    is_unclean,
    list_log,
)
from exhume.replay.load_problems import LoadProblem, ProblemKind
from exhume.replay.profiles import BrokerProfile


def open_strictly(partition: PartitionDirectory, stop: Stop, load_buffer_bytes: int = DEFAULT_LOAD_BUFFER_BYTES) -> StrictLog:
    """Return the log that a broker with this load buffer serves after this stop. No file changes."""
    log = list_log(partition, stop)
    log.load_buffer_bytes = load_buffer_bytes
    for segment in log.segments:
        segment.open()
    if is_copy(stop):
        _recover_without_index(log)
    if is_unclean(stop):
        _recover(log, partition.recovery_point or 0)
    find_end(log)
    return log


def start_problem(partition: PartitionDirectory, profile: BrokerProfile, stop: Stop, served: StrictLog | None = None) -> LoadProblem | None:
    """Return the reason why a broker of this release, but not of every one, does not start on this log; None without one.

    A log that is `served` already has the bytes of its segments.
    """
    segments = list_log(partition, stop).segments
    if not segments:
        return None
    if is_unclean(stop) or is_copy(stop):
        recovered = _recovered(segments, partition, stop, served) if profile.refuses_batch_below_segment else ()
        below = next((each.file.path for each in recovered if _is_below_base(each)), None)
        return LoadProblem(ProblemKind.START_BATCH_BELOW_SEGMENT, path=below) if below is not None else None
    if not profile.search_reads_old_batches:
        return None
    newest = segments[-1]
    _open(newest, served)
    position = last_indexed_position(newest.file, newest.end)
    if not _is_unreadable_old_batch(newest, position):
        return None
    return LoadProblem(ProblemKind.START_BATCH_UNREADABLE, path=newest.file.path, byte_position=position)


def _open(segment: ServedSegment, served: StrictLog | None) -> None:
    """Give a segment its bytes: those of the served log, or else of its file."""
    opened = next((each for each in served.segments if each.file.path == segment.file.path), None) if served else None
    if opened is None:
        segment.open()
    else:
        segment.buffer, segment.end = opened.buffer, len(opened.buffer)


def _recovered(
    segments: Sequence[ServedSegment], partition: PartitionDirectory, stop: Stop, served: StrictLog | None
) -> Iterator[ServedSegment]:
    """Yield the segments that a broker checks, opened."""
    for number, segment in enumerate(segments):
        next_base = segments[number + 1].file.base_offset if number + 1 < len(segments) else None
        is_from_recovery_point = next_base is None or next_base > (partition.recovery_point or 0)
        if (is_unclean(stop) and is_from_recovery_point) or (is_copy(stop) and segment.file.index is None):
            _open(segment, served)
            yield segment


def _is_below_base(segment: ServedSegment) -> bool:
    batch = next(iter(FileWalk(segment, 0)), None)
    return batch is not None and batch.last_offset < segment.file.base_offset


def _is_unreadable_old_batch(segment: ServedSegment, position: int) -> bool:
    """Return True if there is a compressed batch of format 0 or 1 here, and its records cannot be read."""
    batch = next(iter(FileWalk(segment, position)), None)
    if batch is None or batch.magic > 1 or not batch.codec:
        return False
    try:
        deque(read_records(segment.buffer, batch), maxlen=0)
    except EvidenceError:
        return True
    return False


def stop_of(directory: LogDirectory, stop: Stop | None) -> Stop:
    """Return this stop; None: the stop that the directory shows, clean if it shows none."""
    return stop or ("unclean" if directory.clean_shutdown is False else "clean")


def recovers_segments(partition: PartitionDirectory, stop: Stop) -> bool:
    """Return True if a broker recovers segments that have no `.index`."""
    return is_copy(stop) and any(segment.file.index is None for segment in list_log(partition, stop).segments)


def missing_index_findings(directories: Iterable[LogDirectory], damaged: Iterable[Finding], stop: Stop | None) -> Iterator[Finding]:
    """Findings about damaged segments without an `.index`: a broker that starts on these files loads less of them.

    `damaged` has the findings about damage.
    """
    paths = {finding.path for finding in damaged if finding.is_damage}
    for directory in directories:
        its_stop = stop_of(directory, stop)
        for partition in directory.partitions if not is_copy(its_stop) else ():
            log = list_log(partition, "clean_copy")
            for segment in log.segments:
                if segment.file.index is None and segment.file.path in paths:
                    segment.open()
                    yield from _missing_index(log, segment, its_stop)


def lose_after(log: StrictLog, index: int, valid: int) -> None:
    """End the log after `valid` bytes of the segment with this number, and add a finding about the dropped records."""
    segment, later = log.segments[index], log.segments[index + 1 :]
    log.losses.append(_loss(log.partition, segment.file, valid, segment.end))
    segment.end = valid
    log.losses += [_loss(log.partition, each.file, 0, each.end) for each in later]
    del log.segments[index + 1 :]


class _IndexGoesBack(Exception):
    """An entry of the new index would go back."""


def _recover_without_index(log: StrictLog) -> None:
    """Check each segment without an `.index`, and cut it at the first damage. Later segments stay."""
    for segment in log.segments:
        if segment.file.index is not None:
            continue
        try:
            valid = _valid_bytes(segment, log)
        except _IndexGoesBack:
            log.refused = LoadProblem(ProblemKind.START_INDEX_GOES_BACK, path=segment.file.path)
        if log.refused:
            return
        if valid < segment.end:
            log.losses.append(_loss(log.partition, segment.file, valid, segment.end, has_index=False))
            segment.end = valid


def _recover(log: StrictLog, recovery_point: int) -> None:
    """Check segments from the recovery point on; the first damage ends the log, and later segments are dropped."""
    for index, segment in enumerate(log.segments):
        if log.refused:
            return
        next_base = log.segments[index + 1].file.base_offset if index + 1 < len(log.segments) else None
        if next_base is not None and next_base <= recovery_point:
            continue
        try:
            valid = _valid_bytes(segment, log)
        except _IndexGoesBack:
            valid = 0
        if not log.refused and valid < segment.end:
            lose_after(log, index, valid)
            return


def _valid_bytes(segment: ServedSegment, log: StrictLog) -> int:
    """Return the bytes of this segment that a recovering broker keeps.

    A kernel checks the batches while they have format 2 and follow one another.

    Raises:
        _IndexGoesBack: an entry of the new index would go back.
    """
    content, rows = readable(segment.buffer), np.empty((scan.BLOCK_BATCHES, scan.COLUMNS), np.int64)
    position, last_offset, count = 0, -1, len(rows)
    while count == len(rows):
        count, next_position = scan.scan(content, position, segment.end, True, rows)
        unsound = np.flatnonzero(rows[:count, scan.IS_SOUND] == 0)
        if len(unsound):
            next_position, count = int(rows[unsound[0], scan.POSITION]), int(unsound[0])
        found = rows[:count]
        offsets = found[:, scan.LAST_OFFSET]
        if count and (offsets[0] <= last_offset or (np.diff(offsets) <= 0).any()):
            # An index entry may go back.
            return _valid_bytes_by_walk(segment, log)
        for marker in found[found[:, scan.ATTRIBUTES] & scan.CONTROL != 0, scan.POSITION].tolist():
            if _has_unknown_control_type(segment.buffer, read_header_fields(segment.buffer, marker)):
                return _valid_bytes_by_walk(segment, log)
        position, last_offset = next_position, int(offsets[-1]) if count else last_offset
    batch = next(iter(FileWalk(segment, position)), None)
    if batch is None or checksum(segment.buffer, batch, batch.end_position) != batch.crc:
        return position
    return _valid_bytes_by_walk(segment, log)


def _valid_bytes_by_walk(segment: ServedSegment, log: StrictLog) -> int:
    """Return the same, batch by batch."""
    last_entry_position = 0
    last_indexed_offset: int | None = None
    walk = FileWalk(segment, 0)
    valid = 0
    for batch in walk:
        if checksum(segment.buffer, batch, batch.end_position) != batch.crc:
            return batch.byte_position
        if batch.is_control and _has_unknown_control_type(segment.buffer, batch):
            log.refused = LoadProblem(ProblemKind.START_CONTROL_TYPE_UNKNOWN, path=segment.file.path, byte_position=batch.byte_position)
            return valid
        if batch.byte_position - last_entry_position > INDEX_INTERVAL_BYTES:
            if last_indexed_offset is not None and batch.last_offset <= last_indexed_offset:
                raise _IndexGoesBack
            last_indexed_offset, last_entry_position = batch.last_offset, batch.byte_position
        valid = batch.end_position
    return valid


def _has_unknown_control_type(buffer: Buffer, batch: Batch) -> bool:
    """Return True if a recovering broker throws on a record of this control batch."""
    try:
        return any(decode_control_record(record.key, None).number not in CONTROL_TYPES for record in read_records(buffer, batch))
    except EvidenceError:
        return False


def _loss(partition: PartitionDirectory, file: SegmentFile, start: int, end: int, *, has_index: bool = True) -> Finding:
    cause = "that is started after an unclean stop" if has_index else "that finds no .index for this segment"
    return Finding(
        code="lost_at_unclean_start" if has_index else "lost_without_index",
        severity="incident",
        sentence=f"a broker {cause} drops {_lost(file, start, end)}",
        replica=partition.replica,
        offsets_partition=partition.offsets_partition,
        path=file.path,
        byte_position=start,
        size_bytes=end - start,
        last_record_offset=max(_last_offsets(file, start, end), default=None),
        remedy="Copy the log directory before the broker is started again" if has_index else "Copy the .index files as well",
    )


def _missing_index(log: StrictLog, segment: ServedSegment, stop: Stop) -> Iterator[Finding]:
    """A finding about the loss of a segment without an `.index`, if a broker loses a whole batch or does not start."""
    file, end = segment.file, segment.end
    try:
        valid = _valid_bytes(segment, log)
    except _IndexGoesBack:
        return
    if not log.refused and _last_offsets(file, valid, end):
        yield Finding(
            code="missing_index_matters",
            severity="warn",
            sentence="this answer is that of a broker with the .index of this segment, which the copy lacks: "
            f"a broker that starts on these files drops {_lost(file, valid, end)}, and keeps later segments",
            replica=log.partition.replica,
            offsets_partition=log.partition.offsets_partition,
            path=file.path,
            byte_position=valid,
            size_bytes=end - valid,
            remedy=f"Use --stop {stop}_copy for the answer of a broker that starts on these files",
        )


def _lost(file: SegmentFile, start: int, end: int) -> str:
    offsets = _last_offsets(file, start, end)
    readable_batches = f", {len(offsets)} readable batches up to offset {max(offsets)} among them" if offsets else ""
    return f"{end - start} bytes of this segment{readable_batches}"


def _last_offsets(file: SegmentFile, start: int, end: int) -> list[int]:
    return [batch.last_offset for batch in BatchWalk(file.open(), start, end)]
