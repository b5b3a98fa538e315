"""Control records: the key has the kind, and each kind has its own value.

Only ABORT and COMMIT, the end-transaction markers, occur in `__consumer_offsets`; the others belong to `__cluster_metadata`.

Source: EndTxnMarker.json, LeaderChangeMessage.json, SnapshotHeaderRecord.json, SnapshotFooterRecord.json, KRaftVersionRecord.json,
VotersRecord.json, Kafka 0.11 to 4.3.
"""

from __future__ import annotations

from exhume.codecs.layout import INT16, INT32, INT64, STRING, UINT16, UUID, Array, Field, Message, Struct

CONTROL_KEY = Struct((Field("version", INT16, "version"), Field("control_type", INT16, "type")))

END_TXN_MARKER = Message("EndTxnMarker", range(1), Struct((Field("coordinator_epoch", INT32, "coordinatorEpoch"),)))

_VOTER = Struct((Field("voter_id", INT32, "voterId"), Field("voter_directory_id", UUID, "voterDirectoryId", since=1)))
LEADER_CHANGE = Message(
    "LeaderChangeMessage",
    range(2),
    Struct(
        (
            Field("leader_id", INT32, "leaderId"),
            Field("voters", Array(_VOTER), "voters"),
            Field("granting_voters", Array(_VOTER), "grantingVoters"),
        )
    ),
    flexible_since=0,
)

SNAPSHOT_HEADER = Message(
    "SnapshotHeaderRecord",
    range(1),
    Struct((Field("last_contained_log_timestamp_ms", INT64, "lastContainedLogTimestamp"),)),
    flexible_since=0,
)
SNAPSHOT_FOOTER = Message("SnapshotFooterRecord", range(1), Struct(()), flexible_since=0)
KRAFT_VERSION = Message("KRaftVersionRecord", range(1), Struct((Field("kraft_version", INT16, "kRaftVersion"),)), flexible_since=0)

_ENDPOINT = Struct((Field("name", STRING, "name"), Field("host", STRING, "host"), Field("port", UINT16, "port")))
_FEATURE = Struct(
    (Field("min_supported_version", INT16, "minSupportedVersion"), Field("max_supported_version", INT16, "maxSupportedVersion"))
)
KRAFT_VOTERS = Message(
    "VotersRecord",
    range(1),
    Struct(
        (
            Field(
                "voters",
                Array(
                    Struct(
                        (
                            Field("voter_id", INT32, "voterId"),
                            Field("voter_directory_id", UUID, "voterDirectoryId"),
                            Field("endpoints", Array(_ENDPOINT), "endpoints"),
                            Field("kraft_version_feature", _FEATURE, "kRaftVersionFeature"),
                        )
                    )
                ),
                "voters",
            ),
        )
    ),
    flexible_since=0,
)
