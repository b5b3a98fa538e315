"""What is measured in a process of Python: the floor, exhume by its public library and command line, and a plain Python decoder.

Each subject is a function of a generated log that does all of its work, and another one that says afterwards what came of it, in
the words of `generate.Content`: a subject that is fast and wrong is no measurement.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any

import lz4.frame
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import zstandard

import exhume
from benchmarks import floor
from benchmarks.generate import Content
from benchmarks.rivals.plain_python import decode_partition
from exhume.codecs.batch_format import HEADER_BYTES
from exhume.codecs.batches import BatchWalk
from exhume.findings import Findings

RELEASE = "4.3.0"
_PROGRAM = str(Path(sys.executable).with_name("exhume"))
_DEMO_LOG = Path(exhume.__file__).parent / "cli" / "demo_log"
#: A topic that members own in each log of few keys, however small.
_OWNED_TOPIC = "prod.eu-west-1.payments.created.avro.v1"
_BATCH_HEAD = HEADER_BYTES[2]


@dataclass(frozen=True, slots=True)
class Log:
    """A generated log: the data directory, and what it holds."""

    directory: Path
    content: Content

    @property
    def partition(self) -> Path:
        return self.directory / "__consumer_offsets-0"

    @property
    def copy(self) -> Path:
        """The same segments without index files, as people copy them: links to the same bytes."""
        directory = self.directory.with_name(f"{self.directory.name}-copy")
        for segment in () if directory.exists() else self.directory.glob("*/*.log"):
            partition = directory / segment.parent.name
            partition.mkdir(parents=True, exist_ok=True)
            (partition / segment.name).hardlink_to(segment)
        return directory


@dataclass(frozen=True, slots=True)
class Subject:
    """`run` is timed; `answer` makes of its result what is compared with fields of `Content`. `prepare` runs before, untimed.

    `process` stands in the command line of the process that does the work, where that is another one.
    """

    run: Callable[[Log], Any]
    answer: Callable[[Any], Mapping[str, int]]
    prepare: Callable[[Log], object] = lambda _: None
    process: str = ""


def _scan(log: Log) -> list[pa.RecordBatch]:
    """The columns that the answer is made of, of every header."""
    with exhume.open(log.directory) as topic:
        return [table.select(["record_count", "crc_status"]) for table in topic.batches()]


def _scanned(tables: Sequence[pa.RecordBatch]) -> dict[str, int]:
    found = pa.Table.from_batches(tables)
    damaged = found.num_rows - pc.sum(pc.equal(found["crc_status"], "ok")).as_py()
    return {"batches": found.num_rows, "records": pc.sum(found["record_count"]).as_py(), "damaged": damaged}


def _offsets(log: Log) -> exhume.CoordinatorState:
    with exhume.open(log.directory) as topic:
        state = topic.state(release=RELEASE)
        assert state.offsets.num_rows
        return state


def _state(log: Log) -> exhume.CoordinatorState:
    """The state with all of its tables: groups, members, assignments, offsets and all others."""
    state = _offsets(log)
    for name in state.tables:
        assert state.tables[name] is not None
    return state


def _one_group(log: Log) -> exhume.CoordinatorState:
    with exhume.open(log.directory) as topic:
        return topic.state(release=RELEASE, groups=[log.content.a_group])


def _one_key(log: Log) -> Any:
    asked = log.content
    with exhume.open(log.directory) as topic:
        return topic.history(asked.a_group, topic=asked.a_topic, partition=asked.a_partition, release=RELEASE)


def _decode(log: Log) -> tuple[int, int]:
    """Both typed tables, batch by batch as a pipeline takes them."""
    with exhume.open(log.directory) as topic:
        commits = sum(batch.num_rows for batch in topic.offset_commits())
        groups = sum(batch.num_rows for batch in topic.group_metadata())
    return commits, groups


def _decode_commits(log: Log) -> int:
    with exhume.open(log.directory) as topic:
        return sum(batch.num_rows for batch in topic.offset_commits())


def _sql(log: Log) -> pa.Table:
    with exhume.open(log.directory) as topic:
        return topic.sql("select group, count(*) as commits from offset_commits group by 1")


def _inspect(log: Log) -> pa.Table:
    with exhume.open(log.directory) as topic:
        return topic.inspect().tables()["partitions"]


def _diagnose(log: Log) -> Findings:
    with exhume.open(log.directory) as topic:
        return topic.diagnose()


def _dump(output: str) -> Callable[[Log], Path]:
    """Return the function that writes the dump of a copy in this format to a file."""

    def run(log: Log) -> Path:
        file = log.directory.with_suffix(f".{output}")
        with file.open("wb") as target:
            _exhume("dump", log.copy, "--output", output, stdout=target)
        return file

    return run


def _rows_of(file: Path) -> dict[str, int]:
    if file.suffix == ".parquet":
        rows = pq.ParquetFile(file).metadata.num_rows
    else:
        with file.open("rb") as lines:
            rows = sum(1 for _ in lines) - (file.suffix == ".csv")
    file.unlink()
    return {"records": rows}


def _exhume(*arguments: str | Path, stdout: int | IO[bytes] = subprocess.DEVNULL) -> None:
    """Run exhume. Exit code 1 is that of an answer with findings.

    Raises:
        CalledProcessError: another exit code.
    """
    done = subprocess.run([_PROGRAM, *arguments], check=False, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE)
    if done.returncode not in (0, 1) or b"Traceback" in done.stderr:
        raise subprocess.CalledProcessError(done.returncode, done.args, stderr=done.stderr)


def _command(*arguments: str) -> Subject:
    return Subject(lambda log: _exhume(*arguments, log.copy), lambda _: {}, prepare=lambda log: log.copy, process=_PROGRAM)


@cache
def _streams(log: Log) -> list[bytes]:
    streams = []
    for segment in sorted(log.partition.glob("*.log")):
        content = segment.read_bytes()
        streams += [content[batch.byte_position + _BATCH_HEAD : batch.end_position] for batch in BatchWalk(content)]
    return streams


def _decompress(log: Log) -> int:
    if log.content.codec == "lz4":
        return sum(len(lz4.frame.decompress(stream)) for stream in _streams(log))
    decompressor = zstandard.ZstdDecompressor()
    return sum(len(decompressor.decompressobj().decompress(stream)) for stream in _streams(log))


def _live(state: exhume.CoordinatorState) -> dict[str, int]:
    return {"live_offsets": state.offsets.num_rows, "committed_offset_sum": pc.sum(state.offsets["committed_offset"]).as_py()}


SUBJECTS: Mapping[str, Subject] = {
    "floor": Subject(
        lambda log: floor.walk_segments(log.partition),
        lambda met: {"batches": met.batches, "records": met.records, "damaged": met.damaged},
    ),
    "crc32c package": Subject(lambda log: floor.in_one_call_per_megabyte(log.partition), lambda size: {"size_bytes": size}),
    "decompression": Subject(_decompress, lambda size: {"section_bytes": size}, prepare=_streams),
    "scan": Subject(_scan, _scanned),
    "offsets": Subject(_offsets, _live),
    "state": Subject(_state, _live),
    "decode": Subject(_decode, lambda rows: {"commit_records": rows[0], "group_records": rows[1]}),
    "commits": Subject(_decode_commits, lambda rows: {"commit_records": rows}),
    "sql": Subject(_sql, lambda table: {"commit_records": pc.sum(table["commits"]).as_py()}),
    "inspect": Subject(
        _inspect, lambda table: {"batches": pc.sum(table["batch_count"]).as_py(), "records": pc.sum(table["record_count"]).as_py()}
    ),
    # Nothing else knows what is to be found: only that every detector looked.
    "diagnose": Subject(_diagnose, lambda _: {}),
    "one group": Subject(_one_group, lambda state: {"a_group_offsets": state.offsets.num_rows}),
    "one key's history": Subject(_one_key, lambda table: {"a_key_records": table.num_rows}),
    "plain Python": Subject(
        lambda log: decode_partition(log.partition),
        lambda decoded: {
            "records": decoded.records,
            "live_offsets": len(decoded.offsets),
            "committed_offset_sum": sum(decoded.offsets.values()),
        },
    ),
    "exhume --help": Subject(lambda _: _exhume("--help"), lambda _: {}, process=_PROGRAM),
    "exhume state, demo log": Subject(lambda _: _exhume("state", _DEMO_LOG), lambda _: {}, process=_PROGRAM),
    **{f"exhume {name}": _command(name) for name in ("state", "diagnose", "load-check")},
    "exhume owners": Subject(
        lambda log: _exhume("owners", log.copy, "--topic", _OWNED_TOPIC),
        lambda _: {},
        prepare=lambda log: log.copy,
        process=_PROGRAM,
    ),
    **{
        f"exhume dump, {output}": Subject(_dump(output), _rows_of, prepare=lambda log: log.copy, process=_PROGRAM)
        for output in ("jsonl", "csv", "parquet")
    },
}
