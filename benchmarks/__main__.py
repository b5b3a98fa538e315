"""Measure exhume beside the floor and its rivals, and write docs/performance.md.

    python -m benchmarks                      100 MB and 1 GB: docs/performance.md is written
    python -m benchmarks --quick              100 MB, three repetitions: the tables are printed
    python -m benchmarks --only state         only subjects with this in their name, and the floor: the tables are printed
    python -m benchmarks --large              10 GB too, which is removed afterwards
    python -m benchmarks --spark              Spark beside the local engine, 1 and 10 GB (--quick: 100 and 400 MB): docs/spark.md
    python -m benchmarks --capture            `exhume capture` beside librdkafka, 100 MB and 1 GB (--quick: 50 and 100 MB): docs/capture.md
    python -m benchmarks --assignors          exhume's assignors beside Kafka's own classes, warm: the table is printed

Subjects take turns, repetition by repetition, over the same bytes in the page cache; each answer is compared with what the generator knows.
Logs are kept in build/bench, and the full report of the last run. A subject that this machine cannot run is named and left out.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks import assignors, capture, spark
from benchmarks.measuring import BROKERS, DUMP, Case, Results, log_of, measure, say
from benchmarks.report import report, summary, write_into

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "performance.md"
SCRATCH = ROOT / "build" / "bench"

_QUESTIONS = ("one group", "one key's history")
#: Processes that read a copy without index files.
_COMMANDS = ("exhume state", "exhume diagnose", "exhume dump, jsonl", "exhume dump, csv", "exhume dump, parquet")
_WARM_UP = Case("few-keys", 1, two_cores=("exhume --help", "exhume state, demo log", "exhume diagnose", "exhume load-check"))


def _cases(*, quick: bool, large: bool) -> Iterator[Case]:
    brokers = tuple(BROKERS)
    yield _WARM_UP
    yield Case(
        "few-keys",
        100,
        one_core=(
            "floor",
            "crc32c package",
            "scan",
            "offsets",
            "state",
            "decode",
            "commits",
            "sql",
            "inspect",
            "diagnose",
            *_QUESTIONS,
            "plain Python",
        ),
        two_cores=("scan", "offsets", "state", "commits", "sql", *_COMMANDS, DUMP, *(brokers if quick else ())),
    )
    yield Case("many-keys", 100, one_core=("floor", "scan", "offsets"), two_cores=("offsets",))
    for codec in ("lz4", "zstd"):
        yield Case("few-keys", 100, codec, one_core=("floor", "decompression", "scan", "offsets"), two_cores=("offsets",))
    yield Case("transactional", 100, one_core=("floor", "scan", "offsets"), two_cores=("offsets",))
    yield Case("old-formats", 100, one_core=("scan", "offsets"), two_cores=("offsets",))
    if not quick:
        ours = ("floor", "crc32c package", "scan", "offsets", "state", "decode", "inspect", "diagnose", *_QUESTIONS)
        yield Case("few-keys", 1000, one_core=ours, two_cores=("scan", "offsets", "state", *brokers))
        yield Case("few-keys", 1000, partitions=4, two_cores=("exhume state", "exhume diagnose", "exhume load-check", "exhume owners"))
    if large:
        yield Case("few-keys", 10_000, one_core=("floor", "scan", "offsets"), two_cores=("scan", "offsets"))


def main() -> int:
    """Run the benchmarks; the exit status is 1 where a subject failed or answered wrongly."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="100 MB only, three repetitions")
    parser.add_argument("--large", action="store_true", help="also 10 GB: growth and memory")
    parser.add_argument("--only", default="", metavar="NAME", help="only subjects with this in their name, and the floor")
    parser.add_argument("--log", default="", metavar="NAME", help="only logs with this in their name, such as 'lz4' or '1000 MB'")
    parser.add_argument(
        "--repetitions", type=int, metavar="N", help="at most (default: 7, quick 3); none begins after a minute of one subject"
    )
    parser.add_argument("--output-file", type=Path, metavar="FILE", help="write the tables there")
    parser.add_argument("--spark", action="store_true", help="Spark on two local cores beside the local engine, and nothing else")
    parser.add_argument("--capture", action="store_true", help="`exhume capture` beside librdkafka from a broker, and nothing else")
    parser.add_argument("--assignors", action="store_true", help="the assignors beside Kafka's own classes, and nothing else")
    asked = parser.parse_args()
    # Brokers and workers are stopped on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if asked.spark:
        return spark.run(SCRATCH, ROOT / "docs" / "spark.md", quick=asked.quick, repetitions=asked.repetitions or 3)
    if asked.capture:
        return capture.run(ROOT / "docs" / "capture.md", quick=asked.quick, repetitions=asked.repetitions or 3)
    if asked.assignors:
        return assignors.run(repetitions=asked.repetitions or 5)
    repetitions = asked.repetitions or (3 if asked.quick else 7)
    results = Results()
    with log_of(_WARM_UP, SCRATCH) as warm_up:
        for case in _cases(quick=asked.quick, large=asked.large):
            if asked.log in case.name:
                say(case.name)
                with log_of(case, SCRATCH, keep=case.megabytes * case.partitions <= 1000) as log:
                    measure(case, log, results, repetitions=repetitions, warm_up=warm_up, only=asked.only)
    text = report(results)
    if asked.output_file is not None:
        asked.output_file.write_text(text, encoding="utf-8")
    elif asked.quick or asked.only or asked.log:
        sys.stdout.write(text)
    else:
        write_into(PAGE, summary(results))
        full = SCRATCH / "report.md"
        full.write_text(text, encoding="utf-8")
        say(f"Written: {PAGE}; all tables, stages too: {full}")
    return 1 if results.failures else 0


if __name__ == "__main__":
    sys.exit(main())
