"""The load of the Scala coordinator: gather everything first, install it at the end.

Offsets and groups are gathered separately, in log order. Commits of a transaction are pending under their producer id until its marker. Of
two commits of a key, the one with the higher first record offset of its batch wins, because the cleaner keeps that one. A tombstone leaves
no trace in the gathered offsets, so a pending commit can restore an offset. At the end groups receive their offsets, and
an id that has offsets only becomes an Empty group.

0.9 and 0.10.0 differ in kind: offsets go at once into their own cache, and groups have no link to them.

Source: GroupMetadataManager.loadGroupsAndOffsets and doLoadGroupsAndOffsets, Kafka 0.9.0.1 to 3.9.0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from exhume.codecs.record_types import COMMIT, decode_control_record
from exhume.durations import MINUTE_MS
from exhume.replay.broker_log import LoadedBatch
from exhume.replay.classic_group import MemberRefused, build_classic_group, rebalance_oversized
from exhume.replay.commits import CommitRules, build_commit, joined_transactions, transaction_of
from exhume.replay.decode import RecordRefused, ReplayRecord, UnknownRecordType, decode_for
from exhume.replay.load_problems import LoadProblem, ProblemKind
from exhume.replay.partition_state import ClassicGroupState, Commit, OffsetKey, OpenTransaction, PartitionState
from exhume.replay.per_chunk import PerChunkInstall
from exhume.replay.profiles import ScalaProfile
from exhume.replay.reading import LoadInputs, refused_format
from exhume.replay.refusals import Refusals
from exhume.replay.topic_names import TopicNames

if TYPE_CHECKING:
    from exhume.replay.fold.folded_log import CommitSeen, FoldedLog


@dataclass(slots=True)
class ScalaLoad:
    """One load in progress: `apply` each batch in log order, `end_chunk` after each chunk, then `finish`, or `held_after_abort`."""

    profile: ScalaProfile
    refusals: Refusals
    names: TopicNames
    inputs: LoadInputs
    offsets: dict[OffsetKey, Commit] = field(default_factory=dict)
    groups: dict[str, ClassicGroupState] = field(default_factory=dict)
    #: The first and the last tombstone of each removed group; the first ones in order.
    removed_groups: dict[str, tuple[int, int]] = field(default_factory=dict)
    transactions: dict[int, OpenTransaction] = field(default_factory=dict)
    _settled_offsets: dict[str, tuple[int, int]] = field(default_factory=dict)
    _per_chunk: PerChunkInstall | None = None
    commit_rules: CommitRules = field(init=False)

    def __post_init__(self) -> None:
        profile = self.profile
        retention_minutes = profile.default_retention_minutes if self.inputs.retention_minutes is None else self.inputs.retention_minutes
        self.commit_rules = CommitRules(
            profile.missing_expire_timestamp, retention_minutes * MINUTE_MS, profile.keeps_leader_epoch_below_minus_one
        )
        if profile.install == "per_chunk":
            self._per_chunk = PerChunkInstall()

    def apply(self, batch: LoadedBatch) -> None:
        """Apply one batch. Raises `LoadAborted` if the release's load ends (strict mode)."""
        why_not = refused_format(batch, self.profile)
        if why_not is not None:
            self.refusals.refuse(why_not)
        if batch.is_control:
            self._apply_marker(batch)
            return
        first_offset = None
        for record in batch.records():
            first_offset = record.record_offset if first_offset is None else first_offset
            try:
                decoded = decode_for(self.profile, record.record_offset, record.key, record.value)
            except UnknownRecordType as unknown:
                if self.profile.unknown_record_type == "abort":
                    self.refusals.refuse(unknown.problem)
                continue
            except RecordRefused as refused:
                self.refusals.refuse(refused.problem)
                continue
            self.names.learn_from_record(decoded.record_type, decoded.key, decoded.value)
            if decoded.family == "classic":
                self._apply_group(decoded)
            else:
                self._apply_offset(decoded, batch, first_offset, record.timestamp_ms)

    def _apply_marker(self, batch: LoadedBatch) -> None:
        """End the producer's transaction by the first record of a control batch; all types except COMMIT count as ABORT."""
        record = next(batch.records(), None)
        if record is None:
            if self.profile.empty_control_batch_aborts:
                self.refusals.refuse(LoadProblem(ProblemKind.CONTROL_BATCH_EMPTY, record_offset=batch.batch.base_offset))
            return
        control = decode_control_record(record.key, None)
        if control.errors or control.key.get("version", 0) < 0:
            self.refusals.refuse(LoadProblem(ProblemKind.CONTROL_KEY_UNDECODABLE, record_offset=record.record_offset))
            return
        transaction = self.transactions.pop(batch.producer_id, None)
        if transaction is None or control.number != COMMIT:
            return
        for key, commit in transaction.offsets.items():
            present = self.offsets.get(key)
            if present is None or present.batch_first_offset < commit.batch_first_offset:
                self.offsets[key] = commit

    def _apply_offset(self, record: ReplayRecord, batch: LoadedBatch, first_offset: int, timestamp_ms: int | None) -> None:
        key = (record.key["group"], record.key["topic"], record.key["partition"])
        is_transactional = batch.is_transactional and self.profile.has_transactions
        if is_transactional:
            transaction = transaction_of(self.transactions, batch, record.record_offset, timestamp_ms)
            transaction.groups.add(key[0])
            target = transaction.offsets
        else:
            target = self.offsets
        if record.value is None:
            target.pop(key, None)
        else:
            target[key] = build_commit(record, first_offset, batch if is_transactional else None, self.commit_rules)

    def _apply_group(self, record: ReplayRecord) -> None:
        group_id = record.key["group"]
        if record.value is None:
            self.groups.pop(group_id, None)
            first, _ = self.removed_groups.get(group_id, (record.record_offset, None))
            self.removed_groups[group_id] = (first, record.record_offset)
            return
        try:
            group = build_classic_group(record, self.profile)
        except MemberRefused as refused:
            self.refusals.refuse(refused.problem)
            group = refused.group
        self.removed_groups.pop(group_id, None)
        self.groups[group_id] = group

    def create_group_for_commit(self, seen: CommitSeen) -> None:
        """Do nothing for a commit in the fold result: it counts at the end."""

    def add_fold_result(self, folded: FoldedLog) -> None:
        """Add the result of a fold of the whole log. The applied records are not part of it."""
        removed = dict(self.removed_groups)
        for group in folded.groups():
            if group.value is not None:
                self.groups[group.name] = group.value(self.profile)
            elif group.tombstone is not None:
                removed[group.name] = (group.first_tombstone or 0, group.tombstone)
        # A late error names the group that was removed first.
        self.removed_groups = dict(sorted(removed.items(), key=lambda item: item[1]))
        self._settled_offsets = folded.spans()
        self.transactions = joined_transactions(self.transactions, folded.transactions(self.commit_rules))

    def depends_on_offsets(self, group_id: str) -> bool:
        """True if findings or the outcome depend on this group's committed offsets."""
        return group_id in self.removed_groups or (self.profile.install == "offsets_at_once" and group_id not in self.groups)

    def end_chunk(self) -> None:
        """End a chunk. Raises `LoadAborted` if its installation fails (0.11.0.0)."""
        if self._per_chunk is not None:
            self._per_chunk.install(self.groups, self.offsets, self.transactions)
            for group_id, (_, record_offset) in self.removed_groups.items():
                if self._per_chunk.is_unexpected(group_id, self.offsets):
                    self.refusals.refuse(LoadProblem(ProblemKind.ACTIVE_GROUP_UNLOADED_MIDWAY, record_offset=record_offset, group=group_id))

    def snapshot(self) -> PartitionState:
        """The state if the log ended here."""
        self.end_chunk()
        return self.finish()[0]

    def held_after_abort(self) -> PartitionState:
        """The state in memory after the load ended in an error."""
        if self._per_chunk is not None:
            return self._per_chunk.partition_state(self.transactions)
        return PartitionState(offsets=dict(self.offsets)) if self.profile.install == "offsets_at_once" else PartitionState()

    def finish(self) -> tuple[PartitionState, LoadProblem | None]:
        """The installed state, and the error that the broker logs afterwards (None: none). The error loses no state."""
        if self._per_chunk is not None:
            return self._per_chunk.partition_state(self.transactions), None
        partition_state = PartitionState(dict(self.groups), dict(self.offsets), dict(self.transactions))
        if self.profile.install == "offsets_at_once":
            return partition_state, None
        pending = {key: commit for transaction in self.transactions.values() for key, commit in transaction.offsets.items()}
        for key, commit in [*self.offsets.items(), *pending.items()]:
            known = partition_state.groups.setdefault(key[0], ClassicGroupState(key[0], commit.record_offset))
            if key[0] not in self.groups:
                known.record_offset = min(known.record_offset, commit.record_offset)
        for name, (record_offset, _) in self._settled_offsets.items():
            known = partition_state.groups.setdefault(name, ClassicGroupState(name, record_offset))
            if name not in self.groups:
                known.record_offset = min(known.record_offset, record_offset)
        if self.profile.rebalances_oversized_groups:
            rebalance_oversized(partition_state.groups.values(), self.inputs.group_max_size)
        return partition_state, self._late_error(partition_state)

    def _late_error(self, partition_state: PartitionState) -> LoadProblem | None:
        """Check after the installation for groups that were removed and still exist."""
        exempt = (
            {*(key[0] for key in self.offsets), *self._settled_offsets} if self.profile.removed_group_check == "without_offsets" else set()
        )
        for group_id, (_, record_offset) in self.removed_groups.items():
            if self.profile.removed_group_check != "never" and group_id in partition_state.groups and group_id not in exempt:
                return LoadProblem(ProblemKind.ACTIVE_GROUP_UNLOADED, record_offset=record_offset, group=group_id)
        return None
