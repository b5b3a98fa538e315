"""The algebra: a stretch of the log may be replaced by its reduction, wherever it is cut and whatever release loads it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhume.codecs.record_types import COMMIT, encode_control_record, encode_key, encode_value
from exhume.fixtures.log_writer import KeyValue, group_metadata, offset_commit, tombstone
from exhume.replay.broker_log import LoadedBatch
from exhume.replay.java.loader import JavaLoad
from exhume.replay.profiles import BrokerProfile, JavaProfile, ScalaProfile
from exhume.replay.reading import LoadInputs
from exhume.replay.reduce import NotReducible, Reduced, is_reducible, load_order, merge, reduce, why_not_reducible
from exhume.replay.reduce_facts import ReducedBatch
from exhume.replay.refusals import Refusals
from exhume.replay.releases import all_spans, profile_for
from exhume.replay.scala import ScalaLoad
from exhume.replay.state_rows import state_rows
from exhume.replay.topic_names import TopicNames
from exhume.replay.verdict import LoadAborted
from tests import strategies
from tests.cleaner import compacted
from tests.logs import Log, logs_of_brokers, written
from tests.strategies import examples
from tests.written_batches import Written

REDUCIBLE = [profile for profile in all_spans() if is_reducible(profile)]
NEWEST = [profile_for("2.8.2"), profile_for("4.3.0")]
#: The rules by which commits win: by their order, by that of markers, and with tombstones that take pending ones along.
RACE_PROFILES = [*NEWEST, profile_for("3.7.2-new")]


def load(profile: BrokerProfile, batches: Iterable[LoadedBatch], end_offset: int) -> dict[str, Any]:
    """Everything that a load says: every row of every state table, the names of topics, the verdict, and what was read."""
    names = TopicNames()
    refusals = Refusals(lenient=False)
    loader: ScalaLoad | JavaLoad
    if isinstance(profile, ScalaProfile):
        loader = ScalaLoad(profile, refusals, names, LoadInputs())
    else:
        assert isinstance(profile, JavaProfile)
        loader = JavaLoad(profile, refusals, names, end_offset)
    said: dict[str, Any] = {"records": 0, "bytes": 0, "first_offset": None, "last_offset": None}
    try:
        for batch in batches:
            refusals.path, refusals.byte_position = batch.path, batch.batch.byte_position
            if isinstance(batch, ReducedBatch):
                count(said, batch.passed.records, batch.passed.bytes, batch.passed.first_offset, batch.passed.last_offset)
            loader.apply(batch)
            base_offset = batch.batch.base_offset if batch.batch.base_offset is not None else batch.last_offset
            count(said, batch.records_read, batch.batch.size_bytes, base_offset, batch.last_offset)
        partition_state, late_error = loader.finish()
    except LoadAborted as aborted:
        place = (aborted.problem, aborted.path, aborted.byte_position)
        return said | {"aborted": place, "names": names}
    if isinstance(loader, JavaLoad):
        said |= {"shown_offset": loader.shown_offset, "skipped": loader.skipped, "fenced": loader.fenced}
    return said | {"late_error": late_error, "names": names, "rows": state_rows(partition_state, names)}


def count(said: dict[str, Any], records: int, size_bytes: int, first_offset: int | None, last_offset: int | None) -> None:
    said["records"] += records
    said["bytes"] += size_bytes
    said["first_offset"] = first_offset if said["first_offset"] is None else said["first_offset"]
    said["last_offset"] = said["last_offset"] if last_offset is None else last_offset


def kept(stretch: Reduced) -> list[tuple[Any, ...]]:
    """What is left of a stretch, in full."""
    batches = []
    for batch in Reduced(stretch.batches).log():
        try:
            records: Any = list(batch.records())
        except LoadAborted as unreadable:
            records = unreadable.problem
        assert isinstance(batch, ReducedBatch)
        batches.append((batch.path, batch.batch, batch.record_count, batch.passed, records))
    return batches


def assert_same_loads(log: Log, profiles: Iterable[BrokerProfile], cuts: Sequence[int]) -> None:
    """load(reduce(A) ++ reduce(B) ++ …) == load(A ++ B ++ …)."""
    stretches = reduced_parts(log, cuts)
    for profile in profiles:
        try:
            order = load_order(stretches, profile, log.end_offset)
        except NotReducible:
            assert log.batches[-1].last_offset + 1 < log.end_offset
            assert isinstance(profile, JavaProfile)
            continue
        assert load(profile, order, log.end_offset) == load(profile, log.part(0), log.end_offset), (profile.name, cuts)


def reduced_parts(log: Log, cuts: Sequence[int]) -> list[Reduced]:
    borders = [0, *sorted(cuts), None]
    return [reduce(log.part(start or 0, stop)) for start, stop in pairwise(borders)]


@examples(60)
@given(st.data())
def test_a_cut_anywhere_changes_no_load_of_any_release(data: st.DataObject) -> None:
    log = written(data.draw(st.one_of(strategies.logs(), strategies.transaction_logs())))
    cuts = data.draw(st.lists(st.integers(0, len(log.batches)), min_size=1, max_size=3))

    assert_same_loads(log, REDUCIBLE, cuts)


@examples(150)
@given(st.data())
def test_a_cut_between_racing_transactions_changes_no_load(data: st.DataObject) -> None:
    log = written(data.draw(strategies.transaction_logs()))

    assert_same_loads(log, RACE_PROFILES, [data.draw(st.integers(0, len(log.batches)))])


def test_no_race_of_four_steps_for_one_key_ends_otherwise() -> None:
    races = [
        steps for steps in product(("s7", "s8", "c7", "c8", "v", "t"), repeat=4) if steps[0] in ("s7", "v") and {"c7", "c8"} & {*steps}
    ]

    for steps in races:
        log = written(strategies.race(steps))
        assert_same_loads(log, RACE_PROFILES, [3] if steps[0] == "v" else [])


@examples(50)
@given(st.data())
def test_a_cut_in_what_a_cleaner_left_changes_no_load_of_any_release(data: st.DataObject) -> None:
    batches = data.draw(st.one_of(strategies.logs(most=24), strategies.transaction_logs()).flatmap(compacted))
    log = written(batches, gap_at_end=data.draw(st.sampled_from((0, 0, 0, 3))))
    cuts = data.draw(st.lists(st.integers(0, len(log.batches)), min_size=1, max_size=3))

    assert_same_loads(log, REDUCIBLE, cuts)


@examples(150)
@given(st.data())
def test_reduction_is_idempotent_and_associative(data: st.DataObject) -> None:
    """Record for record: what is kept does not hang on how parts were joined. No release has a say in it."""
    log = written(data.draw(st.one_of(strategies.logs(), strategies.transaction_logs())))
    at_once = reduce(log.part(0))
    first, second, third = reduced_parts(log, data.draw(st.lists(st.integers(0, len(log.batches)), min_size=2, max_size=2)))

    assert kept(merge([at_once])) == kept(at_once)
    assert kept(merge([first, second, third])) == kept(at_once)
    assert kept(merge([merge([first, second]), third])) == kept(at_once)
    assert kept(merge([first, merge([second, third])])) == kept(at_once)


@examples(30)
@given(st.data())
def test_however_parts_are_joined_every_release_loads_the_same(data: st.DataObject) -> None:
    log = written(data.draw(st.one_of(strategies.logs(), strategies.transaction_logs())))
    first, second, third = reduced_parts(log, data.draw(st.lists(st.integers(0, len(log.batches)), min_size=2, max_size=2)))
    joined = data.draw(
        st.sampled_from(
            ([merge([first, second]), third], [first, merge([second, third])], [merge([merge([first]), second]), merge([third])])
        )
    )

    for profile in REDUCIBLE:
        said = load(profile, load_order(joined, profile, log.end_offset), log.end_offset)
        assert said == load(profile, log.part(0), log.end_offset), profile.name


def named_logs() -> list[tuple[str, Log]]:
    return [(found.name, found.log) for found in logs_of_brokers()]


@pytest.mark.slow
def test_a_cut_at_every_border_of_the_small_logs_of_brokers_changes_no_load_of_any_release() -> None:
    compared = 0
    for name, log in named_logs():
        if name.startswith("facts/") and len(log.batches) <= 6 and name.split("/")[1] not in GO_BACK:
            for cut in range(len(log.batches) + 1):
                assert_same_loads(log, REDUCIBLE, [cut])
                compared += len(REDUCIBLE)

    assert compared > 8_000


def test_a_cut_in_the_middle_of_the_long_logs_of_brokers_changes_no_load() -> None:
    compared = 0
    for name, log in named_logs():
        if not name.startswith("facts/") and compared < 240:
            assert_same_loads(log, NEWEST, [len(log.batches) // 2])
            compared += len(NEWEST)

    assert compared >= 240


#: Logs whose record offsets go back.
GO_BACK = ("offset-dup-clean", "offset-dup-unclean", "offset-back-big-clean", "offset-back-big-unclean")


def test_logs_that_go_back_are_refused_within_a_stretch_and_between_stretches() -> None:
    (log,) = [log for name, log in named_logs() if name.startswith("facts/offset-dup-clean/")]

    for cut in range(len(log.batches) + 1):
        with pytest.raises(NotReducible, match=r"go(es)? back"):
            load_order(reduced_parts(log, [cut]), profile_for("4.3.0"), log.end_offset)


def test_of_many_commits_over_few_keys_less_than_a_twentieth_is_left() -> None:
    batches = [Written(((0, offset_commit(f"group-{n % 50}", "orders", n % 200, n, commit_timestamp_ms=n)),), 1) for n in range(10_000)]

    stretch = reduce(written(batches).part(0))

    assert stretch.record_count == 10_000
    assert stretch.kept_count < 500


def test_transactions_that_are_over_and_outdone_go_with_their_markers() -> None:
    def transaction(n: int) -> list[Written]:
        record = offset_commit("billing", "orders", 0, n, commit_timestamp_ms=n)
        return [
            Written(((0, record),), 1, producer_id=7, is_transactional=True),
            Written(((0, encode_control_record(COMMIT, {"coordinator_epoch": 0})),), 1, 7, True, True),
        ]

    stretch = reduce(written([batch for n in range(500) for batch in transaction(n)]).part(0))

    # The first commit makes the group exist, the first marker may end what is older than the stretch; the last of both count.
    assert (stretch.record_count, stretch.kept_count) == (1_000, 4)


@pytest.mark.parametrize(("release", "reason"), [("0.10.2.2", "high watermark"), ("0.11.0.0", "after each chunk")])
def test_a_release_whose_result_hangs_on_chunks_is_refused_with_the_reason(release: str, reason: str) -> None:
    with pytest.raises(NotReducible, match=reason):
        load_order([], profile_for(release), 0)


def test_a_log_that_ends_in_a_gap_is_refused_where_snapshots_hang_on_every_batch() -> None:
    log = written([Written(((0, offset_commit("billing", "orders", 0, 1, commit_timestamp_ms=1)),), 1)])

    with pytest.raises(NotReducible, match="ends in a gap"):
        load_order([reduce(log.part(0))], profile_for("4.3.0"), 5)
    assert list(load_order([reduce(log.part(0))], profile_for("4.0.0"), 5))
    assert [profile.name for profile in all_spans() if why_not_reducible(profile)] == [
        "0.9.0.1",
        "0.10.0.1",
        "0.10.1.1",
        "0.10.2.2",
        "0.11.0.0",
    ]


def test_the_page_names_the_releases_whose_logs_cannot_be_reduced() -> None:
    page = (Path(__file__).resolve().parent.parent.parent / "docs" / "fidelity.md").read_text(encoding="utf-8")
    section = page.split("## Releases whose logs cannot be reduced")[1].split("##")[0]

    assert set(re.findall(r"\d+(?:\.\d+)+", section)) == {profile.name for profile in all_spans() if why_not_reducible(profile)}


def kept_places(stretch: Reduced) -> list[int]:
    """Record offsets of the records that are left after the first batch, which holds one record of each kind."""
    return [record.record_offset - FIRSTS for batch in stretch.log() for record in batch.records() if record.record_offset >= FIRSTS]


FIRSTS = strategies.race([])[0].size
VALUE = offset_commit("billing", "orders", 0, 1, commit_timestamp_ms=1)
CLASSIC = group_metadata("billing", {"protocol_type": "consumer", "generation": 1, "members": []})
MODERN = (encode_key(3, {"group": "billing"}), encode_value(3, 0, {"group_epoch": 1}))
TWICE = group_metadata("billing", {"protocol_type": "connect", "generation": 1, "members": [{"member_id": "m"}, {"member_id": "m"}]})


@pytest.mark.parametrize(
    ("records", "places"),
    [
        ([VALUE, VALUE, VALUE], [2]),
        ([VALUE, tombstone(VALUE), VALUE, tombstone(VALUE), VALUE], [3, 4]),
        ([CLASSIC, CLASSIC, CLASSIC], [0, 2]),  # 0 is the first of its version
        ([CLASSIC, CLASSIC, MODERN, CLASSIC, CLASSIC], [0, 1, 2, 3, 4]),  # 3 makes the group exist anew, whatever 2 did
        ([CLASSIC, TWICE, CLASSIC], [0, 1, 2]),
        ([VALUE, tombstone(CLASSIC), VALUE, VALUE], [1, 2, 3]),  # 2 makes the group exist anew
        ([VALUE, (VALUE[0], b"\0\3"), VALUE], [1, 2]),
        ([VALUE, (b"\x03\xe7", b"x"), (b"\x03\xe7", b"x"), VALUE], [1, 2, 3]),
        ([MODERN, MODERN], [0, 1]),
    ],
)
def test_what_stays_of_plain_records(records: list[KeyValue], places: list[int]) -> None:
    stretch = reduce(written([*strategies.race([]), *(Written(((0, record),), 1) for record in records)]).part(0))

    assert kept_places(stretch) == places


@pytest.mark.parametrize(
    ("steps", "places"),
    [
        ("s7 c7 s7 c7", [1, 2, 3]),  # the first marker may end what an earlier stretch began
        ("s7 c7 s7 c7 v", [1, 4]),
        ("s7 a7 s7 a7", [1]),
        ("s7 s8 c8 c7", [0, 1, 2, 3]),  # by commits 1 wins, by markers 0
        ("s7 s8 c7 c8", [1, 2, 3]),
        ("s7 v c7", [0, 1, 2]),
        ("s7 v c7 v", [2, 3]),
        ("v s7 c7", [1, 2]),
        ("v s7", [0, 1]),
        ("s7 t c7", [0, 1, 2]),
        ("s7 c7 t", [1, 2]),
        ("s7 c7 s7 b c7", [0, 1, 2, 3, 4]),  # what one coordinator takes for plain keeps what is staged, and so what it might outdo
        ("v b v", [1, 2]),
        ("c7 c7 c7", [0]),
        ("v p v", [1, 2]),
    ],
)
def test_what_stays_of_a_race(steps: str, places: list[int]) -> None:
    last_stays = written([*strategies.race(steps.split()), strategies.racer("x")])

    assert kept_places(reduce(last_stays.part(0))) == places


def test_names_of_topic_ids_are_told_again_when_they_change() -> None:
    topics = ["orders", "returns", "orders", "orders"]
    commits = [
        offset_commit("billing", topic, 0, 1, commit_timestamp_ms=1, version=4, topic_id=strategies.TOPIC_IDS[0]) for topic in topics
    ]

    stretch = reduce(written([*strategies.race([]), *(Written(((0, commit),), 1) for commit in commits)]).part(0))

    assert kept_places(stretch) == [0, 1, 2, 3]


def test_the_first_batch_of_a_codec_leaves_its_header_for_releases_without_it() -> None:
    codecs = [0, 0, 4, 4, 0]
    log = written([*strategies.race([]), *(Written(((0, VALUE),), 1, codec=codec) for codec in codecs)])

    assert [batch.last_offset - FIRSTS for batch in reduce(log.part(0)).batches] == [-1, 2, 4]
    assert_same_loads(log, REDUCIBLE, [])


def test_a_control_batch_that_is_no_plain_marker_stays_with_what_it_may_have_ended() -> None:
    no_marker = Written((), 1, producer_id=7, is_transactional=True, is_control=True)
    staged, marker = strategies.racer("s7"), strategies.racer("c7")
    log = written([*strategies.race([]), marker, staged, no_marker, marker, staged, marker, strategies.racer("v")])

    assert [batch.last_offset - FIRSTS for batch in reduce(log.part(0)).batches] == [-1, 0, 1, 2, 3, 6]


def test_a_batch_larger_than_all_before_it_leaves_its_header() -> None:
    """Releases that cannot grow their load buffer stall at it, whatever the buffer is."""
    sizes = [1, 40, 5, 90, 60]
    commits = [offset_commit("billing", "orders", 0, 1, commit_timestamp_ms=1, metadata="x" * size) for size in sizes]

    stretch = reduce(written([Written(((0, commit),), 1) for commit in [*commits, commits[0]]]).part(0))

    assert [batch.last_offset for batch in stretch.batches] == [0, 1, 3, 5]
