"""One pass over logs into `TopicCase`: what detectors look at, in memory that grows with keys and group records, not with commits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, pairwise
from sys import intern

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from exhume.analysis.detectors.cases import (
    SILENT_MS,
    SILENT_RATIO,
    Epoch,
    GroupCase,
    GroupRecord,
    LogContext,
    PartitionCase,
    Silence,
    TopicCase,
)
from exhume.analysis.detectors.chunk_tallies import ChunkTransactions, SupersededBytes, UndecodableRecords, may_be_uncleaned
from exhume.analysis.detectors.commit_loops import loops
from exhume.analysis.detectors.commit_loops.columns import CommitColumn, GroupColumn, SilenceColumn
from exhume.analysis.detectors.commit_rows import NameNumbers, readable
from exhume.analysis.detectors.group_phases import GroupPhases
from exhume.analysis.detectors.key_columns import KeyColumns
from exhume.analysis.detectors.key_histories import KeyHistories, Recent, oldest_survivors
from exhume.analysis.detectors.keys import GroupKeys
from exhume.analysis.detectors.partition_sightings import PartitionSightings, times_of
from exhume.analysis.group_timeline import decoded_key
from exhume.analysis.log_extent import ExtentReader, ExtentReaders, LogExtent, LogExtents
from exhume.analysis.member_tables import MemberTable, MemberTableReader
from exhume.analysis.number_columns import NONE, Int64s, numbers_of, or_none, rows_where
from exhume.analysis.removals.tombstones import OffsetTombstone, OffsetTombstones
from exhume.arrow_rows import Origin
from exhume.codecs.columns.careful_batches import CRC_STATUSES
from exhume.codecs.columns.following import Following
from exhume.codecs.columns.record_blocks import RecordBlock
from exhume.codecs.kernels import records, scan
from exhume.codecs.log_directory import PartitionDirectory
from exhume.codecs.log_pass import LogCollector, collect
from exhume.codecs.record_chunks import RecordChunk, chunk_of
from exhume.codecs.record_types import GROUP_METADATA, group_family, role_of
from exhume.codecs.segment_reader import SegmentReader
from exhume.gc_control import give_back_freed_memory, infrequent_gc
from exhume.replay.topic_names import TopicNames

#: Commits are followed in blocks of so many or a few more.
_BLOCK_ROWS = 1 << 14
_MOST_SILENCES = 200
#: The number of keys of all logs that are made once and kept; with more, they are made group by group on demand.
_FEW_KEYS = 50_000
_OTHER_COLUMNS = ["record_offset", "timestamp_ms", "byte_position", "partition_leader_epoch", "path", "key", "value"]


@infrequent_gc()
def condense(reader: SegmentReader, names: TopicNames | None = None, *, commits_of: Collection[str] | None = None) -> TopicCase:
    """Return the case of the logs of this reader; `names` are the names of topic ids.

    With `commits_of`, the case has only the commits of these groups, which is much faster. It has the tombstones of all groups: offsets
    of several groups may be removed at one time. It lacks the values that tombstones of other groups removed.
    """
    extents = ExtentReaders()
    # Half of the work makes the tables of the records, the other half takes them.
    with Following(reader.options.most_threads) as following:
        condenser = Condenser(names, commits_of=commits_of, following=following)
        collect(reader, [extents, condenser])
    return condenser.case(extents.extents(reader.evidence.partitions))


class Condenser(LogCollector):
    """Collect the case of all logs of a pass. `following` may do its work on another thread: wait for it before `case`."""

    def __init__(
        self, names: TopicNames | None = None, *, commits_of: Collection[str] | None = None, following: Following | None = None
    ) -> None:
        self._names = names if names is not None else TopicNames()
        self._commits_of = commits_of
        self._following = following or Following(1)
        self._logs: dict[Origin, PartitionCondenser] = {}

    def of(self, partition: PartitionDirectory) -> Iterable[LogCollector]:  # noqa: ARG002
        """Return this collector: it reads every log."""
        return [self]

    def add_records(self, block: RecordBlock) -> None:
        block = _undamaged(block)
        if not len(block):
            return
        chunk = chunk_of(block)
        origin = (chunk.partition.replica, chunk.partition.offsets_partition)
        if origin not in self._logs:
            self._logs[origin] = PartitionCondenser(chunk.partition, self._names)
            if self._commits_of is None and may_be_uncleaned(chunk.partition):
                self._logs[origin].superseded = SupersededBytes(chunk.partition)
        log = self._logs[origin]
        if log.superseded is not None:
            # The sizes come from the block, whose memory the next block fills again.
            sizes = chunk.sizes()
            chunk = replace(chunk, sizes=lambda: sizes)
        self._following.do(partial(log.take, chunk, log.members_of(chunk), self._commits_of))

    def case(self, extents: LogExtents) -> TopicCase:
        """Return the case; `extents` are those of the logs."""
        is_kept = sum(log.key_count for log in self._logs.values()) <= _FEW_KEYS
        case = TopicCase([log.finish(extents[origin], is_kept=is_kept) for origin, log in self._logs.items()])
        tombstones = OffsetTombstones(each for partition in case.partitions for each in partition.tombstones)
        sightings = PartitionSightings(*(partition.sightings for partition in case.partitions))
        for partition in case.partitions:
            partition.log_context.tombstones, partition.log_context.sightings = tombstones, sightings
        if not is_kept:
            # The blocks of the pass are freed, between the histories of the keys.
            give_back_freed_memory()
        return case


class _Activity:
    """When each group, by its number, committed at all."""

    def __init__(self) -> None:
        #: A row for each group, as `GroupColumn` has its columns.
        self._groups = np.empty((0, len(GroupColumn)), np.int64)
        self.intervals = Recent()
        self.silences: defaultdict[int, list[Silence]] = defaultdict(list)

    def make_room(self, count: int) -> None:
        """Let there be so many groups."""
        self.intervals.make_room(count)
        room = len(self._groups)
        if count > room:
            self._groups = np.concatenate([self._groups, np.full((max(count, 2 * room) - room, len(GroupColumn)), NONE, np.int64)])

    def take(self, rows: Int64s, count: int) -> None:
        """Add these rows, in log order; groups have numbers below `count`."""
        self.make_room(count)
        rows = np.ascontiguousarray(rows)
        intervals, silent = np.empty(rows.shape[1], np.int64), np.empty((rows.shape[1], len(SilenceColumn)), np.int64)
        met = loops.update_groups(rows, SILENT_MS, self._groups, intervals, silent)
        usual = self.intervals.judge(rows[CommitColumn.GROUP], intervals, SILENT_MS - 1, SILENT_RATIO)
        for row, before, offset_before in silent[:met].tolist():
            silences = self.silences[int(rows[CommitColumn.GROUP, row])]
            if not np.isnan(usual[row]) and len(silences) < _MOST_SILENCES:
                offset, time = int(rows[CommitColumn.OFFSET, row]), int(rows[CommitColumn.TIME, row])
                silences.append(Silence(offset_before, before, offset, time, float(usual[row])))

    def times(self, number: int) -> tuple[int | None, int | None]:
        """Those of the first and of the last commit of this group; None where it never committed."""
        first, last = self._groups[number, [GroupColumn.FIRST, GroupColumn.LAST]].tolist()
        return or_none(first), or_none(last)


class PartitionCondenser:
    """One offsets partition of one replica on its way past."""

    def __init__(self, directory: PartitionDirectory, names: TopicNames) -> None:
        self._directory = directory
        self.log_context = LogContext(directory.replica, directory.offsets_partition, ExtentReader().extent(directory), names=names)
        self.log_context.topic_id = directory.topic_id
        self.log_context.first_segment_offset = next((segment.base_offset for segment in directory.read_segments), None)
        self._names = NameNumbers()
        self._lives = KeyHistories(self._names)
        self._group_phases = GroupPhases()
        self._activity = _Activity()
        self._undecodable_records = UndecodableRecords()
        self._member_tables = MemberTableReader()
        #: The time of the last record so far.
        self._last_time_ms: int | None = None
        #: Set for logs that a detector needs it for.
        self.superseded: SupersededBytes | None = None
        self._records: defaultdict[int, list[GroupRecord]] = defaultdict(list)
        #: The keys of these records, and the numbers of the groups that they name.
        self._groups_of_keys: dict[bytes, tuple[bytes, int | None]] = {}
        #: Commits, and their places in the log, since the last block.
        self._waiting: list[tuple[Int64s, Int64s]] = []
        self._waiting_rows = 0
        self._next_place = 0
        #: Commits of open transactions so far.
        self._staged = np.empty((len(CommitColumn), 0), np.int64)
        self._transactions = ChunkTransactions()

    def members_of(self, chunk: RecordChunk) -> list[MemberTable | None]:
        """Return the members of each record of a classic group. Call it for each chunk, in order."""
        return self._member_tables.read(chunk.groups)

    def take(self, chunk: RecordChunk, members: Sequence[MemberTable | None], commits_of: Collection[str] | None = None) -> None:
        """Add the next records, with their `members_of`; of commits those of these groups, and tombstones, where some are named."""
        commits, others = chunk.commits, chunk.others
        self._directory = chunk.partition
        self._note_place(commits, others)
        self._transactions.take(chunk, self._next_place)
        places, self._next_place = chunk.commit_rows + self._next_place, self._next_place + len(chunk)
        # Most chunks have no control record: then nothing is copied.
        others, _ = rows_where(pc.invert(others["is_control"]), others, chunk.other_rows)
        if commits_of is not None:
            is_of = pc.is_in(commits["group"], value_set=pa.array(sorted(commits_of), pa.string()))
            commits, places = rows_where(pc.or_kleene(is_of, commits["is_tombstone"]), commits, places)
        read, places = rows_where(readable(commits), commits, places)
        rows = self._names.rows(read)
        if self.superseded is not None and not self.superseded.take(chunk, rows[CommitColumn.KEY]):
            self.superseded = None
        self._undecodable_records.take(commits, others)
        self._note_group_records(others, members)
        rows[CommitColumn.PHASE], rows[CommitColumn.STEPS] = self._group_phases.of(
            rows[CommitColumn.GROUP], rows[CommitColumn.OFFSET], len(self._names.groups)
        )
        self._waiting.append((rows, places))
        self._waiting_rows += rows.shape[1]
        if self._waiting_rows >= _BLOCK_ROWS:
            self._settle()

    def _note_place(self, commits: pa.RecordBatch, others: pa.RecordBatch) -> None:
        """Count these records, and note their times and leader epochs."""
        log_context = self.log_context
        count = commits.num_rows + others.num_rows
        if not count:
            return
        offsets, times, epochs = (
            np.concatenate([numbers_of(table[name], NONE) for table in (commits, others)])
            for name in ("record_offset", "timestamp_ms", "partition_leader_epoch")
        )
        if not log_context.epochs or not (epochs == log_context.epochs[-1].leader_epoch).all():
            self._note_epochs(offsets, times, epochs)
        self._last_time_ms = or_none(int(times[offsets.argmax()]))
        log_context.records += count
        known = times[times != NONE]
        log_context.without_time += count - len(known)
        if len(known):
            first, last = int(known.min()), int(known.max())
            log_context.first_timestamp_ms = first if log_context.first_timestamp_ms is None else min(first, log_context.first_timestamp_ms)
            log_context.last_timestamp_ms = last if log_context.last_timestamp_ms is None else max(last, log_context.last_timestamp_ms)

    def _note_epochs(self, offsets: Int64s, times: Int64s, epochs: Int64s) -> None:
        order = np.argsort(offsets, kind="stable")
        epochs, times, offsets = epochs[order], times[order], offsets[order]
        kept = self.log_context.epochs
        changed = np.diff(epochs, prepend=kept[-1].leader_epoch if kept else epochs[0] - 1) != 0
        for place in np.flatnonzero(changed).tolist():
            before_ms = or_none(int(times[place - 1])) if place else self._last_time_ms
            kept.append(Epoch(int(epochs[place]), int(offsets[place]), or_none(int(times[place])), before_ms))

    def _note_group_records(self, others: pa.RecordBatch, of_classic: Iterable[MemberTable | None]) -> None:
        types, of_classic = others["record_type"].to_pylist(), iter(of_classic)
        columns = [others[name].to_pylist() for name in _OTHER_COLUMNS]
        for record_type, *row in zip(types, *columns, strict=True):
            member_table = next(of_classic) if record_type == GROUP_METADATA else None
            if group_family(record_type) is None:
                continue
            offset, time, position, leader_epoch, path, key, value = row
            if key not in self._groups_of_keys:
                name = _group_of(key)
                self._groups_of_keys[key] = key, None if name is None else self._names.group(name)
            # Equal keys and paths are one object: a group has many records.
            key, group = self._groups_of_keys[key]
            if group is None:
                continue
            phase, epoch = self._group_phases.take(group, offset, key, value, member_table)
            size_bytes = 0 if value is None else len(value)
            kept = value if member_table is None else b""
            place = (offset, time, position, leader_epoch, intern(path))
            self._records[group].append(GroupRecord(*place, record_type, key, kept, size_bytes, phase, epoch, member_table))

    def _settle(self) -> None:
        """Judge what is waiting, but for commits of transactions that may still end."""
        # Commits staged earlier come before all commits of this block.
        earlier = (self._staged, np.full(self._staged.shape[1], NONE, np.int64))
        waiting = [earlier, *self._waiting] if self._staged.shape[1] or not self._waiting else self._waiting
        rows, places = waiting[0] if len(waiting) == 1 else (np.concatenate(columns, axis=-1) for columns in zip(*waiting, strict=True))
        markers = self._transactions.taken_markers()
        self._waiting, self._waiting_rows, self._next_place = [], 0, 0
        self._activity.take(rows[:, self._staged.shape[1] :], len(self._names.groups))
        is_staged = (rows[CommitColumn.IS_STAGED] != 0) & (rows[CommitColumn.PRODUCER] != NONE)
        if not is_staged.any():
            self._lives.take(rows)
            self._staged = rows[:, :0]
            return
        of_transactions, others = np.flatnonzero(is_staged), np.flatnonzero(~is_staged)
        rows_staged = rows[:, of_transactions]
        ending = markers.ended(rows_staged[CommitColumn.PRODUCER], places[of_transactions])
        is_committed = (ending != NONE) & (markers.is_commit[ending] != 0) if len(markers) else ending != NONE
        is_aborted = (ending != NONE) & ~is_committed
        self._staged = rows_staged[:, ending == NONE]
        if is_aborted.any():
            of = ending[is_aborted]
            self._lives.drop(rows_staged[:, is_aborted], markers.record_offset[of].tolist(), markers.timestamp_ms[of].tolist())
        committed = rows_staged[:, is_committed]
        committed[CommitColumn.SETTLED] = markers.record_offset[ending[is_committed]]
        settled = np.concatenate([rows[:, others], committed], axis=1)
        self._lives.take(settled[:, np.argsort(settled[CommitColumn.SETTLED], kind="stable")])

    @property
    def key_count(self) -> int:
        """The number of keys so far."""
        return self._names.key_count

    def finish(self, extent: LogExtent, *, is_kept: bool) -> PartitionCase:
        """Return the case of this partition, whose log has this extent. `is_kept`: what is made of its keys is made once."""
        self.log_context.extent = extent
        self._settle()
        none = [NONE] * self._staged.shape[1]
        self._lives.drop(self._staged, none, none)
        self._lives.cut_room()
        opened = self._transactions.open_transactions(chain.from_iterable(self._lives.dropped.values()), self._directory)
        group_of_key = self._names.groups_of_keys()
        order = np.argsort(group_of_key, kind="stable")
        ends = np.searchsorted(group_of_key[order], np.arange(len(self._names.groups) + 1))
        names = [*self._names.groups]
        self._activity.make_room(len(names))
        usual = self._activity.intervals.medians(np.arange(len(names)))
        columns = KeyColumns(self._lives, order, is_kept=is_kept)
        spans = [slice(start, end) for start, end in pairwise(ends.tolist())]
        groups = [self._group(name, number, GroupKeys(columns, name, spans[number]), usual) for number, name in enumerate(names)]
        self.log_context.survivors = oldest_survivors(self._lives)
        undecodable_records, topics_by_id = self._undecodable_records.found(), self._names.topics_by_id
        uncleaned = None if self.superseded is None else self.superseded.result()
        marker_count, late_markers = self._transactions.marker_count, self._transactions.late_markers
        tombstones = self._tombstones()
        return PartitionCase(
            self.log_context,
            groups,
            tombstones,
            opened,
            marker_count,
            late_markers,
            undecodable_records,
            topics_by_id,
            uncleaned,
            times_of(self._lives),
        )

    def _tombstones(self) -> list[OffsetTombstone]:
        """When offsets were removed."""
        removals, partition = self._lives.removals, self.log_context.offsets_partition
        groups, topics = [*self._names.groups], self._names.topics()
        keys = np.array([*removals], np.int64)
        group_of, (topic_of, _) = self._names.groups_of_keys()[keys].tolist(), self._names.topics_and_partitions(keys)
        group_tombstones = {
            (group, record.byte_position)
            for group in {*group_of}
            for record in self._records.get(group, ())
            if record.value is None and role_of(record.record_type) == "group"
        }
        return [
            OffsetTombstone(
                timestamp_ms=removal.timestamp_ms,
                group=groups[group],
                topic=topics[topic],
                offsets_partition=partition,
                record_offset=removal.record_offset,
                is_with_group=(group, removal.byte_position) in group_tombstones,
            )
            for group, topic, of_key in zip(group_of, topic_of.tolist(), removals.values(), strict=True)
            for removal in of_key
            if removal.timestamp_ms is not None
        ]

    def _group(self, name: str, number: int, keys: GroupKeys, usual_intervals_ms: Sequence[float | None]) -> GroupCase:
        activity = self._activity
        first_ms, last_ms = activity.times(number)
        return GroupCase(
            group=name,
            log_context=self.log_context,
            keys=keys,
            records=self._records.get(number, []),
            first_commit_ms=first_ms,
            last_commit_ms=last_ms,
            last_intervals_ms=activity.intervals.last(number),
            usual_interval_ms=usual_intervals_ms[number],
            silences=activity.silences.get(number, []),
            is_kept=keys.is_kept,
        )


def _undamaged(block: RecordBlock) -> RecordBlock:
    """Return the records of this block without those of batches with a wrong checksum, or that are cut: no rule may rest on them."""
    # Only the careful reader reads such batches.
    if block.batches.careful is None or not len(block):
        return block
    damaged = [CRC_STATUSES.index("mismatch"), CRC_STATUSES.index("unreadable")]
    is_damaged = np.isin(block.batches.columns[scan.IS_SOUND], damaged)[block.records[records.BATCH]]
    return block.only(np.flatnonzero(~is_damaged)) if is_damaged.any() else block


def _group_of(key: bytes) -> str | None:
    """The group that this key names; None where it cannot be read."""
    group = decoded_key(key).key.get("group")
    return group if isinstance(group, str) else None
