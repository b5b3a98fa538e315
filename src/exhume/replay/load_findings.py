"""Findings of a load."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from exhume.codecs.json_values import json_ready
from exhume.codecs.log_directory import PartitionDirectory
from exhume.codecs.wire import has_invalid_utf8
from exhume.findings import Finding, Severity
from exhume.replay.broker_log import StrictLog
from exhume.replay.java.loader import JavaLoad
from exhume.replay.partition_state import ClassicGroupState, PartitionState
from exhume.replay.profiles import BrokerProfile
from exhume.replay.refusals import Refusals
from exhume.replay.state_tables import Row
from exhume.replay.verdict import LoadAborted

_FENCED = {
    "removed": "it is removed at once",
    "downgraded": "it is removed at once, and the group becomes classic",
    "refused": "it stays only because the group cannot become classic without it",
}


def partition(log: StrictLog, code: str, severity: Severity, sentence: str, remedy: str | None) -> Finding:
    """A finding about a partition as a whole; an incident makes the answer partial."""
    return Finding(
        code=code,
        severity=severity,
        sentence=sentence,
        replica=log.partition.replica,
        offsets_partition=log.partition.offsets_partition,
        path=log.partition.path,
        remedy=remedy,
        is_damage=severity == "incident",
    )


def aborted(log: StrictLog, profile: BrokerProfile, abort: LoadAborted) -> Finding:
    """A load of this release ends here."""
    return Finding(
        code="load_aborted",
        severity="incident",
        sentence=f"a broker of {profile.release} does not load this partition: {abort.problem}",
        replica=log.partition.replica,
        offsets_partition=log.partition.offsets_partition,
        path=abort.path or log.partition.path,
        byte_position=abort.byte_position,
        first_record_offset=abort.problem.record_offset,
        last_record_offset=abort.problem.record_offset,
        remedy="Use --mode lenient to see what the log holds, or --release of another one",
        is_damage=abort.is_damage,
    )


def java_load(log: StrictLog, loader: JavaLoad) -> list[Finding]:
    """Findings about members that the Java coordinator removes after the load, and records that it skips."""
    fenced = [
        partition(
            log,
            "member_fenced_at_load",
            "info",
            f"member {member_id!r} of group {group!r} must revoke partitions but has no rebalance timeout: {_FENCED[effect]}",
            None,
        )
        for group, member_id, effect in loader.fenced
    ]
    skipped = [
        Finding(
            code="record_skipped",
            severity="info",
            sentence=f"the load skips this record: {problem}",
            replica=log.partition.replica,
            offsets_partition=log.partition.offsets_partition,
            first_record_offset=problem.record_offset,
            last_record_offset=problem.record_offset,
        )
        for problem in loader.skipped
    ]
    return fenced + skipped


def groups(held: Iterable[tuple[PartitionDirectory, PartitionState]], profile: BrokerProfile) -> Iterable[Finding]:
    """Findings about groups across partitions: offsets without a group, and groups in a wrong offsets partition."""
    homes: dict[tuple[str, str], int | None] = {}
    for directory, partition_state in held:
        in_columns = partition_state.offset_columns.spans() if partition_state.offset_columns else {}
        orphans: dict[str, int] = {}
        for owner, commit_offset in chain(
            ((key[0], commit.record_offset) for key, commit in partition_state.offsets.items()),
            ((owner, last) for owner, (_, last) in in_columns.items()),
        ):
            if owner not in partition_state.groups:
                orphans[owner] = max(orphans.get(owner, -1), commit_offset)
        for owner, record_offset in sorted(orphans.items()):
            yield Finding(
                code="offsets_without_group",
                severity="info",
                sentence=f"group {owner!r} was removed, its offsets were not: {profile.release} holds them, but no request shows them",
                replica=directory.replica,
                offsets_partition=directory.offsets_partition,
                group=owner,
                last_record_offset=record_offset,
            )
        for name, group in partition_state.groups.items():
            if isinstance(group, ClassicGroupState) and group.rebalance_at_load == "group_max_size":
                yield Finding(
                    code="group_over_max_size",
                    severity="info",
                    sentence=f"group {name!r} has {len(group.members)} members, more than the largest size: its load begins a rebalance",
                    replica=directory.replica,
                    offsets_partition=directory.offsets_partition,
                    group=name,
                )
            other = homes.setdefault((directory.replica, name), directory.offsets_partition)
            if other != directory.offsets_partition:
                yield second_home(directory.replica, name, other, directory.offsets_partition)


def second_home(replica: str, group: str, home: int | None, other: int | None) -> Finding:
    """A finding about a group in a second offsets partition."""
    return Finding(
        code="group_in_two_partitions",
        severity="warn",
        sentence=f"group {group!r} is in offsets partitions {home} and {other}",
        replica=replica,
        offsets_partition=other,
        group=group,
    )


def invalid_utf8(table: str, rows: Iterable[Row]) -> Iterable[Finding]:
    """Findings about names that are not valid UTF-8: tables show them as Java does, with U+FFFD; `evidence` has their bytes.

    To a broker, names that differ only in such bytes are equal: the bytes are those of the first record with the name.
    """
    for row in rows:
        if has_invalid_utf8(row):
            marked = {column: value for column, value in row.items() if has_invalid_utf8(value)}
            yield Finding(
                code="invalid_utf8",
                severity="info",
                sentence=f"{table}: {', '.join(marked)} of this row is no valid UTF-8; `evidence` has its first bytes in the log",
                replica=row["replica"],
                offsets_partition=row["offsets_partition"],
                group=row.get("group"),
                member_id=row.get("member_id"),
                topic=row.get("topic"),
                partition=row.get("partition"),
                first_record_offset=row.get("record_offset"),
                last_record_offset=row.get("record_offset"),
                evidence=json_ready(marked),
            )


def tolerated_records(log: StrictLog, profile: BrokerProfile, refusals: Refusals) -> list[Finding]:
    """Findings about the records at which only lenient mode continues."""
    return [
        Finding(
            code="tolerated_record",
            severity="warn",
            sentence=f"{profile.release} would stop its load here, lenient mode continues: {tolerated.problem}",
            replica=log.partition.replica,
            offsets_partition=log.partition.offsets_partition,
            path=tolerated.path,
            byte_position=tolerated.byte_position,
            group=tolerated.problem.group,
            first_record_offset=tolerated.problem.record_offset,
            last_record_offset=tolerated.problem.record_offset,
        )
        for tolerated in refusals.tolerated
    ]
