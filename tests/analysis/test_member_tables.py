"""What a roster says of all members at once is what their records say of each."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.generate import generate
from exhume.analysis import member_columns, member_tables
from exhume.analysis.classic_members import classic_group
from exhume.analysis.memberships import Membership
from exhume.codecs import schemas
from exhume.codecs.decoded_tables import decode_table
from exhume.codecs.log_directory import discover
from exhume.codecs.record_types import encode_key, encode_value
from exhume.codecs.segment_reader import ReadOptions, SegmentReader
from exhume.findings import Findings
from tests.judges import corpus
from tests.twins import COMPILED, PLAIN, reading, record_chunks

_ASKED: dict[Callable[[Membership], Sequence[object]], str] = {
    member_columns.assigned_of: "assigned",
    member_columns.owned_of: "owned",
    member_columns.claimed_of: "claimed",
    member_columns.subscriptions_of: "subscribed_topics",
    member_columns.client_ids_of: "client_id",
}
_ASKED_TOGETHER: tuple[Callable[[Membership], object], ...] = (
    member_columns.disjoint_subscriptions_of,
    member_columns.difference_of,
    member_columns.has_static_members,
    member_columns.is_claimed_twice,
    member_columns.is_known,
    member_columns.is_opaque,
    member_columns.is_owned_twice,
    member_columns.owned_sets_of,
    member_columns.all_owned,
    member_columns.all_subscribed,
)


def _with_member_tables(reader: SegmentReader) -> Iterator[tuple[bytes, bytes | None, member_tables.MemberTable | None]]:
    table_reader = member_tables.MemberTableReader()
    for chunk in record_chunks(reader):
        groups = [row for row in chunk.others.to_pylist() if row["record_type"] == 2 and not row["is_control"]]
        for row, member_table in zip(groups, table_reader.read(chunk.groups), strict=True):
            yield row["key"], row["value"], member_table


def _check(key: bytes, value: bytes, member_table: member_tables.MemberTable) -> None:
    read = classic_group(key, value)
    assert read is not None
    header, members = read
    # As it gets to another process.
    member_table = pickle.loads(pickle.dumps(member_table))
    at_once = member_tables.ClassicMembers(member_table)
    step = Membership("", 0, "g", "classic", 0, 0, None, "", 0, at_once)

    assert {
        "current_state_timestamp_ms": -1,
        **{name: told for name, told in header.items() if name in member_table.header},
    } == member_table.header
    assert (len(at_once), [*at_once]) == (len(members), [*members])
    for ask, name in _ASKED.items():
        assert [*ask(step)] == [getattr(member, name) for member in members.values()]
    one_by_one = step._replace(members=members)
    for ask_together in _ASKED_TOGETHER:
        assert ask_together(step) == ask_together(one_by_one)
    assert [member_columns.member_at(step, place) for place in range(len(members))] == [*members.values()]
    assert [member_columns.name_at(step, place) for place in range(len(members))] == [member.name for member in members.values()]
    assert at_once == members


@pytest.mark.parametrize("least_bytes", [COMPILED, PLAIN], ids=["by kernels", "plainly"])
@pytest.mark.parametrize("case", corpus.sweep(corpus.cases(), one_of=24))
def test_a_roster_says_what_the_members_say(case: corpus.Case, least_bytes: int) -> None:
    for data in case.data_directories.values():
        with reading(least_bytes):
            found = [*_with_member_tables(SegmentReader(discover([data]), ReadOptions(), Findings()))]
        for key, value, member_table in found:
            if value is not None and member_table is not None:
                _check(key, value, member_table)
            elif not (case.is_fact or case.is_random):
                assert value is None


@pytest.mark.slow
def test_so_it_is_of_a_log_of_many_groups(tmp_path: Path) -> None:
    content = generate(tmp_path / "log", megabytes=3)
    reader = SegmentReader(discover([tmp_path / "log"]), ReadOptions(), Findings())

    found = [*_with_member_tables(reader)]

    assert len(found) == content.group_records
    for key, value, member_table in found:
        assert value is not None
        assert member_table is not None
        _check(key, value, member_table)


@pytest.mark.slow
def test_so_it_is_where_hardly_anything_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member_tables, "_MAX_CACHED", 10)

    test_so_it_is_of_a_log_of_many_groups(tmp_path)


def test_what_was_listed_is_not_shipped(tmp_path: Path) -> None:
    generate(tmp_path / "log", megabytes=1)
    reader = SegmentReader(discover([tmp_path / "log"]), ReadOptions(), Findings())
    member_table = next(member_table for _, _, member_table in _with_member_tables(reader) if member_table is not None)
    shipped = pickle.dumps(member_table)

    listed = member_table.column("client_host")

    assert pickle.dumps(member_table) == shipped
    assert pickle.loads(shipped).column("client_host") == listed


def test_of_a_member_that_is_there_twice_there_is_none() -> None:
    member = {"member_id": "a", "client_id": "c", "client_host": "/h", "session_timeout_ms": 1, "subscription": b"", "assignment": b""}
    value = {"protocol_type": "consumer", "generation": 1, "protocol": "range", "leader": "a", "members": [member, member]}
    row: dict[str, object] = dict.fromkeys(schemas.RECORDS.names)
    row |= {"is_control": False, "record_type": 2, "key": encode_key(2, {"group": "g"}), "value": encode_value(2, 0, value)}

    table = decode_table("group_metadata", pa.RecordBatch.from_pylist([row], schema=schemas.RECORDS))

    assert table["members"].to_pylist() != [None]
    assert member_tables.MemberTableReader().read(table) == [None]


@given(st.lists(st.none() | st.lists(st.sampled_from("abcdefgh"), max_size=3).map(tuple), max_size=8))
def test_who_is_apart_is_told_as_by_going_from_topic_to_topic(subscriptions: list[tuple[str, ...] | None]) -> None:
    firsts: list[tuple[str, ...]] = []
    reached: set[str] = set()
    for subscribed in subscriptions:
        if not subscribed or reached.intersection(subscribed):
            continue
        firsts.append(subscribed)
        new = {*subscribed}
        while new:
            reached |= new
            new = {topic for each in subscriptions if each and reached.intersection(each) for topic in each} - reached

    assert member_tables.disjoint(subscriptions) == (None if len(firsts) < 2 else (firsts[0], firsts[1]))
