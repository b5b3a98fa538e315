"""The naive twin: the loads of every release once more, as dicts and loops, written from the rules and not from the loaders.

It is slow and says little: groups with members and epochs, offsets, pending offsets, and where a load would end. What it says must be
what `exhume.replay` says, on every log, for every release, strictly and leniently. It shares the codecs, and nothing of `exhume.replay`:
it knows releases by their numbers, and asks in the middle of its loops how a release does this or that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from exhume.codecs.batches import Batch
from exhume.codecs.records import Record
from exhume.errors import EvidenceError

from . import java, scala
from .records import Answer, Load, ReadableBatch

__all__ = ["Answer", "ReadableBatch", "cut_off", "load"]


def load(
    release: str,
    coordinator: str,
    batches: Sequence[ReadableBatch],
    end_offset: int,
    *,
    start_offset: int = 0,
    high_watermark: int | None = None,
    buffer_bytes: int = 5 * 1024 * 1024,
    is_lenient: bool = False,
) -> Answer:
    """What a broker of this release has after loading these batches, which lie between `start_offset` and `end_offset`.

    `high_watermark` None: the log end; releases from 0.11 on do not look at it. A lenient load takes every batch and goes on where the
    release would not; `Answer.refusals` are those places.
    """
    run = Load(tuple(int(number) for number in release.split(".")), is_lenient)
    if coordinator == "java":
        return java.load(run, batches, end_offset)
    bound = end_offset
    if high_watermark is not None and run.release < (0, 11):
        bound = min(high_watermark, end_offset)
    return scala.load(run, batches, start_offset, bound, buffer_bytes)


@dataclass
class _Shortened:
    """The front of a batch."""

    path: str
    batch: Batch
    records: Sequence[Record]

    def read(self) -> Iterable[Record]:
        return self.records


def cut_off(batches: Sequence[ReadableBatch], last_offset: int, start_offset: int) -> tuple[list[ReadableBatch], int]:
    """The part of a log up to and with record `last_offset`, and where it ends: behind its last record.

    Where offsets go back it ends when that offset is first reached.
    """
    left: list[ReadableBatch] = []
    end_offset = start_offset
    for item in batches:
        if item.batch.last_offset > last_offset:
            records: list[Record] = []
            try:
                for record in item.read():
                    if record.record_offset > last_offset:
                        break  # Later bytes are not read, damage included.
                    records.append(record)
            except EvidenceError:
                return [*left, item], item.batch.last_offset + 1
            if records:
                end_offset = records[-1].record_offset + 1
                left.append(_Shortened(item.path, replace(item.batch, last_offset=end_offset - 1), records))
            break
        left.append(item)
        end_offset = item.batch.last_offset + 1
        if item.batch.last_offset == last_offset:
            break
    return left, end_offset
