"""A moment of a log, and the log truncated there.

The state at a moment is the fold of a prefix of the log. It is the state of a coordinator after loading a log that ends at the cut: the
rules about the log end, about members at the end of a load, and about the committed view apply there. Records and damage after the cut are
not loaded. One fact stays: if a broker does not start on this directory, it does not start for an earlier moment either.

For record offset N the prefix ends after record N, also in the middle of a batch. For time T it ends before the first record later than T.
Times may decrease, so this can leave out records with a time before T. This is right: a coordinator takes the time of a record before it
appends it, so each record after a record of time t was appended after t. Kafka finds offsets by time with the same rule. If the clocks of
leaders differed, or a client chose its commit timestamps, the rule gives an earlier state; a finding counts these records.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from itertools import islice, takewhile
from typing import Any, Literal

from exhume.codecs.log_directory import PartitionDirectory
from exhume.codecs.record_types import decode_record
from exhume.codecs.records import Record
from exhume.errors import RequestError
from exhume.findings import Finding
from exhume.int64 import LARGEST_INT64, LEAST_INT64
from exhume.moments import Clock, Time, time_ms
from exhume.replay.broker_log import LoadedBatch, StrictLog, salvaged_batches
from exhume.replay.state_tables import LoadRow
from exhume.replay.verdict import LoadAborted


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Either a record offset for some or all offsets partitions (the last one that counts), or a time for all of them.

    Partitions without a record offset are loaded to their end.
    """

    last_offsets: Mapping[int | None, int] = field(default_factory=dict)
    time_ms: int | None = None
    clock: Clock = "append"


@dataclass(frozen=True, slots=True)
class LogPrefix:
    """A prefix of a log: a number of whole batches (None: all), and a number of records of the next batch.

    `end_offset` is the end of a log that ends here; None for the whole log.
    """

    whole_batches: int | None = None
    records: int = 0
    end_offset: int | None = None

    def apply(self, batches: Iterable[LoadedBatch]) -> Iterator[LoadedBatch]:
        """The batches of the prefix, the last one shortened if the cut is inside it."""
        rest = iter(batches)
        yield from islice(rest, self.whole_batches)
        if self.records:
            assert self.end_offset is not None
            yield _shortened(next(rest), self.records, self.end_offset - 1)


@dataclass(slots=True)
class CutLog(StrictLog):
    """A log that ends at a cut. `columns` are those of `loads` about the cut; `findings` are about its accuracy."""

    cut: LogPrefix = field(default_factory=LogPrefix)
    columns: LoadRow = field(default_factory=LoadRow)
    findings: list[Finding] = field(default_factory=list)

    def batches(self) -> Iterator[LoadedBatch]:
        return self.cut.apply(StrictLog.batches(self))


def refuse_lone_clock(clock: Clock | None, *times_ms: Time | None) -> None:
    """Raise `RequestError` if a clock is given without any of these times."""
    if clock is not None and all(time_ms is None for time_ms in times_ms):
        raise RequestError("a clock needs a time", remedy="Name a time, or leave out the clock")


def refuse_wrong_order(earlier: Moment, later: Moment | None) -> None:
    """Raise `RequestError` if the earlier moment is after the later one: two times, or two record offsets of one partition."""
    if later is None:
        return
    pairs = [(earlier.time_ms, later.time_ms)]
    pairs += [(last_offset, later.last_offsets.get(partition)) for partition, last_offset in earlier.last_offsets.items()]
    if any(first is not None and second is not None and first > second for first, second in pairs):
        raise RequestError("the first moment is after the last one", remedy="Swap them")


