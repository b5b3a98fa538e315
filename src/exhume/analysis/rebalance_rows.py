"""The table of rebalances, and the storms in it.

A storm is a series of generations that follow each other for longer than any restart takes. A group is in a storm if its generation, or
epoch, increased by one a minute or faster for ten minutes or more, and in that time one client joined or left three times, or most
generations changed no member: members join again and again. A rolling restart rebalances often, too, but each member leaves and joins once.
If compaction removed the records between, the numbers alone show the storm, because they increase.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import pyarrow as pa

from exhume.arrow_rows import Int32, OfLog, schema_of
from exhume.findings import Finding

LEAST_STORM_MS = 10 * 60_000
#: Generations per minute.
STORM_RATE = 1.0
#: How often one client joins and leaves in a storm.
LEAST_CHANGES = 3


class RebalanceRow(OfLog):
    """One row per stored generation of a classic group, one per epoch of another group, and one for each other event of a group.

    `event` is rebalance, emptied (the last member left), static_replacement (a static member returned under another member id, and no
    partition moved), static_away (it left for now), rewritten (the same generation again), created (a record without members), converted
    (to this group type), or removed.

    `causes` are, as far as two records show: group_began, first_seen (the log has nothing from before), member_joined, member_left,
    member_restarted (the same client and host, or instance, under another member id), subscription_changed, protocol_changed,
    leader_changed, cooperative_follow_up (partitions released in the generation before get new owners), topics_changed, topology_changed,
    partitions_initialized (more partitions of a share group became assignable), converted, unknown. `skipped` is the number of generations
    or epochs between this row and the one before. If `is_complete`, no record between them is missing: those rebalances never got an
    assignment.

    `joined` and `left` are member ids; their clients are `#instance`, or client id and host. `partitions` are assigned, or in the target;
    `partitions_moved` have another owner than before, `partitions_lost` have none any more.

    `no_assignment_ms` is the time in which no partition was assigned: `exactly`, since the group became Empty; `at_least`, since the choice
    of the leader (the log does not show the time of the joins before). It is null for a cooperative protocol, whose members keep their
    partitions. `reconciliation_ms` is the time from the epoch to the batch in which every member had reached its target. If that did not
    happen, `waiting` are the members without their target, at the next epoch or at the end. A row is part of a storm if generations
    increased by one a minute or faster for ten minutes, and one client joined and left again and again, or most generations changed no
    member.
    """

    record_offset: int
    last_record_offset: int
    timestamp_ms: int | None
    group: str
    group_type: str
    event: str
    causes: list[str]
    generation: Int32 | None
    group_epoch: Int32 | None
    skipped: int | None
    is_complete: bool
    protocol: str | None
    leader: str | None
    members: Int32
    joined: list[str] | None
    left: list[str] | None
    joined_clients: list[str] | None
    left_clients: list[str] | None
    partitions: Int32 | None
    partitions_moved: Int32 | None
    partitions_lost: Int32 | None
    no_assignment_ms: int | None
    no_assignment_is: str | None
    target_epoch: Int32 | None
    target_record_offset: int | None
    reconciled_record_offset: int | None
    reconciliation_ms: int | None
    waiting: list[str] | None
    is_storm: bool
    path: str
    byte_position: int


REBALANCES = schema_of(RebalanceRow)
#: The generation or epoch, and the time, of a row that has both.
_Counted = tuple[int, int, RebalanceRow]


@dataclass(frozen=True, slots=True)
class Storm:
    """Rows of `REBALANCES` that form one storm.

    `flappers` are the clients that joined and left most often, with their counts; empty if the log has lost the records in between.
    `never_stored` generations got no assignment; the records of `unknown` ones may be gone, too. In `without_change` generations of a
    classic group no member joined, left or changed.
    """

    rows: tuple[RebalanceRow, ...]
    generations: int
    duration_ms: int
    never_stored: int
    unknown: int
    without_change: int
    flappers: tuple[tuple[str, int], ...]

    @property
    def per_minute(self) -> float:
        """Return the average number of generations per minute."""
        return self.generations * 60_000 / self.duration_ms

    @property
    def sentence(self) -> str:
        """Return the storm in words."""
        lost = f"; {self.never_stored} of them never got an assignment" if self.never_stored else ""
        lost += f"; {self.unknown} of them are not in the log" if self.unknown else ""
        if self.without_change and not self.flappers:
            lost += f"; in {self.without_change} of them no member joined, left or changed"
        who = ", ".join(f"{client} {count} times" for client, count in self.flappers)
        came = f"; joined or left most often: {who}" if who else ""
        return f"{self.generations} generations in {self.duration_ms // 60_000} minutes, {self.per_minute:.1f} a minute{lost}{came}"


def storm_rows(rows: list[RebalanceRow]) -> list[RebalanceRow]:
    """Return these rows of one group in one log, in order, with `is_storm`."""
    for row in rows:
        row["is_storm"] = False
    for storm in storms(rows):
        for row in storm.rows:
            row["is_storm"] = True
    return rows


def storms(rows: Iterable[RebalanceRow]) -> Iterator[Storm]:
    """Yield the storms among these rows of one group in one log, in order."""
    counted: list[_Counted] = []
    for row in rows:
        number, time_ms = _number(row), row["timestamp_ms"]
        if number is not None and time_ms is not None:
            counted.append((number, time_ms, row))
    for first, last in _busy([(number, time_ms) for number, time_ms, _ in counted]):
        storm = _storm(counted[first : last + 1])
        if storm is not None:
            yield storm


def may_be_storm(steps: Iterable[tuple[int | None, int | None]]) -> bool:
    """True if these numbers and times of generations or epochs, in order, could be those of a storm."""
    return bool(_busy([(number, time) for number, time in steps if number is not None and time is not None]))


def _busy(counted: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the first and last place of each range of (number, time) in which the number increases as fast as in a storm."""
    spans: list[tuple[int, int]] = []
    first = life = 0
    for last, (number, time_ms) in enumerate(counted):
        if last and number < counted[last - 1][0]:
            first = life = last
        while first + 1 < last and time_ms - counted[first + 1][1] >= LEAST_STORM_MS:
            first += 1
        duration_ms = time_ms - counted[first][1]
        if duration_ms >= LEAST_STORM_MS and (number - counted[first][0]) * 60_000 >= STORM_RATE * duration_ms:
            if spans and spans[-1][1] >= first and spans[-1][0] >= life:
                spans[-1] = (spans[-1][0], last)
            else:
                spans.append((first, last))
    return spans


