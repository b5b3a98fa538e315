"""The Scala coordinator, 0.9 to 3.9: read to the bound, gather, install at the end (0.11.0.0: behind every read)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from .records import (
    Answer,
    Key,
    Load,
    LoadEnds,
    ReadableBatch,
    Unknown,
    classic_group,
    classic_row,
    commit_of,
    control_type,
    decode,
    records_of,
    simple_group,
)


class Stalls(Exception):
    """The load reads the same place for ever."""


def load(run: Load, batches: Sequence[ReadableBatch], start: int, bound: int, buffer_bytes: int) -> Answer:
    """One load, read by read."""
    state = _Scala(run)
    reads = ([batch] for batch in batches) if run.is_lenient else _reads(run, batches, start, bound, buffer_bytes)
    try:
        for read in reads:
            for item in read:
                state.replay(item)
            state.read_is_over()
    except LoadEnds as ends:
        return state.answer_after(ends)
    except Stalls:
        return Answer(stalled=True)
    return state.answer()


def _reads(run: Load, batches: Sequence[ReadableBatch], start: int, bound: int, buffer_bytes: int) -> Iterator[list[ReadableBatch]]:
    """Whole batches of one file, as many as the load buffer takes, until the bound is reached."""
    position = start
    left = list(batches)
    while position < bound:
        if not left:
            if run.release < (0, 11):
                raise LoadEnds(position)
            if run.release < (2, 4, 1):
                raise Stalls
            return
        read = [left.pop(0)]
        size = read[0].batch.size_bytes
        if size > buffer_bytes and run.release < (2, 0, 1):
            raise Stalls
        while left and left[0].path == read[0].path and size + left[0].batch.size_bytes <= buffer_bytes:
            size += left[0].batch.size_bytes
            read.append(left.pop(0))
        yield read
        position = read[-1].batch.last_offset + 1


@dataclass
class _Scala:
    run: Load
    committed: dict[Key, dict[str, Any]] = field(default_factory=dict)
    waiting: dict[int, dict[Key, dict[str, Any]]] = field(default_factory=dict)
    groups: dict[str, dict[str, Any]] = field(default_factory=dict)
    removed: dict[str, int] = field(default_factory=dict)
    #: 0.11.0.0: what the cache has.
    cached_groups: dict[str, dict[str, Any]] = field(default_factory=dict)
    cached_offsets: dict[Key, dict[str, Any]] = field(default_factory=dict)

    def newest(self) -> dict[int, int | None]:
        offset = next(version for since, version in (((3, 4, 1), 4), ((2, 1), 3), ((0,), 1)) if self.run.release >= since)
        steps = (((3, 4, 1), 4), ((2, 3), 3), ((2, 1), 2), ((0, 10, 1), 1), ((0,), 0))
        group = next(version for since, version in steps if self.run.release >= since)
        return {0: offset, 1: offset, 2: group}

    def replay(self, item: ReadableBatch) -> None:
        header, first_offset = item.batch, None
        if self.cannot_read(item):
            self.run.refuse(header.last_offset if header.base_offset is None else header.base_offset)
        if header.is_control:
            self.end_transaction(item)
            return
        for record in records_of(item):
            first_offset = record.record_offset if first_offset is None else first_offset
            try:
                decoded = decode(self.run, record, self.newest(), {})
            except Unknown:
                if self.run.release < (3, 4, 1):
                    self.run.refuse(record.record_offset)
                continue
            if decoded is None:
                continue
            number, fields, version, value = decoded
            if number == 2:
                self.groups.pop(fields["group"], None)
                if value is None:
                    self.removed[fields["group"]] = record.record_offset
                else:
                    self.groups[fields["group"]] = classic_group(self.run, record, version, value, is_java=False)
                    self.removed.pop(fields["group"], None)
                continue
            key = (fields["group"], fields["topic"], fields["partition"])
            is_staged = header.is_transactional and self.run.release >= (0, 11)
            into = self.waiting.setdefault(header.producer_id, {}) if is_staged else self.committed
            into.pop(key, None)
            if value is not None:
                into[key] = commit_of(self.run, record, version, value, header if is_staged else None) | {"first_offset": first_offset}

    def cannot_read(self, item: ReadableBatch) -> bool:
        header = item.batch
        if header.magic == 1 and header.codec and self.run.release < (0, 10, 1) and any(record.magic == 0 for record in records_of(item)):
            return True
        return (header.magic == 2 and self.run.release < (0, 11)) or (header.codec == 4 and self.run.release < (2, 1))

    def end_transaction(self, item: ReadableBatch) -> None:
        """The first record decides."""
        for record in records_of(item):
            outcome = control_type(self.run, record)
            staged = {} if outcome is None else self.waiting.pop(item.batch.producer_id, {})
            for key, commit in staged.items() if outcome == 1 else ():
                if key not in self.committed or self.committed[key]["first_offset"] < commit["first_offset"]:
                    self.committed[key] = commit
            return
        if self.run.release < (2, 0, 1):
            self.run.refuse(item.batch.base_offset or 0)

    def ids_with_offsets(self) -> set[str]:
        return {key[0] for staged in (self.committed, *self.waiting.values()) for key in staged}

    def read_is_over(self) -> None:
        if self.run.release != (0, 11, 0, 0):
            return
        for name, group in self.groups.items():
            if self.cached_groups.setdefault(name, group) is group:
                self.cached_offsets |= {key: commit for key, commit in self.committed.items() if key[0] == name}
        for name in self.ids_with_offsets() - self.groups.keys() - self.cached_groups.keys():
            self.cached_groups[name] = simple_group()
            self.cached_offsets |= {key: commit for key, commit in self.committed.items() if key[0] == name}
        for name, record_offset in self.removed.items():
            if name in self.cached_groups and not any(key[0] == name for key in self.committed):
                self.run.refuse(record_offset)

    def answer_after(self, ends: LoadEnds) -> Answer:
        """What is left of a load that ended early: the offsets of 0.9 and 0.10.0, the reads so far of 0.11.0.0, else nothing."""
        if self.run.release < (0, 10, 1):
            return Answer(ends.record_offset, offsets=self.committed)
        answer = self.answer() if self.run.release == (0, 11, 0, 0) else Answer()
        answer.ended_at = ends.record_offset
        return answer

    def answer(self) -> Answer:
        pending = {(producer_id, key): commit for producer_id, staged in self.waiting.items() for key, commit in staged.items()}
        if self.run.release == (0, 11, 0, 0):
            groups, committed, late_error = self.cached_groups, self.cached_offsets, False
        elif self.run.release < (0, 10, 1):
            groups, committed, late_error = self.groups, self.committed, False
        else:
            groups, committed = self.groups, self.committed
            for name in self.ids_with_offsets():
                groups.setdefault(name, simple_group())
            exempt = {key[0] for key in committed} if self.run.release >= (0, 10, 2) else set()
            late_error = any(name in groups and name not in exempt for name in self.removed)
        memberless = "Stable" if self.run.release < (0, 10, 1) else "Empty"
        rows = {name: classic_row(group, memberless) for name, group in groups.items()}
        return Answer(None, False, late_error, None, self.run.refusals, rows, committed, pending)
