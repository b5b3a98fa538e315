"""Capture the offsets topic of a running cluster into an evidence directory: once up to its end, or on and on.

A capture ends at the high watermarks that it found; with a listing of the groups, it ends after that listing. A flight recorder (`follow`)
goes on until it is stopped, and after a stop or a kill where it ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exhume._version import __version__
from exhume.capture.cluster import TOPIC_DENIED, Cluster, TopicInfo, Unreachable, patiently
from exhume.capture.evidence_directory import EvidenceDirectory
from exhume.capture.fetching import Fetcher, LostRecords, Part, Totals, denied, now_text
from exhume.capture.live_listing import Listing, groups_json, live_text, offsets_text, take_listing, take_topics, topics_csv
from exhume.capture.recorded_partition import Gap, RecordedPartition
from exhume.codecs.evidence_files import END_OFFSETS, GROUPS, LIVE, START_OFFSETS, TOPICS, CapturedPartition, ListingSpan, Run
from exhume.codecs.file_names import OFFSETS_TOPIC
from exhume.codecs.offsets_topic import offsets_partition_of
from exhume.errors import EvidenceError, RequestError

#: Runs that the manifest keeps, the latest ones.
_MOST_RUNS = 200
_RETENTION = "offsets.retention.minutes"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureOptions:
    """What to capture, and how. Sizes in bytes, times in milliseconds.

    `partitions` None: all partitions, or with `groups` those of the groups. `fsync_ms` 0: after each write. `keep_ms`, `keep_bytes`: older
    segments are removed, the oldest first; None: none. `timeout_ms`: a capture ends with an error after so much time without an answer.
    `with_listing`: also ask the coordinators.
    """

    partitions: Collection[int] | None = None
    groups: Collection[str] | None = None
    with_listing: bool = True
    segment_bytes: int = 100 * 1024 * 1024
    segment_ms: int | None = None
    fsync_ms: int = 1000
    keep_ms: int | None = None
    keep_bytes: int | None = None
    timeout_ms: int = 60_000
    manifest_ms: int = 30_000
    listing_ms: int = 3_600_000


class Capture:
    """A capture into one evidence directory.

    Args:
        cluster: the connections.
        directory: where the records go; an earlier capture in it goes on.
        options: what to capture.
        progress: called with the totals after each answer.
        should_stop: asked between two answers; True ends the capture.

    Raises:
        EvidenceError: no broker answers, the client may not read the topic, or there is none.
        RequestError: a partition that the topic does not have, or a directory with records of another cluster.
    """

    def __init__(
        self,
        cluster: Cluster,
        directory: EvidenceDirectory,
        options: CaptureOptions,
        *,
        progress: Callable[[Totals], None] = lambda _: None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._listing_warnings: list[str] = []
        self._cluster = cluster
        self._directory = directory
        self._options = options
        self._progress = progress
        self._should_stop = should_stop
        self._timeout_s = options.timeout_ms / 1000
        self._run: Run = {"started_at": now_text(), "ended_at": None, "cut_bytes": 0}
        self._runs: list[Run] = [*directory.earlier.get("runs", []), self._run][-_MOST_RUNS:]
        self._listing: ListingSpan | None = directory.earlier.get("listing")
        self._due = dict.fromkeys(("fsync", "manifest", "listing"), 0.0)
        topic = self._look()
        self._partition_count = len(topic.leaders)
        self._parts = self._begin(topic)
        self._fetcher = Fetcher(cluster, self._parts, topic)
        self._retention_ms = self._read_retention()
        self.save(is_complete=False)

    @property
    def totals(self) -> Totals:
        """Counts since the start."""
        return self._fetcher.totals

    @property
    def warnings(self) -> list[str]:
        """Sentences about answers that are missing."""
        return [*self._fetcher.warnings, *self._listing_warnings]

    @property
    def parts(self) -> dict[int, Part]:
        """The captured partitions by number."""
        return self._parts

    def close(self) -> None:
        """Close the segments."""
        for part in self._parts.values():
            part.recorded.close()

    # The beginning

    def _look(self) -> TopicInfo:
        self._info = patiently(lambda: self._cluster.info([OFFSETS_TOPIC]), self._timeout_s, self._cluster.place)
        topic = self._info.topics[OFFSETS_TOPIC]
        if topic.error_code == TOPIC_DENIED:
            raise denied(self._cluster.place, "READ and DESCRIBE")
        if not topic.leaders:
            raise EvidenceError(
                f"the cluster has no topic {OFFSETS_TOPIC}: no group has committed an offset yet",
                path=self._cluster.place,
                remedy="Check that these are the bootstrap servers of the right cluster",
            )
        return topic

    def _begin(self, topic: TopicInfo) -> dict[int, Part]:
        """Check that an earlier capture in the directory has the same topic, and go on after its last whole batches."""
        directory, options = self._directory, self._options
        directory.require_same("cluster_id", self._info.cluster_id)
        directory.require_same("topic_id", topic.topic_id)
        directory.write_identity(self._info.cluster_id)
        digests = directory.earlier_digests()
        earlier = {row["offsets_partition"]: row for row in directory.earlier.get("partitions", [])}
        parts = {}
        cut_bytes = 0
        for number in sorted(self._wanted(topic) | set(earlier)):
            recorded = RecordedPartition(directory.root, number, segment_bytes=options.segment_bytes, segment_ms=options.segment_ms)
            recorded.resume(digests, topic.topic_id)
            cut_bytes += recorded.cut_bytes
            parts[number] = _part(recorded, earlier.get(number, {}))
        self._run["cut_bytes"] = cut_bytes
        return parts

    def _wanted(self, topic: TopicInfo) -> set[int]:
        options = self._options
        wanted = set(topic.leaders)
        if options.partitions is not None:
            unknown = sorted(set(options.partitions) - wanted)
            if unknown:
                message = f"{OFFSETS_TOPIC} has no partition {', '.join(map(str, unknown))}"
                raise RequestError(message, remedy=f"Choose from 0 to {self._partition_count - 1}")
            wanted = set(options.partitions)
        if options.groups is not None:
            wanted &= {offsets_partition_of(group, self._partition_count) for group in options.groups}
        return wanted

    def _read_retention(self) -> int | None:
        node = next(iter(self._info.brokers), None)
        try:
            text = None if node is None else self._cluster.config(node, _RETENTION)
        except Unreachable:
            return None
        return int(text) * 60_000 if text is not None and text.isascii() and text.isdigit() else None

    # The two kinds of capture

    def run_once(self) -> None:
        """Capture up to the high watermarks of this moment, and with a listing up to those after it.

        Raises:
            EvidenceError: a leader gives no answer, or refuses, or has lost captured records; the directory keeps what was captured.
        """
        with self._noting_losses():
            self._run_once()

    def _run_once(self) -> None:
        self._fetch_to_end()
        if self._options.with_listing and not self._should_stop():
            listing = self._take_listing()
            self._fetch_to_end()
            if listing is not None:
                self._write_listing(listing, is_current=True)
        self._end(is_complete=not self._should_stop())

    def follow(self) -> None:
        """Capture until `should_stop`, whatever happens to the brokers meanwhile.

        Raises:
            EvidenceError: the disk refuses bytes, the client lost a permission, or the log lost records that were captured.
        """
        for part in self._parts.values():
            part.target = None
        with self._noting_losses():
            while not self._should_stop():
                self._fetcher.step()
                self._progress(self.totals)
                self._tick()
            self._end(is_complete=True)

    @contextmanager
    def _noting_losses(self) -> Iterator[None]:
        """Write the manifest, with the first lost offset, where a leader has lost captured records."""
        try:
            yield
        except LostRecords:
            self._end(is_complete=False)
            raise

    def _fetch_to_end(self) -> None:
        ends = patiently(self._fetcher.ends, self._timeout_s, self._cluster.place)
        for number, (_, end) in ends.items():
            self._parts[number].target = end
        last_answer = time.monotonic()
        while not self._should_stop() and not all(part.is_at_target for part in self._parts.values()):
            if self._fetcher.step():
                last_answer = time.monotonic()
            self._progress(self.totals)
            self._sync_if_due()
            if time.monotonic() - last_answer > self._timeout_s:
                self.save(is_complete=False)
                missing = sorted(number for number, part in self._parts.items() if not part.is_at_target)
                why = f": {self._cluster.last_problem}" if self._cluster.last_problem else ""
                raise EvidenceError(
                    f"no leader of the partitions {', '.join(map(str, missing))} answered within {self._timeout_s:.0f} s{why}",
                    path=self._cluster.place,
                    remedy="Check these brokers, and run the command again with the same directory: it goes on where it ended",
                )

    def _end(self, *, is_complete: bool) -> None:
        self._run["ended_at"] = now_text()
        self.close()
        self.save(is_complete=is_complete)

    # What is due from time to time

    def _tick(self) -> None:
        self._sync_if_due()
        if self._is_due("manifest", self._options.manifest_ms):
            self._remove_old_segments()
            self.save(is_complete=False)
        has_caught_up = all(part.has_caught_up for part in self._parts.values())
        if self._options.with_listing and has_caught_up and self._is_due("listing", self._options.listing_ms):
            listing = self._take_listing()
            if listing is not None:
                self._write_listing(listing, is_current=False)

    def _sync_if_due(self) -> None:
        if self._is_due("fsync", self._options.fsync_ms):
            self.totals.fsyncs += sum(part.recorded.sync() for part in self._parts.values())

    def _is_due(self, name: str, every_ms: int) -> bool:
        now = time.monotonic()
        if now < self._due[name]:
            return False
        self._due[name] = now + every_ms / 1000
        return True

    def _remove_old_segments(self) -> None:
        options = self._options
        doomed: list[tuple[Part, Path]] = []
        if options.keep_ms is not None:
            before_s = time.time() - options.keep_ms / 1000
            doomed += [(part, path) for part in self._parts.values() for path in part.recorded.closed_before(before_s)]
        if options.keep_bytes is not None:
            size = sum(part.recorded.size_bytes for part in self._parts.values())
            closed = sorted((*row, number) for number, part in self._parts.items() for row in part.recorded.closed())
            for _, size_bytes, path, number in closed:
                if size <= options.keep_bytes:
                    break
                size -= size_bytes
                if (self._parts[number], path) not in doomed:
                    doomed.append((self._parts[number], path))
        for part, path in sorted(doomed, key=lambda item: item[1]):
            part.recorded.forget(path)
        if doomed:
            # A kill after this leaves files that the manifest does not list, and not the other way round.
            self.save(is_complete=False)
        for _, path in doomed:
            path.unlink()
        self.totals.removed_segments += len(doomed)

    # The listing

    def _take_listing(self) -> Listing | None:
        before, started_at = self._written_ends(), now_text()
        try:
            listing = take_listing(self._cluster, self._fetcher.leaders, self._partition_count, self._options.groups)
        except Unreachable as error:
            self._listing_warnings = [f"the listing of the groups is missing: {error}"]
            return None
        self._listing = {
            "started_at": started_at,
            "ended_at": now_text(),
            "group_count": len(listing.groups),
            "offsets_before": before,
            "offsets_after": None,
        }
        return listing

    def _write_listing(self, listing: Listing, *, is_current: bool) -> None:
        """Write the listing and the topics; `is_current`: the captured log ends right after it."""
        assert self._listing is not None
        try:
            take_topics(self._cluster, listing)
        except Unreachable as error:
            listing.warnings.append(f"the offsets of the data topics are missing: {error}")
        self._listing_warnings = listing.warnings
        if is_current:
            self._listing["offsets_after"] = self._written_ends()
        if listing.topics is not None:
            self._directory.write(TOPICS, topics_csv(listing.topics))
        self._directory.write(END_OFFSETS, offsets_text(listing.end_offsets))
        self._directory.write(START_OFFSETS, offsets_text(listing.start_offsets))
        self._directory.write(LIVE, live_text(listing))
        self._directory.write(GROUPS, groups_json(listing))

    def _written_ends(self) -> dict[str, int]:
        return {str(number): part.recorded.next_offset for number, part in self._parts.items()}

    # The manifest

    def save(self, *, is_complete: bool) -> None:
        """Write everything that is not written yet, then checkpoints, then the manifest.

        Raises:
            EvidenceError: the disk refuses the bytes.
        """
        for part in self._parts.values():
            part.recorded.sync()
            part.recorded.write_epochs()
        starts = {number: part.log_start_offset for number, part in self._parts.items() if part.log_start_offset is not None}
        self._directory.write_checkpoints({number: part.recorded.next_offset for number, part in self._parts.items()}, starts)
        manifest = {
            "exhume_version": __version__,
            "complete": is_complete,
            "written_at": now_text(),
            "cluster_id": self._info.cluster_id,
            "topic_id": self._topic_id(),
            "bootstrap_servers": self._cluster.place,
            "broker_version": self._cluster.broker_version(),
            "brokers": {str(node): address for node, address in self._info.brokers.items()},
            "offsets_partitions": self._partition_count,
            "offsets_retention_ms": self._retention_ms,
            "clock_ahead_of_brokers_at_most_ms": self._fetcher.clock_ms,
            "runs": self._runs,
            "listing": self._listing,
            "warnings": self.warnings,
            "partitions": [_row(part) for part in self._parts.values()],
        }
        files = [file for part in self._parts.values() for file in part.recorded.files()]
        self._directory.write_manifest(manifest, files)

    def _topic_id(self) -> str | None:
        return self._info.topics[OFFSETS_TOPIC].topic_id


def _part(recorded: RecordedPartition, earlier: Mapping[str, Any]) -> Part:
    """The partition as an earlier capture left it: offsets from the segments, the rest from the manifest."""
    recorded.gaps = [Gap(*gap) for gap in earlier.get("gaps", [])]
    recorded.missing_offsets = earlier.get("missing_offsets", 0)
    recorded.removed_below = earlier.get("removed_below")
    recorded.unsound_offsets = earlier.get("unsound_offsets", [])
    if not recorded.segments and earlier:
        # Everything was removed, or the partition was empty.
        recorded.next_offset = earlier.get("next_offset", 0)
    return Part(
        recorded,
        planned=recorded.next_offset,
        planned_epoch=recorded.last_epoch,
        leaders=earlier.get("leaders", []),
        has_caught_up=earlier.get("has_caught_up", False),
        log_start_offset=earlier.get("log_start_offset"),
        is_confirmed=not recorded.next_offset,
        lost_from=earlier.get("lost_from"),
    )


def _row(part: Part) -> CapturedPartition:
    recorded = part.recorded
    return {
        "offsets_partition": recorded.number,
        "next_offset": recorded.next_offset,
        "high_watermark": part.high_watermark,
        "last_stable_offset": part.last_stable_offset,
        "log_start_offset": part.log_start_offset,
        "leaders": part.leaders,
        "has_caught_up": part.has_caught_up,
        "gaps": [list(gap) for gap in recorded.gaps],
        "missing_offsets": recorded.missing_offsets,
        "unsound_offsets": recorded.unsound_offsets,
        "removed_below": recorded.removed_below,
        "lost_from": part.lost_from,
    }
