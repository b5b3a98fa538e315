"""The members of classic groups in columns: the rows that decoding one member after the other gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from exhume.arrow_rows import of_log
from exhume.codecs.embedded.consumer import encode_assignment, encode_subscription
from exhume.codecs.log_directory import discover
from exhume.fixtures.log_writer import PartitionWriter, group_metadata, offset_commit
from exhume.replay import member_columns
from exhume.replay.local import load_partitions, load_state
from exhume.replay.partition_load import LoadOptions
from exhume.replay.reading import CompiledLoad
from exhume.replay.releases import profile_for
from exhume.replay.state_tables import SCHEMAS
from exhume.replay.topic_names import TopicNames


def member(number: int, **fields: Any) -> dict[str, Any]:
    subscription = encode_subscription(1, {"topics": ["t", f"u{number % 2}"], "user_data": bytes([number]) if number % 3 else None})
    assignment = encode_assignment(1, {"assigned_partitions": [{"topic": "t", "partitions": [*range(number)]}], "user_data": None})
    return {
        "member_id": f"m-{number}",
        "client_id": f"c-{number}",
        "client_host": "/10.0.0.1",
        "session_timeout_ms": 1000 + number,
        "subscription": subscription,
        "assignment": assignment,
        **fields,
    }


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    with PartitionWriter(tmp_path, 3) as log:
        for number in range(12):
            members = [
                member(each, group_instance_id=f"i-{each}" if each % 2 else None, rebalance_timeout_ms=each - 1) for each in range(number)
            ]
            group = {"protocol_type": "consumer", "generation": number, "protocol": "range", "leader": "m-0", "members": members}
            log.append([group_metadata(f"grüppe-{number % 7}-{number}", group, version=3)])
        old = {"protocol_type": "consumer", "generation": 1, "protocol": "range", "leader": "m-1", "members": [member(1), member(2)]}
        log.append([group_metadata("of version 0", old, version=0)])
        # Only the loader reads the members of another protocol type.
        connect = {"protocol_type": "sr", "generation": 1, "protocol": "v0", "leader": "m-1", "members": [member(1)]}
        log.append([group_metadata("grüppe-3-of-a-registry", connect, version=3)])
        log.append([offset_commit("simple", "t", 0, 1, commit_timestamp_ms=1)])
    return tmp_path


@pytest.mark.parametrize("chunk_bytes", [1, 4 << 20])
@pytest.mark.parametrize("release", ["2.8.2", "4.3.0"])
def test_members_in_columns_are_those_that_are_decoded_one_by_one(
    directory: Path, monkeypatch: pytest.MonkeyPatch, release: str, chunk_bytes: int
) -> None:
    monkeypatch.setattr(member_columns, "_CHUNK_BYTES", chunk_bytes)
    with discover([directory]) as evidence:
        directories, options = evidence.log_directories, LoadOptions(profile_for(release))
        in_columns = load_state(directories, LoadOptions(profile_for(release), fast=CompiledLoad()), TopicNames())
        one_by_one = load_state(directories, options, TopicNames())
        some = in_columns.only(["grüppe-3-3", "grüppe-3-of-a-registry"])

        assert in_columns.members.num_rows == sum(range(12)) + 3
        for table in ("members", "assignments"):
            assert in_columns.tables[table].equals(one_by_one.tables[table]), table
            assert some.tables[table].equals(one_by_one.only(["grüppe-3-3", "grüppe-3-of-a-registry"]).tables[table]), table


def test_a_table_without_groups_has_its_columns() -> None:
    table = member_columns.LaterMemberTables([]).table("members", of_log("1", 3))

    assert table.schema == SCHEMAS["members"]
    assert table.num_rows == 0


def test_each_different_payload_is_decoded_once(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[bytes] = []
    decode = member_columns._subscription

    def noting(protocol_type: str | None, protocol: str | None, payload: bytes) -> Any:
        decoded.append(payload)
        return decode(protocol_type, protocol, payload)

    monkeypatch.setattr(member_columns, "_subscription", noting)
    with discover([directory]) as evidence:
        [load] = load_partitions(evidence.log_directories, LoadOptions(profile_for(None), fast=CompiledLoad()), TopicNames())
        later = [group for group in load.partition_state.groups.values() if hasattr(group.members, "value")]
        table = member_columns.LaterMemberTables(later).table("members", of_log("1", 3))  # type: ignore[arg-type]

    assert isinstance(table, pa.Table)
    assert len(decoded) == len({*decoded}) < table.num_rows
