"""The segments of one partition directory, and which of them make up the log.

A broker reads the files that have their final name. Leftovers are listed, but read only on request:

    .deleted   segments that compaction or truncation replaced
    .swap      compacted segments on their way to their final names
    .cleaned   compacted segments that the cleaner had not finished

One exception: a broker that stopped while it swapped leaves segments as `.log.swap`. It completes the swap at its next start. This module
reads the segments as after that start: every `.log.swap`, but not the segments that the swap replaces.

Source: LogLoader.load, LogLoader.removeTempFilesAndCollectSwapFiles of Kafka 3.8.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from exhume.codecs.batches import BatchWalk
from exhume.codecs.file_names import FileKind, FileName, Origin, parse_file_name
from exhume.codecs.volumes import Entry, EvidenceFile, Volume
from exhume.errors import EvidenceError
from exhume.findings import Finding, Findings, Severity


@dataclass(frozen=True, slots=True)
class Reporter:
    """Adds findings about the files of one log directory (`replica`), or of one offsets partition in it."""

    findings: Findings
    replica: str
    offsets_partition: int | None = None

    def info(self, code: str, path: str, sentence: str, *, remedy: str | None = None) -> None:
        """Add a finding that does not affect the answer."""
        self._add(code, path, sentence, "info", remedy)

    def warn(self, code: str, path: str, sentence: str, *, remedy: str | None = None) -> None:
        """Add a finding to check; the answer is complete even so."""
        self._add(code, path, sentence, "warn", remedy)

    def _add(self, code: str, path: str, sentence: str, severity: Severity, remedy: str | None) -> None:
        finding = Finding(
            code=code,
            severity=severity,
            replica=self.replica,
            offsets_partition=self.offsets_partition,
            path=path,
            sentence=sentence,
            remedy=remedy,
        )
        self.findings.add(finding)


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a segment: from the end of the batch at `batch_before_at` (None: from the start) to the end of a batch at `end`.

    That batch and the one before `end` are sound, so that no damage crosses the borders.
    """

    batch_before_at: int | None
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentFile(EvidenceFile):
    """One segment. `base_offset` is the one in its name; `is_read`: it is part of the log.

    `index`, `timeindex` and `txnindex` are the files beside it with the same suffix; None if they are missing. With a `window` only
    that part of it is read, at the same byte positions.
    """

    base_offset: int
    origin: Origin
    is_read: bool = True
    index: EvidenceFile | None = None
    timeindex: EvidenceFile | None = None
    txnindex: EvidenceFile | None = None
    window: Window | None = None

    def open(self) -> memoryview:
        if self.window is None:
            return self.volume.open(self.entry.path)
        return self.volume.open_window(self.entry.path, self.window.batch_before_at or 0, self.window.end)

    def open_part(self, start: int, end: int) -> memoryview:
        """The bytes up to `end`. The caller reads no byte before `start`."""
        return self.volume.open_window(self.entry.path, start, end)

    @property
    def indexes(self) -> list[EvidenceFile]:
        """The index files that are there."""
        return [file for file in (self.index, self.timeindex, self.txnindex) if file is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotFile(EvidenceFile):
    """A producer snapshot, covering the record offsets below `record_offset`."""

    record_offset: int
    origin: Origin


_INDEX_KINDS: tuple[FileKind, ...] = ("index", "timeindex", "txnindex")


@dataclass(frozen=True, slots=True, order=True)
class _Key:
    """A segment within its directory."""

    base_offset: int
    origin: Origin

    @property
    def rank(self) -> tuple[int, int]:
        """The sort key: by offset, leftovers after the segment itself."""
        return self.base_offset, ("log", "swap", "deleted", "cleaned").index(self.origin)


class SegmentFiles:
    """The files of one partition directory, by their names.

    Args:
        given: the only segment files to take (name to base offset), under any name; None: all files that are named like segments.
    """

    def __init__(self, volume: Volume, entries: Iterable[Entry], given: Mapping[str, int] | None, reporter: Reporter) -> None:
        self._volume = volume
        self._takes_all = given is not None
        self._logs: dict[_Key, Entry] = {}
        self._copies: list[tuple[_Key, Entry]] = []
        self._beside: dict[FileKind, dict[_Key, Entry]] = {"index": {}, "timeindex": {}, "txnindex": {}, "snapshot": {}}
        self._reporter = reporter
        # The spelling with 20 digits first: a broker writes it.
        for entry in sorted(entries, key=lambda entry: (-len(entry.name.partition(".")[0]), entry.name)):
            name = _file_name(entry.name, given)
            if name is None or name.kind == "checkpoint":
                continue
            key = _Key(name.record_offset, name.origin)
            if name.kind != "log":
                self._beside[name.kind].setdefault(key, entry)
            elif key in self._logs:
                self._copies.append((key, entry))
            else:
                self._logs[key] = entry

    def segments(self, include: frozenset[str] = frozenset(), *, is_read: bool = True) -> list[SegmentFile]:
        """Every segment in offset order.

        Args:
            include: leftovers to read besides the log: `deleted`, `swap`, `cleaned`. Segments given by name are always read.
            is_read: False lists the segments only.
        """
        if not is_read:
            read: set[_Key] = set()
        else:
            read = set(self._logs) if self._takes_all else self._part_of_log(include)
        segments = [(key, self._segment(key, entry, is_read=key in read)) for key, entry in self._logs.items()]
        for key, entry in self._copies:
            report_copy(self._volume, self._logs[key], entry, self._reporter)
            segments.append(
                (key, SegmentFile(volume=self._volume, entry=entry, base_offset=key.base_offset, origin=key.origin, is_read=False))
            )
        return [segment for _, segment in sorted(segments, key=lambda pair: pair[0].rank)]

    def snapshots(self) -> list[SnapshotFile]:
        """Every producer snapshot in offset order."""
        return [
            SnapshotFile(volume=self._volume, entry=entry, record_offset=key.base_offset, origin=key.origin)
            for key, entry in sorted(self._beside["snapshot"].items(), key=lambda item: item[0].rank)
        ]

    def orphan_indexes(self) -> list[EvidenceFile]:
        """The indexes whose segment is not there."""
        orphans = [entry for kind in _INDEX_KINDS for key, entry in self._beside[kind].items() if key not in self._logs]
        return [EvidenceFile(volume=self._volume, entry=entry) for entry in sorted(orphans, key=lambda entry: entry.path)]

    def _segment(self, key: _Key, entry: Entry, *, is_read: bool) -> SegmentFile:
        index, timeindex, txnindex = (
            EvidenceFile(volume=self._volume, entry=found) if (found := self._beside[kind].get(key)) else None for kind in _INDEX_KINDS
        )
        return SegmentFile(
            volume=self._volume,
            entry=entry,
            base_offset=key.base_offset,
            origin=key.origin,
            is_read=is_read,
            index=index,
            timeindex=timeindex,
            txnindex=txnindex,
        )

    def _part_of_log(self, include: frozenset[str]) -> set[_Key]:
        """The segments that a broker would read, and the leftovers in `include`."""
        read = {key for key in self._logs if key.origin == "log" or key.origin in include}
        swaps = self._complete_swaps()
        if not swaps or "swap" in include:
            return read
        for key in swaps:
            sentence = "the broker stopped during a swap: this file is read in place of the segments that it replaces, as at the next start"
            self._reporter.info("swap_read", self._volume.shown(self._logs[key].path), sentence)
        first, end = swaps[0].base_offset, max(map(self._next_offset, swaps))
        replaced = {key for key in read if key.origin == "log" and first <= key.base_offset < end}
        for key in sorted(replaced):
            sentence = f"left out: the swap of the offsets {first} to {end - 1} replaces it"
            self._reporter.info(
                "segment_replaced", self._volume.shown(self._logs[key].path), sentence, remedy="Give the file itself to read it"
            )
        return (read - replaced) | set(swaps)

    def _complete_swaps(self) -> list[_Key]:
        """The `.log.swap` in offset order, without those of an incomplete split, which a broker throws away."""
        cleaned = [key.base_offset for key in self._logs if key.origin == "cleaned"]
        return sorted(key for key in self._logs if key.origin == "swap" and not (cleaned and key.base_offset >= min(cleaned)))

    def _next_offset(self, key: _Key) -> int:
        """Return the offset after the last batch that a broker finds in this segment; its base offset if it finds none."""
        try:
            buffer = self._volume.open(self._logs[key].path)
        except EvidenceError:
            return key.base_offset
        return max((batch.last_offset + 1 for batch in BatchWalk(buffer)), default=key.base_offset)


def report_copy(volume: Volume, first: Entry, copy: Entry, reporter: Reporter) -> None:
    """Report that the second file is a copy of the first, or that it has the same name and other bytes."""
    path, first_path = volume.shown(copy.path), volume.shown(first.path)
    if volume.open(first.path) == volume.open(copy.path):
        reporter.info("duplicate_segment", path, f"this file has the same bytes as {first_path}; it is read once")
    else:
        remedy = f"Read it alone: give {path}"
        reporter.warn(
            "duplicate_segment",
            path,
            f"this file is the same segment as {first_path}, but has other bytes; the first is read",
            remedy=remedy,
        )


def _file_name(name: str, given: Mapping[str, int] | None) -> FileName | None:
    parsed = parse_file_name(name)
    if given is None or (parsed is not None and parsed.kind != "log"):
        return parsed
    return FileName(given[name], "log", parsed.origin if parsed else "log") if name in given else None
