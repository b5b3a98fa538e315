"""The list of segments that a job read, for the chain of evidence: size, result of the checksums, offsets and digest."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from exhume.arrow_rows import OfLog, of_log, schema_of
from exhume.codecs.log_directory import LogDirectory, PartitionDirectory, SegmentFile
from exhume.codecs.salvage import Found, salvage
from exhume.errors import EvidenceError
from exhume.replay.spark.session import collect, prepare_workers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class InputRow(OfLog):
    """A row for each segment file. `crc_verdict` is `ok`, `mismatch` (`bad_batches` is the number), or `damaged` if some bytes are part
    of no batch; `unreadable` if the file cannot be read, `not_read` if it is not part of the log.
    """

    path: str
    size_bytes: int
    sha256: str | None
    crc_verdict: str
    batches: int | None
    bad_batches: int | None
    first_record_offset: int | None
    last_record_offset: int | None


INPUTS = schema_of(InputRow)
_BLOCK_BATCHES = 4096


def read_inputs(spark: SparkSession, directories: Sequence[LogDirectory]) -> list[InputRow]:
    """Rows of `INPUTS`, in the order of the evidence."""
    from pyspark.sql.pandas.types import from_arrow_schema

    partitions = [partition for directory in directories for partition in directory.partitions]
    files = [(partition, place) for partition in partitions for place in range(len(partition.segments))]
    if not files:
        return []
    prepare_workers(spark)
    numbers = spark.range(0, len(files), 1, min(len(files), 1024))
    rows = collect(numbers.mapInArrow(partial(_describe, files), from_arrow_schema(_NUMBERED)))
    return [cast("InputRow", {name: row[name] for name in INPUTS.names}) for row in sorted(rows, key=lambda row: row["number"])]


_NUMBERED = pa.schema([("number", pa.int64()), *INPUTS])


def _describe(files: Sequence[tuple[PartitionDirectory, int]], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows: list[Mapping[str, Any]] = []
        for number in batch.column(0).to_pylist():
            partition, place = files[number]
            rows.append({"number": number, **describe(partition, partition.segments[place])})
        yield pa.RecordBatch.from_pylist(rows, schema=_NUMBERED)


def describe(partition: PartitionDirectory, segment: SegmentFile) -> InputRow:
    """One row of `INPUTS`."""
    row: InputRow = {
        **of_log(partition.replica, partition.offsets_partition),
        "path": segment.path,
        "size_bytes": segment.size_bytes,
        "sha256": None,
        "crc_verdict": "unreadable",
        "batches": None,
        "bad_batches": None,
        "first_record_offset": None,
        "last_record_offset": None,
    }
    try:
        buffer = segment.open()
    except EvidenceError:
        return row
    row |= {"sha256": hashlib.sha256(buffer).hexdigest(), "crc_verdict": "not_read"}
    return _checked(row, buffer, segment) if segment.is_read else row


def _checked(row: InputRow, buffer: memoryview, segment: SegmentFile) -> InputRow:
    counted = _Counted()
    position = counted.scan(buffer)
    has_holes = False
    for item in salvage(buffer, position=position, base_offset=segment.base_offset) if position < len(buffer) else ():
        if isinstance(item, Found):
            counted.add(1, item.crc_status != "ok", item.batch.base_offset, item.batch.last_offset)
        else:
            has_holes = True
    return row | {
        "crc_verdict": "damaged" if has_holes else "mismatch" if counted.bad else "ok",
        "batches": counted.batches,
        "bad_batches": counted.bad,
        "first_record_offset": counted.first,
        "last_record_offset": counted.last,
    }


@dataclass(slots=True)
class _Counted:
    batches: int = 0
    bad: int = 0
    first: int | None = None
    last: int | None = None

    def add(self, batches: int, bad: int, first: int | None, last: int) -> None:
        self.batches += batches
        self.bad += bad
        self.first = first if self.first is None else self.first
        self.last = last

    def scan(self, buffer: memoryview) -> int:
        """Count batches of format 2 and plain messages; return the byte at which anything else begins."""
        import numpy as np

        from exhume.codecs.kernels import scan

        rows = np.empty((_BLOCK_BATCHES, scan.COLUMNS), np.int64)
        content = np.frombuffer(buffer, np.uint8) if len(buffer) else np.empty(0, np.uint8)
        content.flags.writeable = False
        position = 0
        while position < len(content):
            count, position = scan.scan(content, position, len(content), True, rows)
            if not count:
                break
            bad = int((rows[:count, scan.IS_SOUND] == 0).sum())
            self.add(count, bad, int(rows[0, scan.BASE_OFFSET]), int(rows[count - 1, scan.LAST_OFFSET]))
        return position
