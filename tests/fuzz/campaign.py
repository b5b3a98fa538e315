"""Fuzz the readers of hostile bytes, and whole questions: `make fuzz`.

    python -m tests.fuzz.campaign --minutes 5 --seed 7 --directory build/fuzz

First, damaged logs are asked questions by several ways to read them, for a fifth of the time (`tests.fuzz.answers`): a log whose answers
differ is kept in DIRECTORY/crashes/answers. Then each reader gets inputs that are changed with respect to its format, and inputs that
Atheris chooses by coverage where it is installed. Inputs that reach new code stay in DIRECTORY/corpus/<reader>, minimised crashes in
DIRECTORY/crashes/<reader>. The counts are printed at the end; the exit code is 1 if anything crashed.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import re
import resource
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from exhume.errors import ExhumeError
from exhume.replay.releases import all_spans
from tests.fuzz.answers import differences, questions, shown, words_of
from tests.fuzz.entries import ENTRIES, Entry, check, corpus_of
from tests.fuzz.mutations import edited, segments_of
from tests.fuzz.runner import write_example
from tests.judges import corpus

#: An input that takes longer than this is a hang. It is processor time: a busy machine is none.
HANG_SECONDS = 20
#: The address space that inputs may take besides what the process has at its start.
BUDGET_BYTES = 1 << 30
_ROUND_INPUTS = 2000
#: The questions to one damaged log.
_QUESTIONS = 10


class Hang(Exception):
    """An input took too long."""


@dataclass
class Campaign:
    """Counts, and the directory with corpus and crashes."""

    directory: Path
    seed: int
    counts: Counter[str] = field(default_factory=Counter)
    crashes: list[Path] = field(default_factory=list)

    def run(self, names: Sequence[str], end: float, most_inputs: int | None = None) -> None:
        """Fuzz these readers in turns until this time, or up to a number of inputs each."""
        random = Random(self.seed)
        inputs = {name: corpus_of(name, self.directory / "corpus") for name in names}
        turn = 0
        while time.monotonic() < end and (most_inputs is None or turn * _ROUND_INPUTS < most_inputs):
            for name in names:
                # An archive needs files, so it gets fewer inputs.
                count = min(_ROUND_INPUTS, most_inputs or _ROUND_INPUTS) // (10 if name in ("archive", "log") else 1)
                self._round(name, ENTRIES[name], inputs[name], random, count)
            turn += 1

    def _round(self, name: str, entry: Entry, inputs: list[bytes], random: Random, count: int) -> None:
        change = entry.change or edited
        for _ in range(count):
            data = random.choice(inputs)
            for _ in range(random.choice((1, 1, 2, 4))):
                # A batch may have fields that no writer can write again.
                with suppress(ExhumeError):
                    data = change(random, data, random.choice(inputs))[: 64 * 1024]
            self.counts[name] += 1
            if (error := _failure(entry, data)) is not None:
                self.keep(name, data, error)

    def keep(self, name: str, data: bytes, error: BaseException) -> None:
        """Minimise an input that crashed, and keep it once for each place that crashes."""
        place = _place(error)
        directory = self.directory / "crashes" / name
        path = directory / hashlib.sha256(place.encode()).hexdigest()[:16]
        if path in self.crashes:
            return
        self.crashes.append(path)
        directory.mkdir(parents=True, exist_ok=True)
        small = minimised(data, lambda each: (found := _failure(ENTRIES[name], each)) is not None and _place(found) == place)
        path.write_bytes(small)
        path.with_suffix(".txt").write_text("".join(traceback.format_exception(error)))
        sys.stdout.write(f"crash of {name}: {place}\n  {path} ({len(small)} bytes)\n")

    def compare_answers(self, end: float) -> None:
        """Ask damaged logs some questions by every way to read them, until this time."""
        random, sources = Random(self.seed), segments_of(corpus.BUNDLED)
        spans = all_spans()
        while time.monotonic() < end:
            number = random.randrange(1 << 32)
            kept = self.directory / "crashes" / "answers" / str(number)
            with tempfile.TemporaryDirectory() as made:
                directory = Path(made, "data")
                write_example(Random(number), sources, directory)
                asked = questions(words_of(directory, random), [random.choice(spans).release])
                some = dict(random.sample(sorted(asked.items()), _QUESTIONS))
                for question, way, expected, found in differences(directory, some, self.counts):
                    sys.stdout.write(f"{kept}: {question}, by {way}: {shown(expected, found)}\n")
                    if kept not in self.crashes:
                        self.crashes.append(kept)
                        shutil.copytree(directory, kept)


def minimised(data: bytes, still_fails: Callable[[bytes], bool]) -> bytes:
    """Return a part of these bytes that fails in the same way, from which no piece can be taken."""
    size = len(data) // 2
    while size:
        start = 0
        while start < len(data):
            shorter = data[:start] + data[start + size :]
            if still_fails(shorter):
                data = shorter
            else:
                start += size
        size //= 2
    return data


def _failure(entry: Entry, data: bytes) -> BaseException | None:
    try:
        with _limited():
            check(entry, data)
    except (Exception, Hang) as error:
        return error
    return None


@contextmanager
def _limited() -> Iterator[None]:
    signal.setitimer(signal.ITIMER_VIRTUAL, HANG_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _hang(*_: object) -> None:
    raise Hang


def _place(error: BaseException) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {Path(last.filename).name}:{last.lineno}"


def guided(campaign: Campaign, names: Sequence[str], seconds: int) -> None:
    """Let Atheris choose inputs by the code that they reach, in a process for each reader."""
    for name in names:
        kept, crashes = campaign.directory / "corpus" / name, campaign.directory / "crashes" / name
        kept.mkdir(parents=True, exist_ok=True)
        crashes.mkdir(parents=True, exist_ok=True)
        limits = [
            f"-max_total_time={max(seconds, 1)}",
            f"-timeout={HANG_SECONDS}",
            "-rss_limit_mb=2048",
            "-max_len=8192",
            "-print_final_stats=1",
        ]
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "tests.fuzz.guided",
                name,
                str(kept),
                f"-seed={campaign.seed % 2**31}",
                f"-artifact_prefix={crashes}/",
                *limits,
            ],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        runs = re.search(r"number_of_executed_units:\s+(\d+)", done.stderr)
        campaign.counts[f"{name}, by coverage"] += int(runs[1]) if runs else 0
        if done.returncode:
            sys.stdout.write(done.stderr[-3000:])
        for path in crashes.glob("*-*"):
            data = path.read_bytes()
            path.unlink()
            error = _failure(ENTRIES[name], data) or Hang("it fails in Atheris only")
            campaign.keep(name, data, error)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a campaign and print its counts. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--minutes", type=float, default=5, help="how long to run; half of the inputs are chosen by coverage, if Atheris is installed"
    )
    parser.add_argument("--seed", type=int, default=None, help="a number; default: a fresh one, which is printed")
    parser.add_argument("--directory", type=Path, default=Path("build/fuzz"), help="where corpus and crashes are kept")
    parser.add_argument("--entry", action="append", choices=list(ENTRIES), help="only this reader; repeatable")
    parser.add_argument("--inputs", type=int, default=None, help="end after so many inputs for each reader")
    parser.add_argument("--unguided", action="store_true", help="without Atheris")
    asked = parser.parse_args(arguments)
    names = asked.entry or list(ENTRIES)
    campaign = Campaign(asked.directory, secrets.randbits(31) if asked.seed is None else asked.seed)
    sys.stdout.write(f"seed {campaign.seed}\n")
    signal.signal(signal.SIGVTALRM, _hang)
    is_guided = not asked.unguided and importlib.util.find_spec("atheris") is not None
    minutes = asked.minutes
    if asked.entry is None and asked.inputs is None:
        campaign.compare_answers(time.monotonic() + minutes * 60 / 5)
        minutes *= 4 / 5
    seconds = minutes * 60 / (2 if is_guided else 1)
    if is_guided:
        guided(campaign, names, int(seconds / len(names)))
    _limit_memory()
    campaign.run(names, time.monotonic() + seconds, asked.inputs)
    for name, count in campaign.counts.items():
        sys.stdout.write(f"{count:>12,} {name}\n")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sys.stdout.write(f"{campaign.counts.total():>12,} inputs, {len(campaign.crashes)} crashes, {peak // 1024} MiB at the peak\n")
    return 1 if campaign.crashes else 0


@contextmanager
def memory_as_it_was() -> Iterator[None]:
    """Lift the memory limit of a campaign at the end."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def _limit_memory() -> None:
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * os.sysconf("SC_PAGE_SIZE") + BUDGET_BYTES, resource.RLIM_INFINITY))


if __name__ == "__main__":
    sys.exit(main())
