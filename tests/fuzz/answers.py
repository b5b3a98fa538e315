"""Every question has one answer by every way to read a log: `python -m tests.fuzz.answers` asks all questions about all bundled logs.

The ways: plain code, kernels, kernels on several threads, and kernels on small blocks with small tables. For logs without damage also the
same batches in one segment, and in many segments.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import shutil
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, get_args

import pyarrow as pa
import pytest

from exhume import arrow_rows
from exhume.analysis.growth import GrowthBy
from exhume.codecs import schemas
from exhume.codecs.batches import BatchWalk, first_offset
from exhume.codecs.columns import blocks
from exhume.codecs.kernels import scan
from exhume.codecs.log_directory import discover
from exhume.codecs.segment_reader import ReadOptions
from exhume.errors import ExhumeError
from exhume.replay.fold import log as log_folds
from exhume.replay.fold import part as part_folds
from exhume.replay.fold import tables as fold_tables
from exhume.replay.releases import all_spans, profile_for
from exhume.replay.state import CoordinatorState
from exhume.topic import OffsetsTopic
from tests.judges import corpus
from tests.twins import COMPILED, PLAIN, reading

Ask = Callable[[OffsetsTopic], Any]

#: The package has a function of the same name.
_CONDENSING = importlib.import_module("exhume.analysis.detectors.condense")
_NOW_MS = 1_900_000_000_000
#: One release of each kind of load, for a quick look.
FEW_RELEASES = ("0.10.2.2", "2.8.2", "3.7.2-new", "4.3.0")
#: Columns that name a place in a file: they differ if the same batches are in other segments.
_PLACES = frozenset({"path", "byte_position", "segment", "segments", "size_bytes", "in_memory_bytes"})
#: The questions whose answers do not depend on the borders of segments. A cleaner, for one, leaves the last segment alone.
_WITHOUT_SEGMENTS = ("state", "records", "dump", "decoded", "history", "rebalances", "owners", "transactions", "assignments", "expiry")


@dataclass(frozen=True, slots=True)
class Words:
    """The names and places that the questions about a log have: groups, a topic, a time, and a record offset for each offsets partition."""

    groups: Sequence[str]
    topic: str
    time_ms: int
    offsets: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Way:
    """A way to read: bytes from which on kernels load a log, the number of threads, and whether blocks and tables are small."""

    name: str
    least_bytes: int
    threads: int
    is_small: bool = False


PLAINLY = Way("plain code", PLAIN, 1)
WAYS = (Way("kernels", COMPILED, 1), Way("three threads", COMPILED, 3), Way("small blocks", COMPILED, 2, is_small=True))


def words_of(directory: Path, random: Random) -> Words:
    """Names, a time and places of this log; names that it does not have where it has none."""
    with OffsetsTopic(discover([str(directory)]), ReadOptions(least_compiled_bytes=PLAIN)) as topic:
        rows = topic.records().read_all().select(["offsets_partition", "record_offset", "timestamp_ms"]).to_pylist()
        dump = topic.dump().read_all().select(["group", "topic"]).to_pylist()
    names = [sorted({row[column] for row in dump if row[column]}) for column in ("group", "topic")]
    groups = random.sample(names[0], min(2, len(names[0]))) or ["nobody"]
    times = sorted(row["timestamp_ms"] for row in rows if (row["timestamp_ms"] or 0) > 0)
    offsets = defaultdict(list)
    for row in rows:
        if row["offsets_partition"] is not None and row["record_offset"] >= 0:
            offsets[row["offsets_partition"]].append(row["record_offset"])
    return Words(
        groups,
        random.choice(names[1]) if names[1] else "nothing",
        random.choice(times) if times else 1_750_000_000_000,
        {partition: random.choice(found) for partition, found in offsets.items()} or {0: 0},
    )


def questions(words: Words, releases: Sequence[str]) -> dict[str, Ask]:
    """Every public question, by name; states for each of these releases."""
    group, at, groups = words.groups[0], words.time_ms, list(words.groups)
    found: dict[str, Ask] = {
        "inspect": lambda topic: topic.inspect().tables(),
        "files": lambda topic: topic.files(),
        "batches": lambda topic: topic.batches(),
        "records": lambda topic: topic.records(),
        "records of a topic": lambda topic: topic.records(topics=[words.topic], from_time_ms=0),
        "dump": lambda topic: topic.dump(),
        "dump, raw": lambda topic: topic.dump(raw=True, groups=groups),
        "annotate": lambda topic: topic.annotate(),
        "group names": lambda topic: topic.group_names(),
        "load-check": lambda topic: topic.load_check(FEW_RELEASES),
        "completeness": lambda topic: topic.graded_state(grade_end=True),
        "diff by offset": lambda topic: topic.diff(from_offset=words.offsets),
        "diff by time": lambda topic: topic.diff(from_time_ms=at, release="2.8.2", mode="lenient"),
        "expiry": lambda topic: topic.expiry(now_ms=_NOW_MS),
        "expiry of 2.8.2": lambda topic: topic.expiry(now_ms=at, release="2.8.2"),
        "transactions": lambda topic: topic.transactions(with_finished=True),
        "rebalances": lambda topic: topic.rebalances(),
        "rebalances of groups": lambda topic: topic.rebalances(groups),
        "owners": lambda topic: topic.owners(),
        "owners of a topic": lambda topic: topic.owners(topic=words.topic),
        "owners at an offset": lambda topic: topic.owners(at_offset=words.offsets),
        "owners at a time": lambda topic: topic.owners(groups=groups, at_time_ms=at),
        "assignments": lambda topic: topic.assignments(every=True),
        "assignments at a time": lambda topic: topic.assignments(at_time_ms=at),
        "diagnose": lambda topic: topic.diagnose(),
        "diagnose groups": lambda topic: topic.diagnose(groups=groups),
        "history": lambda topic: topic.history(group),
        "history of a topic": lambda topic: topic.history(group, topic=words.topic, release="2.8.2"),
        "why": lambda topic: topic.why(group),
        "why, 2.8.2": lambda topic: topic.why(group, release="2.8.2", now_ms=_NOW_MS),
        "explain": lambda topic: topic.explain(group),
        "explain at an offset": lambda topic: topic.explain(group, at_offset=words.offsets),
        "explain at a time": lambda topic: topic.explain(group, at_time_ms=at, release="2.8.2"),
        "reset-plan to a time": lambda topic: topic.reset_plan(groups, at_time_ms=at, now_ms=_NOW_MS, include_pending=True),
        "reset-plan of a rewind": lambda topic: topic.reset_plan(groups, taken_back="before_rewind", now_ms=_NOW_MS),
        "reset-plan of what is lost": lambda topic: topic.reset_plan(groups, taken_back="lost", now_ms=_NOW_MS),
        "sql": lambda topic: topic.sql("select * from history order by all"),
    }
    by_name: Mapping[str, Callable[[OffsetsTopic, Any], Any]] = {
        "growth by {}": lambda topic, by: topic.growth(by, now_ms=_NOW_MS),
        "decoded {}": lambda topic, name: topic.decoded(name),
        "state of {}": lambda topic, release: topic.state(release=release),
        "state of {}, lenient": lambda topic, release: topic.state(release=release, mode="lenient"),
        "state of {} at an offset, not graded": lambda topic, release: topic.state(release=release, at_offset=words.offsets),
        "state of {} at a time, not graded": lambda topic, release: topic.state(release=release, at_time_ms=at),
        "state of {} at an offset": lambda topic, release: topic.graded_state(release=release, at_offset=words.offsets),
        "state of {} at a time": lambda topic, release: topic.graded_state(release=release, at_time_ms=at),
        "state of {}, in memory, of groups": lambda topic, release: topic.state(release=release, view="in_memory", groups=groups),
    }
    names = {"growth": get_args(GrowthBy), "decoded": (*schemas.decoded(), "end_txn_markers"), "state": releases}
    for question, ask in by_name.items():
        for name in names[question.split()[0]]:
            found[question.format(name)] = partial(_ask_of, ask, name)
    found["state by commit time"] = lambda topic: topic.state(release="2.8.2", at_time_ms=at, clock="commit")
    found["state after a crash"] = lambda topic: topic.state(release="2.8.2", stop="unclean")
    return found


def _ask_of(ask: Callable[[OffsetsTopic, Any], Any], name: str, topic: OffsetsTopic) -> Any:
    return ask(topic, name)


def answer_to(directory: Path, ask: Ask, way: Way) -> tuple[Any, Any]:
    """Return the answer as values and tables, or the error, and the findings in their order."""
    options = ReadOptions(least_compiled_bytes=way.least_bytes, threads=way.threads)
    with _in_small_blocks(way), reading(way.least_bytes), OffsetsTopic(discover([str(directory)]), options) as topic:
        try:
            return _plainly(ask(topic)), [repr(finding) for finding in topic.findings]
        except ExhumeError as error:
            return f"{type(error).__name__}: {error}", []


def differences(directory: Path, asked: Mapping[str, Ask], counts: Counter[str]) -> Iterator[tuple[str, str, Any, Any]]:
    """Yield question, way, answer of plain code, and answer of this way, where both differ. `counts` counts the comparisons."""
    for question, ask in asked.items():
        expected = answer_to(directory, ask, PLAINLY)
        for way in WAYS:
            found = answer_to(directory, ask, way)
            counts[way.name] += 1
            if found != expected:
                yield question, way.name, expected, found


def segment_differences(directory: Path, asked: Mapping[str, Ask], counts: Counter[str]) -> Iterator[tuple[str, str, Any, Any]]:
    """The same for one segment against several, in answers without the places in files."""
    if not all(map(_rises, directory.rglob("*.log"))):
        return
    with tempfile.TemporaryDirectory() as made:
        one, many = (rewritten(directory, Path(made, str(most), directory.name), most) for most in (0, 2))
        for question, ask in asked.items():
            if question.startswith(_WITHOUT_SEGMENTS):
                expected, found = (_without_places(answer_to(place, ask, way)[0]) for place, way in ((one, WAYS[0]), (many, WAYS[1])))
                counts["many segments"] += 1
                if found != expected:
                    yield question, "many segments", expected, found


def _rises(segment: Path) -> bool:
    """Return True if the file has batches only, each after the batch before it: then segments can begin with any of them."""
    batches = [*BatchWalk(segment.read_bytes())]
    ends = batches[-1].end_position if batches else 0
    rises = all(before.last_offset < first_offset(after) for before, after in pairwise(batches))
    return rises and ends == segment.stat().st_size


def rewritten(directory: Path, target: Path, most_batches: int) -> Path:
    """Copy a log directory with so many batches in each segment (0: all), and without indexes. Returns the copy."""
    shutil.copytree(directory, target, ignore=shutil.ignore_patterns("*.index", "*.timeindex", "*.txnindex", "*.snapshot"))
    for partition in {path.parent for path in target.rglob("*.log")}:
        segments = sorted(partition.glob("*.log"))
        contents = [path.read_bytes() for path in segments]
        for path, content in zip(segments[1:], contents[1:], strict=True):
            # The name of an empty last segment is the end of the log.
            if content or path != segments[-1]:
                path.unlink()
        if most_batches == 0:
            segments[0].write_bytes(b"".join(contents))
            continue
        for path, content in zip(segments, contents, strict=True):
            _cut(path, content, most_batches)
    return target


def _cut(path: Path, content: bytes, most_batches: int) -> None:
    batches = [*BatchWalk(content)]
    starts = [0, *(batch.byte_position for batch in batches[most_batches::most_batches])]
    names = [path.name, *(f"{first_offset(batch):020d}.log" for batch in batches[most_batches::most_batches])]
    for name, start, end in zip(names, starts, [*starts[1:], len(content)], strict=True):
        (path.parent / name).write_bytes(content[start:end])


def _plainly(answer: Any) -> Any:
    if isinstance(answer, CoordinatorState):
        return _plainly(dict(answer.tables))
    if isinstance(answer, pa.RecordBatchReader):
        return answer.read_all().combine_chunks()
    if isinstance(answer, pa.Table):
        return answer.combine_chunks()
    if isinstance(answer, Mapping):
        return {name: _plainly(each) for name, each in answer.items()}
    if dataclasses.is_dataclass(answer):
        return {field.name: _plainly(getattr(answer, field.name)) for field in dataclasses.fields(answer)}
    return [_plainly(each) for each in answer] if isinstance(answer, (list, tuple)) else repr(answer)


def _without_places(answer: Any) -> Any:
    if isinstance(answer, dict):
        return {name: _without_places(each) for name, each in answer.items() if name != "findings"}
    return answer.drop_columns([name for name in answer.column_names if name in _PLACES]) if isinstance(answer, pa.Table) else answer


@contextmanager
def _in_small_blocks(way: Way) -> Iterator[None]:
    """Cut everything that is cut by a number of batches, rows or bytes into small pieces."""
    with pytest.MonkeyPatch.context() as patch:
        if way.is_small:
            patch.setattr(blocks, "_BLOCK_BATCHES", 3)
            patch.setattr(blocks, "_CAREFUL_BATCHES", 2)
            patch.setattr(scan, "BLOCK_BATCHES", 3)
            patch.setattr(part_folds, "_NEAR_BATCHES", 1)
            patch.setattr(part_folds, "_MOST_ROOM", (100, 10_000, 3))
            patch.setattr(log_folds, "_LEAST_BYTES", 100)
            patch.setattr(fold_tables, "_METADATA_WORTH_MOVING", 1)
            patch.setattr(_CONDENSING, "_BLOCK_ROWS", 2)
            patch.setattr(arrow_rows, "BATCH_ROWS", 7)
        yield


def shown(answer: Any, other: Any) -> str:
    """The first place where two answers differ, in a line."""
    if isinstance(answer, pa.Table) and isinstance(other, pa.Table):
        return shown(answer.to_pylist(), other.to_pylist())
    if isinstance(answer, dict) and isinstance(other, dict) and answer.keys() == other.keys():
        return next((f"{name}: {shown(each, other[name])}" for name, each in answer.items() if each != other[name]), "the same")
    if isinstance(answer, (list, tuple)) and isinstance(other, (list, tuple)) and len(answer) == len(other):
        pairs = enumerate(zip(answer, other, strict=True))
        return next((f"{number}: {shown(*pair)}" for number, pair in pairs if pair[0] != pair[1]), "the same")
    return f"{str(answer)[:600]} | {str(other)[:600]}"


def compare_all(directory: Path, number: int, counts: Counter[str], *, every_release: bool = False) -> Iterator[tuple[str, str, Any, Any]]:
    """Ask everything about the log of this number, and yield the differences; without `every_release` of some spans, in turn."""
    spans = all_spans()
    in_turn = spans if every_release else [spans[(2 * number + more) % len(spans)] for more in range(2)]
    profiles = [*map(profile_for, FEW_RELEASES), *in_turn]
    words = words_of(directory, Random(number))
    yield from differences(directory, questions(words, [each.release for each in profiles]), counts)
    # Such a load depends on how much a read of a segment returns.
    of_any_segments = [each.release for each in profiles if not each.depends_on_chunks]
    yield from segment_differences(directory, questions(words, of_any_segments), counts)


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask everything about the bundled logs, print the counts. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=int, default=None, choices=range(8), help="only one of eight shares of the logs")
    parser.add_argument("--every-release", action="store_true", help="states of every span for every log, not of some spans in turn")
    asked = parser.parse_args(arguments)
    counts: Counter[str] = Counter()
    different = 0
    begun = time.monotonic()
    directories = corpus.data_directories(share=asked.share)
    for number, directory in enumerate(directories):
        for question, way, expected, found in compare_all(directory, number, counts, every_release=asked.every_release):
            different += 1
            place = directory.relative_to(corpus.BUNDLED)
            sys.stdout.write(f"{place}: {question}, by {way}: {shown(expected, found)}\n")
        sys.stdout.flush()
    for name, count in counts.items():
        sys.stdout.write(f"{count:>12,} answers by {name}\n")
    seconds = time.monotonic() - begun
    sys.stdout.write(f"{counts.total():>12,} answers about {len(directories)} logs in {seconds:.0f} s, {different} differ\n")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
