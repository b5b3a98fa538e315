"""Fold one partition: first assume that only the end of its log is damaged, then step over damaged batches."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from exhume.codecs.log_directory import PartitionDirectory
from exhume.replay.broker_log import Stop, StrictLog, list_log, open_strictly
from exhume.replay.fold.careful_batches import careful_reader
from exhume.replay.fold.run import fold_log
from exhume.replay.fold.served_log import hides_batches, likely_log
from exhume.replay.fold.settled import Settled
from exhume.replay.reading import CompiledLoad

if TYPE_CHECKING:
    from exhume.replay.partition_load import LoadOptions


def fold_partition(partition: PartitionDirectory, stop: Stop, fast: CompiledLoad, options: LoadOptions) -> Settled | None:
    """Fold this partition with the settings of `fast`; None if it must be loaded record by record."""
    if options.mode == "lenient":
        return _fold_leniently(partition, stop, fast, options)
    log = likely_log(partition, stop)
    if log.refused:
        return None
    if stop == "clean":
        return _fold(log, fast, options, is_last=True)
    settled = _fold(log, fast, options, is_last=False)
    if settled is not None:
        return settled
    log = open_strictly(partition, "unclean")
    return None if log.refused else _fold(log, fast, options, is_last=True)


def _fold_leniently(partition: PartitionDirectory, stop: Stop, fast: CompiledLoad, options: LoadOptions) -> Settled | None:
    # If every batch is plain, a start after an unclean stop changes nothing.
    log = open_strictly(partition, "clean")
    if stop == "unclean":
        settled = None if log.refused else _fold(replace(log, stop=stop), fast, options, is_last=False)
        if settled is not None:
            return settled
        # The recovered log has the log end; the lenient load reads all segments in full.
        log = open_strictly(partition, "unclean")
        log.segments = list_log(partition, stop).segments
        for segment in log.segments:
            segment.open()
    return _fold(log, fast, options, is_last=True)


def _fold(
    log: StrictLog, fast: CompiledLoad, options: LoadOptions, *, is_last: bool, until: tuple[int, int] | None = None
) -> Settled | None:
    at, is_lenient = options.at, options.mode == "lenient"
    if at is not None and log.hidden and hides_batches(log):
        return None
    # With damage, only salvage knows the batches up to a time, and their order.
    is_known = is_last and not (is_lenient and at is not None and at.time_ms is not None)
    settled = fold_log(
        log,
        options.profile,
        options.inputs,
        fast,
        start_offset=0 if is_lenient else log.start_offset,
        lenient=is_lenient,
        at=at,
        groups=options.groups,
        careful_reader=careful_reader(log, options.profile, fast.read.cap_bytes, lenient=is_lenient) if is_known else None,
        until=until,
    )
    if settled is not None and not is_lenient and at is None and until is None:
        settled.up_to = lambda place: _fold(log, fast, options, is_last=True, until=place)
    return settled
