"""What is to be reached: ratios within one run, computed from medians."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass

from benchmarks.measuring import BROKERS, DUMP, Measured, Results

FEW, MANY, GIGABYTE, TEN_GIGABYTES, SMALL = "few-keys 100 MB", "many-keys 100 MB", "few-keys 1000 MB", "few-keys 10000 MB", "few-keys 1 MB"
FOUR = "few-keys 4 × 1000 MB"


class NotMeasured(Exception):
    """This run did not measure what a target is about."""


@dataclass(frozen=True, slots=True)
class Target:
    """`value` raises `NotMeasured` where something is missing. Reached at `at_least` or above, at `at_most` or below."""

    what: str
    log: str
    cores: str
    value: Callable[[], float]
    unit: str = "×"
    _: KW_ONLY
    at_least: float | None = None
    at_most: float | None = None

    @property
    def to_reach(self) -> str:
        bounds = (("≥", self.at_least), ("≤", self.at_most))
        return ", ".join(f"{sign} {self.shown(bound)}" for sign, bound in bounds if bound is not None)

    def is_reached(self, value: float) -> bool:
        return (self.at_least is None or value >= self.at_least) and (self.at_most is None or value <= self.at_most)

    def shown(self, value: float) -> str:
        """`value` with its unit, to three digits or the whole number."""
        digits = 0 if value >= 100 else 1 if value >= 10 else 2
        return f"{value:.{digits}f} {self.unit}"


class Targets:
    """All targets, over one run."""

    def __init__(self, results: Results) -> None:
        self._results = results

    def __iter__(self) -> Iterator[Target]:
        yield self._ratio("floor: speed against the crc32c package", FEW, ("crc32c package", 1), ("floor", 1), at_least=0.9)
        for log in (FEW, GIGABYTE):
            yield self._ratio("scan with CRC: time against the floor", log, ("scan", 1), ("floor", 1), at_most=1.3)
        for log in (FEW, GIGABYTE):
            yield self._ratio("offsets, few keys: time against the floor", log, ("offsets", 1), ("floor", 1), at_most=6)
        floor_speed = self._speed_or_none(FEW, "floor", 1)
        yield Target(
            f"offsets, few keys: speed, the floor being {floor_speed / 1e9:.1f} GB/s" if floor_speed else "offsets, few keys: speed",
            FEW,
            "one",
            lambda: self._speed(FEW, "offsets", 1) / 1e9,
            "GB/s",
            at_least=1,
        )
        yield self._ratio("offsets, many keys: time against the floor", MANY, ("offsets", 1), ("floor", 1), at_most=15)
        for codec in ("lz4", "zstd"):
            log = f"few-keys {codec} 100 MB"
            yield Target(f"offsets, {codec}: time against decompression and uncompressed", log, "one", self._unfolded(log), at_most=1.5)
        yield self._ratio(f"state: speed against {DUMP}", FEW, (DUMP, 2), ("state", 1), at_least=40)
        yield self._ratio(f"state: speed against {DUMP}", FEW, (DUMP, 2), ("state", 2), at_least=70)
        yield Target("state: speed against the fastest broker's load", GIGABYTE, "two", lambda: self._against_brokers(GIGABYTE), at_least=7)
        yield Target("commits and groups to Arrow: speed", FEW, "one", lambda: self._speed(FEW, "decode", 1) / 1e6, "MB/s", at_least=250)
        yield self._ratio("commits and groups to Arrow: speed against plain Python", FEW, ("plain Python", 1), ("decode", 1), at_least=3)
        for cores in (1, 2):
            yield self._ratio(
                "commits counted by group in SQL: time against the decode", FEW, ("sql", cores), ("commits", cores), at_most=2
            )
        for log in (FEW, GIGABYTE):
            yield self._ratio(
                "diagnose, all detectors: time against commits and groups to Arrow", log, ("diagnose", 1), ("decode", 1), at_most=5
            )
        for question in ("one group", "one key's history"):
            yield self._ratio(f"{question}: time against the scan", GIGABYTE, (question, 1), ("scan", 1), at_most=1.5)
        yield self._ratio("state with all tables: time against the offsets alone", FEW, ("state", 1), ("offsets", 1), at_most=2)
        for subject in ("scan", "offsets", "state"):
            yield self._ratio(f"{subject}: speed on two cores against one", GIGABYTE, (subject, 1), (subject, 2), at_least=1.7)
        yield Target("exhume --help: seconds", SMALL, "two", lambda: self._one(SMALL, "exhume --help", 2).median, "s", at_most=0.3)
        for log, command, most in (
            (SMALL, "exhume state, demo log", 0.35),
            (SMALL, "exhume diagnose", 0.6),
            (SMALL, "exhume load-check", 1),
            (FEW, "exhume state", 0.7),
            (FEW, "exhume diagnose", 1.5),
            (FOUR, "exhume state", 3),
            (FOUR, "exhume diagnose", 15),
            (FOUR, "exhume load-check", 10),
            (FOUR, "exhume owners", 5),
        ):
            yield self._seconds(log, command, most)
        yield Target(
            "exhume diagnose: peak RssAnon", FOUR, "two", lambda: self._anonymous(FOUR, "exhume diagnose", 2) / 1e6, "MB", at_most=1000
        )
        for output, least in (("jsonl", 4), ("csv", 4), ("parquet", 3)):
            command = f"exhume dump, {output}"
            yield self._ratio(f"{command}: speed against {DUMP}", FEW, (DUMP, 2), (command, 2), at_least=least)
        yield Target("offsets, 10 GB: ratio to the floor, against 100 MB", TEN_GIGABYTES, "one", self._growth, at_least=0.85, at_most=1.15)
        yield Target("offsets, 10 GB: peak RssAnon", TEN_GIGABYTES, "one", lambda: self._anonymous(TEN_GIGABYTES) / 1e6, "MB", at_most=600)
        yield Target(
            "offsets, 10 GB: peak RssAnon against that of 1 GB",
            TEN_GIGABYTES,
            "one",
            lambda: self._anonymous(TEN_GIGABYTES) / self._anonymous(GIGABYTE),
            at_most=1.15,
        )

    def _ratio(
        self,
        what: str,
        log: str,
        above: tuple[str, int],
        below: tuple[str, int],
        *,
        at_least: float | None = None,
        at_most: float | None = None,
    ) -> Target:
        """The time of one subject over that of another."""
        ours = above if at_least is None else below
        cores = "one" if ours[1] == 1 else "two"
        return Target(
            what, log, cores, lambda: self._one(log, *above).median / self._one(log, *below).median, at_least=at_least, at_most=at_most
        )

    def _seconds(self, log: str, command: str, most: float) -> Target:
        """The time of a whole command."""
        return Target(f"{command}: seconds", log, "two", lambda: self._one(log, command, 2).median, "s", at_most=most)

    def _one(self, log: str, subject: str, cores: int) -> Measured:
        found = self._results.measured.get((log, subject, cores))
        if found is None or not found.seconds:
            raise NotMeasured
        return found

    def _speed(self, log: str, subject: str, cores: int) -> float:
        """Bytes in a second, as they are before compression."""
        seconds = self._one(log, subject, cores).median
        return self._results.contents[log].plain_bytes / seconds

    def _speed_or_none(self, log: str, subject: str, cores: int) -> float | None:
        try:
            return self._speed(log, subject, cores)
        except NotMeasured:
            return None

    def _unfolded(self, log: str) -> Callable[[], float]:
        def value() -> float:
            path = self._one(log, "decompression", 1).median + self._one(FEW, "offsets", 1).median
            return self._one(log, "offsets", 1).median / path

        return value

    def _against_brokers(self, log: str) -> float:
        loads = [measured.median for (case, subject, _), measured in self._results.measured.items() if case == log and subject in BROKERS]
        if not loads:
            raise NotMeasured
        return min(loads) / self._one(log, "state", 2).median

    def _growth(self) -> float:
        few, ten = (self._one(log, "offsets", 1).median / self._one(log, "floor", 1).median for log in (FEW, TEN_GIGABYTES))
        return ten / few

    def _anonymous(self, log: str, subject: str = "offsets", cores: int = 1) -> float:
        peak = self._one(log, subject, cores).anonymous_bytes
        if peak is None:
            raise NotMeasured
        return peak