def _storm(counted: Sequence[_Counted]) -> Storm | None:
    rows = tuple(row for _, _, row in counted)
    changes: Counter[str] = Counter()
    for row in rows[1:]:
        changes.update(row["joined_clients"] or ())
        changes.update(row["left_clients"] or ())
    generations, duration_ms = counted[-1][0] - counted[0][0], counted[-1][1] - counted[0][1]
    never_stored = sum(row["skipped"] or 0 for row in rows[1:] if row["is_complete"])
    unknown = sum(row["skipped"] or 0 for row in rows[1:] if not row["is_complete"])
    # Epochs increase with topics too, and the records that show it may be gone.
    without_change = sum(row["group_type"] == "classic" and row["causes"] == ["unknown"] for row in rows[1:])
    # Generations without a record do not show which members made them.
    if max(changes.values(), default=0) < LEAST_CHANGES and (never_stored + unknown + without_change) * 2 <= generations:
        return None
    flappers = tuple((client, count) for client, count in changes.most_common(3) if count >= LEAST_CHANGES)
    return Storm(rows, generations, duration_ms, never_stored, unknown, without_change, flappers)


def _number(row: RebalanceRow) -> int | None:
    return row["generation"] if row["group_type"] == "classic" else row["group_epoch"]


def storm_findings(table: pa.Table) -> Iterator[Finding]:
    """Yield a finding for each storm in `REBALANCES`."""
    every_row: list[RebalanceRow] = table.to_pylist()
    for _, rows in groupby(every_row, key=lambda row: (row["group"], row["replica"], row["offsets_partition"])):
        for storm in storms(rows):
            first, last = storm.rows[0], storm.rows[-1]
            yield Finding(
                code="rebalance_storm",
                severity="warn",
                confidence="proof" if storm.flappers else "likely",
                replica=first["replica"],
                offsets_partition=first["offsets_partition"],
                group=first["group"],
                first_record_offset=first["record_offset"],
                last_record_offset=last["last_record_offset"],
                first_timestamp_ms=first["timestamp_ms"],
                last_timestamp_ms=last["timestamp_ms"],
                sentence=storm.sentence,
                evidence=[{"record_offset": row["record_offset"], "generation": row["generation"]} for row in storm.rows],
            )
