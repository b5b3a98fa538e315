"""The subscription and assignment bytes of members, by protocol type.

The coordinator does not read them: clients agree on their format by protocol type and protocol. `decode_subscription` and
`decode_assignment` read as many fields as they can and never raise. `broker_subscription_topics` reads the fields that a broker reads, and
fails if a broker fails. The `encode_*` functions write the same formats.

    payload       the result, its marks, and the reading of versioned layouts
    consumer      subscriptions and assignments of `consumer` groups
    user_data     the user data of assignors: sticky, cooperative-sticky, rack-affinity, faust
    streams       the user data of Kafka Streams
    connect       Kafka Connect workers
    json_object   payloads that are JSON: those of Schema Registry, and the user data of faust
    recognition   the choice among these formats
"""

from exhume.codecs.embedded.connect import encode_connect_assignment, encode_connect_config_state
from exhume.codecs.embedded.consumer import (
    assigned_partitions,
    broker_subscription_topics,
    encode_assignment,
    encode_subscription,
    subscribed_topics,
)
from exhume.codecs.embedded.json_object import encode_schema_registry
from exhume.codecs.embedded.payload import MARKS, Kind, Payload
from exhume.codecs.embedded.recognition import decode_assignment, decode_subscription
from exhume.codecs.embedded.streams import encode_streams_assignment_info, encode_streams_subscription_info
from exhume.codecs.embedded.user_data import (
    encode_cooperative_sticky_user_data,
    encode_faust_user_data,
    encode_rack,
    encode_sticky_user_data,
)

__all__ = [
    "MARKS",
    "Kind",
    "Payload",
    "assigned_partitions",
    "broker_subscription_topics",
    "decode_assignment",
    "decode_subscription",
    "encode_assignment",
    "encode_connect_assignment",
    "encode_connect_config_state",
    "encode_cooperative_sticky_user_data",
    "encode_faust_user_data",
    "encode_rack",
    "encode_schema_registry",
    "encode_sticky_user_data",
    "encode_streams_assignment_info",
    "encode_streams_subscription_info",
    "encode_subscription",
    "subscribed_topics",
]
