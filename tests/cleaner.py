"""The log cleaner, as a Hypothesis strategy: what compaction may leave of a log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st

from exhume.codecs.record_types import encode_control_record
from tests.written_batches import NO_PRODUCER, Written


@st.composite
def compacted(draw: st.DrawFn, batches: Sequence[Written]) -> list[Written]:
    """What a log cleaner may leave of this log: a clean part, and the rest as it was written.

    Of the clean part go superseded records, records without a key, records of aborted transactions, and by age tombstones and the markers
    that nothing needs any more. The clean part ends in front of the first open transaction. Batches that are empty then go, and leave a
    gap; the last one of a producer stays, and now and then another.
    """
    dirty = _first_open(batches, draw(st.integers(0, len(batches))))
    clean = batches[:dirty]
    newest = {key: (index, place) for index, batch in enumerate(clean) if not batch.is_control for place, (key, _) in batch.records}
    lasts = {batch.producer_id: index for index, batch in enumerate(batches) if batch.producer_id != NO_PRODUCER}
    left: list[Written] = []
    gap = 0
    holds_records: set[int] = set()
    for index, batch in enumerate(batches):
        records = batch.records
        if index < dirty and batch.is_control:
            is_needed = batch.producer_id in holds_records
            holds_records.discard(batch.producer_id)
            records = records if is_needed or draw(st.booleans()) else ()
        elif index < dirty:
            is_aborted = batch.is_transactional and _outcome_of(clean[index:], batch.producer_id) == 0
            records = tuple(
                (place, (key, value))
                for place, (key, value) in records
                if not is_aborted and key is not None and newest[key] == (index, place) and (value is not None or draw(st.booleans()))
            )
            if records and batch.is_transactional:
                holds_records.add(batch.producer_id)
        if records or index >= dirty or lasts.get(batch.producer_id) == index or draw(st.integers(0, 5)) == 0:
            left.append(replace(batch, records=records, gap=gap + batch.gap))
            gap = 0
        else:
            gap += batch.gap + batch.size
    return left or list(batches)


def _first_open(batches: Sequence[Written], end: int) -> int:
    """The first of these batches that belongs to a transaction without a marker among them."""
    for index, batch in enumerate(batches[:end]):
        if batch.is_transactional and not batch.is_control and _outcome_of(batches[index:end], batch.producer_id) is None:
            return index
    return end


def _outcome_of(batches: Sequence[Written], producer_id: int) -> int | None:
    """How the first transaction of a producer among these batches ends: 1 is COMMIT, 0 is ABORT and whatever else, None not at all."""
    commit = encode_control_record(1, {"coordinator_epoch": 0})
    for batch in batches:
        if batch.is_control and batch.producer_id == producer_id:
            return int(any(record == commit for _, record in batch.records))
    return None
