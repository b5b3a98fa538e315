"""A partition in columns, first as if nothing but the end of its log were damaged, then past whatever is odd in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from exhume.codecs.log_directory import PartitionDirectory
from exhume.replay.broker_log import Stop, StrictLog, list_log, open_strictly
from exhume.replay.moment import Moment
from exhume.replay.profiles import BrokerProfile
from exhume.replay.reading import FastLoad, LoadInputs
from exhume.replay.survivors.odd_places import odd_places
from exhume.replay.survivors.run import fold_log
from exhume.replay.survivors.served import hides_batches, likely_log, recovered_log
from exhume.replay.survivors.settled import Settled


def fold_partition(
    partition: PartitionDirectory,
    stop: Stop,
    profile: BrokerProfile,
    inputs: LoadInputs,
    fast: FastLoad,
    *,
    lenient: bool,
    at: Moment | None,
) -> Settled | None:
    """What a load of this partition comes to; None where it has to be loaded record by record."""
    folded = partial(_fold, profile=profile, inputs=inputs, fast=fast, lenient=lenient, at=at)
    if lenient:
        return _fold_leniently(partition, stop, folded)
    log = likely_log(partition, stop)
    if log.refused:
        return None
    if stop == "clean":
        return folded(log, is_last=True)
    settled = folded(log, is_last=False)
    if settled is not None:
        return settled
    log = recovered_log(partition)
    return None if log.refused else folded(log, is_last=True)


def _fold_leniently(partition: PartitionDirectory, stop: Stop, folded: Callable[..., Settled | None]) -> Settled | None:
    # Where nothing is odd, a start after an unclean stop finds nothing to do.
    log = open_strictly(partition, "clean")
    if not log.refused and stop == "unclean":
        settled = folded(replace(log, stop=stop), is_last=False)
        if settled is not None:
            return settled
    if stop == "unclean":
        # What a broker goes on with says where the log ends; what is read is all there is.
        log = recovered_log(partition)
        log.segments = list_log(partition, stop).segments
        for segment in log.segments:
            segment.open()
    return folded(log, is_last=True)


def _fold(
    log: StrictLog,
    *,
    is_last: bool,
    profile: BrokerProfile,
    inputs: LoadInputs,
    fast: FastLoad,
    lenient: bool,
    at: Moment | None,
    until: tuple[int, int] | None = None,
) -> Settled | None:
    if at is not None and log.hidden and hides_batches(log):
        return None
    # Salvage says which batches there are at a time, and what their order is.
    is_by_time = at is not None and at.time_ms is not None
    odd = odd_places(log, profile, fast.cap_bytes, lenient=lenient) if is_last and not (lenient and is_by_time) else None
    start_offset = 0 if lenient else log.start_offset
    settled = fold_log(log, profile, inputs, fast, start_offset=start_offset, lenient=lenient, at=at, odd=odd, until=until)
    if settled is not None and not lenient and at is None and until is None:
        settled.up_to = lambda place: _fold(
            log, is_last=True, profile=profile, inputs=inputs, fast=fast, lenient=lenient, at=at, until=place
        )
    return settled
