"""Broker profiles: the differences between the loads of Kafka releases, as data.

A profile names a span of releases that load alike, its coordinator (the Scala one, or the Java one of KIP-848), and the value of every
rule in which releases differ. The loaders have no release number: they read the profile. Rules change at patches, so spans end at patches.

Source: classic-coordinator and new-coordinator sources of the releases named; tests check each rule with logs that real brokers loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from exhume.codecs.layout import Message

Coordinator = Literal["classic", "java"]

#: How offsets expire; the rules themselves are in `expiry`.
ExpiryRule = Literal["expire_timestamp_any_group", "expire_timestamp", "since_empty", "unsubscribed", "unsubscribed_stable", "java"]


Removal = Literal["topic_deletion", "group_deletion", "offset_deletion"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerProfile:
    """The common fields of profiles.

    `first` and `last` are the ends of the span, as release numbers; `name` is the name in options and answers. `values` maps the known
    record types of the release to the layout of their values, `value_versions` to the accepted versions (None: all versions, read as the
    nearest known one).
    """

    name: str
    first: str
    last: str
    values: Mapping[int, Message]
    value_versions: Mapping[int, range | None]
    expiry: ExpiryRule
    default_retention_minutes: int
    #: Other removals of offsets and groups: `topic_deletion` removes a topic from every group; `group_deletion` (DeleteGroups) and
    #: `offset_deletion` (OffsetDelete) are requests.
    removed_by: frozenset[Removal] = frozenset({"topic_deletion", "group_deletion", "offset_deletion"})
    #: A classic group that is loaded with more members than `group.max.size` must rebalance at once (KAFKA-7641).
    rebalances_oversized_groups: bool = True
    #: OffsetFetch can ask for every offset of a group (version 2 of the request).
    lists_fetched_offsets: bool = True
    #: The answer to an OffsetFetch with `require_stable` for a partition with a pending commit: the release does not know it (version 7 of
    #: the request), it is `ignored`, or the partition is `refused`.
    require_stable: Literal["unknown", "ignored", "refused"] = "refused"
    #: A recovery that meets a batch below the base offset of its segment ends the start of the broker (KAFKA-6264).
    refuses_batch_below_segment: bool = True
    #: The search for the log end reads the first record of a compressed batch of format 0 or 1.
    search_reads_old_batches: bool = False
    #: Known defects that change the state, by Kafka's issue number or a few words without one.
    defects: tuple[str, ...] = ()

    @property
    def coordinator(self) -> Coordinator:
        return "classic" if isinstance(self, ScalaProfile) else "java"

    @property
    def release(self) -> str:
        """The newest release of the span."""
        return self.name

    @property
    def depends_on_chunks(self) -> bool:
        """True if the result of a load depends on the number of bytes that one read returns; then a log cannot be folded."""
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalaProfile(BrokerProfile):
    """The rules of the Scala coordinator."""

    #: `high_watermark`: reading ends at the high watermark, tested for each chunk that is read; `log_end`: at the log end.
    read_bound: Literal["high_watermark", "log_end"] = "log_end"
    #: `offsets_at_once`: offsets go into their own cache while the log is read, groups are added at the end; `at_end`; `per_chunk`: all
    #: groups and offsets are installed again after each chunk (KAFKA-5600).
    install: Literal["offsets_at_once", "at_end", "per_chunk"] = "at_end"
    #: The end of a load that has no batch left to read before the bound.
    empty_read: Literal["abort", "stall", "stop"] = "stop"
    #: A batch larger than the load buffer: the load never ends (KAFKA-7286), or the buffer grows.
    oversized_batch: Literal["stall", "grow"] = "grow"
    has_transactions: bool = True
    #: An empty control batch ends the load (KAFKA-7467).
    empty_control_batch_aborts: bool = False
    memberless_state: Literal["Stable", "Empty"] = "Empty"
    #: KAFKA-6287: a group record without members forgets its protocol type.
    keeps_memberless_protocol_type: bool = True
    null_protocol_is_readable: bool = True
    #: Groups that exist although their tombstone was loaded: `never` checked, `any` of them (KAFKA-4704), those
    #: `without_offsets`.
    removed_group_check: Literal["never", "any", "without_offsets"] = "without_offsets"
    #: An expire timestamp of -1, or none in version 0: `retention` adds the retention to the commit, `literal` treats -1 as a time
    #: (KAFKA-8069).
    missing_expire_timestamp: Literal["retention", "literal", "absent"] = "absent"
    #: The group value versions whose state timestamp is read (KAFKA-10401).
    state_timestamp_versions: frozenset[int] = frozenset({2, 3, 4})
    instance_twice_aborts: bool = False
    member_twice_aborts: bool = True
    #: The errors of a subscription that end the load: nothing is parsed, `tolerated`, a null, or a null and an overlong length.
    subscription: Literal["not_parsed", "tolerated", "null_aborts", "null_and_length_abort"] = "null_and_length_abort"
    keeps_leader_epoch_below_minus_one: bool = True
    unknown_record_type: Literal["abort", "skip"] = "abort"
    #: The error of an OffsetFetch while the load runs.
    fetch_error_while_loading: Literal["NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS"] = "COORDINATOR_LOAD_IN_PROGRESS"
    #: The formats that this release cannot read: `format_2`, `inner_v0_in_v1`, `lz4_v0_correct_checksum`, and codecs of later releases by
    #: their names.
    refused_formats: frozenset[str] = frozenset()

    @property
    def parses_subscriptions(self) -> bool:
        """True if the load parses the subscriptions of members."""
        return self.subscription != "not_parsed"

    @property
    def depends_on_chunks(self) -> bool:
        return self.read_bound == "high_watermark" or self.install == "per_chunk"


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaProfile(BrokerProfile):
    """The rules of the Java coordinator."""

    #: The epochs of a modern group before a record sets them (KAFKA-20268).
    initial_epoch: int = 1
    #: The validated topology epoch of a streams group before a record sets it.
    initial_validated_topology_epoch: int = -1
    #: The errors of a subscription that end the load: none (KAFKA-20570), or a null and an overlong length.
    subscription: Literal["tolerated", "null_and_length_abort"] = "tolerated"
    #: Record types whose value creates a missing group.
    creating_types: frozenset[int]
    #: Record types of which a record for a missing group or member ends the load (KAFKA-17306, KAFKA-19453).
    missing_aborts: frozenset[int] = frozenset()
    #: Group types that replace a simple classic group.
    replaces_simple: frozenset[str] = frozenset({"consumer", "streams"})
    #: Taking a partition that has an owner: always fine, refused, or refused unless at a higher epoch (KAFKA-19862).
    ownership: Literal["overwrite", "strict", "monotonic"] = "monotonic"
    #: Streams tasks are checked like partitions.
    streams_ownership_is_strict: bool = False
    #: The winner of two commits of a key: by record offset, or True for the one whose marker came last.
    marker_decides: bool = False
    tombstone_drops_pending: bool = True
    #: An offset with a pending commit does not expire.
    pending_protects_offset: bool = True
    #: The time for which an open transaction protects its group from expiry: never, while the group has offsets, or always (KAFKA-19163).
    transaction_keeps_group: Literal["never", "with_offsets", "always"] = "always"
    #: The expiry task removes an Empty share group, like others.
    share_groups_expire: bool = False
    #: The expiry task fails at a share group with committed offsets, and removes nothing from the offsets partition.
    share_offsets_stop_expiry: bool = True
    #: A target assignment epoch below -1 ends the load.
    negative_epoch_aborts: bool = True
    #: Record types that are decoded and then refused.
    refused_types: frozenset[int] = frozenset()
    #: Readiness is not persisted: a streams group with members is NotReady after a load (KAFKA-19661).
    streams_never_ready: bool = False
    #: A member is reconciled by its state and epoch, or (3.7) by its target epoch and by having no partition to revoke or to get.
    reconciled_by: Literal["state", "target_epoch"] = "state"
    #: Offsets between two snapshots that a load commits below the high watermark; None: only at the end (KAFKA-19716).
    commit_interval: int | None = 16384
    #: Members that must revoke partitions and have no rebalance timeout are removed right after the load.
    fences_members: bool = True
    #: The default group.consumer.migration.policy lets a group become classic if the load fences its last member of the consumer protocol.
    #: `with_targets`: the coordinator fails to make it classic if one of its other members has no target assignment.
    downgrade: Literal["disabled", "with_targets", "enabled"] = "enabled"
    #: The removal of the last member of a group sets the assignment epoch to the group epoch (KAFKA-20442).
    emptied_group_is_assigned: bool = True
    #: The formats that this release cannot read: codecs of later releases by their names.
    refused_formats: frozenset[str] = frozenset()
