"""Folding the log of one offsets partition, block by block: scan, unfold what is compressed, fold."""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import islice, pairwise
from threading import Event

import numpy as np

from exhume.codecs.batches import CODEC_NAMES, MOST_OFFSETS_IN_SEGMENT
from exhume.codecs.compression import decompress
from exhume.codecs.file_content import looks_like
from exhume.codecs.kernels import scan
from exhume.codecs.kernels.primitives import Bytes, Int64s
from exhume.codecs.kernels.records import LEAST_BYTES
from exhume.codecs.volumes import fetch_pages
from exhume.errors import DecompressionError
from exhume.replay.broker_log import StrictLog
from exhume.replay.profiles import BrokerProfile, JavaProfile, ScalaProfile
from exhume.replay.reading import FastLoad, LoadInputs
from exhume.replay.survivors import fold
from exhume.replay.survivors.joining import joined
from exhume.replay.survivors.settled import Settled, read_topic_ids
from exhume.replay.survivors.tables import LEADER_EPOCH_SEEN, NEXT_OFFSET, STATUS, Tables, drop_old_metadata, new_tables, with_room

_BLOCK_BATCHES = 1024
#: Compressed batches are unfolded and folded in runs of about so many bytes.
_RUN_BYTES = 8 * 1024 * 1024
#: Segments that one thread folds in turn.
_LONGEST_STRETCH = 8
#: Page by page, fetching a mapping takes longer than verifying it.
_FETCHED_BYTES = 16 * 1024 * 1024
_LARGEST = int(np.iinfo(np.int64).max)


def fold_log(log: StrictLog, start_offset: int, profile: BrokerProfile, inputs: LoadInputs, fast: FastLoad) -> Settled | None:
    """What a load of this log by this release comes to, from the batch with `start_offset` on; None where it has to be loaded record by
    record.
    """
    rules = rules_of(profile, inputs)
    rules[fold.START_OFFSET] = start_offset
    segments = [number for number, segment in enumerate(log.segments) if segment.end]
    if not segments:
        return None
    tables = None
    if fast.threads > 1 and len(segments) > 1:
        tables = _fold_side_by_side(log, segments, rules, fast)
    if tables is None or tables.counts[STATUS] == fold.TRANSACTIONAL:
        tables = _fold_in_turn(log, segments, rules, fast)
    # Where the log ends in a gap, much hangs on every batch.
    if tables.counts[STATUS] != fold.DONE or tables.counts[NEXT_OFFSET] != log.end_offset:
        return None
    topic_ids = read_topic_ids(tables)
    return None if topic_ids is None else Settled(log, tables, topic_ids)


def _fold_in_turn(log: StrictLog, segments: Sequence[int], rules: Int64s, fast: FastLoad) -> Tables:
    tables = new_tables(int(rules[fold.SEED]))
    for number in segments:
        tables = _fold_segment(log, number, rules, tables, fast)
        if tables.counts[STATUS] != fold.DONE or fast.is_stopped.is_set():
            break
    return tables


