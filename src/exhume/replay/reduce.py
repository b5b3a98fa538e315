"""Compaction that is safe for a coordinator: fewer batches that load to the same state.

    load(reduce(A) ++ reduce(B)) == load(A ++ B)      for every cut, and for every release of `is_reducible`

A reduced stretch is a part of its log, never more: some records of some batches, in their order, under their own headers, and beside
each batch a count of what was dropped in front of it. A record is dropped only for a reason that holds in every reducible release, with
a witness that stays; so reducing again finds the same reasons, and `reduce` is idempotent and associative, record for record.

docs/reduction.md says what stays, and why.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

from exhume.codecs.batch_format import NO_PRODUCER_ID
from exhume.codecs.batches import first_offset as first_offset_of
from exhume.codecs.record_types import ABORT, COMMIT, decode_control_record
from exhume.codecs.records import Record
from exhume.replay.broker_log import LoadedBatch
from exhume.replay.partition_state import OffsetKey
from exhume.replay.profiles import BrokerProfile, JavaProfile, ScalaProfile
from exhume.replay.reduce_facts import ClassicValue, OffsetWrite, Passed, ReducedBatch, RunningFacts, read_facts
from exhume.replay.verdict import LoadAborted

_BATCHES_BETWEEN_SWEEPS = 4096


class NotReducible(Exception):
    """These records, or this release, must be loaded from the whole log. `reason` says why."""

    def __init__(self, reason: str, *, record_offset: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.record_offset = record_offset


def why_not_reducible(profile: BrokerProfile, *, ends_in_gap: bool = False) -> str | None:
    """Why loads of this release must read the whole log; None where they need not.

    `ends_in_gap`: the log end lies behind the end of the last batch.
    """
    if isinstance(profile, ScalaProfile):
        if profile.read_bound == "high_watermark":
            return f"{profile.name} tests the high watermark for each chunk that it reads"
        if profile.install == "per_chunk":
            return f"{profile.name} installs groups behind each chunk that it reads"
    elif isinstance(profile, JavaProfile) and ends_in_gap and profile.commit_interval is not None:
        return f"the log ends in a gap, and where the last snapshot of {profile.name} lies hangs on the end of every batch"
    return None


def is_reducible(profile: BrokerProfile) -> bool:
    """True where a load of this release may read reduced stretches; `why_not_reducible` has the reason where not."""
    return why_not_reducible(profile) is None


@dataclass(frozen=True, slots=True)
class Reduced:
    """A stretch of one offsets partition, reduced. `ending` is what the log's reader raised behind its last batch, if it did."""

    batches: tuple[ReducedBatch, ...]
    ending: LoadAborted | None = None
    #: No load comes behind this stretch: its last batch cannot be read, or the log's reader gave up.
    is_end_of_loads: bool = False

    @property
    def next_offset(self) -> int | None:
        """The record offset behind the last batch; None for a stretch without batches."""
        return self.batches[-1].last_offset + 1 if self.batches else None

    @property
    def record_count(self) -> int:
        """How many records the stretch had before."""
        return sum(batch.record_count + batch.passed.records for batch in self.batches)

    @property
    def kept_count(self) -> int:
        """How many records are left. A batch that cannot be read counts as one."""
        return sum(_count(batch) for batch in self.batches)

    def log(self) -> Iterator[LoadedBatch]:
        """The batches for a load, each to be read once.

        Raises:
            LoadAborted: behind the last one, where the log's own reader did.
        """
        for batch in self.batches:
            yield ReducedBatch(batch.path, batch.batch, batch.buffer, batch.read, record_count=batch.record_count, passed=batch.passed)
        if self.ending is not None:
            raise self.ending


