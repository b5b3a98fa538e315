"""The tables of a run, in Markdown: ratios, measurements, stages, and the machine."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.measuring import Results
from benchmarks.stages import REST, STAGES
from benchmarks.targets import NotMeasured, Targets
from exhume._kernels import CRC32C_WAY

BEGIN = "<!-- measured: written by `make bench`, do not edit -->"
END = "<!-- end of measured -->"
_PACKAGES = ("exhume", "numpy", "pyarrow", "crc32c", "lz4", "zstandard", "aiokafka")


def summary(results: Results) -> str:
    """Ratios, the median of each subject, and the machine: the tables of docs/performance.md."""
    parts = ["### Ratios", _ratios(results)]
    parts += ["### Medians", table(("log", "subject", "cores", "MB/s", "median s", "RssAnon MB"), _medians(results))]
    return _with_remarks(parts, results)


def report(results: Results) -> str:
    """All tables of this run."""
    parts = ["### Ratios", _ratios(results)]
    columns = ("log", "subject", "cores", "MB/s", "min s", "median s", "max s", "runs", "RssAnon MB", "RSS MB")
    parts += ["### Measurements", table(columns, _measurements(results))]
    parts += ["### Stages", table(("log", "subject", "stage", "ms", "share"), _stages(results))]
    parts += ["### Logs", table(("log", "MB", "batches", "records", "of groups", "live offsets"), _logs(results))]
    return _with_remarks(parts, results)


def _ratios(results: Results) -> str:
    return table(("what", "log", "cores", "measured", "to reach", "reached"), _targets(results))


def _with_remarks(parts: list[str], results: Results) -> str:
    if results.missing or results.failures:
        parts += ["### Not measured", "\n".join(f"- {remark}" for remark in [*results.failures, *results.missing])]
    parts += ["### Ran on", "\n".join(f"- {line}" for line in machine())]
    return "\n\n".join(parts) + "\n"


def write_into(page: Path, text: str) -> None:
    """Put `text` between the two markers of this page.

    Raises:
        ValueError: the page has no such markers.
    """
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page} has no place for measurements: the lines {BEGIN} and {END}")
    page.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}", encoding="utf-8")


def _targets(results: Results) -> Iterator[Sequence[str]]:
    for target in Targets(results):
        try:
            value = target.value()
        except NotMeasured:
            yield (target.what, target.log, target.cores, "not run", target.to_reach, "")
        else:
            reached = "yes" if target.is_reached(value) else "**no**"
            yield (target.what, target.log, target.cores, target.shown(value), target.to_reach, reached)


def _measurements(results: Results) -> Iterator[Sequence[str]]:
    for (case, subject, cores), measured in results.measured.items():
        if measured.seconds:
            speed = results.contents[case].plain_bytes / measured.median / 1e6
            times = (min(measured.seconds), measured.median, max(measured.seconds))
            yield (
                case,
                subject,
                str(cores),
                "" if subject.startswith("exhume ") else f"{speed:,.0f}",
                *(f"{seconds:.3f}" for seconds in times),
                str(len(measured.seconds)),
                _megabytes(measured.anonymous_bytes),
                _megabytes(measured.resident_bytes),
            )


def _medians(results: Results) -> Iterator[Sequence[str]]:
    for case, subject, cores, speed, _, median, _, _, anonymous, _ in _measurements(results):
        yield (case, subject, cores, speed, median, anonymous)


def _stages(results: Results) -> Iterator[Sequence[str]]:
    """Each stage by its median, beside what they are together."""
    for (case, subject, _), measured in results.measured.items():
        if measured.stages:
            medians = {stage: statistics.median(run.get(stage, 0.0) for run in measured.stages) for stage in (*STAGES[subject], REST)}
            for stage, seconds in medians.items():
                yield (case, subject, stage, f"{seconds * 1000:,.1f}", f"{seconds / sum(medians.values()):.0%}")


def _logs(results: Results) -> Iterator[Sequence[str]]:
    for name, content in results.contents.items():
        size = f"{content.size_bytes / 1e6:,.0f}"
        yield (name, size, *(f"{count:,}" for count in (content.batches, content.records, content.group_records, content.live_offsets)))


def _megabytes(size: int | None) -> str:
    return "" if size is None else f"{size / 1e6:,.0f}"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def machine() -> Iterator[str]:
    """What this ran on, line by line."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    instruction = "with the processor's CRC-32C instruction" if CRC32C_WAY == 2 else "without a CRC-32C instruction"
    yield f"{_processor()}, {cores} cores, {instruction}"
    if hasattr(os, "sysconf"):
        yield f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 1e9:.0f} GB of memory; logs in the page cache"
    if hasattr(os, "getloadavg"):
        yield f"load average over the last quarter of an hour: {os.getloadavg()[2]:.1f}; beyond {cores} something else ran too"
    yield f"{platform.system()} {platform.release()}, Python {platform.python_version()}"
    yield ", ".join(f"{name} {_version(name)}" for name in _PACKAGES)
    yield _java()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    named = {key.strip(): value.strip() for key, value in fields.items()}
    family = ", ".join(f"{key} {named[key]}" for key in ("cpu family", "model") if key in named)
    return f"{named.get('model name', platform.machine())} ({family})" if family else named.get("model name", platform.machine())


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"


def _java() -> str:
    try:
        said = subprocess.run(["java", "-version"], check=False, capture_output=True, text=True).stderr.splitlines()
    except FileNotFoundError:
        return "no Java"
    return said[0] if said else "a Java that names no version"
