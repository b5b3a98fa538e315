"""The answers of a coordinator to OffsetFetch, with and without `require_stable` (KIP-447).

    without    the committed offset; none for a partition without one, for an unknown group, for a share group
    with       the same, but UNSTABLE_OFFSET_COMMIT for a partition with a commit pending in an open transaction, group or no group

A request for all partitions of a group gets those with a committed offset, stable or not; a partition with only a pending commit has to be
named in the request. Before 0.10.2 a request names all partitions. After a failed load the Scala coordinator answers as without offsets,
the Java coordinator refuses. The Java coordinator answers from its committed view, and with `require_stable` from its state in memory.

Source: GroupMetadataManager.getOffsets and GroupCoordinator.validateGroupStatus (Scala); OffsetMetadataManager.fetchOffsets and
fetchAllOffsets, GroupCoordinatorService.fetchOffsets (Java).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from exhume.arrow_rows import OfLog
from exhume.replay.member_columns import in_group_order
from exhume.replay.partition_state import Commit, OffsetKey, PartitionState, ShareGroupState
from exhume.replay.profiles import BrokerProfile, JavaProfile, ScalaProfile
from exhume.replay.state_tables import SCHEMAS, FetchedOffsetRow, table
from exhume.replay.verdict import Outcome

_SCHEMA = SCHEMAS["fetched_offsets"]

UNSTABLE = "UNSTABLE_OFFSET_COMMIT"
NONE = "NONE"
#: What `stable_…` columns are called in the table `offsets`.
_STABLE = {"offset": "committed_offset", "leader_epoch": "leader_epoch", "metadata": "metadata"}


def fetched_table(
    shown: PartitionState, held: PartitionState, profile: BrokerProfile, origin: OfLog, groups: Collection[str] | None
) -> pa.Table:
    """The rows of `fetched_rows` as a table, at least those of these groups (None: all); `origin` has the columns of the log.

    The answer for most groups is what they committed: such rows are columns of `offsets`. The others are made one by one.
    """
    if shown is not held or held.offset_columns is None:
        whole = held.whole(groups)
        return table("fetched_offsets", [row | origin for row in fetched_rows(whole if shown is held else shown, whole, profile)])
    offsets = held.offset_columns.table(origin)
    pending = {key[0] for transaction in held.transactions.values() for key in transaction.offsets}
    one_by_one = {*pending, *(key[0] for key in held.offsets)}
    one_by_one.update(name for name in pc.unique(offsets["group"]).to_pylist() if not _is_known(name, held, profile))
    is_apart = pc.is_in(offsets["group"], value_set=pa.array(sorted(one_by_one), pa.string()))
    whole = held.whole(one_by_one)
    apart = table("fetched_offsets", [row | origin for row in fetched_rows(whole, whole, profile)])
    return in_group_order([_as_committed(offsets.filter(pc.invert(is_apart)), profile), apart])


def _as_committed(offsets: pa.Table, profile: BrokerProfile) -> pa.Table:
    """The answers where each committed offset is what every request gets."""
    made = {name: offsets[name] for name in _SCHEMA.names if name in offsets.column_names}
    count = offsets.num_rows
    if profile.lists_fetched_offsets:
        made["is_listed"] = pa.repeat(True, count)
    if profile.require_stable != "unknown":
        made |= {f"stable_{answer}": offsets[name] for answer, name in _STABLE.items()}
        made |= {"is_stable_listed": pa.repeat(True, count), "stable_error": pa.repeat(NONE, count)}
    return pa.table([made.get(field.name, pa.nulls(count, field.type)) for field in _SCHEMA], schema=_SCHEMA)


def fetched_rows(shown: PartitionState, held: PartitionState, profile: BrokerProfile) -> Iterator[FetchedOffsetRow]:
    """The rows of `fetched_offsets`, ordered by key: for every key with a commit, also a pending one, and one that no answer contains.

    `shown` is the state that requests see, `held` the state in memory.
    """
    pending = {key: commit for transaction in held.transactions.values() for key, commit in transaction.offsets.items()}
    for key in sorted({*shown.offsets, *held.offsets, *pending}):
        committed = _answered(key, shown, profile)
        stable = committed if shown is held else _answered(key, held, profile)
        made_by = committed or stable or held.offsets.get(key) or pending.get(key) or shown.offsets[key]
        row: FetchedOffsetRow = {"group": key[0], "topic": key[1], "partition": key[2], "record_offset": made_by.record_offset}
        if committed is not None:
            row |= {
                "committed_offset": committed.committed_offset,
                "leader_epoch": committed.leader_epoch,
                "metadata": committed.metadata,
            }
        if profile.lists_fetched_offsets:
            row["is_listed"] = committed is not None
        if profile.require_stable != "unknown":
            row["is_stable_listed"] = stable is not None
            is_refused = key in pending and profile.require_stable == "refused"
            row["stable_error"] = UNSTABLE if is_refused else NONE
            if stable is not None and not is_refused:
                row |= {
                    "stable_offset": stable.committed_offset,
                    "stable_leader_epoch": stable.leader_epoch,
                    "stable_metadata": stable.metadata,
                }
        yield row


def _answered(key: OffsetKey, partition_state: PartitionState, profile: BrokerProfile) -> Commit | None:
    """The committed offset that a request gets."""
    return partition_state.offsets.get(key) if _is_known(key[0], partition_state, profile) else None


def _is_known(group: str, partition_state: PartitionState, profile: BrokerProfile) -> bool:
    """True if a request for this group gets committed offsets; the Java coordinator looks up the group first."""
    if not isinstance(profile, JavaProfile):
        return True
    found = partition_state.groups.get(group)
    return found is not None and not isinstance(found, ShareGroupState)


def fetch_error(outcome: Outcome, profile: BrokerProfile) -> str | None:
    """The error of every OffsetFetch for a group whose partition was loaded with this outcome; None if no broker answers."""
    if outcome == "refused":
        return None
    if outcome == "stalled" and isinstance(profile, ScalaProfile):
        return profile.fetch_error_while_loading
    return "NOT_COORDINATOR" if outcome == "aborted" and isinstance(profile, JavaProfile) else NONE