def load_order(stretches: Iterable[Reduced], profile: BrokerProfile, end_offset: int) -> Iterator[LoadedBatch]:
    """What a load of this release reads of stretches that follow one another; `end_offset` is the log's end.

    Raises:
        NotReducible: the release, or this log, has to be loaded whole. Raised before the first batch comes back.
        LoadAborted: as `Reduced.log`.
    """
    parts: list[Reduced] = []
    next_offset = None
    is_complete = True
    for part in stretches:
        parts.append(part)
        if part.batches:
            _check_order(next_offset, part.batches[0].passed.first_offset, part.batches[0])
            next_offset = part.next_offset
        if part.is_end_of_loads:
            is_complete = False
            break
    ends_in_gap = is_complete and next_offset is not None and next_offset < end_offset
    reason = why_not_reducible(profile, ends_in_gap=ends_in_gap)
    if reason is not None:
        raise NotReducible(reason)
    return chain.from_iterable(part.log() for part in parts)


def merge(stretches: Iterable[Reduced]) -> Reduced:
    """Stretches that follow one another as one: what reducing all their records at once gives.

    Raises:
        NotReducible: record offsets go back from one to the next.
    """
    return reduce(chain.from_iterable(stretch.log() for stretch in stretches))


def reduce(batches: Iterable[LoadedBatch]) -> Reduced:
    """The reduction of a stretch of one offsets partition; batches may be reduced ones. Meant for strict loads.

    Raises:
        NotReducible: record offsets go back in it: which commit wins, and whether a load is refused, then hangs on every batch.
    """
    reducer = _Reducer()
    try:
        for batch in batches:
            if not reducer.add(batch):
                return reducer.finish(is_end_of_loads=True)
    except LoadAborted as ending:
        return reducer.finish(ending=ending, is_end_of_loads=True)
    return reducer.finish()


def _count(batch: ReducedBatch) -> int:
    try:
        return sum(1 for _ in LoadedBatch(batch.path, batch.batch, batch.buffer, batch.read).records())
    except LoadAborted:
        return 1


def _check_order(next_offset: int | None, first_offset: int | None, batch: LoadedBatch) -> None:
    first_offset = first_offset_of(batch.batch) if first_offset is None else first_offset
    if next_offset is not None and (first_offset < next_offset or batch.last_offset < next_offset):
        raise NotReducible(f"record offsets go back from {next_offset} to {first_offset}", record_offset=first_offset)


@dataclass(slots=True, eq=False)
class _Draft:
    """A batch on its way through: what is kept of it so far, by its place in the batch."""

    source: LoadedBatch
    passed: Passed
    record_count: int = 0
    kept: dict[int, Record] = field(default_factory=dict)
    #: Stays even when no record does: its header can end a load.
    has_header_to_keep: bool = False
    #: Stays with everything: a control batch that is not a plain marker, a batch that cannot be read.
    is_whole: bool = False

    @property
    def is_empty(self) -> bool:
        return not (self.kept or self.has_header_to_keep or self.is_whole)

    def left_behind(self) -> Passed:
        """What is to be said of this batch when it is dropped."""
        batch = self.source.batch
        return self.passed + Passed(self.record_count, batch.size_bytes, first_offset_of(batch), batch.last_offset)

    def finished(self, *, keeps_all: bool) -> ReducedBatch:
        source = self.source
        records = tuple(self.kept.values())
        read = source.read if keeps_all else (lambda: records)
        return ReducedBatch(source.path, source.batch, source.buffer, read, record_count=self.record_count, passed=self.passed)


@dataclass(slots=True, eq=False)
class _Transaction:
    """What a producer wrote since its last marker in this stretch. The marker goes with the last of its records, unless it is the first."""

    is_first: bool
    kept_records: int = 0
    staged: list[tuple[OffsetKey, _Entry]] = field(default_factory=list)
    marker: _Entry | None = None

    def forget_one(self) -> None:
        self.kept_records -= 1
        self.drop_marker_if_idle()

    def drop_marker_if_idle(self) -> None:
        if self.marker is not None and not self.kept_records and not self.is_first:
            self.marker.drop()


