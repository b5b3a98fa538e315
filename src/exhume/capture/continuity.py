"""Check that a leader has the records that were captured before: after an unclean election a replica that has less may lead.

Brokers from 2.7 on compare the leader epoch of the last record with each fetch (`last_fetched_epoch`). Older ones are asked for the end of
that epoch, as Kafka's own consumer asks them (KIP-320).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from exhume.capture.messages import Request, api_of, field_of, rows_of, throttle
from exhume.codecs.file_names import OFFSETS_TOPIC
from exhume.codecs.layout import INT16, INT32, INT64, STRING

if TYPE_CHECKING:
    from exhume.capture.cluster import Cluster

#: The first version of Fetch with `last_fetched_epoch`; only its version matters here.
FETCH_WITH_EPOCH = api_of(1, "Fetch", range(12, 13), [], [])

OFFSET_FOR_LEADER_EPOCH = api_of(
    23,
    "OffsetForLeaderEpoch",
    range(2, 4),
    [
        field_of("replica_id", INT32, since=3),
        rows_of(
            "topics",
            field_of("topic", STRING),
            rows_of(
                "partitions",
                field_of("partition", INT32),
                field_of("current_leader_epoch", INT32),
                field_of("leader_epoch", INT32),
            ),
        ),
    ],
    [
        throttle(),
        rows_of(
            "topics",
            field_of("topic", STRING),
            rows_of(
                "partitions",
                field_of("error_code", INT16),
                field_of("partition", INT32),
                field_of("leader_epoch", INT32),
                field_of("end_offset", INT64),
            ),
        ),
    ],
)


def fetch_compares_epochs(cluster: Cluster) -> bool:
    """True if the brokers compare leader epochs with each fetch."""
    return cluster.has_api(Request(FETCH_WITH_EPOCH))


def end_of_epoch(cluster: Cluster, node_id: int, number: int, epoch: int) -> tuple[int, int] | None:
    """Return Kafka's error code, and the offset at which records of this epoch or earlier ones end in the log of the leader.

    The offset is -1 where the leader does not know it. None: a broker before 2.1, which is not asked.

    Raises:
        Unreachable: no answer in time.
    """
    if not cluster.has_api(Request(OFFSET_FOR_LEADER_EPOCH)):
        return None
    wanted = {"partition": number, "current_leader_epoch": -1, "leader_epoch": epoch}
    request = Request(OFFSET_FOR_LEADER_EPOCH, replica_id=-1, topics=[{"topic": OFFSETS_TOPIC, "partitions": [wanted]}])
    row = cluster.ask(node_id, request)["topics"][0]["partitions"][0]
    return row["error_code"], row["end_offset"]
