"""The load of the Scala coordinator: gather everything first, install it at the end.

Offsets and groups are gathered apart, in log order. Commits of a transaction wait under their producer id until its marker; which of two
commits of a key wins is decided by the first record offset of their batches, since the cleaner keeps the higher one. A tombstone
leaves no trace in what was gathered, so a commit that waits can bring an offset back. At the end groups receive their offsets, and
an id that has offsets only becomes an Empty group.

Source: GroupMetadataManager.doLoadGroupsAndOffsets, Kafka 2.8.2.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from exhume.codecs.record_types import COMMIT, decode_control_record
from exhume.errors import DecodeError
from exhume.replay.broker_log import LoadedBatch
from exhume.replay.classic_group import MemberRefused, build_classic_group
from exhume.replay.commits import build_commit, transaction_of
from exhume.replay.decode import ReplayRecord, decode_for
from exhume.replay.holdings import ClassicGroup, Commit, Holdings, OffsetKey, OpenTransaction
from exhume.replay.profiles import BrokerProfile
from exhume.replay.refusals import Refusals
from exhume.replay.topic_names import TopicNames


@dataclass(slots=True)
class ScalaLoad:
    """One load in progress. Call `apply` for each batch in log order, then `finish`."""

    profile: BrokerProfile
    refusals: Refusals
    names: TopicNames
    offsets: dict[OffsetKey, Commit] = field(default_factory=dict)
    groups: dict[str, ClassicGroup] = field(default_factory=dict)
    removed_groups: dict[str, int] = field(default_factory=dict)
    transactions: dict[int, OpenTransaction] = field(default_factory=dict)

    def apply(self, batch: LoadedBatch) -> None:
        """Apply one batch. Raises `LoadAborted` where the release's load ends (strict mode)."""
        if batch.is_control:
            self._apply_marker(batch)
            return
        first_offset = None
        for record in batch.records():
            first_offset = record.record_offset if first_offset is None else first_offset
            try:
                decoded = decode_for(self.profile, record.record_offset, record.key, record.value)
            except DecodeError as error:
                self.refusals.refuse(error.message, record.record_offset)
                continue
            self.names.learn_from_record(decoded.record_type, decoded.key, decoded.value)
            if decoded.record_type == 2:
                self._apply_group(decoded)
            else:
                self._apply_offset(decoded, batch, first_offset, record.timestamp_ms)

    def _apply_marker(self, batch: LoadedBatch) -> None:
        """The first record of a control batch ends the producer's transaction; whatever is no COMMIT counts as an ABORT."""
        record = next(batch.records(), None)
        if record is None:
            return
        control = decode_control_record(record.key, None)
        if control.errors or control.key.get("version", 0) < 0:
            self.refusals.refuse("the key of a control record cannot be decoded", record.record_offset)
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
        if batch.is_transactional:
            transaction = transaction_of(self.transactions, batch, record.record_offset, timestamp_ms)
            transaction.groups.add(key[0])
            target = transaction.offsets
        else:
            target = self.offsets
        if record.value is None:
            target.pop(key, None)
        else:
            target[key] = build_commit(record, first_offset, batch if batch.is_transactional else None)

    def _apply_group(self, record: ReplayRecord) -> None:
        group_id = record.key["group"]
        if record.value is None:
            self.groups.pop(group_id, None)
            self.removed_groups[group_id] = record.record_offset
            return
        try:
            group = build_classic_group(group_id, record.value, record.record_offset, instance_twice_aborts=False)
        except MemberRefused as refused:
            self.refusals.refuse(refused.reason, record.record_offset, group=group_id)
            group = refused.group
        self.removed_groups.pop(group_id, None)
        self.groups[group_id] = group

    def finish(self) -> tuple[Holdings, str | None]:
        """What is installed, and the error the broker logs after it (None: none). Nothing is lost by that error."""
        holdings = Holdings(dict(self.groups), dict(self.offsets), dict(self.transactions))
        with_offsets = {key[0] for key in self.offsets}
        pending = {key: commit for transaction in self.transactions.values() for key, commit in transaction.offsets.items()}
        for key, commit in [*self.offsets.items(), *pending.items()]:
            known = holdings.groups.setdefault(key[0], ClassicGroup(key[0], commit.record_offset))
            if isinstance(known, ClassicGroup) and key[0] not in self.groups:
                known.record_offset = min(known.record_offset, commit.record_offset)
        for group_id in self.removed_groups:
            # The check exempts ids that hold offsets, but forgets those whose only offsets are pending.
            if group_id in holdings.groups and group_id not in with_offsets:
                return (
                    holdings,
                    f"unexpected unload of active group {group_id!r}: its tombstone was loaded, and commits of an open transaction",
                )
        return holdings, None
