"""Fetch raw batches of several partitions from their leaders, and append them: one fetch under way for each leader.

The next fetch of a leader starts before the batches of the last one are written, so the network and the disk work at the same time.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NoReturn

from exhume.capture.cluster import EARLIEST, LATEST, OUT_OF_RANGE, RETRIABLE, TOPIC_DENIED, Cluster, Fetched, Leader, TopicInfo, Unreachable
from exhume.capture.continuity import end_of_epoch, fetch_compares_epochs
from exhume.capture.recorded_partition import MOST_GAPS, Gap, RecordedPartition, scan_batches
from exhume.codecs.batches import end_reason
from exhume.codecs.evidence_files import SeenLeader
from exhume.codecs.file_names import OFFSETS_TOPIC
from exhume.errors import EvidenceError

#: A flight recorder lets the leaders wait for records. A capture up to an offset asks for records that are there.
_FETCH_WAIT_MS, _TARGET_WAIT_MS = 500, 50
_ANSWER_WAIT_S = 0.2
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 5.0
#: A new look at the metadata comes so much later than the last one.
_LOOK_PAUSE_S = 0.5
_LOOKS_BEFORE_RECONNECT = 5
#: A leader that was just elected may learn the high watermark late. After so long the records are lost.
_OUT_OF_RANGE_S = 30
#: Leader changes that the manifest keeps of each partition, the latest ones.
_MOST_LEADERS = 200


@dataclass(slots=True)
class Totals:
    """Counts since the start, for progress and metrics."""

    bytes: int = 0
    batches: int = 0
    records: int = 0
    fetches: int = 0
    failures: int = 0
    leader_changes: int = 0
    fsyncs: int = 0
    removed_segments: int = 0
    #: Offsets between the captured end and the high watermark, at the last answers.
    lag: int = 0
    last_write_ms: int = 0


@dataclass(slots=True)
class Part:
    """A partition under capture. `planned` is the offset after the batches that are fetched, written or not."""

    recorded: RecordedPartition
    planned: int = 0
    planned_epoch: int = -1
    #: The capture ends at this offset; None: it does not end.
    target: int | None = None
    leader: Leader | None = None
    leaders: list[SeenLeader] = field(default_factory=list)
    high_watermark: int | None = None
    last_stable_offset: int | None = None
    log_start_offset: int | None = None
    #: True once the capture has reached the end of the log: later gaps arose while it was away.
    has_caught_up: bool = False
    #: True once the present leader has shown that it has the captured records.
    is_confirmed: bool = True
    #: The first captured offset whose record a leader did not have.
    lost_from: int | None = None
    out_of_range_since: float | None = None

    @property
    def is_wanted(self) -> bool:
        """True if the next batches are to be fetched."""
        return self.target is None or self.planned < self.target or not self.is_confirmed

    @property
    def is_at_target(self) -> bool:
        """True if everything before the target is written, and the leader has all of it."""
        return self.target is not None and self.recorded.next_offset >= self.target and self.is_confirmed


class Fetcher:
    """The fetches from all leaders of the offsets topic.

    Args:
        cluster: the connections.
        parts: the partitions to fetch, by number.
        topic: the topic with its leaders, as of now.
    """

    def __init__(self, cluster: Cluster, parts: Mapping[int, Part], topic: TopicInfo) -> None:
        self.totals = Totals()
        #: The smallest difference between the clock of this machine and the time of a batch that was just appended.
        self.clock_ms: int | None = None
        self.warnings: list[str] = []
        self._compares_epochs = fetch_compares_epochs(cluster)
        self._cluster = cluster
        self._parts = parts
        self._asked: dict[int, dict[int, int]] = {}
        self._not_before: dict[int, float] = {}
        self._pauses: dict[int, float] = {}
        self._is_stale = False
        self._looked_at = time.monotonic()
        self._failed_looks = 0
        self._take_leaders(topic)

    def step(self) -> bool:
        """Start the fetches that are due, and take one answer. Returns True if a leader answered for a partition."""
        if self._is_stale and time.monotonic() - self._looked_at > _LOOK_PAUSE_S:
            self._look()
        for node in {part.leader.node_id for part in self._parts.values() if part.leader is not None}:
            self._start(node)
        answer = self._cluster.next_answer(_ANSWER_WAIT_S)
        return answer is not None and self._take(*answer)

    def ends(self) -> dict[int, tuple[int, int]]:
        """Log start offset and high watermark of each partition, from its leader.

        Raises:
            Unreachable: a partition has no leader, or its leader gives no answer now.
            EvidenceError: the client may not read the topic.
        """
        self._look()
        found: dict[int, tuple[int, int]] = {}
        numbers: dict[int, list[int]] = {}
        for number, part in self._parts.items():
            if part.leader is None or part.leader.node_id < 0:
                raise Unreachable(f"partition {number} of {OFFSETS_TOPIC} has no leader")
            numbers.setdefault(part.leader.node_id, []).append(number)
        for node, of_node in numbers.items():
            first, last = (self._cluster.offsets(node, {OFFSETS_TOPIC: of_node}, which) for which in (EARLIEST, LATEST))
            for number in of_node:
                (code, start), (last_code, end) = first[OFFSETS_TOPIC, number], last[OFFSETS_TOPIC, number]
                self._refuse(number, code or last_code)
                if code or last_code:
                    raise Unreachable(f"partition {number} of {OFFSETS_TOPIC}: error {code or last_code}")
                found[number] = start, end
                part = self._parts[number]
                part.log_start_offset, part.high_watermark = start, end
        return found

    def leaders(self) -> dict[int, Leader]:
        """Look at the metadata, and return the leaders of all partitions.

        Raises:
            Unreachable: no broker gives an answer.
        """
        topic = self._cluster.info([OFFSETS_TOPIC]).topics[OFFSETS_TOPIC]
        self._take_leaders(topic)
        return dict(topic.leaders)

    # Leaders

    def _look(self) -> None:
        """Learn the leaders again; after several failures begin again with the bootstrap servers."""
        self._looked_at = time.monotonic()
        try:
            if self._failed_looks >= _LOOKS_BEFORE_RECONNECT:
                self._asked.clear()
                self._cluster.reconnect()
            self.leaders()
        except Unreachable:
            self._failed_looks += 1
            self._is_stale = True
        else:
            self._failed_looks = 0
            self._is_stale = False

    def _take_leaders(self, topic: TopicInfo) -> None:
        for number, leader in topic.leaders.items():
            part = self._parts.get(number)
            if part is None:
                continue
            known = part.leader
            part.leader = leader
            if leader.node_id < 0:
                self._is_stale = True
            elif known is None or (known.node_id, known.epoch) != (leader.node_id, leader.epoch):
                part.is_confirmed = not part.planned
                if part.leaders and (part.leaders[-1]["broker"], part.leaders[-1]["leader_epoch"]) == (leader.node_id, leader.epoch):
                    continue
                self.totals.leader_changes += known is not None
                part.leaders.append(
                    {"broker": leader.node_id, "leader_epoch": leader.epoch, "from_offset": part.planned, "seen_at": now_text()}
                )
                del part.leaders[:-_MOST_LEADERS]

    # Fetches

    def _start(self, node: int) -> None:
        if node < 0 or node in self._asked or time.monotonic() < self._not_before.get(node, 0):
            return
        numbers = [
            number for number, part in self._parts.items() if part.leader is not None and part.leader.node_id == node and part.is_wanted
        ]
        if not numbers:
            return
        # A response has at least one whole batch of the first partition that has one: each must be the first one at times.
        first = self.totals.fetches % len(numbers)
        numbers = numbers[first:] + numbers[:first]
        self._asked[node] = {number: self._parts[number].planned for number in numbers}
        wanted = [(number, self._parts[number].planned, self._parts[number].planned_epoch) for number in numbers]
        has_targets = all(self._parts[number].target is not None for number in numbers)
        self._cluster.start_fetch(node, wanted, wait_ms=_TARGET_WAIT_MS if has_targets else _FETCH_WAIT_MS)
        self.totals.fetches += 1

    def _take(self, node: int, answers: list[Fetched]) -> bool:
        asked = self._asked.pop(node, {})
        if not answers:
            self.totals.failures += 1
            self._is_stale = True
            self._pauses[node] = min(_LONGEST_PAUSE_S, 2 * self._pauses.get(node, _FIRST_PAUSE_S / 2))
            self._not_before[node] = time.monotonic() + self._pauses[node]
            return False
        self._pauses.pop(node, None)
        work = []
        is_answered = False
        for one in answers:
            part = self._parts[one.partition]
            if asked.get(one.partition) != part.planned or part.leader is None or part.leader.node_id != node:
                # Another leader answered for the partition meanwhile, or will.
                continue
            if one.error_code:
                self._take_error(node, part, one)
                continue
            is_answered = True
            if one.diverging_offset is not None:
                self._refuse_lost(part, one.diverging_offset)
            if not part.is_confirmed and not self._confirm(node, part):
                continue
            part.out_of_range_since = None
            part.high_watermark, part.last_stable_offset = one.high_watermark, one.last_stable_offset
            part.log_start_offset = one.log_start_offset if one.log_start_offset >= 0 else part.log_start_offset
            scanned = scan_batches(one.records, part.planned, part.planned_epoch)
            if scanned.end < len(one.records) and end_reason(one.records, scanned.end, len(one.records)) in ("size_too_small", "bad_magic"):
                self._refuse_bytes(part, scanned.next_offset)
            if scanned.batch_count:
                part.planned, part.planned_epoch = scanned.next_offset, scanned.last_epoch
                work.append((part, one.records, scanned, part.has_caught_up))
            if part.planned >= one.high_watermark:
                part.has_caught_up = True
        self._start(node)
        for part, records, scanned, counts_gaps in work:
            part.recorded.take(records, scanned, counts_gaps=counts_gaps)
            self.totals.bytes += scanned.end - scanned.start
            self.totals.batches += scanned.batch_count
            self.totals.records += scanned.record_count
            self._take_clock(part, scanned.max_timestamp_ms)
        if work:
            self.totals.last_write_ms = now_ms()
        self.totals.lag = sum(max(0, (part.high_watermark or 0) - part.planned) for part in self._parts.values())
        return is_answered

    def _confirm(self, node: int, part: Part) -> bool:
        """Check that this leader, which answered a fetch, has the captured records. Returns False if it cannot tell now."""
        number = part.recorded.number
        if part.planned_epoch >= 0 and not self._compares_epochs:
            try:
                answer = end_of_epoch(self._cluster, node, number, part.planned_epoch)
            except Unreachable:
                return False
            code, end = answer or (0, -1)
            if code in RETRIABLE:
                self._is_stale = True
                return False
            if 0 <= end < part.planned:
                self._refuse_lost(part, end)
            if end < 0 and part.leaders and part.leaders[0]["leader_epoch"] != part.leaders[-1]["leader_epoch"]:
                self._warn(f"partition {number} has another leader, and the broker does not tell if it has all captured records")
        part.is_confirmed = True
        return True

    def _warn(self, warning: str) -> None:
        if warning not in self.warnings:
            self.warnings.append(warning)

    def _take_clock(self, part: Part, timestamp_ms: int) -> None:
        """Compare clocks with a batch that was appended while the fetch waited for it."""
        if part.has_caught_up and timestamp_ms > 0:
            difference = now_ms() - timestamp_ms
            self.clock_ms = difference if self.clock_ms is None else min(self.clock_ms, difference)

    # Errors

    def _take_error(self, node: int, part: Part, one: Fetched) -> None:
        self.totals.failures += 1
        self._refuse(one.partition, one.error_code)
        if one.error_code == OUT_OF_RANGE:
            self._take_out_of_range(node, part)
        self._is_stale = True
        self._not_before[node] = time.monotonic() + _FIRST_PAUSE_S

    def _take_out_of_range(self, node: int, part: Part) -> None:
        """Go on at the log start offset if records before it were deleted."""
        number = part.recorded.number
        try:
            (code, start), (last_code, end) = (
                self._cluster.offsets(node, {OFFSETS_TOPIC: [number]}, which)[OFFSETS_TOPIC, number] for which in (EARLIEST, LATEST)
            )
        except Unreachable:
            return
        if code or last_code:
            return
        if part.planned < start:
            if part.planned or part.has_caught_up:
                part.recorded.missing_offsets += start - part.planned
                if len(part.recorded.gaps) < MOST_GAPS:
                    part.recorded.gaps.append(Gap(part.planned, start - 1))
            part.planned = part.recorded.next_offset = start
            return
        part.out_of_range_since = part.out_of_range_since or time.monotonic()
        if part.planned > end and time.monotonic() - part.out_of_range_since > _OUT_OF_RANGE_S:
            self._refuse_lost(part, end)

    def _refuse(self, number: int, error_code: int) -> None:
        if error_code == TOPIC_DENIED:
            raise denied(self._cluster.place, "READ and DESCRIBE")
        if error_code not in (0, OUT_OF_RANGE) and error_code not in RETRIABLE:
            raise EvidenceError(
                f"the leader of partition {number} of {OFFSETS_TOPIC} refuses the request with Kafka's error code {error_code}",
                path=self._cluster.place,
                remedy="Kafka's list of error codes names the reason",
            )

    def _refuse_lost(self, part: Part, end: int) -> NoReturn:
        assert part.leader is not None
        part.lost_from = end
        raise LostRecords(
            f"broker {part.leader.node_id}, the leader of partition {part.recorded.number} of {OFFSETS_TOPIC} "
            f"since leader epoch {part.leader.epoch}, does not have the captured records from offset {end} on: "
            "an unclean election lost them",
            path=str(part.recorded.path),
            record_offset=end,
            remedy="Keep this directory as it is, for it has the lost records, and capture into another --output-dir",
        )

    def _refuse_bytes(self, part: Part, offset: int) -> NoReturn:
        raise EvidenceError(
            f"the leader of partition {part.recorded.number} of {OFFSETS_TOPIC} sent bytes that are no batch",
            path=self._cluster.place,
            record_offset=offset,
            remedy="The segment of this broker is damaged: copy its log directory, and read the copy",
        )


class LostRecords(EvidenceError):
    """A leader does not have records that were captured."""


def denied(place: str, operations: str) -> EvidenceError:
    """The error for a client without an ACL."""
    return EvidenceError(
        f"the client may not read the topic: it needs the ACL {operations} on topic {OFFSETS_TOPIC}",
        path=place,
        remedy=f"kafka-acls.sh --add --allow-principal User:NAME --operation READ --operation DESCRIBE --topic {OFFSETS_TOPIC}",
    )


def now_ms() -> int:
    """The present, in epoch milliseconds."""
    return time.time_ns() // 1_000_000


def now_text() -> str:
    """The present in ISO 8601, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
