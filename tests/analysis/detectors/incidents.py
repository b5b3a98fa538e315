"""Write incidents of the product, and diagnose them as `exhume diagnose` does."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from pathlib import Path

import exhume
from exhume.analysis.detectors import Inputs
from exhume.analysis.detectors.inputs import read_live_file, read_offsets_file
from exhume.durations import parse_duration
from exhume.findings import Finding
from exhume.fixtures.incidents import Kind, write
from exhume.replay.topic_names import read_topics_file

ALL: Collection[str] = ()


def hit(code: str, directory: Path, which: int | str = 1, *, codes: Collection[str] | None = None) -> list[Finding]:
    """Return the findings in a log with the incident, of the detector of this code, or of `codes` (`ALL`: all)."""
    return _found(code, directory, "hit", which, codes)


def near_miss(code: str, directory: Path, which: int | str = 1, *, codes: Collection[str] | None = None) -> list[Finding]:
    """Return the findings in a log that only looks like it."""
    return _found(code, directory, "near miss", which, codes)


def undecidable(code: str, directory: Path, which: int | str = 1) -> list[Finding]:
    """Return the findings in a log that leaves it undecidable."""
    return _found(code, directory, "undecidable", which, None)


def _found(code: str, directory: Path, kind: Kind, which: int | str, codes: Collection[str] | None) -> list[Finding]:
    written = write(code, directory / "drill", kind=kind, which=which)
    words = [word.replace("DIR", str(directory / "drill")) for word in shlex.split(written.command)]
    options = words[len(written.incident.question.split()) :]
    given = dict(zip(options[::2], options[1::2], strict=True))
    chosen = [code] if codes is None else codes
    with exhume.open([*written.data_directories]) as topic:
        topics_file = Path(given["--topics"]) if "--topics" in given else None
        return [*topic.diagnose(inputs_of(given), codes=chosen or None, topics_file=topics_file)]


def inputs_of(given: dict[str, str]) -> Inputs:
    """Return the inputs of these command line options."""

    def file(option: str) -> Path | None:
        return Path(given[option]) if option in given else None

    ends, starts, topics, live = (file(f"--{name}") for name in ("end-offsets", "start-offsets", "topics", "live"))
    return Inputs(
        end_offsets=None if ends is None else read_offsets_file(ends),
        start_offsets=None if starts is None else read_offsets_file(starts),
        topics=None if topics is None else read_topics_file(topics),
        live=None if live is None else read_live_file(live),
        retention_ms=parse_duration(given["--retention"]) if "--retention" in given else None,
        offsets_partitions=int(given["--offsets-partitions"]) if "--offsets-partitions" in given else None,
    )