def moment(
    offsets_partitions: Collection[int | None],
    *,
    at_offset: int | Mapping[int, int] | None = None,
    at_time_ms: Time | None = None,
    clock: Clock | None = None,
) -> Moment | None:
    """The requested moment; None without one. A bare record offset is that of the only offsets partition.

    Raises:
        RequestError: offset and time at once, an offset that fits no partition or is negative, a time that does not fit into 64 bits, or
            a clock without a time.
    """
    at_time_ms = time_ms(at_time_ms)
    refuse_lone_clock(clock, at_time_ms)
    if at_time_ms is not None and not LEAST_INT64 <= at_time_ms <= LARGEST_INT64:
        raise RequestError(f"time {at_time_ms} does not fit into 64 bits", remedy="Write milliseconds since 1970")
    if at_offset is None:
        return None if at_time_ms is None else Moment(time_ms=at_time_ms, clock=clock or "append")
    if at_time_ms is not None:
        raise RequestError("a moment is a record offset or a time, not both", remedy="Leave one of them out")
    known = sorted(set(offsets_partitions), key=lambda number: -1 if number is None else number)
    listed = ", ".join("one without a number" if number is None else str(number) for number in known)
    last_offsets: dict[int | None, int]
    if isinstance(at_offset, int):
        if len(known) != 1:
            raise RequestError(
                f"record offset {at_offset} needs an offsets partition", remedy=f"Write P:{at_offset}, P being one of {listed}"
            )
        last_offsets = {known[0]: at_offset}
    else:
        last_offsets = dict(at_offset.items())
    for offsets_partition, last_offset in last_offsets.items():
        if offsets_partition not in known:
            raise RequestError(f"offsets partition {offsets_partition} is not in these logs", remedy=f"The logs have {listed}")
        if last_offset < 0:
            raise RequestError(f"record offset {last_offset} is negative", remedy="Record offsets begin at 0")
        if last_offset > LARGEST_INT64:
            raise RequestError(f"record offset {last_offset} does not fit into 64 bits", remedy=f"The largest is {LARGEST_INT64}")
    return Moment(last_offsets=last_offsets)


def cut_log(log: StrictLog, at: Moment | None, *, lenient: bool) -> StrictLog:
    """This log, ending at the moment; the log itself without one. With `lenient`, batches are counted as salvage finds them."""
    if at is None:
        return log
    batches = salvaged_batches(log.partition) if lenient else log.batches()
    if at.time_ms is not None:
        cut, order = _cut_by_time(batches, at, log.start_offset)
        return truncate_log(cut, log, at, order)
    last_offset = at.last_offsets.get(log.partition.offsets_partition)
    return truncate_log(LogPrefix() if last_offset is None else _cut_by_offset(batches, last_offset, log.start_offset), log, at)


def truncate_log(cut: LogPrefix, log: StrictLog, at: Moment, order: ClockOrder | None = None) -> CutLog:
    """This log, ending at the cut that belongs to the moment; `order` is that of its records if the moment is a time."""
    columns: LoadRow
    if order is not None:
        columns = {"at_time_ms": at.time_ms, "clock": at.clock, **order.columns}
    else:
        columns = {"at_offset": at.last_offsets.get(log.partition.offsets_partition)}
    same = {each.name: getattr(log, each.name) for each in fields(log)}
    end_offset = log.end_offset if cut.end_offset is None else cut.end_offset
    findings = moment_findings(log.partition, at, order)
    return CutLog(**same | {"end_offset": end_offset}, cut=cut, columns=columns, findings=findings)


def moment_findings(partition: PartitionDirectory, at: Moment, order: ClockOrder | None) -> list[Finding]:
    """Findings about the accuracy of this moment; `order` is the clock order of the records if the moment is a time."""
    if order is not None:
        return order.findings(partition, at.clock)
    if partition.offsets_partition in at.last_offsets:
        return []
    return [_finding(partition, "taken_to_its_end", "info", "no record offset is given for this partition: it is loaded to its end")]


def lenient_batches(log: StrictLog) -> Iterator[LoadedBatch]:
    """Every batch that can be found in this log's partition, up to the cut."""
    batches = salvaged_batches(log.partition)
    return log.cut.apply(batches) if isinstance(log, CutLog) else batches


def _cut_by_offset(batches: Iterator[LoadedBatch], last_offset: int, start_offset: int) -> LogPrefix:
    """The prefix that ends after the first batch with this record offset, or inside it."""
    end_offset = start_offset
    try:
        for index, batch in enumerate(batches):
            if batch.last_offset > last_offset:
                # A compressed wrapper of formats 0 and 1 has no first offset: it begins after the batch before it.
                base_offset = end_offset if batch.batch.base_offset is None else batch.batch.base_offset
                return (
                    _cut_through(index, batch, last_offset, end_offset) if base_offset <= last_offset else LogPrefix(index, 0, end_offset)
                )
            end_offset = batch.next_offset
            if batch.last_offset == last_offset:
                return LogPrefix(index + 1, 0, end_offset)
    except LoadAborted:
        pass  # The damage is before the moment: the load finds it.
    return LogPrefix()


