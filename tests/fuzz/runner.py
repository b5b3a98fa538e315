"""Loads and reads logs that somebody tampered with, by kernels and plainly: run by `test_kernels` in a process that checks bounds.

    python -m tests.fuzz.runner DIRECTORY SEED EXAMPLES

A log that is read differently, or that a kernel steps out of, stays in DIRECTORY, and the exception says which. What was done is printed
as JSON.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np

from exhume.codecs import kernels
from exhume.codecs.batches import BatchWalk, read_header_fields
from exhume.codecs.kernels import borders, json_texts, keys, lz4, mentions, messages, records, scan, texts, times, values
from exhume.codecs.kernels.primitives import int16
from exhume.codecs.lenient_records import read_records_leniently
from exhume.fixtures.log_writer import PartitionWriter, group_metadata, offset_commit, tombstone
from exhume.replay import local
from exhume.replay.fold import log as log_folds
from exhume.replay.fold import part as part_folds
from exhume.replay.fold import tables as fold_tables
from exhume.replay.fold.kernels import batches, chosen_groups, gathering, merging, names, scanning
from exhume.replay.partition_load import Mode
from tests.fuzz.mutations import mutated, segments_of, write
from tests.judges import corpus
from tests.twins import COMPILED, PLAIN, RELEASES, assert_equal, assert_same_tables, chunk_rows, state_of
from tests.written_batches import first_offset_of

_MODES: tuple[Mode, ...] = ("strict", "strict", "lenient")
_PARTITIONS = 3
_MOST_BATCHES = (4, 16, 16, 80)
_GROUP = b"group-1"


#: What plain code calls; these call the others.
_ENTRIES: dict[str, Any] = {
    "scan": scan.scan,
    "split": records.split,
    "read_keys": keys.read_keys,
    "read_commits": values.read_commits,
    "read_groups": values.read_groups,
    "copy_texts": texts.copy_texts,
    "number_texts": texts.number_texts,
    "find_escapes": texts.find_escapes,
    "write_texts": json_texts.write_texts,
    "put_side_by_side": lz4.put_side_by_side,
    "write_records": messages.write_records,
    "fold": batches.fold,
    "scan_and_fold": scanning.scan_and_fold,
    "fold_chosen": chosen_groups.fold_chosen,
    "number_groups": chosen_groups._number_groups,
    "join": merging._join,
    "move_entries": names.move_entries,
    "index_producers": names.index_producers,
    "move_metadata": fold_tables.move_metadata,
    "next_batch": borders.next_batch,
    "read_times": times.read_times,
    "take_times": times.take_times,
    "span_offsets": gathering.span_offsets,
    "find_runs": gathering.find_runs,
    "do_rise": gathering.do_rise,
    "list_keys": gathering.list_keys,
    "gather_commits": gathering.gather_commits,
    "gather_column": gathering.gather_column,
    "repeat_sizes": gathering.repeat_sizes,
    "gather_texts": gathering.gather_texts,
    "mark_mentions": mentions.mark_mentions,
}


def bounds_are_checked() -> bool:
    """Return True if a kernel that reads after the end of its array raises an `IndexError`."""
    try:
        int16(np.zeros(8, np.uint8), 7)
    except IndexError:
        return True
    return False


def of_every_kind(directory: Path) -> Path:
    """Commits and groups of every version, transactions, and every codec; transactions of many producers."""
    subscription, assignment = b"\0\1\0\0\0\1\0\6orders\xff\xff\xff\xff\0\0\0\0", b"\0\0\0\0\0\1\0\6orders\0\0\0\1\0\0\0\2\xff\xff\xff\xff"
    with PartitionWriter(directory, 0) as log:
        for version in range(5):
            member = {
                "client_id": "c",
                "client_host": "/h",
                "session_timeout_ms": 30,
                "subscription": subscription,
                "assignment": assignment,
            }
            members = [{**member, "member_id": f"m{number}"} for number in range(3)]
            value = {"protocol_type": "consumer", "generation": 3, "protocol": "range", "leader": "m1", "members": members}
            group = group_metadata(f"group-{version}", value, version=version)
            fields: dict[str, Any] = {"topic_id": "AQIDBAUGBwgJCgsMDQ4PEA"} if version == 4 else {}
            commits = [
                offset_commit(f"group-{version}", "größe", each, 7, commit_timestamp_ms=5, version=version, metadata="m" * each, **fields)
                for each in range(4)
            ]
            log.append([group, *commits], codec=version)
            log.append(commits, producer_id=7, producer_epoch=0, is_transactional=True, codec=version)
            log.append_marker(version % 2, producer_id=7, producer_epoch=0)
            log.append([tombstone(commits[0]), tombstone(group)])
    with PartitionWriter(directory, 1) as log:
        for producer_id in range(60):
            commit = offset_commit(f"group-{producer_id % 3}", "t", producer_id % 2, producer_id, commit_timestamp_ms=5)
            log.append([commit], producer_id=producer_id, producer_epoch=0, is_transactional=True)
            if producer_id % 3:
                log.append_marker(producer_id % 2, producer_id=producer_id - 1, producer_epoch=0)
    with PartitionWriter(directory, 2) as log:
        for number in range(80):
            commit = offset_commit(f"group-{number % 3}", "t", number % 2, number, commit_timestamp_ms=5, version=1)
            group = group_metadata(f"group-{number % 3}", {"protocol_type": "", "generation": number}, version=number % 2)
            codec = number % 4 if number % 20 > 15 else 0
            log.append([commit, group, tombstone((commit, group)[number % 2])][number % 3 :], magic=number // 40, codec=codec)
    return directory


class _Taken(Counter[str]):
    """Counts what went through kernels."""

    def __init__(self) -> None:
        super().__init__()
        load, in_order = local._load_in_columns, scan.in_order

        def load_spy(*arguments: Any) -> Any:
            loaded = load(*arguments)
            self["partitions"] += loaded is not None
            return loaded

        def order_spy(*arguments: Any) -> Any:
            count = in_order(*arguments)
            self["batches"] += count
            return count

        patch.object(local, "_load_in_columns", load_spy).start()
        patch.object(scan, "in_order", order_spy).start()


def write_example(random: Random, sources: list[list[bytes]], directory: Path) -> None:
    """A few partitions: parts of these logs, tampered with, in some segments."""
    for number in range(_PARTITIONS):
        source = random.choice(sources)
        start = random.randrange(len(source))
        most = random.choice(_MOST_BATCHES)
        part = source[start : start + random.randint(1, most)]
        first_offsets = [first_offset_of(batch, read_header_fields(batch, 0)) for batch in part]
        batches = mutated(random, part, random.choice(sources), random.choice((1, 1, 1, 2, 3)))
        write(directory / f"__consumer_offsets-{number}", batches, first_offsets, random.randint(1, most))


def compare(random: Random, directory: Path, releases: Sequence[str] = RELEASES, *, is_whole: bool = False) -> None:
    """Raises where kernels say something else than plain code, or step out of what they were given."""
    # Small blocks, and little patience with what is superseded: tables grow and are moved often.
    scan.BLOCK_BATCHES = random.choice((1, 3, 1024))
    part_folds._NEAR_BATCHES = random.choice((1, 3, 128))
    part_folds._MOST_ROOM = random.choice(((100, 10_000, 3), (1 << 14, 8 << 20, 1 << 12)))
    log_folds._LEAST_BYTES = random.choice((100, 1000, 16 << 20))
    fold_tables._METADATA_WORTH_MOVING = random.choice((1, 100, 4 << 20))
    release, mode, asked = random.choice(releases), random.choice(_MODES), {} if is_whole else _moment(random, directory)
    plainly = state_of(directory, least_bytes=PLAIN, release=release, mode=mode, asked=asked)
    for threads in (1, 2, 8):
        compiled = state_of(directory, least_bytes=COMPILED, release=release, mode=mode, threads=threads, asked=asked)
        assert_equal(compiled, plainly, (release, mode, threads, asked))
    if not is_whole and plainly["groups"].num_rows:
        asked["groups"] = [random.choice(plainly["groups"]["group"].to_pylist())]
        plainly = state_of(directory, least_bytes=PLAIN, release=release, mode=mode, asked=asked)
        for threads in (1, 2):
            compiled = state_of(directory, least_bytes=COMPILED, release=release, mode=mode, threads=threads, asked=asked)
            assert_equal(compiled, plainly, (release, mode, threads, asked))
    assert_same_tables(directory, threads=(2,))
    assert chunk_rows(directory, COMPILED) == chunk_rows(directory, PLAIN)
    for path in directory.rglob("*.log"):
        compare_mentions(path.read_bytes())


def _moment(random: Random, directory: Path) -> dict[str, Any]:
    """The end, or the offset or the time of some batch that is left whole enough to have one."""
    content = random.choice(sorted(directory.rglob("*.log"))).read_bytes()
    batches = [batch for batch in BatchWalk(content) if 0 <= batch.last_offset < 1 << 62]
    if not batches or random.random() < 0.4:
        return {}
    batch = random.choice(batches)
    if batch.max_timestamp_ms is None or random.random() < 0.5:
        return {"at_offset": {0: max(batch.last_offset - random.randrange(3), 0)}}
    return {"at_time_ms": batch.max_timestamp_ms - random.randrange(2)}


def compare_mentions(content: bytes) -> None:
    """Raises where a batch that has a record of a group is not marked."""
    rows = np.empty((max(_MOST_BATCHES) + 1, scan.COLUMNS), np.int64)
    data, name = np.frombuffer(content, np.uint8), np.frombuffer(_GROUP, np.uint8)
    count, _ = scan.scan(data, 0, len(data), True, rows)
    bodies = rows[:count, [scan.POSITION, scan.POSITION]] + np.stack([np.full(count, scan.HEADER_BYTES), rows[:count, scan.SIZE]], axis=1)
    marks = np.empty(count, np.uint8)
    mentions.mark_mentions(rows, 0, count, data, bodies, name, marks)
    for row, is_marked in zip(rows, marks, strict=False):
        batch = read_header_fields(content, int(row[scan.POSITION]))
        keys_of = [record.key for record in read_records_leniently(content, batch)[0] if record.key] if batch.codec == 0 else []
        assert is_marked or not any(key[2:].startswith(len(_GROUP).to_bytes(2, "big") + _GROUP) for key in keys_of)


def main(directory: Path, seed: int, examples: int) -> None:
    """So many examples, each of a seed of its own."""
    if not bounds_are_checked():
        raise SystemExit("EXHUME_KERNELS does not name kernels that check each index")
    versions, producers, old = segments_of(of_every_kind(directory / "kinds"))
    sources = [*segments_of(corpus.BUNDLED), *[versions] * 60, *[producers] * 20, *[old] * 30]
    taken = _Taken()
    # Whole, by a release that takes all of it: no kernel is idle.
    compare(Random(seed), directory / "kinds", ["4.3.0"], is_whole=True)
    for number in range(seed, seed + examples):
        random = Random(number)
        log = directory / str(number)
        try:
            write_example(random, sources, log)
            compare(random, log)
        except BaseException as error:
            error.add_note(f"seed {number}, log {log}")
            raise
        shutil.rmtree(log)
    called = kernels.called()
    idle = [name for name, entry in _ENTRIES.items() if entry.__name__.removeprefix("py_") not in called]
    sys.stdout.write(json.dumps({"idle": idle, **taken}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
