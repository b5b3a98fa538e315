"""Compaction that is safe for a coordinator: fewer batches that load to the same state.

    load(reduce(A) ++ reduce(B)) == load(A ++ B)      for every cut, and for every release of `is_reducible`

A reduced stretch is a part of its log, never more: some records of some batches, in their order, under their own headers, and beside each
batch a count of the records that were dropped before it. A record is dropped only for a reason that holds in every reducible release, and
the record that is the reason stays. So reducing again finds the same reasons: `reduce` is idempotent and associative, record for record.

docs/reduction.md gives the records that stay, with reasons.
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
    """Return the reason why loads of this release must read the whole log; None if they need not.

    `ends_in_gap`: the log end is after the end of the last batch.
    """
    if isinstance(profile, ScalaProfile):
        if profile.read_bound == "high_watermark":
            return f"{profile.name} tests the high watermark for each chunk that it reads"
        if profile.install == "per_chunk":
            return f"{profile.name} installs groups after each chunk that it reads"
    elif isinstance(profile, JavaProfile) and ends_in_gap and profile.commit_interval is not None:
        return f"the log ends in a gap, and the offset of the last snapshot of {profile.name} depends on the end of every batch"
    return None


def is_reducible(profile: BrokerProfile) -> bool:
    """True if a load of this release may read reduced stretches; `why_not_reducible` returns the reason if not."""
    return why_not_reducible(profile) is None


@dataclass(frozen=True, slots=True)
class Reduced:
    """A reduced stretch of one offsets partition. `ending` is the error that the reader of the log raised after the last batch."""

    batches: tuple[ReducedBatch, ...]
    ending: LoadAborted | None = None
    #: True if every load ends in this stretch: its last batch cannot be read, or the reader of the log gave up.
    is_end_of_loads: bool = False

    @property
    def next_offset(self) -> int | None:
        """The record offset after the last batch; None for a stretch without batches."""
        return self.batches[-1].last_offset + 1 if self.batches else None

    @property
    def record_count(self) -> int:
        """The number of records before the reduction."""
        return sum(batch.record_count + batch.passed.records for batch in self.batches)

    @property
    def kept_count(self) -> int:
        """The number of records that are left. A batch that cannot be read counts as one."""
        return sum(_count(batch) for batch in self.batches)

    def log(self) -> Iterator[LoadedBatch]:
        """Yield the batches for a load, each to be read once.

        Raises:
            LoadAborted: after the last batch, if the reader of the log raised it there.
        """
        for batch in self.batches:
            yield ReducedBatch(batch.path, batch.batch, batch.buffer, batch.read, record_count=batch.record_count, passed=batch.passed)
        if self.ending is not None:
            raise self.ending


def load_order(stretches: Iterable[Reduced], profile: BrokerProfile, end_offset: int) -> Iterator[LoadedBatch]:
    """Yield the batches that a load of this release reads from consecutive stretches; `end_offset` is the log end.

    Raises:
        NotReducible: for this release, or this log, the whole log must be loaded. Raised before the first batch is returned.
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
    """Merge consecutive stretches into one, as if all their records were reduced at once.

    Raises:
        NotReducible: record offsets decrease from one stretch to the next.
    """
    return reduce(chain.from_iterable(stretch.log() for stretch in stretches))


def reduce(batches: Iterable[LoadedBatch]) -> Reduced:
    """Reduce a stretch of one offsets partition; batches may be reduced ones. For strict loads only.

    Raises:
        NotReducible: record offsets decrease in it. Then the commit that counts, and a refused load, depend on every batch.
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
    """A batch during the reduction: the records that are kept so far, by their place in the batch."""

    source: LoadedBatch
    passed: Passed
    record_count: int = 0
    kept: dict[int, Record] = field(default_factory=dict)
    #: True if the batch stays even without records: its header can end a load.
    has_header_to_keep: bool = False
    #: True if the batch stays with all records: a control batch that is not a plain marker, or a batch that cannot be read.
    is_whole: bool = False

    @property
    def is_empty(self) -> bool:
        return not (self.kept or self.has_header_to_keep or self.is_whole)

    def as_passed(self) -> Passed:
        """Return this batch, and the batches dropped before it, as dropped."""
        batch = self.source.batch
        return self.passed + Passed(self.record_count, batch.size_bytes, first_offset_of(batch), batch.last_offset)

    def finished(self, *, keeps_all: bool) -> ReducedBatch:
        source = self.source
        records = tuple(self.kept.values())
        read = source.read if keeps_all else (lambda: records)
        return ReducedBatch(source.path, source.batch, source.buffer, read, record_count=self.record_count, passed=self.passed)


@dataclass(slots=True, eq=False)
class _Transaction:
    """The records of a producer since its last marker in this stretch.

    Their marker is dropped with the last of them, unless it is the first marker.
    """

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
    #: True for the first record with a fact that could end a load, name a topic, or create a group.
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
        #: Writes of a key outside transactions that no record overrides yet: its value, its tombstone.
        self._values: dict[OffsetKey, _Entry] = {}
        self._tombstones: dict[OffsetKey, _Entry] = {}
        #: Commits of transactions that a marker installed; one of them is the offset of the key.
        self._installed: dict[OffsetKey, list[_Entry]] = {}
        self._transactions: dict[int, _Transaction] = {}
        #: The last classic group value of each group, if no later record could change the kind of the group.
        self._classic_values: dict[str, _Entry] = {}

    def add(self, batch: LoadedBatch) -> bool:
        """Add one batch; return False if it cannot be read: every load ends there."""
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
                    f"record offset {record.record_offset} goes back, or is after the end of its batch", record_offset=record.record_offset
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
            # One coordinator installs this write at once, another stages it. So all staged writes of the key must stay.
            for transaction in self._transactions.values():
                transaction.staged = [(key, staged) for key, staged in transaction.staged if key != write.key]

    def _override(self, key: OffsetKey, write: _Entry, *, is_tombstone: bool) -> None:
        """Drop the earlier writes of the key: a write outside transactions overrides them. Only a tombstone overrides a tombstone."""
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
            # No transaction coordinator writes this, or releases read it differently. It stays, with the records that it may end.
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
        """Install a commit by its marker: it overrides earlier commits of the key, whichever of commits and markers gives the order."""
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
        """Add batches without records to the dropped records before the next batch."""
        swept: list[_Draft] = []
        passed = Passed()
        last = self._drafts[-1]
        for draft in self._drafts:
            if draft.is_empty and draft is not last:
                passed += draft.as_passed()
            else:
                draft.passed = passed + draft.passed
                passed = Passed()
                swept.append(draft)
        self._drafts = swept
        self._next_sweep = 2 * len(swept) + _BATCHES_BETWEEN_SWEEPS

    def finish(self, *, ending: LoadAborted | None = None, is_end_of_loads: bool = False) -> Reduced:
        """Return the reduction. The last batch stays, since it has the end of the stretch; a marker stays with its record."""
        if self._drafts:
            self._sweep()
        batches = [draft.finished(keeps_all=draft.is_whole or (draft.source.is_control and not draft.kept)) for draft in self._drafts]
        return Reduced(tuple(batches), ending, is_end_of_loads)


def _outcome(records: list[Record]) -> int | None:
    """Return COMMIT or ABORT if every release reads this control batch as that marker; else None."""
    if len(records) != 1:
        return None
    control = decode_control_record(records[0].key, None)
    is_plain = not control.errors and control.key.get("version", -1) >= 0 and control.number in (ABORT, COMMIT)
    return control.number if is_plain else None