@dataclass(slots=True, eq=False)
class _Entry:
    """One record that is kept so far."""

    draft: _Draft
    index: int
    transaction: _Transaction | None
    #: Its place in the order of the stretch.
    sequence: int
    #: Is the first to say something that a load could end at, learn or create a group from.
    is_pinned: bool

    def drop(self) -> None:
        if not self.is_pinned and self.draft.kept.pop(self.index, None) is not None and self.transaction is not None:
            self.transaction.forget_one()


class _Reducer:
    """One reduction in progress: `add` each batch in log order, then `finish`."""

    def __init__(self) -> None:
        self._drafts: list[_Draft] = []
        self._next_sweep = _BATCHES_BETWEEN_SWEEPS
        self._next_offset: int | None = None
        self._sequence = 0
        self._facts = RunningFacts()
        #: Plain writes of a key that nothing overrides yet: its value, its tombstone.
        self._values: dict[OffsetKey, _Entry] = {}
        self._tombstones: dict[OffsetKey, _Entry] = {}
        #: Commits of transactions that a marker installed, of which one is the key's offset.
        self._installed: dict[OffsetKey, list[_Entry]] = {}
        self._transactions: dict[int, _Transaction] = {}
        #: The last record of each group that is neither offset nor anything that could change the group's kind.
        self._classic_values: dict[str, _Entry] = {}

    def add(self, batch: LoadedBatch) -> bool:
        """Take in one batch. False where it cannot be read: no load comes behind it."""
        passed = batch.passed if isinstance(batch, ReducedBatch) else Passed()
        _check_order(self._next_offset, passed.first_offset, batch)
        draft = _Draft(batch, passed)
        self._drafts.append(draft)
        draft.has_header_to_keep = self._facts.is_new_to_readers(batch.batch.codec, batch.batch.size_bytes)
        try:
            records = list(batch.records())
        except LoadAborted:
            draft.is_whole = True
            if not batch.is_control:
                return False
            # The Scala coordinator reads the first record of a control batch only, and may never meet the damage.
            records = []
        draft.record_count = batch.records_read
        self._check_records(batch, records)
        self._next_offset = batch.last_offset + 1
        if batch.is_control:
            self._add_control_batch(draft, records)
        else:
            for index, record in enumerate(records):
                self._add_record(draft, index, record)
        if len(self._drafts) >= self._next_sweep:
            self._sweep()
        return True

    def _check_records(self, batch: LoadedBatch, records: list[Record]) -> None:
        previous = self._next_offset - 1 if self._next_offset is not None else None
        for record in records:
            if (previous is not None and record.record_offset <= previous) or record.record_offset > batch.last_offset:
                raise NotReducible(
                    f"record offset {record.record_offset} goes back, or lies behind its batch", record_offset=record.record_offset
                )
            previous = record.record_offset

    def _entry(self, draft: _Draft, index: int, record: Record, *, is_pinned: bool = False) -> _Entry:
        batch = draft.source
        transaction = None
        if not batch.is_control and (batch.is_transactional or batch.producer_id != NO_PRODUCER_ID):
            transaction = self._transactions.setdefault(batch.producer_id, _Transaction(is_first=True))
            transaction.kept_records += 1
        draft.kept[index] = record
        self._sequence += 1
        return _Entry(draft, index, transaction, self._sequence, is_pinned)

    # Records

    def _add_record(self, draft: _Draft, index: int, record: Record) -> None:
        facts = read_facts(record)
        is_news = self._facts.is_news(facts)
        entry = self._entry(draft, index, record, is_pinned=is_news)
        if isinstance(facts, ClassicValue):
            superseded = self._classic_values.get(facts.group)
            if superseded is not None:
                superseded.drop()
            self._classic_values[facts.group] = entry
        elif isinstance(facts, OffsetWrite):
            self._add_offset(facts, entry, draft.source)
        elif facts.group is not None:
            self._classic_values.pop(facts.group, None)

    def _add_offset(self, write: OffsetWrite, entry: _Entry, batch: LoadedBatch) -> None:
        by_bit, by_producer = batch.is_transactional, batch.producer_id != NO_PRODUCER_ID
        if not by_bit and not by_producer:
            self._override(write.key, entry, is_tombstone=write.is_tombstone)
        elif by_bit and by_producer and not write.is_tombstone:
            assert entry.transaction is not None
            entry.transaction.staged.append((write.key, entry))
        else:
            # One coordinator takes it for plain, another for staged: whatever is staged for the key has to stay beside it.
            for transaction in self._transactions.values():
                transaction.staged = [(key, staged) for key, staged in transaction.staged if key != write.key]

    def _override(self, key: OffsetKey, write: _Entry, *, is_tombstone: bool) -> None:
        """A plain write decides what the key holds, whatever was there; what a tombstone takes besides, only another one outdoes."""
        for superseded in (self._values.pop(key, None), *self._installed.pop(key, ())):
            if superseded is not None:
                superseded.drop()
        if is_tombstone:
            superseded = self._tombstones.get(key)
            if superseded is not None:
                superseded.drop()
            self._tombstones[key] = write
        else:
            self._values[key] = write

    # Transactions

    def _add_control_batch(self, draft: _Draft, records: list[Record]) -> None:
        producer_id = draft.source.producer_id
        outcome = _outcome(records)
        if outcome is None or producer_id == NO_PRODUCER_ID:
            # Not what a transaction coordinator writes, or not read alike: it stays, and so does what it may have ended.
            draft.is_whole = True
            open_before = self._transactions.get(producer_id, _Transaction(is_first=True))
            self._transactions[producer_id] = _Transaction(open_before.is_first, kept_records=1)
            return
        closed = self._transactions.get(producer_id) or _Transaction(is_first=True)
        self._transactions[producer_id] = _Transaction(is_first=False)
        closed.marker = self._entry(draft, 0, records[0])
        staged, closed.staged = closed.staged, []
        last_of_key = dict(staged) if outcome == COMMIT else {}
        for key, commit in staged:
            if last_of_key.get(key) is not commit:
                commit.drop()
        for key, commit in last_of_key.items():
            self._install(key, commit)
        closed.drop_marker_if_idle()

    def _install(self, key: OffsetKey, commit: _Entry) -> None:
        """A commit that a marker installs outdoes every earlier one, by the order of commits and by that of markers."""
        value = self._values.get(key)
        if value is not None and value.sequence < commit.sequence:
            self._values.pop(key).drop()
        present = self._installed.setdefault(key, [])
        for superseded in [entry for entry in present if entry.sequence < commit.sequence]:
            present.remove(superseded)
            superseded.drop()
        present.append(commit)

    # The end

    def _sweep(self) -> None:
        """Fold batches of which nothing is left into what lies in front of the next one."""
        swept: list[_Draft] = []
        passed = Passed()
        last = self._drafts[-1]
        for draft in self._drafts:
            if draft.is_empty and draft is not last:
                passed += draft.left_behind()
            else:
                draft.passed = passed + draft.passed
                passed = Passed()
                swept.append(draft)
        self._drafts = swept
        self._next_sweep = 2 * len(swept) + _BATCHES_BETWEEN_SWEEPS

    def finish(self, *, ending: LoadAborted | None = None, is_end_of_loads: bool = False) -> Reduced:
        """What is left. The last batch stays, as it says where the stretch ends; a marker stays whole, since empty it would be another."""
        if self._drafts:
            self._sweep()
        batches = [draft.finished(keeps_all=draft.is_whole or (draft.source.is_control and not draft.kept)) for draft in self._drafts]
        return Reduced(tuple(batches), ending, is_end_of_loads)


def _outcome(records: list[Record]) -> int | None:
    """COMMIT or ABORT where this control batch is a marker that every release reads alike; else None."""
    if len(records) != 1:
        return None
    control = decode_control_record(records[0].key, None)
    is_plain = not control.errors and control.key.get("version", -1) >= 0 and control.number in (ABORT, COMMIT)
    return control.number if is_plain else None