def _cut_through(index: int, batch: LoadedBatch, last_offset: int, end_offset: int) -> LogPrefix:
    taken = 0
    try:
        for record in takewhile(lambda record: record.record_offset <= last_offset, batch.records()):
            taken, end_offset = taken + 1, record.record_offset + 1
    except LoadAborted:
        return LogPrefix(index + 1, 0, batch.next_offset)
    return LogPrefix(index, taken, end_offset)


def _shortened(batch: LoadedBatch, records: int, last_offset: int) -> LoadedBatch:
    return replace(batch, batch=replace(batch.batch, last_offset=last_offset), read=lambda: islice(batch.read(), records))


@dataclass(slots=True)
class ClockOrder:
    """The clock order of a whole log: the number of records with a time, without one, and earlier than a record before them.

    `first_later` are record offset and time of the first record later than the moment; `left_out` counts the records after it that are not
    later. `greatest_ms` is the latest time; None if no record has one.
    """

    timed: int = 0
    untimed: int = 0
    out_of_order: int = 0
    first_later: tuple[int, int] | None = None
    left_out: int = 0
    greatest_ms: int | None = None

    @property
    def columns(self) -> LoadRow:
        """Columns of `loads`; null if no record has a time."""
        is_ordered = None if not self.timed else not self.out_of_order
        return {"is_ordered_by_clock": is_ordered, "out_of_order_records": self.out_of_order if self.timed else None}

    def findings(self, partition: PartitionDirectory, clock: Clock) -> list[Finding]:
        """Findings about records whose times decrease."""
        if self.untimed and not self.timed:
            sentence = f"no record has a time of the {clock} clock: the log is loaded to its end"
            return [_finding(partition, "no_times", "warn", sentence, remedy="Use a record offset, or the other clock")]
        if self.first_later is None or not self.left_out:
            return []
        record_offset, later_ms = self.first_later
        sentence = (
            f"the {clock} clock goes back: the load ends before record {record_offset}, the first with a later time "
            f"({later_ms}); {self.left_out} records after it have times up to the moment"
        )
        remedy = "Use a record offset to place the cut yourself"
        return [_finding(partition, "time_goes_back", "warn", sentence, first_record_offset=record_offset, remedy=remedy)]


def _cut_by_time(batches: Iterable[LoadedBatch], at: Moment, end_offset: int) -> tuple[LogPrefix, ClockOrder]:
    """The prefix that ends before the first later record, and the order of all records, also of those after the cut."""
    from exhume.replay.clock_counts import ClockCounts

    assert at.time_ms is not None
    counts, cut = ClockCounts.of([at.time_ms]), LogPrefix()
    # The reader may give up on a batch, or on the whole log after it.
    with suppress(LoadAborted):
        for index, batch in enumerate(batches):
            was_cut, next_offset, records = counts.passed, end_offset, list[Record]()
            with suppress(LoadAborted):
                records.extend(batch.records())
                next_offset = batch.next_offset
            times_ms = [_time_of(record, at.clock, is_control=batch.is_control) for record in records]
            counts.take([record.record_offset for record in records], times_ms)
            if counts.passed and not was_cut:
                _, number = counts.first_later(0)
                cut = LogPrefix(index, number, records[number - 1].record_offset + 1 if number else end_offset)
            end_offset = next_offset
    return cut, counts.order()


def _time_of(record: Record, clock: Clock, *, is_control: bool) -> int | None:
    """Return the time of the record by this clock; None if it has none."""
    if clock == "commit" and not is_control and record.value is not None:
        value = decode_record(record.key, record.value).value or {}
        committed_ms: int | None = value.get("commit_timestamp_ms")
        if committed_ms is not None:
            return committed_ms if committed_ms >= 0 else None
    return record.timestamp_ms


def _finding(partition: PartitionDirectory, code: str, severity: Literal["info", "warn"], sentence: str, **fields: Any) -> Finding:
    return Finding(
        code=code,
        severity=severity,
        sentence=sentence,
        replica=partition.replica,
        offsets_partition=partition.offsets_partition,
        path=partition.path,
        **fields,
    )