def _fold_side_by_side(log: StrictLog, segments: Sequence[int], rules: Int64s, fast: FastLoad) -> Tables:
    """Stretches of segments on threads, a few ahead of the one that is joined; the first that is not done ends it."""
    part_rules = rules.copy()
    part_rules[fold.IS_PART] = True
    own = replace(fast, is_stopped=Event())
    tables: Tables | None = None
    with ThreadPoolExecutor(fast.threads) as pool:
        coming: deque[Future[Tables]] = deque()
        # Every stretch meets all keys anew: few long ones are less work, as long as no thread is left without one.
        parts = min(len(segments), max(2 * fast.threads, -(-len(segments) // _LONGEST_STRETCH)))
        edges = [len(segments) * number // parts for number in range(parts + 1)]
        waiting = iter([segments[start:end] for start, end in pairwise(edges)])
        try:
            while True:
                for stretch in islice(waiting, fast.threads + 1 - len(coming)):
                    coming.append(pool.submit(_fold_in_turn, log, stretch, part_rules.copy(), own))
                if not coming:
                    assert tables is not None
                    return tables
                part = coming.popleft().result()
                if part.counts[STATUS] != fold.DONE:
                    return part
                both = part if tables is None else joined(tables, part, int(rules[fold.SEED]))
                if both is None:
                    part.counts[STATUS] = fold.OFFSETS_GO_BACK
                    return part
                tables = drop_old_metadata(both)
        finally:
            # Whatever ends this, what is under way ends soon.
            own.is_stopped.set()
            for future in coming:
                future.cancel()


def _fold_segment(log: StrictLog, number: int, rules: Int64s, tables: Tables, fast: FastLoad) -> Tables:
    """These tables, and the segment of this number folded into them; `counts[STATUS]` says whether it was."""
    segment = log.segments[number]
    if looks_like(memoryview(segment.buffer)) is not None:
        return _given_up(tables, fold.ODD_BATCH)
    bound_offsets(rules, log, number)
    buffer = np.frombuffer(segment.buffer, np.uint8)
    # Compiled for one kind of array only.
    buffer.flags.writeable = False
    rows = np.empty((_BLOCK_BATCHES, scan.COLUMNS), np.int64)
    position = fetched = 0
    tables.counts[LEADER_EPOCH_SEEN] = -1
    while position < len(buffer) and not fast.is_stopped.is_set():
        if position >= fetched:
            fetch_pages(memoryview(segment.buffer), position, min(position + _FETCHED_BYTES, len(buffer)))
            fetched = position + _FETCHED_BYTES
        count, end = scan.scan(buffer, position, len(buffer), fast.verify, rows)
        if not count:
            return _given_up(tables, fold.ODD_BATCH)
        try:
            for first, last, data, bodies in runs(buffer, rows, count, fast.cap_bytes):
                tables = with_room_for(tables, rows, first, last, bodies)
                if fold.fold(rows, first, last, data, bodies, number, rules, tables) < last:
                    return tables
        except DecompressionError:
            return _given_up(tables, fold.ODD_BATCH)
        tables = drop_old_metadata(tables)
        fast.advance(end - position)
        position = end
    return tables


def bound_offsets(rules: Int64s, log: StrictLog, number: int) -> None:
    """Set what the segment of this number may hold."""
    base_offset = log.segments[number].file.base_offset
    rules[fold.LOWEST_OFFSET] = base_offset
    rules[fold.BEYOND_OFFSET] = min(base_offset + MOST_OFFSETS_IN_SEGMENT + 1, _LARGEST)
    for later in log.segments[number + 1 : number + 2]:
        rules[fold.BEYOND_OFFSET] = min(rules[fold.BEYOND_OFFSET], later.file.base_offset)


def with_room_for(tables: Tables, rows: Int64s, first: int, last: int, bodies: Int64s) -> Tables:
    """These tables with room for batches `first` to `last`."""
    sizes = bodies[first:last, 1] - bodies[first:last, 0]
    # Whoever counts more records than there is room for is found out soon.
    records = int(np.clip(rows[first:last, scan.RECORD_COUNT], 0, sizes // LEAST_BYTES).sum())
    return with_room(tables, records, int(sizes.sum()), last - first)


def _given_up(tables: Tables, status: int) -> Tables:
    tables.counts[STATUS] = status
    return tables


def runs(buffer: Bytes, rows: Int64s, count: int, cap_bytes: int) -> Iterator[tuple[int, int, Bytes, Int64s]]:
    """The batches in runs, each with the bytes that hold its records, and where in them the records of each batch lie.

    Raises:
        DecompressionError: a batch cannot be unfolded, or to more than `cap_bytes` only.
    """
    bodies = np.empty((count, 2), np.int64)
    bodies[:, 0] = rows[:count, scan.POSITION] + scan.HEADER_BYTES
    bodies[:, 1] = rows[:count, scan.POSITION] + rows[:count, scan.SIZE]
    is_compressed = (rows[:count, scan.ATTRIBUTES] & scan.CODEC != 0) & (rows[:count, scan.RECORD_COUNT] > 0)
    if not is_compressed.any():
        yield 0, count, buffer, bodies
        return
    first = 0
    while first < count:
        last = first + 1
        if not is_compressed[first]:
            while last < count and not is_compressed[last]:
                last += 1
            yield first, last, buffer, bodies
        else:
            pieces = [_unfold(buffer, rows, first, bodies, cap_bytes)]
            size = len(pieces[0])
            while last < count and is_compressed[last] and size < _RUN_BYTES:
                pieces.append(_unfold(buffer, rows, last, bodies, cap_bytes))
                size += len(pieces[-1])
                last += 1
            ends = np.cumsum([len(piece) for piece in pieces])
            bodies[first:last, 1] = ends
            bodies[first:last, 0] = ends - [len(piece) for piece in pieces]
            yield first, last, np.frombuffer(b"".join(pieces), np.uint8), bodies
        first = last


def _unfold(buffer: Bytes, rows: Int64s, number: int, bodies: Int64s, cap_bytes: int) -> bytes:
    codec = int(rows[number, scan.ATTRIBUTES]) & scan.CODEC
    return decompress(codec, buffer[bodies[number, 0] : bodies[number, 1]].data, magic=2, cap_bytes=cap_bytes)


def rules_of(profile: BrokerProfile, inputs: LoadInputs) -> Int64s:
    """The rules of this release for `fold.fold`, with a seed of their own."""
    rules = np.zeros(fold.RULES, np.int64)
    rules[fold.SEED] = secrets.randbits(62)
    for rule, record_type in ((fold.ACCEPTED_0, 0), (fold.ACCEPTED_1, 1), (fold.ACCEPTED_2, 2)):
        if record_type in profile.values:
            known = profile.values[record_type].versions
            accepted = profile.value_versions[record_type]
            rules[rule] = sum(1 << version for version in known if accepted is None or version in accepted)
    rules[fold.TAKES_NULL_PROTOCOL] = True
    rules[fold.MOST_BATCH_BYTES] = _LARGEST
    rules[fold.REFUSED_CODECS] = sum(1 << codec for codec in range(scan.CODEC + 1) if codec not in CODEC_NAMES)
    if isinstance(profile, JavaProfile):
        rules[fold.MARKER_DECIDES] = profile.marker_decides
        rules[fold.TOMBSTONE_VOIDS] = profile.tombstone_drops_pending
    elif isinstance(profile, ScalaProfile):
        rules[fold.TAKES_NULL_PROTOCOL] = profile.null_protocol_is_readable
        if profile.oversized_batch == "stall":
            rules[fold.MOST_BATCH_BYTES] = inputs.load_buffer_bytes
        for codec, name in CODEC_NAMES.items():
            if name in profile.refused_formats:
                rules[fold.REFUSED_CODECS] |= 1 << codec
    return rules
