"""The Java coordinator's load: replay each record up to the log end, then check members that cannot stay.

A batch with a producer id is transactional, also without the transactional bit. Commits are pending under their producer id until its
marker. A marker installs a pending commit only if its record is after the committed one; a tombstone drops pending commits too. A value
creates its group, so a group can exist without offsets; the offsets of a removed group stay.

Source: CoordinatorLoaderImpl, OffsetMetadataManager.replay and replayEndTransactionMarker, GroupMetadataManager.onLoaded, Kafka 4.4.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from exhume.codecs.batch_format import NO_PRODUCER_ID
from exhume.codecs.batches import wrap_int64
from exhume.codecs.record_types import ABORT, COMMIT, decode_control_record, decode_record
from exhume.replay.broker_log import LoadedBatch
from exhume.replay.classic_group import JavaGroupRules, MemberRefused, build_classic_group, rebalance_oversized
from exhume.replay.commits import CommitRules, build_commit, joined_transactions, transaction_of
from exhume.replay.decode import RecordRefused, ReplayRecord, UnknownRecordType, decode_for
from exhume.replay.java import consumer, share, streams
from exhume.replay.java.fencing import Fenced, fence_members
from exhume.replay.java.registry import group_for
from exhume.replay.load_problems import LoadProblem, ProblemKind
from exhume.replay.partition_state import (
    ClassicGroupState,
    ConsumerGroupState,
    PartitionState,
    ShareGroupState,
    ShareState,
    StreamsGroupState,
)
from exhume.replay.profiles import JavaProfile
from exhume.replay.reading import LoadInputs, refused_format
from exhume.replay.refusals import Refusals
from exhume.replay.topic_names import TopicNames

if TYPE_CHECKING:
    from exhume.replay.fold.folded_log import CommitSeen, FoldedLog


_COMMIT_RULES = CommitRules()


@dataclass(slots=True)
class JavaLoad:
    """One load in progress. Call `apply` for each batch in log order, then `finish`."""

    profile: JavaProfile
    refusals: Refusals
    names: TopicNames
    end_offset: int
    inputs: LoadInputs = field(default_factory=LoadInputs)
    partition_state: PartitionState = field(default_factory=PartitionState)
    last_written_offset: int = -1
    #: The snapshot that requests see: state up to this offset.
    shown_offset: int = -1
    skipped: list[LoadProblem] = field(default_factory=list)
    fenced: list[Fenced] = field(default_factory=list)
    _group_rules: JavaGroupRules = field(init=False)

    def __post_init__(self) -> None:
        self._group_rules = JavaGroupRules(self.profile.subscription)

    def apply(self, batch: LoadedBatch) -> None:
        """Apply one batch. Raises `LoadAborted` if the release's load ends (strict mode)."""
        why_not = refused_format(batch, self.profile)
        if why_not is not None:
            self.refusals.refuse(why_not)
        for record in batch.records():
            if batch.is_control:
                self._apply_marker(batch, record.record_offset, record.key)
                continue
            try:
                decoded = decode_for(self.profile, record.record_offset, record.key, record.value)
            except UnknownRecordType as unknown:
                self.skipped.append(unknown.problem)
                tolerant = decode_record(record.key, record.value)
                self.names.learn_from_record(unknown.record_type, tolerant.key, tolerant.value)
                continue
            except RecordRefused as refused:
                self.refusals.refuse(refused.problem)
                continue
            self.names.learn_from_record(decoded.record_type, decoded.key, decoded.value)
            if decoded.record_type in self.profile.refused_types:
                self.refusals.refuse(
                    LoadProblem(ProblemKind.RECORD_TYPE_NOT_REPLAYED, record_offset=record.record_offset, record_type=decoded.record_type)
                )
                continue
            match decoded.family:
                case "offsets":
                    self._apply_offset(decoded, batch, record.timestamp_ms)
                case "classic":
                    self._apply_classic_group(decoded)
                case "consumer":
                    self._apply_consumer_group(decoded)
                case "share":
                    self._apply_share_group(decoded)
                case "streams":
                    self._apply_streams_group(decoded)
        self._advance(batch.next_offset)

    def _advance(self, next_offset: int) -> None:
        """Take a snapshot at the log end, and every `commit_interval` offsets before it."""
        if next_offset >= self.end_offset:
            if next_offset <= self.last_written_offset:
                self.refusals.refuse(
                    LoadProblem(
                        ProblemKind.RECORD_OFFSETS_GO_BACK,
                        record_offset=wrap_int64(next_offset - 1),
                        next_offset=next_offset,
                        reached_offset=self.last_written_offset,
                    )
                )
            if self.refusals.lenient or self.shown_offset < self.end_offset:
                self.shown_offset = next_offset
            self.last_written_offset = next_offset
        elif self.profile.commit_interval is not None and next_offset - self.shown_offset >= self.profile.commit_interval:
            self.last_written_offset = self.shown_offset = next_offset

    def _apply_marker(self, batch: LoadedBatch, record_offset: int, key: bytes | None) -> None:
        control = decode_control_record(key, None)
        if control.errors or key is None or control.key["version"] < 0:
            self.refusals.refuse(LoadProblem(ProblemKind.CONTROL_KEY_UNDECODABLE, record_offset=record_offset))
            return
        if control.number not in (ABORT, COMMIT):
            return
        transaction = self.partition_state.transactions.pop(batch.producer_id, None)
        if transaction is None or control.number == ABORT:
            return
        for offset_key, commit in transaction.offsets.items():
            present = self.partition_state.offsets.get(offset_key)
            if present is None or self.profile.marker_decides or present.record_offset < commit.record_offset:
                self.partition_state.offsets[offset_key] = commit

    def _apply_offset(self, record: ReplayRecord, batch: LoadedBatch, timestamp_ms: int | None) -> None:
        key = (record.key["group"], record.key["topic"], record.key["partition"])
        if record.value is None:
            self.partition_state.offsets.pop(key, None)
            if self.profile.tombstone_drops_pending:
                for transaction in self.partition_state.transactions.values():
                    transaction.offsets.pop(key, None)
            return
        if key[0] not in self.partition_state.groups:
            self.partition_state.groups[key[0]] = ClassicGroupState(key[0], record.record_offset)
        if batch.producer_id == NO_PRODUCER_ID:
            self.partition_state.offsets[key] = build_commit(record, record.record_offset, None, _COMMIT_RULES)
            return
        open_transaction = transaction_of(self.partition_state.transactions, batch, record.record_offset, timestamp_ms)
        open_transaction.groups.add(key[0])
        open_transaction.offsets[key] = build_commit(record, record.record_offset, batch, _COMMIT_RULES)

    def _apply_classic_group(self, record: ReplayRecord) -> None:
        group_id = record.key["group"]
        if record.value is None:
            self.partition_state.groups.pop(group_id, None)
            return
        try:
            group = build_classic_group(record, self._group_rules)
        except MemberRefused as refused:
            self.refusals.refuse(refused.problem)
            group = refused.group
        self.partition_state.groups[group_id] = group

    def _apply_consumer_group(self, record: ReplayRecord) -> None:
        groups = self.partition_state.groups
        group = group_for(record, ConsumerGroupState, groups, self.profile, self.refusals)
        if group is not None:
            consumer.apply(group, groups, record, self.profile, self.refusals)

    def _apply_share_group(self, record: ReplayRecord) -> None:
        groups = self.partition_state.groups
        if record.role == "share_state" and record.value is None:
            self.partition_state.share_states.pop(record.key["group"], None)
        group = group_for(record, ShareGroupState, groups, self.profile, self.refusals)
        if group is not None:
            share.apply(group, groups, record, self.profile, self.refusals)
            if record.role == "share_state" and record.value is not None:
                self.partition_state.share_states[record.key["group"]] = _share_state(record)

    def _apply_streams_group(self, record: ReplayRecord) -> None:
        groups = self.partition_state.groups
        group = group_for(record, StreamsGroupState, groups, self.profile, self.refusals)
        if group is not None:
            streams.apply(group, groups, record, self.profile, self.refusals)

    def create_group_for_commit(self, seen: CommitSeen) -> None:
        """Create the group of a commit that is in the fold result."""
        if seen.group not in self.partition_state.groups:
            self.partition_state.groups[seen.group] = ClassicGroupState(seen.group, seen.record_offset)

    def add_fold_result(self, folded: FoldedLog) -> None:
        """Add the result of a fold of the whole log. The applied records are not part of it."""
        groups = self.partition_state.groups
        for group in folded.groups():
            groups.pop(group.name, None)
            if group.value is not None:
                groups[group.name] = group.value(self._group_rules)
            elif group.first_commit is not None:
                groups[group.name] = ClassicGroupState(group.name, group.first_commit)
        self.partition_state.transactions = joined_transactions(self.partition_state.transactions, folded.transactions(_COMMIT_RULES))
        if folded.last_offset is not None and self.shown_offset <= folded.last_offset:
            self._advance(folded.last_offset + 1)

    def depends_on_offsets(self, group_id: str) -> bool:
        """True if findings depend on this group's committed offsets: it was removed, and they may still exist."""
        return group_id not in self.partition_state.groups

    @property
    def commit_rules(self) -> CommitRules:
        return _COMMIT_RULES

    def end_chunk(self) -> None:
        """Do nothing after a chunk: every record is already applied."""

    def held_after_abort(self) -> PartitionState:
        """The state after a load that ended in an error: empty, because the coordinator unloads the shard."""
        return PartitionState()

    def snapshot(self) -> PartitionState:
        """The state so far, before the timers of members are set."""
        for group in self.partition_state.groups.values():
            if isinstance(group, StreamsGroupState):
                group.forgets_validation = self.profile.streams_never_ready
        return self.partition_state

    def finish(self) -> tuple[PartitionState, None]:
        """The state after the load, with the timers of members set. Raises `LoadAborted` if this fails."""
        for group in list(self.snapshot().groups.values()):
            if isinstance(group, StreamsGroupState):
                self._check_streams_members(group)
            elif isinstance(group, ConsumerGroupState) and self.profile.fences_members:
                groups = self.partition_state.groups
                self.fenced += fence_members(group, groups, self.profile, self._group_rules, self.inputs.group_max_size)
        rebalance_oversized(self.partition_state.groups.values(), self.inputs.group_max_size)
        return self.partition_state, None

    def _check_streams_members(self, group: StreamsGroupState) -> None:
        for member in group.members.values():
            if member.member_state == "UNREVOKED_TASKS" and member.rebalance_timeout_ms is None:
                # A tombstone of its assignment can leave the member in this state.
                at = member.record_offset if member.assignment_record_offset is None else member.assignment_record_offset
                self.refusals.refuse(
                    LoadProblem(ProblemKind.REBALANCE_TIMEOUT_MISSING, record_offset=at, group=group.group, member_id=member.member_id)
                )


def _share_state(record: ReplayRecord) -> ShareState:
    assert record.value is not None
    return ShareState(record.value["initializing"], record.value["initialized"], record.value["deleting"], record.record_offset)
