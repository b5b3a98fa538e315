"""An offsets topic of many small things: partitions, segments, groups and keys, as many as asked for.

python -m tests.many_small DIR --groups 100000 --keys 10 --segments 100
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

from exhume.codecs.embedded.consumer import encode_assignment, encode_subscription
from exhume.codecs.offsets_topic import DEFAULT_PARTITION_COUNT, offsets_partition_of
from exhume.fixtures.log_writer import PartitionWriter, group_metadata, offset_commit

_FIRST_MS = 1_760_000_000_000
_SUBSCRIPTION = encode_subscription(1, {"topics": ["orders"], "owned_partitions": []})


def write_many_small(directory: Path, *, groups: int, keys: int, segments: int, partitions: int = DEFAULT_PARTITION_COUNT) -> None:
    """Write `partitions` logs of `segments` segments each. A group has one member and `keys` keys, in one batch."""
    names = defaultdict(list)
    for number in range(groups):
        names[offsets_partition_of(f"group-{number}", partitions)].append(number)
    for partition in range(partitions):
        with PartitionWriter(directory, partition) as log:
            here = names[partition]
            for place, number in enumerate(here):
                if place and place * segments // len(here) > (place - 1) * segments // len(here):
                    log.roll()
                _write_group(log, number, keys)


def _write_group(log: PartitionWriter, number: int, keys: int) -> None:
    group, now_ms = f"group-{number}", _FIRST_MS + 20 * number
    member = {
        "member_id": f"client-{number}-1",
        "client_id": f"client-{number}",
        "client_host": "/10.0.0.1",
        "rebalance_timeout_ms": 300_000,
        "session_timeout_ms": 45_000,
        "subscription": _SUBSCRIPTION,
        "assignment": encode_assignment(1, {"assigned_partitions": [{"topic": "orders", "partitions": list(range(keys))}]}),
    }
    value = {
        "protocol_type": "consumer",
        "generation": 1,
        "protocol": "range",
        "leader": member["member_id"],
        "current_state_timestamp_ms": now_ms,
        "members": [member],
    }
    commits = [offset_commit(group, "orders", key, 100 + number, commit_timestamp_ms=now_ms) for key in range(keys)]
    log.append([group_metadata(group, value), *commits], timestamp_ms=now_ms)


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--groups", type=int, default=100_000)
    parser.add_argument("--keys", type=int, default=10, help="keys of each group")
    parser.add_argument("--segments", type=int, default=100, help="segments of each partition")
    parser.add_argument("--partitions", type=int, default=DEFAULT_PARTITION_COUNT)
    asked = parser.parse_args()
    write_many_small(asked.directory, groups=asked.groups, keys=asked.keys, segments=asked.segments, partitions=asked.partitions)


if __name__ == "__main__":
    _main()
