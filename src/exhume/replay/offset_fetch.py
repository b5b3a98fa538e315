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

from collections.abc import Iterator

from exhume.replay.partition_state import Commit, OffsetKey, PartitionState, ShareGroupState
from exhume.replay.profiles import BrokerProfile, JavaProfile, ScalaProfile
from exhume.replay.state_tables import FetchedOffsetRow
from exhume.replay.verdict import Outcome

UNSTABLE = "UNSTABLE_OFFSET_COMMIT"
NONE = "NONE"


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
    """The committed offset that a request gets; the Java coordinator looks up the group first."""
    if isinstance(profile, JavaProfile):
        group = partition_state.groups.get(key[0])
        if group is None or isinstance(group, ShareGroupState):
            return None
    return partition_state.offsets.get(key)


def fetch_error(outcome: Outcome, profile: BrokerProfile) -> str | None:
    """The error of every OffsetFetch for a group whose partition was loaded with this outcome; None if no broker answers."""
    if outcome == "refused":
        return None
    if outcome == "stalled" and isinstance(profile, ScalaProfile):
        return profile.fetch_error_while_loading
    return "NOT_COORDINATOR" if outcome == "aborted" and isinstance(profile, JavaProfile) else NONE
