"""The partition assignors of Kafka, recomputed: each version gives the results of Kafka's own classes.

group              input and result of an assignor
java_order         the order of Java's hash tables, which decides ties
racks              when racks matter
range_and_roundrobin, sticky (sticky_claims, sticky_quotas, sticky_balance)
                   the assignors that the leader of a classic group runs; the coordinator runs a `range` too
coordinator_view, uniform (uniform_unequal), share
                   the assignors that the coordinator runs for consumer and share groups
streams (streams_4_1, java_queue)
                   the assignor that the coordinator runs for streams groups
variants           the table of all of them
structure          checks for groups whose assignor is not here: Kafka Streams in classic groups, Connect, other clients
"""

from exhume.analysis.assignors.group import Assigned, AssignorThrows, GroupAssignment, GroupSpec, MemberSpec, TopicPartition
from exhume.analysis.assignors.streams import StreamsAssignment, StreamsGroup, StreamsMember
from exhume.analysis.assignors.variants import (
    STREAMS_VARIANTS,
    VARIANTS,
    Side,
    StreamsVariant,
    Variant,
    spelt_span,
    streams_variants,
    variant_for,
    variants_of,
)

__all__ = [
    "STREAMS_VARIANTS",
    "VARIANTS",
    "Assigned",
    "AssignorThrows",
    "GroupAssignment",
    "GroupSpec",
    "MemberSpec",
    "Side",
    "StreamsAssignment",
    "StreamsGroup",
    "StreamsMember",
    "StreamsVariant",
    "TopicPartition",
    "Variant",
    "spelt_span",
    "streams_variants",
    "variant_for",
    "variants_of",
]
